"""Runs over a position automaton: each has just taken an event at a position, and takes the next one over an edge.

Under SKIP TILL NEXT MATCH a run must take an event that it can take. For `A ; B{2}`, with the positions A0, B2 and B1
and the edges A0 → B2 → B1, on A1 A2 B3 B4:

    A1    a run begins, at A0
    A2    another one begins; the first cannot take an A, and waits
    B3    both take it, and go to B2; neither stays at A0
    B4    both take it, and end at B1: two matches

Before a match begins there is one value, which stays: every event that can start a run does. The value of a run is a
tuple of

- the position of the event that it took last;
- whether an event was skipped since then;
- for each absence ahead, a Gap: what has been seen of it since then;
- for each clause that goes on, what it remembers.

A value holds no more than its followers ask for, so that runs with the same future have equal values. What a clause
remembers is: the sides that can still hold; or what is bound; or what is bound and the sightings that may still prevent
(runtime.automata.deciding). A sighting may prevent by what is bound so far, where no later event is compared with it.
Then it is no different from a condition that fails, and the event is not taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from runtime.automata.comparing import Comparing
from runtime.automata.deciding import Deciding, prevents
from runtime.automata.machine import NONE_SEEN, Machine, Maker, Move, Sighting, Symbol, Value
from runtime.automata.values import Watch
from runtime.nodes import BEGIN
from runtime.position_automaton import Follow, PositionAutomaton

WAITING = "waiting"


class Gap(NamedTuple):
    """What an absence has seen since the last event: the set of its watch (None: it is broken), and matches of it."""

    watched: Any
    seen: frozenset[Sighting] = NONE_SEEN


class PositionMachine(Machine, of=PositionAutomaton):
    """One move for each follower that accepts the event; if none does, or none must, the event is skipped."""

    def __init__(self, node: PositionAutomaton, make: Maker) -> None:
        self._node = node
        self._comparing = {number: Comparing(clause) for number, clause in node.compared}
        self._deciding = {number: Deciding(deciding) for number, deciding in node.across}
        self._watches = [Watch(make(veto)) for veto in node.vetoes]
        self._ahead = [tuple(sorted({v for f in follow for v in f.absences})) for follow in node.follow]
        self._goes_on = [frozenset(clause for f in follow for clause in f.inside) for follow in node.follow]
        self._has_contiguous = [any(f.contiguous for f in follow) for follow in node.follow]

    def initial(self) -> list[Value]:
        return [WAITING]

    def step(self, value: Value, symbol: Symbol) -> list[Move]:
        if value == WAITING:
            begun = [move for p in self._node.first if (move := self._take(p, {}, symbol)) is not None]
            return [Move(0, WAITING, False), *begun]
        position, skipped, watched, clauses = value
        gaps, held = dict(zip(self._ahead[position], watched, strict=True)), dict(clauses)
        available = [
            f for f in self._node.follow[position] if _is_available(f, skipped, gaps) and self._lets_go(f, held)
        ]
        taken = [move for f in available if (move := self._take(f.position, held, symbol, f, gaps)) is not None]
        if taken and self._node.greedy:
            return taken
        after = {v: self._waited(v, gap, held, symbol) for v, gap in gaps.items()}
        if not any(_is_available(f, True, after) for f in available):
            return taken
        return [*taken, Move(0, (position, self._has_contiguous[position], tuple(after.values()), clauses), False)]

    def _waited(self, veto: int, gap: Gap, held: Mapping[int, Any], symbol: Symbol) -> Gap:
        """What an absence has seen after one more event that was skipped."""
        if gap.watched is None:
            return gap
        after, seen = self._watches[veto].advance(gap.watched, symbol)
        if not seen:
            return Gap(after, gap.seen)
        for number in self._deciding.keys() & held.keys():
            seen = self._deciding[number].left(held[number][0], seen)
        return Gap(None) if any(map(prevents, seen)) else Gap(after, gap.seen | seen)

    def _lets_go(self, follow: Follow, held: Mapping[int, Any]) -> bool:
        """May the run leave the clauses that do not go on? What may still prevent by them alone, does."""
        left = [held[c][1] for c in self._deciding if c in held and c not in follow.inside]
        return not any(not sighting.unless for sightings in left for sighting in sightings)

    def _take(
        self,
        position: int,
        held: Mapping[int, Any],
        symbol: Symbol,
        follow: Follow | None = None,
        gaps: Mapping[int, Gap] | None = None,
    ) -> Move | None:
        """The move of a run that binds the event to this position, if that accepts it. `held`: what its clauses
        remember; `follow`, `gaps`: how it came here, and what the absences have seen since its last event."""
        node = self._node
        if not symbol.holds(node.guards[position]):
            return None
        seen = NONE_SEEN if follow is None or not gaps else NONE_SEEN.union(*(gaps[v].seen for v in follow.absences))
        inside = () if follow is None else follow.inside
        clauses: dict[int, Any] = {}
        for clause, asks in node.asks[position]:
            after = self._after(clause, asks, held[clause] if clause in inside else None, symbol, seen)
            if after is None:
                return None
            clauses[clause] = after
        stands = self._stands(position, clauses, {c: held[c] for c in self._deciding if c in held and c not in inside})
        if stands is None:
            return None
        watched = tuple(Gap(self._watches[v].initial) for v in self._ahead[position])
        going_on = tuple((c, after) for c, after in clauses.items() if c in self._goes_on[position])
        target = (position, False, watched, going_on) if node.follow[position] else None
        return Move(node.masks[position] | (BEGIN if follow is None else 0), target, stands and position in node.last)

    def _stands(self, position: int, clauses: dict[int, Any], left: dict[int, Any]) -> bool | None:
        """Does nothing prevent the run's match, if it ended here? None: something does, whatever comes. `left`: what
        the clauses remember that the run has left. As those that end here, they say now what others are to know."""
        own = {c: clauses[c] for c in self._deciding if c in clauses}
        open_ = [c for c in self._node.undecided[position] if c in own and c not in left]
        stands = True
        for _, sightings in [*own.values(), *left.values()]:
            for sighting in sightings:
                if self._prevents_now(sighting, own | left):
                    stands = False
                    if not any(self._deciding[c].concerns(sighting) for c in open_):
                        return None
        ended = [(c, own[c]) for c in own if c not in self._goes_on[position]]
        for c, (bound, sightings) in own.items():
            for other, (others, _) in [*left.items(), *ended]:
                sightings = self._deciding[other].decided(others, sightings)
            clauses[c] = bound, sightings
        return stands

    def _prevents_now(self, sighting: Sighting, held: Mapping[int, Any]) -> bool:
        """By what is bound in the clauses so far?"""
        decided = frozenset([sighting])
        for c, (bound, _) in held.items():
            decided = self._deciding[c].decided(bound, decided)
        return any(map(prevents, decided))

    def _after(
        self, clause: int, asks: Iterable[tuple[int, int]], before: Any, symbol: Symbol, seen: frozenset[Sighting]
    ) -> Any:
        """What a clause remembers after an event, None where it fails."""
        if clause in self._comparing:
            comparing = self._comparing[clause]
            own = [choice for choice, _ in asks]
            return comparing.bind(comparing.nothing if before is None else before, own, symbol)
        if clause in self._deciding:
            deciding = self._deciding[clause]
            bound, vetoes = (deciding.nothing, NONE_SEEN) if before is None else before
            for mask, _ in asks:
                bound = deciding.bind(bound, mask, symbol)
            return bound, deciding.left(bound, {*vetoes, *filter(deciding.concerns, seen)})
        can = (1 << self._node.clauses[clause]) - 1 if before is None else before
        for side, guard in asks:
            if not symbol.holds(guard):
                can &= ~(1 << side)
        return can or None


def _is_available(follow: Follow, skipped: bool, gaps: Mapping[int, Gap]) -> bool:
    return not (follow.contiguous and skipped) and all(gaps[v].watched is not None for v in follow.absences)
