"""Runs in the order of a value, their key, in a tree: what happens to all in a range is noted at its nodes.

`A a ; B+ b ; C c WHERE b[i].x > a.x`. What waits has a key, the x of its A. A B takes on all runs with a lesser key,
which keep it, since the next B is compared with it again. To move them one by one would cost as many steps as there are
keys. So all runs with one key are a *leaf* of a balanced tree, and what a B does, a matrix over the places where runs
wait (runtime.steppers.blocks), is noted as the *tag* of the O(log n) nodes that make up its range:

    keys 2 5 7 9, and a B with x = 8:      tag at the node above 2 and 5, tag at the leaf 7

A tag is still to be applied to all that is below its node. A later one is multiplied with it; on the way to a leaf tags
are pushed down to both sides. Whatever lies below a tag came before it: an item is put into a leaf above which no tag
is left. So the runs of a range, after all that has happened to them, are those of O(log n) nodes, where

    below(node) = (its own runs, or below(left) ∪ below(right)) · tag(node)

and this is kept until something changes below the node (`stale`).

The tree is balanced by weight, with rotations, of nodes that have no tag any more. It is built anew where it is full,
without the keys whose runs are gone: so each item is moved O(1) times on the average. Tags and sets are nodes of the
compact set, which never change; the tree itself is as it is now, and nothing else remembers it.

Unions. What runs at a leaf is a heap (runtime.compact_set.products), what is made of it in the tree plain unions, which
are O(log n) deep with the later start on the left. So listing reaches the next match after as many steps at the most.
What a tag holds came after all that lies below it, and leaves no window before that (runtime.steppers.blocks).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from runtime.arrays import AnyArray
from runtime.chain_cea import NOBODY
from runtime.compact_set.products import inserted, product
from runtime.compact_set.tecs import BOTTOM, inside
from runtime.jit import inlined, kernel
from runtime.steppers.blocks import multiply
from runtime.steppers.catching_up import step
from runtime.steppers.sorted_trees import joined

MOST_DEPTH = 128  # more than twice that of any tree: stacks are as long
ROOT, N_USED, FIRST = 0, 1, 2  # places in Tree.counts
# Places in a row of Tree.meta: the nodes below, 0 for those of a leaf; the least and the greatest key there; how many
# leaves; is `below` to be made anew, and what it is made of, too? Is there a tag?
LEFT, RIGHT, LOW, HIGH, WEIGHT, STALE, DEEP, TAGGED = range(8)
SCRATCH = 0  # the node 0 is none, and room for a product
HEAVIER, SINGLE = 3, 2  # a side may weigh so many times as much as the other; from where on one rotation is not enough


class Tree(NamedTuple):
    """Nodes from counts[FIRST] on; those before are matrices of the event that is being read (`to`, `frag`)."""

    meta: AnyArray  # int64[capacity, 8]: LEFT … TAGGED, side by side, since who looks at one needs the others
    node: AnyArray  # int32[capacity, held places]: all runs below, without the tag; of a leaf, its own
    below: AnyArray  # int32[capacity, held places]: all runs below, with the tag
    to: AnyArray  # int32[capacity, held places]: the tag
    frag: AnyArray  # int32[capacity, pairs]
    counts: AnyArray  # int64[3]
    stack: AnyArray  # int32[MOST_DEPTH]
    way: AnyArray  # int32[MOST_DEPTH]: to a leaf


def new_tree(capacity: int, first: int, n_held: int, n_pairs: int) -> Tree:
    """An empty one, with room for so many nodes beside the `first` ones."""
    n = first + capacity
    counts = np.zeros(3, np.int64)
    counts[N_USED] = counts[FIRST] = first
    return Tree(
        meta=np.zeros((n, 8), np.int64),
        node=np.zeros((n, n_held), np.int32),
        below=np.zeros((n, n_held), np.int32),
        to=np.zeros((n, n_held), np.int32),
        frag=np.zeros((n, n_pairs), np.int32),
        counts=counts,
        stack=np.zeros(MOST_DEPTH, np.int32),
        way=np.zeros(MOST_DEPTH, np.int32),
    )


@inlined
def deepest(tree):
    """How deep the tree can be, and will be with a few leaves more."""
    n, leaves = np.int64(4), tree.meta[tree.counts[ROOT], WEIGHT] + 1
    while leaves > 0:  # a step down leaves at most three quarters
        leaves = 3 * leaves // 4
        n += 1
    return n


@inlined
def most_of_a_product(automaton, tree):
    """The most nodes that a product of two tags makes."""
    n_held, n_pairs = tree.to.shape[1], len(automaton.pair_from)
    return n_pairs * (1 + 2 * n_held) + n_held * n_held


@inlined
def most_of_below(automaton, tree):
    """The most nodes that a node's runs make."""
    return 3 * tree.to.shape[1] + 2 * len(automaton.pair_from)


@inlined
def clear(tree):
    """Drop all."""
    tree.counts[ROOT], tree.counts[N_USED] = 0, tree.counts[FIRST]


@inlined
def spoil(tree, u):
    """Something has changed below a node."""
    tree.meta[u, STALE] = tree.meta[u, DEEP] = 1


# ---------------------------------------------------------------- tags


@inlined
def is_empty(arena, tree, u, now, bounds):
    """Is it known that nothing runs below a node?"""
    if tree.meta[u, DEEP] and tree.meta[u, LEFT] != 0:
        return False
    known = tree.node if tree.meta[u, STALE] else tree.below
    for h in range(known.shape[1]):
        if known[u, h] != BOTTOM and inside(arena.start[known[u, h]], now, bounds):
            return False
    return True


@inlined
def tag(space, automaton, tree, u, by, now):
    """All runs below u take the matrix in row `by`."""
    arena, n_held, n_pairs = space.arena, tree.to.shape[1], tree.frag.shape[1]
    row = by
    if is_empty(arena, tree, u, now, space.bounds):
        return
    if tree.meta[u, TAGGED]:
        row = SCRATCH
        for k in range(n_pairs):
            tree.frag[row, k] = BOTTOM
        multiply(arena, automaton, tree, u, by, row)
    for h in range(n_held):
        tree.to[u, h] = tree.to[row, h]
    for k in range(n_pairs):
        tree.frag[u, k] = tree.frag[row, k]
    tree.meta[u, TAGGED] = tree.meta[u, STALE] = 1


@inlined
def push_down(space, automaton, tree, u, now):
    """The tag of u becomes one of both nodes below it."""
    if not tree.meta[u, TAGGED]:
        return
    tag(space, automaton, tree, tree.meta[u, LEFT], u, now)
    tag(space, automaton, tree, tree.meta[u, RIGHT], u, now)
    tree.meta[u, TAGGED], tree.meta[u, DEEP] = 0, tree.meta[u, STALE]
    for h in range(tree.node.shape[1]):
        tree.node[u, h] = tree.below[u, h]


@kernel
def pushed_down(space, automaton, tree, now):
    """Push all tags down to the leaves. False: as far as there was room for nodes."""
    if tree.counts[ROOT] == 0:
        return True
    arena, most, top = space.arena, 2 * most_of_a_product(automaton, tree), 1
    tree.stack[0] = tree.counts[ROOT]
    while top > 0:
        top -= 1
        u = tree.stack[top]
        if tree.meta[u, LEFT] == 0:
            continue
        if arena.size[0] + most > len(arena.row):
            return False
        push_down(space, automaton, tree, u, now)
        tree.stack[top], tree.stack[top + 1] = tree.meta[u, LEFT], tree.meta[u, RIGHT]
        top += 2
    return True


# ---------------------------------------------------------------- what runs below a node


@inlined
def gather(arena, tree, u, now, bounds):
    """What runs below u without its tag, when that of both sides is known."""
    for h in range(tree.node.shape[1]):
        made = np.int64(BOTTOM)
        for side in (LEFT, RIGHT):
            node = tree.below[tree.meta[u, side], h]
            if node != BOTTOM:
                made = joined(arena, made, node, now, bounds)
        tree.node[u, h] = made


@inlined
def remake(arena, automaton, tree, u, now, bounds):
    """What runs below u, when that of both sides is known."""
    node, below, of_same = tree.node[u], tree.below[u], tree.node[SCRATCH]
    if tree.meta[u, LEFT] != 0 and tree.meta[u, DEEP]:
        gather(arena, tree, u, now, bounds)
    tree.meta[u, STALE] = tree.meta[u, DEEP] = 0
    for h in range(len(node)):
        of_same[h] = BOTTOM
        below[h] = BOTTOM if tree.meta[u, TAGGED] else node[h]
    if not tree.meta[u, TAGGED]:
        return
    for h in range(len(node)):
        if node[h] != BOTTOM:
            if tree.to[u, h] != NOBODY:
                below[tree.to[u, h]] = joined(arena, below[tree.to[u, h]], node[h], now, bounds)
            of_same[automaton.same[h]] = joined(arena, of_same[automaton.same[h]], node[h], now, bounds)
    for k in range(len(automaton.pair_from)):
        old, to = of_same[automaton.pair_from[k]], automaton.pair_to[k]
        if old != BOTTOM and tree.frag[u, k] != BOTTOM:
            below[to] = joined(arena, below[to], product(arena, tree.frag[u, k], old), now, bounds)


@inlined
def refreshed(arena, automaton, tree, u, now, bounds):
    """Make what runs below u anew, where it is stale. False: as far as there was room for nodes."""
    if not tree.meta[u, STALE]:
        return True
    most, top = most_of_below(automaton, tree), 1
    tree.way[0] = u
    while top > 0:
        u = tree.way[top - 1]
        left, right = tree.meta[u, LEFT], tree.meta[u, RIGHT]
        deep = left != 0 and tree.meta[u, DEEP] != 0
        if deep and tree.meta[left, STALE]:
            tree.way[top] = left
            top += 1
        elif deep and tree.meta[right, STALE]:
            tree.way[top] = right
            top += 1
        elif arena.size[0] + most > len(arena.row):
            return False
        else:
            remake(arena, automaton, tree, u, now, bounds)
            top -= 1
    return True


# ---------------------------------------------------------------- new keys


@inlined
def measure(tree, u):
    """What is known of a node from those below it."""
    left, right = tree.meta[u, LEFT], tree.meta[u, RIGHT]
    tree.meta[u, LOW], tree.meta[u, HIGH] = tree.meta[left, LOW], tree.meta[right, HIGH]
    tree.meta[u, WEIGHT] = tree.meta[left, WEIGHT] + tree.meta[right, WEIGHT]


@inlined
def rotated(space, automaton, tree, u, to_left, now):
    """The node that takes the place of u, which goes down to the left, or right; none of both has a tag then."""
    down, up = (LEFT, RIGHT) if to_left else (RIGHT, LEFT)
    above = tree.meta[u, up]
    push_down(space, automaton, tree, above, now)
    tree.meta[u, up] = tree.meta[above, down]
    tree.meta[above, down] = u
    measure(tree, u)
    measure(tree, above)
    spoil(tree, u)
    spoil(tree, above)
    return above


@inlined
def balanced(space, automaton, tree, u, now):
    """The node in place of u, a node without a tag below which one more leaf is."""
    left, right = tree.meta[u, LEFT], tree.meta[u, RIGHT]
    to_left = tree.meta[right, WEIGHT] > tree.meta[left, WEIGHT]
    light, heavy = (left, right) if to_left else (right, left)
    if tree.meta[heavy, WEIGHT] <= HEAVIER * tree.meta[light, WEIGHT]:
        return u
    inner, outer = tree.meta[heavy, LEFT], tree.meta[heavy, RIGHT]
    if not to_left:
        inner, outer = outer, inner
    if tree.meta[inner, WEIGHT] >= SINGLE * tree.meta[outer, WEIGHT]:
        push_down(space, automaton, tree, heavy, now)
        above = rotated(space, automaton, tree, heavy, not to_left, now)
        tree.meta[u, RIGHT if to_left else LEFT] = above
    return rotated(space, automaton, tree, u, to_left, now)


@inlined
def new_leaf(tree, key):
    """A leaf without runs."""
    u = tree.counts[N_USED]
    tree.counts[N_USED] = u + 1
    tree.meta[u, LEFT] = tree.meta[u, RIGHT] = 0
    tree.meta[u, LOW] = tree.meta[u, HIGH] = key
    tree.meta[u, WEIGHT], tree.meta[u, TAGGED], tree.meta[u, STALE], tree.meta[u, DEEP] = 1, 0, 0, 0
    for h in range(tree.node.shape[1]):
        tree.node[u, h] = tree.below[u, h] = BOTTOM
    return u


@inlined
def new_above(tree, one, other):
    """A node over two others."""
    u = tree.counts[N_USED]
    tree.counts[N_USED] = u + 1
    smaller = tree.meta[one, LOW] < tree.meta[other, LOW]
    tree.meta[u, LEFT], tree.meta[u, RIGHT] = (one, other) if smaller else (other, one)
    tree.meta[u, TAGGED] = 0
    measure(tree, u)
    spoil(tree, u)
    return u


@inlined
def put(tree, depth, old, new):
    """Let a node take the place of another, which lies under the last of those on the way; or is the root."""
    if depth == 0:
        tree.counts[ROOT] = new
    elif tree.meta[tree.way[depth - 1], LEFT] == old:
        tree.meta[tree.way[depth - 1], LEFT] = new
    else:
        tree.meta[tree.way[depth - 1], RIGHT] = new


@inlined
def leaf_of(space, automaton, tree, key, now):
    """The leaf of a key, a new one perhaps. No tag is left on the way there, and all on it are stale."""
    if tree.counts[ROOT] == 0:
        tree.counts[ROOT] = new_leaf(tree, key)
        return tree.counts[ROOT]
    depth, u = 0, tree.counts[ROOT]
    while tree.meta[u, LEFT] != 0:
        push_down(space, automaton, tree, u, now)
        spoil(tree, u)
        tree.way[depth] = u
        depth += 1
        right = np.int64(tree.meta[u, RIGHT])
        u = np.int64(tree.meta[u, LEFT]) if key < tree.meta[right, LOW] else right
    if tree.meta[u, LOW] == key:
        return u
    leaf = new_leaf(tree, key)
    put(tree, depth, u, new_above(tree, u, leaf))
    while depth > 0:
        depth -= 1
        u = np.int64(tree.way[depth])
        measure(tree, u)
        put(tree, depth, u, np.int64(balanced(space, automaton, tree, u, now)))
    return leaf


@inlined
def add(space, automaton, waiting, key, h, node, now):
    """More runs with a key, at a held place."""
    tree = waiting.entries
    u = leaf_of(space, automaton, tree, key, now)
    if tree.meta[u, TAGGED]:
        step(space, automaton, waiting, u, tree.to, tree.frag, u, now)
        tree.meta[u, TAGGED] = 0
    tree.node[u, h] = inserted(space.arena, tree.node[u, h], node, now, space.bounds, waiting.path)
    spoil(tree, u)


# ---------------------------------------------------------------- what is gone


@inlined
def leads(automaton, tree, u, h):
    """Is there still something of the runs that a leaf has at a held place?"""
    found = not tree.meta[u, TAGGED] or tree.to[u, h] != NOBODY
    for k in range(len(automaton.pair_from)):
        found = found or (automaton.pair_from[k] == automaton.same[h] and tree.frag[u, k] != BOTTOM)
    return found


@inlined
def lives(space, automaton, tree, u, now):
    """Does a leaf have runs? What has left the window is forgotten."""
    found = False
    for h in range(tree.node.shape[1]):
        if tree.node[u, h] != BOTTOM and not inside(space.arena.start[tree.node[u, h]], now, space.bounds):
            tree.node[u, h] = BOTTOM
        found = found or (tree.node[u, h] != BOTTOM and leads(automaton, tree, u, h))
    return found


@kernel
def forget_old(space, automaton, tree, order, now):
    """Forget what has left the window, and all tags where nothing else is. `order`: room for the nodes. O(nodes)."""
    arena, bounds, n, at = space.arena, space.bounds, np.int64(tree.counts[ROOT] != 0), 0
    order[0] = tree.counts[ROOT]
    while at < n:  # from above: a node, and later those below it
        u = order[at]
        at += 1
        if tree.meta[u, LEFT] != 0:
            order[n], order[n + 1] = tree.meta[u, LEFT], tree.meta[u, RIGHT]
            n += 2
    for at in range(n - 1, -1, -1):
        u = order[at]
        if tree.meta[u, LEFT] == 0:
            living = lives(space, automaton, tree, u, now)
        else:
            living = tree.meta[tree.meta[u, LEFT], WEIGHT] < 0 or tree.meta[tree.meta[u, RIGHT], WEIGHT] < 0
        for h in range(tree.node.shape[1]):
            for sets in (tree.node, tree.below):
                if not living or (sets[u, h] != BOTTOM and not inside(arena.start[sets[u, h]], now, bounds)):
                    sets[u, h] = BOTTOM
        if living:
            tree.meta[u, WEIGHT] = -tree.meta[u, WEIGHT]  # for the node above it
        else:
            tree.meta[u, TAGGED] = tree.meta[u, STALE] = tree.meta[u, DEEP] = 0
    for at in range(n):
        tree.meta[order[at], WEIGHT] = abs(tree.meta[order[at], WEIGHT])


@kernel
def leaves_left(space, automaton, tree, order, now):
    """Write the leaves that may have runs into `order`, by their keys; how many there are. No node above them has a
    tag."""
    n, top = 0, np.int64(tree.counts[ROOT] != 0)
    tree.stack[0] = tree.counts[ROOT]
    while top > 0:
        top -= 1
        u = tree.stack[top]
        if tree.meta[u, LEFT] != 0:
            tree.stack[top], tree.stack[top + 1] = tree.meta[u, RIGHT], tree.meta[u, LEFT]
            top += 2
        elif lives(space, automaton, tree, u, now):
            order[n] = u
            n += 1
    return n


@inlined
def copy_leaf(tree, old, u, new):
    """Leaf u of an old tree as the leaf `new` of another."""
    tree.meta[new, LEFT] = tree.meta[new, RIGHT] = 0
    for h in range(tree.node.shape[1]):
        tree.node[new, h], tree.to[new, h] = old.node[u, h], old.to[u, h]
    for k in range(tree.frag.shape[1]):
        tree.frag[new, k] = old.frag[u, k]
    tree.meta[new, TAGGED] = old.meta[u, TAGGED]


@kernel
def build(tree, old, order, n):
    """Make an empty tree of n leaves of an old one, as even as can be. `order`: as leaves_left leaves it, with as much
    room behind it again."""
    if n == 0:
        return
    first = tree.counts[FIRST]
    tree.counts[ROOT], tree.counts[N_USED] = first, first + 2 * n - 1
    order[n] = 0  # the node of the leaves begin … begin + weight is first + what its leaves before it make
    top = 1
    tree.stack[0], tree.meta[first, WEIGHT] = first, n
    tree.way[0] = 0
    while top > 0:
        top -= 1
        u, begin = tree.stack[top], tree.way[top]
        size = tree.meta[u, WEIGHT]
        tree.meta[u, LOW], tree.meta[u, HIGH] = old.meta[order[begin], LOW], old.meta[order[begin + size - 1], LOW]
        tree.meta[u, STALE], tree.meta[u, DEEP], tree.meta[u, TAGGED] = 1, 1, 0
        if size == 1:
            copy_leaf(tree, old, order[begin], u)
            continue
        half = size >> 1
        left = u + 1  # then the 2 · half - 1 nodes of the left side
        right = u + 2 * half
        tree.meta[u, LEFT], tree.meta[u, RIGHT] = left, right
        tree.meta[left, WEIGHT], tree.meta[right, WEIGHT] = half, size - half
        tree.stack[top], tree.way[top] = left, begin
        tree.stack[top + 1], tree.way[top + 1] = right, begin + half
        top += 2
