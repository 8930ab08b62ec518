"""One event's moves of all runs of the general stepper, on union lists: `fire` of cea.py, without a table.

A *move* is (source, label, target, ends, begin): from the list in slot `source` of the old side, or from ⊥ (START),
by an event with that label (SKIPPED: by none; REPORTED: what is there is known to match), into the list in slot
`target` of the new side, or none (-1). Where it ENDS a match there is a root if the event reports its matches; where
it is LOGGED there is one that ends at -1. Sources come by decreasing max-start, moves of one source together.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from runtime.arrays import AnyArray
from runtime.compact_set.tecs import BOTTOM, extend
from runtime.jit import inlined, kernel
from runtime.steppers.cea import LIST_LENGTH, insert, merge, prune

START = -1  # a source
SKIPPED, REPORTED = -2, -3  # labels
SOURCE, LABEL, TARGET, END, BEGIN = range(5)  # columns of moves
LOGGED, NOTHING, ENDS = -1, 0, 1  # in column END
NODES_OF_A_MOVE = 2 * LIST_LENGTH + 5


class Lists(NamedTuple):
    """Union lists in slots, on two sides."""

    length: AnyArray  # int32[2, slots]
    nodes: AnyArray  # int32[2, slots, LIST_LENGTH]


def new_lists(n_slots: int) -> Lists:
    return Lists(np.zeros((2, n_slots), np.int32), np.zeros((2, n_slots, LIST_LENGTH), np.int32))


def grown_lists(lists: Lists, n_slots: int) -> Lists:
    bigger = new_lists(n_slots)
    old = lists.length.shape[1]
    bigger.length[:, :old], bigger.nodes[:, :old] = lists.length, lists.nodes
    return bigger


@inlined
def put(arena, lists, side, slot, node):
    """A safe node into the list of a slot."""
    if lists.length[side, slot] == 0:
        lists.nodes[side, slot, 0] = node
        lists.length[side, slot] = 1
    else:
        insert(arena, lists, side, slot, node)


@kernel
def move_kernel(arena, roots, bounds, lists, old, n_roots, moves, event):
    """Do all moves of an event; returns the number of roots. There is room: NODES_OF_A_MOVE and one root for each.

    Python calls it for every event, and arena, roots and bounds are unpacked faster by themselves than as tecs.Space.
    """
    now, new = event.clock, 1 - old
    for m in range(len(moves)):
        if moves[m, TARGET] >= 0:
            lists.length[new, moves[m, TARGET]] = 0
    source, merged = np.int64(-2), np.int64(-1)
    for m in range(len(moves)):
        if moves[m, SOURCE] != source:
            source, merged = moves[m, SOURCE], np.int64(-1)
            if source == START:
                merged = np.int64(BOTTOM)
            else:
                prune(arena, lists, old, source, now, bounds)
        if source != START and lists.length[old, source] == 0:
            continue
        label, target = moves[m, LABEL], moves[m, TARGET]
        if label == SKIPPED and lists.length[new, target] == 0:  # moved as it is
            length = lists.length[old, source]
            for e in range(length):
                lists.nodes[new, target, e] = lists.nodes[old, source, e]
            lists.length[new, target] = length
            continue
        if merged < 0:
            merged = np.int64(merge(arena, lists, old, source))
        if label == SKIPPED:
            put(arena, lists, new, target, merged)
            continue
        node, clock = merged, now
        if label == REPORTED:
            clock = arena.start[merged]  # time has passed
        else:
            node = extend(arena, event.row, label, merged, now if source == START else arena.start[merged])
            if target >= 0:
                put(arena, lists, new, target, node)
        ends = moves[m, END] == ENDS
        if (ends and event.report) or moves[m, END] == LOGGED:
            roots.node[n_roots], roots.clock[n_roots], roots.key[n_roots] = node, clock, event.key
            roots.begin[n_roots], roots.end[n_roots] = moves[m, BEGIN], event.position if ends else -1
            n_roots += 1
    return n_roots


@kernel
def merged_node(arena, lists, side, slot):
    """One node for the list of a slot."""
    return merge(arena, lists, side, slot)


@kernel
def prune_slot(arena, lists, side, slot, now, bounds):
    """Drop what has left the window; how much is left."""
    return prune(arena, lists, side, slot, now, bounds)
