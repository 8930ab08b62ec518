"""What Spark pickles and sends to its workers, by reference: it imports the runtime and pyspark, no compiler."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pyarrow as pa

from runtime.errors import CersqlError, InternalError
from runtime.partition import run
from runtime.rivals import chosen
from runtime.task import Task


def renamed(
    names: tuple[str, ...],
    function: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """The function on batches whose columns get their own names back."""
    return function(batch.rename_columns(list(names)) for batch in batches)


def match_partition(task: Task, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The matches of one partition. An error of ours reaches the user without this process's traceback."""
    try:
        yield from run(task, batches)
    except CersqlError:
        os.environ["SPARK_HIDE_TRACEBACK"] = "1"  # pyspark reads it while it reports, and then ends this process
        raise


def chosen_matches(
    strategy: str, late: bool, names: tuple[str, ...], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The matches that a strategy leaves, of those of one partition that fulfil the conditions."""
    return chosen(strategy, late, names, batches)


PLACE_COLUMN, GATHERED_COLUMN = "__cersql_place", "__cersql_value"


def gathered_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows to matches: the place of each among those of its match (NULL: it has none), a value, and in the first one
    the match's own columns. A match gets its values as an array in a column at the end."""
    held: list[pa.RecordBatch] = []  # the last match, of which more may come
    for batch in batches:
        first = _first_rows(batch)
        if len(first):
            yield from _gathered([*held, batch.slice(0, first[-1])])
            held = []
        held.append(batch.slice(first[-1] if len(first) else 0))
    yield from _gathered(held)


def _first_rows(batch: pa.RecordBatch | pa.Table) -> np.ndarray:
    return np.flatnonzero(batch.column(0).fill_null(0).to_numpy(zero_copy_only=False) == 0)


def _gathered(batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    if not any(batch.num_rows for batch in batches):
        return
    rows = pa.Table.from_batches(batches).combine_chunks()
    first = _first_rows(rows)
    place = rows.column(PLACE_COLUMN).combine_chunks()
    known = place.is_valid().to_numpy(zero_copy_only=False)
    expected = np.arange(len(rows)) - np.repeat(first, np.diff(np.append(first, len(rows))))
    if not (place.fill_null(0).to_numpy(zero_copy_only=False) == expected).all():
        raise InternalError("INTERNAL", detail="rows of one match were moved apart")
    ends = np.append(0, np.cumsum(known))  # how many values there are before each row
    offsets = pa.array(np.append(ends[first], ends[-1]).astype(np.int32))
    values = rows.column(GATHERED_COLUMN).combine_chunks().filter(pa.array(known))
    names = [name for name in rows.column_names if name not in (PLACE_COLUMN, GATHERED_COLUMN)]
    matches = (
        rows.select(names).take(pa.array(first)).append_column("gathered", pa.ListArray.from_arrays(offsets, values))
    )
    yield from matches.combine_chunks().to_batches()
