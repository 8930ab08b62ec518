"""The relational plan, evaluated without Spark (tests/algebra.py), finds what the oracle finds."""

from __future__ import annotations

from dataclasses import replace

import algebra
import oracle
import strategies
from hypothesis import HealthCheck, event, given, settings

from planner.relational.conditions import Unrelated

LIMIT = 400


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
