"""This file decides which runs can be kept in the order of a value, and makes the automaton: RunBuilder → Ranged.

`A a ; B+ b ; C c WHERE b[i].x > a.x`, whose runs hold the x of their A, has four edges between its places:

    start → A0    the key is x
    A0 → B1       the runs with a key less than x go on, and keep it
    B1 → B1       the same
    B1 → C2       all runs; the key is forgotten

Runs can be kept so if each holds one value at a time, and edges and absences do nothing with it but to compare it with
the event, to keep it, to replace it by a term of the event, and to forget it. What several registers hold is one value
if they were set to the same term at the same event. A loop that keeps its greatest value does one of two things:

    GREATEST r, x     the runs with a key of at least x keep it; those with less have the key x from then on

Registers run all these, too, but look at each run that waits, if its value is needed afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from planner.automata.deferred import ends_of, ints, paired, pairs_of
from planner.automata.register_flow import Edge, Ops
from planner.automata.register_runs import RunBuilder
from planner.refusal import Refusal
from runtime.chain_cea import (
    FROM_START,
    GREATER,
    GREATER_EQUAL,
    GREATEST,
    LEAST,
    LESS,
    LESS_EQUAL,
    NOBODY,
    OWN,
    RESET,
    SAME,
    SET,
    UNEQUAL,
    Registers,
)
from runtime.ranged import Ranged

MOST_HELD = 8  # places where values are held; what an event costs grows by their cube
MOST_ACTS = 62  # edges and absences that concern such places: bits of a word
KEY, CHANGED = -2, -3  # in place of a term: a register holds the key that the run has had before, or what became of it
FAILS, STAYS, GONE = range(3)
Check = tuple[int, int]  # kind, and a term of the event
Test = tuple[int, int, int]  # kind, and two terms of the event
SPLIT = {GREATEST: (GREATER_EQUAL, LESS), LEAST: (LESS_EQUAL, GREATER)}  # kept, replaced


class _NotRanged(Exception):
    """Why runs cannot be kept in the order of a value."""


class _Act(NamedTuple):
    """What an edge asks and does. `edge`: its source and where it goes; `checks` of the key, `tests` of the event.
    `keeps`: the key stays; else it is the term `into` from then on, or there is none, NOBODY. `null`: what becomes
    of a key that is NULL: it FAILS, since it is compared; it STAYS, also where the key is the greatest of several; it
    is GONE."""

    edge: Edge
    checks: tuple[Check, ...]
    tests: tuple[Test, ...]
    keeps: bool
    into: int
    null: int


def ranged_of(made: RunBuilder, registers: Registers, n_labels: int) -> Ranged | Refusal:
    """The node for runtime.steppers.ranged, or why registers run the pattern.

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
    except _NotRanged as why:
        return Refusal(str(why))


class _Building:
    """The places that hold a key, and what edges and absences do."""

    def __init__(self, made: RunBuilder) -> None:
        self.made = made
        places = [p for p, held in enumerate(made.needed) if held]
        if len(places) > MOST_HELD:
            raise _NotRanged(f"values wait at more than {MOST_HELD} places")
        if any(made.needed[p] - made.sure[p] for p in places):
            raise _NotRanged("some runs hold a value that others at the same place do not")
        self.held = {p: h for h, p in enumerate(places)}
        self.changing = set[int]()  # places to which an edge leads that changes a key
        self.acts = [act for edge in made.edges for act in self._taken(edge)]
        self.vetoes = [self._veto(edge) for edge in made.veto_edges]
        if sum(act.edge.source in self.held for act in (*self.acts, *self.vetoes)) > MOST_ACTS:
            raise _NotRanged(f"more than {MOST_ACTS} ways lead from where values wait")
        self.with_null = self._with_null()
        if (self.with_null | made.automaton.last) & self.changing:
            raise _NotRanged("a NULL is among several values of which one is kept, and such a run may match")

    def _taken(self, edge: Edge) -> list[_Act]:
        """What an edge does; of one that changes a value both that it does."""
        if edge.contiguous:
            raise _NotRanged("what follows at once")
        walked = _Walked(edge.ops, self.made.needed[edge.source] if edge.source != FROM_START else ())
        after = {walked.holds.get(r, NOBODY) for r in self.made.needed[edge.to]}
        if walked.changed is None:
            if len(after) > 1 or (NOBODY in after and self.made.needed[edge.to]):
                raise _NotRanged("runs hold several values at a time")
            (into,) = after or {NOBODY}
            return [self._act(edge, walked, into == KEY, NOBODY if into == KEY else into)]
        kind, term = walked.changed
        if after != {CHANGED}:
            raise _NotRanged("runs hold several values at a time")
        self.changing.add(edge.to)
        kept, replaced = SPLIT[kind]
        return [
            self._act(edge, walked, True, NOBODY, (kept, term)),
            self._act(edge, walked, False, term, (replaced, term)),
        ]

    def _act(self, edge: Edge, walked: _Walked, keeps: bool, into: int, *more: Check) -> _Act:
        checks = tuple(walked.checks)
        null = FAILS if checks else STAYS if keeps or more else GONE
        return _Act(edge, (*checks, *more), tuple(walked.tests), keeps, into, null)

    def _veto(self, edge: Edge) -> _Act:
        """What must not happen moves or ends the runs at its place whose keys pass."""
        before = self.made.needed[edge.source]
        after = before if edge.to == NOBODY else self.made.needed[edge.to]
        walked = _Walked(edge.ops, before)
        if bool(after) != bool(before) or any(walked.holds.get(r) != KEY for r in after):
            raise _NotRanged("what must not happen changes what a run holds")
        return self._act(edge, walked, True, NOBODY)

    def _with_null(self) -> set[int]:
        """The held places at which a run can still match whose key is NULL."""
        unasked = [act for act in (*self.acts, *self.vetoes) if act.edge.source in self.held and act.null != FAILS]
        found = set[int]()
        while True:
            goals = found | self.made.automaton.last  # what must not happen leads to none of these last ones
            goes_on = [act for act in unasked if act.edge.to != NOBODY and (act.null == GONE or act.edge.to in goals)]
            more = {act.edge.source for act in goes_on}
            if more <= found:
                return found
            found |= more

    def machine(self, registers: Registers, n_labels: int) -> Ranged:
        """The arrays."""
        made, held, every = self.made, self.held, [*self.acts, *self.vetoes]
        moves = {(held[act.edge.source], held[act.edge.to])
                 for act in self.vetoes if act.edge.source in held and act.edge.to != NOBODY}  # fmt: skip
        ways = [(held[act.edge.source], held[act.edge.to], (frozenset(act.checks), frozenset(act.tests)))
                for act in self.acts if act.keeps and act.edge.source in held]  # fmt: skip
        stopped = {held[act.edge.source] for act in self.vetoes if act.edge.source in held}
        pairs = paired(pairs_of({(p, q) for p, q, _ in ways}, moves), ways, stopped, len(held))
        acting = [n for n, act in enumerate(every) if act.edge.source in held]
        act_of = {n: a for a, n in enumerate(acting)}
        positions = range(len(registers.guard))
        return Ranged(
            guard=registers.guard,
            label=registers.label,
            last=registers.last,
            goes_on=registers.goes_on,
            held=ints(held.get(p, NOBODY) for p in range(made.n)),
            takes_null=ints(p in self.with_null for p in held),
            edge_of=ends_of(tuple(act for act in self.acts if act.edge.to == q) for q in positions),
            source=ints(act.edge.source for act in every),
            pair=ints(
                pairs.of[held[act.edge.source], held[act.edge.to]] if act.keeps and act.edge.source in held else NOBODY
                for act in self.acts
            ),
            into=ints(act.into for act in self.acts),
            act=ints(act_of.get(n, NOBODY) for n in range(len(every))),
            check_of=ends_of(act.checks for act in every),
            check_kind=ints(kind for act in every for kind, _ in act.checks),
            check_term=ints(term for act in every for _, term in act.checks),
            test_of=ends_of(act.tests for act in every),
            test_kind=ints(kind for act in every for kind, _, _ in act.tests),
            test_left=ints(left for act in every for _, left, _ in act.tests),
            test_right=ints(right for act in every for _, _, right in act.tests),
            pair_from=pairs.begin,
            pair_to=pairs.end,
            pair_of=pairs.of,
            same=pairs.same,
            veto_guard=ints(made.veto_guards),
            veto_to=ints(act.edge.to for act in self.vetoes),
            label_of=np.tile(np.arange(n_labels, dtype=np.int64), 2),
        )


class _Walked:
    """The ops of an edge, one after the other: what they ask of the key and of the event, and what registers hold
    afterwards, KEY or a term of the event. `changed`: the key is changed by a term, and so (kind, term)."""

    def __init__(self, ops: Ops, before: Iterable[int]) -> None:
        self.holds = dict.fromkeys(before, KEY)
        self.checks, self.tests = dict[Check, None](), dict[Test, None]()
        self.changed: Check | None = None
        for kind, register, term in ops:
            if LESS <= kind <= UNEQUAL:
                self._check(kind, register, term)
            elif OWN + LESS <= kind <= OWN + UNEQUAL:
                self.tests[kind - OWN, register, term] = None
            elif kind == RESET:
                self.holds.pop(register, None)
            elif SET <= kind <= SAME:
                self._change(kind, register, term)
            else:
                raise _NotRanged("a condition that is no comparison of two events")

    def _check(self, kind: int, register: int, term: int) -> None:
        if self.changed is not None:
            raise _NotRanged("a value is compared after it has changed")
        if register in self.holds and self.holds[register] == KEY:
            self.checks[kind, term] = None
        elif register in self.holds:
            self.tests[kind, self.holds[register], term] = None

    def _change(self, kind: int, register: int, term: int) -> None:
        old = self.holds.get(register, NOBODY)
        if kind == SET or register not in self.holds:
            self.holds[register] = term
        elif old != KEY:
            if old != term:
                raise _NotRanged("several values of one event are kept as one")
        elif self.changed is None and kind in SPLIT:
            self.changed, self.holds[register] = (kind, term), CHANGED
        else:
            raise _NotRanged("runs hold several values at a time")
