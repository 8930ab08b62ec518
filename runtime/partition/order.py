"""Arrow columns to numbers, and rows into the order of the stream.

The order is the key (only so that equal ones are adjacent), then the ORDER BY columns, then what breaks ties. Nearly
always the first ORDER BY column decides, so the others are only looked at where it does not.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from runtime.arrays import AnyArray, IntArray
from runtime.task import OrderColumn


class Whole(Protocol):
    """A column that is not there yet."""

    def combine_chunks(self) -> pa.Array: ...


def combined(column: pa.ChunkedArray | pa.Array | Whole) -> pa.Array:
    """One contiguous array."""
    if isinstance(column, pa.Array):
        return column
    if isinstance(column, pa.ChunkedArray) and column.num_chunks == 1:
        return column.chunk(0)
    return column.combine_chunks()


def as_clock(column: pa.ChunkedArray | pa.Array) -> AnyArray:
    """A time or number: int64[n] (microseconds, days, unscaled decimals) or float64[n]; a NULL whole number is 0."""
    array = combined(column)
    kind = array.type
    if pa.types.is_decimal(kind):
        words = np.frombuffer(array.buffers()[1], np.int64)[2 * array.offset :]
        return np.ascontiguousarray(words[: 2 * len(array) : 2])  # the low half: at most 18 digits
    if pa.types.is_floating(kind):
        return np.asarray(array).astype(np.float64)
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        array = array.view(pa.int64())
    elif pa.types.is_date32(kind):
        array = array.view(pa.int32())
    if array.null_count:
        array = pc.fill_null(array, 0)
    return np.asarray(array).astype(np.int64)


def as_symbols(columns: list[pa.ChunkedArray | pa.Array], bits: int | None) -> AnyArray:
    """int64[n] or int64[n, words]; of a single column only the low `bits`, if that is given."""
    words = [as_clock(column) for column in columns]
    if bits is not None:
        return words[0] & ((1 << bits) - 1)
    return words[0] if len(words) == 1 else np.stack(words, axis=1)


def has_clock(kind: pa.DataType) -> bool:
    """Can as_clock read it?"""
    if pa.types.is_decimal(kind):
        return bool(kind.precision <= 18)
    return bool(
        pa.types.is_timestamp(kind)
        or pa.types.is_date32(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
    )


def float_codes(values: AnyArray) -> IntArray:
    """float64 to int64 in Spark's order: -0.0 equals 0.0, NaN equals itself and is the greatest."""
    values = np.where(np.isnan(values), np.nan, values) + 0.0
    bits = np.ascontiguousarray(values).view(np.int64)
    return np.where(bits < 0, bits ^ np.int64(0x7FFFFFFFFFFFFFFF), bits)


def codes(column: pa.ChunkedArray | pa.Array, nulls_last: bool = False) -> list[IntArray]:
    """Numbers that sort as the column does, most significant first; NULLs first unless nulls_last."""
    array = combined(column)
    kind = array.type
    if array.null_count == 0 and has_clock(kind) and not pa.types.is_floating(kind):
        return [as_clock(array)]
    null = np.asarray(array.is_null())
    flag = null.astype(np.int64) if nulls_last else (~null).astype(np.int64)
    if pa.types.is_floating(kind):
        values = float_codes(np.asarray(pc.fill_null(array, 0.0)).astype(np.float64))
    elif pa.types.is_null(kind):
        values = np.zeros(len(array), np.int64)
    elif pa.types.is_nested(kind) or pa.types.is_map(kind):
        values = _nested_ranks(array)
    else:
        values = _ranks(array)
    return [flag, np.where(null, 0, values)]


def _ranks(array: pa.Array) -> IntArray:
    """Dense ranks by Arrow's order (binary for strings, as in Spark)."""
    if pa.types.is_boolean(array.type):
        return np.asarray(pc.fill_null(array, False).cast(pa.int8())).astype(np.int64)
    encoded = array.dictionary_encode()
    order = np.asarray(pc.sort_indices(encoded.dictionary))
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    index = np.asarray(pc.fill_null(encoded.indices, 0))
    return ranks[index] if len(ranks) else np.zeros(len(array), np.int64)


def _nested_ranks(array: pa.Array) -> IntArray:
    """Ranks of structs and arrays, element by element, NULLs first; slow, and only used to break ties."""
    keys = [comparable(value) for value in array.to_pylist()]
    distinct = {key: rank for rank, key in enumerate(sorted(set(keys)))}
    return np.array([distinct[key] for key in keys], np.int64)


def comparable(value: Any) -> tuple[Any, ...]:
    """A nested Python value as tuples that compare like Spark's structs and arrays."""
    if value is None:
        return (0,)
    if isinstance(value, dict):
        return (1, tuple(comparable(v) for v in value.values()))
    if isinstance(value, list | tuple):
        return (1, tuple(comparable(v) for v in value))
    if isinstance(value, float):
        return (1, value != value, value + 0.0 if value == value else 0.0)
    return (1, value)


def group_ids(columns: list[pa.ChunkedArray | pa.Array], n: int) -> IntArray:
    """Equal numbers for rows that agree on all columns; NULL agrees with NULL, NaN with NaN, -0.0 with 0.0."""
    ids = np.zeros(n, np.int64)
    for column in columns:
        parts = codes(column)
        if len(parts) == 1 and len(columns) == 1:
            return parts[0]
        for part in parts:
            if not len(part) or part.min() == part.max():
                continue
            _, dense = np.unique(part, return_inverse=True)
            _, ids = np.unique(ids * (int(dense.max()) + 1) + dense.reshape(-1), return_inverse=True)
            ids = ids.reshape(-1).astype(np.int64)
    return ids


def stable_order(primary: AnyArray) -> IntArray:
    """The stable sorting permutation of numbers. Numbers in a small range are sorted by radix, O(n)."""
    if len(primary) and np.issubdtype(primary.dtype, np.integer):
        least = primary.min()
        if int(primary.max()) - int(least) < 1 << 16:
            return np.argsort((primary - least).astype(np.uint16), kind="stable")
    return np.argsort(primary, kind="stable")


def is_sorted(values: AnyArray) -> bool:
    return bool(np.all(values[1:] >= values[:-1]))


def sorted_rows(table: pa.Table, keys: IntArray | None, first: AnyArray, rest: tuple[OrderColumn, ...]) -> IntArray:
    """The permutation that puts rows in order: keys, then `first` (numbers), then the columns `rest` where they tie."""
    n = len(first)
    order = np.arange(n, dtype=np.int64) if is_sorted(first) else stable_order(first)
    ordered = None
    if keys is not None:
        ordered = keys[order]
        if not is_sorted(ordered):
            by_key = stable_order(ordered)
            order, ordered = order[by_key], ordered[by_key]
    if not rest or n < 2:
        return order
    times = first[order]  # one look-up for both neighbours
    same = times[1:] == times[:-1]
    if ordered is not None:
        same &= ordered[1:] == ordered[:-1]
    if same.any():
        _break_ties(table, order, same, rest)
    return order


def _break_ties(table: pa.Table, order: IntArray, same: AnyArray, rest: tuple[OrderColumn, ...]) -> None:
    """Sort, in place, each stretch of rows that agree so far. same[i]: row i + 1 agrees with row i."""
    tied = np.zeros(len(order), np.bool_)
    tied[1:] |= same
    tied[:-1] |= same
    places = np.flatnonzero(tied)
    begins = np.ones(len(order), np.bool_)
    begins[1:] = ~same
    stretch = np.cumsum(begins)[places].astype(np.int64)
    rows = order[places]
    part = table.take(pa.array(rows)) if len(places) < len(order) else table
    index = None if len(places) < len(order) else rows
    columns: list[IntArray] = [stretch]
    for column in rest:
        for code in codes(part.column(column.name), column.nulls_last):
            columns.append(code if index is None else code[index])
    order[places] = rows[np.lexsort(columns[::-1])]
