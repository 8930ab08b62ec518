"""Random queries by their relational plan: the rows are what the oracle says, and what the automaton gives.

The streams, keys and layouts are those of test_differential_spark. CERSQL_DIFFERENTIAL=50 runs that many rounds.
"""

from __future__ import annotations

import random
from collections import Counter

import algebra
import differential as plain
import oracle
import pytest
import sparks
import strategies
from differential_all import SCHEMAS, Drawn, Trial, clothed, drawn, expected
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import cersql
import spark_ext.joining
from cersql.errors import BindError
from cersql.statements.verify import Verified
from planner.refusal import Refusal
from planner.relational.planning import relational

QUERIES = 8  # a round is one Spark job


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    own = sparks.taught(spark)
    own.conf.set("cersql.plan", "relational")
    return own


@st.composite
def trials(draw: st.DrawFn, rows: list[plain.Row]) -> Drawn | None:
    """A query that binds, that has a relational plan, and that the oracle can afford; or None."""
    asked = draw(strategies.queries(2))
    chance = random.Random(draw(st.integers(0, 2**32)))
    trial = clothed(asked, algebra.bounded(asked.formula), chance, ("auto",))
    try:
        lines = trial.text().splitlines()
        made = relational(cersql.compile("\n".join(["FROM events", *lines[1:]]), SCHEMAS).query)
        if isinstance(made, Refusal) or sum(len(branch.slots) for branch in made.branches) > 12:
            return None
        return trial, expected(trial, rows)
    except (oracle.TooLarge, BindError):
        return None


def rounds(breadth: int) -> list[object]:
    return [pytest.param(n, marks=[pytest.mark.exhaustive] if n >= breadth else []) for n in range(plain.ROUNDS)]


@pytest.mark.parametrize("number", rounds(plain.USUAL))
def test_spark_and_oracle_agree(session: SparkSession, number: int) -> None:
    rows = plain.draw_rows(random.Random(2000 + number))
    tried = drawn(trials, rows, number, QUERIES, 20 * QUERIES)
    sparks.view(session, "events", [tuple(row.values()) for row in rows], plain.SCHEMA)
    with sparks.patched(spark_ext.joining, "BUCKET_WINDOWS", 1 + number % 3):
        frames = [plain.frame(session, trial) for trial, _ in tried]
    for (trial, want), own in zip(tried, sparks.together(frames), strict=True):
        have = Counter(plain.shown(trial, row) for row in own)
        assert have == want, plain.difference(trial, have, want, rows)


@st.composite
def windowed(draw: st.DrawFn, rows: list[plain.Row]) -> Drawn | None:
    """A query of a window that has a relational plan, for rows of which no oracle could say what it finds."""
    asked = draw(strategies.queries(2))
    trial = clothed(asked, algebra.bounded(asked.formula), random.Random(draw(st.integers(0, 2**32))), ("auto",))
    try:
        lines = trial.text().splitlines()
        made = relational(cersql.compile("\n".join(["FROM events", *lines[1:]]), SCHEMAS).query)
    except BindError:
        return None
    if trial.window is None or isinstance(made, Refusal) or sum(len(branch.slots) for branch in made.branches) > 6:
        return None
    return trial, Counter([()])


def verified(session: SparkSession, trial: Trial) -> Verified | None:
    """What both plans give; None where they are too many."""
    try:
        with plain.laid_out(session, trial):
            return cersql.verify(session, trial.text())
    except PySparkException as error:
        if "MATCH_LIMIT" in str(error):
            return None
        raise


@pytest.mark.exhaustive
@pytest.mark.parametrize("number", range(plain.ROUNDS))
def test_each_plan_is_the_oracle_of_the_other(session: SparkSession, number: int) -> None:
    """Over some hundred rows; a query with very many matches is left out."""
    rows = plain.draw_rows(random.Random(3000 + number), 60, 60)
    sparks.view(session, "events", [tuple(row.values()) for row in rows], plain.SCHEMA)
    said = []
    with sparks.settings(session, cersql__maxMatches=20_000):
        for trial, _ in drawn(windowed, rows, number, QUERIES, 20 * QUERIES):
            found = verified(session, trial)
            if found is None:
                continue
            assert found.same, f"{trial.text()}\n{found}"
            said.append(found.rows)
    assert sum(said) > 100
    assert len(said) > QUERIES // 2


def test_the_drawn_queries_differ() -> None:
    """All that has a relational plan is drawn: windows, keys, strategies, what must not happen."""
    rows = plain.draw_rows(random.Random(1))
    found: list[Trial] = []

    @seed(1)
    @settings(
        max_examples=300, deadline=None, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
    )
    @given(trials(rows))
    def gather(one: Drawn | None) -> None:
        if one is not None:
            found.append(one[0])

    gather()
    assert {trial.options.strategy for trial in found} == {"ALL", "STRICT", "NXT", "LAST", "MAX", "NEXT_MATCH"}
    assert {trial.window.kind if trial.window else None for trial in found} == {None, "time", "events"}
    assert sum(any(part.negated() for part in trial.formula.walk()) for trial in found) > 10
    assert any(trial.options.skip is not None for trial in found)
