"""Products in the compact set, and unions whose beginnings come in any order: DS_w of [PCEA] Section 5.

Runs that go side by side are joined by a *product* node: its complex events are those of its left side, each with each
of its right side. What lies in a product is no longer in the order of its beginnings, so runs that wait are united in
a *heap*: a union node whose left side is one output, with the latest beginning of all, and whose right side is the
rest: a heap, or a union of two (a *pair*). [PCEA] Proposition 5.3 keeps its heap balanced by a direction bit in each
node; this is a leftist heap instead, by the *rank* of a node (runs on the way that is shortest), which `row` holds: an
insertion copies a path of at most log₂(runs) nodes, and one that begins after all others makes two nodes. What has left
the window is cut off where the path meets it. Heaps are never changed, so products may hold any of them.

Every heap that a walk enters inside the window gives at least one complex event, and no product inside it is empty, so
listing keeps an output-linear delay ([PCEA] Theorem 5.2).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from runtime.arrays import AnyArray, grown
from runtime.compact_set.bounded import can_fit, can_fit_beside, meet, opened, put_off
from runtime.compact_set.tecs import (
    BOTTOM,
    FINISHED,
    LISTING_FULL,
    LOOSE,
    PRODUCT,
    RESERVED,
    UNION,
    WALK_FULL,
    inside,
    link,
)
from runtime.jit import inlined, kernel

MOST_RANKS = 64  # more than the rank of any heap
NOTHING = -1  # after the last of the parts that are still to be walked


@inlined
def product(arena, left, right):
    """A new product node of two sets that are not empty."""
    node = link(arena, left, right)
    arena.label[node] = PRODUCT
    arena.start[node] = min(arena.start[left], arena.start[right])
    return node


@inlined
def loose_product(arena, later, earlier):
    """A new node of two sets that are not empty: of each alone, and of their product. All of the one begin after the
    other has ended, and leave no window before that."""
    node = link(arena, later, earlier)
    arena.label[node] = LOOSE
    return node


@inlined
def rank(arena, heap):
    """The rank of a heap that is not empty."""
    return arena.row[heap] if arena.label[heap] == UNION else np.int64(1)


@inlined
def sides(arena, heap, now, bounds):
    """(the heap that a merge leaves as it is, the one that it goes on with); ⊥ for what is not there."""
    if arena.label[heap] != UNION or not inside(arena.start[arena.right[heap]], now, bounds):
        return BOTTOM, BOTTOM
    rest = arena.right[heap]
    if arena.label[rest] != UNION or arena.row[rest] != RESERVED:
        return rest, BOTTOM
    a, b = arena.child[rest], arena.right[rest]
    if not inside(arena.start[b], now, bounds):
        return a, BOTTOM
    if rank(arena, a) < rank(arena, b):
        return b, a
    return a, b


@inlined
def heap_of(arena, output, a, b):
    """The heap of an output and two heaps, either of them ⊥ perhaps, which begin no later than it."""
    if a == BOTTOM and b == BOTTOM:
        return output
    if a == BOTTOM or b == BOTTOM:
        node = link(arena, output, max(a, b))
        arena.row[node] = 1
        return node
    pair = link(arena, a, b) if arena.start[a] >= arena.start[b] else link(arena, b, a)
    node = link(arena, output, pair)
    arena.row[node] = 1 + min(rank(arena, a), rank(arena, b))
    return node


@kernel
def melded(arena, one, other, now, bounds, path):
    """The heap of two heaps, either of them ⊥ perhaps; a single output, or product, is a heap, too.

    Both are followed to where they end, always that which begins later, and made again from there: at most
    rank(one) + rank(other) steps, for which `path` has room (2 · MOST_RANKS nodes), and two new nodes for each.
    """
    depth = 0
    while one != BOTTOM and other != BOTTOM:
        if arena.start[one] > arena.start[other]:
            path[depth] = one
            _, one = sides(arena, one, now, bounds)
        else:
            path[depth] = other
            _, other = sides(arena, other, now, bounds)
        depth += 1
    made = max(one, other)
    while depth > 0:
        depth -= 1
        above = path[depth]
        kept, _ = sides(arena, above, now, bounds)
        top = arena.child[above] if arena.label[above] == UNION else above
        made = heap_of(arena, top, kept, made)
    return made


@kernel
def inserted(arena, heap, output, now, bounds, path):
    """The heap with one more output. At most 2 · rank new nodes."""
    if heap != BOTTOM and not inside(arena.start[heap], now, bounds):
        return output
    return melded(arena, heap, output, now, bounds, path)


# ---------------------------------------------------------------- enumeration


class ProductWalk(NamedTuple):
    """A depth-first walk as runtime.compact_set.tecs.Walk, which also remembers for each branch what products still ask
    for.

    `then` is the number of a cell (a node and the next cell), NOTHING if nothing is left. Cells are taken from the
    first free one on; what a branch needs was there when it was put on the stack, with `stack_cells` cells in use.
    """

    stack_node: AnyArray  # int32
    stack_depth: AnyArray  # int64
    stack_then: AnyArray  # int64
    stack_cells: AnyArray  # int64
    cell_node: AnyArray  # int32
    cell_next: AnyArray  # int64
    path: AnyArray  # int32: output nodes of the branch being walked, as many as the longest match met so far
    order: AnyArray  # int32: the same, in the order of the stream
    top: AnyArray  # int64[1]: the height of the stack


def new_product_walk(capacity: int, longest: int) -> ProductWalk:
    """For matches of at most `longest` outputs; where loops make longer ones it has to grow."""
    return ProductWalk(
        stack_node=np.zeros(capacity, np.int32),
        stack_depth=np.zeros(capacity, np.int64),
        stack_then=np.zeros(capacity, np.int64),
        stack_cells=np.zeros(capacity, np.int64),
        cell_node=np.zeros(capacity, np.int32),
        cell_next=np.zeros(capacity, np.int64),
        path=np.zeros(longest, np.int32),
        order=np.zeros(longest, np.int32),
        top=np.zeros(1, np.int64),
    )


def grown_product_walk(walk: ProductWalk) -> ProductWalk:
    """The same walk with twice the room."""
    return ProductWalk._make([*(grown(column, 2 * len(column)) for column in walk[:-1]), walk.top])


@inlined
def push(walk, top, node, depth, then, n_cells):
    walk.stack_node[top], walk.stack_depth[top] = node, depth
    walk.stack_then[top], walk.stack_cells[top] = then, n_cells
    return top + 1


@kernel
def write(arena, path, order, depth, label_of, listing, begin):
    """Write the events of a match in the order in which they were read; how many there are.

    Nodes are numbered in that order, and an event that several parts took stands there several times, side by side.
    A path goes back in time below each output, and on its own in each part of a product: where the later part stands
    on the left, all the way, and this takes as many steps as there are events.
    """
    for k in range(depth):
        node, j = path[depth - 1 - k], k
        while j > 0 and order[j - 1] > node:
            order[j] = order[j - 1]
            j -= 1
        order[j] = node
    n = 0
    atoms = np.int64(0)
    for k in range(depth):
        atoms |= arena.label[order[k]]
        row = arena.row[order[k]]
        if k + 1 < depth and arena.row[order[k + 1]] == row:
            continue
        listing.row[begin + n] = row
        listing.label[begin + n] = label_of[atoms]
        n += 1
        atoms = np.int64(0)
    return n


@kernel
def enumerate_products(space, walk, n_roots, label_of, listing, bound):
    """As runtime.compact_set.enumeration.enumerate_kernel, through products."""
    arena, roots = space.arena, space.roots
    most, room = len(listing.key), len(walk.stack_node) - 1
    n, root, top = listing.state[0], listing.state[1], walk.top[0]
    result = FINISHED
    while True:
        if top == 0 and root == n_roots:
            break
        if n == most:
            result = LISTING_FULL
            break
        if top == 0:
            if bound is not None and not opened(space, bound, root, walk.stack_node):
                result = WALK_FULL
                break
            root += 1
            if bound is not None and not can_fit(bound, np.int64(roots.node[root - 1]), 0):
                continue
            top = push(walk, top, roots.node[root - 1], 0, NOTHING, 0)
        top -= 1
        node, depth, then, n_cells = (
            walk.stack_node[top], walk.stack_depth[top], walk.stack_then[top], walk.stack_cells[top],
        )  # fmt: skip
        now, fits = roots.clock[root - 1], True
        while fits and (node != BOTTOM or then != NOTHING):
            if top + 1 >= room or n_cells == room:
                result = WALK_FULL
                break
            if node == BOTTOM:
                node, then = walk.cell_node[then], walk.cell_next[then]
                continue
            if arena.label[node] == UNION:
                right, to_left = np.int64(arena.right[node]), True
                to_right = inside(arena.start[right], now, space.bounds)
                if bound is not None:
                    to_left = can_fit_beside(bound, np.int64(arena.child[node]), depth, then)
                    to_right = to_right and can_fit_beside(bound, right, depth, then)
                fits = to_left or to_right
                if to_left and to_right:
                    top = push(walk, top, right, depth, then, n_cells)
                elif to_right:
                    node = right
                    continue
            elif arena.label[node] < UNION:
                loose = arena.label[node] == LOOSE
                if loose:
                    for side in (np.int64(arena.right[node]), np.int64(arena.child[node])):
                        if bound is None or can_fit_beside(bound, side, depth, then):
                            top = push(walk, top, side, depth, then, n_cells)
                if bound is not None:
                    put_off(bound, np.int64(arena.right[node]), n_cells, then)
                walk.cell_node[n_cells], walk.cell_next[n_cells] = arena.right[node], then
                then = n_cells
                n_cells += 1
                fits = bound is None or not loose or can_fit_beside(bound, np.int64(arena.child[node]), depth, then)
            else:
                if depth == len(walk.path):
                    result = WALK_FULL
                    break
                walk.path[depth] = node
                if bound is not None:
                    meet(bound, node, depth)
                depth += 1
            node = arena.child[node]
        if not fits:
            continue
        begin = listing.offsets[n]
        if result != WALK_FULL and begin + depth > len(listing.row):
            result = LISTING_FULL
        if result != FINISHED:
            # Come back to this branch: what is above it is already on the path.
            top = push(walk, top, node, depth, then, n_cells)
            break
        listing.offsets[n + 1] = begin + write(arena, walk.path, walk.order, depth, label_of, listing, begin)
        listing.key[n] = roots.key[root - 1]
        n += 1
    walk.top[0] = top
    listing.state[0] = n
    listing.state[1] = root
    return result
