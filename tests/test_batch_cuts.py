"""Cutting a stream anywhere, with or without compacting between, changes nothing."""

from __future__ import annotations

from collections import Counter

import harness
import oracle
import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st
from strategies import Row
from test_differential import affordable, reported

from planner import cel
from planner.formula import Formula

A, B = cel.Event("A", frozenset({"A"})), cel.Event("B", frozenset({"B"}))
x = cel.Event("A", frozenset({"x"}))
FORMULAS = {
    "sequence": cel.Sequence(A, B),
    "contiguous": cel.Contiguous(A, cel.ContiguousIteration(B)),
    "loop": cel.Sequence(cel.Iteration(A), B),
    "nested loop": cel.Iteration(cel.Sequence(A, cel.ContiguousIteration(B))),
    "alternatives": cel.Sequence(cel.Or(A, cel.As(cel.Sequence(A, A), "x")), B),
}
WINDOWS = {
    "no window": None,
    "time": oracle.Window("time", 3),
    "strict": oracle.Window("time", 3, strict=True),
    "events": oracle.Window("events", 4),
}
TIMES = (0, 0, 1, 1, 2, 2, 3, 5, 5, 6, 9)
KEYS = (0, 1, 0, 0, 1, 0, 1, 1, 0, 1, 0)
ROWS = [Row(kind, 5, ts, key) for kind, ts, key in zip("AABAB-BAABB", TIMES, KEYS, strict=True)]


@pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS)
@pytest.mark.parametrize("formula", FORMULAS.values(), ids=FORMULAS)
def test_every_single_cut(formula: Formula, window: oracle.Window | None) -> None:
    program = harness.compiled(formula, window)
    rows = harness.rows_of(program, [row.event() for row in ROWS])
    expected = Counter(oracle.evaluate(formula, [row.event() for row in ROWS], window))
    for cut in range(len(rows) + 1):
        for compact in (False, True):
            found = harness.run_cut(program, rows, [cut], compact)
            assert Counter(found.get(None, [])) == expected, f"cut before row {cut}, compacted: {compact}"


@pytest.mark.parametrize("formula", FORMULAS.values(), ids=FORMULAS)
def test_a_cut_inside_a_key_continues_it(formula: Formula) -> None:
    program = harness.compiled(formula)
    stream = [row.event() for row in ROWS]
    rows = harness.rows_of(program, stream, keyed=True)
    whole = harness.run_whole(program, rows)
    assert harness.unique(whole) == {k: m for k, m in oracle.evaluate_partitioned(formula, stream).items() if m}
    for cut in range(len(rows) + 1):
        found = harness.run_cut(program, rows, [cut], compact=True)
        assert {k: Counter(m) for k, m in found.items()} == {k: Counter(m) for k, m in whole.items()}, cut


@given(
    strategies.formulas(5),
    strategies.streams(keys=(0, 1)),
    strategies.windows(),
    st.booleans(),
    st.lists(st.integers(0, 30), max_size=6),
    st.booleans(),
)
@strategies.examples(75)
def test_any_cuts(
    formula: Formula, rows: list[Row], window: oracle.Window | None, keyed: bool, cuts: list[int], drop: bool
) -> None:
    rows = affordable(formula, rows, keyed)
    with reported(formula, rows, window, keyed):
        program = harness.compiled(formula, window)
        fed = harness.rows_of(program, [row.event() for row in rows], keyed, drop)
        cuts = [min(cut, len(fed)) for cut in cuts]
        whole = harness.run_whole(program, fed)
        for compact in (False, True):
            found = harness.run_cut(program, fed, cuts, compact)
            assert {k: Counter(m) for k, m in found.items()} == {k: Counter(m) for k, m in whole.items()}


def test_counts_add_up_over_cuts() -> None:
    program = harness.compiled(FORMULAS["loop"])
    rows = harness.rows_of(program, [row.event() for row in ROWS])
    expected = len(oracle.evaluate(FORMULAS["loop"], [row.event() for row in ROWS]))
    for cut in range(len(rows) + 1):
        engine = harness.engine_for(program)
        first = engine.count(*rows.cut(0, cut))
        engine.least_row()
        assert first + engine.count(*rows.cut(cut, len(rows))) == expected


def test_a_listing_may_be_left_early() -> None:
    """A caller that stops after some matches (LIMIT) does not wait for 2^60 of them."""
    program = harness.compiled(FORMULAS["loop"])
    stream = [Row("A", 5, n, 0).event() for n in range(60)] + [Row("B", 5, 60, 0).event()]
    rows = harness.rows_of(program, stream)
    first = next(batch for batch in harness.engine_for(program).feed(*rows.cut(0, len(rows))) if batch.n)
    assert first.n > 0
