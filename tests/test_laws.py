"""Laws that hold whatever the stream: of the oracle, of the engine, and that both are the same on all operators."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import reduce
from itertools import pairwise

import exhaustive
import harness
import oracle
import pytest
import strategies
from harness import Options
from hypothesis import given
from hypothesis import strategies as st
from strategies import Asked, Row

from planner import cel
from planner.formula import Formula
from planner.terms import Window

pytestmark = pytest.mark.slow  # minutes together; `make test` runs them

LIMIT = 120  # complex events in one set of the oracle; larger examples are cut short
KEYS = (0, 1, None)

Find = Callable[..., set[oracle.Match]]


def affordable(asked: Asked, rows: list[Row]) -> list[Row]:
    """The rows, or so many of the first as the oracle can evaluate."""
    while rows:
        try:
            of_the_oracle(asked.formula, rows, asked.window, asked.options)
        except oracle.TooLarge:
            rows = rows[: len(rows) // 2]
        else:
            break
    return rows


def of_the_oracle(
    formula: Formula, rows: list[Row], window: Window | None = None, options: Options = harness.PLAIN
) -> set[oracle.Match]:
    return oracle.evaluate(formula, [row.event() for row in rows], window, LIMIT, **options.given())


def of_the_engine(
    formula: Formula, rows: list[Row], window: Window | None = None, options: Options = harness.PLAIN
) -> set[oracle.Match]:
    return harness.matches_of(formula, [row.event() for row in rows], window, options)


find = pytest.mark.parametrize("find", [of_the_oracle, of_the_engine])


@contextmanager
def reported(asked: Asked, rows: list[Row], keyed: bool = False) -> Iterator[None]:
    """What goes wrong inside is reported with a ready-to-paste corpus entry."""
    try:
        yield
    except Exception as error:
        error.add_note(strategies.as_case(asked.formula, rows, asked.window, keyed, asked.options))
        raise


def small(depth: int = 2) -> st.SearchStrategy[Formula]:
    """Formulas of all operators that may stand in any place."""
    return strategies.parts(depth, solid=True)


def affordable_to(*formulas: Formula, rows: list[Row]) -> list[Row]:
    for formula in formulas:
        rows = affordable(Asked(formula, None), rows)
    return rows


def is_the_same(find: Find, left: Formula, right: Formula, rows: list[Row]) -> None:
    rows = affordable_to(left, right, rows=rows)
    assert find(left, rows) == find(right, rows), f"{left.show()}\nand\n{right.show()}"


# ---------------------------------------------------------------- engine and oracle


@pytest.mark.slow
@given(strategies.queries(), strategies.busy_streams(), st.integers(0, 1 << 16))
@strategies.examples(120)
def test_engine_and_oracle_agree_on_all_operators(asked: Asked, rows: list[Row], seed: int) -> None:
    rows = affordable(asked, rows)
    with reported(asked, rows):
        events = [row.event() for row in rows]
        harness.check(asked.formula, events, asked.window, seed=seed, options=asked.options)


@pytest.mark.slow
@given(strategies.queries(2), strategies.busy_streams(12, keys=KEYS), st.integers(0, 1 << 16))
@strategies.examples(25)
def test_engine_and_oracle_agree_on_each_key(asked: Asked, rows: list[Row], seed: int) -> None:
    rows = affordable(asked, rows)
    with reported(asked, rows, keyed=True):
        events = [row.event() for row in rows]
        harness.check(asked.formula, events, asked.window, keyed=True, seed=seed, options=asked.options)


@given(strategies.queries(2), strategies.busy_streams(8), st.booleans())
@strategies.examples(15)
def test_a_stream_may_be_cut_anywhere(asked: Asked, rows: list[Row], compact: bool) -> None:
    rows = affordable(asked, rows)
    program = harness.compiled(asked.formula, asked.window, asked.options)
    fed = harness.rows_of(program, [row.event() for row in rows])
    whole = harness.unique(harness.run_whole(program, fed))
    for cut in range(len(rows) + 1):
        assert harness.unique(harness.run_cut(program, fed, [cut], compact)) == whole, f"cut at {cut}"


@pytest.mark.slow
@given(strategies.queries())
@strategies.examples(60)
def test_the_queries_that_are_drawn_are_valid(asked: Asked) -> None:
    assert exhaustive.valid(asked.formula)
    for part in strategies.subformulas(asked.formula):
        assert strategies.with_children(part, part.children()) == part


# ---------------------------------------------------------------- laws of the operators


@find
@given(formula=small(3), rows=strategies.busy_streams())
@strategies.examples(20)
def test_or_with_itself(find: Find, formula: Formula, rows: list[Row]) -> None:
    is_the_same(find, cel.Or(formula, formula), formula, rows)


@find
@pytest.mark.parametrize("operator", [cel.Sequence, cel.Contiguous, cel.Or, cel.All, cel.And])
@given(a=small(), b=small(), c=small(), rows=strategies.busy_streams(7))
@strategies.examples(20)
def test_associative(find: Find, operator: type, a: Formula, b: Formula, c: Formula, rows: list[Row]) -> None:
    is_the_same(find, operator(operator(a, b), c), operator(a, operator(b, c)), rows)


@find
@pytest.mark.parametrize("operator", [cel.Or, cel.And, cel.All])
@given(a=small(), b=small(), rows=strategies.busy_streams(8))
@strategies.examples(15)
def test_commutes(find: Find, operator: type, a: Formula, b: Formula, rows: list[Row]) -> None:
    is_the_same(find, operator(a, b), operator(b, a), rows)


@find
@given(formula=small(3), rows=strategies.busy_streams())
@strategies.examples(15)
def test_and_with_itself(find: Find, formula: Formula, rows: list[Row]) -> None:
    is_the_same(find, cel.And(formula, formula), formula, rows)


@find
@given(a=small(), b=small(), c=small(), rows=strategies.busy_streams(8))
@strategies.examples(15)
def test_absence_is_unless_between_two_events(find: Find, a: Formula, b: Formula, c: Formula, rows: list[Row]) -> None:
    """Several vetoes are one that is any of them; and a veto that cannot happen says nothing."""
    never = cel.And(cel.Event(None, frozenset({"p"})), cel.Event(None, frozenset({"q"})))
    is_the_same(find, cel.Absent(a, (b, c), a), cel.Absent(a, (cel.Or(b, c),), a), rows)
    is_the_same(find, cel.Absent(a, (never,), b), cel.Sequence(a, b), rows)
    is_the_same(find, cel.Unless(a, never), a, rows)


@find
@given(formula=small(), rows=strategies.busy_streams(7), contiguous=st.booleans())
@strategies.examples(20)
def test_counted_loops_are_their_copies(find: Find, formula: Formula, rows: list[Row], contiguous: bool) -> None:
    join = cel.Contiguous if contiguous else cel.Sequence
    loop = cel.ContiguousIteration if contiguous else cel.Iteration

    def copies(n: int) -> Formula:
        return reduce(join, [formula] * n)

    is_the_same(find, cel.Repeat(formula, 2, 3, contiguous), cel.Or(copies(2), copies(3)), rows)
    is_the_same(find, cel.Repeat(formula, 1, None, contiguous), loop(formula), rows)
    is_the_same(find, cel.Repeat(formula, 2, None, contiguous), join(formula, loop(formula)), rows)


@find
@given(a=small(), b=small(1), c=small(), rows=strategies.busy_streams(7))
@strategies.examples(20)
def test_an_optional_part_is_there_or_not(find: Find, a: Formula, b: Formula, c: Formula, rows: list[Row]) -> None:
    for join in (cel.Sequence, cel.Contiguous):
        there, away = join(join(a, b), c), join(a, c)
        is_the_same(find, join(join(a, cel.Repeat(b, 0, 1)), c), cel.Or(there, away), rows)
    is_the_same(
        find,
        cel.Sequence(a, cel.Repeat(b, 0, None)),
        cel.Or(a, cel.Sequence(a, cel.Iteration(b))),
        rows,
    )


@find
@given(a=small(), b=small(), c=small(1), rows=strategies.busy_streams(8))
@strategies.examples(15)
def test_or_distributes(find: Find, a: Formula, b: Formula, c: Formula, rows: list[Row]) -> None:
    for operator in (cel.Sequence, cel.Contiguous, cel.All, cel.And):
        is_the_same(find, operator(cel.Or(a, b), c), cel.Or(operator(a, c), operator(b, c)), rows)
    is_the_same(find, cel.Unless(a, cel.Or(b, c)), cel.Unless(cel.Unless(a, b), c), rows)


@find
@given(formula=small(3), rows=strategies.busy_streams())
@strategies.examples(15)
def test_what_changes_nothing_when_written_twice(find: Find, formula: Formula, rows: list[Row]) -> None:
    keep = frozenset(sorted(formula.binds())[:1])
    window = Window("events", 3)
    once = [cel.Start(formula), cel.Project(formula, keep), cel.Within(formula, window)]
    once += [cel.Strategy(rule, formula) for rule in strategies.RULES]
    for made in once:
        is_the_same(find, strategies.with_children(made, (made,)), made, rows)


# ---------------------------------------------------------------- laws of strategies and windows


@find
@given(formula=strategies.parts(3, ("seq", "or", "as", "filter"), solid=True), rows=strategies.busy_streams())
@strategies.examples(20)
def test_strict_is_sequences_without_gaps(find: Find, formula: Formula, rows: list[Row]) -> None:
    def contiguous(formula: Formula) -> Formula:
        made = strategies.with_children(formula, tuple(map(contiguous, formula.children())))
        return cel.Contiguous(made.left, made.right) if isinstance(made, cel.Sequence) else made

    is_the_same(find, cel.Strategy("STRICT", formula), contiguous(formula), rows)


@find
@given(formula=strategies.all_formulas(3), rows=strategies.busy_streams())
@strategies.examples(15)
def test_strategies_choose_among_all_matches(find: Find, formula: Formula, rows: list[Row]) -> None:
    window = strategies.clause_of(formula)
    rows = affordable(Asked(formula, window), rows)
    everything = find(formula, rows, window)
    for rule in strategies.RULES:
        chosen = find(formula, rows, window, Options(rule))
        assert chosen <= everything, rule
        ends = {end for _, end, _ in chosen}
        if rule != "STRICT":
            assert ends == {end for _, end, _ in everything}, rule
        if rule in ("NXT", "LAST"):
            sups = {(end, frozenset[int]().union(*(held for _, held in mu))) for _, end, mu in chosen}
            assert len(sups) == len(ends), rule


@find
@given(formula=small(3), rows=strategies.busy_streams())
@strategies.examples(15)
def test_without_a_window_the_clause_is_the_operator(find: Find, formula: Formula, rows: list[Row]) -> None:
    rows = affordable_to(formula, rows=rows)
    for rule in strategies.RULES:
        assert find(formula, rows, None, Options(rule)) == find(cel.Strategy(rule, formula), rows), rule


@find
@given(asked=strategies.queries(), rows=strategies.busy_streams())
@strategies.examples(15)
def test_a_window_larger_than_the_stream_changes_nothing(find: Find, asked: Asked, rows: list[Row]) -> None:
    rows = affordable(replace(asked, window=None), rows)
    if strategies.clause_of(asked.formula) is None:
        plain = find(asked.formula, rows, None, asked.options)
        for window in (Window("events", 1000), Window("time", 1000), Window("time", 1000, True)):
            assert find(asked.formula, rows, window, asked.options) == plain
            assert find(cel.Within(asked.formula, window), rows) == find(asked.formula, rows)


@find
@given(formula=small(3), rows=strategies.busy_streams(), window=strategies.small_windows())
@strategies.examples(20)
def test_the_clause_is_a_window_around_the_pattern(
    find: Find, formula: Formula, rows: list[Row], window: Window
) -> None:
    rows = affordable_to(formula, rows=rows)
    assert find(formula, rows, window) == find(cel.Within(formula, window), rows)


# ---------------------------------------------------------------- laws of consumption and skipping


@find
@given(
    formula=small(3), rows=strategies.busy_streams(), window=strategies.windows(), rule=st.sampled_from(("ALL", "NXT"))
)
@strategies.examples(20)
def test_consumption_leaves_no_overlap(
    find: Find, formula: Formula, rows: list[Row], window: Window | None, rule: str
) -> None:
    """Matches that end at different positions share none; and where anything matches, something is left."""
    rows = affordable_to(formula, rows=rows)
    everything = find(formula, rows, window, Options(rule))
    left = find(formula, rows, window, Options(rule, "PARTITION"))
    spans = {(s, e) for s, e, _ in left}
    assert not [(c, d) for c in spans for d in spans if c[1] < d[1] and d[0] <= c[1]]
    assert bool(left) == bool(everything)


@find
@given(formula=strategies.all_formulas(2), rows=strategies.busy_streams())
@strategies.examples(20)
def test_skipping_takes_one_match_at_a_time(find: Find, formula: Formula, rows: list[Row]) -> None:
    window = strategies.clause_of(formula)
    rows = affordable(Asked(formula, window), rows)
    everything = find(formula, rows, window)
    for to in ("PAST LAST ROW", "TO NEXT ROW"):
        taken = sorted(find(formula, rows, window, Options(skip=oracle.Skip(to))), key=lambda match: match[:2])
        assert set(taken) <= everything
        assert len({s for s, _, _ in taken}) == len(taken)
        if to == "TO NEXT ROW":
            assert {s for s, _, _ in taken} == {s for s, _, _ in everything}
        else:
            assert all(a[1] < b[0] for a, b in pairwise(taken))
