"""What must not come before a match, as it happened in the window: found by what a match is compared with.

`!ANY x ; ANY g WHERE x.v >= g.v` asks whether some x before g, in the window that g ends, has at least its value. Each
kind of such an event has a log of what happened, in the order of the stream, and over each compared term a tree of its
greatest and least values: nodes stand for 1, 2, 4 … events in a row, made when the last of these happens. The latest
event that passes is found from the right: a node whose values cannot pass is skipped as a whole, else its right half
is looked at, then its left one. For one comparison that takes O(log n) steps; several are one search, which may have
to look at more, since different events of a node can have its extremes. For `=` there are chains by hash instead.

An event costs O(1), amortized. The latest one is enough where the first event of a run decides: it leaves the window
last. Where later events do, a match asks for what happened before the run began.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from runtime.arrays import AnyArray
from runtime.chain_cea import EQUAL, GREATER, GREATER_EQUAL, LESS, LESS_EQUAL, NOBODY, Early
from runtime.compact_set.tecs import inside
from runtime.jit import inlined, kernel
from runtime.program import NULL_CODE
from runtime.steppers.register_ops import BAD, EMPTY, apply, holds, passes, term_of

BEGIN, END = 0, 1  # in ends: what is inside the window, of what is there
NEVER = np.int64(np.iinfo(np.int64).max)  # after all positions, and values


class Happened(NamedTuple):
    """Of each kind of event (w) the log, of each check (c) the values. The capacity is a power of two."""

    clock: AnyArray  # clock[w, capacity]
    position: AnyArray  # int64[w, capacity]: in the stream
    value: AnyArray  # int64[c, capacity]
    most: AnyArray  # int64[c, 2 · capacity]: tree nodes, the leaf of event k at capacity + k
    least: AnyArray
    bucket: AnyArray  # int64[w, capacity]: the latest with this hash of its value …
    chain: AnyArray  # int64[w, capacity]: … and the one before it
    ends: AnyArray  # int64[w, 2]
    asked: AnyArray  # int64[c]: what a run is compared by


def new_happened(kinds: int, checks: int, capacity: int, clock: np.dtype) -> Happened:
    return Happened(
        clock=np.zeros((kinds, capacity), clock),
        position=np.zeros((kinds, capacity), np.int64),
        value=np.zeros((checks, capacity), np.int64),
        most=np.zeros((checks, 2 * capacity), np.int64),
        least=np.zeros((checks, 2 * capacity), np.int64),
        bucket=np.full((kinds, capacity), NOBODY, np.int64),
        chain=np.zeros((kinds, capacity), np.int64),
        ends=np.zeros((kinds, 2), np.int64),
        asked=np.zeros(checks, np.int64),
    )


def with_room(early: Early, old: Happened, least: int) -> Happened:
    """What is inside the window, with room for as much again, and for `least`."""
    n = int((old.ends[:, END] - old.ends[:, BEGIN]).max(initial=0))
    capacity = 1 << (max(least, 2 * n + 1) - 1).bit_length()
    new = new_happened(len(old.ends), len(old.asked), capacity, old.clock.dtype)
    for w, (begin, end) in enumerate(old.ends.tolist()):
        own = slice(int(early.check_of[w]), int(early.check_of[w + 1]))
        new.clock[w, : end - begin] = old.clock[w, begin:end]
        new.position[w, : end - begin] = old.position[w, begin:end]
        new.value[own, : end - begin] = old.value[own, begin:end]
        new.ends[w, END] = end - begin
    remake(early, new)
    return new


@kernel
def remake(early, happened):
    """The trees and chains of what the logs hold."""
    happened.bucket[:] = NOBODY
    for w in range(len(happened.ends)):
        n = happened.ends[w, END]
        happened.ends[w, END] = 0
        for _ in range(n):
            add(early, happened, w)


@kernel
def forget_happened(happened):
    """A new stream begins."""
    happened.ends[:] = 0
    happened.bucket[:] = NOBODY


@inlined
def is_full(happened):
    """Does one of the logs lack room for an event?"""
    full = False
    for w in range(len(happened.ends)):
        full = full or happened.ends[w, END] == happened.clock.shape[1]
    return full


@inlined
def slot_of(happened, value):
    code = np.uint64(value) * np.uint64(0x9E3779B97F4A7C15)
    code ^= code >> np.uint64(32)
    return np.int64(code & np.uint64(happened.bucket.shape[1] - 1))


@inlined
def add(early, happened, w):
    """The event after the last one of kind w, which is in the log, into trees and chains."""
    k, size = happened.ends[w, END], happened.clock.shape[1]
    happened.ends[w, END] = k + 1
    for c in range(early.check_of[w], early.check_of[w + 1]):
        value = happened.value[c, k]
        node = size + k
        happened.most[c, node] = value  # a NULL, less than any code, is in no extreme
        happened.least[c, node] = NEVER if value == NULL_CODE else value
        while node > 1 and node & 1 == 1:
            node >>= 1
            happened.most[c, node] = max(happened.most[c, 2 * node], happened.most[c, 2 * node + 1])
            happened.least[c, node] = min(happened.least[c, 2 * node], happened.least[c, 2 * node + 1])
    if early.equal[w] != NOBODY:
        slot = slot_of(happened, happened.value[early.equal[w], k])
        happened.chain[w, k] = happened.bucket[w, slot]
        happened.bucket[w, slot] = k


@inlined
def note(automaton, happened, event, registers):
    """An event, if it is one that must not come before a match. Its checks of itself use no registers."""
    early, values = automaton.early, event.values
    for w in range(len(early.guard)):
        if holds(values, early.guard[w]) and apply(automaton, early.edge[w], values, registers, np.int64(0)):
            k = happened.ends[w, END]
            happened.clock[w, k], happened.position[w, k] = event.clock, event.position
            for c in range(early.check_of[w], early.check_of[w + 1]):
                happened.value[c, k] = term_of(values, early.term[c])
            add(early, happened, w)


@inlined
def expire(happened, now, bounds):
    """Forget what has left the window. Clocks do not decrease, so it is what came first."""
    for w in range(len(happened.ends)):
        k = happened.ends[w, BEGIN]
        while k < happened.ends[w, END] and not inside(happened.clock[w, k], now, bounds):
            k += 1
        happened.ends[w, BEGIN] = k


@inlined
def window_begin(happened):
    """The position of the first that is inside the window; all that came before it have left it."""
    first = NEVER
    for w in range(len(happened.ends)):
        if happened.ends[w, BEGIN] < happened.ends[w, END]:
            first = min(first, happened.position[w, happened.ends[w, BEGIN]])
    return first


@inlined
def can_pass(kind, value, most, least):
    """Can an event pass a check whose term lies between these?"""
    if value == EMPTY:
        return True
    if kind == LESS:
        return value < most
    if kind == LESS_EQUAL:
        return value <= most and most != NULL_CODE
    if kind == GREATER:
        return value > least
    if kind == GREATER_EQUAL:
        return value >= least
    if kind == EQUAL:
        return least <= value and value <= most
    return least < value or value < most


@inlined
def all_pass(early, happened, w, k):
    """Does event k of kind w pass all checks with what is asked?"""
    for c in range(early.check_of[w], early.check_of[w + 1]):
        asked = happened.asked[c]
        if asked != EMPTY and not passes(early.kind[c], asked, happened.value[c, k]):
            return False
    return True


@inlined
def by_chain(early, happened, w, below):
    """As latest_passing, by the chain of the value that the check for equality asks for."""
    k = happened.bucket[w, slot_of(happened, happened.asked[early.equal[w]])]
    while k >= happened.ends[w, BEGIN]:
        if k < below and all_pass(early, happened, w, k):
            return k
        k = happened.chain[w, k]
    return np.int64(NOBODY)


@inlined
def by_tree(early, happened, w, below):
    """As latest_passing, by the trees: nodes of 2^j events that end before event `after`, from the right."""
    size, after = happened.clock.shape[1], below
    while after > happened.ends[w, BEGIN]:
        j = 0
        while (after >> j) & 1 == 0:
            j += 1
        node = (size + after - 1) >> j
        while j >= 0:
            possible = True
            for c in range(early.check_of[w], early.check_of[w + 1]):
                most, least = happened.most[c, node], happened.least[c, node]
                possible = possible and can_pass(early.kind[c], happened.asked[c], most, least)
            if not possible:
                after -= 1 << j
                break
            if j == 0:
                if all_pass(early, happened, w, after - 1):
                    return after - 1
                after -= 1
                break
            j -= 1
            node = 2 * node + 1
    return np.int64(NOBODY)


@inlined
def latest_passing(early, happened, w, below):
    """The latest event of kind w inside the window, of those before number `below`, that passes with what is asked."""
    if below <= happened.ends[w, BEGIN]:
        return np.int64(NOBODY)
    for c in range(early.check_of[w], early.check_of[w + 1]):
        if happened.asked[c] == BAD or happened.asked[c] == NULL_CODE:
            return np.int64(NOBODY)
    if early.equal[w] != NOBODY and happened.asked[early.equal[w]] != EMPTY:
        return by_chain(early, happened, w, below)
    return by_tree(early, happened, w, below)


@kernel
def prevented_since(early, happened, q, values):
    """The position of the last event inside the window that prevents what begins with an event at place q, by what that
    says alone; -1 if there is none."""
    last = np.int64(-1)
    for w in range(len(early.guard)):
        if early.decided[w]:
            for c in range(early.check_of[w], early.check_of[w + 1]):
                term = early.outside[q, c]
                happened.asked[c] = term_of(values, term) if term != NOBODY else EMPTY
            k = latest_passing(early, happened, w, happened.ends[w, END])
            if k != NOBODY:
                last = max(last, happened.position[w, k])
    return last


@kernel
def is_prevented(early, happened, registers, row, begun):
    """Is there an event inside the window, before position `begun`, that prevents the match with these registers?"""
    for w in range(len(early.guard)):
        if early.decided[w]:
            continue
        low, high = happened.ends[w, BEGIN], happened.ends[w, END]
        while low < high:
            middle = (low + high) >> 1
            if happened.position[w, middle] < begun:
                low = middle + 1
            else:
                high = middle
        for c in range(early.check_of[w], early.check_of[w + 1]):
            happened.asked[c] = registers[row, early.register[c]]
        if latest_passing(early, happened, w, low) != NOBODY:
            return True
    return False
