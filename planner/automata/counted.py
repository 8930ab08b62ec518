"""Matches with so many events of a variable are told where they are listed: loops with great numbers, and COUNT.

`A ; B{2,500} ; C`                     is `A ; B+ ; C` with 2 to 500 events of B     (runtime.compact_set.bounded)
`A ; B+ b ; C WHERE COUNT(b) <= 500`   likewise

Written out, or counted by runs, there is a state for each number, and an event looks at all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from planner import cel
from planner.acel import Measured
from planner.formula import Formula
from planner.rewrite.alternatives import is_event
from planner.terms import Register

MOST_UNROLLED = 8  # rounds
BOUNDS: dict[str, Callable[[int], tuple[int, int | None]]] = {
    ">=": lambda n: (n, None), ">": lambda n: (n + 1, None), "<=": lambda n: (0, n), "<": lambda n: (0, n - 1),
    "=": lambda n: (n, n),
}  # fmt: skip
IN_ORDER = (cel.Sequence, cel.Contiguous)
AROUND_LOOPS = (cel.As, cel.Filter, cel.FilterAny)


class Counted(NamedTuple):
    """`formula` without numbers, where matches have `low` to `high` events of `variable` (None: any so many)."""

    formula: Formula
    variable: str
    low: int
    high: int | None


class _Loop(NamedTuple):
    """A loop, and the largest part that is nothing but it, with filters and names."""

    repeat: cel.Repeat
    host: Formula


def counted(formula: Formula, variables: tuple[str, ...]) -> Counted | None:
    """What is counted of a flat pattern, if labels (which hold `variables`) tell it.

    Either all that COUNT of one variable is asked for around the whole, `COUNT(b) >= 3 AND COUNT(b) < 500`; or else the
    rounds of the longest loop of one event that stands in every match, where a variable has its events and no other.
    """
    measured = _measured(formula)
    if measured is not None:
        return measured if measured.variable in variables and measured.formula.is_flat() else None
    return _of_loop(formula, variables) if formula.is_flat() else None


def _measured(formula: Formula) -> Counted | None:
    """COUNT of one variable around a part, as one pair of bounds."""
    if not isinstance(formula, Measured) or len(formula.sides) != 1:
        return None
    (side,), number = formula.sides, formula.sides[0].right
    left = side.left
    if left.function != "COUNT" or left.sql is not None or left.variable is None or side.op not in BOUNDS:
        return None
    if isinstance(number, Register) or number != int(number) or number < 0:
        return None
    low, high = BOUNDS[side.op](int(number))
    inner = _measured(formula.inner)
    if inner is None:
        return Counted(formula.inner, left.variable, low, high)
    if inner.variable != left.variable:
        return None
    both = [one for one in (high, inner.high) if one is not None]
    return Counted(inner.formula, left.variable, max(low, inner.low), min(both, default=None))


def _of_loop(formula: Formula, variables: tuple[str, ...]) -> Counted | None:
    loop = _longest(formula)
    if loop is None:
        return None
    repeat, nobody = loop.repeat, cel.Event(None, frozenset())
    others = _with(formula, loop.host, nobody).binds()
    own = sorted((loop.host.binds() & set(variables)) - others)
    if not own:
        return None
    plain = cel.Iteration(repeat.inner) if repeat.low else cel.Repeat(repeat.inner, 0, None)
    return Counted(_with(formula, repeat, plain), own[0], repeat.low, repeat.high)


def _longest(formula: Formula) -> _Loop | None:
    match formula:
        case cel.Repeat(inner, low, high, False) if is_event(inner) and _rounds(low, high) > MOST_UNROLLED:
            return _Loop(formula, formula)
        case _ if isinstance(formula, IN_ORDER):
            found = [loop for loop in map(_longest, formula.children()) if loop is not None]
            return max(found, key=lambda loop: _rounds(loop.repeat.low, loop.repeat.high), default=None)
        case _ if isinstance(formula, AROUND_LOOPS):
            loop = _longest(formula.inner)
            return None if loop is None else _Loop(loop.repeat, formula if loop.host is formula.inner else loop.host)
    return None


def _rounds(low: int, high: int | None) -> int:
    """That are written out."""
    return low if high is None else high


def _with(formula: Formula, part: Formula, other: Formula) -> Formula:
    """The formula with another part, which stands in it once."""
    return other if formula is part else formula.rebuilt(lambda inner: _with(inner, part, other))
