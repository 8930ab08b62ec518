"""Comparisons between a negated part and the events around it: where they act, and where they are not built."""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import pairwise
from typing import Any

from planner import cel
from planner.errors import PlanError

CHOOSES = (cel.Strategy, cel.And)  # what would have to choose before the comparison has been made
LOOPS = (cel.Iteration, cel.ContiguousIteration, cel.Repeat)


def inside_choices(formula: cel.Formula) -> cel.Formula:
    """Each comparison below the strategies and ANDs around its negated part, if all its events come from there.

    A condition that mentions a negated part belongs to that part (semantics, "Negated parts"), so that a strategy
    chooses among the matches that it leaves.
    """
    if isinstance(formula, cel.Across):
        pushed = _below(formula)
        if pushed is not formula:
            return inside_choices(pushed)
    for part in cel.children(formula):
        made = inside_choices(part)
        if made is not part:
            formula = _with(formula, part, made)
    return formula


def _below(across: cel.Across) -> cel.Formula:
    """The comparison below the innermost of the choices on the way to its negated part; itself if it is to stay."""
    steps = way(across.inner, across.number)
    last = max((n for n, part in enumerate(steps) if isinstance(part, CHOOSES)), default=-1)
    if last < 0 or last + 1 == len(steps):
        return across
    names = _own_names(across, steps[-1])
    if None in names or not all(_passes(part, below, names) for part, below in pairwise(steps[: last + 2])):
        return across
    made: cel.Formula = replace(across, inner=steps[last + 1])
    for part, below in zip(steps[last::-1], steps[last + 1 : 0 : -1], strict=True):
        made = _with(part, below, made)
    return made


def way(formula: cel.Formula, number: int) -> list[cel.Formula]:
    """From the formula down to the operator that holds the negated part, through what is not negated; else nothing."""
    if number in candidates(_vetoes(formula)):
        return [formula]
    for part in cel.positive(formula):
        found = way(part, number)
        if found:
            return [formula, *found]
    return []


def _own_names(across: cel.Across, holder: cel.Formula) -> frozenset[str | None]:
    """The variables of the conditions that are not of the negated part; None: every event."""
    negated = [v for v in _vetoes(holder) if isinstance(v, cel.Candidate) and v.number == across.number]
    named = {variable for variable, _, _ in cel.compared(replace(across, inner=cel.Event(None, frozenset())))}
    named |= {side.variable for clause in across.clauses for side in clause if isinstance(side, cel.Test)}
    return frozenset(named - frozenset[str]().union(*(cel.variables(v.inner) for v in negated)))


def _passes(part: cel.Formula, below: cel.Formula, names: frozenset[str | None]) -> bool:
    """Is the condition the same below this operator? In a loop it would ask each round."""
    if isinstance(part, LOOPS) or (isinstance(part, cel.As) and part.variable in names):
        return False
    others = [other for other in cel.positive(part) if other is not below]
    return isinstance(part, cel.And) or not any(cel.variables(other) & names for other in others)


def _with(formula: cel.Formula, part: cel.Formula, made: cel.Formula) -> cel.Formula:
    """The formula with `made` in place of a direct subformula."""
    data: Any = formula
    for field in fields(data):
        value = getattr(formula, field.name)
        if value is part:
            return replace(data, **{field.name: made})
        if isinstance(value, tuple) and any(v is part for v in value):
            return replace(data, **{field.name: tuple(made if v is part else v for v in value)})
    raise ValueError(f"not a part of it: {part!r}")


def _vetoes(formula: cel.Formula) -> tuple[cel.Formula, ...]:
    vetoes = formula.vetoes if isinstance(formula, cel.Absent | cel.NotBefore | cel.NotAfter) else ()
    return (*vetoes, formula.veto) if isinstance(formula, cel.Unless) else vetoes


def candidates(vetoes: tuple[cel.Formula, ...]) -> frozenset[int]:
    return frozenset(veto.number for veto in vetoes if isinstance(veto, cel.Candidate))


def check_across(formula: cel.Formula) -> None:
    """PlanError ACROSS: not where runs compete or are compared in between, or the negated part is itself in one."""
    for part in cel.children(formula):
        check_across(part)
    if not isinstance(formula, cel.Across):
        return
    steps = way(formula.inner, formula.number)
    if not steps or any(isinstance(part, CHOOSES) for part in steps):
        raise not_across("AND, a nested strategy or another negated part in between")


def not_across(found: str) -> PlanError:
    return PlanError("ACROSS", found=found, hint="Agreement on a column can be said by PARTITION BY instead.")
