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
    become known `late`: then all are held."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        if batch.num_rows == 0:
            continue
        ends = batch.column(END).to_numpy(zero_copy_only=False)
        if late or (ends == _end_of(waiting, ends)).all():
            waiting.append(batch)
            continue
        last = len(ends) - int(np.argmax(ends[::-1] != ends[-1]))
        yield from _winners(strategy, names, [*waiting, batch.slice(0, last)])
        waiting = [batch.slice(last)]
    yield from _winners(strategy, names, waiting)


def _end_of(waiting: list[pa.RecordBatch], ends: AnyArray) -> int:
    """The number that the matches that wait share, or that of the first match."""
    return int(waiting[0].column(END)[0].as_py()) if waiting else int(ends[0])


def _winners(strategy: str, names: tuple[str, ...], held: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    if not held:
        return
    matches = pa.Table.from_batches(held)
    ends = matches.column(END).to_numpy()
    order = np.argsort(ends, kind="stable")
    borders = [*np.flatnonzero(np.diff(ends[order], prepend=ends[order[0]] - 1)).tolist(), len(ends)]
    supports = matches.column(SUPPORT).to_pylist()
    kept: list[int] = []
    for begin, end in itertools.pairwise(borders):
        rivals = order[begin:end].tolist()
        kept += [rivals[i] for i in winners([tuple(supports[r]) for r in rivals], strategy)]
    yield from matches.select(list(names)).take(pa.array(sorted(kept), pa.int64())).to_batches()
