"""NXT, LAST and MAX: runs that compete ([CEL] Theorem 7.2), in the whole search or among those of one start."""

from __future__ import annotations

from typing import NamedTuple

from runtime import nodes
from runtime.machine import NOW, Machine, Maker, Move, Reg, Symbol, Value
from runtime.nodes import VISIBLE
from runtime.values import Reached, merged, spread, undominated, without


class Rivals(NamedTuple):
    """What the runs that compete with a run can be at, by how their positions compare with its own so far.

    `equal` holds the run's own values too: [CEL] Theorem 7.2 compares runs of the same output only, but runs that mark
    other variables, or began elsewhere, can have the same positions, and win later.
    """

    equal: frozenset[Value]
    ahead: frozenset[Value]
    behind: frozenset[Value] = frozenset()  # LAST only: under NXT and MAX who is behind stays behind


def compete(
    machine: Machine, rule: str, own: Reached, marked: bool, rivals: Rivals, symbol: Symbol
) -> tuple[frozenset[Value], Rivals, bool]:
    """One event of a run that marks it or does not: its values, its rivals, and does it accept as a winner?"""
    equal = spread(machine, rivals.equal, symbol)
    ahead = spread(machine, rivals.ahead, symbol)
    behind = spread(machine, rivals.behind, symbol)
    if marked:
        winners = merged(ahead.values() if rule == "NXT" else _marked(ahead))
        peers = merged(_marked(equal))
        losers = merged([*behind.values(), *_unmarked(equal), *_unmarked(ahead)])
    else:
        winners = merged([*ahead.values(), *_marked(equal), *_marked(behind)])
        peers = merged(_unmarked(equal))
        losers = merged(_unmarked(behind))
    following = Rivals(
        equal=without(undominated(peers.values), winners.values),
        ahead=undominated(winners.values),
        behind=frozenset() if rule != "LAST" else without(undominated(losers.values), peers.values | winners.values),
    )
    return without(undominated(own.values), winners.values), following, own.accept and not winners.accept


def _marked(reached: dict[int, Reached]) -> list[Reached]:
    return [part for mask, part in reached.items() if mask & VISIBLE]


def _unmarked(reached: dict[int, Reached]) -> list[Reached]:
    return [part for mask, part in reached.items() if not mask & VISIBLE]


class GreatestMachine(Machine):
    """NXT, LAST, MAX ([CEL] Theorem 7.2). A value is (the values of the runs with this output, their Rivals).

    A value that a rival ahead has too is dropped: whatever it goes on with, the rival can do, and wins. Values with
    registers are compared as `undominated` does, so that a rival which leaves the window earlier hides nothing.
    """

    def __init__(self, node: nodes.Greatest, make: Maker) -> None:
        self._inner, self._rule, self._clause = make(node.inner), node.rule, node.clause

    def initial(self) -> list[Value]:
        values = undominated(self._inner.initial())
        return [(values, Rivals(values, frozenset()))]

    def step(self, value: Value, symbol: Symbol) -> list[Move]:
        values, rivals = value
        moves = []
        for mask, own in spread(self._inner, values, symbol).items():
            left, after, accept = compete(self._inner, self._rule, own, bool(mask & VISIBLE), rivals, symbol)
            if left or accept:
                moves.append(Move(mask, (left, after) if left else None, accept))
        return moves

    def forget(self, value: Value) -> Value:
        return (value[0], Rivals(value[0], frozenset())) if self._clause else value


class FirstMachine(Machine):
    """NXT among the runs of one start. (values, None, None) before it begins; then (values, Rivals, register)."""

    def __init__(self, node: nodes.First, make: Maker) -> None:
        self._inner, self._shows = make(node.inner), node.shows

    def initial(self) -> list[Value]:
        return [(undominated(self._inner.initial()), None, None)]

    def step(self, value: Value, symbol: Symbol) -> list[Move]:
        values, rivals, register = value
        moves = []
        reached = spread(self._inner, values, symbol)
        if rivals is None:
            waiting = reached.pop(0, None)
            if waiting is not None and waiting.values:
                moves.append(Move(0, (undominated(waiting.values), None, None), False))
            first, second = merged(_marked(reached)), merged(_unmarked(reached))
        for mask, own in reached.items():
            marked = bool(mask & VISIBLE)
            if rivals is not None:
                left, after, accept = compete(self._inner, "NXT", own, marked, rivals, symbol)
            elif marked:
                left, accept = undominated(own.values), own.accept
                after = Rivals(undominated(first.values), frozenset())
            else:
                left, accept = without(undominated(own.values), first.values), own.accept and not first.accept
                after = Rivals(without(undominated(second.values), first.values), undominated(first.values))
            if left or accept or self._shows:
                moves.append(Move(mask, (left, after, register or NOW) if left else None, accept))
        return moves

    def begin(self, value: Value) -> Reg | None:
        register: Reg | None = value[2]
        return register
