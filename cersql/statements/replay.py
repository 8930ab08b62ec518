"""`cersql.replay`: a table through the streaming path, closed at the end, beside the same query over the table."""

from __future__ import annotations

import tempfile
import uuid
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cersql.language.source import SourceText
from cersql.statements.planned import plan_query
from runtime.errors import Span

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SHOWN = 5


@dataclass(frozen=True)
class Replay:
    """What a stream found, and how that differs from the batch: rows `missing` on the stream, and `extra` ones.

    `same` where there are none; `print` shows the counts and the first of these rows.
    """

    matches: int
    batches: int
    missing: list[Any] = field(default_factory=list)
    extra: list[Any] = field(default_factory=list)

    @property
    def same(self) -> bool:
        return not self.missing and not self.extra

    def __str__(self) -> str:
        lines = [f"{self.matches} matches in {self.batches} micro-batches: " + ("the same as in batch" if self.same
                 else f"{len(self.missing)} missing, {len(self.extra)} too many")]  # fmt: skip
        for name, rows in (("missing", self.missing), ("too many", self.extra)):
            lines += [f"  {name}: {row}" for row in rows[:SHOWN]]
        return "\n".join(lines)


def replay(
    spark: SparkSession,
    table: str | DataFrame,
    query: str,
    *,
    disorder: float = 60.0,
    batches: int = 4,
    seed: int = 0,
    folder: str | None = None,
) -> Replay:
    """Run a query, without FROM, over a table as a stream and as a batch, and compare the rows.

        print(cersql.replay(spark, "trades", "PATTERN A a ; B b ORDER BY ts WITHIN 1 HOUR RETURN a.id, b.id"))
        # 12 matches in 6 micro-batches: the same as in batch

    The rows come in so many micro-batches, up to `disorder` seconds late, with a watermark that waits for that long; in
    the end the watermark passes everything. `folder`: for files of the stream, on a cluster one that all workers see.
    Both results are held in this process.
    """
    query = SourceText.of(query)
    df = spark.table(table) if isinstance(table, str) else table
    planned = plan_query(spark, query, Span(0, len(query)), given=df)
    time = planned.compiled.query.order_by[0].column
    with tempfile.TemporaryDirectory(dir=folder, prefix="cersql-replay-") as place:
        found, n_batches = _streamed(df, query, time, Path(place), disorder, batches, seed)
    wanted = planned.frame().collect()
    have, want = Counter(map(repr, found)), Counter(map(repr, wanted))
    return Replay(len(found), n_batches, _rows(wanted, want - have), _rows(found, have - want))


def _streamed(
    df: DataFrame, query: str, time: str, place: Path, disorder: float, batches: int, seed: int
) -> tuple[list[Any], int]:
    from spark_ext import arrivals
    from spark_ext.streaming import few_partitions

    spark, sink = df.sparkSession, f"cersql_replay_{uuid.uuid4().hex}"
    stream = arrivals.read(spark, df.schema, place / "rows")
    bare = plan_query(spark, query, Span(0, len(query)), given=df).compiled.query.watermark_us is None
    if bare and time in df.columns:  # an expression has none, which is said below
        stream = stream.withWatermark(time, f"{max(1, round(1000 * disorder))} milliseconds")
    with few_partitions(spark):
        # Whether it can run as a stream at all is said before anything is written.
        matched = plan_query(spark, query, Span(0, len(query)), given=stream).frame()
    arrivals.write(df, time, place / "rows", batches, arrivals.Disorder(disorder, seed), ended=True)
    writer = (
        matched.writeStream.format("memory")
        .queryName(sink)
        .outputMode("append")
        .option("checkpointLocation", str(place / "checkpoint"))
        .trigger(availableNow=True)
    )
    with few_partitions(spark):
        running = writer.start()
    try:
        running.awaitTermination()
        return spark.table(sink).collect(), len(running.recentProgress)
    finally:
        running.stop()
        spark.catalog.dropTempView(sink)


def _rows(rows: list[Any], wanted: Counter[str]) -> list[Any]:
    """For each count in `wanted`, so many of the rows."""
    left, found = Counter(wanted), []
    for row in rows:
        if left[repr(row)] > 0:
            left[repr(row)] -= 1
            found.append(row)
    return found
