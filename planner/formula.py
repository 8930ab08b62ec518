"""A formula of CEL or ACEL as a tree: its parts, how it is walked and rebuilt, and what can be asked of any.

A class of planner.cel or planner.acel declares its parts, which are its fields that hold formulas, and its facts: which
parts are negated, does it filter, can it be empty, what does it bind. All that walks formulas reads these:

    Absent(A, (X,), B)    children A, X, B    positive A, B    negated X    binds what A and B bind

Formulas are immutable and compare by value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import ClassVar, Self

from planner.terms import Asked
from runtime.nodes import Node


class Formula:
    """Any formula. Its parts are its fields that hold formulas, by themselves or in tuples.

    `negated_fields`: those that hold what must not happen, whose events are no part of the match. `filters`: it leaves
    out some matches of its positive part, and the others as they are. `is_small`: its automaton is as large as the
    formula, so that it is built whole. `empty_by_parts`: zero copies satisfy it if they satisfy all its parts. `node`:
    the operator of a composed program that is made of the nodes of its parts, if that is all there is to it. `in_runs`:
    runs that hold registers can do it, though it is more than a sequence, a loop or an OR. `word`: what an operator
    between two patterns, or around one, is written as. `undone_by`: what an event that comes late can be, so that a
    match is none.
    """

    __slots__ = ()
    negated_fields: ClassVar[tuple[str, ...]] = ()
    filters: ClassVar[bool] = False
    is_small: ClassVar[bool] = False
    empty_by_parts: ClassVar[bool] = False
    node: ClassVar[Callable[..., Node] | None] = None
    in_runs: ClassVar[bool] = False
    word: ClassVar[str | None] = None
    undone_by: ClassVar[str | None] = None

    def head(self) -> str:
        """What `show` prints of it, without its parts."""
        raise TypeError(f"not a formula: {self!r}")

    def binds(self) -> frozenset[str]:
        """The variables that some complex event can bind."""
        return frozenset[str]().union(*(part.binds() for part in self.positive()))

    def always_binds(self) -> frozenset[str]:
        """The variables of which every complex event has an event."""
        return frozenset[str]().union(*(part.always_binds() for part in self.positive()))

    def may_be_empty(self) -> bool:
        """Do zero copies satisfy it? Only Repeat begins that."""
        return self.empty_by_parts and all(part.may_be_empty() for part in self.children())

    def looks_between(self) -> bool:
        """Does the operator itself count rows, or see what lies between events?"""
        return False

    def asks(self) -> Iterator[Asked]:
        """All that the operator itself compares."""
        return iter(())

    # ------------------------------------------------------------ parts

    def children(self) -> tuple[Formula, ...]:
        """The direct subformulas, left to right."""
        return tuple(self._parts(self._names()))

    def positive(self) -> tuple[Formula, ...]:
        """The direct subformulas whose events are part of the match: all but those of negated parts."""
        return tuple(self._parts(tuple(name for name in self._names() if name not in self.negated_fields)))

    def negated(self) -> tuple[Formula, ...]:
        """What the operator says must not happen."""
        return tuple(self._parts(self.negated_fields))

    def rebuilt(self, change: Callable[[Formula], Formula], only_positive: bool = False) -> Self:
        """The formula with each direct part changed; `only_positive`: but for what must not happen."""
        made: dict[str, object] = {}
        for name in self._names():
            value = getattr(self, name)
            if only_positive and name in self.negated_fields:
                continue
            if isinstance(value, Formula):
                made[name] = change(value)
            elif isinstance(value, tuple) and any(isinstance(part, Formula) for part in value):
                made[name] = tuple(map(change, value))
        return replace(self, **made) if made else self  # type: ignore[type-var]

    def _names(self) -> tuple[str, ...]:
        """Its fields, in their order."""
        return tuple(field.name for field in fields(self))  # type: ignore[arg-type]

    def _parts(self, names: tuple[str, ...]) -> Iterator[Formula]:
        """The formulas in these fields."""
        for name in names:
            value = getattr(self, name)
            for part in value if isinstance(value, tuple) else (value,):
                if isinstance(part, Formula):
                    yield part

    # ------------------------------------------------------------ the whole tree

    def walk(self, only_positive: bool = False) -> Iterator[Formula]:
        """The formula and all below it, from the top and the left; `only_positive`: but for what must not happen."""
        todo: list[Formula] = [self]
        while todo:
            node = todo.pop()
            yield node
            todo += reversed(node.positive() if only_positive else node.children())

    def contains(self, kinds: tuple[type[Formula], ...]) -> bool:
        """Is the formula, or one below it, of one of these kinds?"""
        return any(isinstance(part, kinds) for part in self.walk())

    def is_flat(self) -> bool:
        """Is its automaton as large as the formula, so that it is built whole?"""
        return all(part.is_small for part in self.walk())

    def sees_gaps(self) -> bool:
        """Does anything in it count rows, or see what lies between events?"""
        return any(part.looks_between() for part in self.walk())

    def compared(self) -> Iterator[Asked]:
        """Everything that is compared in the formula."""
        return (asked for part in self.walk() for asked in part.asks())

    def bindings(self, more: frozenset[str] = frozenset()) -> Iterator[tuple[str | None, str | None]]:
        """(variable, type) of every event that can be bound, in negated parts too; None for each variable, and for ANY.
        `more`: variables that what stands around the formula binds its events to."""
        for part in self.children():
            yield from part.bindings(more)

    def show(self, depth: int = 0) -> str:
        """The formula as an indented tree, one node a line; stable, used by explain."""
        return "\n".join(["  " * depth + self.head(), *(child.show(depth + 1) for child in self.children())])
