"""SKIP TILL NEXT MATCH as anti-joins: no event that a run could have taken lies between two that it took.

    A a ; B b WHERE b.v > a.v      a join of A and B, without those between which a B with a greater v lies

A run that can take an event must take it; it waits for one follower only where the pattern is a sequence without
alternatives. (Position automaton: after each event there is one atom that may follow.)
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from planner import cel
from planner.across import Across
from planner.formula import Formula
from planner.relational.branch import Absence, Branch, Slot
from planner.relational.conditions import Agreeing, At, Chosen, Condition, Ordered, Passing, Unrelated


def next_matches(formula: Formula, branches: list[Branch]) -> list[Branch]:
    """The branches with what SKIP TILL NEXT MATCH asks of them. Raises Unrelated where a run has a choice."""
    if len(branches) != 1:
        raise Unrelated("under SKIP TILL NEXT MATCH a run can go on in several ways here, and must take each it can")
    if formula.contains((cel.Absent, cel.NotBefore, cel.NotAfter, Across)):
        raise Unrelated("under SKIP TILL NEXT MATCH what must not happen decides which events a run can take")
    (branch,) = branches
    ordered = branch.in_order(branch.events)
    assert ordered is not None, "all that is allowed in it is a sequence"
    number = max(ordered) + 1
    slots = {slot.number: slot for slot in branch.slots}
    for left, right in pairwise(ordered):
        if Ordered(At((right,)), "=", At((left,), last=True, plus=1)) in branch.conditions:
            continue  # behind `:` there is nothing between
        branch = branch.without(_taken_before(branch, ordered, slots[right], left, number))
        number += 1
    return [branch]


def _taken_before(branch: Branch, ordered: tuple[int, ...], slot: Slot, left: int, number: int) -> Absence:
    """No other event for `slot` lies between it and the event `left` before it."""
    known = frozenset(ordered[: ordered.index(slot.number) + 1])
    asked = [c for c in branch.conditions if isinstance(c, Chosen | Agreeing | Passing) and slot.number in c.slots]
    if any(isinstance(c, Passing) and len(c.slots) > 1 for c in asked):
        raise Unrelated("under SKIP TILL NEXT MATCH an OR of conditions on several events falls with the last of them")
    rival = Branch((replace(slot, number=number),), first=(number,), last=(number,))
    decided = [instead(c, slot.number, number) for c in asked if c.slots <= known]
    between = Ordered(At((left,)), "<", At((number,))), Ordered(At((number,)), "<", At((slot.number,)))
    return rival.absent(*between, *decided)


def instead(condition: Condition, old: int, new: int) -> Condition:
    """The condition asked of another event in place of one."""

    def of(slot: int) -> int:
        return new if slot == old else slot

    match condition:
        case Chosen(sides, decided):
            made = tuple((side, tuple(map(of, slots))) for side, slots in sides)
            return Chosen(made, frozenset(map(of, decided)))
        case Agreeing(left, right, type):
            return Agreeing((of(left[0]), left[1]), (of(right[0]), right[1]), type)
        case Passing(sides):
            return Passing(tuple(tuple((of(slot), guard) for slot, guard in side) for side in sides))
    raise TypeError(f"not a filter: {condition!r}")
