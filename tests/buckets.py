"""A stream through one bucket of the state, in any order within the watermark and cut anywhere (no Spark here)."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import harness
import numpy as np
import pyarrow as pa
from harness import PLAIN, Options
from strategies import Row

from planner.candidates import Asked
from planner.compile import lowered, visible_variables
from planner.formula import Formula
from planner.streaming import holding, program_of
from planner.terms import Window
from runtime.partition import partition
from runtime.program import Later, Program
from runtime.stream.bucket import Bucket
from runtime.stream.head import HEAD
from runtime.stream.rereading import with_last_guard
from runtime.stream.task import FOREVER, NEVER, Reach, StreamTask
from runtime.stream.windows import WindowBucket, WindowTask
from runtime.task import OrderColumn, OutputVariable, Task, Trend

SLABS = 4
LIMIT = 3000  # rows of output; more is left out


class Memory(dict):  # type: ignore[type-arg]
    """A store that counts. `folder`: where copies of the state lie, if there are any."""

    def __init__(self, folder: str | None = None) -> None:
        super().__init__()
        self.folder = folder
        self.read: list[int] = []

    def get(self, number: int) -> bytes | None:  # type: ignore[override]
        self.read.append(number)
        return super().get(number)

    def put(self, number: int, blob: bytes) -> None:
        self[number] = blob

    def remove(self, number: int) -> None:
        del self[number]


def stream_task(
    formula: Formula,
    window: Window | None,
    options: Options = PLAIN,
    keyed: bool = True,
    timeouts: bool = False,
    allow: bool = True,
    later: Later | None = None,
    emit: str | None = None,
) -> StreamTask:
    variables = tuple(sorted(visible_variables(formula)))
    asked = SimpleNamespace(
        **vars(options), formula=formula, window=window, timeouts=timeouts, emit=emit, most_at_end=None
    )
    made = lowered(Asked(formula, window, variables, options.strategy, options.consume, options.skip, timeouts))
    plan = SimpleNamespace(query=asked, automaton=made.automaton, program=made.program, later=later)
    held = holding(plan, allow)  # type: ignore[arg-type]
    task = replace(_task(made.program, keyed, timeouts, variables), program=program_of(plan, held))  # type: ignore[arg-type]
    reach = Reach("none") if held.reach is None else Reach(held.reach.kind, int(held.reach.size), held.reach.strict)
    if held.reach is not None and held.reach.kind == "events":
        reach = Reach("events", int(held.reach.size) - 1)
    return StreamTask(
        task, "slab", reach, held.late, held.by_end, held.whole, held.spent, held.windows,
        arrival=held.arrival, until="until" if made.program.tables else None, slot_us=3, first=held.first,
    )  # fmt: skip


def window_task(
    asked: tuple[Formula, Window | None, Options],
    windows: tuple[int, int],
    keyed: bool = True,
    trend: Trend | None = None,
) -> WindowTask:
    """A query in windows of a size that begin every so often; `trend` sums up its matches."""
    formula, window, options = asked
    variables = tuple(sorted(visible_variables(formula)))
    made = lowered(Asked(formula, window, variables, options.strategy, options.consume, options.skip))
    task = _task(made.program, keyed, False, variables)
    task = replace(task, keys=("window", *task.keys), key_outputs=(("window", "w"), *task.key_outputs), trend=trend)
    return WindowTask(task, "slab", "window", *windows, slot_us=3)


def _task(program: Program, keyed: bool, timeouts: bool, variables: tuple[str, ...]) -> Task:
    return Task(
        program=program,
        symbols=tuple(f"symbol{i}" for i in range(program.words)),
        terms=tuple(f"term{i}" for i in range(len(program.terms))),
        symbol_bits=None,
        order=(OrderColumn("ts"),),
        keys=("key",) if keyed else (),
        ties=(OrderColumn("id"),),
        variables=tuple(OutputVariable(v, v, False, ("id",)) for v in variables),
        key_outputs=(("key", "k"),),
        start="start",
        end="end",
        size=None,
        limit=None,
        presorted=False,
        interleaved=program.family == "any",
        status="status" if timeouts else None,
        names=program.variables,
        pairs="pair" if program.tables else None,
    )


def table_of(task: StreamTask | WindowTask, rows: Sequence[Row]) -> pa.Table:
    program = task.task.program
    symbols = harness.symbols_of(program, [row.event() for row in rows])
    symbols = symbols[:, None] if symbols.ndim == 1 else symbols
    slabs = SLABS if task.task.keys and not task.task.interleaved else 1
    columns: dict[str, Any] = {
        "id": pa.array(range(len(rows)), pa.int64()),
        "ts": pa.array([row.ts for row in rows], pa.timestamp("us")),
        "key": pa.array([row.key for row in rows], pa.int64()),
        "slab": pa.array([(row.key or 0) % slabs for row in rows], pa.int32()),
    }
    for i in range(program.words):
        columns[f"symbol{i}"] = symbols[:, i]
    for i in range(len(program.terms)):
        codes = symbols[:, program.words + i]
        columns[f"term{i}"] = pa.array(codes, mask=codes == np.iinfo(np.int64).min)
    return pa.table(columns)


def in_windows(task: WindowTask, table: pa.Table) -> pa.Table:
    """The rows, once for each window that they lie in; all windows near are tried."""
    times = table.column("ts").cast(pa.int64()).to_pylist()
    copies = [
        (i, k * task.slide)
        for i, time in enumerate(times)
        for k in range((time - task.size) // task.slide - 1, time // task.slide + 2)
        if k * task.slide <= time < k * task.slide + task.size
    ]
    rows = table.take(pa.array([i for i, _ in copies], pa.int64()))
    return rows.append_column("window", pa.array([begin for _, begin in copies], pa.int64()))


def _everywhere(task: StreamTask, table: pa.Table) -> pa.Table:
    symbols = np.stack([table.column(name).to_numpy() for name in task.task.symbols], axis=1)
    symbols = with_last_guard(task.task.program, symbols, np.ones(table.num_rows, np.bool_))
    for i, column in enumerate(np.atleast_2d(symbols.T)):
        table = table.set_column(table.column_names.index(f"symbol{i}"), f"symbol{i}", pa.array(column))
    return table


def bag(batches: Iterable[pa.RecordBatch]) -> Counter[str]:
    return Counter(repr(row) for batch in batches for row in batch.to_pylist())


def batch_matches(task: StreamTask | WindowTask, table: pa.Table) -> Counter[str]:
    """In one batch, where a match can begin at any row."""
    if isinstance(task, StreamTask) and task.spent:
        table = _everywhere(task, table)
    return bag(partition.run(task.task, table.to_batches()))


def streamed(task: StreamTask, table: pa.Table, seed: int, delay: int = 3, store: Memory | None = None) -> Counter[str]:
    """Through a bucket: disorder up to the delay, random micro-batches, a fresh Bucket in each, then the end."""
    found: Counter[str] = Counter()
    for batches in micro_batches(task, table, seed, delay, store):
        found += bag(batches)
    return found


def micro_batches(
    task: StreamTask | WindowTask, table: pa.Table, seed: int, delay: int = 3, store: Memory | None = None
) -> Iterator[list[pa.RecordBatch]]:
    return (batches for _, batches in arrivals(task, table, seed, delay, store))


def arrivals(
    task: StreamTask | WindowTask, table: pa.Table, seed: int, delay: int = 3, store: Memory | None = None
) -> Iterator[tuple[pa.Table, list[pa.RecordBatch]]]:
    """After each micro-batch the rows that have arrived, and the matches that it gives."""
    chance = random.Random(seed)
    times = table.column("ts").cast(pa.int64()).to_pylist()
    order = sorted(range(len(times)), key=lambda i: times[i] + chance.uniform(0, delay))
    store = Memory() if store is None else store
    at, watermark, seen = 0, NEVER, NEVER
    while at < len(order):
        own = order[at : at + chance.choice((1, 1, 2, 3, 7))]
        at += len(own)
        parts = [table.take(pa.array(part)) for part in (own[::2], own[1::2]) if part]
        yield table.take(pa.array(order[:at])), took(task, store, parts, watermark)
        seen = max([seen, *(times[i] for i in own)])
        watermark = max(watermark, seen - delay - 1)
        if chance.random() < 0.4:
            yield table.take(pa.array(order[:at])), took(task, store, [], watermark)
    yield table, took(task, store, [], FOREVER)
    assert set(store) == {HEAD}, f"the state is not freed at the end: {sorted(store)}"


def bucket_of(task: StreamTask | WindowTask, store: Memory) -> Bucket | WindowBucket:
    return Bucket(task, store, store.folder) if isinstance(task, StreamTask) else WindowBucket(task, store)


def took(
    task: StreamTask | WindowTask, store: Memory, tables: Iterable[pa.Table], watermark: int
) -> list[pa.RecordBatch]:
    bucket = bucket_of(task, store)
    due = bucket.next_due()
    before = dict(store)
    found = [batch for batch in bucket.run(tables, watermark) if batch.num_rows]
    bucket.save()
    if not tables and (due is None or due > watermark):
        assert not found, "a match became known without a timer"
        assert {k: v for k, v in store.items() if k != HEAD} == {k: v for k, v in before.items() if k != HEAD}
    return found
