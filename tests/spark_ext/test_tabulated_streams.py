"""Conditions on two events that Spark decides, on streams: the rows of the batch, wherever such a condition stands."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sparks
from pyspark.sql import DataFrame, SparkSession

import cersql
from planner.errors import PlanError
from spark_ext import arrivals, streams
from spark_ext.errors import SparkError

START = datetime(2025, 1, 1, tzinfo=UTC)
SCHEMA = "id INT, type STRING, k STRING, s STRING, ts TIMESTAMP"
NEAR = "levenshtein(a.s, b.s) <= 1"
RETURNS = "RETURN a.id AS a, b.id AS b"
END = "ORDER BY ts, id WITHIN 6 SECONDS"


def words(seed: int, n: int = 70) -> list[tuple[Any, ...]]:
    """Rows of few words, some alike, some NULL, several at one time."""
    chance = random.Random(seed)
    return [
        (
            i, chance.choice("AABBC"), chance.choice(["x", "y", None]),
            None if chance.random() < 0.1 else "".join(chance.choices("ab", k=chance.randrange(1, 4))),
            START + timedelta(seconds=i // 2),
        )
        for i in range(n)
    ]  # fmt: skip


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    session = sparks.taught(spark)
    session.conf.set("cersql.stream.buckets", "2")
    session.conf.set("cersql.stream.slabs", "4")
    session.udf.register("py_alike", lambda a, b: a[0] == b[0], "boolean")
    session.sql("CREATE OR REPLACE TEMPORARY FUNCTION sql_near(a STRING, b STRING) RETURN levenshtein(a, b) <= 1")
    sparks.view(session, "words", words(1), SCHEMA)
    sparks.view(session, "known", [row for row in words(1) if row[3]], SCHEMA)
    return session


def replayed(session: SparkSession, table: str | DataFrame, query: str) -> cersql.Replay:
    found = cersql.replay(session, table, query, disorder=3.0, batches=2)
    assert found.same, str(found)
    return found


GREEDY = f"{END} SEMANTICS SKIP TILL NEXT MATCH"
QUERIES = {
    "a UDF and a key": f"PATTERN A a ; B b WHERE py_alike(a.s, b.s) AND a.k = b.k {GREEDY} {RETURNS}",
    "two conditions": f"PATTERN A a ; B b WHERE sql_near(a.s, b.s) OR b.s RLIKE concat('^', a.s) {GREEDY} {RETURNS}",
    "neighbours": "PATTERN A{2,3} x WHERE levenshtein(x[i-1].s, x[i].s) <= 1 PARTITION BY k ORDER BY ts, id "
    "WITHIN 9 SECONDS RETURN x.id AS ids",
    "a FILTER": f"PATTERN ((A a ; B b) FILTER {NEAR}) ; C c {END} RETURN a.id AS a, b.id AS b, c.id AS c",
    "events": f"PATTERN ((A a ; B b) FILTER {NEAR}) ; C c PARTITION BY k ORDER BY ts, id WITHIN 5 EVENTS {RETURNS}",
    "absence between": f"PATTERN SEQ(A a, !C x, B b) WHERE levenshtein(x.s, a.s) <= 1 {END} {RETURNS}",
    "absence after": f"PATTERN SEQ(A a, !B b) WHERE {NEAR} PARTITION BY k {END} RETURN a.id AS a",
    "absence before": f"PATTERN SEQ(!B b, A a) WHERE {NEAR} {END} RETURN a.id AS a",
    "timeouts": f"PATTERN A a ; B b WHERE {NEAR} PARTITION BY k {GREEDY} RETURN a.id AS a, match_status WITH TIMEOUTS",
    "consumed": f"PATTERN A a ; B b WHERE {NEAR} PARTITION BY k {END} CONSUME BY PARTITION {RETURNS}",
    "consumed by any": f"PATTERN A a ; B b WHERE {NEAR} PARTITION BY k {END} CONSUME BY ANY {RETURNS}",
    "consumed behind an absence": f"PATTERN SEQ(!C x, A a, B+ b) WHERE {NEAR} AND soundex(x.s) = soundex(a.s) {END} "
    "CONSUME BY PARTITION RETURN a.id AS a, b.id AS b",
    "skipped": f"PATTERN A a ; B+ b WHERE {NEAR} {END} AFTER MATCH SKIP PAST LAST ROW RETURN a.id AS a, b.id AS b",
    "skipped by a strategy": f"PATTERN A a ; B b WHERE {NEAR} {END} SEMANTICS LAST AFTER MATCH SKIP TO NEXT ROW "
    "RETURN a.id AS a, b.id AS b",
    "consumed, with timeouts": f"PATTERN A a ; B b WHERE {NEAR} PARTITION BY k {GREEDY} CONSUME BY PARTITION "
    "RETURN a.id AS a, match_status WITH TIMEOUTS",
}  # fmt: skip


@pytest.mark.exhaustive  # two streams and a restart are not
@pytest.mark.parametrize("name", QUERIES)
def test_a_replay_is_the_batch(session: SparkSession, name: str) -> None:
    found = replayed(session, "known" if "UDF" in name else "words", QUERIES[name])
    assert found.matches > 3


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(6))
def test_random_rows_and_clauses(session: SparkSession, seed: int) -> None:
    chance = random.Random(seed)
    pattern = chance.choice(["A a ; B b", "A a ; B+ b", "ALL(A a, B b)", "SEQ(A a, !C c, B b)", "(A a ; B b) ; C"])
    choices = ["", "SEMANTICS NXT", "SEMANTICS MAX", "SEMANTICS LAST AFTER MATCH SKIP PAST LAST ROW"]
    clause = chance.choice([*choices, "CONSUME BY PARTITION", "AFTER MATCH SKIP TO NEXT ROW"])
    key = chance.choice(["PARTITION BY k", ""])
    query = f"PATTERN ({pattern}) AS m WHERE ({NEAR} OR length(concat(a.s, b.s)) = 5) {key} {END} {clause} RETURN m.id"
    replayed(session, sparks.local(session, words(seed, 50), SCHEMA), query)


@pytest.mark.exhaustive
def test_values_of_many_types(session: SparkSession) -> None:
    rows = sparks.local(session, words(2), SCHEMA).selectExpr(
        "id", "type", "ts", "CAST(ts AS TIMESTAMP_NTZ) AS at", "array(s, k) AS tags", "map('x', s) AS m",
        "id + 0.5D AS d", "CAST(id AS DECIMAL(20, 3)) AS n", "named_struct('s', s, 'at', ts) AS o",
        "encode(s, 'UTF-8') AS raw",
    )  # fmt: skip
    text = (
        "arrays_overlap(a.tags, b.tags) AND a.m.x <> coalesce(b.m.x, '') AND hypot(a.d, b.d) > 9 AND "
        "pow(a.n, 2) < b.n * 99 AND a.o <> struct(b.o.s, b.o.at) AND concat(a.raw, b.raw) > b.raw "
        "AND date_format(a.at, 'ss') <> date_format(b.at, 'mm')"
    )
    assert replayed(session, rows, f"PATTERN A a ; B b WHERE {text} {GREEDY} {RETURNS}").matches > 3


@pytest.mark.exhaustive
def test_two_streams_and_a_restart(session: SparkSession, tmp_path: Path) -> None:
    """The state of both operators is in the checkpoint; the two sides of the union read one source."""
    tables = {name: session.table("words").where(f"type = '{name}'") for name in "AB"}
    text = (
        f"FROM {{0}}_A AS A, {{0}}_B AS B PATTERN A a ; B b WHERE {NEAR} PARTITION BY k {GREEDY} "
        "RETURN a.id AS a, b.id AS b"
    )
    for name, table in tables.items():
        arrivals.write(table, "ts", tmp_path / f"all_{name}", 2, arrivals.Disorder(3.0, 1), ended=True)
        stream = arrivals.read(session, table.schema, tmp_path / name).withWatermark("ts", "3 seconds")
        stream.createOrReplaceTempView(f"live_{name}")
        table.createOrReplaceTempView(f"table_{name}")
    n_sources = set()
    for run in range(2):
        for name in "AB":
            files = sorted((tmp_path / f"all_{name}").glob("part-*.parquet"), key=lambda file: file.stat().st_mtime)
            for file in files[:1] if run == 0 else files:
                file.rename(tmp_path / name / file.name)
        writer = cersql.sql(session, text.format("live")).writeStream.format("parquet").trigger(availableNow=True)
        running = writer.option("checkpointLocation", str(tmp_path / "c")).start(str(tmp_path / "out"))
        running.awaitTermination()
        n_sources |= {len(progress.sources) for progress in running.recentProgress}
    found = session.read.parquet(str(tmp_path / "out")).collect()
    want = cersql.sql(session, text.format("table")).collect()
    assert len(want) > 3
    assert sorted(map(repr, found)) == sorted(map(repr, want))
    assert n_sources == {2}


def test_what_can_be_no_event_is_dropped_above_the_watermark(session: SparkSession, tmp_path: Path) -> None:
    """Else the rows of pairs would hold the watermark back."""
    live = arrivals.read(session, session.table("words").schema, tmp_path / "rows").withWatermark("ts", "3 seconds")
    df = cersql.match(live, f"PATTERN A a ; B b WHERE {NEAR} {GREEDY} {RETURNS}")
    utils: Any = getattr(session._jvm, "org.apache.spark.sql.api.python.PythonSQLUtils")  # type: ignore[union-attr]
    lines = utils.explainString(df._jdf.queryExecution(), "simple").splitlines()
    marks, reads = (
        [i for i, line in enumerate(lines) if word in line] for word in ("EventTimeWatermark", "StreamingRelation")
    )
    assert len(marks) == len(reads) == 2
    assert streams._reads(df) == 2
    assert not any("Filter" in line for at, end in zip(marks, reads, strict=True) for line in lines[at:end])


def test_what_a_stream_must_know(session: SparkSession, tmp_path: Path) -> None:
    live = arrivals.read(session, session.table("words").schema, tmp_path / "rows").withWatermark("ts", "3 seconds")
    with pytest.raises(PlanError) as unbounded:
        cersql.match(live, "PATTERN B first : A:+ x WHERE hash(x[i-1].s, x[i].s) > 0 ORDER BY ts RETURN x.id")
    assert unbounded.value.condition == "STREAM_UNBOUNDED"
    assert "pair by pair" in str(unbounded.value)
    assert "WITHIN 1 HOUR" in str(unbounded.value)
    unsteady = live.selectExpr("*", "rand() AS r")
    with pytest.raises(SparkError) as twice:
        cersql.match(unsteady, f"PATTERN A a ; B b WHERE pow(a.r, b.r) > 0.5 {GREEDY} {RETURNS}")
    assert twice.value.condition == "UNSTEADY_SOURCE"


def test_explain_says_what_it_costs(session: SparkSession, tmp_path: Path) -> None:
    live = arrivals.read(session, session.table("words").schema, tmp_path / "rows").withWatermark("ts", "3 seconds")
    live.createOrReplaceTempView("live_words")
    told = cersql.explain(session, f"FROM live_words PATTERN A a ; B b WHERE {NEAR} {GREEDY} {RETURNS}", "physical")
    assert f"  pairs of {NEAR} meet in a stateful operator of their own" in told.partition("stream: ")[2]
