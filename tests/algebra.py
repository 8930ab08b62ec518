"""A relational plan evaluated in Python, join by join: what planner.relational means, without any Spark.

Slow and short, as the oracle: every event of a branch is every row that satisfies its guard.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import oracle

from planner import cel
from planner.formula import Formula
from planner.relational.branch import Absence, Branch
from planner.relational.conditions import (
    Agreeing,
    At,
    Better,
    Chosen,
    Condition,
    Gapless,
    Guard,
    Near,
    Ordered,
    Passing,
    Same,
)  # fmt: skip
from planner.relational.planning import branches_of, is_ambiguous
from planner.terms import Predicate, parts_of

Row = Mapping[int, int]  # the place of each event
OPS = {"=": int.__eq__, "<": int.__lt__, "<=": int.__le__, ">=": int.__ge__}


def bounded(formula: Formula) -> Formula:
    """The formula with few rounds in each loop, for one without an end is no algebra."""
    match formula:
        case cel.Iteration(inner) | cel.ContiguousIteration(inner):
            return cel.Repeat(bounded(inner), 1, 2, isinstance(formula, cel.ContiguousIteration))
        case cel.Repeat(inner, low, None, contiguous):
            return cel.Repeat(bounded(inner), low, max(low, 1) + 1, contiguous)
    return formula.rebuilt(bounded)


def accepts(guard: Guard, event: oracle.Event) -> bool:
    return all((part.sql if isinstance(part, Predicate) else part) in event.true for part in guard)


def place(at: At, row: Row) -> int:
    """Where it is; a search that nothing stands before begins at 0."""
    return (max if at.last else min)((row[slot] for slot in at.slots), default=0) + at.plus


def holds(condition: Condition, row: Row, stream: Sequence[oracle.Event]) -> bool:
    match condition:
        case Ordered(left, op, right):
            return OPS[op](place(left, row), place(right, row))
        case Near(first, last, window):
            return oracle.fits(window, row[first], row[last], stream)
        case Chosen(sides):
            return any(chosen_holds(side, slots, row, stream) for side, slots in sides)
        case Passing(sides):
            return any(all(accepts(guard, stream[row[slot]]) for slot, guard in side) for side in sides)
        case Agreeing(left, right):
            values = [stream[row[slot]].value(sql) for slot, sql in (left, right)]
            return None not in values and values[0] == values[1]
        case Same(left, right):
            return {row[slot] for slot in left} == {row[slot] for slot in right}
        case Gapless(events):
            places = {row[slot] for slot in events}
            return not places or max(places) - min(places) + 1 == len(places)
        case Better(rule, rival, own):
            return oracle.greater(rule, *(frozenset(row[slot] for slot in slots) for slots in (own, rival)))
    raise TypeError(f"not a condition: {condition!r}")


def chosen_holds(side: object, slots: Sequence[int], row: Row, stream: Sequence[oracle.Event]) -> bool:
    picked: dict[str, dict[str, int]] = {}
    for part, slot in zip(parts_of(side), slots, strict=True):  # type: ignore[arg-type]
        picked.setdefault(part.variable, {})[part.of] = row[slot]
    return oracle.side_holds(side, picked, stream)  # type: ignore[arg-type]


def rows(branch: Branch, around: Row, more: Sequence[Condition], stream: Sequence[oracle.Event]) -> Iterator[Row]:
    """The rows of a branch beside those `around`, by its own conditions and `more`."""
    conditions, known = [*branch.conditions, *more], dict(around)

    def joined(k: int) -> Iterator[Row]:
        if k == len(branch.slots):
            if not any(occurs(absence, known, stream) for absence in branch.absences):
                yield dict(known)
            return
        slot = branch.slots[k]
        for n, event in enumerate(stream):
            if not accepts(slot.guard, event):
                continue
            known[slot.number] = n
            ready = (c for c in conditions if slot.number in c.slots and c.slots <= known.keys())
            if all(holds(condition, known, stream) for condition in ready):
                yield from joined(k + 1)
            del known[slot.number]

    assert all(c.slots <= {*branch.events, *around} for c in conditions)
    if all(holds(c, known, stream) for c in conditions if c.slots <= known.keys()):
        yield from joined(0)


def occurs(absence: Absence, row: Row, stream: Sequence[oracle.Event]) -> bool:
    assert absence.number is None, "some Across decides about it"
    assert all(c.slots <= set(absence.branch.events) for c in absence.branch.conditions), (
        "a join asks of its own events"
    )
    return next(rows(absence.branch, row, absence.conditions, stream), None) is not None


def complex_event(branch: Branch, row: Row) -> oracle.Complex:
    mu = frozenset((variable, row[slot.number]) for slot in branch.slots for variable in slot.marks)
    return place(branch.start, row), place(branch.end, row), mu


def evaluate(
    formula: Formula,
    stream: Sequence[oracle.Event],
    window: oracle.Window | None = None,
    strategy: str = "ALL",
    one_of_start: bool = False,
) -> set[oracle.Match]:
    """The matches of the relational plan. Raises Unrelated where there is none."""
    branches = branches_of(formula, window, strategy)
    found = [complex_event(branch, row) for branch in branches for row in rows(branch, {}, (), stream)]
    visible = frozenset(name for name in formula.binds() if not name.startswith("@"))
    matches = [oracle.as_match(c) for c in found]
    if not is_ambiguous(branches, visible):
        assert len(matches) == len(set(matches)), "a match is listed twice"
    if strategy in ("NXT", "LAST", "MAX"):
        found = [c for end in {c[1] for c in found} for c in oracle.select(strategy, [c for c in found if c[1] == end])]
    if one_of_start:
        found = [oracle.first_of(c for c in found if c[0] == start) for start in {c[0] for c in found}]
    return {oracle.as_match(c) for c in found}
