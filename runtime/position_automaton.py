"""A position automaton (Glushkov's) as data: one position for each occurrence of an atom, and what can follow it.

planner.automata.positions makes it; runtime.automata.positions runs it, and planner.automata.registers adds registers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from runtime.clauses import Compared, Deciding, Numbering
from runtime.nodes import Node


class Follow(NamedTuple):
    """An edge to what can come next.

    `contiguous`: only at once. `absences`: no match of these (by their number in `vetoes`) may lie between. `inside`:
    the clauses that go on over the edge; any other is asked anew.
    """

    position: int
    contiguous: bool
    absences: tuple[int, ...]
    inside: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class PositionAutomaton(Node):
    """A position automaton (Glushkov's): one position for each occurrence of an atom. [CEL] has none.

    `A ; B{2}`: the positions A0, B1, B2     first (0), follow ((2), (), (1)), last {1}: A0 → B2 → B1
    `A ; B+`:   the positions A0, B1         first (0), follow ((1), (1)), last {1}: A0 → B1, B1 → B1

    Position p takes an event that satisfies guard `guards[p]`, and marks it `masks[p]`. `first`: the positions that can
    begin. `last`: those that can end. `follow[p]`: what can come after p. `greedy`: a run that can take an event must
    take it (SKIP TILL NEXT MATCH).

    Conditions are clauses, by their number:
    `clauses`: of each OR of conditions on single events the number of its sides, 0 for the other kinds of clause. One
    of the sides must hold of every event that it speaks of. `asks[p]`: (clause, ((side, guard), …)), what clauses ask
    of the event of p. `compared`: the clauses that compare events; `asks` then has (choice, unused) for each choice
    that the event is one of. `across`: the clauses that compare events with what must not happen between them; `asks`
    then has (mask, unused), the event's. `undecided[p]`: those of them that a later event can still decide after p.

    What must not happen are `vetoes`. Those of `before` and `after` stand before and after the whole. They, and what
    follows, are for planner.automata.registers alone. `lacks[p]`: the vetoes that the event of p must not be itself.
    `starts`: the positions that only the first event of the stream can begin with. `windows`: (clause, inner window),
    where all events of one round of the clause fit the window, by its number. `refused`: comparisons that must not be
    TRUE. `branches[p]`: (choice, branch) for each choice between copies of a part, of which at most one can match the
    same events; `deciding`: (choice, masks), the variables whose events decide it. `apart`: pairs of guards that no
    event satisfies both, each pair both ways round. `meanwhile`: what must not happen while a match of the whole goes
    on, each of several events. `unless`: (clause, number of one of `inside`), which must not happen while a round of
    the clause goes on.
    """

    guards: tuple[int, ...]
    masks: tuple[int, ...]
    first: tuple[int, ...]
    last: frozenset[int]
    follow: tuple[tuple[Follow, ...], ...]
    vetoes: tuple[Node, ...] = ()
    clauses: tuple[int, ...] = ()
    asks: tuple[tuple[tuple[int, tuple[tuple[int, int], ...]], ...], ...] = ()
    compared: tuple[tuple[int, Compared], ...] = ()
    across: tuple[tuple[int, Deciding], ...] = ()
    undecided: tuple[frozenset[int], ...] = ()
    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()
    greedy: bool = True
    lacks: tuple[frozenset[int], ...] = ()
    starts: frozenset[int] = frozenset()
    windows: tuple[tuple[int, int], ...] = ()
    refused: frozenset[int] = frozenset()
    branches: tuple[frozenset[tuple[int, int]], ...] = ()
    deciding: tuple[tuple[int, tuple[int, ...]], ...] = ()
    apart: frozenset[tuple[int, int]] = frozenset()
    meanwhile: tuple[Node, ...] = ()
    unless: tuple[tuple[int, int], ...] = ()
    inside: tuple[Node, ...] = ()

    def own_guards(self, number: Numbering) -> Node:
        asks = (
            tuple((clause, tuple((side, number(guard)) for side, guard in of)) for clause, of in own)
            for own in self.asks
        )
        return replace(
            self,
            asks=tuple(asks),
            compared=tuple((clause, compared.with_guards(number)) for clause, compared in self.compared),
            across=tuple((clause, deciding.with_guards(number)) for clause, deciding in self.across),
        )
