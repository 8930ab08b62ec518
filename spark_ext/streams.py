"""The pattern streams of this process: started by a statement, stopped by one, and shown with what they have done.

One that has ended stays, with why, until it is dropped, started again, or its session's Spark ends; of many that have
ended, the newest KEPT.
"""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlparse

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener
from pyspark.sql.streaming.query import StreamingQuery

from spark_ext import checkpoints, limiting, stream_tables, two_tables
from spark_ext.stream_metrics import Metrics, table
from spark_ext.streaming import BUCKETS_SETTING, SLABS_SETTING, SPREAD_SETTING, buckets, standings

_TOTALS = ("events", "matches", "late", "held_rows", "waiting_rows", "engines", "lag_seconds", "engine_seconds")
COLUMNS = ("name", "status", "why", "started", "ended", "table", *_TOTALS, "state_rows", "state_bytes", "watermark",
           "checkpoint", "error")  # fmt: skip
_KEPT_SETTINGS = (BUCKETS_SETTING, SLABS_SETTING, SPREAD_SETTING)  # with a checkpoint
KEPT = 64  # streams that have ended
AVAILABLE_NOW = "available now"  # a trigger

_lock = threading.RLock()


class Ended(NamedTuple):
    """How a stream came to its end: in one word, in a few, and what the error says, if it was one."""

    at: str
    status: str
    why: str
    error: str | None = None


@dataclass
class Stream:
    """A query, and what its progress has told of its micro-batches."""

    name: str
    table: str
    checkpoint: str
    query: StreamingQuery
    spark: SparkSession
    reads: int = 1  # how often each row is read: once more for each condition whose events meet before
    trigger: str | None = None
    started: str = field(default_factory=lambda: _now())
    stopped_by: str | None = None  # who has said STOP
    ended: Ended | None = None
    last: Any = None
    listener: StreamingQueryListener | None = field(default=None, repr=False)
    limit: int | None = None  # LIMIT of the query, which is stopped when so many rows have been given
    given: int = 0
    full: bool = False

    def __post_init__(self) -> None:
        self.metrics = Metrics(self.reads)

    def note(self, progress: Any) -> None:
        with _lock:
            self.last = progress
            if self.metrics.note(progress):
                self._stop_at_limit(progress.observedMetrics or {})

    def _stop_at_limit(self, metrics: Mapping[str, Any]) -> None:
        """Stop where nothing more will come: all rows have been given, in this run or, where some were asked for and
        not given, before it began."""
        if self.limit is None or self.full:
            return
        asked, given = limiting.counted(metrics)
        self.given += given
        if self.given >= self.limit or asked > given:
            self.full = True
            # A query ends when its listeners are through with it: this is one.
            threading.Thread(target=self.query.stop, name=f"cersql-limit-{self.name}", daemon=True).start()

    def look(self) -> None:
        """See what it has done since, and whether it has ended."""
        with _lock:
            if self.ended is not None:
                return
            active = self.query.isActive  # asked first: what it did before it ended is all there then
            for progress in self.query.recentProgress:
                self.note(progress)
            if not active:
                self.ended = self._end()

    def _end(self) -> Ended:
        at, error = _now(), self.query.exception()
        if error is not None:
            told = _brief(str(error))
            return Ended(at, "failed", _condition(told), told)
        if self.stopped_by is not None:
            return Ended(at, "stopped", f"STOP PATTERN STREAM by {self.stopped_by}")
        if self.full:
            return Ended(at, "finished", f"LIMIT {self.limit}: so many rows have been given")
        if self.trigger == AVAILABLE_NOW:
            return Ended(at, "finished", "TRIGGER AVAILABLE NOW: it has read all that was there")
        return Ended(at, "stopped", "its query was stopped by other means than STOP PATTERN STREAM")

    def row(self) -> tuple[str | None, ...]:
        """In the order of COLUMNS."""
        self.look()
        at, status, why, error = self.ended or (None, "running", None, None)
        state = self.last.stateOperators if self.last is not None else []
        held = [str(sum(getattr(s, part) for s in state)) for part in ("numRowsTotal", "memoryUsedBytes")]
        watermark = None if self.last is None else self.last.eventTime.get("watermark")
        totals = [getattr(self.metrics.total, name) for name in _TOTALS]
        return (self.name, status, why, self.started, at, self.table, *map(_shown, totals),
                *held, watermark, self.checkpoint, error)  # fmt: skip


def _shown(number: float | None) -> str | None:
    return f"{number:.3f}" if isinstance(number, float) else None if number is None else str(number)


def _now() -> str:
    """As Spark writes the times of its progress."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


_OURS = re.compile(r".*?(?:\b(?:ExecutionError|InternalError):|\[USER_RAISED_EXCEPTION\]) (?=\[)", re.DOTALL)


def _brief(error: str) -> str:
    """What stopped a stream: our own error, where it is one, without the plan and the workers' tracebacks around it."""
    text = _OURS.sub("", error.split("\n\n")[0], count=1).split("=== Streaming Query ===")[0]
    return re.sub(r"\s*SQLSTATE: \w{5}", "", text).strip()


def _condition(error: str) -> str:
    """The condition that an error names; where it names none, its first line."""
    named = re.match(r"\[([A-Z0-9_.]+)\]", error)
    return named[1] if named else error.partition("\n")[0]


class _Listener(StreamingQueryListener):
    """Adds up a stream's progress, of which Spark itself keeps the last hundred batches."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    def onQueryStarted(self, event: Any) -> None:
        pass

    def onQueryIdle(self, event: Any) -> None:
        pass

    def onQueryTerminated(self, event: Any) -> None:
        if str(event.runId) == str(self._stream.query.runId):
            self._stream.look()

    def onQueryProgress(self, event: Any) -> None:
        if str(event.progress.runId) == str(self._stream.query.runId):
            self._stream.note(event.progress)


_streams: dict[str, Stream] = {}


def names() -> list[str]:
    return sorted(stream.name for stream in _streams.values())


def running(name: str) -> bool:
    stream = _streams.get(name.casefold())
    return stream is not None and stream.query.isActive


def wait(spark: SparkSession, names: Sequence[str]) -> tuple[str, Exception] | None:
    """Wait until all of these streams have ended, or one has failed; gives the name of that one, and its error."""
    queries = {name: _streams[name.casefold()].query for name in names}
    while True:
        spark.streams.resetTerminated()
        for name, query in queries.items():
            error = None if query.isActive else query.exception()
            if error is not None:
                return name, error
        active = [query for query in queries.values() if query.isActive]
        if not active:
            return None
        with contextlib.suppress(StreamingQueryException):  # the next round says whose it is
            if len(active) == 1:
                active[0].awaitTermination()
            else:
                spark.streams.awaitAnyTermination()


def rows() -> list[tuple[str | None, ...]]:
    with _lock:
        _tidy()
        return [_streams[name].row() for name in sorted(_streams)]


def metrics(spark: SparkSession, of: str | StreamingQuery | None) -> DataFrame | None:
    """A row for each of the newest micro-batches of a stream, by its name, of a query, or of all streams; None if there
    is no stream of this name."""
    with _lock:
        _tidy()
        if of is None:
            return table(
                spark, [(stream.name, stream.metrics) for stream in map(_streams.get, sorted(_streams)) if stream]
            )
        if isinstance(of, str):
            stream = _streams.get(of.casefold())
            return None if stream is None else table(spark, [(stream.name, stream.metrics)])
    known = next((stream for stream in _streams.values() if str(stream.query.runId) == str(of.runId)), None)
    found = Metrics() if known is None else known.metrics
    for progress in of.recentProgress:
        found.note(progress)
    return table(spark, [(of.name or str(of.id), found)])


def _tidy() -> None:
    """Forget the streams of a Spark that has ended, and of those that have ended themselves all but the newest."""
    for name, stream in list(_streams.items()):
        if _is_over(stream.spark):
            del _streams[name]
        else:
            stream.look()
    ended = [(stream.ended.at, name) for name, stream in _streams.items() if stream.ended is not None]
    for _, name in sorted(ended)[: max(0, len(ended) - KEPT)]:
        _forget(_streams.pop(name))


def _is_over(spark: SparkSession) -> bool:
    stopped = getattr(spark, "is_stopped", None)  # Connect's
    return bool(stopped) if stopped is not None else spark.sparkContext._jsc is None


@contextlib.contextmanager
def as_begun(spark: SparkSession, name: str, checkpoint: str | None) -> Iterator[None]:
    """With the buckets and slabs of the checkpoint, where the session does not say how many: the buckets that it takes
    by itself depend on its cores, and another cluster can go on with the state."""
    kept = checkpoints.settings_of(spark, checkpoint or _default_checkpoint(spark, name))
    if kept:
        kept.setdefault(SPREAD_SETTING, "false")  # it was begun before there was this setting
    before = {key: spark.conf.get(key, None) for key in _KEPT_SETTINGS if kept.get(key)}
    before = {key: value for key, value in before.items() if not value}
    for key in before:
        spark.conf.set(key, kept[key])
    try:
        yield
    finally:
        for key, value in before.items():
            spark.conf.unset(key) if value is None else spark.conf.set(key, value)


@dataclass(frozen=True)
class Late:
    """The late rows of a stream, and the table that they go to."""

    table: str
    rows: DataFrame


def start(
    df: DataFrame,
    name: str,
    table: str,
    checkpoint: str | None,
    trigger: str | None,
    late: Late | None = None,
    limit: int | None = None,
) -> None:
    """Start a query that appends to a table, or to two. Its name is free (see `running`). `limit`: the LIMIT that all
    its rows come from. Raises CersqlError for a checkpoint that is damaged, or of another query."""
    spark = df.sparkSession
    path = checkpoint or _default_checkpoint(spark, name)
    with _lock:
        beside = [*(["LIMIT"] if limit is not None else []), *(["WITH LATE ROWS"] if late is not None else [])]
        stream_tables.check_tables(name, [(table, df), *([] if late is None else [(late.table, late.rows)])])
        _adopted(df, table)
        settings = {key: spark.conf.get(key, None) or "" for key in _KEPT_SETTINGS}
        settings |= {BUCKETS_SETTING: str(buckets(spark)), SPREAD_SETTING: settings[SPREAD_SETTING] or "true"}
        tables = [stream_tables.full_name(spark, own) for own in (table, *([] if late is None else [late.table]))]
        checkpoints.prepare(spark, name, path, standings(df), tables[0], settings, beside, tables[1:])
        written = df
        if late is not None:
            _adopted(late.rows, late.table)
            written = two_tables.together(df, late.rows)
        writer = written.writeStream.queryName(name).outputMode("append").option("checkpointLocation", path)
        if trigger == AVAILABLE_NOW:
            writer = writer.trigger(availableNow=True)
        elif trigger is not None:
            writer = writer.trigger(processingTime=trigger)
        if late is None:
            query = writer.toTable(table)
        else:
            both = two_tables.TwoTables(spark, table, late.table, path)
            both.make(df, late.rows)
            query = writer.foreachBatch(both.write).start()
        old = _streams.get(name.casefold())
        if old is not None:
            _forget(old)
        reads = _reads(written)
        stream = _streams[name.casefold()] = Stream(name, table, path, query, spark, reads, trigger, limit=limit)
        stream.listener = _Listener(stream)
        spark.streams.addListener(stream.listener)
        _tidy()


def _reads(df: DataFrame) -> int:
    """How often a stream reads what it reads; Spark counts the rows each time."""
    if not hasattr(df, "_jdf"):
        return 1
    leaves = df._jdf.queryExecution().analyzed().collectLeaves()
    sources = [leaf.toString() for leaf in map(leaves.apply, range(leaves.size())) if leaf.isStreaming()]
    return max(1, len(sources) // max(1, len(set(sources))))


def stop(name: str, by: str) -> bool:
    """Stop a stream, which is shown as stopped by somebody from then on; False if there is none of this name. One that
    has ended stays as it is."""
    with _lock:
        stream = _streams.get(name.casefold())
        if stream is None:
            return False
        if stream.query.isActive:
            stream.stopped_by = by
    stream.query.stop()
    stream.look()
    _forget(stream)
    return True


def drop(name: str) -> bool:
    """Forget a stream that has ended, and leave its table and checkpoint; False if there is none of this name."""
    with _lock:
        stream = _streams.pop(name.casefold(), None)
    if stream is not None:
        _forget(stream)
    return stream is not None


def _forget(stream: Stream) -> None:
    if stream.listener is not None:
        stream.spark.streams.removeListener(stream.listener)
        stream.listener = None


def _default_checkpoint(spark: SparkSession, name: str) -> str:
    base = spark.conf.get("spark.sql.streaming.checkpointLocation", None)
    return f"{base or f'{_warehouse(spark)}/_cersql_checkpoints'}/{name}"


def _warehouse(spark: SparkSession) -> str:
    return spark.conf.get("spark.sql.warehouse.dir") or "spark-warehouse"


def _adopted(df: DataFrame, table: str) -> None:
    """A table whose files are there, of a stream in an earlier process, and that the catalog has forgotten."""
    spark = df.sparkSession
    if spark.catalog.tableExists(table) or "." in table:
        return
    place = Path(urlparse(_warehouse(spark)).path, table.strip("`").lower())
    if (place / "_spark_metadata").is_dir():
        spark.catalog.createTable(table, path=str(place), source="parquet", schema=df.schema)
