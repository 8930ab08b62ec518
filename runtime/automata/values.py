"""Sets of values (runtime.automata.machine): their clocks, which of them suffice, where they go, and watching them.

These are the subset constructions of [CEL] Theorems 6.2 and 7.2, one step at a time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable
from typing import NamedTuple

from runtime.automata.machine import DECIDED, NONE_SEEN, NOW, Clock, Machine, Sighting, Symbol, Value


def clocks_of(value: Value) -> set[Clock]:
    """All clocks that a value mentions."""
    if isinstance(value, Clock):
        return {value}
    if isinstance(value, tuple | frozenset) and type(value) not in PLAIN:
        return set().union(*map(clocks_of, value)) if value else set()
    return set()


def renamed(value: Value, names: dict[Clock, Clock]) -> Value:
    if isinstance(value, Clock):
        return names[value]
    if type(value) in PLAIN:
        return value
    if isinstance(value, tuple):
        parts = (renamed(part, names) for part in value)
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if isinstance(value, frozenset):
        return frozenset(renamed(part, names) for part in value)
    return value


PLAIN = frozenset((int, str, bool, Sighting))  # what holds no clocks


def with_now(value: Value, now: Clock) -> Value:
    """The value with `now` for NOW; itself, where that is not in it."""
    kind = type(value)
    if kind in PLAIN or value is None:
        return value
    if kind is Clock:
        return now if value == NOW else value
    if kind is frozenset:
        made = [with_now(part, now) for part in value]
        return frozenset(made) if any(a is not b for a, b in zip(made, value, strict=True)) else value
    if isinstance(value, tuple):
        made = [with_now(part, now) for part in value]
        if all(a is b for a, b in zip(made, value, strict=True)):
            return value
        return tuple(made) if kind is tuple else kind(*made)
    return value


def _shape(value: Value, found: list[int]) -> Hashable:
    """The value without its clocks, which are appended to `found`; sets stay as they are."""
    if isinstance(value, Clock):
        found.append(value.number)
        return Clock
    if isinstance(value, tuple) and type(value) not in PLAIN:
        return tuple(_shape(part, found) for part in value)
    return value


def undominated(values: Iterable[Value], timed: bool = True) -> frozenset[Value]:
    """Without values that another one equals but for later clocks; all, if they have none (not `timed`)."""
    values = frozenset(values)
    if len(values) < 2 or not timed:
        return values
    by_shape: dict[Hashable, list[tuple[list[int], Value]]] = defaultdict(list)
    for value in values:
        vector: list[int] = []
        by_shape[_shape(value, vector)].append((vector, value))
    kept = set()
    for group in by_shape.values():
        for vector, value in group:
            if not any(v != vector and all(a >= b for a, b in zip(v, vector, strict=True)) for v, _ in group):
                kept.add(value)
    return frozenset(kept)


def without(values: Iterable[Value], rivals: Iterable[Value], timed: bool = True) -> frozenset[Value]:
    """The values that no rival equals or dominates."""
    values, rivals = frozenset(values), frozenset(rivals)
    if not values or not rivals or not timed:
        return values - rivals
    held: dict[Hashable, list[list[int]]] = defaultdict(list)
    for rival in rivals:
        vector: list[int] = []
        held[_shape(rival, vector)].append(vector)
    kept = []
    for value in values:
        own: list[int] = []
        others = held.get(_shape(value, own), ())
        if not any(all(a >= b for a, b in zip(v, own, strict=True)) for v in others):
            kept.append(value)
    return frozenset(kept)


class Reached(NamedTuple):
    """Where a set of values goes: the next values, and for each move that accepts what its match has seen."""

    values: set[Value]
    ends: set[frozenset[Sighting]]


def spread(machine: Machine, values: Iterable[Value], symbol: Symbol) -> dict[int, Reached]:
    """Δ of [CEL] Theorem 7.2: what a set of values reaches, by mask."""
    reached: dict[int, Reached] = {}
    for value in values:
        for mask, target, accept, seen in machine.step(value, symbol):
            found = reached.get(mask)
            if found is None:
                found = reached[mask] = Reached(set(), set())
            if target is not None:
                found.values.add(target)
            if accept:
                found.ends.add(seen)
    return reached


def merged(parts: Iterable[Reached]) -> Reached:
    made = Reached(set(), set())
    for part in parts:
        made.values.update(part.values)
        made.ends.update(part.ends)
    return made


class Watch:
    """The deterministic automaton of π_∅(ψ): has a match of ψ been seen since the watch began? ([CEL] Theorem 6.2.)"""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self.initial = undominated(machine.initial(), machine.timed)

    def advance(self, values: frozenset[Value], symbol: Symbol) -> tuple[frozenset[Value] | None, frozenset[Sighting]]:
        """The next set, or None once a match has ended; and the matches that others decide about."""
        reached, sighted = set(), set[Sighting]()
        for value in values:
            for _, target, accept, seen in self._machine.step(value, symbol):
                if target is not None:
                    reached.add(target)
                if not accept:
                    sighted |= seen
                elif seen:
                    sighted.add(Sighting(DECIDED, unless=seen))
                else:
                    return None, NONE_SEEN
        return undominated(reached, self._machine.timed), frozenset(sighted)


class Watches:
    """Several at once; a state is a tuple of sets."""

    def __init__(self, machines: Iterable[Machine]) -> None:
        self._watches = [Watch(machine) for machine in machines]
        self.initial = tuple(watch.initial for watch in self._watches)

    def advance(
        self, values: tuple[frozenset[Value], ...], symbol: Symbol
    ) -> tuple[tuple[frozenset[Value], ...] | None, frozenset[Sighting]]:
        found, seen = [], NONE_SEEN
        for watch, held in zip(self._watches, values, strict=True):
            after, more = watch.advance(held, symbol)
            if after is None:
                return None, NONE_SEEN
            found.append(after)
            seen |= more
        return tuple(found), seen
