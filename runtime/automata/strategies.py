"""NXT, LAST and MAX: runs that compete ([CEL] Theorem 7.2), in the whole search or among those of one start."""

from __future__ import annotations

from typing import NamedTuple

from runtime import nodes
from runtime.automata.machine import DECIDED, NONE_SEEN, NOW, Clock, Machine, Maker, Move, Sighting, Symbol, Value
from runtime.automata.values import Reached, merged, spread, undominated, without
from runtime.nodes import VISIBLE


class Rivals(NamedTuple):
    """What the runs that compete with a run can be at, by how their positions compare with its own so far.

    `equal` holds the run's own values too: [CEL] Theorem 7.2 compares runs of the same output only, but runs that mark
    other variables, or began elsewhere, can have the same positions, and win later.
    """

    equal: frozenset[Value]
    ahead: frozenset[Value]
    behind: frozenset[Value] = frozenset()  # LAST only: under NXT and MAX who is behind stays behind


def compete(
    machine: Machine, strategy: str, own: Reached, marked: bool, rivals: Rivals, symbol: Symbol
) -> tuple[frozenset[Value], Rivals, set[frozenset[Sighting]]]:
    """One event of a run that marks it or does not: its values, its rivals, and what the winners that end have seen."""
    equal = spread(machine, rivals.equal, symbol)
    ahead = spread(machine, rivals.ahead, symbol)
    behind = spread(machine, rivals.behind, symbol)
    if marked:
        winners = merged(ahead.values() if strategy == "NXT" else _marked(ahead))
        peers = merged(_marked(equal))
        losers = merged([*behind.values(), *_unmarked(equal), *_unmarked(ahead)])
    else:
        winners = merged([*ahead.values(), *_marked(equal), *_marked(behind)])
        peers = merged(_unmarked(equal))
        losers = merged(_unmarked(behind))
    timed = machine.timed

    def left(values: set[Value], rivals: set[Value]) -> frozenset[Value]:
        return without(undominated(values, timed), rivals, timed)

    following = Rivals(
        equal=left(peers.values, winners.values),
        ahead=undominated(winners.values, timed),
        behind=frozenset() if strategy != "LAST" else left(losers.values, peers.values | winners.values),
    )
    return left(own.values, winners.values), following, unbeaten(own.ends, winners.ends)


def unbeaten(ends: set[frozenset[Sighting]], winners: set[frozenset[Sighting]]) -> set[frozenset[Sighting]]:
    """What matches that end have seen, if better ones end here: each is a rival, unless something prevents it."""
    if not ends or not winners:
        return ends
    if NONE_SEEN in winners:
        return set()
    rivals = frozenset(Sighting(DECIDED, unless=seen) for seen in winners)
    return {seen | rivals for seen in ends}


def moves_of(mask: int, target: Value | None, ends: set[frozenset[Sighting]]) -> list[Move]:
    """One move where the match has seen nothing, else one for each way to find it, and one to go on."""
    if NONE_SEEN in ends or not ends:
        return [Move(mask, target, bool(ends))] if ends or target is not None else []
    going_on = [] if target is None else [Move(mask, target, False)]
    return [*going_on, *(Move(mask, None, True, seen) for seen in ends)]


def _marked(reached: dict[int, Reached]) -> list[Reached]:
    return [part for mask, part in reached.items() if mask & VISIBLE]


def _unmarked(reached: dict[int, Reached]) -> list[Reached]:
    return [part for mask, part in reached.items() if not mask & VISIBLE]


class GreatestMachine(Machine, of=nodes.Greatest):
    """NXT, LAST, MAX ([CEL] Theorem 7.2). A value is (the values of the runs with this output, their Rivals).

    A value that a rival ahead has too is dropped: whatever it goes on with, the rival can do, and wins. Values with
    clocks are compared as `undominated` does, so that a rival which leaves the window earlier hides nothing.
    """

    def __init__(self, node: nodes.Greatest, make: Maker) -> None:
        self._inner, self._strategy, self._clause = make(node.inner), node.strategy, node.clause

    def initial(self) -> list[Value]:
        values = undominated(self._inner.initial())
        return [(values, Rivals(values, frozenset()))]

    def step(self, value: Value, symbol: Symbol) -> list[Move]:
        values, rivals = value
        moves = []
        for mask, own in spread(self._inner, values, symbol).items():
            left, after, ends = compete(self._inner, self._strategy, own, bool(mask & VISIBLE), rivals, symbol)
            moves += moves_of(mask, (left, after) if left else None, ends)
        return moves

    def forget(self, value: Value) -> Value:
        return (value[0], Rivals(value[0], frozenset())) if self._clause else value


class FirstMachine(Machine, of=nodes.First):
    """NXT or LAST among the runs of one start: (values, Rivals, clock); before it begins (values, None, None)."""

    def __init__(self, node: nodes.First, make: Maker) -> None:
        self._inner, self._shows, self._strategy = make(node.inner), node.shows, node.strategy

    def initial(self) -> list[Value]:
        return [(undominated(self._inner.initial()), None, None)]

    def step(self, value: Value, symbol: Symbol) -> list[Move]:
        values, rivals, clock = value
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
                left, after, ends = compete(self._inner, self._strategy, own, marked, rivals, symbol)
            elif marked:
                left, ends = undominated(own.values), own.ends
                behind = without(undominated(second.values), first.values) if self._strategy == "LAST" else frozenset()
                after = Rivals(undominated(first.values), frozenset(), behind)
            else:
                left, ends = without(undominated(own.values), first.values), unbeaten(own.ends, first.ends)
                after = Rivals(without(undominated(second.values), first.values), undominated(first.values))
            if left or ends or self._shows:
                moves.append(Move(mask, (left, after, clock or NOW) if left else None, bool(ends)))
        return moves

    def begin(self, value: Value) -> Clock | None:
        clock: Clock | None = value[2]
        return clock
