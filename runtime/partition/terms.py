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


def term_codes(columns: list[pa.ChunkedArray | pa.Array], numbers: tuple[int, ...] = ()) -> IntArray:
    """int64[n, len(columns)]; columns of one type share their codes. Those of the columns `numbers`, which are computed
    with, are never ranks: ExecutionError LEAST_BIGINT for the one value that has no code."""
    arrays = [combined(column) for column in columns]
    found = np.empty((len(arrays[0]), len(arrays)), np.int64)
    by_type: dict[pa.DataType, list[int]] = defaultdict(list)
    for i, array in enumerate(arrays):
        by_type[array.type].append(i)
    for kind, group in by_type.items():
        whole = pa.concat_arrays([arrays[i] for i in group])
        values = _codes(whole, kind)
        null = np.asarray(whole.is_null())
        if bool(np.any(values[~null] == NULL_CODE)):  # a BIGINT's least value: then ranks
            if not set(numbers).isdisjoint(group):
                raise ExecutionError("LEAST_BIGINT", value=NULL_CODE)
            values = np.unique(values, return_inverse=True)[1].reshape(-1).astype(np.int64)
        values[null] = NULL_CODE
        found[:, group] = values.reshape(len(group), -1).T
    return found


def _codes(array: pa.Array, kind: pa.DataType) -> IntArray:
    if pa.types.is_floating(kind):
        return float_codes(np.asarray(pc.fill_null(array, 0.0)).astype(np.float64))
    if has_clock(kind):
        return as_clock(array).copy()
    return codes(array)[-1].astype(np.int64)
