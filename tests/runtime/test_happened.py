"""What came before, as a tree of extremes and by hash: the latest that passes is what a look at each finds."""

from __future__ import annotations

import numpy as np
import pytest

from runtime.arrays import AnyArray
from runtime.chain_cea import EQUAL, GREATER, GREATER_EQUAL, LESS, LESS_EQUAL, NOBODY, UNEQUAL, Early
from runtime.program import NULL_CODE
from runtime.steppers import happened
from runtime.steppers.register_ops import BAD, EMPTY

NONE = -1
HOLDS = {
    LESS: lambda a, b: a < b,
    LESS_EQUAL: lambda a, b: a <= b,
    GREATER: lambda a, b: a > b,
    GREATER_EQUAL: lambda a, b: a >= b,
    EQUAL: lambda a, b: a == b,
    UNEQUAL: lambda a, b: a != b,
}


def early_of(kinds: list[int]) -> Early:
    """One kind of event, compared by these checks when a match ends."""

    def ints(values: list[int]) -> AnyArray:
        return np.array(values, np.int64)

    n = len(kinds)
    return Early(
        guard=ints([0]),
        edge=ints([0]),
        decided=np.zeros(1, np.bool_),
        check_of=ints([0, n]),
        equal=ints([kinds.index(EQUAL) if EQUAL in kinds else NOBODY]),
        kind=ints(kinds),
        term=ints([*range(n)]),
        register=ints([*range(n)]),
        outside=np.zeros((1, n), np.int64),
    )


def logged(early: Early, values: AnyArray, begin: int) -> happened.Happened:
    """Events at positions 0, 10, 20 …, of which those from `begin` on are inside the window."""
    n, checks = values.shape
    made = happened.new_happened(1, checks, 4, np.dtype(np.int64))
    for k in range(n):
        if made.ends[0, happened.END] == made.clock.shape[1]:
            made = happened.with_room(early, made, 4)
        at = int(made.ends[0, happened.END])
        made.clock[0, at] = made.position[0, at] = 10 * k
        made.value[:, at] = values[k]
        made.ends[0, happened.END] = at + 1
    made.ends[0, happened.BEGIN] = begin
    made = happened.with_room(early, made, 4)
    assert (made.position[0, : n - begin] == 10 * np.arange(begin, n)).all()
    return made


@pytest.mark.parametrize("kinds", [[k] for k in HOLDS] + [[LESS, EQUAL], [LESS, GREATER]])
def test_what_prevents_a_match_is_found(kinds: list[int]) -> None:
    chance = np.random.default_rng(sum(kinds))
    early, seen = early_of(kinds), set()
    for n in (0, 1, 2, 3, 7, 8, 9, 31, 33):
        values = chance.choice([1, 2, 3, 4, 5, NULL_CODE], (n, len(kinds)))
        begin = int(chance.integers(0, n + 1))
        log = logged(early, values, begin)
        for _ in range(40):
            asked = chance.choice([0, 1, 3, 5, 6, EMPTY, BAD], (1, len(kinds)), p=[0.15] * 5 + [0.15, 0.1])
            before = int(chance.integers(0, 10 * n + 10))

            def passes(k: int, values: AnyArray = values, asked: AnyArray = asked) -> bool:
                pairs = zip(kinds, asked[0].tolist(), values[k].tolist(), strict=True)
                return all(a == EMPTY or (a > BAD and b != NULL_CODE and HOLDS[kind](a, b)) for kind, a, b in pairs)

            expected = any(passes(k) and 10 * k < before for k in range(begin, n))
            # What a run has spoilt prevents nothing, nor what it lacks beside it.
            expected = expected and BAD not in asked
            assert happened.is_prevented(early, log, asked, 0, before) == expected
            seen.add(expected)
    assert seen == {True, False}


def test_a_log_keeps_what_is_inside_the_window_and_grows() -> None:
    early = early_of([LESS])
    log = logged(early, np.arange(100, dtype=np.int64)[:, None], 90)
    assert log.clock.shape[1] == 32
    assert log.ends.tolist() == [[0, 10]]
    happened.forget_happened(log)
    assert not happened.is_prevented(early, log, np.full((1, 1), EMPTY), 0, 10_000)
