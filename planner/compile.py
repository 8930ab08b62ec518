"""Formula → Program in one call: the stages of the planner, in their order."""

from __future__ import annotations

from collections.abc import Iterable

from planner import cel
from planner.automata.automaton import Automaton, distinct_guards, relabel, trim
from planner.automata.cea import to_cea
from planner.choice import (
    AROUND,
    absence_outside,
    check_nesting,
    choice,
    choosing_once,
    contains,
    without_choice_before,
)
from planner.errors import PlanError
from planner.lower import (
    Lowered,
    Watched,
    is_watched,
    lower,
    lower_composed,
    lower_pcea,
    lower_registers,
    with_timeouts,
)
from planner.query import Skip, Window
from planner.rewrite.across import inside_choices
from planner.rewrite.filters import is_flat, push_filters
from runtime.program import Program


def visible_variables(formula: cel.Formula) -> tuple[str, ...]:
    """The variables a user can see, sorted; those of the planner's own begin with @."""
    return tuple(sorted(v for v in cel.variables(formula) if not v.startswith("@")))


def automaton_of(formula: cel.Formula, variables: Iterable[str]) -> Automaton:
    """The trimmed CEA whose labels hold only `variables`."""
    return trim(relabel(to_cea(formula), frozenset(variables)))


def compile_formula(
    formula: cel.Formula,
    window: Window | None = None,
    visible: Iterable[str] | None = None,
    strategy: str = "ALL",
    consume: str = "NONE",
    skip: Skip | None = None,
    timeouts: bool = False,
) -> Program:
    """The program that finds the formula's complex events inside the window, as strategy, consumption and skip say."""
    variables = visible_variables(formula) if visible is None else tuple(visible)
    return lowered(formula, window, variables, strategy, consume, skip, timeouts).program


def lowered(
    formula: cel.Formula,
    window: Window | None,
    variables: tuple[str, ...],
    strategy: str = "ALL",
    consume: str = "NONE",
    skip: Skip | None = None,
    timeouts: bool = False,
) -> Lowered:
    """The program with its guards and automata: flat where the formula is, else composed where it runs.

    `timeouts`: with a second program that watches how far each start comes; `variables` are then in their order of
    appearance. PlanError TIMEOUTS where it is not built.
    """
    formula, watched = choosing_once(without_choice_before(formula)), None
    check_nesting(formula)
    if timeouts:
        if contains(formula, (cel.Across,)) and not is_watched(formula):
            hint = "Leave WITH TIMEOUTS out, or write only sequences, loops and OR around it."
            raise PlanError("TIMEOUTS", found="comparisons with what must not happen, in such a pattern,", hint=hint)
        watched = Watched(push_filters(absence_outside(inside_choices(formula))), window, strategy == "NEXT_MATCH")
    if strategy == "ALL" and consume == "NONE" and skip is None and is_flat(formula):
        automaton = automaton_of(formula, variables)
        made = Lowered(lower(automaton, window, variables), distinct_guards(automaton.transitions), automaton)
        return made if watched is None else with_timeouts(made, watched)
    chosen = choice(formula, window, strategy, consume, skip)
    if chosen.rule == "bound" and watched is not None:
        return lower_composed(chosen, variables, watched)._replace(why_general="WITH TIMEOUTS looks on")
    if chosen.rule == "bound":
        side_by_side = lower_pcea(chosen, variables)
        if isinstance(side_by_side, Lowered):
            return side_by_side
        made_or_why = lower_registers(chosen, variables)
        if isinstance(made_or_why, Lowered):
            return made_or_why
        return lower_composed(chosen, variables)._replace(why_general=made_or_why)
    if watched is None and chosen.clause == "ALL" and contains(chosen.formula, AROUND):
        made_or_why = lower_registers(chosen, variables)
        if isinstance(made_or_why, Lowered):
            return made_or_why
    return lower_composed(chosen, variables, watched)
