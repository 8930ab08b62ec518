"""A strategy that acts after a condition on whole matches: the second pass over the matches of a partition.

Where the condition cannot be decided event by event (`a.x + b.x > c.x`, an aggregate), all matches are listed, Spark
evaluates the condition, and what is left competes here, in the same task and without a shuffle: those that end at one
event against each other. Slow, since every match is listed, but right.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from runtime.arrays import AnyArray, IntArray
from runtime.matches import Matches
from runtime.select import winners

END, SUPPORT = "__cersql_rivals", "__cersql_support"
COLUMNS = (END, SUPPORT)

_runs = itertools.count()
FEW = 1 << 16  # matches that wait without being looked at
_PLACES = 1 << 40  # more rows than a worker can hold


def first_number() -> int:
    """From where the numbers of a new run over some rows begin: a task of a stream has many, and they must differ."""
    return next(_runs) * _PLACES


def columns(matches: Matches, held: AnyArray, places: IntArray | None, base: int) -> list[pa.Array]:
    """For each match a number that its rivals share, and the places of its events that a variable holds."""
    at = matches.positions if places is None else places[matches.positions]
    ends = at[matches.offsets[1:] - 1]
    offsets = np.concatenate([[0], np.cumsum(held)])[matches.offsets].astype(np.int32)
    return [
        pa.array(ends + base, pa.int64()),
        pa.ListArray.from_arrays(pa.array(offsets), pa.array(at[held], pa.int64())),
    ]


def chosen(
    strategy: str, late: bool, names: tuple[str, ...], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The columns `names` of the matches that win. Matches that end at one event come one after the other, unless they
    become known `late`: then all are held, but for those that have lost already."""
    waiting = _Waiting(strategy)
    for batch in batches:
        if batch.num_rows == 0:
            continue
        ends = batch.column(END).to_numpy(zero_copy_only=False)
        if late or (ends == waiting.end(ends)).all():
            waiting.add(batch)
            continue
        others = np.flatnonzero(ends != ends[-1])
        last = int(others[-1]) + 1 if len(others) else 0  # from where on all end together
        waiting.add(batch.slice(0, last))
        yield from waiting.winners(names)
        waiting = _Waiting(strategy)
        waiting.add(batch.slice(last))
    yield from waiting.winners(names)


class _Waiting:
    """Matches whose rivals may still come. Whenever they have doubled, those that have lost are let go: what loses
    against some of its rivals loses against all."""

    def __init__(self, strategy: str) -> None:
        self._strategy = strategy
        self._held: list[pa.RecordBatch] = []
        self._n, self._most = 0, FEW

    def end(self, ends: AnyArray) -> int:
        """The number that the matches that wait share, or that of the first match."""
        return int(self._held[0].column(END)[0].as_py()) if self._held else int(ends[0])

    def add(self, batch: pa.RecordBatch) -> None:
        if batch.num_rows == 0:
            return
        self._held.append(batch)
        self._n += batch.num_rows
        if self._n > self._most:
            left = self._left()
            self._held, self._n = left.to_batches(), left.num_rows
            self._most = max(FEW, 2 * self._n)

    def _left(self) -> pa.Table:
        matches = pa.Table.from_batches(self._held)
        return matches.take(pa.array(_winners(self._strategy, matches), pa.int64()))

    def winners(self, names: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
        if self._held:
            yield from self._left().select(list(names)).to_batches()


def _winners(strategy: str, matches: pa.Table) -> list[int]:
    """Which of the matches win against those that end with them, in order."""
    ends = matches.column(END).to_numpy()
    order = np.argsort(ends, kind="stable")
    borders = [*np.flatnonzero(np.diff(ends[order], prepend=ends[order[0]] - 1)).tolist(), len(ends)]
    supports = matches.column(SUPPORT).to_pylist()
    kept: list[int] = []
    for begin, end in itertools.pairwise(borders):
        rivals = order[begin:end].tolist()
        kept += [rivals[i] for i in winners([tuple(supports[r]) for r in rivals], strategy)]
    return sorted(kept)
