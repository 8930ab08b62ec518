"""Everything small: all formulas up to a number of operators, and what they mean on all short streams at once.

Formulas are over two event types A and B, with the operators AS x, ;, :, +, :+, OR and FILTER p. Exchanging A and B
in a formula exchanges them in its matches, and OR does not depend on the order of its sides, so one formula of
each such class is enough.

`Words` is a second oracle, fast enough for thousands of formulas on hundreds of streams. It rests on one remark:
⟦φ⟧(i, j) depends only on the events i … j and shifts with i. So it is enough to know, for every word w (a short
stream), the set ⟦φ⟧(0, |w|−1) over w, and then the meaning of φ ; ψ is no more than all concatenations: a word of
φ with a word of ψ. A relation holds these pairs (word, μ) as integers, one array for each length of word:

    bits 32 …       the word, as a number in base |letters|
    bits 0 … 31     μ: bit 8·v + k says that variable number v holds position k

The plain oracle judges this one (test_exhaustive.py).

The other operators are too many for all formulas of a size: of these there is each one over atoms, and each around each
(`alone`, `pairs`), and each before, after or under an absence (`absences`). Their meaning is the plain oracle's;
`Shared` only remembers it, since the same words come up in every stream.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import product

import numpy as np
import numpy.typing as npt
import oracle

from planner import cel
from planner.formula import Formula
from planner.terms import Predicate, Window

P = Predicate("p")
A = cel.Event("A", frozenset({"A"}))
B = cel.Event("B", frozenset({"B"}))
VARIABLES = ("A", "B", "x")

LETTERS = ("A", "B", "")
LETTERS_WITH_P = ("A", "Ap", "B", "Bp", "")

Codes = npt.NDArray[np.int64]
Relation = tuple[Codes, ...]  # [n]: the pairs (word, μ) of words of length n

WORD = 32  # first bit of the word in a code
LANE = 8  # bits for each variable; words are shorter than this
MU = (1 << WORD) - 1


def unary(inner: Formula) -> Iterator[Formula]:
    yield cel.As(inner, "x")
    yield cel.Iteration(inner)
    yield cel.ContiguousIteration(inner)
    scope = sorted(inner.binds())
    for variable in scope:
        yield cel.Filter(inner, variable, P)
    if len(scope) > 1:  # with one variable in scope, all events are that variable's
        yield cel.Filter(inner, None, P)


def binary(left: Formula, right: Formula) -> Iterator[Formula]:
    yield cel.Sequence(left, right)
    yield cel.Contiguous(left, right)
    if repr(left) <= repr(right):
        yield cel.Or(left, right)


@cache
def with_operators(count: int) -> tuple[Formula, ...]:
    """All formulas with exactly `count` operators, in a stable order."""
    if count == 0:
        return A, B
    found = [f for inner in with_operators(count - 1) for f in unary(inner)]
    for left_count in range(count):
        sides = product(with_operators(left_count), with_operators(count - 1 - left_count))
        found += [f for left, right in sides for f in binary(left, right)]
    return tuple(found)


def atoms(formula: Formula) -> Iterator[cel.Event]:
    """The atoms, left to right."""
    if isinstance(formula, cel.Event):
        yield formula
    for child in formula.children():
        yield from atoms(child)


def representatives(count: int) -> list[Formula]:
    """The formulas with `count` operators whose first atom is A; every other is one of these with A and B exchanged."""
    return [f for f in with_operators(count) if next(atoms(f)) == A]


def uses_p(formula: Formula) -> bool:
    return isinstance(formula, cel.Filter | cel.FilterAny) or any(uses_p(child) for child in formula.children())


class Words:
    """The meaning of formulas on all words over `letters`, up to a length. A letter is a string of true names."""

    def __init__(self, letters: Sequence[str], length: int) -> None:
        if length > LANE:
            raise ValueError(f"words of length {length} do not fit in lanes of {LANE} bits")
        self.letters = letters
        self.length = length
        self.of = cache(self._of)  # subformulas are shared by many formulas

    def streams(self) -> list[list[oracle.Event]]:
        """All words of the full length, in the order of their numbers."""
        rows = product([oracle.Event(frozenset(letter)) for letter in self.letters], repeat=self.length)
        return [list(row) for row in rows]

    def expected(self, formula: Formula) -> Codes:
        """The matches in all `streams()`: stream number and μ of each, as codes, sorted, each once."""
        parts = []
        for n, codes in enumerate(self.of(formula)):
            suffixes = len(self.letters) ** (self.length - n)
            stream = (codes >> WORD)[:, None] * suffixes + np.arange(suffixes)
            parts.append(((stream << WORD) | (codes & MU)[:, None]).ravel())
        return np.sort(np.concatenate(parts))

    def _of(self, formula: Formula) -> Relation:
        match formula:
            case cel.Event(type, marks):
                return self._atom(type, marks)
            case cel.As(inner, variable):
                lane = LANE * VARIABLES.index(variable)
                return tuple(np.unique(codes | (occurrences(codes) << lane)) for codes in self.of(inner))
            case cel.Sequence(left, right):
                return self._concatenate(self.of(left), self.of(right))
            case cel.Contiguous(left, right):
                return self._concatenate(self.of(left), starting_at_once(self.of(right)))
            case cel.Iteration(inner):
                return self._iterate(self.of(inner), self.of(inner))
            case cel.ContiguousIteration(inner):
                return self._iterate(self.of(inner), starting_at_once(self.of(inner)))
            case cel.Or(left, right):
                return union(self.of(left), self.of(right))
            case cel.Filter(inner, variable, predicate):
                return self._filter(self.of(inner), variable, predicate.sql)
        raise TypeError(f"not a formula: {formula!r}")

    def _letters_with(self, name: str | None) -> npt.NDArray[np.bool_]:
        return np.array([name is None or name in letter for letter in self.letters])

    def _atom(self, type: str | None, marks: frozenset[str]) -> Relation:
        accepted = self._letters_with(type)
        result = [np.empty(0, np.int64)]
        for n in range(1, self.length + 1):
            words = np.arange(len(self.letters) ** n)
            words = words[accepted[words % len(self.letters)]]
            mu = sum(1 << (LANE * VARIABLES.index(variable) + n - 1) for variable in marks)
            result.append((words << WORD) | mu)
        return tuple(result)

    def _concatenate(self, left: Relation, right: Relation) -> Relation:
        """All (uv, μ₁ ∪ shifted μ₂) that are not too long."""
        result = []
        for n in range(self.length + 1):
            parts = [np.empty(0, np.int64)]
            for a in range(1, n):
                base = len(self.letters) ** (n - a)
                first = (((left[a] >> WORD) * base) << WORD) | (left[a] & MU)
                second = ((right[n - a] >> WORD) << WORD) | ((right[n - a] & MU) << a)
                parts.append((first[:, None] + second[None, :]).ravel())
            result.append(np.unique(np.concatenate(parts)))
        return tuple(result)

    def _iterate(self, first: Relation, again: Relation) -> Relation:
        """`first`, followed by any number of rounds of `again`; a round has at least one event, so this ends."""
        total = rounds = first
        for _ in range(self.length - 1):
            rounds = self._concatenate(rounds, again)
            total = union(total, rounds)
        return total

    def _filter(self, relation: Relation, variable: str | None, name: str) -> Relation:
        holds = self._letters_with(name)
        result = []
        for n, codes in enumerate(relation):
            failing = np.zeros(len(codes), np.int64)  # bit k: the letter at k does not satisfy the predicate
            for k in range(n):
                letter = (codes >> WORD) // len(self.letters) ** (n - 1 - k) % len(self.letters)
                failing |= np.where(holds[letter], 0, 1 << k)
            if variable is None:
                chosen = occurrences(codes)
            else:
                chosen = (codes >> (LANE * VARIABLES.index(variable))) & ((1 << LANE) - 1)
            result.append(codes[(chosen & failing) == 0])
        return tuple(result)


def occurrences(codes: Codes) -> Codes:
    """The positions that some variable holds, as bits."""
    positions = np.zeros(len(codes), np.int64)
    for lane in range(len(VARIABLES)):
        positions |= codes >> (LANE * lane)
    return positions & ((1 << LANE) - 1)


def starting_at_once(relation: Relation) -> Relation:
    """The pairs whose first event is the first letter of the word."""
    return tuple(codes[(occurrences(codes) & 1) == 1] for codes in relation)


def union(left: Relation, right: Relation) -> Relation:
    return tuple(np.union1d(a, b) for a, b in zip(left, right, strict=True))


def code_of(stream: int, match: oracle.Match) -> int:
    """One match of the plain oracle as a code, to compare."""
    mu = sum(
        1 << (LANE * VARIABLES.index(variable) + position) for variable, positions in match[2] for position in positions
    )
    return (stream << WORD) | mu


# ---------------------------------------------------------------- all operators

SHORT = Window("time", 2), Window("time", 2, strict=True), Window("events", 2)
RULES = ("STRICT", "NXT", "LAST", "MAX")


def around_one(inner: Formula) -> Iterator[Formula]:
    """Every operator with one operand around the formula."""
    yield from unary(inner)
    for low, high in ((0, 1), (0, None), (2, 2), (1, 2), (2, 3), (2, None)):
        yield cel.Repeat(inner, low, high)
    yield cel.Repeat(inner, 2, 3, contiguous=True)
    yield cel.Repeat(inner, 0, 1, contiguous=True)
    yield cel.Start(inner)
    scope = sorted(inner.binds())
    for variable in scope:
        yield cel.Project(inner, frozenset({variable}))
    if len(scope) > 1:
        yield cel.FilterAny(inner, tuple((variable, P) for variable in scope))
    for rule in RULES:
        yield cel.Strategy(rule, inner)
    yield cel.Within(inner, SHORT[0])
    yield cel.Within(inner, SHORT[2])


def around_two(left: Formula, right: Formula) -> Iterator[Formula]:
    """Every operator with two operands around the formulas; a negated part is A, B or one of the two."""
    for operator in (cel.Sequence, cel.Contiguous, cel.Or, cel.And, cel.All, cel.Unless):
        yield operator(left, right)
    for veto in (A, B):
        yield cel.Absent(left, (veto,), right)


@cache
def alone() -> tuple[Formula, ...]:
    """Every operator over A and B, the first atom A."""
    found = list(around_one(A))
    for right in (A, B):
        found += around_two(A, right)
    return tuple(found)


@cache
def pairs() -> tuple[Formula, ...]:
    """Every operator around every other, in every place, the other places filled with A or B."""
    found: list[Formula] = []
    for inner in alone():
        found += around_one(inner)
        for atom in (A, B):
            found += [*around_two(inner, atom), *around_two(atom, inner)]
            found.append(cel.Absent(A, (inner,), atom))
    one_variable = [f for f in alone() if f.binds() == {"A"}]
    found += [cel.And(left, right) for left, right in product(one_variable, repeat=2) if repr(left) < repr(right)]
    return tuple(dict.fromkeys(f for f in found if valid(f)))


@cache
def absences() -> tuple[Formula, ...]:
    """Absences before and after every operator, and every operator absent, in all kinds of windows."""
    found: list[Formula] = []
    for inner in alone():
        for window in SHORT:
            for a, b in ((A, inner), (B, inner), (inner, A), (cel.Sequence(A, B), inner)):
                found.append(cel.NotAfter(b, (a,), window))
                found.append(cel.NotBefore((a,), b, window))
            both = cel.NotAfter(cel.NotBefore((B,), inner, window), (A, B), window)
            found += [both, cel.As(both, "x"), cel.Project(both, frozenset({"A"}))]
    return tuple(f for f in found if valid(f))


def neighbour(formula: Formula, last: bool) -> Formula:
    """The part of a chain of ; and ! that stands at its end or beginning."""
    match formula:
        case cel.Sequence(left, right) | cel.Absent(left, _, right):
            return neighbour(right if last else left, last)
    return formula


def _valid(formula: Formula) -> bool:
    match formula:
        case cel.Absent(left, _, right):
            sides = [neighbour(left, last=True), neighbour(right, last=False)]
        case cel.NotBefore(_, inner):
            sides = [neighbour(inner, last=False)]
        case cel.NotAfter(inner):
            sides = [neighbour(inner, last=True)]
        case _:
            sides = []
    holds_none = cel.And | cel.All | cel.Unless | cel.Start | cel.Project | cel.Strategy | cel.Within
    if isinstance(formula, holds_none | cel.Absent | cel.NotBefore | cel.NotAfter):
        sides += formula.children()
    return not any(side.may_be_empty() for side in sides) and all(map(_valid, formula.children()))


def valid(formula: Formula) -> bool:
    """Whether the language would allow it: zero copies only where they may pass through."""
    return not formula.may_be_empty() and _valid(formula)


def looks_around(formula: Formula) -> bool:
    """Whether more than the events i … j decides about ⟦formula⟧(i, j)."""
    match formula:
        case cel.As(inner) | cel.Filter(inner) | cel.FilterAny(inner) | cel.Project(inner):
            return looks_around(inner)
    return isinstance(formula, cel.NotBefore | cel.NotAfter)


class Shared(oracle.Meaning):
    """The plain oracle, for streams whose times are their positions: what a word means is found out once for all."""

    words: dict[tuple[Formula, tuple[frozenset[str], ...]], frozenset[oracle.Complex]] = {}

    def of(self, formula: Formula, i: int, j: int) -> frozenset[oracle.Complex]:
        if looks_around(formula):
            return super().of(formula, i, j)
        key = formula, tuple(event.true for event in self.stream[i : j + 1])
        if key not in self.words:
            if len(self.words) > 300_000:
                self.words.clear()
            self.words[key] = moved(self.definition(formula, i, j), -i)
        return moved(self.words[key], i) if i else self.words[key]


def moved(found: Iterable[oracle.Complex], by: int) -> frozenset[oracle.Complex]:
    return frozenset((s + by, e + by, frozenset((v, position + by) for v, position in mu)) for s, e, mu in found)


START, END = 24, 28  # first bits, in a code, of a match's start and end, above the lanes of the variables


def full_code(stream: int, match: oracle.Match) -> int:
    """As `code_of`, with the match's start and end, which projection may hide."""
    start, end, _ = match
    return code_of(stream, match) | (start << START) | (end << END)


def timed_streams(letters: Sequence[str], length: int) -> list[list[oracle.Event]]:
    """All words of the length, in the order of their numbers; times are positions."""
    return [
        [oracle.Event(frozenset(letter), n) for n, letter in enumerate(word)]
        for word in product(letters, repeat=length)
    ]
