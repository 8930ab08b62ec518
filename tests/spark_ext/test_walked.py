"""RETURN aggregates: computed where matches are listed, and by Spark over arrays of their events; the same digits."""

from __future__ import annotations

import math
import random
from decimal import Decimal
from typing import Any

import pytest
import sparks
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from cersql.binding import match_values
from cersql.language.parse import parse
from cersql.statements.planned import plan_tree

TYPES = {
    "t": "TINYINT", "i": "INT", "l": "BIGINT", "f": "FLOAT", "d": "DOUBLE", "m": "DECIMAL(9,3)", "n": "DECIMAL(18,0)",
    "w": "DECIMAL(30,5)", "s": "STRING", "b": "BOOLEAN", "day": "DATE", "at": "TIMESTAMP",
}  # fmt: skip
NUMBERS = ("t", "i", "l", "f", "d", "m", "n", "w")
CALLS = [
    "COUNT(b)", "COUNT(a)", *(f"{function}(b.{column})" for column in TYPES for function in ("COUNT", "MIN", "MAX")),
    *(f"{function}(b.{column})" for column in NUMBERS for function in ("SUM", "AVG")), "SUM(a.i)", "MEAN(a.d)",
    "MIN(c.s)", "SUM(c.m)", "COUNT(c.i)",
]  # fmt: skip

# Code for so many aggregates of a few rows takes longer than they do.
WITHOUT_CODE = {"spark__sql__codegen__wholeStage": "false", "spark__sql__codegen__factoryMode": "NO_CODEGEN"}


def value(chance: random.Random, column: str) -> Any:
    if chance.random() < 0.25:
        return None
    x = chance.choice((-9, -1, 0, 0, 3, 7))
    return {
        "f": x / 3, "d": chance.choice((x / 7, -0.0, 0.0, math.nan, 1e300, -1e300)), "m": Decimal(x) / 8,
        "n": Decimal(x * 10**17 // 9), "w": Decimal(x) / 8, "s": chance.choice(("", "a", "B", "ß")), "b": x > 0,
        "l": x * 10**10,
    }.get(column, x)  # fmt: skip


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    found = sparks.taught(spark)
    chance = random.Random(3)
    rows = []
    for i in range(40):
        own = [value(chance, column) for column in TYPES if column not in ("day", "at")]
        rows.append((i, i, chance.choice("AABBBC"), *own))
    names = [column for column in TYPES if column not in ("day", "at")]
    schema = "id INT, ts INT, type STRING, " + ", ".join(f"{name} {TYPES[name]}" for name in names)
    sparks.view(found, "base", rows, schema)
    found.sql("SELECT *, date_add(DATE'2024-01-01', i) AS day, timestamp_seconds(i) AS at FROM base") \
        .createOrReplaceTempView("ev")  # fmt: skip
    return found


def shown(rows: list[Any]) -> list[str]:
    return [repr(tuple(row)) for row in rows]


@pytest.mark.breadth(1)
@pytest.mark.parametrize(
    "pattern",
    ["A a ; B+ b ; C c? WITHIN 6", "A a ; B* b WITHIN 9 AFTER MATCH SKIP PAST LAST ROW",
     "A a ; B+ b WITHIN 5 SEMANTICS NXT", "SEQ(A a, B+ b, !C) WITHIN 4", "A a ; (B b OR C c) WITHIN 4"],
)  # fmt: skip
def test_both_ways_have_the_same_digits(session, pattern, monkeypatch):
    calls = [call for call in CALLS if "c." not in call or "C c" in pattern]
    pattern, clauses = pattern.replace("AFTER", "WITHIN").split(" WITHIN ", 1)
    clauses = clauses.replace("WITHIN", "AFTER")
    items = ", ".join(f"{call} AS v{k}" for k, call in enumerate(calls))
    text = f"FROM ev PATTERN {pattern} ORDER BY ts WITHIN {clauses} RETURN a.id, {items}"
    walked = plan_tree(session, parse(text))
    assert len(walked.compiled.query.of_events) > 30
    rows = walked.frame()
    monkeypatch.setattr(match_values, "_is_walked", lambda function, parts: False)
    other = plan_tree(session, parse(text)).frame()
    assert rows.dtypes == other.dtypes
    with sparks.settings(
        session, spark__sql__codegen__wholeStage="false", spark__sql__codegen__factoryMode="NO_CODEGEN"
    ):
        found, wanted = sorted(shown(rows.collect())), sorted(shown(other.collect()))
    assert found == wanted
    assert len(found) > 3


@pytest.mark.parametrize("ansi", [True, False])
def test_a_sum_that_leaves_bigint(session, ansi, monkeypatch):
    rows = [(0, "A", 2**62), (1, "A", 2**62), (2, "A", 2**62), (3, "B", 0)]
    sparks.view(session, "large", rows, "ts INT, type STRING, l BIGINT")
    text = "FROM large PATTERN A+ a ; B b ORDER BY ts AFTER MATCH SKIP PAST LAST ROW RETURN SUM(a.l) AS s"
    with sparks.settings(session, spark__sql__ansi__enabled=ansi):
        if ansi:
            with pytest.raises(PySparkException, match="OVERFLOW"):
                session.sql(text).collect()
            return
        own = session.sql(text).collect()
        monkeypatch.setattr(match_values, "_is_walked", lambda function, parts: False)
        assert own == plan_tree(session, parse(text)).frame().collect() == [(3 * 2**62 - 2**64,)]


def test_no_array_crosses(session):
    text = "FROM ev PATTERN A a ; B+ b ORDER BY ts AFTER MATCH SKIP PAST LAST ROW RETURN "
    text += "a.id, SUM(b.i), COUNT(b), MAX(b.s)"
    made = plan_tree(session, parse(text))
    plan = made.frame()._jdf.queryExecution().optimizedPlan().toString()
    assert "array" not in plan.lower()
    assert "transform" not in plan.lower()


def test_ten_thousand_events_are_a_row_of_scalars(session):
    session.range(10_001).selectExpr("id AS ts", "IF(id = 0, 'A', 'B') AS type", "id AS x").createOrReplaceTempView(
        "long"
    )
    text = (
        "FROM long PATTERN A a : B:+ b ORDER BY ts AFTER MATCH SKIP PAST LAST ROW RETURN SUM(b.x) AS s, AVG(b.x) AS m, "
    )
    (row,) = session.sql(text + "COUNT(b) AS n, MIN(b.x) AS least, MAX(b.x) AS most").collect()
    assert tuple(row) == (50_005_000, 5000.5, 10_000, 1, 10_000)


def test_in_where_and_having(session):
    text = "FROM ev PATTERN A a ; B+ b ORDER BY ts WITHIN 6 {} RETURN a.id AS id, SUM(b.i) AS s, COUNT(b) AS n "
    every = session.sql(text.format("")).collect()
    some = [row for row in every if row.s is not None and row.s > 3 and row.n >= 2]
    for query in (
        text.format("WHERE SUM(b.i) > 3 AND COUNT(b) >= 2"),
        text.format("") + "HAVING s > 3 AND COUNT(b) > 1",
    ):
        assert sorted(session.sql(query).collect()) == sorted(some)
