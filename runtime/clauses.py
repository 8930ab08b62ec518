"""What conditions on several events ask, as data: of which variables events are chosen, and what is looked at of them.

`WHERE b.v > a.v OR b.w > 0` is one clause with the choices b and a, a comparison of two operands, and a test of one:

    Compared(choices=(b, a), comparisons=(((0, 0, v), ">", (1, 0, v)),), tests=((0, 0, guard of w > 0),))

Variables are masks, terms and guards are numbers, as in runtime.nodes, which has the operators that ask this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import NamedTuple

from runtime.own import Own
from runtime.relations import Relation

Numbering = Callable[[int], int]  # the old number of a guard → the new one


class Choice(NamedTuple):
    """One variable of a Compare, by its mask; `in_a_row`: so many consecutive events of it are chosen (1: each)."""

    mask: int
    in_a_row: int


class Operand(NamedTuple):
    """What a side of a Compare looks at: of a choice (its number) the earlier (0, also the only one) or the later event
    (1), a term by its number, or a guard by its bit."""

    choice: int
    which: int
    number: int


class Compared(NamedTuple):
    """Q₁ OR …, a clause with comparisons of events: for all choices some side must hold.

    comparisons: (left, operator, right) over terms; tests: guards; related: a relation and its operands, terms too.
    """

    choices: tuple[Choice, ...]
    comparisons: tuple[tuple[Operand, str, Operand], ...]
    tests: tuple[Operand, ...] = ()
    related: tuple[tuple[tuple[Operand, ...], Relation], ...] = ()

    def with_guards(self, number: Numbering) -> Compared:
        return self._replace(tests=tuple(o._replace(number=number(o.number)) for o in self.tests))


class Register(NamedTuple):
    """An aggregate that a run holds (runtime.monoids): of the events with `mask`, of a term (-1: of the events
    themselves), whose values are `floating` or whole. `key`: the term of MAX_BY's key, `floating_key` or not. `scale`:
    what it gives is a whole number of so many digits after the point. `own`: the user's own function."""

    function: str
    mask: int
    term: int
    floating: bool = False
    key: int = -1
    floating_key: bool = False
    scale: int = 0
    own: Own | None = None


class Measure(NamedTuple):
    """A side of a Measured: register `left` beside a number of its scale, or beside register `other`."""

    left: int
    op: str
    number: int | float | Fraction = 0
    other: int | None = None


NEGATED = -1


class Profiles(NamedTuple):
    """Of which variables events are chosen, and what of each is looked at: terms, then guards, by their numbers.

    `levels[k]`: where choice k is bound: 0 in what the Across stands around, n in the Pending of that level, NEGATED in
    the negated part.
    """

    choices: tuple[Choice, ...]
    terms: tuple[tuple[int, ...], ...]
    guards: tuple[tuple[int, ...], ...]
    levels: tuple[int, ...]

    def with_guards(self, number: Numbering) -> Profiles:
        return self._replace(guards=tuple(tuple(map(number, own)) for own in self.guards))


class Clause(NamedTuple):
    """An OR, as Compared. Here Operand.number is a place in a choice's profile."""

    comparisons: tuple[tuple[Operand, str, Operand], ...]
    tests: tuple[Operand, ...]
    related: tuple[tuple[tuple[Operand, ...], Relation], ...] = ()

    @property
    def operands(self) -> Iterator[Operand]:
        """All that its sides look at."""
        for left, _, right in self.comparisons:
            yield from (left, right)
        for operands, _ in self.related:
            yield from operands
        yield from self.tests


class Deciding(NamedTuple):
    """By which clauses a match of the Candidate of this number vetoes what is around it: all of them must hold."""

    number: int
    profiles: Profiles
    clauses: tuple[Clause, ...]

    def with_guards(self, number: Numbering) -> Deciding:
        return self._replace(profiles=self.profiles.with_guards(number))
