"""What a formula means, evaluated as slowly and as plainly as it is defined.

The table of operators of the semantics page, line by line: `Meaning.of(φ, i, j)` is ⟦φ⟧(i, j). It shares the
classes of planner.cel with the rest of the project and nothing else. When an engine disagrees with this file,
first decide which of them the papers support.

A complex event is (s, e, μ). Here μ is a set of pairs (variable, position), so that the pointwise union of two is
the union of two sets. The first event of a match is always marked, but s is kept beside μ all the same: the
definition has it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from planner import cel

Mu = frozenset[tuple[str, int]]
Complex = tuple[int, int, Mu]
Match = tuple[int, int, frozenset[tuple[str, frozenset[int]]]]


class TooLarge(Exception):
    """A set of complex events grew beyond the limit that the caller set (there may be 2ⁿ)."""


@dataclass(frozen=True)
class Event:
    """One row: `true` has the types that accept it and the conditions (Predicate.sql) that are TRUE for it."""

    true: frozenset[str]
    time: int | float = 0
    key: Hashable = None


@dataclass(frozen=True)
class Window:
    """WITHIN: `time` bounds time(e) − time(s) by `size` (strict: below it); `events` asks for e − s < size."""

    kind: str
    size: int | float
    strict: bool = False

    def holds(self, first: int, last: int, stream: Sequence[Event]) -> bool:
        if self.kind == "events":
            return last - first < self.size
        if self.kind == "time":
            duration = stream[last].time - stream[first].time
            return duration < self.size if self.strict else duration <= self.size
        raise ValueError(f"not a kind of window: {self.kind!r}")


def join(left: Iterable[Complex], right: Iterable[Complex]) -> Iterator[Complex]:
    """C₁ ∪ C₂ for every choice: the least start, the greatest end, μ pointwise."""
    for (s1, e1, mu1), (s2, e2, mu2) in product(left, right):
        yield min(s1, s2), max(e1, e2), mu1 | mu2


def starting_at(start: int, found: Iterable[Complex]) -> list[Complex]:
    return [c for c in found if c[0] == start]


class Meaning:
    """⟦·⟧ over one stream. `limit` bounds the size of any set that is built."""

    def __init__(self, stream: Sequence[Event], limit: int | None = None) -> None:
        self.stream = stream
        self.limit = limit
        self.known: dict[tuple[cel.Formula, int, int], frozenset[Complex]] = {}

    def of(self, formula: cel.Formula, i: int, j: int) -> frozenset[Complex]:
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

    def definition(self, formula: cel.Formula, i: int, j: int) -> Iterator[Complex]:
        """The line of the table for this operator; a complex event may be listed more than once."""
        match formula:
            case cel.Event(type, marks):
                if type is None or type in self.stream[j].true:
                    yield j, j, frozenset((variable, j) for variable in marks)
            case cel.As(inner, variable):
                for s, e, mu in self.of(inner, i, j):
                    yield s, e, mu | {(variable, position) for _, position in mu}
            case cel.Sequence(left, right):
                for k in range(i, j):
                    yield from join(self.of(left, i, k), self.of(right, k + 1, j))
            case cel.Contiguous(left, right):
                for k in range(i, j):
                    yield from join(self.of(left, i, k), starting_at(k + 1, self.of(right, k + 1, j)))
            case cel.Iteration(inner):
                yield from self.of(inner, i, j)
                for k in range(i, j):
                    yield from join(self.of(inner, i, k), self.of(formula, k + 1, j))
            case cel.ContiguousIteration(inner):
                yield from self.of(inner, i, j)
                for k in range(i, j):
                    yield from join(self.of(inner, i, k), starting_at(k + 1, self.of(formula, k + 1, j)))
            case cel.Or(left, right):
                yield from self.of(left, i, j)
                yield from self.of(right, i, j)
            case cel.Filter(inner, variable, predicate):
                for s, e, mu in self.of(inner, i, j):
                    chosen = {position for name, position in mu if variable is None or name == variable}
                    if all(predicate.sql in self.stream[position].true for position in chosen):
                        yield s, e, mu
            case _:
                raise TypeError(f"not a formula: {formula!r}")


def as_match(complex_event: Complex) -> Match:
    """The complex event as it is output: without the planner's own variables, positions grouped by variable."""
    start, end, mu = complex_event
    bound: dict[str, set[int]] = {}
    for variable, position in mu:
        if not variable.startswith("@"):
            bound.setdefault(variable, set()).add(position)
    return start, end, frozenset((variable, frozenset(positions)) for variable, positions in bound.items())


def evaluate(
    formula: cel.Formula, stream: Sequence[Event], window: Window | None = None, limit: int | None = None
) -> set[Match]:
    """All matches of the formula in the stream: the answers ⟦formula⟧(0, n) at every position n, inside the window.

    TooLarge if some set of complex events on the way has more than `limit`.
    """
    meaning = Meaning(stream, limit)
    return {
        as_match(found)
        for last in range(len(stream))
        for found in meaning.of(formula, 0, last)
        if window is None or window.holds(found[0], found[1], stream)
    }


def split(stream: Iterable[Event]) -> dict[Hashable, list[Event]]:
    """PARTITION BY: the substream of every key, in order. None (NULL) is a key like another."""
    parts: dict[Hashable, list[Event]] = {}
    for event in stream:
        parts.setdefault(event.key, []).append(event)
    return parts


def evaluate_partitioned(
    formula: cel.Formula, stream: Iterable[Event], window: Window | None = None, limit: int | None = None
) -> dict[Hashable, set[Match]]:
    """The matches of every key's substream, with positions relative to it."""
    return {key: evaluate(formula, part, window, limit) for key, part in split(stream).items()}
