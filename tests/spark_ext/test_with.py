"""The WITH around a query of ours is what it reads, whatever views there are of the same names."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession
from sparks import taught, view

from cersql.statements.ctes import visible
from runtime.errors import Span

ROWS = [(1, "A", 1), (2, "B", 1), (3, "A", 2), (4, "B", 2)]
PAIRS = "FROM {} PATTERN A a ; B b ORDER BY ts RETURN a.ts AS x, b.ts AS y"
ONE = "WITH c AS (SELECT * FROM ev WHERE k = 1)"


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> Iterator[SparkSession]:
    found = taught(spark)
    view(found, "ev", ROWS, "ts INT, type STRING, k INT")
    found.sql("CREATE OR REPLACE TEMPORARY VIEW c AS SELECT * FROM ev WHERE k = 2")  # which none of them reads
    yield found
    found.sql("DROP VIEW c")


@pytest.mark.parametrize(
    "statement",
    [
        f"{ONE} SELECT * FROM ({PAIRS.format('c')})",
        f"{ONE} ({PAIRS.format('c')})",
        f"{ONE}, d AS ({PAIRS.format('c')}) SELECT * FROM d",
        f"{ONE} SELECT m.* FROM ev JOIN ({PAIRS.format('(SELECT * FROM c) AS q')}) m ON m.x = ev.ts",
        f"{ONE} SELECT * FROM (WITH e AS (SELECT * FROM c WHERE ts > 0) {PAIRS.format('e')})",
        f"SELECT * FROM ({ONE} SELECT * FROM ({PAIRS.format('c')}))",
        f"WITH c AS (SELECT * FROM ev) SELECT * FROM ({ONE} SELECT * FROM ({PAIRS.format('c')}))",
        f"{ONE}, p AS ({PAIRS.format('c')}), q AS (FROM (SELECT x AS ts, 'A' AS type, y FROM p) AS p2 "
        "PATTERN A a ORDER BY ts RETURN a.ts AS x, a.y AS y) SELECT * FROM q",
        "WITH RECURSIVE n(ts) AS (SELECT 1 UNION ALL SELECT ts + 1 FROM n WHERE ts < 2) SELECT * FROM (FROM "
        "(SELECT ts, substr('AB', ts, 1) AS type FROM n) AS s PATTERN A a ; B b "
        "ORDER BY ts RETURN a.ts AS x, b.ts AS y)",
    ],
)
def test_what_is_read(session: SparkSession, statement: str) -> None:
    assert [tuple(row) for row in session.sql(statement).collect()] == [(1, 2)]


def test_values_and_definitions(session: SparkSession) -> None:
    inside = f"WITH c AS (SELECT * FROM ev WHERE k = {{}}) SELECT * FROM ({PAIRS.format('c')}) WHERE x < {{}}"
    for text, values in ((inside.format(":k", ":most"), {"k": 1, "most": 9}), (inside.format("?", "?"), [1, 9])):
        assert [tuple(row) for row in session.sql(text, args=values).collect()] == [(1, 2)]
    session.sql(f"CREATE OR REPLACE TEMPORARY VIEW over AS {ONE} SELECT * FROM ({PAIRS.format('c')})")
    assert [tuple(row) for row in session.table("over").collect()] == [(1, 2)]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("SELECT * FROM (@)", ""),
        ("WITH a AS (SELECT 1), b(x) AS (SELECT 2) SELECT * FROM (@)", "a b"),
        ("WITH c AS (SELECT 1), d AS (SELECT 2) SELECT * FROM (@)", ""),
        ("WITH a AS (@) SELECT 1", ""),
        ("WITH a AS (SELECT 1), b AS (@), c AS (SELECT 3) SELECT 1", "a"),
        ("SELECT * FROM (WITH a AS (SELECT 1) SELECT * FROM a) JOIN (@)", ""),
        ("SELECT f(TABLE(t) WITH SINGLE PARTITION ORDER BY x) FROM (@)", ""),
        ("WITH a AS (SELECT 1) SELECT (WITH `A` AS (SELECT 2) SELECT * FROM (@))", "`A`"),
        ("WITH RECURSIVE a(n) MAX RECURSION LEVEL 9 AS (SELECT 1) SELECT * FROM (@)", "a"),
    ],
)
def test_what_is_visible(text: str, names: str) -> None:
    """To a query that names a and b."""
    begin, query = text.index("@"), "FROM a PATTERN b"
    found = visible(text.replace("@", query), Span(begin, begin + len(query)))
    assert " ".join(definition.name for definition in found) == names
