"""All formulas with at most 3 operators on all short streams, engine against oracle; with 4, a sample or all.

The streams are fed as so many keys of one stream, so one formula is one feed.
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
from exhaustive import LANE, LETTERS, LETTERS_WITH_P, MU, VARIABLES, WORD, Codes, Words

from planner import cel
from runtime.engine import engine_for

SAMPLE = 400  # formulas with 4 operators in the usual run
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


def engine_codes(formula: cel.Formula, counting: bool) -> tuple[Codes, int | None]:
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


def explain(formula: cel.Formula, actual: Codes, expected: Codes) -> str:
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
    return f"{cel.show(formula)}\non {shown}: {title}: {bound} ({len(wrong)} wrong matches over all streams)"


def check(formulas: Sequence[cel.Formula]) -> None:
    """The engine lists what the fast oracle lists; for some, it counts as many."""
    for n, formula in enumerate(formulas):
        expected = words_for(exhaustive.uses_p(formula)).expected(formula)
        actual, counted = engine_codes(formula, counting=n % 8 == 0)
        assert np.array_equal(actual, expected), explain(formula, actual, expected)
        assert counted in (None, len(expected)), (
            f"{cel.show(formula)}\ncount() says {counted}, there are {len(expected)}"
        )


@pytest.mark.parametrize("operators", [0, 1, 2])
def test_up_to_two_operators(operators: int) -> None:
    check(exhaustive.representatives(operators))


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_three_operators(chunk: int) -> None:
    check(exhaustive.representatives(3)[chunk::CHUNKS])


@cache
def sample_of_four() -> list[cel.Formula]:
    return random.Random(4).sample(exhaustive.representatives(4), SAMPLE)


def test_four_operators_sampled() -> None:
    check(sample_of_four())


@pytest.mark.exhaustive
@pytest.mark.parametrize("chunk", range(50))
def test_four_operators(chunk: int) -> None:
    check(exhaustive.representatives(4)[chunk::50])


def judged() -> list[cel.Formula]:
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
            assert expected[(expected >> WORD) == number].tolist() == plain, cel.show(formula)


def test_there_are_thousands_of_formulas() -> None:
    counts = [len(exhaustive.with_operators(n)) for n in range(4)]
    assert counts == [2, 19, 280, 5215]
    assert [len(exhaustive.representatives(n)) for n in range(4)] == [1, 10, 145, 2691]
