"""Windows that slide, on a stream: the rows of a window wait until it has closed, then they are read as over a table.

    WITHIN 10 MINUTES SLIDE 5 MINUTES, the watermark at 09:10: all rows of the window from 09:00 are there

A window is a key of the pattern (spark_ext.sliding), so nothing outside it can matter to its matches, nor can anything
be undone in it once it has closed: whatever the query is, it is the batch over the rows of that window. So any pattern
is bounded here; no row is read twice, no match is listed before it is summed up, and the state are rows, which any
release can read. A bucket holds windows whole, with all keys that its groups do not tell apart
(spark_ext.windowed): what it says of a group is all that there is to say, and no partial sums wait for each other.

Roads not taken: sums of each micro-batch as the state. The matches that end in it need the rows before it, which have
to be held and read again; and strategies, consumption and skipping choose among the matches of the whole window.
Spark's own stateful aggregation over what buckets say of a group: it must be told a second watermark, and gives a group
no sooner.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from runtime.arrays import AnyArray
from runtime.partition import partition
from runtime.partition.order import as_clock
from runtime.stream.head import Store
from runtime.stream.kept_pairs import Coded, needed
from runtime.stream.task import FOREVER, StateFacts
from runtime.stream.waiting import Waiting
from runtime.task import Task

NOBODY = int(np.iinfo(np.int64).max)  # a time at which nothing is due


@dataclass(frozen=True)
class WindowTask(StateFacts):
    """What a worker does with one bucket of windows. `task`: as over a table. `window`: the column, a key, that says
    where a row's window begins, in microseconds; windows are `size` long, and one begins every `slide`. The others: see
    StreamTask and StateFacts; a pair (`until`) has no window, and is there for all of its bucket."""

    task: Task
    slab: str
    window: str
    size: int
    slide: int
    until: str | None = None
    slot_us: int = 1_000_000

    @property
    def time(self) -> str:
        """The column of the time."""
        return self.task.order[0].name


class WindowBucket(Waiting):
    """The state of one bucket of windows, and what a micro-batch does to it."""

    def __init__(self, task: WindowTask, store: Store) -> None:
        super().__init__(task, store, task.slot_us)
        self._task = task

    def run(self, tables: Iterable[pa.Table], watermark: int) -> Iterator[pa.RecordBatch]:
        """See Bucket.run: what the task finds in the windows that the watermark has closed."""
        arrived, late = self.in_time(tables, watermark)
        events, pairs = self._apart(arrived)
        if events is not None:
            self.wait(events)
        self.head.late += late
        self.head.watermark = max(self.head.watermark, watermark)
        closed = self.ready(watermark)
        if closed or pairs or self._pairs_due() <= watermark:
            pairs = self._with_held(pairs, watermark)
        if closed:
            rows = [batch for table in (*closed, *pairs) for batch in table.to_batches()]
            yield from partition.run(self._task.task, rows)

    def next_due(self) -> int | None:
        """See Bucket.next_due."""
        due = min((*self.times_due(), self._pairs_due()))
        return None if due == NOBODY else due

    def due(self, rows: pa.Table) -> AnyArray:
        """The last microsecond of its window: what comes after it belongs to others. The end of time closes all."""
        closes = self._begins(rows) + (self._task.size - 1)
        return np.where(self.clocks(rows) < FOREVER, np.minimum(closes, FOREVER), closes)

    def n_rows(self, rows: pa.Table) -> int:
        """How many rows these copies of them are: each is once in the last of its windows."""
        last = self.clocks(rows) - self._begins(rows) < self._task.slide
        return int(last.sum())

    def _begins(self, rows: pa.Table) -> AnyArray:
        return as_clock(rows.column(self._task.window))

    # ------------------------------------------------------------ pairs of events

    def _apart(self, arrived: pa.Table | None) -> tuple[pa.Table | None, list[pa.Table]]:
        """The rows of events, and those of pairs."""
        if arrived is None or self._task.until is None:
            return arrived, []
        is_event = arrived.column(self._task.task.pairs).is_null()
        pairs = arrived.filter(pc.invert(is_event))
        return arrived.filter(is_event), [pairs] if pairs.num_rows else []

    def matters_until(self, rows: pa.Table) -> AnyArray:
        """See State.matters_until: the log has pairs alone, which matter until the last rows of their values."""
        return as_clock(rows.column(self._task.until))

    def _pairs_due(self) -> int:
        """When pairs can go: the last window of the last rows of their values has closed."""
        least = min((piece.least for piece in self.head.pieces.values()), default=NOBODY)
        return min(least + self._task.size - 1, FOREVER) if least != NOBODY else NOBODY

    def _with_held(self, new: list[pa.Table], watermark: int) -> list[pa.Table]:
        """All pairs that are known. Those that windows to come need are held; of equal ones one."""
        self.open()
        held = [self.log.living(self.log.slabs(), None)] if self.head.pieces else []
        tables = [*(living.rows for living in held), *new]
        if not tables:
            return []
        rows, n_held = pa.concat_tables(tables), sum(living.rows.num_rows for living in held)
        needs = self._needed(rows, watermark)
        for living in held:
            self.log.mark(living, ~needs[:n_held], living.spent)
        self.log.append(rows.slice(n_held).filter(pa.array(needs[n_held:])))
        self.forget(None, watermark)
        return [rows]

    def _needed(self, rows: pa.Table, watermark: int) -> AnyArray:
        """bool[n]: which pairs windows to come need."""
        task, none = self._task.task, np.zeros(0, np.int64)
        symbols, until = partition.symbols_of(task, rows), self.matters_until(rows)
        codes = partition.own_codes(task, symbols)
        closed = watermark if watermark >= FOREVER else watermark - self._task.size + 1
        pairs, held = Coded(as_clock(rows.column(self._task.slab)), codes), Coded(none, codes[:0])
        return needed(task.program.tables, as_clock(rows.column(task.pairs)), pairs, until, held, closed)
