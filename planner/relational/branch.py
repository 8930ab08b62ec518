"""A branch: one way in which a formula can match, as a join of so many events and of what must not happen beside them.

    A a ; (B b OR C c)    two branches: a join of an A with a later B, and one of an A with a later C
    SEQ(A a, !B, C c)     one branch: a join of two, without those for which a B lies between (an anti-join)

A match of the formula is a row of one of its branches (or the same of several). Source: the mapping of [INTER], whose
operators act on the events of a window; here the window is one more condition of the join.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from planner.relational.conditions import At, Condition, Gapless, Guard, Near, Ordered, Unrelated
from planner.terms import Window


@dataclass(frozen=True)
class Slot:
    """An event of a join: a row that satisfies the guard, and the variables that it is bound to. `number` is the
    event's own in the whole plan."""

    number: int
    guard: Guard
    marks: frozenset[str]

    @property
    def type(self) -> str | None:
        return next((part for part in self.guard if isinstance(part, str)), None)


@dataclass(frozen=True)
class Absence:
    """What must not happen: no match of `branch` fulfils the conditions, which mention its events and those around it.

    `number`: an Across around it still has to say which matches of it veto (planner.across).
    """

    branch: Branch
    conditions: tuple[Condition, ...]
    number: int | None = None

    def searched(self, at: At) -> Absence:
        return replace(self, conditions=tuple(condition.searched(at) for condition in self.conditions))

    @property
    def searches(self) -> bool:
        return any(condition.searches for condition in self.conditions)

    def is_of(self, events: Collection[int]) -> bool:
        """Does it ask of these events alone?"""
        return all(condition.is_of({*events, *self.branch.events}) for condition in self.conditions)


@dataclass(frozen=True)
class Branch:
    """`first` and `last`: the events of which the earliest begins and the latest ends the match; `before`: the pairs of
    events of which one is known to lie before the other. Without slots it is the match of zero copies."""

    slots: tuple[Slot, ...] = ()
    conditions: tuple[Condition, ...] = ()
    absences: tuple[Absence, ...] = ()
    first: tuple[int, ...] = ()
    last: tuple[int, ...] = ()
    before: frozenset[tuple[int, int]] = frozenset()

    @property
    def start(self) -> At:
        return At(self.first)

    @property
    def end(self) -> At:
        return At(self.last, last=True)

    @property
    def events(self) -> tuple[int, ...]:
        """The numbers of its events."""
        return tuple(slot.number for slot in self.slots)

    def bound(self, variable: str | None = None) -> tuple[int, ...]:
        """The events of a variable; None: of any."""
        return tuple(slot.number for slot in self.slots if (variable in slot.marks if variable else slot.marks))

    def variables(self) -> frozenset[str]:
        return frozenset[str]().union(*(slot.marks for slot in self.slots))

    def asking(self, *conditions: Condition) -> Branch:
        return replace(self, conditions=(*self.conditions, *conditions))

    def without(self, *absences: Absence) -> Branch:
        return replace(self, absences=(*self.absences, *absences))

    def searched(self, at: At) -> Branch:
        """The branch with `at` for where its search begins."""
        conditions = tuple(condition.searched(at) for condition in self.conditions)
        return replace(self, conditions=conditions, absences=tuple(absence.searched(at) for absence in self.absences))

    def in_order(self, slots: tuple[int, ...]) -> tuple[int, ...] | None:
        """The events from the first to the last; None if it is not known which is which."""
        ordered = sorted(slots, key=lambda slot: sum((other, slot) in self.before for other in slots))
        pairs = pairwise(ordered)
        return tuple(ordered) if all(pair in self.before for pair in pairs) else None

    def within(self, window: Window) -> Branch:
        """The matches that fit the window. What lies between is near as well, which a join can use before it has all
        events."""
        pairs = {(f, e) for f in self.first for e in self.last if f != e}
        implied = {(f, slot.number) for f in self.first for slot in self.slots if (f, slot.number) in self.before}
        return self.asking(*(Near(f, e, window) for f, e in sorted(pairs | implied)))

    def gapless(self) -> Branch:
        """The matches whose events are neighbours: STRICT."""
        events = self.bound()
        ordered = self.in_order(events)
        if ordered is None:
            return self.asking(Gapless(events))
        steps = pairwise(ordered)
        return self.asking(*(Ordered(At((right,)), "=", At((left,), plus=1)) for left, right in steps))

    def absent(self, *conditions: Condition, number: int | None = None) -> Absence:
        """This branch as what must not happen. What it asks of where its search begins is asked beside it; an anti-join
        inside it cannot ask of events that are joined later."""
        if any(not absence.is_of(self.events) for absence in self.absences):
            raise Unrelated("what must not happen asks, inside another such part, where its search begins")
        own = [c for c in self.conditions if c.is_of(self.events)]
        beside = [c for c in self.conditions if not c.is_of(self.events)]
        return Absence(replace(self, conditions=tuple(own)), (*conditions, *beside), number)

    def numbers(self) -> Iterator[int]:
        """The numbers of negated parts that no Across has decided yet, in negated parts of these, too."""
        for absence in self.absences:
            if absence.number is not None:
                yield absence.number
            yield from absence.branch.numbers()


def apart(left: Branch, right: Branch) -> tuple[Condition, ...]:
    """All of the left one lies before all of the right one."""
    return tuple(Ordered(At((a,)), "<", At((b,))) for a in left.last for b in right.first)


def followed(left: Branch, right: Branch, contiguous: bool = False) -> Branch:
    """left ; right, or left : right, as a join on the order (or on the place). Zero copies leave the other."""
    if not left.slots or not right.slots:
        return right if not left.slots else left
    behind = replace(left.end, plus=1)
    right = right.searched(behind)
    order = (Ordered(right.start, "=", behind),) if contiguous else apart(left, right)
    return Branch(
        (*left.slots, *right.slots),
        (*left.conditions, *right.conditions, *order),
        (*left.absences, *right.absences),
        left.first,
        right.last,
        left.before | right.before | {(a.number, b.number) for a in left.slots for b in right.slots},
    )


def beside(left: Branch, right: Branch) -> Branch:
    """left ALL right: any two matches; they may share events."""
    return Branch(
        (*left.slots, *right.slots),
        (*left.conditions, *right.conditions),
        (*left.absences, *right.absences),
        (*left.first, *right.first),
        (*left.last, *right.last),
        left.before | right.before,
    )
