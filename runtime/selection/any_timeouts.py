"""WITH TIMEOUTS beside CONSUME BY ANY: each key is watched by itself at the end, once it is known what was consumed.

A start was dropped if it was under way, its window not closed, when a match of whatever key ended
(runtime.selection.timeouts has the definitions). The events of all keys are held until then: slow, as all of CONSUME BY
ANY.
"""

from __future__ import annotations

import pickle
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from runtime.arrays import AnyArray, IntArray
from runtime.compact_set.matches import Matches
from runtime.compact_set.tecs import inside
from runtime.program import Program
from runtime.selection.bound_timeouts import BoundWatch
from runtime.selection.key_events import KeyEvents
from runtime.selection.timeouts import Engine, WatchEngine


class Event(NamedTuple):
    """One of a key: its number in the stream of all keys, and what the engine was fed of it."""

    number: int
    symbol: Any
    time: Any
    position: int
    row: int


class AnyTimeoutsEngine:
    """See runtime.engine.Engine; keys need not be adjacent."""

    def __init__(self, program: Program, engine: Engine) -> None:
        self._program, self._engine = program, engine
        self._events: dict[int, list[Event]] = defaultdict(list)
        self._times: list[Any] = []  # of all events, by number
        self._ends: set[tuple[int, int]] = set()  # where matches ended: key and row

    def feed(
        self,
        symbols: AnyArray,
        times: AnyArray,
        positions: IntArray | None = None,
        keys: IntArray | None = None,
        rows: IntArray | None = None,
        mute: AnyArray | None = None,
    ) -> Iterator[Matches]:
        """See Engine.feed; nothing is mute."""
        for i in range(len(symbols)):
            own = self._events[0 if keys is None else int(keys[i])]
            position = int(positions[i]) if positions is not None else own[-1].position + 1 if own else 0
            row = position if rows is None else int(rows[i])
            own.append(Event(len(self._times), symbols[i], times[i], position, row))
            self._times.append(times[i])
        for matches in self._engine.feed(symbols, times, positions, keys, rows):
            ends = matches.positions[matches.offsets[1:] - 1]
            self._ends |= set(zip(matches.key.tolist(), ends.tolist(), strict=True))
            yield matches

    def count(
        self,
        symbols: AnyArray,
        times: AnyArray,
        positions: IntArray | None = None,
        keys: IntArray | None = None,
        mute: AnyArray | None = None,
    ) -> int:
        """Matches and, at the end, timeouts. See Engine.count."""
        return sum(matches.n for matches in self.feed(symbols, times, positions, keys, None, mute))

    def flush(self) -> Iterator[Matches]:
        """See Engine.flush."""
        yield from self._engine.flush()
        ends = sorted(
            event.number for key, own in self._events.items() for event in own if (key, event.row) in self._ends
        )
        for key, own in self._events.items():
            watch = self._watch(own, ends)
            symbols, times = np.array([event.symbol for event in own]), np.array([event.time for event in own])
            positions, rows = (np.array([getattr(event, name) for event in own], np.int64)
                               for name in ("position", "row"))  # fmt: skip
            keys = np.full(len(own), key, np.int64)
            yield from watch.feed(symbols, times, positions, keys, rows)
            yield from watch.flush()
        self._events, self._times, self._ends = defaultdict(list), [], set()

    def _watch(self, own: list[Event], ends: list[int]) -> WatchEngine | BoundWatch:
        number = {event.row: event.number for event in own}

        def dropped(_: int, starts: IntArray, events: KeyEvents) -> AnyArray:
            found = [self._is_under_way(int(start), number[int(row)], own, ends)
                     for start, row in zip(starts, events.rows_at(starts), strict=True)]  # fmt: skip
            return np.array(found, np.bool_)

        assert self._program.timeouts is not None
        watch = BoundWatch if self._program.timeouts.rule == "bound" else WatchEngine
        return watch(self._program, dropped)

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
        return bool(inside(self._times[number], self._times[ends[at]], window.size, window.strict))

    def least_row(self) -> int:
        """See Engine.least_row."""
        rows = [event.row for own in self._events.values() for event in own]
        return min([self._engine.least_row(), *rows])

    def snapshot(self) -> bytes:
        return pickle.dumps((self._engine.snapshot(), dict(self._events), self._times, self._ends))

    def restore(self, data: bytes) -> None:
        own, events, self._times, self._ends = pickle.loads(data)
        self._engine.restore(own)
        self._events = defaultdict(list, events)
