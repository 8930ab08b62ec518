"""How runs wait at a place, and how what must not happen moves or ends those that do.

Runs at one place with equal registers are one entry, with one node of the compact set. `A ; !C ; B WHERE C.v > a.v`: a
C looks at the entries at A0, by an index where it asks for equality, and ends those whose register is less."""

from __future__ import annotations

import numpy as np

from runtime.chain_cea import BEGUN, LATE, NOBODY, SINCE
from runtime.compact_set.tecs import inside, link
from runtime.jit import inlined, kernel
from runtime.steppers.happened import (
    is_prevented,
    window_begin,
)
from runtime.steppers.leading import joins
from runtime.steppers.ordered import clear_one, push
from runtime.steppers.pending import greater
from runtime.steppers.register_ops import BAD, EMPTY, apply, holds
from runtime.steppers.register_runs import NEXT_BEST, Run, same
from runtime.steppers.run_table import (
    FREE,
    N_USED,
    bucket_of,
    found_so,
    hashed,
    let_out,
    place,
    release,
    sought,
)


@kernel
def found(entries, q, pending, k):
    """The entry at place q with the registers of pending k, or NOBODY."""
    size = len(entries.table)
    slot = hashed(q, np.int64(0), pending.registers, k, size)
    while entries.table[slot] != NOBODY:
        e = entries.table[slot]
        if e >= 0 and entries.at[e] == q and same(entries.registers, e, pending.registers, k):
            return e
        slot = (slot + 1) & (size - 1)
    return NOBODY


@kernel
def settle(arena, automaton, entries, pending, k, q, run, apart):
    """Let runs wait at place q with the registers of pending number k."""
    counts, node, start = entries.counts, run.node, run.start
    # Where something contiguous can follow it matters which event was the last.
    e = NOBODY if automaton.near[q] else found(entries, q, pending, k)
    if e != NOBODY:
        if apart == NEXT_BEST:
            entries.node[e] = greater(arena, node, entries.node[e])
        elif entries.start[e] > start:
            entries.node[e] = link(arena, entries.node[e], node)
        else:
            entries.node[e] = link(arena, node, entries.node[e])
            entries.start[e] = start
        entries.last[e] = max(entries.last[e], run.last)
        return
    e = counts[FREE]
    counts[FREE] = entries.next[e]
    counts[N_USED] += 1
    for r in range(pending.registers.shape[1]):
        entries.registers[e, r] = pending.registers[k, r]
    entries.node[e], entries.start[e], entries.last[e] = node, start, run.last
    entries.at[e] = q
    entries.next[e], entries.previous[e] = entries.head[q], NOBODY
    if entries.head[q] != NOBODY:
        entries.previous[entries.head[q]] = e
    entries.head[q] = e
    place(entries, e)
    if len(entries.leading.start) > 0:
        joins(entries.leading, pending.registers[k, -1], 1)


@kernel
def wait(space, automaton, runs, k, node, event, apart):
    """Let pending number k, now a node, wait for what follows it."""
    pending = runs.pending
    q = pending.at[k]
    x = automaton.ordered_of[q]
    if x != NOBODY:
        first, second = automaton.sorted_by[q, 0], automaton.sorted_by[q, 1]
        values = pending.registers[k, first], pending.registers[k, max(second, first)]
        if values[0] > BAD and values[1] > BAD:
            push(space.arena, runs.ordered, x, values, node, event.clock, space.bounds)
            return
    run = Run(node, pending.start[k], event.position)
    settle(space.arena, automaton, runs.entries, pending, k, q, run, apart)


@kernel
def stop(space, automaton, runs, n, edge, to, event, apart):
    """An event is what must not happen: the runs of the edge go on at place `to`, or end. Row n of pending is used.

    By the index: the entries with this event's value, then those that hold none.
    """
    entries, ordered, pending, values = runs.entries, runs.ordered, runs.pending, event.values
    p = automaton.source[edge]
    if automaton.ordered_of[p] != NOBODY:
        clear_one(ordered, automaton.ordered_of[p])
    indexed = automaton.wanted[edge, 0] != NOBODY
    code = sought(automaton, edge, values) if indexed else EMPTY
    empty = code == EMPTY
    e = entries.bucket[bucket_of(entries, p, code)] if indexed else entries.head[p]
    while True:
        if e == NOBODY and not empty:
            empty = True
            e = entries.bucket[bucket_of(entries, p, EMPTY)]
        if e == NOBODY:
            return
        following = entries.chain_next[e] if indexed else entries.next[e]
        if indexed and not found_so(entries, e, p, automaton, edge, values, empty):
            e = following
            continue
        if not inside(entries.start[e], event.clock, space.bounds):
            if p == automaton.special[LATE]:
                let_out(entries, space.roots, e)
            release(entries, e)
            e = following
            continue
        for r in range(pending.registers.shape[1]):
            pending.registers[n, r] = entries.registers[e, r]
        if apply(automaton, edge, values, pending.registers, n):
            if to == p and same(pending.registers, n, entries.registers, e):
                e = following
                continue
            run = Run(np.int64(entries.node[e]), entries.start[e], entries.last[e])
            release(entries, e)
            if to != NOBODY:
                settle(space.arena, automaton, entries, pending, n, to, run, apart)
        e = following


@inlined
def stop_all(space, automaton, runs, n, event, apart):
    """What must not happen happens: the same for all that an event is."""
    for v in range(len(automaton.veto_guard)):
        if holds(event.values, automaton.veto_guard[v]):
            stop(space, automaton, runs, n, automaton.edge_of[-1] + v, automaton.veto_to[v], event, apart)


@inlined
def stands(automaton, happened, pending, k):
    """Is there nothing inside the window that must not come before what the runs of pending number k end?"""
    since, begun = automaton.special[SINCE], automaton.special[BEGUN]
    last = pending.registers[k, since] if since != NOBODY else EMPTY  # where an ordered index has asked, it is empty
    if last != EMPTY and last >= window_begin(happened):
        return False
    return begun == NOBODY or not is_prevented(
        automaton.early, happened, pending.registers, k, pending.registers[k, begun]
    )


@inlined
def to_late(automaton, pending, k, n):
    """Row n of pending as what pending number k, a match, is at the late place: what no veto asks for is forgotten."""
    for r in range(pending.registers.shape[1]):
        pending.registers[n, r] = pending.registers[k, r]
    edge = automaton.late_edge[pending.at[k]]
    for o in range(automaton.op_of[edge], automaton.op_of[edge + 1]):
        pending.registers[n, automaton.op_register[o]] = EMPTY
    pending.at[n], pending.start[n] = automaton.special[LATE], pending.start[k]
