"""Catalyst's SQL as conditions on Arrow columns: what is known, and what is left to Spark."""

from __future__ import annotations

import pytest

from planner.refusal import Refusal
from planner.scan import condition
from runtime.scan.conditions import (
    Absolute,
    And,
    Arithmetic,
    Column,
    Compare,
    Constant,
    Flag,
    In,
    IsNull,
    Matches,
    Not,
    Or,
    Test,
    Widened,
)  # fmt: skip

COLUMNS = {
    "d": "double", "f": "float", "i": "int", "l": "bigint", "s": "string", "c": "string collate UTF8_LCASE",
    "b": "boolean", "t": "timestamp", "n": "timestamp_ntz", "day": "date", "p": "decimal(9,2)", "w": "decimal(30,2)",
    "x": "struct<d:int,y:int>", "x.d": "int", "x.y": "int", "x.z": "struct<a:string>", "x.z.a": "string",
    "odd name": "string",
}  # fmt: skip
D, N, L, S = Column("d"), Column("i"), Column("l"), Column("s")


@pytest.mark.parametrize(
    ("sql", "test"),
    [
        ("(d > 80.5D)", Compare(">", D, Constant(80.5))),
        ("(80.5D > d)", Compare("<", D, Constant(80.5))),
        ("(i <=> -3)", Compare("<=>", N, Constant(-3))),
        ("(l = 3L)", Compare("=", L, Constant(3))),
        ("(CAST(i AS BIGINT) < l)", Compare("<", Widened(N, "int64"), L)),
        ("(CAST(i AS DOUBLE) <= 1.5D)", Compare("<=", Widened(N, "float64"), Constant(1.5))),
        ("(NOT (s = 'a'))", Not(Compare("=", S, Constant("a")))),
        ("(s IN ('a', 'b'))", In(S, (Constant("a"), Constant("b")))),
        ("(s IS NOT NULL)", Not(IsNull(S))),
        ("startswith(s, 'a')", Matches("starts", S, "a")),
        ("(b AND (d = 0.0D))", And((Flag(Column("b")), Compare("=", D, Constant(0.0))))),
        (
            "((b OR (i = 1)) OR (i = 2))",
            Or((Flag(Column("b")), Compare("=", N, Constant(1)), Compare("=", N, Constant(2)))),
        ),
        ("(f = CAST('0.1' AS FLOAT))", Compare("=", Column("f"), Constant(0.10000000149011612))),
        ("(p = 1.50BD)", Compare("=", Column("p"), Constant(150))),
        ("(day = DATE '1969-12-31')", Compare("=", Column("day"), Constant(-1))),
        ("(t > TIMESTAMP '1970-01-01 00:00:01.5')", Compare(">", Column("t"), Constant(1_500_000))),
        ("(n > TIMESTAMP_NTZ '1969-12-31 23:59:59')", Compare(">", Column("n"), Constant(-1_000_000))),
        ("((d + 0.0D) IS NOT NULL)", Not(IsNull(D))),
        ("((f + CAST('0.0' AS FLOAT)) IS NULL)", IsNull(Column("f"))),
        ("(x.y = 1)", Compare("=", Column("x.y"), Constant(1))),
        ("(t.x.`y` = 1)", Compare("=", Column("x.y"), Constant(1))),
        ("(spark_catalog.default.t.x.z.a = 'a')", Compare("=", Column("x.z.a"), Constant("a"))),
        ("(`odd name` = 'a')", Compare("=", Column("odd name"), Constant("a"))),
        ("(spark_catalog.default.t.i = 1)", Compare("=", N, Constant(1))),
        ("true", Flag(Constant(True))),
        ("((d * 1.1D) > 3.0D)", Compare(">", Arithmetic("*", D, Constant(1.1), "float64"), Constant(3.0))),
        ("((d / 2.0D) <= d)", Compare("<=", Arithmetic("/", D, Constant(2.0), "float64"), D)),
        ("((CAST(i AS DOUBLE) - d) = d)", Compare("=", Arithmetic("-", Widened(N, "float64"), D, "float64"), D)),
        ("((i % 10) = 3)", Compare("=", Arithmetic("%", N, Constant(10), "int64"), Constant(3))),
        (
            "(((i % 10) + 2) = 3)",
            Compare("=", Arithmetic("+", Arithmetic("%", N, Constant(10), "int64"), Constant(2), "int64"), Constant(3)),
        ),
        ("((CAST(i AS BIGINT) + 1L) = l)", Compare("=", Arithmetic("+", Widened(N, "int64"), Constant(1), "int64"), L)),
        (
            "(abs((d - 1.0D)) < 2.0D)",
            Compare("<", Absolute(Arithmetic("-", D, Constant(1.0), "float64")), Constant(2.0)),
        ),
        ("(abs(CAST(i AS BIGINT)) = 2L)", Compare("=", Absolute(Widened(N, "int64")), Constant(2))),
    ],
)
def test_known(sql: str, test: Test) -> None:
    assert condition(sql, COLUMNS) == test


@pytest.mark.parametrize(
    "sql",
    [
        "((i + 1) > 3)", "(upper(s) = 'A')", "(s LIKE 'a_')", "(c = 'a')", "(w > 1.00BD)", "(p > 1.5BD)", "(i = 3L)",
        "(x.d = 1)", "(CAST(d AS INT) = 1)", "(CAST(i AS FLOAT) = CAST('1.0' AS FLOAT))", "(s = 'a\\\\b')",
        "(unknown = 1)", "(1 = 1)", "IF(b, b, b)", "(i IN (1, NULL))", "(s", "(CAST(s AS INT) = 1)", "rand() < 0.5D",
        "((l % 0L) = 1L)", "((d / 0.0D) = 1.0D)",
        "((d / d) = 1.0D)", "((d % 2.0D) = 1.0D)", "((l + 1L) = 3L)", "(abs(i) = 3)", "((p + 1.00BD) = 2.00BD)",
        "((CAST(i AS BIGINT) * CAST(i AS BIGINT)) * 4L = 1L)", "((i + 1L) = 1L)", "(- i = 1)",
        "(t > TIMESTAMP '+12024-01-01 00:00:00')", "(i = NULL)", "coalesce(b, true)", "(s = d)",
    ],
)  # fmt: skip
def test_left_to_spark(sql: str) -> None:
    found = condition(sql, COLUMNS)
    assert isinstance(found, Refusal)
    assert "left to Spark" in str(found)


def test_a_zone_decides_what_a_timestamp_means() -> None:
    """And the clock of a zone may show a time twice, so Catalyst's own number is taken."""
    at = 1_729_989_000_000_000  # 2024-10-27 00:30:00 UTC, which is 01:30 in London, as is an hour later
    sql, hour = "(t > TIMESTAMP '2024-10-27 01:30:00')", 3_600_000_000
    assert condition(sql, COLUMNS, [at]) == Compare(">", Column("t"), Constant(at))
    assert condition(sql, COLUMNS, [at + hour]) == Compare(">", Column("t"), Constant(at + hour))
    for others in ([], [at, at], [at + 1], [at + 48 * hour]):
        assert isinstance(condition(sql, COLUMNS, others), Refusal)
    wall = condition("(n > TIMESTAMP_NTZ '2024-10-27 01:30:00')", COLUMNS, [])
    assert wall == Compare(">", Column("n"), Constant(at + hour))
