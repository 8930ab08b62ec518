"""What a table of states knows of its clocks (runtime.steppers.clocks), as arrays that grow."""

from __future__ import annotations

from typing import Any

import numpy as np

from runtime import capacities
from runtime.arrays import AnyArray, grown
from runtime.automata.determinize import DEAD
from runtime.automata.determinize_composed import FRESH, Composed
from runtime.errors import ExecutionError
from runtime.program import Window
from runtime.steppers.clocks import ClockedStates, Clocks, InnerWindows, Oldest, place_of
from runtime.steppers.live import FIRST, SIDE, START, Live

CODE_BITS = 62
OF_STATES = ("number", "closed", "begin", "forgetful")


class ClockTable:
    """The clocks of the states that were met, and of the entries that live: `clocks` is what kernels read and write."""

    def __init__(self, states: Composed, windows: tuple[Window, ...]) -> None:
        self._states, self._inner = states, windows
        self._width = max(1, len(windows))  # bits of a clock in `closed`
        self._n_known = self._n_hashed = 0
        n, codes = capacities.STATES, capacities.CODES
        of = ClockedStates(
            number=np.zeros(n, np.int32),
            closed=np.zeros(n, np.int64),
            begin=np.full(n, -1, np.int32),
            forgetful=np.zeros(n, np.bool_),
            hash_state=np.full(codes, -1, np.int32),
            hash_closed=np.zeros(codes, np.int64),
            hash_next=np.zeros(codes, np.int32),
        )
        self.clocks = self._new(of, np.dtype(np.int64))

    def _new(self, of: ClockedStates, times: np.dtype) -> Clocks:
        n, inner = len(self._inner), self._inner
        return Clocks(
            time=np.zeros((2, 0, 0), times),
            position=np.zeros((2, 0, 0), np.int64),
            oldest=Oldest(np.zeros(n, np.bool_), np.zeros(n, times), np.zeros(n, np.int64)),
            windows=InnerWindows(
                by_position=np.array([w.kind == "events" for w in inner], np.bool_),
                size=np.array([w.size for w in inner], times),
                strict=np.array([w.strict for w in inner], np.bool_),
            ),
            of=of,
        )

    def begin(self, times: np.dtype) -> None:
        """Clocks and windows have the type of the times, which the first feed shows."""
        if times != self.clocks.time.dtype:
            self.clocks = self._new(self.clocks.of, times)

    # ------------------------------------------------------------ of states

    def fit(self) -> None:
        """What is known of each state met so far."""
        members = self._states.members
        if len(members) > len(self.clocks.of.number):
            of = self.clocks.of
            self._set(**{name: grown(getattr(of, name), 2 * len(members)) for name in OF_STATES})
        of = self.clocks.of
        for number in range(self._n_known, len(members)):
            closed = members[number].closed
            if len(closed) * self._width > CODE_BITS:
                raise ExecutionError(
                    "REGISTER_LIMIT",
                    found=len(closed),
                    limit=CODE_BITS // self._width,
                    hint="Use fewer windows inside the pattern, or repeat less under them.",
                )
            of.number[number] = len(closed)
            of.begin[number] = self._states.begin(number)
            of.closed[number] = sum(bits << (r * self._width) for r, bits in enumerate(closed))
        self._n_known = len(members)

    def add_closed(self, state: int, closed: int) -> None:
        """Make known which state says of another one that these windows have closed."""
        n, width = int(self.clocks.of.number[state]), self._width
        after = self._states.expired(state, tuple(closed >> (r * width) & ((1 << width) - 1) for r in range(n)))
        if 2 * (self._n_hashed + 1) > len(self.clocks.of.hash_state):
            self._rehash()
        self._put(state, closed, after)
        self._n_hashed += 1

    def _rehash(self) -> None:
        old, size = self.clocks.of, 4 * len(self.clocks.of.hash_state)
        self._set(
            hash_state=np.full(size, -1, np.int32),
            hash_closed=np.zeros(size, np.int64),
            hash_next=np.zeros(size, np.int32),
        )
        for at in np.flatnonzero(old.hash_state >= 0):
            self._put(int(old.hash_state[at]), int(old.hash_closed[at]), int(old.hash_next[at]))

    def _put(self, state: int, closed: int, after: int) -> None:
        of = self.clocks.of
        at = int(place_of(state, closed, len(of.hash_state)))
        while of.hash_state[at] >= 0:
            at = (at + 1) & (len(of.hash_state) - 1)
        of.hash_state[at], of.hash_closed[at], of.hash_next[at] = state, closed, after

    def _set(self, **columns: AnyArray) -> None:
        self.clocks = self.clocks._replace(of=self.clocks.of._replace(**columns))

    # ------------------------------------------------------------ of entries

    def fit_entries(self, n_entries: int, n_clocks: int) -> None:
        """Room for so many clocks of so many entries."""
        old = self.clocks
        n, most = old.time.shape[1:]
        if n_entries <= n and n_clocks <= most:
            return
        columns: dict[str, Any] = {}
        for name in ("time", "position"):
            columns[name] = np.zeros((2, max(n, n_entries), max(most, n_clocks)), getattr(old, name).dtype)
            columns[name][:, :n, :most] = getattr(old, name)
        self.clocks = old._replace(**columns)

    def forget(self, live: Live) -> None:
        """The run that has not begun forgets what it has seen of partial matches: it goes to another state, its clocks
        with it. They never lie below where they come from, so that is done in place."""
        counts, clocks = live.counts, self.clocks
        side = int(counts[SIDE])
        state = int(live.state[side, START])
        target = self._states.forgotten(state)
        self.fit()
        self.clocks.of.forgetful[state] = target.is_same(state)  # next time the kernel goes on
        live.state[side, START] = max(target.state, 0)
        counts[FIRST] = START if target.state != DEAD else START + 1
        for r, source in enumerate(target.sources):
            assert source != FRESH
            for column in (clocks.time, clocks.position):
                column[side, START, r] = column[side, START, source]
