"""A row that comes between others, as it arrives: the matches that contain it are listed, and no others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from buckets import Memory, bag, batch_matches, bucket_of, stream_task, table_of
from strategies import Row

from planner import cel
from planner.terms import Window
from runtime.stream import bucket as buckets
from runtime.stream import engines
from runtime.stream.task import NEVER, StreamTask

A, B, C = (cel.Event(name, frozenset({name})) for name in "ABC")
LOOP = cel.Sequence(cel.Sequence(A, cel.Iteration(B)), C)
EARLIER = [Row("A", 1, 0, 0), *(Row("B", 1, ts, 0) for ts in range(2, 22, 2)), Row("C", 1, 30, 0)]
FAR = Row("A", 1, 60, 0)
N_EARLIER = 2**10 - 1


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Engines are kept of few rows."""
    monkeypatch.setattr(engines, "HEAVY", 3)
    monkeypatch.setattr(buckets, "HEAVY", 3)


def took(task: StreamTask, store: Memory, rows: pa.Table, watermark: int, most: int) -> Counter[str]:
    """What a micro-batch gives, that may list so many matches."""
    program = replace(task.task.program, max_matches=most)
    bucket = bucket_of(replace(task, task=replace(task.task, program=program)), store)
    found = bag(bucket.run([rows], watermark))
    bucket.save()
    return found


def parts(task: StreamTask, late: Sequence[Row]) -> tuple[pa.Table, Iterator[pa.Table]]:
    """All rows, and those that come first, the one that is far away, and the late ones."""
    table, n = table_of(task, [*EARLIER, FAR, *late]), len(EARLIER)
    return table, iter((table.slice(0, n), table.slice(n, 1), table.slice(n + 1)))


KINDS = ("read again", "an engine that is kept", "read again to see what is held")


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("late", "n"),
    [
        ([Row("A", 1, 19, 0)], 1),  # a1 b20 c30
        ([Row("A", 1, 17, 0)], 3),
        ([Row("A", 1, 25, 0)], 0),
        ([Row("C", 1, 17, 0)], 2**8 - 1),
        ([Row("A", 1, 19, 0), Row("C", 1, 23, 0)], 1 + 1 + N_EARLIER),
        ([Row("C", 1, 70, 0)], N_EARLIER),
        ([Row("B", 1, 65, 0), Row("C", 1, 70, 0)], 1 + 2 * N_EARLIER + 1),
    ],
)
def test_no_old_match_is_listed(tmp_path: Path, kind: str, late: list[Row], n: int) -> None:
    task = stream_task(LOOP, Window("time", 100))
    task = replace(task, most_rows=1000 if kind == KINDS[2] else None)
    store = Memory(str(tmp_path) if kind == KINDS[1] else None)
    assert task.arrival
    table, (first, far, last) = parts(task, late)
    found = took(task, store, first, NEVER, N_EARLIER)
    found += took(task, store, far, 10, 0)
    assert bool(bucket_of(task, store).head.engines) == (kind == KINDS[1])
    more = took(task, store, last, 10, n)
    assert more.total() == n
    assert found + more == batch_matches(task, table)


def test_a_part_can_leave_the_window_before_the_whole() -> None:
    """Of the runs that C ends the one with the new row began too early."""
    task = stream_task(LOOP, Window("time", 10))
    rows = [Row("A", 1, 0, 0), Row("A", 1, 6, 0), Row("B", 1, 8, 0), Row("C", 1, 12, 0), Row("B", 1, 4, 0)]
    table = table_of(task, rows)
    store = Memory()
    found = took(task, store, table.slice(0, 4), NEVER, 1)
    found += took(task, store, table.slice(4), NEVER, 0)
    assert found == batch_matches(task, table)
    assert found.total() == 1
