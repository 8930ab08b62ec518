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
from planner import physical
from planner.acel import Measured
from planner.sieve import NO_SIEVE

SCHEMA = "ts BIGINT, type STRING, i INT, s SMALLINT, big BIGINT, d DOUBLE, f FLOAT, dec DECIMAL(10,2), t TIMESTAMP"
CONDITIONS = (
    "SUM(b.d) > 1.5", "SUM(b.dec) >= 2.25", "AVG(b.i) < 2.5", "MAX(b.d) = 2", "MIN(b.f) <= 0", "MAX(b.t) > MIN(b.t)",
    "COUNT(b.d) > 1", "MAX(b.d) < 3", "SUM(b.f) <> 1", "NOT SUM(b.i) > 3", "3 < SUM(b.big)", "MIN(b.dec) = MAX(b.dec)",
    "AVG(b.d) >= AVG(b.i)", "SUM(b.s) = COUNT(b)", "MIN(b.d) <> 0.0", "MAX(b.dec) > 1.234", "COUNT(*) <= 3",
    "SUM(b.i) > 2 OR MAX(b.d) >= 2.5", "NOT (COUNT(b) < 2 OR SUM(b.i) > 4)", "MIN(b.i) > -1 AND COUNT(b.i) <> 2",
    "MAX(b.f) = 0", "-1 >= MIN(b.s)", "AVG(b.f) > 0.1", "SUM(b.dec) < SUM(b.dec)",
    "AVG(b.dec) > 0.4", "AVG(b.dec) <= MAX(b.dec)", "SUM(b.dec) > SUM(b.i)", "SUM(b.d) >= SUM(b.dec)", "RANGE(b.i) > 1",
    "RANGE(b.d) <= 2.5", "RANGE(b.dec) = 0.99", "PRODUCT(b.i) > 2", "PRODUCT(b.dec) < 0.5", "VAR_POP(b.i) > 0.5",
    "VARIANCE(b.d) < 3", "STDDEV(b.i) > 1", "STD(b.dec) <= 0.7", "STDDEV_POP(b.d) > VAR_POP(b.i)", "MEDIAN(b.i) >= 1",
    "MEDIAN(b.d) < 2", "BOOL_AND(b.i > 0)", "NOT EVERY(b.d < 2)", "BOOL_OR(b.dec IS NULL)", "NOT SOME(b.i = 3)",
    "COUNT_IF(b.i > 0) = 2", "BIT_AND(b.i) = 0", "BIT_OR(b.big) > 2", "BIT_XOR(b.i) <> 1", "MAX_BY(b.i, b.d) > 0",
    "MIN_BY(b.d, b.t) < 2", "MAX_BY(b.dec, b.i) = 0.25", "COUNT(DISTINCT b.i) > 2", "COUNT(DISTINCT b.t) = 2",
    "SUM(DISTINCT b.i) >= 3", "AVG(DISTINCT b.d) < 2", "SUM(DISTINCT b.dec) > 1", "MIN(DISTINCT b.i) = 0",
    "STDDEV(DISTINCT b.i) > 1", "SUM(b.i * 2 + 1) > 5", "SUM(b.i) FILTER (WHERE b.d > 0) > 1",
    "COUNT(*) FILTER (WHERE b.i > 0) = 1", "MAX_BY(b.i, b.d) FILTER (WHERE b.big > 1) >= 1", "SUM(b.i) > a.i",
    "a.d < MAX(b.d)", "a.i + 1 = COUNT(b)", "MAX(b.t) > TIMESTAMP'2025-01-01 00:00:01'", "MAX(b.t) <> a.t",
    "SUM(b.i) > 3 OR a.i > 1", "COUNT(b.type) = 2", "MIN(b.i) < abs(-2)", "APPROX_COUNT_DISTINCT(b.i) < 2",
    "AVG(b.dec) = 0.25", "SUM(b.dec) <> a.dec", "COUNT_IF(b.d > 0) >= COUNT(b.i)", "MAX(b.i > 1)",
    "COUNT(b) FILTER (WHERE b.d < 2) <= 1", "a.i < 2 OR COUNT_IF(b.d > 1) = 1",
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


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.exhaustive)])
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
        by_runs = ["FILTER by registers" in cersql.explain(session, text, "cel") for text in texts]
    assert formula.contains((Measured,))
    assert all(by_runs), [condition for condition, n in zip(asked, by_runs, strict=True) if not n]
    for condition, one, other in zip(asked, sparks.together(listed), sparks.together(held), strict=True):
        assert sorted(map(str, one)) == sorted(map(str, other)), condition


ASKED = (
    "PATTERN A a ; B+ b ; C c WHERE {} WITHIN 9 ORDER BY ts RETURN a.ts AS a, b.ts AS b, c.ts AS c",
    "PATTERN (A a ; B+ b ; C c) WITHIN 9 ORDER BY ts RETURN a.ts AS a, COUNT(b) AS n, c.ts AS c HAVING {}",
    "PATTERN ((A a ; B+ b) FILTER {}) ; C c ORDER BY ts WITHIN 9 RETURN a.ts AS a, SUM(b.i) AS s, c.ts AS c",
)


@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.exhaustive)])
def test_a_sieve_leaves_out_what_fails_alone(session: Any, step: int) -> None:
    """What bounds on sums pass over is what Spark would filter out (planner.sieve)."""
    texts = [f"FROM numbers {ASKED[n % len(ASKED)].format(one)}" for n, one in enumerate(CONDITIONS[::step])]
    sifted = [cersql.sql(session, text) for text in texts]
    with sparks.patched(physical, "sieve", lambda *_: NO_SIEVE):
        whole = [cersql.sql(session, text) for text in texts]
    for text, one, other in zip(texts, sparks.together(sifted), sparks.together(whole), strict=True):
        assert sorted(map(str, one)) == sorted(map(str, other)), text


def test_a_sum_that_leaves_its_type_is_an_error_where_it_is_asked(session: Any) -> None:
    rows = [(0, "A", 0), (1, "B", (1 << 63) - 1), (2, "B", 1), (3, "C", 0)]
    sparks.view(session, "large", rows, "ts BIGINT, type STRING, v BIGINT")
    text = "FROM large PATTERN NXT((A a ; B:{%s} b) FILTER SUM(b.v) > 1) ; C c ORDER BY ts RETURN b.ts AS b"
    assert [row.b for row in cersql.sql(session, text % 1).collect()] == [1]
    with pytest.raises(PySparkException, match="ARITHMETIC"):
        cersql.sql(session, text % 2).collect()
