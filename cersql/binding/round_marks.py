"""Marks of ours make rounds visible in a formula; and who creates which events.

AGG(y : s = SUM(a.v) ; A+ a)     with number 1: each A is marked member_mark(1, a), too, and the last round_mark(1)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from planner import cel
from planner.acel import Aggregate, Judged
from planner.formula import Formula
from runtime.marks import is_round, member_mark, round_mark


def creators(formula: Formula) -> dict[str, tuple[int, ...]]:
    """The variables that hold created events, each with the numbers of the aggregations that create them."""
    found: dict[str, tuple[int, ...]] = {}
    for part in formula.positive()[:1] if isinstance(formula, cel.And) else formula.positive():
        for mark, numbers in creators(part).items():  # of AND, whose sides create the same
            found[mark] = tuple(dict.fromkeys((*found.get(mark, ()), *numbers)))
    match formula:
        case Aggregate(_, number, marks):
            for mark in sorted(m for m in marks if not is_round(m)):
                found[mark] = (*found.get(mark, ()), number)
        case cel.Project(_, keep):
            return {mark: numbers for mark, numbers in found.items() if mark in keep}
    return found


def also(formula: Formula, numbers: set[int], mark: str) -> Formula:
    """The formula whose aggregations of these numbers create events of one more variable."""
    match formula:
        case cel.Event():
            return formula
        case Aggregate(inner, number, marks) if number in numbers:
            return replace(formula, inner=also(inner, numbers, mark), marks=marks | {mark})
    made = formula.rebuilt(lambda part: also(part, numbers, mark), only_positive=True)
    return replace(made, keep=made.keep | {mark}) if isinstance(made, cel.Project) else made


def marked(formula: Formula, reads: Mapping[int, tuple[str, ...]], wanted: Mapping[str, frozenset[str]]) -> Formula:
    """The formula with our marks. `reads`: the variables that each round reads; `wanted`: what marks, besides, the
    events of a variable get."""
    match formula:
        case cel.Event(_, marks):
            return replace(formula, marks=marks.union(*(wanted.get(mark, frozenset()) for mark in marks)))
        case cel.As(inner, variable):
            made: Formula = cel.As(marked(inner, reads, wanted), variable)
            for mark in sorted(wanted.get(variable, ())):
                made = cel.As(made, mark)
            return made
        case cel.Project(inner, keep):
            inside = marked(inner, reads, {mark: more for mark, more in wanted.items() if mark in keep})
            return cel.Project(inside, keep | {mark for mark in inside.binds() if is_round(mark)})
        case Aggregate(inner, number) | Judged(inner, number):
            own = {mark: wanted.get(mark, frozenset()) | {member_mark(number, mark)} for mark in reads[number]}
            inside = marked(inner, reads, {**wanted, **own})
            return replace(formula, inner=inside, marks=formula.marks | {round_mark(number)})
    negated = {id(part) for part in formula.negated()}
    return formula.rebuilt(lambda part: _without(part) if id(part) in negated else marked(part, reads, wanted))


def _without(formula: Formula) -> Formula:
    """What must not happen, without events that nobody can see."""
    made = formula.rebuilt(_without)
    return made.inner if isinstance(made, Aggregate) else made


def has_hidden(formula: Formula) -> bool:
    """Can an event be listed that no variable holds, only marks of ours? Where PROJECT leaves out what rounds read, or
    the end of one."""
    rounds, project = Aggregate | Judged, (cel.Project,)
    for part in formula.walk(only_positive=True):
        if isinstance(part, cel.Project) and any(isinstance(p, rounds) for p in part.walk(only_positive=True)):
            return True
        if isinstance(part, rounds) and part.inner.contains(project):
            return True
    return False


def uses(formula: Formula, mark: str) -> int:
    """How often a formula binds a variable."""
    return sum(
        (isinstance(part, cel.Event) and mark in part.marks) or (isinstance(part, cel.As) and part.variable == mark)
        for part in formula.walk(only_positive=True)
    )
