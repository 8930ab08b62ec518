"""The enumerable compact set: all partial matches of all runs, in an arena of flat arrays.

A node is an index. Node 0 is ⊥, the empty complex event. An *output* node (row, label, child) stands for every complex
event of its child, extended by one event; a *union* node (left, right) for those of both; a *product* node (left,
right) for each of the one with each of the other; a *loose* product for all three: those of the one, those of the other
and each with each (runtime.compact_set.products alone makes both). Children are made before their parents, so a
parent's index is always greater. `start` is max-start of [PCEA] Section 5: the latest window
clock at which a complex event of the node begins. Unions keep the greater start on the left, so whatever has left the
window is cut off with one comparison.

Unions follow [CORE] (tECS): a node is *safe* if it is no union, or a union whose left child is none and whose right
child is at most 2 unions deep on its left side. `union` takes safe nodes of equal start and gives a safe node; then
no left spine is longer than 3, and the enumeration reaches the next output in time linear in that output.

Roads not taken: the linked lists of [CEL] Section 9 (append mutates a list, so a window cannot cut it in O(1)), and,
but for products, the heap of [PCEA] Proposition 5.3 (persistent by path copying, a factor log w that a CEA does not
need, since its states see starts in order).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from runtime.arrays import AnyArray, grown
from runtime.jit import inlined, kernel

BOTTOM = 0
UNION = -1  # the label of a union node …
PRODUCT = -2  # … of a product …
LOOSE = -3  # … and of a loose one
RESERVED = -1  # row of ⊥ and of unions


class Arena(NamedTuple):
    """Flat arrays of nodes. `size` is (the number of nodes, how often it was emptied); `start` has the dtype of the
    window's clock."""

    row: AnyArray  # int64: the event that an output node adds
    label: AnyArray  # int32: its label, UNION, PRODUCT or LOOSE
    child: AnyArray  # int32: an output's child, the left of others
    right: AnyArray  # int32: the right of others
    start: AnyArray  # int64 or float64: max-start
    size: AnyArray  # int64[2]


def new_arena(capacity: int, clock: np.dtype) -> Arena:
    """An arena that holds ⊥ alone."""
    return Arena(
        row=np.full(capacity, RESERVED, np.int64),
        label=np.zeros(capacity, np.int32),
        child=np.zeros(capacity, np.int32),
        right=np.zeros(capacity, np.int32),
        start=np.zeros(capacity, clock),
        size=np.array([1, 0], np.int64),
    )


def grown_arena(arena: Arena, capacity: int) -> Arena:
    """A copy with room for `capacity` nodes."""
    return Arena._make([*(grown(column, capacity) for column in arena[:-1]), arena.size])


@kernel
def empty(arena):
    """Leave ⊥ alone."""
    arena.size[0] = 1
    arena.size[1] += 1


class Bounds(NamedTuple):
    """The window, as kernels ask for it: a match spans at most `width`, or less than that."""

    width: Any  # as Arena.start
    strict: bool


@inlined
def fits(start, now, width, strict):
    """Are two clocks no farther apart than a window is wide? Overflow and NaN count as outside."""
    distance = now - start
    if strict:
        return distance >= 0 and distance < width
    return distance >= 0 and distance <= width


@kernel
def inside(start, now, bounds):
    """Does a match that began at clock `start` and ends at `now` fit the window?"""
    return fits(start, now, bounds.width, bounds.strict)


@kernel
def extend(arena, row, label, child, start):
    """A new output node."""
    node = arena.size[0]
    arena.size[0] = node + 1
    arena.row[node] = row
    arena.label[node] = label
    arena.child[node] = child
    arena.right[node] = 0
    arena.start[node] = start
    return node


@inlined
def link(arena, left, right):
    """A new union node; the caller knows that start[left] >= start[right]."""
    node = arena.size[0]
    arena.size[0] = node + 1
    arena.row[node] = RESERVED
    arena.label[node] = UNION
    arena.child[node] = left
    arena.right[node] = right
    arena.start[node] = arena.start[left]
    return node


@inlined
def union(arena, first, second):
    """The union of two safe nodes of equal start, itself safe. O(1), at most three new nodes. [CORE]."""
    if arena.label[first] != UNION:
        return link(arena, first, second)
    if arena.label[second] != UNION:
        return link(arena, second, first)
    a, b = arena.right[first], arena.right[second]
    if arena.start[a] < arena.start[b]:
        a, b = b, a
    rest = link(arena, a, b)
    tail = link(arena, arena.child[second], rest)
    return link(arena, arena.child[first], tail)


@kernel
def close_kernel(arena, nodes):
    """Make leaves of nodes below which nobody looks any more: a node keeps the event that its matches end with.

    Of `A+ a ; B b` after three times A, ⊥ ← a1 ← a2 ← a3 becomes ⊥ ← a3. Its label says nothing from then on: 0 stands
    for any. O(depth of unions).
    """
    for node in nodes:
        last = node
        while arena.label[last] < 0 and last != BOTTOM:
            last = arena.child[last]
        arena.row[node] = arena.row[last]
    for node in nodes:
        if node != BOTTOM:
            arena.label[node], arena.child[node], arena.right[node] = 0, BOTTOM, BOTTOM


@kernel
def mark_kernel(arena, roots, n_roots, now, bounds, forward):
    """Set forward[node] = 1 for every node that a root still reaches inside the window. O(nodes)."""
    for k in range(n_roots):
        forward[roots[k]] = 1
    for node in range(arena.size[0] - 1, 0, -1):
        if forward[node] == 0:
            continue
        forward[arena.child[node]] = 1
        right = arena.right[node]
        if arena.label[node] < UNION or (arena.label[node] == UNION and inside(arena.start[right], now, bounds)):
            forward[right] = 1


@kernel
def slide_kernel(arena, forward):
    """Move the marked nodes together, in order; forward[node] becomes its new index. Returns the least row kept.

    A union whose right side has left the window is replaced by its left side.
    """
    size = 1
    least = np.int64(9223372036854775807)
    forward[0] = 0
    for node in range(1, arena.size[0]):
        if forward[node] == 0:
            continue
        right = arena.right[node]
        # Not by its start: another node may have moved to where it was.
        if arena.label[node] == UNION and forward[right] == 0:
            forward[node] = forward[arena.child[node]]
            continue
        arena.row[size] = arena.row[node]
        arena.label[size] = arena.label[node]
        arena.child[size] = forward[arena.child[node]]
        arena.right[size] = forward[right] if arena.label[node] < 0 else 0
        arena.start[size] = arena.start[node]
        if arena.label[node] >= 0 and arena.row[node] < least:
            least = arena.row[node]
        forward[node] = size
        size += 1
    arena.size[0] = size
    return least


# ---------------------------------------------------------------- enumeration


class Walk(NamedTuple):
    """A depth-first walk that can stop after any match and go on later.

    `stack_node` and `stack_depth` are the branches still to take; `path_row` and `path_label` the events of the
    branch being walked, last event first; `top[0]` the height of the stack. `stack_more` and `path_node` are what
    runtime.compact_set.bounded and chained also remember of a branch, and of an event.
    """

    stack_node: AnyArray  # int32
    stack_depth: AnyArray  # int64
    stack_more: AnyArray  # int64
    path_row: AnyArray  # int64
    path_label: AnyArray  # int32
    path_node: AnyArray  # int32
    top: AnyArray  # int64[1]


def new_walk(capacity: int) -> Walk:
    return Walk(
        stack_node=np.zeros(capacity, np.int32),
        stack_depth=np.zeros(capacity, np.int64),
        stack_more=np.zeros(capacity, np.int64),
        path_row=np.zeros(capacity, np.int64),
        path_label=np.zeros(capacity, np.int32),
        path_node=np.zeros(capacity, np.int32),
        top=np.zeros(1, np.int64),
    )


def grown_walk(walk: Walk) -> Walk:
    capacity = 2 * len(walk.path_row)
    return Walk._make([*(grown(column, capacity) for column in walk[:-1]), walk.top])


class Roots(NamedTuple):
    """What a stepper leaves behind where matches end: a node, the clock at which its window is looked at, its key; and,
    where each start has runs of its own, the positions of the first event and of the last (-1: a run that goes on)."""

    node: AnyArray  # int32
    clock: AnyArray  # as Arena.start
    key: AnyArray  # int64
    begin: AnyArray  # int64
    end: AnyArray  # int64


def new_roots(capacity: int, clock: np.dtype) -> Roots:
    return Roots(
        node=np.zeros(capacity, np.int32),
        clock=np.zeros(capacity, clock),
        key=np.zeros(capacity, np.int64),
        begin=np.zeros(capacity, np.int64),
        end=np.zeros(capacity, np.int64),
    )


class Space(NamedTuple):
    """What the store lends a kernel: where nodes and roots are written, and the window.

    What is called for each event is given its parts: the step of runtime.steppers.cea took half as long again with it.
    """

    arena: Arena
    roots: Roots
    bounds: Bounds


class Listing(NamedTuple):
    """Matches, written one after the other: match k has events offsets[k] … offsets[k+1], first to last.

    `state` is (matches written, root being walked); a walk that stopped goes on there.
    """

    offsets: AnyArray  # int64[most + 1]
    row: AnyArray  # int64
    label: AnyArray  # int32
    key: AnyArray  # int64[most]
    state: AnyArray  # int64[2]


FINISHED, LISTING_FULL, WALK_FULL, CHAINS_FULL = 0, 1, 2, 3


WALK_STEPS = 64  # a set whose walk takes longer is counted node by node instead
OVERFLOW = -1
MOST = np.int64(9223372036854775807)


class Counts(NamedTuple):
    """Numbers of matches by node, valid where `stamp` is the number of the root being counted; for all roots that
    are counted at a time, where the window cuts nothing off (`whole`)."""

    number: AnyArray  # int64[nodes]
    stamp: AnyArray  # int64[nodes]
    serial: AnyArray  # int64[1]
    whole: bool


def new_counts(capacity: int, whole: bool = False) -> Counts:
    return Counts(np.zeros(capacity, np.int64), np.zeros(capacity, np.int64), np.zeros(1, np.int64), whole)


@kernel
def count_kernel(space, begin, n_roots, stack, counts, total):
    """Add the number of matches of the roots to total[0].

    Small sets are walked; of others each node is counted once, so that 2ⁿ matches cost O(n) (what [ACEL] calls a
    semiring over the nodes). Returns the root at which `stack` was too short, n_roots, or OVERFLOW.
    """
    arena, roots = space.arena, space.roots
    counts.serial[0] += 1
    for k in range(begin, n_roots):
        count = np.int64(-1)
        if len(stack) > WALK_STEPS:
            count = walk_count(arena, roots.node[k], roots.clock[k], space.bounds, stack)
        if count < 0:
            if not counts.whole:
                counts.serial[0] += 1
            count = node_count(arena, roots.node[k], roots.clock[k], space.bounds, stack, counts)
            if count < 0:
                return k if count == -2 else OVERFLOW
        if count > MOST - total[0]:  # not afterwards: the compiler takes it that sums do not wrap
            return OVERFLOW
        total[0] += count
    return n_roots


@kernel
def walk_count(arena, root, now, bounds, stack):
    """The number of matches of a small set without products, or -1 for another. `stack` is longer than WALK_STEPS."""
    count, top, steps = 0, 1, 0
    stack[0] = root
    while top > 0:
        top -= 1
        node = stack[top]
        while node != 0:
            steps += 1
            if steps > WALK_STEPS:
                return -1
            if arena.label[node] < 0:
                right = arena.right[node]
                if arena.label[node] < UNION:
                    return -1
                if inside(arena.start[right], now, bounds):
                    stack[top] = right
                    top += 1
            node = arena.child[node]
        count += 1
    return count


@kernel
def node_count(arena, root, now, bounds, stack, counts):
    """The number of matches of a set, children first; -1 if it does not fit int64, -2 if the stack is too short."""
    serial = counts.serial[0]
    counts.number[0] = 1
    counts.stamp[0] = serial
    top = 1
    stack[0] = root
    while top > 0:
        node = stack[top - 1]
        if top + 1 >= len(stack):
            return -2
        child = arena.child[node]
        if counts.stamp[child] != serial:
            stack[top] = child
            top += 1
            continue
        number, right, label = counts.number[child], arena.right[node], arena.label[node]
        if label < UNION or (label == UNION and inside(arena.start[right], now, bounds)):
            if counts.stamp[right] != serial:
                stack[top] = right
                top += 1
                continue
            other = counts.number[right]
            if label == LOOSE and other < MOST and number < MOST:  # as a product of sets with one more, but for one
                number, other = number + 1, other + 1
            if other > (MOST - number if label == UNION else MOST // number):
                return -1
            number = number + other if label == UNION else number * other
            number -= label == LOOSE
        counts.number[node] = number
        counts.stamp[node] = serial
        top -= 1
    return counts.number[root]
