"""What Spark pickles and sends to its workers, by reference: it imports the runtime and pyspark, no compiler."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa

from runtime.partition import run
from runtime.task import Task


def renamed(
    names: tuple[str, ...],
    function: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """The function on batches whose columns get their own names back."""
    return function(batch.rename_columns(list(names)) for batch in batches)


def match_partition(task: Task, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The matches of one partition."""
    return run(task, batches)
