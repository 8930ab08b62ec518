"""The events of one key, as WITH TIMEOUTS needs them: what was dropped is found by their places and times."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from runtime.arrays import AnyArray, IntArray


class KeyEvents:
    """The events of one key: `positions`, ascending, and for each its row and time."""

    def __init__(self, numbers: list[tuple[IntArray, IntArray]], times: list[AnyArray]) -> None:
        self.positions = np.concatenate([positions for positions, _ in numbers])
        self.rows = np.concatenate([rows for _, rows in numbers])
        self.times = np.concatenate(times) if times else np.zeros(0)

    def rows_at(self, positions: IntArray) -> IntArray:
        found: IntArray = self.rows[np.searchsorted(self.positions, positions)]
        return found

    def times_at(self, positions: IntArray) -> AnyArray:
        found: AnyArray = self.times[np.searchsorted(self.positions, positions)]
        return found

    def positions_of(self, rows: IntArray) -> IntArray:
        order = np.argsort(self.rows)
        found: IntArray = self.positions[order[np.searchsorted(self.rows, rows, sorter=order)]]
        return found


Dropped = Callable[[int, IntArray, KeyEvents], AnyArray]
