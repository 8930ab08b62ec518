"""An automaton whose runs catch up, as flat arrays: equality of events that are not neighbours.

planner.automata.deferred makes it, runtime.steppers.deferred runs it.
"""

from __future__ import annotations

from dataclasses import dataclass

from runtime.arrays import IntArray
from runtime.nodes import Node


@dataclass(frozen=True, eq=False)
class Deferred(Node):
    """A position automaton with registers (runtime.chain_cea) in which runs are told apart by their values alone.

    `A ; B ; C WHERE A.x = C.x` has the positions A0, B1 and C2. Runs at A0 and at B1 hold the x of their A:

        edge 0   FROM_START → 0   the event's x is the value, `into`
        edge 1   0 → 1            free: any B, whatever the value
        edge 2   1 → 2            only the runs whose value is the event's x, `ask`; then nothing is held

    *Positions* are as in Registers: position q takes an event with guard[q] and marks it label[q]. `last`: can a match
    end there? `goes_on`: does anything follow? *Places* are the positions, and then those where runs wait to which
    something has happened that must not. held[p]: the number of place p among those whose runs hold values, NOBODY
    where they hold none; component[h]: which values, for each that does: runs at places of one component hold the same
    registers, and an edge between them may leave them as they are.

    *Edges* to q are edge_of[q] … edge_of[q + 1], from place source[e] or FROM_START. pair[e] tells free ones: they take
    any event, and leave the values alone; NOBODY for others. Those ask that the runs hold the event's terms
    ask_of[e] … of `ask` (none where the source holds nothing), and leave them the terms into_of[e] … of `into`. The
    tests test_of[e] … ask of the event alone that test_left and test_right, two terms of it, pass test_kind.

    *Pairs* are the held places (pair_from[k], pair_to[k]) between which there is a way of free edges; pair_of[h, i] is
    their number, NOBODY for none. Places from which the same free edges lead, and where nothing must not happen, have
    the same pairs: those of place same[h], which is the first of them. *Vetoes* are what must not happen: an event with
    veto_guard[v] that passes the tests of edge (number of edges + v) moves the runs at the source of that edge to
    veto_to[v], or ends them: NOBODY. It concerns all of these, or where the edge asks for values, `SEQ(A a, B, !D d, C
    c) WHERE a.x = c.x AND d.x = a.x`, those that hold them.

    `label_of`: the label of the program for each label of a node. A node whose event other events go before, whichever
    these are, has its label and the number of labels added. `depth`: the values in the longest key.
    """

    guard: IntArray
    label: IntArray
    last: IntArray
    goes_on: IntArray
    held: IntArray
    component: IntArray
    edge_of: IntArray
    source: IntArray
    pair: IntArray
    ask_of: IntArray
    ask: IntArray
    into_of: IntArray
    into: IntArray
    test_of: IntArray
    test_kind: IntArray
    test_left: IntArray
    test_right: IntArray
    pair_from: IntArray
    pair_to: IntArray
    pair_of: IntArray
    same: IntArray
    veto_guard: IntArray
    veto_to: IntArray
    label_of: IntArray
    depth: int
