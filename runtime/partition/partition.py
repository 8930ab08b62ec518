"""One Spark partition: batches in, batches of matches out.

Either the whole partition is held, sorted here and run at once (narrow columns sort faster here than in the JVM, and
nothing is copied: matches take their columns from the rows where they lie), or Spark has sorted it and it is read as a
stream, holding only the rows that a live run can still mention.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from runtime.arrays import AnyArray, IntArray
from runtime.engine import Engine, engine_for
from runtime.limits import Listed
from runtime.partition.grouping import Grouping
from runtime.partition.order import as_clock, as_symbols, codes, combined, group_ids, has_clock, sorted_rows
from runtime.partition.rows import IN_ORDER, RowBuilder
from runtime.partition.tables import PairRows, tables_of, with_tables
from runtime.partition.terms import term_codes, weight_codes
from runtime.program import Later, Program
from runtime.selection.rivals import Places, reaches, reaches_in_all
from runtime.task import Task

COUNT_COLUMN = "__cersql_count"
STREAM_ROWS = 1 << 16  # a stream is fed in pieces of about this many rows


def run(task: Task, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The matches of one partition, or with `count_only` one row that says how many they are."""
    yield from given(task, _stream(task, batches) if task.presorted else _whole(task, batches))


def given(task: Task, rows: Iterator[pa.RecordBatch | int]) -> Iterator[pa.RecordBatch]:
    """The matches that have been found, within the limits of the task, or one row with their number."""
    if task.count_only:
        total = sum(batch.num_rows if isinstance(batch, pa.RecordBatch) else batch for batch in rows)
        yield pa.RecordBatch.from_arrays([pa.array([total], pa.int64())], [COUNT_COLUMN])
        return
    left, listed = task.limit, Listed(task.program.max_matches)
    for batch in rows:
        assert isinstance(batch, pa.RecordBatch)
        kept = batch if left is None else batch.slice(0, left)
        listed.add(kept.num_rows)
        yield kept
        if left is not None:
            left -= kept.num_rows
            if left <= 0:
                return


def symbols_of(task: Task, rows: pa.Table, in_pieces: bool = False) -> AnyArray:
    """int64[n] or int64[n, words + terms + weights]. `in_pieces`: codes of terms must mean the same in other rows."""
    symbols = as_symbols([rows.column(name) for name in task.symbols], task.symbol_bits)
    if not (task.terms or task.weights):
        return symbols
    words = symbols[:, None] if symbols.ndim == 1 else symbols
    return np.concatenate([words, codes_of(task, rows, in_pieces)], axis=1)


def codes_of(task: Task, rows: pa.Table, in_pieces: bool = False) -> IntArray:
    """int64[n, terms + weights]: what stands behind the words of symbols."""
    numbers = tuple(range(len(task.terms))) if in_pieces else task.program.numbers
    terms, weights = ([rows.column(name) for name in names] for names in (task.terms, task.weights))
    parts = [term_codes(terms, numbers)] if terms else []
    parts += [weight_codes(weights)] if weights else []
    return np.concatenate(parts, axis=1)


def own_codes(task: Task, symbols: AnyArray) -> IntArray:
    """int64[n, terms]: the codes of terms, of symbols."""
    begin = symbols.shape[1] - len(task.terms) - len(task.weights)
    codes: IntArray = symbols[:, begin : begin + len(task.terms)]
    return codes


def first_codes(task: Task, rows: pa.Table) -> tuple[AnyArray, tuple[Any, ...]]:
    """Numbers to sort by first, and the columns that remain: the first ORDER BY column if it is one number."""
    column = rows.column(task.order[0].name)
    rest = (*task.order[1:], *task.ties)
    if has_clock(column.type) and column.null_count == 0:
        if pa.types.is_floating(column.type):
            return codes(column)[-1], rest
        return as_clock(column), rest
    return np.zeros(rows.num_rows, np.int64), (*task.order, *task.ties)


def clocks_of(task: Task, rows: pa.Table) -> AnyArray:
    """What windows are measured in; positions serve where there is no window of time."""
    windows = [w for w in (task.program.window, *task.program.inner_windows) if w is not None]
    if not any(window.kind == "time" for window in windows):
        return np.zeros(rows.num_rows, np.int64)
    return as_clock(rows.column(task.order[0].name))


def _whole(task: Task, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch | int]:
    held = [batch for batch in batches if batch.num_rows]
    if not held:
        return
    rows, symbols, program, _ = read(task, pa.Table.from_batches(held))
    size = None if task.slices is None else task.slices.size

    def mutes(_: IntArray, clocks: AnyArray, keys: IntArray | None) -> AnyArray | None:
        return None if size is None else clocks // size != keys

    yield from matched(task, program, rows, symbols, mutes, compacted)


def matched(
    task: Task,
    program: Program,
    rows: pa.Table,
    symbols: AnyArray,
    mutes: Callable[[IntArray, AnyArray, IntArray | None], AnyArray | None],
    kept: Callable[[Task, pa.Table], pa.Table],
) -> Iterator[pa.RecordBatch | int]:
    """The matches of rows that are held, or their number. `mutes`: which matches others report, by the rows in
    their order, and their clocks (or positions) and keys; `kept`: what matches take their columns from."""
    keys: IntArray | None = None
    if task.slices is not None:
        keys = as_clock(rows.column(task.slices.column))
    elif task.keys:
        keys = group_ids([rows.column(name) for name in task.keys], rows.num_rows)
    if task.position is not None:
        first, rest = as_clock(rows.column(task.position)), ()
    else:
        first, rest = first_codes(task, rows)
    order = sorted_rows(rows, None if task.interleaved else keys, first, rest)
    keys = None if keys is None else keys[order]
    positions: IntArray | None = None if task.position is None else first[order]
    clocks = clocks_of(task, rows)[order]
    mute = mutes(order, clocks if positions is None else positions, keys)
    symbols = symbols[order]
    engine = engine_for(program, task.chains)
    if task.count_only:
        yield engine.count(symbols, clocks, positions, keys, mute) + engine.count_rest()
        return
    if task.trend is not None:
        grouping = Grouping(task.trend, program, rows)
        trends = engine.trends(grouping.lift(), grouping.of_row, grouping.width, task.trend.uncut)
        engine.sum_up(trends, symbols, clocks, positions, keys, order, mute)
        engine.sum_rest(trends)
        yield grouping.batch(trends.found)
        return
    builder = RowBuilder(task)
    places = IN_ORDER
    if task.later is not None:
        all_in_order = sorted_rows(rows, None, first, rest) if task.later.consume == "ANY" else None
        places = places_of(task.later, order, clocks, keys, positions, all_in_order)
    rows = kept(task, rows)
    for matches in chain(engine.feed(symbols, clocks, positions, keys, order, mute), engine.flush()):
        yield builder.batch(matches, rows, places=places)


class Read(NamedTuple):
    """The rows of events with their symbols, the program with what Spark has tabulated for it, and the rows of pairs
    that this was made of."""

    events: pa.Table
    symbols: AnyArray
    program: Program
    pairs: PairRows | None = None


def read(task: Task, rows: pa.Table) -> Read:
    """Tell the rows of events and those of pairs apart."""
    symbols = symbols_of(task, rows)
    if task.pairs is None:
        return Read(rows, symbols, task.program)
    numbers = combined(rows.column(task.pairs))
    is_pair = np.asarray(numbers.is_valid())
    codes = own_codes(task, symbols[is_pair])
    pairs = PairRows(is_pair, as_clock(numbers)[is_pair], codes)
    program = with_tables(task.program, tables_of(task.program, pairs.numbers, codes))
    return Read(rows.filter(numbers.is_null()), symbols[~is_pair], program, pairs)


def places_of(
    later: Later,
    order: IntArray,
    clocks: AnyArray,
    keys: IntArray | None,
    positions: IntArray | None,
    all_in_order: IntArray | None = None,
) -> Places:
    """Where each row stands for a second pass. `order` has the rows by key and time, as the other arrays are;
    `all_in_order`: by time alone, where all keys are consumed together."""
    at = np.argsort(order if all_in_order is None else all_in_order)
    own = None
    if later.strict:
        own = np.empty(len(order), np.int64)
        own[order] = np.arange(len(order)) if positions is None else positions
    if not later.looks_at_windows:
        return Places(at, own=own)
    until = np.empty(len(order), np.int64)
    if all_in_order is None:
        until[order] = reaches(later.window, clocks, keys, positions)
    else:
        until[order] = reaches_in_all(later.window, clocks, keys, positions, at[order])
    return Places(at, until, own)


def compacted(task: Task, rows: pa.Table) -> pa.Table:
    """The columns that matches take, each in one piece if it is not too large for that."""
    names = {source for source, _ in task.key_outputs} | {task.order[0].name}
    names.update(field for variable in task.variables for field in variable.fields)
    names.update(column.field for column in task.walked if column.field is not None)
    kept = rows.select([name for name in rows.column_names if name in names])
    return kept.combine_chunks() if kept.nbytes < 1 << 30 else kept


# ---------------------------------------------------------------- a sorted stream


class Fed(NamedTuple):
    """What the engine reads of some rows, see Engine.feed; they are numbered as they come."""

    symbols: AnyArray
    clocks: AnyArray
    positions: IntArray | None = None
    keys: IntArray | None = None
    mute: AnyArray | None = None


def _stream(task: Task, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch | int]:
    keyer = _Keyer(task)

    def read() -> Iterator[tuple[pa.Table, list[Fed]]]:
        for piece in pieces(batches, STREAM_ROWS):
            clocks = clocks_of(task, piece)
            positions = None if task.position is None else as_clock(piece.column(task.position))
            mute = None
            if task.slices is not None:
                slice_of = as_clock(piece.column(task.slices.column))
                mute = (clocks if positions is None else positions) // task.slices.size != slice_of
            fed = Fed(symbols_of(task, piece, in_pieces=True), clocks, positions, keyer.keys(piece), mute)
            yield piece if task.count_only else compacted(task, piece), [fed]

    yield from streamed(task, read(), lambda held: held)


def streamed(
    task: Task, parts: Iterable[tuple[pa.Table, Iterable[Fed]]], columns: Callable[[pa.Table], pa.Table]
) -> Iterator[pa.RecordBatch | int]:
    """The matches of rows that come in their order, or their number. Of the rows only those are held that a later match
    can mention; `columns`: what matches take their columns from, of rows that are held."""
    engine, builder = engine_for(task.program, task.chains), RowBuilder(task)
    held, base, n, most = None, 0, 0, 4 * STREAM_ROWS
    for rows, feeds in parts:
        if task.count_only:
            yield from (engine.count(*fed) for fed in feeds)
            continue
        held = rows if held is None else pa.concat_tables([held, rows])
        for symbols, clocks, positions, keys, mute in feeds:
            numbers = np.arange(n, n + len(clocks), dtype=np.int64)
            n += len(numbers)
            for matches in engine.feed(symbols, clocks, positions, keys, numbers, mute):
                yield builder.batch(matches, columns(held), base)
        if held.num_rows > most:
            held, base = forgotten(engine, held, base)
            most = max(4 * STREAM_ROWS, 2 * held.num_rows)
    if task.count_only:
        yield engine.count_rest()
    elif held is not None:
        for matches in engine.flush():
            yield builder.batch(matches, columns(held), base)


def forgotten(engine: Engine, held: pa.Table, base: int) -> tuple[pa.Table, int]:
    """Let go of the rows that no later match can mention."""
    dead = min(held.num_rows, max(0, engine.least_row() - base))
    return held.slice(dead).combine_chunks(), base + dead


def pieces(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.Table]:
    """The batches as tables of about so many rows; empty ones are left out."""
    held: list[pa.RecordBatch] = []
    n = 0
    for batch in batches:
        if batch.num_rows:
            held.append(batch)
            n += batch.num_rows
        if n >= rows:
            yield pa.Table.from_batches(held)
            held, n = [], 0
    if held:
        yield pa.Table.from_batches(held)


class _Keyer:
    """Key numbers that go on from piece to piece: a new number whenever the key changes."""

    def __init__(self, task: Task) -> None:
        self._names = task.keys if task.slices is None else (task.slices.column,)
        self._last: tuple[Any, ...] | None = None
        self._number = 0

    def keys(self, piece: pa.Table) -> IntArray | None:
        if not self._names:
            return None
        columns = [combined(piece.column(name)) for name in self._names]
        ids = group_ids(columns, piece.num_rows)
        changed = np.zeros(piece.num_rows, np.bool_)
        changed[1:] = ids[1:] != ids[:-1]
        changed[0] = self._last is not None and self._same_as_last(columns) is False
        numbers = self._number + np.cumsum(changed)
        self._number = int(numbers[-1])
        self._last = tuple(column.slice(len(column) - 1, 1) for column in columns)
        return numbers.astype(np.int64)

    def _same_as_last(self, columns: list[pa.Array]) -> bool:
        assert self._last is not None
        pairs = [pa.concat_arrays([last, column.slice(0, 1)]) for last, column in zip(self._last, columns, strict=True)]
        ids = group_ids(list(pairs), 2)
        return bool(ids[0] == ids[1])
