"""Negated parts while a pattern is translated: placeholders, until all conditions are known.

A negated part is translated where it stands, but conditions from outside may still belong to it. So it is first a
placeholder, an atom whose mark is its number, and takes its place in the formula when all conditions are known:

    A ; !B ; C WHERE B.v > 1     A ; NOT placeholder 0 ; C, with vetoes = [B], then [B FILTER v > 1]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from cersql.binding import projection
from cersql.binding.booleans import OrOf
from cersql.binding.conditions import Conditions
from cersql.binding.rounds import Rounds
from cersql.binding.scope import Scope
from cersql.language import syntax
from planner import cel
from planner.across import Across, Candidate
from planner.formula import Formula
from planner.query import Column
from planner.sql import Sql
from planner.terms import Window
from runtime.errors import Span
from runtime.marks import (
    placeholder,
    placeholder_number,
)

Windows = Callable[[syntax.Window | None], Window | None]
"""A window inside the pattern, or (for None) that of the clause, in the unit of the clock."""


class Negations:
    """What is known of one pattern while it is translated, negated parts above all. Remembers where predicates come
    from, and conditions left for the whole match."""

    def __init__(
        self, scope: Scope, conditions: Conditions, types: Mapping[str, str], windows: Windows,
        time: Callable[[], Column], lists: bool = False,
    ) -> None:  # fmt: skip
        """`types`: what each type demands of a row; `time`: the column that created events have their time in;
        `lists`: every match is wanted, so that Spark can compute conditions on whole ones."""
        self.scope, self.conditions, self.types, self.windows, self.lists = scope, conditions, types, windows, lists
        self.origins: dict[str, Sql] = {}
        self.warnings: list[str] = []
        self.on_match: list[OrOf] = []
        self.vetoes: list[Formula] = []
        self.across: set[int] = set()  # the negated parts that are compared with what is around them
        self.agreed: list[str] = []
        self.copies = 1  # how many ways to match these make of a pattern
        self.eithers: list[Span] = []  # where an OR of conditions on several events together became an OR of formulas
        self.lifted: list[tuple[syntax.Text, str]] = []  # conditions of single events that speak of others, and whose
        self.projects: list[cel.Project] = []  # kept, so that their identities stay theirs
        self.narrowed: dict[int, projection.Limits] = {}
        self.rounds = Rounds(conditions, time)

    def _parts_in(self, formula: Formula) -> Iterator[int]:
        """The numbers of the negated parts of a formula, and of those inside them."""
        for node in formula.walk():
            number = number_of(node)
            if number is not None:
                yield number
                yield from self._parts_in(self.vetoes[number])

    def _negated(self, formula: Formula) -> dict[str, frozenset[int]]:
        """The variables that only negated parts of a formula bind, each with those parts."""
        found: dict[str, frozenset[int]] = {}
        for number in self._parts_in(formula) if self.vetoes else ():
            for mark in self.vetoes[number].binds() - formula.binds():
                found[mark] = found.get(mark, frozenset()) | {number}
        return found

    def _placed(self, formula: Formula) -> Formula:
        """The formula with every negated part in its place."""
        if not self.vetoes:
            return formula
        number = number_of(formula)
        if number is None:
            return formula.rebuilt(self._placed)
        veto = self.vetoes[number].rebuilt(self._placed)
        return Candidate(veto, number) if number in self.across else veto

    def _copied(self, formula: Formula, numbers: dict[int, int]) -> Formula:
        """The formula with negated parts of its own, which can be filtered apart from those that it was made of.

        `numbers`: the new ones by the old ones.
        """
        if not any(self._parts_in(formula)) and not any(number_of(node) is not None for node in formula.walk()):
            return formula
        number = number_of(formula)
        if number is not None:
            self.vetoes.append(self._copied(self.vetoes[number], numbers))
            numbers[number] = len(self.vetoes) - 1
            if number in self.across:
                self.across.add(numbers[number])
            return cel.Event(None, frozenset({placeholder(numbers[number])}))
        made = formula.rebuilt(lambda inner: self._copied(inner, numbers))
        if isinstance(made, Across):
            made = replace(made, number=numbers[made.number])
        if isinstance(made, cel.Project):
            self.projects.append(made)
            self.narrowed[id(made)] = self.narrowed[id(formula)]
        return made

    def _narrow(self, formula: Formula, negated: dict[str, frozenset[int]]) -> None:
        """Conditions from here on see what PROJECT has left of the columns inside the formula."""
        if not any(self.narrowed.values()):
            return
        found = projection.limits(formula, self.narrowed)
        for mark, numbers in negated.items():
            (number, *_) = numbers
            found[mark] = projection.limits(self.vetoes[number], self.narrowed).get(mark)
        self.conditions.limits = found


def number_of(formula: Formula) -> int | None:
    """Which negated part it holds the place of."""
    if isinstance(formula, cel.Event) and formula.type is None:
        (mark, *_) = formula.marks
        return placeholder_number(mark)
    return None
