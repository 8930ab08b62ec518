"""Windows that slide, on a stream: what is found in each is what its rows alone give, when it has closed (no Spark)."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import buckets
import harness
import oracle
import pyarrow as pa
import pytest
import strategies
from buckets import Memory, bag, in_windows, micro_batches, table_of, took, window_task
from harness import PLAIN
from hypothesis import given
from hypothesis import strategies as st
from strategies import Row

from planner import cel
from runtime.engine import selector_of
from runtime.errors import ExecutionError
from runtime.marks import LAST_EVENT
from runtime.partition import partition
from runtime.stream.head import HEAD
from runtime.stream.task import FOREVER, NEVER
from runtime.stream.waiting import MOST_CHUNKS, MOST_WAITING
from runtime.stream.windows import WindowBucket, WindowTask
from runtime.task import GroupedBy, Summed, Trend

WINDOWS = [(5, 2), (4, 4), (3, 5), (6, 1)]
A, B = (cel.Event(name, frozenset({name})) for name in "AB")
LOOP = cel.Sequence(A, cel.Iteration(B))
BY_WINDOW = GroupedBy("window", LAST_EVENT, "w", "window")
BY_KEY = GroupedBy("key", LAST_EVENT, "k", "key")
NUMBER = Summed("COUNT", None, None, ("n",), "COUNT(*)")


def trend_of(mark: str, *by: GroupedBy) -> Trend:
    """Some aggregates of each kind over the events of a variable."""
    functions = {"SUM": ("s",), "MIN": ("l",), "MAX": ("g",), "AVG OF DOUBLE": ("t", "m", "p")}
    sums = [Summed(function, mark, "id", names, function) for function, names in functions.items()]
    return Trend((BY_WINDOW, *by), (NUMBER, *sums), uncut=False)


def of_windows(task: WindowTask, copies: pa.Table) -> dict[int, Counter[str]]:
    """What the rows of each window give by themselves, by where it begins."""
    found = {}
    for begin in sorted(set(copies.column("window").to_pylist())):
        own = copies.filter(pa.array([w == begin for w in copies.column("window").to_pylist()]))
        rows = bag(partition.run(task.task, own.to_batches()))
        if rows:
            found[begin] = rows
    return found


def check(task: WindowTask, rows: Sequence[Row], seed: int) -> int:
    """Each window gives its rows once, when the watermark has passed its end, and not before. How many windows do."""
    if not rows:
        return 0
    copies = in_windows(task, table_of(task, rows))
    wanted, store, before = of_windows(task, copies), Memory(), NEVER
    left = dict(wanted)
    for batches in micro_batches(task, copies, seed, store=store):
        watermark = pickle.loads(store[HEAD]).watermark
        closed = [begin for begin in left if before < begin + task.size - 1 <= watermark]
        assert bag(batches) == sum((left.pop(begin) for begin in closed), Counter())
        before = watermark
    assert not left
    return len(wanted)


@given(
    strategies.queries(), strategies.busy_streams(14, keys=(0, 1, None)), st.sampled_from(WINDOWS), st.booleans(),
    st.integers(0, 99),
)  # fmt: skip
@strategies.examples(80)
def test_random_queries(
    asked: strategies.Asked, rows: list[Row], windows: tuple[int, int], keyed: bool, seed: int
) -> None:
    """Any pattern is bounded, whatever chooses among its matches."""
    task = window_task((asked.formula, asked.window, asked.options), windows, keyed)
    if selector_of(task.task.program).lists_to_count or seed % 2:
        copies = in_windows(task, table_of(task, rows))
        if sum(batch.num_rows for batch in partition.run(task.task, copies.to_batches())) > buckets.LIMIT:
            return
        check(task, rows, seed)
        return
    by = (BY_KEY,) if keyed and seed % 4 else ()
    trend = trend_of(task.task.program.variables[-1], *by)
    check(window_task((asked.formula, asked.window, asked.options), windows, keyed, trend), rows, seed)


@given(strategies.busy_streams(12, keys=(0, 1)), st.sampled_from(WINDOWS), st.integers(0, 99))
@strategies.examples(40)
def test_counts_are_those_of_the_oracle(rows: list[Row], windows: tuple[int, int], seed: int) -> None:
    """Of each window, and of all keys together, by the matches that the oracle finds among its rows."""
    task = window_task((LOOP, None, PLAIN), windows, True, Trend((BY_WINDOW,), (NUMBER,)))
    copies = in_windows(task, table_of(task, rows))
    wanted = {}
    for begin in set(copies.column("window").to_pylist()):
        own = [row.event() for row in rows if begin <= row.ts < begin + task.size]
        try:
            found = harness.expected_matches(LOOP, own, None, True, 2000, PLAIN)
        except oracle.TooLarge:
            return
        n = sum(map(len, found.values()))
        if n:
            wanted[begin] = n
    got = [row for batches in micro_batches(task, copies, seed) for batch in batches for row in batch.to_pylist()]
    assert len(got) == len({row["w"] for row in got})
    assert {row["w"]: int(row["n"]) for row in got} == wanted


def rows_of(text: str, key: int = 0) -> list[Row]:
    """One row for each letter, a microsecond apart."""
    return [Row(letter, 1, at, key) for at, letter in enumerate(text)]


def found(batches: list[pa.RecordBatch]) -> list[Any]:
    return [tuple(row[name] for name in ("w", "n", "s")) for batch in batches for row in batch.to_pylist()]


def test_by_hand() -> None:
    """A0 B1 B2 B3 in windows of four, every two: from -2 A B, from 0 all, from 2 none."""
    task = window_task((LOOP, None, PLAIN), (4, 2), True, trend_of("B"))
    table, store = in_windows(task, table_of(task, rows_of("ABBB"))), Memory()
    assert not took(task, store, [table.slice(0, 3)], NEVER)
    assert not took(task, store, [table.slice(3)], 0)  # A is late now, and was there before
    assert found(took(task, store, [], 1)) == [(-2, 1, 1)]
    assert not took(task, store, [], 2)
    assert found(took(task, store, [], 3)) == [(0, 7, Decimal(24))]
    assert not took(task, store, [], FOREVER)
    assert set(store) == {HEAD}


def test_a_late_row_is_counted_once() -> None:
    """It lies in two windows, of which one is still open: it is in neither."""
    task = window_task((B, None, PLAIN), (4, 2), True, trend_of("B"))
    store = Memory()
    took(task, store, [in_windows(task, table_of(task, rows_of("-----B")))], 4)
    took(task, store, [in_windows(task, table_of(task, rows_of("---BB")))], 4)
    assert WindowBucket(task, store).head.late == 5 + 5
    assert found(took(task, store, [], 9)) == [(2, 1, 5), (4, 1, 5)]


def test_an_overflow_names_the_group() -> None:
    task = window_task((cel.Iteration(B), None, PLAIN), (200, 200), True, Trend((BY_WINDOW, BY_KEY), (NUMBER,)))
    store = Memory()
    took(task, store, [in_windows(task, table_of(task, rows_of(130 * "B", key=7)))], NEVER)
    with pytest.raises(ExecutionError) as caught:
        took(task, store, [], 199)
    assert caught.value.condition == "TREND_OVERFLOW"
    assert "in the group window = 0, key = 7" in str(caught.value)


def test_the_end_of_time_closes_all_windows() -> None:
    """And the row that ends a stream waits for ever."""
    task = window_task((B, None, PLAIN), (1000, 500), False, trend_of("B"))
    rows = [Row("B", 1, FOREVER - 3, 0), Row("B", 1, FOREVER + 10**9, 0)]
    store = Memory()
    took(task, store, [in_windows(task, table_of(task, rows))], NEVER)
    assert sum(n for _, n, _ in found(took(task, store, [], FOREVER))) == 2
    assert store.keys() - {HEAD}


def test_chunks_are_put_together() -> None:
    """However many micro-batches a window takes: the index stays small, and a row is written few times."""
    task = window_task((B, None, PLAIN), (1 << 20, 1 << 20), True, Trend((BY_WINDOW,), (NUMBER,)))
    store, written = Memory(), 0
    table = in_windows(task, table_of(task, rows_of(3000 * "B")))
    for begin in range(0, 3000, 3):
        before = set(store)
        took(task, store, [table.slice(begin, 3)], begin - 1)
        head = WindowBucket(task, store).head
        assert len(head.chunks) <= MOST_WAITING + MOST_CHUNKS
        written += sum(head.chunks[-number].n for number in store.keys() - before - {HEAD})
    assert sum(chunk.n for chunk in head.chunks.values()) == 3000
    assert written < 8 * 3000
