"""Filters that compare events: runs remember what they still have to compare.

A value of these machines holds attributes of events that were bound, so that there is no end of states:
runtime.steppers.general runs them without a table. Runs that have bound different events with the same attributes have
equal values, and are one state; where only the greatest or least attribute matters, only that is held. So the cost is
by the bindings that live, never by partial matches.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from itertools import product
from typing import Any

from runtime import nodes, relations
from runtime.automata.machine import REPORT, Machine, Maker, Move, Sighting, Symbol, Value
from runtime.clauses import Choice, Compared, Operand

_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def compares(op: str, left: int | None, right: int | None) -> bool:
    """Is the comparison TRUE? Of a NULL only <=> and IS DISTINCT FROM can be."""
    if op == "<=>":
        return left == right
    if op == "IS DISTINCT FROM":
        return left != right
    return left is not None and right is not None and _ORDER[op](left, right)


Profile = tuple[int | bool | None, ...]  # what the sides ask of one event: its terms, then whether guards hold
Chosen = tuple[Profile, ...]  # one event of a choice, or several consecutive ones


def nothing_of(choice: Choice) -> Value:
    """What is bound where no event is."""
    return (frozenset(), ()) if choice.in_a_row > 1 else frozenset()


class Comparing:
    """One clause: what a run must remember of the events that it has bound, and whether another may be bound.

    For events that is the set of their profiles; for several in a row the set of these, and the profiles of the last
    events, which the next will be chosen with.
    """

    def __init__(self, node: Compared) -> None:
        self._choices = node.choices
        n = len(node.choices)
        self._terms: list[list[int]] = [[] for _ in range(n)]
        self._guards: list[list[int]] = [[] for _ in range(n)]
        for left, _, right in node.comparisons:
            for operand in (left, right):
                _add(self._terms[operand.choice], operand.number)
        for operands, _ in node.related:
            for operand in operands:
                _add(self._terms[operand.choice], operand.number)
        for operand in node.tests:
            _add(self._guards[operand.choice], operand.number)
        self._comparisons = [(self._place(left), op, self._place(right)) for left, op, right in node.comparisons]
        self._related = [(tuple(map(self._place, operands)), relation) for operands, relation in node.related]
        self._tests = [
            (o.choice, o.which, len(self._terms[o.choice]) + self._guards[o.choice].index(o.number)) for o in node.tests
        ]
        self._extremes = self._only_extremes(node)
        self.nothing: Value = tuple(map(nothing_of, node.choices))

    def _place(self, operand: Operand) -> tuple[int, int, int]:
        return operand.choice, operand.which, self._terms[operand.choice].index(operand.number)

    def _only_extremes(self, node: Compared) -> dict[int, Callable[..., Any]]:
        """Which choice needs no more than its greatest or least value: in a clause that is one inequality of two."""
        if (
            len(node.comparisons) != 1
            or node.tests
            or node.related
            or len(node.choices) != 2
            or any(c.in_a_row > 1 for c in node.choices)
        ):
            return {}
        (left, op, right) = node.comparisons[0]
        if op not in ("<", "<=", ">", ">=") or left.choice == right.choice:
            return {}
        low, high = (left.choice, right.choice) if op[0] == "<" else (right.choice, left.choice)
        return {low: max, high: min}

    def bound_by(self, mask: int) -> list[int]:
        """The choices that an event with this mask belongs to."""
        return [k for k, choice in enumerate(self._choices) if mask & choice.mask]

    def bind(self, bound: Value, own: Iterable[int], symbol: Symbol) -> Value | None:
        """What is bound after an event of these choices, None if some choice with it fails."""
        for k in own:
            choice = self._choices[k]
            profile = (
                *(symbol.value(t) for t in self._terms[k]),
                *(symbol.holds(guard) for guard in self._guards[k]),
            )
            several = choice.in_a_row > 1
            held, last = bound[k] if several else (bound[k], ())
            chosen: Any = (*last, profile)
            if len(chosen) == choice.in_a_row and chosen not in held:
                if not self._holds(bound, k, chosen):
                    return None
                if len(self._choices) > 1:  # else nothing is chosen beside it
                    held = held | {chosen}
                if k in self._extremes:
                    held = self._extreme(k, held)
            grown: Value = (held, chosen[1 - choice.in_a_row :]) if several else held
            bound = (*bound[:k], grown, *bound[k + 1 :])
        return bound

    def _extreme(self, k: int, held: frozenset[Chosen]) -> frozenset[Chosen]:
        """A NULL, which nothing can be compared with, else the value that is hardest to satisfy."""
        values = [chosen[0][0] for chosen in held]
        best = None if None in values else self._extremes[k](values)
        return frozenset([((best,),)])

    def _holds(self, bound: Value, k: int, chosen: Chosen) -> bool:
        """Does some side hold for the new one of choice k with all that the other choices have?"""
        others = [
            [chosen] if i == k else (bound[i][0] if c.in_a_row > 1 else bound[i]) for i, c in enumerate(self._choices)
        ]
        return all(map(self._some_side, product(*others)))

    def _some_side(self, picked: tuple[Chosen, ...]) -> bool:
        for (lc, lw, lt), op, (rc, rw, rt) in self._comparisons:
            if compares(op, picked[lc][lw][lt], picked[rc][rw][rt]):
                return True
        if any(picked[c][w][t] for c, w, t in self._tests):
            return True
        return any(
            relations.holds(relation, [picked[c][w][t] for c, w, t in operands]) for operands, relation in self._related
        )


class CompareMachine(Machine, of=nodes.Compare):
    """A value is (inner value, what the clause remembers)."""

    def __init__(self, node: nodes.Compare, make: Maker) -> None:
        self._inner, self._clause = make(node.inner), Comparing(node.compared)
        self.may_be_empty = node.may_be_empty

    def initial(self) -> list[Value]:
        return [(value, self._clause.nothing) for value in self._inner.initial()]

    def step(self, value: Value, symbol: Symbol) -> list[Move]:
        inner, bound = value
        moves = []
        for move in self._inner.step(inner, symbol):
            own = () if move.mask == REPORT else self._clause.bound_by(move.mask)
            after = self._clause.bind(bound, own, symbol)
            if after is not None:
                moves.append(move._replace(next=None if move.next is None else (move.next, after)))
        return moves

    def at_end(self, value: Value) -> frozenset[Sighting] | None:
        return self._inner.at_end(value[0])


def _add(numbers: list[int], number: int) -> None:
    if number not in numbers:
        numbers.append(number)


class AgreeMachine(Machine, of=nodes.Agree):
    """A value is (inner value, the common value or None while there is no event yet)."""

    def __init__(self, node: nodes.Agree, make: Maker) -> None:
        self._inner, self._terms = make(node.inner), node.terms
        self.may_be_empty = node.may_be_empty

    def initial(self) -> list[Value]:
        return [(value, None) for value in self._inner.initial()]

    def step(self, value: Value, symbol: Symbol) -> list[Move]:
        inner, common = value
        moves = []
        for move in self._inner.step(inner, symbol):
            own = set() if move.mask == REPORT else {symbol.value(t) for mask, t in self._terms if move.mask & mask}
            if common is not None:
                own.add(common)
            if len(own) > 1 or None in own:
                continue
            after = next(iter(own), None)
            moves.append(move._replace(next=None if move.next is None else (move.next, after)))
        return moves

    def at_end(self, value: Value) -> frozenset[Sighting] | None:
        return self._inner.at_end(value[0])
