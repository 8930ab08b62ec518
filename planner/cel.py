"""Formulas of complex event logic (CEL), the meaning of a pattern.

Every node's docstring is its definition: ⟦φ⟧(i, j) is the set of complex events C = (s, e, μ) that φ
finds when the search starts at position i and the last event is at j. S[k] is the event at k; ∪ joins two
complex events: μ pointwise, the least start, the greatest end. Formulas are immutable and compare by value.

A class declares its parts, which are its fields that hold formulas, and its facts: which parts are `negated`, does it
filter, can it be empty, what does it bind. `children`, `positive`, `negated`, `rebuilt` and `walk` read them, so that a
new operator is one class here: `Unless(A, X)` has the children A and X, the positive part A and the negated one X.

Source: Grez, Riveros, Ugarte, Vansummeren, "A Formal Framework for Complex Event Recognition", Section 4,
with start and end, and aggregation, as in Bourhis, Riveros, Salas, "ACEL", Sections 3 and 5.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from typing import ClassVar

from planner.terms import Comparison as Comparison
from planner.terms import Measure as Measure
from planner.terms import Predicate as Predicate
from planner.terms import Register as Register
from planner.terms import Related as Related
from planner.terms import Side as Side
from planner.terms import Tabulated as Tabulated
from planner.terms import Term as Term
from planner.terms import Test as Test
from planner.terms import Window as Window
from planner.terms import left_column as left_column
from planner.terms import parts_of as parts_of
from planner.terms import right_column as right_column

ANY_EVENT = "every event"


class Formula:
    """Any CEL formula.

    `negated_fields`: those that hold what must not happen, whose events are no part of the match. `filters`: it leaves
    out some matches of its positive part, and the others as they are. `is_small`: its automaton is as large as the
    formula, so that it is built whole. `empty_by_parts`: zero copies satisfy it if they satisfy all its parts.
    """

    __slots__ = ()
    negated_fields: ClassVar[tuple[str, ...]] = ()
    filters: ClassVar[bool] = False
    is_small: ClassVar[bool] = False
    empty_by_parts: ClassVar[bool] = False

    def head(self) -> str:
        """What `show` prints of it, without its parts."""
        raise TypeError(f"not a formula: {self!r}")

    def binds(self) -> frozenset[str]:
        """The variables that some complex event can bind."""
        return frozenset[str]().union(*(part.binds() for part in positive(self)))

    def always_binds(self) -> frozenset[str]:
        """The variables of which every complex event has an event."""
        return frozenset[str]().union(*(part.always_binds() for part in positive(self)))

    def may_be_empty(self) -> bool:
        """Do zero copies satisfy it? Only Repeat begins that."""
        return self.empty_by_parts and all(part.may_be_empty() for part in children(self))

    def looks_between(self) -> bool:
        """Does the operator itself count rows, or see what lies between events?"""
        return False


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

    def head(self) -> str:
        return "AND"


@dataclass(frozen=True)
class All(Formula):
    """⟦φ ALL ψ⟧(i, j) = {C₁ ∪ C₂ | C₁ ∈ ⟦φ⟧(i, j₁), C₂ ∈ ⟦ψ⟧(i, j₂), max(j₁, j₂) = j}; they may share events."""

    left: Formula
    right: Formula

    def head(self) -> str:
        return "ALL"


@dataclass(frozen=True)
class Unless(Formula):
    """⟦φ UNLESS ψ⟧(i, j): C of φ with no match of ψ inside [s(C), j]."""

    inner: Formula
    veto: Formula
    negated_fields = ("veto",)
    filters = True

    def head(self) -> str:
        return "UNLESS (the second is the veto)"


@dataclass(frozen=True)
class Absent(Formula):
    """⟦φ ; NOT ψ₁ ; NOT ψ₂ … ; χ⟧: C₁ ∪ C₃ of φ ; χ with no match of any ψ strictly between e(C₁) and s(C₃)."""

    left: Formula
    vetoes: tuple[Formula, ...]
    right: Formula
    negated_fields = ("vetoes",)

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

    def head(self) -> str:
        return f"; (without the last {len(self.vetoes)}, within {self.window})"

    def looks_between(self) -> bool:
        return self.window.kind == "events"


@dataclass(frozen=True)
class Start(Formula):
    """⟦START(φ)⟧(i, j): C of φ with s(C) = i."""

    inner: Formula

    def head(self) -> str:
        return "START"

    def looks_between(self) -> bool:
        return True


@dataclass(frozen=True)
class Project(Formula):
    """⟦π_L φ⟧: μ kept on the variables of L (`keep`) only; s and e stay."""

    inner: Formula
    keep: frozenset[str]

    def head(self) -> str:
        return f"PROJECT {', '.join(sorted(self.keep))}"

    def binds(self) -> frozenset[str]:
        return self.inner.binds() & self.keep

    def always_binds(self) -> frozenset[str]:
        return self.inner.always_binds() & self.keep


@dataclass(frozen=True)
class Aggregate(Formula):
    """⟦Agg_y[b ← ⊗x(a), …] φ⟧: C of φ with one more event in y, at time e(C), that has the `attributes` (name, what).

    `AGG(y : b = SUM(x.a) ; A+ x)` has number 1, marks {y} and attributes (("b", "SUM(x.a)"),). The `number` tells the
    aggregations of a pattern apart. `marks`: the variables that hold the created event, and hidden ones of our own;
    what is run puts them on the event at e(C), and the attributes are computed of what is listed.
    ([ACEL] Section 5.)
    """

    inner: Formula
    number: int
    marks: frozenset[str]
    attributes: tuple[tuple[str, str], ...]
    is_small = True

    def head(self) -> str:
        shown = ", ".join(f"{name} = {what}" for name, what in self.attributes)
        return f"AGG {self.number} {', '.join(sorted(self.marks))}: {shown}"

    def binds(self) -> frozenset[str]:
        return self.inner.binds() | self.marks

    def always_binds(self) -> frozenset[str]:
        return self.inner.always_binds() | self.marks


@dataclass(frozen=True)
class Judged(Formula):
    """⟦φ FILTER P⟧, where P asks about all of C together: `SUM(x.a) > 5`, `y.b > 5` of a created event y.

    `marks`: hidden ones, on the event at e(C), as of Aggregate; P is asked of what is listed.
    """

    inner: Formula
    number: int
    condition: str
    marks: frozenset[str] = frozenset()
    is_small = True

    def head(self) -> str:
        return f"FILTER {self.number} of the whole: {self.condition}"

    def binds(self) -> frozenset[str]:
        return self.inner.binds() | self.marks

    def always_binds(self) -> frozenset[str]:
        return self.inner.always_binds() | self.marks


@dataclass(frozen=True)
class Measured(Formula):
    """The same, where runs hold what is asked of: registers, of which `sides` is an OR ([ACEL] Section 6)."""

    inner: Formula
    sides: tuple[Measure, ...]
    condition: str
    filters = True

    def head(self) -> str:
        return f"FILTER by registers: {self.condition}"

    @property
    def registers(self) -> tuple[Register, ...]:
        """Each once."""
        every = (part for side in self.sides for part in (side.left, side.right) if isinstance(part, Register))
        return tuple(dict.fromkeys(every))


Round = Aggregate | Judged
"""What is computed of each match of a part; several of them can lie in one match, one after the other."""


@dataclass(frozen=True)
class Strategy(Formula):
    """⟦STRICT(φ)⟧, NXT, LAST, MAX (`name`): those C of ⟦φ⟧(i, j) that win among all of ⟦φ⟧(i, j), by their positions.

    STRICT: sup(C) is an interval. NXT: greatest, where the least position in which two differ is in the greater. LAST:
    with the greatest position. MAX: sup(C) is not strictly contained in another's.
    """

    name: str
    inner: Formula

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


@dataclass(frozen=True)
class Candidate(Formula):
    """⟦ψ⟧ as a negated part; a match of it vetoes only where the Across of this number says so."""

    inner: Formula
    number: int

    def head(self) -> str:
        return f"not {self.number}"


@dataclass(frozen=True)
class Pending(Formula):
    """φ is a choice that waits for a decision. It stands between the negated part `number` and the Across that compares
    it; the Across knows more events later, and the choice is made then. `level`: 1 for the first on the way from the
    Across, 2 for the next one inside it."""

    inner: Formula
    number: int
    level: int
    empty_by_parts = True

    def head(self) -> str:
        return f"PENDING {self.number}"


@dataclass(frozen=True)
class Across(Formula):
    """⟦φ FILTER …⟧ with conditions between a negated part and the events around it.

    C of φ such that, in some way to find C, no match D of the part `number`, where it must not be, fulfils all
    `clauses` with C. Events are chosen from C ∪ D, as in Compare.
    """

    inner: Formula
    number: int
    clauses: tuple[tuple[Side, ...], ...]
    empty_by_parts = True
    filters = True

    def head(self) -> str:
        return f"NOT {self.number} WHERE {' AND '.join(' OR '.join(map(str, sides)) for sides in self.clauses)}"


def _names(formula: Formula) -> tuple[str, ...]:
    """Its fields, in their order."""
    return tuple(field.name for field in fields(formula))  # type: ignore[arg-type]


def _parts(formula: Formula, names: tuple[str, ...]) -> Iterator[Formula]:
    """The formulas in these fields, by themselves or in tuples."""
    for name in names:
        value = getattr(formula, name)
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, Formula):
                yield part


def children(formula: Formula) -> tuple[Formula, ...]:
    """The direct subformulas, left to right."""
    return tuple(_parts(formula, _names(formula)))


def positive(formula: Formula) -> tuple[Formula, ...]:
    """The direct subformulas whose events are part of the match: all but those of negated parts."""
    return tuple(_parts(formula, tuple(n for n in _names(formula) if n not in formula.negated_fields)))


def negated(formula: Formula) -> tuple[Formula, ...]:
    """What the operator says must not happen."""
    return tuple(_parts(formula, formula.negated_fields))


def rebuilt(formula: Formula, change: Callable[[Formula], Formula], only_positive: bool = False) -> Formula:
    """The formula with each direct part changed; `only_positive`: but for what must not happen."""
    made: dict[str, object] = {}
    for name in _names(formula):
        value = getattr(formula, name)
        if only_positive and name in formula.negated_fields:
            continue
        if isinstance(value, Formula):
            made[name] = change(value)
        elif isinstance(value, tuple) and any(isinstance(part, Formula) for part in value):
            made[name] = tuple(map(change, value))
    return replace(formula, **made) if made else formula  # type: ignore[type-var]


def walk(formula: Formula, below: Callable[[Formula], tuple[Formula, ...]] = children) -> Iterator[Formula]:
    """The formula and all below it, from the top and from the left: negated parts too, or only what is `positive`."""
    todo = [formula]
    while todo:
        node = todo.pop()
        yield node
        todo += reversed(below(node))


def contains(formula: Formula, kinds: tuple[type[Formula], ...]) -> bool:
    """Is the formula, or one below it, of one of these kinds?"""
    return any(isinstance(part, kinds) for part in walk(formula))


def is_flat(formula: Formula) -> bool:
    """Is its automaton as large as the formula, so that it is built whole?"""
    return all(part.is_small for part in walk(formula))


def sees_gaps(formula: Formula) -> bool:
    """Does anything in it count rows, or see what lies between events?"""
    return any(part.looks_between() for part in walk(formula))


def searching(formula: Formula) -> Start | Strategy | None:
    """The START, or the strategy that compares matches, that asks where the search for the formula begins. What is
    absent is searched for from an event of the match or of its window on."""
    match formula:
        case Start():
            return formula
        case Strategy(name) if name != "STRICT":
            return formula
        case Sequence(left, right) | Contiguous(left, right) | Absent(left, _, right):
            return searching(left) or (searching(right) if may_be_empty(left) else None)
    return next((found for part in positive(formula) if (found := searching(part)) is not None), None)


def variables(formula: Formula) -> frozenset[str]:
    """All variables that some complex event of the formula can bind."""
    return formula.binds()


def always_bound(formula: Formula) -> frozenset[str]:
    """The variables of which every match has an event."""
    return formula.always_binds()


def bindings(formula: Formula, more: frozenset[str] = frozenset()) -> Iterator[tuple[str | None, str | None]]:
    """(variable, type) of every event that can be bound, in negated parts too; None for each variable, and for ANY."""
    if isinstance(formula, Event):
        yield from ((variable, formula.type) for variable in (None, *formula.marks, *more))
        return
    if isinstance(formula, As):
        more |= {formula.variable}
    for part in children(formula):
        yield from bindings(part, more)


def compared(formula: Formula) -> Iterator[tuple[str | None, str, str]]:
    """(variable, SQL, type) of everything that is compared in the formula; variable None for every event."""
    clauses = formula.clauses if isinstance(formula, Across) else ()
    for clause in (formula.sides,) if isinstance(formula, Compare) else clauses:
        for side in clause:
            if isinstance(side, Comparison):
                yield from ((term.variable, term.sql, side.type) for term in (side.left, side.right))
            elif isinstance(side, Related):
                yield from ((term.variable, term.sql, type) for term, type in zip(side.terms, side.types, strict=True))
    if isinstance(formula, Measured):
        yield from ((one.variable, sql, type) for one in formula.registers for sql, type in one.terms)
    if isinstance(formula, Agree):
        yield from ((variable, sql, formula.type) for variable, sql in formula.terms)
    for part in children(formula):
        yield from compared(part)


def may_be_empty(formula: Formula) -> bool:
    """Do zero copies satisfy it? Only Repeat begins that, and As, filters, OR, loops and sequences let it pass."""
    return formula.may_be_empty()


def show(formula: Formula, depth: int = 0) -> str:
    """The formula as an indented tree, one node a line; stable, used by explain."""
    if not isinstance(formula, Formula):
        raise TypeError(f"not a formula: {formula!r}")
    return "\n".join(["  " * depth + formula.head(), *(show(child, depth + 1) for child in children(formula))])
