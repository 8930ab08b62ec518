"""The moves of all runs of the general stepper, on union lists: `fire` of cea.py, without a table.

A *move* is (source, label, target, accept, begin): from the list in slot `source` of the old side, or from ⊥ (START),
by an event with that label (SKIPPED: by none; REPORTED: what is there is known to match), into the list in slot
`target` of the new side, or none (-1). Sources come by decreasing max-start, moves of one source together.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from runtime.arrays import AnyArray
from runtime.compact_set.tecs import BOTTOM, extend
from runtime.jit import kernel
from runtime.steppers.union_lists import LIST_LENGTH, copy_list, merge, prune, put

START = -1  # a source
SKIPPED, REPORTED = -2, -3  # labels
SOURCE, LABEL, TARGET, ACCEPT, BEGIN = range(5)  # columns of moves
NODES_OF_A_MOVE = 2 * LIST_LENGTH + 5


class Lists(NamedTuple):
    """Union lists in slots, on two sides."""

    length: AnyArray  # int32[2, slots]
    nodes: AnyArray  # int32[2, slots, LIST_LENGTH]
    state: AnyArray  # int64[2]: SIDE, N_ROOTS


SIDE, N_ROOTS = range(2)


def new_lists(n_slots: int) -> Lists:
    lengths, nodes = np.zeros((2, n_slots), np.int32), np.zeros((2, n_slots, LIST_LENGTH), np.int32)
    return Lists(lengths, nodes, np.zeros(2, np.int64))


def grown_lists(lists: Lists, n_slots: int) -> Lists:
    bigger = new_lists(n_slots)
    bigger.state[:] = lists.state
    old = lists.length.shape[1]
    bigger.length[:, :old], bigger.nodes[:, :old] = lists.length, lists.nodes
    return bigger


class Queue(NamedTuple):
    """Events whose moves wait to be done: for each (number of moves, slots after it, row, position, whether to report
    what ends there), its clock, and the moves of all, one event after the other."""

    events: AnyArray  # int64[n, 5]
    clocks: AnyArray  # as Arena.start
    moves: AnyArray  # int64[moves, 5]


N_MOVES, N_SLOTS, ROW, POSITION, REPORT = range(5)  # columns of events


@kernel
def move_kernel(space, lists, queue, key, log):
    """Do the moves of all events; lists.state says which side is the old one, and how many roots there are. `log`:
    every marking move that ends no match is a root, too, that ends at -1. There is room: NODES_OF_A_MOVE and one root
    for each move."""
    arena, roots, n_roots, m = space.arena, space.roots, lists.state[N_ROOTS], 0
    for i in range(len(queue.clocks)):
        old = lists.state[SIDE]
        new = 1 - old
        now, position, report = queue.clocks[i], queue.events[i, POSITION], queue.events[i, REPORT] != 0
        for slot in range(queue.events[i, N_SLOTS]):
            lists.length[new, slot] = 0
        source, merged = np.int64(-2), np.int64(-1)
        for _ in range(queue.events[i, N_MOVES]):
            if queue.moves[m, SOURCE] != source:
                source, merged = queue.moves[m, SOURCE], np.int64(-1)
                if source == START:
                    merged = np.int64(BOTTOM)
                else:
                    prune(arena, lists, old, source, now, space.bounds)
            label, target = queue.moves[m, LABEL], queue.moves[m, TARGET]
            accept, begin = queue.moves[m, ACCEPT] != 0, queue.moves[m, BEGIN]
            m += 1
            if source != START and lists.length[old, source] == 0:
                continue
            if label == SKIPPED and lists.length[new, target] == 0:  # moved as it is
                copy_list(lists, new, target, old, source)
                continue
            if merged < 0:
                merged = np.int64(merge(arena, lists, old, source))
            if label == SKIPPED:
                put(arena, lists, new, target, merged)
                continue
            node, clock, end = merged, now, position
            if label == REPORTED:
                clock = arena.start[merged]  # time has passed
            else:
                start = now if source == START else arena.start[merged]
                node = np.int64(extend(arena, queue.events[i, ROW], label, merged, start))
                if target >= 0:
                    put(arena, lists, new, target, node)
                if not accept:
                    end = np.int64(-1)
            if (report and end >= 0) or (log and end < 0):
                roots.node[n_roots], roots.clock[n_roots], roots.key[n_roots] = node, clock, key
                roots.begin[n_roots], roots.end[n_roots] = begin, end
                n_roots += 1
        lists.state[SIDE] = new
    lists.state[N_ROOTS] = n_roots
