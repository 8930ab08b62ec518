"""Formulas that compare what must not happen with what is around it.

    SEQ(A a, !B b, C c) WHERE b.v > a.v     Across(A ; NOT Candidate(B, 0) ; C, 0, ((b.v > a.v,),))

A match of the Candidate vetoes only where its Across says so. A strategy or another negated part between the two is a
choice that waits for that: it stands in a Pending (planner.rewrite.across).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from planner.formula import Formula
from planner.terms import Asked, Side, asked


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

    def asks(self) -> Iterator[Asked]:
        return (one for sides in self.clauses for one in asked(sides))
