"""What Spark pickles and sends to the workers of a streaming query, by reference; see spark_ext.streaming.

Spark also imports this in a process of its own while it plans the first micro-batch, only to ask for the state's
variables; what compiles, and pandas, is imported where it runs: that process then starts in half the time.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import (
    ExpiredTimerInfo,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)
from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType

from runtime.partition.order import as_clock
from runtime.stream.head import sizes
from runtime.stream.meeting import MeetingBucket
from runtime.stream.spread import called
from runtime.stream.task import NEVER, StateFacts, StreamTask
from runtime.stream.timing import Stopwatch
from runtime.task import Limits
from spark_ext.guarding import guarded, settle

if TYPE_CHECKING:
    import pandas as pd

    from runtime.stream.bucket import Bucket
    from runtime.stream.meeting import MeetingBucket, MeetingTask
    from runtime.stream.windows import WindowBucket, WindowTask

BUCKET, ROWS = "bucket", "rows"
# What the operator gives: a pack, and what to count; and of each bucket, when it is done with it, how it stands.
MATCHES, N_MATCHES, N_LATE = "matches", "n_matches", "n_late"
ENGINE_US, SIZES = "engine_us", ("n_held", "n_waiting", "n_engines")
GIVEN = {
    MATCHES: "BINARY", N_MATCHES: "BIGINT", N_LATE: "BIGINT", ENGINE_US: "BIGINT", BUCKET: "INT",
    **dict.fromkeys(SIZES, "BIGINT"),
}  # fmt: skip
PACK_ROWS = 1 << 17
PACKED = StructType([StructField(BUCKET, IntegerType()), StructField(ROWS, BinaryType())])
_PACKED = pa.schema([(BUCKET, pa.int32()), (ROWS, pa.binary())])


def pack(slab: str, per_bucket: int, spread: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows → one row for each bucket, with all of the bucket's rows as an Arrow stream. `spread`: how many buckets are
    called so that tasks get equally many (runtime.stream.spread); 0: they are called by their places."""
    from runtime.partition.partition import pieces

    for rows in pieces(batches, PACK_ROWS):
        yield _packed(slab, per_bucket, spread, rows)


def _packed(slab: str, per_bucket: int, spread: int, rows: pa.Table) -> pa.RecordBatch:
    buckets = as_clock(rows.column(slab)) // per_bucket
    order = np.argsort(buckets, kind="stable")
    numbers, begins = np.unique(buckets[order], return_index=True)
    rows = rows.take(pa.array(order)).combine_chunks()
    ends = [*begins[1:].tolist(), rows.num_rows]
    blobs = [as_bytes(rows.slice(begin, end - begin)) for begin, end in zip(begins.tolist(), ends, strict=True)]
    names = called(spread)[numbers] if spread else numbers
    columns = [pa.array(names, pa.int32()), pa.array(blobs, pa.binary())]
    return pa.RecordBatch.from_arrays(columns, schema=_PACKED)


def as_bytes(rows: pa.Table | pa.RecordBatch) -> bytes:
    """Rows with their schema, as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write(rows)
    found: bytes = sink.getvalue().to_pybytes()
    return found


def unpack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Matches as the operator packs them → matches."""
    for batch in batches:
        for blob in batch.column(0):
            if blob.is_valid:
                yield from pa.ipc.open_stream(blob.as_buffer())


class SparkStore:
    """A bucket's state in Spark's, by number (runtime.stream.state.Store)."""

    def __init__(self, values: Any, watch: Stopwatch) -> None:
        self._values, self._watch = values, watch

    def get(self, number: int) -> bytes | None:
        with self._watch.paused():
            found = self._values.getValue((number,))
        return None if found is None else bytes(found[0])

    def put(self, number: int, blob: bytes) -> None:
        with self._watch.paused():
            self._values.updateValue((number,), (blob,))

    def remove(self, number: int) -> None:
        with self._watch.paused():
            self._values.removeKey((number,))


def _row(values: dict[str, object]) -> pd.DataFrame:
    """A row of GIVEN."""
    return _frame({name: [values.get(name, 0 if name in (N_MATCHES, N_LATE) else None)] for name in GIVEN})


def _frame(columns: dict[str, list[Any]]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(columns)


class _Operator(StatefulProcessor):
    """A stateful operator: a group is a bucket, its rows are packs."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._values = handle.getMapState("cersql", "number BIGINT", "blob BINARY")

    def handleInputRows(
        self, key: Any, rows: Iterator[pd.DataFrame], timerValues: TimerValues
    ) -> Iterator[pd.DataFrame]:
        tables = (pa.ipc.open_stream(blob).read_all() for frame in rows for blob in frame[ROWS])
        return guarded(self._limits, self._run(int(key[0]), tables, _watermark(timerValues)))

    def handleExpiredTimer(
        self, key: Any, timerValues: TimerValues, expiredTimerInfo: ExpiredTimerInfo
    ) -> Iterator[pd.DataFrame]:
        return guarded(self._limits, self._run(int(key[0]), (), _watermark(timerValues), fired=True))

    def close(self) -> None:
        settle()

    def _run(
        self, number: int, tables: Iterable[pa.Table], watermark: int, fired: bool = False
    ) -> Iterator[pd.DataFrame]:
        raise NotImplementedError

    def _saved(self, bucket: Bucket | WindowBucket | MeetingBucket, fired: bool) -> None:
        """Save the state, and see that a timer is set for the least watermark at which there is something to do, or
        before: one that comes too early only sets the next, and one that rows push on would be set anew with each."""
        head, due = bucket.head, bucket.next_due()
        # At 0, which is no watermark, Spark would let a timer of 1970 fire, and forget the one that is set then.
        at = None if due is None else max(1, -(-due // 1000))
        if fired:
            head.timer = None  # Spark removes what has fired
        if head.timer is not None and (at is None or at < head.timer):
            self._handle.deleteTimer(head.timer)
            head.timer = None
        if at is not None and head.timer is None:
            self._handle.registerTimer(at)
            head.timer = at
        bucket.save()


def folder_of(task: StateFacts) -> str | None:
    """Where copies of the state may lie: a folder of the executor's, which Spark removes with it."""
    return os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0] or None if task.copies else None


def _watermark(timers: TimerValues) -> int:
    """In microseconds; Spark's is 0 before there is one."""
    watermark = timers.getCurrentWatermarkInMs()
    return NEVER if watermark <= 0 else watermark * 1000


class MatchBucket(_Operator):
    """The operator that finds matches."""

    def __init__(self, task: StreamTask | WindowTask) -> None:
        super().__init__(task.task.limits)
        self._task = task

    def init(self, handle: StatefulProcessorHandle) -> None:
        """See _Operator: once for each task of a micro-batch."""
        super().init(handle)
        self._told: dict[int, tuple[int, int, int]] = {}  # of each bucket, in this micro-batch

    def _run(
        self, number: int, tables: Iterable[pa.Table], watermark: int, fired: bool = False
    ) -> Iterator[pd.DataFrame]:
        from runtime.stream.bucket import Bucket
        from runtime.stream.windows import WindowBucket

        watch = Stopwatch()
        store = SparkStore(self._values, watch)
        task = self._task
        bucket = Bucket(task, store, folder_of(task)) if isinstance(task, StreamTask) else WindowBucket(task, store)
        late = bucket.head.late
        row: dict[str, object] = {}
        for batch in watch.running(bucket.run(watch.waiting(tables), watermark)):
            if row:
                yield _row(row)
            row = {MATCHES: as_bytes(batch), N_MATCHES: batch.num_rows}
        self._saved(bucket, fired)
        yield _row({**row, N_LATE: bucket.head.late - late, ENGINE_US: watch.us, **self._stands(number, bucket)})

    def _stands(self, number: int, bucket: Bucket | WindowBucket) -> dict[str, object]:
        """How a bucket stands. What is told of it a second time in a micro-batch, when a timer has fired, is only what
        has changed, so that one can add up."""
        before, now = self._told.get(number, (0, 0, 0)), sizes(bucket.head)
        self._told[number] = now
        return {BUCKET: number, **{name: new - old for name, new, old in zip(SIZES, now, before, strict=True)}}


class PairBucket(_Operator):
    """The operator in which the two events of a condition meet."""

    def __init__(self, task: MeetingTask) -> None:
        super().__init__(task.limits)
        self._task = task

    def _run(
        self, number: int, tables: Iterable[pa.Table], watermark: int, fired: bool = False
    ) -> Iterator[pd.DataFrame]:
        bucket = MeetingBucket(self._task, SparkStore(self._values, Stopwatch()), folder_of(self._task))
        for batch in bucket.run(tables, watermark):
            yield _frame({ROWS: [as_bytes(batch)]})
        self._saved(bucket, fired)


class LateBucket(_Operator):
    """The operator that is told the watermark to find the rows that come too late. It holds no state."""

    def __init__(self, slab: str, time: str) -> None:
        super().__init__(Limits())
        self._slab, self._time = slab, time

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle

    def _run(
        self, number: int, tables: Iterable[pa.Table], watermark: int, fired: bool = False
    ) -> Iterator[pd.DataFrame]:
        for table in tables:
            known = table.filter(table.column(self._time).is_valid())
            late = known.filter(pa.array(as_clock(known.column(self._time)) <= watermark))
            if late.num_rows:
                yield _frame({ROWS: [as_bytes(late.drop_columns([self._slab]))]})
