"""All formulas with at most 3 operators on all short streams, engine against oracle; with 4, a sample or all.

That is for the operators that one automaton reads off its formula; of all the others, each alone and each around each,
and what a query asks besides. The streams are fed as so many keys of one stream, so one formula is one feed.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cache
from typing import Any

import exhaustive
import harness
import numpy as np
import oracle
import pytest
import strategies
from exhaustive import END, LANE, LETTERS, LETTERS_WITH_P, MU, START, VARIABLES, WORD, Codes, Shared, Words

from planner import cel
from planner.formula import Formula
from planner.query import Skip
from runtime.engine import engine_for

pytestmark = pytest.mark.slow  # minutes together; `make test` runs them

SAMPLE = 120  # formulas with 4 operators in the usual run
PAIRS, ABSENCES, ASKED = 120, 24, 40  # of the others
CHUNKS = 8


@cache
def words_for(with_p: bool) -> Words:
    """Length 6 over A, B and neither; with a predicate length 4 over Ap, Bp too: 729 and 625 streams."""
    return Words(LETTERS_WITH_P, 4) if with_p else Words(LETTERS, 6)


@cache
def streams_for(with_p: bool) -> tuple[list[list[oracle.Event]], Codes]:
    """All streams, and the letters of their rows one after the other."""
    words = words_for(with_p)
    numbers = np.arange(len(words.letters) ** words.length)
    places = len(words.letters) ** np.arange(words.length - 1, -1, -1)
    return words.streams(), (numbers[:, None] // places % len(words.letters)).ravel()


def codes_of(program: Any, batches: list[Any]) -> Codes:
    """The engine's matches as sorted codes (exhaustive.py); the key of a match is the number of its stream."""
    lanes = [
        sum(1 << (LANE * VARIABLES.index(variable)) for variable in label if not variable.startswith("@"))
        for label in program.labels
    ]
    parts = [np.empty(0, np.int64)]
    for batch in batches:
        if batch.n:
            bits = np.array(lanes, np.int64)[batch.labels] << batch.positions
            mu = np.bitwise_or.reduceat(bits, batch.offsets[:-1])
            parts.append((np.asarray(batch.key, np.int64) << WORD) | mu)
    return np.sort(np.concatenate(parts))


def engine_codes(formula: Formula, counting: bool) -> tuple[Codes, int | None]:
    """What the engine lists for all streams, and what it counts (if `counting`)."""
    with_p = exhaustive.uses_p(formula)
    words = words_for(with_p)
    _, letters = streams_for(with_p)
    program = harness.compiled(formula)
    symbols = harness.symbols_of(program, [oracle.Event(frozenset(letter)) for letter in words.letters])[letters]
    streams = len(letters) // words.length
    keys = np.repeat(np.arange(streams), words.length)
    times = np.tile(np.arange(words.length), streams)
    engine = engine_for(program)
    batches = [*engine.feed(symbols, times, None, keys), *engine.flush()]
    counted = int(engine_for(program).count(symbols, times, None, keys)) if counting else None
    return codes_of(program, batches), counted


def explain(formula: Formula, actual: Codes, expected: Codes) -> str:
    """The smallest difference: formula, stream, match."""
    if len(np.unique(actual)) < len(actual):
        values, times = np.unique(actual, return_counts=True)
        wrong, title = values[times > 1], "listed twice"
    else:
        wrong = np.setxor1d(actual, expected)
        title = "missing" if wrong[0] in expected else "too many"
    words = words_for(exhaustive.uses_p(formula))
    stream = words.streams()[int(wrong[0]) >> WORD]
    mu = int(wrong[0]) & MU
    bound = {
        variable: [k for k in range(words.length) if mu >> (LANE * v + k) & 1] for v, variable in enumerate(VARIABLES)
    }
    shown = " ".join("".join(sorted(event.true)) or "." for event in stream)
    return f"{formula.show()}\non {shown}: {title}: {bound} ({len(wrong)} wrong matches over all streams)"


def check(formulas: Sequence[Formula]) -> None:
    """The engine lists what the fast oracle lists; for some, it counts as many."""
    for n, formula in enumerate(formulas):
        expected = words_for(exhaustive.uses_p(formula)).expected(formula)
        actual, counted = engine_codes(formula, counting=n % 8 == 0)
        assert np.array_equal(actual, expected), explain(formula, actual, expected)
        assert counted in (None, len(expected)), f"{formula.show()}\ncount() says {counted}, there are {len(expected)}"


@pytest.mark.parametrize("operators", [0, 1, 2])
def test_up_to_two_operators(operators: int) -> None:
    check(exhaustive.representatives(operators))


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_three_operators(chunk: int) -> None:
    check(exhaustive.representatives(3)[chunk::CHUNKS])


@cache
def sample_of_four() -> list[Formula]:
    return random.Random(4).sample(exhaustive.representatives(4), SAMPLE)


def test_four_operators_sampled() -> None:
    check(sample_of_four())


@pytest.mark.exhaustive
@pytest.mark.parametrize("chunk", range(50))
def test_four_operators(chunk: int) -> None:
    check(exhaustive.representatives(4)[chunk::50])


def judged() -> list[Formula]:
    """Formulas on which the plain oracle judges the fast one: all small ones, and some larger."""
    few = random.Random(3).sample(exhaustive.representatives(3), 60)
    return [*exhaustive.representatives(0), *exhaustive.representatives(1), *few, *sample_of_four()[:20]]


def test_the_fast_oracle_is_judged_by_the_plain_one() -> None:
    chance = random.Random(1)
    for formula in judged():
        with_p = exhaustive.uses_p(formula)
        streams, _ = streams_for(with_p)
        expected = words_for(with_p).expected(formula)
        for number in chance.sample(range(len(streams)), 40):
            plain = sorted(exhaustive.code_of(number, match) for match in oracle.evaluate(formula, streams[number]))
            assert expected[(expected >> WORD) == number].tolist() == plain, formula.show()


def test_there_are_thousands_of_formulas() -> None:
    counts = [len(exhaustive.with_operators(n)) for n in range(4)]
    assert counts == [2, 19, 280, 5215]
    assert [len(exhaustive.representatives(n)) for n in range(4)] == [1, 10, 145, 2691]


# ---------------------------------------------------------------- all operators, and what a query asks besides


@cache
def short_streams(with_p: bool) -> tuple[list[list[oracle.Event]], list[Any]]:
    """All streams of length 5, with a predicate of length 4 (243 and 625), and of each letter its number."""
    letters, length = (LETTERS_WITH_P, 4) if with_p else (LETTERS, 5)
    streams = exhaustive.timed_streams(letters, length)
    return streams, [event for stream in streams for event in stream]


def full_codes(
    formula: Formula, window: oracle.Window | None = None, options: harness.Options = harness.PLAIN
) -> tuple[Codes, int]:
    """What the engine lists for all streams, and how many it counts."""
    streams, events = short_streams(exhaustive.uses_p(formula))
    program = harness.compiled(formula, window, options)
    letters = {event.true: event for event in events}
    symbol = dict(zip(letters, harness.symbols_of(program, list(letters.values())), strict=True))
    symbols = np.array([symbol[event.true] for event in events])
    lanes = [sum(1 << (LANE * VARIABLES.index(v)) for v in label if not v.startswith("@")) for label in program.labels]
    keys = np.repeat(np.arange(len(streams)), len(streams[0]))
    rows = harness.Rows(symbols, harness.times_of(events), None, keys, list(range(len(streams))))
    engine = engine_for(program)
    parts = [np.empty(0, np.int64)]
    for batch in [*engine.feed(*rows.cut(0, len(rows))), *engine.flush()]:
        if batch.n:
            positions = np.asarray(batch.positions, np.int64)
            bits = np.array(lanes, np.int64)[batch.labels] << positions
            first, last = positions[batch.offsets[:-1]], positions[batch.offsets[1:] - 1]
            mu = np.bitwise_or.reduceat(bits, batch.offsets[:-1])
            parts.append((np.asarray(batch.key, np.int64) << WORD) | mu | (first << START) | (last << END))
    return np.sort(np.concatenate(parts)), harness.count(program, rows)


def compare(formula: Formula, window: oracle.Window | None = None, options: harness.Options = harness.PLAIN) -> None:
    """Engine and oracle list the same matches, starts and ends included, on all streams."""
    streams, _ = short_streams(exhaustive.uses_p(formula))
    expected = np.array(
        sorted(
            exhaustive.full_code(number, match)
            for number, stream in enumerate(streams)
            for match in oracle.evaluate(formula, stream, window, **options.given(), meanings=Shared)
        ),
        np.int64,
    )
    actual, counted = full_codes(formula, window, options)
    if not np.array_equal(actual, expected):
        wrong = np.setxor1d(actual, expected)
        twice = not len(wrong)
        if twice:
            values, times = np.unique(actual, return_counts=True)
            wrong = values[times > 1]
        code = int(wrong[0])
        title = "listed twice" if twice else "missing" if code in expected else "too many"
        bound = {
            variable: [k for k in range(LANE) if code >> (LANE * v + k) & 1] for v, variable in enumerate(VARIABLES)
        }
        shown = " ".join("".join(sorted(event.true)) or "." for event in streams[code >> WORD])
        pytest.fail(
            f"{formula.show()}\nwithin {window}, {options}\non {shown}: {title}: "
            f"{code >> START & 15}..{code >> END & 15} {bound} ({len(wrong)} wrong matches over all streams)"
        )
    assert counted == len(expected), f"{formula.show()}\ncount() says {counted}, there are {len(expected)}"


def compare_all(asked: Sequence[tuple[Formula, oracle.Window | None, harness.Options]]) -> None:
    for formula, window, options in asked:
        compare(formula, window, options)


@cache
def asked() -> list[tuple[Formula, oracle.Window | None, harness.Options]]:
    """Every operator alone under every strategy, consumption and skip, with and without a window."""
    choosing = [harness.Options(rule) for rule in (*exhaustive.RULES, "NEXT_MATCH")]
    consuming = [harness.Options(rule, "PARTITION") for rule in ("ALL", *exhaustive.RULES, "NEXT_MATCH")]
    points = [("PAST LAST ROW", None), ("TO NEXT ROW", None), ("TO FIRST", "A"), ("TO LAST", "A"), ("TO LAST", "B")]
    skipping = [harness.Options(skip=Skip(*point)) for point in points]
    sequences = [cel.Sequence(f, cel.Event("B", frozenset({"B"}))) for f in exhaustive.alone()]
    after = [f for f in exhaustive.absences() if isinstance(f, cel.NotAfter)][:6]
    found = []
    for formula in [*exhaustive.alone(), *sequences, *after]:
        if not exhaustive.valid(formula):
            continue
        for options in [*choosing, *consuming, *skipping]:
            if options.strategy == "NEXT_MATCH" and not next_match_is_defined(formula):
                continue
            if options.consume != "NONE" and exhaustive.looks_around(formula):
                continue
            if options.skip and options.skip.mark not in {None, *formula.binds()}:
                continue
            clause = strategies.clause_of(formula)
            windows = (clause,) if clause else (None, exhaustive.SHORT[0], oracle.Window("events", 3))
            found += [(formula, window, options) for window in windows]
    return found


def next_match_is_defined(formula: Formula) -> bool:
    undefined = cel.And | cel.All | cel.Unless | cel.Start | cel.Project | cel.Strategy | cel.Within
    if isinstance(formula, undefined):
        return False
    return all(map(next_match_is_defined, formula.positive()))


def some(formulas: Sequence[Any], count: int) -> list[Any]:
    return random.Random(5).sample(list(formulas), count)


def test_every_operator_alone() -> None:
    for formula in exhaustive.alone():
        if exhaustive.valid(formula):
            compare(formula)


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_operators_around_operators_sampled(chunk: int) -> None:
    for formula in some(exhaustive.pairs(), PAIRS)[chunk::CHUNKS]:
        compare(formula)


@pytest.mark.slow
def test_absences_sampled() -> None:
    for formula in some(exhaustive.absences(), ABSENCES):
        compare(formula, strategies.clause_of(formula))


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_strategies_consumption_and_skips_sampled(chunk: int) -> None:
    compare_all(some(asked(), ASKED)[chunk::CHUNKS])


@pytest.mark.exhaustive
@pytest.mark.parametrize("chunk", range(50))
def test_operators_around_operators(chunk: int) -> None:
    for formula in exhaustive.pairs()[chunk::50]:
        compare(formula)


@pytest.mark.exhaustive
@pytest.mark.parametrize("chunk", range(10))
def test_absences(chunk: int) -> None:
    for formula in exhaustive.absences()[chunk::10]:
        compare(formula, strategies.clause_of(formula))


@pytest.mark.exhaustive
@pytest.mark.parametrize("chunk", range(50))
def test_strategies_consumption_and_skips(chunk: int) -> None:
    compare_all(asked()[chunk::50])


def test_what_is_remembered_is_what_the_oracle_says() -> None:
    chance = random.Random(6)
    for formula in [*exhaustive.alone(), *some(exhaustive.pairs(), 40), *some(exhaustive.absences(), 20)]:
        streams, _ = short_streams(exhaustive.uses_p(formula))
        for stream in chance.sample(streams, 6):
            remembered = oracle.evaluate(formula, stream, meanings=Shared)
            assert remembered == oracle.evaluate(formula, stream), formula.show()
