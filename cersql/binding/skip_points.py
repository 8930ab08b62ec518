"""AFTER MATCH SKIP TO FIRST x | LAST x where the pattern does not say that there is an x to go on from.

Then starts are dropped as under TO NEXT ROW (semantics, "Consumption and skipping"): where a match has no x, and where
that x is the event that the match begins with, which would be no progress.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial, reduce

from cersql.binding.scope import display
from planner import cel
from planner.formula import Formula
from planner.query import Query

# What a match can look like: whether x holds its first event, whether x holds a later one, and whether it has a later
# one at all. None is a part that takes no event.
Shape = tuple[bool, bool, bool] | None
Shapes = frozenset[Shape]


def warnings(bound: Query) -> Iterator[str]:
    """What is to be said of the skip point of a query."""
    skip = bound.skip
    if skip is None or skip.mark is None:
        return
    name = display(skip.mark)
    shapes = [shape for shape in shapes_of(bound.formula, skip.mark) if shape is not None]
    goes_on = f"AFTER MATCH SKIP {skip.to} {name} goes on like TO NEXT ROW"
    stays = [first and (skip.to == "TO FIRST" or not later) for first, later, _ in shapes]
    if all(stays):
        yield f"{goes_on}: every match begins with that event. Write that, or PAST LAST ROW to take no event twice."
    elif any(stays):
        yield (
            f"{goes_on} after a match that begins with that event. Write PAST LAST ROW, or name a variable that never "
            "begins a match."
        )
    if any(not first and not later for first, later, _ in shapes):
        yield f"{goes_on} after a match without {name}. Write PAST LAST ROW, or let {name} always be there."


def shapes_of(formula: Formula, mark: str) -> Shapes:
    """What the matches of a formula can look like, conditions aside."""
    of = partial(shapes_of, mark=mark)
    match formula:
        case cel.Event(_, marks):
            return frozenset({(mark in marks, False, False)})
        case cel.As(inner, variable):
            return _changed(of(inner), lambda _, __, more: (True, more, more)) if variable == mark else of(inner)
        case cel.Project(inner, keep):
            return of(inner) if mark in keep else _changed(of(inner), lambda _, __, more: (False, False, more))
        case cel.Sequence(left, right) | cel.Contiguous(left, right) | cel.Absent(left, _, right):
            return _after(of(left), of(right))
        case cel.Or(left, right):
            return of(left) | of(right)
        case cel.And(left, right):
            return of(left) & of(right) or of(left)
        case cel.All(left, right):
            return _beside(of(left), of(right))
        case cel.Iteration(inner) | cel.ContiguousIteration(inner):
            return _repeated(of(inner), 1, None)
        case cel.Repeat(inner, low, high):
            return _repeated(of(inner), low, high)
    (inner,) = formula.positive()  # filters, windows, strategies, what must not happen
    return of(inner)


def _changed(shapes: Shapes, change: Callable[[bool, bool, bool], Shape]) -> Shapes:
    return frozenset(None if shape is None else change(*shape) for shape in shapes)


def _after(left: Shapes, right: Shapes) -> Shapes:
    """One after the other."""
    found: set[Shape] = set()
    for one in left:
        for other in right:
            if one is None or other is None:
                found.add(other if one is None else one)
            else:
                found.add((one[0], one[1] or other[0] or other[1], True))
    return frozenset(found)


def _beside(left: Shapes, right: Shapes) -> Shapes:
    """In any order: either begins, or both with one event that they share."""
    found: set[Shape] = set()
    for one in left:
        for other in right:
            if one is None or other is None:
                continue
            later = one[1] or other[1]
            found |= {(one[0], later or other[0], True), (other[0], later or one[0], True)}
            found.add((one[0] or other[0], later, one[2] or other[2]))
    return frozenset(found)


def _repeated(inner: Shapes, low: int, high: int | None) -> Shapes:
    """`low` to `high` copies. There are few shapes, so a few copies already make all that many can."""
    nothing: Shapes = frozenset({None})
    enough = 4
    found = reduce(_after, [inner] * min(low, enough), nothing)
    for _ in range(enough if high is None else min(high - low, enough)):
        found |= _after(found, inner)
    return found
