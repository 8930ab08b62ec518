"""WITH TIMEOUTS beside CONSUME BY ANY: each key is watched by itself at the end, once it is known what was consumed.

A start was dropped if it was under way, its window not closed, when a match of whatever key ended
(runtime.selection.timeouts has the definitions). The events of all keys are held until then: slow, as all of CONSUME BY
ANY.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from runtime.arrays import AnyArray, IntArray
from runtime.compact_set.matches import Matches
from runtime.compact_set.tecs import Bounds, inside
from runtime.program import Program
from runtime.selection.key_events import Dropped, KeyEvents
from runtime.steppers.stepper import Feed


class Event(NamedTuple):
    """One of a key: its number in the stream of all keys, and what was fed of it."""

    number: int
    symbol: Any
    time: Any
    position: int
    row: int


class DropsOfAll:
    """The events of all keys and where matches ended, until the end; `watched` then gives the timeouts of one key, from
    its events and a function that says what was dropped."""

    def __init__(self, program: Program, watched: Callable[[Feed, Dropped], Iterator[Matches]]) -> None:
        self._program, self._watched = program, watched
        self._events: dict[int, list[Event]] = defaultdict(list)
        self._times: list[Any] = []  # of all events, by number
        self._ends: set[tuple[int, int]] = set()  # where matches ended: key and row

    def read(self, feed: Feed) -> None:
        """Events that are read."""
        for i in range(len(feed.times)):
            own = self._events[int(feed.keys[i]) if len(feed.keys) else 0]
            event = feed.symbols[i], feed.times[i], int(feed.positions[i]), int(feed.rows[i])
            own.append(Event(len(self._times), *event))
            self._times.append(feed.times[i])

    def note(self, matches: Matches) -> None:
        """Matches that were given."""
        ends = matches.positions[matches.offsets[1:] - 1]
        self._ends |= set(zip(matches.key.tolist(), ends.tolist(), strict=True))

    def timeouts(self) -> Iterator[Matches]:
        """The stream has ended."""
        ends = sorted(
            event.number for key, own in self._events.items() for event in own if (key, event.row) in self._ends
        )
        for key, own in self._events.items():
            times, numbers = np.array([event.time for event in own]), np.full(len(own), key, np.int64)
            positions, rows = (np.array([getattr(event, name) for event in own], np.int64)
                               for name in ("position", "row"))  # fmt: skip
            symbols = np.array([event.symbol for event in own])
            feed = Feed(symbols, times, positions, rows, times, numbers, np.zeros(0, np.bool_))
            yield from self._watched(feed, self._dropped(own, ends))
        self._events, self._times, self._ends = defaultdict(list), [], set()

    def _dropped(self, own: list[Event], ends: list[int]) -> Dropped:
        number = {event.row: event.number for event in own}

        def dropped(_: int, starts: IntArray, events: KeyEvents) -> AnyArray:
            found = [self._is_under_way(int(start), number[int(row)], own, ends)
                     for start, row in zip(starts, events.rows_at(starts), strict=True)]  # fmt: skip
            return np.array(found, np.bool_)

        return dropped

    def _is_under_way(self, start: int, number: int, own: list[Event], ends: list[int]) -> bool:
        """Does the first match of any key that ends at or after a start end before its window has closed?"""
        assert self._program.timeouts is not None
        window, at = self._program.timeouts.window, bisect_left(ends, number)
        if at == len(ends):
            return False
        if window is None:
            return True
        if window.kind == "events":
            last = own[bisect_right(own, ends[at], key=lambda event: event.number) - 1]
            return last.position - start <= window.size
        return bool(inside(self._times[number], self._times[ends[at]], Bounds(window.size, window.strict)))

    def least_row(self) -> int:
        """See Selector.least_row."""
        rows = [event.row for own in self._events.values() for event in own]
        return min(rows, default=int(np.iinfo(np.int64).max))
