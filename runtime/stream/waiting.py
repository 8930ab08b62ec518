"""Rows that wait in a state until the watermark has come so far: in chunks, by stretches of time.

    rows of 10:00 to 10:03, the watermark at 10:01 → the chunks that begin by then are read; what is not due waits on

Only chunks that the watermark reaches are read. A micro-batch writes a few of them, however long the time is that its
rows cover; where many have gathered, the smallest are put together, so that the index stays small: a row is written
O(log n) times in n micro-batches.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from runtime.arrays import AnyArray
from runtime.stream.head import Chunk, Store, blob
from runtime.stream.state import State
from runtime.stream.task import Stated

MOST_CHUNKS = 4  # that the rows of one micro-batch are cut into, give or take one
MOST_WAITING = 64  # chunks in a state


class Waiting(State):
    """A state whose rows wait first."""

    def __init__(self, of: Stated, store: Store, slot_us: int, **more: Any) -> None:
        """`slot_us`: rows are stored by stretches of so much time, at least. The others: see State."""
        super().__init__(of, store, **more)
        self._slot_us = slot_us

    def due(self, rows: pa.Table) -> AnyArray:
        """int64[n]: the least watermark, in microseconds, with which each row need not wait any more."""
        return self.clocks(rows)

    def wait(self, rows: pa.Table) -> None:
        """Store rows until they are due."""
        self._put(rows)
        chunks = self.head.chunks
        if len(chunks) > MOST_WAITING:
            smallest = sorted(chunks, key=lambda number: chunks[number].n)[: len(chunks) // 2]
            self._put(pa.concat_tables([self._taken(number) for number in smallest]))

    def ready(self, watermark: int) -> list[pa.Table]:
        """Take the rows that are due; of their chunks the others wait on."""
        ready, waiting = [], []
        for number in [number for number, chunk in self.head.chunks.items() if chunk.least <= watermark]:
            rows = self._taken(number)
            due = self.due(rows) <= watermark
            if due.all():
                ready.append(rows)
                continue
            ready.append(rows.filter(pa.array(due)))
            waiting.append(rows.filter(pa.array(~due)))
        if waiting:
            self.wait(pa.concat_tables(waiting))
        return ready

    def times_due(self) -> Iterable[int]:
        """When to look at rows that wait."""
        return (chunk.least for chunk in self.head.chunks.values())

    def _put(self, rows: pa.Table) -> None:
        if not rows.num_rows:
            return
        due = self.due(rows)
        # A chunk costs two calls to the store.
        width = max(self._slot_us, int(due.max() - due.min()) // MOST_CHUNKS + 1)
        slots = due // width
        for slot in np.unique(slots).tolist():
            chosen = slots == slot
            part = rows if chosen.all() else rows.filter(pa.array(chosen))
            number = self.head.next_chunk
            self.head.next_chunk += 1
            self.head.chunks[number] = Chunk(int(due[chosen].min()), part.num_rows)
            self._store.put(-number, blob(part))

    def _taken(self, number: int) -> pa.Table:
        rows = self._rows(-number)
        self._store.remove(-number)
        del self.head.chunks[number]
        return rows
