"""One bucket of a stream: new rows meet the rows of their keys that still matter.

The state of a query is the *rows* that a later match can mention, not the engine's arena: a match is decided by the
rows of its window before it is known (planner.streaming says for which queries), so the engine reads those of a key
again when new ones come, and only the matches that these make known are given out. In return the state does not depend
on how engines work, and a restart needs no engine to restore. What is long to read again has an engine that is kept
beside the rows (runtime.stream.engines), and is made anew from them wherever it is lost.

When a row is new: where a match can be undone by an event that comes late, rows wait until the watermark has passed
them (runtime.stream.waiting); elsewhere (StreamTask.arrival) a row is read as it arrives, and brings the matches that
contain it. Rows that were read lie in a log (runtime.stream.log), of which only the *slabs* of keys are looked at that
new rows belong to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from runtime.arrays import AnyArray
from runtime.limits import Listed
from runtime.partition.order import as_clock, combined
from runtime.stream.engines import Engines, MicroBatch, Rows
from runtime.stream.firsts import Firsts
from runtime.stream.head import Store
from runtime.stream.limits import check_rows
from runtime.stream.log import Living
from runtime.stream.rereading import Held, Kept, Times, advance, read_again
from runtime.stream.task import FOREVER, HEAVY, StreamTask
from runtime.stream.waiting import Waiting

PIECES = 8  # that the rows of a window are in, at least, if there are many


class Bucket(Waiting):
    """The state of one bucket, and what a micro-batch does to it. `folder`: where copies of it may lie."""

    def __init__(self, task: StreamTask, store: Store, folder: str | None = None) -> None:
        self._task = task
        span = task.holds.size // PIECES if task.reach.kind == "time" else None
        super().__init__(task, store, task.slot_us, folder=folder, span=span, numbered=task.resumes)
        self._engines = Engines(task, self.head, self.local, self.log)
        self._firsts = Firsts(self.head, store, self.local, self)

    # ------------------------------------------------------------ the contract

    def run(self, tables: Iterable[pa.Table], watermark: int) -> Iterator[pa.RecordBatch]:
        """Take new rows and the watermark (microseconds) that holds; yield the matches that are known by it.

        A row at or before the watermark is late: it is dropped, and counted. Must be read to its end, and saved.
        """
        head = self.head
        arrived, late = self.in_time(tables, watermark)
        head.late += late
        if arrived is not None and not self._task.arrival:
            self.wait(arrived)
        before = head.watermark
        head.watermark = max(before, watermark)
        if self._task.arrival:
            yield from self._advance(arrived, Times(head.watermark, before))
        elif watermark > before:
            ready = self.ready(watermark)
            yield from self._advance(pa.concat_tables(ready) if ready else None, Times(watermark, before))

    def next_due(self) -> int | None:
        """The least watermark, in microseconds, at which there is something to do; None if nothing waits."""
        return min((*self.times_due(), *self._closing_due(self.head.watermark)), default=None)

    # ------------------------------------------------------------ rows

    def matters_until(self, rows: pa.Table) -> AnyArray:
        """The time up to which each row matters: its own, and of a pair that of the last rows of its values."""
        task = self._task
        if task.until is None:
            return _clocks(rows.column(task.time))
        assert task.task.pairs is not None
        is_event = np.asarray(combined(rows.column(task.task.pairs)).is_null())
        return np.where(is_event, self.clocks(rows), as_clock(rows.column(task.until)))

    def _horizon(self, watermark: int) -> int | None:
        """What matters until then matters no more; None: time alone does not tell."""
        return self._task.holds.closed_until(watermark) if self._task.reach.kind == "time" else None

    def _closing_due(self, watermark: int) -> Iterator[int]:
        """When something closes after that watermark, or the rows can go."""
        task, pieces = self._task, self.head.pieces.values()
        if self.head.firsts:
            yield FOREVER
        if not pieces:
            return
        if task.reach.kind != "time":
            yield FOREVER
            return
        yield min(FOREVER, task.holds.closes_at(max(piece.greatest for piece in pieces)))
        if task.waits:
            self.open()
            least = self.log.least_after(task.reach.closed_until(watermark))
            if least is not None:
                yield min(FOREVER, task.reach.closes_at(least))

    # ------------------------------------------------------------ reading

    def _advance(self, new: pa.Table | None, times: Times) -> Iterator[pa.RecordBatch]:
        """Read rows that are new by the watermark, and what closes by it."""
        if new is not None and not new.num_rows:
            new = None
        if new is None and min(self._closing_due(times.before), default=FOREVER + 1) > times.watermark:
            return
        self.open()
        touched = set() if new is None else set(np.unique(self.slabs_of(new)).tolist())
        touched |= self._closing(times)
        if touched:
            yield from self._read(touched, new, times)
        horizon = self._horizon(times.watermark)
        self._engines.forget(FOREVER if times.watermark >= FOREVER else horizon)
        self.forget(horizon, times.watermark)
        self._firsts.forget(times.watermark)

    def _recast(self, schema: pa.Schema) -> None:
        super()._recast(schema)
        self._firsts.log.recast(schema)

    def _closing(self, times: Times) -> set[int]:
        """The slabs in which something closes by the watermark that is told of then."""
        task = self._task
        if not task.waits:
            return set()
        if task.reach.kind != "time":
            return self.log.slabs() if times.watermark >= FOREVER else set()
        until = FOREVER if times.watermark >= FOREVER else task.reach.closed_until(times.watermark)
        return self.log.slabs_between(task.reach.closed_until(times.before), until)

    def _read(self, touched: set[int], new: pa.Table | None, times: Times) -> Iterator[pa.RecordBatch]:
        """Read new rows, and those of their slabs: all once more, or with an engine what has come since."""
        listed, engines = Listed(self._task.task.program.max_matches), {}
        if new is not None:
            engines = self._engines.of(touched, new)
        living = self.log.living(touched, self._horizon(times.before), self._engines.since(engines))
        if new is None or not self._task.resumes:
            passed = self._firsts.passed(touched, self._horizon(times.before))
            yield from self._advanced(living, new, times, listed, passed)
            return
        rows = self._numbered(living, new)
        if engines:
            is_heavy = np.isin(rows.slabs, list(engines))
            heavy, rows = rows.chosen(is_heavy), rows.chosen(~is_heavy)
            yield from self._engines.read(engines, heavy, new, MicroBatch(times.watermark, listed))
        held = Held(rows.rows, int(np.searchsorted(rows.numbers, self.head.next_row)), np.zeros(0, np.bool_))
        if held.n_old < held.rows.num_rows:
            yield from read_again(self._task, held, listed)
        many = self._many(rows.slabs)
        if many:
            self._engines.begin(many, rows.chosen(np.isin(rows.slabs, many)), times.watermark)
        horizon = self._horizon(times.watermark)
        assert horizon is not None
        if (self.matters_until(new) > horizon).any():
            self.log.append(new)

    def _numbered(self, living: Living, new: pa.Table) -> Rows:
        """Old rows, then new ones, as they will be in the log."""
        rows, first = pa.concat_tables([living.rows, new]), self.head.next_row
        numbers = np.concatenate([living.numbers, np.arange(first, first + new.num_rows)])
        return Rows(rows, numbers, as_clock(rows.column(self._task.slab)))

    def _many(self, slabs: AnyArray) -> list[int]:
        """The slabs that have so many rows that an engine is kept."""
        if len(slabs) < HEAVY:
            return []
        least = slabs.min()
        counts = np.bincount(slabs - least)
        found: list[int] = (np.flatnonzero(counts >= HEAVY) + least).tolist()
        return found

    def _advanced(
        self, living: Living, new: pa.Table | None, times: Times, listed: Listed, passed: pa.Table
    ) -> Iterator[pa.RecordBatch]:
        """Read all rows of some slabs once more, and new ones among them; `passed`: first rows of keys."""
        rows = pa.concat_tables([passed, living.rows, *([] if new is None else [new])])
        m, n = passed.num_rows, passed.num_rows + living.rows.num_rows
        held = Held(rows, n, np.concatenate([np.zeros(m, np.bool_), living.spent]))
        kept: Kept = yield from advance(self._task, held, times, listed)
        check_rows(self._task, rows, ~kept.gone)
        self.log.mark(living, self._marked(living.rows, kept.gone[m:n], times), kept.spent[m:n])
        if new is not None:
            if self._task.reach.kind == "time":
                self._firsts.note(new.filter(pa.array(kept.first[n:])))
            stays = ~kept.gone[n:]
            self.log.append(new.filter(pa.array(stays)), kept.spent[n:][stays])

    def _marked(self, rows: pa.Table, gone: AnyArray, times: Times) -> AnyArray:
        """bool[n]: which rows must be marked as gone, since time does not tell it."""
        horizon = self._horizon(times.watermark)
        if horizon is None or not gone.any():
            return gone
        return gone & (self.matters_until(rows) > horizon)


def _clocks(column: pa.ChunkedArray) -> AnyArray:
    """Times without a NULL, in microseconds, as they lie in memory."""
    return np.asarray(combined(column).view(pa.int64()))
