"""The rows of some keys, read again with the new ones among them: the matches that this makes known, and what to keep.

A match is given out when it contains a new row. Where rows wait for the watermark, held rows come before new ones in
every key, so that these are the matches that end at one; where they are read as they arrive, a new one can come before
some that are held. Where a match becomes known only later (StreamTask.late) it is given out when its start leaves the
reach, or its end (by_end). The rows that are out of reach are dropped then, so that such a start is met no more.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from itertools import chain, pairwise
from typing import NamedTuple, assert_never

import numpy as np
import pyarrow as pa

from runtime.arrays import AnyArray, IntArray
from runtime.compact_set.matches import Matches
from runtime.engine import engine_for
from runtime.limits import Listed
from runtime.partition import partition
from runtime.partition.order import as_clock, group_ids, sorted_rows
from runtime.partition.rows import IN_ORDER, RowBuilder
from runtime.partition.tables import PairRows
from runtime.program import WORD_BITS, Program
from runtime.selection.select import Match, last_dropped
from runtime.stream.kept_pairs import Coded, needed
from runtime.stream.task import FOREVER, Reach, StreamTask
from runtime.task import Task


class Held(NamedTuple):
    """Rows of which the first `n_old` were read before; which of these no match can begin at (StreamTask.spent)."""

    rows: pa.Table
    n_old: int
    spent: AnyArray


class Times(NamedTuple):
    """The watermark, and the one up to which the rows were read before."""

    watermark: int
    before: int


class Kept(NamedTuple):
    """Of each row that was read, whether later matches can do without it, whether none can begin at it, and whether it
    is the first of its key (StreamTask.first)."""

    gone: AnyArray
    spent: AnyArray
    first: AnyArray


def read_again(task: StreamTask, held: Held, listed: Listed) -> Iterator[pa.RecordBatch]:
    """Yield the matches with a new row, where nothing else makes one known (StreamTask.resumes)."""
    own, stream = task.task, _ordered(task, held)
    order, payload = stream.order, Payload(own, held.rows)
    symbols, clocks = partition.symbols_of(own, held.rows)[order], partition.clocks_of(own, held.rows)[order]
    mute = _before_new(stream) if held.n_old else None
    engine = engine_for(own.program)
    if mute is not None and (stream.old & ~mute).any():
        engine.list_new(held.n_old)
    for matches in engine.feed(symbols, clocks, None, stream.keys, order, mute):
        listed.add(matches.n)
        known = with_new(matches, held.n_old)
        if known.n:
            yield payload.batch(known)


class Payload:
    """What matches take their columns from: of few matches the rows that they name, else all rows."""

    FEW = 8  # times as many rows as events of matches

    def __init__(self, task: Task, rows: pa.Table) -> None:
        self._task, self._rows, self._builder = task, rows, RowBuilder(task)
        self._whole: pa.Table | None = None

    def batch(self, matches: Matches) -> pa.RecordBatch:
        """The rows of matches."""
        if self._whole is None and self.FEW * len(matches.positions) < self._rows.num_rows:
            numbers, own = named(matches)
            return self._builder.batch(own, partition.compacted(self._task, self._rows.take(pa.array(numbers))))
        if self._whole is None:
            self._whole = partition.compacted(self._task, self._rows)
        return self._builder.batch(matches, self._whole)


def named(matches: Matches) -> tuple[IntArray, Matches]:
    """The rows that matches name, ascending, and the matches with the places of these in place of their numbers."""
    numbers, places = np.unique(matches.positions, return_inverse=True)
    return numbers, matches._replace(positions=places.reshape(-1).astype(np.int64))


def advance(task: StreamTask, held: Held, times: Times, listed: Listed) -> Generator[pa.RecordBatch, None, Kept]:
    """Yield the matches that new rows and the watermark make known; return which rows later ones can need."""
    own, all_rows = task.task, held.rows
    events, by_row, program, pairs = partition.read(own, all_rows)
    if pairs is not None:
        old = ~pairs.among[: held.n_old]
        held = Held(events, int(old.sum()), held.spent[old])
    rows, stream = held.rows, _ordered(task, held)
    order = stream.order
    spent = np.concatenate([held.spent, np.zeros(rows.num_rows - held.n_old, np.bool_)])[order]
    symbols = by_row[order]
    if task.spent:
        may_begin = ~(spent | _closed_before(task.reach, stream, times.before))
        symbols = with_last_guard(program, symbols, may_begin)
    engine_clocks = partition.clocks_of(own, rows)[order]
    # What the engine is told to keep quiet about must have no effect either.
    drops = program.consume or program.skip is not None
    mute = None if task.waits or drops or not held.n_old else _before_new(stream)
    engine = engine_for(program)
    if task.arrival and mute is not None and (stream.old & ~mute).any():
        engine.list_new(held.n_old)
    fed = engine.feed(symbols, engine_clocks, None, stream.keys, order, mute)
    closed = _closed(task.reach, stream, times.watermark)
    if task.reach.kind == "runs":
        closed |= _dead(program, stream, symbols)
    closing = np.zeros(len(order), np.bool_)
    closing[order] = closed & ~_closed_before(task.reach, stream, times.before)
    dropped = _Dropped(task, stream)
    builder, payload = RowBuilder(own), partition.compacted(own, rows)
    places = IN_ORDER
    if own.later is not None:
        places = partition.places_of(own.later, order, engine_clocks, stream.keys, None)
    for matches in chain(fed, engine.flush()):
        listed.add(matches.n)
        known = _known(task, matches, held.n_old, closing)
        if own.later is not None and own.later.timeouts and not matches.timeout and (task.by_end or not task.late):
            yield builder.batch(_of_closing(matches, closing), payload, places=places, witness=True)
        if known.n:
            dropped.note(known)
            yield builder.batch(known, payload, places=places)
    gone = closed if task.windows == 1 else _closed(task.holds, stream, times.watermark)
    if task.spent:
        spent |= dropped.rows()
    elif not task.whole:
        gone = gone | dropped.rows()
    first = _begins(stream) if task.first else np.zeros(len(order), np.bool_)
    if task.reach.kind != "time":
        gone = gone & ~first
    kept = Kept(*(_by_row(told, order) for told in (gone, spent, first)))
    return kept if pairs is None else _with_pairs(task, kept, by_row, all_rows, pairs, times.watermark)


def _by_row(told: AnyArray, order: IntArray) -> AnyArray:
    """What is told of rows in their order, of each row."""
    found = np.empty(len(order), np.bool_)
    found[order] = told
    return found


def _before_new(stream: _Stream) -> AnyArray:
    """bool[n]: at which rows no match with a new one can end, since all new ones of their key come later."""
    n, keys = len(stream.order), stream.keys
    new = np.cumsum(~stream.old)
    if keys is None:
        return new == 0
    begins = np.flatnonzero(np.diff(keys, prepend=keys[0] - 1)) if n else np.zeros(0, np.int64)
    before = np.where(begins > 0, new[begins - 1], 0)
    result: AnyArray = new == np.repeat(before, np.diff(np.append(begins, n)))
    return result


def _with_pairs(
    task: StreamTask, kept: Kept, symbols: AnyArray, rows: pa.Table, pairs: PairRows, watermark: int
) -> Kept:
    """The same with the rows of pairs, of which those stay that the rows of events need that do. `kept`, `symbols`: of
    the rows of events."""
    assert task.until is not None
    slabs, found, events = as_clock(rows.column(task.slab)), np.flatnonzero(pairs.among), np.flatnonzero(~pairs.among)
    stays = ~kept.gone
    held = Coded(slabs[events[stays]], partition.own_codes(task.task, symbols[stays]))
    until = as_clock(rows.column(task.until))[found]
    own = Coded(slabs[found], pairs.codes)
    gone, spent, first = (np.zeros(rows.num_rows, np.bool_) for _ in range(3))
    gone[events], spent[events], first[events] = kept
    gone[found] = ~needed(task.task.program.tables, pairs.numbers, own, until, held, watermark)
    return Kept(gone, spent, first)


def with_last_guard(program: Program, symbols: AnyArray, holds: AnyArray) -> AnyArray:
    """The symbols, which lack the program's last guard, with it: it may need a word of its own."""
    word, bit = divmod(len(program.guards) - 1, WORD_BITS)
    table = symbols[:, None] if symbols.ndim == 1 else symbols
    if bit == 0:
        table = np.insert(table, word, 0, axis=1)
    table = table.copy()
    table[:, word] |= holds.astype(np.int64) << bit
    return table[:, 0] if table.shape[1] == 1 else table


class _Stream(NamedTuple):
    """The rows in the order of the stream: as a permutation, and in that order their keys (dense numbers), their
    times, and whether they were read before."""

    order: IntArray
    keys: IntArray | None
    clocks: AnyArray
    old: AnyArray


def _ordered(task: StreamTask, held: Held) -> _Stream:
    own, rows = task.task, held.rows
    keys: IntArray | None = None
    if own.keys:
        keys = group_ids([rows.column(name) for name in own.keys], rows.num_rows)
        if own.interleaved:
            keys = np.unique(keys, return_inverse=True)[1].reshape(-1).astype(np.int64)
    first, rest = partition.first_codes(own, rows)
    order = sorted_rows(rows, None if own.interleaved else keys, first, rest)
    clocks = as_clock(rows.column(own.order[0].name))[order]
    if keys is not None:
        keys = keys[order]
        if not own.interleaved and len(keys):  # they are adjacent: number them from 0
            keys = np.cumsum(np.append(False, keys[1:] != keys[:-1]))
    return _Stream(order, keys, clocks, order < held.n_old)


def _closed(reach: Reach, stream: _Stream, watermark: int) -> AnyArray:
    """bool[n]: which rows are out of reach of anything that comes after the watermark."""
    n = len(stream.order)
    if watermark >= FOREVER:
        return np.ones(n, np.bool_)
    match reach.kind:
        case "time":
            result: AnyArray = stream.clocks <= reach.closed_until(watermark)
            return result
        case "events":
            return _from_end(stream.keys, np.ones(n, np.bool_)) >= reach.size
        case "runs" | "none":
            return np.zeros(n, np.bool_)
    assert_never(reach.kind)


def _dead(program: Program, stream: _Stream, symbols: AnyArray) -> AnyArray:
    """bool[n]: which rows come before all that live runs of their key mention. One engine for each key."""
    n = len(stream.order)
    keys = np.zeros(n, np.int64) if stream.keys is None else stream.keys
    borders = [*np.flatnonzero(np.diff(keys, prepend=-1)).tolist(), n]
    dead = np.zeros(n, np.bool_)
    for begin, end in pairwise(borders):
        engine, part = engine_for(program), slice(begin, end)
        quiet = np.ones(end - begin, np.bool_)
        places = np.arange(begin, end, dtype=np.int64)
        for _ in engine.feed(symbols[part], np.zeros(end - begin, np.int64), None, None, places, quiet):
            pass
        dead[part] = places < engine.least_row()
    return dead


def _closed_before(reach: Reach, stream: _Stream, before: int) -> AnyArray:
    """bool[n]: which rows were so already when the rows were read before."""
    if reach.kind == "events":
        return stream.old & (_from_end(stream.keys, stream.old) >= reach.size)
    return stream.old & _closed(reach, stream, before)


def _begins(stream: _Stream) -> AnyArray:
    """bool[n]: the first row of each key."""
    found = np.zeros(len(stream.order), np.bool_)
    if stream.keys is None:
        found[:1] = True
    else:
        found[np.unique(stream.keys, return_index=True)[1]] = True
    return found


def _from_end(keys: IntArray | None, counted: AnyArray) -> IntArray:
    """How many counted rows of the same key come after each."""
    n = len(counted)
    order = np.arange(n) if keys is None else np.argsort(keys, kind="stable")
    upto = np.cumsum(counted[order])
    ends = np.full(n, n - 1) if keys is None else np.searchsorted(keys[order], keys[order], side="right") - 1
    found = np.empty(n, np.int64)
    found[order] = upto[ends] - upto
    return found


def _known(task: StreamTask, matches: Matches, n_old: int, closing: AnyArray) -> Matches:
    """Those that have become known now. closing: bool by row: what began there cannot change any more, and could."""
    if task.by_end and not matches.timeout:
        keep = closing[matches.positions[matches.offsets[1:] - 1]]
    elif task.late or matches.timeout:
        keep = closing[matches.positions[matches.offsets[:-1]]]
    else:
        return with_new(matches, n_old)
    return matches if keep.all() else _chosen(matches, keep)


def with_new(matches: Matches, n_old: int) -> Matches:
    """Those that contain a new row: one whose number is not below `n_old`."""
    keep = np.logical_or.reduceat(matches.positions >= n_old, matches.offsets[:-1])
    return matches if keep.all() else _chosen(matches, keep)


def _of_closing(matches: Matches, closing: AnyArray) -> Matches:
    """The matches of starts that are asked now whether they timed out."""
    return _chosen(matches, closing[matches.positions[matches.offsets[:-1]]])


def _chosen(matches: Matches, keep: AnyArray) -> Matches:
    """The matches for which keep[k]."""
    sizes = np.diff(matches.offsets)
    events = np.repeat(keep, sizes)
    offsets = np.zeros(int(keep.sum()) + 1, np.int64)
    np.cumsum(sizes[keep], out=offsets[1:])
    return matches._replace(
        n=len(offsets) - 1, offsets=offsets, positions=matches.positions[events], labels=matches.labels[events],
        key=matches.key[keep],
    )  # fmt: skip


class _Dropped:
    """Up to where consumption and skipping have dropped what had begun, in each key."""

    def __init__(self, task: StreamTask, stream: _Stream) -> None:
        order, keys = stream.order, stream.keys
        self._program = task.task.program
        self._whole = task.task.interleaved or keys is None
        self._keys = np.zeros(len(order), np.int64) if self._whole or keys is None else keys
        self._place = np.empty(len(order), np.int64)
        self._place[order] = np.arange(len(order))
        self._until = np.full(int(self._keys.max(initial=0)) + 1, -1, np.int64)

    def note(self, matches: Matches) -> None:
        if matches.timeout or not (self._program.consume or self._program.skip is not None):
            return
        if self._program.skip is None:
            places = self._place[matches.positions[matches.offsets[1:] - 1]]
        else:
            places = np.fromiter(self._skipped(matches), np.int64, matches.n)
        np.maximum.at(self._until, self._keys[self._place[matches.positions[matches.offsets[:-1]]]], places)

    def _skipped(self, matches: Matches) -> Iterator[int]:
        skip, labels = self._program.skip, self._program.labels
        assert skip is not None
        places = self._place[matches.positions]
        for begin, end in zip(matches.offsets[:-1].tolist(), matches.offsets[1:].tolist(), strict=True):
            marks = tuple(matches.labels[begin:end].tolist())
            yield last_dropped(Match(tuple(places[begin:end].tolist()), marks, tuple(labels[i] for i in marks)), skip)

    def rows(self) -> AnyArray:
        """bool[n]: which rows, in order, no later match can begin at."""
        result: AnyArray = np.arange(len(self._place)) <= self._until[self._keys]
        return result
