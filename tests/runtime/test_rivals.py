"""The second pass: what competes after a condition on whole matches, as the oracle says (no Spark here)."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import buckets
import oracle
import pyarrow as pa
import pytest
import strategies
from harness import Options
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import Asked, Row

from planner import cel
from planner.choice import skip_by
from planner.errors import PlanError
from planner.lower import lower_window, rt_skip
from planner.query import Skip
from planner.second_pass import COMPETING
from planner.terms import Window
from runtime import capacities
from runtime.partition import partition
from runtime.program import Later
from runtime.selection import rivals
from runtime.stream.task import StreamTask

LIMIT = 400  # complex events of the oracle
Found = Counter[tuple[Hashable, ...]]
Bound = frozenset[tuple[str, tuple[int, ...]]]  # variables and the ids of their events


def later_of(asked: Asked, timeouts: bool, ends_late: bool) -> Later:
    options = asked.options
    skip = None if options.skip is None else rt_skip(options.skip, skip_by(options.strategy))
    strategy = options.strategy if options.strategy in COMPETING and skip is None else "ALL"
    strict = timeouts and options.strategy == "STRICT"
    return Later(strategy, options.consume, skip, timeouts, ends_late, lower_window(asked.window), strict)


def listed(asked: Asked, keyed: bool, timeouts: bool) -> StreamTask:
    """The first pass: all matches, with what they compete by."""
    strict = timeouts and asked.options.strategy == "STRICT"
    options = Options("ALL" if asked.options.strategy in COMPETING or strict else asked.options.strategy)
    ends_late = any(isinstance(f, cel.NotAfter) for f in strategies.subformulas(asked.formula))
    later = later_of(asked, timeouts, ends_late)
    made = buckets.stream_task(asked.formula, asked.window, options, keyed, timeouts, later=later)
    program = replace(made.task.program, all_starts=timeouts)
    return replace(made, task=replace(made.task, program=program, later=later))


def holds(match: Bound) -> bool:
    """Some condition on the whole match, no two of which are alike."""
    return zlib.crc32(repr(sorted(match)).encode()) % 3 > 0


def bound(row: Mapping[str, Any], variables: Sequence[str]) -> Bound:
    ids = ((name, tuple(event["id"] for event in row[name])) for name in variables)
    return frozenset((name, own) for name, own in ids if own)


def second_pass(task: StreamTask, batches: Iterator[pa.RecordBatch], size: int) -> list[dict[str, Any]]:
    """What is left after the condition, in batches of a few rows."""
    program, later = task.task.program, task.task.later
    assert later is not None

    def filtered() -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = batch.to_pylist()
            kept = [k for k, row in enumerate(rows)
                    if row[rivals.KIND] == rivals.TIMEOUT or holds(bound(row, program.variables))]  # fmt: skip
            left = batch.take(pa.array(kept, pa.int64()))
            for begin in range(0, max(left.num_rows, 1), size):
                yield left.slice(begin, size)

    names = ("k", *program.variables, *(["status"] if later.timeouts else []))
    return [row for batch in rivals.chosen(later, program, names, filtered()) for row in batch.to_pylist()]


def shown(rows: Sequence[Mapping[str, Any]], variables: Sequence[str]) -> Found:
    return Counter((row["k"], row.get("status", "match"), bound(row, variables)) for row in rows)


def expected(asked: Asked, rows: Sequence[Row], keyed: bool, timeouts: bool) -> Found:
    formula, window, options = asked.formula, asked.window, asked.options
    parts: dict[Hashable, list[int]] = {}
    for number, row in enumerate(rows):
        parts.setdefault(row.key if keyed else None, []).append(number)

    def of_ids(key: Hashable, mu: Any) -> Bound:
        return frozenset((name, tuple(sorted(parts[key][p] for p in own))) for name, own in mu)

    def where(key: Hashable, c: oracle.Complex) -> bool:
        return holds(of_ids(key, oracle.as_match(c)[2]))

    events = [row.event() if keyed else replace(row.event(), key=None) for row in rows]
    chosen = oracle.evaluate_partitioned(formula, events, window, LIMIT, **options.given(), where=where)
    found: Found = Counter()
    for key, matches in chosen.items():
        for start, _, mu in matches:
            found[rows[parts[key][start]].key, "match", of_ids(key, mu)] += 1
    if timeouts:
        for key, own in parts.items():
            order = tuple(sorted(v for v in formula.binds() if not v.startswith("@")))
            part = [events[number] for number in own]
            late = oracle.timeouts(
                formula, part, order, window, LIMIT, **options.given(), where=lambda _, c, key=key: where(key, c)
            )
            for start, (_, allowed) in late.items():
                found[rows[own[start]].key, "timeout", frozenset(of_ids(key, mu) for _, _, mu in allowed)] += 1
    return found


def same(have: Found, want: Found) -> bool:
    """A timeout is one of those that the oracle allows, which differ by their variables alone."""
    if have == want:
        return True
    left = +Counter(want)
    for (key, status, own), n in have.items():
        for entry in list(left):
            if entry[:2] == (key, status) and (entry[2] == own or (status == "timeout" and own in entry[2])):
                left[entry] -= n
                break
        else:
            return False
    return not +left and have.total() == want.total()


def check(asked: Asked, rows: Sequence[Row], keyed: bool, timeouts: bool, size: int = 3) -> int:
    rows = sorted(rows, key=lambda row: row.ts)
    task = listed(asked, keyed, timeouts)
    want = expected(asked, rows, keyed, timeouts)
    if not rows:
        return 0
    table = buckets.table_of(task, rows)
    variables = task.task.program.variables
    have = shown(second_pass(task, partition.run(task.task, table.to_batches()), size), variables)
    missing, extra = list((want - have).items())[:4], list((have - want).items())[:4]
    assert same(have, want), f"{asked}\nmissing {missing}\ntoo many {extra}"
    return want.total()


# ---------------------------------------------------------------- by hand


A, B, C = (cel.Event(name, frozenset({name})) for name in "ABC")
AB, LOOP = cel.Sequence(A, B), cel.Sequence(cel.Iteration(A), B)
EVERYWHERE = (
    Options("NXT"), Options("LAST"), Options("MAX"), Options("STRICT"), Options("NEXT_MATCH"),
    Options(consume="PARTITION"), Options(consume="ANY"), Options("NXT", "PARTITION"), Options("MAX", "ANY"),
    Options("NEXT_MATCH", "PARTITION"),
    *(Options(strategy, skip=Skip(to, mark)) for strategy in ("ALL", "NXT", "LAST", "NEXT_MATCH")
      for to, mark in (("PAST LAST ROW", None), ("TO NEXT ROW", None), ("TO FIRST", "B"), ("TO LAST", "A"))),
)  # fmt: skip


def rows_of(text: str, keys: Sequence[int | None] = (0,)) -> list[Row]:
    return [Row(kind, 0, n, keys[n % len(keys)]) for n, kind in enumerate(text)]


@pytest.mark.breadth(20)
@pytest.mark.parametrize("timeouts", [False, True], ids=["matches", "timeouts"])
@pytest.mark.parametrize("options", EVERYWHERE, ids=str)
def test_every_choice(options: Options, timeouts: bool) -> None:
    total = 0
    for n, text in enumerate(("AABB", "ABABAB", "AAB-ABB", "BA", "AAABBAB", "A")):
        for window in (None, Window("time", 3), Window("events", 3)):
            for formula in (AB, LOOP):
                keyed = bool(n % 2) or options.consume == "ANY"
                timed = timeouts and options.consume != "ANY"
                total += check(Asked(formula, window, options), rows_of(text, (0, 1, 0)), keyed, timed)
    assert total > 15


def test_starts_that_all_keys_consume() -> None:
    """The A of key 1 is under way when key 0 matches; where its window had closed by then, it has timed out."""
    for window, lost in ((None, True), (Window("time", 1), False), (Window("events", 2), True)):
        asked = Asked(AB, window, Options(consume="ANY"))
        task = listed(asked, True, True)
        rows = [Row("A", 0, 0, 1), Row("A", 0, 1, 0), Row("B", 0, 2, 0)]
        assert holds(frozenset({("A", (1,)), ("B", (2,))}))
        batches = partition.run(task.task, buckets.table_of(task, rows).to_batches())
        found = shown(second_pass(task, batches, 100), ("A", "B"))
        assert ((1, "timeout", frozenset({("A", (0,))})) in found) is not lost, window
        assert found[0, "match", frozenset({("A", (1,)), ("B", (2,))})] == 1


def test_little_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many matches that end together those that can still win; of a start whose window has closed none."""
    monkeypatch.setattr(capacities, "HELD_MATCHES", 1 << 12)
    formula = cel.Sequence(cel.Iteration(A), B)
    for options in (Options("NXT"), Options("MAX"), Options("LAST", skip=Skip("TO NEXT ROW"))):
        task = listed(Asked(formula, None, options), False, False)
        table = buckets.table_of(task, rows_of("A" * 14 + "B"))
        most = held_at_most(task, partition.run(task.task, table.to_batches()))
        assert most < 3 * capacities.HELD_MATCHES
    past = Asked(AB, Window("time", 2), Options(skip=Skip("PAST LAST ROW")))
    task = listed(past, False, False)
    table = buckets.table_of(task, rows_of("AB" * 20_000))
    assert held_at_most(task, partition.run(task.task, table.to_batches())) < 3 * capacities.HELD_MATCHES


def held_at_most(task: StreamTask, batches: Iterator[pa.RecordBatch]) -> int:
    program, later = task.task.program, task.task.later
    assert later is not None
    choice = rivals.Choosing(later, program.labels, program.variables, ("k",))
    most = 0
    for batch in batches:
        for _ in choice.read(batch):
            pass
        most = max(most, choice.held)
    assert list(choice.rest())
    return most


# ---------------------------------------------------------------- at random


@given(
    strategies.queries(2), strategies.busy_streams(10, keys=(0, 1, None)), st.booleans(), st.booleans(),
    st.sampled_from((1, 3, 100)),
)  # fmt: skip
@strategies.examples(120)
def test_random_queries(asked: Asked, rows: list[Row], keyed: bool, timeouts: bool, size: int) -> None:
    defined = not any(isinstance(f, cel.And | cel.Start | cel.Strategy) for f in strategies.subformulas(asked.formula))
    try:
        check(asked, rows, keyed, timeouts and defined, size)
    except (oracle.TooLarge, PlanError):
        assume(False)


@given(strategies.queries(2), strategies.busy_streams(10, keys=(0, 1, None)), st.booleans(), st.integers(0, 99))
@strategies.examples(60)
def test_a_stream_says_what_the_batch_says(asked: Asked, rows: list[Row], keyed: bool, seed: int) -> None:
    """Where nothing is dropped."""
    assume(rows and asked.options.consume == "NONE" and asked.options.skip is None)
    for timeouts in (False, True):
        try:
            task = listed(asked, keyed, timeouts)
        except PlanError:
            continue
        table = buckets.table_of(task, rows)
        if sum(batch.num_rows for batch in partition.run(task.task, table.to_batches())) > buckets.LIMIT:
            continue
        variables = task.task.program.variables
        batch = shown(second_pass(task, partition.run(task.task, table.to_batches()), 3), variables)
        assert streamed(task, table, seed) == batch


def streamed(task: StreamTask, table: pa.Table, seed: int) -> Found:
    """Each micro-batch has a second pass of its own."""
    found: Found = Counter()
    for batches in buckets.micro_batches(task, table, seed):
        found += shown(second_pass(task, iter(batches), 2), task.task.program.variables)
    return found
