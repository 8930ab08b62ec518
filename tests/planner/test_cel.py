"""Classes of formulas and nodes declare their parts: a new operator is walked, rebuilt and shown by that alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from planner import cel
from planner.acel import Aggregate, Judged, Measured
from planner.across import Across, Candidate, Pending
from planner.formula import Formula
from planner.rewrite.rules import rewritten
from planner.terms import Comparison, Measure, Predicate, Register, Term, Window
from runtime import nodes
from runtime.clauses import Numbering

A, B, C = (cel.Event(name, frozenset({name.lower()})) for name in "ABC")
HOUR = Window("time", 60)
BOTH = cel.Sequence(A, B)
SIDES = (Comparison(Term("a", "v"), "<", Term("b", "v")),)
POSITIVE = Predicate("v > 0")
# Each class: a formula, its positive parts and its negated ones.
PARTS: dict[type[Formula], tuple[Formula, tuple[Formula, ...], tuple[Formula, ...]]] = {
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
        (Aggregate(A, 1, frozenset({"y"}), (("n", "COUNT(a)"),)), (A,), ()),
        (Judged(A, 1, "COUNT(a) > 1"), (A,), ()),
        (Measured(A, (Measure(Register("COUNT", "a"), ">", 1),), "COUNT(a) > 1"), (A,), ()),
        (cel.Strategy("NXT", A), (A,), ()),
        (cel.Within(A, HOUR), (A,), ()),
        (cel.Filter(A, "a", POSITIVE), (A,), ()),
        (cel.FilterAny(A, (("a", POSITIVE),)), (A,), ()),
        (cel.Compare(BOTH, SIDES), (BOTH,), ()),
        (cel.Agree(BOTH, (("a", "v"), ("b", "v"))), (BOTH,), ()),
        (Candidate(A, 0), (A,), ()),
        (Pending(A, 0, 1), (A,), ()),
        (Across(A, 0, (SIDES,)), (A,), ()),
    )
}


def marked(formula: Formula) -> Formula:
    return cel.As(formula, "x")


def test_each_class_is_here() -> None:
    assert set(PARTS) == {kind for kind in Formula.__subclasses__() if kind.__module__.startswith("planner.")}


@pytest.mark.parametrize("kind", PARTS, ids=lambda kind: kind.__name__)
def test_parts(kind: type[Formula]) -> None:
    formula, positive, negated = PARTS[kind]
    assert (formula.positive(), formula.negated()) == (positive, negated)
    assert sorted(map(id, formula.children())) == sorted(map(id, (*positive, *negated)))
    assert next(formula.walk()) is formula
    assert formula.rebuilt(lambda part: part) == formula
    assert formula.rebuilt(marked).positive() == tuple(map(marked, positive))
    assert formula.rebuilt(marked).negated() == tuple(map(marked, negated))
    assert formula.rebuilt(marked, only_positive=True).negated() == negated
    assert formula.show().splitlines()[0] == formula.head()
    assert len(formula.show().splitlines()) == len(list(formula.walk()))
    assert formula.always_binds() <= formula.binds()


@pytest.mark.parametrize(
    ("formula", "gaps", "flat", "empty"),
    [
        (cel.Sequence(A, B), False, True, False),
        (cel.Sequence(cel.Repeat(A, 0, 1), cel.Repeat(B, 0, None)), False, True, True),
        (cel.Sequence(cel.Repeat(A, 0, 1), B), False, True, False),
        (cel.Or(cel.Contiguous(A, B), cel.Repeat(A, 0, 1)), True, True, True),
        (cel.Repeat(A, 2, 2, contiguous=True), True, True, False),
        (cel.Unless(A, cel.Contiguous(A, B)), True, False, False),
        (cel.Within(A, Window("events", 3)), True, False, False),
        (cel.Within(A, HOUR), False, False, False),
        (cel.Strategy("STRICT", A), True, False, False),
        (cel.Strategy("NXT", cel.Repeat(A, 0, 1)), False, False, False),
        (cel.Compare(cel.Repeat(A, 0, 1), SIDES), False, False, True),
    ],
)
def test_facts(formula: Formula, gaps: bool, flat: bool, empty: bool) -> None:
    assert (formula.sees_gaps(), formula.is_flat(), formula.may_be_empty()) == (gaps, flat, empty)


# ---------------------------------------------------------------- an operator that the planner has never seen


@dataclass(frozen=True)
class Unlike(Formula):
    """C of φ of which no match of ψ says anything; what it means does not matter here."""

    inner: Formula
    others: tuple[Formula, ...]
    negated_fields = ("others",)
    filters = True

    def head(self) -> str:
        return "UNLIKE"


def test_a_new_operator_is_walked_rewritten_and_shown_by_what_its_class_says() -> None:
    formula = cel.Compare(cel.Filter(Unlike(BOTH, (C,)), "a", POSITIVE), SIDES)
    assert formula.binds() == {"a", "b"}
    assert not formula.is_flat()
    assert rewritten(formula) == (
        Unlike(cel.Compare(cel.Filter(BOTH, "a", POSITIVE), SIDES), (C,)),
        ("push_filters",),
    )
    assert "UNLIKE" in formula.show()


# ---------------------------------------------------------------- nodes


def flat(masks: tuple[int, ...] = (4,)) -> nodes.Flat:
    return nodes.Flat(np.zeros((0, 4), np.int64), masks, (), ())


@dataclass(frozen=True, eq=False)
class Beside(nodes.Node):
    """A node that nothing else knows."""

    inner: nodes.Node
    others: tuple[nodes.Node, ...]
    guard: int

    def own_guards(self, number: Numbering) -> nodes.Node:
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
