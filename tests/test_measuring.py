"""Conditions on aggregates inside a pattern, asked by runs that hold registers: held to the oracle."""

from __future__ import annotations

import os
import random
from dataclasses import replace

import aggregating
import harness
import oracle
import pytest

from planner.acel import Aggregate, Measured
from planner.formula import Formula
from planner.query import Skip
from runtime.errors import CersqlError

ROUNDS = int(os.environ.get("CERSQL_DIFFERENTIAL", "60"))
DROPPING = (
    harness.Options(consume="PARTITION"), harness.Options(skip=Skip("PAST LAST ROW")),
    harness.Options(skip=Skip("TO NEXT ROW")),
    harness.Options("NXT", skip=Skip("PAST LAST ROW")), harness.Options("LAST", consume="PARTITION"),
)  # fmt: skip
STRATEGIES = ("ALL", "ALL", "ALL", "NXT", "LAST", "MAX", "STRICT")


@pytest.mark.breadth(30)
@pytest.mark.parametrize("seed", range(ROUNDS))
def test_random_patterns(seed: int) -> None:
    chance = random.Random(f"measuring {seed}")
    tried = 0
    while tried < 4:
        part = aggregating.draw_part(chance, chance.randint(2, 5), aggregating.COUNTING)
        text = f"FROM events PATTERN ({part.text}) ; A z ORDER BY ts RETURN *"
        try:
            formula = aggregating.by_registers(aggregating.plain(aggregating.bound(text).formula))
        except CersqlError:
            continue
        if not formula.contains((Measured,)):
            continue
        rows = aggregating.draw_rows(chance, chance.randint(3, 9))
        events = [replace(aggregating.event(row, formula), key=None) for row in rows]
        options = chance.choice((harness.Options(chance.choice(STRATEGIES)), *DROPPING))
        window = chance.choice((None, None, oracle.Window("events", 4), oracle.Window("time", 3)))
        try:
            oracle.evaluate(formula, events, window, 300)
        except oracle.TooLarge:
            continue
        tried += 1
        try:
            harness.check(formula, events, window, seed=seed, options=options)
        except Exception as error:
            error.add_note(f"{text} {options} {window}\n{formula.show()}\n{rows}")
            raise


AGGREGATING = "seq seq tight loop loop tightloop or few filter agg agg agg"


@pytest.mark.parametrize("seed", range(ROUNDS // 2))
def test_what_is_computed_of_parts_changes_no_match(seed: int) -> None:
    """Under every strategy the matches of AGG(y : … ; φ) are those of φ, and y ends with φ."""
    chance = random.Random(f"aggregating {seed}")
    tried = 0
    while tried < 4:
        part = aggregating.draw_part(chance, chance.randint(2, 5), AGGREGATING)
        text = f"FROM events PATTERN AGG(r : n = COUNT(*) ; {part.text}) ORDER BY ts RETURN *"
        try:
            marked = aggregating.bound(text).formula
        except CersqlError:
            continue
        plain = without_rounds(marked)
        rows = aggregating.draw_rows(chance, chance.randint(3, 9))
        events = [replace(aggregating.event(row, plain), key=None) for row in rows]
        options = harness.Options(chance.choice((*STRATEGIES, "NEXT_MATCH", "NEXT_MATCH")))
        try:
            oracle.evaluate(plain, events, None, 300)
        except oracle.TooLarge:
            continue
        tried += 1
        want = harness.matches_of(plain, events, options=options)
        found = harness.matches_of(marked, events, options=options)
        made = frozenset("pqr")
        seen = {(s, e, frozenset(pair for pair in mu if pair[0] not in made)) for s, e, mu in found}
        assert seen == want, f"{text} {options} {rows}"
        assert {dict(mu)["r"] == frozenset({e}) for _, e, mu in found} <= {True}


def without_rounds(formula: Formula) -> Formula:
    formula = formula.rebuilt(without_rounds)
    return formula.inner if isinstance(formula, Aggregate) else aggregating.plain(formula)
