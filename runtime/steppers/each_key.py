"""CONSUME BY ANY: an output drops the runs of all keys, so that all events are read in the global order.

Each key has a stepper of its own, which reads one event at a time, since any event may consume what every other key
holds. Slow, and right: about ten thousand events a second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from runtime.arrays import AnyArray, IntArray
from runtime.compact_set.store import Store
from runtime.steppers.stepper import Feed, Stepper


class EachKey(Stepper):
    """A stepper for each key, as `make` gives them. Keys need not be adjacent."""

    looks_below = True  # some of them may

    def __init__(self, store: Store, make: Callable[[], Stepper]) -> None:
        super().__init__(store)
        store.whole = True  # positions, and windows that count them, are those of a key
        self._make = make
        self._steppers: dict[int, Stepper] = {}
        self._clocks: dict[int, Any] = {}  # of the last event of each key …
        self._positions: dict[int, int] = {}  # … and its position

    def next_positions(self, last_position: int, last_key: int, n: int, keys: IntArray) -> IntArray:
        """See Stepper.next_positions: each key goes on where it was."""
        found, own = np.empty(n, np.int64), dict(self._positions)
        for i, key in enumerate(keys.tolist() if len(keys) else [0] * n):
            found[i] = own[key] = own.get(key, -1) + 1
        return found

    def read(self, feed: Feed) -> Iterator[None]:
        """See Stepper.read."""
        keys = feed.keys.tolist() if len(feed.keys) else [0] * len(feed.times)
        for i, key in enumerate(keys):
            if key not in self._steppers:
                self._steppers[key] = self._make()
                self._steppers[key].begin_key(key)
            self._clocks[key], self._positions[key] = feed.clocks[i], int(feed.positions[i])
            consumed = False
            for _ in self._steppers[key].read(feed.part(i, i + 1)):
                consumed = consumed or self.store.n_roots > 0
                yield
            if consumed:
                for stepper in self._steppers.values():
                    stepper.drop_runs()

    def prune(self, now: Any) -> None:
        """See Holder.prune: each key by its own clock."""
        for key, stepper in self._steppers.items():
            stepper.prune(self._clocks[key])

    def held(self) -> AnyArray:
        """See Holder.held."""
        return np.concatenate([np.zeros(0, np.int32), *(stepper.held() for stepper in self._steppers.values())])

    def renumber(self, forward: AnyArray) -> None:
        """See Holder.renumber."""
        for stepper in self._steppers.values():
            stepper.renumber(forward)
