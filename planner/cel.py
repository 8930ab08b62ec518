"""Formulas of complex event logic (CEL), the meaning of a pattern.

Every node's docstring is its definition: ⟦φ⟧(i, j) is the set of complex events C = (s, e, μ) that φ
finds when the search starts at position i and the last event is at j. S[k] is the event at k; ∪ joins two
complex events: μ pointwise, the least start, the greatest end. Formulas are immutable and compare by value.

Source: Grez, Riveros, Ugarte, Vansummeren, "A Formal Framework for Complex Event Recognition", Section 4,
with start and end as in Bourhis, Riveros, Salas, "ACEL", Section 3.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Predicate:
    """A condition on one row, as Spark SQL over the bare columns; an event satisfies it if it is TRUE (not NULL)."""

    sql: str

    def __str__(self) -> str:
        return self.sql


class Formula:
    """Any CEL formula."""

    __slots__ = ()


@dataclass(frozen=True)
class Event(Formula):
    """⟦R⟧(i, j) = {(j, j, v ↦ {j} for each v in marks)} if R accepts S[j].

    `type` is the name of the event type, or None for ANY, which accepts every event. `marks` is never empty: the
    type's own name for a bare R, the alias for `R AS x`; names that begin with `@` are variables of the planner's own.
    """

    type: str | None
    marks: frozenset[str]


@dataclass(frozen=True)
class As(Formula):
    """⟦φ AS x⟧: C of φ with x bound, besides, to every event of C."""

    inner: Formula
    variable: str


@dataclass(frozen=True)
class Sequence(Formula):
    """⟦φ ; ψ⟧(i, j) = {C₁ ∪ C₂ | C₁ ∈ ⟦φ⟧(i, k), C₂ ∈ ⟦ψ⟧(k+1, j), i ≤ k < j}."""

    left: Formula
    right: Formula


@dataclass(frozen=True)
class Contiguous(Formula):
    """⟦φ : ψ⟧: as φ ; ψ, with s(C₂) = k+1: nothing lies between."""

    left: Formula
    right: Formula


@dataclass(frozen=True)
class Iteration(Formula):
    """⟦φ+⟧ = ⟦φ⟧ ∪ ⟦φ ; φ+⟧."""

    inner: Formula


@dataclass(frozen=True)
class ContiguousIteration(Formula):
    """⟦φ⊕⟧ = ⟦φ⟧ ∪ ⟦φ : φ⊕⟧, written φ:+."""

    inner: Formula


@dataclass(frozen=True)
class Or(Formula):
    """⟦φ OR ψ⟧ = ⟦φ⟧ ∪ ⟦ψ⟧."""

    left: Formula
    right: Formula


@dataclass(frozen=True)
class Filter(Formula):
    """⟦φ FILTER P(x)⟧ = {C ∈ ⟦φ⟧ | every event of C(x) satisfies P}; x = None stands for all events of C."""

    inner: Formula
    variable: str | None
    predicate: Predicate


def children(formula: Formula) -> tuple[Formula, ...]:
    """The direct subformulas, left to right."""
    match formula:
        case Event():
            return ()
        case As(inner) | Iteration(inner) | ContiguousIteration(inner):
            return (inner,)
        case Filter(inner):
            return (inner,)
        case Sequence(left, right) | Contiguous(left, right) | Or(left, right):
            return (left, right)
    raise TypeError(f"not a formula: {formula!r}")


def variables(formula: Formula) -> frozenset[str]:
    """All variables that some complex event of the formula can bind."""
    own: frozenset[str] = frozenset()
    if isinstance(formula, Event):
        own = formula.marks
    elif isinstance(formula, As):
        own = frozenset({formula.variable})
    return own.union(*(variables(child) for child in children(formula)))


def show(formula: Formula, depth: int = 0) -> str:
    """The formula as an indented tree, one node a line; stable, used by explain."""
    pad = "  " * depth
    match formula:
        case Event(type, marks):
            head = f"{type or 'ANY'} / {', '.join(sorted(marks))}"
        case As(_, variable):
            head = f"AS {variable}"
        case Filter(_, variable, predicate):
            head = f"FILTER {variable or 'every event'}: {predicate}"
        case Sequence():
            head = ";"
        case Contiguous():
            head = ":"
        case Iteration():
            head = "+"
        case ContiguousIteration():
            head = ":+"
        case Or():
            head = "OR"
        case _:
            raise TypeError(f"not a formula: {formula!r}")
    return "\n".join([pad + head, *(show(child, depth + 1) for child in children(formula))])
