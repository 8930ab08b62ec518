"""Positions in an order that is spread over partitions, without sorting it in one place.

Spark cuts the order into ranges. In the first pass each range sorts its own rows and numbers them; only rows that
satisfy a guard go on, so all that follows is small. What a match that crosses a border needs is sent along: to every
later range, how many rows this one has, and its last rows (as many as a match can span). In the second pass each range
puts the counts of those before it together, and then knows every position. If the span is not bounded, one range gets
everything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from runtime.arrays import AnyArray, IntArray
from runtime.order import as_clock, as_symbols, codes, has_clock, sorted_rows
from runtime.task import OrderColumn, Ranges


def number(
    ranges: Ranges,
    symbols: tuple[str, ...],
    symbol_bits: int | None,
    order: tuple[OrderColumn, ...],
    dropped: tuple[str, ...],
    me: int,
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """The first pass, in range `me`. `order`: all columns to sort by, ties included; `dropped`: columns that only
    the sorting needed."""
    held = [batch for batch in batches if batch.num_rows]
    if not held:
        return
    rows = pa.Table.from_batches(held)
    column = rows.column(order[0].name)
    if has_clock(column.type) and column.null_count == 0:
        floating = pa.types.is_floating(column.type)
        first, rest = (codes(column)[-1] if floating else as_clock(column)), order[1:]
    else:
        first, rest = np.zeros(rows.num_rows, np.int64), order
    permutation = sorted_rows(rows, None, first, rest)
    read = as_symbols([rows.column(name) for name in symbols], symbol_bits)
    relevant: AnyArray = np.asarray(read.reshape(len(read), -1).any(axis=1))
    positions = np.flatnonzero(relevant[permutation])
    kept = rows.drop_columns(list(dropped)).take(pa.array(permutation[positions]))
    targets = [0] if ranges.span is None else [me]
    yield from _sent(ranges, kept, positions, targets[0], me, rows.num_rows)
    if ranges.span is None:
        return
    tail = positions >= rows.num_rows - (ranges.span - 1)
    for target in range(me + 1, ranges.n):
        yield from _sent(ranges, kept.filter(pa.array(tail)), positions[tail], target, me, rows.num_rows)


def _sent(
    ranges: Ranges, rows: pa.Table, positions: IntArray, target: int, me: int, count: int
) -> Iterator[pa.RecordBatch]:
    """Rows for one range, with one more row, without values, that says how many rows there were."""
    schema = _nullable(rows.schema)
    marker = pa.Table.from_arrays([pa.nulls(1, field.type) for field in rows.schema], schema=schema)
    table = pa.concat_tables([pa.Table.from_arrays(rows.columns, schema=schema), marker])
    n = table.num_rows
    table = table.append_column(ranges.target, pa.array(np.full(n, target, np.int32)))
    table = table.append_column(ranges.origin, pa.array(np.full(n, me, np.int32)))
    table = table.append_column(ranges.position, pa.array(np.append(positions, -1 - count).astype(np.int64)))
    yield from table.combine_chunks().to_batches()


def _nullable(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field.with_nullable(True) for field in schema])


def place_in_ranges(ranges: Ranges, rows: pa.Table) -> tuple[IntArray, IntArray, IntArray, AnyArray]:
    """The second pass: (permutation, keys, positions, mute) of the rows of all targets in this partition.

    Keys are targets; positions count from the start of the whole order; rows from other ranges report nothing.
    """
    targets, origins = as_clock(rows.column(ranges.target)), as_clock(rows.column(ranges.origin))
    local = as_clock(rows.column(ranges.position))
    is_marker = local < 0
    # Counts of the ranges, as each target knows them: its own and those before it.
    counts = np.zeros((ranges.n, ranges.n), np.int64)
    counts[targets[is_marker], origins[is_marker]] = -1 - local[is_marker]
    begins = np.zeros((ranges.n, ranges.n + 1), np.int64)
    np.cumsum(counts, axis=1, out=begins[:, 1:])
    positions = begins[targets, origins] + local
    keep = ~is_marker
    if ranges.span is not None:
        keep &= (origins == targets) | (positions > begins[targets, targets] - ranges.span)
    order = np.flatnonzero(keep)
    order = order[np.lexsort((positions[order], targets[order]))]
    mute = (origins != targets)[order] if ranges.span is not None else np.zeros(len(order), np.bool_)
    return order, targets[order], positions[order], mute
