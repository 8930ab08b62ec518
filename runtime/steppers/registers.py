"""Runs that compare events, as a kernel: position automata with registers ([CHAIN] Sections 4 to 6, by value).

A run is at a position of the pattern and holds in registers what it still has to compare: a value, the greatest, the
least. Runs at one position with equal registers are one *entry*, with one node of the compact set, whatever the number
of partial matches. An event is compared with the entries at the positions before those that accept it, so the cost is
by the bindings that wait in the window, about a hundred million a second; or, where an edge asks for equality, only
with those that have its value, which an index finds ([CHAIN] Algorithm 2): a constant cost per event. Where all that
follows a position asks `<`, `>`, `<>` and the like of one register and forgets it, the entries lie in an ordered index
(runtime.steppers.ordered): log² of their number per event.

Under SKIP TILL NEXT MATCH (`greedy`) a run that takes an event leaves the position where it was. CONSUME BY drops all
runs when a match ends. For AFTER MATCH SKIP every start has runs of its own (`apart`): the last register holds where a
run began, and of two that are one entry only the NXT-greater goes on, since all that can follow is the same.

Where something must not happen after the match, too, every start has its own runs, and a match that ends waits at the
*late* place: what must not happen ends it there, its window lets it out (when that is looked at, or the key ends). What
must not happen before a match (runtime.steppers.happened) is one more register, when it has happened last, and a match
ends only if that has left the window; where it is compared with later events, the register says when the run began.

The automaton must be unambiguous: from a position, or the beginning, no two next positions bear the same label. Then
every match is found on one way, and each is listed once without any subset construction.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from runtime.arrays import AnyArray
from runtime.chain_cea import BEGUN, EVERY, FROM_START, LATE, NOBODY, ONLY_NEAR, SINCE, WINDOW, Early
from runtime.compact_set.picking import NO_COPIES, NXT, compared
from runtime.compact_set.tecs import BOTTOM, extend, inside, link
from runtime.jit import inlined, kernel
from runtime.program import NULL_CODE
from runtime.steppers.events import Compared, Values
from runtime.steppers.happened import (
    Happened,
    expire,
    forget_happened,
    is_full,
    is_prevented,
    note,
    prevented_since,
    window_begin,
)
from runtime.steppers.leading import TAIL, begins, is_skipped, joins, lead, matched
from runtime.steppers.ordered import Ordered, clear, clear_one, lacks_room, passing, push, room
from runtime.steppers.register_ops import BAD, EMPTY, apply, holds, term_of
from runtime.steppers.relation_ops import Relations
from runtime.steppers.run_table import (
    FREE,
    KEY,
    LAST_POSITION,
    N_FILLED,
    N_ROOTS,
    N_TAKEN,
    N_USED,
    SERIAL,
    Entries,
    bucket_of,
    end_key,
    forget_all,
    found_so,
    hashed,
    let_out,
    place,
    release,
    sought,
)

DONE, NEEDS_NODES, NEEDS_ROOTS, NEEDS_ENTRIES, NEEDS_PENDING, NEEDS_ORDERED, NEEDS_HAPPENED, NEEDS_RECORDS = range(8)
# What becomes of two runs of one entry where every start has its own: both go on, or the NXT-greater one.
TOGETHER, NEXT_BEST, BOTH_STAY = range(3)


class Pending(NamedTuple):
    """What the event being read leads to, before it takes effect."""

    registers: AnyArray
    at: AnyArray
    child: AnyArray
    start: AnyArray
    table: AnyArray  # int32[power of two] …
    stamp: AnyArray  # … valid where this is the serial number of the event


class Automaton(NamedTuple):
    """The arrays of runtime.chain_cea.Registers, and of its relations."""

    guard: AnyArray
    label: AnyArray
    last: AnyArray
    goes_on: AnyArray
    near: AnyArray
    edge_of: AnyArray
    source: AnyArray
    contiguous: AnyArray
    wanted: AnyArray
    ordered_of: AnyArray
    sorted_by: AnyArray
    range_kind: AnyArray
    range_term: AnyArray
    op_of: AnyArray
    op_kind: AnyArray
    op_register: AnyArray
    op_term: AnyArray
    relation_operand: AnyArray
    veto_guard: AnyArray
    veto_to: AnyArray
    late_edge: AnyArray
    special: AnyArray  # the late place, and the registers for what must not come before, or NOBODY
    early: Early
    relations: Relations
    words: int  # of a symbol, before its terms


class Runs(NamedTuple):
    """All that is remembered of the stream: runs that wait, some of them in order; what must not come before; and what
    the event being read leads to."""

    entries: Entries
    ordered: Ordered
    happened: Happened
    pending: Pending


class Options(NamedTuple):
    """`greedy`: SKIP TILL NEXT MATCH; `consume`: a match that ends drops all runs; `apart`: NEXT_BEST (all events of
    one key, and roots know their beginnings), …"""

    greedy: bool
    consume: bool
    apart: int


class Run(NamedTuple):
    """Runs that wait: their node, latest beginning and last event's position."""

    node: Any  # int64
    start: Any
    last: Any


@inlined
def same(a, i, b, j):
    equal = True
    for r in range(a.shape[1]):
        equal = equal and a[i, r] == b[j, r]
    return equal


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
        return gather(arena, pending, n, q, event.serial, np.int64(BOTTOM), event.clock, apart)
    return n


@kernel
def after_ordered(space, automaton, runs, n, q, edge, event, apart):
    """Pending ones after the runs of an ordered index that an event goes on with; -NEEDS_PENDING or -NEEDS_NODES."""
    arena, ordered, pending, values = space.arena, runs.ordered, runs.pending, event.values
    if 2 * (n + 1) >= len(pending.at):
        return -NEEDS_PENDING
    if arena.size[0] + room(ordered, 1) + 2 >= len(arena.row):
        return -NEEDS_NODES
    kind = automaton.range_kind[edge]
    term = automaton.range_term[edge]
    value = window_begin(runs.happened) if term == WINDOW else term_of(values, max(term, 0))
    for r in range(pending.registers.shape[1]):
        pending.registers[n, r] = EMPTY
    known = kind == EVERY or value != NULL_CODE
    if known and apply(automaton, edge, values, pending.registers, n):
        x = automaton.ordered_of[automaton.source[edge]]
        node = passing(arena, ordered, x, kind, value, event.clock, space.bounds)
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
    if x != NOBODY and pending.registers[k, automaton.sorted_by[q]] > BAD:
        value = pending.registers[k, automaton.sorted_by[q]]
        push(space.arena, runs.ordered, x, value, node, event.clock, space.bounds)
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


@kernel
def step_kernel(space, automaton, runs, begin, feed, options):
    """Read events from `begin` on. Returns (why it stopped, the event to go on with); an event that lacked room has had
    no effect. feed: runtime.steppers.stepper.Feed, with symbols in two dimensions."""
    arena, roots, symbols, positions, clocks = space.arena, space.roots, feed.symbols, feed.positions, feed.clocks
    keys, mute, apart, words = feed.keys, feed.mute, options.apart, automaton.words
    entries, ordered, happened, pending = runs.entries, runs.ordered, runs.happened, runs.pending
    leading, skips = entries.leading, len(entries.leading.start) > 0
    counts, n_edges, late = entries.counts, automaton.edge_of[-1], automaton.special[LATE]
    for i in range(begin, len(clocks)):
        if len(keys) > 0 and keys[i] != counts[KEY]:
            if late != NOBODY and counts[N_ROOTS] + counts[N_USED] > len(roots.node):
                return NEEDS_ROOTS, i
            end_key(automaton, entries, roots)
            forget_all(entries)
            clear(ordered)
            forget_happened(happened)
            counts[KEY] = keys[i]
        now, position = clocks[i], positions[i]
        counts[LAST_POSITION] = position
        if symbols[i, 0] == 0 and words == 1:
            continue
        if is_full(happened):
            return NEEDS_HAPPENED, i
        expire(happened, now, space.bounds)
        counts[SERIAL] += 1
        counts[N_TAKEN] = 0
        values = Values(symbols, i, words)
        event, n = Compared(values, now, position, counts[SERIAL]), np.int64(0)
        for q in range(len(automaton.guard)):
            if not holds(values, automaton.guard[q]):
                continue
            for edge in range(automaton.edge_of[q], automaton.edge_of[q + 1]):
                if automaton.source[edge] == FROM_START:
                    n = begun(arena, automaton, runs, n, q, edge, event, apart)
                    if n < 0:
                        return -n, i
                    continue
                if automaton.ordered_of[automaton.source[edge]] != NOBODY:
                    n = after_ordered(space, automaton, runs, n, q, edge, event, apart)
                    if n < 0:
                        return -n, i
                n = after_entries(space, automaton, runs, n, q, edge, event, options)
                if n < 0:
                    return -n, i
        stops, moved = False, np.int64(0)
        for v in range(len(automaton.veto_guard)):
            if holds(values, automaton.veto_guard[v]):
                stops = True
                if automaton.veto_to[v] != NOBODY:
                    moved += counts[N_USED]
        if n == 0 and not stops:
            note(automaton, happened, event, pending.registers)
            continue
        # Where a match waits, it may also go on.
        made, outs = (2 * n, counts[N_USED]) if late != NOBODY else (n, n)
        if 2 * (n + 1) >= len(pending.at):
            return NEEDS_PENDING, i
        if arena.size[0] + n + made + moved + 2 >= len(arena.row):
            return NEEDS_NODES, i
        if counts[N_ROOTS] + outs > len(roots.node):
            return NEEDS_ROOTS, i
        if counts[N_USED] + made > len(entries.node) or 2 * (counts[N_FILLED] + made + moved) > len(entries.table):
            return NEEDS_ENTRIES, i
        if lacks_room(ordered, n):
            return NEEDS_ORDERED, i
        if skips and leading.counts[TAIL] == len(leading.start):
            return NEEDS_RECORDS, i
        if skips:
            begins(leading, position, now)
        for k in range(counts[N_TAKEN]):
            release(entries, entries.taken[k])
        if stops:
            for v in range(len(automaton.veto_guard)):
                if holds(values, automaton.veto_guard[v]):
                    stop(space, automaton, runs, n, n_edges + v, automaton.veto_to[v], event, apart)
        ended = False
        for k in range(n):
            q = pending.at[k]
            if skips and is_skipped(leading, pending.registers[k, -1]):
                continue
            node = extend(arena, feed.rows[i], automaton.label[q], pending.child[k], pending.start[k])
            ends = automaton.last[q] and stands(automaton, happened, pending, k)
            ended = ended or ends
            ends = ends and (len(mute) == 0 or not mute[i])
            if ends and late == NOBODY:
                root = counts[N_ROOTS]
                roots.node[root], roots.clock[root] = node, now
                roots.key[root], roots.end[root] = counts[KEY], position
                roots.begin[root] = pending.registers[k, -1] if apart == NEXT_BEST else 0
                counts[N_ROOTS] = root + 1
                if skips:
                    matched(leading, pending.registers[k, -1], position)
            # The run, if it goes on, and the match, if it waits: one call, compiled once, and fastest in this form.
            for row in (k, n):
                if row == k and automaton.goes_on[q]:
                    waits = True
                else:
                    waits = row == n and ends and late != NOBODY
                    if waits:
                        to_late(automaton, pending, k, n)
                if waits:
                    wait(space, automaton, runs, row, node, event, apart)
        if skips:
            lead(leading, now, space.bounds)
        if options.consume and ended:
            forget_all(entries)
            clear(ordered)
        note(automaton, happened, event, pending.registers)
    return DONE, len(clocks)


def new_pending(capacity: int, n_registers: int, clock: np.dtype) -> Pending:
    """Half of it is used at the most, so that the table has gaps."""
    return Pending(
        registers=np.zeros((capacity, max(1, n_registers)), np.int64),
        at=np.zeros(capacity, np.int32),
        child=np.zeros(capacity, np.int32),
        start=np.zeros(capacity, clock),
        table=np.zeros(2 * capacity, np.int32),
        stamp=np.full(2 * capacity, -1, np.int64),
    )
