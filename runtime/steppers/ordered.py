"""Waiting runs in the order of a value: what an event `<`, `>`, `<>` … leads on is found without a look at each.

Runs that wait at one position are kept in *blocks*, each the runs of some stretch of the stream sorted by the value of
their register. A new run is a block of its own; the last blocks are merged while the one before is less than twice as
long, so that there are O(log n) of them and a run moves O(log n) times ([the logarithmic method], amortized). A block
that has left the window goes as a whole, and what has left it inside a block is dropped when that is merged.

Over a sorted block lies a tree whose node is the union (runtime.compact_set.tecs) of the runs below it, made when the
block is first asked. The runs below or above a value are O(log n) nodes of it, so an event takes O(log² n) unions,
whatever the number of runs and of partial matches they stand for. The compact set never changes, so the index may:
nothing is persistent but the unions that matches hold. They are O(log n) deep with the later beginning on the left, so
listing reaches the next output after O(log² n) steps at the most (the papers leave inequalities open; this is our
argument).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from runtime.arrays import AnyArray
from runtime.chain_cea import EVERY, GREATER, GREATER_EQUAL, LESS, LESS_EQUAL, UNEQUAL
from runtime.compact_set.tecs import BOTTOM, inside, link
from runtime.jit import inlined, kernel

BLOCKS = 64  # more than there can be: each is twice as long as the next
N_BLOCKS, END = 0, 1


class Ordered(NamedTuple):
    """The runs of index x: items front … end of row x, where front is the first block's begin."""

    value: AnyArray  # int64[indexes, capacity]: sorted within a block
    node: AnyArray  # int32[indexes, capacity]
    tree: AnyArray  # int32[indexes, capacity]: of a block of n from b on, tree node k (1 … n - 1) lies at b + k
    begin: AnyArray  # int64[indexes, BLOCKS]
    latest: AnyArray  # clock[indexes, BLOCKS]: the latest start in the block
    made: AnyArray  # int64[indexes, BLOCKS]: whether its tree is there
    ends: AnyArray  # int64[indexes, 2]: how many blocks, and where the last ends
    spare: AnyArray  # int64[2, capacity]: values and nodes while two blocks are merged


def new_ordered(n: int, capacity: int, clock: np.dtype) -> Ordered:
    return Ordered(
        value=np.zeros((n, capacity), np.int64),
        node=np.zeros((n, capacity), np.int32),
        tree=np.zeros((n, capacity), np.int32),
        begin=np.zeros((n, BLOCKS), np.int64),
        latest=np.zeros((n, BLOCKS), clock),
        made=np.zeros((n, BLOCKS), np.int64),
        ends=np.zeros((n, 2), np.int64),
        spare=np.zeros((2, capacity), np.int64),
    )


def grown_ordered(ordered: Ordered) -> Ordered:
    """A copy with twice the room."""
    n, old = ordered.value.shape
    bigger = new_ordered(n, 2 * old, ordered.latest.dtype)
    for name in ("value", "node", "tree"):
        getattr(bigger, name)[:, :old] = getattr(ordered, name)
    for name in ("begin", "latest", "made", "ends"):
        getattr(bigger, name)[:] = getattr(ordered, name)
    return bigger


@kernel
def held(ordered):
    """How many items there are, with those that have left the window but not yet their block."""
    n = 0
    for x in range(len(ordered.ends)):
        if ordered.ends[x, N_BLOCKS] > 0:
            n += ordered.ends[x, END] - ordered.begin[x, 0]
    return n


@inlined
def lacks_room(ordered, n):
    """Can one of the indexes not take n more items?"""
    lacking = False
    for x in range(len(ordered.ends)):
        lacking = lacking or ordered.ends[x, END] + n > ordered.value.shape[1]
    return lacking


@kernel
def clear(ordered):
    """Drop all."""
    ordered.ends[:] = 0


@inlined
def clear_one(ordered, x):
    """Drop all of one index."""
    ordered.ends[x, N_BLOCKS], ordered.ends[x, END] = 0, 0


@inlined
def push(arena, ordered, x, value, node, now, bounds):
    """Add an item; the caller has seen to the room. Amortized O(log n)."""
    end, b = ordered.ends[x, END], ordered.ends[x, N_BLOCKS]
    ordered.value[x, end], ordered.node[x, end] = value, node
    ordered.begin[x, b], ordered.latest[x, b], ordered.made[x, b] = end, arena.start[node], 0
    end += 1
    while b > 0 and ordered.begin[x, b] - ordered.begin[x, b - 1] < 2 * (end - ordered.begin[x, b]):
        end = merge(arena, ordered, x, b, end, now, bounds)
        b -= 1
    ordered.ends[x, N_BLOCKS], ordered.ends[x, END] = b + 1, end


@kernel
def merge(arena, ordered, x, b, end, now, bounds):
    """Blocks b - 1 and b, the last, as one, without what has left the window. Returns where it ends."""
    values, nodes = ordered.value[x], ordered.node[x]
    begin, middle, n = ordered.begin[x, b - 1], ordered.begin[x, b], 0
    i, j = begin, middle
    while i < middle or j < end:
        if j == end or (i < middle and values[i] <= values[j]):
            at = i
            i += 1
        else:
            at = j
            j += 1
        if inside(arena.start[nodes[at]], now, bounds):
            ordered.spare[0, n], ordered.spare[1, n] = values[at], nodes[at]
            n += 1
    for k in range(n):
        values[begin + k], nodes[begin + k] = ordered.spare[0, k], ordered.spare[1, k]
    ordered.latest[x, b - 1] = max(ordered.latest[x, b - 1], ordered.latest[x, b])
    ordered.made[x, b - 1] = 0
    return begin + n


@kernel
def sweep_ordered(arena, ordered, now, bounds):
    """Drop what has left the window, make all trees anew when they are needed, and move the items to the front."""
    for x in range(len(ordered.ends)):
        n, blocks = 0, ordered.ends[x, N_BLOCKS]
        for b in range(blocks):
            begin = ordered.begin[x, b]
            end = ordered.begin[x, b + 1] if b + 1 < blocks else ordered.ends[x, END]
            ordered.begin[x, b], ordered.made[x, b] = n, 0
            for i in range(begin, end):
                if inside(arena.start[ordered.node[x, i]], now, bounds):
                    ordered.value[x, n], ordered.node[x, n] = ordered.value[x, i], ordered.node[x, i]
                    n += 1
        ordered.ends[x, END] = n


@kernel
def make_tree(arena, ordered, x, b, end):
    """The unions over block b: node k has the children 2k and 2k + 1, where those from n on are the items."""
    begin = ordered.begin[x, b]
    n = end - begin
    for k in range(n - 1, 0, -1):
        left = ordered.tree[x, begin + 2 * k] if 2 * k < n else ordered.node[x, begin + 2 * k - n]
        right = ordered.tree[x, begin + 2 * k + 1] if 2 * k + 1 < n else ordered.node[x, begin + 2 * k + 1 - n]
        if arena.start[left] < arena.start[right]:
            left, right = right, left
        ordered.tree[x, begin + k] = link(arena, left, right)
    ordered.made[x, b] = 1


@inlined
def below(values, begin, end, value, equal):
    """How many of the sorted values begin … end are less than `value`, or with `equal` at most that."""
    low, high = begin, end
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < value or (equal and values[middle] == value):
            low = middle + 1
        else:
            high = middle
    return low - begin


@inlined
def range_of(values, begin, end, kind, value):
    """The part of a block (from, to) whose items pass a check with the event's value; UNEQUAL: all but that part."""
    low, high = 0, end - begin
    if kind == LESS:
        high = below(values, begin, end, value, False)
    elif kind == LESS_EQUAL:
        high = below(values, begin, end, value, True)
    elif kind == GREATER:
        low = below(values, begin, end, value, True)
    elif kind == GREATER_EQUAL:
        low = below(values, begin, end, value, False)
    elif kind != EVERY:
        low = below(values, begin, end, value, False)
        high = below(values, begin, end, value, True)
    return low, high


@inlined
def joined(arena, node, more, now, bounds):
    """The union of two sets, of which BOTTOM is none; what has left the window stays outside."""
    if not inside(arena.start[more], now, bounds):
        return node
    if node == BOTTOM:
        return more
    if arena.start[node] < arena.start[more]:
        return link(arena, more, node)
    return link(arena, node, more)


class Block(NamedTuple):
    """A block of index x: n items from `begin` on."""

    x: Any
    begin: Any
    n: Any


@kernel
def part(arena, ordered, block, low, high, node, now, bounds):
    """`node` and items low … high of a block. O(log n)."""
    x, begin, n = block.x, block.begin, block.n
    left, right = low + n, high + n
    while left < right:
        if left & 1:
            more = ordered.tree[x, begin + left] if left < n else ordered.node[x, begin + left - n]
            node = joined(arena, node, more, now, bounds)
            left += 1
        if right & 1:
            right -= 1
            more = ordered.tree[x, begin + right] if right < n else ordered.node[x, begin + right - n]
            node = joined(arena, node, more, now, bounds)
        left >>= 1
        right >>= 1
    return node


@kernel
def passing(arena, ordered, x, kind, value, now, bounds):
    """The set of all items whose value passes the check of this kind with the event's; BOTTOM if there are none.

    O(log² n), and amortized O(log n) an item for trees. Needs room for `room` nodes.
    """
    node = BOTTOM
    while ordered.ends[x, N_BLOCKS] > 0 and not inside(ordered.latest[x, 0], now, bounds):
        blocks = ordered.ends[x, N_BLOCKS]
        for b in range(1, blocks):
            ordered.begin[x, b - 1], ordered.latest[x, b - 1] = ordered.begin[x, b], ordered.latest[x, b]
            ordered.made[x, b - 1] = ordered.made[x, b]
        ordered.ends[x, N_BLOCKS] = blocks - 1
        if blocks == 1:
            ordered.ends[x, END] = 0
    blocks = ordered.ends[x, N_BLOCKS]
    for b in range(blocks):
        end = ordered.begin[x, b + 1] if b + 1 < blocks else ordered.ends[x, END]
        if ordered.made[x, b] == 0:
            make_tree(arena, ordered, x, b, end)
        block = Block(x, ordered.begin[x, b], end - ordered.begin[x, b])
        low, high = range_of(ordered.value[x], block.begin, end, kind, value)
        if kind == UNEQUAL:
            node = part(arena, ordered, block, np.int64(0), low, node, now, bounds)
            low, high = high, block.n
        node = part(arena, ordered, block, low, high, node, now, bounds)
    return node


@inlined
def room(ordered, edges):
    """The most nodes that `edges` calls of `passing` make: two a level of each tree, 40 trees at the most, each half
    as long as the one before; twice for `<>`."""
    return held(ordered) + edges * 2 * 40 * 41
