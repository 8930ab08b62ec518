"""The positions of an AND: pairs of positions that one event can stand at in both sides.

    (A ; ANY u ; B) AND (A ; ANY+ u ; B)    A0 u1 B2 and A3 u4 B5 make the pairs A0·A3, u1·u4, B2·B5

Both sides have the same events in the same variables. So each event of a match stands at one position of either side,
and what lies between two events lies between them on both: an edge of pairs is an edge of each side, contiguous if one
of them is, without what either must not have in between. Only those pairs are made that a match can go through.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import product
from typing import NamedTuple

from planner.automata.position_parts import Edge, NoPositions, Part, Position
from runtime.marks import is_hidden

MOST_PAIRS = 256
Pair = tuple[int, int]


class Both(NamedTuple):
    """The part that an AND is, with its positions, whose numbers begin at one that is given, and its edges."""

    part: Part
    positions: list[Position]
    edges: list[Edge]


def both(left: Part, right: Part, positions: list[Position], edges: list[Edge], first: int) -> Both:
    """The pairs of two parts, by the numbers of their positions; NoPositions where they are too many, or none."""
    follow = defaultdict[int, list[Edge]](list)
    for edge in edges:
        follow[edge.left].append(edge)

    def alike(p: int, q: int) -> bool:
        return _visible(positions[p]) == _visible(positions[q])

    begins = [(p, q) for p, q in product(left.first, right.first) if alike(p, q)]
    todo, found = list(begins), dict[Pair, list[tuple[Pair, Edge]]]()
    while todo:
        pair = todo.pop()
        if pair in found:
            continue
        own = [(a, b) for a, b in product(follow[pair[0]], follow[pair[1]]) if alike(a.right, b.right)]
        found[pair] = [((a.right, b.right), _edge(a, b)) for a, b in own]
        todo += [to for to, _ in found[pair]]
        if len(found) > MOST_PAIRS:
            raise NoPositions(f"the sides of an AND go together in more than {MOST_PAIRS} ways")
    ends = [(p, q) for p, q in found if p in left.last and q in right.last]
    useful = _leading_to(ends, found)
    number = {pair: n for n, pair in enumerate(sorted(useful), first)}
    if not number:
        raise NoPositions("no events are a match of both sides of an AND")
    joined = [
        Edge(number[pair], number[to], edge.contiguous, edge.absences, edge.inside)
        for pair in number
        for to, edge in found[pair]
        if to in number
    ]
    part = Part(tuple(number[p] for p in begins if p in number), tuple(number[p] for p in ends))
    return Both(part, [_position(positions[p], positions[q]) for p, q in number], joined)


def _visible(position: Position) -> frozenset[str]:
    """The variables that both sides must have; what only we know of may differ."""
    found = frozenset(mark for mark in position.marks if not is_hidden(mark))
    if not found:
        raise NoPositions("PROJECT leaves events of an AND without a variable")
    return found


def _position(a: Position, b: Position) -> Position:
    return Position(
        a.guard | b.guard, a.marks | b.marks, a.asks + b.asks, a.lacks | b.lacks, a.branches | b.branches,
        a.starts or b.starts,
    )  # fmt: skip


def _edge(a: Edge, b: Edge) -> Edge:
    absences = tuple(dict.fromkeys(a.absences + b.absences))
    return Edge(a.left, a.right, a.contiguous or b.contiguous, absences, a.inside + b.inside)


def _leading_to(ends: list[Pair], found: dict[Pair, list[tuple[Pair, Edge]]]) -> set[Pair]:
    """The pairs from which one of these can be reached."""
    before = defaultdict[Pair, list[Pair]](list)
    for pair, own in found.items():
        for to, _ in own:
            before[to].append(pair)
    seen, todo = set(ends), list(ends)
    while todo:
        more = set(before[todo.pop()]) - seen
        seen |= more
        todo += more
    return seen
