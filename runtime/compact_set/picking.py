"""NXT and LAST among the matches that end at one event, over the compact set: what wins is found without listing.

The greatest of a set is found node by node, children first: of an output it is the greatest of its child, one event
longer; of a union the greater of two, or both where they have the same events (their variables differ, and all of them
win). That is right since one last event more does not change which of two is greater. What is found is written behind
the nodes that there are, so it is dropped by setting back the arena's size. O(nodes inside the window · events of a
match) for each event that ends matches: nothing that the papers offer, who choose without a window ([CEL] Theorem 7.2).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from runtime.arrays import AnyArray
from runtime.compact_set.tecs import BOTTOM, UNION, extend, inside, link
from runtime.jit import inlined, kernel
from runtime.program import PICKING

NXT, LAST = 0, 1
RULES = dict(zip(PICKING, (NXT, LAST), strict=True))
PICKED, NEEDS_NODES, NEEDS_STACK = 0, 1, 2


class Picks(NamedTuple):
    """`best[node]`, valid where `stamp` is the number of the event; `original`: of which node one is a copy."""

    best: AnyArray  # int32[nodes]
    stamp: AnyArray  # int64[nodes]
    original: AnyArray  # int32[nodes]
    stack: AnyArray  # int32
    serial: AnyArray  # int64[1]


def new_picks(nodes: int, stack: int) -> Picks:
    return Picks(
        best=np.zeros(nodes, np.int32),
        stamp=np.zeros(nodes, np.int64),
        original=np.arange(nodes, dtype=np.int32),
        stack=np.zeros(stack, np.int32),
        serial=np.zeros(1, np.int64),
    )


@inlined
def event_of(arena, node):
    """The first output below unions: those of one union have the same events here."""
    while node != BOTTOM and arena.label[node] == UNION:
        node = arena.child[node]
    return node


NO_COPIES = np.zeros(0, np.int32)


@kernel
def compared(arena, original, a, b, by):
    """1 if the events of a win against those of b, -1 if they lose, 0 if they are the same.

    Events are met from the last to the first. Nodes are numbered in the order of the stream; where there are copies of
    some, `original` says of which.
    """
    found = 0
    while True:
        a, b = event_of(arena, a), event_of(arena, b)
        if a == b:
            return found
        if a != BOTTOM and b != BOTTOM and arena.row[a] == arena.row[b]:
            a, b = arena.child[a], arena.child[b]
            continue
        if len(original) > 0:
            mine = b == BOTTOM or (a != BOTTOM and original[a] > original[b])
        else:
            mine = a > b
        found = 1 if mine else -1
        if by == LAST:
            return found
        if mine:
            a = arena.child[a]
        else:
            b = arena.child[b]


@kernel
def greatest(arena, picks, root, now, bounds, by):
    """The node of what wins in a set, or -1 if there is no room for it, -2 if the stack is too short."""
    serial, stack, best, stamp = picks.serial[0], picks.stack, picks.best, picks.stamp
    best[BOTTOM] = BOTTOM
    stamp[BOTTOM] = serial
    stack[0] = root
    top = 1
    while top > 0:
        node = stack[top - 1]
        if top + 2 >= len(stack):
            return -2
        if arena.size[0] + 2 >= len(arena.row):
            return -1
        child, right = arena.child[node], arena.right[node]
        both = arena.label[node] == UNION and inside(arena.start[right], now, bounds)
        waits = False
        if stamp[child] != serial:
            stack[top] = child
            top += 1
            waits = True
        if both and stamp[right] != serial:
            stack[top] = right
            top += 1
            waits = True
        if waits:
            continue
        found = best[child]
        if both:
            order = compared(arena, picks.original, found, best[right], by)
            if order < 0:
                found = best[right]
            elif order == 0 and found != best[right]:
                found = link(arena, found, best[right])
        elif arena.label[node] != UNION:
            if found == child:
                found = node
            else:
                found = extend(arena, arena.row[node], arena.label[node], found, arena.start[found])
                picks.original[found] = node
        best[node] = found
        stamp[node] = serial
        top -= 1
    return best[root]


@kernel
def pick_kernel(space, picks, begin, n_roots, kept, by):
    """Leave of the roots from `begin` on those that win, the first of them at `kept`; those of one event follow each
    other. Returns (PICKED or what is lacking, the root to go on with, how many are kept)."""
    arena, roots = space.arena, space.roots
    while begin < n_roots:
        row, now, key = arena.row[roots.node[begin]], roots.clock[begin], roots.key[begin]
        end = begin
        while end < n_roots and arena.row[roots.node[end]] == row and roots.key[end] == key:
            end += 1
        picks.serial[0] += 1
        winner = BOTTOM
        for k in range(begin, end):
            found = greatest(arena, picks, roots.node[k], now, space.bounds, by)
            if found < 0:
                return (NEEDS_NODES if found == -1 else NEEDS_STACK), begin, kept
            order = -1 if winner == BOTTOM else compared(arena, picks.original, winner, found, by)
            if order < 0:
                winner = found
            elif order == 0 and winner != found:
                winner = link(arena, winner, found)
        roots.node[kept], roots.clock[kept], roots.key[kept] = winner, now, roots.key[begin]
        kept += 1
        begin = end
    return PICKED, begin, kept
