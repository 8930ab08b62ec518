"""Listing the matches of roots: a depth-first walk that can stop after any match and go on later.

One loop lists sets without products in three ways, of which the compiler keeps what is asked for: all matches, those
with so many events of a label (`bound`, runtime.compact_set.bounded), and matches that share their beginnings
(`chains`, runtime.compact_set.chained). Products have a walk of their own (runtime.compact_set.products).
"""

from __future__ import annotations

import numpy as np

from runtime.compact_set.bounded import descended as descended_bounded
from runtime.compact_set.bounded import measured
from runtime.compact_set.chained import chained, is_known
from runtime.compact_set.chained import descended as descended_chained
from runtime.compact_set.tecs import BOTTOM, CHAINS_FULL, FINISHED, LISTING_FULL, WALK_FULL
from runtime.compact_set.tecs import descended as descended_plain
from runtime.jit import inlined, kernel


@inlined
def went_down(space, walk, bound, chains, top, now):
    """Take branch `top` of the stack: (the node that it came to, the depth of the path, what else is remembered of the
    branch, the height of the stack, is there a match this way?)."""
    node, depth, more = np.int64(walk.stack_node[top]), walk.stack_depth[top], walk.stack_more[top]
    fits = True
    if bound is not None:
        node, depth, more, top, fits = descended_bounded(space, walk, bound, (node, depth, more), top, now)
    elif chains is not None:
        node, depth, more, top = descended_chained(space, walk, chains, (node, depth, more), top, now)
    else:
        node, depth, top = descended_plain(space, walk, (node, depth), top, now)
    return node, depth, more, top, fits


@inlined
def lacking(chains, node, depth, own, listing, n):
    """What match n, whose last `own` events are written, lacks where its walk has stopped; FINISHED: nothing."""
    if chains is None:
        ended = node == BOTTOM
    else:
        ended = is_known(chains, node)
    if not ended:
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
            if bound is not None and not measured(space, bound, roots.node[root], roots.clock[root], walk.path_node):
                result = WALK_FULL
                break
            walk.stack_node[0], walk.stack_depth[0], walk.stack_more[0] = roots.node[root], 0, 0
            top = 1
            root += 1
        node, depth, more, top, fits = went_down(space, walk, bound, chains, top - 1, roots.clock[root - 1])
        if not fits:
            continue
        own = depth
        if chains is not None:
            own = more  # the events above the last union; the others are a chain
        result = lacking(chains, node, depth, own, listing, n)
        if result != FINISHED:
            # Come back to this branch: what is above it is already on the path.
            walk.stack_node[top], walk.stack_depth[top], walk.stack_more[top] = node, depth, more
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
