"""Before a condition on two events can be tabulated on a stream, the rows of which it speaks must meet.

Each bucket holds the rows that a new one can still meet, in slabs of keys, and gives out the pairs of values that meet
because a row has come. Spark asks the condition of them, and where it is TRUE they go on to the bucket of the engine
(runtime.stream.kept_pairs), in the micro-batch in which the row itself gets there: so the pairs of an event are there
before it is read, however late the other one comes.

A pair stands for all rows of these values in its slab: it is there from the time of the first two that meet, and needed
until that of the last two. So a condition on few different values is asked few times, whatever the rows are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from runtime.arrays import AnyArray, IntArray
from runtime.partition.order import combined, group_ids
from runtime.stream.head import Store
from runtime.stream.pairs import Rows, meeting
from runtime.stream.state import State
from runtime.stream.task import FOREVER, Reach, StateFacts
from runtime.task import DEFAULT_LIMITS, Limits


@dataclass(frozen=True)
class Role:
    """Columns about one event of a pair: whether a row can be it, the values that are asked of it, and their code."""

    can_be: str
    values: tuple[str, ...]
    code: str


@dataclass(frozen=True)
class MeetingTask(StateFacts):
    """What a worker does to let the rows of one bucket meet, for one condition.

    `reach`: how far apart they can be. `ordered`: the left event is never after the right one. `until`: the column of
    the result that says until when a pair is needed, beside the columns `slab` and `time`. The others: see
    StreamTask and StateFacts.
    """

    slab: str
    time: str
    until: str
    keys: tuple[str, ...]
    left: Role
    right: Role
    ordered: bool
    reach: Reach
    limits: Limits = DEFAULT_LIMITS

    @property
    def result(self) -> tuple[str, ...]:
        """The columns of a pair."""
        roles = (name for role in (self.left, self.right) for name in (*role.values, role.code))
        return (self.slab, self.time, self.until, *roles)


class MeetingBucket(State):
    """The rows of one bucket that new ones can still meet."""

    def __init__(self, task: MeetingTask, store: Store, folder: str | None = None) -> None:
        super().__init__(task, store, folder)
        self._task = task

    def run(self, tables: Iterable[pa.Table], watermark: int) -> Iterator[pa.RecordBatch]:
        """Take new rows and the watermark that holds; yield the pairs that meet by them. Late rows are dropped: the
        engine's bucket counts them. Must be read to its end, and saved."""
        arrived, _ = self.in_time(tables, watermark)
        if arrived is not None:
            # What lies beyond the end of time is never reached: it is there to move the watermark, and meets nothing.
            arrived = arrived.filter(pa.array(self.clocks(arrived) < FOREVER))
        self.open()
        horizon = self._task.reach.closed_until(watermark) if self._task.reach.kind == "time" else None
        if arrived is not None and arrived.num_rows:
            living = self.log.living(np.unique(self.slabs_of(arrived)).tolist(), horizon)
            rows, n_old = pa.concat_tables([living.rows, arrived]).combine_chunks(), living.rows.num_rows
            ids = group_ids([rows.column(name) for name in self._task.keys], rows.num_rows)
            keys = np.unique(ids, return_inverse=True)[1].reshape(-1).astype(np.int64)
            yield from self._pairs(rows, keys, np.arange(rows.num_rows) >= n_old)
            closed = self._closed(keys, self.clocks(rows), watermark)
            self.log.mark(living, closed[:n_old], living.spent)
            self.log.append(arrived.filter(pa.array(~closed[n_old:])))
        self.forget(horizon, watermark)

    def next_due(self) -> int | None:
        """The least watermark at which all rows can be freed."""
        if not self.head.pieces:
            return None
        last = max(piece.greatest for piece in self.head.pieces.values())
        return self._task.reach.closes_at(last) if self._task.reach.kind == "time" else FOREVER

    def _closed(self, keys: IntArray, clocks: AnyArray, watermark: int) -> AnyArray:
        """bool[n]: which rows nothing that comes after the watermark can meet."""
        reach = self._task.reach
        if reach.kind == "time":
            found: AnyArray = clocks <= reach.closed_until(watermark)
            return found
        if reach.kind != "events":
            return np.zeros(len(keys), np.bool_)
        # Rows of one time are in an order that is not known here: only what surely comes later counts.
        passed = np.flatnonzero(clocks <= watermark)
        order = passed[np.lexsort((clocks[passed], keys[passed]))]
        times = np.unique(clocks, return_inverse=True)[1].reshape(-1)
        at = keys * (int(times.max(initial=0)) + 1) + times
        ends = np.searchsorted(keys[order], keys, side="right")
        later = ends - np.searchsorted(at[order], at, side="right")
        return (clocks <= watermark) & (later >= reach.size)

    def _pairs(self, rows: pa.Table, keys: IntArray, new: AnyArray) -> Iterator[pa.RecordBatch]:
        """The pairs of values that meet, each once in a slab and a piece."""
        task, clocks, slabs = self._task, self.clocks(rows), self.slabs_of(rows)
        left, right = (np.asarray(combined(rows.column(role.can_be))) for role in (task.left, task.right))
        codes = [_numbers(rows.column(role.code)) for role in (task.left, task.right)]
        n_left, n_right = (int(own.max(initial=0)) + 1 for own in codes)
        within = task.reach.size if task.reach.kind == "time" else None
        for i, j in meeting(Rows(keys, clocks, left, right, new), within, task.ordered):
            alike = (slabs[i].astype(np.int64) * n_left + codes[0][i]) * n_right + codes[1][j]
            later = np.where(clocks[i] >= clocks[j], i, j)
            order = np.lexsort((clocks[later], alike))
            begins = np.flatnonzero(np.diff(alike[order], prepend=alike[order[0]] - 1))
            first, last = order[begins], order[np.append(begins[1:], len(order)) - 1]
            yield self._batch(rows, i[first], j[first], later[first], later[last])

    def _batch(self, rows: pa.Table, i: IntArray, j: IntArray, since: IntArray, until: IntArray) -> pa.RecordBatch:
        task = self._task
        places = {task.slab: i, task.time: since, task.until: until}
        places |= dict.fromkeys((*task.left.values, task.left.code), i)
        places |= dict.fromkeys((*task.right.values, task.right.code), j)
        sources = {name: rows.column(task.time if name == task.until else name) for name in task.result}
        columns = [combined(sources[name]).take(pa.array(places[name])) for name in task.result]
        return pa.RecordBatch.from_arrays(columns, list(task.result))


def _numbers(codes: pa.ChunkedArray) -> IntArray:
    """Equal codes as equal numbers, from 0 on."""
    encoded = combined(codes).dictionary_encode()
    found: IntArray = np.asarray(encoded.indices.fill_null(0)).astype(np.int64)
    return found
