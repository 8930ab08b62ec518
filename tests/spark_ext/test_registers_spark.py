"""Conditions on aggregates that runs answer by registers: what Spark itself answers over listed matches."""

from __future__ import annotations

import math
import random
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
import sparks
from pyspark.errors import PySparkException

import cersql
from cersql.binding.rounds import Rounds
from planner.acel import Measured

SCHEMA = "ts BIGINT, type STRING, i INT, s SMALLINT, big BIGINT, d DOUBLE, f FLOAT, dec DECIMAL(10,2), t TIMESTAMP"
CONDITIONS = (
    "SUM(b.d) > 1.5", "SUM(b.dec) >= 2.25", "AVG(b.i) < 2.5", "MAX(b.d) = 2", "MIN(b.f) <= 0", "MAX(b.t) > MIN(b.t)",
    "COUNT(b.d) > 1", "MAX(b.d) < 3", "SUM(b.f) <> 1", "NOT SUM(b.i) > 3", "3 < SUM(b.big)", "MIN(b.dec) = MAX(b.dec)",
    "AVG(b.d) >= AVG(b.i)", "SUM(b.s) = COUNT(b)", "MIN(b.d) <> 0.0", "MAX(b.dec) > 1.234", "COUNT(*) <= 3",
    "SUM(b.i) > 2 OR MAX(b.d) >= 2.5", "NOT (COUNT(b) < 2 OR SUM(b.i) > 4)", "MIN(b.i) > -1 AND COUNT(b.i) <> 2",
    "MAX(b.f) = 0", "-1 >= MIN(b.s)", "AVG(b.f) > 0.1", "SUM(b.dec) < SUM(b.dec)",
)  # fmt: skip


def drawn(n: int) -> list[tuple[Any, ...]]:
    chance = random.Random(5)
    doubles = (None, 0.0, -0.0, 1.0, 2.0, 2.5, -3.25, 0.1, math.nan, math.inf)
    return [
        (
            i, chance.choice("ABBBC"), chance.choice((None, -1, 0, 1, 2, 3)), chance.choice((None, -2, 0, 1, 2)),
            chance.choice((None, 1, 2, 1 << 40)), chance.choice(doubles), chance.choice(doubles[:8]),
            chance.choice((None, Decimal("0.25"), Decimal("1.24"), Decimal("-1.00"))),
            chance.choice((None, datetime(2025, 1, 1) + timedelta(seconds=chance.randrange(3)))),
        )
        for i in range(n)
    ]  # fmt: skip


@pytest.fixture(scope="module")
def session(spark: Any) -> Any:
    own = sparks.taught(spark)
    sparks.view(own, "numbers", drawn(14), SCHEMA)
    return own


@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.exhaustive)])
def test_registers_answer_as_spark_does(session: Any, step: int) -> None:
    asked = CONDITIONS[::step]
    texts = [
        f"FROM numbers PATTERN ((A a ; B+ b) FILTER {condition}) ; C c ORDER BY ts WITHIN 9 "
        "RETURN a.ts AS a, b.ts AS b, c.ts AS c"
        for condition in asked
    ]
    listed = [cersql.sql(session, text) for text in texts]
    placed = Rounds.placed
    with sparks.patched(Rounds, "placed", lambda self, formula, inside=False: placed(self, formula, True)):
        held = [cersql.sql(session, text) for text in texts]
        formula = cersql.compile(texts[0], {"numbers": SCHEMA}).query.formula
    assert formula.contains((Measured,))
    for condition, one, other in zip(asked, sparks.together(listed), sparks.together(held), strict=True):
        assert sorted(map(str, one)) == sorted(map(str, other)), condition


def test_a_sum_that_leaves_its_type_is_an_error_where_it_is_asked(session: Any) -> None:
    rows = [(0, "A", 0), (1, "B", (1 << 63) - 1), (2, "B", 1), (3, "C", 0)]
    sparks.view(session, "large", rows, "ts BIGINT, type STRING, v BIGINT")
    text = "FROM large PATTERN NXT((A a ; B:{%s} b) FILTER SUM(b.v) > 1) ; C c ORDER BY ts RETURN b.ts AS b"
    assert [row.b for row in cersql.sql(session, text % 1).collect()] == [1]
    with pytest.raises(PySparkException, match="ARITHMETIC"):
        cersql.sql(session, text % 2).collect()
