"""Formula → Program in one call: the stages of the planner, in their order."""

from __future__ import annotations

from collections.abc import Iterable

from planner import cel
from planner.automaton import Automaton, relabel, trim
from planner.cea import to_cea
from planner.lower import lower
from planner.query import Window
from runtime.program import Program


def visible_variables(formula: cel.Formula) -> tuple[str, ...]:
    """The variables a user can see, sorted; those of the planner's own begin with @."""
    return tuple(sorted(v for v in cel.variables(formula) if not v.startswith("@")))


def automaton_of(formula: cel.Formula, variables: Iterable[str]) -> Automaton:
    """The trimmed CEA whose labels hold only `variables`."""
    return trim(relabel(to_cea(formula), frozenset(variables)))


def compile_formula(
    formula: cel.Formula, window: Window | None = None, visible: Iterable[str] | None = None
) -> Program:
    """The program that finds the formula's complex events inside the window."""
    variables = visible_variables(formula) if visible is None else tuple(visible)
    return lower(automaton_of(formula, variables), window, variables)
