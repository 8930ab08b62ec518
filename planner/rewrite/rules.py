"""The rewriting of a formula: one tuple of rules, applied once, in this order, before anything is chosen or built.

A rule is a function from a formula to one with the same complex events. It stands in a file of this folder, with an
example. Equalities that become keys (planner.rewrite.keys) change the query, and come before these.

The order matters. Strategies go first, since what is left decides where comparisons act; these are joined where
alternatives are alike, and placed before the absence after the match goes around them; filters move last, when nothing
else moves any more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from planner.formula import Formula
from planner.rewrite.absence import absence_outside
from planner.rewrite.across import inside_choices
from planner.rewrite.alternatives import alike_alternatives
from planner.rewrite.filters import push_filters
from planner.rewrite.strategies import choosing_once, without_choice_before

Rule = Callable[[Formula], Formula]

RULES: tuple[Rule, ...] = (
    without_choice_before, choosing_once, alike_alternatives, inside_choices, absence_outside, push_filters,
)  # fmt: skip


class Rewritten(NamedTuple):
    """A formula after all rules, and the names of those that changed it."""

    formula: Formula
    by: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"rules that changed it: {', '.join(self.by) or 'none'}"


def rewritten(formula: Formula, as_written: bool = False) -> Rewritten:
    """The formula after each rule has been applied to it once, in their order. Its variables stay.

    `as_written`: what runs take is said by the pattern as it is written (SKIP TILL NEXT MATCH), so that alternatives
    stay apart.
    """
    variables, by = formula.binds(), []
    for rule in RULES:
        if as_written and rule is alike_alternatives:
            continue
        made = rule(formula)
        if made != formula:
            by.append(rule.__name__)
            assert made.binds() == variables, rule.__name__
        formula = made
    return Rewritten(formula, tuple(by))
