"""Attributes that are compared, as numbers: int64 codes in Spark's order, NULL_CODE for NULL.

Whole numbers, dates, times and short decimals are their own codes, floating point numbers their bits in Spark's order
(-0.0 is 0.0, NaN the greatest). Of other types the codes are ranks among the values at hand, so they mean something
within one call only.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from runtime.arrays import IntArray
from runtime.errors import ExecutionError
from runtime.partition.order import as_clock, codes, combined, float_codes, has_clock
from runtime.program import NULL_CODE

RESERVED = NULL_CODE + 2  # up to here codes mean no value (see runtime.steppers.register_ops)
_SORT_HINT = "Compare it as a DECIMAL(20, 0), or leave such rows out."


def term_codes(columns: list[pa.ChunkedArray | pa.Array], numbers: tuple[int, ...] = ()) -> IntArray:
    """int64[n, len(columns)]; columns of one type share their codes. Those of the columns `numbers`, which are computed
    with, are never ranks: ExecutionError LEAST_BIGINT for the three values that have no code."""
    arrays = [combined(column) for column in columns]
    found = np.empty((len(arrays[0]), len(arrays)), np.int64)
    by_type: dict[pa.DataType, list[int]] = defaultdict(list)
    for i, array in enumerate(arrays):
        by_type[array.type].append(i)
    for kind, group in by_type.items():
        whole = pa.concat_arrays([arrays[i] for i in group])
        values = _codes(whole, kind)
        null = np.asarray(whole.is_null())
        if bool(np.any(values[~null] <= RESERVED)):  # the least values of a BIGINT: then ranks
            if not set(numbers).isdisjoint(group):
                raise ExecutionError("LEAST_BIGINT", value=int(values[~null].min()), hint=_SORT_HINT)
            values = np.unique(values, return_inverse=True)[1].reshape(-1).astype(np.int64)
        values[null] = NULL_CODE
        found[:, group] = values.reshape(len(group), -1).T
    return found


def weight_codes(columns: list[pa.ChunkedArray | pa.Array]) -> IntArray:
    """int64[n, len(columns)]: numbers as the bits of DOUBLEs, NULL as NULL_CODE (runtime.sieve)."""
    found = np.empty((len(columns[0]), len(columns)), np.int64)
    for i, column in enumerate(map(combined, columns)):
        numbers = pc.fill_null(column.cast(pa.float64(), safe=False), 0.0)
        values = np.asarray(numbers, np.float64) + 0.0  # no -0.0, which is NULL_CODE
        found[:, i] = np.where(np.asarray(column.is_null()), NULL_CODE, values.view(np.int64))
    return found


def has_own_codes(kind: pa.DataType) -> bool:
    """Are the codes of this type's values the same wherever they are made, and no ranks?"""
    return pa.types.is_floating(kind) or has_clock(kind)


def _codes(array: pa.Array, kind: pa.DataType) -> IntArray:
    if pa.types.is_floating(kind):
        return float_codes(np.asarray(pc.fill_null(array, 0.0)).astype(np.float64))
    if has_clock(kind):
        return as_clock(array).copy()
    return codes(array)[-1].astype(np.int64)
