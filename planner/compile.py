"""Formula → Program in one call: the stages of the planner, in their order."""

from __future__ import annotations

from collections.abc import Iterable

from planner.apart import NOTHING_KNOWN, Demands
from planner.candidates import Asked, first_that_runs
from planner.choice import check_nesting
from planner.formula import Formula
from planner.lower import Lowered
from planner.query import Skip, Window
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
    return lowered(Asked(formula, window, variables, strategy, consume, skip, timeouts, demands)).program


def lowered(asked: Asked) -> Lowered:
    """The program with its guards and automata: the formula is rewritten, then the candidates are asked. With timeouts
    there is a second program, which watches how far each start comes; PlanError TIMEOUTS where that is not built."""
    check_nesting(asked.formula)
    assert (asked.watched is None) != asked.timeouts  # refused before anything is made
    return first_that_runs(asked)
