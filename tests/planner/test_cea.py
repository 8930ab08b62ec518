"""CEL → CEA: the exact states and transitions of small formulas, and what trimming and relabelling leave."""

from __future__ import annotations

import pytest

from planner.automata.automaton import Automaton, Transition, distinct_guards, dot, relabel, show, show_guard, trim
from planner.automata.cea import MAX_STATES, automaton_of, to_cea
from planner.cel import As, Contiguous, ContiguousIteration, Event, Filter, Iteration, Or, Sequence
from planner.compile import visible_variables
from planner.errors import PlanError
from planner.formula import Formula
from planner.terms import Predicate

A, B, C = (Event(name.upper(), frozenset(name)) for name in "abc")
ANY = Event(None, frozenset("n"))
P = Predicate("v > 1")

CASES = {
    "A": (A, ["initial q0", "final q1", "q0 -[TRUE / -]-> q0", "q0 -[A / a]-> q1"]),
    "ANY": (ANY, ["initial q0", "final q1", "q0 -[TRUE / -]-> q0", "q0 -[TRUE / n]-> q1"]),
    "A AS x": (As(A, "x"), ["initial q0", "final q1", "q0 -[TRUE / -]-> q0", "q0 -[A / a, x]-> q1"]),
    "A ; B": (
        Sequence(A, B),
        [
            "initial q0", "final q2",
            "q0 -[TRUE / -]-> q0", "q0 -[A / a]-> q1", "q1 -[TRUE / -]-> q1", "q1 -[B / b]-> q2",
        ],
    ),
    # nothing waits in q2
    "A : B": (
        Contiguous(A, B),
        ["initial q0", "final q1", "q0 -[TRUE / -]-> q0", "q0 -[A / a]-> q2", "q2 -[B / b]-> q1"],
    ),
    "A+": (
        Iteration(A),
        ["initial q0", "final q1", "q0 -[TRUE / -]-> q0", "q0 -[A / a]-> q0", "q0 -[A / a]-> q1"],
    ),
    "A:+": (
        ContiguousIteration(A),
        [
            "initial q0", "final q1", "q0 -[TRUE / -]-> q0",
            "q0 -[A / a]-> q1", "q0 -[A / a]-> q2", "q2 -[A / a]-> q1", "q2 -[A / a]-> q2",
        ],
    ),
    "(A ; B):+": (
        ContiguousIteration(Sequence(A, B)),
        [
            "initial q0", "final q2", "q0 -[TRUE / -]-> q0", "q0 -[A / a]-> q1", "q1 -[TRUE / -]-> q1",
            "q1 -[B / b]-> q2", "q1 -[B / b]-> q3", "q3 -[A / a]-> q1",
        ],
    ),
    "A OR B": (
        Or(A, B),
        [
            "initial q0, q2", "final q1, q3", "q0 -[TRUE / -]-> q0", "q0 -[A / a]-> q1", "q2 -[TRUE / -]-> q2",
            "q2 -[B / b]-> q3",
        ],
    ),
    "(A ; B) FILTER a": (
        Filter(Sequence(A, B), "a", P),
        [
            "initial q0", "final q2", "q0 -[TRUE / -]-> q0", "q0 -[A & v > 1 / a]-> q1", "q1 -[TRUE / -]-> q1",
            "q1 -[B / b]-> q2",
        ],
    ),
    "(A ; B) FILTER every event": (
        Filter(Sequence(A, B), None, P),
        [
            "initial q0", "final q2", "q0 -[TRUE / -]-> q0", "q0 -[A & v > 1 / a]-> q1", "q1 -[TRUE / -]-> q1",
            "q1 -[B & v > 1 / b]-> q2",
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_construction(name: str) -> None:
    formula, lines = CASES[name]
    assert show(to_cea(formula)).split("\n") == lines


def test_linear_where_it_should_be() -> None:
    """n atoms in a row: n + 1 states, as the ends of one part are the beginning of the next."""
    formula: Formula = A
    for _ in range(50):
        formula = Sequence(formula, A)
    automaton = to_cea(formula)
    assert (automaton.n_states, len(automaton.transitions)) == (52, 102)


def test_limit() -> None:
    assert to_cea(Sequence(A, B), max_states=4).n_states == 3  # one of four is trimmed away
    with pytest.raises(PlanError) as raised:
        to_cea(Sequence(A, B), max_states=3)
    assert raised.value.condition == "AUTOMATON_LIMIT"
    assert raised.value.parameters == {"found": "more than 3", "limit": "3"}
    assert MAX_STATES >= 10_000


def test_trim() -> None:
    useless = [Transition(0, frozenset("A"), frozenset("a"), 1), Transition(2, frozenset("A"), frozenset("a"), 1)]
    dead = Transition(0, frozenset("A"), frozenset("a"), 3)
    assert trim(Automaton(4, (*useless, dead), (0,), (1,))) == Automaton(2, (useless[0],), (0,), (1,))
    nothing = trim(Automaton(2, (), (0,), (1,)))
    assert (nothing.n_states, nothing.initial, nothing.final) == (0, (), ())


def test_relabel() -> None:
    automaton = to_cea(Or(As(A, "x"), As(A, "y")))
    labels = {t.label for t in relabel(automaton, frozenset({"x"})).transitions}
    assert labels == {frozenset("x"), frozenset()}
    assert {t.label for t in automaton_of(Or(As(A, "x"), As(A, "y")), {"a"}).transitions} == {
        frozenset("a"),
        frozenset(),
    }


def test_guards_are_whole_conjunctions() -> None:
    automaton = to_cea(Filter(Sequence(A, Sequence(B, A)), "a", P))
    assert distinct_guards(automaton.transitions) == (frozenset({"A", P}), frozenset({"B"}))
    assert show_guard(frozenset({P, "B", "A", Predicate("k = 2")})) == "A & B & k = 2 & v > 1"


def test_dot() -> None:
    text = dot(to_cea(Filter(A, "a", Predicate('name = "\\"'))))
    assert text.startswith("digraph cea {")
    assert r'q0 -> q1 [label="A & name = \"\\\" / a"];' in text
    assert "q1 [shape=doublecircle];" in text


def test_formulas() -> None:
    formula = Filter(Or(As(Iteration(A), "x"), ContiguousIteration(Contiguous(B, ANY))), None, P)
    assert formula.binds() == {"a", "b", "n", "x"}
    assert visible_variables(As(Event("A", frozenset({"a", "@A"})), "x")) == ("a", "x")
    assert formula.show().split("\n") == [
        "FILTER every event: v > 1",
        "  OR",
        "    AS x",
        "      +",
        "        A / a",
        "    :+",
        "      :",
        "        B / b",
        "        ANY / n",
    ]
    assert hash(formula) == hash(Filter(formula.inner, None, P))
    for function in (Formula.children, Formula.show, to_cea):
        with pytest.raises(TypeError):
            function(Formula())
