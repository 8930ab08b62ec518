"""The matches of each start after which something has not happened, as a kernel: `SEQ(A, B, !C) WITHIN 10`, at a cost
that no window changes.

It is the product of matrices over a queue of two_stacks.py, with *all* ways from a place to another in place of the
greatest: where that takes the greater of two ways and joins two that follow each other, this takes the union of two
sets and the product of two (runtime.compact_set.products). So an entry of a matrix is a node of the compact set, which
stands for all ways of a stretch from the one place to the other, and a new event costs a few nodes an entry, whatever
they stand for. What one event does (steps) is the same; what differs is a few lines each, and what leaves the queue:

*When a match is known.* A match reaches the place `late` with its last event, and stays there until a C ends it. It is
known when the window of its first event has closed. This is when that event leaves the front: its matches are the ways
that begin *just there*, through the rest of the front and the back, to `late`. So a row of the front, of an event that
begins something, holds the ways that begin at that event. Place 0 leads nowhere else, and no row of a matrix is of it.

    SEQ(A, B, !C) WITHIN 10      A1 B3 | C4 B5, the front before the bar; now comes an event at 12, and A1 leaves
      front, of A1               at the place after A: {1}     at `late`: {1, 3}
      back, C4 B5                from the place after A to `late`: {5}     from `late` to `late`: nothing
      the matches of A1          {5} × {1}

*Ways without events.* A run that takes none of a stretch is at one place after it: `stays`. It is no node, since the
empty set in a union would have no window that it lies in.

*Each once.* The planner takes automata of which each match has one way (register_runs); then so has each part of it
between two places, and no two sides of a union have a match in common. No set is empty, and a union puts on its left
what its newest event (its oldest, in the front) has added: an output or a product. So listing goes down few nodes to a
match, and costs what there is to list. Whatever is in a set lies in one window, its own: nothing is cut off (`whole`).

*Ties.* An event at the time at which a window closes is inside it, or (`WITHIN <`) not: it is read before the event
leaves, or after, and that is what the window's clock says of every other event.

An event costs O(places · (places + edges)), amortized, and listing what the matches have. Registers, which were used
before, keep the runs of each start on their own: a B went to all of them.
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
from runtime.steppers.two_stacks import BACK, HEAD, N_BACK, N_FRONT, SPARE, Steps, moves, takes

# Places in Queue.counts, behind those of two_stacks: of the back, how many begin something, and the first of them.
N_BEGINS, FIRST = N_BACK + 1, N_BACK + 2


class Matrices(NamedTuple):
    """Of some stretches of events: the ways from each place to each. Row 0 is of the first event alone: the ways that
    begin there."""

    node: AnyArray  # int32[3, places, places]: those with events, or ⊥
    stays: AnyArray  # int64[3, places]: to where the way without events leads, or NOBODY


class Queue(NamedTuple):
    """The events of the window. Rows of the front are of those that begin something."""

    front_clock: AnyArray  # as the clocks, [front]
    front_node: AnyArray  # int32[front, places]: the ways that begin there, to the end of the front
    clock: AnyArray  # as the clocks, [back]
    event: AnyArray  # int32[back, positions]: its node, if it can be at that position, or ⊥
    stay: AnyArray  # int32[back, places]: where runs are after it that do not take it, or NOBODY
    reports: AnyArray  # bool[back]: are the matches that end there wanted?
    counts: AnyArray  # int64[5]


class Work(NamedTuple):
    """All that a stepper keeps. `latest`: the clock of the last event of the queue; `late`: the place where matches
    wait; `begins`: can a match begin at a position?"""

    queue: Queue
    matrices: Matrices
    steps: Steps
    latest: AnyArray  # as the clocks, [1]
    late: int
    begins: AnyArray  # bool[positions]


@inlined
def united(arena, one, other):
    """The union of two sets without a match in common, either of them ⊥ perhaps; `one` is listed first."""
    if one == BOTTOM or other == BOTTOM:
        return max(one, other)
    return link(arena, one, other)


@inlined
def set_identity(matrices, m):
    """Nothing has happened: all places stay as they are."""
    n = matrices.node.shape[1]
    for p in range(n):
        matrices.stays[m, p] = p if p > 0 else NOBODY
        for q in range(n):
            matrices.node[m, p, q] = BOTTOM


@inlined
def clear(matrices, m):
    n = matrices.node.shape[1]
    for p in range(n):
        matrices.stays[m, p] = NOBODY
        for q in range(n):
            matrices.node[m, p, q] = BOTTOM


@inlined
def append(arena, work, n_steps):
    """One more event at the end of the back."""
    matrices, steps = work.matrices, work.steps
    n = matrices.node.shape[1]
    clear(matrices, SPARE)
    for k in range(n_steps):
        begin, end, event = steps.begin[k], steps.end[k], np.int64(steps.node[k])
        if begin == 0:
            continue
        for p in range(1, n):
            before, stays = np.int64(matrices.node[BACK, p, begin]), matrices.stays[BACK, p] == begin
            made = before
            if event == BOTTOM:
                if stays:
                    matrices.stays[SPARE, p] = end
            else:
                if before != BOTTOM:
                    made = extend(arena, arena.row[event], arena.label[event], before, arena.start[event])
                if stays:
                    made = united(arena, event, made)
            if made != BOTTOM:
                matrices.node[SPARE, p, end] = united(arena, made, np.int64(matrices.node[SPARE, p, end]))
    for p in range(1, n):
        matrices.stays[BACK, p] = matrices.stays[SPARE, p]
        for q in range(1, n):
            matrices.node[BACK, p, q] = matrices.node[SPARE, p, q]


@inlined
def prepend(arena, work, of, to, n_steps):
    """The matrix `to`: that of a stretch, `of`, and of an event before it."""
    matrices, steps = work.matrices, work.steps
    n = matrices.node.shape[1]
    clear(matrices, to)
    for k in range(n_steps):
        begin, end, event = steps.begin[k], steps.end[k], np.int64(steps.node[k])
        if event == BOTTOM:
            matrices.stays[to, begin] = matrices.stays[of, end]
        for q in range(1, n):
            after = np.int64(matrices.node[of, end, q])
            made = after
            if event != BOTTOM:
                if after != BOTTOM:
                    made = product(arena, after, event)
                if matrices.stays[of, end] == q:
                    made = united(arena, event, made)
            if made != BOTTOM:
                matrices.node[to, begin, q] = united(arena, made, np.int64(matrices.node[to, begin, q]))


# ---------------------------------------------------------------- what an event does


@inlined
def steps_of(automaton, work, at):
    """Write the steps of an event of the back, without those after which nothing goes on or waits. How many they are,
    and does the event begin something?"""
    queue, steps, n, begins = work.queue, work.steps, 0, False
    for p in range(1, queue.stay.shape[1]):
        if queue.stay[at, p] != NOBODY:
            steps.begin[n], steps.end[n], steps.node[n] = p, queue.stay[at, p], BOTTOM
            n += 1
    for q in range(queue.event.shape[1]):
        if queue.event[at, q] == BOTTOM:
            continue
        for e in range(automaton.edge_of[q], automaton.edge_of[q + 1]):
            begins = begins or automaton.source[e] == 0
            if automaton.to[q] != NOBODY:
                steps.begin[n], steps.end[n], steps.node[n] = automaton.source[e], automaton.to[q], queue.event[at, q]
                n += 1
            if automaton.last[q] and queue.reports[at]:
                steps.begin[n], steps.end[n], steps.node[n] = automaton.source[e], work.late, queue.event[at, q]
                n += 1
    return n, begins


@inlined
def most_nodes(automaton, places):
    """More nodes than one event ever makes, or than one start is let out with."""
    return len(automaton.guard) + 3 * places * (2 * len(automaton.source) + places) + 4


# ---------------------------------------------------------------- the window slides


@kernel
def forget(work):
    """Nothing has happened yet."""
    for k in range(len(work.queue.counts)):
        work.queue.counts[k] = 0
    set_identity(work.matrices, BACK)


@inlined
def turn(arena, automaton, work):
    """The back becomes the front. DONE, or what is lacking, without effect."""
    queue, matrices, counts = work.queue, work.matrices, work.queue.counts
    size, most = arena.size[0], most_nodes(automaton, queue.stay.shape[1])
    set_identity(matrices, SPARE)
    m, first = SPARE, counts[N_BEGINS]
    for at in range(counts[N_BACK] - 1, counts[FIRST] - 1, -1):
        if arena.size[0] + most > len(arena.row):
            arena.size[0] = size
            return NEEDS_NODES
        n_steps, begins = steps_of(automaton, work, at)
        prepend(arena, work, m, 2 * SPARE + 1 - m, n_steps)
        m = 2 * SPARE + 1 - m
        goes_on = False
        for q in range(1, queue.stay.shape[1]):
            goes_on = goes_on or matrices.node[m, 0, q] != BOTTOM
        if begins and goes_on:
            first -= 1
            queue.front_clock[first] = queue.clock[at]
            for q in range(queue.stay.shape[1]):
                queue.front_node[first, q] = matrices.node[m, 0, q]
    counts[HEAD], counts[N_FRONT] = first, counts[N_BEGINS]
    counts[N_BACK] = counts[N_BEGINS] = counts[FIRST] = 0
    set_identity(matrices, BACK)
    return DONE


@inlined
def matches_of(arena, work, at):
    """The node of the matches that begin at an event of the front, ⊥ if there is none."""
    queue, matrices, found = work.queue, work.matrices, np.int64(BOTTOM)
    for p in range(1, matrices.node.shape[1]):
        before, after = np.int64(queue.front_node[at, p]), np.int64(matrices.node[BACK, p, work.late])
        if before == BOTTOM:
            continue
        if after != BOTTOM:
            found = united(arena, product(arena, after, before), found)
        if matrices.stays[BACK, p] == work.late:
            found = united(arena, before, found)
    return found


@inlined
def slide(space, automaton, work, stepped, now, ended):
    """Let out the matches of what is not inside the window at `now`, or (`ended`) of all. DONE, or what is lacking:
    then some were let out, and the rest is as it was. Roots have the clock of the last event: every event of their
    matches is inside the window there."""
    arena, roots, queue, counts = space.arena, space.roots, work.queue, work.queue.counts
    most = most_nodes(automaton, queue.stay.shape[1])
    while True:
        while counts[HEAD] < counts[N_FRONT] and (
            ended or not inside(queue.front_clock[counts[HEAD]], now, space.bounds)
        ):
            if arena.size[0] + most > len(arena.row):
                return NEEDS_NODES
            if stepped[N_ROOTS] == len(roots.node):
                return NEEDS_ROOTS
            node = matches_of(arena, work, counts[HEAD])
            if node != BOTTOM:
                root = stepped[N_ROOTS]
                roots.node[root], roots.clock[root], roots.key[root] = node, work.latest[0], stepped[KEY]
                stepped[N_ROOTS] = root + 1
            counts[HEAD] += 1
        if counts[HEAD] < counts[N_FRONT]:
            return DONE
        if counts[N_BEGINS] == 0:
            if counts[N_BACK] > 0:  # which nobody waits for
                forget(work)
            return DONE
        if not ended and inside(queue.clock[counts[FIRST]], now, space.bounds):
            return DONE
        lacks = turn(arena, automaton, work)
        if lacks != DONE:
            return lacks


@inlined
def is_idle(automaton, work, values):
    """Has nothing begun, and does the event begin nothing?"""
    counts = work.queue.counts
    idle = counts[HEAD] == counts[N_FRONT] and counts[N_BEGINS] == 0
    if idle:
        for q in range(len(work.begins)):
            idle = idle and not (work.begins[q] and takes(automaton, q, values))
    return idle


@inlined
def note(arena, automaton, work, values, row, now, reports):
    """The event joins the back, if it does something to what has begun, or begins something."""
    queue, counts = work.queue, work.queue.counts
    if is_idle(automaton, work, values):  # as below, without a node for nothing
        return
    at, acts = counts[N_BACK], False
    for q in range(len(automaton.guard)):
        node = np.int64(BOTTOM)
        leads = automaton.to[q] != NOBODY or (automaton.last[q] and reports)
        if leads and takes(automaton, q, values):
            node = extend(arena, row, automaton.label[q], BOTTOM, now)
            acts = True
        queue.event[at, q] = node
    acts = moves(automaton, queue.stay, at, values) or acts
    if not acts:
        return
    queue.clock[at], queue.reports[at] = now, reports
    n_steps, begins = steps_of(automaton, work, at)
    if counts[HEAD] == counts[N_FRONT] and counts[N_BEGINS] == 0 and not begins:
        return
    if begins and counts[N_BEGINS] == 0:
        counts[FIRST] = at
    counts[N_BEGINS] += begins
    counts[N_BACK] = at + 1
    work.latest[0] = now
    append(arena, work, n_steps)


@kernel
def step_kernel(space, automaton, work, counts, begin, feed):
    """As runtime.steppers.two_stacks.step_kernel; an event that lacked room has at the most let out matches."""
    keys, mute, queue, arena = feed.keys, feed.mute, work.queue, space.arena
    most = most_nodes(automaton, queue.stay.shape[1])
    for i in range(begin, len(feed.clocks)):
        now = feed.clocks[i]
        ended = len(keys) > 0 and keys[i] != counts[KEY]
        if not ended and feed.symbols[i, 0] == 0 and automaton.words == 1:
            counts[LAST_POSITION] = feed.positions[i]
            continue
        lacks = slide(space, automaton, work, counts, now, ended)
        if lacks != DONE:
            return lacks, i
        if ended:
            counts[KEY] = keys[i]
            forget(work)
        if arena.size[0] + most > len(arena.row):
            return NEEDS_NODES, i
        if queue.counts[N_BACK] == len(queue.clock):
            return NEEDS_BLOCKS, i
        counts[LAST_POSITION] = feed.positions[i]
        reports = len(mute) == 0 or not mute[i]
        note(arena, automaton, work, Values(feed.symbols, i, automaton.words), feed.rows[i], now, reports)
    return DONE, len(feed.clocks)


@kernel
def end_kernel(space, automaton, work, counts):
    """The key has ended: let out what waits. DONE, or what is lacking."""
    return slide(space, automaton, work, counts, work.latest[0], True)
