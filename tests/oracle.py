"""What a formula means, evaluated as slowly and as plainly as it is defined.

The table of operators of the semantics page, line by line: `Meaning.of(φ, i, j)` is ⟦φ⟧(i, j). It shares the
classes of planner.cel with the rest of the project and nothing else. When an engine disagrees with this file,
first decide which of them the papers support.

A complex event is (s, e, μ). Here μ is a set of pairs (variable, position), so that the pointwise union of two is
the union of two sets. s and e stand beside μ, because projection takes events out of μ.

What has one definition for a whole query, and not for a formula, follows below: the strategies of the clause
(`select`), SKIP TILL NEXT MATCH (`Runs`), consumption and skipping (`evaluate_partitioned`, `after_match`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import pairwise, product

import created
from created import Created

from planner import cel, terms
from planner.acel import Aggregate, Judged, Measured
from planner.across import Across, Candidate
from planner.formula import Formula
from planner.query import Skip
from planner.terms import Comparison, Predicate, Side, parts_of
from planner.terms import Window as Window

Mu = frozenset[tuple[str, int]]
Complex = tuple[int, int, Mu]
Match = tuple[int, int, frozenset[tuple[str, frozenset[int]]]]


Where = Callable[[Hashable, Complex], bool]


class TooLarge(Exception):
    """A set of complex events grew beyond the limit that the caller set (there may be 2ⁿ)."""


@dataclass(frozen=True)
class Event:
    """One row: `true` has the types that accept it and the conditions (Predicate.sql) that are TRUE for it, `values`
    the attributes (Term.sql), of which those that are not there are NULL."""

    true: frozenset[str]
    time: int | float = 0
    key: Hashable = None
    values: tuple[tuple[str, int], ...] = ()

    def value(self, sql: str) -> int | None:
        return dict(self.values).get(sql)


def fits(window: Window | None, first: int, last: int, stream: Sequence[Event]) -> bool:
    """WITHIN: `time` bounds time(e) − time(s) by `size` (strict: below it); `events` asks for e − s < size."""
    if window is None:
        return True
    if window.kind == "events":
        return last - first < window.size
    if window.kind == "time":
        duration = stream[last].time - stream[first].time
        return duration < window.size if window.strict else duration <= window.size
    raise ValueError(f"not a kind of window: {window.kind!r}")


def join(left: Iterable[Complex], right: Iterable[Complex]) -> Iterator[Complex]:
    """C₁ ∪ C₂ for every choice: the least start, the greatest end, μ pointwise."""
    for (s1, e1, mu1), (s2, e2, mu2) in product(left, right):
        yield min(s1, s2), max(e1, e2), mu1 | mu2


def starting_at(start: int, found: Iterable[Complex]) -> list[Complex]:
    return [c for c in found if c[0] == start]


SIGHTING = (
    "@!"  # how the name of what is no variable begins: of a match of a negated part, which has its μ for a position
)


def bound_in(mu: Mu) -> Iterator[tuple[str, int]]:
    """The variables and positions of μ, without what was sighted of negated parts."""
    return (pair for pair in mu if not pair[0].startswith(SIGHTING))


def of_stream(mu: Mu) -> Iterator[tuple[str, int]]:
    """The same without what AGG creates."""
    return (pair for pair in bound_in(mu) if not isinstance(pair[1], Created))


def sup(complex_event: Complex) -> frozenset[int]:
    """The positions in μ; a created event has that of its time."""
    return frozenset(created.time(occurrence) for _, occurrence in bound_in(complex_event[2]))


def holds(predicate: Predicate, variable: str | None, mu: Mu, stream: Sequence[Event]) -> bool:
    """Whether every event of the variable (None: every event) satisfies the predicate."""
    return all(predicate.sql in stream[p].true for name, p in of_stream(mu) if variable is None or name == variable)


def true_of(op: str, left: int | None, right: int | None) -> bool:
    """Whether a comparison is TRUE: of NULLs only the last two can be."""
    if op == "<=>":
        return left == right
    if op == "IS DISTINCT FROM":
        return left != right
    if left is None or right is None:
        return False
    return {"=": left == right, "<>": left != right, "<": left < right, "<=": left <= right, ">": left > right,
            ">=": left >= right}[op]  # fmt: skip


def all_choices_hold(sides: Sequence[Side], mu: Mu, stream: Sequence[Event]) -> bool:
    """Whether some side is TRUE for every choice of one event for each variable (or of two or three in a row)."""
    parts = [part for side in sides for part in parts_of(side)]
    choices = []
    for variable in {part.variable for part in parts}:
        held = sorted(position for name, position in mu if name == variable)
        named = {part.of for part in parts if part.variable == variable}
        if named & {"first", "middle", "last"}:
            events = [{"first": a, "middle": b, "last": c} for a, b, c in zip(held, held[1:], held[2:])]  # noqa: B905
        elif named != {"each"}:
            events = [{"earlier": a, "later": b, "each": b} for a, b in pairwise(held)]
        else:
            events = [{"each": p} for p in held]
        # `x.a` beside `x[i-1].a` is the later event; beside NEXT(x.a) the clause says 'earlier' itself.
        choices.append([(variable, chosen) for chosen in events])
    return all(any(side_holds(side, dict(picked), stream) for side in sides) for picked in product(*choices))


def side_holds(side: Side, picked: dict[str, dict[str, int]], stream: Sequence[Event]) -> bool:
    if isinstance(side, terms.Test):
        return side.predicate.sql in stream[picked[side.variable][side.of]].true
    values = [stream[picked[term.variable][term.of]].value(term.sql) for term in parts_of(side)]
    return true_of(side.op, *values) if isinstance(side, Comparison) else COMPUTED[str(side)](*values)


# What is computed with the values of two events, by the name of the relation: tests/strategies.py has its program, or
# tests/families.py its text.
COMPUTED: dict[str, Callable[[int | None, int | None], bool]] = {
    "second - first >= 1": lambda a, b: a is not None and b is not None and b - a >= 1,
    "abs(first - second) <= 1": lambda a, b: a is not None and b is not None and -1 <= a - b <= 1,
    "2 * first < second": lambda a, b: a is not None and b is not None and a + a < b,
    "least(first, second) > 1": lambda a, b: min((v for v in (a, b) if v is not None), default=0) > 1,
    "abs(a.x - b.x) = 1": lambda a, b: a is not None and b is not None and abs(a - b) == 1,
    "a.x * b.y > 3": lambda a, b: a is not None and b is not None and a * b > 3,
}


def agree(terms: Sequence[tuple[str | None, str]], mu: Mu, stream: Sequence[Event]) -> bool:
    """Whether all events have one value of the attribute that is named for their variable."""
    values = {
        stream[p].value(sql)
        for name, p in of_stream(mu)
        for variable, sql in terms
        if variable is None or variable == name
    }
    return None not in values and len(values) <= 1


def greater(rule: str, c: frozenset[int], d: frozenset[int]) -> bool:
    """Whether d is greater than c in the order of NXT, LAST or MAX."""
    if rule == "MAX":
        return c < d
    return c != d and (min if rule == "NXT" else max)(c ^ d) in d


def select(rule: str, found: Iterable[Complex]) -> list[Complex]:
    """The complex events that a strategy keeps of those that compete."""
    found = list(found)
    if rule == "ALL":
        return found
    if rule == "STRICT":
        return [c for c in found if not sup(c) or len(sup(c)) == max(sup(c)) - min(sup(c)) + 1]
    sups = set(map(sup, found))
    best = {c for c in sups if not any(greater(rule, c, d) for d in sups)}
    return [c for c in found if sup(c) in best]


class Meaning:
    """⟦·⟧ over one stream. `limit` bounds the size of any set that is built.

    The sets hold the complex events with an event: that zero copies may satisfy a part is Formula.may_be_empty's word,
    and is used where parts are joined.
    """

    def __init__(self, stream: Sequence[Event], limit: int | None = None) -> None:
        self.stream = stream
        self.limit = limit
        self.known: dict[tuple[Formula, int, int], frozenset[Complex]] = {}

    def of(self, formula: Formula, i: int, j: int) -> frozenset[Complex]:
        """⟦formula⟧(i, j)."""
        key = formula, i, j
        if key not in self.known:
            found: set[Complex] = set()
            for complex_event in self.definition(formula, i, j):
                found.add(complex_event)
                if self.limit is not None and len(found) > self.limit:
                    raise TooLarge(f"more than {self.limit} complex events")
            self.known[key] = frozenset(found)
        return self.known[key]

    def value(self, position: int, column: str) -> int | None:
        return self.stream[position].value(column)

    def occurs(self, vetoes: Iterable[Formula], first: int, last: int) -> bool:
        """Whether some veto has a match inside [first, last]."""
        return any(self.of(veto, first, end) for veto in vetoes for end in range(first, last + 1))

    def definition(self, formula: Formula, i: int, j: int) -> Iterator[Complex]:
        """The line of the table for this operator; a complex event may be listed more than once."""
        stream = self.stream
        match formula:
            case cel.Event(type, marks):
                if type is None or type in stream[j].true:
                    yield j, j, frozenset((variable, j) for variable in marks)
            case cel.As(inner, variable):
                for s, e, mu in self.of(inner, i, j):
                    yield s, e, mu | {(variable, position) for _, position in bound_in(mu)}
            case cel.Sequence(left, right) | cel.Contiguous(left, right):
                for k in range(i, j):
                    after = self.of(right, k + 1, j)
                    yield from join(self.of(left, i, k), self.next_to(formula, k + 1, after))
                if left.may_be_empty():
                    yield from self.of(right, i, j)
                if right.may_be_empty():
                    yield from self.of(left, i, j)
            case cel.Iteration(inner) | cel.ContiguousIteration(inner):
                yield from self.of(inner, i, j)
                for k in range(i, j):
                    yield from join(self.of(inner, i, k), self.next_to(formula, k + 1, self.of(formula, k + 1, j)))
            case cel.Repeat(inner, low, high, _):
                if inner.may_be_empty():  # n copies of which some are empty are fewer that are not
                    low = 0
                if low <= 1 and high != 0:
                    yield from self.of(inner, i, j)
                if high is None or high > 1:
                    fewer = replace(formula, low=max(low - 1, 1), high=high and high - 1)
                    for k in range(i, j):
                        yield from join(self.of(inner, i, k), self.next_to(formula, k + 1, self.of(fewer, k + 1, j)))
            case cel.Or(left, right):
                yield from self.of(left, i, j)
                yield from self.of(right, i, j)
            case cel.And(left, right):
                for c in self.of(left, i, j):
                    same = [d for d in self.of(right, i, j) if as_match(c) == as_match(d)]
                    yield from join([c], [(s, e, frozenset(of_stream(mu))) for s, e, mu in same])
            case cel.All(left, right):
                for k in range(i, j + 1):
                    yield from join(self.of(left, i, k), self.of(right, i, j))
                    yield from join(self.of(left, i, j), self.of(right, i, k))
            case cel.Unless(inner, veto):
                for c in self.of(inner, i, j):
                    yield from self.unless([veto], c[0], j, c)
            case cel.Absent(left, vetoes, right):
                for k in range(i, j):
                    after = [d for c in self.of(right, k + 1, j) for d in self.unless(vetoes, k + 1, c[0] - 1, c)]
                    yield from join(self.of(left, i, k), after)
            case cel.NotBefore(_, inner, _) | cel.NotAfter(inner, _, _):
                for c in self.of(inner, i, j):
                    yield from self.surviving(formula, c)
            case Candidate(inner):
                yield from self.of(inner, i, j)
            case Across(inner, number, clauses):
                yield from self.of(Known(inner, number, clauses, frozenset()), i, j)
            case Known():
                yield from self.known_around(formula, i, j)
            case cel.Start(inner):
                yield from starting_at(i, self.of(inner, i, j))
            case cel.Project(inner, keep):
                for s, e, mu in self.of(inner, i, j):
                    kept = ((v, position) for v, position in mu if v in keep or v.startswith(SIGHTING))
                    yield s, e, frozenset(kept)
            case cel.Strategy(rule, inner):
                yield from select(rule, self.of(inner, i, j))
            case cel.Within(inner, window):
                yield from (c for c in self.of(inner, i, j) if fits(window, c[0], c[1], stream))
            case cel.Filter(inner, variable, predicate):
                yield from (c for c in self.of(inner, i, j) if holds(predicate, variable, c[2], stream))
            case cel.FilterAny(inner, sides):
                for c in self.of(inner, i, j):
                    if any(holds(predicate, variable, c[2], stream) for variable, predicate in sides):
                        yield c
            case cel.Compare(inner, clause):
                yield from (c for c in self.of(inner, i, j) if all_choices_hold(clause, c[2], stream))
            case Aggregate(inner):
                for s, e, mu in self.of(inner, i, j):
                    made = created.created(formula, bound_in(mu), e, self.value)
                    yield s, e, mu | {(variable, made) for variable in formula.marks}
            case Judged(inner) | Measured(inner):
                for c in self.of(inner, i, j):
                    if created.holds(formula.condition, bound_in(c[2]), self.value):
                        yield c
            case cel.Agree(inner, terms):
                yield from (c for c in self.of(inner, i, j) if agree(terms, c[2], stream))
            case _:
                raise TypeError(f"not a formula: {formula!r}")

    def known_around(self, known: Known, i: int, j: int) -> Iterator[Complex]:
        """C of `inner`, decided with what is known of the events around it.

        If a choice lies between, it is made by itself for each way in which the variables that it does not bind could
        be bound around it; C is kept where they are bound in it as was assumed.
        """
        inner, number = known.inner, known.number
        around = frozenset(pair for pair in known.around if pair[0] not in inner.binds())
        choice = first_choice(inner, number)
        if choice is not None:
            names = (named(known.clauses) & inner.binds()) - choice.binds()

            def of_names(mu: Mu) -> Mu:
                return frozenset(pair for pair in mu if pair[0] in names)

            for assumed in {of_names(mu) for _, _, mu in self.of(without_choices(inner), i, j)}:
                made = replace(known, inner=choice, around=around | assumed)
                yield from (c for c in self.of(put(inner, choice, made), i, j) if of_names(c[2]) == assumed)
            return
        name = f"{SIGHTING}{number}"
        for s, e, mu in self.of(inner, i, j):
            own = frozenset(pair for pair in mu if pair[0] != name)
            others = [sighted for variable, sighted in mu if variable == name]
            if not any(all(all_choices_hold(c, own | around | d, self.stream) for c in known.clauses) for d in others):
                yield s, e, own

    def next_to(self, operator: Formula, start: int, found: Iterable[Complex]) -> Iterable[Complex]:
        """What may follow the event before `start`: all that was found, or behind `:` what begins at once."""
        contiguous = isinstance(operator, cel.Contiguous | cel.ContiguousIteration)
        if contiguous or (isinstance(operator, cel.Repeat) and operator.contiguous):
            return starting_at(start, found)
        return found

    def unless(self, vetoes: Iterable[Formula], first: int, last: int, c: Complex) -> Iterator[Complex]:
        """The complex event, unless a veto has a match inside [first, last]; with the matches there about which some
        Across around it decides."""
        if self.occurs([veto for veto in vetoes if not isinstance(veto, Candidate)], first, last):
            return
        s, e, mu = c
        sighted = {
            (f"{SIGHTING}{veto.number}", frozenset(bound_in(d)))
            for veto in vetoes
            if isinstance(veto, Candidate)
            for end in range(first, last + 1)
            for _, _, d in self.of(veto, first, end)
        }
        yield s, e, mu | sighted

    def surviving(self, formula: cel.NotBefore | cel.NotAfter, c: Complex) -> Iterator[Complex]:
        """The same for an absence before or after the complex event. The end of the stream counts as time passed."""
        s, e, _ = c
        if isinstance(formula, cel.NotBefore):
            window_of_e = [n for n in range(e + 1) if fits(formula.window, n, e, self.stream)]
            yield from self.unless(formula.vetoes, min(window_of_e, default=s), s - 1, c)
        else:
            window_of_s = [n for n in range(s, len(self.stream)) if fits(formula.window, s, n, self.stream)]
            yield from self.unless(formula.vetoes, e + 1, max(window_of_s, default=e), c)


@dataclass(frozen=True)
class Known(cel.Start):  # an operator of one part
    """A part of what stands inside an Across, and the events that its variables are bound to around the part."""

    number: int
    clauses: tuple[tuple[Side, ...], ...]
    around: Mu


def named(clauses: Iterable[Sequence[Side]]) -> frozenset[str]:
    """The variables of conditions."""
    sides = [side for clause in clauses for side in clause]
    return frozenset(part.variable for side in sides for part in parts_of(side))


def negated(formula: Formula) -> tuple[Formula, ...]:
    """What an operator says must not happen."""
    match formula:
        case cel.Absent(_, vetoes) | cel.NotBefore(vetoes) | cel.NotAfter(_, vetoes):
            return vetoes
        case cel.Unless(_, veto):
            return (veto,)
    return ()


def holds_part(formula: Formula, number: int) -> bool:
    """Is the negated part of this number in it?"""
    own = isinstance(formula, Candidate) and formula.number == number
    return own or any(holds_part(part, number) for part in formula.children())


def first_choice(formula: Formula, number: int) -> Formula | None:
    """On the way down to a negated part, what first makes complex events of its own: the part of a strategy that
    compares, or what must not happen and holds the negated part in it."""
    for part in formula.children():
        if not holds_part(part, number):
            continue
        if isinstance(part, Candidate):
            return None if part.number == number else part.inner
        chosen = isinstance(formula, cel.Strategy) and formula.name != "STRICT"
        return part if chosen or part in negated(formula) else first_choice(part, number)
    return None


def without_choices(formula: Formula) -> Formula:
    """A formula that finds all that this one does, whatever strategies choose and negated parts prevent."""
    match formula:
        case cel.Event():
            return formula
        case cel.Strategy(_, inner) | cel.Unless(inner) | cel.NotBefore(_, inner) | cel.NotAfter(inner):
            return without_choices(inner)
        case Across(inner) | Known(inner):
            return without_choices(inner)
        case cel.Absent(left, _, right):
            return cel.Sequence(without_choices(left), without_choices(right))
    for part in formula.children():
        formula = put(formula, part, without_choices(part))
    return formula


def put(formula: Formula, old: Formula, new: Formula) -> Formula:
    """The formula with `new` for `old`, wherever that very object is in it."""
    if formula is old:
        return new
    changes: dict[str, object] = {}
    for entry in fields(formula):
        value = getattr(formula, entry.name)
        if isinstance(value, Formula):
            changes[entry.name] = put(value, old, new)
        elif isinstance(value, tuple):
            changes[entry.name] = tuple(put(v, old, new) if isinstance(v, Formula) else v for v in value)
    changed = replace(formula, **changes)
    return formula if changed == formula else changed


@dataclass(frozen=True)
class Atom:
    """A state of SKIP TILL NEXT MATCH: one occurrence of an atom. `asks` has for each filter around it (by number) what
    each of the filter's sides demands of the event: a condition, or None where the side is about another variable;
    `compares` the filters around it that compare events, with the variables that the event has in them."""

    type: str | None
    marks: frozenset[str]
    asks: dict[int, list[str | None]] = field(default_factory=dict)
    compares: dict[int, tuple[cel.Compare | cel.Agree, frozenset[str]]] = field(default_factory=dict)
    decides: dict[int, tuple[Across, frozenset[str]]] = field(default_factory=dict)  # likewise


@dataclass(frozen=True)
class Follow:
    """That `right` may be bound right after `left` (numbers of atoms). `inside`: the filters that both stand in, in the
    same round of every loop."""

    left: int
    right: int
    contiguous: bool
    vetoes: tuple[Formula, ...] = ()
    inside: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Part:
    """What a position automaton is put together from: the atoms that may be first and last, and which follows which."""

    first: frozenset[int]
    last: frozenset[int]
    empty: bool
    follows: frozenset[Follow] = frozenset()


@dataclass(frozen=True)
class Run:
    """The atom it is at, the events that it took, and for each open filter which sides can still hold."""

    atom: int
    start: int
    mu: Mu
    sides: frozenset[tuple[int, frozenset[int]]]
    compared: frozenset[tuple[int, Mu]] = frozenset()  # what is bound in each open filter that compares
    deciding: frozenset[tuple[int, Mu]] = frozenset()  # the same for each open Across
    gaps: frozenset[Gap] = frozenset()


@dataclass(frozen=True)
class Gap:
    """Between events `first` and `last` something must not happen, as Acrosses around it (their numbers as filters)
    decide. `left`: what was bound in those that the run has left."""

    veto: Formula
    first: int
    last: int
    across: frozenset[int]
    left: frozenset[tuple[int, Mu]] = frozenset()


class Runs:
    """SKIP TILL NEXT MATCH: a run that can take an event must take it (`must`), once for each follower that accepts."""

    def __init__(self, formula: Formula, meaning: Meaning, must: bool = True) -> None:
        self.meaning, self.must = meaning, must  # the former for what does not happen
        self.atoms: list[Atom] = []
        self.filters = 0
        self.absences: list[cel.NotBefore | cel.NotAfter] = []
        self.around: list[Across] = []  # those that decide about these absences
        self.across: dict[int, Across] = {}  # the others, by their numbers as filters
        self.whole = self.part(formula)

    def part(self, formula: Formula) -> Part:
        """The formula's part of the automaton; every call makes atoms of its own."""
        match formula:
            case cel.Event(type, marks):
                self.atoms.append(Atom(type, marks))
                one = frozenset({len(self.atoms) - 1})
                return Part(one, one, False)
            case cel.As(inner, variable):
                before = len(self.atoms)
                made = self.part(inner)
                self.atoms[before:] = [replace(a, marks=a.marks | {variable}) for a in self.atoms[before:]]
                return made
            case cel.Sequence(left, right) | cel.Contiguous(left, right):
                return self.joined(self.part(left), self.part(right), isinstance(formula, cel.Contiguous))
            case cel.Absent(left, vetoes, right):
                return self.joined(self.part(left), self.part(right), False, vetoes)
            case cel.Iteration(inner) | cel.ContiguousIteration(inner):
                return self.looped(self.part(inner), isinstance(formula, cel.ContiguousIteration))
            case cel.Repeat(inner, low, high, contiguous):
                copies = [self.part(inner) for _ in range(max(low, 1) if high is None else high)]
                if high is None:
                    copies[-1] = self.looped(copies[-1], contiguous)
                whole = Part(frozenset(), frozenset(), True)
                for n, copy in reversed(list(enumerate(copies))):
                    whole = self.joined(copy, whole, contiguous)
                    whole = replace(whole, empty=whole.empty or n >= low)
                return whole
            case cel.Or(left, right):
                a, b = self.part(left), self.part(right)
                return Part(a.first | b.first, a.last | b.last, a.empty or b.empty, a.follows | b.follows)
            case cel.Filter(inner, variable, predicate):
                return self.part(cel.FilterAny(inner, ((variable, predicate),)))
            case cel.FilterAny(inner, sides):
                before, number = len(self.atoms), self.filters
                self.filters += 1
                made = self.part(inner)
                for atom in self.atoms[before:]:
                    atom.asks[number] = [p.sql if v is None or v in atom.marks else None for v, p in sides]
                return replace(made, follows=frozenset(replace(f, inside=f.inside | {number}) for f in made.follows))
            case cel.Compare(inner) | cel.Agree(inner):
                before, number = len(self.atoms), self.filters
                self.filters += 1
                made = self.part(inner)
                for atom in self.atoms[before:]:
                    atom.compares[number] = formula, atom.marks
                return replace(made, follows=frozenset(replace(f, inside=f.inside | {number}) for f in made.follows))
            case cel.NotBefore(_, inner, _) | cel.NotAfter(inner, _, _):
                self.absences.append(formula)
                return self.part(inner)
            case Across(inner, own, _):
                before, number, absences = len(self.atoms), self.filters, len(self.absences)
                self.filters += 1
                made = self.part(inner)
                if any(holds_part(v, own) for absence in self.absences[absences:] for v in absence.vetoes):
                    self.around.append(formula)
                    return made
                self.across[number] = formula
                for atom in self.atoms[before:]:
                    atom.decides[number] = formula, atom.marks
                return replace(made, follows=frozenset(replace(f, inside=f.inside | {number}) for f in made.follows))
        raise TypeError(f"not a formula for skip till next match: {formula!r}")

    def joined(self, a: Part, b: Part, contiguous: bool, vetoes: tuple[Formula, ...] = ()) -> Part:
        between = frozenset(Follow(p, q, contiguous, vetoes) for p in a.last for q in b.first)
        first = a.first | b.first if a.empty else a.first
        last = a.last | b.last if b.empty else b.last
        return Part(first, last, a.empty and b.empty, a.follows | b.follows | between)

    def looped(self, a: Part, contiguous: bool) -> Part:
        again = frozenset(Follow(p, q, contiguous) for p in a.last for q in a.first)
        return replace(a, follows=a.follows | again)

    def can_change(self, atom: int, filter: int, formula: Across) -> bool:
        """Can a later event of the same round be one of those that the conditions compare?"""
        names, part = named(formula.clauses), first_choice(formula.inner, formula.number)
        while part is not None:
            names, part = names - part.binds(), first_choice(part, formula.number)
        reached, todo = set[int](), {atom}
        while todo:
            todo = {f.right for f in self.whole.follows if f.left in todo and filter in f.inside} - reached
            reached |= todo
        return any(self.atoms[other].decides[filter][1] & names for other in reached)

    def looking_on(
        self, number: int, n: int, run: Run | None, follow: Follow | None
    ) -> tuple[dict[int, Mu], frozenset[Gap]] | None:
        """What is bound in each Across around the atom, and what must not have happened before it; None if it did,
        whatever comes: later events of those that are compared can only make comparisons fail."""
        before = dict(run.deciding) if run else {}
        inside = follow.inside if follow else frozenset[int]()
        bound = {
            filter: frozenset((variable, n) for variable in marks)
            | (before[filter] if filter in inside else frozenset())
            for filter, (_, marks) in self.atoms[number].decides.items()
        }
        gaps = set()
        if run is not None and follow is not None:
            for gap in run.gaps:
                left = {(filter, before[filter]) for filter in gap.across if filter in before and filter not in inside}
                gaps.add(replace(gap, left=gap.left | left))
            last = max(position for _, position in run.mu)
            for veto in follow.vetoes:
                across = frozenset(f for f in inside if f in self.across and holds_part(veto, self.across[f].number))
                if across:
                    gaps.add(Gap(veto, last + 1, n - 1, across))
        for gap in gaps:
            open_ = [filter for filter in gap.across if filter in bound and filter in inside]
            fail = {
                filter for filter in open_
                if self.can_change(number, filter, self.across[filter])
                and n_choices(gap.veto, self.across[filter].number) % 2 == 0  # where it would lift the veto
            }  # fmt: skip
            if self.happened(gap, bound, fail):
                return None
        return bound, frozenset(gaps)

    def happened(self, gap: Gap, bound: dict[int, Mu], fail: Collection[int] = ()) -> bool:
        """Did what must not happen do so, by what is bound now, if the comparisons in `fail` are not TRUE?"""
        own = {**bound, **dict(gap.left)}
        never = ((),)  # no side of it is TRUE
        around = [(replace(self.across[f], clauses=never) if f in fail else self.across[f], own[f]) for f in gap.across]
        return any(self.happens(gap.veto, around, gap.first, end) for end in range(gap.first, gap.last + 1))

    def happens(self, veto: Formula, around: list[tuple[Across, Mu]], first: int, end: int) -> bool:
        """Is there a match of a negated part, given what is bound in the Acrosses that decide about it or in it?"""
        for across, mu in around:
            veto = known_in(veto, across, mu)
        asked = veto.number if isinstance(veto, Candidate) else None
        stream, own = self.meaning.stream, [(across, mu) for across, mu in around if across.number == asked]
        return any(
            all(all_choices_hold(clause, mu | frozenset(bound_in(d)), stream) for across, mu in own
                for clause in across.clauses)
            for _, _, d in self.meaning.of(veto, first, end)
        )  # fmt: skip

    def take(self, number: int, n: int, run: Run | None, follow: Follow | None = None) -> Run | None:
        """The run after event n was bound to the atom, None if that does not accept it. Conditions are checked as far
        as they are decided: a filter's side falls with the first event of its variable that fails it."""
        atom, event = self.atoms[number], self.meaning.stream[n]
        inside = follow.inside if follow else frozenset[int]()
        if atom.type is not None and atom.type not in event.true:
            return None
        before = dict(run.sides) if run else {}
        sides = set()
        for filter, asks in atom.asks.items():
            could = before[filter] if filter in inside else frozenset(range(len(asks)))
            can = frozenset(side for side in could if asks[side] is None or asks[side] in event.true)
            if not can:
                return None
            sides.add((filter, can))
        bound, compared = dict(run.compared) if run else {}, set()
        for filter, (formula, marks) in atom.compares.items():
            own = frozenset((variable, n) for variable in marks) | (bound[filter] if filter in inside else frozenset())
            if isinstance(formula, cel.Agree):
                holds_so_far = agree(formula.terms, own, self.meaning.stream)
            else:
                holds_so_far = all_choices_hold(formula.sides, own, self.meaning.stream)
            if not holds_so_far:
                return None
            compared.add((filter, own))
        looked = self.looking_on(number, n, run, follow)
        if looked is None:
            return None
        deciding, gaps = looked
        mu = frozenset((variable, n) for variable in atom.marks) | (run.mu if run else frozenset())
        start = run.start if run else n
        return Run(number, start, mu, frozenset(sides), frozenset(compared), frozenset(deciding.items()), gaps)

    def available(self, follow: Follow, run: Run, n: int) -> bool:
        """Whether the follower may be bound to event n: nothing lies between behind `:`, and no veto behind `!`."""
        last = max(position for _, position in run.mu)
        if follow.contiguous and n > last + 1:
            return False
        numbers = [self.across[filter].number for filter in follow.inside if filter in self.across]
        ordinary = [veto for veto in follow.vetoes if not any(holds_part(veto, number) for number in numbers)]
        return not self.meaning.occurs(ordinary, last + 1, n - 1)

    def taking(self) -> Iterator[set[Run]]:
        """The runs that take event 0, event 1, …"""
        runs: set[Run] = set()
        for n in range(len(self.meaning.stream)):
            taken, kept = {self.take(q, n, None) for q in self.whole.first}, set()
            for run in runs:
                followers = [f for f in self.whole.follows if f.left == run.atom and self.available(f, run, n)]
                after = {self.take(f.right, n, run, f) for f in followers} - {None}
                taken |= after
                if not after or not self.must:
                    kept.add(run)
            taken.discard(None)
            runs = kept | taken
            if self.meaning.limit is not None and len(runs) > self.meaning.limit:
                raise TooLarge(f"more than {self.meaning.limit} runs")
            yield taken

    def matches(self) -> Iterator[list[Complex]]:
        """The matches that end at 0, at 1, …"""
        for n, taken in enumerate(self.taking()):
            ended = [
                run for run in taken
                if run.atom in self.whole.last and not any(self.happened(gap, dict(run.deciding)) for gap in run.gaps)
            ]  # fmt: skip
            yield [c for c in {(run.start, n, run.mu) for run in ended} if self.survives(c)]

    def survives(self, c: Complex) -> bool:
        """Did what must not happen before or after it not happen?"""
        seen: Mu = frozenset()
        for absence in self.absences:
            vetoes = absence.vetoes
            for across in self.around:
                vetoes = tuple(known_in(veto, across, frozenset(bound_in(c[2]))) for veto in vetoes)
            found = list(self.meaning.surviving(replace(absence, vetoes=vetoes), c))
            if not found:
                return False
            seen |= found[0][2] - c[2]
        return not any(
            all(all_choices_hold(clause, c[2] | d, self.meaning.stream) for clause in across.clauses)
            for across in self.around
            for name, d in seen
            if name == f"{SIGHTING}{across.number}"
        )


def n_choices(veto: Formula, number: int) -> int:
    """How many parts that make complex events of their own are there from a negated part to another inside it?"""
    if isinstance(veto, Candidate):
        return 0 if veto.number == number else n_choices(veto.inner, number)
    inside = first_choice(veto, number)
    return 1 + (0 if inside is None else n_choices(inside, number))


def known_in(veto: Formula, across: Across, around: Mu) -> Formula:
    """A negated part in which what is bound around another one inside it is known."""
    if isinstance(veto, Candidate):
        return veto if veto.number == across.number else replace(veto, inner=known_in(veto.inner, across, around))
    return Known(veto, across.number, across.clauses, around) if holds_part(veto, across.number) else veto


def as_match(complex_event: Complex) -> Match:
    """The complex event as it is output: without the planner's own variables, positions grouped by variable."""
    start, end, mu = complex_event
    bound: dict[str, set[int]] = {}
    for variable, position in mu:
        if not variable.startswith("@"):
            bound.setdefault(variable, set()).add(position)
    shown = {
        variable: created.counted(held) if any(isinstance(o, Created) for o in held) else frozenset(held)
        for variable, held in bound.items()
    }
    return start, end, frozenset(shown.items())


def answers(
    formula: Formula, meaning: Meaning, window: Window | None = None, strategy: str = "ALL"
) -> Iterator[list[Complex]]:
    """At every position in turn, what of the formula's matches ending there fits the window.

    Skip till next match is no choice among these, but another way to find them; all other strategies come after.
    """
    stream = meaning.stream
    found: Iterable[Iterable[Complex]] = (meaning.of(formula, 0, n) for n in range(len(stream)))
    if strategy == "NEXT_MATCH":
        found = Runs(formula, meaning).matches()
    for at_n in found:
        yield [c for c in at_n if fits(window, c[0], c[1], stream)]


def first_of(found: Iterable[Complex], strategy: str = "ALL") -> Complex:
    """The match that AFTER MATCH SKIP takes: the least start, then the greatest end, then the NXT-greatest. Beside a
    strategy the least end, then the greatest by that; skip till next match has no order of its own, and takes NXT's.

    If several remain, that whose sorted positions of the first variable (by name) come first, as lists compare; then of
    the second variable, and so on.
    """
    found = list(found)
    if strategy == "ALL":
        start = min(s for s, _, _ in found)
        end = max(e for s, e, _ in found if s == start)
        rivals = [c for c in found if c[:2] == (start, end)]
    else:
        end = min(e for _, e, _ in found)
        rivals = [c for c in found if c[1] == end]
    names = sorted({variable for _, _, mu in found for variable, _ in mu if not variable.startswith("@")})

    def places(c: Complex) -> list[list[int]]:
        return [sorted(position for variable, position in c[2] if variable == name) for name in names]

    return min(select("LAST" if strategy == "LAST" else "NXT", rivals), key=places)


def after_match(found: Iterable[Complex], skip: Skip, strategy: str = "ALL") -> Iterator[Complex]:
    """AFTER MATCH SKIP: one match at a time; then the starts before the point to which it skips are dropped."""
    found = list(found)
    while found:
        s, e, mu = taken = first_of(found, strategy)
        yield taken
        least = s + 1  # TO NEXT ROW
        if skip.to == "PAST LAST ROW":
            least = e + 1
        elif skip.to in ("TO FIRST", "TO LAST"):
            held = {position for variable, position in mu if variable == skip.mark}
            point = (min if skip.to == "TO FIRST" else max)(held, default=s)
            least = max(point, s + 1)
        found = [c for c in found if c[0] >= least]


def evaluate(
    formula: Formula,
    stream: Sequence[Event],
    window: Window | None = None,
    limit: int | None = None,
    strategy: str = "ALL",
    consume: str = "NONE",
    skip: Skip | None = None,
    meanings: Callable[[Sequence[Event], int | None], Meaning] = Meaning,
    where: Where | None = None,
) -> set[Match]:
    """All matches of the formula in the stream: the answers ⟦formula⟧(0, n) at every position n, inside the window,
    and of these what the strategy, consumption or skipping leaves.

    TooLarge if some set of complex events on the way has more than `limit`.
    """
    alone = [replace(event, key=None) for event in stream]
    found = evaluate_partitioned(formula, alone, window, limit, strategy, consume, skip, meanings, where)
    return found.get(None, set())


def split(stream: Iterable[Event]) -> dict[Hashable, list[Event]]:
    """PARTITION BY: the substream of every key, in order. None (NULL) is a key like another."""
    parts: dict[Hashable, list[Event]] = {}
    for event in stream:
        parts.setdefault(event.key, []).append(event)
    return parts


def evaluate_partitioned(
    formula: Formula,
    stream: Iterable[Event],
    window: Window | None = None,
    limit: int | None = None,
    strategy: str = "ALL",
    consume: str = "NONE",
    skip: Skip | None = None,
    meanings: Callable[[Sequence[Event], int | None], Meaning] = Meaning,
    where: Where | None = None,
) -> dict[Hashable, set[Match]]:
    """The matches of every key's substream, with positions relative to it. `where`: a condition on the whole match, by
    its key; the others compete with nothing and consume nothing.

    We go through the whole stream. Where an event outputs matches, all starts up to it are consumed: of its own key
    under PARTITION, of all keys under ANY. What was consumed no longer competes under the strategy.
    """
    stream = list(stream)
    places: dict[Hashable, list[int]] = {}  # of each key's events in the stream
    parts = split(stream)
    found = {key: answers(formula, meanings(part, limit), window, strategy) for key, part in parts.items()}
    kept: dict[Hashable, list[Complex]] = {key: [] for key in found}
    consumed: dict[Hashable, int] = dict.fromkeys(found, -1)
    for n, event in enumerate(stream):
        key = event.key
        places.setdefault(key, []).append(n)
        alive = [c for c in next(found[key]) if places[key][c[0]] > consumed[key]]
        alive = [c for c in alive if where is None or where(key, c)]
        chosen = select("ALL" if strategy == "NEXT_MATCH" or skip is not None else strategy, alive)
        kept[key] += chosen
        if chosen and consume != "NONE":
            consumed |= {other: n for other in found if consume == "ANY" or other == key}
    if skip is not None:
        kept = {key: list(after_match(matches, skip, strategy)) for key, matches in kept.items()}
    return {key: set(map(as_match, matches)) for key, matches in kept.items()}


# ---------------------------------------------------------------- WITH TIMEOUTS


class Begun:
    """The partial runs of a formula: what of a match an automaton has seen, and can in principle go on with.

    `of(φ, i, j)` are those (s, e, μ) that began when the search started at i, have read event j and not ended, where e
    is the last event taken; that a later event will satisfy what it must is taken for granted. Not for START, AND,
    strategies.
    """

    def __init__(self, meaning: Meaning) -> None:
        self.meaning = meaning
        self.known: dict[tuple[Formula, int, int], frozenset[Complex]] = {}

    def of(self, formula: Formula, i: int, j: int) -> frozenset[Complex]:
        key = formula, i, j
        if key not in self.known:
            self.known[key] = frozenset(self.definition(formula, i, j))
        return self.known[key]

    def definition(self, formula: Formula, i: int, j: int) -> Iterator[Complex]:
        """For each operator, where in it the run may be."""
        stream, meaning = self.meaning.stream, self.meaning
        match formula:
            case cel.Event():
                return
            case cel.As(inner, variable):
                for s, e, mu in self.of(inner, i, j):
                    yield s, e, mu | {(variable, position) for _, position in mu}
            case cel.Sequence(left, right) | cel.Contiguous(left, right) | cel.Absent(left, _, right):
                yield from self.of(left, i, j)
                yield from self.behind(formula, left, right, i, j)
                if left.may_be_empty():
                    yield from self.of(right, i, j)
            case cel.Iteration(inner) | cel.ContiguousIteration(inner):
                yield from self.of(inner, i, j)
                yield from self.behind(formula, inner, formula, i, j)
            case cel.Repeat(inner, low, high, _):
                yield from self.of(inner, i, j)
                if high is None or high > 1:
                    fewer = replace(formula, low=max(low - 1, 1), high=high and high - 1)
                    yield from self.behind(formula, inner, fewer, i, j)
            case cel.Or(left, right):
                yield from self.of(left, i, j) | self.of(right, i, j)
            case cel.All(left, right):
                sides = []
                for side in (left, right):
                    ended = frozenset[Complex]().union(*(meaning.of(side, i, k) for k in range(i, j + 1)))
                    sides.append((self.of(side, i, j), ended))
                (a, ended_a), (b, ended_b) = sides
                yield from a | b  # the other has not begun
                yield from ended_a | ended_b
                yield from [*join(a, b), *join(a, ended_b), *join(ended_a, b)]
            case cel.Unless(inner, veto):
                yield from (c for c in self.of(inner, i, j) if not meaning.occurs([veto], c[0], j))
            case cel.Project(inner, keep):
                for s, e, mu in self.of(inner, i, j):
                    yield s, e, frozenset((variable, position) for variable, position in mu if variable in keep)
            case cel.Within(inner, window):
                yield from (c for c in self.of(inner, i, j) if fits(window, c[0], j, stream))
            case cel.Filter(inner, variable, predicate):
                yield from (c for c in self.of(inner, i, j) if holds(predicate, variable, c[2], stream))
            case cel.FilterAny(inner, sides_):
                for c in self.of(inner, i, j):
                    if any(holds(predicate, variable, c[2], stream) for variable, predicate in sides_):
                        yield c
            case cel.Compare(inner, sides_):
                yield from (c for c in self.of(inner, i, j) if all_choices_hold(sides_, c[2], stream))
            case cel.Agree(inner, terms):
                yield from (c for c in self.of(inner, i, j) if agree(terms, c[2], stream))
            case _:
                raise TypeError(f"partial runs are not defined here for {formula!r}")

    def behind(self, operator: Formula, left: Formula, right: Formula, i: int, j: int) -> Iterator[Complex]:
        """The left side has ended: the right side has not begun yet, or has."""
        vetoes = operator.vetoes if isinstance(operator, cel.Absent) else ()
        contiguous = isinstance(operator, cel.Contiguous | cel.ContiguousIteration)
        contiguous = contiguous or (isinstance(operator, cel.Repeat) and operator.contiguous)
        for k in range(i, j + 1):
            before = self.meaning.of(left, i, k)
            if (k == j or not contiguous) and not self.meaning.occurs(vetoes, k + 1, j):
                yield from before
            if k < j:
                after = self.meaning.next_to(operator, k + 1, self.of(right, k + 1, j))
                yield from join(before, [c for c in after if not self.meaning.occurs(vetoes, k + 1, c[0] - 1)])


def without_absences(formula: Formula) -> Formula:
    """The formula without the absences before and after the whole."""
    match formula:
        case cel.NotBefore(_, inner, _) | cel.NotAfter(inner, _, _):
            return without_absences(inner)
        case cel.As() | cel.Filter() | cel.FilterAny() | cel.Project() | cel.Compare() | cel.Agree():
            return replace(formula, inner=without_absences(formula.inner))
    return formula


def reached(complex_event: Complex, order: Sequence[str]) -> int:
    """The rank of a run: of its last event with a variable, the least index in `order` of those; -1 without any."""
    shown = [(position, order.index(variable)) for variable, position in complex_event[2] if variable in order]
    last = max((position for position, _ in shown), default=None)
    return min((index for position, index in shown if position == last), default=-1)


def all_runs(formula: Formula, meaning: Meaning) -> Iterator[Complex]:
    """The partial runs and what they end in, before absences around the whole are asked."""
    begun, whole = Begun(meaning), without_absences(formula)
    for j in range(len(meaning.stream)):
        yield from begun.of(whole, 0, j) | meaning.of(whole, 0, j)


def greedy_runs(formula: Formula, meaning: Meaning, must: bool = True) -> Iterator[Complex]:
    """The same of skip till next match; of any match, if a run need not take what it can."""
    for n, taken in enumerate(Runs(formula, meaning, must).taking()):
        yield from ((run.start, n, run.mu) for run in taken)


def compares_absences(formula: Formula) -> bool:
    return isinstance(formula, Across) or any(map(compares_absences, formula.children()))


def timeouts(
    formula: Formula,
    stream: Sequence[Event],
    order: Sequence[str],
    window: Window | None = None,
    limit: int | None = None,
    strategy: str = "ALL",
    consume: str = "NONE",
    skip: Skip | None = None,
    where: Where | None = None,
) -> dict[int, tuple[int, set[Match]]]:
    """WITH TIMEOUTS over one stream that has ended: for each start that timed out the rank of its furthest run, and the
    runs that may be shown (which differ by their variables alone). The ends of these are not meant.

    A start is where a run begins. It times out if no match, before any strategy, begins there; skip till next match
    has runs of its own. A match that `where` refuses is a run that came to its end, and no match. `order` has the
    variables as they appear in the pattern. Where what must not happen is compared with other events, a run ends as
    soon as no later event can lift the veto.
    """
    meaning = Meaning(stream, limit)
    greedy = strategy == "NEXT_MATCH"
    runs: dict[int, set[Complex]] = {}
    by_position = greedy or compares_absences(formula)
    for c in greedy_runs(formula, meaning, greedy) if by_position else all_runs(formula, meaning):
        if fits(window, c[0], c[1], stream):
            runs.setdefault(c[0], set()).add(c)
    found_at = answers(formula, meaning, window, strategy if greedy else "ALL")
    matched = {c[0] for at_n in found_at for c in at_n if where is None or where(None, c)}
    chosen = evaluate(formula, stream, window, limit, strategy, consume, skip, where=where)
    gone = matched | dropped(chosen, stream, window, skip, consume, as_they_complete=strategy != "ALL")
    found = {}
    for start in runs.keys() - gone:
        rank = max(reached(c, order) for c in runs[start])
        best = select("NXT", [c for c in runs[start] if reached(c, order) == rank])
        found[start] = rank, {as_match((s, s, mu)) for s, _, mu in best}
    return found


def dropped(
    chosen: Iterable[Match],
    stream: Sequence[Event],
    window: Window | None,
    skip: Skip | None,
    consume: str,
    as_they_complete: bool = False,
) -> set[int]:
    """The starts that CONSUME BY PARTITION or AFTER MATCH SKIP dropped, by the matches that were given."""
    gone: set[int] = set()
    if consume == "PARTITION":
        for s in range(len(stream)):
            ends = [e for _, e, _ in chosen if e >= s]
            if ends and fits(window, s, min(ends), stream):
                gone.add(s)
    if skip is not None:
        for s, e, mu in chosen:
            held = dict(mu).get(skip.mark or "", frozenset({s}))
            point = {"PAST LAST ROW": e + 1, "TO NEXT ROW": s, "TO FIRST": min(held), "TO LAST": max(held)}[skip.to]
            gone |= set(range(s + 1, point))
            if as_they_complete:  # what began before and was under way is dropped, too
                gone |= {earlier for earlier in range(s) if fits(window, earlier, e, stream)}
    return gone
