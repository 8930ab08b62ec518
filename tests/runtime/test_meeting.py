"""Pairs of events that meet on a stream: in any disorder, cut anywhere, the matches of the batch (no Spark here)."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from buckets import Memory, bag, bucket_of, in_windows, stream_task, table_of, window_task
from harness import PLAIN, Options
from strategies import Row

from planner import cel
from planner.formula import Formula
from planner.query import Skip
from planner.tabulated import tabulated
from planner.terms import Related, Tabulated, Term, Window
from runtime import relations
from runtime.partition import partition
from runtime.partition.tables import tables_of
from runtime.stream import pairs
from runtime.stream.bucket import Bucket
from runtime.stream.head import HEAD
from runtime.stream.meeting import MeetingBucket, MeetingTask, Role
from runtime.stream.task import FOREVER, NEVER, Reach, StreamTask
from runtime.stream.windows import WindowTask
from runtime.task import Task

A, B, C = (cel.Event(name, frozenset({name})) for name in "ABC")
DELAY = 3


def true_of(left: int | None, right: int | None) -> bool:
    """What stands for a condition that only Spark can decide."""
    return left is not None and right is not None and (left + 2 * right) % 3 != 1


def asked(left: str, right: str, modes: tuple[str, str] = ("each", "each")) -> Related:
    relation = relations.Relation(((relations.LOAD, 0), (relations.LOAD, 1), (relations.MEMBER, 0)), shown="f")
    terms = Term(left, "left", modes[0]), Term(right, "right", modes[1])
    return Related(terms, ("bigint", "bigint"), relation, Tabulated(("v",), ("v",), "f"))


def related(inner: Formula, left: str, right: str) -> Formula:
    return cel.Compare(inner, (asked(left, right),))


TIME, EVENTS = Window("time", 5), Window("events", 4)
SEQUENCE = related(cel.Sequence(A, B), "A", "B")
LOOP = cel.Compare(cel.Sequence(cel.Iteration(A), B), (asked("A", "A", ("earlier", "later")),))
QUERIES: dict[str, tuple[Formula, Options]] = {
    "sequence": (SEQUENCE, PLAIN),
    "next match": (SEQUENCE, Options("NEXT_MATCH")),
    "neighbours": (LOOP, PLAIN),
    "both at once": (related(cel.All(A, B), "A", "B"), Options("LAST")),
    "consumed": (SEQUENCE, Options(consume="PARTITION")),
    "consumed by any": (SEQUENCE, Options(consume="ANY")),
    "skip past": (SEQUENCE, Options(skip=Skip("PAST LAST ROW"))),
    "skip to next, as they complete": (SEQUENCE, Options("NXT", skip=Skip("TO NEXT ROW"))),
    "followed": (cel.Sequence(SEQUENCE, C), Options("MAX")),
}


def long_stream(seed: int, n: int = 90, values: int = 5) -> list[Row]:
    chance = random.Random(seed)
    rows, now = [], 0
    for _ in range(n):
        now += chance.choice((0, 0, 0, 1, 1, 2))
        v, key = chance.choice((None, *range(1, values + 1))), chance.choice((0, 4, None))
        rows.append(Row(chance.choice("AABBC"), v, now, key))
    return rows


def meeting_task(task: StreamTask | WindowTask, formula: Formula) -> MeetingTask:
    (found,) = tabulated(formula)
    reach = task.reach if isinstance(task, StreamTask) else Reach("time", task.size, strict=True)
    left, right = (Role(f"is_{side}", (f"{side}0",), f"{side}_code") for side in ("left", "right"))
    return MeetingTask("slab", "ts", "until", task.task.keys, left, right, found.ordered, reach)


def sides_of(table: pa.Table, rows: Sequence[Row], formula: Formula) -> pa.Table:
    """What the first operator is sent."""
    (found,) = tabulated(formula)
    columns = {name: table.column(name) for name in ("slab", "ts", "key", "window") if name in table.column_names}
    for side, term in zip(("left", "right"), found.related.terms, strict=True):
        columns[f"is_{side}"] = pa.array([row.kind == term.variable for row in rows])
        columns[f"{side}0"] = pa.array([row.v for row in rows], pa.int64())
        columns[f"{side}_code"] = pa.array([str(row.v) for row in rows])
    found_table = pa.table(columns)
    return found_table.filter(pa.array([row.kind in {term.variable for term in found.related.terms} for row in rows]))


def pair_rows(events: pa.Schema, met: pa.RecordBatch, task: StreamTask | WindowTask) -> pa.Table:
    """The pairs of which the condition is TRUE, as rows of the engine's operator."""
    kept = [
        true_of(*pair) for pair in zip(met.column("left0").to_pylist(), met.column("right0").to_pylist(), strict=True)
    ]
    met = met.filter(pa.array(kept))
    (number, left, right) = task.task.program.tables[0]
    columns = {name: met.column(name) for name in ("slab", "ts", "until")}
    columns[f"term{left}"], columns[f"term{right}"] = met.column("left0"), met.column("right0")
    columns["pair"] = pa.array([number] * met.num_rows, pa.int32())
    arrays = [columns[field.name] if field.name in columns else pa.nulls(met.num_rows, field.type) for field in events]
    return pa.table(arrays, schema=events)


def events_of(task: StreamTask | WindowTask, rows: Sequence[Row]) -> pa.Table:
    """The rows of events, with what the condition reads of them, and no pairs."""
    table = table_of(task, rows)
    for term in task.task.program.tables[0][1:]:
        values = pa.array([row.v for row in rows], pa.int64())
        table = table.set_column(table.column_names.index(f"term{term}"), f"term{term}", values)
    none = pa.nulls(table.num_rows, pa.timestamp("us"))
    return table.append_column("pair", pa.nulls(table.num_rows, pa.int32())).append_column("until", none)


def batch_matches(task: StreamTask | WindowTask, table: pa.Table) -> Counter[str]:
    """Over the same rows, with all pairs of values of which the condition is TRUE."""
    values = [None, *range(1, 6)]
    true = [(a, b) for a in values for b in values if true_of(a, b)]
    (number, left, right) = task.task.program.tables[0]
    columns = {f"term{left}": [a for a, _ in true], f"term{right}": [b for _, b in true], "pair": [number] * len(true)}
    arrays = [pa.array(columns.get(field.name, [None] * len(true)), field.type) for field in table.schema]
    return bag(partition.run(task.task, pa.concat_tables([table, pa.table(arrays, schema=table.schema)]).to_batches()))


def micro_batches(rows: Sequence[Row], chance: random.Random) -> Iterator[tuple[list[int], int]]:
    """The places of the rows of each micro-batch, and the watermark that holds in it."""
    order = sorted(range(len(rows)), key=lambda i: rows[i].ts + chance.uniform(0, DELAY))
    at, watermark, seen = 0, NEVER, NEVER
    while at < len(order):
        own = order[at : at + chance.choice((1, 2, 4, 9, 30))]
        at += len(own)
        yield own, watermark
        seen = max([seen, *(rows[i].ts for i in own)])
        watermark = max(watermark, seen - DELAY)
    yield [], FOREVER


WINDOWS = {"time": TIME, "events": EVENTS, "strict": Window("time", 4, strict=True)}


def copied(task: StreamTask | WindowTask, rows: Sequence[Row]) -> tuple[pa.Table, Sequence[Row]]:
    """The rows of events, in each of their windows."""
    table = events_of(task, rows)
    if isinstance(task, StreamTask):
        return table, rows
    table = in_windows(task, table)
    return table, [rows[i] for i in table.column("id").to_pylist()]


def streamed(
    task: StreamTask | WindowTask, formula: Formula, rows: Sequence[Row], chance: random.Random
) -> Counter[str]:
    """Through both operators, with fresh ones in each micro-batch."""
    meet = meeting_task(task, formula)
    table, rows = copied(task, rows)
    found: Counter[str] = Counter()
    first, second = Memory(), Memory()
    for own, watermark in micro_batches(rows, chance):
        chosen, events = [rows[i] for i in own], table.take(pa.array(own, pa.int64()))
        meeting, bucket = MeetingBucket(meet, first), bucket_of(task, second)
        met = list(meeting.run([sides_of(events, chosen, formula)] if own else [], watermark))
        meeting.save()
        parts = [pair_rows(table.schema, batch, task) for batch in met]
        found += bag(bucket.run([events, *parts] if own else [], watermark))
        bucket.save()
        assert bucket.head.late == 0
    assert (set(first), set(second)) == ({HEAD}, {HEAD}), "the state is not freed at the end"
    return found


@pytest.mark.parametrize(
    ("name", "window"),
    [
        pytest.param(name, window, marks=[] if n % 3 == m else [pytest.mark.exhaustive])
        for n, name in enumerate(QUERIES)
        for m, window in enumerate(WINDOWS)
    ],
)
def test_the_matches_of_the_batch(name: str, window: str) -> None:
    formula, options = QUERIES[name]
    some = 0
    for keyed, seed in ((True, 0), (False, 1)):
        task = stream_task(formula, WINDOWS[window], options, keyed, allow=False)
        rows = long_stream(seed)
        found = streamed(task, formula, rows, random.Random(seed))
        expected = batch_matches(task, events_of(task, rows))
        missing, extra = expected - found, found - expected
        assert (missing, extra) == (Counter(), Counter()), f"missing {list(missing)[:3]}, too many {list(extra)[:3]}"
        some += len(found)
    assert some


@pytest.mark.parametrize("windows", [(6, 2), (5, 5), (3, 4)])
@pytest.mark.parametrize("name", ["sequence", "neighbours", "skip past"])
def test_in_windows_that_slide(name: str, windows: tuple[int, int]) -> None:
    formula, options = QUERIES[name]
    some = 0
    for seed in range(4):
        task = replace(window_task((formula, None, options), windows, seed % 2 == 0), until="until")
        rows = long_stream(seed, n=50)
        found = streamed(task, formula, rows, random.Random(seed))
        assert found == batch_matches(task, copied(task, rows)[0])
        some += len(found)
    assert some


def test_pairs_go_with_the_last_window_that_can_hold_them() -> None:
    """Of times 3 and 4, in windows of five: one from 4 on would be read at 8."""
    task = replace(window_task((SEQUENCE, None, PLAIN), (5, 1), keyed=False), until="until")
    meet, first, second = meeting_task(task, SEQUENCE), Memory(), Memory()
    table, rows = copied(task, [Row("A", 1, 3, None), Row("B", 1, 4, None)])
    meeting = MeetingBucket(meet, first)
    met = [pair_rows(table.schema, batch, task) for batch in meeting.run([sides_of(table, rows, SEQUENCE)], NEVER)]
    found = []
    for watermark in (NEVER, 3, 6, 7, 8):
        bucket = bucket_of(task, second)
        rows_found = sum(batch.num_rows for batch in bucket.run([table, *met] if watermark == NEVER else [], watermark))
        bucket.save()
        found.append((rows_found, sum(piece.n for piece in bucket.head.pieces.values()), bucket.next_due()))
    assert found == [(0, 1, 3), (0, 1, 4), (3, 1, 7), (1, 1, 8), (0, 0, None)]


@pytest.mark.parametrize("window", WINDOWS)
def test_the_pairs_of_all_that_is_read_are_there(window: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever engine reads the rows: of two that a match may hold, and of which the condition is TRUE, it is told."""
    size, in_time, found = int(WINDOWS[window].size), WINDOWS[window].kind == "time", [0]
    span, plain = size - WINDOWS[window].strict, partition.read

    def checked(task: Task, rows: pa.Table) -> partition.Read:
        read = plain(task, rows)
        ((_, left, right),) = task.program.tables
        table = tables_of(task.program, read.pairs.numbers, read.pairs.codes)[0] if read.pairs else frozenset()
        events = read.events.sort_by([("key", "ascending"), ("ts", "ascending"), ("id", "ascending")])
        kind = [bits % 4 for bits in events.column("symbol0").to_pylist()]
        clocks, keys = events.column("ts").cast(pa.int64()).to_pylist(), events.column("key").to_pylist()
        lefts, rights = (events.column(f"term{term}").to_pylist() for term in (left, right))
        for i in range(len(clocks)):
            for j in range(i + 1, len(clocks)):
                near = clocks[j] - clocks[i] <= span if in_time else j - i < size
                if keys[i] == keys[j] and near and (kind[i], kind[j]) == kinds and true_of(lefts[i], rights[j]):
                    found[0] += 1
                    assert (lefts[i], rights[j]) in table
        return read

    monkeypatch.setattr(partition, "read", checked)
    formula = cel.Sequence(SEQUENCE, cel.Event("C", frozenset({"C"})))
    task = stream_task(formula, WINDOWS[window], PLAIN, keyed=True, allow=False)
    guards = [next(iter(guard)) for guard in task.task.program.guards]
    kinds = (1 << guards.index("A"), 1 << guards.index("B"))
    for seed in range(12):
        streamed(task, formula, long_stream(seed, n=60, values=3 if seed % 2 else 50), random.Random(seed))
    assert found[0] > 100


def test_pairs_of_equal_values_are_given_once_and_kept_as_long_as_their_rows() -> None:
    """A hundred rows of two values: the condition is asked of four pairs of values, and the state holds so many."""
    task = stream_task(SEQUENCE, TIME, PLAIN, keyed=False, allow=False)
    meet = meeting_task(task, SEQUENCE)
    rows = [Row("AB"[n % 2], 1 + n % 4, n // 20, None) for n in range(100)]
    table = events_of(task, rows)
    first, second = Memory(), Memory()
    meeting = MeetingBucket(meet, first)
    (met,) = meeting.run([sides_of(table, rows, SEQUENCE)], NEVER)
    meeting.save()
    values = {(left, right) for left in (1, 3) for right in (2, 4)}
    assert sorted(zip(met.column("left0").to_pylist(), met.column("right0").to_pylist(), strict=True)) == sorted(values)
    bucket = Bucket(task, second)
    list(bucket.run([table, pair_rows(table.schema, met, task)], NEVER))
    list(bucket.run([], 4))
    held = sum(piece.n for piece in bucket.head.pieces.values())
    assert held == len(rows) + sum(true_of(*pair) for pair in values)
    list(bucket.run([], 9))
    assert not bucket.head.pieces
    assert list(MeetingBucket(meet, first).run([sides_of(table, rows, SEQUENCE)], 9)) == [], "all of them are late"


def test_a_row_is_held_until_no_other_can_meet_it() -> None:
    """Within five: one of time 10 still meets one of 15, which the watermark 14 lets come; none of 16."""
    task = stream_task(SEQUENCE, TIME, PLAIN, keyed=False, allow=False)
    meet, store = meeting_task(task, SEQUENCE), Memory()
    rows = [Row("A", 1, 10, None), Row("A", 2, 15, None), Row("B", 3, 15, None), Row("B", 3, 16, None)]
    table, met = events_of(task, rows), list[list[int]]()
    for n, watermark in enumerate((NEVER, 14, 14, 15)):
        meeting = MeetingBucket(meet, store)
        batches = list(meeting.run([sides_of(table.slice(n, 1), rows[n : n + 1], SEQUENCE)], watermark))
        meeting.save()
        met.append([left for batch in batches for left in batch.column("left0").to_pylist()])
    assert met == [[], [], [1, 2], [2]]


@pytest.mark.parametrize("options", [PLAIN, Options(skip=Skip("PAST LAST ROW"))], ids=["plain", "late"])
def test_a_pair_waits_for_the_last_rows_of_its_values(options: Options) -> None:
    """Rows of the same values come at one time, to be read a long time apart: the pair is there for all of them."""
    task = stream_task(SEQUENCE, TIME, options, keyed=False, allow=False)
    meet, first, second = meeting_task(task, SEQUENCE), Memory(), Memory()
    rows = [Row(kind, 1, ts, None) for ts in (0, 2, 20, 50) for kind in "AB"]
    table, found = events_of(task, rows), Counter[str]()
    for own, watermark in (([0, 1], NEVER), ([2, 3, 4, 5, 6, 7], NEVER), ([], 3), ([], 12), ([], 30), ([], FOREVER)):
        events, bucket = table.take(pa.array(own, pa.int64())), Bucket(task, second)
        meeting = MeetingBucket(meet, first)
        sides = [sides_of(events, [rows[i] for i in own], SEQUENCE)] if own else []
        met = list(meeting.run(sides, watermark))
        meeting.save()
        pairs_met = [pair_rows(table.schema, batch, task) for batch in met]
        found += bag(bucket.run([events, *pairs_met] if own else [], watermark))
        bucket.save()
    assert found == batch_matches(task, table)
    assert len(found) > 2
    assert (set(first), set(second)) == ({HEAD}, {HEAD})


def test_which_rows_meet() -> None:
    """Against loops; in pieces, too."""
    chance = np.random.default_rng(3)
    n = 200
    rows = pairs.Rows(
        chance.integers(0, 3, n), chance.integers(0, 40, n), chance.random(n) < 0.6, chance.random(n) < 0.6,
        chance.random(n) < 0.3,
    )  # fmt: skip
    for within, ordered in ((None, False), (None, True), (4, False), (4, True), (0, False)):
        found = [
            pair for i, j in pairs.meeting(rows, within, ordered) for pair in zip(i.tolist(), j.tolist(), strict=True)
        ]
        expected = [
            (i, j)
            for i in range(n)
            for j in range(n)
            if rows.left[i] and rows.right[j] and rows.keys[i] == rows.keys[j] and (rows.new[i] or rows.new[j])
            and (within is None or abs(rows.clocks[i] - rows.clocks[j]) <= within)
            and (not ordered or rows.clocks[i] <= rows.clocks[j])
        ]  # fmt: skip
        assert sorted(found) == expected


def test_pieces_of_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairs, "PIECE", 7)
    ones = np.ones(9, np.bool_)
    rows = pairs.Rows(np.zeros(9, np.int64), np.arange(9), ones, ones, ones)
    found = list(pairs.meeting(rows, None, True))
    assert len(found) > 5
    assert sum(len(i) for i, _ in found) == 45
