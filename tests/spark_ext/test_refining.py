"""Filters on the keys of a pattern view act before the pattern, and change nothing but the time it takes."""

from __future__ import annotations

import datetime
import random
import re
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from sparks import patched, settings, taught, together, view

import cersql
from cersql.statements import refining

QUERY = """FROM ev PATTERN A a ; B b PARTITION BY k, place ORDER BY ts, id WITHIN 9
           RETURN k, place AS site, a.id AS x, b.id AS y"""
SCHEMA = "id INT, type STRING, k INT, place STRING, ts INT, v DOUBLE"


def events(count: int = 90) -> list[tuple[Any, ...]]:
    chance = random.Random(7)
    return [
        (i, chance.choice("ABC"), chance.choice([None, -1, 1, 2, 3]), chance.choice([None, "n", "s", "%"]), i // 2, 1.0)
        for i in range(count)
    ]


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> Iterator[SparkSession]:
    found = taught(spark)
    view(found, "ev", events(), SCHEMA)
    view(found, "t", [(1, "n", 5), (2, "s", 6), (9, None, 7), (None, "n", 8)], "k INT, name STRING, z INT")
    found.sql(f"CREATE PATTERN VIEW v AS {QUERY}")
    yield found
    found.sql("DROP PATTERN VIEW IF EXISTS v")


def plain(spark: SparkSession, sql: str, **arguments: Any) -> Any:
    """The same without pushing."""
    with patched(refining, "readings", lambda *_: []):
        return spark.sql(sql, **arguments)


def is_pushed(spark: SparkSession, sql: str, **arguments: Any) -> bool:
    """Whether the optimized plan has a filter below the pattern, or its rows are fewer from the start."""
    plan = str(spark.sql(sql, **arguments)._jdf.queryExecution().optimizedPlan().toString())
    below = plan[plan.index("MapInArrow") :]
    return "Filter" in below or "LocalRelation <empty>" in below


def text(spark: SparkSession, sql: str, **arguments: Any) -> str:
    return str(spark.sql(sql, **arguments).collect()[0][0])


# ---------------------------------------------------------------- the same rows


def conditions(chance: random.Random) -> str:
    k = lambda: chance.choice(["1", "2", "-1", "5", "NULL"])  # noqa: E731
    atoms = [
        lambda: f"{{q}}k {chance.choice(['=', '<', '>=', '<>'])} {k()}",
        lambda: f"{{q}}k IN ({k()}, {k()})",
        lambda: f"{{q}}k {chance.choice(['', 'NOT '])}BETWEEN 1 AND {chance.choice(['2', '3'])}",
        lambda: f"{{q}}site {chance.choice(['LIKE', 'NOT LIKE'])} '{chance.choice(['n', 'n%', '%', '_'])}'",
        lambda: f"{{q}}site {chance.choice(['=', '<>', '>'])} '{chance.choice('ns%')}'",
        lambda: f"{{q}}{chance.choice(['k', 'site'])} IS {chance.choice(['', 'NOT '])}NULL",
        lambda: f"{{q}}x > {chance.randrange(60)}",
        lambda: f"({{q}}k = 1 OR {{q}}{chance.choice(['site = ' + repr('s'), 'y > 40', 'k IS NULL'])})",
        lambda: f"NOT ({{q}}k = {k()})",
    ]
    terms = [chance.choice(atoms)() for _ in range(chance.randint(1, 3))]
    joined = terms[0]
    for term in terms[1:]:
        joined += chance.choice([" AND ", " AND ", " OR "]) + term
    return joined


SHAPES = [
    ("SELECT * FROM v WHERE {c}", ""),
    ("SELECT m.x, m.k FROM v AS m WHERE {c} ORDER BY m.y", "m."),
    ("SELECT v.*, t.z FROM v JOIN t ON v.k = t.k WHERE {c}", "v."),
    ("SELECT v.*, t.z FROM t LEFT JOIN v ON v.k = t.k WHERE {c}", "v."),
    ("SELECT v.*, t.z FROM v FULL JOIN t ON v.k = t.k AND v.site = t.name WHERE {c}", "v."),
    ("SELECT count(*) AS n, max(x) AS m FROM v WHERE {c}", ""),
    ("WITH m AS (SELECT * FROM v WHERE {c}) SELECT a.x, b.y FROM m a JOIN m b ON a.x = b.x", ""),
    ("SELECT * FROM t WHERE EXISTS (SELECT 1 FROM v WHERE t.k = v.k AND ({c}))", "v."),
    (f"SELECT * FROM ({QUERY}) WHERE {{c}}", ""),
    (f"SELECT m.*, t.z FROM t RIGHT JOIN ({QUERY}) AS m ON t.k = m.k WHERE {{c}}", "m."),
]


@pytest.mark.parametrize("seed", [11, *(pytest.param(n, marks=pytest.mark.exhaustive) for n in (13, 14, 15))])
def test_the_rows_are_the_same_with_and_without(session: SparkSession, seed: int) -> None:
    chance = random.Random(seed)
    statements = []
    for shape, qualifier in SHAPES:
        statements.append(shape.format(c=conditions(chance).replace("{q}", qualifier)))
    ours = [session.sql(sql) for sql in statements]
    theirs = [
        plain(session, sql) if "PATTERN" not in sql else plain(session, sql.replace(QUERY, "SELECT * FROM v"))
        for sql in statements
    ]
    assert sum(refining.refine(session, sql, lambda: None) is not None for sql in statements) > 2
    for sql, a, b in zip(statements, together(ours, 20), together(theirs, 20), strict=True):
        assert sorted(map(repr, a)) == sorted(map(repr, b)), sql


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM v WHERE k = 1",
        "-- a comment\n/* and another */ SELECT * FROM v WHERE k = 1",
        "SELECT * FROM v AS a JOIN t ON a.k = t.k WHERE a.site = 'n' AND t.z > 1",
        "WITH m AS (SELECT * FROM `v` WHERE `v`.`k` = 1) SELECT * FROM m",
        f"SELECT * FROM ({QUERY}) WHERE k = 1",
        f"SELECT * FROM ({QUERY}) m WHERE m.k = 1 AND m.y > 3",
    ],
)
def test_the_filter_stands_below_the_pattern(session: SparkSession, sql: str) -> None:
    with settings(
        session, spark__sql__optimizer__excludedRules="org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation"
    ):
        assert is_pushed(session, sql)


def test_values_of_parameters_act_before_the_pattern(session: SparkSession) -> None:
    expected = sorted(tuple(row) for row in plain(session, "SELECT * FROM v WHERE k = 2").collect())
    assert expected
    for sql, args in (
        ("SELECT * FROM v WHERE k = :k", {"k": 2}),
        ("SELECT * FROM v WHERE x & ? = 0 AND k = ?", [0, 2]),
    ):
        assert sorted(tuple(row) for row in session.sql(sql, args=args).collect()) == expected
        assert "before the pattern: k = " in text(session, f"EXPLAIN {sql}", args=args)
    sql = f"SELECT * FROM ({QUERY}) WHERE k = :k"
    assert sorted(tuple(row) for row in session.sql(sql, args={"k": 2}).collect()) == expected
    assert "before the pattern: k = :k" in text(session, f"EXPLAIN {sql}", args={"k": 2})
    sql = f"SELECT * FROM ({QUERY}) WHERE x & ? = 0 AND k = ?"
    assert sorted(tuple(row) for row in session.sql(sql, args=[0, 2]).collect()) == expected


# ---------------------------------------------------------------- EXPLAIN


def test_explain_says_what_acts_before_and_why_not(session: SparkSession) -> None:
    found = text(session, "EXPLAIN SELECT * FROM v WHERE k = 1 AND x > 3 AND site LIKE 'n%'")
    assert "before the pattern: k = 1 AND site LIKE 'n%'\n" in found
    assert found.startswith("== cel ==")
    assert "== Physical Plan ==" in found
    assert "== Parsed Logical Plan ==" in text(session, "EXPLAIN /* all */ EXTENDED SELECT * FROM v WHERE k = 1")
    session.sql(f"CREATE OR REPLACE PATTERN VIEW few AS {QUERY} LIMIT 3")
    session.sql(f"CREATE OR REPLACE PATTERN VIEW consuming AS {QUERY.replace('RETURN', 'CONSUME BY ANY RETURN')}")
    session.sql(f"CREATE OR REPLACE PATTERN VIEW mute AS {QUERY.replace('RETURN k, place AS site,', 'RETURN')}")
    session.sql(
        "CREATE OR REPLACE PATTERN VIEW keyless AS FROM ev PATTERN A a ; B b ORDER BY ts, id WITHIN 3 RETURN a.k AS k"
    )
    for sql, why in (
        ("SELECT * FROM v WHERE x > 3", "no term of the WHERE beside it compares a column of its PARTITION BY with"),
        ("SELECT * FROM v WHERE k + 1 = 2", "no term of the WHERE"),
        ("SELECT * FROM v TABLESAMPLE (5 ROWS) WHERE k = 1", "TABLESAMPLE stands between the view and the filter"),
        ("SELECT * FROM few WHERE k = 1", "its LIMIT chooses among the matches of all keys"),
        ("SELECT * FROM consuming WHERE k = 1", "CONSUME BY ANY lets a match of one key"),
        ("SELECT * FROM mute WHERE x = 1", "the pattern returns no column of its PARTITION BY"),
        ("SELECT * FROM keyless WHERE k = 1", "it has no PARTITION BY"),
        (f"WITH m AS ({QUERY}) SELECT * FROM m WHERE k = 1", "the query is no relation of a FROM"),
    ):
        assert f"no filter acts before the pattern: {why}" in text(session, f"EXPLAIN {sql}"), sql
    for name in ("few", "consuming", "mute", "keyless"):
        session.sql(f"DROP PATTERN VIEW {name}")
    assert "acts before" not in text(session, "EXPLAIN SELECT * FROM ev WHERE k = 1")


def test_what_spark_refuses_is_refused_in_its_words(session: SparkSession) -> None:
    for sql in ("SELECT * FROM v WHERE k = DATE '2024-01-01'", "SELECT nosuch FROM v WHERE k = 1"):
        with pytest.raises(AnalysisException) as ours:
            session.sql(sql)
        with pytest.raises(AnalysisException) as theirs:
            plain(session, sql)
        assert ours.value.getCondition() == theirs.value.getCondition()
        assert "__cersql" not in ours.value.getMessage().split(";")[0]


# ---------------------------------------------------------------- views that come and go


def test_cached_views_are_read_from_the_cache(session: SparkSession) -> None:
    session.sql("CACHE TABLE v")
    try:
        sql = "SELECT * FROM v WHERE k = 1"
        assert "In-memory table v" in text(session, f"EXPLAIN {sql}")
        assert "no filter acts before the pattern: the view is cached" in text(session, f"EXPLAIN {sql}")
    finally:
        session.sql("UNCACHE TABLE v")


def test_a_view_that_is_no_pattern_any_more_is_sparks(session: SparkSession) -> None:
    session.sql(f"CREATE PATTERN VIEW gone AS {QUERY}")
    session.sql("CREATE OR REPLACE TEMPORARY VIEW gone AS SELECT 1 AS k, 'here' AS w")
    assert [tuple(row) for row in session.sql("SELECT * FROM gone WHERE k = 1").collect()] == [(1, "here")]
    assert "gone" not in list(cersql.patterns(session))
    session.sql("DROP VIEW gone")
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        session.sql("SELECT * FROM gone WHERE k = 1")


def test_a_cte_hides_a_view(session: SparkSession) -> None:
    for sql in (
        "WITH v AS (SELECT 1 AS k) SELECT * FROM v WHERE k = 1",
        "WITH v(k) AS (SELECT 1) SELECT * FROM v WHERE k = 1",
    ):
        assert [tuple(row) for row in session.sql(sql).collect()] == [(1,)]


def test_views_and_tables_keep_no_private_name(session: SparkSession) -> None:
    session.sql("CREATE OR REPLACE TEMPORARY VIEW kept AS SELECT x, y FROM v WHERE k = 2")
    expected = sorted(tuple(row) for row in session.sql("SELECT x, y FROM v WHERE k = 2").collect())
    for n in range(70):
        session.range(n).createOrReplaceTempView(f"__cersql_other_{n}")
    assert sorted(tuple(row) for row in session.sql("SELECT * FROM kept").collect()) == expected
    session.sql("DROP VIEW kept")
    for n in range(70):
        session.catalog.dropTempView(f"__cersql_other_{n}")


def test_nothing_private_is_listed(session: SparkSession) -> None:
    """Neither of a statement that is over, nor of one whose text Spark keeps."""
    session.sql("SELECT count(*) FROM (SELECT * FROM v WHERE k = 1), (SELECT x FROM v)").collect()
    session.sql(f"CREATE TEMPORARY VIEW private_inside AS SELECT k FROM ({QUERY})")
    catalog = session._jsparkSession.sessionState().catalog()
    listed = {
        "tables": [row.tableName for row in session.sql("SHOW TABLES").collect()],
        "like": [row.tableName for row in session.sql("SHOW TABLES LIKE '*'").collect()],
        "views": [row.viewName for row in session.sql("SHOW VIEWS").collect()],
        "extended": [row.tableName for row in session.sql("SHOW TABLE EXTENDED LIKE '*'").collect()],
        "catalog": [table.name for table in session.catalog.listTables()],
        "JDBC's": catalog.listLocalTempViews("*").mkString("|").split("|"),
    }
    session.sql("DROP VIEW private_inside")
    for how, names in listed.items():
        assert any("private_inside" in name for name in names), how
        assert [name for name in names if "__cersql_" in name] == [], how


@pytest.mark.exhaustive
def test_global_views_from_another_session(session: SparkSession) -> None:
    session.sql(f"CREATE OR REPLACE GLOBAL TEMPORARY PATTERN VIEW gv AS {QUERY}")
    other = session.newSession()
    expected = sorted(tuple(row) for row in session.sql("SELECT x, y FROM v WHERE k = 2").collect())
    assert expected
    for reader in (session, other):
        for sql in (
            "SELECT x, y FROM global_temp.gv WHERE k = 2",
            "SELECT gv.x, gv.y FROM global_temp.gv WHERE gv.k = 2",
            "SELECT global_temp.gv.x, y FROM global_temp.gv WHERE k = 2",
            "SELECT m.x, m.y FROM global_temp.gv m WHERE m.k = 2",
        ):
            assert sorted(tuple(row) for row in reader.sql(sql).collect()) == expected, sql
    assert "before the pattern: k = 2" in text(other, "EXPLAIN SELECT x FROM global_temp.gv WHERE k = 2")
    other.sql("DROP PATTERN VIEW global_temp.gv")
    assert "gv" not in list(cersql.patterns(session))


def test_a_global_view_in_a_session_of_another_time_zone(session: SparkSession) -> None:
    """`TIMESTAMP '…'` means what it does in the session that asks."""
    hours = [(i, "A", datetime.datetime(2024, 1, 1, i, tzinfo=datetime.UTC)) for i in range(6)]
    view(session, "hours", hours, "id INT, type STRING, h TIMESTAMP")
    session.sql(
        "CREATE GLOBAL TEMPORARY PATTERN VIEW gh AS FROM hours PATTERN A a PARTITION BY h ORDER BY id RETURN h, a.id AS x"  # noqa: E501
    )
    other = session.newSession()
    sql = "SELECT x FROM global_temp.gh WHERE h = TIMESTAMP '2024-01-01 12:00:00'"
    try:
        assert "before the pattern: h = " in text(other, f"EXPLAIN {sql}")
        with settings(other, spark__sql__session__timeZone="Asia/Tokyo"):
            assert [row.x for row in other.sql(sql).collect()] == [3]
            assert "no filter acts before the pattern: its session reads literals otherwise" in text(
                other, f"EXPLAIN {sql}"
            )
    finally:
        session.sql("DROP PATTERN VIEW global_temp.gh")


def test_without_the_hook(session: SparkSession, spark: SparkSession) -> None:
    bare = SparkSession(
        spark.sparkContext, getattr(taught(spark)._jvm, "org.apache.spark.sql.classic.SparkSession").builder().create()
    )  # type: ignore[union-attr]
    view(bare, "ev", events(), SCHEMA)
    cersql.sql(bare, f"CREATE PATTERN VIEW bv AS {QUERY}")
    found = cersql.sql(bare, "EXPLAIN SELECT * FROM bv WHERE k = :k", args={"k": 1}).collect()[0][0]
    assert re.search(r"before the pattern: k = :k\n", found)
    rows = cersql.sql(bare, "SELECT x, y FROM bv WHERE k = :k", args={"k": 2}).collect()
    assert sorted(map(tuple, rows)) == sorted(map(tuple, session.sql("SELECT x, y FROM v WHERE k = 2").collect()))
    assert bare.sql("SELECT * FROM bv WHERE k = 2").count() == len(rows)
