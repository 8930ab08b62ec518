"""How many rows a key may hold on a stream, where the user has said so: more is an error, before anything is stored."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from runtime.arrays import AnyArray
from runtime.errors import ExecutionError
from runtime.partition.order import group_ids
from runtime.stream.task import StreamTask

_SETTING = "cersql.stream.maxRowsPerKey"


def check_rows(task: StreamTask, rows: pa.Table, stay: AnyArray) -> None:
    """Raise ExecutionError STREAM_ROWS if a key holds more rows than it may. `rows`: all rows of some keys."""
    most, own = task.most_rows, task.task
    if most is None:
        return
    held = rows.filter(pa.array(stay))
    if own.pairs is not None:
        held = held.filter(pc.is_null(held.column(own.pairs)))
    if held.num_rows <= most:
        return
    ids = np.zeros(held.num_rows, np.int64)
    if own.keys:
        ids = group_ids([held.column(name) for name in own.keys], held.num_rows)
    _, firsts, counts = np.unique(ids, return_index=True, return_counts=True)
    largest = int(counts.argmax())
    if counts[largest] > most:
        hint = (
            "Bound the pattern by WITHIN, leave out rows by a WHERE before PATTERN, or SET "
            f"{_SETTING} to more. Started again from its checkpoint, the stream goes on from before this micro-batch."
        )
        raise ExecutionError(
            "STREAM_ROWS", key=_named(task, held.slice(int(firsts[largest]), 1)), found=int(counts[largest]),
            limit=most, hint=hint,
        )  # fmt: skip


def _named(task: StreamTask, row: pa.Table) -> str:
    """`The key account = 'x', day = NULL`; the whole stream, where there is no key."""
    if not task.task.keys:
        return "The stream, which has neither PARTITION BY nor an equality of all events,"
    names = task.key_names or task.task.keys
    values = (row.column(name)[0].as_py() for name in task.task.keys)
    shown = ("NULL" if value is None else repr(value) for value in values)
    return "The key " + ", ".join(f"{name} = {value}" for name, value in zip(names, shown, strict=True))
