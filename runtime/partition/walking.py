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
from runtime.partition.beginnings import NO_ROW, Chains, Total, sortable
from runtime.partition.order import as_clock, codes, combined
from runtime.task import Walked

SAFE = 2.0**62  # a sum of absolute values up to which no int64 overflows


class Events(NamedTuple):
    """The events of a variable in n matches: of each the match, ascending, and the row. `earlier`: those with which
    matches begin, where they are not among these."""

    n: int
    match_of: IntArray
    row: IntArray
    earlier: Earlier | None = None


class Earlier(NamedTuple):
    """The events of a variable in the chains that matches begin with."""

    chains: Chains
    mark: str
    bound: AnyArray

    def number(self, field: str | None) -> IntArray:
        return self.chains.number(self.mark, self.bound, field)

    def total(self, field: str, of: Total) -> AnyArray:
        return self.chains.total(self.mark, self.bound, field, of)

    def first_of_least(self, field: str, greatest: bool, row: IntArray, code: IntArray) -> IntArray:
        """The row of the first of the least values, of these and later ones: `row`, or NO_ROW, and its `code`."""
        own, least = self.chains.best(self.mark, self.bound, field, greatest)
        later = (row != NO_ROW) & ((own == NO_ROW) | ((~code if greatest else code) < least))
        return np.where(later, row, own)


def walked(column: Walked, events: Events, rows: pa.Table, base: int = 0) -> pa.Array:
    """The aggregate of each match. `rows` holds the input from row number `base` on, as events do."""
    n, field, earlier = events.n, column.field, events.earlier
    before = 0 if earlier is None else earlier.number(field)
    if field is None:
        return pa.array(np.bincount(events.match_of, minlength=n).astype(np.int64) + before)
    values = combined(rows.column(field).take(pa.array(events.row)))
    match_of, row = events.match_of, events.row
    if values.null_count:
        known = np.asarray(values.is_valid())
        values, match_of, row = values.filter(pa.array(known)), match_of[known], row[known]
    number = np.bincount(match_of, minlength=n) + before
    match column.function:
        case "COUNT":
            return pa.array(number.astype(np.int64))
        case "SUM" if pa.types.is_floating(values.type):
            return pa.array(_float_sums(field, values, match_of, events), mask=number == 0)
        case "SUM":
            return _exact_sums(field, values, match_of, number, earlier)
        case "AVG":
            with np.errstate(invalid="ignore", divide="ignore"):
                return pa.array(_float_sums(field, values, match_of, events) / number, mask=number == 0)
    greatest = column.function == "MAX"
    at = _first_of_least(values, match_of, greatest)
    index = np.zeros(n, np.int64)
    index[match_of[at]] = at
    if earlier is None:
        return values.take(pa.array(index, mask=number == 0))
    later, code = np.full(n, NO_ROW), np.zeros(n, np.int64)
    later[match_of[at]], code[match_of[at]] = row[at] + base, sortable(values.take(pa.array(at)))
    best = earlier.first_of_least(field, greatest, later, code) - base
    return combined(rows.column(field).take(pa.array(best, mask=number == 0)))


def _float_sums(field: str, values: pa.Array, match_of: IntArray, events: Events) -> AnyArray:
    """One after the other, from 0.0 on."""
    weights = np.asarray(values).astype(np.float64)
    if events.earlier is not None:
        match_of = np.concatenate([np.arange(events.n), match_of])
        weights = np.concatenate([events.earlier.total(field, "doubles"), weights])
    return np.bincount(match_of, weights=weights, minlength=events.n).astype(np.float64)  # of no value they are int64


def _exact_sums(
    field: str, values: pa.Array, match_of: IntArray, number: AnyArray, earlier: Earlier | None
) -> pa.Array:
    """Sums of short whole numbers as int64; of others, and of decimals of at most 18 digits, as wider decimals."""
    numbers = as_clock(values)
    begins = _begins(match_of)
    found = np.zeros(len(number), np.int64)
    if len(begins):
        found[match_of[begins]] = np.add.reduceat(numbers, begins)
    if earlier is not None:
        found += earlier.total(field, "whole")
    is_decimal = pa.types.is_decimal(values.type)
    if not is_decimal and values.type != pa.int64():
        return pa.array(found, mask=number == 0)
    high = found >> 63
    size = np.bincount(match_of, weights=np.abs(numbers.astype(np.float64)), minlength=len(number))
    if earlier is not None:
        size = size + earlier.total(field, "sizes")
    for match in np.flatnonzero(size >= SAFE).tolist():
        total = sum(numbers[match_of == match].tolist())
        if earlier is not None:
            total += sum(earlier.chains.values(match, earlier.bound, field))
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
