"""NXT, LAST and MAX where WHERE asks about the whole match: the strategy chooses among what the condition leaves."""

from __future__ import annotations

import random
from collections import defaultdict
from typing import Any

import pytest

import cersql
from runtime.selection.select import winners
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


@pytest.mark.breadth(1)
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


@pytest.mark.breadth(1)
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
    replayed = cersql.replay(spark, timed, query, disorder=3.0, batches=2)
    assert replayed.same, str(replayed)
    assert replayed.matches > 0


@pytest.mark.parametrize(
    ("strategy", "clauses"),
    [
        pytest.param("", "RETURN * WITH TIMEOUTS", marks=pytest.mark.exhaustive),
        pytest.param(
            "SEMANTICS NXT", "RETURN m.ts AS ts, match_status AS s WITH TIMEOUTS", marks=pytest.mark.exhaustive
        ),
        pytest.param("", "RETURN m.ts AS ts, match_status AS s WITH TIMEOUTS", marks=pytest.mark.exhaustive),
        pytest.param("SEMANTICS NXT", "RETURN * WITH TIMEOUTS", marks=pytest.mark.exhaustive),
    ],
)
def test_starts_that_time_out_on_a_stream(spark: Any, table: Any, clauses: str, strategy: str) -> None:
    """A start is asked when its window closes, of which matches were given out long before."""
    timed = table.selectExpr("timestamp_seconds(ts) AS ts", "key", "type", "v").where("key IS NOT NULL")
    query = f"""PATTERN (A a ; B+ b ; C c) AS m WHERE a.v + SUM(b.v) > c.v + 9 PARTITION BY key ORDER BY ts
    WITHIN 6 SECONDS {strategy} {clauses}"""
    replayed = cersql.replay(spark, timed, query, disorder=3.0, batches=2)
    assert replayed.same, str(replayed)
    assert replayed.matches > 0


SKIPS, STRATEGIES = ("PAST LAST ROW", "TO NEXT ROW", "TO LAST a"), ("NXT", "LAST", "SKIP TILL NEXT MATCH")


@pytest.mark.exhaustive
@pytest.mark.parametrize("skip", SKIPS)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_skip_beside_a_strategy_on_a_stream(spark: Any, table: Any, strategy: str, skip: str) -> None:
    timed = table.selectExpr("timestamp_seconds(ts) AS ts", "key", "type", "v").where("key IS NOT NULL")
    query = f"""PATTERN A+ a ; B b PARTITION BY key ORDER BY ts WITHIN 6 SECONDS
    SEMANTICS {strategy} AFTER MATCH SKIP {skip} RETURN a.ts AS a, b.ts AS b"""
    replayed = cersql.replay(spark, timed, query, disorder=3.0, batches=2)
    assert replayed.same, str(replayed)
    assert replayed.matches > 0


@pytest.mark.breadth(1)
@pytest.mark.parametrize("clause", ["CONSUME BY PARTITION", "AFTER MATCH SKIP PAST LAST ROW"])
def test_on_a_stream_not_where_matches_drop_what_has_begun(spark: Any, table: Any, clause: str) -> None:
    """What they drop would have to be known where the rows are held, before WHERE is asked."""
    timed = table.selectExpr("timestamp_seconds(ts) AS ts", "key", "type", "v").where("key IS NOT NULL")
    query = f"PATTERN A a ; B+ b WHERE SIZE(COLLECT_SET(b.v)) > a.v ORDER BY ts WITHIN 4 SECONDS {clause} RETURN *"
    with pytest.raises(SparkError) as caught:
        cersql.replay(spark, timed, query)
    assert caught.value.condition == "STREAM_LATER"
    assert clause[:16] in str(caught.value)


@pytest.mark.exhaustive
@pytest.mark.breadth(1)
@pytest.mark.parametrize("clause", ["CONSUME BY PARTITION", "AFTER MATCH SKIP PAST LAST ROW"])
def test_on_a_stream_where_runs_hold_what_is_asked(spark: Any, table: Any, clause: str) -> None:
    timed = table.selectExpr("timestamp_seconds(ts) AS ts", "key", "type", "v").where("key IS NOT NULL")
    query = f"""PATTERN A a ; B+ b WHERE COUNT(b) > 1 AND (SUM(b.v) > 6 + a.v OR RANGE(b.v) = 1)
    PARTITION BY key ORDER BY ts WITHIN 8 SECONDS {clause} RETURN a.ts AS a, b.ts AS b"""
    replayed = cersql.replay(spark, timed, query, disorder=3.0, batches=2)
    assert replayed.same, str(replayed)
    assert replayed.matches > 0


@pytest.mark.exhaustive
def test_alerts(spark: Any) -> None:
    """A condition on two events says what is a match before one is taken, not which of those that were taken is left.
    From the definition, in plain Python."""
    chance = random.Random(3)
    values = [chance.choice((1.0, 2.5, 4.0, 7.25, 9.5, None)) for _ in range(60)]
    rows = list(enumerate(values))
    spark.createDataFrame(rows, "ts BIGINT, value DOUBLE").createOrReplaceTempView("alerts")
    expected, at = [], 0
    while at < len(rows):
        ends = [j for j in range(at + 1, len(rows))
                if values[at] is not None and values[j] is not None and j - at <= 5
                and values[j] - values[at] > 5]  # fmt: skip
        if ends:
            expected.append((at, ends[-1]))
        at = ends[-1] + 1 if ends else at + 1
    for condition in ("b.value - a.value > 5", "ln(exp(b.value - a.value)) > 5", "LAST(b.value) - a.value > 5"):
        text = f"""FROM alerts PATTERN ANY a : ANY* rest : ANY b WHERE {condition} ORDER BY ts WITHIN 5
        AFTER MATCH SKIP PAST LAST ROW RETURN a.ts AS a, b.ts AS b"""
        assert sorted(tuple(row) for row in cersql.sql(spark, text).collect()) == expected
    assert len(expected) > 5


def test_a_function_of_two_events(spark: Any) -> None:
    """Beside whatever chooses; on no rows, too, and where names are odd and values NULL."""
    rows = [(1, "A", 1), (2, "A", 5), (3, "B", 4), (4, "B", None), (5, "A", 9), (6, "B", 6), (7, "B", 7)]
    spark.createDataFrame(rows, "ts BIGINT, type STRING, `odd ``name` INT").createOrReplaceTempView("`odd names`")

    def pairs(clauses: str, source: str = "`odd names`") -> list[tuple[int, int]]:
        text = f"""FROM {source} TYPE type PATTERN A `the a` ; B b
        WHERE pow(`the a`.`odd ``name` - b.`odd ``name`, 2) > 4
        ORDER BY ts {clauses} RETURN `the a`.ts AS a, b.ts AS b"""
        return sorted(tuple(row) for row in cersql.sql(spark, text).collect())

    assert pairs("") == [(1, 3), (1, 6), (1, 7), (5, 6)]
    assert pairs("CONSUME BY PARTITION") == [(1, 3), (5, 6)]
    assert pairs("AFTER MATCH SKIP PAST LAST ROW") == [(1, 7)]
    assert pairs("AFTER MATCH SKIP TO NEXT ROW") == [(1, 7), (5, 6)]
    assert pairs("SEMANTICS LAST AFTER MATCH SKIP PAST LAST ROW") == [(1, 3), (5, 6)]
    assert pairs("SEMANTICS NXT") == [(1, 3), (1, 6), (1, 7)]
    assert pairs("CONSUME BY PARTITION", "(SELECT * FROM `odd names` WHERE ts < 0) AS none") == []
    spark.catalog.dropTempView("odd names")  # a Thrift server parses the bare names of a session's views when it closes


@pytest.mark.exhaustive
def test_two_sources_and_no_word_of_events(spark: Any) -> None:
    """RETURN may want nothing of a match; each variable has its own source's columns."""
    spark.createDataFrame([(1, 5), (4, 7)], "ts BIGINT, price INT").createOrReplaceTempView("asked_prices")
    spark.createDataFrame([(2, 5), (3, 30), (6, 9)], "ts BIGINT, paid INT").createOrReplaceTempView("paid_prices")
    text = """FROM asked_prices AS Asked, paid_prices AS Paid PATTERN Asked o ; Paid p
    WHERE pow(p.paid - o.price, 2) > 3 ORDER BY ts {clause} RETURN {items}"""
    for clause, expected in (("CONSUME BY ANY", [(1, 3), (4, 6)]), ("AFTER MATCH SKIP PAST LAST ROW", [(1, 6)])):
        found = cersql.sql(spark, text.format(clause=clause, items="o.ts AS o, p.ts AS p")).collect()
        assert sorted(tuple(row) for row in found) == expected
        assert cersql.sql(spark, text.format(clause=clause, items="1 AS one")).count() == len(expected)


@pytest.mark.exhaustive
@pytest.mark.parametrize("strategy", ["MAX", pytest.param("LAST", marks=pytest.mark.exhaustive)])
def test_on_a_stream_beside_an_absence_after_the_match(spark: Any, table: Any, strategy: str) -> None:
    """Rivals wait for each other: what began later is known later."""
    timed = table.selectExpr("timestamp_seconds(ts) AS ts", "key", "type", "v").where("key IS NOT NULL")
    query = """PATTERN SEQ(A a, B+ b, !C) WHERE a.v + SUM(b.v) > 9 PARTITION BY key ORDER BY ts
    WITHIN 4 SECONDS SEMANTICS {strategy} RETURN *"""
    replayed = cersql.replay(spark, timed, query.format(strategy=strategy), disorder=1.0, batches=2)
    assert replayed.same, str(replayed)
    assert replayed.matches > 0
