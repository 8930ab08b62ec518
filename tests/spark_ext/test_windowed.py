"""RETURN … GROUP BY on streams: the rows of the batch, each when the watermark has passed its window."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import sparks
from pyspark.sql import DataFrame, SparkSession

import cersql
from cersql.language.parse import parse
from cersql.statements.planned import plan_tree
from runtime.errors import CersqlError
from spark_ext import arrivals
from spark_ext.checkpoints import Standing
from spark_ext.streaming import standings
from spark_ext.windowed import SummingWindows
from spark_ext.worker import gathered_groups


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> Iterator[SparkSession]:
    found = sparks.taught(spark)
    table = found.range(240).selectExpr(
        "id", "timestamp_seconds(1000 + id DIV 2) AS ts", "IF(id % 6 = 5, NULL, CAST(id % 3 AS STRING)) AS k",
        "substr('ABCX', CAST(1 + pmod(hash(id), 4) AS INT), 1) AS type", "IF(id % 5 = 0, NULL, id) AS v",
        "CAST(id AS DECIMAL(20, 2)) / 8 AS d", "CAST(id % 4 AS DOUBLE) / 2 * IF(id % 8 < 4, -1, 1) AS f",
        "IF(id % 7 = 3, double('NaN'), IF(id % 2 = 0, 0.0D, -0.0D)) AS zero", "id % 9 AS m", "id % 4 AS o",
        "timestamp_seconds(1000 + id DIV 2) + INTERVAL 1 HOUR AS later",
    )  # fmt: skip
    sparks.view(found, "events", [tuple(row) for row in table.collect()], table.schema)
    with sparks.settings(found, cersql__stream__buckets=2, spark__sql__shuffle__partitions=2):
        yield found


SUMS = (
    "COUNT(*) AS n, COUNT(b.v) AS c, SUM(b.v) AS s, SUM(b.d) AS sd, SUM(b.f) AS sf, AVG(b.d) AS ad, AVG(b.f) AS af, "
    "MIN(b.d) AS l, MAX(b.f) AS g"
)
QUERIES = {
    "a key that GROUP BY does not name": (
        "PATTERN A a ; B+ b PARTITION BY k ORDER BY ts, id WITHIN 9 SECONDS SLIDE 4 SECONDS "
        f"RETURN window, a.o, {SUMS} GROUP BY a.o HAVING n > 1"
    ),
    "no window but that of GROUP BY": (
        f"PATTERN A a ; B+ b PARTITION BY k ORDER BY ts, id RETURN k, window.end AS e, {SUMS} "
        "GROUP BY k, WINDOW 8 SECONDS"
    ),
    "matches are listed": (
        "PATTERN A a ; B+ b PARTITION BY k ORDER BY ts, id WITHIN 4 SECONDS RETURN window.start AS w, COUNT(*) AS n, "
        "COUNT(DISTINCT b.v) AS d, array_sort(COLLECT_SET(b.m)) AS ms, SUM(b.v * a.v) AS s, "
        "round(STDDEV(b.d), 9) AS sd GROUP BY WINDOW 9 SECONDS SLIDE 3 SECONDS HAVING COUNT(*) > 2"
    ),
    "a window of events, and one of the group": (
        f"PATTERN A a ; B b ORDER BY ts, id WITHIN 4 EVENTS RETURN {SUMS}, window "
        "GROUP BY WINDOW 7 SECONDS SLIDE 3 SECONDS"
    ),
    "windows with gaps, in one of which the stream ends": (
        f"PATTERN B+ b ORDER BY ts, id WITHIN 3 SECONDS SLIDE 17 SECONDS WATERMARK 5 SECONDS RETURN window, {SUMS}"
    ),
    "an absence that ends with the window": (
        f"PATTERN SEQ(A a, B b, !C) PARTITION BY k ORDER BY ts, id WITHIN 6 SECONDS SLIDE 3 SECONDS "
        f"RETURN k, window.start AS w, {SUMS} GROUP BY ALL"
    ),
    "START": (
        "PATTERN START(A a ; B b) PARTITION BY k ORDER BY ts, id WITHIN 6 SECONDS SLIDE 6 SECONDS "
        f"RETURN window, {SUMS}"
    ),
    "zeros and NaNs": (
        "PATTERN A a ; B b ORDER BY ts, id WITHIN 6 SECONDS SLIDE 6 SECONDS RETURN window, b.zero, COUNT(*) AS n "
        "GROUP BY b.zero"
    ),
    "zeros and NaNs, listed": (
        "PATTERN A a ; B b ORDER BY ts, id WITHIN 6 SECONDS SLIDE 6 SECONDS RETURN window, b.zero, "
        "COUNT(DISTINCT b.v) AS n GROUP BY b.zero"
    ),
    "an equality of all events": (
        "PATTERN A a ; B+ b WHERE [m] ORDER BY ts, id WITHIN 20 SECONDS SLIDE 20 SECONDS "
        f"RETURN m, window, {SUMS} GROUP BY m"
    ),
    "an equality by different attributes": (
        f"PATTERN A a ; B b WHERE a.m = b.o ORDER BY ts, id WITHIN 20 SECONDS SLIDE 20 SECONDS RETURN window, {SUMS}"
    ),
    "compared": (
        f"PATTERN A a ; B+ b WHERE b.d > a.d + 1 PARTITION BY k ORDER BY ts, id WITHIN 9 SECONDS SLIDE 9 SECONDS "
        f"RETURN match_start AS t, a.f * 2 AS f, {SUMS} GROUP BY ALL"
    ),
    "several atoms": (
        "PATTERN ALL(A a, B b) WHERE a.m = b.m ORDER BY ts, id WITHIN 20 SECONDS SLIDE 10 SECONDS "
        f"RETURN window, {SUMS}"
    ),
    "a strategy": (
        f"PATTERN A a ; B+ b ORDER BY ts, id SEMANTICS MAX WITHIN 5 SECONDS SLIDE 2 SECONDS RETURN window, {SUMS}"
    ),
    "consumption of what WHERE asks as a whole": (
        "PATTERN A a ; B+ b WHERE SUM(b.v) > 100 ORDER BY ts, id CONSUME BY PARTITION WITHIN 5 SECONDS "
        f"SLIDE 2 SECONDS RETURN window, {SUMS}"
    ),
    "skipping": (
        f"PATTERN A a ; B+ b ORDER BY ts, id AFTER MATCH SKIP PAST LAST ROW WITHIN 5 SECONDS SLIDE 2 SECONDS "
        f"RETURN window, {SUMS}"
    ),
    "asked pair by pair": (
        "PATTERN A a ; B b WHERE levenshtein(CAST(a.m AS STRING), CAST(b.o AS STRING)) = 0 PARTITION BY k "
        f"ORDER BY ts, id SEMANTICS SKIP TILL NEXT MATCH WITHIN 9 SECONDS SLIDE 4 SECONDS RETURN window, {SUMS}"
    ),
    "AGG": (
        "PATTERN AGG(y : n = COUNT(b) ; A a ; B+ b) FILTER y.n > 1 ORDER BY ts, id WITHIN 5 SECONDS SLIDE 5 SECONDS "
        "RETURN window, COUNT(*) AS n, SUM(y.n) AS s"
    ),
}  # fmt: skip


QUICK = {"a key that GROUP BY does not name"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in QUICK else [pytest.mark.exhaustive]) for name in QUERIES]
)
def test_a_replay_is_the_batch(session: SparkSession, name: str) -> None:
    found = cersql.replay(session, "events", QUERIES[name], disorder=5.0, batches=2, seed=len(name))
    assert found.same, str(found)
    assert found.matches > 3


def flowing(session: SparkSession, folder: Path) -> DataFrame:
    return arrivals.read(session, session.table("events").schema, folder).withWatermark("ts", "5 seconds")


@pytest.mark.exhaustive
def test_a_stream_goes_on_from_its_checkpoint(session: SparkSession, tmp_path: Path) -> None:
    """In two runs, of which the first ends within windows; with a HAVING in the second."""
    events, rows = session.table("events"), tmp_path / "rows"
    parts = [events.where("id < 130"), events.where("id >= 130")]
    text = "PATTERN A a ; B+ b PARTITION BY k ORDER BY ts, id WITHIN 9 SECONDS SLIDE 4 SECONDS RETURN k, window.start, "
    asked = [f"{text} COUNT(*) AS n, SUM(b.v) AS s GROUP BY k{more}" for more in ("", " HAVING n > 0")]
    got = []
    for number, (part, query) in enumerate(zip(parts, asked, strict=True)):
        arrivals.write(part, "ts", tmp_path / f"part{number}", 2, arrivals.Disorder(4.0, 1), ended=number == 1)
        rows.mkdir(exist_ok=True)
        for file in sorted((tmp_path / f"part{number}").glob("part-*.parquet")):
            file.rename(rows / f"{number}-{file.name}")
        df = cersql.match(flowing(session, rows), query)
        running = (
            df.writeStream.format("parquet").option("path", str(tmp_path / "out")).outputMode("append")
            .option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
        )  # fmt: skip
        running.awaitTermination()
        got.append([tuple(row) for row in session.read.parquet(str(tmp_path / "out")).collect()])
    wanted = [tuple(row) for row in cersql.match(events, asked[0]).collect()]
    assert 3 < len(got[0]) < len(got[1])
    assert sorted(map(repr, got[1])) == sorted(map(repr, wanted))


def test_what_a_checkpoint_can_go_on_with(session: SparkSession, tmp_path: Path) -> None:
    """Other aggregates, HAVING and names; other windows, and other keys by which rows go to buckets, are another
    state; and a column of the state is what it is of, whatever its number among the aggregates."""

    def standing(asked: str) -> Standing:
        text = f"PATTERN A a ; B+ b PARTITION BY k ORDER BY ts {asked}"
        (found,) = standings(cersql.match(flowing(session, tmp_path), text))
        return found

    def meaning(asked: str) -> str:
        return standing(asked).meaning

    first = meaning("WITHIN 9 SECONDS SLIDE 4 SECONDS RETURN k, COUNT(*) AS n GROUP BY k")
    assert first == meaning(
        "WITHIN 9 SECONDS SLIDE 4 SECONDS RETURN k, a.o, SUM(b.v) AS s GROUP BY k, a.o HAVING s > 3"
    )
    assert first != meaning("WITHIN 9 SECONDS SLIDE 4 SECONDS RETURN COUNT(*) AS n")
    assert first != meaning("WITHIN 9 SECONDS SLIDE 3 SECONDS RETURN k, COUNT(*) AS n GROUP BY k")
    assert first != meaning("WITHIN 9 SECONDS RETURN k, b.v AS v")
    zones = [
        standing(f"RETURN {asked}, COUNT(*) GROUP BY WINDOW 9 SECONDS, {asked}").zone
        for asked in ("a.later", "a.v + 1", "hour(a.later)", "'at ' || a.later")
    ]
    assert [bool(zone) for zone in zones] == [False, False, True, True]
    columns = []
    for sums in ("SUM(b.v * 2) AS s", "SUM(b.v * 3) AS s", "MAX(b.v) AS l, SUM(b.v * 2) AS t"):
        asked = f"PATTERN A a ; B+ b ORDER BY ts WITHIN 9 SECONDS SLIDE 4 SECONDS RETURN {sums}"
        plan = plan_tree(session, parse(asked), flowing(session, tmp_path))
        columns.append(set(SummingWindows(plan.compiled.plan, plan.catalog)._extra.values()))
    assert columns[0] <= columns[2]
    assert columns[0] - columns[1]


def test_explain_says_when_a_row_comes(session: SparkSession, tmp_path: Path) -> None:
    flowing(session, tmp_path).createOrReplaceTempView("flowing")

    def shown(query: str) -> str:
        return cersql.explain(
            session, f"FROM flowing PATTERN A a ; B+ b PARTITION BY k, o ORDER BY ts {query}", "physical"
        )

    lines = shown("RETURN k, COUNT(*) GROUP BY k, WINDOW 10 SECONDS SLIDE 5 SECONDS").partition("\nstream: ")[2]
    assert lines.splitlines() == [
        "windows and k are hashed to 2 buckets",
        "  rows wait in each of their windows, of 10000000 microseconds every 5000000",
        "  a group's row is given out when the watermark has passed the end of its window",
    ]
    assert "\nstream: windows are hashed to 2 buckets\n" in shown("WITHIN 5 SECONDS SLIDE 5 SECONDS RETURN COUNT(*)")
    assert "\nstream: refused, [STREAM_GROUPS] " in shown("WITHIN 5 SECONDS RETURN COUNT(*) GROUP BY a.v")


SLIDING = "PATTERN A a ; B b ORDER BY ts WITHIN 5 SECONDS SLIDE 5 SECONDS"
REFUSED = {
    "no window": (
        "PATTERN A a ; B b ORDER BY ts WITHIN 5 SECONDS RETURN a.k, COUNT(*) GROUP BY a.k", "STREAM_GROUPS",
        "the groups of GROUP BY a.k never end", "GROUP BY WINDOW 10 MINUTES, a.k",
    ),
    "all": (
        "PATTERN A a ; B b ORDER BY ts WITHIN 5 SECONDS RETURN COUNT(*) GROUP BY ()", "STREAM_GROUPS",
        "GROUP BY () never end", "GROUP BY WINDOW 10 MINUTES:",
    ),
    "a collation": (
        f"{SLIDING} RETURN a.k COLLATE UTF8_LCASE, COUNT(*) GROUP BY a.k COLLATE UTF8_LCASE", "STREAM_KEY",
        "which has a collation", "UTF8_BINARY",
    ),
    "a map": (f"{SLIDING} RETURN COUNT(*) GROUP BY map('v', a.v)", "STREAM_KEY", "a MAP", "a value in it"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_stream_cannot_do(session: SparkSession, tmp_path: Path, name: str) -> None:
    query, condition, says, way_out = REFUSED[name]
    with pytest.raises(CersqlError) as caught:
        cersql.match(flowing(session, tmp_path), query)
    assert caught.value.condition == condition
    assert says in str(caught.value)
    assert way_out in str(caught.value)
    assert caught.value.line == 1


def test_matches_of_a_task_become_groups() -> None:
    def batch(keys: list[Any], values: list[Any]) -> pa.RecordBatch:
        columns = [pa.array(keys, pa.float64()), pa.array(values, pa.list_(pa.int64()))]
        return pa.RecordBatch.from_arrays(columns, ["k", "v"])

    parts = [batch([0.0, None, math.nan], [[1], [2, None], []]), batch([math.nan, -0.0, None], [[3], None, [4]])]
    (found,) = gathered_groups(1, parts)
    rows = {repr(row["k"]): row["v"] for row in found.to_pylist()}
    assert rows == {"0.0": [1], "None": [2, None, 4], "nan": [3]}
    assert not list(gathered_groups(1, [batch([], [])]))
    (one,) = gathered_groups(2, [pa.RecordBatch.from_arrays([pa.array([1, 1, 2]), pa.array(list("uuv"))], ["a", "b"])])
    assert one.num_rows == 2
