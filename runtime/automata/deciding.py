"""Runs remember the matches of negated parts that comparisons may still decide about.

A match of a negated part is a *sighting*. The moves of the run around it hand it on to the machine that compares. For
`A a ; NOT X x ; B b WHERE x.v > b.v`, on A1 X7 X3 B5:

    A1    the run begins
    X7    a sighting: x.v = 7; whether it prevents is not known before b is
    X3    a second one: x.v = 3
    B5    b.v = 5. The first prevents, since 7 > 5; so there is no match

A sighting that can fulfil its conditions no more is forgotten at once. One that fulfils them, whatever comes, ends the
run at once.

Inside a choice (planner.rewrite.across) a sighting can be prevented itself. A rival of a match, or a match of what must
not happen, is one as long as something is left to decide about it, and it names what prevents it (`unless`). A run of a
choice holds its sightings until its match ends, and hands them on with the match.

[CEL] has no comparisons. This does at once what its Theorems 6.2 and 7.2 do for each way to bind the events that a
choice does not bind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product
from typing import Any

from runtime import clauses, nodes, relations
from runtime.automata.comparing import Chosen, compares, nothing_of
from runtime.automata.machine import DECIDED, NONE_SEEN, REPORT, Machine, Maker, Move, Sighting, Symbol, Value
from runtime.clauses import NEGATED, Clause, Operand, Profiles

Bound = tuple[tuple[int, frozenset[Chosen]], ...]  # what can be chosen, by the number of the choice


class Binder:
    """A binder remembers from which events a condition chooses, at one level.

    For each choice that is the set of profiles; for several events in a row, also the last profiles.
    """

    def __init__(self, profiles: Profiles, level: int) -> None:
        self._profiles = profiles
        self._own = [k for k, at in enumerate(profiles.levels) if at == level]
        self.nothing: Value = tuple(nothing_of(profiles.choices[k]) for k in self._own)

    def bind(self, bound: Value, mask: int, symbol: Symbol) -> Value:
        found = list(bound)
        for i, k in enumerate(self._own):
            choice = self._profiles.choices[k]
            if not mask & choice.mask:
                continue
            profile = (
                *(symbol.value(t) for t in self._profiles.terms[k]),
                *(symbol.holds(guard) for guard in self._profiles.guards[k]),
            )
            if choice.in_a_row == 1:
                found[i] = bound[i] | {(profile,)}
            else:
                held, last = bound[i]
                chosen = (*last, profile)
                held = held | {chosen} if len(chosen) == choice.in_a_row else held
                found[i] = (held, chosen[1 - choice.in_a_row :])
        return tuple(found)

    def chosen(self, bound: Value) -> Bound:
        several = [self._profiles.choices[k].in_a_row > 1 for k in self._own]
        return tuple((k, b[0] if many else b) for k, b, many in zip(self._own, bound, several, strict=True))


class Deciding:
    """This decides what the sightings of one negated part come to, given what is bound at one level around it.

    A condition asks for all choices, so one that fails stays failed, and such a match can be forgotten at once.
    """

    def __init__(self, node: clauses.Deciding, level: int = 0) -> None:
        self.number, self._clauses = node.number, node.clauses
        self._binder = Binder(node.profiles, level)
        self.nothing: Value = self._binder.nothing

    def bind(self, bound: Value, mask: int, symbol: Symbol) -> Value:
        return self._binder.bind(bound, mask, symbol)

    def left(self, bound: Value, sightings: Iterable[Sighting]) -> frozenset[Sighting]:
        """Those that may still prevent; of what is bound further out nothing is known."""
        own = self._binder.chosen(bound)
        return _each(sightings, lambda s: s if s.number != self.number or self._may_hold(s, own) else None)

    def handed_on(self, bound: Value, sightings: Iterable[Sighting]) -> frozenset[Sighting]:
        """The sightings with what is bound here, for the next further out."""
        own = self._binder.chosen(bound)
        return _each(sightings, lambda s: s._replace(bound=s.bound + own) if s.number == self.number else s)

    def decided(self, bound: Value, sightings: Iterable[Sighting]) -> frozenset[Sighting]:
        """What is left, where nothing more will be bound."""
        own = self._binder.chosen(bound)

        def decide(sighting: Sighting) -> Sighting | None:
            if sighting.number != self.number:
                return sighting
            return Sighting(DECIDED) if self._may_hold(sighting, own) else None

        return _each(sightings, decide)

    def concerns(self, sighting: Sighting) -> bool:
        """Is it, or what may prevent it, a match of this negated part?"""
        return sighting.number == self.number or any(map(self.concerns, sighting.unless))

    def _may_hold(self, sighting: Sighting, own: Bound) -> bool:
        chosen = dict(own + sighting.bound)
        return all(_holds_for_all(clause, chosen) for clause in self._clauses)


def prevents(sighting: Sighting) -> bool:
    """Does it prevent the match, whatever comes?"""
    return sighting.number == DECIDED and not sighting.unless


def _each(sightings: Iterable[Sighting], change: Callable[[Sighting], Sighting | None]) -> frozenset[Sighting]:
    """Each changed, or dropped where it becomes None or is prevented itself."""
    found = set()
    for sighting in sightings:
        made = change(sighting)
        if made is not None and sighting.unless:
            unless = _each(sighting.unless, change)
            made = None if any(map(prevents, unless)) else made._replace(unless=unless)
        if made is not None:
            found.add(made)
    return frozenset(found)


def _holds_for_all(clause: Clause, chosen: dict[int, frozenset[Chosen]]) -> bool:
    """Does some side hold whatever is chosen for each variable of the clause? Yes, where one has no events."""
    named = list(dict.fromkeys(o.choice for o in clause.operands))
    choices = product(*(chosen.get(k, ()) for k in named))
    return all(_some_side(clause, dict(zip(named, picked, strict=True))) for picked in choices)


def _some_side(clause: Clause, picked: dict[int, Chosen]) -> bool:
    def of(operand: Operand) -> Any:
        return picked[operand.choice][operand.which][operand.number]

    return (
        any(compares(op, of(a), of(b)) for a, op, b in clause.comparisons)
        or any(map(of, clause.tests))
        or any(relations.holds(relation, list(map(of, operands))) for operands, relation in clause.related)
    )


class CandidateMachine(Machine, of=nodes.Candidate):
    """Never accepts: a match that ends is seen, with what was bound in it, and prevents unless it is prevented."""

    def __init__(self, node: nodes.Candidate, make: Maker) -> None:
        self._inner, self._number = make(node.inner), node.number
        self._binder = Binder(node.profiles, NEGATED)

    def initial(self) -> list[Value]:
        return [(value, self._binder.nothing) for value in self._inner.initial()]

    def step(self, value: Value, symbol: Symbol) -> list[Move]:
        inner, bound = value
        moves = []
        for mask, target, accept, unless in self._inner.step(inner, symbol):
            after = self._binder.bind(bound, mask, symbol)
            seen = NONE_SEEN
            if accept:
                seen = frozenset([Sighting(self._number, self._binder.chosen(after), unless)])
            if target is not None or seen:
                moves.append(Move(mask, None if target is None else (target, after), False, seen))
        return moves


class PendingMachine(Machine, of=nodes.Pending):
    """A value is (inner value, what is bound, sightings), which the match hands on when it ends."""

    def __init__(self, node: nodes.Pending, make: Maker) -> None:
        self._inner, self._deciding = make(node.inner), Deciding(node.deciding, node.level)
        self.may_be_empty = node.may_be_empty

    def initial(self) -> list[Value]:
        return [(value, self._deciding.nothing, NONE_SEEN) for value in self._inner.initial()]

    def step(self, value: Value, symbol: Symbol) -> list[Move]:
        inner, bound, held = value
        moves = []
        for mask, target, accept, seen in self._inner.step(inner, symbol):
            after, left = self._deciding.bind(bound, mask, symbol), held | seen
            if after != bound or left != held:
                left = self._deciding.left(after, left)
            if any(map(prevents, left)):
                continue
            moves += _moves(mask, None if target is None else (target, after, left), accept, NONE_SEEN,
                            self._deciding.handed_on(after, left) if accept else NONE_SEEN)  # fmt: skip
        return moves


class AcrossMachine(Machine, of=nodes.Across):
    """A value is (inner value, what is bound, sightings that may still prevent the match)."""

    def __init__(self, node: nodes.Across, make: Maker) -> None:
        self._inner, self._deciding, self._shows = make(node.inner), Deciding(node.deciding), node.shows
        self.may_be_empty = node.may_be_empty

    def initial(self) -> list[Value]:
        return [(value, self._deciding.nothing, NONE_SEEN) for value in self._inner.initial()]

    def step(self, value: Value, symbol: Symbol) -> list[Move]:
        inner, bound, held = value
        moves = []
        for mask, target, accept, seen in self._inner.step(inner, symbol):
            after = bound if mask == REPORT else self._deciding.bind(bound, mask, symbol)
            passed, left = seen, held
            if seen:
                own = frozenset(filter(self._deciding.concerns, seen))
                passed, left = seen - own, held | own
            undecided = self._deciding.decided(after, left) if accept and left else NONE_SEEN
            ends = accept and not any(map(prevents, undecided))
            if target is not None and (after != bound or left != held):
                left = self._deciding.left(after, left)
                if any(map(prevents, left)):
                    target = None
            if mask == REPORT and not ends:
                continue
            if target is not None or ends or self._shows:
                after_it = None if target is None else (target, after, left)
                moves += _moves(mask, after_it, ends, passed, undecided if ends else NONE_SEEN)
        return moves

    def at_end(self, value: Value) -> frozenset[Sighting] | None:
        seen = self._inner.at_end(value[0])
        if seen is None:
            return None
        undecided = self._deciding.decided(value[1], value[2] | seen)
        return None if any(map(prevents, undecided)) else undecided


def _moves(
    mask: int, target: Value | None, ends: bool, seen: frozenset[Sighting], of_match: frozenset[Sighting]
) -> list[Move]:
    """A move; two, where only the match that ends has seen what it has."""
    if target is None or not ends or not of_match:
        return [Move(mask, target, ends, seen | of_match)]
    return [Move(mask, target, False, seen), Move(mask, None, True, seen | of_match)]
