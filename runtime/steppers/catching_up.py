"""Runs by the values that they hold: a table of them, and how those of a value catch up with the free events.

All runs with equal values are one *entry*, found by hash: for each place a heap of the compact set, and `upto`, how
many free events (runtime.steppers.blocks) it has seen. Nobody touches an entry at an event of another value. At an
event of its own value it takes, one after the other, the matrices of the longest blocks that make up what it has
missed: the runs at q are then those that were at p and stayed, or were moved, and each that was at p joined with each
fragment from p to q,

    new[q] = ∪ old[p] with to[p] = q  ∪  old[p] × frag[p, q]

so that A1 A2 B3 B4 B5, of which the As have different values, needs two steps at a C with the value of A1: one for
B3 … B4, as a block, and one for B5. Each step is O(places² · log w). What it makes is as good as what was there
before: a kernel that lacks room in between goes on later.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from runtime.arrays import AnyArray
from runtime.chain_cea import NOBODY
from runtime.compact_set.products import MOST_RANKS, melded, product
from runtime.compact_set.tecs import BOTTOM, inside
from runtime.jit import inlined, kernel
from runtime.steppers.blocks import FIRST, N_FREE, Blocks, level_at, row_of
from runtime.steppers.by_values import GENERATION, N_FILLED, free_slot


class ValueRuns(NamedTuple):
    """A table of runtime.steppers.by_values: the entries of each component, by what its runs hold."""

    code: AnyArray  # uint64[power of two]: the hash
    value: AnyArray  # int64[power of two, depth]
    place: AnyArray  # int32[power of two]: the component
    generation: AnyArray  # int64[power of two]
    upto: AnyArray  # int64[power of two]: the free events that it has seen
    node: AnyArray  # int32[power of two, held places]
    counts: AnyArray  # int64[2]


class Waiting(NamedTuple):
    """All runs that wait, and what they may have to catch up with."""

    entries: ValueRuns
    blocks: Blocks
    alone: AnyArray  # int32[places]: the runs where no values are held
    next: AnyArray  # int32[held places]: of an entry that catches up
    path: AnyArray  # int32: for products.melded


def new_entries(capacity: int, depth: int, n_held: int) -> ValueRuns:
    """`capacity`: a power of two, of which half is used at the most."""
    return ValueRuns(
        code=np.zeros(capacity, np.uint64),
        value=np.zeros((capacity, max(1, depth)), np.int64),
        place=np.zeros(capacity, np.int32),
        generation=np.full(capacity, -1, np.int64),
        upto=np.zeros(capacity, np.int64),
        node=np.zeros((capacity, n_held), np.int32),
        counts=np.zeros(2, np.int64),
    )


def new_waiting(entries: ValueRuns, blocks: Blocks, n_places: int) -> Waiting:
    """No runs."""
    return Waiting(
        entries=entries,
        blocks=blocks,
        alone=np.zeros(n_places, np.int32),
        next=np.zeros(entries.node.shape[1], np.int32),
        path=np.zeros(2 * MOST_RANKS, np.int32),
    )


@inlined
def most_ranks(arena):
    """The greatest rank that a heap can have: log₂ of the nodes for which there is room."""
    n, left = np.int64(1), np.int64(len(arena.row))
    while left > 0:
        left >>= 1
        n += 1
    return n


@inlined
def most_of_a_step(arena, automaton, waiting):
    """The most nodes that one step of an entry makes: a product from each place to each, and for it and for what stays
    a path."""
    n_held = waiting.entries.node.shape[1]
    return n_held * n_held + (n_held * n_held + n_held) * 4 * most_ranks(arena)


@inlined
def joins(arena, waiting, h, node, now, bounds):
    """More runs at a place of the entry that catches up."""
    waiting.next[h] = melded(arena, waiting.next[h], node, now, bounds, waiting.path)


@inlined
def step(space, automaton, waiting, slot, to, frag, row, now):
    """An entry takes a matrix, row `row` of `to` and of `frag`."""
    arena, bounds, node = space.arena, space.bounds, waiting.entries.node
    n_held = node.shape[1]
    for h in range(n_held):
        waiting.next[h] = BOTTOM
    for h in range(n_held):
        if node[slot, h] != BOTTOM and not inside(arena.start[node[slot, h]], now, bounds):
            node[slot, h] = BOTTOM
        if node[slot, h] != BOTTOM and to[row, h] != NOBODY:
            joins(arena, waiting, to[row, h], node[slot, h], now, bounds)
    for h in range(n_held):
        old = node[slot, h]
        for k in range(len(automaton.pair_from)):
            if old != BOTTOM and automaton.pair_from[k] == automaton.same[h] and frag[row, k] != BOTTOM:
                joins(arena, waiting, automaton.pair_to[k], product(arena, frag[row, k], old), now, bounds)
    for h in range(n_held):
        node[slot, h] = waiting.next[h]


@kernel
def caught_up(space, automaton, waiting, slot, now):
    """Let an entry catch up with all free events. False: it has come as far as there was room for nodes.

    At most 2 · log₂ n steps for n free events.
    """
    blocks, entries = waiting.blocks, waiting.entries
    while entries.upto[slot] < blocks.counts[N_FREE]:
        arena, begin = space.arena, entries.upto[slot]
        if arena.size[0] + most_of_a_step(arena, automaton, waiting) > len(arena.row):
            return False
        level = level_at(begin, blocks.counts[N_FREE])
        size = np.int64(1) << level
        row = row_of(blocks, begin + size - 1, level)
        step(space, automaton, waiting, slot, blocks.to, blocks.frag, row, now)
        entries.upto[slot] = begin + size
    return True


@kernel
def moved(arena, entries, to, now, bounds):
    """Put what of the entries is inside the window into an empty table. O(slots). Returns the first free event that one
    of them has not seen; the greatest number if there are none."""
    n, first = 0, np.int64(9223372036854775807)
    for k in range(len(to.counts)):
        to.counts[k] = entries.counts[k]
    for old in range(len(entries.place)):
        if entries.generation[old] != entries.counts[GENERATION]:
            continue
        lives = False
        for h in range(entries.node.shape[1]):
            if entries.node[old, h] != BOTTOM and not inside(arena.start[entries.node[old, h]], now, bounds):
                entries.node[old, h] = BOTTOM
            lives = lives or entries.node[old, h] != BOTTOM
        if not lives:
            continue
        slot = free_slot(to, entries.code[old])
        to.code[slot], to.place[slot], to.upto[slot] = entries.code[old], entries.place[old], entries.upto[old]
        to.generation[slot] = to.counts[GENERATION]
        for h in range(entries.node.shape[1]):
            to.node[slot, h] = entries.node[old, h]
        for t in range(to.value.shape[1]):
            to.value[slot, t] = entries.value[old, t]
        first = min(first, entries.upto[old])
        n += 1
    to.counts[N_FILLED] = n
    return first


@kernel
def drop_old(arena, alone, now, bounds):
    """Forget the runs without values that have left the window."""
    for p in range(len(alone)):
        if alone[p] != BOTTOM and not inside(arena.start[alone[p]], now, bounds):
            alone[p] = BOTTOM


@kernel
def forget(waiting):
    """Another key of the stream begins."""
    entries, blocks = waiting.entries, waiting.blocks
    entries.counts[GENERATION] += 1
    entries.counts[N_FILLED] = 0
    blocks.counts[N_FREE] = blocks.counts[FIRST] = 0
    for p in range(len(waiting.alone)):
        waiting.alone[p] = BOTTOM
