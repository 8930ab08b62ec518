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
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import product

import numpy as np
import numpy.typing as npt
import oracle

from planner import cel

P = cel.Predicate("p")
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


def unary(inner: cel.Formula) -> Iterator[cel.Formula]:
    yield cel.As(inner, "x")
    yield cel.Iteration(inner)
    yield cel.ContiguousIteration(inner)
    scope = sorted(cel.variables(inner))
    for variable in scope:
        yield cel.Filter(inner, variable, P)
    if len(scope) > 1:  # with one variable in scope, all events are that variable's
        yield cel.Filter(inner, None, P)


def binary(left: cel.Formula, right: cel.Formula) -> Iterator[cel.Formula]:
    yield cel.Sequence(left, right)
    yield cel.Contiguous(left, right)
    if repr(left) <= repr(right):
        yield cel.Or(left, right)


@cache
def with_operators(count: int) -> tuple[cel.Formula, ...]:
    """All formulas with exactly `count` operators, in a stable order."""
    if count == 0:
        return A, B
    found = [f for inner in with_operators(count - 1) for f in unary(inner)]
    for left_count in range(count):
        sides = product(with_operators(left_count), with_operators(count - 1 - left_count))
        found += [f for left, right in sides for f in binary(left, right)]
    return tuple(found)


def atoms(formula: cel.Formula) -> Iterator[cel.Event]:
    """The atoms, left to right."""
    if isinstance(formula, cel.Event):
        yield formula
    for child in cel.children(formula):
        yield from atoms(child)


def representatives(count: int) -> list[cel.Formula]:
    """The formulas with `count` operators whose first atom is A; every other is one of these with A and B exchanged."""
    return [f for f in with_operators(count) if next(atoms(f)) == A]


def uses_p(formula: cel.Formula) -> bool:
    return isinstance(formula, cel.Filter) or any(uses_p(child) for child in cel.children(formula))


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

    def expected(self, formula: cel.Formula) -> Codes:
        """The matches in all `streams()`: stream number and μ of each, as codes, sorted, each once."""
        parts = []
        for n, codes in enumerate(self.of(formula)):
            suffixes = len(self.letters) ** (self.length - n)
            stream = (codes >> WORD)[:, None] * suffixes + np.arange(suffixes)
            parts.append(((stream << WORD) | (codes & MU)[:, None]).ravel())
        return np.sort(np.concatenate(parts))

    def _of(self, formula: cel.Formula) -> Relation:
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
