"""Windows inside the pattern, and absence before and after the match: what remembers when something began."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from runtime import nodes
from runtime.automata.machine import (
    DECIDED,
    NONE_SEEN,
    NOW,
    REPORT,
    Clock,
    Machine,
    Maker,
    Move,
    Sighting,
    Symbol,
    Value,
)
from runtime.automata.values import Watches, undominated
from runtime.nodes import BEGIN, END

Sightings = tuple[frozenset[tuple[Clock, Sighting]], Clock]


class WithinMachine(Machine, of=nodes.Within):
    """A value is (inner value, clock of its beginning or None)."""

    def __init__(self, node: nodes.Within, make: Maker) -> None:
        self._inner, self._window = make(node.inner), node.window

    def initial(self) -> list[Value]:
        return [(value, None) for value in self._inner.initial()]

    def step(self, value: Value, symbol: Symbol) -> list[Move]:
        inner, clock = value
        if clock is not None and symbol.closed(clock, self._window):
            return []
        moves = []
        for move in self._inner.step(inner, symbol):
            since = NOW if move.mask & BEGIN else clock
            moves.append(move._replace(next=None if move.next is None else (move.next, since)))
        return moves


class NotBeforeMachine(Machine, of=nodes.NotBefore):
    """Before the match begins: (inner value, for each veto its runs with their clocks, {latest start of a veto},
    sightings of what others decide about). Afterwards (inner value, None, {…}, sightings).

    Sightings are None or ({(latest start, sighting)}, the least of these starts): what has left the window is looked
    for only when that has, so that most events leave the set as it is, however large.

    The match may end once the last veto before it has left the window. The sightings that have not are handed on
    with the move that ends the match, and with no other: what goes on meets fewer of them.
    """

    def __init__(self, node: nodes.NotBefore, make: Maker) -> None:
        self._inner, self._window, self._shows = make(node.inner), node.window, node.shows
        self._vetoes = [WithinMachine(nodes.Within(veto, node.window), make) for veto in node.vetoes]
        self._waiting = tuple(undominated(veto.initial()) for veto in self._vetoes)

    def initial(self) -> list[Value]:
        return [(value, self._waiting, frozenset(), None) for value in self._inner.initial()]

    def step(self, value: Value, symbol: Symbol) -> list[Move]:
        inner, watched, last, sighted = value
        last = frozenset(clock for clock in last if not symbol.closed(clock, self._window))
        if sighted is not None and symbol.closed(sighted[1], self._window):
            sighted = _sightings(s for s in sighted[0] if not symbol.closed(s[0], self._window))
        moves = []
        for mask, target, accept, seen in self._inner.step(inner, symbol):
            if watched is not None and not mask & BEGIN:
                moves.append(Move(mask, (target, *self._watch(watched, last, sighted, symbol)), False, seen))
                continue
            if target is not None:
                moves.append(Move(mask, (target, None, last, sighted), False, seen))
            if accept and (not last or self._shows):
                seen = seen if sighted is None else seen | {sighting for _, sighting in sighted[0]}
                moves.append(Move(mask, None, not last, seen))
        return moves

    def _watch(
        self,
        watched: tuple[frozenset[Value], ...],
        last: frozenset[Clock],
        sighted: Sightings | None,
        symbol: Symbol,
    ) -> tuple[tuple[frozenset[Value], ...], frozenset[Clock], Sightings | None]:
        """Each veto's runs after this event, the latest start of one that has ended, and the sightings."""
        after, starts = [], set(last)
        new: dict[Sighting, Clock] = {}
        for veto, values in zip(self._vetoes, watched, strict=True):
            reached = set()
            for value in values:
                for mask, target, accept, seen in veto.step(value, symbol):
                    since = NOW if mask & BEGIN else value[1]
                    if target is not None:
                        reached.add(target)
                    if accept and not seen:
                        starts.add(since)
                    for sighting in (Sighting(DECIDED, unless=seen),) if accept and seen else seen:
                        new[sighting] = max(new.get(sighting, since), since)
            after.append(undominated(reached))
        if new:
            held = () if sighted is None else sighted[0]
            latest = {sighting: clock for clock, sighting in held}
            latest |= {sighting: max(latest.get(sighting, since), since) for sighting, since in new.items()}
            sighted = _sightings((clock, sighting) for sighting, clock in latest.items())
        return tuple(after), frozenset([max(starts)] if starts else []), sighted


def _sightings(held: Iterable[tuple[Clock, Sighting]]) -> Sightings | None:
    found = frozenset(held)
    return (found, min(clock for clock, _ in found)) if found else None


class Search(NamedTuple):
    """A search for what must not happen, begun at an event: for each veto the set of its watch, or None once a match of
    one has ended; and what others decide about. When the match has begun, the sets are left out: ()."""

    begin: Clock
    watched: tuple[frozenset[Value], ...] | None
    seen: frozenset[Sighting]


class NotBeforeEachMachine(Machine, of=nodes.NotBeforeEach):
    """A value is (inner value, has the match begun?, searches). The first search that has not left the window when the
    match ends decides. Neighbours that have come to the same are one, which begins where the later did.

    The set of searches is one value, so that `undominated` does not compare what they hold. O(window) a step.
    """

    def __init__(self, node: nodes.NotBeforeEach, make: Maker) -> None:
        self._inner, self._window, self._shows = make(node.inner), node.window, node.shows
        self._watches = Watches(make(veto) for veto in node.vetoes)

    def initial(self) -> list[Value]:
        return [(value, False, frozenset()) for value in self._inner.initial()]

    def step(self, value: Value, symbol: Symbol) -> list[Move]:
        inner, begun, held = value
        searches = sorted(s for s in held if not symbol.closed(s.begin, self._window))
        moves = []
        for mask, target, accept, seen in self._inner.step(inner, symbol):
            if not begun and not mask & BEGIN:
                moves.append(Move(mask, (target, False, self._advanced(searches, symbol)), False, seen))
                continue
            if target is not None:
                left = [s._replace(watched=s.watched and ()) for s in searches]
                moves.append(Move(mask, (target, True, _merged(left)), False, seen))
            vetoed = bool(searches) and searches[0].watched is None
            if accept and (not vetoed or self._shows):
                decided = searches[0].seen if searches else frozenset()
                moves.append(Move(mask, None, not vetoed, seen | decided))
        return moves

    def _advanced(self, searches: list[Search], symbol: Symbol) -> frozenset[Search]:
        """The searches after this event, and one that begins here."""
        found = []
        for begin, watched, seen in [*searches, Search(NOW, self._watches.initial, frozenset())]:
            if watched is None:
                found.append(Search(begin, None, seen))
                continue
            after, more = self._watches.advance(watched, symbol)
            found.append(Search(begin, after, frozenset() if after is None else seen | more))
        return _merged(found)


def _merged(searches: Iterable[Search]) -> frozenset[Search]:
    found: list[Search] = []
    for search in searches:
        if found and found[-1][1:] == search[1:]:
            found.pop()
        found.append(search)
    return frozenset(found)


class NotAfterMachine(Machine, of=nodes.NotAfter):
    """('run', inner value, clock) until φ ends; then ('wait', watched sets, clock) until the window closes."""

    def __init__(self, node: nodes.NotAfter, make: Maker) -> None:
        self._inner, self._window = make(node.inner), node.window
        self._watches = Watches(make(veto) for veto in node.vetoes)

    def initial(self) -> list[Value]:
        return [("run", value, None) for value in self._inner.initial()]

    def step(self, value: Value, symbol: Symbol) -> list[Move]:
        kind, inner, clock = value
        closed = clock is not None and symbol.closed(clock, self._window)
        if kind == "wait":
            if closed:
                return [Move(REPORT, None, True)]
            after, sighted = self._watches.advance(inner, symbol)
            return [] if after is None else [Move(0, ("wait", after, clock), False, sighted)]
        if closed:
            return []
        moves = []
        for mask, target, accept, seen in self._inner.step(inner, symbol):
            since = NOW if mask & BEGIN else clock
            if target is not None or not accept:  # the latter only where what is given up is shown
                moves.append(Move(mask, None if target is None else ("run", target, since), False, seen))
            if accept:
                moves.append(Move(mask | END, ("wait", self._watches.initial, since), False, seen))
        return moves

    def at_end(self, value: Value) -> frozenset[Sighting] | None:
        return NONE_SEEN if value[0] == "wait" else None

    def begin(self, value: Value) -> Clock | None:
        clock: Clock | None = value[2]
        return clock
