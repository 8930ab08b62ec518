"""Random queries over random streams through spark.sql: the rows are what the oracle says (tests/differential.py)."""

from __future__ import annotations

import random
from collections import Counter

import pytest
import sparks
from differential import KEYS, QUERIES, ROUNDS, SCHEMA, USUAL, difference, draw, draw_rows, frame, shown
from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    return sparks.taught(spark)


@pytest.mark.breadth(1)
@pytest.mark.parametrize(
    "seed", [pytest.param(n, marks=[pytest.mark.exhaustive] if n >= USUAL else []) for n in range(ROUNDS)]
)
def test_spark_and_oracle_agree(session: SparkSession, seed: int) -> None:
    chance = random.Random(seed)
    rows = draw_rows(chance)
    sparks.view(session, "events", [tuple(row.values()) for row in rows], SCHEMA)
    trials = [draw(chance, rows) for _ in range(QUERIES)]
    found = sparks.together([frame(session, trial) for trial, _ in trials])
    for (trial, want), own in zip(trials, found, strict=True):
        have = Counter(shown(trial, row) for row in own)
        assert have == want, difference(trial, have, want, rows)


def test_the_drawn_queries_say_something() -> None:
    """Most of them have matches, and all kinds of windows and keys are met."""
    trials = []
    for seed in range(4):
        chance = random.Random(seed)
        rows = draw_rows(chance)
        trials += [draw(chance, rows) for _ in range(QUERIES)]
    assert sum(bool(want) for _, want in trials) > len(trials) / 2
    assert {trial.key for trial, _ in trials} == {None, *KEYS}
    assert {trial.window.kind if trial.window else None for trial, _ in trials} == {None, "time", "events"}
