"""Aggregates over the events of each match, while the matches of a chunk are rows of numbers: RETURN SUM(b.x).

What crosses to Spark is a column of scalars, and no array of structs for each match that an expression then folds. The
digits are those of that expression (cersql/binding/aggregates.py), and so of Spark's own aggregates over the events in
their order: DOUBLEs are added one by one. A sum of BIGINTs is a wide decimal, which Spark casts to BIGINT, or says that
it does not fit. O(events) for each chunk.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from runtime.arrays import AnyArray, IntArray
from runtime.partition.order import as_clock, codes, combined
from runtime.task import Walked

SAFE = 2.0**62  # a sum of absolute values up to which no int64 overflows


class Events(NamedTuple):
    """The events of a variable in n matches: of each the match, ascending, and the row."""

    n: int
    match_of: IntArray
    row: IntArray


def walked(column: Walked, events: Events, rows: pa.Table) -> pa.Array:
    """The aggregate of each match."""
    if column.field is None:
        return pa.array(np.bincount(events.match_of, minlength=events.n).astype(np.int64))
    values = combined(rows.column(column.field).take(pa.array(events.row)))
    match_of = events.match_of
    if values.null_count:
        known = np.asarray(values.is_valid())
        values, match_of = values.filter(pa.array(known)), match_of[known]
    number = np.bincount(match_of, minlength=events.n)
    match column.function:
        case "COUNT":
            return pa.array(number.astype(np.int64))
        case "SUM" if pa.types.is_floating(values.type):
            return pa.array(_float_sums(values, match_of, events.n), mask=number == 0)
        case "SUM":
            return _exact_sums(values, match_of, number)
        case "AVG":
            with np.errstate(invalid="ignore", divide="ignore"):
                return pa.array(_float_sums(values, match_of, events.n) / number, mask=number == 0)
    at = _first_of_least(values, match_of, column.function == "MAX")
    index = np.zeros(events.n, np.int64)
    index[match_of[at]] = at
    return values.take(pa.array(index, mask=number == 0))


def _float_sums(values: pa.Array, match_of: IntArray, n: int) -> AnyArray:
    """One after the other, from 0.0 on."""
    weights = np.asarray(values).astype(np.float64)
    return np.bincount(match_of, weights=weights, minlength=n).astype(np.float64)  # of no value they are int64


def _exact_sums(values: pa.Array, match_of: IntArray, number: AnyArray) -> pa.Array:
    """Sums of short whole numbers as int64; of others, and of decimals of at most 18 digits, as wider decimals."""
    numbers = as_clock(values)
    begins = _begins(match_of)
    found = np.zeros(len(number), np.int64)
    if len(begins):
        found[match_of[begins]] = np.add.reduceat(numbers, begins)
    is_decimal = pa.types.is_decimal(values.type)
    if not is_decimal and values.type != pa.int64():
        return pa.array(found, mask=number == 0)
    high = found >> 63
    size = np.bincount(match_of, weights=np.abs(numbers.astype(np.float64)), minlength=len(number))
    for match in np.flatnonzero(size >= SAFE).tolist():
        total = sum(numbers[match_of == match].tolist())
        found[match], high[match] = np.array([total & (2**64 - 1)], np.uint64).view(np.int64)[0], total >> 64
    precision, scale = (values.type.precision + 10, values.type.scale) if is_decimal else (38, 0)
    return decimals(found, high, number == 0, precision, scale)


def decimals(low: AnyArray, high: IntArray, missing: AnyArray, precision: int, scale: int) -> pa.Array:
    """Decimals of their two halves."""
    words = np.stack([low.view(np.int64), high], axis=1).astype(np.int64)
    valid = pa.py_buffer(np.packbits(~missing, bitorder="little").tobytes()) if missing.any() else None
    buffers = [valid, pa.py_buffer(np.ascontiguousarray(words).tobytes())]
    return pa.Array.from_buffers(pa.decimal128(precision, scale), len(low), buffers)


def _begins(match_of: IntArray) -> IntArray:
    """Where the events of the next match begin."""
    return np.flatnonzero(np.diff(match_of, prepend=-1))


def _first_of_least(values: pa.Array, match_of: IntArray, greatest: bool) -> IntArray:
    """For each match with a value, ascending, where the first of its least ones is."""
    begins = _begins(match_of)
    if not len(begins):
        return begins
    ordered = codes(values)[-1]
    best = (np.maximum if greatest else np.minimum).reduceat(ordered, begins)
    lengths = np.diff(np.append(begins, len(ordered)))
    hits = np.flatnonzero(ordered == np.repeat(best, lengths))
    return hits[np.flatnonzero(np.diff(match_of[hits], prepend=-1))]
