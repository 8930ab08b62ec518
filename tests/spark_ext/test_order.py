"""ORDER BY through spark.sql: ties, NULLs in later columns, and rows that arrive in any order."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import sparks
from pyspark.sql import SparkSession

SCHEMA = "x string, ts int, n int, f double, id int"


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    return sparks.taught(spark)


MORE = pytest.mark.exhaustive


def order_of(
    session: SparkSession, rows: list[tuple[Any, ...]], clauses: str, source: str = "FROM events"
) -> list[list[int]]:
    """The ids of rows in stream order, however they are sorted and laid out."""
    sparks.view(session, "events", rows, SCHEMA)
    text = f"{source} PATTERN (a :+) AS b DEFINE a AS TRUE WHERE COUNT(b) = {len(rows)} {clauses} RETURN b.id AS ids"
    text = text.replace("(a :+) AS b", "(a:+) AS b")
    frames = []
    for sort, more in itertools.product(("worker", "spark"), ("", "WITHIN 1000000")):
        with sparks.settings(session, cersql__sort=sort):
            frames.append(session.sql(text.replace(" RETURN", f" {more} RETURN")))
    found = [own[0]["ids"] for own in sparks.together(frames)]
    assert all(ids == found[0] for ids in found), found
    return found


@pytest.mark.breadth(1)
@pytest.mark.parametrize(
    ("clauses", "expected"),
    [
        ("ORDER BY ts, n, id", [4, 0, 2, 1, 3]),
        ("ORDER BY ts, n NULLS LAST, id", [0, 2, 1, 4, 3]),
        pytest.param("ORDER BY ts ASC NULLS FIRST, n ASC NULLS FIRST, id", [4, 0, 2, 1, 3], marks=MORE),
        pytest.param("ORDER BY ts, f, id", [1, 0, 2, 4, 3], marks=MORE),
        ("ORDER BY ts, f NULLS LAST, id", [0, 2, 4, 1, 3]),
        pytest.param("ORDER BY ts, x, id", [1, 2, 4, 0, 3], marks=MORE),
        ("ORDER BY ts", [0, 1, 2, 4, 3]),  # then by what RETURN reads
    ],
)
def test_later_columns_decide(session: SparkSession, clauses: str, expected: list[int]) -> None:
    """NULLs come first unless it says otherwise; NaN last; -0.0 equals 0.0; strings by their bytes."""
    nan = float("nan")
    rows = [
        ("é", 1, 1, -0.0, 0),
        (None, 1, 2, None, 1),
        ("Z", 1, 1, 0.0, 2),
        ("", 2, 0, 0.0, 3),
        ("a", 1, None, nan, 4),
    ]
    for arrangement in (rows, rows[::-1]):
        assert order_of(session, arrangement, clauses)[0] == expected


@pytest.mark.exhaustive
def test_a_collation_decides(session: SparkSession) -> None:
    """What is equal under it is told apart by what follows, and at last by its bytes."""
    rows = [
        (x, 1, n, 0.0, id) for id, (x, n) in enumerate([("b", 1), ("Ä", 2), ("B", 0), ("a", 2), (None, 5), ("c", 0)])
    ]
    source = "FROM (SELECT x COLLATE de_CI_AI AS x, ts, n, id FROM events) e "
    for clauses, expected in (
        ("ORDER BY ts, x, n, id", [4, 1, 3, 2, 0, 5]),
        ("ORDER BY ts, x NULLS LAST, n, id", [1, 3, 2, 0, 5, 4]),
    ):
        for arrangement in (rows, rows[::-1]):
            found = order_of(session, arrangement, clauses, source)
            assert found[0] == expected


@pytest.mark.exhaustive
def test_the_pattern_decides_ties_before_return_does(session: SparkSession) -> None:
    """n is read by a condition; x stands before it in the schema but is only returned."""
    sparks.view(session, "events", [("a", 1, 2, 0.0, 0), ("b", 1, 1, 0.0, 1)], SCHEMA)
    for clauses in ("ORDER BY ts", "ORDER BY ts WITHIN 9", "PARTITION BY f ORDER BY ts", "ORDER BY ts WITHIN 9 EVENTS"):
        df = session.sql(f"FROM events PATTERN a : b DEFINE a AS n > 0, b AS n > 0 {clauses} RETURN a.x AS a, b.x AS b")
        assert [tuple(row) for row in df.collect()] == [("b", "a")]
        df = session.sql(
            f"FROM events PATTERN a : b DEFINE a AS id < 9, b AS id < 9 {clauses} RETURN a.x AS a, b.x AS b"
        )
        assert [tuple(row) for row in df.collect()] == [("a", "b")]
        df = session.sql(f"FROM events PATTERN a : b DEFINE a AS TRUE, b AS TRUE {clauses} RETURN a.id AS a, b.id AS b")
        assert [tuple(row) for row in df.collect()] == [(0, 1)]


def test_how_rows_are_spread_does_not_matter(session: SparkSession) -> None:
    """Equal times all over the partitions of the source."""
    session.sql("SELECT id, id % 5 AS ts, id % 3 AS v FROM range(60)").createOrReplaceTempView("spread")
    found = []
    for n in (1, 3, 7):
        session.table("spread").repartition(n).createOrReplaceTempView("shuffled")
        for clauses in ("PARTITION BY one ORDER BY ts", "ORDER BY ts WITHIN 3", "ORDER BY ts"):
            df = session.sql(
                "FROM (SELECT *, 1 AS one FROM shuffled) AS e PATTERN a : b DEFINE a AS v = 0, b AS v = 1 "
                f"{clauses} RETURN a.id AS a, b.id AS b"
            )
            found.append(sorted(tuple(row) for row in df.collect()))
    assert all(own == found[0] for own in found)
    assert len(found[0]) == 5  # v decides among the twelve rows of a time: four 0, then four 1, then four 2
