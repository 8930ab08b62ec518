"""What the shape of a formula says of its matches: which variables they bind, how often, and which together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import reduce
from itertools import product
from operator import or_

from planner import cel
from planner.acel import Aggregate, Judged
from planner.formula import Formula
from runtime.marks import is_hidden

MANY = 2  # occurrences beyond one are not told apart

Pairs = frozenset[frozenset[str]]


def occurrences(formula: Formula) -> Counter[str]:
    """How many events each variable can hold, by the pattern: 1, or MANY."""
    match formula:
        case cel.Event(_, marks):
            return Counter(dict.fromkeys(marks, 1))
        case cel.As(inner, variable):
            return occurrences(inner) | Counter({variable: size(inner)})
        case cel.Iteration(inner) | cel.ContiguousIteration(inner):
            return Counter(dict.fromkeys(occurrences(inner), MANY))
        case cel.Repeat(inner, _, high) if high != 1:
            return Counter(dict.fromkeys(occurrences(inner), MANY))
        case cel.Project(inner, keep):
            return Counter({v: n for v, n in occurrences(inner).items() if v in keep})
        case cel.And(left, right):
            # A variable of one side only is bound in no match.
            a, b = occurrences(left), occurrences(right)
            return Counter({v: min(a[v] or MANY, b[v] or MANY) for v in [*a, *b]})
        case cel.Or(left, right):
            return occurrences(left) | occurrences(right)
        case cel.Sequence() | cel.Contiguous() | cel.Absent() | cel.All():
            total = reduce(lambda a, b: a + b, map(occurrences, formula.positive()))
            return Counter({v: min(n, MANY) for v, n in total.items()})
    if isinstance(formula, Aggregate | Judged):
        own = Counter(dict.fromkeys(formula.marks, 1))
        return Counter({v: min(n, MANY) for v, n in (occurrences(formula.inner) + own).items()})
    return occurrences(_inner(formula))


def size(formula: Formula) -> int:
    """The greatest number of events of a match: 1, or MANY."""
    match formula:
        case cel.Event():
            return 1
        case cel.Or(left, right):
            return max(size(left), size(right))
        case cel.And(left, right):
            return min(size(left), size(right))
        case cel.Project(inner):
            return min(size(inner), max(1, sum(occurrences(formula).values())))
        case cel.Repeat(inner, _, high):
            return size(inner) if high == 1 else MANY
        case cel.Sequence() | cel.Contiguous() | cel.Absent() | cel.All() | cel.Iteration() | cel.ContiguousIteration():
            return MANY
    return size(_inner(formula))


def comes_last(formula: Formula, variable: str, others: frozenset[str]) -> bool:
    """Are all events of the others bound before the first of a variable, as the formula is written?"""
    match formula:
        case cel.Sequence(left, right) | cel.Contiguous(left, right) | cel.Absent(left, _, right):
            before, after = left.binds(), right.binds()
            if variable in before:
                return not others & after and comes_last(left, variable, others)
            if others & before:
                return not others & after
            return comes_last(right, variable, others)
    return formula.filters and comes_last(_inner(formula), variable, others)


def together(formula: Formula) -> Pairs:
    """The pairs of variables that some match can bind both of (each with itself too), by the shape of the formula."""
    match formula:
        case cel.Event(_, marks):
            return _pairs(marks, marks)
        case cel.Sequence() | cel.Contiguous() | cel.Absent() | cel.All():
            left, right = formula.positive()
            return together(left) | together(right) | _pairs(left.binds(), right.binds())
        case cel.Iteration(inner) | cel.ContiguousIteration(inner):
            return _pairs(inner.binds(), inner.binds())
        case cel.Repeat(inner, _, high) if high != 1:
            return _pairs(inner.binds(), inner.binds())
        case cel.Or(left, right):
            return together(left) | together(right)
        case cel.And(left, right):
            return together(left) & together(right)
        case cel.As(inner, variable):
            return together(inner) | _pairs(frozenset({variable}), formula.binds())
        case cel.Project(inner, keep):
            return frozenset(pair for pair in together(inner) if pair <= keep)
    return together(_inner(formula))


def always(formula: Formula, of: Callable[[cel.Event], frozenset[str]]) -> frozenset[str]:
    """What holds of some event of every match; `of`: what holds of an event that an atom accepts."""
    match formula:
        case cel.Event():
            return of(formula)
        case cel.Or(left, right):
            return always(left, of) & always(right, of)
        case cel.Repeat(inner, low):
            return always(inner, of) if low else frozenset()
    return reduce(or_, (always(part, of) for part in formula.positive()))


def shown_marks(event: cel.Event) -> frozenset[str]:
    """The marks of an atom that the user gave it."""
    return frozenset(mark for mark in event.marks if not is_hidden(mark))


def own_types(event: cel.Event) -> frozenset[str]:
    """The type of an atom; none for ANY."""
    return frozenset() if event.type is None else frozenset({event.type})


def of_one_event(formula: Formula) -> bool:
    """Does every match begin and end with the same event? (PROJECT drops variables, and neither of the two.)"""
    match formula:
        case cel.Event():
            return True
        case cel.And(left, right):
            return of_one_event(left) or of_one_event(right)
        case cel.Repeat(inner, _, high):
            return high == 1 and of_one_event(inner)
        case cel.Sequence() | cel.Contiguous() | cel.Absent() | cel.All() | cel.Iteration() | cel.ContiguousIteration():
            return False
    return all(map(of_one_event, formula.positive()))


def types(formula: Formula) -> frozenset[str | None]:
    """The types of the events that it can take; None for ANY."""
    if isinstance(formula, cel.Event):
        return frozenset({formula.type})
    return frozenset().union(*map(types, formula.positive()))


def edges(formula: Formula, last: bool = False) -> frozenset[frozenset[str]]:
    """The variables of each atom that can take the first (or the last) event of a match: of `A a ; B+ b` {a}."""
    match formula:
        case cel.Event(_, marks):
            return frozenset({marks})
        case cel.As(inner, variable):
            return frozenset(marks | {variable} for marks in edges(inner, last))
        case cel.Sequence(left, right) | cel.Contiguous(left, right) | cel.Absent(left, _, right):
            first, other = (right, left) if last else (left, right)
            found = edges(first, last)
            return found | edges(other, last) if first.may_be_empty() else found
    return frozenset().union(*(edges(part, last) for part in formula.positive()))


def gapless(formula: Formula) -> bool:
    """Does nothing lie between the events of a match, by the operators of the pattern?"""
    match formula:
        case cel.Event():
            return True
        case cel.Strategy("STRICT"):
            return True
        case cel.Sequence() | cel.Absent() | cel.All() | cel.Iteration() | cel.Project():
            return False
        case cel.Repeat(inner, _, high, contiguous):
            return gapless(inner) and (contiguous or high == 1)
    return all(map(gapless, formula.positive()))


def _inner(formula: Formula) -> Formula:
    """What a node that neither adds nor takes events stands around: filters, exclusions, START, strategies, windows."""
    (inner,) = formula.positive()
    return inner


def _pairs(some: frozenset[str], others: frozenset[str]) -> Pairs:
    return frozenset(frozenset(pair) for pair in product(some, others))
