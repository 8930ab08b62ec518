"""The rows of some keys, read again with the new ones among them: the matches that this makes known, and what to keep.

Held rows come before new ones in every key, since the watermark had passed them. A match is given out when it ends at
a new row; where it becomes known only later (StreamTask.late) when its start leaves the reach. The rows that are out of
reach are dropped then, so that such a start is met no more.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from itertools import chain
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from runtime import partition
from runtime.arrays import AnyArray, IntArray
from runtime.engine import engine_for
from runtime.matches import Matches
from runtime.order import group_ids, sorted_rows
from runtime.rows import RowBuilder
from runtime.select import Match, last_dropped
from runtime.stream_task import FOREVER, Reach, StreamTask


class Held(NamedTuple):
    """Rows of which the first `n_old` were read before."""

    rows: pa.Table
    n_old: int


def advance(task: StreamTask, held: Held, watermark: int) -> Generator[pa.RecordBatch, None, pa.Table]:
    """Yield the matches that the watermark makes known; return the rows that later ones can need, in their order."""
    own, rows = task.task, held.rows
    order, keys, clocks = _ordered(task, rows)
    symbols = partition._symbols(own, rows)[order]
    engine_clocks = partition._clocks(own, rows)[order]
    old = order < held.n_old
    waits = task.late or own.program.timeouts is not None
    engine = engine_for(own.program)
    fed = engine.feed(symbols, engine_clocks, None, keys, order, None if waits or not held.n_old else old)
    closed = _closed(task.reach, keys, clocks, watermark)
    dropped = _Dropped(task, keys, order)
    builder, payload = RowBuilder(own), partition._compact(own, rows)
    closed_row = np.zeros(len(order), np.bool_)
    closed_row[order] = closed
    for matches in chain(fed, engine.flush()):
        known = _known(task, matches, held.n_old, closed_row)
        if known.n:
            dropped.note(known)
            yield builder.batch(known, payload)
    kept = ~closed & ~dropped.rows()
    result: pa.Table = rows.take(pa.array(order[kept]))
    return result


def _ordered(task: StreamTask, rows: pa.Table) -> tuple[IntArray, IntArray | None, AnyArray]:
    """The permutation into the order of the stream; then, in that order, keys (dense numbers) and times."""
    own = task.task
    keys: IntArray | None = None
    if own.keys:
        ids = group_ids([rows.column(name) for name in own.keys], rows.num_rows)
        keys = np.unique(ids, return_inverse=True)[1].reshape(-1).astype(np.int64)
    first, rest = partition._first_codes(own, rows)
    order = sorted_rows(rows, None if own.interleaved else keys, first, rest)
    clocks = partition.as_clock(rows.column(own.order[0].name))[order]
    return order, None if keys is None else keys[order], clocks


def _closed(reach: Reach, keys: IntArray | None, clocks: AnyArray, watermark: int) -> AnyArray:
    """bool[n]: which rows are out of reach of anything that comes after the watermark."""
    if watermark >= FOREVER:
        return np.ones(len(clocks), np.bool_)
    if reach.kind == "time":
        result: AnyArray = clocks <= reach.closed_until(watermark)
        return result
    if reach.kind == "events":
        return _from_end(keys, len(clocks)) >= reach.size
    return np.zeros(len(clocks), np.bool_)


def _from_end(keys: IntArray | None, n: int) -> IntArray:
    """How many rows of the same key come after each."""
    if keys is None:
        return np.arange(n - 1, -1, -1, dtype=np.int64)
    order = np.argsort(keys, kind="stable")
    sorted_keys = keys[order]
    ends = np.searchsorted(sorted_keys, sorted_keys, side="right")
    found = np.empty(n, np.int64)
    found[order] = ends - 1 - np.arange(n)
    return found


def _known(task: StreamTask, matches: Matches, n_old: int, closed_row: AnyArray) -> Matches:
    """Those that have become known now."""
    if task.late or matches.timeout:
        keep = closed_row[matches.positions[matches.offsets[:-1]]]
    else:
        keep = matches.positions[matches.offsets[1:] - 1] >= n_old
    return matches if keep.all() else _chosen(matches, keep)


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

    def __init__(self, task: StreamTask, keys: IntArray | None, order: IntArray) -> None:
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
