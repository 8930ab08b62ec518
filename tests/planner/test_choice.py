"""Strategies in strategies: which of them choose, and how deep they may lie."""

from __future__ import annotations

import random
from functools import reduce
from itertools import product

import oracle
import pytest
from strategies import Row

from planner import cel
from planner.choice import MAX_NESTED, check_nesting
from planner.compile import compile_formula
from planner.errors import PlanError
from planner.formula import Formula
from planner.rewrite.strategies import choosing_once

A, B = (cel.Event(name.upper(), frozenset(name)) for name in "ab")
RULES = ("STRICT", "NXT", "LAST", "MAX")
BASES = (
    cel.Iteration(cel.Or(A, B)),
    cel.Sequence(cel.Iteration(A), B),
    cel.Or(A, cel.Sequence(A, cel.Iteration(B))),
    cel.Sequence(cel.Iteration(A), cel.Contiguous(A, B)),
)


def around(rules: tuple[str, ...], formula: Formula) -> Formula:
    """The formula inside these strategies, the first outermost."""
    return reduce(lambda made, rule: cel.Strategy(rule, made), reversed(rules), formula)


def chain(formula: Formula) -> list[str]:
    found = []
    while isinstance(formula, cel.Strategy):
        found.append(formula.name)
        formula = formula.inner
    return found


@pytest.mark.parametrize(
    ("rules", "left"),
    [
        ("NXT NXT", "NXT"),
        ("MAX NXT", "NXT"),
        ("NXT MAX", "NXT"),
        ("LAST MAX", "LAST"),
        ("LAST NXT", "NXT"),
        ("STRICT STRICT", "STRICT"),
        ("STRICT NXT", "STRICT NXT"),
        ("NXT STRICT", "NXT STRICT"),
        ("MAX STRICT MAX", "STRICT MAX"),
        ("NXT STRICT LAST", "STRICT LAST"),
        ("LAST STRICT MAX", "LAST STRICT MAX"),
        ("NXT LAST MAX NXT LAST MAX STRICT", "LAST STRICT"),
        ("NXT " * 25, "NXT"),
    ],
)
def test_what_another_strategy_has_left_is_not_chosen_from_again(rules: str, left: str) -> None:
    assert chain(choosing_once(around(tuple(rules.split()), BASES[0]))) == left.split()


def test_deep_inside_too() -> None:
    twice = cel.Strategy("NXT", cel.Strategy("NXT", A))
    once = cel.Strategy("NXT", A)
    assert choosing_once(cel.Sequence(B, cel.Absent(twice, (twice,), B))) == cel.Sequence(
        B, cel.Absent(once, (once,), B)
    )


@pytest.mark.parametrize("n", [2, 3])
def test_it_means_the_same(n: int) -> None:
    chance = random.Random(n)
    for rules, base in product(product(RULES, repeat=n), BASES):
        formula = around(rules, base)
        made = choosing_once(formula)
        if made == formula:
            continue
        for _ in range(3):
            stream = [Row(chance.choice("AABBC"), None, ts, None).event() for ts in range(chance.randint(1, 6))]
            assert oracle.evaluate(made, stream) == oracle.evaluate(formula, stream), (rules, base, stream)


def test_nesting_has_a_limit() -> None:
    def nested(n: int) -> Formula:
        return reduce(lambda made, k: cel.Strategy(RULES[1 + k % 3], cel.Sequence(made, B)), range(n), A)

    check_nesting(nested(MAX_NESTED))
    with pytest.raises(PlanError) as raised:
        compile_formula(nested(MAX_NESTED + 12))
    assert raised.value.condition == "NESTING_LIMIT"
    assert raised.value.message == f"Strategies are nested {MAX_NESTED + 12} deep, the limit is {MAX_NESTED}."
