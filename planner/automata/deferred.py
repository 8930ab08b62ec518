"""This file decides which runs can catch up, and makes the automaton for it: RunBuilder → Deferred.

`A ; B ; C WHERE A.x = C.x`, whose runs hold the x of their A, has three edges between its places:

    start → A0    enters: all that is held, x, is set
    A0 → B1       free: nothing is asked of x, and nothing changes
    B1 → C2       of its own value: x must be the event's; then it is forgotten

Runs catch up if all edges are of these kinds, or lie among places where nothing is held. A run that holds values is
then of interest to events of the same values, and to free ones, which all runs take alike. `A+ a ; B ; C WHERE a.x =
C.x` is such a pattern (an A goes on with the As of its value); `A ; B ; C ; D WHERE A.x = C.x AND B.y = D.y` is none:
a B sets y while x is held, so the runs that a C finds differ in what they hold besides.

Registers run all these, too. They look at each value that waits, so they are left what an index finds (`looks`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from planner.automata.register_clauses import Op
from planner.automata.register_flow import Edge, Ops, is_change, named_by, of_register
from planner.automata.register_runs import RunBuilder
from planner.refusal import Refusal
from runtime.chain_cea import (
    EQUAL,
    FROM_START,
    LESS,
    NOBODY,
    OWN,
    RESET,
    SAME,
    SET,
    UNEQUAL,
    Registers,
)
from runtime.deferred import Deferred

MOST_HELD = 8  # places where values are held; what a free event costs grows by their cube
Test = tuple[int, int, int]  # kind of check, and two terms of an event


class _NotDeferred(Exception):
    """Why runs cannot catch up."""


class _Kind(NamedTuple):
    """What an edge asks and does: `free`, or the terms that the runs must hold (`ask`), those that they hold afterwards
    (`into`), and what the event must pass by itself."""

    free: bool
    ask: tuple[int, ...]
    into: tuple[int, ...]
    tests: tuple[Test, ...]


def deferred_of(made: RunBuilder, registers: Registers, n_labels: int) -> Deferred | Refusal:
    """The node for runtime.steppers.deferred, or why registers run the pattern.

    `registers`: what they do with these very places and edges. `n_labels`: of the program.
    """
    if registers.places:
        return Refusal("a window inside the pattern, or START")
    if registers.greedy or registers.apart:
        return Refusal("runs must take what they can, or start by start")
    if made.late != NOBODY or made.clauses.early:
        return Refusal("something must not happen before or after the match")
    try:
        return _Building(made).machine(registers, n_labels)
    except _NotDeferred as why:
        return Refusal(str(why))


class _Building:
    """The places that hold values, their pairs, and the kinds of all edges."""

    def __init__(self, made: RunBuilder) -> None:
        self.made = made
        self.values = [tuple(sorted(held)) for held in made.needed]
        self.places = [p for p, held in enumerate(self.values) if held]
        if len(self.places) > MOST_HELD:
            raise _NotDeferred(f"values wait at more than {MOST_HELD} places")
        if any(made.needed[p] - made.sure[p] for p in self.places):
            raise _NotDeferred("some runs hold a value that others at the same place do not")
        self.held = {p: h for h, p in enumerate(self.places)}
        self.kinds = [self._kind(edge) for edge in made.edges]
        self.vetoes = [self._veto(edge) for edge in made.veto_edges]
        self.pairs = self._pairs()

    def _kind(self, edge: Edge) -> _Kind:
        before = self.values[edge.source] if edge.source != FROM_START else ()
        after = self.values[edge.to]
        if edge.contiguous:
            raise _NotDeferred("what follows at once")
        asked = _asked(edge.ops, before)
        named = {r for kind, register, term in edge.ops for r in named_by(kind, register, term)}
        if before and not named and before == after:
            if edge.to in self.made.automaton.last:
                raise _NotDeferred("a match can end before all that it compares has come")
            return _Kind(True, (), (), _after(edge.ops, {})[1])
        if len(asked) < len(before):
            raise _NotDeferred("an event is compared with some of what a run holds, or changes it unasked")
        held, tests = _after(edge.ops, dict(asked))
        if any(r not in held for r in after):
            raise _NotDeferred("some runs hold a value that others at the same place do not")
        return _Kind(False, tuple(asked[r] for r in before), tuple(held[r] for r in after), tests)

    def _veto(self, edge: Edge) -> _Kind:
        """What must not happen moves or ends all runs at its place, or those of its own value."""
        before = self.values[edge.source]
        asked = _asked(edge.ops, before)
        if edge.to != NOBODY and self.values[edge.to] != before:
            raise _NotDeferred("what must not happen changes what a run holds")
        named = {r for kind, register, term in edge.ops for r in named_by(kind, register, term)}
        if named and len(asked) < len(before):
            raise _NotDeferred("what must not happen is compared with some of what a run holds, or not for equality")
        _, tests = _after(edge.ops, dict(asked))
        return _Kind(not named, tuple(asked[r] for r in before) if named else (), (), tests)

    def _pairs(self) -> list[tuple[int, int]]:
        """The held places between which a run gets by free edges, at least one, and by what must not happen."""
        free = {(self.held[e.source], self.held[e.to])
                for e, kind in zip(self.made.edges, self.kinds, strict=True) if kind.free}  # fmt: skip
        moves = {(self.held[e.source], self.held[e.to])
                 for e in self.made.veto_edges if e.source in self.held and e.to != NOBODY}  # fmt: skip
        return pairs_of(free, moves)

    def machine(self, registers: Registers, n_labels: int) -> Deferred:
        """The arrays."""
        made, places, kinds = self.made, self.places, [*self.kinds, *self.vetoes]
        ways = [(self.held[e.source], self.held[e.to], kind.tests)
                for e, kind in zip(made.edges, self.kinds, strict=True) if kind.free]  # fmt: skip
        pairs = paired(
            self.pairs, ways, {self.held[e.source] for e in made.veto_edges if e.source in self.held}, len(places)
        )
        groups = list(dict.fromkeys(self.values[p] for p in places))
        return Deferred(
            guard=registers.guard,
            label=registers.label,
            last=registers.last,
            goes_on=registers.goes_on,
            held=ints(self.held.get(p, NOBODY) for p in range(made.n)),
            component=ints(groups.index(self.values[p]) for p in places),
            edge_of=registers.edge_of,
            source=ints(edge.source for edge in (*made.edges, *made.veto_edges)),
            pair=ints(
                pairs.of[self.held[edge.source], self.held[edge.to]] if kind.free else NOBODY
                for edge, kind in zip(made.edges, self.kinds, strict=True)
            ),
            ask_of=ends_of(kind.ask for kind in kinds),
            ask=ints(term for kind in kinds for term in kind.ask),
            into_of=ends_of(kind.into for kind in kinds),
            into=ints(term for kind in kinds for term in kind.into),
            test_of=ends_of(kind.tests for kind in kinds),
            test_kind=ints(test[0] for kind in kinds for test in kind.tests),
            test_left=ints(test[1] for kind in kinds for test in kind.tests),
            test_right=ints(test[2] for kind in kinds for test in kind.tests),
            pair_from=pairs.begin,
            pair_to=pairs.end,
            pair_of=pairs.of,
            same=pairs.same,
            veto_guard=ints(made.veto_guards),
            veto_to=ints(edge.to for edge in made.veto_edges),
            label_of=np.tile(np.arange(n_labels, dtype=np.int64), 2),
            depth=max(map(len, self.values), default=0),
        )


# ---------------------------------------------------------------- what an edge does with registers


def _asked(ops: Ops, registers: Iterable[int]) -> dict[int, int]:
    """By register, of these: the term to which it must be equal before anything changes it."""
    found: dict[int, int] = {}
    for r in registers:
        for kind, term in of_register(ops, r):
            if is_change(kind):
                break
            if kind == EQUAL:
                found[r] = term
                break
    return found


def _after(ops: Ops, held: dict[int, int]) -> tuple[dict[int, int], tuple[Test, ...]]:
    """What registers hold after the ops, as terms of the event; and what these ask of the event.

    Once a register is known to be equal to a term of the event, what it is compared with is a test of two terms.
    """
    tests: dict[Test, None] = {}
    known = {(EQUAL, term, term) for term in held.values()}  # none of them is NULL
    for op in ops:
        kind, register, term = op
        if LESS <= kind <= UNEQUAL:
            if register in held and (kind, held[register], term) not in known:
                tests[kind, held[register], term] = None
        elif OWN + LESS <= kind <= OWN + UNEQUAL:
            tests[kind - OWN, register, term] = None
        elif kind == RESET:
            held.pop(register, None)
        elif SET <= kind <= SAME:
            _change(op, held)
        else:
            raise _NotDeferred("a condition that is no comparison of two events")
    return held, tuple(tests)


def _change(op: Op, held: dict[int, int]) -> None:
    """A register takes a term: the first one, or in place of another; what it would keep of several is one only if all
    are the same term of the same event."""
    kind, register, term = op
    if kind != SET and held.get(register, term) != term:
        raise _NotDeferred("several values of one event are kept as one")
    held[register] = term


def pairs_of(steps: set[tuple[int, int]], moves: set[tuple[int, int]]) -> list[tuple[int, int]]:
    """The places between which a way leads, of at least one of the steps, and of moves."""
    found = set(steps)
    while True:
        more = {(p, r) for p, q in found for start, r in steps | moves if q == start}
        more |= {(p, r) for p, q in moves for start, r in found if q == start}
        if more <= found:
            return sorted(found)
        found |= more


class Pairs(NamedTuple):
    """The pairs of held places as arrays: see runtime.deferred."""

    begin: np.ndarray
    end: np.ndarray
    of: np.ndarray
    same: np.ndarray


def paired(pairs: list[tuple[int, int]], ways: list[tuple[int, int, Any]], stopped: set[int], n: int) -> Pairs:
    """The pairs of n places as arrays, each once for all places that have the same.

    `ways`: (place, place, what it asks) of each step; `stopped`: the places at which something must not happen.
    """
    leading = [frozenset((to, asks) for source, to, asks in ways if source == h) for h in range(n)]
    same = [h if h in stopped else min(i for i in range(h + 1) if i not in stopped and leading[i] == leading[h])
            for h in range(n)]  # fmt: skip
    numbers = {pair: k for k, pair in enumerate(dict.fromkeys((same[p], q) for p, q in pairs))}
    of = np.full((n, n), NOBODY, np.int64)
    for p, q in pairs:
        of[p, q] = numbers[same[p], q]
    return Pairs(ints(p for p, _ in numbers), ints(q for _, q in numbers), of, ints(same))


def ints(values: Iterable[Any]) -> np.ndarray:
    """As an array."""
    return np.array(list(values), np.int64)


def ends_of(parts: Iterable[tuple[Any, ...]]) -> np.ndarray:
    """Where each of several runs of numbers begins, and the last ends."""
    return np.concatenate([[0], np.cumsum(ints(map(len, parts)))]).astype(np.int64)
