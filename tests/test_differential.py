"""Random formulas on random streams: the engine gives what the oracle gives, however the stream is fed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import harness
import numpy as np
import oracle
import strategies
from hypothesis import assume, example, given
from hypothesis import strategies as st
from strategies import Row

from planner import cel
from planner.formula import Formula

LIMIT = 250  # complex events in one set of the oracle; larger examples are cut short

A, B = cel.Event("A", frozenset({"A"})), cel.Event("B", frozenset({"B"}))
x, y = cel.Event("A", frozenset({"x"})), cel.Event("A", frozenset({"y"}))


def affordable(formula: Formula, rows: list[Row], keyed: bool = False) -> list[Row]:
    """The longest beginning of the rows that the oracle can evaluate."""
    parts: dict[int | None, oracle.Meaning] = {}
    for n, row in enumerate(rows):
        meaning = parts.setdefault(row.key if keyed else None, oracle.Meaning([], LIMIT))
        meaning.stream = [*meaning.stream, row.event()]
        try:
            meaning.of(formula, 0, len(meaning.stream) - 1)
        except oracle.TooLarge:
            return rows[:n]
    return rows


@contextmanager
def reported(formula: Formula, rows: list[Row], window: oracle.Window | None, keyed: bool = False) -> Iterator[None]:
    """What goes wrong inside is reported with a ready-to-paste corpus entry."""
    try:
        yield
    except Exception as error:
        error.add_note(strategies.as_case(formula, rows, window, keyed))
        raise


@given(strategies.formulas(), strategies.streams(), strategies.windows(), st.integers(0, 1 << 16))
@example(cel.Or(x, y), [Row("A", 1, 0, 0)], None, 0)
@example(cel.Iteration(cel.Or(cel.Sequence(A, A), A)), [Row("A", 1, n, 0) for n in range(6)], None, 1)
@example(cel.Contiguous(A, cel.Sequence(B, A)), [Row(k, 1, 0, 0) for k in "A-BBA"], None, 2)
@strategies.examples(150)
def test_engine_and_oracle_agree(formula: Formula, rows: list[Row], window: oracle.Window | None, seed: int) -> None:
    rows = affordable(formula, rows)
    with reported(formula, rows, window):
        harness.check(formula, [row.event() for row in rows], window, seed=seed)


@given(strategies.formulas(5), strategies.streams(keys=(0, 1, 2, None)), strategies.windows(), st.integers(0, 1 << 16))
@strategies.examples(75)
def test_engine_and_oracle_agree_on_each_key(
    formula: Formula, rows: list[Row], window: oracle.Window | None, seed: int
) -> None:
    rows = affordable(formula, rows, keyed=True)
    with reported(formula, rows, window, keyed=True):
        harness.check(formula, [row.event() for row in rows], window, keyed=True, seed=seed)


@given(strategies.formulas(4), strategies.streams(max_size=16), st.integers(1, 6), st.booleans())
@strategies.examples(40)
def test_times_may_be_fractions(formula: Formula, rows: list[Row], size: int, strict: bool) -> None:
    rows = affordable(formula, rows)
    window = oracle.Window("time", size / 4, strict)
    stream = [oracle.Event(row.event().true, row.ts / 4) for row in rows]
    harness.check(formula, stream, window)


@given(strategies.formulas(4), strategies.streams(max_size=16))
@strategies.examples(40)
def test_each_match_is_known_when_its_last_event_arrives(formula: Formula, rows: list[Row]) -> None:
    rows = affordable(formula, rows)
    assume(rows)
    program = harness.compiled(formula)
    fed = harness.rows_of(program, [row.event() for row in rows])
    engine = harness.engine_for(program)
    for last in range(len(fed)):
        found = harness.decode(program, fed, engine.feed(*fed.cut(last, last + 1)))
        assert {match[1] for match in found.get(None, [])} <= {last}
    assert not harness.decode(program, fed, engine.flush())


@given(strategies.streams(max_size=12), st.integers(0, 1000))
@strategies.examples(20)
def test_a_gap_before_the_first_row_shifts_all_positions(rows: list[Row], gap: int) -> None:
    formula = cel.Contiguous(A, cel.ContiguousIteration(B))
    program = harness.compiled(formula)
    fed = harness.rows_of(program, [row.event() for row in rows])
    moved = harness.Rows(fed.symbols, fed.times, np.arange(len(fed), dtype=np.int64) + gap)
    plain = harness.run_whole(program, fed).get(None, [])
    shifted = harness.run_whole(program, moved).get(None, [])
    assert {(s + gap, e + gap) for s, e, _ in plain} == {(s, e) for s, e, _ in shifted}
