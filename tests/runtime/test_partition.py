"""A partition that is held and sorted here, or sorted by Spark and streamed, gives the same rows."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import oracle
import pyarrow as pa
import pytest
import strategies
from harness import compiled, symbols_of
from hypothesis import given
from hypothesis import strategies as st
from strategies import Row

from planner import cel
from planner.formula import Formula
from runtime.partition import partition
from runtime.partition.order import as_clock
from runtime.task import OrderColumn, OutputVariable, Slices, Task

A, B = cel.Event("A", frozenset({"x"})), cel.Event("B", frozenset({"y"}))
KEYS = (None, 0.0, -0.0, math.nan, 2.5)


def task(formula: Formula, window: oracle.Window | None = None, **changes: Any) -> Task:
    program = compiled(formula, window)
    variables = tuple(OutputVariable(name, name, False, ("id",)) for name in program.variables)
    made = Task(
        program, ("symbol",), (OrderColumn("ts"),), ("key",), (OrderColumn("id"),), variables,
        key_outputs=(("key", "k"),), start="from", end="to", size=None,
    )  # fmt: skip
    return dataclasses.replace(made, **changes)


def table(made: Task, rows: Sequence[Row]) -> pa.Table:
    """The rows as Spark sends them, their keys normalised."""
    symbols = symbols_of(made.program, [row.event() for row in rows])
    keys = pa.array([None if row.key is None else row.key + 0.0 for row in rows], pa.float64())
    columns = {
        "ts": pa.array([row.ts for row in rows], pa.int64()),
        "symbol": pa.array(symbols, pa.int64()),
        "key": keys,
    }
    return pa.table({**columns, "id": pa.array(range(len(rows)), pa.int64())})


def batches(rows: pa.Table, size: int) -> Iterator[pa.RecordBatch]:
    yield from rows.to_batches(max_chunksize=size)


def by_spark(rows: pa.Table) -> pa.Table:
    """Sorted as Spark would sort: by key (NULL first, NaN last), time, id."""

    def key(row: dict[str, Any]) -> tuple[Any, ...]:
        k = row["key"]
        return (
            k is not None,
            k is not None and math.isnan(k),
            0 if k is None or math.isnan(k) else k,
            row["ts"],
            row["id"],
        )

    return pa.Table.from_pylist(sorted(rows.to_pylist(), key=key), schema=rows.schema)


def found(made: Task, rows: pa.Table, size: int = 7) -> list[str]:
    return sorted(str(row) for batch in partition.run(made, batches(rows, size)) for row in batch.to_pylist())


def counted(made: Task, rows: pa.Table) -> int:
    (batch,) = partition.run(dataclasses.replace(made, count_only=True), batches(rows, 5))
    return int(batch.column(0)[0].as_py())


@given(strategies.formulas(4), strategies.streams(max_size=14, keys=KEYS), strategies.windows(), st.integers(1, 9))
@strategies.examples(40)
def test_sorted_here_or_by_spark(formula: Formula, rows: list[Row], window: oracle.Window | None, size: int) -> None:
    made = task(formula, window)
    data = table(made, rows)
    total = counted(made, data)
    if total > 2000:
        return
    whole = found(made, data.take(pa.array(np.random.default_rng(size).permutation(len(rows)))), size)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partition, "STREAM_ROWS", size)
        streamed = found(dataclasses.replace(made, presorted=True), by_spark(data), size)
        assert counted(dataclasses.replace(made, presorted=True), by_spark(data)) == total
    assert whole == streamed
    assert len(whole) == total
    events = [dataclasses.replace(row.event(), key=str(None if row.key is None else row.key + 0.0)) for row in rows]
    assert total == sum(map(len, oracle.evaluate_partitioned(formula, events, window).values()))


def test_a_stream_lets_go_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many thousand rows in a window of a few: what is held stays small, and the rows are right."""
    monkeypatch.setattr(partition, "STREAM_ROWS", 50)
    held: list[int] = []
    forget = partition.forgotten

    def watched(engine: Any, rows: pa.Table, base: int) -> tuple[pa.Table, int]:
        held.append(rows.num_rows)
        return forget(engine, rows, base)

    monkeypatch.setattr(partition, "forgotten", watched)
    made = task(cel.Sequence(A, B), oracle.Window("time", 3), keys=(), key_outputs=(), presorted=True)
    rows = table(made, [Row("AB"[n % 2], None, n, 0) for n in range(20_000)])
    assert len(found(made, rows, size=64)) == 2 * 10_000 - 1
    assert max(held) < 1000


@pytest.mark.parametrize("presorted", [False, True])
def test_a_limit_stops_the_reading(presorted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """There are 2³⁰⁰ matches; the batches after the first need not even be read."""
    monkeypatch.setattr(partition, "STREAM_ROWS", 100)
    made = task(cel.Iteration(A), presorted=presorted, limit=7)
    rows = table(made, [Row("A", None, n, 0) for n in range(300)])
    read = partition.run(made, batches(rows, 10))
    assert sum(batch.num_rows for batch in read) == 7


def test_slices_report_what_ends_in_them() -> None:
    """Negative clocks too; rows of a slice's overlap only begin matches; nothing overflows at the ends of int64."""
    size, width = 10, 4
    made = task(cel.Sequence(A, B), oracle.Window("time", width), keys=(), key_outputs=(), slices=Slices("slice", size))
    times = [-(2**63), -(2**63) + 2, -21, -20, -19, -11, -10, -7, -1, 0, 1, 3, 9, 10, 13, 2**63 - 2, 2**63 - 1]
    rows = [Row("AB"[n % 2], None, time, 0) for n, time in enumerate(times)]
    plain = table(made, rows)
    clock = as_clock(plain["ts"])
    own = clock // size
    again = clock - own * size >= size - width  # wraps where own · size does; the difference does not
    twice = pa.concat_tables([plain, plain.filter(pa.array(again))])
    sliced = twice.append_column("slice", pa.array(np.concatenate([own, own[again] + 1])))
    one = dataclasses.replace(made, slices=None)
    assert found(made, sliced) == found(one, plain)
    assert counted(made, sliced) == counted(one, plain) > 3


def test_nothing_in_nothing_out() -> None:
    made = task(cel.Sequence(A, B))
    empty = table(made, [])
    for way in (made, dataclasses.replace(made, presorted=True)):
        assert list(partition.run(way, iter([]))) == []
        assert found(way, empty) == []
        assert counted(way, empty) == 0
        assert list(partition.run(way, iter(empty.to_batches()))) == []
