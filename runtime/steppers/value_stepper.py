"""Steppers whose kernels keep runs in tables by value, and join them by products: the loop that both have."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np

from runtime.compact_set.store import Store
from runtime.steppers.by_values import DONE, N_ROOTS, NEEDS_NODES, NEEDS_ROOTS
from runtime.steppers.stepper import Feed, Stepper


class ValueStepper(Stepper):
    """It calls its kernel until a feed is read, and brings what the kernel lacks."""

    looks_below = True

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._counts = np.array([0, -1, 0], np.int64)  # KEY, LAST_POSITION, N_ROOTS

    @abstractmethod
    def _step(self, at: int, feed: Feed) -> tuple[int, int]:
        """Call the kernel from event `at` on: (why it stopped, the event to go on with)."""

    def _widen(self, now: Any) -> None:
        """Its tables are full."""
        self.prune(now)

    def read(self, feed: Feed) -> Iterator[None]:
        """See Stepper.read."""
        store, counts, at = self.store, self._counts, 0
        symbols = feed.symbols if feed.symbols.ndim == 2 else feed.symbols[:, None]
        feed = feed.without_times(np.ascontiguousarray(symbols))
        while True:
            result, at = self._step(at, feed)
            store.n_roots = int(counts[N_ROOTS])
            yield
            store.n_roots = counts[N_ROOTS] = 0
            if result == DONE:
                return
            if result == NEEDS_NODES:
                store.make_room(feed.clocks[at], at)
            elif result != NEEDS_ROOTS:
                self._widen(feed.clocks[at])
            store.listed_before(at, result == NEEDS_ROOTS)
