"""One bucket of a stream: rows wait until the watermark passes, then meet the rows of their keys that still matter.

The state of a query is the *rows* that a later match can mention, not the engine's arena: a match is decided by the
rows of its window before it is known (planner.streaming says for which queries), so the engine reads those of a key
again when new ones come, and only the matches that end at new rows are given out. Reading rows costs nothing beside
fetching them from Spark's state: an engine reads some 10⁷ rows a second, a state store gives some 10⁵. In return the
state does not depend on how engines work, rows of many keys share one blob, and a restart needs no engine to restore.

Rows lie in *slabs* of keys, so that only slabs with rows or due times are read and written; an index says when each is
due. Rows that wait lie in chunks by time (runtime.stream.waiting). A slab whose rows have all left the window is
removed unread.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from runtime.arrays import AnyArray
from runtime.stream.rereading import Held, Times, advance
from runtime.stream.state import Slab, Store
from runtime.stream.task import FOREVER, StreamTask
from runtime.stream.waiting import Waiting


class Bucket(Waiting):
    """The state of one bucket, and what a micro-batch does to it."""

    def __init__(self, task: StreamTask, store: Store) -> None:
        super().__init__(task, store, task.slot_us)
        self._task = task

    # ------------------------------------------------------------ the contract

    def run(self, tables: Iterable[pa.Table], watermark: int) -> Iterator[pa.RecordBatch]:
        """Take new rows and the watermark (microseconds) that holds; yield the matches that are known by it.

        A row at or before the watermark is late: it is dropped, and counted. Must be read to its end, and saved.
        """
        head = self.head
        arrived, late = self.in_time(tables, watermark)
        if arrived is not None:
            self.wait(arrived)
        head.late += late
        if watermark > head.watermark:
            before, head.watermark = head.watermark, watermark
            yield from self._advance(Times(watermark, before))

    def next_due(self) -> int | None:
        """The least watermark, in microseconds, at which there is something to do; None if nothing waits."""
        slabs = (self._due(slab) for slab in self.head.slabs.values())
        return min((*self.times_due(), *slabs), default=None)

    # ------------------------------------------------------------ slabs

    def _due(self, slab: Slab) -> int:
        """When a slab must be looked at again, whatever comes: for what closes in it, or to be freed."""
        task = self._task
        if task.reach.kind != "time":
            return FOREVER
        freed = task.holds.closes_at(slab.greatest)
        return freed if slab.least is None or not task.waits else min(freed, task.reach.closes_at(slab.least))

    def _advance(self, times: Times) -> Iterator[pa.RecordBatch]:
        """The watermark has come to here: read what it has passed, and what closes by it."""
        watermark = times.watermark
        ready = self.ready(watermark)
        if self._schema is None:
            self._schema = self._stored_schema()
        new = pa.concat_tables(ready) if ready else None
        arriving = set() if new is None else set(np.unique(self.slabs_of(new)).tolist())
        due = {number for number, slab in self.head.slabs.items() if self._due(slab) <= watermark}
        if self._expires_unread():
            for number in due - arriving:
                self.remove(number)
            due &= arriving
        touched = arriving | due
        if not touched:
            return
        known = [number for number in sorted(touched) if number in self.head.slabs]
        old = [self.slab(number) for number in known]
        spent = [self._spent(self.head.slabs[number]) for number in known]
        tables = [*old, *([] if new is None else [new])]
        n_old = sum(table.num_rows for table in old)
        held = Held(pa.concat_tables(tables), n_old, np.concatenate([np.zeros(0, np.bool_), *spent]))
        left = yield from advance(self._task, held, times)
        self.put(left, touched)

    def _spent(self, slab: Slab) -> AnyArray:
        if not slab.spent:  # none is
            return np.zeros(slab.n, np.bool_)
        found: AnyArray = np.unpackbits(np.frombuffer(slab.spent, np.uint8), count=slab.n).astype(np.bool_)
        return found

    def _expires_unread(self) -> bool:
        """Is a due slab one of which nothing is left?"""
        return not self._task.waits and self._task.reach.kind == "time"
