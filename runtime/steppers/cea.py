"""One pass over a deterministic CEA: the update phase of [CEL] Algorithm 2, in the form of [CORE] Algorithm 1.

Every live state q holds a *union list* T[q]: nodes of the compact set by decreasing max-start, the first of them no
union. Events that no live state reacts to cost one comparison. Otherwise the live states are visited by decreasing
max-start: a marking move makes one output node over the merged list, a skip hands the list on as it is. Because
starts are met in order, a list never holds more than one entry per live state (entries of equal start are united), so
an event costs O(states), whatever the number of partial matches; a window drops the tail of a list.

The run that has not begun is kept apart, with ⊥ as its only node. Of a flat automaton it is subset 0 at every event;
what remembers something before the match begins (START, NXT, …) moves on, or dies.

The helpers are inlined by force, since a call would count references for every array of its tuples (see runtime.jit).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from runtime.arrays import AnyArray
from runtime.compact_set.tecs import BOTTOM, extend, inside, link, union
from runtime.jit import inlined, kernel
from runtime.steppers.events import Event

LIST_LENGTH = 16  # entries of a union list; a longer one is united at its end, which only costs delay

# Results of step_kernel.
DONE, NEEDS_ROW, NEEDS_NODES, NEEDS_ROOTS = 0, 1, 2, 3

# Places in Live.counts.
N_LIVE, LAST_POSITION, KEY, SERIAL, SIDE, WANTED_STATE, WANTED_CLASS, N_ROOTS, START_STATE = range(9)


class Table(NamedTuple):
    """The rows of the determinized automaton that are known: row_of[state, class] or -1.

    A row's marking moves are edges [first[row], last[row]); `quiet[row]` says that the row only skips to its own
    state.
    """

    row_of: AnyArray  # int32[states, classes]
    first: AnyArray  # int32[rows]
    last: AnyArray
    skip: AnyArray
    quiet: AnyArray  # bool[rows]
    label: AnyArray  # int32[edges]
    target: AnyArray
    accept: AnyArray  # bool[edges]


class Live(NamedTuple):
    """T of the algorithm, for the key being read; two sides, the current one is counts[SIDE]."""

    state: AnyArray  # int32[2, states]
    length: AnyArray  # int32[2, states]
    nodes: AnyArray  # int32[2, states, LIST_LENGTH]
    slot: AnyArray  # int32[states]: where a state stands on the new side …
    stamp: AnyArray  # int64[states]: … if this is the serial number of the event
    counts: AnyArray  # int64[9]


def new_live(n_states: int) -> Live:
    live = Live(
        state=np.zeros((2, n_states), np.int32),
        length=np.zeros((2, n_states), np.int32),
        nodes=np.zeros((2, n_states, LIST_LENGTH), np.int32),
        slot=np.zeros(n_states, np.int32),
        stamp=np.zeros(n_states, np.int64),
        counts=np.zeros(9, np.int64),
    )
    live.counts[LAST_POSITION] = -1
    return live


def grown_live(live: Live, n_states: int) -> Live:
    bigger = new_live(n_states)
    old = live.state.shape[1]
    bigger.state[:, :old] = live.state
    bigger.length[:, :old] = live.length
    bigger.nodes[:, :old] = live.nodes
    bigger.slot[:old] = live.slot
    bigger.stamp[:old] = live.stamp
    bigger.counts[:] = live.counts
    return bigger


@inlined
def merge(arena, live, side, k):
    """One node for a whole union list; safe, since the list's first entry is no union."""
    length = live.length[side, k]
    node = live.nodes[side, k, length - 1]
    for e in range(length - 2, -1, -1):
        node = link(arena, live.nodes[side, k, e], node)
    return node


@inlined
def insert(arena, live, side, k, node):
    """Put a safe node, whose start is not after the list's first, into a union list at its place."""
    length = live.length[side, k]
    start = arena.start[node]
    at = 1
    while at < length and arena.start[live.nodes[side, k, at]] > start:
        at += 1
    if at < length and arena.start[live.nodes[side, k, at]] == start:
        live.nodes[side, k, at] = union(arena, live.nodes[side, k, at], node)
        return
    if length == LIST_LENGTH:
        tail = link(arena, live.nodes[side, k, length - 2], live.nodes[side, k, length - 1])
        length -= 1
        live.nodes[side, k, length - 1] = tail
        if at >= length:
            if arena.start[tail] >= start:
                live.nodes[side, k, length - 1] = link(arena, tail, node)
            else:
                live.nodes[side, k, length - 1] = link(arena, node, tail)
            live.length[side, k] = length
            return
    for e in range(length, at, -1):
        live.nodes[side, k, e] = live.nodes[side, k, e - 1]
    live.nodes[side, k, at] = node
    live.length[side, k] = length + 1


@inlined
def find_or_add(live, side, n_new, state):
    """The slot of a state on the new side; n_new itself means that it was not there."""
    if live.stamp[state] == live.counts[SERIAL]:
        return live.slot[state]
    live.stamp[state] = live.counts[SERIAL]
    live.slot[state] = n_new
    live.state[side, n_new] = state
    live.length[side, n_new] = 0
    return n_new


@inlined
def add_node(arena, live, side, n_new, state, node):
    """ADD of the algorithm for one output node. Returns the number of states on the new side."""
    k = find_or_add(live, side, n_new, state)
    if live.length[side, k] == 0:
        live.nodes[side, k, 0] = node
        live.length[side, k] = 1
        return n_new + 1
    insert(arena, live, side, k, node)
    return n_new


@inlined
def add_list(arena, live, side, n_new, state, old_side, old_k, merged):
    """ADD for a list that is skipped on: moved as it is to a new state, else inserted, `merged` into one node (-1: not
    done yet)."""
    k = find_or_add(live, side, n_new, state)
    if live.length[side, k] == 0:
        length = live.length[old_side, old_k]
        for e in range(length):
            live.nodes[side, k, e] = live.nodes[old_side, old_k, e]
        live.length[side, k] = length
        return n_new + 1
    if merged < 0:
        merged = np.int64(merge(arena, live, old_side, old_k))
    insert(arena, live, side, k, merged)
    return n_new


@kernel
def prune(arena, live, side, k, now, bounds):
    """Drop the entries of a list that have left the window. Returns what is left of it."""
    length = live.length[side, k]
    while length > 0 and not inside(arena.start[live.nodes[side, k, length - 1]], now, bounds):
        length -= 1
    live.length[side, k] = length
    return length


@inlined
def lacks(arena, table, live, roots, klass):
    """What is missing before an event of this class can be read: a row, nodes, roots, or (DONE) nothing."""
    counts = live.counts
    moves = np.int64(0)
    if counts[START_STATE] >= 0:
        row = table.row_of[counts[START_STATE], klass]
        if row < 0:
            counts[WANTED_STATE] = counts[START_STATE]
            counts[WANTED_CLASS] = klass
            return NEEDS_ROW
        moves += np.int64(table.last[row] - table.first[row])
    nodes = 5 * moves
    for k in range(counts[N_LIVE]):
        row = table.row_of[live.state[counts[SIDE], k], klass]
        if row < 0:
            counts[WANTED_STATE] = live.state[counts[SIDE], k]
            counts[WANTED_CLASS] = klass
            return NEEDS_ROW
        own = np.int64(table.last[row] - table.first[row])
        moves += own
        nodes += 2 * LIST_LENGTH + 5 * (own + 1)
    if arena.size[0] + nodes > len(arena.row):
        return NEEDS_NODES
    if counts[N_ROOTS] + moves > len(roots.node):
        return NEEDS_ROOTS
    return DONE


@inlined
def is_quiet(table, live, klass):
    """Would an event of this class change nothing? False where that is not known yet."""
    start = live.counts[START_STATE]
    if start >= 0:
        row = table.row_of[start, klass]
        if row < 0 or not table.quiet[row]:
            return False
    side = live.counts[SIDE]
    for k in range(live.counts[N_LIVE]):
        row = table.row_of[live.state[side, k], klass]
        if row < 0 or not table.quiet[row]:
            return False
    return True


@inlined
def add_root(roots, n_roots, node, now, key):
    """Remember the matches of a node for the enumeration."""
    roots.node[n_roots] = node
    roots.clock[n_roots] = now
    roots.key[n_roots] = key
    return n_roots + 1


@inlined
def fire(arena, table, live, roots, klass, event, bounds):
    """One event: all moves of all live states and of the start."""
    now = event.clock
    old = live.counts[SIDE]
    new = 1 - old
    live.counts[SERIAL] += 1
    n_new = 0
    n_roots = live.counts[N_ROOTS]
    for k in range(-1, live.counts[N_LIVE]):
        # k = -1 is the start, with ⊥; a NaN clock is inside no window, and begins nothing.
        if k < 0:
            if live.counts[START_STATE] < 0:
                continue
            row, merged, start = table.row_of[live.counts[START_STATE], klass], np.int64(BOTTOM), now
            live.counts[START_STATE] = table.skip[row]
            if not inside(now, now, bounds):
                continue
        elif prune(arena, live, old, k, now, bounds) == 0:
            continue
        else:
            row, merged, start = table.row_of[live.state[old, k], klass], np.int64(-1), now
        for e in range(table.first[row], table.last[row]):
            if merged < 0:
                merged = np.int64(merge(arena, live, old, k))
                start = arena.start[merged]
            node = extend(arena, event.row, table.label[e], merged, start)
            if table.accept[e] and event.report:
                n_roots = add_root(roots, n_roots, node, now, event.key)
            if table.target[e] >= 0:
                n_new = add_node(arena, live, new, n_new, table.target[e], node)
        if k >= 0 and table.skip[row] >= 0:
            n_new = add_list(arena, live, new, n_new, table.skip[row], old, k, merged)
    live.counts[N_ROOTS] = n_roots
    live.counts[N_LIVE] = n_new
    live.counts[SIDE] = new


@kernel
def step_kernel(space, table, live, begin, feed):
    """Read events begin … until something is missing. Returns (result, event at which to go on).

    feed: runtime.steppers.stepper.Feed, of which `symbols` are classes, int32[n]; class 0 satisfies no guard. A gap in
    the positions stands for events of class 0. O(live states) per event.
    """
    counts, classes, positions, keys, mute = live.counts, feed.symbols, feed.positions, feed.keys, feed.mute
    arena, roots, keyed = space.arena, space.roots, len(keys) > 0
    quiet = is_quiet(table, live, 0)
    i = begin
    while i < len(classes):
        klass = classes[i]
        position = positions[i]
        if keyed and keys[i] != counts[KEY]:
            counts[KEY] = keys[i]
            counts[N_LIVE] = 0
            counts[LAST_POSITION] = -1
            counts[START_STATE] = 0
            if counts[N_ROOTS] == 0:
                arena.size[0] = 1
            quiet = is_quiet(table, live, 0)
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
        report = not gap and (len(mute) == 0 or not mute[i])
        clock = feed.clocks[i]
        event = Event(feed.rows[i], clock, clock, position, counts[KEY], report)
        fire(arena, table, live, roots, step, event, space.bounds)
        quiet = is_quiet(table, live, 0)
        counts[LAST_POSITION] = position - 1 if gap else position
        if not gap:
            i += 1
    return DONE, len(classes)
