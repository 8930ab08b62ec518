"""Builds the runs of a chain-CEA: the places where they wait, and the edges with what they do with registers.

`A ; NOT C ; B WHERE C.v > a.v`, with the positions A0 and B1 and one register r:

    start → A0    r := v
    A0 → B1       forget r
    a C at A0     if r < v, the run ends

Where what must not happen closes only some of the ways that lie before a run, it goes on at a place of its own, which
is the position without these ways.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import product

from planner.automata.register_clauses import Clauses, NotByRegisters, Op, Way
from planner.automata.register_flow import Edge, Ops, held_at, live_at, named_by, sure_at, written_by
from planner.automata.register_sparing import alike_registers, asking, ending_early, renamed, trimmed
from runtime.chain_cea import (
    EQUAL,
    FIRST,
    FROM_START,
    LACKS,
    NOBODY,
    OWN,
    POSITION,
    RELATES,
    RESET,
)
from runtime.position_automaton import Follow, PositionAutomaton

MOST_PLACES = 8  # of one position


NOWHERE = -2  # the source of what asks an event about itself


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


class RunBuilder:
    """The places and edges of one automaton, whose matches are told apart by the marks `keep`."""

    def __init__(
        self, automaton: PositionAutomaton, keep: int, greedy: bool, n_terms: int, shows: bool = False
    ) -> None:
        self.automaton, self.keep, self.greedy, self.n_terms = automaton, keep, greedy, n_terms
        _check_unambiguous(automaton, keep, greedy)
        self.clauses = Clauses(automaton, n_terms)
        self.places = _Places.of(automaton)
        self.follow, self.n, self.late = self.places.follow, len(self.places.follow), NOBODY
        if automaton.after:  # where a match ends that something must not follow, it waits at a place of its own
            self.late, self.n, self.follow = self.n, self.n + 1, [*self.follow, ()]
        guarded = self._vetoing()
        self.veto_guards = [guard for guard, _ in guarded]
        self.early_edges = [Edge(NOWHERE, NOBODY, False, way.ops) for way in self.clauses.early]
        waiting = [Edge(q, self.late, False, []) for q in sorted(automaton.last) if self.late != NOBODY]
        edges, waiting, stopping = self._sparing((self._going_on(), waiting, [edge for _, edge in guarded]))
        if not greedy and not shows:
            edges = ending_early(edges, stopping, [p not in automaton.last and p != self.late for p in range(self.n)])
        every = [*edges, *waiting, *stopping]
        held = held_at(self.n, every, self.begins)
        self.live = live_at(self.n, every, self.ends)
        self.needed = [a & b for a, b in zip(held, self.live, strict=True)]
        self.sure = sure_at(self.n, every, self.begins)
        self.edges = sorted((self._tidy(edge) for edge in edges), key=lambda edge: edge.to)
        self.veto_edges = [self._tidy(edge) for edge in stopping]
        self.late_edges = [self._tidy(edge) for edge in waiting]

    def _going_on(self) -> list[Edge]:
        """The edges over which a run takes an event."""
        edges = [Edge(FROM_START, q, False, self._taking(q, None)) for q in self.automaton.first]
        for place, follow in enumerate(self.places.follow):
            gap = [self.clauses.vetoes[absence] for absence in sorted({v for f in follow for v in f.absences})]
            ended = [(RESET, register, 0) for veto in gap for _, register, _ in veto.after]
            edges += [Edge(place, f.position, f.contiguous, self._taking(f.position, f, ended)) for f in follow]
        return edges

    def _vetoing(self) -> list[tuple[int, Edge]]:
        """A veto edge per guard, with it, those of a place before those of the places that it leads to."""
        vetoes = [(self.clauses.vetoes[absence], place, to) for place, absence, to in sorted(self.places.closing)]
        vetoes += [(self.clauses.vetoes[absence], self.late, NOBODY) for absence in self.automaton.after]
        return [(way.guard, _vetoing(way, place, to)) for veto, place, to in vetoes for way in veto.ways]

    def _sparing(self, groups: tuple[list[Edge], ...]) -> list[list[Edge]]:
        """The edges without what nothing asks for, and with one register for those that hold the same."""
        everything = [edge for group in groups for edge in group]
        since, begun = self.clauses.since, self.clauses.begun
        begins = {since, begun} - {NOBODY}
        at_end = begins | {c.register for way in self.clauses.early if not way.decided for c in way.checks}
        ends = [at_end if p in self.automaton.last else set[int]() for p in range(self.n)]
        held = held_at(self.n, everything, begins)
        groups = tuple([asking(edge, held) for edge in group] for group in groups)
        live = live_at(self.n, [edge for group in groups for edge in group], ends)
        groups = tuple([trimmed(edge, live, ends) for edge in group] for group in groups)
        alike = alike_registers([edge for group in groups for edge in group], self.clauses.n_registers)
        used = {r for group in groups for edge in group for kind, r, term in edge.ops for r in named_by(kind, r, term)}
        number = {r: n for n, r in enumerate(sorted({alike[r] for r in used | at_end}))}
        names = {r: number[alike[r]] for r in used | at_end} | {NOBODY: NOBODY}
        self.n_registers, self.since, self.begun = len(number), names[since], names[begun]
        self.begins, self.ends = {names[r] for r in begins}, [{names[r] for r in own} for own in ends]
        self.checks = [[c._replace(register=names[c.register]) for c in way.checks] for way in self.clauses.early]
        return [[renamed(edge, names) for edge in group] for group in groups]

    def _taking(self, q: int, follow: Follow | None, ended: Iterable[Op] = ()) -> Ops:
        """What a run does that takes an event at q; `follow`: the way there, None from the beginning; `ended`: what
        it does with what must not happen between the last event and this one, when that has been asked for."""
        ops: Ops = [(LACKS, NOBODY, guard) for guard in self._lacking(q)]
        if follow is None and q in self.automaton.starts:
            ops.append((OWN + EQUAL, self.n_terms + POSITION, self.n_terms + FIRST))
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

    def _lacking(self, q: int) -> list[int]:
        """The guards that an event at q must not satisfy."""
        vetoes = [self.clauses.vetoes[absence] for absence in sorted(self.automaton.lacks[q])]
        if any(veto.number is not None for veto in vetoes):
            raise NotByRegisters("what no event of the match may be is compared with it")
        return [guard for veto in vetoes for guard in veto.guards]

    def _tidy(self, edge: Edge) -> Edge:
        """Forgets what is not needed any more where the run goes to."""
        if edge.to == NOBODY:
            return edge
        before = set(self.begins)
        if edge.source != FROM_START:
            before = self.needed[edge.source] | (self.ends[edge.source] if edge.to == self.late else set())
        stale = written_by(edge.ops, before) - self.needed[edge.to] - self.ends[edge.to]
        return edge._replace(ops=[*edge.ops, *((RESET, r, 0) for r in sorted(stale))])


def _check_unambiguous(automaton: PositionAutomaton, keep: int, greedy: bool) -> None:
    """Raises NotByRegisters where a match could be found on two ways.

    `(A ; B) OR (A ; C)`   an A begins two runs, of which one match needs one: fine
    `(A ; B) OR (A ; B)`   two ways through the pattern have the same marks: not fine
    `(A x OR D x) ; B`     no event is an A and a D (planner.apart): fine

    Two ways are walked side by side as far as their marks are the same, as the test of ambiguity does for finite
    automata. `greedy` runs leave a place, and must not have two of the same marks before them at all. O(edges²).
    """
    if any(not mask & keep for mask in automaton.masks):
        raise NotByRegisters("two ways lead to the same events in the same variables")
    start = tuple(Follow(position, False, (), ()) for position in automaton.first)
    todo: list[tuple[int, int, bool]] = list(_side_by_side(automaton, keep, start, start, False))
    seen = set(todo)
    while todo:
        p, q, parted = todo.pop()
        if parted and (greedy or (p in automaton.last and q in automaton.last)):
            raise NotByRegisters("two ways lead to the same events in the same variables")
        more = set(_side_by_side(automaton, keep, automaton.follow[p], automaton.follow[q], parted)) - seen
        seen |= more
        todo += more


def _side_by_side(
    automaton: PositionAutomaton, keep: int, left: tuple[Follow, ...], right: tuple[Follow, ...], parted: bool
) -> Iterator[tuple[int, int, bool]]:
    """Where two ways go on together: (position, position, have they parted?)."""
    for a, b in product(left, right):
        alike = automaton.masks[a.position] & keep == automaton.masks[b.position] & keep
        apart = (automaton.guards[a.position], automaton.guards[b.position]) in automaton.apart
        if alike and not apart and not _exclude_each_other(automaton, keep, a.position, b.position):
            yield a.position, b.position, parted or a != b


def _exclude_each_other(automaton: PositionAutomaton, keep: int, p: int, q: int) -> bool:
    """Do two ways with the same marks stand in different branches of a choice, which these events decide?"""
    deciding = dict(automaton.deciding)
    return any(
        choice == other and branch != taken and all(mask & keep for mask in deciding[choice])
        for choice, branch in automaton.branches[p]
        for other, taken in automaton.branches[q]
    )


def _computes(ops: Ops) -> bool:
    """Is there arithmetic among them, which can fail?"""
    return any(kind == RELATES for kind, _, _ in ops)


def _vetoing(way: Way, place: int, to: int) -> Edge:
    """The runs that a veto concerns; those for which a later event decides stay where they are."""
    return Edge(place, place if way.late else to, False, way.ops)
