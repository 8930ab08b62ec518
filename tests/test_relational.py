"""The relational plan, evaluated without Spark (tests/algebra.py), finds what the oracle finds."""

from __future__ import annotations

import random
from dataclasses import replace

import algebra
import exhaustive
import oracle
import pytest
import strategies
from harness import Options
from hypothesis import HealthCheck, event, given, settings

from planner import cel
from planner.formula import Formula
from planner.relational.conditions import Unrelated

LIMIT = 400
RUNS = (*(kind for kind in strategies.SIMPLE if kind != "absent"), "compare", "neighbours", "agree")


def check(asked: strategies.Asked, rows: list[strategies.Row]) -> str:
    """Compare the two, or say why there is no plan."""
    formula, options = algebra.bounded(asked.formula), asked.options
    one_of_start = options.skip is not None
    if options.consume != "NONE" or (one_of_start and options.skip.to != "TO NEXT ROW"):
        return "consumes or skips"
    if one_of_start and options.strategy not in ("ALL", "STRICT"):
        return "skips beside a strategy"
    stream = [replace(row.event(), key=None) for row in rows]
    try:
        found = algebra.evaluate(formula, stream, asked.window, options.strategy, one_of_start)
    except Unrelated as refused:
        return str(refused)
    try:
        wanted = oracle.evaluate(formula, stream, asked.window, LIMIT, **options.given())
    except oracle.TooLarge:
        return "too large"
    assert found == wanted, strategies.query_text(formula, asked.window, keyed=False, options=options)
    return "same"


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(strategies.queries(2), strategies.busy_streams(7))
def test_random_queries(asked: strategies.Asked, rows: list[strategies.Row]) -> None:
    event(check(asked, rows))


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(strategies.all_formulas(2, RUNS), strategies.busy_streams(7))
def test_skip_till_next_match(formula: Formula, rows: list[strategies.Row]) -> None:
    asked = strategies.Asked(formula, None, Options("NEXT_MATCH"))
    event(check(asked, rows))


SAMPLE = 60  # small formulas in the usual run


def small() -> list[Formula]:
    """Each operator alone and around each other, and the plain ones up to two, with loops of few rounds."""
    found = (*exhaustive.alone(), *exhaustive.pairs(), *exhaustive.absences(), *exhaustive.with_operators(2))
    return list(dict.fromkeys(map(algebra.bounded, found)))


def check_small(formula: Formula, strategy: str, streams: list[list[oracle.Event]]) -> bool:
    """Compare the two on all short streams; is there a plan?"""
    window = next((part.window for part in formula.walk() if isinstance(part, cel.NotBefore | cel.NotAfter)), None)
    for stream in streams:
        try:
            found = algebra.evaluate(formula, stream, window, strategy)
        except Unrelated:
            return False
        assert found == oracle.evaluate(formula, stream, window, strategy=strategy), (formula, stream)
    return True


@pytest.mark.parametrize("part", [0, *(pytest.param(k, marks=pytest.mark.exhaustive) for k in range(1, 9))])
def test_small_formulas_on_all_short_streams(part: int) -> None:
    formulas = small()
    chosen = random.Random(1).sample(formulas, SAMPLE) if part == 0 else formulas[part - 1 :: 8]
    streams = exhaustive.Words(exhaustive.LETTERS, 4 if part else 3).streams()
    planned = [check_small(formula, "ALL", streams) for formula in chosen]
    assert sum(planned) > 0.9 * len(planned)
    for strategy in ("STRICT", "NXT", "LAST", "MAX"):
        assert any(check_small(formula, strategy, streams) for formula in random.Random(part).sample(chosen, 5))
