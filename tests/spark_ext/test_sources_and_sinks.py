"""Streams of other kinds: offsets for files, foreachBatch, tables, two patterns over one source, other partitions."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import sparks
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

import cersql
from spark_ext import arrivals, streams
from spark_ext.streaming import CHANGES_SETTING

PAIRS = "PATTERN A a ; B b PARTITION BY k ORDER BY ts WITHIN 20 SECONDS RETURN k, a.id AS x, b.id AS y"
OTHERS = "PATTERN SEQ(B b, !X, A a) PARTITION BY k ORDER BY ts WITHIN 9 SECONDS RETURN k, b.id AS x, a.id AS y"
Rows = list[tuple[object, ...]]


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    session = sparks.taught(spark)
    session.conf.set("cersql.stream.buckets", "2")
    return session


def source(session: SparkSession, folder: Path) -> tuple[DataFrame, DataFrame]:
    """A table, and the stream of its rows: two micro-batches, and the end of time."""
    df = session.range(300).selectExpr(
        "id", "timestamp_seconds(1000 + id DIV 2) AS ts", "id % 5 AS k",
        "substr('ABX', CAST(1 + id % 3 AS INT), 1) AS type",
    )  # fmt: skip
    arrivals.write(df, "ts", folder, 2, arrivals.Disorder(5.0), ended=True)
    return df, arrivals.read(session, df.schema, folder).withWatermark("ts", "5 seconds")


def rows(df: DataFrame) -> Rows:
    return sorted(map(tuple, df.collect()))


def test_foreach_batch_and_other_shuffle_partitions(session: SparkSession, tmp_path: Path) -> None:
    """A micro-batch that is read twice, and once more after a failure, in a session with more shuffle partitions, whose
    state store writes what has changed in place of whole states."""
    df, live = source(session, tmp_path / "rows")
    found: dict[int, Rows] = {}

    def taken(batch: DataFrame, number: int) -> None:
        n, found[number] = batch.count(), rows(batch)
        assert n == len(found[number])
        if number == 1 and failing:
            raise InterruptedError("the sink is gone")

    def run(partitions: int, changes: str) -> None:
        partly = {CHANGES_SETTING: changes, "spark.sql.shuffle.partitions": partitions}
        with sparks.settings(session, **partly):
            writer = cersql.match(live, PAIRS).writeStream.foreachBatch(taken)
            query = writer.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start()
        query.awaitTermination()

    failing = True
    with pytest.raises(StreamingQueryException, match="the sink is gone"):
        run(2, "false")
    assert sorted(found) == [0, 1]
    failing = False
    run(5, "true")
    assert sorted(row for batch in found.values() for row in batch) == rows(cersql.match(df, PAIRS))


def test_two_patterns_in_one_query(session: SparkSession, tmp_path: Path) -> None:
    df, live = source(session, tmp_path / "rows")
    both = cersql.match(live, PAIRS).union(cersql.match(live, OTHERS))
    writer = both.writeStream.format("memory").queryName("both_patterns")
    query = writer.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start()
    query.awaitTermination()
    pairs, others = (rows(cersql.match(df, pattern)) for pattern in (PAIRS, OTHERS))
    assert pairs
    assert others
    assert rows(session.table("both_patterns")) == sorted(pairs + others)
    told = cersql.metrics(session, query).collect()
    assert sum(batch.matches for batch in told) == len(pairs) + len(others)


@pytest.mark.exhaustive
def test_two_streams_over_one_view(session: SparkSession, tmp_path: Path) -> None:
    df, live = source(session, tmp_path / "rows")
    live.createOrReplaceTempView("one_source")
    patterns = {"first_of_two": PAIRS, "second_of_two": OTHERS}
    for name, pattern in patterns.items():
        session.sql(
            f"START PATTERN STREAM {name} AS FROM one_source {pattern} INTO TABLE {name}_rows "
            f"CHECKPOINT '{tmp_path / name}' TRIGGER AVAILABLE NOW"
        )
    for name, pattern in patterns.items():
        streams._streams[name].query.awaitTermination()
        session.sql(f"DROP PATTERN STREAM {name}")
        assert rows(session.table(f"{name}_rows")) == rows(cersql.match(df, pattern))


@pytest.mark.parametrize("runs", [1, pytest.param(3, marks=pytest.mark.exhaustive)])
def test_a_source_of_offsets_into_a_table(session: SparkSession, tmp_path: Path, runs: int) -> None:
    """`rate`, as Kafka, gives rows by their offsets; whatever has come, the pairs are those of whole numbers."""
    live = session.readStream.format("rate").options(rowsPerSecond=300, numPartitions=2).load()
    pattern = (
        "DEFINE A AS value % 3 = 0, B AS value % 3 = 1 PATTERN A a ; B b PARTITION BY value DIV 3 ORDER BY timestamp "
        "WITHIN 1 MINUTE WATERMARK 1 SECOND RETURN a.value AS x, b.value AS y"
    )
    found: Rows = []
    for _ in range(runs):
        writer = cersql.match(live, pattern).writeStream.option("checkpointLocation", str(tmp_path / "c"))
        query = writer.toTable(f"rated_{runs}")
        until, before = time.monotonic() + 60, len(found)
        try:
            while len(found) < before + 30 and time.monotonic() < until:
                query.awaitTermination(0.2)
                found = rows(session.table(f"rated_{runs}"))
        finally:
            query.stop()
    assert len(found) >= 30 * runs
    assert found == [(3 * i, 3 * i + 1) for i in range(len(found))]
