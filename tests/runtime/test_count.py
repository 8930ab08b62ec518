"""Counting without listing: the same number, also where there are far too many matches to list."""

from __future__ import annotations

import numpy as np
import pytest

from planner.cel import Event, Iteration, Sequence
from planner.compile import compile_formula
from planner.query import Window
from runtime.engine import engine_for
from runtime.errors import ExecutionError

A, B = Event("A", frozenset({"a"})), Event("B", frozenset({"b"}))
LOOP = compile_formula(Sequence(Iteration(A), B))


def stream(n: int) -> tuple[np.ndarray, np.ndarray]:
    """n times A, then B; bit 0 is A's, bit 1 is B's."""
    return np.array([1] * n + [2], np.int64), np.arange(n + 1, dtype=np.int64)


@pytest.mark.parametrize("n", [1, 5, 6, 7, 12, 60, 63])
def test_subsets_of_a_loop(n):
    assert engine_for(LOOP).count(*stream(n)) == 2**n - 1


@pytest.mark.parametrize("n", [64, 70, 5000])
def test_more_than_a_bigint(n):
    with pytest.raises(ExecutionError) as caught:
        engine_for(LOOP).count(*stream(n))
    assert caught.value.condition == "COUNT_OVERFLOW"
    assert "WITHIN" in str(caught.value)


@pytest.mark.parametrize("size", [1, 3, 10, 17])
def test_as_many_as_are_listed(size):
    """Windows cut through nodes that other roots still see whole."""
    program = compile_formula(Sequence(Iteration(A), B), Window("time", size))
    rng = np.random.default_rng(size)
    symbols, times = rng.choice([0, 1, 2], 300, p=[0.4, 0.4, 0.2]), np.sort(rng.integers(0, 500, 300))
    listed = sum(matches.n for matches in engine_for(program).feed(symbols, times))
    assert engine_for(program).count(symbols, times) == listed > 0


def test_a_walk_longer_than_the_stack():
    """Counting a long chain asks for a longer stack, and goes on."""
    events = np.array([1] * 40 + [2] * 40, np.int64)
    program = compile_formula(Sequence(Sequence(A, B), Event("B", frozenset({"c"}))))
    assert engine_for(program).count(events, np.arange(80)) == 40 * 40 * 39 // 2
