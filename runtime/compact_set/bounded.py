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
from runtime.compact_set.tecs import BOTTOM, MOST, OVERFLOW, UNION, inside
from runtime.jit import inlined, kernel


class Bound(NamedTuple):
    """`weight[label]` is 1 for labels whose events are counted; there must be `low` to `high` of them, or (`is_open`)
    `low` and more. The intervals of nodes are valid where `stamp` is `serial`: nodes keep theirs while roots are
    listed."""

    weight: AnyArray  # int64[labels]
    low: Any  # int64
    high: Any  # int64
    is_open: Any  # bool
    fewest: AnyArray  # int64[nodes]
    most: AnyArray  # int64[nodes]
    stamp: AnyArray  # int64[nodes]
    serial: AnyArray  # int64[1]


def new_bound(weight: AnyArray, low: int, high: int | None) -> Bound:
    """The intervals of no node are known. `high` None: as many as there are."""
    return Bound(
        weight=weight,
        low=np.int64(low),
        high=np.int64(MOST // 2 if high is None else high),
        is_open=high is None,
        fewest=np.zeros(1, np.int64),
        most=np.zeros(1, np.int64),
        stamp=np.zeros(1, np.int64),
        serial=np.zeros(1, np.int64),
    )


def for_nodes(bound: Bound, nodes: int) -> Bound:
    """The same with room for the intervals of so many nodes."""
    if nodes <= len(bound.stamp):
        return bound
    return bound._replace(**{name: grown(getattr(bound, name), nodes) for name in ("fewest", "most", "stamp")})


# ---------------------------------------------------------------- intervals


@inlined
def is_known(bound, node):
    return bound.stamp[node] == bound.serial[0]


@inlined
def know(bound, node, fewest, most):
    bound.fewest[node], bound.most[node], bound.stamp[node] = fewest, most, bound.serial[0]


@kernel
def measured(space, bound, root, now, todo):
    """Make the intervals of a node and of all below it known. False if `todo`, which holds nodes meanwhile, is too
    short. O(nodes), once for each."""
    arena, weight = space.arena, bound.weight
    know(bound, BOTTOM, 0, 0)
    todo[0] = root
    top = 1
    while top > 0:
        node = todo[top - 1]
        if is_known(bound, node):
            top -= 1
            continue
        if top + 2 > len(todo):
            return False
        child, right = arena.child[node], arena.right[node]
        both = arena.label[node] == UNION and inside(arena.start[right], now, space.bounds)
        if not is_known(bound, child):
            todo[top] = child
            top += 1
        elif both and not is_known(bound, right):
            todo[top] = right
            top += 1
        else:
            fewest, most = bound.fewest[child], bound.most[child]
            if both:
                fewest, most = min(fewest, bound.fewest[right]), max(most, bound.most[right])
            elif arena.label[node] != UNION:
                fewest, most = fewest + weight[arena.label[node]], most + weight[arena.label[node]]
            know(bound, node, fewest, most)
            top -= 1
    return True


@inlined
def can_fit(bound, node, met):
    """May what is below a node bring the number that was met inside the bounds?"""
    return met + bound.fewest[node] <= bound.high and met + bound.most[node] >= bound.low


# ---------------------------------------------------------------- listing


@inlined
def descended(space, walk, bound, branch, top, now):
    """As runtime.compact_set.tecs.descended, where something fits: (the node, the depth of the path, the number met,
    the height of the stack, is there a match this way?)."""
    arena, room = space.arena, len(walk.path_row) - 1
    node, depth, met = branch
    fits = can_fit(bound, node, met)
    while fits and node != BOTTOM and top < room and depth < room:
        if arena.label[node] == UNION:
            left, right = np.int64(arena.child[node]), np.int64(arena.right[node])
            to_left = can_fit(bound, left, met)
            to_right = inside(arena.start[right], now, space.bounds) and can_fit(bound, right, met)
            if to_left and to_right:
                walk.stack_node[top], walk.stack_depth[top], walk.stack_more[top] = right, depth, met
                top += 1
            fits = to_left or to_right
            node = left if to_left else right
        else:
            walk.path_row[depth] = arena.row[node]
            walk.path_label[depth] = arena.label[node]
            depth += 1
            met += bound.weight[arena.label[node]]
            node = np.int64(arena.child[node])
            fits = can_fit(bound, node, met)
    return node, depth, met, top, fits


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
