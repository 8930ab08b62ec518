"""Random queries of all operators, strategies, consumption and skipping through spark.sql: what the oracle says.

The streams, keys and layouts are those of test_differential_spark; the formulas are nested three deep.
CERSQL_DIFFERENTIAL=50 runs that many rounds of queries.
"""

from __future__ import annotations

import random
from collections import Counter

import differential as plain
import oracle
import pytest
import sparks
import strategies
from differential_all import SCHEMAS, Drawn, clothed, drawn, expected
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import cersql
from cersql.errors import BindError

QUERIES = 10  # a round is one Spark job


@st.composite
def trials(draw: st.DrawFn, rows: list[plain.Row]) -> Drawn | None:
    """A query that binds and that the oracle can afford, or None."""
    asked = draw(strategies.queries())
    chance = random.Random(draw(st.integers(0, 2**32)))
    trial = clothed(asked, asked.formula, chance, ("auto", "worker", "spark"))
    try:
        lines = trial.text().splitlines()
        cersql.compile("\n".join(["FROM events", *lines[1:]]), SCHEMAS)
        return trial, expected(trial, rows)
    except (oracle.TooLarge, BindError):  # names that only a text has: one name in two negated parts, for example
        return None


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    return sparks.taught(spark)


def run(session: SparkSession, rows: list[plain.Row], tried: list[Drawn]) -> None:
    sparks.view(session, "events", [tuple(row.values()) for row in rows], plain.SCHEMA)
    found = sparks.together([plain.frame(session, trial) for trial, _ in tried])
    for (trial, want), own in zip(tried, found, strict=True):
        have = Counter(plain.shown(trial, row) for row in own)
        assert have == want, plain.difference(trial, have, want, rows)


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(n, marks=[pytest.mark.exhaustive] if n >= max(1, plain.USUAL - 1) else [])
        for n in range(max(1, plain.ROUNDS // 2))
    ],
)
def test_spark_and_oracle_agree_on_all_operators(session: SparkSession, number: int) -> None:
    rows = plain.draw_rows(random.Random(1000 + number))
    run(session, rows, drawn(trials, rows, number, QUERIES, 4 * QUERIES))
