"""What must not happen while a match goes on, and is several events, moves where the window of the whole begins.

    (A ; B) UNLESS (C ; C) WITHIN 5     at clocks 0, 1, 2, 3, 4 of A0 C1 C2 A3 B4 a match that ends at B4 may start with
                                        position 0 by its window, and with 2 by what has happened

So a run needs to remember nothing of what has happened: it has left the window. Kernels ask whether `now - start` is no
more than the width of the window. Here a run starts with its position, and `now` is as far beyond the least position
that a match may start with as the window is wide, EVER.
"""

from __future__ import annotations

import numpy as np

from runtime.arrays import IntArray
from runtime.nodes import Flat
from runtime.program import Window
from runtime.steppers.latest_start import LatestStart
from runtime.steppers.stepper import Feed
from runtime.steppers.window_begins import WindowBegins

EVER = 1 << 40  # more than any position
MEASURE = Window("events", EVER)


class Meanwhile:
    """The positions that matches may start with, while a stepper reads."""

    def __init__(self, automata: tuple[Flat, ...], window: Window | None, words: int) -> None:
        self._latest = LatestStart(automata, words)
        self._begins = WindowBegins(() if window is None else (window,))

    def begin_key(self, key: int) -> None:
        """The events that follow have this key."""
        self._begins.begin_key(key)
        self._latest.begin_key(key)

    def clocks(self, feed: Feed) -> IntArray:
        """For each event what `now` is, for starts that are positions."""
        least: IntArray = np.zeros((len(feed.positions), 1), np.int64)
        self._begins.write(feed, least)
        return self._latest.raised(feed, least[:, 0]) + EVER
