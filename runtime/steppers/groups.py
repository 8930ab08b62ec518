"""Blocks of an ordered index that are asked for two values: `A.x < B.x AND A.y > B.y`, `A.low <= B.v AND A.high > B.v`.

A block (runtime.steppers.ordered) is sorted by the first value. Its items also lie in *groups* of 2^k · GROUP that
follow each other, each sorted by the second value and with a tree of unions over it. The items whose first value passes
are a range of the block, which is O(log n) groups and less than two groups' worth of single items. In each of these
groups those whose second value passes are a range again, so O(log n) nodes of its tree. An event takes O(log³ n) unions
over the blocks; an item is sorted O(log² n) times. A block of less than a group is looked through: for a few dozen
items that is as fast.

    first   1 2 3 4 5 6 7 8      of groups of 2: | 7 9 | 1 4 | 5 8 | 2 6 |
    second  9 7 4 1 8 5 2 6                 of 4: | 1 4 7 9 | 2 5 6 8 |
                                            of 8: | 1 2 4 5 6 7 8 9 |
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from runtime import capacities
from runtime.arrays import AnyArray
from runtime.chain_cea import UNEQUAL
from runtime.jit import inlined, kernel
from runtime.steppers.register_ops import passes
from runtime.steppers.sorted_trees import Sorted, joined, make_tree_over, part, range_of


class Groups(NamedTuple):
    """Of index x and level k: the items of each block in groups of `size` << k, by their second value. A group begins
    where its items lie in the block; tree node i (1 … n - 1) of a group of n lies i behind that."""

    value: AnyArray  # int64[indexes, levels, capacity]
    node: AnyArray  # int32[indexes, levels, capacity]
    tree: AnyArray  # int32[indexes, levels, capacity]
    size: Any  # int64


def new_groups(n: int, capacity: int, pairs: bool) -> Groups:
    """For n indexes; `pairs`: is one of them asked for two values?"""
    size, levels = capacities.GROUP, 1
    while pairs and size << levels - 1 < capacity:
        levels += 1
    shape = (n, levels, capacity) if pairs else (n, 0, 0)
    return Groups(
        value=np.zeros(shape, np.int64),
        node=np.zeros(shape, np.int32),
        tree=np.zeros(shape, np.int32),
        size=np.int64(size),
    )


# ---------------------------------------------------------------- making them


@inlined
def merged(values, nodes, begin, middle, end, into):
    """Write the items begin … middle and middle … end, both sorted, in order to the same places of `into`."""
    i, j = begin, middle
    for at in range(begin, end):
        if j == end or (i < middle and values[i] <= values[j]):
            into[0, at], into[1, at] = values[i], nodes[i]
            i += 1
        else:
            into[0, at], into[1, at] = values[j], nodes[j]
            j += 1


@inlined
def sorted_groups(values, nodes, begin, n, size, spare):
    """Sort each stretch of `size` items, by merging longer and longer ones."""
    width = np.int64(1)
    while width < size:
        for low in range(0, n, 2 * width):
            middle, high = min(low + width, n), min(low + 2 * width, n)
            merged(values, nodes, begin + low, begin + middle, begin + high, spare)
        for at in range(begin, begin + n):
            values[at], nodes[at] = spare[0, at], spare[1, at]
        width *= 2


@kernel
def make_groups(arena, ordered, x, begin, n):
    """The groups of a block of n items. O(n log n), and as many nodes."""
    groups, spare = ordered.groups, ordered.spare
    level, width = 0, groups.size
    for at in range(begin, begin + n):
        groups.value[x, 0, at], groups.node[x, 0, at] = ordered.second[x, at], ordered.node[x, at]
    sorted_groups(groups.value[x, 0], groups.node[x, 0], begin, n, width, spare)
    while True:
        for low in range(0, n, width):
            own = min(width, n - low)
            make_tree_over(arena, groups.node[x, level], groups.tree[x, level], begin + low, own)
        if width >= n:
            break
        for low in range(0, n, 2 * width):
            middle, high = min(low + width, n), min(low + 2 * width, n)
            merged(groups.value[x, level], groups.node[x, level], begin + low, begin + middle, begin + high, spare)
        level += 1
        width *= 2
        for at in range(begin, begin + n):
            groups.value[x, level, at], groups.node[x, level, at] = spare[0, at], spare[1, at]


# ---------------------------------------------------------------- asking them


@inlined
def group_at(groups, n, low, high):
    """(level, width) of the widest group of a block of n that begins at item `low` and ends before `high`; width 0:
    there is none."""
    level, width, found = 0, groups.size, np.int64(0)
    if n < width:
        return level, found
    while low % width == 0 and min(low + width, n) <= high and level < groups.value.shape[1]:
        found = min(low + width, n) - low
        if width >= n:
            return level, found
        level += 1
        width *= 2
    return level - 1, found


@kernel
def of_both(arena, ordered, x, block, second, node, now, bounds):
    """`node` and those of the items `block` = (begin, n, low, high) of a block, from low to high, whose second value
    passes `second` = (kind, value)."""
    groups = ordered.groups
    begin, n, at, high = block
    kind, value = second
    while at < high:
        level, width = group_at(groups, n, at, high)
        if width == 0:
            if passes(kind, ordered.second[x, begin + at], value):
                node = joined(arena, node, ordered.node[x, begin + at], now, bounds)
            at += 1
            continue
        values = groups.value[x, level]
        items = Sorted(groups.node[x, level], groups.tree[x, level], begin + at, width)
        first, last = range_of(values, items.begin, items.begin + width, kind, value)
        if kind == UNEQUAL:
            node = part(arena, items, np.int64(0), first, node, now, bounds)
            first, last = last, width
        node = part(arena, items, first, last, node, now, bounds)
        at += width
    return node
