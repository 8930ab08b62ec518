"""Formula → Program in one call: the stages of the planner, in their order."""

from __future__ import annotations

from collections.abc import Iterable

from planner.apart import NOTHING_KNOWN, Demands
from planner.candidates import Asked, first_that_runs
from planner.choice import check_nesting
from planner.formula import Formula
from planner.lower import Lowered
from planner.query import Skip, Window
from planner.rewrite.rules import rewritten
from runtime.marks import is_hidden
from runtime.program import Program


def visible_variables(formula: Formula) -> tuple[str, ...]:
    """The variables a user can see, sorted; without those of our own."""
    return tuple(sorted(v for v in formula.binds() if not is_hidden(v)))


def compile_formula(
    formula: Formula,
    window: Window | None = None,
    visible: Iterable[str] | None = None,
    strategy: str = "ALL",
    consume: str = "NONE",
    skip: Skip | None = None,
    timeouts: bool = False,
    demands: Demands = NOTHING_KNOWN,
) -> Program:
    """The program that finds the formula's complex events inside the window, as strategy, consumption and skip say."""
    variables = visible_variables(formula) if visible is None else tuple(visible)
    return lowered(formula, window, variables, strategy, consume, skip, timeouts, demands).program


def lowered(
    formula: Formula,
    window: Window | None,
    variables: tuple[str, ...],
    strategy: str = "ALL",
    consume: str = "NONE",
    skip: Skip | None = None,
    timeouts: bool = False,
    demands: Demands = NOTHING_KNOWN,
    sums: bool = False,
) -> Lowered:
    """The program with its guards and automata: the formula is rewritten, then the candidates are asked.

    `demands`: what is known of types, by which they exclude each other. `timeouts`: with a second program that watches
    how far each start comes; `variables` are then in their order of appearance. PlanError TIMEOUTS where that is not
    built. `sums`: matches are summed up, not listed.
    """
    made = rewritten(formula, as_written=strategy == "NEXT_MATCH")
    check_nesting(made.formula)
    asked = Asked(made, window, variables, strategy, consume, skip, timeouts, demands, sums)
    assert (asked.watched is None) != timeouts  # refused before anything is made
    return first_that_runs(asked)
