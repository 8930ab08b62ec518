"""A stream in any order within the watermark, cut anywhere, gives the matches of the batch (no Spark here)."""

from __future__ import annotations

import pickle
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
import strategies
from buckets import LIMIT, Memory, arrivals, bag, batch_matches, stream_task, streamed, table_of, took
from harness import PLAIN, Options
from hypothesis import given
from hypothesis import strategies as st
from strategies import Row

from planner import cel
from planner.errors import PlanError
from planner.formula import Formula
from planner.query import Skip
from planner.terms import Comparison, Term, Window
from runtime.errors import ExecutionError
from runtime.partition import partition
from runtime.stream.bucket import Bucket
from runtime.stream.changes import sql_type
from runtime.stream.head import HEAD
from runtime.stream.rereading import with_last_guard
from runtime.stream.task import FOREVER, NEVER, Reach, StreamTask


def check(task: StreamTask, rows: Sequence[Row], seed: int) -> Counter[str]:
    """What is read as it arrives is also read on the watermark, with the same rows in the end."""
    table = table_of(task, rows)
    if not rows:
        return Counter()
    expected = batch_matches(task, table)
    for own in (task, replace(task, arrival=False)) if task.arrival else (task,):
        found = streamed(own, table, seed)
        missing, extra = expected - found, found - expected
        assert (missing, extra) == (Counter(), Counter()), f"missing {list(missing)[:3]}, too many {list(extra)[:3]}"
    return expected


A, B, C = (cel.Event(name, frozenset({name})) for name in "ABC")
SEQUENCE = cel.Sequence(cel.Sequence(A, B), C)
WINDOW = Window("time", 5)


@given(strategies.queries(), strategies.busy_streams(14, keys=(0, 1, 5, None)), st.booleans(), st.integers(0, 99))
@strategies.examples(80)
def test_random_queries(asked: strategies.Asked, rows: list[Row], keyed: bool, seed: int) -> None:
    try:
        task = stream_task(asked.formula, asked.window, asked.options, keyed)
    except PlanError:
        return
    if sum(batch.num_rows for batch in partition.run(task.task, table_of(task, rows).to_batches())) > LIMIT:
        return
    check(task, rows, seed)


@given(strategies.queries(), strategies.busy_streams(14, keys=(0, 1, 5, None)), st.booleans(), st.integers(0, 99))
@strategies.examples(60)
def test_matches_are_given_as_they_arrive(asked: strategies.Asked, rows: list[Row], keyed: bool, seed: int) -> None:
    """After each micro-batch the matches are those of the rows that have arrived."""
    try:
        task = stream_task(asked.formula, asked.window, asked.options, keyed, emit="arrival")
    except PlanError as error:
        if error.condition != "EMIT_ON_ARRIVAL":
            raise
        return
    table, found, n = table_of(task, rows), Counter[str](), 0
    for arrived, batches in arrivals(task, table, seed):
        found += bag(batches)
        assert found == batch_matches(task, arrived)
        n += 1
    assert n or not rows


WINDOWS = {
    "time": WINDOW,
    "strict": Window("time", 4, strict=True),
    "events": Window("events", 4),
}
QUERIES: dict[str, tuple[Formula, Options]] = {
    "sequence": (SEQUENCE, PLAIN),
    "loop": (cel.Sequence(A, cel.Sequence(cel.Iteration(B), C)), PLAIN),
    "contiguous": (cel.Contiguous(A, B), PLAIN),
    "absence between": (cel.Absent(A, (B,), C), PLAIN),
    "strategy": (SEQUENCE, Options("NXT")),
    "a strategy behind an event": (cel.Sequence(A, cel.Strategy("NXT", cel.Sequence(B, C))), PLAIN),
    "START behind an event": (cel.Sequence(A, cel.Start(cel.Sequence(B, C))), PLAIN),
    "STRICT first": (cel.Sequence(cel.Strategy("STRICT", cel.Sequence(A, B)), C), PLAIN),
    "a strategy in what must not happen": (cel.Absent(A, (cel.Strategy("LAST", cel.Sequence(B, B)),), C), PLAIN),
    "greatest": (SEQUENCE, Options("MAX")),
    "next match": (SEQUENCE, Options("NEXT_MATCH")),
    "consumed": (SEQUENCE, Options(consume="PARTITION")),
    "consumed by any": (cel.Sequence(A, B), Options(consume="ANY")),
    "skip past": (cel.Sequence(A, cel.Iteration(B)), Options(skip=Skip("PAST LAST ROW"))),
    "skip to next": (cel.Sequence(A, cel.Iteration(B)), Options(skip=Skip("TO NEXT ROW"))),
    "skip past, as they complete": (cel.Sequence(A, B), Options("LAST", skip=Skip("PAST LAST ROW"))),
    "skip to next, as they complete": (cel.Sequence(A, cel.Iteration(B)), Options("NXT", skip=Skip("TO NEXT ROW"))),
    "skip to first of next match": (cel.Sequence(A, B), Options("NEXT_MATCH", skip=Skip("TO FIRST", "B"))),
    "skip to last": (cel.Sequence(A, cel.Iteration(B)), Options(skip=Skip("TO LAST", "B"))),
    "compared": (
        cel.Compare(cel.Sequence(A, B), (Comparison(Term("A", "v"), "<", Term("B", "v")),)), PLAIN,
    ),
}  # fmt: skip


def long_stream(seed: int, n: int = 120, keys: Sequence[int | None] = (0, 1, 5, None)) -> list[Row]:
    chance = random.Random(seed)
    rows, now = [], 0
    for _ in range(n):
        now += chance.choice((0, 0, 0, 0, 1, 1, 2))
        rows.append(Row(chance.choice("AABBC-"), chance.randint(0, 9), now, chance.choice(keys)))
    return rows


@pytest.mark.breadth(8)
@pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS)
@pytest.mark.parametrize("name", QUERIES)
def test_every_policy(name: str, window: Window) -> None:
    formula, options = QUERIES[name]
    for keyed in (True, False):
        task = stream_task(formula, window, options, keyed, allow=False)
        assert any(sum(check(task, long_stream(seed), seed).values()) for seed in (0, 1))


ANYTHING = cel.Event(None, frozenset({"x"}))
STARTS: dict[str, tuple[Formula, Options]] = {
    "alone": (cel.Start(cel.Sequence(A, B)), PLAIN),
    "neighbours": (cel.Start(cel.Contiguous(ANYTHING, A)), PLAIN),
    "of a strategy": (cel.Start(cel.Strategy("NXT", cel.Sequence(cel.Iteration(A), B))), PLAIN),
    "or not": (cel.Or(cel.Start(cel.Sequence(A, B)), cel.Sequence(B, C)), PLAIN),
    "beside others": (cel.All(cel.Start(A), cel.Sequence(B, C)), PLAIN),
    "and an absence": (cel.Sequence(cel.Start(A), cel.Absent(B, (C,), A)), Options("NXT")),
    "consumed": (cel.Start(cel.Sequence(A, B)), Options(consume="PARTITION")),
    "skip past": (cel.Sequence(cel.Start(A), B), Options(skip=Skip("PAST LAST ROW"))),
    "skip past, of a strategy": (cel.Sequence(cel.Start(A), B), Options("LAST", skip=Skip("PAST LAST ROW"))),
}


def beginnings() -> list[Row]:
    """Keys that begin all the time, and are there long after."""
    chance = random.Random(5)
    rows = enumerate(long_stream(1, 400))
    return [replace(row, key=i // 9 + chance.choice((0, 0, 0, 0, -1, -7))) for i, row in rows]


@pytest.mark.breadth(6)
@pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS)
@pytest.mark.parametrize("name", STARTS)
def test_start_in_a_window(name: str, window: Window) -> None:
    """Of each key the first row is held, so that no other is taken for it."""
    formula, options = STARTS[name]
    rows, found = beginnings(), 0
    for keyed in (True, False):
        task = stream_task(formula, window, options, keyed, allow=False)
        assert (task.first, task.reach.kind) == (True, window.kind)
        found += sum(check(task, rows, 3).values())
    assert found


@pytest.mark.parametrize("window", [WINDOWS["time"], WINDOWS["strict"]], ids=["time", "strict"])
def test_start_with_what_only_time_makes_known(window: Window) -> None:
    rows = beginnings()
    absent = stream_task(cel.NotAfter(cel.Start(A), (B,), window), window, allow=False)
    assert sum(check(absent, rows, 3).values()) > 1
    timed = stream_task(cel.Start(cel.Sequence(A, B)), window, timeouts=True, allow=False)
    assert any("timeout" in row for row in check(timed, rows, 3))


def test_after_start_one_row_of_each_key_is_held() -> None:
    """Nothing else, and no time at which there was something to do."""
    task = stream_task(cel.Start(cel.Sequence(A, B)), WINDOW, allow=False)
    store = Memory()
    for key in range(50):
        rows = [Row("A", 1, 100 * key + i, key) for i in range(4)]
        took(task, store, [table_of(task, rows)], 100 * key - 50)
    took(task, store, [], 10_000)
    bucket = Bucket(task, store)
    assert (sum(piece.n for piece in bucket.head.firsts.values()), bucket.head.pieces) == (50, {})
    assert bucket.next_due() == FOREVER
    took(task, store, [table_of(task, [Row("A", 1, 20_000, 0), Row("B", 1, 20_001, 0)])], 15_000)
    assert not took(task, store, [], 21_000), "0 began long ago"
    assert sum(piece.n for piece in Bucket(task, store).head.firsts.values()) == 50
    took(task, store, [], FOREVER)
    assert set(store) == {HEAD}


def test_a_key_that_holds_too_many_rows_is_an_error() -> None:
    """Which names the key. Spark's state is as before, so that the stream can go on with another limit."""
    task = replace(stream_task(SEQUENCE, None), most_rows=3, key_names=("account",))
    store = Memory()
    rows = [Row("A", 1, i, key) for i in range(3) for key in (7, None, 5)]
    took(task, store, [table_of(task, rows)], NEVER)
    took(task, store, [], 10)
    more, before = [table_of(task, [Row("B", 1, 20, None), Row("C", 1, 21, None)])], dict(store)
    with pytest.raises(ExecutionError) as caught:
        took(task, store, more, 10)
    assert caught.value.condition == "STREAM_ROWS"
    assert store[HEAD] == before[HEAD]
    assert "The key account = NULL holds 5 rows on the stream, and may hold 3." in str(caught.value)
    assert "SET cersql.stream.maxRowsPerKey to more" in str(caught.value)
    store.update(before)
    assert sum(batch.num_rows for batch in took(replace(task, most_rows=5), store, more, 10)) == 3
    alone = replace(stream_task(SEQUENCE, None, keyed=False), most_rows=3)
    with pytest.raises(ExecutionError) as caught:
        streamed(alone, table_of(alone, [Row("A", 1, 10 * i, i) for i in range(20)]), 1)
    assert "The stream, which has neither PARTITION BY nor" in str(caught.value)


def test_first_rows_take_the_columns_of_new_ones() -> None:
    """Where a query goes on with another RETURN; and those of several micro-batches are put together."""
    task, store = stream_task(cel.Start(cel.Sequence(A, B)), WINDOW, allow=False), Memory()
    for key in (1, 2):
        table = table_of(task, [Row("A", 1, 100 * key, key)])
        took(task, store, [table.append_column("more", pa.array(["x"]))], 100 * key - 1)
    assert not took(task, store, [table_of(task, [Row("B", 1, 400, 1), Row("A", 1, 401, 3), Row("B", 1, 402, 3)])], 300)
    (found,) = took(task, store, [], 500)
    assert [row["k"] for row in found.to_pylist()] == [3]
    assert len(Bucket(task, store).head.firsts) == 1


@pytest.mark.parametrize(
    ("formula", "options", "says"),
    [
        (cel.Sequence(cel.Strategy("NXT", cel.Sequence(A, B)), C), PLAIN, "Write SEMANTICS NXT"),
        (cel.Or(cel.Start(A), cel.Strategy("LAST", B)), PLAIN, "LAST( ) at the beginning of the pattern chooses"),
        (cel.Or(cel.Start(A), B), Options(consume="PARTITION"), "Leave CONSUME BY PARTITION out"),
        (cel.Start(cel.Sequence(A, B)), Options(consume="ANY"), "what CONSUME BY ANY dropped, beside START"),
        (cel.Or(cel.Start(A), B), Options(skip=Skip("TO NEXT ROW")), "Leave AFTER MATCH SKIP out"),
    ],
)
def test_what_the_beginning_of_a_stream_is_asked_for(formula: Formula, options: Options, says: str) -> None:
    with pytest.raises(PlanError) as caught:
        stream_task(formula, WINDOW, options, allow=False)
    assert caught.value.condition == "STREAM_UNBOUNDED"
    assert says in str(caught.value)
    assert "SET cersql.stream.maxRowsPerKey = 10000" in str(caught.value)
    with pytest.raises(PlanError) as caught:
        stream_task(cel.Start(cel.Sequence(A, B)), None, allow=False)
    assert "START asks where the stream began. Bound the pattern by WITHIN" in " ".join(str(caught.value).split())


@pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS)
@pytest.mark.parametrize("strategy", ["NXT", "LAST", "MAX"])
def test_rivals_that_began_before(window: Window, strategy: str) -> None:
    """A match that is known only now has lost to one that was known a window ago."""
    formula = cel.NotAfter(cel.Iteration(A), (A,), window)
    for seed in range(3):
        check(stream_task(formula, window, Options(strategy), allow=False), long_stream(seed), seed)


@pytest.mark.parametrize("window", [WINDOWS["time"], WINDOWS["strict"]], ids=["time", "strict"])
@pytest.mark.parametrize("options", [PLAIN, Options(consume="PARTITION"), Options(skip=Skip("PAST LAST ROW"))])
def test_timeouts(window: Window, options: Options) -> None:
    for keyed in (True, False):
        task = stream_task(SEQUENCE, window, options, keyed, timeouts=True, allow=False)
        found = check(task, long_stream(7), 7)
        assert any("timeout" in row for row in found)


@pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS)
@pytest.mark.parametrize("strategy", ["ALL", "NXT", "LAST"])
def test_absences_around(window: Window, strategy: str) -> None:
    for formula in (
        cel.NotAfter(A, (B,), window),
        cel.NotAfter(cel.Sequence(A, cel.Iteration(B)), (C,), window),
        cel.NotBefore((C,), cel.Sequence(A, B), window),
        cel.NotAfter(cel.NotBefore((C,), A, window), (B,), window),
    ):
        task = stream_task(formula, window, Options(strategy), allow=False)
        assert check(task, long_stream(3), 3)


@pytest.mark.breadth(4)
@pytest.mark.parametrize("window", [WINDOWS["time"], WINDOWS["events"]], ids=["time", "events"])
@pytest.mark.parametrize(
    "options",
    [
        Options(consume="PARTITION"), Options(consume="ANY"), Options("NXT", consume="PARTITION"),
        Options("NEXT_MATCH", consume="PARTITION"), Options(skip=Skip("PAST LAST ROW")),
        Options(skip=Skip("TO NEXT ROW")),
    ],
    ids=str,
)  # fmt: skip
def test_what_was_consumed_is_not_forgotten_by_an_absence_before(window: Window, options: Options) -> None:
    """It can be what must not happen before a later match, and no match begins at it."""
    formula = cel.NotBefore((cel.Sequence(A, C),), cel.Sequence(A, B), window)
    for keyed in (True, False):
        task = stream_task(formula, window, options, keyed, allow=False)
        assert task.spent
        assert sum(sum(check(task, long_stream(seed, 90), seed).values()) for seed in range(2))


def test_the_last_guard_can_need_a_word() -> None:
    program = replace(stream_task(A, WINDOW).task.program, guards=(frozenset(),) * 63, terms=("x",))
    symbols = np.array([[5, 7], [6, 8]])
    expected = [[5, 1, 7], [6, 0, 8]]
    assert with_last_guard(program, symbols, np.array([True, False])).tolist() == expected


# ---------------------------------------------------------------- state


@pytest.mark.parametrize("emit", ["arrival", "watermark"])
def test_state_is_bounded_by_the_window(emit: str) -> None:
    """However long the stream, only rows of the window and of the delay are held."""
    task = stream_task(SEQUENCE, WINDOW, emit=emit)
    table = table_of(task, long_stream(1, 4000, keys=range(40)))
    store, most = Memory(), 0
    for begin in range(0, table.num_rows, 50):
        part = table.slice(begin, 50)
        watermark = int(part.column("ts").cast(pa.int64())[0].as_py()) - 1
        took(task, store, [part], watermark)
        most = max(most, held_rows(task, store))
    assert most < 210


def held_rows(task: StreamTask, store: Memory) -> int:
    """The rows in a state: those that wait, and those that were read."""
    head = Bucket(task, store).head
    return sum(part.n for parts in (head.pieces, head.chunks) for part in parts.values())


def test_keys_that_never_come_back_are_freed_unread() -> None:
    task = stream_task(SEQUENCE, WINDOW)
    rows = [Row("A", 1, n // 10, n % 4) for n in range(40)]
    store = Memory()
    took(task, store, [table_of(task, rows)], NEVER)
    took(task, store, [], 3)
    assert held_rows(task, store) == 40
    due = Bucket(task, store).next_due()
    assert due == 3 + WINDOW.size
    store.read.clear()
    took(task, store, [], due)
    assert set(store) == {HEAD}
    assert set(store.read) == {HEAD}


def test_rows_at_the_watermark_are_late() -> None:
    """At or before it: dropped and counted; the next microsecond is in time."""
    task = stream_task(A, WINDOW, keyed=False, emit="watermark")
    store = Memory()
    rows = [Row("A", 1, ts, 0) for ts in (9, 10, 11)]
    assert not took(task, store, [table_of(task, rows)], 10)
    assert Bucket(task, store).head.late == 2
    found = took(task, store, [], 11)
    assert bag(found).total() == 1
    assert "'id': 2" in next(iter(bag(found)))


def test_another_query_cannot_go_on() -> None:
    task = stream_task(A, WINDOW)
    store = Memory()
    took(task, store, [table_of(task, [Row("A", 1, 1, 0)])], NEVER)
    other = StreamTask(task.task, task.slab, task.reach, meaning="other", described="B")
    with pytest.raises(ExecutionError) as caught:
        Bucket(other, store)
    assert caught.value.condition == "STREAM_CHANGED"


def test_columns_that_changed_cannot_go_on() -> None:
    task = stream_task(A, WINDOW)
    store = Memory()
    table = table_of(task, [Row("A", 1, 1, 0)])
    took(task, store, [table], NEVER)
    changed = table.set_column(0, "id", table.column("id").cast(pa.int32()))
    with pytest.raises(ExecutionError) as caught:
        took(task, store, [changed], NEVER)
    assert caught.value.condition == "STREAM_COLUMNS"
    assert "with the columns id BIGINT, " in str(caught.value)
    assert "now they have id INT, " in str(caught.value)
    assert "__cersql" not in str(caught.value)


def test_another_zone_cannot_go_on() -> None:
    """Where conditions depend on it; a state from before zones were kept takes the first that comes."""
    task = replace(stream_task(A, WINDOW), zone="Europe/London")
    store = Memory()
    took(task, store, [table_of(task, [Row("A", 1, 1, 0)])], NEVER)
    Bucket(task, store)
    with pytest.raises(ExecutionError) as caught:
        Bucket(replace(task, zone="UTC"), store)
    assert caught.value.condition == "STREAM_ZONE"
    assert "SET spark.sql.session.timeZone = Europe/London" in str(caught.value)
    head = Bucket(task, store).head
    del head.zone
    store.put(HEAD, pickle.dumps(head))
    assert Bucket(replace(task, zone="UTC"), store).head.zone == "UTC"


def test_a_state_of_another_release() -> None:
    task = stream_task(A, WINDOW)
    store = Memory()
    took(task, store, [table_of(task, [Row("A", 1, 1, 0)])], NEVER)
    head = Bucket(task, store).head
    head.format += 1
    store.put(HEAD, pickle.dumps(head))
    with pytest.raises(ExecutionError) as caught:
        Bucket(task, store)
    assert caught.value.condition == "STREAM_VERSION"
    assert f"format {head.format}, and this release reads format {head.format - 1}." in str(caught.value)


@pytest.mark.parametrize("blob", [b"", b"\x80\x04nonsense", b"{}"])
def test_a_damaged_state(blob: bytes) -> None:
    task = stream_task(A, WINDOW, emit="watermark")
    store = Memory()
    took(task, store, [table_of(task, [Row("A", 1, 1, 0)])], NEVER)
    (chunk,) = Bucket(task, store).head.chunks
    store.put(-chunk, b"12345678" + blob)
    with pytest.raises(ExecutionError) as caught:
        took(task, store, [], 5)
    assert caught.value.condition == "STREAM_DAMAGED"
    store.put(HEAD, blob)
    with pytest.raises(ExecutionError) as caught:
        Bucket(task, store)
    assert caught.value.condition == "STREAM_DAMAGED"


@pytest.mark.parametrize(
    ("type", "shown"),
    [
        (pa.int64(), "BIGINT"),
        (pa.timestamp("us", "UTC"), "TIMESTAMP"),
        (pa.timestamp("us"), "TIMESTAMP_NTZ"),
        (pa.decimal128(10, 2), "DECIMAL(10,2)"),
        (pa.list_(pa.struct([("a", pa.float32()), ("b", pa.string())])), "ARRAY<STRUCT<a:FLOAT,b:STRING>>"),
        (pa.map_(pa.string(), pa.date32()), "MAP<STRING,DATE>"),
        (pa.duration("us"), "DURATION[US]"),
    ],
)
def test_types_as_spark_calls_them(type: pa.DataType, shown: str) -> None:
    assert sql_type(type) == shown


def test_a_return_of_fewer_columns_goes_on() -> None:
    """The rows that are held lose what nobody reads any more; one that they lack is an error, by time alone too."""
    task = stream_task(cel.Sequence(A, B), WINDOW, emit="watermark")
    store = Memory()
    table = table_of(task, [Row("A", 1, 1, 0), Row("A", 1, 3, 0), Row("B", 1, 4, 0)])
    more = table.append_column("more", pa.array(["x"] * 3))
    took(replace(task, columns=tuple(more.column_names)), store, [more], NEVER)
    took(replace(task, columns=tuple(more.column_names)), store, [], 2)
    with pytest.raises(ExecutionError) as caught:
        took(replace(task, columns=("other",), types=("DATE",)), store, [], 9)
    assert caught.value.condition == "STREAM_COLUMNS"
    assert "now they have other DATE." in str(caught.value)
    late = table_of(task, [Row("-", 1, 5, 0)])
    found = took(replace(task, columns=tuple(table.column_names)), store, [late], 3)
    found += took(replace(task, columns=tuple(table.column_names)), store, [], 4)
    assert bag(found).total() == 2


@pytest.mark.parametrize(
    ("formula", "options", "says"),
    [
        (SEQUENCE, PLAIN, "after A, it can wait for ever"),
        (cel.Contiguous(A, cel.Sequence(B, C)), PLAIN, "after B, it can wait for ever"),
        (cel.Unless(A, B), PLAIN, "it can wait for ever"),
        (cel.Start(A), PLAIN, "START"),
        (cel.Strategy("NXT", SEQUENCE), PLAIN, "NXT"),
        (cel.Sequence(cel.Repeat(A, 0, 1), cel.Strategy("MAX", SEQUENCE)), PLAIN, "MAX"),
    ],
)
def test_what_cannot_be_bounded_is_refused(formula: Formula, options: Options, says: str) -> None:
    with pytest.raises(PlanError) as caught:
        stream_task(formula, None, options, allow=False)
    assert caught.value.condition == "STREAM_UNBOUNDED"
    assert says in str(caught.value)


def test_what_cannot_wait_needs_no_window() -> None:
    task = stream_task(cel.Contiguous(A, cel.Contiguous(B, C)), None, allow=False)
    assert task.reach == Reach("events", 2)
    check(task, long_stream(2), 2)


def test_a_run_that_cannot_wait_is_held_while_it_lives() -> None:
    """Without a window: as many rows as live runs mention, and none in the end."""
    task = stream_task(cel.Contiguous(A, cel.ContiguousIteration(B)), None, allow=False)
    assert task.reach.kind == "runs"
    assert check(task, long_stream(2), 2)
    store = Memory()
    for kind, held in (("A", 1), ("B", 2), ("B", 3), ("C", 0), ("B", 0), ("A", 1)):
        ts = (store.get(HEAD) and Bucket(task, store).head.watermark + 1) or 1
        took(task, store, [table_of(task, [Row(kind, 1, ts, 0)])], ts - 1)
        took(task, store, [], ts)
        assert held_rows(task, store) == held, kind


def test_timeouts_need_a_window() -> None:
    with pytest.raises(PlanError) as caught:
        stream_task(cel.Contiguous(A, B), None, timeouts=True, allow=False)
    assert caught.value.condition == "STREAM_UNBOUNDED"


def test_a_task_of_a_stream_lists_no_more_matches_than_it_may() -> None:
    a, b = (cel.Event(name.upper(), frozenset({name})) for name in "ab")
    task = stream_task(cel.Sequence(cel.Iteration(a), b), Window("time", 100), emit="watermark")
    rows = [Row("A", None, ts, 1) for ts in range(6)] + [Row("B", None, 6, 1)]

    def found(limit: int) -> int:
        own = replace(task.task, program=replace(task.task.program, max_matches=limit))
        bucket = Bucket(replace(task, task=own), Memory())
        assert not list(bucket.run([table_of(task, rows)], NEVER))
        return sum(batch.num_rows for batch in bucket.run([], FOREVER))

    assert found(2**6 - 1) == 2**6 - 1
    with pytest.raises(ExecutionError) as raised:
        found(2**6 - 2)
    assert raised.value.condition == "MATCH_LIMIT"
    assert raised.value.parameters == {"found": "63", "limit": "62"}


@pytest.mark.parametrize(
    "options",
    [Options("LAST"), *(Options(s, skip=Skip("TO NEXT ROW")) for s in ("ALL", "NXT", "LAST", "NEXT_MATCH"))],
    ids=str,
)  # fmt: skip
def test_rivals_over_an_absence_wait_for_each_other(options: Options) -> None:
    """A@2 B@3 beats A@1 B@3 under LAST; it is vetoed by the C@5, out of the window of A@1, which is known before."""
    task = stream_task(cel.NotAfter(cel.Sequence(A, B), (C,), Window("time", 3)), Window("time", 3), options)
    rows = [Row(kind, 0, ts, 0) for kind, ts in (("A", 1), ("A", 2), ("B", 3), ("C", 5), ("-", 8), ("A", 40))]
    for seed in range(6):
        assert check(task, rows, seed).total() == 1


def test_timeouts_beside_what_waits_for_its_rivals() -> None:
    formula = cel.NotAfter(cel.Sequence(A, B), (C,), Window("time", 3))
    with pytest.raises(PlanError) as raised:
        stream_task(formula, Window("time", 3), Options("NXT", skip=Skip("TO NEXT ROW")), timeouts=True)
    assert raised.value.condition == "TIMEOUTS"
