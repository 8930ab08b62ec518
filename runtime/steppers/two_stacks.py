"""The greatest match of each end in a sliding window, as a kernel: NXT and LAST at a cost that no window changes.

Of all ways from a place to another over the same events one is the greatest, and stays so whatever comes before and
after it: events that both have do not tell which of two is greater, and others do so by themselves. So what a stretch
of events does is a matrix: for each two places the greatest way from the one to the other, a set of events. The matrix
of two stretches that follow each other is their product, with the greatest in place of the sum; place 0, where nothing
has begun, leads to itself, so that a match may begin anywhere in a stretch.

The window is one stretch from whose beginning events leave, and to whose end others come: the product over a queue,
which two stacks give in amortized constant time. The *front* holds, for each of the older events, what the stretch from
it to the end of the front does; the *back* holds the newer events, and the matrix of them all. When the last of the
front has left the window, the events of the back become the front.

`A ; B ; C SEMANTICS NXT` in a window that holds A1 A2 B3 | B4, the front before the bar: the stretch from A1 on leads
from place 0 to itself by {}, to A by {1}, to B by {1, 3}; the one from A2 on by {}, {2} and {2, 3}. The back leads from
A to B by {4}, and leaves all as it is by {}. A C finds {1, 3} before it; once A1 has left the window, {2, 3}.

Sets are compared by *ranks*: those of all ways of a stretch are numbered in their order. One more event makes new ranks
from old ones alone (rank and "does it have the event", the earlier of which decides first under NXT, the later under
LAST). Ways of the same rank have the same events, in other variables perhaps; all of them win.

An event costs O(places · (places + edges)), listing what each match has. [CEL] Theorem 7.2 chooses without a window, by
states of rivals; a window cuts off starts, and with them the rivals that have hidden others.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from runtime.arrays import AnyArray
from runtime.chain_cea import NOBODY
from runtime.compact_set.products import product
from runtime.compact_set.tecs import BOTTOM, extend, inside, link
from runtime.jit import inlined, kernel
from runtime.steppers.by_values import DONE, KEY, LAST_POSITION, N_ROOTS, NEEDS_BLOCKS, NEEDS_NODES, NEEDS_ROOTS
from runtime.steppers.events import Values
from runtime.steppers.register_ops import holds

# Places in Queue.counts: the first of the front that is inside the window, and how many there are.
HEAD, N_FRONT, N_BACK = range(3)
NO_WAY = -1  # the rank where no way leads from a place to another
BACK, SPARE = 0, 1  # matrices: of all events in the back; two of them to work with


class Automaton(NamedTuple):
    """The arrays of runtime.two_stacks.TwoStacks."""

    guard: AnyArray
    label: AnyArray
    last: AnyArray
    to: AnyArray
    lacks_of: AnyArray
    lacks: AnyArray
    edge_of: AnyArray
    source: AnyArray
    veto_guard: AnyArray
    veto_from: AnyArray
    veto_to: AnyArray
    words: int  # of a symbol
    later: bool


class Matrices(NamedTuple):
    """Of some stretches of events: the greatest way from each place to each, and its rank or NO_WAY."""

    node: AnyArray  # int32[3, places, places]: ⊥ for a way without events
    rank: AnyArray  # int32[3, places, places]
    key: AnyArray  # int64[places, places]: by which new ranks are given
    dense: AnyArray  # int32[keys]: the rank of each key


class Queue(NamedTuple):
    """The events of the window. Rows of the front are by event, from place 0 alone."""

    front_clock: AnyArray  # as the clocks, [front]
    front_node: AnyArray  # int32[front, places]
    front_rank: AnyArray  # int32[front, places]
    clock: AnyArray  # as the clocks, [back]
    event: AnyArray  # int32[back, positions]: its node, if it can be at that position, or ⊥
    stay: AnyArray  # int32[back, places]: where runs are after it that do not take it, or NOBODY
    counts: AnyArray  # int64[3]


class Steps(NamedTuple):
    """What one event does: it leads from a place to another, by its node or (⊥) without being taken."""

    begin: AnyArray  # int64[places + edges]
    end: AnyArray  # int64[places + edges]
    node: AnyArray  # int32[places + edges]


class Work(NamedTuple):
    """All that a stepper keeps."""

    queue: Queue
    matrices: Matrices
    steps: Steps


# ---------------------------------------------------------------- ways and their ranks


@inlined
def key_of(first, second, most):
    """A pair of ranks as a number, in the order of pairs; no rank is greater than `most`."""
    return np.int64(first) * (most + 1) + second


@inlined
def set_identity(matrices, m):
    """Nothing has happened: all places stay as they are."""
    n = matrices.node.shape[1]
    for p in range(n):
        for q in range(n):
            matrices.node[m, p, q] = BOTTOM
            matrices.rank[m, p, q] = 0 if p == q else NO_WAY


@inlined
def set_ranks(matrices, m):
    """Number the keys in their order."""
    n, dense = matrices.node.shape[1], matrices.dense
    for k in range(len(dense)):
        dense[k] = 0
    for p in range(n):
        for q in range(n):
            if matrices.key[p, q] >= 0:
                dense[matrices.key[p, q]] = 1
    found = 0
    for k in range(len(dense)):
        if dense[k] != 0:
            dense[k] = found
            found += 1
    for p in range(n):
        for q in range(n):
            matrices.rank[m, p, q] = dense[matrices.key[p, q]] if matrices.key[p, q] >= 0 else NO_WAY


@inlined
def key_with(rank, taken, most, rank_first):
    """The key of a way with one more event, or (not `taken`) without it."""
    return key_of(rank, taken, 1) if rank_first else key_of(taken, rank, most)


@inlined
def join(arena, one, other):
    """Two ways with the same events, of which either may be without any: then both are the same."""
    return other if one in (BOTTOM, other) else link(arena, one, other)


@inlined
def starts_at(arena, child, now):
    return now if child == BOTTOM else arena.start[child]


@inlined
def multiply(arena, work, of, to, n_steps, appends, rank_first):
    """The matrix `to`: that of a stretch, `of`, and of an event after (`appends`) or before it."""
    matrices, steps = work.matrices, work.steps
    n = matrices.node.shape[1]
    most = n * n
    for p in range(n):
        for q in range(n):
            matrices.key[p, q] = NO_WAY
            matrices.node[to, p, q] = BOTTOM
    for k in range(n_steps):
        begin, end, taken = steps.begin[k], steps.end[k], steps.node[k] != BOTTOM
        for x in range(n):
            rank = matrices.rank[of, x, begin] if appends else matrices.rank[of, end, x]
            if rank == NO_WAY:
                continue
            key = key_with(rank, taken, most, rank_first)
            if appends:
                matrices.key[x, end] = max(matrices.key[x, end], key)
            else:
                matrices.key[begin, x] = max(matrices.key[begin, x], key)
    for k in range(n_steps):
        begin, end, event = steps.begin[k], steps.end[k], steps.node[k]
        for x in range(n):
            rank = matrices.rank[of, x, begin] if appends else matrices.rank[of, end, x]
            if rank == NO_WAY:
                continue
            key = key_with(rank, event != BOTTOM, most, rank_first)
            if appends and key == matrices.key[x, end]:
                node = np.int64(matrices.node[of, x, begin])
                if event != BOTTOM:
                    node = extend(
                        arena, arena.row[event], arena.label[event], node, starts_at(arena, node, arena.start[event])
                    )
                matrices.node[to, x, end] = join(arena, np.int64(matrices.node[to, x, end]), node)
            elif not appends and key == matrices.key[begin, x]:
                node = np.int64(matrices.node[of, end, x])
                if event != BOTTOM:
                    node = np.int64(event) if node == BOTTOM else product(arena, node, event)
                matrices.node[to, begin, x] = join(arena, np.int64(matrices.node[to, begin, x]), node)
    set_ranks(matrices, to)


# ---------------------------------------------------------------- what an event does


@inlined
def takes(automaton, q, values):
    """Can an event be at a position?"""
    found = holds(values, automaton.guard[q])
    for k in range(automaton.lacks_of[q], automaton.lacks_of[q + 1]):
        found = found and not holds(values, automaton.lacks[k])
    return found


@inlined
def moves(automaton, stay, at, values):
    """Write where runs are that do not take the event. Has anything changed?"""
    changed = False
    for p in range(stay.shape[1]):
        stay[at, p] = p
    for v in range(len(automaton.veto_guard)):
        if not holds(values, automaton.veto_guard[v]):
            continue
        for p in range(stay.shape[1]):
            if stay[at, p] == automaton.veto_from[v]:
                stay[at, p] = automaton.veto_to[v]
                changed = True
    return changed


@inlined
def steps_of(automaton, queue, steps, at):
    """Write the steps of an event of the back, without those after which nothing goes on. How many they are."""
    n = 0
    for p in range(queue.stay.shape[1]):
        if queue.stay[at, p] != NOBODY:
            steps.begin[n], steps.end[n], steps.node[n] = p, queue.stay[at, p], BOTTOM
            n += 1
    for q in range(queue.event.shape[1]):
        if queue.event[at, q] == BOTTOM:
            continue
        for e in range(automaton.edge_of[q], automaton.edge_of[q + 1]):
            steps.begin[n], steps.end[n], steps.node[n] = automaton.source[e], automaton.to[q], queue.event[at, q]
            n += 1
    return n


@inlined
def most_nodes(automaton, places):
    """More nodes than one event ever makes."""
    return len(automaton.guard) + 4 * places * (len(automaton.source) + places) + 4


# ---------------------------------------------------------------- the window slides


@kernel
def forget(work):
    """Nothing has happened yet."""
    for k in range(len(work.queue.counts)):
        work.queue.counts[k] = 0
    set_identity(work.matrices, BACK)


@inlined
def turn(space, automaton, work, now):
    """What of the back is inside the window becomes the front. DONE, or what is lacking, without effect."""
    queue, matrices, arena, counts = work.queue, work.matrices, space.arena, work.queue.counts
    first, end, size = np.int64(0), counts[N_BACK], arena.size[0]
    while first < end and not inside(queue.clock[first], now, space.bounds):
        first += 1
    if end - first > len(queue.front_clock):
        return NEEDS_BLOCKS
    most = most_nodes(automaton, queue.stay.shape[1])
    set_identity(matrices, SPARE)
    m = SPARE
    for at in range(end - 1, first - 1, -1):
        if arena.size[0] + most > len(arena.row):
            arena.size[0] = size
            return NEEDS_NODES
        n_steps = steps_of(automaton, queue, work.steps, at)
        multiply(arena, work, m, 2 * SPARE + 1 - m, n_steps, False, automaton.later)
        m = 2 * SPARE + 1 - m
        queue.front_clock[at - first] = queue.clock[at]
        for q in range(queue.stay.shape[1]):
            queue.front_node[at - first, q] = matrices.node[m, 0, q]
            queue.front_rank[at - first, q] = matrices.rank[m, 0, q]
    counts[HEAD], counts[N_FRONT], counts[N_BACK] = 0, end - first, 0
    set_identity(matrices, BACK)
    return DONE


@inlined
def slide(space, automaton, work, now):
    """Leave what is inside the window. DONE, or what is lacking."""
    queue, counts = work.queue, work.queue.counts
    while counts[HEAD] < counts[N_FRONT] and not inside(queue.front_clock[counts[HEAD]], now, space.bounds):
        counts[HEAD] += 1
    is_late = counts[N_BACK] > 0 and not inside(queue.clock[0], now, space.bounds)
    if counts[HEAD] == counts[N_FRONT] and is_late:
        return turn(space, automaton, work, now)
    return DONE


# ---------------------------------------------------------------- the matches of one end


@inlined
def rank_before(queue, p):
    """The rank of the way through the front from place 0."""
    counts = queue.counts
    if counts[HEAD] == counts[N_FRONT]:
        return np.int32(0 if p == 0 else NO_WAY)
    return queue.front_rank[counts[HEAD], p]


@inlined
def node_before(queue, p):
    counts = queue.counts
    return np.int64(BOTTOM if counts[HEAD] == counts[N_FRONT] else queue.front_node[counts[HEAD], p])


@inlined
def key_through(work, later, p, source):
    """The key of the ways from place 0 to p through the front, and on to `source` through the back; or NO_WAY."""
    matrices = work.matrices
    n = matrices.node.shape[1]
    before, after = rank_before(work.queue, p), matrices.rank[BACK, p, source]
    if before == NO_WAY or after == NO_WAY:
        return np.int64(NO_WAY)
    return key_of(after, before, n * n) if later else key_of(before, after, n * n)


@inlined
def greatest(arena, automaton, work, values, row, now):
    """The node of the greatest matches that end with an event, ⊥ if there is none."""
    n = work.matrices.node.shape[1]
    best, found = np.int64(NO_WAY), np.int64(BOTTOM)
    for q in range(len(automaton.guard)):
        if not automaton.last[q] or not takes(automaton, q, values):
            continue
        for e in range(automaton.edge_of[q], automaton.edge_of[q + 1]):
            for p in range(n):
                best = max(best, key_through(work, automaton.later, p, automaton.source[e]))
    if best == NO_WAY:
        return found
    for q in range(len(automaton.guard)):
        if not automaton.last[q] or not takes(automaton, q, values):
            continue
        for e in range(automaton.edge_of[q], automaton.edge_of[q + 1]):
            for p in range(n):
                source = automaton.source[e]
                if key_through(work, automaton.later, p, source) != best:
                    continue
                after, before = np.int64(work.matrices.node[BACK, p, source]), node_before(work.queue, p)
                node = extend(arena, row, automaton.label[q], after, starts_at(arena, after, now))
                if before != BOTTOM:
                    node = product(arena, node, before)
                found = join(arena, found, node)
    return found


@inlined
def note(arena, automaton, work, values, row, now):
    """The event joins the back."""
    queue, counts = work.queue, work.queue.counts
    at, acts = counts[N_BACK], False
    for q in range(len(automaton.guard)):
        node = np.int64(BOTTOM)
        if automaton.to[q] != NOBODY and takes(automaton, q, values):
            node = extend(arena, row, automaton.label[q], BOTTOM, now)
            acts = True
        queue.event[at, q] = node
    if moves(automaton, queue.stay, at, values) or acts:
        queue.clock[at] = now
        counts[N_BACK] = at + 1
        n_steps = steps_of(automaton, queue, work.steps, at)
        multiply(arena, work, BACK, SPARE, n_steps, True, not automaton.later)
        for p in range(queue.stay.shape[1]):
            for q in range(queue.stay.shape[1]):
                work.matrices.node[BACK, p, q] = work.matrices.node[SPARE, p, q]
                work.matrices.rank[BACK, p, q] = work.matrices.rank[SPARE, p, q]


@kernel
def step_kernel(space, automaton, work, counts, begin, feed):
    """Read events from `begin` on. Returns (why it stopped, the event to go on with); an event that lacked room has had
    no effect. feed: runtime.steppers.stepper.Feed, with symbols in two dimensions."""
    keys, mute, queue, arena, roots = feed.keys, feed.mute, work.queue, space.arena, space.roots
    most = 2 * most_nodes(automaton, queue.stay.shape[1])
    for i in range(begin, len(feed.clocks)):
        if len(keys) > 0 and keys[i] != counts[KEY]:
            counts[KEY] = keys[i]
            forget(work)
        counts[LAST_POSITION] = feed.positions[i]
        if feed.symbols[i, 0] == 0 and automaton.words == 1:
            continue
        values, row, now = Values(feed.symbols, i, automaton.words), feed.rows[i], feed.clocks[i]
        if arena.size[0] + most > len(arena.row):
            return NEEDS_NODES, i
        if counts[N_ROOTS] == len(roots.node):
            return NEEDS_ROOTS, i
        if queue.counts[N_BACK] == len(queue.clock):
            return NEEDS_BLOCKS, i
        lacks = slide(space, automaton, work, now)
        if lacks != DONE:
            return lacks, i
        if arena.size[0] + most > len(arena.row):  # the front has taken it
            return NEEDS_NODES, i
        if len(mute) == 0 or not mute[i]:
            node = greatest(arena, automaton, work, values, row, now)
            if node != BOTTOM:
                root = counts[N_ROOTS]
                roots.node[root], roots.clock[root], roots.key[root] = node, now, counts[KEY]
                counts[N_ROOTS] = root + 1
        note(arena, automaton, work, values, row, now)
    return DONE, len(feed.clocks)
