"""The pattern streams of this process: started by a statement, stopped by one, and shown with what they have done."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener
from pyspark.sql.streaming.query import StreamingQuery

from spark_ext import checkpoints, limiting, two_tables
from spark_ext.streaming import METRICS_NAME, standings

COLUMNS = ("name", "status", "table", "events", "matches", "late", "state_rows", "state_bytes", "watermark",
           "checkpoint", "error")  # fmt: skip
_lock = threading.RLock()


@dataclass
class Stream:
    """A running query and its totals, which its progress is added to once for each micro-batch."""

    name: str
    table: str
    checkpoint: str
    query: StreamingQuery
    spark: SparkSession
    reads: int = 1  # how often each row is read: once more for each condition whose events meet before
    batch: int = -1
    events: int = 0
    matches: int = 0
    late: int = 0
    last: Any = None
    listener: StreamingQueryListener | None = field(default=None, repr=False)
    limit: int | None = None  # LIMIT of the query, which is stopped when so many rows have been given
    given: int = 0

    def note(self, progress: Any) -> None:
        with _lock:
            self.last = progress
            if progress.batchId <= self.batch:
                return
            self.batch = progress.batchId
            self.events += progress.numInputRows // self.reads
            for name, counted in (progress.observedMetrics or {}).items():
                if name.startswith(METRICS_NAME):
                    self.matches += counted["matches"]
                    self.late += counted["late"]
            self._stop_at_limit(progress.observedMetrics or {})

    def _stop_at_limit(self, metrics: Mapping[str, Any]) -> None:
        """Stop where nothing more will come: all rows have been given, in this run or, where some were asked for and
        not given, before it began."""
        if self.limit is None:
            return
        asked, given = limiting.counted(metrics)
        self.given += given
        if self.given >= self.limit or asked > given:
            self.limit = None
            # A query ends when its listeners are through with it: this is one.
            threading.Thread(target=self.query.stop, name=f"cersql-limit-{self.name}", daemon=True).start()

    def row(self) -> tuple[str | None, ...]:
        """In the order of COLUMNS."""
        for progress in self.query.recentProgress:
            self.note(progress)
        error = self.query.exception()
        status = "running" if self.query.isActive else "failed" if error is not None else "finished"
        state = self.last.stateOperators if self.last is not None else []
        held = [str(sum(getattr(s, part) for s in state)) for part in ("numRowsTotal", "memoryUsedBytes")]
        watermark = None if self.last is None else self.last.eventTime.get("watermark")
        told = None if error is None else _brief(str(error))
        return (self.name, status, self.table, str(self.events), str(self.matches), str(self.late), *held, watermark,
                self.checkpoint, told)  # fmt: skip


_OURS = re.compile(r".*?\b(?:ExecutionError|InternalError): (?=\[)", re.DOTALL)


def _brief(error: str) -> str:
    """What stopped a stream: our own error, where it is one, without the plan and the workers' tracebacks around it."""
    text = _OURS.sub("", error.split("\n\n")[0], count=1).split("=== Streaming Query ===")[0]
    return re.sub(r"\s*SQLSTATE: \w{5}", "", text).strip()


class _Listener(StreamingQueryListener):
    """Adds up a stream's progress, of which Spark itself keeps the last hundred batches."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    def onQueryStarted(self, event: Any) -> None:
        pass

    def onQueryIdle(self, event: Any) -> None:
        pass

    def onQueryTerminated(self, event: Any) -> None:
        pass

    def onQueryProgress(self, event: Any) -> None:
        if str(event.progress.runId) == str(self._stream.query.runId):
            self._stream.note(event.progress)


_streams: dict[str, Stream] = {}


def names() -> list[str]:
    return sorted(stream.name for stream in _streams.values())


def running(name: str) -> bool:
    stream = _streams.get(name.casefold())
    return stream is not None and stream.query.isActive


def rows() -> list[tuple[str | None, ...]]:
    with _lock:
        return [_streams[name].row() for name in sorted(_streams)]


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
        checkpoints.prepare(spark, name, path, standings(df), beside)
        _adopted(df, table)
        written = df
        if late is not None:
            _adopted(late.rows, late.table)
            written = two_tables.together(df, late.rows)
        writer = written.writeStream.queryName(name).outputMode("append").option("checkpointLocation", path)
        if trigger == "available now":
            writer = writer.trigger(availableNow=True)
        elif trigger is not None:
            writer = writer.trigger(processingTime=trigger)
        if late is None:
            query = writer.toTable(table)
        else:
            tables = two_tables.TwoTables(spark, table, late.table, path)
            tables.make(df, late.rows)
            query = writer.foreachBatch(tables.write).start()
        old = _streams.get(name.casefold())
        if old is not None:
            _forget(old)
        stream = _streams[name.casefold()] = Stream(name, table, path, query, spark, _reads(written), limit=limit)
        stream.listener = _Listener(stream)
        spark.streams.addListener(stream.listener)


def _reads(df: DataFrame) -> int:
    """How often a stream reads what it reads; Spark counts the rows each time."""
    if not hasattr(df, "_jdf"):
        return 1
    leaves = df._jdf.queryExecution().analyzed().collectLeaves()
    sources = [leaf.toString() for leaf in map(leaves.apply, range(leaves.size())) if leaf.isStreaming()]
    return max(1, len(sources) // max(1, len(set(sources))))


def stop(name: str) -> bool:
    """Stop a stream and forget it; False if there is none of this name."""
    with _lock:
        stream = _streams.pop(name.casefold(), None)
    if stream is None:
        return False
    stream.query.stop()
    _forget(stream)
    return True


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
