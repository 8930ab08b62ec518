"""What planner.automata.positions makes a position automaton of: positions, and the edges between them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from planner.terms import Predicate

Asked = tuple[tuple[int, int], ...]  # of one clause, see runtime.position_automaton


class NoPositions(Exception):
    """A formula that no position automaton is made of; the text says why."""


class Part(NamedTuple):
    """The positions with which a part of the formula can begin and end, and do zero copies satisfy it?"""

    first: tuple[int, ...]
    last: tuple[int, ...]
    may_be_empty: bool = False


@dataclass
class Position:
    """One occurrence of an atom. `asks`: (clause, (side, guard) for each side that speaks of this event)."""

    guard: frozenset[str | Predicate]
    marks: frozenset[str]
    asks: list[tuple[int, Asked]] = field(default_factory=list)
    lacks: frozenset[int] = frozenset()  # the vetoes that its event must not be
    branches: frozenset[tuple[int, int]] = frozenset()  # (choice, branch)
    starts: bool = False  # nothing comes before its event

    def mark(self, marks: frozenset[str]) -> None:
        """Its event is marked so from now on."""
        self.marks = marks

    def ask(self, variable: str | None, predicate: Predicate) -> None:
        """Its event must satisfy the predicate, if it is one of the variable (None: any)."""
        if variable is None or variable in self.marks:
            self.guard |= {predicate}


@dataclass
class Edge:
    """That `right` can come right after `left`. `inside`: the clauses both stand in, in one round of every loop."""

    left: int
    right: int
    contiguous: bool
    absences: tuple[int, ...]
    inside: tuple[int, ...] = ()
