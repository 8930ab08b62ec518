"""What Spark pickles and sends to its workers, by reference: it imports the runtime and pyspark, no compiler."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal

import numpy as np
import pyarrow as pa

from runtime.arrays import AnyArray
from runtime.errors import InternalError
from runtime.partition.order import group_ids
from runtime.partition.partition import run
from runtime.program import Later, Program
from runtime.scan.footers import Wanted, footer_of
from runtime.scan.running import run as run_scan
from runtime.scan.task import File, Scan
from runtime.selection.rivals import chosen
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
    later: Later, program: Program, names: tuple[str, ...], limits: Limits, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The matches that are given, of those of one partition that fulfil the conditions."""
    return guarded(limits, chosen(later, program, names, batches))


def scanned(scan: Scan, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The matches of stretches of Parquet files, whose numbers arrive."""
    return guarded(scan.task.limits, run_scan(scan, batches))


def footers(
    files: Sequence[File], time: str, wanted: Wanted, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """What the footers of files say whose numbers arrive, pickled."""
    for batch in batches:
        numbers = batch.column(0).to_pylist()
        found = [pickle.dumps(footer_of(files[number], time, wanted)) for number in numbers]
        yield pa.RecordBatch.from_arrays([pa.array(numbers, pa.int64()), pa.array(found)], ["file", "footer"])


def means(
    parts: Mapping[str, tuple[str, ...]], types: Mapping[str, tuple[int, int]], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Rows with columns that are the quotient of two decimals, the sum and the number, in place of these."""
    used = {part for own in parts.values() for part in own}
    exact = Context(prec=100, rounding=ROUND_HALF_UP)
    for batch in batches:
        names = [name for name in batch.schema.names if name not in used]
        columns = [batch.column(name) for name in names]
        for name, own in parts.items():
            precision, scale = types[name]
            pairs = zip(*(batch.column(part).to_pylist() for part in own), strict=True)
            unit = Decimal(1).scaleb(-scale)
            found = [exact.divide(total, n).quantize(unit, context=exact) if n else None for total, n in pairs]
            columns.append(pa.array(found, pa.decimal128(precision, scale)))
        yield pa.RecordBatch.from_arrays(columns, [*names, *parts])


def gathered_groups(n: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Matches of one partition to groups: those that agree on the first n columns become one row, with their other
    columns, arrays, one after the other. NULL is no array."""
    held = [batch for batch in batches if batch.num_rows]
    if not held:
        return
    (rows,) = pa.Table.from_batches(held).combine_chunks().to_batches()
    ids = group_ids(rows.columns[:n], rows.num_rows)
    order = np.argsort(ids, kind="stable")
    first = np.append(0, np.flatnonzero(np.diff(ids[order])) + 1)
    rows = rows.take(pa.array(order))
    columns = [column.take(pa.array(first)) for column in rows.columns[:n]]
    for column in rows.columns[n:]:
        lengths = column.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
        before = np.append(0, np.cumsum(lengths))  # how many values there are before each match
        offsets = pa.array(np.append(before[first], before[-1]).astype(np.int32))
        columns.append(pa.ListArray.from_arrays(offsets, column.flatten()))
    yield pa.RecordBatch.from_arrays(columns, names=rows.schema.names)


PLACE_COLUMN = "__cersql_place"


def gathered_rows(n: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows to matches: the place of each row among those of its match (NULL: it stands for none), in the first one the
    match's own columns, and n values. A match gets its values as n arrays, in the columns at the end."""
    held: list[pa.RecordBatch] = []  # the last match, of which more may come
    for batch in batches:
        first = _first_rows(batch)
        if len(first):
            yield from _gathered(n, [*held, batch.slice(0, first[-1])])
            held = []
        held.append(batch.slice(first[-1] if len(first) else 0))
    yield from _gathered(n, held)


def _first_rows(rows: pa.RecordBatch | pa.Table) -> AnyArray:
    return np.flatnonzero(_places(rows) == 0)


def _places(rows: pa.RecordBatch | pa.Table) -> AnyArray:
    places: AnyArray = rows.column(0).fill_null(0).to_numpy(zero_copy_only=False)
    return places


def _gathered(n: int, batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    if not any(batch.num_rows for batch in batches):
        return
    (rows,) = pa.Table.from_batches(batches).combine_chunks().to_batches()
    first = _first_rows(rows)
    expected = np.arange(len(rows)) - np.repeat(first, np.diff(np.append(first, len(rows))))
    if not (_places(rows) == expected).all():
        raise InternalError("INTERNAL", detail="rows of one match were moved apart")
    known = rows.column(0).is_valid()
    before = np.append(0, np.cumsum(known.to_numpy(zero_copy_only=False)))  # how many values there are before each row
    offsets = pa.array(np.append(before[first], before[-1]).astype(np.int32))
    own, values = rows.columns[1 : len(rows.columns) - n], rows.columns[len(rows.columns) - n :]
    columns = [column.take(pa.array(first)) for column in own]
    columns += [pa.ListArray.from_arrays(offsets, column.filter(known)) for column in values]
    yield pa.RecordBatch.from_arrays(columns, names=rows.schema.names[1:])
