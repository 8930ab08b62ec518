"""Equalities as keys beside WITH TIMEOUTS: where every event is compared, as it comes, with one that came before it.

`ORDER o ; PAYMENT p ; SHIPPED s WHERE p.id = o.id AND s.id = p.id RETURN * WITH TIMEOUTS`

No run takes an event of another key, not even one that comes to nothing. So rows of its own key tell how far a start
comes. A start whose value is NULL is a row, too: it stays, and goes no further, since later events must have a value.
With `s.id = o.id AND s.id = p.id` the run takes any PAYMENT, and would be told to have come that far.
"""

from __future__ import annotations

from planner import cel
from planner.formula import Formula
from planner.rewrite.alternatives import is_event

ONE_BY_ONE = (cel.Event, cel.As, cel.Filter, cel.FilterAny, cel.Iteration, cel.Repeat, cel.Or)


def decided_at_once(formula: Formula, edges: set[frozenset[str]]) -> frozenset[str] | None:
    """The variables of all events but the first, of each one that is compared with what is surely there before it; None
    where some event is not. `edges`: the pairs of variables that are equal."""
    first, *others = _in_order(formula)
    if not is_event(first):
        return None
    before, found = first.always_binds(), set[str]()
    for part in others:
        if not all(isinstance(one, ONE_BY_ONE) for one in part.walk()):
            return None
        for marks in _marks(part):
            own = {mark for mark in marks if any(frozenset((mark, other)) in edges for other in before)}
            if not own:
                return None
            found |= own
        before |= part.always_binds()
    return frozenset(found)


def _in_order(formula: Formula) -> list[Formula]:
    if isinstance(formula, cel.Sequence):
        return [*_in_order(formula.left), *_in_order(formula.right)]
    return [formula]


def _marks(formula: Formula, more: frozenset[str] = frozenset()) -> list[frozenset[str]]:
    """Those of each event, with those that AS gives it."""
    if isinstance(formula, cel.Event):
        return [formula.marks | more]
    if isinstance(formula, cel.As):
        more |= {formula.variable}
    return [marks for part in formula.children() for marks in _marks(part, more)]
