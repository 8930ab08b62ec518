"""SKIP TILL NEXT MATCH: runs over a position automaton that take every event they can (runtime.nodes.Greedy).

Before a match begins there is one value, which stays: every event that can start a run does. A run's value is

    (position of the event taken last, was an event skipped since?, for each absence ahead the set of its watch or None
    once it is broken, (clause, sides that can still hold) for each clause that goes on)

and holds no more than its followers ask for, so that runs with the same future have equal values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runtime.comparing import Comparing
from runtime.machine import Machine, Maker, Move, Symbol, Value
from runtime.nodes import BEGIN, Follow, Greedy
from runtime.values import Watch

WAITING = "waiting"


class GreedyMachine(Machine):
    """One move for each follower that accepts the event; only if none does, the event is skipped."""

    def __init__(self, node: Greedy, make: Maker) -> None:
        self._node = node
        self._comparing = {number: Comparing(clause) for number, clause in node.compared}
        self._watches = [Watch(make(veto)) for veto in node.vetoes]
        self._ahead = [tuple(sorted({v for f in follow for v in f.absences})) for follow in node.follow]
        self._goes_on = [frozenset(clause for f in follow for clause in f.inside) for follow in node.follow]
        self._has_contiguous = [any(f.contiguous for f in follow) for follow in node.follow]

    def initial(self) -> list[Value]:
        return [WAITING]

    def step(self, value: Value, symbol: Symbol) -> list[Move]:
        if value == WAITING:
            begun = [move for p in self._node.first if (move := self._take(p, {}, symbol, BEGIN)) is not None]
            return [Move(0, WAITING, False), *begun]
        position, skipped, watched, sides = value
        watches = dict(zip(self._ahead[position], watched, strict=True))
        available = [f for f in self._node.follow[position] if _is_available(f, skipped, watches)]
        held = dict(sides)
        taken = [
            move
            for f in available
            if (move := self._take(f.position, {c: held[c] for c in f.inside}, symbol)) is not None
        ]
        if taken:
            return taken
        after = {
            v: None if values is None else self._watches[v].advance(values, symbol)[0] for v, values in watches.items()
        }
        if not any(_is_available(f, True, after) for f in available):
            return []
        return [Move(0, (position, self._has_contiguous[position], tuple(after.values()), sides), False)]

    def _take(self, position: int, held: Mapping[int, Any], symbol: Symbol, begin: int = 0) -> Move | None:
        """The move of a run that binds the event to this position, if that accepts it. `held`: of the clauses that go
        on, the sides that can hold, or what was bound."""
        node = self._node
        if not symbol.holds(node.guards[position]):
            return None
        sides: list[tuple[int, Any]] = []
        for clause, asks in node.asks[position]:
            comparing = self._comparing.get(clause)
            if comparing is not None:
                bound = comparing.bind(held.get(clause, comparing.nothing), [choice for choice, _ in asks], symbol)
                if bound is None:
                    return None
                if clause in self._goes_on[position]:
                    sides.append((clause, bound))
                continue
            can = held.get(clause, (1 << node.clauses[clause]) - 1)
            for side, guard in asks:
                if not symbol.holds(guard):
                    can &= ~(1 << side)
            if not can:
                return None
            if clause in self._goes_on[position]:
                sides.append((clause, can))
        watched = tuple(self._watches[v].initial for v in self._ahead[position])
        target = (position, False, watched, tuple(sides)) if node.follow[position] else None
        return Move(node.masks[position] | begin, target, position in node.last)


def _is_available(follow: Follow, skipped: bool, watches: Mapping[int, object]) -> bool:
    return not (follow.contiguous and skipped) and all(watches[v] is not None for v in follow.absences)
