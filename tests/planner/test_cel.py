"""Classes of formulas and nodes declare their parts: a new operator is walked, rebuilt and shown by that alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from planner import cel
from planner.rewrite.rules import rewritten
from runtime import nodes

A, B, C = (cel.Event(name, frozenset({name.lower()})) for name in "ABC")
HOUR = cel.Window("time", 60)
BOTH = cel.Sequence(A, B)
SIDES = (cel.Comparison(cel.Term("a", "v"), "<", cel.Term("b", "v")),)
POSITIVE = cel.Predicate("v > 0")
# Each class: a formula, its positive parts and its negated ones.
PARTS: dict[type[cel.Formula], tuple[cel.Formula, tuple[cel.Formula, ...], tuple[cel.Formula, ...]]] = {
    type(formula): (formula, positive, negated)
    for formula, positive, negated in (
        (A, (), ()),
        (cel.As(A, "x"), (A,), ()),
        (cel.Sequence(A, B), (A, B), ()),
        (cel.Contiguous(A, B), (A, B), ()),
        (cel.Iteration(A), (A,), ()),
        (cel.ContiguousIteration(A), (A,), ()),
        (cel.Repeat(A, 0, 2), (A,), ()),
        (cel.Or(A, B), (A, B), ()),
        (cel.And(A, B), (A, B), ()),
        (cel.All(A, B), (A, B), ()),
        (cel.Unless(A, B), (A,), (B,)),
        (cel.Absent(A, (B, C), A), (A, A), (B, C)),
        (cel.NotBefore((B, C), A, HOUR), (A,), (B, C)),
        (cel.NotAfter(A, (B, C), HOUR), (A,), (B, C)),
        (cel.Start(A), (A,), ()),
        (cel.Project(A, frozenset({"a"})), (A,), ()),
        (cel.Aggregate(A, 1, frozenset({"y"}), (("n", "COUNT(a)"),)), (A,), ()),
        (cel.Judged(A, 1, "COUNT(a) > 1"), (A,), ()),
        (cel.Measured(A, (cel.Measure(cel.Register("COUNT", "a"), ">", 1),), "COUNT(a) > 1"), (A,), ()),
        (cel.Strategy("NXT", A), (A,), ()),
        (cel.Within(A, HOUR), (A,), ()),
        (cel.Filter(A, "a", POSITIVE), (A,), ()),
        (cel.FilterAny(A, (("a", POSITIVE),)), (A,), ()),
        (cel.Compare(BOTH, SIDES), (BOTH,), ()),
        (cel.Agree(BOTH, (("a", "v"), ("b", "v"))), (BOTH,), ()),
        (cel.Candidate(A, 0), (A,), ()),
        (cel.Pending(A, 0, 1), (A,), ()),
        (cel.Across(A, 0, (SIDES,)), (A,), ()),
    )
}


def marked(formula: cel.Formula) -> cel.Formula:
    return cel.As(formula, "x")


def test_each_class_is_here() -> None:
    assert set(PARTS) == {kind for kind in cel.Formula.__subclasses__() if kind.__module__ == cel.__name__}


@pytest.mark.parametrize("kind", PARTS, ids=lambda kind: kind.__name__)
def test_parts(kind: type[cel.Formula]) -> None:
    formula, positive, negated = PARTS[kind]
    assert (cel.positive(formula), cel.negated(formula)) == (positive, negated)
    assert sorted(map(id, cel.children(formula))) == sorted(map(id, (*positive, *negated)))
    assert next(cel.walk(formula)) is formula
    assert cel.rebuilt(formula, lambda part: part) == formula
    assert cel.positive(cel.rebuilt(formula, marked)) == tuple(map(marked, positive))
    assert cel.negated(cel.rebuilt(formula, marked)) == tuple(map(marked, negated))
    assert cel.negated(cel.rebuilt(formula, marked, only_positive=True)) == negated
    assert cel.show(formula).splitlines()[0] == formula.head()
    assert len(cel.show(formula).splitlines()) == len(list(cel.walk(formula)))
    assert cel.always_bound(formula) <= cel.variables(formula)


@pytest.mark.parametrize(
    ("formula", "gaps", "flat", "empty"),
    [
        (cel.Sequence(A, B), False, True, False),
        (cel.Sequence(cel.Repeat(A, 0, 1), cel.Repeat(B, 0, None)), False, True, True),
        (cel.Sequence(cel.Repeat(A, 0, 1), B), False, True, False),
        (cel.Or(cel.Contiguous(A, B), cel.Repeat(A, 0, 1)), True, True, True),
        (cel.Repeat(A, 2, 2, contiguous=True), True, True, False),
        (cel.Unless(A, cel.Contiguous(A, B)), True, False, False),
        (cel.Within(A, cel.Window("events", 3)), True, False, False),
        (cel.Within(A, HOUR), False, False, False),
        (cel.Strategy("STRICT", A), True, False, False),
        (cel.Strategy("NXT", cel.Repeat(A, 0, 1)), False, False, False),
        (cel.Compare(cel.Repeat(A, 0, 1), SIDES), False, False, True),
    ],
)
def test_facts(formula: cel.Formula, gaps: bool, flat: bool, empty: bool) -> None:
    assert (cel.sees_gaps(formula), cel.is_flat(formula), cel.may_be_empty(formula)) == (gaps, flat, empty)


# ---------------------------------------------------------------- an operator that the planner has never seen


@dataclass(frozen=True)
class Unlike(cel.Formula):
    """C of φ of which no match of ψ says anything; what it means does not matter here."""

    inner: cel.Formula
    others: tuple[cel.Formula, ...]
    negated_fields = ("others",)
    filters = True

    def head(self) -> str:
        return "UNLIKE"


def test_a_new_operator_is_walked_rewritten_and_shown_by_what_its_class_says() -> None:
    formula = cel.Compare(cel.Filter(Unlike(BOTH, (C,)), "a", POSITIVE), SIDES)
    assert cel.variables(formula) == {"a", "b"}
    assert not cel.is_flat(formula)
    assert rewritten(formula) == (
        Unlike(cel.Compare(cel.Filter(BOTH, "a", POSITIVE), SIDES), (C,)),
        ("push_filters",),
    )
    assert "UNLIKE" in cel.show(formula)


# ---------------------------------------------------------------- nodes


def flat(masks: tuple[int, ...] = (4,)) -> nodes.Flat:
    return nodes.Flat(np.zeros((0, 4), np.int64), masks, (), ())


@dataclass(frozen=True, eq=False)
class Beside(nodes.Node):
    """A node that nothing else knows."""

    inner: nodes.Node
    others: tuple[nodes.Node, ...]
    guard: int

    def own_guards(self, number: nodes.Numbering) -> nodes.Node:
        return Beside(self.inner, self.others, number(self.guard))


def test_a_new_node_is_walked_rebuilt_and_renumbered() -> None:
    a, b = flat(), flat()
    restricted = nodes.Restrict(b, ((4, -3),))
    tree = nodes.Strict(Beside(a, (restricted,), -2))
    assert [type(node) for node in tree.walk()] == [nodes.Strict, Beside, nodes.Flat, nodes.Restrict, nodes.Flat]
    assert tree.has(nodes.Restrict)
    assert not tree.has(nodes.Join)
    made = tree.with_guards(lambda guard: 10 - guard)
    beside = next(iter(made.parts()))
    assert isinstance(beside, Beside)
    assert beside.guard == 12
    (other,) = beside.others
    assert isinstance(other, nodes.Restrict)
    assert (other.sides, other.inner) == (((4, 13),), b)
