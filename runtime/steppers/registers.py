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

The automaton must be unambiguous: no two ways through it bear the same labels, or one of them asks what the other
refuses. Then every match is found on one way, and each is listed once without any subset construction.
"""

from __future__ import annotations

import numpy as np

from runtime.chain_cea import FROM_START, LATE, NOBODY
from runtime.compact_set.tecs import extend
from runtime.jit import inlined, kernel
from runtime.steppers.events import Compared, Values
from runtime.steppers.happened import (
    expire,
    forget_happened,
    is_full,
    note,
)
from runtime.steppers.leading import TAIL, begins, is_skipped, lead, matched
from runtime.steppers.ordered import clear, lacks_room
from runtime.steppers.pending import (
    DONE,
    NEEDS_ENTRIES,
    NEEDS_HAPPENED,
    NEEDS_NODES,
    NEEDS_ORDERED,
    NEEDS_PENDING,
    NEEDS_RECORDS,
    NEEDS_ROOTS,
    after_entries,
    after_ordered,
    begun,
)
from runtime.steppers.register_ops import holds
from runtime.steppers.register_runs import NEXT_BEST
from runtime.steppers.run_table import (
    KEY,
    LAST_POSITION,
    N_FILLED,
    N_ROOTS,
    N_TAKEN,
    N_USED,
    SERIAL,
    end_key,
    forget_all,
    release,
)
from runtime.steppers.waiting import stands, stop_all, to_late, wait

NO_END = -1  # of a root that is a run under way


@inlined
def begin_key(automaton, runs, roots, key):
    """Another key of the stream begins: what waited for its window is let out, and all else forgotten."""
    end_key(automaton, runs.entries, roots)
    forget_all(runs.entries)
    clear(runs.ordered)
    forget_happened(runs.happened)
    runs.entries.counts[KEY] = key


@inlined
def led_to(space, automaton, runs, event, options):
    """How many pending ones an event leads to; negative: the room that it lacks."""
    n = np.int64(0)
    for q in range(len(automaton.guard)):
        if not holds(event.values, automaton.guard[q]):
            continue
        for edge in range(automaton.edge_of[q], automaton.edge_of[q + 1]):
            if automaton.source[edge] == FROM_START:
                n = begun(space.arena, automaton, runs, n, q, edge, event, options.apart)
                if n < 0:
                    return n
                continue
            if automaton.ordered_of[automaton.source[edge]] != NOBODY:
                n = after_ordered(space, automaton, runs, n, q, edge, event, options.apart)
                if n < 0:
                    return n
            n = after_entries(space, automaton, runs, n, q, edge, event, options)
            if n < 0:
                return n
    return n


@inlined
def vetoed(automaton, values, n_used):
    """(Is an event something that must not happen? How many runs can it move to another place at the most?)"""
    stops, moved = False, np.int64(0)
    for v in range(len(automaton.veto_guard)):
        if holds(values, automaton.veto_guard[v]):
            stops = True
            if automaton.veto_to[v] != NOBODY:
                moved += n_used
    return stops, moved


@inlined
def lacking(space, automaton, runs, n, moved):
    """What is missing before n pending ones take effect, and `moved` runs move; or DONE."""
    arena, roots, entries, counts = space.arena, space.roots, runs.entries, runs.entries.counts
    # Where a match waits, it may also go on.
    made, outs = (2 * n, counts[N_USED]) if automaton.special[LATE] != NOBODY else (n, n)
    if 2 * (n + 1) >= len(runs.pending.at):
        return NEEDS_PENDING
    if arena.size[0] + n + made + moved + 2 >= len(arena.row):
        return NEEDS_NODES
    if counts[N_ROOTS] + outs > len(roots.node):
        return NEEDS_ROOTS
    if counts[N_USED] + made > len(entries.node) or 2 * (counts[N_FILLED] + made + moved) > len(entries.table):
        return NEEDS_ENTRIES
    if lacks_room(runs.ordered, n):
        return NEEDS_ORDERED
    leading = entries.leading
    if len(leading.start) > 0 and leading.counts[TAIL] == len(leading.start):
        return NEEDS_RECORDS
    return DONE


@inlined
def add_root(roots, runs, k, node, event, apart):
    """The matches of pending number k, which end here; and where it began, where runs are told apart by that."""
    counts, leading = runs.entries.counts, runs.entries.leading
    root = counts[N_ROOTS]
    roots.node[root], roots.clock[root] = node, event.clock
    roots.key[root], roots.end[root] = counts[KEY], event.position
    roots.begin[root] = runs.pending.registers[k, -1] if apart == NEXT_BEST else 0
    counts[N_ROOTS] = root + 1
    if len(leading.start) > 0:
        matched(leading, runs.pending.registers[k, -1], event.position)


@inlined
def take_effect(space, automaton, runs, n, event, row, reports, options):
    """The n pending ones become nodes: roots where matches end (if the event `reports` them), runs where they go on.
    Does a match end?"""
    apart = options.apart
    pending, leading, late, ended = runs.pending, runs.entries.leading, automaton.special[LATE], False
    for k in range(n):
        q = pending.at[k]
        if len(leading.start) > 0 and is_skipped(leading, pending.registers[k, -1]):
            continue
        node = extend(space.arena, row, automaton.label[q], pending.child[k], pending.start[k])
        ends = automaton.last[q] and stands(automaton, runs.happened, pending, k)
        ended = ended or ends
        ends = ends and reports
        if (ends and late == NOBODY) or options.logs:
            add_root(space.roots, runs, k, node, event, apart)
            if not ends:
                space.roots.end[runs.entries.counts[N_ROOTS] - 1] = NO_END
        # The run, if it goes on, and the match, if it waits: one call, compiled once, and fastest in this form.
        for as_what in (k, n):
            if as_what == k and automaton.goes_on[q]:
                waits = True
            else:
                waits = as_what == n and ends and late != NOBODY
                if waits:
                    to_late(automaton, pending, k, n)
            if waits:
                wait(space, automaton, runs, as_what, node, event, apart)
    return ended


@kernel
def step_kernel(space, automaton, runs, begin, feed, options):
    """Read events from `begin` on. Returns (why it stopped, the event to go on with); an event that lacked room has had
    no effect. feed: runtime.steppers.stepper.Feed, with symbols in two dimensions."""
    symbols, positions, clocks, keys, mute = feed.symbols, feed.positions, feed.clocks, feed.keys, feed.mute
    entries, happened, pending, counts = runs.entries, runs.happened, runs.pending, runs.entries.counts
    leading, skips = entries.leading, len(entries.leading.start) > 0
    for i in range(begin, len(clocks)):
        if len(keys) > 0 and keys[i] != counts[KEY]:
            late = automaton.special[LATE] != NOBODY
            if late and counts[N_ROOTS] + counts[N_USED] > len(space.roots.node):
                return NEEDS_ROOTS, i
            begin_key(automaton, runs, space.roots, keys[i])
        counts[LAST_POSITION] = positions[i]
        if symbols[i, 0] == 0 and automaton.words == 1:
            continue
        if is_full(happened):
            return NEEDS_HAPPENED, i
        expire(happened, clocks[i], space.bounds)
        counts[SERIAL] += 1
        counts[N_TAKEN] = 0
        event = Compared(Values(symbols, i, automaton.words), clocks[i], feed.times[i], positions[i], counts[SERIAL])
        n = led_to(space, automaton, runs, event, options)
        if n < 0:
            return -n, i
        stops, moved = vetoed(automaton, event.values, counts[N_USED])
        if n > 0 or stops:
            lacks = lacking(space, automaton, runs, n, moved)
            if lacks != DONE:
                return lacks, i
            if skips:
                begins(leading, event.position, event.clock)
            for k in range(counts[N_TAKEN]):
                release(entries, entries.taken[k])
            if stops:
                stop_all(space, automaton, runs, n, event, options.apart)
            reports = len(mute) == 0 or not mute[i]
            ended = take_effect(space, automaton, runs, n, event, feed.rows[i], reports, options)
            if skips:
                lead(leading, event.clock, space.bounds)
            if options.consume and ended:
                forget_all(entries)
                clear(runs.ordered)
        note(automaton, happened, event, pending.registers)
    return DONE, len(clocks)
