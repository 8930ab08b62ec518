"""Sets of which only the complex events count that have so many events of a label: `B{2,500}`, as `B+` within bounds.

The automaton of `A ; B+ ; C` has three states, that of `A ; B{2,500} ; C` five hundred. So loops with great numbers run
as loops without, and matches with too few or too many rounds are left out where they are listed. A node has an
*interval*: the fewest and the most such events of a complex event below it. A walk that has met c of them from the end
of the match on turns back at a node where c and the fewest are too many, or c and the most too few; so what it goes on
with ends in a match, but where the numbers between fewest and most are not all there.

Counting adds, for each node that a root reaches, how many complex events have 0, 1, 2, … of them: a polynomial of the
degree of the greatest number. That is a step for each round of an automaton that is written out.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from runtime.arrays import AnyArray, grown
from runtime.compact_set.tecs import (
    BOTTOM,
    FINISHED,
    LISTING_FULL,
    MOST,
    OVERFLOW,
    UNION,
    WALK_FULL,
    inside,
    write_match,
)
from runtime.jit import inlined, kernel


class Bound(NamedTuple):
    """`weight[label]` is 1 for labels whose events are counted; there must be `low` to `high` of them, or (`is_open`)
    `low` and more."""

    weight: AnyArray  # int64[labels]
    low: Any  # int64
    high: Any  # int64
    is_open: Any  # bool


class BoundedWalk(NamedTuple):
    """A depth-first walk as runtime.compact_set.tecs.Walk, which knows how many it has met; and the intervals of nodes,
    valid where `stamp` is `serial`: nodes keep theirs while roots are listed."""

    stack_node: AnyArray  # int32
    stack_depth: AnyArray  # int64
    stack_met: AnyArray  # int64
    path_row: AnyArray  # int64
    path_label: AnyArray  # int32
    todo: AnyArray  # int32
    top: AnyArray  # int64[1]
    fewest: AnyArray  # int64[nodes]
    most: AnyArray  # int64[nodes]
    stamp: AnyArray  # int64[nodes]
    serial: AnyArray  # int64[1]


def new_walk(capacity: int) -> BoundedWalk:
    """Room for so many branches; the intervals of no node."""
    return BoundedWalk(
        stack_node=np.zeros(capacity, np.int32),
        stack_depth=np.zeros(capacity, np.int64),
        stack_met=np.zeros(capacity, np.int64),
        path_row=np.zeros(capacity, np.int64),
        path_label=np.zeros(capacity, np.int32),
        todo=np.zeros(capacity, np.int32),
        top=np.zeros(1, np.int64),
        fewest=np.zeros(1, np.int64),
        most=np.zeros(1, np.int64),
        stamp=np.zeros(1, np.int64),
        serial=np.zeros(1, np.int64),
    )


_BRANCHES = ("stack_node", "stack_depth", "stack_met", "path_row", "path_label", "todo")
_INTERVALS = ("fewest", "most", "stamp")


def grown_walk(walk: BoundedWalk) -> BoundedWalk:
    """The same walk with twice the room for branches."""
    return walk._replace(**{name: grown(getattr(walk, name), 2 * len(getattr(walk, name))) for name in _BRANCHES})


def for_nodes(walk: BoundedWalk, nodes: int) -> BoundedWalk:
    """The same walk with room for the intervals of so many nodes."""
    if nodes <= len(walk.stamp):
        return walk
    return walk._replace(**{name: grown(getattr(walk, name), nodes) for name in _INTERVALS})


# ---------------------------------------------------------------- intervals


@inlined
def is_known(walk, node):
    return walk.stamp[node] == walk.serial[0]


@inlined
def know(walk, node, fewest, most):
    walk.fewest[node], walk.most[node], walk.stamp[node] = fewest, most, walk.serial[0]


@kernel
def measured(space, walk, root, now, weight):
    """Make the intervals of a node and of all below it known. False if `todo` is too short. O(nodes), once for each."""
    arena, todo = space.arena, walk.todo
    know(walk, BOTTOM, 0, 0)
    todo[0] = root
    top = 1
    while top > 0:
        node = todo[top - 1]
        if is_known(walk, node):
            top -= 1
            continue
        if top + 2 > len(todo):
            return False
        child, right = arena.child[node], arena.right[node]
        both = arena.label[node] == UNION and inside(arena.start[right], now, space.bounds)
        if not is_known(walk, child):
            todo[top] = child
            top += 1
        elif both and not is_known(walk, right):
            todo[top] = right
            top += 1
        else:
            fewest, most = walk.fewest[child], walk.most[child]
            if both:
                fewest, most = min(fewest, walk.fewest[right]), max(most, walk.most[right])
            elif arena.label[node] != UNION:
                fewest, most = fewest + weight[arena.label[node]], most + weight[arena.label[node]]
            know(walk, node, fewest, most)
            top -= 1
    return True


@inlined
def can_fit(walk, node, met, bound):
    """May what is below a node bring the number that was met inside the bounds?"""
    return met + walk.fewest[node] <= bound.high and met + walk.most[node] >= bound.low


# ---------------------------------------------------------------- listing


@inlined
def descended(space, walk, bound, branch, top, now):
    """As runtime.compact_set.tecs.descended, where something fits: (node, depth, number met, height of the stack, is
    there a match this way?)."""
    arena, room = space.arena, len(walk.path_row) - 1
    node, depth, met = branch
    fits = can_fit(walk, node, met, bound)
    while fits and node != BOTTOM and top < room and depth < room:
        if arena.label[node] == UNION:
            left, right = np.int64(arena.child[node]), np.int64(arena.right[node])
            to_left = can_fit(walk, left, met, bound)
            to_right = inside(arena.start[right], now, space.bounds) and can_fit(walk, right, met, bound)
            if to_left and to_right:
                walk.stack_node[top], walk.stack_depth[top], walk.stack_met[top] = right, depth, met
                top += 1
            fits = to_left or to_right
            node = left if to_left else right
        else:
            walk.path_row[depth] = arena.row[node]
            walk.path_label[depth] = arena.label[node]
            depth += 1
            met += bound.weight[arena.label[node]]
            node = np.int64(arena.child[node])
            fits = can_fit(walk, node, met, bound)
    return node, depth, met, top, fits


@kernel
def enumerate_bounded(space, walk, n_roots, bound, listing):
    """As runtime.compact_set.tecs.enumerate_kernel, inside the bounds."""
    roots, most = space.roots, len(listing.key)
    n, root, top = listing.state[0], listing.state[1], walk.top[0]
    result = FINISHED
    while True:
        if top == 0 and root == n_roots:
            break
        if n == most:
            result = LISTING_FULL
            break
        if top == 0:
            if not measured(space, walk, roots.node[root], roots.clock[root], bound.weight):
                result = WALK_FULL
                break
            walk.stack_node[0], walk.stack_depth[0], walk.stack_met[0] = roots.node[root], 0, 0
            top = 1
            root += 1
        top -= 1
        branch = np.int64(walk.stack_node[top]), walk.stack_depth[top], walk.stack_met[top]
        node, depth, met, top, fits = descended(space, walk, bound, branch, top, roots.clock[root - 1])
        if not fits:
            continue
        if node != BOTTOM or listing.offsets[n] + depth > len(listing.row):
            # Come back to this branch: what is above it is already on the path.
            walk.stack_node[top], walk.stack_depth[top], walk.stack_met[top] = node, depth, met
            top += 1
            result = WALK_FULL if node != BOTTOM else LISTING_FULL
            break
        write_match(walk, depth, listing, n, roots.key[root - 1])
        n += 1
    walk.top[0] = top
    listing.state[0] = n
    listing.state[1] = root
    return result


# ---------------------------------------------------------------- counting


class Polynomials(NamedTuple):
    """How many complex events of a node have 0, 1, … counted events, in row `place[node]`, valid where `stamp` is
    `serial`. MOST stands for as many or more. Where there is no greatest number the last one is of all from
    there on."""

    number: AnyArray  # int64[rows, degree + 1]
    place: AnyArray  # int32[nodes]
    stamp: AnyArray  # int64[nodes]
    serial: AnyArray  # int64[1]


def new_polynomials(rows: int, degree: int, nodes: int) -> Polynomials:
    """For so many nodes, of which so many are met at a time."""
    return Polynomials(
        number=np.zeros((rows, degree + 1), np.int64),
        place=np.zeros(nodes, np.int32),
        stamp=np.zeros(nodes, np.int64),
        serial=np.zeros(1, np.int64),
    )


@inlined
def plus(a, b):
    """The sum, or MOST."""
    return a + b if a <= MOST - b else MOST


@inlined
def fill(arena, found, node, both, bound):
    """Write the polynomial of a node into its row, from those of its children."""
    row, left = found.place[node], found.place[arena.child[node]]
    degree = found.number.shape[1] - 1
    shift = bound.weight[arena.label[node]] if arena.label[node] != UNION else np.int64(0)
    for k in range(degree + 1):
        found.number[row, k] = found.number[left, k - shift] if k >= shift else 0
        if bound.is_open and k == degree and shift > 0:  # which stands for more, too
            found.number[row, k] = plus(found.number[row, k], found.number[left, k])
        if both:
            found.number[row, k] = plus(found.number[row, k], found.number[found.place[arena.right[node]], k])


@kernel
def polynomial(space, found, todo, root, now, bound):
    """Make the polynomial of a root known. False if there is no room for it. O(nodes · degree)."""
    arena, serial = space.arena, found.serial[0]
    found.place[BOTTOM], found.stamp[BOTTOM] = 0, serial
    rows = 1
    todo[0] = root
    top = 1
    while top > 0:
        node = todo[top - 1]
        if found.stamp[node] == serial:
            top -= 1
            continue
        if top + 2 > len(todo) or rows == len(found.number):
            return False
        child, right = arena.child[node], arena.right[node]
        both = arena.label[node] == UNION and inside(arena.start[right], now, space.bounds)
        if found.stamp[child] != serial:
            todo[top] = child
            top += 1
        elif both and found.stamp[right] != serial:
            todo[top] = right
            top += 1
        else:
            found.place[node], found.stamp[node] = rows, serial
            fill(arena, found, node, both, bound)
            rows += 1
            top -= 1
    return True


@kernel
def count_bounded(space, begin, n_roots, found, todo, bound, total):
    """Add the number of matches of the roots to total[0]. Returns the root for which there was no room, n_roots, or
    OVERFLOW."""
    roots = space.roots
    for k in range(len(found.number[0])):
        found.number[0, k] = 1 if k == 0 else 0
    for root in range(begin, n_roots):
        found.serial[0] += 1
        if not polynomial(space, found, todo, roots.node[root], roots.clock[root], bound):
            return root
        row = found.place[roots.node[root]]
        for k in range(bound.low, found.number.shape[1]):
            total[0] = plus(total[0], found.number[row, k])
        if total[0] == MOST:
            return OVERFLOW
    return n_roots
