"""Clocks: they remember when parts of a run began, for windows inside the pattern and for starts that are watched.

A state of the table has some clocks, numbered by age, and says for each of them which windows have closed since
(runtime.automata.determinize_composed). An entry in that state has the time and the position at which they were set.
Before an event is read, an entry whose windows have closed since goes to the state that says so; as long as the oldest
clocks for which windows are open keep them open, no entry needs to be looked at.

Kernels that take `clocks` take None where no state has any: numba compiles them for that type without what asks for
clocks, so that a plain table pays nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from runtime.arrays import AnyArray
from runtime.automata.determinize_composed import FRESH
from runtime.compact_set.tecs import fits
from runtime.jit import inlined, kernel
from runtime.steppers.live import FIRST, N_LIVE, SIDE, WANTED, WANTED_STATE


class InnerWindows(NamedTuple):
    """The windows inside the pattern: by_position says whether `size` counts positions."""

    by_position: AnyArray  # bool[windows]
    size: AnyArray  # as the times
    strict: AnyArray  # bool[windows]


class ClockedStates(NamedTuple):
    """What is known of the clocks of states. `number[state]`: how many it has; `closed[state]`: which windows have
    closed for which, bit clock · windows + window. The hash table says (state, closed) → state."""

    number: AnyArray  # int32[states]
    closed: AnyArray  # int64[states]
    begin: AnyArray  # int32[states]: the clock of a run's first event, or -1
    forgetful: AnyArray  # bool[states]: known to stay as it is where a run that has not begun forgets (CONSUME BY)
    hash_state: AnyArray  # int32[slots], -1 where free
    hash_closed: AnyArray  # int64[slots]
    hash_next: AnyArray  # int32[slots]


class Oldest(NamedTuple):
    """By window: is it open for any clock, the oldest of which was set then?"""

    is_open: AnyArray  # bool[windows]
    time: AnyArray  # as the times, [windows]
    position: AnyArray  # int64[windows]


class Clocks(NamedTuple):
    """The clocks of live entries, and what is asked of them."""

    time: AnyArray  # as the times, [2, live, clocks]
    position: AnyArray  # int64[2, live, clocks]
    oldest: Oldest
    windows: InnerWindows
    of: ClockedStates


@inlined
def hash_of(a, b):
    x = (a * np.int64(-7046029254386353131)) ^ (b * np.int64(-4417276706812531889))
    return x ^ (x >> np.int64(29))


@kernel
def place_of(state, closed, slots):
    """Where to look for (state, closed) first."""
    return hash_of(np.int64(state), np.int64(closed)) & (slots - 1)


# ---------------------------------------------------------------- clocks move with runs


@inlined
def set_by(clocks, origin, event, r):
    """When clock r of a move's target was set, and at which position."""
    source = origin.sources[r]
    if source == FRESH:
        return event.time, event.position
    return clocks.time[origin.side, origin.k, source], clocks.position[origin.side, origin.k, source]


@inlined
def set_clocks(clocks, origin, event, state, k):
    """Entry k of the new side goes to a state, its clocks with it."""
    new = 1 - origin.side
    for r in range(clocks.of.number[state]):
        clocks.time[new, k, r], clocks.position[new, k, r] = set_by(clocks, origin, event, r)


@inlined
def has_clocks(clocks, origin, event, state, k):
    """Would the clocks of a move be those of entry k of the new side?"""
    new = 1 - origin.side
    for r in range(clocks.of.number[state]):
        time, position = set_by(clocks, origin, event, r)
        if clocks.position[new, k, r] != position or clocks.time[new, k, r] != time:
            return False
    return True


@inlined
def hash_of_clocks(clocks, origin, event, state):
    """Of a state and the positions at which the clocks of a move were set."""
    key = np.int64(0)
    for r in range(clocks.of.number[state]):
        _, position = set_by(clocks, origin, event, r)
        key = hash_of(key, position)
    return hash_of(np.int64(state), key)


@inlined
def copy_clocks(clocks, side, k, old_k):
    """Entry k is what another one of its side was."""
    for r in range(clocks.time.shape[2]):
        clocks.time[side, k, r] = clocks.time[side, old_k, r]
        clocks.position[side, k, r] = clocks.position[side, old_k, r]


# ---------------------------------------------------------------- windows close


@inlined
def closed_now(clocks, side, k, n, now, position):
    """Which windows have closed, for the n clocks of entry k."""
    windows, n_windows = clocks.windows, len(clocks.windows.size)
    closed = np.int64(0)
    for r in range(n):
        for w in range(n_windows):
            if not is_open(windows, w, clocks.time[side, k, r], clocks.position[side, k, r], now, position):
                closed |= np.int64(1) << (r * n_windows + w)
    return closed


@inlined
def is_open(windows, w, time, begin, now, position):
    """Is a window that began then still open?"""
    if windows.by_position[w]:
        return position - begin <= windows.size[w]
    return fits(time, now, windows.size[w], windows.strict[w])


@inlined
def state_with(of, state, closed):
    """The state that says so, or -1 if it is not known yet."""
    slots = len(of.hash_state)
    at = hash_of(np.int64(state), closed) & (slots - 1)
    while of.hash_state[at] >= 0:
        if of.hash_state[at] == state and of.hash_closed[at] == closed:
            return of.hash_next[at]
        at = (at + 1) & (slots - 1)
    return -1


@inlined
def age(live, clocks, now, position):
    """Send every entry to the state that says which windows have closed. False: one is not known. O(entries)."""
    counts, of = live.counts, clocks.of
    side = counts[SIDE]
    for k in range(counts[FIRST], counts[N_LIVE]):
        state = live.state[side, k]
        n = of.number[state]
        if n == 0:
            continue
        closed = closed_now(clocks, side, k, n, now, position)
        if closed == of.closed[state]:
            continue
        after = state_with(of, state, closed)
        if after < 0:
            counts[WANTED_STATE], counts[WANTED] = state, closed
            return False
        live.state[side, k] = after
    return True


@inlined
def note_oldest(live, clocks):
    """Remember, for each window, the oldest clock for which it is open: until it closes no state ages. O(entries)."""
    counts, of, oldest, n_windows = live.counts, clocks.of, clocks.oldest, len(clocks.windows.size)
    side = counts[SIDE]
    if n_windows == 0:
        return
    for w in range(n_windows):
        oldest.is_open[w] = False
    for k in range(counts[FIRST], counts[N_LIVE]):
        state = live.state[side, k]
        closed = of.closed[state]
        for r in range(of.number[state]):
            for w in range(n_windows):
                if (closed >> (r * n_windows + w)) & 1:
                    continue
                if not oldest.is_open[w] or clocks.position[side, k, r] < oldest.position[w]:
                    oldest.is_open[w] = True
                    oldest.time[w], oldest.position[w] = clocks.time[side, k, r], clocks.position[side, k, r]


@inlined
def nothing_closes(clocks, now, position):
    """Are all windows that were open at the last event read still open?"""
    oldest = clocks.oldest
    for w in range(len(clocks.windows.size)):
        if not oldest.is_open[w]:
            continue
        if not is_open(clocks.windows, w, oldest.time[w], oldest.position[w], now, position):
            return False
    return True


# ---------------------------------------------------------------- where runs began


@inlined
def begin_of(live, clocks, side, k):
    """The position with which the runs of an entry began; -1 if it does not say so. `side` is given, since it would be
    read again for every entry."""
    clock = clocks.of.begin[live.state[side, k]]
    return clocks.position[side, k, clock] if clock >= 0 else np.int64(-1)
