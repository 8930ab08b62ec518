"""Union lists: nodes of the compact set by decreasing max-start, the first of them no union ([CORE] Algorithm 1).

Whatever holds runs keeps such a list for each of their states, as `length[side, k]` and `nodes[side, k]` of a bundle of
arrays: at an event those of the old side are read, and those of the new side written. Entries of equal start are
united, so a list is no longer than there are states that handed something on to it; a window drops its tail.

The helpers are inlined by force, since a call would count references for every array of its tuples (see runtime.jit).
"""

from __future__ import annotations

import numpy as np

from runtime.arrays import AnyArray
from runtime.compact_set.tecs import inside, link, union
from runtime.jit import inlined, kernel

LIST_LENGTH = 16  # entries of a union list; a longer one is united at its end, which only costs delay


@inlined
def merge(arena, lists, side, k):
    """One node for a whole union list; safe, since the list's first entry is no union."""
    length = lists.length[side, k]
    node = lists.nodes[side, k, length - 1]
    for e in range(length - 2, -1, -1):
        node = link(arena, lists.nodes[side, k, e], node)
    return node


@inlined
def insert(arena, lists, side, k, node):
    """Put a safe node, whose start is not after the list's first, into a union list at its place."""
    length = lists.length[side, k]
    start = arena.start[node]
    at = 1
    while at < length and arena.start[lists.nodes[side, k, at]] > start:
        at += 1
    if at < length and arena.start[lists.nodes[side, k, at]] == start:
        lists.nodes[side, k, at] = union(arena, lists.nodes[side, k, at], node)
        return
    if length == LIST_LENGTH:
        tail = link(arena, lists.nodes[side, k, length - 2], lists.nodes[side, k, length - 1])
        length -= 1
        lists.nodes[side, k, length - 1] = tail
        if at >= length:
            if arena.start[tail] >= start:
                lists.nodes[side, k, length - 1] = link(arena, tail, node)
            else:
                lists.nodes[side, k, length - 1] = link(arena, node, tail)
            lists.length[side, k] = length
            return
    for e in range(length, at, -1):
        lists.nodes[side, k, e] = lists.nodes[side, k, e - 1]
    lists.nodes[side, k, at] = node
    lists.length[side, k] = length + 1


@inlined
def begin_list(lists, side, k, node):
    """A list of this node alone."""
    lists.nodes[side, k, 0] = node
    lists.length[side, k] = 1


@inlined
def put(arena, lists, side, k, node):
    """A safe node into a list that may be empty."""
    if lists.length[side, k] == 0:
        begin_list(lists, side, k, node)
    else:
        insert(arena, lists, side, k, node)


@inlined
def copy_list(lists, side, k, old_side, old_k):
    """A list as it is, to where there is none yet."""
    length = lists.length[old_side, old_k]
    for e in range(length):
        lists.nodes[side, k, e] = lists.nodes[old_side, old_k, e]
    lists.length[side, k] = length


@kernel
def prune(arena, lists, side, k, now, bounds):
    """Drop the entries of a list that have left the window. Returns what is left of it."""
    length = lists.length[side, k]
    while length > 0 and not inside(arena.start[lists.nodes[side, k, length - 1]], now, bounds):
        length -= 1
    lists.length[side, k] = length
    return length


@kernel
def merged_node(arena, lists, side, k):
    """One node for a whole union list, for whoever is no kernel."""
    return merge(arena, lists, side, k)


def filled(lengths: AnyArray) -> AnyArray:
    """bool[n, LIST_LENGTH]: the entries of lists that are used."""
    used: AnyArray = np.arange(LIST_LENGTH) < lengths[:, None]
    return used
