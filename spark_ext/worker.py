"""What Spark pickles and sends to its workers, by reference: it imports the runtime and pyspark, no compiler."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa

from runtime.errors import CersqlError
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
