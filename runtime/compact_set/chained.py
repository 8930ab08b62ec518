"""Matches as an end and a chain: beginnings that many matches share are written down once.

Below a node without a union there is one complex event, a *chain*: the node's event after those of its child. A walk
that comes to such a node for the second time knows the chain, and stops there. So of 1,000 matches `A B … B C` that end
at one C it writes 1,000 numbers of chains, and each B once:

    C ── union ── B3 ── B2 ── B1 ── A        chains: 1 = A, 2 = 1 B1, 3 = 2 B2, 4 = 3 B3
           └───── B2                         matches: 4 C, 3 C, 2 C
           └───── B1

Whoever sums up the events of matches does so chain by chain, in the order of the events (runtime.partition.chains).
Chains are known while roots are listed, and forgotten with them, since nodes get other numbers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from runtime.arrays import AnyArray, IntArray, grown
from runtime.compact_set.tecs import BOTTOM, FINISHED, LISTING_FULL, UNION, WALK_FULL, inside, write_match
from runtime.jit import inlined, kernel


class Chains(NamedTuple):
    """A forest: chain c has the events of chain `before[c]`, which is less than c, and one more; chain 0 has none.

    `of_node` says the chain of a node, where `stamp` is `serial`. `path_node` and `since` belong to a walk: the nodes
    of its path, and for each branch on its stack the depth above which its path has met a union.
    """

    row: AnyArray  # int64[chains]
    label: AnyArray  # int32[chains]
    before: AnyArray  # int32[chains]
    size: AnyArray  # int64[1]: how many there are
    of_node: AnyArray  # int32[nodes]
    stamp: AnyArray  # int64[nodes]
    serial: AnyArray  # int64[1]
    path_node: AnyArray  # int32, as Walk.path_row
    since: AnyArray  # int64, as Walk.stack_depth


def new_chains(capacity: int, walk: int) -> Chains:
    """The empty chain alone, of no node."""
    return Chains(
        row=np.zeros(capacity, np.int64),
        label=np.zeros(capacity, np.int32),
        before=np.zeros(capacity, np.int32),
        size=np.ones(1, np.int64),
        of_node=np.zeros(1, np.int32),
        stamp=np.zeros(1, np.int64),
        serial=np.zeros(1, np.int64),
        path_node=np.zeros(walk, np.int32),
        since=np.zeros(walk, np.int64),
    )


_OF_CHAINS, _OF_NODES, _OF_WALK = ("row", "label", "before"), ("of_node", "stamp"), ("path_node", "since")


def with_room(chains: Chains, capacity: int, nodes: int, walk: int) -> Chains:
    """The same with room for so many chains, nodes, and branches of a walk."""
    wanted = [(_OF_CHAINS, capacity), (_OF_NODES, nodes), (_OF_WALK, walk)]
    larger = {name: grown(getattr(chains, name), size) for names, size in wanted
              for name in names if len(getattr(chains, name)) < size}  # fmt: skip
    return chains._replace(**larger)


def forget(chains: Chains) -> None:
    """Nodes have other numbers from now on."""
    chains.serial[0] += 1
    chains.size[0] = 1
    chains.of_node[BOTTOM], chains.stamp[BOTTOM] = 0, chains.serial[0]


CHAINS_FULL = WALK_FULL + 1


@inlined
def is_known(chains, node):
    return chains.stamp[node] == chains.serial[0]


@inlined
def descended(space, walk, chains, branch, top, now):
    """As runtime.compact_set.tecs.descended, to a node whose chain is known, or as far as there is room: (the node, the
    depth of the path, the depth of its last union, the height of the stack)."""
    arena, room = space.arena, len(walk.path_row) - 1
    node, depth, since = branch
    while not is_known(chains, node) and top < room and depth < room:
        if arena.label[node] == UNION:
            since = depth
            right = arena.right[node]
            if inside(arena.start[right], now, space.bounds):
                walk.stack_node[top], walk.stack_depth[top], chains.since[top] = right, depth, since
                top += 1
        else:
            walk.path_row[depth], walk.path_label[depth] = arena.row[node], arena.label[node]
            chains.path_node[depth] = node
            depth += 1
        node = np.int64(arena.child[node])
    return node, depth, since, top


@inlined
def chained(walk, chains, chain, begin, end):
    """Make chains of the part of the path from depth `end` up to `begin`; the chain of all of it."""
    for k in range(end - 1, begin - 1, -1):
        node, new = chains.path_node[k], chains.size[0]
        chains.row[new], chains.label[new], chains.before[new] = walk.path_row[k], walk.path_label[k], chain
        chains.of_node[node], chains.stamp[node] = new, chains.serial[0]
        chains.size[0] = new + 1
        chain = new
    return chain


@kernel
def enumerate_chained(space, walk, chains, n_roots, listing, chain_of):
    """As runtime.compact_set.tecs.enumerate_kernel; a match is what `listing` has of it after the chain `chain_of`.

    Also returns CHAINS_FULL: bring room for more chains. A match costs its events above its last union, and each node
    of a chain once.
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
            walk.stack_node[0], walk.stack_depth[0], chains.since[0] = roots.node[root], 0, 0
            top = 1
            root += 1
        top -= 1
        branch = np.int64(walk.stack_node[top]), walk.stack_depth[top], chains.since[top]
        node, depth, since, top = descended(space, walk, chains, branch, top, roots.clock[root - 1])
        ended, begin = is_known(chains, node), listing.offsets[n]
        has_room = begin + since <= len(listing.row)
        if not ended or not has_room or chains.size[0] + depth - since > len(chains.row):
            # Come back to this branch: what is above it is already on the path.
            walk.stack_node[top], walk.stack_depth[top], chains.since[top] = node, depth, since
            top += 1
            result = WALK_FULL if not ended else CHAINS_FULL if has_room else LISTING_FULL
            break
        chain_of[n] = chained(walk, chains, np.int64(chains.of_node[node]), since, depth)
        write_match(walk, since, listing, n, roots.key[root - 1])
        n += 1
    walk.top[0] = top
    listing.state[0] = n
    listing.state[1] = root
    return result


class Beginnings(NamedTuple):
    """How matches begin: with the events of chain `of[k]`. Of `n` chains `row`, `label` and `before` say what they are;
    `serial` is another one where chains have other meanings. It holds until the next matches are listed."""

    of: IntArray
    row: IntArray
    label: AnyArray
    before: AnyArray
    n: int
    serial: int


def beginnings(chains: Chains, of: AnyArray) -> Beginnings:
    """Those of matches that have been listed."""
    n = int(chains.size[0])
    return Beginnings(of, chains.row[:n], chains.label[:n], chains.before[:n], n, int(chains.serial[0]))


def events(found: Beginnings, chain: int) -> list[int]:
    """The chains that a chain grew through, the longest first: each stands for the event that it ends with."""
    path = []
    while chain:
        path.append(chain)
        chain = int(found.before[chain])
    return path
