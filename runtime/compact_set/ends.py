"""So many of the matches that end at one event, of lists of matches where those of one end are adjacent.

most 2, last rows   3 3 3 7   |   7 7 8      the first two at 3, both of 7, one at 8
"""

from __future__ import annotations

import numpy as np

from runtime.arrays import AnyArray
from runtime.compact_set.matches import Matches


class Ends:
    """What is known of the last end: its key and row, and how many of its matches have come."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._key = self._row = -1
        self._count = 0

    @property
    def is_full(self) -> bool:
        """Whether further matches of the last end are in vain."""
        return self._count >= self._most

    def is_of_last(self, matches: Matches) -> bool:
        """Whether the first of the matches is of the last end."""
        return bool(matches.key[0] == self._key and matches.positions[matches.offsets[1] - 1] == self._row)

    def bounded(self, matches: Matches) -> Matches:
        """Of some matches those that are given; not none."""
        rows = matches.positions[matches.offsets[1:] - 1]
        begins = np.ones(matches.n, bool)
        begins[1:] = (rows[1:] != rows[:-1]) | (matches.key[1:] != matches.key[:-1])
        first = np.flatnonzero(begins)
        before = np.zeros(len(first), np.int64)
        before[0] = self._count if self.is_of_last(matches) else 0
        group = np.cumsum(begins) - 1
        rank = np.arange(matches.n) - first[group] + before[group]
        self._key, self._row, self._count = int(matches.key[-1]), int(rows[-1]), int(rank[-1]) + 1
        kept = rank < self._most
        return matches if kept.all() else _only(matches, kept)


def _only(matches: Matches, kept: AnyArray) -> Matches:
    lengths = np.diff(matches.offsets)
    events = np.repeat(kept, lengths)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths[kept])])
    return Matches(int(kept.sum()), offsets, matches.positions[events], matches.labels[events], matches.key[kept])
