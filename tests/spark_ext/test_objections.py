"""What Spark's analyzer says against an expression comes back at its place in the user's text."""

from __future__ import annotations

from typing import Any

import pytest
from queries import check_place
from sparks import taught, view

import cersql
from spark_ext.errors import ExpressionError

SCHEMA = "ts BIGINT, type STRING, k INT, v DOUBLE, name STRING, arr ARRAY<INT>"


@pytest.fixture(scope="module")
def session(spark: Any) -> Any:
    """A session with a small table."""
    found = taught(spark)
    view(found, "t", [(1, "A", 1, 1.0, "x", [1, 2]), (2, "B", 1, 2.0, "y", [3]), (3, "B", 1, None, None, None)], SCHEMA)
    return found


T = "FROM t PATTERN A a ; B+ b "
END = " ORDER BY ts RETURN *"
WRONG = "INVALID_EXPRESSION"
NAME = "UNRESOLVED_NAME"


@pytest.mark.parametrize(
    ("marked", "condition", "fragments"),
    [
        # COGRA's unquoted word
        (T + "WHERE a.v > 0 AND a.name = ‸passive" + END, NAME, ("passive is neither", "in quotes: 'passive'")),
        (T + "WHERE\n  a.v > 0 AND\n\tb.v < ‸nosuch(b.v)" + END, WRONG, ("nosuch",)),
        (T + "WHERE NOT (a.v > 0 OR b.name > ‸zzz)" + END, NAME, ("zzz",)),
        (T + "WHERE ‸a.v" + END, WRONG, ("DOUBLE", "BOOLEAN")),
        (T + "WHERE ‸a.v + b.v" + END, WRONG, ("DOUBLE", "BOOLEAN")),
        (T + "WHERE ‸COUNT(b)" + END, WRONG, ("BIGINT", "BOOLEAN")),
        (T + "WHERE ‸b.ts - a.ts <= INTERVAL 3 SECONDS" + END, WRONG, ("INTERVAL",)),
        (T + "WHERE ‸a.arr > 1" + END, WRONG, ("ARRAY<INT>",)),
        (T + "WHERE a.v > 0 AND 1 < ‸median(a.arr)" + END, WRONG, ("ARRAY<INT>",)),
        (T + "WHERE a.v > (SELECT max(‸nope) FROM t)" + END, NAME, ("nope",)),
        (T + "WHERE a[v > 1 AND ‸zzz = 2]" + END, NAME, ("zzz",)),
        ("FROM t DEFINE A AS v > 1 AND name = ‸zzz, B AS TRUE PATTERN A a ; B b" + END, NAME, ("zzz",)),
        ("FROM t DEFINE A AS v > 1, Bee AS ‸length(arr) > 1 PATTERN A a ; Bee b" + END, WRONG, ("ARRAY<INT>",)),
        (T + "ORDER BY ts RETURN a.v, ‸nosuch(a.v) AS x", WRONG, ("nosuch",)),
        (T + "ORDER BY ts RETURN a.v + ‸zzz", NAME, ("zzz",)),
        (T + "ORDER BY ts RETURN a.name, ‸b.v + 1", WRONG, ("ARRAY<DOUBLE>",)),
        (T + "ORDER BY ts RETURN * HAVING COUNT(b) > ‸zzz", NAME, ("zzz",)),
        (T + "ORDER BY ts RETURN * HAVING ‸COUNT(b) + 1", WRONG, ("BOOLEAN",)),
        (T + "WHERE COUNT(b) > 1 AND a.v > ‸nosuch(COUNT(b))" + END, WRONG, ("nosuch",)),
        (T + "ORDER BY ts RETURN a.v, MAX(‸nosuch(b.v))", WRONG, ("nosuch",)),
        (T + "ORDER BY ts RETURN a.v, COUNT(b) + MIN(b.v + ‸zzz)", NAME, ("zzz",)),
    ],
)
def test_place(session: Any, marked: str, condition: str, fragments: tuple[str, ...]) -> None:
    text = marked.replace("‸", "")
    with pytest.raises(ExpressionError) as raised:
        cersql.sql(session, text)
    check_place(raised.value, text, marked.index("‸"), condition, *fragments)
    assert "__cersql" not in str(raised.value)
    assert "lambda" not in str(raised.value)


@pytest.mark.parametrize(
    ("condition", "n"),
    [
        ("a.v > (SELECT min(v) - 1 FROM t) AND b.v >= 2", 1),
        ("exists(a.arr, x -> x > 1) AND a.v::int = 1 AND CAST(b.ts AS DATE) IS NULL", None),
        ("exists(a.arr, b -> b > 1) AND filter(b.arr, x -> x > 2)[0] = 3", 1),
        ("COUNT(b) = 2 OR b.v = 2", 2),  # the second B alone has no v
        ("b.v >= AVG(b.v)", 1),
        ("b.v > 5 OR COUNT(b) = 2", 1),
        ("NOT (COUNT(b) = 2 OR b.v IS NULL)", 1),
        ("a.v < FIRST(b.v)", 2),
        ("a.v < b[2].v", 0),
    ],
)
def test_what_spark_takes(session: Any, condition: str, n: int | None) -> None:
    text = T + f"WHERE {condition} ORDER BY ts RETURN COUNT(*)"
    if n is None:
        with pytest.raises(ExpressionError):
            cersql.sql(session, text)
    else:
        assert cersql.sql(session, text).count() == n


def test_place_in_a_subquery(session: Any) -> None:
    marked = "SELECT count(*) FROM (\n  FROM t PATTERN A a\n  WHERE a.name = ‸zzz ORDER BY ts RETURN *\n) AS m"
    text = marked.replace("‸", "")
    with pytest.raises(ExpressionError) as raised:
        cersql.sql(session, text)
    check_place(raised.value, text, marked.index("‸"), NAME, "zzz")


def test_a_variable_inside_a_subquery_of_a_condition(session: Any) -> None:
    text = T + "WHERE a.v > (SELECT max(v) FROM t AS u WHERE u.k = a.k)" + END
    with pytest.raises(ExpressionError) as raised:
        cersql.sql(session, text)
    assert "cannot see the variables" in str(raised.value)
