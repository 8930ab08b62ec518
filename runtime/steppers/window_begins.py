"""Terms that runs look at and Spark does not compute: where an event stands, where its inner windows begin, and the
first position after the latest start of what must not happen meanwhile (runtime.steppers.latest_start).

    (A ; B WITHIN 5) ; C     at the clocks 0, 3, 6, 9 the positions are 0, 1, 2, 3, and the windows that these events
                             end begin with the positions 0, 0, 1, 2

A run that holds the position of its first event, 0, fits the window of the second event, and not that of the third. The
order of positions is that of the stream, so all clocks are served alike, and an ordered index finds the runs that fit.
"""

from __future__ import annotations

import numpy as np

from runtime.arrays import AnyArray, IntArray
from runtime.chain_cea import BEGINS, FIRST, POSITION
from runtime.compact_set.tecs import Bounds, inside
from runtime.jit import kernel
from runtime.program import Window
from runtime.steppers.latest_start import LatestStart
from runtime.steppers.stepper import NO_KEYS, Feed


@kernel
def begins_kernel(clocks, positions, keys, known, bounds, found):
    """found[i]: the position of the first event that is inside the window which event known + i ends. O(events)."""
    first = 0
    for i in range(len(clocks)):
        if len(keys) > 0 and keys[i] != keys[first]:
            first = i
        while first < i and not inside(clocks[first], clocks[i], bounds):
            first += 1
        if i >= known:
            found[i - known] = positions[first]
    return first


class WindowBegins:
    """The terms of one stepper's events. It keeps the clocks and positions of the key that is being read, as far back
    as the widest of the windows reaches."""

    def __init__(self, windows: tuple[Window, ...], latest: tuple[LatestStart, ...] = ()) -> None:
        self._windows, self._latest, self._key = windows, latest, 0
        self._times: AnyArray = np.zeros(0, np.int64)
        self._positions: IntArray = np.zeros(0, np.int64)

    def begin_key(self, key: int) -> None:
        """The events that follow have this key."""
        self._key, self._times, self._positions = key, self._times[:0], self._positions[:0]
        for latest in self._latest:
            latest.begin_key(key)

    def added(self, feed: Feed) -> AnyArray:
        """The symbols int64[n, words + terms] of a feed, with the terms of runtime.chain_cea.POSITION and after it."""
        n, own = feed.symbols.shape
        first = BEGINS + len(self._latest)
        symbols = np.empty((n, own + first + len(self._windows)), np.int64)
        if n == 0:
            return symbols
        symbols[:, :own] = feed.symbols
        more = symbols[:, own:]
        more[:, POSITION], more[:, FIRST] = feed.positions, 0
        for k, latest in enumerate(self._latest):
            more[:, BEGINS + k] = latest.raised(feed, np.zeros(n, np.int64))
        self.write(feed, more[:, first:])
        return symbols

    def write(self, feed: Feed, begins: AnyArray) -> None:
        """The position that each window of each event begins with, into int64[n, windows]."""
        n = len(feed.positions)
        if n == 0:
            return
        known = len(self._times) if len(self._times) and (not len(feed.keys) or feed.keys[0] == self._key) else 0
        times = np.concatenate([self._times[:known].astype(feed.times.dtype), feed.times])
        positions = np.concatenate([self._positions[:known], feed.positions])
        keys = np.concatenate([np.full(known, self._key, np.int64), feed.keys]) if len(feed.keys) else NO_KEYS
        kept = known + n - 1
        for k, window in enumerate(self._windows):
            clocks = positions if window.kind == "events" else times
            bounds = Bounds(clocks.dtype.type(window.size), window.strict)
            kept = min(kept, int(begins_kernel(clocks, positions, keys, known, bounds, begins[:, k])))
        self._times, self._positions = times[kept:].copy(), positions[kept:].copy()
        self._key = int(feed.keys[-1]) if len(feed.keys) else self._key
