"""RETURN … GROUP BY through Spark: summed up in the compact set, over listed matches, and by hand, all the same."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
import sparks
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from cersql.language.parse import parse
from cersql.statements.planned import Planned, plan_tree

SCHEMA = (
    "id INT, ts TIMESTAMP, k STRING, type STRING, x INT, l BIGINT, m DECIMAL(9,3), w DECIMAL(30,10), d DOUBLE, "
    "f FLOAT, s STRING, day DATE, b BOOLEAN"
)


def rows(n: int, seed: int) -> list[tuple[Any, ...]]:
    """Events of three types and two keys, with NULLs in everything but the time."""
    import datetime

    chance = random.Random(seed)

    def some(value: Any) -> Any:
        return value if chance.random() < 0.8 else None

    found, now = [], datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
    for i in range(n):
        now += datetime.timedelta(seconds=chance.choice((0, 1, 2, 5)))
        number = chance.randint(-9, 9)
        found.append((
            i, now, some(chance.choice("uv")), chance.choice("AABBBCD"), some(number), some(number * 10**12),
            some(Decimal(number) / 8), some(Decimal(number) * 10**15 / 8), some(number / 4), some(number / 2),
            some(chance.choice(("", "a", "B", "ä"))), some(datetime.date(2024, 1, 1 + i % 3)), some(number > 0),
        ))  # fmt: skip
    return found


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> Iterator[SparkSession]:
    found = sparks.taught(spark)
    for seed in range(3):
        sparks.view(found, f"t{seed}", rows(14, seed), SCHEMA)
    with sparks.settings(found, spark__sql__shuffle__partitions=2):
        yield found


def planned(session: SparkSession, text: str) -> Planned:
    return plan_tree(session, parse(text))


def listed(made: Planned) -> Planned:
    """The same over matches that are listed."""
    plan = made.compiled.plan
    assert plan.query.groups is not None
    query = replace(plan.query, groups=replace(plan.query.groups, listed="of a test"))
    return replace(made, compiled=replace(made.compiled, plan=replace(plan, query=query)))


def plain(value: Any) -> Any:
    return round(value, 6) + 0.0 if isinstance(value, float) else value


def table_of(df: DataFrame) -> tuple[list[tuple[str, str]], list[str]]:
    return df.dtypes, sorted(repr(tuple(map(plain, row))) for row in df.collect())


AGGREGATES = ", ".join([
    "COUNT(*) AS n", "COUNT(b) AS events", "COUNT(b.x) AS known", "SUM(b.x) AS sx", "SUM(b.l) AS sl", "SUM(b.m) AS sm",
    "SUM(b.w) AS sw", "SUM(b.d) AS sd", "SUM(b.f) AS sf", "AVG(b.x) AS ax", "AVG(b.m) AS am", "AVG(b.d) AS ad",
    "AVG(b.w) AS aw", "MIN(b.s) AS ls", "MAX(b.s) AS gs", "MIN(b.day) AS lday", "MAX(b.d) AS gd", "MIN(b.b) AS lb",
    "MAX(b.ts) AS gts", "MIN(b.m) AS lm", "SUM(b.x * 2 + 1) AS computed",
])  # fmt: skip
QUERIES = [
    "PATTERN A a ; B+ b ; C c ORDER BY ts, id RETURN {} GROUP BY ()",
    "PATTERN A a ; B+ b ; C c PARTITION BY k ORDER BY ts, id RETURN k, {} GROUP BY k",
    "PATTERN A a ; B+ b ; C c ORDER BY ts, id RETURN a.s, c.day AS day, {} GROUP BY a.s, c.day",
    "PATTERN A a ; B+ b WITHIN 6 SECONDS ORDER BY ts, id RETURN date_trunc('MINUTE', match_end) AS t, {} GROUP BY t",
    "PATTERN (A a OR C c) ; B b WITHIN 8 SECONDS ORDER BY ts, id RETURN a.x, {} GROUP BY a.x",
    "PATTERN A a : B+ b ORDER BY ts, id RETURN match_start, {} GROUP BY match_start",
    "PATTERN A a ; B+ b WITHIN 5 EVENTS PARTITION BY k ORDER BY ts, id RETURN k, a.s, {} GROUP BY k, a.s",
    "PATTERN A a ; B+ b WHERE [s] ORDER BY ts, id RETURN s, {} GROUP BY s",
    "PATTERN A a ; B b ; C c WHERE a.x < b.x ORDER BY ts, id RETURN c.s, {} GROUP BY c.s",
    "PATTERN ALL(A a, B b) WHERE a.x = b.x ORDER BY ts, id RETURN b.s, {} GROUP BY b.s",
    "PATTERN A a ; B+ b ; C c ORDER BY ts, id SEMANTICS MAX RETURN a.x, {} GROUP BY a.x",
    "PATTERN A a ; B+ b ; C c ORDER BY ts, id SEMANTICS NXT RETURN c.x, {} GROUP BY c.x",
    "PATTERN A a ; B+ b PARTITION BY k ORDER BY ts, id SEMANTICS SKIP TILL NEXT MATCH RETURN k, {} GROUP BY k",
    "PATTERN A a ; B+ b PARTITION BY k ORDER BY ts, id CONSUME BY PARTITION RETURN k, {} GROUP BY k",
    "PATTERN A a ; B+ b PARTITION BY k WITHIN 9 SECONDS ORDER BY ts, id CONSUME BY ANY RETURN k, {} GROUP BY k",
    "PATTERN SEQ(A a, B+ b, !C) WITHIN 7 SECONDS PARTITION BY k ORDER BY ts, id RETURN k, {} GROUP BY k",
    "PATTERN SEQ(A a, !C, B+ b) ORDER BY ts, id RETURN a.day, {} GROUP BY a.day",
    "PATTERN (A a ; B+ b) UNLESS C ORDER BY ts, id RETURN {} GROUP BY ()",
    "PATTERN A a ; ANY+ b ORDER BY ts, id RETURN a.x, {} GROUP BY a.x HAVING n > 3",
]


@pytest.mark.breadth(1)
@pytest.mark.parametrize("text", QUERIES)
def test_summed_up_as_if_listed(session, text):
    total = 0
    for seed in range(2):
        query = f"FROM t{seed} {text.format(AGGREGATES)}"
        made = planned(session, query)
        assert made.compiled.query.groups is not None
        groups = made.compiled.plan.query.groups
        assert groups is not None
        assert groups.listed == "", groups.listed
        own, other = table_of(made.frame()), table_of(listed(made).frame())
        assert own[0] == other[0]
        for one, two in zip(own[1], other[1], strict=True):
            assert one == two, query
        total += len(own[1])
    assert total


@pytest.mark.breadth(2)
@pytest.mark.parametrize("text", QUERIES[:10])
def test_groups_are_those_of_spark(session, text):
    """GROUP BY in a query around the matches, each exploded into its events."""
    before, _, by = text.partition(" RETURN ")
    keys = by.partition(", {}")[0] if ", {}" in by else ""
    names = [part.split(" AS ")[-1].split(".")[-1] for part in keys.split(", ") if part and "trunc" not in part]
    names = ["t"] if "trunc" in keys else names
    own = session.sql(f"FROM t1 {text.format(AGGREGATES)}")
    single = "array(events)" if "B+ b" not in text else "events"
    items = ", ".join(filter(None, [keys, "b AS events"]))
    matches = session.sql(f"FROM t1 {before} RETURN {items}").selectExpr(*names, f"{single} AS events", "uuid() AS m")
    matches.createOrReplaceTempView("found")
    calls = AGGREGATES.replace("COUNT(*)", "COUNT(DISTINCT m)").replace("COUNT(b)", "COUNT(b.id)")
    exploded = "SELECT *, explode(events) AS b FROM (SELECT /*+ REPARTITION(1) */ * FROM found)"
    grouped = session.sql(f"SELECT {', '.join([*names, calls])} FROM ({exploded}) {'GROUP BY' if names else ''} "
                          + ", ".join(names))  # fmt: skip

    def values(df: DataFrame) -> list[str]:
        return sorted(repr([value(v) for v in row]) for row in df.collect())

    def value(v: Any) -> Any:
        return float(f"{float(v):.9g}") + 0.0 if isinstance(v, float | Decimal | int) and not isinstance(v, bool) else v

    assert values(own) == values(grouped)


def test_by_hand(session):
    """A0 A1 B2 B3 C4 with b.x 10 and 20: six matches, of which each a is in three."""
    view = [(i, i, t, x) for i, (t, x) in enumerate([("A", 1), ("A", 2), ("B", 10), ("B", 20), ("C", 0)])]
    sparks.view(session, "hand", view, "id INT, ts INT, type STRING, x INT")
    text = (
        "FROM hand PATTERN A a ; B+ b ; C c ORDER BY ts RETURN {} COUNT(*) AS n, SUM(b.x) AS s, COUNT(b) AS e GROUP BY "
    )
    assert [tuple(row) for row in session.sql(text.format("") + "()").collect()] == [(6, 120, 8)]
    by = session.sql(text.format("a.x,") + "a.x").collect()
    assert sorted(tuple(row) for row in by) == [(1, 3, 60, 4), (2, 3, 60, 4)]


def test_two_to_the_thousand(session):
    """2¹⁰⁰ is a number; of 2¹⁰⁰⁰ the mean, the least and the greatest are, and to count them is an error."""
    session.range(1001).selectExpr(
        "id AS ts", "IF(id < 1000, 'A', 'B') AS type", "id AS x", "'u' AS k"
    ).createOrReplaceTempView("many")
    few = "FROM (SELECT * FROM many WHERE ts < 100 OR ts = 1000) AS many PATTERN A+ a ; B b ORDER BY ts RETURN "
    (row,) = session.sql(few + "COUNT(*) AS n, COUNT(a) AS e GROUP BY ()").collect()
    assert (row.n, row.e) == (2**100 - 1, 100 * 2**99)
    many = "FROM many PATTERN A+ a ; B b PARTITION BY k ORDER BY ts RETURN k, "
    (row,) = session.sql(many + "AVG(a.x) AS mean, MIN(a.x) AS least, MAX(a.x) AS most GROUP BY k").collect()
    assert row.mean == pytest.approx(499.5)
    assert (row.least, row.most) == (0, 999)
    with pytest.raises(PySparkException, match=r"COUNT\(\*\) does not fit DECIMAL\(38\) in the group k = u"):
        session.sql(many + "COUNT(*) GROUP BY k").collect()


def test_tasks_that_overflow_together(session):
    """Each task's number fits, and their sum does not."""
    session.range(254).selectExpr(
        "id AS ts", "IF(id % 127 = 126, 'B', 'A') AS type", "CAST(id DIV 127 AS STRING) AS k"
    ).createOrReplaceTempView("two")
    query = "FROM two PATTERN A+ a ; B b PARTITION BY k ORDER BY ts RETURN {} COUNT(*) AS n GROUP BY {}"
    assert len(session.sql(query.format("k,", "k")).collect()) == 2
    with pytest.raises(PySparkException, match=r"COUNT\(\*\) does not fit DECIMAL\(38\) in the group of all matches"):
        session.sql(query.format("", "()") + " HAVING COUNT(*) > 0").collect()


def test_nothing_is_one_row_without_keys(session):
    none = (
        "FROM t0 PATTERN D a ; D b ; D c ; D d ORDER BY ts, id RETURN {} COUNT(*) AS n, SUM(a.x) AS s, AVG(a.m) AS m, "
    )
    none += "MAX(a.s) AS g, AVG(a.d) AS d GROUP BY "
    assert [tuple(row) for row in session.sql(none.format("") + "()").collect()] == [(0, None, None, None, None)]
    assert session.sql(none.format("a.x,") + "a.x").collect() == []
    made = listed(planned(session, none.format("") + "()"))
    assert [tuple(row) for row in made.frame().collect()] == [(0, None, None, None, None)]


def test_having_order_and_limit(session):
    text = "FROM t0 PATTERN A a ; B+ b PARTITION BY k ORDER BY ts, id RETURN a.id AS a, COUNT(*) AS n GROUP BY a.id "
    every = {row.a: row.n for row in session.sql(text).collect()}
    some = session.sql(text + "HAVING n > 2 AND MAX(b.id) < 12").collect()
    assert all(every[row.a] == row.n > 2 for row in some)
    assert len(session.sql(text + "LIMIT 1").collect()) == 1
    ordered = session.sql(f"SELECT * FROM ({text}) AS m ORDER BY n DESC, a").collect()
    assert [tuple(row) for row in ordered] == sorted(every.items(), key=lambda item: (-item[1], item[0]))
    assert session.sql(f"SELECT count(*) FROM ({text})").collect() == [(len(every),)]


def test_a_view_of_groups(session):
    session.sql("CREATE OR REPLACE PATTERN VIEW sums AS FROM t0 PATTERN A a ; B+ b PARTITION BY k ORDER BY ts, id "
                "RETURN k, COUNT(*) AS n GROUP BY k")  # fmt: skip
    every = session.sql("SELECT * FROM sums").collect()
    assert session.sql("SELECT * FROM sums WHERE k = 'u'").collect() == [row for row in every if row.k == "u"]


def test_other_aggregates_are_of_listed_matches(session):
    text = "FROM t0 PATTERN A a ; B+ b ; C c ORDER BY ts, id RETURN a.x, {} GROUP BY a.x"
    found = defaultdict(list)
    for row in session.sql("FROM t0 PATTERN A a ; B+ b ; C c ORDER BY ts, id RETURN a.x, b.id AS ids").collect():
        found[row.x].append(row.ids)
    calls = "COUNT(DISTINCT b.id) AS n, COLLECT_LIST(b.id) AS ids, SUM(b.id) FILTER (WHERE b.id > 5) AS s"
    for row in session.sql(text.format(calls)).collect():
        ids = sorted(i for own in found[row.x] for i in own)
        assert (row.n, sorted(row.ids)) == (len(set(ids)), ids)
        assert row.s == (sum(i for i in ids if i > 5) or None)


def test_files_are_read_by_the_tasks(session, tmp_path):
    path = str(tmp_path / "events")
    with sparks.settings(session, spark__sql__parquet__outputTimestampType="TIMESTAMP_MICROS"):
        session.table("t2").orderBy("ts").coalesce(1).write.parquet(path)
    session.read.parquet(path).createOrReplaceTempView("files")
    text = "PATTERN A a ; B+ b WITHIN 9 SECONDS ORDER BY ts RETURN a.x, COUNT(*) AS n, SUM(b.x) AS s GROUP BY a.x"
    made = planned(session, f"FROM files {text}")
    assert "scan: parquet" in made.explain("physical")
    with sparks.settings(session, cersql__scan="spark"):
        other = table_of(session.sql(f"FROM files {text}"))
    assert table_of(made.frame()) == other


COUNTED = [
    "SELECT k, count(*) FROM ({}) GROUP BY k",
    "SELECT m.s, count(*) n FROM ({}) AS m WHERE m.k = 'u' OR m.s IS NULL GROUP BY m.s HAVING count(*) > 2 ORDER BY n",
    "SELECT count(*) AS n FROM ({}) WHERE s > 'A'",
    "SELECT count(*) AS n FROM ({}) WHERE s > 'zz'",
]


@pytest.mark.breadth(2)
@pytest.mark.parametrize("statement", COUNTED)
def test_counts_around_a_query_list_no_match(session, statement):
    """As Spark counts the same matches, which are listed where something else is asked for, too."""
    pattern = "FROM t0 PATTERN A a ; B+ b ; C c PARTITION BY k ORDER BY ts, id RETURN k, a.s, c.ts AS at"
    session.sql(f"CREATE OR REPLACE PATTERN VIEW counted AS {pattern}")
    explained = session.sql("EXPLAIN " + statement.format(pattern)).collect()[0][0]
    assert "__cersql_count" in explained
    found = session.sql(statement.format(pattern))
    rows_of_matches = session.sql(pattern).createOrReplaceTempView("matches_of_all")
    assert rows_of_matches is None
    assert table_of(found) == table_of(session.sql(statement.format("SELECT * FROM matches_of_all")))
    over_view = statement.replace("({}) AS m", "counted AS m").replace("({})", "counted")
    assert table_of(session.sql(over_view)) == table_of(found)
    assert "__cersql_count" in session.sql("EXPLAIN " + over_view).collect()[0][0]


def test_counts_of_more_matches_than_can_be_listed(session):
    sparks.view(session, "many", [(i, "AB"[i > 0]) for i in range(60)], "ts BIGINT, type STRING")
    text = "FROM many PATTERN A a ; B+ b ORDER BY ts RETURN a.ts AS x, b.ts AS y"
    assert session.sql(f"SELECT x, count(*) FROM ({text}) GROUP BY x").collect() == [(0, 2**59 - 1)]
