"""What a join of events asks: small conditions on events of the stream, each known by its number in the join.

`A a ; B b WHERE a.v < b.v WITHIN 5` joins the events 0 and 1 where 0 lies before 1, their clocks are near, and 0: v <
1: v. Conditions are data: planner.relational.sql writes them as Spark SQL, tests evaluate them without any Spark.

Each says which events it mentions (`slots`), so that a join asks it as soon as all of them are there. What asks where
the search for a part begins mentions SEARCH; `searched` puts the place there, once what stands before is known.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from planner.formula import Formula
from planner.terms import Predicate, Side, Window

Guard = frozenset[str | Predicate]
"""What is asked of one row: at most one type, and predicates."""


@dataclass(frozen=True)
class At:
    """A place in the stream: of the first (`last`: of the last) of some events, or so many after it.

    At((3,)) is where event 3 is, At((0, 2), last=True, plus=1) is just behind the later of 0 and 2.
    """

    slots: tuple[int, ...] = ()
    last: bool = False
    plus: int = 0

    def searched(self, at: At) -> At:
        """The place itself, or `at` for where the search begins."""
        return replace(at, plus=at.plus + self.plus) if self.slots == () else self


SEARCH = At()
"""Where the search for a part begins: the first place of the stream, until something stands before the part."""


class Condition:
    """Any condition."""

    __slots__ = ()

    @property
    def slots(self) -> frozenset[int]:
        """The events that it mentions."""
        raise NotImplementedError

    @property
    def searches(self) -> bool:
        """Does it ask where the search begins?"""
        return False

    def searched(self, at: At) -> Condition:
        """The same with `at` for where the search begins."""
        return self

    def is_of(self, events: Collection[int]) -> bool:
        """Does it ask of these events alone, and not where the search begins?"""
        return not self.searches and self.slots <= set(events)


@dataclass(frozen=True)
class Ordered(Condition):
    """left op right, of two places: `op` is =, <, <= or >=."""

    left: At
    op: str
    right: At

    @property
    def slots(self) -> frozenset[int]:
        return frozenset((*self.left.slots, *self.right.slots))

    @property
    def searches(self) -> bool:
        return not self.left.slots or not self.right.slots

    def searched(self, at: At) -> Condition:
        return Ordered(self.left.searched(at), self.op, self.right.searched(at))


@dataclass(frozen=True)
class Near(Condition):
    """clock(last) − clock(first) is inside the window; of a window of events, so is the difference of their places."""

    first: int
    last: int
    window: Window

    @property
    def slots(self) -> frozenset[int]:
        return frozenset((self.first, self.last))


@dataclass(frozen=True)
class Chosen(Condition):
    """Some side is TRUE of these events: each side with the events for what it looks at (planner.terms.parts_of).

    `decided`: the events that had to be chosen for the question to arise; they can be more than the sides mention.
    """

    sides: tuple[tuple[Side, tuple[int, ...]], ...]
    decided: frozenset[int]

    @property
    def slots(self) -> frozenset[int]:
        return self.decided


@dataclass(frozen=True)
class Passing(Condition):
    """Some side holds: all its events satisfy their guards. A side without events holds."""

    sides: tuple[tuple[tuple[int, Guard], ...], ...]

    @property
    def slots(self) -> frozenset[int]:
        return frozenset(slot for side in self.sides for slot, _ in side)


@dataclass(frozen=True)
class Agreeing(Condition):
    """Two events have the same value, not NULL: (event, SQL) each, both as `type`. Of one event: it is not NULL."""

    left: tuple[int, str]
    right: tuple[int, str]
    type: str

    @property
    def slots(self) -> frozenset[int]:
        return frozenset((self.left[0], self.right[0]))


@dataclass(frozen=True)
class Same(Condition):
    """Two sets of events are the same rows."""

    left: tuple[int, ...]
    right: tuple[int, ...]

    @property
    def slots(self) -> frozenset[int]:
        return frozenset((*self.left, *self.right))


@dataclass(frozen=True)
class Gapless(Condition):
    """The places of these events are an interval: STRICT."""

    events: tuple[int, ...]

    @property
    def slots(self) -> frozenset[int]:
        return frozenset(self.events)


@dataclass(frozen=True)
class Better(Condition):
    """The events of a rival are greater than a match's own in the order of NXT, LAST or MAX (planner.cel.Strategy)."""

    rule: str
    rival: tuple[int, ...]
    own: tuple[int, ...]

    @property
    def slots(self) -> frozenset[int]:
        return frozenset((*self.rival, *self.own))


def guard_of(type: str | None, *predicates: Predicate) -> Guard:
    """The guard of an event of a type (None: of any)."""
    return frozenset((*([] if type is None else [type]), *predicates))


class Unrelated(Exception):
    """A part of a formula is no finite algebra, or not here; the message is the reason."""

    def __init__(self, reason: str, part: Formula | None = None) -> None:
        super().__init__(reason)
        self.part = part
