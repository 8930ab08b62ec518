"""A parallelized automaton (PCEA) as flat arrays: atoms, and the steps up the tree that joins them ([PCEA] Section 3).

planner.automata.pcea makes it, runtime.steppers.pcea runs it.
"""

from __future__ import annotations

from dataclasses import dataclass

from runtime.arrays import IntArray
from runtime.nodes import Node

ROOT = -1  # where a part that is whole is the whole match


@dataclass(frozen=True, eq=False)
class Parallel(Node):
    """A parallelized automaton ([PCEA] Section 3) of a hierarchical ALL, made by planner.automata.pcea.

    `ALL(A a, B b) WHERE a.x = b.x` has two atoms, and a tree with the value x above both. An A waits under its x. A B
    with the same x finds it, and the two are a match: ROOT.

    *Atom* i takes an event with guard[i] whose terms own_of[i] … own_of[i + 1] of (own_left, own_right) are equal in
    pairs, and none of them NULL. *Move* a takes an event as all the atoms of the bits atoms[a] at once, if the terms
    together_of[a] … of (together_left, together_right) are equal.

    The *steps* step_of[a] … of a move go up the tree. Step s needs the parts part_of[s] …, and lacks none, or it ends
    the move. Part p is of the place part[p] of the tree, found by the values of the terms key_of[p] … of `key`. With
    them and with those of the steps before, step s makes a run that waits at place[s], under the values of the terms
    into_of[s] … of `into`; or a match: ROOT.

    label_of[m]: the label, an index into Program.labels, of an event that is all the atoms of the bits m. `depth`: the
    terms in the longest key.
    """

    guard: IntArray
    own_of: IntArray
    own_left: IntArray
    own_right: IntArray
    atoms: IntArray
    together_of: IntArray
    together_left: IntArray
    together_right: IntArray
    step_of: IntArray
    part_of: IntArray
    part: IntArray
    key_of: IntArray
    key: IntArray
    place: IntArray
    into_of: IntArray
    into: IntArray
    label_of: IntArray
    depth: int
