"""What Spark pickles and sends to its workers, by reference: it imports the runtime and pyspark, no compiler."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa

from runtime.partition import run
from runtime.rivals import chosen
from runtime.task import Limits, Task
from spark_ext.guarding import guarded


def renamed(
    names: tuple[str, ...],
    function: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """The function on batches whose columns get their own names back."""
    return function(batch.rename_columns(list(names)) for batch in batches)


def match_partition(task: Task, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The matches of one partition."""
    return guarded(task.limits, run(task, batches))


def chosen_matches(
    strategy: str, late: bool, names: tuple[str, ...], limits: Limits, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The matches that a strategy leaves, of those of one partition that fulfil the conditions."""
    return guarded(limits, chosen(strategy, late, names, batches))
