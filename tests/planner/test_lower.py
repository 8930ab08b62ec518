"""Automaton → Program: numbers, labels, windows."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from planner.automata.automaton import Automaton
from planner.cel import Event, Filter, Iteration, Sequence
from planner.compile import compile_formula
from planner.lower import integral, lower, lower_window
from planner.query import Window
from planner.terms import Predicate
from runtime import program as rt

A, B = (Event(name.upper(), frozenset(name)) for name in "ab")


def test_program() -> None:
    program = compile_formula(Filter(Sequence(A, Iteration(B)), "b", Predicate("v > 1")), Window("events", 5))
    assert program.transitions.tolist() == [
        [0, rt.ALWAYS, rt.SKIP, 0], [0, 0, 0, 1], [1, rt.ALWAYS, rt.SKIP, 1], [1, 1, 1, 1], [1, 1, 1, 2],
    ]  # fmt: skip
    assert program.transitions.dtype == np.int64
    assert (program.n_states, program.initial, program.final) == (3, (0,), (2,))
    assert program.guards == (frozenset({"A"}), frozenset({"B", "v > 1"}))
    assert program.labels == (frozenset("a"), frozenset("b"))
    assert program.label_matrix().tolist() == [[True, False], [False, True]]
    assert program.window == rt.Window("events", 4)
    again = pickle.loads(pickle.dumps(program))
    assert again.transitions.tolist() == program.transitions.tolist()


def test_order_of_variables_is_the_callers() -> None:
    program = compile_formula(Sequence(A, B), visible=("b", "a"))
    assert program.variables == ("b", "a")
    assert program.label_matrix().tolist() == [[False, True], [True, False]]


def test_nothing_to_do() -> None:
    program = lower(Automaton(0, (), (), ()), None, ())
    assert program.transitions.shape == (0, 4)
    assert (program.words, program.label_matrix().shape) == (1, (0, 0))


@pytest.mark.parametrize(
    ("window", "lowered"),
    [
        (None, None),
        (Window("events", 1), rt.Window("events", 0)),
        (Window("time", 5), rt.Window("time", 5)),
        (Window("time", 1.5, strict=True), rt.Window("time", 1.5, strict=True)),
    ],
)
def test_windows(window: Window | None, lowered: rt.Window | None) -> None:
    assert lower_window(window) == lowered


@pytest.mark.parametrize(
    ("size", "strict", "whole"), [(1.5, True, 1), (1.5, False, 1), (2, True, 1), (2, False, 2), (0.5, True, 0)]
)
def test_integral(size: float, strict: bool, whole: int) -> None:
    assert integral(Window("time", size, strict)) == Window("time", whole)
    assert integral(Window("events", 7)) == Window("events", 7)


@pytest.mark.parametrize(
    ("n", "words"),
    [
        (0, [range(0)]), (1, [range(1)]), (62, [range(62)]), (63, [range(62), range(62, 63)]),
        (124, [range(62), range(62, 124)]), (125, [range(62), range(62, 124), range(124, 125)]),
    ],
)  # fmt: skip
def test_words(n: int, words: list[range]) -> None:
    assert rt.symbol_words(n) == words
