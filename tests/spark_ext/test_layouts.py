"""However the work is laid out, the rows are the same: keys, slices, ranges, one task; sorted here or by Spark."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
import sparks
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

import cersql
import spark_ext.batch
import spark_ext.source_rows
from cersql.statements.planned import plan_query
from planner.physical import PhysicalPlan
from runtime.errors import Span

Pair = tuple[Any, ...]


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    return sparks.taught(spark)


def events(session: SparkSession, times: Sequence[int], seed: int = 0, kinds: str = "ABC-") -> None:
    """A view `events` of rows with these times, in a random order; `one` is the same for all."""
    chance = random.Random(seed)
    rows = [(n, chance.choice(kinds), time, 1) for n, time in enumerate(times)]
    chance.shuffle(rows)
    sparks.view(session, "events", rows, "id bigint, type string, ts bigint, one int")


def plan_of(session: SparkSession, text: str) -> PhysicalPlan:
    return plan_query(session, text, Span(0, len(text))).compiled.plan


def rows(df: DataFrame) -> list[Pair]:
    return sorted(tuple(row) for row in df.collect())


def keyed(text: str) -> str:
    """The same query with a key that all rows share."""
    return text.replace("ORDER BY", "PARTITION BY one ORDER BY")


def ids(pattern: str, clauses: str, items: str = "a.id AS a, b.id AS b") -> str:
    return f"FROM events PATTERN {pattern} ORDER BY ts, id {clauses} RETURN {items}"


LAYOUTS = [
    ("slices", ids("A a ; B b", "WITHIN 3")),
    ("slices", ids("A a : B b", "WITHIN < 4")),
    ("slices", ids("A a ; (B OR C)+ AS o", "WITHIN 2", "a.id AS a, o.id AS b")),
    ("ranges", ids("A a : B b", "")),
    ("ranges", ids("A a ; B b", "WITHIN 4 EVENTS")),
    ("ranges", ids("A a : B b : C c", "", "a.id AS a, b.id AS b, c.id AS c")),
    ("ranges", ids("A a : B+ b", "WITHIN 7 EVENTS", "a.id AS a, b.id AS b")),
    ("ranges", ids("A a : B:+ b", "")),
    ("single", ids("A a ; B b", "")),
]
RARE = ("one time", "far apart", "one row")  # what is in them is in others, too
STREAMS: dict[str, list[int]] = {
    "ties": [n // 9 for n in range(-40, 40)],
    "one time": [5] * 30,
    "far apart": [-(10**12), *range(-3, 3), 10**12, 10**12 + 1, *range(10**15, 10**15 + 20)],
    "borders of slices": [n * 3 + d for n in range(-12, 12) for d in (-1, 0)],
    "extreme": [-(2**63), -(2**63) + 1, -1, 0, 1, 2, 3, 2**63 - 3, 2**63 - 2, 2**63 - 1],
    "one row": [7],
    "none": [],
}


def cut_small(patch: pytest.MonkeyPatch) -> None:
    """Cut the order also where a few rows would not be worth it: sample all of them, and make slices short."""
    patch.setattr(spark_ext.batch, "MANY_ROWS_BYTES", 0)
    patch.setattr("spark_ext.numbering.SAMPLE", 1.0)
    patch.setattr("planner.layout.LEAST_SLICE", 1)


def test_a_source_that_changes_is_noticed(session: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are numbered by sizes that are read beside them; if these do not agree, that is an error, not a result."""
    cut_small(monkeypatch)
    session.range(4000).selectExpr("id AS ts", "'A' AS type").createOrReplaceTempView("events")
    chance = "SELECT * FROM events WHERE CAST(reflect('java.lang.Math', 'random') AS DOUBLE) < 0.5"
    text = f"FROM ({chance}) AS e PATTERN A x : A y ORDER BY ts RETURN x.ts AS a"
    with pytest.raises(Exception, match="SOURCE_CHANGED"):
        session.sql(text).collect()


@pytest.mark.breadth(1)
@pytest.mark.parametrize(
    "stream",
    [pytest.param(name, marks=[pytest.mark.exhaustive] if name in RARE else []) for name in STREAMS],
)
def test_each_layout_gives_the_rows_of_one_key(
    session: SparkSession, stream: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slices of one window, four ranges or more: borders lie between the events of many matches."""
    monkeypatch.setattr("planner.layout.SLICE_WINDOWS", 1)
    cut_small(monkeypatch)
    events(session, STREAMS[stream], seed=len(stream))
    frames = []
    long = len(STREAMS[stream]) > 9 and stream != "one time"
    turn = list(STREAMS).index(stream) % 3  # each layout meets some of the streams
    layouts = LAYOUTS[turn::3] if long else LAYOUTS[turn::4]
    for layout, text in layouts:
        assert (plan_of(session, text).layout, plan_of(session, keyed(text)).layout) == (layout, "keys")
        with sparks.settings(session, spark__sql__shuffle__partitions=3):
            frames += [session.sql(text), session.sql(keyed(text))]
    found = [sorted(map(str, own)) for own in sparks.together(frames, at_once=18)]
    for (layout, text), own, other in zip(layouts, found[::2], found[1::2], strict=True):
        assert own == other, f"{layout}: {text}"
    if long:
        assert sum(map(bool, found)) > len(found) / 2


def test_ranges_shorter_than_a_match(session: SparkSession) -> None:
    """A match over all twelve ranges of one or two rows."""
    events(session, range(14), kinds="A")
    with sparks.settings(session, spark__sql__shuffle__partitions=12), pytest.MonkeyPatch.context() as patch:
        patch.setattr(spark_ext.batch, "PARTITION_BYTES", 1)
        cut_small(patch)
        text = "FROM events PATTERN A x : A:+ y ORDER BY ts WITHIN 13 EVENTS RETURN x.id AS a, size(y.id) AS n"
        df = session.sql(text)
        assert df.rdd.getNumPartitions() == 12
    assert rows(df) == sorted((a, n) for a in range(14) for n in range(1, 13) if a + n < 14)


@pytest.mark.exhaustive
def test_the_number_of_ranges_does_not_matter(session: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Most rows satisfy no guard, so whole ranges keep nothing but their sizes."""
    cut_small(monkeypatch)
    sparse = [(n, "A" if n % 50 == 0 else "B" if n % 50 == 9 else "-", n) for n in range(400)]
    sparks.view(session, "events", sparse, "id bigint, type string, ts bigint")
    frames, wanted = [], []
    for window, expected in ((9, []), (10, [(n, n + 9) for n in range(0, 400, 50)])):
        for n in (1, 2, 7):
            with sparks.settings(session, spark__sql__shuffle__partitions=n):
                frames.append(session.sql(ids("A a ; B b", f"WITHIN {window} EVENTS")))
            wanted.append(expected)
    for found, expected in zip(sparks.together(frames), wanted, strict=True):
        assert sorted((row["a"], row["b"]) for row in found) == expected


@pytest.mark.breadth(2)
@pytest.mark.parametrize("clauses", ["WITHIN 3", "", "WITHIN 4 EVENTS", "PARTITION BY one"])
def test_dropping_and_sorting_change_nothing(
    session: SparkSession, clauses: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    events(session, [n // 2 for n in range(60)], seed=3, kinds="AB---")
    text = ids("A a ; B b", clauses) if "BY" not in clauses else keyed(ids("A a ; B b", ""))
    frames = []
    for sort in ("worker", "spark"):
        with sparks.settings(session, cersql__sort=sort), pytest.MonkeyPatch.context() as patch:
            frames.append(session.sql(text))
            patch.setattr(spark_ext.source_rows, "drop_sql", lambda plan: None)
            frames.append(session.sql(text))
    first, *others = [sorted(map(str, own)) for own in sparks.together(frames)]
    assert first
    assert others == [first] * 3


def test_counting_without_rows(session: SparkSession) -> None:
    events(session, [n // 2 for n in range(-20, 20)], seed=4)
    frames = []
    for _, text in LAYOUTS:
        planned = plan_query(session, text, Span(0, len(text)))
        counts = spark_ext.batch.count(planned.compiled.plan, planned.catalog)
        assert counts is not None
        # the rows themselves, so that nothing can count them without making them
        rows_of = session.sql(text)
        frames += [counts.toDF("n"), rows_of.select(fn.hash(*rows_of.columns).alias("made"))]
    found = sparks.together(frames, at_once=18)
    for (layout, _), counted, own in zip(LAYOUTS, found[::2], found[1::2], strict=True):
        assert sum(row["n"] for row in counted) == len(own) > 0, layout


@pytest.mark.breadth(1)
@pytest.mark.parametrize("sort", ["worker", "spark"])
def test_a_limit_stops_the_enumeration(session: SparkSession, sort: str) -> None:
    """There are 2⁴⁰ matches."""
    events(session, range(41), kinds="A")
    with sparks.settings(session, cersql__sort=sort):
        df = session.sql("FROM events PATTERN A+ b ORDER BY ts RETURN * LIMIT 5")
    found = [sparks.bound(row.asDict()) for row in df.collect()]
    assert len(found) == len(set(found)) == 5
    assert session.sql("FROM events PATTERN A+ b ORDER BY ts RETURN * LIMIT 0").count() == 0
    assert session.sql("FROM events PATTERN A a ORDER BY ts RETURN * LIMIT 100").count() == 41


def test_a_condition_that_is_random_is_drawn_once(session: SparkSession) -> None:
    """Half of the rows, not a quarter; and a row's draw is the same for all who look at it."""
    session.sql("SELECT id, id AS ts FROM range(2000)").createOrReplaceTempView("many")
    for clauses in ("ORDER BY ts", "PARTITION BY id ORDER BY ts", "ORDER BY ts WITHIN 5"):
        n = session.sql(f"FROM many PATTERN a DEFINE a AS rand() < 0.5 {clauses} RETURN a.id").count()
        assert 850 < n < 1150


def test_a_skewed_key_and_many_keys(session: SparkSession) -> None:
    session.sql(
        "SELECT id, id AS ts, IF(id < 100000, 0, id) AS k, id % 10 AS v FROM range(103000)"
    ).createOrReplaceTempView("skewed")
    pairs = "PATTERN a : b DEFINE a AS v = 3, b AS v = 4 PARTITION BY k"
    text = f"FROM skewed {pairs} ORDER BY ts RETURN k, a.id AS a, b.id AS b"
    for sort in ("worker", "spark"):
        with sparks.settings(session, cersql__sort=sort):
            found = session.sql(text).selectExpr("count(*)", "sum(b - a)", "max(k)").collect()
        assert [tuple(row) for row in found] == [(10_000, 10_000, 0)]
    single = session.sql("FROM skewed PATTERN a DEFINE a AS v = 3 PARTITION BY k ORDER BY ts RETURN k")
    assert [tuple(row) for row in single.selectExpr("count(DISTINCT k)", "count(*)").collect()] == [(301, 10_300)]


def test_nothing_but_nulls(session: SparkSession) -> None:
    session.sql(
        "SELECT id AS ts, CAST(NULL AS STRING) AS type, CAST(NULL AS INT) AS v FROM range(3)"
    ).createOrReplaceTempView("empty")
    for clauses in ("ORDER BY ts", "PARTITION BY v ORDER BY ts", "ORDER BY ts WITHIN 9", "ORDER BY ts WITHIN 9 EVENTS"):
        assert session.sql(f"FROM empty PATTERN A a ; B b {clauses} RETURN *").collect() == []
        assert session.sql(f"FROM empty PATTERN ANY AS a : ANY AS b WHERE a.v IS NULL {clauses} RETURN *").count() == 2


def test_rows_of_unknown_size_take_few_tasks_and_a_short_plan(session: SparkSession) -> None:
    """Spark holds rows that came from Python for larger than anything."""
    rows = [(n, "AB"[n % 2], n % 3) for n in range(20)]
    found = session.createDataFrame(rows, "ts INT, type STRING, k INT")
    assert int(found._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()) > 1 << 60
    with sparks.settings(session, spark__sql__shuffle__partitions="200"):
        counted = cersql.match(found, "PATTERN A a : B b ORDER BY ts RETURN a.ts AS x")
        assert str(counted._jdf.queryExecution().optimizedPlan()).count("scalar-subquery") < 12
        assert sorted(row.x for row in counted.collect()) == list(range(0, 20, 2))
        keyed = cersql.match(found, "PATTERN A a ; B b PARTITION BY k ORDER BY ts WITHIN 3 RETURN a.ts AS x")
        assert keyed.rdd.getNumPartitions() < 20


def test_the_sides_of_a_join_are_not_multiplied(session: SparkSession) -> None:
    joined = session.sql("SELECT a.id FROM range(1000000) a JOIN range(1000000) b ON a.id = b.id")
    plan = joined._jdf.queryExecution().optimizedPlan()
    assert int(plan.stats().sizeInBytes()) > 1 << 40
    assert spark_ext.batch.estimate(plan) < 1 << 28
