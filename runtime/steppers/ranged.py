"""Runs in the order of a value, as a kernel: many go on at once and keep it, at a cost by a power of the logarithm.

`A a ; B+ b ; C c WHERE b[i].x > a.x`. What waits has a key, the x of its A, and lies in a tree in the order of the keys
(runtime.steppers.ranged_tree). An event compares the keys with a few values of its own. So they fall into *regions*: of
keys below the first value, equal to it, between it and the next … and NULL, which passes no check. All runs of a region
can take the same edges, and the same happens to them.

An event is read in two parts. First all it leads to from runs that wait is found, which changes no set of runs: over an
edge on which the key is lost, or at which a match ends, it goes on with those of a region, as a union of O(log n) nodes
of the tree. Then it takes effect: what lies in a region is tagged with what the event does there, and its new runs are
put under their keys, or wait without one.

Every match is made in one way, since the automaton is unambiguous (runtime.steppers.registers), and of the two edges
that a change of a key makes only one is taken by a run. An event costs O(regions · places³ · log n), of n keys that
wait, and O(log w) for each key that it adds, of a window of w events; the papers leave inequalities open.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from runtime.arrays import AnyArray
from runtime.chain_cea import (
    EQUAL,
    FROM_START,
    GREATER,
    GREATER_EQUAL,
    LESS,
    LESS_EQUAL,
    NOBODY,
    UNEQUAL,
)
from runtime.compact_set.products import inserted
from runtime.compact_set.tecs import BOTTOM, extend, inside
from runtime.jit import inlined, kernel
from runtime.program import NULL_CODE
from runtime.steppers.by_values import DONE, KEY, LAST_POSITION, N_ROOTS, NEEDS_NODES, NEEDS_ROOTS, NEEDS_SLOTS
from runtime.steppers.catching_up import most_of_a_step, most_ranks
from runtime.steppers.deferred import add_roots, passes_tests, stop_alone, vetoes
from runtime.steppers.events import Values
from runtime.steppers.ranged_tree import (
    HIGH,
    LEFT,
    LOW,
    N_USED,
    RIGHT,
    ROOT,
    Tree,
    add,
    clear,
    deepest,
    most_of_a_product,
    push_down,
    pushed_down,
    refreshed,
    spoil,
    tag,
)
from runtime.steppers.register_ops import holds, term_of
from runtime.steppers.sorted_trees import joined

N_CUTS, N_TAKEN, CONCERNS = 0, 1, 2  # places in Event.counts


class Automaton(NamedTuple):
    """The arrays of runtime.ranged.Ranged."""

    guard: AnyArray
    label: AnyArray
    last: AnyArray
    goes_on: AnyArray
    held: AnyArray
    takes_null: AnyArray
    edge_of: AnyArray
    source: AnyArray
    pair: AnyArray
    into: AnyArray
    act: AnyArray
    check_of: AnyArray
    check_kind: AnyArray
    check_term: AnyArray
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


class Event(NamedTuple):
    """What the event being read leads to. Its matrix in region r is row 1 + r of the tree."""

    cut: AnyArray  # int64[checks]: the values that keys are compared with, in order
    act: AnyArray  # int64[regions]: the edges and vetoes that concern a region, as bits
    same: AnyArray  # int64[regions]: the first region of those in a row that are concerned by the same ones
    tags: AnyArray  # bool[regions]: do keys stay there with what has happened to them?
    at: AnyArray  # int64[edges]: the position that it leads to …
    edge: AnyArray  # int64[edges]: … by which edge …
    child: AnyArray  # int32[edges]: … after which runs
    node: AnyArray  # int32[edges]: the event, where an edge keeps the key
    counts: AnyArray  # int64[3]


class Waiting(NamedTuple):
    """All runs that wait."""

    entries: Tree
    alone: AnyArray  # int32[places]: those without a key
    next: AnyArray  # int32[held places]: of a leaf that takes a tag
    path: AnyArray  # int32: for products.melded


def new_event(n_edges: int, n_checks: int) -> Event:
    """Room for an event."""
    return Event(
        cut=np.zeros(n_checks, np.int64),
        act=np.zeros(2 * n_checks + 2, np.int64),
        same=np.zeros(2 * n_checks + 2, np.int64),
        tags=np.zeros(2 * n_checks + 2, np.bool_),
        at=np.zeros(n_edges, np.int64),
        edge=np.zeros(n_edges, np.int64),
        child=np.zeros(n_edges, np.int32),
        node=np.zeros(n_edges, np.int32),
        counts=np.zeros(3, np.int64),
    )


# ---------------------------------------------------------------- regions


@inlined
def region_of(event, key):
    """Where a key lies: 0 if it is NULL, 1 + 2i below cut i and above those before it, 2 + 2i at it."""
    if key == NULL_CODE:
        return 0
    n = event.counts[N_CUTS]
    for i in range(n):
        if key <= event.cut[i]:
            return 1 + 2 * i + (key == event.cut[i])
    return 1 + 2 * n


@inlined
def passes_in(kind, region, own):
    """Do the keys of a region pass a check with the value in the region `own`?"""
    if region == 0:
        return False
    if kind == LESS:
        return region < own
    if kind == LESS_EQUAL:
        return region <= own
    if kind == GREATER:
        return region > own
    if kind == GREATER_EQUAL:
        return region >= own
    if kind == EQUAL:
        return region == own
    return kind == UNEQUAL and region != own


@inlined
def has_null(automaton, edge, values):
    """Is one of the terms NULL with which an edge compares keys? None of them passes then."""
    found = False
    for c in range(automaton.check_of[edge], automaton.check_of[edge + 1]):
        found = found or term_of(values, automaton.check_term[c]) == NULL_CODE
    return found


@inlined
def cut_at(event, value):
    """One more value that keys are compared with."""
    n = event.counts[N_CUTS]
    i = n
    while i > 0 and event.cut[i - 1] > value:
        i -= 1
    if i > 0 and event.cut[i - 1] == value:
        return
    for k in range(n, i, -1):
        event.cut[k] = event.cut[k - 1]
    event.cut[i] = value
    event.counts[N_CUTS] = n + 1


@inlined
def concerns(automaton, edge, values):
    """Can an event take an edge from a held place, or stop runs there, if their keys pass? Its guard holds."""
    return automaton.act[edge] != NOBODY and passes_tests(automaton, edge, values) and not has_null(
        automaton, edge, values
    )  # fmt: skip


@inlined
def cut_for(automaton, event, edge, values):
    """The values that an edge compares keys with are cuts."""
    for c in range(automaton.check_of[edge], automaton.check_of[edge + 1]):
        cut_at(event, term_of(values, automaton.check_term[c]))


@inlined
def mark(automaton, event, edge, values, keeps):
    """Write down in which regions keys pass for an edge."""
    for region in range(2 * event.counts[N_CUTS] + 2):
        passed = True
        for c in range(automaton.check_of[edge], automaton.check_of[edge + 1]):
            own = region_of(event, term_of(values, automaton.check_term[c]))
            passed = passed and passes_in(automaton.check_kind[c], region, own)
        if passed:
            event.act[region] |= np.int64(1) << automaton.act[edge]
            event.tags[region] = event.tags[region] or keeps


@inlined
def find_regions(automaton, event, values):
    """What the event can do, region by region."""
    counts, n_edges = event.counts, len(automaton.pair)
    counts[N_CUTS] = 0
    for k in range(2):  # first the cuts, then what lies between them
        for q in range(len(automaton.guard)):
            if not holds(values, automaton.guard[q]):
                continue
            for edge in range(automaton.edge_of[q], automaton.edge_of[q + 1]):
                if not concerns(automaton, edge, values):
                    continue
                if k == 0:
                    cut_for(automaton, event, edge, values)
                else:
                    mark(automaton, event, edge, values, automaton.pair[edge] != NOBODY)
        for v in range(len(automaton.veto_guard)):
            edge = n_edges + v
            if not holds(values, automaton.veto_guard[v]) or not concerns(automaton, edge, values):
                continue
            if k == 0:
                cut_for(automaton, event, edge, values)
            else:
                mark(automaton, event, edge, values, True)
        if k == 0:
            for region in range(2 * counts[N_CUTS] + 2):
                event.act[region], event.tags[region] = 0, False
    found = False
    for region in range(2 * counts[N_CUTS] + 2):
        found = found or event.act[region] != 0
        alike = region > 0 and event.act[region] == event.act[region - 1]
        event.same[region] = event.same[region - 1] if alike else region
    counts[CONCERNS] = found


# ---------------------------------------------------------------- what an event goes on with


@inlined
def taken(automaton, event, values, waiting, space, now):
    """The edges from the start, from runs without a key, and those at which the runs in the tree are looked at, which
    are still to be found."""
    n = np.int64(0)
    for q in range(len(automaton.guard)):
        if not holds(values, automaton.guard[q]):
            continue
        for edge in range(automaton.edge_of[q], automaton.edge_of[q + 1]):
            source, node = automaton.source[edge], np.int64(BOTTOM)
            if automaton.act[edge] != NOBODY:
                if not concerns(automaton, edge, values) or (automaton.pair[edge] != NOBODY and not automaton.last[q]):
                    continue
            elif not passes_tests(automaton, edge, values):
                continue
            elif source != FROM_START:
                node = np.int64(waiting.alone[source])
                if node == BOTTOM or not inside(space.arena.start[node], now, space.bounds):
                    continue
            event.at[n], event.edge[n], event.child[n] = q, edge, node
            n += 1
    event.counts[N_TAKEN] = n
    return n


@inlined
def join(space, automaton, event, tree, u, region, now):
    """More runs for the edges that take those below u, all of which lie in one region."""
    for k in range(event.counts[N_TAKEN]):
        act = automaton.act[event.edge[k]]
        if act == NOBODY or not (event.act[region] >> act) & 1:
            continue
        node = tree.below[u, automaton.held[automaton.source[event.edge[k]]]]
        if node != BOTTOM:
            event.child[k] = joined(space.arena, event.child[k], node, now, space.bounds)


@inlined
def found_all(space, automaton, event, tree, looks, now):
    """Push the tags down that lie above what is to be done, and find the runs for all edges, if it `looks` at some. No
    set of runs changes. False: there was no room for nodes."""
    arena = space.arena
    most, parts = 2 * most_of_a_product(automaton, tree), event.counts[N_TAKEN]
    top = 1
    tree.stack[0] = tree.counts[ROOT]
    while top > 0:
        top -= 1
        u = tree.stack[top]
        region = event.same[region_of(event, tree.meta[u, LOW])]
        if region != event.same[region_of(event, tree.meta[u, HIGH])]:
            if arena.size[0] + most > len(arena.row):
                return False
            push_down(space, automaton, tree, u, now)
            tree.stack[top], tree.stack[top + 1] = tree.meta[u, LEFT], tree.meta[u, RIGHT]
            top += 2
        elif looks and event.act[region] != 0:
            if not refreshed(arena, automaton, tree, u, now, space.bounds) or arena.size[0] + parts > len(arena.row):
                return False
            join(space, automaton, event, tree, u, region, now)
    return True


@inlined
def led_to(space, automaton, event, waiting, values, now):
    """Find all that the event leads to. False: there was no room for nodes."""
    taken(automaton, event, values, waiting, space, now)
    looks, n = False, event.counts[N_TAKEN]
    for k in range(n):
        looks = looks or automaton.act[event.edge[k]] != NOBODY
    if waiting.entries.counts[ROOT] != 0 and event.counts[CONCERNS] and not found_all(
        space, automaton, event, waiting.entries, looks, now
    ):  # fmt: skip
        return False
    kept = 0
    for k in range(n):
        edge = event.edge[k]
        if automaton.source[edge] != FROM_START and event.child[k] == BOTTOM:
            continue
        event.at[kept], event.edge[kept], event.child[kept] = event.at[k], edge, event.child[k]
        kept += 1
    event.counts[N_TAKEN] = kept
    return True


# ---------------------------------------------------------------- it takes effect


@inlined
def lacking(space, automaton, event, waiting, n_roots, now):
    """What is missing before an event takes effect; or DONE."""
    arena, tree, n = space.arena, waiting.entries, event.counts[N_TAKEN]
    product, depth = most_of_a_product(automaton, tree), deepest(tree)
    need = len(automaton.veto_guard) * 4 * most_ranks(arena) + n * (1 + 2 * most_ranks(arena)) + len(automaton.guard)
    need += (4 * event.counts[N_CUTS] + 1) * depth * product
    need += n * (6 * depth * product + most_of_a_step(arena, automaton, waiting))
    if arena.size[0] + need > len(arena.row):
        return NEEDS_NODES
    if n_roots + n > len(space.roots.node):
        return NEEDS_ROOTS
    if tree.counts[N_USED] + 2 * n > len(tree.meta):
        return NEEDS_SLOTS if pushed_down(space, automaton, tree, now) else NEEDS_NODES
    return DONE


@inlined
def write_matrix(automaton, event, tree, region):
    """What the event does in a region: row 1 + region of the tree."""
    row, act = 1 + region, event.act[region]
    for h in range(tree.to.shape[1]):
        tree.to[row, h] = h
    for k in range(tree.frag.shape[1]):
        tree.frag[row, k] = BOTTOM
    for edge in range(len(automaton.pair)):
        if automaton.pair[edge] != NOBODY and (act >> automaton.act[edge]) & 1:
            tree.frag[row, automaton.pair[edge]] = event.node[edge]
    for v in range(len(automaton.veto_guard)):
        edge = len(automaton.pair) + v
        if automaton.act[edge] == NOBODY or not (act >> automaton.act[edge]) & 1:
            continue
        h, to = automaton.held[automaton.source[edge]], automaton.veto_to[v]
        for i in range(tree.to.shape[1]):
            if tree.to[row, i] == h:
                tree.to[row, i] = NOBODY if to == NOBODY else automaton.held[to]


@inlined
def tag_regions(space, automaton, event, values, tree, row, now):
    """Tag all that lies in a region where keys stay. What lies above has no tag any more (found_all)."""
    for q in range(len(automaton.guard)):
        node = BOTTOM
        for edge in range(automaton.edge_of[q], automaton.edge_of[q + 1]):
            if automaton.pair[edge] != NOBODY and holds(values, automaton.guard[q]):
                if node == BOTTOM:
                    node = extend(space.arena, row, automaton.label[q] + automaton.inner, BOTTOM, now)
                event.node[edge] = node
    tags = False
    for region in range(2 * event.counts[N_CUTS] + 2):
        if event.same[region] == region and event.tags[region]:
            write_matrix(automaton, event, tree, region)
            tags = True
    top = np.int64(tags)
    tree.stack[0] = tree.counts[ROOT]
    while top > 0:
        top -= 1
        u = tree.stack[top]
        region = event.same[region_of(event, tree.meta[u, LOW])]
        if region != event.same[region_of(event, tree.meta[u, HIGH])]:
            spoil(tree, u)
            tree.stack[top], tree.stack[top + 1] = tree.meta[u, LEFT], tree.meta[u, RIGHT]
            top += 2
        elif event.tags[region]:
            tag(space, automaton, tree, u, 1 + region, now)


@inlined
def take_effect(space, automaton, waiting, event, values, row, now):
    """The edges are taken: their events become nodes, and runs that wait. A node is left in place of the runs that it
    came after."""
    arena = space.arena
    for k in range(event.counts[N_TAKEN]):
        q, edge, child = event.at[k], event.edge[k], event.child[k]
        node = extend(arena, row, automaton.label[q], child, now if child == BOTTOM else arena.start[child])
        event.child[k] = node
        h = automaton.held[q]
        if automaton.pair[edge] != NOBODY or not automaton.goes_on[q]:
            continue
        if h == NOBODY:
            waiting.alone[q] = inserted(arena, waiting.alone[q], node, now, space.bounds, waiting.path)
            continue
        key = term_of(values, automaton.into[edge])
        if key != NULL_CODE or automaton.takes_null[h]:
            add(space, automaton, waiting, key, h, node, now)


@inlined
def forget(waiting):
    """Another key of the stream begins."""
    clear(waiting.entries)
    for p in range(len(waiting.alone)):
        waiting.alone[p] = BOTTOM


@kernel
def step_kernel(space, automaton, waiting, event, counts, begin, feed):
    """Read events from `begin` on. Returns (why it stopped, the event to go on with); an event that lacked room has had
    no effect. feed: runtime.steppers.stepper.Feed, with symbols in two dimensions."""
    keys, mute, tree = feed.keys, feed.mute, waiting.entries
    for i in range(begin, len(feed.clocks)):
        if len(keys) > 0 and keys[i] != counts[KEY]:
            counts[KEY] = keys[i]
            forget(waiting)
        counts[LAST_POSITION] = feed.positions[i]
        if feed.symbols[i, 0] == 0 and automaton.words == 1:
            continue
        values, now = Values(feed.symbols, i, automaton.words), feed.clocks[i]
        find_regions(automaton, event, values)
        if not led_to(space, automaton, event, waiting, values, now):
            return NEEDS_NODES, i
        concerns_keys, stops = tree.counts[ROOT] != 0 and event.counts[CONCERNS] != 0, vetoes(automaton, values)
        if event.counts[N_TAKEN] == 0 and not concerns_keys and not stops:
            continue
        lacks = lacking(space, automaton, event, waiting, counts[N_ROOTS], now)
        if lacks != DONE:
            return lacks, i
        if stops:
            stop_alone(space, automaton, waiting, values, now)
        if concerns_keys:
            tag_regions(space, automaton, event, values, tree, feed.rows[i], now)
        take_effect(space, automaton, waiting, event, values, feed.rows[i], now)
        if len(mute) == 0 or not mute[i]:
            add_roots(space.roots, automaton, event, event.counts[N_TAKEN], counts, now)
    return DONE, len(feed.clocks)
