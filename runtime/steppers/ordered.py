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
from runtime.chain_cea import EVERY, UNEQUAL
from runtime.compact_set.tecs import BOTTOM, inside
from runtime.jit import inlined, kernel
from runtime.steppers.groups import Groups, make_groups, new_groups, of_both
from runtime.steppers.sorted_trees import Sorted, make_tree_over, part, range_of

BLOCKS = 64  # more than there can be: each is twice as long as the next
N_BLOCKS, END = 0, 1
NOTHING, PLAIN, GROUPED = 0, 1, 2  # what is there over a block: a tree, groups


class Ordered(NamedTuple):
    """The runs of index x: items front … end of row x, where front is the first block's begin."""

    value: AnyArray  # int64[indexes, capacity]: sorted within a block
    second: AnyArray  # int64[indexes, capacity]: another value, of an index that is asked for two
    node: AnyArray  # int32[indexes, capacity]
    tree: AnyArray  # int32[indexes, capacity]: of a block of n from b on, tree node k (1 … n - 1) lies at b + k
    begin: AnyArray  # int64[indexes, BLOCKS]
    latest: AnyArray  # clock[indexes, BLOCKS]: the latest start in the block
    made: AnyArray  # int64[indexes, BLOCKS]: PLAIN, GROUPED, or both
    ends: AnyArray  # int64[indexes, 2]: how many blocks, and where the last ends
    spare: AnyArray  # int64[3, capacity]: values and nodes while two blocks are merged
    groups: Groups


def new_ordered(n: int, capacity: int, clock: np.dtype, pairs: bool) -> Ordered:
    """n empty indexes; `pairs`: is one of them asked for two values?"""
    return Ordered(
        value=np.zeros((n, capacity), np.int64),
        second=np.zeros((n, capacity), np.int64),
        node=np.zeros((n, capacity), np.int32),
        tree=np.zeros((n, capacity), np.int32),
        begin=np.zeros((n, BLOCKS), np.int64),
        latest=np.zeros((n, BLOCKS), clock),
        made=np.zeros((n, BLOCKS), np.int64),
        ends=np.zeros((n, 2), np.int64),
        spare=np.zeros((3, capacity), np.int64),
        groups=new_groups(n, capacity, pairs),
    )


def grown_ordered(ordered: Ordered) -> Ordered:
    """A copy with twice the room."""
    n, old = ordered.value.shape
    bigger = new_ordered(n, 2 * old, ordered.latest.dtype, ordered.groups.value.size > 0)
    for name in ("value", "second", "node", "tree"):
        getattr(bigger, name)[:, :old] = getattr(ordered, name)
    for name in ("begin", "latest", "made", "ends"):
        getattr(bigger, name)[:] = getattr(ordered, name)
    if ordered.groups.value.size:
        bigger.made[:] = 0  # groups are not copied
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
def push(arena, ordered, x, values, node, now, bounds):
    """Add an item with two values; the caller has seen to the room. Amortized O(log n)."""
    end, b = ordered.ends[x, END], ordered.ends[x, N_BLOCKS]
    ordered.value[x, end], ordered.second[x, end] = values
    ordered.node[x, end] = node
    ordered.begin[x, b], ordered.latest[x, b], ordered.made[x, b] = end, arena.start[node], 0
    end += 1
    while b > 0 and ordered.begin[x, b] - ordered.begin[x, b - 1] < 2 * (end - ordered.begin[x, b]):
        end = merge(arena, ordered, x, b, end, now, bounds)
        b -= 1
    ordered.ends[x, N_BLOCKS], ordered.ends[x, END] = b + 1, end


@kernel
def merge(arena, ordered, x, b, end, now, bounds):
    """Blocks b - 1 and b, the last, as one, without what has left the window. Returns where it ends."""
    values, seconds, nodes = ordered.value[x], ordered.second[x], ordered.node[x]
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
            ordered.spare[0, n], ordered.spare[1, n], ordered.spare[2, n] = values[at], nodes[at], seconds[at]
            n += 1
    for k in range(n):
        values[begin + k], nodes[begin + k] = ordered.spare[0, k], ordered.spare[1, k]
        seconds[begin + k] = ordered.spare[2, k]
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
                    ordered.second[x, n] = ordered.second[x, i]
                    n += 1
        ordered.ends[x, END] = n


class Asked(NamedTuple):
    """What an event asks of the items of an index: checks, each of a kind, of both values with its own; that they are
    inside its window."""

    kind: Any
    value: Any
    second_kind: Any
    second_value: Any
    now: Any  # its clock
    bounds: Any


@inlined
def drop_old(ordered, x, now, bounds):
    """Drop the blocks that have left the window as a whole."""
    while ordered.ends[x, N_BLOCKS] > 0 and not inside(ordered.latest[x, 0], now, bounds):
        blocks = ordered.ends[x, N_BLOCKS]
        for b in range(1, blocks):
            ordered.begin[x, b - 1], ordered.latest[x, b - 1] = ordered.begin[x, b], ordered.latest[x, b]
            ordered.made[x, b - 1] = ordered.made[x, b]
        ordered.ends[x, N_BLOCKS] = blocks - 1
        if blocks == 1:
            ordered.ends[x, END] = 0


@inlined
def of_block(arena, ordered, x, items, low, high, asked, node):
    """`node` and those of the items low … high of a block whose second value passes, too."""
    if asked.second_kind == EVERY:
        return part(arena, items, low, high, node, asked.now, asked.bounds)
    second = asked.second_kind, asked.second_value
    return of_both(arena, ordered, x, (items.begin, items.n, low, high), second, node, asked.now, asked.bounds)


@kernel
def passing(arena, ordered, x, asked):
    """The set of all items whose values pass what is asked; BOTTOM if there are none.

    O(log² n), of two values O(log³ n), and amortized O(log n), or O(log² n), an item for trees. Needs room for `room`
    nodes.
    """
    node = BOTTOM
    drop_old(ordered, x, asked.now, asked.bounds)
    blocks, pairs = ordered.ends[x, N_BLOCKS], asked.second_kind != EVERY
    for b in range(blocks):
        begin = ordered.begin[x, b]
        end = ordered.begin[x, b + 1] if b + 1 < blocks else ordered.ends[x, END]
        items = Sorted(ordered.node[x], ordered.tree[x], begin, end - begin)
        wanted = GROUPED if pairs and items.n >= ordered.groups.size else PLAIN if not pairs else NOTHING
        if wanted & ~ordered.made[x, b]:
            if wanted == GROUPED:
                make_groups(arena, ordered, x, begin, items.n)
            else:
                make_tree_over(arena, items.node, items.tree, begin, items.n)
            ordered.made[x, b] |= wanted
        low, high = range_of(ordered.value[x], begin, end, asked.kind, asked.value)
        if asked.kind == UNEQUAL:
            node = of_block(arena, ordered, x, items, np.int64(0), low, asked, node)
            low, high = high, items.n
        node = of_block(arena, ordered, x, items, low, high, asked, node)
    return node


@inlined
def room(ordered, edges):
    """The most nodes that `edges` calls of `passing` make: for trees, and two a level of each of 40 trees at the most,
    each half as long as the one before; twice for `<>`. Of two values as much for each level of groups, and two groups
    of single items."""
    levels, size = ordered.groups.value.shape[1], ordered.groups.size
    each = 2 * 40 * 41
    if levels > 0:  # so many blocks at the most have groups, of which a range takes two of each level
        each += 16 * levels * levels * (levels + 16) + (4 * levels + 2) * size
    return (1 + levels) * held(ordered) + edges * each
