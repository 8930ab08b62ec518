"""Filters and comparisons moved down to where they act first.

    (A a UNLESS X) FILTER a[v > 1]     is   (A a FILTER a[v > 1]) UNLESS X
    C ; (A a ; B b) WHERE a.v < b.v    is   C ; ((A a ; B b) WHERE a.v < b.v)

An event that fails a filter on a flat part satisfies no guard, and need not leave Spark.
"""

from __future__ import annotations

from dataclasses import replace

from planner import cel
from planner.formula import Formula
from planner.terms import Predicate, Side, parts_of


def push_filters(formula: Formula) -> Formula:
    """Filters moved down to flat parts, so that an event that fails them satisfies no guard and need not leave Spark.

    A filter on each event of a variable holds of a match if it holds of its parts. It stays above strategies, which
    choose before it, and above AND, whose sides must mark alike.
    """
    match formula:
        case cel.Filter(inner, variable, predicate) if not inner.is_flat():
            return _pushed(push_filters(inner), variable, predicate)
        case cel.Compare(inner, sides):
            return _compared(push_filters(inner), sides)
    return formula.rebuilt(push_filters)


def _compared(formula: Formula, sides: tuple[Side, ...]) -> Formula:
    """A comparison where all its variables are bound and no earlier, so that runs forget soonest what they compared.

    In OR, `;` and `:` the sides that bind none of the variables have nothing to say about it. Where one of the
    variables never is, the comparison holds: `(A OR B) WHERE A.x = B.x` asks nothing.
    """
    wanted = compared_variables(sides)
    if not wanted <= formula.binds():
        return formula
    match formula:
        case cel.Sequence() | cel.Contiguous() | cel.Absent() | cel.All():
            left, right = formula.left, formula.right
            inside = [bool(wanted & part.binds()) for part in (left, right)]
            if inside == [True, False]:
                return replace(formula, left=_compared(left, sides))
            if inside == [False, True]:
                return replace(formula, right=_compared(right, sides))
        case cel.Or(left, right):
            return cel.Or(_compared(left, sides), _compared(right, sides))
        case cel.Filter() | cel.FilterAny() | cel.Compare() | cel.Agree():
            return cel.Compare(formula, sides)  # conditions stay in the order in which they are asked
    if formula.filters:
        return formula.rebuilt(lambda part: _compared(part, sides), only_positive=True)
    return cel.Compare(formula, sides)


def compared_variables(sides: tuple[Side, ...]) -> frozenset[str]:
    """The variables of which events are chosen."""
    return frozenset(part.variable for side in sides for part in parts_of(side))


def _pushed(formula: Formula, variable: str | None, predicate: Predicate) -> Formula:
    def push(part: Formula) -> Formula:
        return _pushed(part, variable, predicate)

    match formula:
        case _ if variable is not None and variable not in formula.binds():
            return formula
        case cel.As(inner, name):
            return cel.As(_pushed(inner, None if name == variable else variable, predicate), name)
        case _ if formula.is_flat():
            return cel.Filter(formula, variable, predicate)
        case cel.Project(inner, keep) if variable is None or variable not in keep:
            return cel.Filter(formula, variable, predicate)
        case cel.Strategy() | cel.And():
            return cel.Filter(formula, variable, predicate)
    return formula.rebuilt(push, only_positive=True)
