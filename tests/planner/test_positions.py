"""SKIP TILL NEXT MATCH: what is gathered around the runs, and the way they can go, as an automaton."""

from __future__ import annotations

from planner import cel
from planner.automata.automaton import show
from planner.automata.compose import Composer
from planner.automata.positions import position_node
from planner.automata.simple import gathered
from planner.formula import Formula
from planner.terms import Predicate, Window
from runtime import nodes
from runtime.position_automaton import PositionAutomaton

A, B, C = (cel.Event(name.upper(), frozenset(name)) for name in "abc")
WINDOW = Window("time", 5)


def built(formula: Formula) -> tuple[nodes.Node, list[str]]:
    composer = Composer()
    node = position_node(formula, composer)
    return node, show(composer.automata[0]).splitlines()


def test_absences_around_the_whole_come_outside_and_all_else_inside() -> None:
    inner = cel.NotAfter(cel.Sequence(A, B), (C,), WINDOW)
    formula = cel.As(cel.NotBefore((B,), cel.Filter(inner, "a", Predicate("p")), WINDOW), "x")
    core = cel.As(cel.Filter(cel.Sequence(A, B), "a", Predicate("p")), "x")
    assert gathered(formula) == cel.NotAfter(cel.NotBefore((B,), core, WINDOW), (C,), WINDOW)


def test_the_way_of_the_runs_is_an_automaton() -> None:
    _, lines = built(cel.Sequence(A, cel.Iteration(B)))
    assert lines == [
        "initial q0", "final q2",
        "q0 -[TRUE / -]-> q0", "q0 -[A / a]-> q1",
        "q1 -[TRUE / -]-> q1", "q1 -[B / b]-> q2",
        "q2 -[TRUE / -]-> q2", "q2 -[B / b]-> q2",
    ]  # fmt: skip


def test_nothing_is_skipped_where_all_followers_are_contiguous() -> None:
    _, lines = built(cel.Contiguous(A, B))
    assert lines == ["initial q0", "final q2", "q0 -[TRUE / -]-> q0", "q0 -[A / a]-> q1", "q1 -[B / b]-> q2"]


def test_after_a_skip_what_is_contiguous_is_gone() -> None:
    _, lines = built(cel.Contiguous(A, cel.Repeat(B, 0, 1)))
    assert lines == ["initial q0", "final q1, q2", "q0 -[TRUE / -]-> q0", "q0 -[A / a]-> q1", "q1 -[B / b]-> q2"]
    _, lines = built(cel.Iteration(cel.ContiguousIteration(A)))
    assert lines == [
        "initial q0", "final q1",
        "q0 -[TRUE / -]-> q0", "q0 -[A / a]-> q1",
        "q1 -[A / a]-> q1", "q1 -[TRUE / -]-> q2",
        "q2 -[A / a]-> q1", "q2 -[TRUE / -]-> q2",
    ]  # fmt: skip


def test_every_copy_of_an_atom_is_a_position_and_follows_the_one_before() -> None:
    node, _ = built(cel.Repeat(A, 2, 3))
    assert isinstance(node, PositionAutomaton)
    assert node.first == (2,)  # built from the last copy to the first
    assert node.last == {0, 1}
    assert [[f.position for f in follow] for follow in node.follow] == [[], [0], [1]]


def test_one_absence_in_two_copies_is_one_veto() -> None:
    node, _ = built(cel.Repeat(cel.Absent(A, (C,), B), 2, 2))
    assert isinstance(node, PositionAutomaton)
    assert len(node.vetoes) == 1
    assert [[f.absences for f in follow] for follow in node.follow] == [[(0,)], [], [(0,)], [()]]
