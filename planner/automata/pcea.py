"""This file builds a PCEA of a hierarchical ALL: the construction of [PCEA] Theorem 4.1, self-joins included.

`ALL(A a, B b) WHERE a.x = b.x` has a tree with the value x above A and B, and three moves:

    {A}       step 1: wait at A under a.x      step 2: with a B that waits under the same x, ROOT
    {B}       step 1: wait at B under b.x      step 2: with an A that waits under the same x, ROOT
    {A, B}    an event that is both: ROOT at once

States are the places of the compact q-tree: its leaves, which are the events, and its inner nodes, which are values
that events share. Where the theorem has one transition for each set of states, self-join and value, a *move* of the
kernel has the steps from its events up to the root, of which it takes as many as find what they need. What the
theorem's states remember of the self-join that led there is in the values under which a run waits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import combinations, pairwise

import numpy as np

from planner import cel
from planner.automata.automaton import NOTHING, TRUE, Automaton, Guard, Label, Transition
from planner.automata.compose import Composer
from planner.automata.hierarchy import Branch, Value, crossing_values, q_tree, values_of
from planner.automata.simple import any_order
from planner.formula import Formula
from planner.refusal import Refusal
from planner.terms import Comparison, Term
from runtime.pcea import ROOT, Parallel

MOST_EVENTS = 8  # 2⁸ ways to be several of them at once


@dataclass(frozen=True)
class Atom:
    """An event of the ALL."""

    guard: Guard
    marks: Label


@dataclass(frozen=True)
class Step:
    """What hangs beside the way, by place, with the branch it hangs from; and where the run waits then."""

    parts: tuple[tuple[int, Branch], ...]
    place: int
    under: Branch | None  # None: at the root


@dataclass
class Pcea:
    """The q-tree of an ALL with what is asked of its events."""

    atoms: tuple[Atom, ...]
    values: tuple[Value, ...]
    tree: Branch
    parent: dict[int, Branch] = field(default_factory=dict)  # of a place
    place: dict[frozenset[int], int] = field(default_factory=dict)  # of a branch that is not the root

    def __post_init__(self) -> None:
        self._number(self.tree)

    def _number(self, branch: Branch) -> None:
        for leaf in branch.leaves:
            self.parent[leaf] = branch
        for inner in branch.branches:
            self.place[inner.parts] = len(self.atoms) + len(self.place)
            self.parent[self.place[inner.parts]] = branch
            self._number(inner)

    def above(self, place: int) -> Iterator[Branch]:
        """The branches on the way from a place to the root."""
        branch = self.parent[place]
        while True:
            yield branch
            if branch is self.tree:
                return
            branch = self.parent[self.place[branch.parts]]

    def path(self, branch: Branch) -> list[Value]:
        """The values of a branch and of those it hangs from: what all below it share with each other."""
        found = list(branch.values)
        if branch is not self.tree:
            found += [v for b in self.above(self.place[branch.parts]) for v in b.values]
        return found

    def steps(self, at_once: frozenset[int]) -> Iterator[Step]:
        """What a run does whose last event is just these atoms."""
        if len(at_once) == 1:
            (leaf,) = at_once
            branch, done = self.parent[leaf], {leaf}
            yield Step((), leaf, branch)
        else:
            branch, done = self._meeting(at_once), set(at_once)
        while True:
            yield Step(tuple(self._missing(branch, done)), *self._waits(branch))
            if branch is self.tree:
                return
            done.add(self.place[branch.parts])
            branch = self.parent[self.place[branch.parts]]

    def _waits(self, branch: Branch) -> tuple[int, Branch | None]:
        if branch is self.tree:
            return ROOT, None
        place = self.place[branch.parts]
        return place, self.parent[place]

    def _meeting(self, at_once: frozenset[int]) -> Branch:
        """The lowest branch above all of these."""
        return next(branch for branch in self.above(min(at_once)) if at_once <= branch.parts)

    def _missing(self, branch: Branch, done: set[int]) -> Iterator[tuple[int, Branch]]:
        """C of the theorem: what hangs from this branch, and from those on the ways to what is done, but is not."""
        atoms = {place for place in done if place < len(self.atoms)}
        yield from ((leaf, branch) for leaf in branch.leaves if leaf not in done)
        for inner in branch.branches:
            place = self.place[inner.parts]
            if place in done:
                continue
            if atoms & inner.parts:
                yield from self._missing(inner, done)
            else:
                yield place, branch


def pcea_of(formula: Formula) -> Pcea | Refusal:
    """The q-tree of a formula, or why a PCEA does not run it."""
    found = any_order(formula, MOST_EVENTS)
    if found is None or len(found.events) < 2 or len(found.chains) < len(found.events):
        return Refusal(f"it is no ALL of 2 to {MOST_EVENTS} single events")
    clauses = _equalities(found.clauses, found.events)
    if clauses is None:
        return Refusal("a condition that is no equality of two events")
    values = values_of(clauses, list(found.events))
    if any(len(value.types) > 1 for value in values):
        return Refusal("one value compared in several types")
    if crossing_values([value for value in values if len(value.parts) > 1]) is not None:
        return Refusal("it is not hierarchical")
    atoms = tuple(map(_atom, found.events))
    return Pcea(atoms, tuple(values), q_tree(values, len(atoms)))


def _atom(event: Formula) -> Atom:
    match event:
        case cel.Event(type, marks):
            return Atom(frozenset() if type is None else frozenset({type}), marks)
        case cel.As(inner, variable):
            own = _atom(inner)
            return replace(own, marks=own.marks | {variable})
        case cel.Filter(inner, variable, predicate):
            own = _atom(inner)
            return replace(own, guard=own.guard | {predicate}) if variable is None or variable in own.marks else own
    raise TypeError(f"not a single event: {event!r}")


def _equalities(clauses: tuple[cel.Compare | cel.Agree, ...], events: tuple[Formula, ...]) -> list[Comparison] | None:
    """The clauses as equalities of two attributes each; None if one is something else."""
    made = []
    for clause in clauses:
        match clause:
            case cel.Compare(_, (Comparison(left, "=", right) as side,)) if left.of == right.of == "each":
                made.append(side)
            case cel.Agree(_, terms, type):
                mine = [Term(variable, sql) for variable, sql in terms if variable is not None]
                if len(mine) < len(terms):
                    return None
                made += [Comparison(a, "=", b, type) for a, b in pairwise(mine)]
                made += [Comparison(mine[0], "=", mine[0], type)] if len(mine) == 1 else []
            case _:
                return None
    own = [event.binds() for event in events]
    return made if all(sum(c.left.variable in v for v in own) == 1 for c in made) else None


def parallel(pcea: Pcea, composer: Composer) -> Parallel:
    """The node, but for its labels; guards and terms are numbered by the composer."""
    n = len(pcea.atoms)
    terms = [_terms(pcea.values, atom, composer) for atom in pcea.atoms]
    own = [[(a, b) for of in terms[i].values() for a, b in pairwise([of[0], *of])] for i in range(n)]
    moves = [frozenset(i for i in range(n) if bits >> i & 1) for bits in range(1, 1 << n)]
    together = [_together(terms, move) for move in moves]
    steps = [list(pcea.steps(move)) for move in moves]
    flat = [(step, move) for move, made in zip(moves, steps, strict=True) for step in made]

    def key(branch: Branch | None, among: frozenset[int]) -> list[int]:
        """The terms of what lies below a branch, on any of these atoms that is below it, too."""
        if branch is None:
            return []
        atom = min(among & branch.parts)
        return [terms[atom][value][0] for value in pcea.path(branch)]

    parts = [[(place, key(of, move)) for place, of in step.parts] for step, move in flat]
    keys = [own for made in parts for _, own in made]
    into = [key(step.under, move) for step, move in flat]
    guards = composer.guards
    return Parallel(
        guard=_ints(guards.setdefault(atom.guard, len(guards)) for atom in pcea.atoms),
        own_of=_offsets(own),
        own_left=_ints(a for pairs in own for a, _ in pairs),
        own_right=_ints(b for pairs in own for _, b in pairs),
        atoms=np.arange(1, 1 << n, dtype=np.int64),
        together_of=_offsets(together),
        together_left=_ints(a for pairs in together for a, _ in pairs),
        together_right=_ints(b for pairs in together for _, b in pairs),
        step_of=_offsets(steps),
        part_of=_offsets(parts),
        part=_ints(place for made in parts for place, _ in made),
        key_of=_offsets(keys),
        key=_ints(term for own in keys for term in own),
        place=_ints(step.place for step, _ in flat),
        into_of=_offsets(into),
        into=_ints(term for own in into for term in own),
        label_of=np.zeros(1 << n, np.int64),
        depth=max(map(len, [*keys, *into])),
    )


def _terms(values: tuple[Value, ...], atom: Atom, composer: Composer) -> dict[Value, list[int]]:
    """For each value that an event has the numbers of its terms."""
    found: dict[Value, list[int]] = {}
    for value in values:
        (type,) = value.types
        mine = [composer.term(sql, type) for variable, sql in value.attributes if variable in atom.marks]
        if mine:
            found[value] = mine
    return found


def _together(terms: list[dict[Value, list[int]]], move: frozenset[int]) -> list[tuple[int, int]]:
    """What must be equal in an event that is several atoms at once."""
    made: dict[tuple[int, int], None] = {}
    for i, j in combinations(sorted(move), 2):
        for value in terms[i].keys() & terms[j].keys():
            made[terms[i][value][0], terms[j][value][0]] = None
    return list(made)


def masks_of(pcea: Pcea, composer: Composer) -> tuple[int, ...]:
    """The mask of an event that is all the atoms of the bits m, for each m."""
    own = [composer.mask(atom.marks) for atom in pcea.atoms]
    return tuple(reduce(lambda a, i: a | own[i] if m >> i & 1 else a, range(len(own)), 0) for m in range(1 << len(own)))


def picture(pcea: Pcea) -> Automaton:
    """The places as states; edges of one event into one state are taken together, from all that it needs."""
    root = len(pcea.atoms) + len(pcea.place)
    begin = root + 1
    found = [Transition(place, TRUE, NOTHING, place) for place in range(root)]
    found.append(Transition(begin, TRUE, NOTHING, begin))
    for i, atom in enumerate(pcea.atoms):
        for step in pcea.steps(frozenset({i})):
            target = root if step.place == ROOT else step.place
            sources = [place for place, _ in step.parts] or [begin]
            found += [Transition(source, atom.guard, atom.marks, target) for source in sources]
    return Automaton(root + 2, tuple(dict.fromkeys(found)), (begin,), (root,))


def _ints(values: Iterable[int]) -> np.ndarray:
    return np.array(list(values), np.int64)


def _offsets(lists: list) -> np.ndarray:
    return np.concatenate([[0], np.cumsum([len(own) for own in lists])]).astype(np.int64)
