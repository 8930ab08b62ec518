"""AFTER MATCH SKIP beside NXT, LAST or SKIP TILL NEXT MATCH: matches are taken one by one, as they complete.

The earliest end first, of those of one end the greatest by the strategy, and then starts up to a point are dropped
(runtime.selection.select). This stands around the engine that finds the matches: one that consumes by itself, where a
match drops all that began before its end, or one that gives for each start and end the greatest match. Where matches
become known only after their end (`ends_late`), those of a key are held until it ends.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any, Protocol

import numpy as np

from runtime.arrays import AnyArray, IntArray
from runtime.compact_set.matches import Matches
from runtime.limits import Listed
from runtime.program import Program
from runtime.selection import select
from runtime.steppers import cea
from runtime.steppers.cea_engine import next_positions

FEW = 1 << 16  # rows that are remembered without asking whether they may still be mentioned


class Engine(Protocol):
    """What is used of runtime.engine.Engine, which cannot be imported here."""

    def feed(self, *given: Any) -> Iterator[Matches]: ...

    def flush(self) -> Iterator[Matches]: ...

    def least_row(self) -> int: ...

    def snapshot(self) -> bytes: ...

    def restore(self, data: bytes) -> None: ...


class TakingEngine:
    """See runtime.engine.Engine. The engine inside mentions events by their number in the whole stream."""

    def __init__(self, program: Program, engine: Engine) -> None:
        assert program.skip is not None
        self._engine, self._late = engine, program.ends_late
        self._skip, self._variables, self._labels = program.skip, program.variables, program.labels
        self._counts = np.zeros(max(cea.KEY, cea.LAST_POSITION) + 1, np.int64)
        self._counts[cea.LAST_POSITION] = -1
        self._rows: IntArray = np.zeros(0, np.int64)  # of the events from number `_first` on
        self._first = 0
        self._most = FEW
        self._dropped = -1  # the number of the last event at which no match may begin any more
        self._listed = Listed(program.max_matches)
        self._held: list[select.Match] = []  # of one key where matches come late, else of one end
        self._key = 0  # of these

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
        n = len(symbols)
        if n == 0:
            return
        if positions is None:
            positions = next_positions(self._counts, n, keys)
        self._counts[cea.KEY] = 0 if keys is None else keys[-1]
        self._counts[cea.LAST_POSITION] = positions[-1]
        begin = self._first + len(self._rows)
        self._rows = np.concatenate([self._rows, positions if rows is None else rows])
        numbers = np.arange(begin, begin + n, dtype=np.int64)
        for matches in self._engine.feed(symbols, times, positions, keys, numbers):
            yield from self._take(matches)
        if not self._late:
            yield from self._settled()
        if len(self._rows) > self._most:
            self._forget()

    def count(
        self,
        symbols: AnyArray,
        times: AnyArray,
        positions: IntArray | None = None,
        keys: IntArray | None = None,
        mute: AnyArray | None = None,
    ) -> int:
        """See Engine.count."""
        return sum(matches.n for matches in self.feed(symbols, times, positions, keys))

    def flush(self) -> Iterator[Matches]:
        """See Engine.flush."""
        for matches in self._engine.flush():
            yield from self._take(matches)
        yield from self._settled()

    def least_row(self) -> int:
        """See Engine.least_row."""
        self._forget()
        return int(self._rows.min(initial=np.iinfo(np.int64).max))

    # ------------------------------------------------------------ choosing

    def _take(self, matches: Matches) -> Iterator[Matches]:
        """Hold matches back until those of their end, or of their key, are all there."""
        begins = matches.positions[matches.offsets[:-1]]
        for k in np.flatnonzero(begins > self._dropped).tolist():
            own = slice(int(matches.offsets[k]), int(matches.offsets[k + 1]))
            positions, labels = tuple(matches.positions[own].tolist()), tuple(matches.labels[own].tolist())
            key = int(matches.key[k])
            if self._held and (key != self._key if self._late else positions[-1] != self._held[0].end):
                yield from self._settled()
            if positions[0] > self._dropped:
                self._listed.add(1)
                self._held.append(select.Match(positions, labels, tuple(self._labels[i] for i in labels)))
                self._key = key

    def _settled(self) -> Iterator[Matches]:
        """What is taken of the matches that are held."""
        chosen: list[select.Match] = []
        for _, rivals in groupby(sorted(self._held, key=lambda match: match.end), key=lambda match: match.end):
            taken = select.taken(rivals, self._skip, self._variables, self._dropped)
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
        least = min([self._engine.least_row(), *(match.begin for match in self._held)])
        gone = min(max(least - self._first, 0), len(self._rows))
        self._rows, self._first = self._rows[gone:].copy(), self._first + gone
        self._most = FEW + 2 * len(self._rows)

    # ------------------------------------------------------------ snapshots

    def snapshot(self) -> bytes:
        """The state. Codes of terms must mean the same to whoever restores it."""
        own = self._counts, self._rows, self._first, self._dropped, self._held, self._key
        return pickle.dumps((self._engine.snapshot(), own))

    def restore(self, data: bytes) -> None:
        """Go on where `snapshot` was taken. ExecutionError SNAPSHOT_VERSION for another format."""
        engine, own = pickle.loads(data)
        self._engine.restore(engine)
        self._counts, self._rows, self._first, self._dropped, self._held, self._key = own


def _flat(parts: Iterable[tuple[int, ...]]) -> IntArray:
    return np.array([number for part in parts for number in part], np.int64)
