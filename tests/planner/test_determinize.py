"""The deterministic automaton as EXPLAIN prints it."""

from __future__ import annotations

import pytest

from planner.cel import Contiguous, Event, Filter, Iteration, Or, Sequence
from planner.compile import compile_formula
from planner.deterministic import determinize
from planner.formula import Formula
from planner.terms import Predicate

A, B, C = (Event(name.upper(), frozenset(name)) for name in "abc")
X = Event("A", frozenset("x"))


@pytest.mark.parametrize(
    ("formula", "lines"),
    [
        (A, ["{0} -[A / a]-> dead accept"]),
        (Sequence(A, B), ["{0} -[A / a]-> {1}", "{1} -[B / b]-> dead accept"]),
        (Iteration(A), ["{0} -[A / a]-> {0} accept"]),
        (
            Contiguous(A, B),
            [
                "{0} -[A / a]-> {2}",
                "{2} -[none / -]-> dead",
                "{2} -[A / -]-> dead",
                "{2} -[B / b]-> dead accept",
                "{2} -[B / -]-> dead",
            ],
        ),
        # one run for each label, however many states: a match is listed once
        (Or(Sequence(A, B), Sequence(A, C)),
         ["{0,3} -[A / a]-> {1,4}", "{1,4} -[B / b]-> dead accept",
          "{1,4} -[C / c]-> dead accept"]),
        (Or(A, X), ["{0,2} -[A / a]-> dead accept", "{0,2} -[A / x]-> dead accept"]),
    ],
)  # fmt: skip
def test_small(formula: Formula, lines: list[str]) -> None:
    assert determinize(compile_formula(formula)).split("\n") == lines


def test_limit() -> None:
    formula: Formula = A
    for _ in range(10):
        formula = Sequence(formula, A)
    lines = determinize(compile_formula(formula), limit=3).split("\n")
    assert lines[-1] == "… more than 3 states"


def test_more_guards_than_one_word() -> None:
    formula: Formula = Event("T0", frozenset("a"))
    for i in range(1, 70):
        formula = Sequence(formula, Filter(Event(f"T{i}", frozenset("a")), "a", Predicate("v > 1")))
    program = compile_formula(formula)
    assert program.words == 2
    lines = determinize(program, limit=100).split("\n")
    assert lines[0] == "{0} -[T0 / a]-> {1}"
    assert lines[-1] == "{69} -[T69 & v > 1 / a]-> dead accept"
