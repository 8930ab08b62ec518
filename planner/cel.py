"""Formulas of complex event logic (CEL), the meaning of a pattern.

Every node's docstring is its definition: ⟦φ⟧(i, j) is the set of complex events C = (s, e, μ) that φ
finds when the search starts at position i and the last event is at j. S[k] is the event at k; ∪ joins two
complex events: μ pointwise, the least start, the greatest end. Formulas are immutable and compare by value.

Source: Grez, Riveros, Ugarte, Vansummeren, "A Formal Framework for Complex Event Recognition", Section 4,
with start and end as in Bourhis, Riveros, Salas, "ACEL", Section 3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from runtime.program import ReachKind
from runtime.relations import Relation

ANY_EVENT = "every event"


@dataclass(frozen=True)
class Predicate:
    """A condition on one row, as Spark SQL over the bare columns; an event satisfies it if it is TRUE (not NULL)."""

    sql: str

    def __str__(self) -> str:
        return self.sql


@dataclass(frozen=True)
class Window:
    """WITHIN. kind 'time': end − start ≤ size (strict: <) in the clock's unit; 'events': < size, in positions. Of
    what a stream holds back, the kind may also be 'runs': as runtime.stream.task.Reach says."""

    kind: ReachKind
    size: int | float
    strict: bool = False

    def __str__(self) -> str:
        if self.kind == "events":
            return f"{self.size} EVENTS"
        return f"{'< ' if self.strict else ''}{self.size}"


@dataclass(frozen=True)
class Term:
    """An attribute of an event of a variable, as Spark SQL over the bare columns.

    `of`: 'each' event; or, where a clause speaks of two consecutive events of the variable, the 'earlier' or 'later'
    one; where it speaks of three, the 'first', 'middle' or 'last'.
    """

    variable: str
    sql: str
    of: str = "each"

    def __str__(self) -> str:
        return f"{self.variable}{'' if self.of == 'each' else f'[{self.of}]'}: {self.sql}"


@dataclass(frozen=True)
class Comparison:
    """left op right; `op` is =, <>, <, <=, >, >=, <=> or IS DISTINCT FROM. All but the last two are not TRUE of a NULL.

    `type`: the Spark type in which the two are compared; both sides are cast to it.
    """

    left: Term
    op: str
    right: Term
    type: str = ""

    def __str__(self) -> str:
        return f"{self.left} {self.op} {self.right}"


@dataclass(frozen=True)
class Related:
    """A condition that computes with values of several events: `terms` are the operands of `relation`, in their order,
    each cast to the Spark type in `types`. `b.v - a.v >= 1` has the terms a: v and b: v, both as DOUBLE."""

    terms: tuple[Term, ...]
    types: tuple[str, ...]
    relation: Relation

    def __str__(self) -> str:
        return str(self.relation)


@dataclass(frozen=True)
class Test:
    """A predicate on an event of a variable, as one side of a clause that compares events (`of` as in Term)."""

    variable: str
    predicate: Predicate
    of: str = "each"

    def __str__(self) -> str:
        return f"{self.variable}{'' if self.of == 'each' else f'[{self.of}]'}: {self.predicate}"


Side = Comparison | Related | Test
"""One side of an OR that speaks of several events."""


def parts_of(side: Side) -> tuple[Term | Test, ...]:
    """What a side looks at, event by event."""
    if isinstance(side, Test):
        return (side,)
    return side.terms if isinstance(side, Related) else (side.left, side.right)


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
class Repeat(Formula):
    """⟦φ{n,m}⟧: n to m copies of φ joined by ; (`contiguous`: by :); high None: without an end.

    φ? is {0,1}, φ* is {0,}. Zero copies bind nothing and take no event; they may only stand where `may_be_empty` may
    pass through, and never make a match by themselves: A : B? : C is (A : C) OR (A : B : C).
    """

    inner: Formula
    low: int
    high: int | None
    contiguous: bool = False


@dataclass(frozen=True)
class Or(Formula):
    """⟦φ OR ψ⟧ = ⟦φ⟧ ∪ ⟦ψ⟧."""

    left: Formula
    right: Formula


@dataclass(frozen=True)
class And(Formula):
    """⟦φ AND ψ⟧ = ⟦φ⟧ ∩ ⟦ψ⟧: equal s, e and μ."""

    left: Formula
    right: Formula


@dataclass(frozen=True)
class All(Formula):
    """⟦φ ALL ψ⟧(i, j) = {C₁ ∪ C₂ | C₁ ∈ ⟦φ⟧(i, j₁), C₂ ∈ ⟦ψ⟧(i, j₂), max(j₁, j₂) = j}; they may share events."""

    left: Formula
    right: Formula


@dataclass(frozen=True)
class Unless(Formula):
    """⟦φ UNLESS ψ⟧(i, j): C of φ with no match of ψ inside [s(C), j]."""

    inner: Formula
    veto: Formula


@dataclass(frozen=True)
class Absent(Formula):
    """⟦φ ; NOT ψ₁ ; NOT ψ₂ … ; χ⟧: C₁ ∪ C₃ of φ ; χ with no match of any ψ strictly between e(C₁) and s(C₃)."""

    left: Formula
    vetoes: tuple[Formula, ...]
    right: Formula


@dataclass(frozen=True)
class NotBefore(Formula):
    """⟦NOT ψ ; φ⟧: C of φ with no match of any ψ that lies before s(C) and in the window of e(C).

    The window of e is the events up to e whose distance to e it allows. Stands at the top, with only As, Filter,
    FilterAny, Project and NotAfter around it.
    """

    vetoes: tuple[Formula, ...]
    inner: Formula
    window: Window


@dataclass(frozen=True)
class NotAfter(Formula):
    """⟦φ ; NOT ψ⟧: C of φ with no match of any ψ that lies after e(C) and in the window of s(C).

    e(C) is that of φ; C becomes known when the window has passed. Stands at the top, as NotBefore.
    """

    inner: Formula
    vetoes: tuple[Formula, ...]
    window: Window


@dataclass(frozen=True)
class Start(Formula):
    """⟦START(φ)⟧(i, j): C of φ with s(C) = i."""

    inner: Formula


@dataclass(frozen=True)
class Project(Formula):
    """⟦π_L φ⟧: μ kept on the variables of L (`keep`) only; s and e stay."""

    inner: Formula
    keep: frozenset[str]


@dataclass(frozen=True)
class Strategy(Formula):
    """⟦STRICT(φ)⟧, NXT, LAST, MAX (`rule`): those C of ⟦φ⟧(i, j) that win among all of ⟦φ⟧(i, j), by their positions.

    STRICT: sup(C) is an interval. NXT: greatest, where the least position in which two differ is in the greater. LAST:
    with the greatest position. MAX: sup(C) is not strictly contained in another's.
    """

    rule: str
    inner: Formula


@dataclass(frozen=True)
class Within(Formula):
    """⟦(φ WITHIN w)⟧: C of φ that fit the window."""

    inner: Formula
    window: Window


@dataclass(frozen=True)
class Filter(Formula):
    """⟦φ FILTER P(x)⟧ = {C ∈ ⟦φ⟧ | every event of C(x) satisfies P}; x = None stands for all events of C."""

    inner: Formula
    variable: str | None
    predicate: Predicate


@dataclass(frozen=True)
class FilterAny(Formula):
    """⟦φ FILTER (P₁(x₁) OR P₂(x₂) …)⟧: C for which some side holds of every event of its variable."""

    inner: Formula
    sides: tuple[tuple[str | None, Predicate], ...]


@dataclass(frozen=True)
class Compare(Formula):
    """⟦φ FILTER (Q₁ OR Q₂ …)⟧, where a side compares two events: C for which, whatever event of C is chosen for each
    variable that the sides name, some side is TRUE; so C with a variable that is empty is kept.

    Of a variable of which some side names one of two or three consecutive events, so many are chosen.
    """

    inner: Formula
    sides: tuple[Side, ...]


@dataclass(frozen=True)
class Agree(Formula):
    """⟦φ PART BY [x.a, y.b]⟧: C whose events all have one value, not NULL, of the attribute named for their variable.

    `terms`: (variable, SQL), variable None for every event; `type`: what all are cast to. ([CHAIN] Section 3.)
    """

    inner: Formula
    terms: tuple[tuple[str | None, str], ...]
    type: str = ""


@dataclass(frozen=True)
class Candidate(Formula):
    """A negated part whose matches veto only as `Across` says, by its number."""

    inner: Formula
    number: int


@dataclass(frozen=True)
class Pending(Formula):
    """φ inside a choice between the negated part `number` and its Across, which decides once it knows more events: in
    what depends on them, the choice is still to be made. `level`: the how manieth on the way from the Across."""

    inner: Formula
    number: int
    level: int


@dataclass(frozen=True)
class Across(Formula):
    """⟦φ FILTER …⟧ with conditions between a negated part and the events around it: C of φ such that, in some way to
    find C, no match D of the part (`number`) where it must not be fulfils all `clauses` with C: events are chosen from
    C ∪ D, as in Compare."""

    inner: Formula
    number: int
    clauses: tuple[tuple[Side, ...], ...]


def children(formula: Formula) -> tuple[Formula, ...]:
    """The direct subformulas, left to right."""
    match formula:
        case Event():
            return ()
        case Absent(left, vetoes, right):
            return (left, *vetoes, right)
        case NotBefore(vetoes, inner):
            return (*vetoes, inner)
        case NotAfter(inner, vetoes):
            return (inner, *vetoes)
        case Unless(inner, veto):
            return (inner, veto)
        case Sequence(left, right) | Contiguous(left, right) | Or(left, right) | And(left, right) | All(left, right):
            return (left, right)
        case As(inner) | Iteration(inner) | ContiguousIteration(inner) | Repeat(inner) | Filter(inner):
            return (inner,)
        case FilterAny(inner) | Start(inner) | Project(inner) | Within(inner) | Strategy(_, inner):
            return (inner,)
        case Compare(inner) | Agree(inner) | Candidate(inner) | Pending(inner) | Across(inner):
            return (inner,)
    raise TypeError(f"not a formula: {formula!r}")


def positive(formula: Formula) -> tuple[Formula, ...]:
    """The direct subformulas whose events are part of the match: all but those of negated parts."""
    match formula:
        case Absent(left, _, right):
            return (left, right)
        case NotBefore(_, inner) | NotAfter(inner) | Unless(inner):
            return (inner,)
    return children(formula)


def rebuilt(formula: Formula, change: Callable[[Formula], Formula]) -> Formula:
    """The formula with each direct part changed."""
    match formula:
        case Event():
            return formula
        case Absent(left, vetoes, right):
            return Absent(change(left), tuple(map(change, vetoes)), change(right))
        case NotBefore(vetoes, inner, window):
            return NotBefore(tuple(map(change, vetoes)), change(inner), window)
        case NotAfter(inner, vetoes, window):
            return NotAfter(change(inner), tuple(map(change, vetoes)), window)
        case Unless(inner, veto):
            return Unless(change(inner), change(veto))
        case Sequence(left, right) | Contiguous(left, right) | Or(left, right):
            return type(formula)(change(left), change(right))
        case And(left, right) | All(left, right):
            return type(formula)(change(left), change(right))
    return replace(formula, inner=change(formula.inner))  # type: ignore[attr-defined, type-var]


def searching(formula: Formula) -> Start | Strategy | None:
    """The START, or the strategy that compares matches, that asks where the search for the formula begins. What is
    absent is searched for from an event of the match or of its window on."""
    match formula:
        case Start():
            return formula
        case Strategy(rule) if rule != "STRICT":
            return formula
        case Sequence(left, right) | Contiguous(left, right) | Absent(left, _, right):
            return searching(left) or (searching(right) if may_be_empty(left) else None)
    return next((found for part in positive(formula) if (found := searching(part)) is not None), None)


def variables(formula: Formula) -> frozenset[str]:
    """All variables that some complex event of the formula can bind."""
    match formula:
        case Event(_, marks):
            return marks
        case As(inner, variable):
            return variables(inner) | {variable}
        case Project(inner, keep):
            return variables(inner) & keep
    return frozenset[str]().union(*map(variables, positive(formula)))


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
    if isinstance(formula, Agree):
        yield from ((variable, sql, formula.type) for variable, sql in formula.terms)
    for part in children(formula):
        yield from compared(part)


def may_be_empty(formula: Formula) -> bool:
    """Do zero copies satisfy it? Only Repeat begins that, and As, filters, OR, loops and sequences let it pass."""
    match formula:
        case Repeat(inner, low):
            return low == 0 or may_be_empty(inner)
        case As(inner) | Filter(inner) | FilterAny(inner) | Iteration(inner) | ContiguousIteration(inner):
            return may_be_empty(inner)
        case Compare(inner) | Agree(inner) | Pending(inner) | Across(inner):
            return may_be_empty(inner)
        case Or(left, right):
            return may_be_empty(left) or may_be_empty(right)
        case Sequence(left, right) | Contiguous(left, right):
            return may_be_empty(left) and may_be_empty(right)
    return False


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
        case Repeat(_, low, high, contiguous):
            head = f"{':' if contiguous else ''}{{{low},{'' if high is None else high}}}"
        case Or():
            head = "OR"
        case And():
            head = "AND"
        case All():
            head = "ALL"
        case Unless():
            head = "UNLESS (the second is the veto)"
        case Absent(_, vetoes):
            head = f"; (without the {len(vetoes)} in between)"
        case NotBefore(vetoes, _, window):
            head = f"; (without the first {len(vetoes)}, within {window})"
        case NotAfter(_, vetoes, window):
            head = f"; (without the last {len(vetoes)}, within {window})"
        case Start():
            head = "START"
        case Project(_, keep):
            head = f"PROJECT {', '.join(sorted(keep))}"
        case Strategy(rule):
            head = rule
        case Within(_, window):
            head = f"WITHIN {window}"
        case FilterAny(_, sides):
            head = "FILTER " + " OR ".join(f"{variable or 'every event'}: {predicate}" for variable, predicate in sides)
        case Compare(_, clause):
            head = f"FILTER {' OR '.join(map(str, clause))}"
        case Candidate(_, number):
            head = f"not {number}"
        case Pending(_, number):
            head = f"PENDING {number}"
        case Across(_, number, clauses):
            head = f"NOT {number} WHERE {' AND '.join(' OR '.join(map(str, sides)) for sides in clauses)}"
        case Agree(_, terms):
            head = f"AGREE {', '.join(f'{variable or ANY_EVENT}: {sql}' for variable, sql in terms)}"
        case _:
            raise TypeError(f"not a formula: {formula!r}")
    return "\n".join([pad + head, *(show(child, depth + 1) for child in children(formula))])
