"""AFTER MATCH SKIP beside NXT, LAST or SKIP TILL NEXT MATCH: matches are taken one by one, as they complete.

The earliest end first, of those of one end the greatest by the strategy, and then starts up to a point are dropped
(runtime.selection.select). The stepper consumes by itself, where a match drops all that began before its end, or leaves
for each start and end the greatest match. Where matches become known only after their end (`ends_late`), those of a key
are held until it ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

import numpy as np

from runtime import capacities
from runtime.arrays import IntArray
from runtime.compact_set.matches import Matches
from runtime.compact_set.store import Store
from runtime.limits import Listed
from runtime.program import Program
from runtime.selection import select
from runtime.selection.selector import Picking
from runtime.steppers.stepper import Feed, Stepper


class Taking(Picking):
    """Holds the matches of one end, or of a key. Nodes remember the numbers of events in the stream of all keys."""

    lists_to_count = True

    def __init__(self, program: Program, store: Store, stepper: Stepper) -> None:
        assert program.skip is not None
        super().__init__(program, store, stepper)
        self._skip, self._late = program.skip, program.ends_late
        self._rows: IntArray = np.zeros(0, np.int64)  # of the events from number `_first` on
        self._first = 0
        self._most = capacities.FEW_ROWS
        self._dropped = -1  # the number of the last event at which no match may begin any more
        self._listed = Listed(program.max_matches)
        self._held: list[select.Match] = []  # of one key where matches come late, else of one end
        self._key = 0  # of these

    def rows(self, feed: Feed) -> IntArray:
        """See Selector.rows."""
        begin = self._first + len(self._rows)
        self._rows = np.concatenate([self._rows, feed.rows])
        return np.arange(begin, begin + len(feed.rows), dtype=np.int64)

    def take(self) -> Iterator[Matches]:
        """See Selector.take: matches are held back until those of their end, or of their key, are all there."""
        for matches in self.store.listed() if self.program.pick == "ALL" else super().take():
            yield from self._take(matches)

    def count(self) -> int:
        """See Selector.count."""
        return sum(matches.n for matches in self.take())

    def _take(self, matches: Matches) -> Iterator[Matches]:
        begins = matches.positions[matches.offsets[:-1]]
        for k in np.flatnonzero(begins > self._dropped).tolist():
            own = slice(int(matches.offsets[k]), int(matches.offsets[k + 1]))
            numbers, labels = tuple(matches.positions[own].tolist()), tuple(matches.labels[own].tolist())
            key = int(matches.key[k])
            if self._held and (key != self._key if self._late else numbers[-1] != self._held[0].end):
                yield from self._settled()
            if numbers[0] > self._dropped:
                self._listed.add(1)
                names = tuple(self.program.labels[i] for i in labels)
                self._held.append(select.Match(numbers, labels, names))
                self._key = key

    def fed(self) -> Iterator[Matches]:
        """See Selector.fed."""
        if not self._late:
            yield from self._settled()
        if len(self._rows) > self._most:
            self._forget()

    def ended(self, key: int) -> Iterator[Matches]:
        """See Selector.ended."""
        return self._settled()

    def _settled(self) -> Iterator[Matches]:
        """What is taken of the matches that are held."""
        chosen: list[select.Match] = []
        for _, rivals in groupby(sorted(self._held, key=lambda match: match.end), key=lambda match: match.end):
            taken = select.taken(rivals, self._skip, self.program.variables, self._dropped)
            if taken:
                self._dropped = select.last_dropped(taken[-1], self._skip)
            chosen += taken
        self._held = []
        if chosen:
            yield self._of_rows(chosen)

    def _of_rows(self, chosen: list[select.Match]) -> Matches:
        numbers = _flat(match.positions for match in chosen)
        return Matches(
            n=len(chosen),
            offsets=np.concatenate([[0], np.cumsum([len(match.positions) for match in chosen])]).astype(np.int64),
            positions=self._rows[numbers - self._first],
            labels=_flat(match.labels for match in chosen).astype(np.int32),
            key=np.full(len(chosen), self._key, np.int64),
        )

    def _forget(self) -> None:
        """Keep the rows of events that may still be mentioned."""
        least = min([self.store.compact(), *(match.begin for match in self._held)])
        gone = min(max(least - self._first, 0), len(self._rows))
        self._rows, self._first = self._rows[gone:].copy(), self._first + gone
        self._most = capacities.FEW_ROWS + 2 * len(self._rows)

    def least_row(self) -> int:
        """See Selector.least_row."""
        self._forget()
        return int(self._rows.min(initial=np.iinfo(np.int64).max))


def _flat(parts: Iterable[tuple[int, ...]]) -> IntArray:
    return np.array([number for part in parts for number in part], np.int64)
