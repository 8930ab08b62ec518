"""Runs that catch up, as a kernel: equality of events that are not neighbours, at a logarithmic cost an event.

`A ; B ; C WHERE A.x = C.x`. What waits has a value, the x of its A. An A or a C concerns one value, and goes to the
entry of that; a B concerns all values alike, and is written down once (runtime.steppers.blocks). The entry of a value
catches up with the Bs when an A or a C of its value comes (runtime.steppers.catching_up).

An event is read in two parts. First all it leads to from runs that wait is found, after their entries, and those of the
values under which its runs will wait, have caught up: that changes no set of runs. Then it takes effect: it ends or
moves runs where it must not happen (all, as a free event, or those of a value of its own), joins the free events, and
its runs wait, or are roots where a match ends; their entries have just one free event to catch up with, itself. All
room is asked for in between.

Every match is made in one way, since the automaton is unambiguous (runtime.steppers.registers). An event costs
O(edges · places² · log n · log w), with n free events since the last event of its value and w of the window; the number
of values that wait does not matter. No paper has this class; the blocks are those of a binary counter, what is kept of
runs are the products of [PCEA] Section 5.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from runtime.arrays import AnyArray
from runtime.chain_cea import FROM_START, NOBODY
from runtime.compact_set.products import inserted, melded
from runtime.compact_set.tecs import BOTTOM, extend, inside
from runtime.jit import inlined, kernel
from runtime.program import NULL_CODE
from runtime.steppers.blocks import N_FREE, append, n_ending, n_rows
from runtime.steppers.by_values import (
    DONE,
    GENERATION,
    KEY,
    LAST_POSITION,
    N_FILLED,
    N_ROOTS,
    NEEDS_BLOCKS,
    NEEDS_NODES,
    NEEDS_ROOTS,
    NEEDS_SLOTS,
    code_of,
    fill,
    slot_of,
)
from runtime.steppers.catching_up import caught_up, forget, most_of_a_step, most_ranks, step
from runtime.steppers.events import Values
from runtime.steppers.register_ops import holds, passes, term_of


class Automaton(NamedTuple):
    """The arrays of runtime.deferred.Deferred."""

    guard: AnyArray
    label: AnyArray
    last: AnyArray
    goes_on: AnyArray
    held: AnyArray
    component: AnyArray
    edge_of: AnyArray
    source: AnyArray
    pair: AnyArray
    ask_of: AnyArray
    ask: AnyArray
    into_of: AnyArray
    into: AnyArray
    test_of: AnyArray
    test_kind: AnyArray
    test_left: AnyArray
    test_right: AnyArray
    pair_from: AnyArray
    pair_to: AnyArray
    pair_of: AnyArray
    same: AnyArray
    veto_guard: AnyArray
    veto_to: AnyArray
    words: int  # of a symbol, before its terms
    inner: int  # what is added to the labels of fragments


class Leading(NamedTuple):
    """What the event being read leads to."""

    at: AnyArray  # int64[edges]: the position …
    edge: AnyArray  # int64[edges]: … by which edge …
    child: AnyArray  # int32[edges]: … after which runs
    to: AnyArray  # int32[2, held places]: its matrix, where it is free; and that of an entry of its own
    frag: AnyArray  # int32[2, pairs]: so far 1 for each edge that it can take
    hit: AnyArray  # int64[vetoes]: the entries of its own that it moves or ends, NOBODY for none


@inlined
def passes_tests(automaton, edge, values):
    """Does an event pass what an edge asks of it alone?"""
    for t in range(automaton.test_of[edge], automaton.test_of[edge + 1]):
        left, right = term_of(values, automaton.test_left[t]), term_of(values, automaton.test_right[t])
        if not passes(automaton.test_kind[t], left, right):
            return False
    return True


@inlined
def has_null(values, terms, begin, end):
    """Is one of these terms NULL? It is equal to nothing, so that no run goes on with it."""
    found = False
    for t in range(begin, end):
        found = found or term_of(values, terms[t]) == NULL_CODE
    return found


@inlined
def entry_of(automaton, entries, h, values, terms, begin, end):
    """The slot of the entry with these values, of the component of held place h; NOBODY where there is none."""
    component = automaton.component[h]
    code = code_of(component, values, terms, begin, end)
    slot = slot_of(entries, code, component, values, terms, begin, end)
    return slot if entries.generation[slot] == entries.counts[GENERATION] else np.int64(NOBODY)


@inlined
def before(space, automaton, waiting, edge, values, now):
    """(Did all that the edge leads from and to catch up? The runs that it goes on with, ⊥ for none)."""
    source, entries = automaton.source[edge], waiting.entries
    begin, end = automaton.ask_of[edge], automaton.ask_of[edge + 1]
    h = np.int64(NOBODY) if source == FROM_START else automaton.held[source]
    node = np.int64(BOTTOM)
    if h != NOBODY:
        if has_null(values, automaton.ask, begin, end):
            return True, node
        slot = entry_of(automaton, entries, h, values, automaton.ask, begin, end)
        if slot == NOBODY:
            return True, node
        if not caught_up(space, automaton, waiting, slot, now):
            return False, node
        node = np.int64(entries.node[slot, h])
    elif source != FROM_START:
        node = np.int64(waiting.alone[source])
    if node != BOTTOM and not inside(space.arena.start[node], now, space.bounds):
        node = np.int64(BOTTOM)
    return True, node


@inlined
def goes_under(automaton, q, edge, values):
    """Does a run that has come to q over an edge wait there under values?"""
    begin, end = automaton.into_of[edge], automaton.into_of[edge + 1]
    return automaton.held[q] != NOBODY and automaton.goes_on[q] and not has_null(values, automaton.into, begin, end)


@inlined
def led_to(space, automaton, waiting, leading, values, now):
    """How many edges an event takes that are not free; NOBODY if there was no room for runs to catch up."""
    n = np.int64(0)
    for q in range(len(automaton.guard)):
        if not holds(values, automaton.guard[q]):
            continue
        for edge in range(automaton.edge_of[q], automaton.edge_of[q + 1]):
            if automaton.pair[edge] != NOBODY or not passes_tests(automaton, edge, values):
                continue
            in_time, node = before(space, automaton, waiting, edge, values, now)
            if not in_time:
                return np.int64(NOBODY)
            if node == BOTTOM and automaton.source[edge] != FROM_START:
                continue
            if goes_under(automaton, q, edge, values):
                begin, end = automaton.into_of[edge], automaton.into_of[edge + 1]
                slot = entry_of(automaton, waiting.entries, automaton.held[q], values, automaton.into, begin, end)
                if slot != NOBODY and not caught_up(space, automaton, waiting, slot, now):
                    return np.int64(NOBODY)
            leading.at[n], leading.edge[n], leading.child[n] = q, edge, node
            n += 1
    return n


@inlined
def is_vetoed(automaton, v, values):
    """Is an event the v-th thing that must not happen?"""
    return holds(values, automaton.veto_guard[v]) and passes_tests(automaton, len(automaton.pair) + v, values)


@inlined
def asks(automaton, v):
    """Does the v-th veto concern the runs of one value alone?"""
    edge = len(automaton.pair) + v
    return automaton.ask_of[edge + 1] > automaton.ask_of[edge]


@inlined
def move(automaton, v, to, row):
    """In row `row` of `to`, runs are moved or ended by a veto."""
    h, target = automaton.held[automaton.source[len(automaton.pair) + v]], automaton.veto_to[v]
    for i in range(to.shape[1]):
        if to[row, i] == h:
            to[row, i] = NOBODY if target == NOBODY else automaton.held[target]


@inlined
def freely(automaton, leading, values):
    """Is an event free? What it does is then in `leading`."""
    found = False
    for h in range(leading.to.shape[1]):
        leading.to[0, h] = h
    for k in range(leading.frag.shape[1]):
        leading.frag[0, k] = BOTTOM
    for q in range(len(automaton.guard)):
        if not holds(values, automaton.guard[q]):
            continue
        for edge in range(automaton.edge_of[q], automaton.edge_of[q + 1]):
            if automaton.pair[edge] != NOBODY and passes_tests(automaton, edge, values):
                leading.frag[0, automaton.pair[edge]] = 1
                found = True
    for v in range(len(automaton.veto_guard)):
        is_held = automaton.held[automaton.source[len(automaton.pair) + v]] != NOBODY
        if is_held and not asks(automaton, v) and is_vetoed(automaton, v, values):
            move(automaton, v, leading.to, 0)
            found = True
    return found


@inlined
def hits(space, automaton, waiting, leading, values, now):
    """Find the entries of the event's own values that it moves or ends, and let them catch up. How many vetoes that is;
    NOBODY if there was no room."""
    n = np.int64(0)
    for v in range(len(automaton.veto_guard)):
        edge = len(automaton.pair) + v
        begin, end = automaton.ask_of[edge], automaton.ask_of[edge + 1]
        leading.hit[v] = NOBODY
        if not asks(automaton, v) or not is_vetoed(automaton, v, values):
            continue
        if has_null(values, automaton.ask, begin, end):
            continue
        h = automaton.held[automaton.source[edge]]
        slot = entry_of(automaton, waiting.entries, h, values, automaton.ask, begin, end)
        if slot != NOBODY and not caught_up(space, automaton, waiting, slot, now):
            return np.int64(NOBODY)
        leading.hit[v] = slot
        n += slot != NOBODY
    return n


@inlined
def stop_own(space, automaton, waiting, leading, now):
    """What must not happen moves or ends runs of its own values, beside what it does to all as a free event."""
    entries = waiting.entries
    for v in range(len(automaton.veto_guard)):
        slot = leading.hit[v]
        if slot == NOBODY:
            continue
        for h in range(leading.to.shape[1]):
            leading.to[1, h] = leading.to[0, h]
        for k in range(leading.frag.shape[1]):
            leading.frag[1, k] = leading.frag[0, k]
        # Each entry once: what two vetoes do to it is done together.
        for w in range(v, len(automaton.veto_guard)):
            if leading.hit[w] == slot:
                move(automaton, w, leading.to, 1)
                leading.hit[w] = NOBODY
        step(space, automaton, waiting, slot, leading.to, leading.frag, 1, now)
        entries.upto[slot] = waiting.blocks.counts[N_FREE]


@inlined
def vetoes(automaton, values):
    """Is an event something that must not happen?"""
    found = False
    for v in range(len(automaton.veto_guard)):
        found = found or is_vetoed(automaton, v, values)
    return found


@inlined
def lacking(space, automaton, waiting, n, n_hits, is_free, n_roots):
    """What is missing before an event takes n edges, stops runs of its own, and joins the free ones; or DONE."""
    arena, entries, blocks = space.arena, waiting.entries, waiting.blocks
    n_held, n_pairs, n_alone = entries.node.shape[1], len(automaton.pair_from), len(automaton.veto_guard)
    need = n_alone * 4 * most_ranks(arena) + n * (1 + 2 * most_ranks(arena))
    need += n_hits * most_of_a_step(arena, automaton, waiting)
    if is_free:
        ending = n_ending(blocks.counts[N_FREE])
        need += len(automaton.guard) + ending * (n_pairs * (1 + 2 * n_held) + n_held * n_held)
        need += n * most_of_a_step(arena, automaton, waiting)
        if n_rows(blocks) + ending > len(blocks.to):
            return NEEDS_BLOCKS
    if arena.size[0] + need > len(arena.row):
        return NEEDS_NODES
    if n_roots + n > len(space.roots.node):
        return NEEDS_ROOTS
    if 2 * (entries.counts[N_FILLED] + n) > len(entries.place):
        return NEEDS_SLOTS
    return DONE


@inlined
def stop_alone(space, automaton, waiting, values, now):
    """What must not happen moves or ends the runs that hold no values."""
    for v in range(len(automaton.veto_guard)):
        source, to = automaton.source[len(automaton.pair) + v], automaton.veto_to[v]
        if automaton.held[source] != NOBODY or not is_vetoed(automaton, v, values):
            continue
        node = waiting.alone[source]
        waiting.alone[source] = BOTTOM
        if to != NOBODY and node != BOTTOM and inside(space.arena.start[node], now, space.bounds):
            waiting.alone[to] = melded(space.arena, waiting.alone[to], node, now, space.bounds, waiting.path)


@inlined
def join_free(arena, automaton, waiting, leading, row, now):
    """The event becomes one of the free ones: a fragment for each position that it can be at."""
    for q in range(len(automaton.guard)):
        node = BOTTOM
        for edge in range(automaton.edge_of[q], automaton.edge_of[q + 1]):
            pair = automaton.pair[edge]
            if pair != NOBODY and leading.frag[0, pair] != BOTTOM:
                if node == BOTTOM:
                    node = extend(arena, row, automaton.label[q] + automaton.inner, BOTTOM, now)
                leading.frag[0, pair] = node
    append(arena, automaton, waiting.blocks, leading.to, leading.frag)


@inlined
def wait(space, automaton, waiting, values, q, edge, node, now):
    """New runs wait at q: under their values, if they hold some."""
    arena, bounds, entries, h = space.arena, space.bounds, waiting.entries, automaton.held[q]
    if h == NOBODY:
        waiting.alone[q] = inserted(arena, waiting.alone[q], node, now, bounds, waiting.path)
        return
    begin, end, component = automaton.into_of[edge], automaton.into_of[edge + 1], automaton.component[h]
    code = code_of(component, values, automaton.into, begin, end)
    slot = slot_of(entries, code, component, values, automaton.into, begin, end)
    if entries.generation[slot] != entries.counts[GENERATION]:
        fill(entries, slot, code, component, values, automaton.into, begin, end)
        entries.upto[slot] = waiting.blocks.counts[N_FREE]
        for i in range(entries.node.shape[1]):
            entries.node[slot, i] = BOTTOM
    caught_up(space, automaton, waiting, slot, now)
    entries.node[slot, h] = inserted(arena, entries.node[slot, h], node, now, bounds, waiting.path)


@inlined
def take_effect(space, automaton, waiting, leading, n, values, row, now):
    """The n edges are taken: their events become nodes, and runs that wait. Roots are what `add_roots` makes of them:
    a node is left in place of the runs that it came after."""
    arena = space.arena
    for k in range(n):
        q, edge, child = leading.at[k], leading.edge[k], leading.child[k]
        start = now if child == BOTTOM else arena.start[child]
        node = extend(arena, row, automaton.label[q], child, start)
        leading.child[k] = node
        if automaton.goes_on[q] and (automaton.held[q] == NOBODY or goes_under(automaton, q, edge, values)):
            wait(space, automaton, waiting, values, q, edge, node, now)


@inlined
def add_roots(roots, automaton, leading, n, counts, now):
    """The matches that end with the event."""
    for k in range(n):
        if automaton.last[leading.at[k]]:
            root = counts[N_ROOTS]
            roots.node[root], roots.clock[root], roots.key[root] = leading.child[k], now, counts[KEY]
            counts[N_ROOTS] = root + 1


@kernel
def step_kernel(space, automaton, waiting, leading, counts, begin, feed):
    """Read events from `begin` on. Returns (why it stopped, the event to go on with); an event that lacked room has had
    no effect. feed: runtime.steppers.stepper.Feed, with symbols in two dimensions."""
    keys, mute = feed.keys, feed.mute
    for i in range(begin, len(feed.clocks)):
        if len(keys) > 0 and keys[i] != counts[KEY]:
            counts[KEY] = keys[i]
            forget(waiting)
        counts[LAST_POSITION] = feed.positions[i]
        if feed.symbols[i, 0] == 0 and automaton.words == 1:
            continue
        values, now = Values(feed.symbols, i, automaton.words), feed.clocks[i]
        n = led_to(space, automaton, waiting, leading, values, now)
        n_hits = hits(space, automaton, waiting, leading, values, now) if n != NOBODY else n
        if n_hits == NOBODY:
            return NEEDS_NODES, i
        # Without entries there is nobody to catch up; those to come begin after this event.
        is_free = waiting.entries.counts[N_FILLED] > 0 and freely(automaton, leading, values)
        stops = vetoes(automaton, values)
        if n == 0 and not is_free and not stops:
            continue
        lacks = lacking(space, automaton, waiting, n, n_hits, is_free, counts[N_ROOTS])
        if lacks != DONE:
            return lacks, i
        if stops:
            stop_alone(space, automaton, waiting, values, now)
        if is_free:
            join_free(space.arena, automaton, waiting, leading, feed.rows[i], now)
        if n_hits > 0:
            stop_own(space, automaton, waiting, leading, now)
        take_effect(space, automaton, waiting, leading, n, values, feed.rows[i], now)
        if len(mute) == 0 or not mute[i]:
            add_roots(space.roots, automaton, leading, n, counts, now)
    return DONE, len(feed.clocks)
