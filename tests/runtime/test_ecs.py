"""The arena: what the arena promises, looked at while an engine runs; and that compacting it changes nothing."""

from __future__ import annotations

import harness
import numpy as np
import oracle
import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st
from strategies import Row

from planner import cel
from planner.formula import Formula
from runtime import capacities
from runtime.compact_set import tecs as ecs
from runtime.engine import Engine
from runtime.steppers.table import TableStepper

A, B = cel.Event("A", frozenset({"x"})), cel.Event("B", frozenset({"y"}))
LOOP = cel.Sequence(A, cel.Sequence(cel.Iteration(B), A))
SPINE = 3  # unions on a way that only goes left


def check_arena(arena: ecs.Arena) -> None:
    """The invariants of all nodes."""
    size = int(arena.size[0])
    spine = np.zeros(size, np.int64)  # unions at the top of a node's left spine
    latest = np.full(size, -1, np.int64)  # the greatest row in any complex event of a node
    for node in range(1, size):
        child, right = int(arena.child[node]), int(arena.right[node])
        assert 0 <= child < node
        if arena.label[node] == ecs.UNION:
            assert 0 < right < node
            assert child != ecs.BOTTOM
            assert arena.start[node] == arena.start[child] >= arena.start[right]
            spine[node] = 1 + spine[child]
            latest[node] = max(latest[child], latest[right])
        else:
            assert arena.row[node] > latest[child]
            assert child == ecs.BOTTOM or arena.start[node] == arena.start[child]
            latest[node] = arena.row[node]
        assert spine[node] <= SPINE


def engine_of(formula: Formula, window: oracle.Window | None) -> Engine:
    engine = harness.engine_for(harness.compiled(formula, window))
    assert isinstance(engine.stepper, TableStepper)
    return engine


@given(strategies.formulas(6), strategies.streams(max_size=25), strategies.windows())
@strategies.examples(60)
def test_invariants(formula: Formula, rows: list[Row], window: oracle.Window | None) -> None:
    """After every event, and after compacting: ordered, children first, left spines short, starts as promised."""
    engine = engine_of(formula, window)
    fed = harness.rows_of(engine._program, [row.event() for row in rows])
    for n in range(len(fed)):
        engine.count(*fed.cut(n, n + 1))
        check_arena(engine._store.arena)
        if n % 5 == 4:
            engine.least_row()
            check_arena(engine._store.arena)


@given(strategies.formulas(4), strategies.streams(max_size=16), strategies.windows(), st.integers(1, 5))
@strategies.examples(60)
def test_compacting_changes_nothing(
    formula: Formula, rows: list[Row], window: oracle.Window | None, every: int
) -> None:
    engine, plain = engine_of(formula, window), engine_of(formula, window)
    fed = harness.rows_of(engine._program, [row.event() for row in rows])
    total = 0
    for n in range(len(fed)):
        found = harness.decode(engine._program, fed, engine.feed(*fed.cut(n, n + 1)))
        expected = harness.decode(plain._program, fed, plain.feed(*fed.cut(n, n + 1)))
        assert found == expected or harness.unique(found) == harness.unique(expected)
        total += sum(map(len, found.values()))
        if total > 3000:
            return
        if n % every == 0:
            engine.least_row()
            assert engine.nodes <= max(plain.nodes, 1)


def test_no_later_match_mentions_a_row_below_the_least() -> None:
    engine = engine_of(LOOP, oracle.Window("time", 6))
    stream = [Row("AB-BAB"[n % 6], None, n, 0) for n in range(200)]
    fed = harness.rows_of(engine._program, [row.event() for row in stream])
    least = 0
    for n in range(len(fed)):
        for batch in engine.feed(*fed.cut(n, n + 1)):
            assert batch.positions.min() >= least
        least = engine.least_row()
        assert n - 6 <= least


@pytest.mark.parametrize(
    "window", [oracle.Window("time", 20), oracle.Window("events", 20), oracle.Window("time", 20.5)]
)
def test_the_arena_does_not_grow_with_the_stream(window: oracle.Window, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a window holds fits; 200 times as many events need no more."""
    monkeypatch.setattr(capacities, "NODES", 1 << 13)
    engine = engine_of(cel.Sequence(A, cel.Sequence(B, A)), window)
    symbols = harness.symbols_of(engine._program, [Row("AB"[n % 2], None, n, 0).event() for n in range(1000)])
    sizes, total = [], 0
    for part in range(200):
        times = np.arange(1000 * part, 1000 * part + 1000, dtype=np.float64 if window.size == 20.5 else np.int64)
        total += engine.count(symbols, times)
        sizes.append(len(engine._store.arena.row))
    assert max(sizes) <= 2 * sizes[0]
    assert engine.least_row() >= 200_000 - 22
    assert engine.nodes < 1000
    assert total > 200_000


def test_without_a_window_nothing_is_lost_when_it_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    """2ⁿ complex events in a few nodes, counted over several growths."""
    monkeypatch.setattr(capacities, "NODES", 1 << 13)
    engine = engine_of(cel.Sequence(A, B), None)
    n = 40_000
    symbols = harness.symbols_of(engine._program, [Row("AB"[k % 2], None, k, 0).event() for k in range(4)])
    symbols = np.tile(symbols, n // 4)
    half = n // 2
    assert engine.count(symbols[:200], np.zeros(200, np.int64)) == 100 * 101 // 2
    engine = engine_of(cel.Sequence(A, cel.Event("C", frozenset({"z"}))), None)
    only_a = harness.symbols_of(engine._program, [Row("A", None, 0, 0).event()])
    only_c = harness.symbols_of(engine._program, [Row("C", None, 0, 0).event()])
    assert engine.count(np.tile(only_a, half), np.zeros(half, np.int64)) == 0
    assert engine.count(only_c, np.zeros(1, np.int64)) == half
    assert engine.nodes >= half


@pytest.mark.parametrize(
    ("start", "now", "width", "strict", "expected"),
    [
        (0, 5, 5, False, True),
        (0, 5, 5, True, False),
        (0, 6, 5, False, False),
        (5, 4, 5, False, False),
        (-(2**63), 2**63 - 1, 2**63 - 1, False, False),
        (float("nan"), 1.0, 5.0, False, False),
        (1.0, float("inf"), 5.0, False, False),
    ],
)
def test_inside(start: float, now: float, width: float, strict: bool, expected: bool) -> None:
    kind = np.float64 if isinstance(start, float) else np.int64
    with np.errstate(over="ignore"):
        assert bool(ecs.inside(kind(start), kind(now), ecs.Bounds(kind(width), strict))) is expected
