"""Listing the matches of roots: a depth-first walk that can stop after any match and go on later.

One loop lists sets without products, of which the compiler keeps what is asked for: all matches or those within bounds
(`bound`, runtime.compact_set.bounded), with all their events or behind beginnings that they share (`chains`,
runtime.compact_set.chained). Products have a walk of their own (runtime.compact_set.products).
"""

from __future__ import annotations

import numpy as np

from runtime.compact_set.bounded import can_fit, meet, opened
from runtime.compact_set.chained import chained, is_known
from runtime.compact_set.tecs import BOTTOM, CHAINS_FULL, FINISHED, LISTING_FULL, UNION, WALK_FULL, inside
from runtime.jit import inlined, kernel


@inlined
def has_ended(chains, node):
    """Is all that is below a node known?"""
    return node == BOTTOM if chains is None else is_known(chains, node)


@inlined
def taken(space, bound, node, depth, now):
    """The side of a union to go on with, the other one if it is to be taken, too (else BOTTOM), and is there one?"""
    left, right = np.int64(space.arena.child[node]), np.int64(space.arena.right[node])
    to_left, to_right = True, inside(space.arena.start[right], now, space.bounds)
    if bound is not None:
        to_left = can_fit(bound, left, depth)
        to_right = to_right and can_fit(bound, right, depth)
    return left if to_left else right, right if to_left and to_right else np.int64(BOTTOM), to_left or to_right


@inlined
def went_down(space, walk, bound, chains, top, now):
    """Take branch `top` of the stack to the end of one match, or as far as the walk has room, and remember the branches
    there: (the node that it came to, the depth of the path, the depth of its last union, the height of the stack, is
    there a match this way?). Only where ways part is it asked what fits: without a union there is one sum."""
    arena, room = space.arena, len(walk.path_row) - 1
    node, depth, since = np.int64(walk.stack_node[top]), walk.stack_depth[top], walk.stack_more[top]
    fits = True
    while fits and not has_ended(chains, node) and top < room and depth < room:
        if arena.label[node] == UNION:
            since = depth
            node, other, fits = taken(space, bound, node, depth, now)
            if other != BOTTOM:
                walk.stack_node[top], walk.stack_depth[top], walk.stack_more[top] = other, depth, since
                top += 1
            continue
        walk.path_row[depth], walk.path_label[depth] = arena.row[node], arena.label[node]
        if chains is not None:
            walk.path_node[depth] = node
        if bound is not None:
            meet(bound, node, depth)
        depth += 1
        node = np.int64(arena.child[node])
    return node, depth, since, top, fits


@inlined
def lacking(chains, node, depth, own, listing, n):
    """What match n, whose last `own` events are written, lacks where its walk has stopped; FINISHED: nothing."""
    if not has_ended(chains, node):
        return WALK_FULL
    if listing.offsets[n] + own > len(listing.row):
        return LISTING_FULL
    if chains is not None and chains.size[0] + depth - own > len(chains.row):
        return CHAINS_FULL
    return FINISHED


@inlined
def write_match(walk, depth, listing, n, key):
    """Match n is what the path holds down to a depth, in the order of the stream."""
    begin = listing.offsets[n]
    for k in range(depth):
        listing.row[begin + k] = walk.path_row[depth - 1 - k]
        listing.label[begin + k] = walk.path_label[depth - 1 - k]
    listing.key[n] = key
    listing.offsets[n + 1] = begin + depth


@kernel
def enumerate_kernel(space, walk, n_roots, listing, bound, chains):
    """List the matches of the roots. Output-linear delay; returns FINISHED, or what is full.

    After LISTING_FULL the caller takes the matches away and sets state[0] to 0; after WALK_FULL it brings a longer
    stack, after CHAINS_FULL room for more chains; then the same call goes on. A listing that is full of matches opens
    no further root: the walk is at its start (top 0), or inside the set of the last match.
    """
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
            if bound is not None and not opened(space, bound, root, walk.path_node):
                result = WALK_FULL
                break
            root += 1
            if bound is not None and not can_fit(bound, np.int64(roots.node[root - 1]), 0):
                continue
            walk.stack_node[0], walk.stack_depth[0], walk.stack_more[0] = roots.node[root - 1], 0, 0
            top = 1
        node, depth, since, top, fits = went_down(space, walk, bound, chains, top - 1, roots.clock[root - 1])
        if not fits:
            continue
        own = depth
        if chains is not None:
            own = since  # the events above the last union; the others are a chain
        result = lacking(chains, node, depth, own, listing, n)
        if result != FINISHED:
            # Come back to this branch: what is above it is already on the path.
            walk.stack_node[top], walk.stack_depth[top], walk.stack_more[top] = node, depth, since
            top += 1
            break
        if chains is not None:
            chains.of_match[n] = chained(walk, chains, np.int64(chains.of_node[node]), own, depth)
        write_match(walk, own, listing, n, roots.key[root - 1])
        n += 1
    walk.top[0] = top
    listing.state[0] = n
    listing.state[1] = root
    return result
