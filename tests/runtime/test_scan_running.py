"""A stretch of files that is fed as it is read gives the rows of a partition that is held and sorted."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cersql
from planner.scan import condition
from runtime import capacities
from runtime.errors import ExecutionError
from runtime.partition import partition
from runtime.scan import reading, running
from runtime.scan.conditions import Test
from runtime.scan.task import File, Scan, Source, Stretch
from runtime.scan.truth import Rows
from runtime.task import OrderColumn, OutputVariable, Task

TYPES = {"type": "string", "ts": "bigint", "id": "bigint", "v": "int"}
N = 120
QUERIES = [
    "PATTERN A a ; B b WITHIN 20",
    "PATTERN A a : ANY b",
    "PATTERN A+ a ; B b WITHIN 6",
    "PATTERN A a ; B b WITHIN 7 EVENTS",
    "PATTERN A a ; B b WHERE b.v > a.v WITHIN 20",
    "PATTERN SEQ(A a, !C c, B b) WITHIN 9",
    "PATTERN SEQ(A a, !B b) WITHIN 9",
    "PATTERN A a ; B b WITHIN 20 SEMANTICS NXT",
    "PATTERN A a ; B b WITHIN 20 AFTER MATCH SKIP PAST LAST ROW",
]


def table(seed: int, late: int) -> pa.Table:
    """Rows in the order of time but for those that are late, with ties."""
    random = np.random.default_rng(seed)
    ts = np.sort(random.integers(0, N, N))
    came = np.argsort(np.arange(N) + random.integers(0, late + 1, N), kind="stable")
    kinds = np.array(["A", "B", "C", None], object)[random.integers(0, 4, N)]
    values = [None if v < 0 else int(v) for v in random.integers(-1, 9, N)]
    columns = {"type": kinds.tolist(), "ts": ts, "id": np.arange(N), "v": pa.array(values, pa.int32())}
    return pa.table(columns).take(pa.array(came))


def scan_of(query: str, rows: pa.Table, path: Path, group_rows: int) -> Scan:
    """As one task, without Spark."""
    pq.write_table(rows, path, row_group_size=group_rows)
    plan = cersql.compile(f"FROM s {query} ORDER BY ts, id RETURN *", {"s": TYPES}).plan
    tests = [condition(sql if sql != "TRUE" else "true", TYPES) for sql in plan.guards]
    guards = tuple(test for test in tests if isinstance(test, Test))
    assert len(guards) == len(tests)
    terms = tuple(f"t{i}" for i in range(len(plan.terms)))
    variables = tuple(OutputVariable(name, name, False, ("id", "type", "v")) for name in plan.program.variables)
    order = (OrderColumn("ts"), OrderColumn("id"))
    task = Task(plan.program, ("s",), order, (), (), variables, (), "from", "to", None, terms=terms)
    arrow = {"type": pa.string(), "ts": pa.int64(), "id": pa.int64(), "v": pa.int32()}
    columns = [(name, name, kind) for name, kind in arrow.items()] + [(name, "v", pa.int32()) for name in terms]
    firsts = [int(min(rows["ts"][k : k + group_rows].to_pylist())) for k in range(0, N, group_rows)]
    by_first = np.argsort(firsts, kind="stable").tolist()
    stretch = Stretch(tuple((0, k) for k in by_first), tuple(firsts[k] for k in by_first), None, None, None)
    status = path.stat()
    file = File(str(path), status.st_size, status.st_mtime_ns // 1_000_000)
    source = Source(tuple(columns), "ts", None, guards, ("type",))
    return Scan(task, (source,), (file,), (), (stretch,), plan.n_event_guards, plan.drops)


def found(scan: Scan) -> list[Any]:
    batches = list(running.run(scan, [pa.record_batch({"id": [0]})]))
    return sorted((row for batch in batches for row in batch.to_pylist()), key=repr)


def held(scan: Scan, rows: pa.Table) -> list[Any]:
    """The matches of a partition of these rows."""
    word = reading.bits(
        [Rows(dict(zip(rows.column_names, rows.columns, strict=True)), N).true(g) for g in scan.sources[0].guards], N
    )
    kept = np.flatnonzero(word & (1 << scan.n_events) - 1) if scan.drops else np.arange(N)
    rows = rows.append_column("s", pa.array(word.astype(np.int64)))
    for name in scan.task.terms:
        rows = rows.append_column(name, rows["v"])
    batches = partition.run(scan.task, rows.take(pa.array(kept)).to_batches())
    return sorted((row for batch in batches for row in batch.to_pylist()), key=repr)


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("late", [0, 5, N])
def test_fed_as_read(query: str, late: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capacities, "FED_ROWS", 7)
    monkeypatch.setattr(partition, "STREAM_ROWS", 5)
    monkeypatch.setattr(reading, "LATE_BYTES", 200)
    for seed, group_rows in enumerate((11, 40, N)):
        rows = table(seed, late)
        scan = scan_of(query, rows, tmp_path / f"{seed}.parquet", group_rows)
        assert running.is_streamed(scan)
        wanted = held(scan, rows)
        assert wanted
        assert found(scan) == wanted
        counted = dataclasses.replace(scan, task=dataclasses.replace(scan.task, count_only=True))
        assert found(counted) == [{partition.COUNT_COLUMN: len(wanted)}]
        few = dataclasses.replace(scan, task=dataclasses.replace(scan.task, limit=3))
        assert len(found(few)) == min(3, len(wanted))


def test_few_rows_are_held_of_a_file_in_order(tmp_path: Path) -> None:
    """Of each row group what comes before the next; and none is sorted."""
    rows = table(1, 0)
    scan = scan_of(QUERIES[1], rows, tmp_path / "a.parquet", 30)
    parts = list(running._in_order(scan, scan.stretches[0], reading.Files(scan)))
    assert max(map(len, parts)) <= 40
    assert [i for part in parts for i in part.rows[reading.AT].to_pylist()] == [k % 30 for k in range(N)]


def test_a_footer_that_lies(tmp_path: Path) -> None:
    scan = scan_of(QUERIES[0], table(1, 0), tmp_path / "a.parquet", 30)
    stretch = scan.stretches[0]
    lies = dataclasses.replace(stretch, firsts=(0, *(first + 50 for first in stretch.firsts[1:])))
    with pytest.raises(ExecutionError, match=r"\[SCAN_FILE\].*rows before the least time of its statistics"):
        found(dataclasses.replace(scan, stretches=(lies,)))
