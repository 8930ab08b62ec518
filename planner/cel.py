"""Formulas of complex event logic (CEL), the meaning of a pattern.

Every class's docstring is its definition: ⟦φ⟧(i, j) is the set of complex events C = (s, e, μ) that φ
finds when the search starts at position i and the last event is at j. S[k] is the event at k; ∪ joins two
complex events: μ pointwise, the least start, the greatest end.

A new operator is one class here (planner.formula): `Unless(A, X)` has the children A and X, the positive part A and
the negated one X. What is computed of whole matches of a part stands in planner.acel,
what compares them with what must not happen in planner.across.

Source: Grez, Riveros, Ugarte, Vansummeren, "A Formal Framework for Complex Event Recognition", Section 4,
with start and end as in Bourhis, Riveros, Salas, "ACEL", Section 3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from planner.formula import Formula
from planner.terms import Asked, Predicate, Side, Window, asked
from runtime import nodes

ANY_EVENT = "every event"


@dataclass(frozen=True)
class Event(Formula):
    """⟦R⟧(i, j) = {(j, j, v ↦ {j} for each v in marks)} if R accepts S[j].

    `type` is the name of the event type, or None for ANY, which accepts every event. `marks` is never empty: the
    type's own name for a bare R, the alias for `R AS x`; hidden ones are variables of our own (runtime.marks).
    """

    type: str | None
    marks: frozenset[str]
    is_small = True

    def head(self) -> str:
        return f"{self.type or 'ANY'} / {', '.join(sorted(self.marks))}"

    def bindings(self, more: frozenset[str] = frozenset()) -> Iterator[tuple[str | None, str | None]]:
        return ((variable, self.type) for variable in (None, *self.marks, *more))

    def binds(self) -> frozenset[str]:
        return self.marks

    def always_binds(self) -> frozenset[str]:
        return self.marks


@dataclass(frozen=True)
class As(Formula):
    """⟦φ AS x⟧: C of φ with x bound, besides, to every event of C."""

    inner: Formula
    variable: str
    is_small = True
    empty_by_parts = True

    def head(self) -> str:
        return f"AS {self.variable}"

    def bindings(self, more: frozenset[str] = frozenset()) -> Iterator[tuple[str | None, str | None]]:
        return self.inner.bindings(more | {self.variable})

    def binds(self) -> frozenset[str]:
        return self.inner.binds() | {self.variable}

    def always_binds(self) -> frozenset[str]:
        return self.inner.always_binds() | {self.variable}


@dataclass(frozen=True)
class Sequence(Formula):
    """⟦φ ; ψ⟧(i, j) = {C₁ ∪ C₂ | C₁ ∈ ⟦φ⟧(i, k), C₂ ∈ ⟦ψ⟧(k+1, j), i ≤ k < j}."""

    left: Formula
    right: Formula
    is_small = True
    empty_by_parts = True

    def head(self) -> str:
        return ";"


@dataclass(frozen=True)
class Contiguous(Formula):
    """⟦φ : ψ⟧: as φ ; ψ, with s(C₂) = k+1: nothing lies between."""

    left: Formula
    right: Formula
    is_small = True
    empty_by_parts = True
    undone_by = "one between two that must follow each other"

    def head(self) -> str:
        return ":"

    def looks_between(self) -> bool:
        return True


@dataclass(frozen=True)
class Iteration(Formula):
    """⟦φ+⟧ = ⟦φ⟧ ∪ ⟦φ ; φ+⟧."""

    inner: Formula
    is_small = True
    empty_by_parts = True

    def head(self) -> str:
        return "+"


@dataclass(frozen=True)
class ContiguousIteration(Formula):
    """⟦φ⊕⟧ = ⟦φ⟧ ∪ ⟦φ : φ⊕⟧, written φ:+."""

    inner: Formula
    is_small = True
    empty_by_parts = True
    undone_by = "one between two that must follow each other"

    def head(self) -> str:
        return ":+"

    def looks_between(self) -> bool:
        return True


@dataclass(frozen=True)
class Repeat(Formula):
    """⟦φ{n,m}⟧: n to m copies of φ joined by ; (`contiguous`: by :); high None: without an end.

    φ? is {0,1}, φ* is {0,}. Zero copies bind nothing and take no event; they may only stand where `may_be_empty` may
    pass through, and never make a match by themselves: A : B? : C is (A : C) OR (A : B : C).
    """

    inner: Formula
    low: int
    high: int | None
    contiguous: bool = False
    is_small = True

    def head(self) -> str:
        return f"{':' if self.contiguous else ''}{{{self.low},{'' if self.high is None else self.high}}}"

    def always_binds(self) -> frozenset[str]:
        return self.inner.always_binds() if self.low else frozenset()

    def may_be_empty(self) -> bool:
        return self.low == 0 or self.inner.may_be_empty()

    def looks_between(self) -> bool:
        return self.contiguous


@dataclass(frozen=True)
class Or(Formula):
    """⟦φ OR ψ⟧ = ⟦φ⟧ ∪ ⟦ψ⟧."""

    left: Formula
    right: Formula
    is_small = True
    node = nodes.Either
    word = "OR"

    def head(self) -> str:
        return "OR"

    def always_binds(self) -> frozenset[str]:
        return self.left.always_binds() & self.right.always_binds()

    def may_be_empty(self) -> bool:
        return self.left.may_be_empty() or self.right.may_be_empty()


@dataclass(frozen=True)
class And(Formula):
    """⟦φ AND ψ⟧ = ⟦φ⟧ ∩ ⟦ψ⟧: equal s, e and μ."""

    left: Formula
    right: Formula
    in_runs = True
    word = "AND"

    def head(self) -> str:
        return "AND"


@dataclass(frozen=True)
class All(Formula):
    """⟦φ ALL ψ⟧(i, j) = {C₁ ∪ C₂ | C₁ ∈ ⟦φ⟧(i, j₁), C₂ ∈ ⟦ψ⟧(i, j₂), max(j₁, j₂) = j}; they may share events."""

    left: Formula
    right: Formula
    node = nodes.Interleave
    word = "ALL"

    def head(self) -> str:
        return "ALL"


@dataclass(frozen=True)
class Unless(Formula):
    """⟦φ UNLESS ψ⟧(i, j): C of φ with no match of ψ inside [s(C), j]."""

    inner: Formula
    veto: Formula
    negated_fields = ("veto",)
    filters = True
    node = nodes.Unless
    in_runs = True
    word = "UNLESS"
    undone_by = "what must not happen meanwhile"

    def head(self) -> str:
        return "UNLESS (the second is the veto)"


@dataclass(frozen=True)
class Absent(Formula):
    """⟦φ ; NOT ψ₁ ; NOT ψ₂ … ; χ⟧: C₁ ∪ C₃ of φ ; χ with no match of any ψ strictly between e(C₁) and s(C₃)."""

    left: Formula
    vetoes: tuple[Formula, ...]
    right: Formula
    negated_fields = ("vetoes",)
    undone_by = "one that must not lie between"

    def head(self) -> str:
        return f"; (without the {len(self.vetoes)} in between)"


@dataclass(frozen=True)
class NotBefore(Formula):
    """⟦NOT ψ ; φ⟧: C of φ with no match of any ψ that lies before s(C) and in the window of e(C).

    The window of e is the events up to e whose distance to e it allows. Stands at the top, with only As, Filter,
    FilterAny, Project and NotAfter around it.
    """

    vetoes: tuple[Formula, ...]
    inner: Formula
    window: Window
    negated_fields = ("vetoes",)
    filters = True
    undone_by = "one that must not come before"

    def head(self) -> str:
        return f"; (without the first {len(self.vetoes)}, within {self.window})"

    def looks_between(self) -> bool:
        return self.window.kind == "events"


@dataclass(frozen=True)
class NotAfter(Formula):
    """⟦φ ; NOT ψ⟧: C of φ with no match of any ψ that lies after e(C) and in the window of s(C).

    e(C) is that of φ; C becomes known when the window has passed. Stands at the top, as NotBefore.
    """

    inner: Formula
    vetoes: tuple[Formula, ...]
    window: Window
    negated_fields = ("vetoes",)
    filters = True
    undone_by = "one that must not come after"

    def head(self) -> str:
        return f"; (without the last {len(self.vetoes)}, within {self.window})"

    def looks_between(self) -> bool:
        return self.window.kind == "events"


@dataclass(frozen=True)
class Start(Formula):
    """⟦START(φ)⟧(i, j): C of φ with s(C) = i."""

    inner: Formula
    node = nodes.Start
    in_runs = True
    word = "START"
    undone_by = "one that begins the stream"

    def head(self) -> str:
        return "START"

    def looks_between(self) -> bool:
        return True


@dataclass(frozen=True)
class Project(Formula):
    """⟦π_L φ⟧: μ kept on the variables of L (`keep`) only; s and e stay."""

    inner: Formula
    keep: frozenset[str]
    in_runs = True

    def head(self) -> str:
        return f"PROJECT {', '.join(sorted(self.keep))}"

    def binds(self) -> frozenset[str]:
        return self.inner.binds() & self.keep

    def always_binds(self) -> frozenset[str]:
        return self.inner.always_binds() & self.keep


@dataclass(frozen=True)
class Strategy(Formula):
    """⟦STRICT(φ)⟧, NXT, LAST, MAX (`name`): those C of ⟦φ⟧(i, j) that win among all of ⟦φ⟧(i, j), by their positions.

    STRICT: sup(C) is an interval. NXT: greatest, where the least position in which two differ is in the greater. LAST:
    with the greatest position. MAX: sup(C) is not strictly contained in another's.
    """

    name: str
    inner: Formula
    undone_by = "in a match that is chosen in its place inside the pattern"

    def head(self) -> str:
        return self.name

    def looks_between(self) -> bool:
        return self.name == "STRICT"


@dataclass(frozen=True)
class Within(Formula):
    """⟦(φ WITHIN w)⟧: C of φ that fit the window."""

    inner: Formula
    window: Window
    filters = True
    in_runs = True

    def head(self) -> str:
        return f"WITHIN {self.window}"

    def looks_between(self) -> bool:
        return self.window.kind == "events"


@dataclass(frozen=True)
class Filter(Formula):
    """⟦φ FILTER P(x)⟧ = {C ∈ ⟦φ⟧ | every event of C(x) satisfies P}; x = None stands for all events of C."""

    inner: Formula
    variable: str | None
    predicate: Predicate
    is_small = True
    empty_by_parts = True
    filters = True

    def head(self) -> str:
        return f"FILTER {self.variable or ANY_EVENT}: {self.predicate}"


@dataclass(frozen=True)
class FilterAny(Formula):
    """⟦φ FILTER (P₁(x₁) OR P₂(x₂) …)⟧: C for which some side holds of every event of its variable."""

    inner: Formula
    sides: tuple[tuple[str | None, Predicate], ...]
    is_small = True
    empty_by_parts = True
    filters = True

    def head(self) -> str:
        return "FILTER " + " OR ".join(f"{variable or ANY_EVENT}: {predicate}" for variable, predicate in self.sides)


@dataclass(frozen=True)
class Compare(Formula):
    """⟦φ FILTER (Q₁ OR Q₂ …)⟧, where a side compares two events: C for which, whatever event of C is chosen for each
    variable that the sides name, some side is TRUE; so C with a variable that is empty is kept.

    Of a variable of which some side names one of two or three consecutive events, so many are chosen.
    """

    inner: Formula
    sides: tuple[Side, ...]
    empty_by_parts = True
    filters = True

    def head(self) -> str:
        return f"FILTER {' OR '.join(map(str, self.sides))}"

    def asks(self) -> Iterator[Asked]:
        return asked(self.sides)


@dataclass(frozen=True)
class Agree(Formula):
    """⟦φ PART BY [x.a, y.b]⟧: C whose events all have one value, not NULL, of the attribute named for their variable.

    `terms`: (variable, SQL), variable None for every event; `type`: what all are cast to. ([CHAIN] Section 3.)
    """

    inner: Formula
    terms: tuple[tuple[str | None, str], ...]
    type: str = ""
    empty_by_parts = True
    filters = True

    def head(self) -> str:
        return f"AGREE {', '.join(f'{variable or ANY_EVENT}: {sql}' for variable, sql in self.terms)}"

    def asks(self) -> Iterator[Asked]:
        return ((variable, sql, self.type) for variable, sql in self.terms)


BETWEEN: dict[str, Callable[[Formula, Formula], Formula]] = {kind.word: kind for kind in (Or, And, All, Unless)}
"""The operators between two patterns, by their words."""

AROUND: dict[str, Callable[[Formula], Formula]] = {kind.word: kind for kind in (Start,)}
"""Those around one, `START(p)`, but for strategies."""


def searching(formula: Formula) -> Start | Strategy | None:
    """The START, or the strategy that compares matches, that asks where the search for the formula begins. What is
    absent is searched for from an event of the match or of its window on."""
    return next(searches(formula), None)


def searches(formula: Formula) -> Iterator[Start | Strategy]:
    """All of these; what lies inside one of them is its own affair."""
    match formula:
        case Start():
            yield formula
        case Strategy(name) if name != "STRICT":
            yield formula
        case Sequence(left, right) | Contiguous(left, right) | Absent(left, _, right):
            yield from searches(left)
            if left.may_be_empty():
                yield from searches(right)
        case _:
            for part in formula.positive():
                yield from searches(part)


def begins_with_start(formula: Formula) -> bool:
    """Does every match begin where the search began, by a START?"""
    match formula:
        case Start():
            return True
        case Or(left, right):
            return begins_with_start(left) and begins_with_start(right)
        case And(left, right) | All(left, right):
            return begins_with_start(left) or begins_with_start(right)
        case Sequence(left, right) | Contiguous(left, right) | Absent(left, _, right):
            return begins_with_start(left) and (not left.may_be_empty() or begins_with_start(right))
    parts = formula.positive()
    return bool(parts) and all(map(begins_with_start, parts))
