"""NXT, LAST and MAX where WHERE asks about the whole match: the strategy chooses among what the condition leaves."""

from __future__ import annotations

import random
from collections import defaultdict
from typing import Any

import pytest

import cersql
from runtime.select import winners
from spark_ext.errors import SparkError

Support = tuple[int, ...]

PATTERN = """
FROM second_pass PATTERN (A a ; B+ b ; C c) AS m
WHERE a.v + SUM(b.v) > c.v AND a.v <> c.v ORDER BY ts {clauses} RETURN {returned}
"""
KEYED = "PARTITION BY key WITHIN 12"


@pytest.fixture(scope="module")
def table(spark: Any) -> Any:
    chance = random.Random(11)
    rows = [(ts, chance.randrange(3), chance.choice("AABBC"), chance.randrange(9)) for ts in range(90)]
    rows += [(90, None, "A", 1), (91, None, "B", 3), (92, None, "C", 2), (93, 1, "C", None)]
    frame = spark.createDataFrame(rows, "ts BIGINT, key INT, type STRING, v INT").repartition(3)
    frame.createOrReplaceTempView("second_pass")
    return frame


def found(spark: Any, clauses: str) -> list[tuple[Any, Support]]:
    """(key, times) of the matches, in order; a time stands for its row."""
    text = PATTERN.format(clauses=clauses, returned="m.key AS key, m.ts AS ts")
    return sorted(
        ((row.key[0] if "PARTITION" in clauses else 0, tuple(row.ts)) for row in cersql.sql(spark, text).collect()),
        key=repr,
    )


def chosen(matches: list[tuple[Any, Support]], strategy: str) -> list[tuple[Any, Support]]:
    by_end: dict[tuple[Any, int], list[Support]] = defaultdict(list)
    for key, times in matches:
        by_end[key, times[-1]].append(times)
    return sorted(
        ((key, rivals[i]) for (key, _), rivals in by_end.items() for i in winners(rivals, strategy)), key=repr
    )


@pytest.mark.parametrize(
    "clauses",
    [
        pytest.param(KEYED, id="keys"),
        pytest.param("WITHIN 5", id="slices", marks=pytest.mark.exhaustive),
        pytest.param("WITHIN 6 EVENTS", id="positions", marks=pytest.mark.exhaustive),
    ],
)
def test_the_strategy_chooses_among_what_is_left(spark: Any, table: Any, clauses: str) -> None:
    matches = found(spark, clauses)
    for strategy in ("NXT", "LAST", "MAX"):
        expected = chosen(matches, strategy)
        assert found(spark, f"{clauses} SEMANTICS {strategy}") == expected
        assert 0 < len(expected) < len(matches)


@pytest.mark.parametrize("sort", ["worker", "spark"])
def test_wherever_the_rows_are_sorted(spark: Any, table: Any, sort: str) -> None:
    spark.conf.set("cersql.sort", sort)
    try:
        assert found(spark, f"{KEYED} SEMANTICS NXT") == chosen(found(spark, KEYED), "NXT")
    finally:
        spark.conf.unset("cersql.sort")


def test_the_clauses_around_it(spark: Any, table: Any) -> None:
    """HAVING and LIMIT act after the strategy, COUNT(*) counts what it leaves; RETURN may want nothing of a match."""
    expected = chosen(found(spark, KEYED), "NXT")
    text = PATTERN.format(clauses=f"{KEYED} SEMANTICS NXT", returned="{returned} {more}")
    assert cersql.sql(spark, text.format(returned="1 AS one", more="")).count() == len(expected)
    assert len(cersql.sql(spark, text.format(returned="a.ts", more="LIMIT 2")).collect()) == 2
    left = cersql.sql(spark, text.format(returned="MIN(m.ts) AS first", more="HAVING COUNT(b) = 1")).collect()
    assert sorted(row["first"] for row in left) == sorted(times[0] for _, times in expected if len(times) == 3)


def test_beside_an_absence_after_the_match(spark: Any, table: Any) -> None:
    """Such matches become known in another order."""
    text = """FROM second_pass PATTERN SEQ(A a, B+ b, !C) WHERE a.v + SUM(b.v) > 9 PARTITION BY key ORDER BY ts
    WITHIN 9 {clause} RETURN a.key AS key, a.ts AS a, b.ts AS b"""

    def matches(clause: str) -> list[tuple[Any, Support]]:
        rows = cersql.sql(spark, text.format(clause=clause)).collect()
        return sorted(((row.key, (row.a, *row.b)) for row in rows), key=repr)

    assert matches("SEMANTICS MAX") == chosen(matches(""), "MAX")
    assert 0 < len(matches("SEMANTICS MAX")) < len(matches(""))


def test_on_a_stream(spark: Any, table: Any) -> None:
    timed = table.selectExpr("timestamp_seconds(ts) AS ts", "key", "type", "v").where("key IS NOT NULL")
    clauses = "PARTITION BY key WITHIN 12 SECONDS SEMANTICS NXT"
    query = PATTERN.replace("FROM second_pass", "").format(clauses=clauses, returned="m.ts AS ts")
    replayed = cersql.replay(spark, timed, query, disorder=3.0)
    assert replayed.same, str(replayed)
    assert replayed.matches > 0


def test_on_a_stream_not_beside_an_absence_after_the_match(spark: Any, table: Any) -> None:
    timed = table.selectExpr("timestamp_seconds(ts) AS ts", "key", "type", "v").where("key IS NOT NULL")
    query = """PATTERN SEQ(A a, B+ b, !C) WHERE a.v + SUM(b.v) > 9 PARTITION BY key ORDER BY ts
    WITHIN 4 SECONDS SEMANTICS MAX RETURN *"""
    with pytest.raises(SparkError) as caught:
        cersql.replay(spark, timed, query)
    assert caught.value.condition == "STREAM_LATER"
    assert "SEMANTICS MAX" in str(caught.value)
