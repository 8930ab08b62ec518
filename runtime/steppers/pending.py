"""What an event leads to, before it takes effect: the runs that it begins, and those that it goes on with.

`A+ a ; B b WHERE a.v < b.v`: an A leads to a run that begins there, and to one after each entry at A0; a B to one after
each entry whose register is less than its v. Those at one position with equal registers are gathered into one, so that
what is made are as many nodes as there are different ones."""

from __future__ import annotations

import numpy as np

from runtime.chain_cea import BEGUN, EQUAL, EVERY, NOBODY, ONLY_NEAR, REFUSED, SINCE, UNEQUAL, WINDOW
from runtime.compact_set.picking import NO_COPIES, NXT, compared
from runtime.compact_set.tecs import BOTTOM, inside, link
from runtime.jit import inlined, kernel
from runtime.program import NULL_CODE
from runtime.steppers.happened import (
    prevented_since,
    window_begin,
)
from runtime.steppers.leading import is_skipped
from runtime.steppers.ordered import Asked, passing, room
from runtime.steppers.register_ops import EMPTY, apply, term_of
from runtime.steppers.register_runs import NEXT_BEST, TOGETHER, same
from runtime.steppers.run_table import (
    N_TAKEN,
    bucket_of,
    found_so,
    hashed,
    release,
    sought,
)

DONE, NEEDS_NODES, NEEDS_ROOTS, NEEDS_ENTRIES, NEEDS_PENDING, NEEDS_ORDERED, NEEDS_HAPPENED, NEEDS_RECORDS = range(8)


@kernel
def greater(arena, a, b):
    """The NXT-greater of two runs of one start, or both where they have the same events."""
    order = compared(arena, NO_COPIES, a, b, NXT)
    if order == 0:
        return link(arena, a, b) if a != b else a
    return a if order > 0 else b


@kernel
def gather(arena, pending, n, q, serial, child, start, apart):
    """Pending number n, just made, as one with an equal one if there is; the number of pending ones after that."""
    size = len(pending.table)
    slot = hashed(q, np.int64(0), pending.registers, n, size)
    while pending.stamp[slot] == serial:
        other = pending.table[slot]
        alike = pending.at[other] == q and same(pending.registers, other, pending.registers, n)
        # ⊥ has no start of its own, so it is in no union: what begins here is united when it has become a node.
        if alike and (child == BOTTOM) == (pending.child[other] == BOTTOM):
            if child == BOTTOM:
                return n
            if apart == NEXT_BEST:
                pending.child[other] = greater(arena, child, pending.child[other])
                return n
            if pending.start[other] >= start:
                pending.child[other] = link(arena, pending.child[other], child)
            else:
                pending.child[other] = link(arena, child, pending.child[other])
                pending.start[other] = start
            return n
        slot = (slot + 1) & (size - 1)
    pending.stamp[slot] = serial
    pending.table[slot] = n
    pending.at[n] = q
    pending.child[n] = child
    pending.start[n] = start
    return n + 1


@kernel
def begun(arena, automaton, runs, n, q, edge, event, apart):
    """Pending ones after a run that begins with an event at position q; -NEEDS_PENDING."""
    pending, values = runs.pending, event.values
    if 2 * (n + 1) >= len(pending.at):
        return -NEEDS_PENDING
    for r in range(pending.registers.shape[1]):
        pending.registers[n, r] = EMPTY
    if apart != TOGETHER:
        pending.registers[n, -1] = event.position
    if apply(automaton, edge, values, pending.registers, n):
        if automaton.special[SINCE] != NOBODY:
            since = prevented_since(automaton.early, runs.happened, q, values)
            pending.registers[n, automaton.special[SINCE]] = since
        if automaton.special[BEGUN] != NOBODY:
            pending.registers[n, automaton.special[BEGUN]] = event.position
        return gather(arena, pending, n, q, event.serial, np.int64(BOTTOM), event.start, apart)
    return n


@inlined
def range_asked(automaton, happened, edge, which, values):
    """(kind, value): the check of the first or second value of an ordered index, and the event's value."""
    kind, term = automaton.range_kind[edge, which], automaton.range_term[edge, which]
    value = np.int64(0)  # of nothing, where there is no check
    if term == WINDOW:
        value = window_begin(happened)
    elif kind != EVERY:
        value = term_of(values, term)
    if kind == REFUSED + EQUAL:
        kind = EVERY if value == NULL_CODE else UNEQUAL
    return kind, value


@kernel
def after_ordered(space, automaton, runs, n, q, edge, event, apart):
    """Pending ones after the runs of an ordered index that an event goes on with; -NEEDS_PENDING or -NEEDS_NODES."""
    arena, ordered, pending, values = space.arena, runs.ordered, runs.pending, event.values
    if 2 * (n + 1) >= len(pending.at):
        return -NEEDS_PENDING
    if arena.size[0] + room(ordered, 1) + 2 >= len(arena.row):
        return -NEEDS_NODES
    kind, value = range_asked(automaton, runs.happened, edge, 0, values)
    second_kind, second_value = range_asked(automaton, runs.happened, edge, 1, values)
    for r in range(pending.registers.shape[1]):
        pending.registers[n, r] = EMPTY
    known = (kind == EVERY or value != NULL_CODE) and (second_kind == EVERY or second_value != NULL_CODE)
    if known and apply(automaton, edge, values, pending.registers, n):
        x = automaton.ordered_of[automaton.source[edge]]
        asked = Asked(kind, value, second_kind, second_value, event.clock, space.bounds)
        node = passing(arena, ordered, x, asked)
        if node != BOTTOM:
            return gather(arena, pending, n, q, event.serial, np.int64(node), arena.start[node], apart)
    return n


@kernel
def after_entries(space, automaton, runs, n, q, edge, event, options):
    """Pending ones after the entries that an event goes on with, which are noted; -NEEDS_PENDING or -NEEDS_NODES.

    By the index: the entries with this event's value, then those that wait for none yet.
    """
    arena, entries, pending, values = space.arena, runs.entries, runs.pending, event.values
    p = automaton.source[edge]
    indexed = automaton.wanted[edge, 0] != NOBODY
    code = sought(automaton, edge, values) if indexed else EMPTY
    empty = code == EMPTY
    e = entries.bucket[bucket_of(entries, p, code)] if indexed else entries.head[p]
    while True:
        if e == NOBODY and not empty:
            empty = True
            e = entries.bucket[bucket_of(entries, p, EMPTY)]
        if e == NOBODY:
            return n
        following = entries.chain_next[e] if indexed else entries.next[e]
        if indexed and not found_so(entries, e, p, automaton, edge, values, empty):
            e = following
            continue
        if not inside(entries.start[e], event.clock, space.bounds):
            release(entries, e)
            e = following
            continue
        if options.apart == NEXT_BEST and is_skipped(entries.leading, entries.registers[e, -1]):
            release(entries, e)
            e = following
            continue
        if automaton.contiguous[edge] and entries.last[e] + 1 < event.position:
            if automaton.near[p] == ONLY_NEAR:
                release(entries, e)
            elif not indexed:
                return n  # so are all that follow: they came before
        else:
            if 2 * (n + 1) >= len(pending.at):
                return -NEEDS_PENDING
            if arena.size[0] + 2 >= len(arena.row):
                return -NEEDS_NODES
            for r in range(pending.registers.shape[1]):
                pending.registers[n, r] = entries.registers[e, r]
            if apply(automaton, edge, values, pending.registers, n):
                node = np.int64(entries.node[e])
                n = gather(arena, pending, n, q, event.serial, node, entries.start[e], options.apart)
                if options.greedy and entries.took[e] != event.serial:
                    entries.took[e] = event.serial
                    entries.taken[entries.counts[N_TAKEN]] = e
                    entries.counts[N_TAKEN] += 1
        e = following
