"""What a formula asks of pairs of events that Spark decides beforehand, and which event of a pair comes first.

`(A a ; B b) FILTER levenshtein(a.s, b.s) < 3` asks it of each a with each b after it. Pairs in the other order need not
be looked at, which halves the work and calls no function with events that do not meet.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from planner import cel
from planner.across import Across
from planner.formula import Formula
from planner.terms import Related


class Tabulated(NamedTuple):
    """A condition that is tabulated. `ordered`: its left event is never after its right one."""

    related: Related
    ordered: bool


def tabulated(formula: Formula) -> tuple[Tabulated, ...]:
    """Each condition of the formula once."""
    found: dict[Related, bool] = {}
    for asked in _asked(formula):
        found[asked.related] = asked.ordered and found.get(asked.related, True)
    return tuple(Tabulated(*item) for item in found.items())


def _asked(formula: Formula) -> Iterator[Tabulated]:
    """Those of a negated part and what is around it are in no order that is known here, but for a loop's neighbours."""
    clauses = formula.clauses if isinstance(formula, Across) else ()
    for clause in (formula.sides,) if isinstance(formula, cel.Compare) else clauses:
        for side in clause:
            if isinstance(side, Related) and side.tabulated is not None:
                left, right = (term.variable for term in side.terms)
                in_order = isinstance(formula, cel.Compare) and _is_before(formula.inner, left, right)
                yield Tabulated(side, left == right or in_order)
    for part in formula.children():
        yield from _asked(part)


def _is_before(formula: Formula, x: str, y: str) -> bool:
    """Is each event of x at or before each event of y? Where it is not easy to say, no."""
    inside = formula.binds()
    if x not in inside or y not in inside:
        return True
    match formula:
        case cel.Event():
            return True
        case cel.Sequence(left, right) | cel.Contiguous(left, right) | cel.Absent(left, _, right):
            crossed = x in right.binds() and y in left.binds()
            return not crossed and _is_before(left, x, y) and _is_before(right, x, y)
        case cel.Or(left, right):
            return _is_before(left, x, y) and _is_before(right, x, y)
        case cel.As(inner, name):
            return name not in (x, y) and _is_before(inner, x, y)
        case cel.Filter(inner) | cel.FilterAny(inner) | cel.Compare(inner) | cel.Agree(inner) | cel.Within(inner):
            return _is_before(inner, x, y)
    return False
