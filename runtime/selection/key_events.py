"""The events of the key that is being read: what nodes hold by position is looked up here, as a row or a time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from runtime.arrays import AnyArray, IntArray
from runtime.compact_set.matches import Matches
from runtime.selection import select
from runtime.steppers.stepper import Feed


class KeyEvents:
    """`positions`, ascending, and for each event its row and time."""

    def __init__(self) -> None:
        self._parts: list[tuple[IntArray, IntArray, AnyArray]] = []

    def add(self, feed: Feed) -> None:
        """Events that are about to be read."""
        self._parts.append((feed.positions, feed.rows, feed.times))

    def clear(self) -> None:
        """Another key begins."""
        self._parts = []

    def drop_before(self, position: int) -> None:
        """No event before this position is asked for any more."""
        self._parts = [part for part in self._parts if part[0][-1] >= position]

    def _column(self, k: int) -> AnyArray:
        if len(self._parts) > 1:
            joined = (np.concatenate(columns) for columns in zip(*self._parts, strict=True))
            self._parts = [tuple(joined)]  # type: ignore[list-item]
        return self._parts[0][k] if self._parts else np.zeros(0, np.int64)

    def rows_at(self, positions: IntArray) -> IntArray:
        found: IntArray = self._column(1)[np.searchsorted(self._column(0), positions)]
        return found

    def times_at(self, positions: IntArray) -> AnyArray:
        found: AnyArray = self._column(2)[np.searchsorted(self._column(0), positions)]
        return found

    def positions_of(self, rows: IntArray) -> IntArray:
        positions, own = self._column(0), self._column(1)
        order = np.argsort(own)
        found: IntArray = positions[order[np.searchsorted(own, rows, sorter=order)]]
        return found

    def least_row(self, position: int) -> int:
        """The least row of the events from this position on."""
        rows = self._column(1)[self._column(0) >= position]
        return int(rows.min(initial=np.iinfo(np.int64).max))

    def matches(self, chosen: list[select.Match], key: int) -> Matches:
        """Matches that were chosen by position, as rows."""
        sizes = [len(match.positions) for match in chosen]
        positions = np.array([p for match in chosen for p in match.positions], np.int64)
        return Matches(
            n=len(chosen),
            offsets=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            positions=self.rows_at(positions),
            labels=np.array([label for match in chosen for label in match.labels], np.int32),
            key=np.full(len(chosen), key, np.int64),
        )


Dropped = Callable[[int, IntArray, KeyEvents], AnyArray]
"""(key, positions of starts, the key's events) → which of the starts were dropped."""
