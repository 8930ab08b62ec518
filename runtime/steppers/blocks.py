"""What free events do to runs, whatever their values: small matrices, and their products over stretches of the stream.

`A ; B ; C WHERE A.x = C.x`. An A waits under its x, and any B takes it on. To move what waits under each x at each B
would cost as many steps as there are values. A B is a *free* event instead, which is only written down: the number of
free events before it, and what it does, as a *matrix* over the places where runs hold values:

    to[p]        the place at which a run from p is if it does not take the event: p itself; another, or NOBODY, where
                 the event is what must not happen
    frag[p, q]   the events that a run takes on its way from p to q: a set of the compact set, ⊥ if there is no way

After another matrix, as in any semiring, to is followed by to, and

    frag[p, q] = then.frag[to[p], q]  ∪  frag[p, r] with then.to[r] = q  ∪  frag[p, r] × then.frag[r, q]

Of a loop, to which the same events lead and which they keep up, that is one node: a loose product of two sets.

The matrices of *blocks* of 2, 4, 8 … free events are kept besides, as a binary counter has its digits: block (l, j) is
that of the free events j · 2ˡ … (j + 1) · 2ˡ − 1, made when the last of them is read; one product an event, amortized.
Any stretch of n free events is made of at most 2 · log₂ n blocks, so a value whose event comes catches up by as many
steps (runtime.steppers.catching_up).

Blocks lie in the order in which they are made. The first k free events make 2k − (ones in k) blocks, so block l that
ends with event e is number 2e − (ones in e) + l. What no run has to catch up with any more is dropped from the front.

Windows. A fragment is no match: it is joined with the beginning of a run, which comes before all of it, since runs
catch up with what came after them. So wherever the beginning is inside the window, all of the fragment is. Unions of
fragments have the later start on the left, as all unions do; what a walk or a compaction cuts off them has left the
window, and with it all that could stand before it. A product begins where the run does.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from runtime.arrays import AnyArray, grown
from runtime.chain_cea import NOBODY
from runtime.compact_set.products import loose_product, product
from runtime.compact_set.tecs import BOTTOM, link
from runtime.jit import inlined, kernel

N_FREE, FIRST = 0, 1  # places in Blocks.counts


class Blocks(NamedTuple):
    """The matrices of blocks, from the first one that is kept on; the pairs (p, q) are numbered (runtime.deferred)."""

    to: AnyArray  # int32[blocks, held places]
    frag: AnyArray  # int32[blocks, pairs]
    counts: AnyArray  # int64[2]: the free events so far; the first of those that are kept


def new_blocks(capacity: int, n_held: int, n_pairs: int) -> Blocks:
    """Room for `capacity` blocks."""
    return Blocks(
        to=np.zeros((capacity, n_held), np.int32),
        frag=np.zeros((capacity, max(1, n_pairs)), np.int32),
        counts=np.zeros(2, np.int64),
    )


def grown_blocks(blocks: Blocks) -> Blocks:
    """A copy with twice the room."""
    capacity = 2 * len(blocks.to)
    return Blocks(grown(blocks.to, capacity), grown(blocks.frag, capacity), blocks.counts)


@kernel
def n_blocks(n):
    """How many blocks the first n free events make."""
    ones, left = np.int64(0), np.int64(n)
    while left > 0:
        left &= left - 1
        ones += 1
    return 2 * np.int64(n) - ones


@inlined
def row_of(blocks, last, level):
    """Where block `level` that ends with a free event lies."""
    return n_blocks(last) + level - n_blocks(blocks.counts[FIRST])


@kernel
def n_rows(blocks):
    """How many blocks are kept."""
    return n_blocks(blocks.counts[N_FREE]) - n_blocks(blocks.counts[FIRST])


@inlined
def n_ending(last):
    """How many blocks end with a free event: block 0 and each that is full with it."""
    n, left = np.int64(1), np.int64(last)
    while left & 1:
        left >>= 1
        n += 1
    return n


@inlined
def level_at(begin, end):
    """The level of the longest block that begins with a free event and ends before another."""
    level, size = np.int64(0), np.int64(1)
    while begin & size == 0 and begin + 2 * size <= end:
        size *= 2
        level += 1
    return level


@inlined
def add(arena, blocks, row, pair, node):
    """One more set in an entry of a matrix."""
    old = blocks.frag[row, pair]
    if old == BOTTOM:
        blocks.frag[row, pair] = node
    elif arena.start[node] >= arena.start[old]:
        blocks.frag[row, pair] = link(arena, node, old)
    else:
        blocks.frag[row, pair] = link(arena, old, node)


@inlined
def is_loose(automaton, blocks, first, then, k):
    """Is pair k that of a loop, so that a run on its way takes events of the first block, of the second, or of both:
    the same ones of the second, whether it has taken some of the first or not?"""
    p, q = automaton.pair_from[k], automaton.pair_to[k]
    middle, loop = blocks.to[first, p], automaton.pair_of[q, q]
    if blocks.frag[first, k] == BOTTOM or blocks.to[then, q] != q or middle == NOBODY or loop == NOBODY:
        return False
    direct, frag = automaton.pair_of[middle, q], blocks.frag
    return direct != NOBODY and frag[then, loop] != BOTTOM and frag[then, direct] == frag[then, loop]


@inlined
def loose_of(arena, automaton, blocks, first, then, row, k):
    """The loose product for pair k, of what the second block and the first have for it; that of another pair before it
    which goes to the same place with the same events: so both stay the same."""
    q, before = automaton.pair_to[k], blocks.frag[first, k]
    after = blocks.frag[then, automaton.pair_of[q, q]]
    for i in range(k):
        alike = automaton.pair_to[i] == q and blocks.frag[first, i] == before
        if alike and is_loose(automaton, blocks, first, then, i):
            return blocks.frag[row, i]
    return np.int32(loose_product(arena, after, before))


@inlined
def multiply(arena, automaton, blocks, first, then, row):
    """Write the matrix of two blocks, one after the other, into an empty row. At most pairs · (1 + 2 · places) new
    nodes, and places² more."""
    pair_of, n_held = automaton.pair_of, blocks.to.shape[1]
    for p in range(n_held):
        middle = blocks.to[first, p]
        blocks.to[row, p] = NOBODY if middle == NOBODY else blocks.to[then, middle]
        if middle == NOBODY or automaton.same[p] != p:
            continue
        for q in range(n_held):
            if pair_of[middle, q] == NOBODY or blocks.frag[then, pair_of[middle, q]] == BOTTOM:
                continue
            k, after = pair_of[p, q], blocks.frag[then, pair_of[middle, q]]
            if is_loose(automaton, blocks, first, then, k):
                after = loose_of(arena, automaton, blocks, first, then, row, k)
            add(arena, blocks, row, k, after)
    for k in range(len(automaton.pair_from)):
        before, p, r = blocks.frag[first, k], automaton.pair_from[k], automaton.pair_to[k]
        if before == BOTTOM:
            continue
        loose = is_loose(automaton, blocks, first, then, k)  # what stays, and goes on at r, is there already
        if blocks.to[then, r] != NOBODY and not loose:
            add(arena, blocks, row, pair_of[p, blocks.to[then, r]], before)
        for q in range(n_held):
            if pair_of[r, q] != NOBODY and blocks.frag[then, pair_of[r, q]] != BOTTOM and not (loose and q == r):
                # The later part on the left: so a walk meets all events in one order (products.write).
                add(arena, blocks, row, pair_of[p, q], product(arena, blocks.frag[then, pair_of[r, q]], before))


@inlined
def append(arena, automaton, blocks, to, frag):
    """One more free event, with its matrix, row 0 of `to` and of `frag`; and the blocks that are full with it."""
    last, begin = blocks.counts[N_FREE], blocks.counts[FIRST]
    blocks.counts[N_FREE] = last + 1
    row = row_of(blocks, last, np.int64(0))
    for h in range(blocks.to.shape[1]):
        blocks.to[row, h] = to[0, h]
    for k in range(blocks.frag.shape[1]):
        blocks.frag[row, k] = frag[0, k]
    for level in range(1, n_ending(last)):
        half = np.int64(1) << (level - 1)
        for k in range(blocks.frag.shape[1]):
            blocks.frag[row + level, k] = BOTTOM
        if last + 1 - 2 * half >= begin:  # else nobody asks for it
            multiply(arena, automaton, blocks, row_of(blocks, last - half, level - 1), row + level - 1, row + level)


@kernel
def forget_before(blocks, first):
    """Drop the blocks that begin before this free event. O(blocks)."""
    old = n_blocks(blocks.counts[FIRST])
    if first == blocks.counts[FIRST]:
        return
    blocks.counts[FIRST] = first
    for last in range(first, blocks.counts[N_FREE]):
        for level in range(n_ending(last)):
            row, kept = n_blocks(last) + level, last + 1 - (np.int64(1) << level) >= first
            to, source = row - n_blocks(first), row - old
            for h in range(blocks.to.shape[1]):
                blocks.to[to, h] = blocks.to[source, h]
            for k in range(blocks.frag.shape[1]):
                blocks.frag[to, k] = blocks.frag[source, k] if kept else BOTTOM
