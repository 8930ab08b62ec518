"""Filters as conditions of a join: for each choice of events that a filter speaks of, one condition.

`a.v < b.v` on a branch with the events 0 of a, and 1 and 2 of b, is two conditions, on 0 and 1, and on 0 and 2; on a
branch without b it is none, and always holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise, product

from planner.relational.branch import Absence, Branch, Slot
from planner.relational.conditions import Agreeing, Chosen, Condition, Passing, Unrelated, guard_of
from planner.terms import Predicate, Side, parts_of

MOST_CHOICES = 1_000  # of the events of one condition

_IN_ROW = {"first", "middle", "last"}


def filtered(branch: Branch, variable: str | None, predicate: Predicate) -> Branch:
    """Every event of the variable (None: every event) satisfies the predicate: its own guard asks that."""
    bound = set(branch.bound(variable))
    slots = (
        Slot(slot.number, slot.guard | {predicate}, slot.marks) if slot.number in bound else slot
        for slot in branch.slots
    )
    return replace(branch, slots=tuple(slots))


def passing(branch: Branch, sides: Sequence[tuple[str | None, Predicate]]) -> Branch:
    """Some side holds of every event of its variable."""
    types = {slot.number: slot.type for slot in branch.slots}
    made = tuple(
        tuple((slot, guard_of(types[slot], predicate)) for slot in branch.bound(variable))
        for variable, predicate in sides
    )
    return branch.asking(Passing(made)) if all(made) else branch


def agreeing(branch: Branch, terms: Sequence[tuple[str | None, str]], type: str) -> Branch:
    """All events have one value, not NULL, of the attribute named for their variable: each that of the one before."""
    ordered = branch.in_order(branch.bound()) or branch.bound()
    values = {(slot, sql) for variable, sql in terms for slot in branch.bound(variable)}
    found = sorted(values, key=lambda value: (ordered.index(value[0]), value[1]))
    if len(found) == 1:
        return branch.asking(Agreeing(found[0], found[0], type))
    return branch.asking(*(Agreeing(one, other, type) for one, other in pairwise(found)))


def compared(branch: Branch, sides: Sequence[Side]) -> Branch:
    """Some side is TRUE for every choice of events."""
    return branch.asking(*choices(sides, (branch,)))


def decided(branch: Branch, number: int, clauses: Sequence[Sequence[Side]]) -> Branch:
    """What must not happen vetoes only where all clauses are TRUE, for every choice of its events and those around."""
    absences = []
    for absence in branch.absences:
        if number in absence.branch.numbers():
            raise Unrelated(
                "what must not happen is compared with events outside of a strategy or negated part around it"
            )
        if absence.number == number:
            more = (one for sides in clauses for one in choices(sides, (branch, absence.branch)))
            absence = Absence(absence.branch, (*absence.conditions, *more))
        absences.append(absence)
    return replace(branch, absences=tuple(absences))


def choices(sides: Sequence[Side], branches: Sequence[Branch]) -> Iterator[Condition]:
    """A condition for each choice of one event for each variable, or of two or three in a row."""
    named: dict[str, set[str]] = {}
    for side in sides:
        for part in parts_of(side):
            named.setdefault(part.variable, set()).add(part.of)
    options = [list(_options(variable, named[variable], branches)) for variable in named]
    number = 1
    for found in options:
        number *= len(found)
    if number > MOST_CHOICES:
        raise Unrelated(f"a condition would be asked of {number} choices of events, more than {MOST_CHOICES}")
    for chosen in product(*options):
        picked = dict(zip(named, chosen, strict=True))
        made = tuple((side, tuple(picked[part.variable][part.of] for part in parts_of(side))) for side in sides)
        yield Chosen(made, frozenset(slot for events in chosen for slot in events.values()))


def _options(variable: str, named: set[str], branches: Sequence[Branch]) -> Iterator[Mapping[str, int]]:
    """The choices of events of one variable, by what the sides call them."""
    if named == {"each"}:
        for branch in branches:
            yield from ({"each": slot} for slot in branch.bound(variable))
        return
    holding = [branch for branch in branches if branch.bound(variable)]
    events = holding[0].in_order(holding[0].bound(variable)) if len(holding) == 1 else ()
    if events is None or len(holding) > 1:
        raise Unrelated("neighbours are compared among events whose order is not known before")
    if named & _IN_ROW:
        for a, b, c in zip(events, events[1:], events[2:]):  # noqa: B905
            yield {"first": a, "middle": b, "last": c}
    else:
        for a, b in pairwise(events):
            yield {"earlier": a, "later": b, "each": b}  # beside x[i-1] a bare x is the later one
