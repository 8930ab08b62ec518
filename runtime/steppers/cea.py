"""One pass over a deterministic CEA: the update phase of [CEL] Algorithm 2, in the form of [CORE] Algorithm 1.

A live entry is a deterministic state, its clocks if it has any (runtime.steppers.clocks) and a union list; entries of
equal state and clocks are one. Events that no live entry reacts to cost one comparison, until the next window closes.
Otherwise the live entries are visited by decreasing max-start: a marking move makes one output node over the merged
list, a skip hands the list on as it is. So an event costs O(entries): one for each live state, whatever the number of
partial matches; where there are clocks, one for each live beginning (of a window inside the pattern, of a rival, of a
match that waits for an absence).

`clocks` is None where no state has any, and then numba compiles these functions without what asks for them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from runtime.arrays import AnyArray
from runtime.compact_set.tecs import BOTTOM, empty, extend, inside
from runtime.jit import inlined, kernel
from runtime.steppers.clocks import age, begin_of, has_clocks, hash_of_clocks, note_oldest, nothing_closes, set_clocks
from runtime.steppers.events import Event
from runtime.steppers.leading import TAIL, forget_leading
from runtime.steppers.live import (
    FIRST,
    KEY,
    LAST_POSITION,
    N_LIVE,
    N_ROOTS,
    SERIAL,
    SIDE,
    START,
    WANTED,
    WANTED_STATE,
    begin_stream,
)
from runtime.steppers.skipped import drop_skipped
from runtime.steppers.union_lists import LIST_LENGTH, begin_list, copy_list, insert, merge, prune

# Results of step_kernel.
DONE, NEEDS_ROW, NEEDS_NODES, NEEDS_ROOTS, NEEDS_ENTRIES, NEEDS_STATE, CONSUMED, NEEDS_RECORDS = range(8)


class Table(NamedTuple):
    """The rows of the determinized automaton that are known: row_of[state, class] or -1.

    A row's marking moves are edges [first[row], last[row]), and edge last[row] is its skip. `quiet[row]`: it only skips
    to its own state; `report[row]`: a match, ended earlier, becomes known.
    """

    row_of: AnyArray  # int32[states, classes]
    first: AnyArray  # int32[rows]
    last: AnyArray
    quiet: AnyArray  # bool[rows]
    report: AnyArray
    label: AnyArray  # int32[edges]
    target: AnyArray  # int32[edges], or -1
    accept: AnyArray  # bool[edges]
    sources: AnyArray  # int32[edges, clocks]: which of the clocks before it are the target's, or clocks.FRESH


class TableOptions(NamedTuple):
    """`consume`: stop (CONSUMED) after an event that ends matches; its entries are dropped. `log`: moves that end no
    match are roots, too, that end at -1. `skips`: runs end whose start AFTER MATCH SKIP PAST LAST ROW is sure to skip
    (runtime.steppers.leading). All ask for clocks."""

    consume: bool
    log: bool
    skips: bool


class Origin(NamedTuple):
    """Where an entry of the new side comes from: entry k of the old one, over an edge."""

    side: Any
    k: Any
    sources: AnyArray  # int32[clocks]: Table.sources


@inlined
def find_or_add(live, clocks, origin, event, state, n_new):
    """The entry of a state, and of the clocks of a move, on the new side; n_new itself means that it was not there."""
    serial = live.counts[SERIAL]
    new = 1 - origin.side
    place = np.int64(state)
    if clocks is not None:
        place = hash_of_clocks(clocks, origin, event, state) & (len(live.slot) - 1)
    while live.stamp[place] == serial:
        k = np.int64(live.slot[place])
        if clocks is None:
            return k
        if live.state[new, k] == state and has_clocks(clocks, origin, event, state, k):
            return k
        place = (place + 1) & (len(live.slot) - 1)
    live.stamp[place] = serial
    live.slot[place] = n_new
    live.state[new, n_new] = state
    if clocks is not None:
        set_clocks(clocks, origin, event, state, n_new)
    return n_new


@inlined
def lacks(arena, table, live, roots, klass):
    """What is missing before an event of this class can be read: a row, nodes, roots, entries, or (DONE) nothing."""
    counts = live.counts
    side, moves, nodes = counts[SIDE], np.int64(0), np.int64(0)
    for k in range(counts[FIRST], counts[N_LIVE]):
        state = live.state[side, k]
        row = table.row_of[state, klass]
        if row < 0:
            counts[WANTED_STATE], counts[WANTED] = state, klass
            return NEEDS_ROW
        own = np.int64(table.last[row] - table.first[row]) + 1
        moves += own
        nodes += 2 * LIST_LENGTH + 5 * (own + 1)
    if arena.size[0] + nodes > len(arena.row):
        return NEEDS_NODES
    if counts[N_ROOTS] + moves > len(roots.node):
        return NEEDS_ROOTS
    if moves >= live.state.shape[1]:
        counts[WANTED] = moves + 1
        return NEEDS_ENTRIES
    return DONE


@inlined
def is_quiet(table, live, klass):
    """Would an event of this class change nothing, windows apart? False where that is not known yet."""
    counts = live.counts
    side = counts[SIDE]
    for k in range(counts[FIRST], counts[N_LIVE]):
        row = table.row_of[live.state[side, k], klass]
        if row < 0 or not table.quiet[row]:
            return False
    return True


@inlined
def settled(table, live, clocks):
    """After entries have changed: is class 0 quiet? And until when do no windows close?"""
    if clocks is not None:
        note_oldest(live, clocks)
    return is_quiet(table, live, 0)


@inlined
def add_root(roots, clocks, n_roots, node, clock, key, begin, end):
    """Remember the matches of a node for the enumeration; where there are clocks, also where they begin and end."""
    roots.node[n_roots] = node
    roots.clock[n_roots] = clock
    roots.key[n_roots] = key
    if clocks is not None:
        roots.begin[n_roots] = begin
        roots.end[n_roots] = end
    return n_roots + 1


@inlined
def add_node(arena, live, clocks, origin, event, state, n_new, node):
    """ADD of the algorithm for one output node. Returns the number of entries on the new side."""
    k = find_or_add(live, clocks, origin, event, state, n_new)
    if k == n_new:
        begin_list(live, 1 - origin.side, k, node)
        return n_new + 1
    insert(arena, live, 1 - origin.side, k, node)
    return n_new


@inlined
def add_list(arena, live, clocks, origin, event, state, n_new, merged):
    """ADD for a list that is skipped on: moved as it is to a new entry, else inserted, `merged` into one node (-1: not
    done yet)."""
    k = find_or_add(live, clocks, origin, event, state, n_new)
    if k == n_new:
        copy_list(live, 1 - origin.side, k, origin.side, origin.k)
        return n_new + 1
    if merged < 0:
        merged = np.int64(merge(arena, live, origin.side, origin.k))
    insert(arena, live, 1 - origin.side, k, merged)
    return n_new


@inlined
def fire(arena, table, live, clocks, roots, klass, event, bounds):
    """One event: all moves of all entries."""
    counts, now = live.counts, event.clock
    old = counts[SIDE]
    counts[SERIAL] += 1
    first, n_new, n_roots = START + 1, np.int64(START + 1), counts[N_ROOTS]
    for k in range(counts[FIRST], counts[N_LIVE]):
        row = table.row_of[live.state[old, k], klass]
        skip, begin, merged, start = table.last[row], event.position, np.int64(BOTTOM), now
        if k == START:
            after = table.target[skip]
            if after >= 0:
                first = START
                live.state[1 - old, START] = after
                if clocks is not None:
                    set_clocks(clocks, Origin(old, k, table.sources[skip]), event, after, START)
            if not inside(now, now, bounds):  # a NaN clock begins nothing
                continue
        else:
            merged = np.int64(-1)
            if clocks is not None:
                if clocks.of.begin[live.state[old, k]] >= 0:
                    begin = begin_of(live, clocks, old, k)
                if table.report[row]:
                    merged = np.int64(merge(arena, live, old, k))
                    start = arena.start[merged]
                    n_roots = add_root(roots, clocks, n_roots, merged, start, event.key, begin, event.position)
            if prune(arena, live, old, k, now, bounds) == 0:
                continue
        for e in range(table.first[row], skip):
            if merged < 0:
                merged = np.int64(merge(arena, live, old, k))
                start = arena.start[merged]
            node = extend(arena, event.row, table.label[e], merged, start)
            if table.accept[e] and event.report:
                n_roots = add_root(roots, clocks, n_roots, node, now, event.key, begin, event.position)
            elif clocks is not None and event.log:
                n_roots = add_root(roots, clocks, n_roots, node, now, event.key, begin, np.int64(-1))
            target = table.target[e]
            if target >= 0:
                n_new = add_node(arena, live, clocks, Origin(old, k, table.sources[e]), event, target, n_new, node)
        target = table.target[skip]
        if k != START and target >= 0:
            n_new = add_list(arena, live, clocks, Origin(old, k, table.sources[skip]), event, target, n_new, merged)
    counts[FIRST], counts[N_LIVE], counts[N_ROOTS], counts[SIDE] = first, n_new, n_roots, 1 - old


@inlined
def drop_some(live, clocks, leading, roots, n_roots, event, options):
    """Runs end after an event that ends matches, by consumption; and those that are skipped. False: it is not known
    whether the run that has not begun has something to forget."""
    counts = live.counts
    if options.skips:
        drop_skipped(live, clocks, leading, roots, n_roots, event.position, event.clock)
    if options.consume and counts[N_ROOTS] > n_roots:
        counts[N_LIVE] = START + 1
        return counts[FIRST] != START or clocks.of.forgetful[live.state[counts[SIDE], START]]
    return True


@kernel
def step_kernel(space, table, live, clocks, leading, begin, feed, options):
    """Read events begin … until something is missing. Returns (result, event at which to go on).

    feed: runtime.steppers.stepper.Feed, of which `symbols` are classes, int32[n]; class 0 satisfies no guard. A gap in
    the positions stands for events of class 0. Without clocks `leading` and `options` are None, too, and `times` is not
    looked at. O(entries) per event.
    """
    arena, roots, bounds, counts = space.arena, space.roots, space.bounds, live.counts
    classes, positions, keys, mute = feed.symbols, feed.positions, feed.keys, feed.mute
    keyed = len(keys) > 0
    quiet = settled(table, live, clocks)
    i = begin
    while i < len(classes):
        klass = classes[i]
        position = positions[i]
        if keyed and keys[i] != counts[KEY]:
            begin_stream(live, keys[i])
            if clocks is not None:
                forget_leading(leading)
            if counts[N_ROOTS] == 0:
                empty(arena)
            quiet = settled(table, live, clocks)
        if clocks is not None and not nothing_closes(clocks, feed.times[i], position):
            if not age(live, clocks, feed.times[i], position):
                return NEEDS_STATE, i
            quiet = settled(table, live, clocks)
        if quiet and klass == 0:
            counts[LAST_POSITION] = position
            i += 1
            continue
        # Events of class 0 that came in between take effect first; then this event is looked at again.
        gap = not quiet and position != counts[LAST_POSITION] + 1
        if not gap and is_quiet(table, live, klass):
            counts[LAST_POSITION] = position
            i += 1
            continue
        step = np.int32(0) if gap else klass
        result = lacks(arena, table, live, roots, step)
        if result != DONE:
            return result, i
        if clocks is not None and options.skips and leading.counts[TAIL] == len(leading.start):
            return NEEDS_RECORDS, i
        report = not gap and (len(mute) == 0 or not mute[i])
        n_roots = counts[N_ROOTS]
        at = position - 1 if gap else position
        log = clocks is not None and options.log
        event = Event(feed.rows[i], feed.clocks[i], feed.times[i], at, counts[KEY], report, log)
        fire(arena, table, live, clocks, roots, step, event, bounds)
        counts[LAST_POSITION] = at
        if not gap:
            i += 1
        if clocks is not None and not drop_some(live, clocks, leading, roots, n_roots, event, options):
            return CONSUMED, i
        quiet = settled(table, live, clocks)
    return DONE, len(classes)
