"""SKIP TILL NEXT MATCH as anti-joins: no event that a run could have taken lies between two that it took.

    A a ; B b WHERE b.v > a.v      a join of A and B, without those between which a B with a greater v lies
    A a ; B? b ; C c               A⋈C without those with a B or a C in between, and A⋈B⋈C, likewise from A to B

A run that can take an event must take it, for any of the events that may follow. The events of branches are the states
of the position automaton: two branches that begin alike share them, so what may follow is what follows in some branch
that begins with what the run took.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from itertools import count

from planner import cel
from planner.across import Across
from planner.formula import Formula
from planner.relational.branch import Absence, Branch, Slot
from planner.relational.conditions import Agreeing, At, Chosen, Condition, Ordered, Passing, Unrelated

Path = tuple[int, ...]


def next_matches(formula: Formula, branches: list[Branch]) -> list[Branch]:
    """The branches with what SKIP TILL NEXT MATCH asks of them. Raises Unrelated where joins cannot."""
    if formula.contains((cel.Absent, cel.NotBefore, cel.NotAfter, Across)):
        raise Unrelated("under SKIP TILL NEXT MATCH what must not happen decides which events a run can take")
    paths = [_path(branch) for branch in branches]
    follow: dict[Path, dict[int, Branch]] = defaultdict(dict)
    for branch, path in zip(branches, paths, strict=True):
        for k, slot in enumerate(path):
            follow[path[:k]].setdefault(slot, branch)
    numbers = count(max((slot for path in paths for slot in path), default=0) + 1)
    return [
        branch.without(*(absence for k in range(1, len(path)) for absence in _taken(branch, path, k, follow, numbers)))
        for branch, path in zip(branches, paths, strict=True)
    ]


def _path(branch: Branch) -> Path:
    ordered = branch.in_order(branch.events)
    assert ordered is not None, "all that is allowed in it is a sequence"
    return ordered


def _taken(
    branch: Branch, path: Path, k: int, follow: dict[Path, dict[int, Branch]], numbers: Iterator[int]
) -> Iterator[Absence]:
    """No event that some follower accepts lies between the events path[k - 1] and path[k]."""
    left, right = path[k - 1], path[k]
    if _is_next(branch, left, right):
        return  # there is nothing between
    for slot, other in follow[path[:k]].items():
        own = next(s for s in other.slots if s.number == slot)
        yield _taking(other, own, path[:k], right, next(numbers), _is_next(other, left, slot))


def _is_next(branch: Branch, left: int, right: int) -> bool:
    """Does the one follow immediately, behind `:`?"""
    return Ordered(At((right,)), "=", At((left,), last=True, plus=1)) in branch.conditions


def _taking(branch: Branch, slot: Slot, before: Path, until: int, number: int, contiguous: bool) -> Absence:
    """An event before `until` that the run could take for `slot`, by all that is decided by then."""
    known = {*before, slot.number}
    asked = [c for c in branch.conditions if isinstance(c, Chosen | Agreeing | Passing) and slot.number in c.slots]
    if any(isinstance(c, Passing) and len(c.slots) > 1 for c in asked):
        raise Unrelated("under SKIP TILL NEXT MATCH an OR of conditions on several events falls with the last of them")
    rival = Branch((replace(slot, number=number),), first=(number,), last=(number,))
    behind = At((before[-1],), plus=1)
    after = Ordered(At((number,)), "=", behind) if contiguous else Ordered(behind, "<=", At((number,)))
    decided = [instead(c, slot.number, number) for c in asked if c.slots <= known]
    return rival.absent(after, Ordered(At((number,)), "<", At((until,))), *decided)


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
