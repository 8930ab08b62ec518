"""Items in the order of a value, with a tree of unions over them: those that pass a check are O(log n) nodes of it.

    values   2 5 7 9        node 1 is the union of all, 2 of the first two, 3 of the last two; `> 4` is the 5 and node 3

The items are runs (runtime.steppers.ordered), the unions those of runtime.compact_set.tecs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from runtime.arrays import AnyArray
from runtime.chain_cea import EVERY, GREATER, GREATER_EQUAL, LESS, LESS_EQUAL
from runtime.compact_set.tecs import BOTTOM, inside, link
from runtime.jit import inlined, kernel


class Sorted(NamedTuple):
    """n sorted items from `begin` on, and the tree over them."""

    node: AnyArray
    tree: AnyArray
    begin: Any
    n: Any


@inlined
def make_tree_over(arena, nodes, tree, begin, n):
    """The unions over n items: node k has the children 2k and 2k + 1, where those from n on are the items."""
    for k in range(n - 1, 0, -1):
        left = tree[begin + 2 * k] if 2 * k < n else nodes[begin + 2 * k - n]
        right = tree[begin + 2 * k + 1] if 2 * k + 1 < n else nodes[begin + 2 * k + 1 - n]
        if arena.start[left] < arena.start[right]:
            left, right = right, left
        tree[begin + k] = link(arena, left, right)


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
    """The part of sorted values (from, to) that pass a check with the event's value; UNEQUAL: all but that part."""
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


@kernel
def part(arena, items, low, high, node, now, bounds):
    """`node` and items low … high. O(log n)."""
    begin, n = items.begin, items.n
    left, right = low + n, high + n
    while left < right:
        if left & 1:
            more = items.tree[begin + left] if left < n else items.node[begin + left - n]
            node = joined(arena, node, more, now, bounds)
            left += 1
        if right & 1:
            right -= 1
            more = items.tree[begin + right] if right < n else items.node[begin + right - n]
            node = joined(arena, node, more, now, bounds)
        left >>= 1
        right >>= 1
    return node
