"""SKIP TILL NEXT MATCH: the engine finds the runs that the oracle makes, however the stream is fed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import exhaustive
import harness
import oracle
import pytest
import strategies
from harness import Options
from hypothesis import given
from hypothesis import strategies as st
from strategies import Row
from test_exhaustive import full_codes, short_streams

from planner import cel
from planner.errors import PlanError
from planner.formula import Formula
from planner.terms import Predicate, Window

pytestmark = pytest.mark.slow  # minutes together; `make test` runs them

GREEDY = Options("NEXT_MATCH")
LIMIT = 300  # runs of the oracle; larger examples are cut short

A, B, C = (cel.Event(name, frozenset({name})) for name in "ABC")
ANY = cel.Event(None, frozenset({"ANY"}))
P, Q = Predicate("p"), Predicate("q")


def seq(*parts: Formula) -> Formula:
    first, *others = parts
    for part in others:
        first = cel.Sequence(first, part)
    return first


def maybe(part: Formula) -> Formula:
    return cel.Repeat(part, 0, 1)


def stream(text: str) -> list[oracle.Event]:
    """`A Bp .`: a B of which p is true, and an event of no type."""
    return [oracle.Event(frozenset(word.strip(".")), time) for time, word in enumerate(text.split())]


def found(formula: Formula, text: str, window: Window | None = None, options: Options = GREEDY) -> list[list[int]]:
    """The positions of the matches; that the oracle finds the same is checked on the way."""
    events = stream(text)
    harness.check(formula, events, window, options=options)
    matches = harness.matches_of(formula, events, window, options)
    return sorted(sorted(frozenset[int]().union(*(held for _, held in mu))) for _, _, mu in matches)


def test_a_run_takes_what_it_can() -> None:
    assert found(seq(A, B), "A A B B") == [[0, 2], [1, 2]]
    assert found(seq(A, B, C), "A B B C C") == [[0, 1, 3]]
    assert found(seq(A, A), "A A A") == [[0, 1], [1, 2]]


def test_a_loop_goes_on_after_a_match() -> None:
    assert found(seq(A, cel.Iteration(B)), "A B . B") == [[0, 1], [0, 1, 3]]
    assert found(cel.Iteration(A), "A A A") == [[0], [0, 1], [0, 1, 2], [1], [1, 2], [2]]
    assert found(seq(A, cel.Iteration(B), C), "A B B C B C") == [[0, 1, 2, 3]]
    assert found(cel.Iteration(seq(A, B)), "A B A B") == [[0, 1], [0, 1, 2, 3], [2, 3]]


def test_one_run_for_each_follower_that_accepts() -> None:
    x, y = cel.Event("B", frozenset({"x"})), cel.Event("B", frozenset({"y"}))
    assert found(seq(A, cel.Or(x, y)), "A B B") == [[0, 1], [0, 1]]
    assert found(seq(A, cel.Iteration(B), ANY), "A B B") == [[0, 1, 2]]
    assert found(cel.Or(seq(A, B), seq(A, C)), "A B C") == [[0, 1], [0, 2]]
    assert found(seq(A, cel.Or(B, C)), "A B C") == [[0, 1]]


def test_what_is_contiguous_is_taken_at_once_or_never() -> None:
    assert found(cel.Contiguous(A, B), "A . B A B") == [[3, 4]]
    assert found(cel.ContiguousIteration(A), "A A . A") == [[0], [0, 1], [1], [3]]
    # after a skipped event only the loop that is not contiguous goes on
    both = cel.Iteration(cel.ContiguousIteration(A))
    assert found(both, "A . A") == [[0], [0, 2], [2]]
    assert found(seq(cel.Contiguous(A, B), C), "A B . C") == [[0, 1, 3]]
    either = seq(A, cel.Or(cel.Repeat(B, 2, 2, contiguous=True), C))
    assert found(either, "A B . B C") == []  # the run had to take the first B


def test_optional_parts_are_taken_where_they_can_be() -> None:
    assert found(seq(A, maybe(B), C), "A B C") == [[0, 1, 2]]
    assert found(seq(A, maybe(B), C), "A C B C") == [[0, 1]]
    assert found(seq(A, cel.Repeat(B, 2, 3), C), "A B B B B C") == [[0, 1, 2, 3, 5]]
    assert found(seq(A, cel.Repeat(B, 0, None), C), "A B . B C") == [[0, 1, 3, 4]]
    assert found(seq(maybe(A), B), "A B") == [[0, 1], [1]]
    assert found(cel.Repeat(maybe(A), 2, 3), "A A") == [[0], [0, 1], [1]]


def test_a_broken_absence_ends_the_run_that_waits_behind_it() -> None:
    formula = cel.Absent(A, (B,), C)
    assert found(formula, "A . C") == [[0, 2]]
    assert found(formula, "A B C A C") == [[3, 4]]
    assert found(cel.Or(formula, A), "A B C") == [[0]]
    # the other follower is still there
    assert found(cel.Absent(A, (seq(B, B),), cel.Or(C, B)), "A C") == [[0, 1]]
    assert found(cel.Absent(A, (B,), seq(maybe(C), A)), "A C B A") == [[0, 1, 3]]  # it stood before the C alone
    # what could be taken is taken, even where it is what the absence is about
    assert found(cel.Absent(A, (B,), B), "A B B") == [[0, 1]]


def test_an_absence_of_several_events_is_watched() -> None:
    formula = cel.Absent(A, (seq(B, B), cel.Contiguous(B, A)), C)
    assert found(formula, "A B C") == [[0, 2]]
    assert found(formula, "A B . B C") == []
    assert found(formula, "A B A C") == [[2, 3]]
    assert found(formula, "A B . A C") == [[0, 4], [3, 4]]


def test_an_absence_that_has_a_window_of_its_own() -> None:
    formula = cel.Absent(A, (cel.Within(seq(B, B), Window("events", 2)),), C)
    assert found(formula, "A B B C") == []
    assert found(formula, "A B . B C") == [[0, 4]]


def test_absences_before_and_after_the_whole_choose_among_the_runs() -> None:
    window = Window("events", 4)
    before = cel.NotBefore((C,), seq(A, B), window)
    assert found(before, "C A B B") == []
    assert found(before, "C . A . B") == [[2, 4]]
    after = cel.NotAfter(seq(A, B), (C,), window)
    assert found(after, "A A B C") == []
    assert found(after, "A . B B C") == [[0, 2]]
    assert found(after, "A B") == [[0, 1]]  # the end of the stream is time passed
    both = cel.As(cel.NotBefore((B,), cel.FilterAny(after, (("A", P), ("B", Q))), window), "x")
    assert found(both, "B . . . Ap B") == [[4, 5]]
    assert found(both, "A B Bq . C") == [[0, 2]]
    assert found(both, "B Ap B") == []


def test_a_condition_is_asked_of_the_event_to_be_taken() -> None:
    assert found(seq(A, cel.Filter(B, "B", P)), "A B Bp Bp") == [[0, 2]]
    assert found(cel.Filter(seq(A, B), None, P), "A Ap B Bp") == [[1, 3]]
    # of the variables as they were inside
    assert found(cel.As(cel.Filter(seq(cel.As(A, "x"), B), "x", P), "x"), "A Ap B") == [[1, 2]]


def test_an_or_of_conditions_is_decided_by_what_was_taken() -> None:
    formula = cel.FilterAny(seq(A, B), (("A", P), ("B", Q)))
    assert found(formula, "A B Bq") == [[0, 2]]
    assert found(formula, "Ap B Bq") == [[0, 1]]
    assert found(cel.Iteration(formula), "A Bq Ap B") == [[0, 1], [0, 1, 2, 3], [2, 3]]
    rounds = cel.FilterAny(cel.Iteration(seq(A, B)), (("A", P), ("B", Q)))
    assert found(rounds, "Ap B A Bq Ap Bq") == [[0, 1], [0, 1, 4, 5], [2, 3], [2, 3, 4, 5], [4, 5]]


def test_the_window_is_asked_of_what_was_found() -> None:
    assert found(seq(A, B), "A A B B", Window("events", 2)) == [[1, 2]]
    assert found(seq(A, cel.Iteration(B)), "A B B B", Window("time", 2)) == [[0, 1], [0, 1, 2]]


def test_a_match_consumes_the_runs_that_have_begun() -> None:
    consuming = Options("NEXT_MATCH", "PARTITION")
    assert found(seq(A, cel.Iteration(B)), "A B B A B", options=consuming) == [[0, 1], [3, 4]]
    assert found(seq(A, B, B), "A A B B A B B", options=consuming) == [[0, 2, 3], [1, 2, 3], [4, 5, 6]]


def test_many_copies_of_an_atom_have_as_many_pairs() -> None:
    program = harness.compiled(cel.Repeat(A, 1, 500), None, GREEDY)
    assert program.machine is not None
    assert sum(map(len, program.machine.follow)) == 499  # type: ignore[attr-defined]
    events = stream("A " * 60)
    rows = harness.rows_of(program, events)
    assert harness.count(program, rows) == 60 * 61 // 2


def test_too_many_positions_are_refused() -> None:
    with pytest.raises(PlanError) as caught:
        harness.compiled(cel.Repeat(seq(A, B), 1, 20_000), None, GREEDY)
    assert caught.value.condition == "AUTOMATON_LIMIT"


def test_what_it_is_not_defined_for_is_refused() -> None:
    with pytest.raises(TypeError, match="skip till next match"):
        harness.compiled(cel.All(A, B), None, GREEDY)


# ---------------------------------------------------------------- against the oracle


def affordable(formula: Formula, rows: list[Row], window: Window | None, options: Options) -> list[Row]:
    """The longest beginning of the rows that the oracle can evaluate, halving."""
    while rows:
        try:
            harness.expected_matches(formula, [row.event() for row in rows], window, limit=LIMIT, options=options)
            return rows
        except oracle.TooLarge:
            rows = rows[: len(rows) // 2]
    return rows


@st.composite
def asked(draw: st.DrawFn) -> strategies.Asked:
    formula = draw(strategies.all_formulas(draw(st.integers(1, 4)), strategies.SIMPLE))
    trailing = any(isinstance(f, cel.NotAfter) for f in strategies.subformulas(formula))
    window = strategies.clause_of(formula) or draw(st.one_of(st.none(), strategies.windows()))
    return strategies.Asked(
        formula, window, Options("NEXT_MATCH", "NONE" if trailing else draw(st.sampled_from(("NONE", "PARTITION"))))
    )


def agree(asked: strategies.Asked, rows: list[Row], seed: int, keyed: bool = False) -> None:
    rows = affordable(asked.formula, rows, asked.window, asked.options)
    try:
        events = [row.event() for row in rows]
        harness.check(asked.formula, events, asked.window, keyed, seed, options=asked.options)
    except Exception as error:
        error.add_note(strategies.as_case(asked.formula, rows, asked.window, keyed, asked.options))
        raise


@given(asked(), strategies.streams(max_size=14), st.integers(0, 1 << 16))
@strategies.examples(60)
def test_engine_and_oracle_agree(asked: strategies.Asked, rows: list[Row], seed: int) -> None:
    agree(asked, rows, seed)


@given(asked(), strategies.busy_streams(), st.integers(0, 1 << 16))
@strategies.examples(60)
def test_engine_and_oracle_agree_where_much_matches(asked: strategies.Asked, rows: list[Row], seed: int) -> None:
    agree(asked, rows, seed)


@given(asked(), strategies.busy_streams(14, (0, 1, None)), st.integers(0, 1 << 16))
@strategies.examples(20)
def test_engine_and_oracle_agree_on_each_key(asked: strategies.Asked, rows: list[Row], seed: int) -> None:
    agree(asked, rows, seed, keyed=True)


# ---------------------------------------------------------------- everything small


def around(one: Formula, other: Formula) -> Iterator[Formula]:
    """Every operator that is allowed, around the formulas."""
    yield from exhaustive.unary(one)
    for low, high, contiguous in ((0, 1, False), (0, None, False), (1, 2, False), (2, 3, True)):
        yield cel.Repeat(one, low, high, contiguous)
    scope = sorted(one.binds())
    if len(scope) > 1:
        yield cel.FilterAny(one, tuple((variable, exhaustive.P) for variable in scope[:2]))
    for left, right in ((one, other), (other, one)):
        yield from exhaustive.binary(left, right)
        yield cel.Absent(left, (exhaustive.B,), right)
    yield cel.Absent(exhaustive.A, (one,), other)


def small() -> list[Formula]:
    """One or two operators, the first atom A."""
    a, b = exhaustive.A, exhaustive.B
    ones = dict.fromkeys(f for right in (a, b) for f in around(a, right))
    twos = dict.fromkeys(f for inner, other in product(ones, (a, b)) for f in around(inner, other))
    return [f for f in (*ones, *twos) if exhaustive.valid(f)]


def expected(formula: Formula) -> Iterator[int]:
    """The oracle's matches on all short streams, as codes; the runs' automaton is made once for all of them."""
    streams, _ = short_streams(exhaustive.uses_p(formula))
    runs = oracle.Runs(formula, oracle.Meaning([]))
    for number, events in enumerate(streams):
        runs.meaning = exhaustive.Shared(events)
        for at_n in runs.matches():
            yield from (exhaustive.full_code(number, match) for match in set(map(oracle.as_match, at_n)))


@pytest.mark.breadth(1)
@pytest.mark.parametrize("chunk", range(4))
def test_all_small_formulas_on_all_short_streams(chunk: int) -> None:
    for formula in small()[chunk::4]:
        actual, counted = full_codes(formula, options=GREEDY)
        assert actual.tolist() == sorted(expected(formula)), formula.show()
        assert counted == len(actual), formula.show()
