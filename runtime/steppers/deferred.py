"""Runs that catch up, as a kernel: equality of events that are not neighbours, at a logarithmic cost an event.

`A ; B ; C WHERE A.x = C.x`. What waits has a value, the x of its A. An A or a C concerns one value, and goes to the
entry of that; a B concerns all values alike, and is written down once (runtime.steppers.blocks). The entry of a value
catches up with the Bs when an A or a C of its value comes (runtime.steppers.catching_up).

An event is read in two parts. First all it leads to from runs that wait is found, after their entries, and those of the
values under which its runs will wait, have caught up: that changes no set of runs. Then it takes effect: it ends or
moves runs where it must not happen, joins the free events, and its runs wait, or are roots where a match ends; their
entries have just one free event to catch up with, itself. All room is asked for in between.

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
from runtime.steppers.by_values import GENERATION, N_FILLED, code_of, fill, slot_of
from runtime.steppers.catching_up import caught_up, forget, most_of_a_step, most_ranks
from runtime.steppers.events import Values
from runtime.steppers.register_ops import holds, passes, term_of

DONE, NEEDS_NODES, NEEDS_ROOTS, NEEDS_ENTRIES, NEEDS_BLOCKS = range(5)
KEY, LAST_POSITION, N_ROOTS = range(3)  # places in the counts of step_kernel


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
    veto_guard: AnyArray
    veto_from: AnyArray
    veto_to: AnyArray
    words: int  # of a symbol, before its terms
    inner: int  # what is added to the labels of fragments


class Leading(NamedTuple):
    """What the event being read leads to."""

    at: AnyArray  # int64[edges]: the position …
    edge: AnyArray  # int64[edges]: … by which edge …
    child: AnyArray  # int32[edges]: … after which runs
    to: AnyArray  # int32[held places]: its matrix, where it is free
    frag: AnyArray  # int32[pairs]: so far 1 for each edge that it can take


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
def freely(automaton, leading, values):
    """Is an event free? What it does is then in `leading`."""
    found = False
    for h in range(len(leading.to)):
        leading.to[h] = h
    for k in range(len(leading.frag)):
        leading.frag[k] = BOTTOM
    for q in range(len(automaton.guard)):
        if not holds(values, automaton.guard[q]):
            continue
        for edge in range(automaton.edge_of[q], automaton.edge_of[q + 1]):
            if automaton.pair[edge] != NOBODY and passes_tests(automaton, edge, values):
                leading.frag[automaton.pair[edge]] = 1
                found = True
    for v in range(len(automaton.veto_guard)):
        h = automaton.held[automaton.veto_from[v]]
        if h == NOBODY or not holds(values, automaton.veto_guard[v]):
            continue
        found = True
        to = automaton.veto_to[v]
        for i in range(len(leading.to)):
            if leading.to[i] == h:
                leading.to[i] = NOBODY if to == NOBODY else automaton.held[to]
    return found


@inlined
def vetoes(automaton, values):
    """Is an event something that must not happen?"""
    found = False
    for guard in automaton.veto_guard:
        found = found or holds(values, guard)
    return found


@inlined
def lacking(space, automaton, waiting, n, is_free, n_roots):
    """What is missing before an event takes n edges, and joins the free ones; or DONE."""
    arena, entries, blocks = space.arena, waiting.entries, waiting.blocks
    n_held, n_pairs, n_alone = entries.node.shape[1], len(automaton.pair_from), len(automaton.veto_guard)
    need = n_alone * 4 * most_ranks(arena) + n * (1 + 2 * most_ranks(arena))
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
        return NEEDS_ENTRIES
    return DONE


@inlined
def stop_alone(space, automaton, waiting, values, now):
    """What must not happen moves or ends the runs that hold no values."""
    for v in range(len(automaton.veto_guard)):
        source, to = automaton.veto_from[v], automaton.veto_to[v]
        if automaton.held[source] != NOBODY or not holds(values, automaton.veto_guard[v]):
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
            if pair != NOBODY and leading.frag[pair] != BOTTOM:
                if node == BOTTOM:
                    node = extend(arena, row, automaton.label[q] + automaton.inner, BOTTOM, now)
                leading.frag[pair] = node
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
        if n == NOBODY:
            return NEEDS_NODES, i
        # Without entries there is nobody to catch up; those to come begin after this event.
        is_free = waiting.entries.counts[N_FILLED] > 0 and freely(automaton, leading, values)
        stops = vetoes(automaton, values)
        if n == 0 and not is_free and not stops:
            continue
        lacks = lacking(space, automaton, waiting, n, is_free, counts[N_ROOTS])
        if lacks != DONE:
            return lacks, i
        if stops:
            stop_alone(space, automaton, waiting, values, now)
        if is_free:
            join_free(space.arena, automaton, waiting, leading, feed.rows[i], now)
        take_effect(space, automaton, waiting, leading, n, values, feed.rows[i], now)
        if len(mute) == 0 or not mute[i]:
            add_roots(space.roots, automaton, leading, n, counts, now)
    return DONE, len(feed.clocks)
