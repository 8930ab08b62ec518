"""Patterns over streaming DataFrames: the rows of the batch, appended as the watermark passes; and what is refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sparks
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import DataStreamWriter, StreamingQuery
from pyspark.sql.types import StructType

import cersql
from planner.errors import PlanError
from runtime.errors import CersqlError
from runtime.stream.spread import spark_hash
from runtime.stream.task import StateFacts
from spark_ext import arrivals
from spark_ext.errors import SparkError
from spark_ext.stream_worker import folder_of

PATTERN = "PATTERN A a ; B+ b ; C c PARTITION BY k ORDER BY ts WITHIN 30 SECONDS RETURN *"


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    session = sparks.taught(spark)
    session.conf.set("cersql.stream.buckets", "2")
    session.conf.set("cersql.stream.slabs", "4")
    table = session.range(400).selectExpr(
        "id", "timestamp_seconds(1000 + id DIV 2) AS ts", "IF(id % 6 = 5, NULL, CAST(id % 6 AS STRING)) AS k",
        "substr('ABCX', CAST(1 + pmod(hash(id), 4) AS INT), 1) AS type", "IF(id % 5 = 0, NULL, id) AS v",
        "CAST(id AS DECIMAL(20, 2)) AS d", "map('x', id) AS m", "to_date('2024-01-01') AS day",
    )  # fmt: skip
    sparks.view(session, "events", [tuple(row) for row in table.collect()], table.schema)
    return session


def stream(session: SparkSession, folder: Path, files: int = 0, delay: str | None = "5 seconds") -> DataFrame:
    """The table as a stream that has not ended, in disorder within five seconds; without files nothing has arrived."""
    df = session.table("events")
    if files:
        arrivals.write(df, "ts", folder, files, arrivals.Disorder(5.0, 1))
    found = arrivals.read(session, df.schema, folder)
    return found if delay is None else found.withWatermark("ts", delay)


def run(df: DataFrame, name: str, folder: Path) -> list[Any]:
    running = (
        df.writeStream.format("memory").queryName(name).option("checkpointLocation", str(folder / name))
        .trigger(availableNow=True).start()
    )  # fmt: skip
    running.awaitTermination()
    return df.sparkSession.table(name).collect()


def test_explain_says_what_a_stream_holds(session: SparkSession, tmp_path: Path) -> None:
    stream(session, tmp_path).createOrReplaceTempView("explained")

    def shown(query: str) -> str:
        return cersql.explain(session, f"FROM explained {query}", "physical").partition("stream: ")[2]

    keyed = shown(PATTERN)
    assert keyed.startswith("keys are hashed to 2 buckets of 4 slabs\n")
    assert "then are held for 30000000 microseconds" in keyed
    assert "rows are read as they arrive" in keyed
    reads = "a micro-batch reads the held rows of the keys that have new ones"
    assert f"{reads}; of a key with more than 4096 it goes on from an engine that has read them" in keyed
    chosen = shown("PATTERN A a ; B b PARTITION BY k ORDER BY ts WITHIN 4 SECONDS CONSUME BY PARTITION RETURN *")
    assert f"{reads}: an engine cannot go on from what it has read" in chosen
    text = shown("PATTERN A a ; B b WHERE a.type < b.type ORDER BY ts WITHIN 4 SECONDS RETURN *")
    assert f"{reads}: codes of text mean something among the rows at hand only" in text
    assert keyed.endswith("given out when the last event of a match arrives: none that comes later can undo it")
    waiting = shown(PATTERN + " EMIT ON WATERMARK")
    assert "rows wait for the watermark" in waiting
    assert "when the watermark has passed the last event of a match: EMIT ON WATERMARK asks for it" in waiting
    late = shown("PATTERN SEQ(A a, !B) ORDER BY ts WITHIN 4 EVENTS RETURN *")
    assert late.startswith("one bucket, in one task")
    assert "until 4 more of their key have come" in late
    assert "when the window of a match has passed" in late
    assert "LIMIT: 3 rows in all, counted in one more task" in shown(f"{PATTERN} LIMIT 3")
    assert shown("PATTERN A a ; B b ORDER BY ts RETURN *").startswith("refused, [STREAM_UNBOUNDED] On a stream ")
    with sparks.settings(session, cersql__stream__maxRowsPerKey="500"):
        limited = shown("PATTERN A a ; B b PARTITION BY k ORDER BY ts RETURN *")
    assert "then are held for ever; a key that holds more than 500 is an error" in limited
    started = shown("PATTERN START(A a ; B b) PARTITION BY k ORDER BY ts WITHIN 30 SECONDS RETURN *")
    assert "for 30000000 microseconds, and the first row of each key for ever, since START asks for it" in started
    assert "stream: " not in cersql.explain(session, f"FROM events {PATTERN}")
    plan = session.sql(f"EXPLAIN FROM explained {PATTERN}").first()[0]
    assert "keys are hashed to 2 buckets" in plan
    assert plan.endswith("Spark plans a stream when it is started (writeStream, or START PATTERN STREAM).")


QUERIES = {
    "all columns": PATTERN,
    "no keys": (
        "PATTERN A a ; B b ; C c ORDER BY ts WITHIN < 4 SECONDS RETURN a.id + b.v AS x, c.m AS m, c.d AS d "
        "HAVING b.v > 20"
    ),
    "absence after": "PATTERN SEQ(A a, !B, !C) PARTITION BY k ORDER BY ts, id WITHIN 10 SECONDS RETURN a.id AS a",
    "timeouts, events": "PATTERN A a : B b ORDER BY ts WITHIN 3 EVENTS RETURN a.id AS a, b.id AS b",
    "timeouts": (
        "PATTERN A a ; B b PARTITION BY k ORDER BY ts WITHIN 20 SECONDS CONSUME BY PARTITION RETURN * WITH TIMEOUTS"
    ),
    "linked": "PATTERN SEQ(A a, !B b) ORDER BY ts, id WITHIN 9 SECONDS WHERE a.id + 2 = b.v RETURN a.id AS a",
    "START": "PATTERN START(ANY x ; B b) PARTITION BY id DIV 20 ORDER BY ts, id WITHIN 9 SECONDS RETURN b.id AS b",
    "compared": (
        "PATTERN A a ; B b ORDER BY ts WITHIN 9 SECONDS WHERE a.k = b.k AND a.id + 3 < b.id RETURN a.id AS a, b.id AS b"
    ),
}  # fmt: skip


# What others do, too: an absence after the match is in "linked", no keys are in what is unbounded, and test_bucket.py
# has windows of events, timeouts and comparisons.
MORE = {"START", "linked", "absence after", "timeouts, events", "no keys", "timeouts", "compared"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.exhaustive] if name in MORE else []) for name in QUERIES]
)
def test_a_replay_is_the_batch(session: SparkSession, name: str) -> None:
    found = cersql.replay(session, "events", QUERIES[name], disorder=5.0, batches=2, seed=len(name))
    assert found.same, str(found)
    assert found.matches > 0


def test_sql_over_a_streaming_view(session: SparkSession, tmp_path: Path) -> None:
    """Through the parser hook: a pattern view over a streaming view, read by SQL with a WATERMARK of its own."""
    stream(session, tmp_path / "rows", files=1, delay=None).createOrReplaceTempView("live")
    session.sql(f"CREATE OR REPLACE TEMPORARY PATTERN VIEW found AS FROM live {PATTERN} WATERMARK 5 SECONDS")
    df = session.sql("SELECT k, a.id AS a, size(b) AS n FROM found WHERE a.v > 10")
    assert df.isStreaming
    got = run(df, "through_sql", tmp_path)
    batch = cersql.match(session.table("events"), PATTERN).where("a.v > 10")
    want = batch.selectExpr("k", "a.id AS a", "size(b) AS n").collect()
    assert len(want) > 10
    assert sorted(map(repr, got)) == sorted(map(repr, want))


@pytest.mark.exhaustive
def test_a_key_with_a_collation(session: SparkSession, tmp_path: Path) -> None:
    rows = stream(session, tmp_path / "rows", files=1).selectExpr(
        "*", "IF(id % 2 = 0, 'x', 'X') COLLATE UTF8_LCASE AS c"
    )
    pattern = "PATTERN A a ; B b ORDER BY ts WITHIN 5 SECONDS RETURN a.id AS a, b.id AS b"
    got = run(cersql.match(rows, f"{pattern} PARTITION BY c"), "collated", tmp_path)
    want = run(cersql.match(rows, pattern), "alone", tmp_path)
    assert len(want) > 10
    assert sorted(map(tuple, got)) == sorted(map(tuple, want))


@pytest.mark.parametrize("pattern", [PATTERN, QUERIES["linked"]], ids=["keys", "linked"])
def test_what_is_irrelevant_is_dropped_above_the_watermark(session: SparkSession, tmp_path: Path, pattern: str) -> None:
    df = cersql.match(stream(session, tmp_path / "rows"), pattern)
    utils: Any = getattr(session._jvm, "org.apache.spark.sql.api.python.PythonSQLUtils")  # type: ignore[union-attr]
    lines = utils.explainString(df._jdf.queryExecution(), "simple").splitlines()
    above, at = (next(i for i, line in enumerate(lines) if word in line) for word in ("Filter", "EventTimeWatermark"))
    assert above < at
    assert not any("Filter" in line for line in lines[at:])


def test_what_is_counted_in_the_metrics(session: SparkSession, tmp_path: Path) -> None:
    """Exactly at the watermark is late; a millisecond after it is not. What HAVING leaves out is no match."""
    schema = "ts TIMESTAMP, type STRING, id INT"

    def put(number: int, *rows: tuple[str, int]) -> None:
        text = ", ".join(f"(TIMESTAMP '2024-01-01 00:00:{at}', 'A', {id})" for at, id in rows)
        df = session.sql(f"SELECT * FROM VALUES {text} AS t(ts, type, id)").coalesce(1)
        arrivals.write(df, "ts", tmp_path / f"rows{number}", 1, arrivals.Disorder())

    source = arrivals.read(session, StructType.fromDDL(schema), tmp_path / "all").withWatermark("ts", "10 seconds")
    df = cersql.match(source, "PATTERN A a ORDER BY ts WITHIN 1 SECOND RETURN a.id AS id HAVING a.id * 1 > 1")
    running = (
        df.writeStream.format("memory").queryName("late").option("checkpointLocation", str(tmp_path / "c")).start()
    )
    try:
        for number, rows in enumerate(([("30", 1)], [("20", 2), ("20.001", 3)], [("59", 4)])):
            put(number, *rows)
            for file in (tmp_path / f"rows{number}").glob("part-*.parquet"):
                file.rename(tmp_path / "all" / f"part-{number}.parquet")
            running.processAllAvailable()
        assert sorted(row.id for row in session.table("late").collect()) == [3, 4]
        told = [own.asDict() for p in running.recentProgress for own in (p.observedMetrics or {}).values()]
        assert [sum(own.get(name, 0) for own in told) for name in ("late", "found", "matches")] == [1, 3, 2]
        last = cersql.metrics(session, running).collect()[-1]
        assert (last.matches, last.late, last.waiting_rows) == (0, 0, 0)
        assert last.held_rows >= 1  # id 4
        assert (str(last.watermark), last.lag_seconds) == ("2024-01-01 00:00:49", 10.0)
    finally:
        running.stop()


REFUSED: dict[str, tuple[Callable[[DataFrame], DataFrame], str, type[CersqlError], str, str]] = {
    "no watermark": (lambda df: df, PATTERN, SparkError, "STREAM_WATERMARK", "WATERMARK 10 MINUTES"),
    "two": (
        lambda df: df.withWatermark("ts", "1 minute"), f"{PATTERN} WATERMARK 1 HOUR", SparkError, "WATERMARK_TWICE",
        "60000 ms",
    ),
    "order": (
        lambda df: df.withWatermark("ts", "1 minute"), "PATTERN A a ; B b ORDER BY id WITHIN 5 RETURN *", SparkError,
        "STREAM_ORDER", "ORDER BY id is bigint",
    ),
    "unbounded": (
        lambda df: df.withWatermark("ts", "1 minute"), "PATTERN A a ; B b ORDER BY ts RETURN *", PlanError,
        "STREAM_UNBOUNDED", "after a, it can wait for ever",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_stream_cannot_do(session: SparkSession, tmp_path: Path, name: str) -> None:
    change, query, kind, condition, says = REFUSED[name]
    df = change(arrivals.read(session, session.table("events").schema, tmp_path / "rows"))
    with pytest.raises(kind) as caught:
        cersql.match(df, query)
    assert caught.value.condition == condition
    assert says in str(caught.value)
    assert caught.value.line == 1


@pytest.mark.exhaustive
def test_a_key_with_too_many_rows_stops_the_stream(session: SparkSession, tmp_path: Path) -> None:
    text = "PATTERN A a ; B b PARTITION BY k, id % 2 AS odd ORDER BY ts RETURN a.id AS a"
    with sparks.settings(session, cersql__stream__maxRowsPerKey=4):
        df = cersql.match(stream(session, tmp_path / "rows", files=1), text)
    with pytest.raises(StreamingQueryException) as caught:
        run(df, "too_many", tmp_path)
    assert re.search(r"\[STREAM_ROWS\] The key k = \S+, odd = [01] holds \d+ rows on the stream", str(caught.value))
    for wrong in ("0", "many"):
        with sparks.settings(session, cersql__stream__maxRowsPerKey=wrong), pytest.raises(SparkError) as refused:
            cersql.match(stream(session, tmp_path / "rows"), text)
        assert refused.value.condition == "SETTING"


@pytest.mark.exhaustive
def test_unbounded_can_be_allowed(session: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """And a replay has no more tasks than buckets, whatever the session's number of shuffle partitions."""
    text = "PATTERN A a ; B b : C c ORDER BY ts RETURN a.id + b.v AS x, c.m AS m, c.d AS d HAVING b.v > 20"
    start, tasks = DataStreamWriter.start, []

    def noted(writer: DataStreamWriter) -> StreamingQuery:
        tasks.append(session.conf.get("spark.sql.shuffle.partitions"))
        return start(writer)

    monkeypatch.setattr(DataStreamWriter, "start", noted)
    many = {"spark.sql.shuffle.partitions": "200", "cersql.stream.buckets": "3"}
    with sparks.settings(session, cersql__stream__allowUnbounded="true", **many):
        found = cersql.replay(session, "events", text, batches=2)
        assert session.conf.get("spark.sql.shuffle.partitions") == "200"
    assert tasks == ["3"]
    assert found.same, str(found)
    assert found.matches > 0


def test_buckets_are_called_by_the_hashes_of_spark(session: SparkSession) -> None:
    """Where these are others, tasks get no equal shares of the buckets."""
    hashes = session.range(0, 1000, 1, 1).selectExpr("hash(CAST(id AS INT)) AS h").toArrow().column("h")
    assert hashes.to_pylist() == spark_hash(np.arange(1000)).tolist()


def test_empty_tasks_are_told(session: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    df = stream(session, tmp_path / "rows")
    for tasks, told in ((6, False), (200, True)):
        caplog.clear()
        with sparks.settings(session, cersql__stream__buckets=3, spark__sql__shuffle__partitions=tasks):
            cersql.match(df, PATTERN)
        assert ("SET spark.sql.shuffle.partitions = 3 before the stream starts" in caplog.text) == told


def test_a_stream_and_a_table_do_not_mix(session: SparkSession, tmp_path: Path) -> None:
    stream(session, tmp_path / "rows").createOrReplaceTempView("live_too")
    with pytest.raises(SparkError) as caught:
        cersql.sql(session, "FROM live_too AS A, events AS B PATTERN A ; B ORDER BY ts WITHIN 1 SECOND RETURN A.id")
    assert caught.value.condition == "STREAM_MIXED"
    text = "FROM (SELECT A.* FROM live_too AS A JOIN events AS B ON A.id = B.id) AS A, in short FROM live_too AS A JOIN"
    assert text in str(caught.value)


LOOKUPS = {
    "a subquery": "FROM (SELECT s.*, t.top FROM {0} AS s JOIN tops AS t ON s.k = t.k) AS s",
    "a join": "FROM {0} AS s JOIN tops USING (k)",
    "an outer join": "FROM {0} s LEFT JOIN (SELECT k AS key, top FROM tops) AS t ON s.k = t.key TYPE type",
}


@pytest.mark.parametrize("name", LOOKUPS)
def test_a_table_is_looked_up_for_each_row_of_a_stream(session: SparkSession, tmp_path: Path, name: str) -> None:
    """The watermark is the stream's, and the rows are those over a table; the hint of STREAM_MIXED shows the way."""
    stream(session, tmp_path / "rows", files=2).createOrReplaceTempView("live_looked")
    sparks.view(session, "tops", [("0", 150), ("1", 300), ("2", 0)], "k STRING, top BIGINT")
    text = f"{LOOKUPS[name]} PATTERN A a ; B b WHERE a.v <= a.top PARTITION BY k ORDER BY ts WITHIN 30 SECONDS "
    text += "RETURN k, a.id AS a, b.id AS b, a.top AS top"
    live = cersql.sql(session, text.format("live_looked"))
    assert live.isStreaming
    if name != "a join":
        return
    last = session.sql("SELECT max(ts) - INTERVAL 5 SECONDS AS t FROM events").first().t
    until = f"(SELECT * FROM events WHERE ts <= TIMESTAMP '{last}')"
    want = cersql.sql(session, text.format(until)).collect()
    assert len(want) > 10
    assert sorted(map(repr, run(live, "looked_up", tmp_path))) == sorted(map(repr, want))


@pytest.mark.parametrize(
    ("tables", "hint"),
    [
        (
            ("ts TIMESTAMP, k STRING, top BIGINT, b INT, c INT, e INT", "tops_too AS T"),
            "FROM (SELECT s.*, T.top, T.b, T.c, … FROM live_too AS s JOIN tops_too AS T ON s.k = T.k) AS s, in short "
            "FROM live_too AS s JOIN tops_too AS T USING (k). A table whose rows are events",
        ),
        (
            ("ts TIMESTAMP, `odd name` BIGINT", "(SELECT * FROM tops_too LIMIT 1) AS `My T`"),
            "FROM (SELECT s.*, `My T`.`odd name` FROM live_too AS s JOIN (SELECT * FROM tops_too LIMIT 1) AS `My T` "
            "ON …) AS s. A table",
        ),
    ],
)
def test_how_to_look_up_a_table(session: SparkSession, tmp_path: Path, tables: tuple[str, str], hint: str) -> None:
    stream(session, tmp_path / "rows").createOrReplaceTempView("live_too")
    sparks.view(session, "tops_too", [], tables[0])
    with pytest.raises(SparkError) as caught:
        cersql.sql(session, f"FROM live_too AS s, {tables[1]} PATTERN s ORDER BY ts WITHIN 1 SECOND RETURN s.id")
    assert hint in " ".join(str(caught.value).split())


@pytest.mark.exhaustive
def test_two_streams_in_one_pattern(session: SparkSession, tmp_path: Path) -> None:
    """Each with a watermark of its own; the slower one decides."""
    for name, delay in (("A", "5 seconds"), ("B", "40 seconds")):
        df = session.table("events").where(f"type = '{name}'")
        arrivals.write(df, "ts", tmp_path / name, 2 if name == "A" else 3, arrivals.Disorder(5.0, 1), ended=True)
        live = arrivals.read(session, df.schema, tmp_path / name).withWatermark("ts", delay)
        live.createOrReplaceTempView(f"live_{name}")
        df.createOrReplaceTempView(f"table_{name}")
    text = (
        "FROM {0}_A AS A, {0}_B AS B PATTERN A a ; B b PARTITION BY k ORDER BY ts WITHIN 9 SECONDS "
        "RETURN a.id AS a, b.id AS b"
    )
    # The last rows, of NULLs at the end of time, meet as well.
    got = [row for row in run(cersql.sql(session, text.format("live")), "two", tmp_path) if row.a is not None]
    want = cersql.sql(session, text.format("table")).collect()
    assert len(want) > 10
    assert sorted(map(repr, got)) == sorted(map(repr, want))


def test_settings_are_checked(session: SparkSession, tmp_path: Path) -> None:
    rows = stream(session, tmp_path / "rows")
    for setting, wrong in (("buckets", "none"), ("slabs", 1 << 17), ("copies", "no"), ("allowUnbounded", "2")):
        own = {f"cersql__stream__{setting}": wrong}
        with sparks.settings(session, **own), pytest.raises(SparkError) as caught:
            cersql.match(rows, PATTERN)
        assert caught.value.condition == "SETTING", setting


def test_copies_lie_where_spark_removes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", "/a,/b")
    assert folder_of(StateFacts()) == "/a"
    assert folder_of(StateFacts(copies=False)) is None
    monkeypatch.delenv("SPARK_LOCAL_DIRS")
    assert folder_of(StateFacts()) is None
