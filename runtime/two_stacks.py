"""A position automaton whose matches depend on all that a window holds, as flat arrays: of the matches of each end the
greatest is wanted, or those of each start after which something has not happened.

planner.automata.two_stacks makes it, runtime.steppers.two_stacks runs the one, runtime.steppers.late_stacks the other.
"""

from __future__ import annotations

from dataclasses import dataclass

from runtime.arrays import IntArray
from runtime.chain_cea import NOBODY
from runtime.nodes import Node


@dataclass(frozen=True, eq=False)
class TwoStacks(Node):
    """Runs that wait at places, and what an event does to them, whatever else they are.

    `SEQ(A, !C, B) WITHIN 10 SEMANTICS NXT` has the positions A0 and B1, the places 0 (nothing has begun) and 1 (after
    A0), and

        an A   leads from place 0 to place 1
        a B    leads from place 1 to the end of a match
        a C    ends what waits at place 1

    *Positions.* An event satisfies guard[q], and none of the guards lacks_of[q] … of `lacks`; it is marked label[q].
    `last`: can a match end there? It comes from the places edge_of[q] … of `source`, and leads to the place to[q], or
    nothing follows: NOBODY. *Vetoes*: an event that satisfies veto_guard[v] moves what waits at the place
    veto_from[v] to veto_to[v], or ends it: NOBODY; one after the other. `n_places`: with the place 0. `later`: does the
    last event in which two matches differ decide between them (LAST), or the first (NXT)?

    *Late*: of `SEQ(A, B, !C) WITHIN 10` all matches are wanted that still wait when their window has closed. A match
    waits at the place `late`, to which its last event leads as well; a C ends it there. NOBODY: none wait.
    """

    guard: IntArray
    label: IntArray
    last: IntArray
    to: IntArray
    lacks_of: IntArray
    lacks: IntArray
    edge_of: IntArray
    source: IntArray
    veto_guard: IntArray
    veto_from: IntArray
    veto_to: IntArray
    n_places: int
    later: bool
    late: int = NOBODY
