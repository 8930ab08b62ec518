"""Greedy node → nodes.Registers: patterns whose comparisons need a few registers, run by a kernel.

The positions and edges are those of planner.greedy; its rule that a run must take what it can is `Runs.greedy`. What
conditions ask is planner.register_clauses's; a register is forgotten as soon as no way leads to an event that is
compared with it, so that runs which have nothing left to compare are one. Where what must not happen has come, a run
goes on at a *place* of its own, which is the position without the ways that it has closed.

Not every pattern can be run so. `registers_of` then says why, and the general engine (runtime.bound) runs it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from planner.register_clauses import Clauses, NotByRegisters, Op, Way
from runtime import nodes
from runtime.nodes import Follow, Greedy

MOST_PLACES = 8  # of one position
Ops = list[Op]


class Edge(NamedTuple):
    source: int
    to: int  # the place a run goes to, or NOBODY
    contiguous: bool
    ops: Ops


class Runs(NamedTuple):
    """How runs behave: `greedy` ones must take what they can, those `apart` are some for each start."""

    greedy: bool = False
    apart: bool = False


@dataclass
class _Places:
    """Where runs wait: the positions, then for each the ways that are left when something has happened."""

    greedy: Greedy
    follow: list[tuple[Follow, ...]]
    closing: list[tuple[int, int, int]] = field(default_factory=list)  # (place, absence, the place after it or NOBODY)

    @classmethod
    def of(cls, greedy: Greedy) -> _Places:
        made = cls(greedy, list(greedy.follow))
        for position in range(len(greedy.follow)):
            made.close(position)
        return made

    def close(self, position: int) -> None:
        numbers: dict[tuple[Follow, ...], int] = {}
        todo = [position]
        for place in todo:
            for absence in sorted({v for f in self.follow[place] for v in f.absences}):
                left = tuple(f for f in self.follow[place] if not f.contiguous and absence not in f.absences)
                if left and left not in numbers:
                    if len(numbers) == MOST_PLACES:
                        raise NotByRegisters("too many things must not happen after one event")
                    numbers[left] = len(self.follow)
                    todo.append(len(self.follow))
                    self.follow.append(left)
                self.closing.append((place, absence, numbers[left] if left else nodes.NOBODY))


class _Builder:
    def __init__(self, greedy: Greedy, keep: int) -> None:
        self.greedy = greedy
        for followers in (greedy.first, *((f.position for f in follow) for follow in greedy.follow)):
            marks = [greedy.masks[q] & keep for q in followers]
            if len(set(marks)) < len(marks) or 0 in marks:
                raise NotByRegisters("two ways lead to the same events in the same variables")
        self.clauses = Clauses(greedy)
        self.places = _Places.of(greedy)
        self.follow, self.n = self.places.follow, len(self.places.follow)
        edges = [Edge(nodes.FROM_START, q, False, self._taking(q, None)) for q in greedy.first]
        for place, follow in enumerate(self.places.follow):
            gap = [self.clauses.vetoes[absence] for absence in sorted({v for f in follow for v in f.absences})]
            ended = [(nodes.RESET, register, 0) for veto in gap for _, register, _ in veto.after]
            edges += [Edge(place, f.position, f.contiguous, self._taking(f.position, f, ended)) for f in follow]
        # A veto edge per guard, those of a place before those of the places that it leads to.
        vetoes = [(self.clauses.vetoes[absence], place, to) for place, absence, to in sorted(self.places.closing)]
        guarded = [(way.guard, _vetoing(way, place, to)) for veto, place, to in vetoes for way in veto.ways]
        # Where a match ends that something must not follow, it waits at a place of its own.
        self.late, waiting = nodes.NOBODY, list[Edge]()
        if greedy.after:
            self.late, self.n, self.follow = self.n, self.n + 1, [*self.follow, ()]
            waiting = [Edge(q, self.late, False, []) for q in sorted(greedy.last)]
            after = [self.clauses.vetoes[absence] for absence in greedy.after]
            guarded += [(way.guard, _vetoing(way, self.late, nodes.NOBODY)) for veto in after for way in veto.ways]
        self.veto_guards = [guard for guard, _ in guarded]
        every = [*edges, *waiting, *(edge for _, edge in guarded)]
        self.needed = [a & b for a, b in zip(_held(self.n, every), _live(self.n, every), strict=True)]
        self.edges = sorted((self._tidy(edge) for edge in edges), key=lambda edge: edge.to)
        self.veto_edges = [self._tidy(edge) for _, edge in guarded]
        self.late_edges = [self._tidy(edge) for edge in waiting]

    def _taking(self, q: int, follow: Follow | None, ended: Iterable[Op] = ()) -> Ops:
        """What a run does that takes an event at q; `follow`: the way there, None from the beginning; `ended`: what
        it does with what must not happen between the last event and this one, when that has been asked for."""
        ops: Ops = []
        for absence in () if follow is None else follow.absences:
            veto = self.clauses.vetoes[absence]
            if veto.leaves and q not in veto.late:
                raise NotByRegisters("what must not happen is compared with an event that comes later")
            ops += veto.after
        ops += ended
        for clause in self.clauses.made:
            if follow is not None and clause.number not in follow.inside:
                ops += [(nodes.RESET, r, 0) for r in clause.registers]
            ops += clause.ops.get(q, [])
        return ops

    def _tidy(self, edge: Edge) -> Edge:
        """Forgets what is not needed any more where the run goes to."""
        if edge.to == nodes.NOBODY:
            return edge
        before = set() if edge.source == nodes.FROM_START else self.needed[edge.source]
        stale = _written(edge.ops, before) - self.needed[edge.to]
        return edge._replace(ops=[*edge.ops, *((nodes.RESET, r, 0) for r in sorted(stale))])


def _vetoing(way: Way, place: int, to: int) -> Edge:
    """The runs that a veto concerns; those for which a later event decides stay where they are."""
    return Edge(place, place if way.late else to, False, way.ops)


# ---------------------------------------------------------------- what registers hold, and are still asked for


def _written(ops: Ops, held: set[int]) -> set[int]:
    """The registers that can hold something after the ops."""
    found = set(held)
    for kind, register, _ in _single_ops(ops):
        if kind == nodes.RESET:
            found.discard(register)
        elif nodes.SET <= kind <= nodes.LOWEST or kind >= nodes.FAILED:
            found.add(register)
    return found


def _asked(ops: Ops, live: set[int]) -> set[int]:
    """The registers that the ops, or what comes after them, can look at."""
    found = set(live)
    for kind, register, term in reversed(list(_single_ops(ops))):
        if kind == nodes.RELATES:
            found |= {-1 - source for source in register if source < 0}
        elif kind in (nodes.RESET, nodes.SET, nodes.NOTE):
            found.discard(register)
        elif nodes.BOTH <= kind < nodes.REFUSED:
            found |= {register, term}
        elif (
            nodes.LESS <= kind < nodes.SET
            or kind in (nodes.NOT_ALL, nodes.NOTED)
            or nodes.REFUSED <= kind < nodes.ANY_OF
        ):
            found.add(register)
    return found


def _single_ops(ops: Ops) -> Iterator[Op]:
    """All ops; the sides of an OR one by one."""
    return (op for op in ops if op[0] != nodes.ANY_OF)


def _held(n: int, edges: list[Edge]) -> list[set[int]]:
    """For each place the registers that can hold something there."""
    found: list[set[int]] = [set() for _ in range(n)]
    changed = True
    while changed:
        changed = False
        for source, to, _, ops in edges:
            if to != nodes.NOBODY:
                more = _written(ops, set() if source == nodes.FROM_START else found[source]) - found[to]
                found[to] |= more
                changed = changed or bool(more)
    return found


def _live(n: int, edges: list[Edge]) -> list[set[int]]:
    """For each place the registers that can still be looked at."""
    found: list[set[int]] = [set() for _ in range(n)]
    changed = True
    while changed:
        changed = False
        for source, to, _, ops in edges:
            if source != nodes.FROM_START:
                more = _asked(ops, set() if to == nodes.NOBODY else found[to]) - found[source]
                found[source] |= more
                changed = changed or bool(more)
    return found


# ---------------------------------------------------------------- indexes


def _of_register(ops: Ops, register: int) -> Iterator[tuple[int, int]]:
    """(kind, term) of what is done with a register, one after the other; ANY_OF or RELATES where one looks at it."""
    at = 0
    while at < len(ops):
        kind, own, term = ops[at]
        at += 1
        if kind == nodes.ANY_OF:
            if register in _asked(ops[at : at + own], set()):
                yield nodes.ANY_OF, 0
            at += own
        elif kind == nodes.RELATES:
            if register in _asked([(kind, own, term)], set()):
                yield nodes.RELATES, 0
        elif own == register and not nodes.OWN <= kind < nodes.BOTH:
            yield kind, term


def _equal_term(ops: Ops, register: int | None) -> int:
    """The term to which a run's register must be equal for an edge, as it was when the event came; NOBODY: none."""
    if register is None:
        return nodes.NOBODY
    kind, term = next(_of_register(ops, register), (nodes.RESET, 0))
    return term if kind == nodes.EQUAL else nodes.NOBODY


def _indexes(edges: list[Edge], n: int) -> dict[int, int]:
    """For each place the register that most edges from it want to be equal to something."""
    found: dict[int, int] = {}
    for p in range(n):
        own = [edge.ops for edge in edges if edge.source == p]
        usable = [r for ops in own for r in {r for kind, r, _ in ops if kind == nodes.EQUAL}
                  if _equal_term(ops, r) != nodes.NOBODY]  # fmt: skip
        if usable:
            found[p] = max(set(usable), key=lambda r: (usable.count(r), -r))
    return found


def _range(ops: Ops, register: int, kept: bool) -> tuple[int, int] | None:
    """The check (kind, term) by which an edge takes the runs of an ordered index, (EVERY, 0) if it takes all; None if
    it does more with the register than to check it once and forget it. `kept`: it is needed afterwards."""
    check = (nodes.EVERY, 0)
    for kind, term in _of_register(ops, register):
        if kind in (nodes.RESET, nodes.SET):
            return check
        if kind > nodes.SET or check[0] != nodes.EVERY:
            return None
        check = (kind, term)
    return None if kept else check


def _ordered(made: _Builder, index: dict[int, int]) -> dict[int, tuple[int, dict[int, tuple[int, int]]]]:
    """The places whose runs an ordered index finds: the register, and for each edge (by its number) its range.

    What must not happen may end all runs of such a place, but not some of them, nor move them.
    """
    found: dict[int, tuple[int, dict[int, tuple[int, int]]]] = {}
    moving = {p for edge in made.veto_edges if edge.ops or edge.to != nodes.NOBODY for p in (edge.source, edge.to)}
    for p, registers in enumerate(made.needed):
        if len(registers) != 1 or p in index or p in moving:
            continue
        (register,) = registers
        own = {e: edge for e, edge in enumerate(made.edges) if edge.source == p}
        ranges = {e: _range(edge.ops, register, register in made.needed[edge.to]) for e, edge in own.items()}
        if not any(edge.contiguous for edge in own.values()) and None not in ranges.values():
            found[p] = register, {e: range_ for e, range_ in ranges.items() if range_ is not None}
    return found


# ---------------------------------------------------------------- arrays


def registers_of(greedy: Greedy, keep: int, labels: dict[int, int], runs: Runs) -> nodes.Registers | str:
    """The node for runtime.registers, or what keeps the pattern from being run so.

    `labels`: the number of the label for each mask, of which `keep` are the bits that tell matches apart.
    """
    try:
        made = _Builder(greedy, keep)
    except NotByRegisters as why:
        return str(why)
    n, positions = made.n, range(len(greedy.masks))
    edges = [*made.edges, *made.veto_edges, *made.late_edges]
    ops = [op for edge in edges for op in edge.ops]
    relates: dict[int, Any] = {}  # where the operands of such an op begin
    operands: list[int] = []
    for o, (kind, sources, _) in enumerate(ops):
        if kind == nodes.RELATES:
            relates[o] = len(operands)
            operands += sources
    index = _indexes(edges, n)
    apart, since = runs.apart or made.late != nodes.NOBODY, made.clauses.since
    # Of an ordered index a union of runs is taken, and none can be taken out; it holds no more than one register.
    ordered = {} if runs.greedy or apart or since != nodes.NOBODY else _ordered(made, index)
    late_edge = {edge.source: len(edges) - len(made.late_edges) + k for k, edge in enumerate(made.late_edges)}
    numbers = {p: x for x, p in enumerate(ordered)}
    ranges = [ordered[edge.source][1].get(e, (nodes.EVERY, 0)) if edge.source in ordered else (nodes.EVERY, 0)
              for e, edge in enumerate(edges)]  # fmt: skip

    def ints(values: Iterable[Any]) -> np.ndarray:
        return np.array(list(values), np.int64)

    def ends(sizes: Iterable[int]) -> np.ndarray:
        return np.concatenate([[0], np.cumsum(ints(sizes))]).astype(np.int64)

    return nodes.Registers(
        guard=ints(greedy.guards),
        label=ints(labels[mask & keep] for mask in greedy.masks),
        last=ints(p in greedy.last for p in positions),
        goes_on=ints(bool(greedy.follow[p]) for p in positions),
        near=ints(_near([f.contiguous for f in follow]) for follow in made.follow),
        edge_of=ends(sum(edge.to == q for edge in made.edges) for q in positions),
        source=ints(edge.source for edge in edges),
        contiguous=ints(edge.contiguous for edge in edges),
        wanted=ints(_equal_term(edge.ops, index.get(edge.source)) for edge in edges),
        index_of=ints(index.get(p, nodes.NOBODY) for p in range(n)),
        ordered_of=ints(numbers.get(p, nodes.NOBODY) for p in range(n)),
        sorted_by=ints(ordered[p][0] if p in ordered else nodes.NOBODY for p in range(n)),
        range_kind=ints(kind for kind, _ in ranges),
        range_term=ints(term for _, term in ranges),
        holds=ints(map(len, made.needed)),
        op_of=ends(len(edge.ops) for edge in edges),
        op_kind=ints(kind for kind, _, _ in ops),
        op_register=ints(relates.get(o, register) for o, (_, register, _) in enumerate(ops)),
        op_term=ints(term for _, _, term in ops),
        relation_operand=ints(operands),
        veto_guard=ints(made.veto_guards),
        veto_to=ints(edge.to for edge in made.veto_edges),
        before_guard=ints(guard for absence in greedy.before for guard in made.clauses.vetoes[absence].guards),
        late_edge=ints(late_edge.get(q, nodes.NOBODY) for q in positions),
        special=ints((made.late, since)),
        n_registers=made.clauses.n_registers + apart,
        greedy=runs.greedy,
        apart=runs.apart,
        relations=tuple(made.clauses.relations),
    )


def _near(contiguous: list[bool]) -> int:
    return nodes.ONLY_NEAR if contiguous and all(contiguous) else int(any(contiguous))
