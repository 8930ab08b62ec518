"""Runs side by side, as a kernel: [PCEA] Algorithm 1 for hierarchical conjunctive queries (Theorem 4.1).

The q-tree of the query has its events (*atoms*) as leaves, and inside it the values that they share. A run for a part
of the tree waits, once every atom below it has its event, at the *place* of that part, under the values that the part
shares with the rest: the look-up table H of Algorithm 1, whose entry is one heap of the compact set
(runtime.compact_set.products), however many runs there are. An event is one atom or, in a self-join, several at once;
it goes up the tree from there, and wherever all that hangs beside its way is found, it completes the part above. What
it makes takes effect only after all it can do is found, so that a run never takes one event twice.

Every match is made in one way: its last event completes the root, as just those atoms that it is, and so on below. An
event costs O(steps · (terms + log w)), the steps being given by the query.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from runtime.arrays import AnyArray
from runtime.compact_set.products import heap_of, inserted, product
from runtime.compact_set.tecs import BOTTOM, extend, inside
from runtime.jit import inlined, kernel
from runtime.pcea import ROOT
from runtime.program import NULL_CODE
from runtime.steppers.by_values import (
    DONE,
    GENERATION,
    KEY,
    LAST_POSITION,
    N_FILLED,
    N_ROOTS,
    NEEDS_NODES,
    NEEDS_ROOTS,
    NEEDS_SLOTS,
    code_of,
    fill,
    free_slot,
    slot_of,
)
from runtime.steppers.events import Values
from runtime.steppers.register_ops import holds, term_of


class Places(NamedTuple):
    """H: a table of runtime.steppers.by_values."""

    code: AnyArray  # uint64[power of two]: the hash
    value: AnyArray  # int64[power of two, depth]
    place: AnyArray  # int32[power of two]
    generation: AnyArray  # int64[power of two]: the slot is free if this is not the table's
    node: AnyArray  # int32[power of two]
    counts: AnyArray  # int64[2]


class Waiting(NamedTuple):
    """Runs that the event being read has made."""

    node: AnyArray  # int32[steps]
    step: AnyArray  # int64[steps]
    path: AnyArray  # int32: for products.inserted


class Automaton(NamedTuple):
    """The arrays of runtime.pcea.Parallel."""

    guard: AnyArray
    own_of: AnyArray
    own_left: AnyArray
    own_right: AnyArray
    atoms: AnyArray
    together_of: AnyArray
    together_left: AnyArray
    together_right: AnyArray
    step_of: AnyArray
    part_of: AnyArray
    part: AnyArray
    key_of: AnyArray
    key: AnyArray
    place: AnyArray
    into_of: AnyArray
    into: AnyArray
    label_of: AnyArray
    words: int  # of a symbol, before its terms
    need: int  # the most nodes that one event takes


def new_places(capacity: int, depth: int) -> Places:
    """`capacity`: a power of two, of which half is used at the most."""
    return Places(
        code=np.zeros(capacity, np.uint64),
        value=np.zeros((capacity, max(1, depth)), np.int64),
        place=np.zeros(capacity, np.int32),
        generation=np.full(capacity, -1, np.int64),
        node=np.zeros(capacity, np.int32),
        counts=np.zeros(2, np.int64),
    )


@kernel
def moved(arena, places, to, now, bounds):
    """Put what of `places` is inside the window into an empty table. O(slots)."""
    n = 0
    for k in range(len(to.counts)):
        to.counts[k] = places.counts[k]
    for old in range(len(places.place)):
        if places.generation[old] != places.counts[GENERATION]:
            continue
        if not inside(arena.start[places.node[old]], now, bounds):
            continue
        slot = free_slot(to, places.code[old])
        to.code[slot], to.place[slot], to.node[slot] = places.code[old], places.place[old], places.node[old]
        to.generation[slot] = to.counts[GENERATION]
        for t in range(to.value.shape[1]):
            to.value[slot, t] = places.value[old, t]
        n += 1
    to.counts[N_FILLED] = n


@inlined
def equal_terms(values, left, right, begin, end):
    """Are these terms of an event equal in pairs, and none of them NULL?"""
    for t in range(begin, end):
        a = term_of(values, left[t])
        if a == NULL_CODE or a != term_of(values, right[t]):
            return False
    return True


@inlined
def atoms_of(automaton, values):
    """The atoms, as bits, that an event can be."""
    found = np.int64(0)
    for i in range(len(automaton.guard)):
        if not holds(values, automaton.guard[i]):
            continue
        begin, end = automaton.own_of[i], automaton.own_of[i + 1]
        if equal_terms(values, automaton.own_left, automaton.own_right, begin, end):
            found |= np.int64(1) << i
    return found


@inlined
def lacking(arena, automaton, roots, places, counts):
    """What is missing before an event takes effect, or DONE."""
    if arena.size[0] + automaton.need > len(arena.row):
        return NEEDS_NODES
    if counts[N_ROOTS] + len(automaton.atoms) > len(roots.node):
        return NEEDS_ROOTS
    if 2 * (places.counts[N_FILLED] + len(automaton.place)) > len(places.place):
        return NEEDS_SLOTS
    return DONE


@inlined
def joined(space, automaton, places, values, s, run, now):
    """(Has each part that step s needs a run inside the window? The product of all with `run`: its node and start)."""
    arena, (child, start) = space.arena, run
    for p in range(automaton.part_of[s], automaton.part_of[s + 1]):
        place, low, high = automaton.part[p], automaton.key_of[p], automaton.key_of[p + 1]
        code = code_of(place, values, automaton.key, low, high)
        slot = slot_of(places, code, place, values, automaton.key, low, high)
        if places.generation[slot] != places.counts[GENERATION]:
            return False, (child, start)
        node = places.node[slot]
        if not inside(arena.start[node], now, space.bounds):
            return False, (child, start)
        child = node if child == BOTTOM else product(arena, child, node)
        start = min(start, arena.start[node])
    return True, (child, start)


@inlined
def wait_at(space, automaton, places, values, waiting, k, now):
    """Let run number k of those that the event has made wait at its place, under the values that it shares."""
    arena, bounds, s = space.arena, space.bounds, waiting.step[k]
    place, low, high = automaton.place[s], automaton.into_of[s], automaton.into_of[s + 1]
    code = code_of(place, values, automaton.into, low, high)
    slot = slot_of(places, code, place, values, automaton.into, low, high)
    if places.generation[slot] != places.counts[GENERATION]:
        fill(places, slot, code, place, values, automaton.into, low, high)
        places.node[slot] = BOTTOM
    heap, node = places.node[slot], waiting.node[k]
    if heap != BOTTOM and not inside(arena.start[heap], now, bounds):
        heap = BOTTOM
    if heap == BOTTOM or arena.start[heap] <= arena.start[node]:  # as where single events wait
        places.node[slot] = heap_of(arena, node, heap, BOTTOM)
    else:
        places.node[slot] = inserted(arena, heap, node, now, bounds, waiting.path)


@kernel
def step_kernel(space, automaton, places, waiting, counts, begin, feed):
    """Read events from `begin` on. Returns (why it stopped, the event to go on with); an event that lacked room has had
    no effect. feed: runtime.steppers.stepper.Feed, with symbols in two dimensions."""
    arena, roots, keys, mute = space.arena, space.roots, feed.keys, feed.mute
    for i in range(begin, len(feed.clocks)):
        if len(keys) > 0 and keys[i] != counts[KEY]:
            counts[KEY] = keys[i]
            places.counts[GENERATION] += 1
            places.counts[N_FILLED] = 0
        counts[LAST_POSITION] = feed.positions[i]
        values = Values(feed.symbols, i, automaton.words)
        mine = atoms_of(automaton, values)
        if mine == 0:
            continue
        lacks = lacking(arena, automaton, roots, places, counts)
        if lacks != DONE:
            return lacks, i
        now, n = feed.clocks[i], 0
        for a in range(len(automaton.atoms)):
            if automaton.atoms[a] & ~mine != 0:
                continue
            first, last = automaton.together_of[a], automaton.together_of[a + 1]
            if not equal_terms(values, automaton.together_left, automaton.together_right, first, last):
                continue
            run = np.int64(BOTTOM), now
            for s in range(automaton.step_of[a], automaton.step_of[a + 1]):
                is_whole, run = joined(space, automaton, places, values, s, run, now)
                if not is_whole:
                    break
                node = extend(arena, feed.rows[i], automaton.atoms[a], run[0], run[1])
                if automaton.place[s] != ROOT:
                    waiting.node[n], waiting.step[n] = node, s
                    n += 1
                elif len(mute) == 0 or not mute[i]:
                    root = counts[N_ROOTS]
                    roots.node[root], roots.clock[root], roots.key[root] = node, now, counts[KEY]
                    counts[N_ROOTS] = root + 1
        for k in range(n):
            wait_at(space, automaton, places, values, waiting, k, now)
    return DONE, len(feed.clocks)
