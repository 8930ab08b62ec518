"""An automaton whose runs are kept in the order of a value, as flat arrays: many runs go on at once and keep it.

planner.automata.ranged makes it, runtime.steppers.ranged runs it.
"""

from __future__ import annotations

from dataclasses import dataclass

from runtime.arrays import IntArray
from runtime.nodes import Node


@dataclass(frozen=True, eq=False)
class Ranged(Node):
    """A position automaton with registers (runtime.chain_cea) whose runs hold one value at a time, their *key*.

    `A a ; B+ b ; C c WHERE b[i].x > a.x` has the positions A0, B1 and C2. Runs at A0 and at B1 hold the x of their A:

        edge 0   FROM_START → 0   the event's x becomes the key, `into`
        edge 1   0 → 1            only the runs with a key LESS than the event's x, which keep it
        edge 2   1 → 1            the same
        edge 3   1 → 2            all runs; then nothing is held

    *Positions* are as in Registers: position q takes an event with guard[q] and marks it label[q]. `last`: can a match
    end there? `goes_on`: does anything follow? *Places* are the positions, and then those where runs wait to which
    something has happened that must not. held[p]: the number of place p among those whose runs hold a key, NOBODY where
    they hold none. takes_null[h]: can a run there match whose key is NULL, which passes no check?

    *Edges* to q are edge_of[q] … edge_of[q + 1], from place source[e] or FROM_START. They take the runs whose key
    passes all of the checks check_of[e] … check_of[e + 1]: each of a kind, with a term of the event. pair[e]: the
    number of the pair of held places between which the runs keep their key; NOBODY if they get another, the term
    into[e], or none, NOBODY. The tests test_of[e] … ask of the event alone that test_left and test_right, two terms of
    it, pass test_kind. act[e] numbers the edges from held places, and then the vetoes there.

    *Pairs* are the held places (pair_from[k], pair_to[k]) between which there is a way on which the key is kept;
    pair_of[h, i] is their number, NOBODY for none. Places from which the same edges lead that keep the key, and where
    nothing must not happen, have the same pairs: those of place same[h], which is the first of them. *Vetoes* are what
    must not happen: an event with veto_guard[v] that passes the tests of edge (number of edges + v) moves the runs at
    the source of that edge whose key passes its checks to veto_to[v], or ends them: NOBODY.

    `label_of`: the label of the program for each label of a node. A node whose event other events go before, whichever
    these are, has its label and the number of labels added.
    """

    guard: IntArray
    label: IntArray
    last: IntArray
    goes_on: IntArray
    held: IntArray
    takes_null: IntArray
    edge_of: IntArray
    source: IntArray
    pair: IntArray
    into: IntArray
    act: IntArray
    check_of: IntArray
    check_kind: IntArray
    check_term: IntArray
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
