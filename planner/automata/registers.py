"""This file makes the runs of a position automaton hold values in registers: PositionAutomaton → Registers.

The positions and the edges between them come from planner.automata.positions, the operations on registers from
planner.automata.register_clauses. Here they are put on the edges, and what is superfluous is taken away. For
`A+ a ; B b WHERE a.v < b.v`, with the positions A0 and B1 and one register r:

    start → A0    r := v, if that is greater
    A0 → A0       r := v, if that is greater
    A0 → B1       only if r < v; then forget r

A register is forgotten as soon as no way leads to an event that is compared with it. Runs that have nothing left to
compare are then equal, and become one. Two registers that always hold the same are one, too.

What must not happen ends a run, or closes some of the ways that lie before it. Such a run waits at a *place* of its
own, which is the position without these ways. In `A ; NOT C ; B WHERE C.v > a.v` a C ends the runs at A0 with r < v.

Some patterns need more than registers. Then `registers_of` says why, as a Refusal, and another stepper runs them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from planner.automata.register_clauses import Check, Clauses, NotByRegisters, Op, Way
from planner.refusal import Refusal
from runtime.chain_cea import (
    ANY_OF,
    BOTH,
    EACH,
    EQUAL,
    EQUAL_ONES,
    EVERY,
    FAILED,
    FROM_START,
    GREATEST,
    HIGHEST,
    HOLDS,
    LEAST,
    LESS,
    LOWEST,
    NOBODY,
    NOT_ALL,
    NOTE,
    NOTED,
    ONE,
    ONLY_NEAR,
    OWN,
    RANGE,
    REFUSED,
    RELATES,
    RESET,
    SAME,
    SEARCHED,
    SET,
    UNEQUAL,
    WINDOW,
    Early,
    Registers,
)
from runtime.position_automaton import Follow, PositionAutomaton

MOST_PLACES = 8  # of one position
NOWHERE = -2  # the source of what asks an event about itself
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

    automaton: PositionAutomaton
    follow: list[tuple[Follow, ...]]
    closing: list[tuple[int, int, int]] = field(default_factory=list)  # (place, absence, the place after it or NOBODY)

    @classmethod
    def of(cls, automaton: PositionAutomaton) -> _Places:
        made = cls(automaton, list(automaton.follow))
        for position in range(len(automaton.follow)):
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
                self.closing.append((place, absence, numbers[left] if left else NOBODY))


class _Builder:
    def __init__(self, automaton: PositionAutomaton, keep: int, greedy: bool) -> None:
        self.automaton = automaton
        for followers in (automaton.first, *((f.position for f in follow) for follow in automaton.follow)):
            marks = [automaton.masks[q] & keep for q in followers]
            if len(set(marks)) < len(marks) or 0 in marks:
                raise NotByRegisters("two ways lead to the same events in the same variables")
        self.clauses = Clauses(automaton)
        self.places = _Places.of(automaton)
        self.follow, self.n = self.places.follow, len(self.places.follow)
        edges = [Edge(FROM_START, q, False, self._taking(q, None)) for q in automaton.first]
        for place, follow in enumerate(self.places.follow):
            gap = [self.clauses.vetoes[absence] for absence in sorted({v for f in follow for v in f.absences})]
            ended = [(RESET, register, 0) for veto in gap for _, register, _ in veto.after]
            edges += [Edge(place, f.position, f.contiguous, self._taking(f.position, f, ended)) for f in follow]
        # A veto edge per guard, those of a place before those of the places that it leads to.
        vetoes = [(self.clauses.vetoes[absence], place, to) for place, absence, to in sorted(self.places.closing)]
        guarded = [(way.guard, _vetoing(way, place, to)) for veto, place, to in vetoes for way in veto.ways]
        # Where a match ends that something must not follow, it waits at a place of its own.
        self.late, waiting = NOBODY, list[Edge]()
        if automaton.after:
            self.late, self.n, self.follow = self.n, self.n + 1, [*self.follow, ()]
            waiting = [Edge(q, self.late, False, []) for q in sorted(automaton.last)]
            after = [self.clauses.vetoes[absence] for absence in automaton.after]
            guarded += [(way.guard, _vetoing(way, self.late, NOBODY)) for veto in after for way in veto.ways]
        self.veto_guards = [guard for guard, _ in guarded]
        asking = [Edge(NOWHERE, NOBODY, False, way.ops) for way in self.clauses.early]
        groups = (edges, waiting, [edge for _, edge in guarded])
        edges, waiting, stopping = self._sparing(groups)
        self.early_edges = asking
        if not greedy:
            edges = _ending_early(edges, stopping, [p not in automaton.last and p != self.late for p in range(self.n)])
        every = [*edges, *waiting, *stopping]
        held = _held(self.n, every, self.begins)
        self.needed = [a & b for a, b in zip(held, _live(self.n, every, self.ends), strict=True)]
        self.sure = _sure(self.n, every, self.begins)
        self.edges = sorted((self._tidy(edge) for edge in edges), key=lambda edge: edge.to)
        self.veto_edges = [self._tidy(edge) for edge in stopping]
        self.late_edges = [self._tidy(edge) for edge in waiting]

    def _sparing(self, groups: tuple[list[Edge], ...]) -> list[list[Edge]]:
        """The edges without what nothing asks for, and with one register for those that hold the same."""
        everything = [edge for group in groups for edge in group]
        since, begun = self.clauses.since, self.clauses.begun
        begins = {since, begun} - {NOBODY}
        at_end = begins | {c.register for way in self.clauses.early if not way.decided for c in way.checks}
        ends = [at_end if p in self.automaton.last else set[int]() for p in range(self.n)]
        held = _held(self.n, everything, begins)
        groups = tuple([_asking(edge, held) for edge in group] for group in groups)
        live = _live(self.n, [edge for group in groups for edge in group], ends)
        groups = tuple([_trimmed(edge, live, ends) for edge in group] for group in groups)
        alike = _alike([edge for group in groups for edge in group], self.clauses.n_registers)
        used = {r for group in groups for edge in group for kind, r, term in edge.ops for r in _named(kind, r, term)}
        number = {r: n for n, r in enumerate(sorted({alike[r] for r in used | at_end}))}
        names = {r: number[alike[r]] for r in used | at_end} | {NOBODY: NOBODY}
        self.n_registers, self.since, self.begun = len(number), names[since], names[begun]
        self.begins, self.ends = {names[r] for r in begins}, [{names[r] for r in own} for own in ends]
        self.checks = [[c._replace(register=names[c.register]) for c in way.checks] for way in self.clauses.early]
        return [[_renamed(edge, names) for edge in group] for group in groups]

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
        # Arithmetic last: `b.v <> a.v AND 1 / (b.v - a.v) > 2` does not divide by zero where the first has failed.
        for clause in sorted(self.clauses.made, key=lambda clause: _computes(clause.ops.get(q, []))):
            if follow is not None and clause.number not in follow.inside:
                ops += [(RESET, r, 0) for r in clause.registers]
            ops += clause.ops.get(q, [])
        return ops

    def _tidy(self, edge: Edge) -> Edge:
        """Forgets what is not needed any more where the run goes to."""
        if edge.to == NOBODY:
            return edge
        before = set(self.begins)
        if edge.source != FROM_START:
            before = self.needed[edge.source] | (self.ends[edge.source] if edge.to == self.late else set())
        stale = _written(edge.ops, before) - self.needed[edge.to] - self.ends[edge.to]
        return edge._replace(ops=[*edge.ops, *((RESET, r, 0) for r in sorted(stale))])


def _computes(ops: Ops) -> bool:
    """Is there arithmetic among them, which can fail?"""
    return any(kind == RELATES for kind, _, _ in ops)


def _vetoing(way: Way, place: int, to: int) -> Edge:
    """The runs that a veto concerns; those for which a later event decides stay where they are."""
    return Edge(place, place if way.late else to, False, way.ops)


# ---------------------------------------------------------------- registers that hold the same, runs that cannot match


def _changes(ops: Ops, register: int) -> Ops:
    return [(kind, 0, term) for kind, own, term in ops if own == register and _is_change(kind)]


def _is_change(kind: int) -> bool:
    return kind == RESET or SET <= kind <= LOWEST or kind >= FAILED


def _asking(edge: Edge, held: list[set[int]]) -> Edge:
    """Without checks of registers that hold nothing yet, which all pass."""
    ops, known = list[Op](), set[int]() if edge.source == FROM_START else set(held[edge.source])
    sides = 0  # of an OR, which stay
    for op in edge.ops:
        kind, register, _ = op
        checks = LESS <= kind <= UNEQUAL or REFUSED <= kind < ANY_OF
        if sides or not checks or register in known:
            ops.append(op)
        sides = register if kind == ANY_OF else max(0, sides - 1)
        known = _written([op], known)
    return edge._replace(ops=ops)


def _trimmed(edge: Edge, live: list[set[int]], ends: list[set[int]]) -> Edge:
    """Without changes of registers that are not looked at afterwards; what only happens if it has a value stays."""
    ops, asked = list[Op](), set() if edge.to == NOBODY else live[edge.to] | ends[edge.to]
    for op in reversed(edge.ops):
        kind, register, _ = op
        if _is_change(kind) and kind not in (HIGHEST, LOWEST) and register not in asked:
            continue
        ops.append(op)
        asked = _asked([op], asked) if kind == RESET or not _is_change(kind) else asked
    return edge._replace(ops=ops[::-1])


def _named(kind: int, register: Any, term: int) -> tuple[int, ...]:
    """The registers that an op names."""
    if kind == RELATES:
        return tuple(-1 - source for source in register if source < 0)
    if kind in (ANY_OF, HOLDS) or OWN <= kind < BOTH:
        return ()
    return (register, term) if BOTH <= kind < REFUSED else (register,)


def _alike(edges: list[Edge], n: int) -> dict[int, int]:
    """For each register the first that always holds the same: `A.x = B.x AND A.x = C.x` keeps A.x once.

    Two do that are changed alike by every edge. None is looked at after a change, which may not have reached both.
    """
    safe = [all(_checked_first(edge.ops, r) for edge in edges) for r in range(n)]
    found: dict[int, int] = {}
    seen: dict[tuple[tuple[Op, ...], ...], int] = {}
    for r in range(n):
        how = tuple(tuple(_changes(edge.ops, r)) for edge in edges)
        found[r] = seen.setdefault(how, r) if safe[r] and any(how) else r
    return found


def _checked_first(ops: Ops, register: int) -> bool:
    """Is a register only looked at before it is changed?"""
    kinds = [kind for kind, _ in _of_register(ops, register)]
    changes = [n for n, kind in enumerate(kinds) if _is_change(kind)]
    return not changes or all(map(_is_change, kinds[changes[0] :]))


def _renamed(edge: Edge, names: dict[int, int]) -> Edge:
    """An edge with other registers; what is then done twice is done once."""
    ops: Ops = []
    before: dict[int, Op] = {}
    for kind, register, term in edge.ops:
        own = _named(kind, register, term)
        if kind == RELATES:
            register = tuple(source if source >= 0 else -1 - names[-1 - source] for source in register)
        elif own:
            register = names[register]
            term = names[term] if len(own) > 1 else term
        op = (kind, register, term)
        if not _is_change(kind) or before.get(register) != op:
            ops.append(op)
        if _is_change(kind):
            before[register] = op
    return edge._replace(ops=ops)


def _ending_early(edges: list[Edge], stopping: list[Edge], doomed: list[bool]) -> list[Edge]:
    """The edges with a check where several events must be equal, so that a run which they spoil ends there.

    Without it all As would wait in `A+ a ; B b WHERE a.x = b.x`; with it an index finds those that an A goes on with.
    Only where a failed check lies ahead of such a run, on whatever way: a B that may be missing asks nothing.
    """
    registers = {register for edge in edges for kind, register, _ in edge.ops if kind == SAME}
    for r in registers:
        ends = _spoiled(r, [*edges, *stopping], list(doomed))
        edges = [_with_check(edge, r) if edge.source != FROM_START and ends[edge.to] else edge for edge in edges]
    return edges


STAYS_BAD = (GREATEST, LEAST, SAME)  # changes that leave BAD what it is


def _spoiled(register: int, edges: list[Edge], ends: list[bool]) -> list[bool]:
    """At which places can no run match any more that holds BAD in the register? `ends`: where no match ends."""
    changed = True
    while changed:
        changed = False
        for edge in edges:
            if edge.source == FROM_START or not ends[edge.source]:
                continue
            own = [kind for kind, _ in _of_register(edge.ops, register)]
            kinds = [kind for kind in own if kind <= UNEQUAL or (_is_change(kind) and kind not in STAYS_BAD)]
            fails = bool(kinds) and kinds[0] != RESET and kinds[0] <= UNEQUAL
            if not fails and (kinds or (edge.to != NOBODY and not ends[edge.to])):
                ends[edge.source], changed = False, True
    return ends


def _with_check(edge: Edge, register: int) -> Edge:
    at = next((n for n, op in enumerate(edge.ops) if op[:2] == (SAME, register)), None)
    if at is None or any(op[0] == RESET and op[1] == register for op in edge.ops):
        return edge
    return edge._replace(ops=[*edge.ops[:at], (EQUAL, register, edge.ops[at][2]), *edge.ops[at:]])


# ---------------------------------------------------------------- what registers hold, and are still asked for


def _written(ops: Ops, held: set[int]) -> set[int]:
    """The registers that can hold something after the ops."""
    found = set(held)
    for kind, register, _ in _single_ops(ops):
        if kind == RESET:
            found.discard(register)
        elif SET <= kind <= LOWEST or kind >= FAILED:
            found.add(register)
    return found


def _asked(ops: Ops, live: set[int]) -> set[int]:
    """The registers that the ops, or what comes after them, can look at."""
    found = set(live)
    for kind, register, term in reversed(list(_single_ops(ops))):
        if kind == RELATES:
            found |= {-1 - source for source in register if source < 0}
        elif kind in (RESET, SET, NOTE):
            found.discard(register)
        elif BOTH <= kind < REFUSED:
            found |= {register, term}
        elif LESS <= kind < SET or kind in (NOT_ALL, NOTED) or REFUSED <= kind < ANY_OF:
            found.add(register)
    return found


def _single_ops(ops: Ops) -> Iterator[Op]:
    """All ops; the sides of an OR one by one."""
    return (op for op in ops if op[0] != ANY_OF)


def _held(n: int, edges: list[Edge], begins: set[int]) -> list[set[int]]:
    """For each place the registers that can hold something there; `begins`: those that hold something at once."""
    found: list[set[int]] = [set() for _ in range(n)]
    changed = True
    while changed:
        changed = False
        for source, to, _, ops in edges:
            if to != NOBODY:
                more = _written(ops, begins if source == FROM_START else found[source]) - found[to]
                found[to] |= more
                changed = changed or bool(more)
    return found


def _sure(n: int, edges: list[Edge], begins: set[int]) -> list[set[int]]:
    """For each place the registers that hold something there, whatever the way that led to it."""
    found: list[set[int] | None] = [None] * n  # None: no way is known yet
    changed = True
    while changed:
        changed = False
        for source, to, _, ops in edges:
            before = begins if source == FROM_START else found[source]
            if to == NOBODY or before is None:
                continue
            now, known = _written(ops, before), found[to]
            if known is None or not known <= now:
                found[to] = now if known is None else known & now
                changed = True
    return [held or set() for held in found]


def _live(n: int, edges: list[Edge], ends: list[set[int]]) -> list[set[int]]:
    """For each place the registers that can still be looked at; `ends`: those that are when a run comes there."""
    found: list[set[int]] = [set() for _ in range(n)]
    changed = True
    while changed:
        changed = False
        for source, to, _, ops in edges:
            if source != FROM_START:
                more = _asked(ops, set() if to == NOBODY else found[to] | ends[to]) - found[source]
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
        if kind == ANY_OF:
            if register in _asked(ops[at : at + own], set()):
                yield ANY_OF, 0
            at += own
        elif kind == RELATES:
            if register in _asked([(kind, own, term)], set()):
                yield RELATES, 0
        elif own == register and not OWN <= kind < BOTH:
            yield kind, term


def _equal_terms(ops: Ops, registers: Iterable[int]) -> dict[int, int]:
    """By register, of these: the term to which it must be equal for an edge, as it was when the event came."""
    first = {r: next(_of_register(ops, r), (RESET, 0)) for r in registers}
    return {r: term for r, (kind, term) in first.items() if kind == EQUAL}


def _indexes(edges: list[Edge], needed: list[set[int]], sure: list[set[int]]) -> dict[int, tuple[int, ...]]:
    """For each place the registers that its runs are found by: those that most edges ask to be equal to something.

    Only what a run can hold there tells it from others: in `A ; B ; C WHERE A.x = B.x AND B.y = C.y` an A holds x
    alone, though B asks for C.y, too, which nothing has set yet. What every run holds is better than what some do,
    since those without a value are looked at by each event; and two registers are better than one.
    """
    found: dict[int, tuple[int, ...]] = {}
    for p, held in enumerate(needed):
        asked = [frozenset(_equal_terms(edge.ops, held)) for edge in edges if edge.source == p]
        asked = [own & sure[p] or own for own in asked if own]
        wanted = {a & b for a in asked for b in asked} - {frozenset()}
        if wanted:
            best = max(wanted, key=lambda own: (sum(own <= a for a in asked), len(own), [-r for r in sorted(own)]))
            found[p] = tuple(sorted(best))
    return found


def _wanted(edge: Edge, index: dict[int, tuple[int, ...]]) -> tuple[int, ...]:
    """The terms by which the index of its source finds the runs for an edge; none where it asks for less."""
    registers = index.get(edge.source, ())
    terms = _equal_terms(edge.ops, registers)
    return tuple(terms[r] for r in registers) if len(terms) == len(registers) else ()


def _range(ops: Ops, register: int, kept: bool) -> tuple[int, int] | None:
    """The check (kind, term) by which an edge takes the runs of an ordered index, (EVERY, 0) if it takes all; None if
    it does more with the register than to check it once and forget it. `kept`: it is needed afterwards."""
    check = (EVERY, 0)
    for kind, term in _of_register(ops, register):
        if kind in (RESET, SET):
            return check
        if kind > SET or check[0] != EVERY:
            return None
        check = (kind, term)
    return None if kept else check


def _ordered(made: _Builder, index: dict[int, tuple[int, ...]]) -> dict[int, tuple[int, dict[int, tuple[int, int]]]]:
    """The places whose runs an ordered index finds: the register, and for each edge (by its number) its range.

    What must not happen may end all runs of such a place, but not some of them, nor move them.
    """
    found: dict[int, tuple[int, dict[int, tuple[int, int]]]] = {}
    moving = {p for edge in made.veto_edges if edge.ops or edge.to != NOBODY for p in (edge.source, edge.to)}
    for p, registers in enumerate(made.needed):
        if len(registers) != 1 or p in index or p in moving:
            continue
        (register,) = registers
        own = {e: edge for e, edge in enumerate(made.edges) if edge.source == p}
        ranges = {e: _range(edge.ops, register, register in made.needed[edge.to]) for e, edge in own.items()}
        if register == made.since:  # it is looked at where a match ends, and has to have left the window then
            gone = (LESS, WINDOW)
            ranges = {e: range_ and (gone if edge.to in made.automaton.last else range_)
                      for (e, edge), range_ in zip(own.items(), ranges.values(), strict=True)}  # fmt: skip
        elif register == made.begun or any(register in made.ends[edge.to] for edge in own.values()):
            continue
        if not any(edge.contiguous for edge in own.values()) and None not in ranges.values():
            found[p] = register, {e: range_ for e, range_ in ranges.items() if range_ is not None}
    return found


def _looks(made: _Builder, edge: Edge, index: dict[int, tuple[int, ...]], ordered: set[int], apart: bool) -> int:
    """How many of the runs that wait at its source an event looks at for an edge (Registers)."""
    p = edge.source
    if p == FROM_START:
        return max((_searched(way.checks) for way in made.clauses.early if way.decided), default=ONE)
    if p in (NOWHERE, made.late) or edge in made.late_edges:
        return ONE
    stays = edge in made.veto_edges and not any(kind != RESET for kind, _, _ in edge.ops)
    near = _near([f.contiguous for f in made.follow[p]])
    if stays or (not made.needed[p] and not apart and (near != 1 or edge.contiguous)):
        return ONE  # they are one, or leave the place
    if p in ordered:
        return RANGE
    if not _wanted(edge, index):
        return EACH
    own = set(index[p])
    alone = own == made.needed[p] and (len(own) == 1 or own <= made.sure[p])
    return ONE if alone and not apart and near != 1 else EQUAL_ONES


def _searched(checks: list[Check]) -> int:
    """How much of what happened before a run its first event looks at."""
    kinds = [check.kind for check in checks]
    if EQUAL in kinds:
        return ONE if len(kinds) == 1 else EQUAL_ONES
    return (ONE, RANGE)[len(kinds)] if len(kinds) < 2 else SEARCHED


# ---------------------------------------------------------------- arrays


def registers_of(automaton: PositionAutomaton, keep: int, labels: dict[int, int], runs: Runs) -> Registers | Refusal:
    """The node for runtime.steppers.registers, or what keeps the pattern from being run so.

    `labels`: the number of the label for each mask, of which `keep` are the bits that tell matches apart.
    """
    try:
        made = _Builder(automaton, keep, runs.greedy)
    except NotByRegisters as why:
        return Refusal(str(why))
    n, positions = made.n, range(len(automaton.masks))
    edges = [*made.edges, *made.veto_edges, *made.late_edges, *made.early_edges]
    ops = [op for edge in edges for op in edge.ops]
    relates: dict[int, Any] = {}  # where the operands of such an op begin
    operands: list[int] = []
    for o, (kind, sources, _) in enumerate(ops):
        if kind == RELATES:
            relates[o] = len(operands)
            operands += sources
    index = _indexes(edges, made.needed, made.sure)
    apart, since = runs.apart or made.late != NOBODY, made.since
    # Of an ordered index a union of runs is taken, and none can be taken out; it holds no more than one register.
    ordered = {} if runs.greedy or apart else _ordered(made, index)
    n_before = len(made.edges) + len(made.veto_edges)
    late_edge = {edge.source: n_before + k for k, edge in enumerate(made.late_edges)}
    numbers = {p: x for x, p in enumerate(ordered)}
    ranges = [ordered[edge.source][1].get(e, (EVERY, 0)) if edge.source in ordered else (EVERY, 0)
              for e, edge in enumerate(edges)]  # fmt: skip

    def ints(values: Iterable[Any]) -> np.ndarray:
        return np.array(list(values), np.int64)

    def ends(sizes: Iterable[int]) -> np.ndarray:
        return np.concatenate([[0], np.cumsum(ints(sizes))]).astype(np.int64)

    return Registers(
        guard=ints(automaton.guards),
        label=ints(labels[mask & keep] for mask in automaton.masks),
        last=ints(p in automaton.last for p in positions),
        goes_on=ints(bool(automaton.follow[p]) for p in positions),
        near=ints(_near([f.contiguous for f in follow]) for follow in made.follow),
        edge_of=ends(sum(edge.to == q for edge in made.edges) for q in positions),
        source=ints(edge.source for edge in edges),
        contiguous=ints(edge.contiguous for edge in edges),
        wanted=_padded([_wanted(edge, index) for edge in edges]),
        index_of=_padded([index.get(p, ()) for p in range(n)]),
        ordered_of=ints(numbers.get(p, NOBODY) for p in range(n)),
        sorted_by=ints(ordered[p][0] if p in ordered else NOBODY for p in range(n)),
        range_kind=ints(kind for kind, _ in ranges),
        range_term=ints(term for _, term in ranges),
        looks=ints(_looks(made, edge, index, set(ordered), apart) for edge in edges),
        op_of=ends(len(edge.ops) for edge in edges),
        op_kind=ints(kind for kind, _, _ in ops),
        op_register=ints(relates.get(o, register) for o, (_, register, _) in enumerate(ops)),
        op_term=ints(term for _, _, term in ops),
        relation_operand=ints(operands),
        veto_guard=ints(made.veto_guards),
        veto_to=ints(edge.to for edge in made.veto_edges),
        early=_early(made, len(edges) - len(made.early_edges)),
        late_edge=ints(late_edge.get(q, NOBODY) for q in positions),
        special=ints((made.late, since, made.begun)),
        n_registers=made.n_registers + apart,
        greedy=runs.greedy,
        apart=runs.apart,
        relations=tuple(made.clauses.relations),
    )


def _early(made: _Builder, first_edge: int) -> Early:
    """What must not come before a match; `first_edge`: the edge with what the first kind of it asks of itself."""
    ways, checks = made.clauses.early, [check for own in made.checks for check in own]
    equal = [next((k for k, c in enumerate(own) if c.kind == EQUAL), None) for own in made.checks]
    begin = np.cumsum([0, *map(len, made.checks)]).astype(np.int64)
    outside = [[c.outside.get(p, NOBODY) for c in checks] for p in range(len(made.automaton.masks))]
    return Early(
        guard=np.array([way.guard for way in ways], np.int64),
        edge=np.arange(first_edge, first_edge + len(ways), dtype=np.int64),
        decided=np.array([way.decided for way in ways], np.bool_),
        check_of=begin,
        equal=np.array([NOBODY if k is None else b + k for k, b in zip(equal, begin, strict=False)], np.int64),
        kind=np.array([c.kind for c in checks], np.int64),
        term=np.array([c.term for c in checks], np.int64),
        register=np.array([c.register for c in checks], np.int64),
        outside=np.array(outside, np.int64).reshape(len(outside), len(checks)),
    )


def _padded(rows: list[tuple[int, ...]]) -> np.ndarray:
    """As a matrix of at least one column, NOBODY where a row has no more."""
    width = max(1, *map(len, rows))
    return np.array([(*row, *[NOBODY] * (width - len(row))) for row in rows], np.int64)


def _near(contiguous: list[bool]) -> int:
    return ONLY_NEAR if contiguous and all(contiguous) else int(any(contiguous))
