"""What Spark pickles and sends to its workers, by reference: it imports the runtime and pyspark, no compiler."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa
from pyspark import TaskContext

from runtime.numbering import number
from runtime.partition import run
from runtime.task import OrderColumn, Ranges, Task


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


def number_partition(
    ranges: Ranges,
    symbols: tuple[str, ...],
    symbol_bits: int | None,
    order: tuple[OrderColumn, ...],
    dropped: tuple[str, ...],
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Positions for the rows of one range of the order; the range's number is the partition's."""
    context = TaskContext.get()
    assert context is not None
    return number(ranges, symbols, symbol_bits, order, dropped, context.partitionId(), batches)
