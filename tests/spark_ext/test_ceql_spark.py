"""CEQL through spark.sql: what Spark's own words decide, statements around it, views, streams."""

from __future__ import annotations

from typing import Any

import pytest
import sparks
from pyspark.errors import ParseException
from pyspark.sql import SparkSession

import cersql

NAMES = ["MSFT", "MSFT2", "it's", "a\\b", "M\nT", None]


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    own = sparks.taught(spark)
    own.conf.set("cersql.orderBy", "t")
    rows = [
        (i, "AB"[i % 2], f"2024-01-01 00:00:{i:02}", i, name, None if name else "S", i) for i, name in enumerate(NAMES)
    ]
    made = ", ".join(
        f"({i}L, '{type}', TIMESTAMP '{ts}', {t}L, {_literal(name)}, {_literal(symbol)}, {n}, {n}D)"
        for i, type, ts, t, name, symbol, n in rows
    )
    columns = "id, type, ts, t, name, symbol, n, d"
    own.sql(f"SELECT * FROM VALUES {made} AS v({columns})").createOrReplaceTempView("S")
    other = "(6L, 'A', TIMESTAMP '2024-01-01 00:00:06', 6L, 'MSFT', NULL, 6, 6D)"
    own.sql(f"SELECT * FROM VALUES {other} AS v({columns})").createOrReplaceTempView("T")
    return own


def _literal(value: str | None) -> str:
    return "NULL" if value is None else "'" + value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n") + "'"


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("(A OR B) AS x FILTER x[name LIKE 'SF|b']", [{"x": [0]}, {"x": [1]}, {"x": [3]}]),
        ("(A OR B) AS x FILTER x[name LIKE '^M.*T$']", [{"x": [0]}]),
        ("A AS x FILTER x[name LIKE <<MSFT>>]", [{"x": [0]}]),
        ("(A OR B) AS x FILTER x[name LIKE <<MSFT.?>>]", [{"x": [0]}, {"x": [1]}]),
        ("(A OR B) AS x FILTER x[name LIKE <<M.*2|a.b>>]", [{"x": [1]}, {"x": [3]}]),
        ("(A OR B) AS x FILTER x[NOT name LIKE '[A-Z]+']", [{"x": [2]}, {"x": [3]}]),
        ("(A OR B) AS x FILTER x[NOT name LIKE <<[A-Z]+>>]", [{"x": [1]}, {"x": [2]}, {"x": [3]}, {"x": [4]}]),
        ("(A OR B) AS x FILTER x[name = 'it''s' OR name = 'a\\b']", [{"x": [2]}, {"x": [3]}]),
        ("(A OR B) AS x FILTER x[name LIKE 'a\\\\\\w']", [{"x": [3]}]),
        ("(A OR B) AS x FILTER x[n IN {..1} OR n IN {5..} OR n IN RANGE (3, 6 div 2)]",
         [{"x": [0]}, {"x": [1]}, {"x": [3]}, {"x": [5]}]),
        ("(A OR B) AS x FILTER x[n / 2 = 1 OR (n - 9) / 4 = -1 AND n > 4]", [{"x": [2]}, {"x": [3]}, {"x": [5]}]),
        ("(A OR B) AS x FILTER x[d / 2 = 1 OR (d + n) / 4 = 1 OR n * n / 6 = 1.5]", [{"x": [2]}, {"x": [3]}]),
        ("(A OR B) AS x FILTER x[n * 7 / (n + 1) IN RANGE (5, id / 1 + 1)]", [{"x": [4]}, {"x": [5]}]),
        ("A AS x; B AS y PARTITION BY [symbol, name]", []),
        ("NOT (A FILTER A[n > 1]) : NOT (A) : A AS x", [{"x": [2]}]),
    ],
)  # fmt: skip
def test_matches(session: SparkSession, pattern: str, expected: list[dict[str, list[int]]]) -> None:
    drop = ("A", "B")
    rows = session.sql(f"SELECT * FROM S WHERE {pattern} CONSUME BY NONE").collect()
    found = sorted(sorted(sparks.bound(row.asDict(), without=drop)) for row in rows)
    assert found == sorted(sorted((name, tuple(ids)) for name, ids in match.items()) for match in expected)


def test_streams_with_types_of_their_own(session: SparkSession) -> None:
    text = "SELECT {} FROM S, T WHERE S>A; T>A FILTER S>A[name LIKE 'MS.*'] WITHIN 100 EVENTS"
    rows = session.sql(text.format("*")).collect()
    assert [(row["S>A"].id, row["T>A"].id) for row in rows] == [(0, 6)]
    (row,) = session.sql(text.format("T>A[n]")).collect()
    assert (row.asDict().keys() - {"match_start", "match_end"}, row["T>A"].n) == ({"T>A"}, 6)
    every = session.sql("SELECT A FROM S, T WHERE A FILTER S>A[n < 1] AND T>A[n > 5] CONSUME BY NONE").collect()
    assert sorted((row["T>A"] or row["S>A"]).id for row in every) == [0, 6]


def test_statements_around_it(session: SparkSession) -> None:
    query = "SELECT * FROM S WHERE A AS x; B AS y"
    assert session.sql(f"SELECT count(*) FROM ({query}) AS m").first()[0] == 6  # type: ignore[index]
    session.sql(f"CREATE PATTERN VIEW pairs AS {query}")
    assert session.table("pairs").count() == 6
    limited = session.sql(f"{query} LIMIT 2").collect()
    assert sorted(row.y.id for row in limited) == [1, 3, 3, 5, 5]
    assert session.sql(f"SELECT count(*) FROM ({query} LIMIT 1)").first()[0] == 3  # type: ignore[index]
    assert session.sql(f"SELECT * FROM ({query} LIMIT 0)").count() == 0
    with_values = session.sql(f"{query} FILTER x[n > :least]", {"least": 1})
    assert sorted((row.x.id, row.y.id) for row in with_values.collect()) == [(2, 3), (2, 5), (4, 5)]
    assert "PROJECT" in cersql.explain(session, "SELECT x FROM S WHERE A AS x; B", "cel")


def test_sql_stays_sql(session: SparkSession) -> None:
    session.sql("SELECT true AS a, id FROM S").createOrReplaceTempView("flags")
    assert session.sql("SELECT * FROM flags WHERE (a OR a)").count() == 6
    assert session.sql("SELECT ALL id FROM flags WHERE NOT (a OR a)").count() == 0
    with pytest.raises(ParseException) as raised:
        session.sql("SELECT * FROM flags WHERE a; DROP VIEW flags")
    assert "CEQL" not in str(raised.value)
    assert session.table("flags").count() == 6


@pytest.mark.parametrize(
    ("text", "place", "fragment"),
    [
        ("SELECT * FROM S\nWHERE A; B PARTITION BY [n]\nWITHIN 3 EVENTS", "line 3, pos 7", "events of all keys"),
        ("SELECT * FROM S\nWHERE A; B FILTER A[nn > 1]", "line 2, pos 20", "column n"),
        ("SELECT * FROM S\nWHERE A; B FILTER A[n > ]", "line 2", "A[n > ]"),
        ("SELECT * FROM (SELECT *\nFROM S WHERE A; B FILTER C[n > 1]) AS m", "line 2, pos 25", "variable C"),
    ],
)
def test_errors_have_their_place(session: SparkSession, text: str, place: str, fragment: str) -> None:
    with pytest.raises(ParseException) as raised:
        session.sql(text)
    assert place in str(raised.value)
    assert fragment in str(raised.value)


@pytest.mark.exhaustive
def test_as_a_stream(session: SparkSession) -> None:
    text = "SELECT x, y FROM S WHERE A AS x; NOT (A); B AS y FILTER x[n < 3] WITHIN 4 SECONDS LIMIT 1 ORDER BY ts"
    replayed: Any = cersql.replay(session, "S", text.replace(" FROM S", ""))
    assert replayed.same
    rows = session.sql(text).collect()
    assert sorted((row.x.id, row.y.id) for row in rows) == [(0, 3), (2, 5)]
