"""Chooses by which registers the runs that wait at a place are found, and says how many an event then looks at.

A ; B WHERE A.x = B.x     by x: the runs at A0 are found by the B's own x, ONE entry
A ; B WHERE A.v < B.v     in order of v: an event takes all that pass, a RANGE
A ; B WHERE A.v < B.v AND A.w < B.w     in order of both, RANGES
A ; B WHERE A.x = B.x AND A.v < B.v     by x: all that have it are looked at, EQUAL_ONES
"""

from __future__ import annotations

from collections.abc import Iterable

from planner.automata.register_clauses import Check
from planner.automata.register_flow import Edge, Ops, of_register
from planner.automata.register_runs import NOWHERE, RunBuilder
from runtime.chain_cea import (
    EACH,
    EQUAL,
    EQUAL_ONES,
    EVERY,
    FROM_START,
    LESS,
    NOBODY,
    ONE,
    ONLY_NEAR,
    RANGE,
    RANGES,
    REFUSED,
    RESET,
    SEARCHED,
    SET,
    WINDOW,
)


def _equal_terms(ops: Ops, registers: Iterable[int]) -> dict[int, int]:
    """By register, of these: the term to which it must be equal for an edge, as it was when the event came."""
    first = {r: next(of_register(ops, r), (RESET, 0)) for r in registers}
    return {r: term for r, (kind, term) in first.items() if kind == EQUAL}


def indexes(edges: list[Edge], needed: list[set[int]], sure: list[set[int]]) -> dict[int, tuple[int, ...]]:
    """For each place the registers that its runs are found by: those that most edges ask to be equal to something.

    Only what a run can hold there tells it from others: in `A ; B ; C WHERE A.x = B.x AND B.y = C.y` an A holds x
    alone, though B asks for C.y, too, which nothing has set yet. What every run holds is better than what some do,
    since those without a value are looked at by each event; and two registers are better than one.
    """
    found: dict[int, tuple[int, ...]] = {}
    for p, held in enumerate(needed):
        asked = [frozenset(_equal_terms(edge.ops, held)) for edge in edges if edge.source == p]
        asked = [own & sure[p] or own for own in asked if own]
        wanted = {a & b for a in asked for b in asked} - {frozenset()}
        if wanted:
            best = max(wanted, key=lambda own: (sum(own <= a for a in asked), len(own), [-r for r in sorted(own)]))
            found[p] = tuple(sorted(best))
    return found


def wanted_terms(edge: Edge, index: dict[int, tuple[int, ...]]) -> tuple[int, ...]:
    """The terms by which the index of its source finds the runs for an edge; none where it asks for less."""
    registers = index.get(edge.source, ())
    terms = _equal_terms(edge.ops, registers)
    return tuple(terms[r] for r in registers) if len(terms) == len(registers) else ()


def _range(ops: Ops, register: int, kept: bool) -> tuple[int, int] | None:
    """The check (kind, term) by which an edge takes the runs of an ordered index, (EVERY, 0) if it takes all; None if
    it does more with the register than to check it once and forget it. `kept`: it is needed afterwards."""
    check = (EVERY, 0)
    for kind, term in of_register(ops, register):
        if kind in (RESET, SET):
            return check
        if (kind > SET and kind != REFUSED + EQUAL) or check[0] != EVERY:
            return None
        check = (kind, term)
    return None if kept else check


Ordering = tuple[tuple[int, int], dict[int, tuple[tuple[int, int], tuple[int, int]]]]
"""(the two registers, of which the second may be NOBODY, by the number of an edge its two checks (kind, term))."""


def ordered_places(made: RunBuilder, index: dict[int, tuple[int, ...]]) -> dict[int, Ordering]:
    """The places whose runs an ordered index finds, by one register or two.

    What must not happen may end all runs of such a place, but not some of them, nor move them.
    """
    found: dict[int, Ordering] = {}
    moving = {p for edge in made.veto_edges if edge.ops or edge.to != NOBODY for p in (edge.source, edge.to)}
    for p, registers in enumerate(made.needed):
        if len(registers) not in (1, 2) or p in index or p in moving:
            continue
        own = {e: edge for e, edge in enumerate(made.edges) if edge.source == p}
        ranges = [_ranges(made, register, own) for register in sorted(registers)]
        known = [checks for checks in ranges if checks is not None]
        if any(edge.contiguous for edge in own.values()) or len(known) < len(registers):
            continue
        first, second = (*sorted(registers), NOBODY)[:2]
        by_second = known[1] if second != NOBODY else dict.fromkeys(own, (EVERY, 0))
        found[p] = (first, second), {e: (known[0][e], by_second[e]) for e in own}
    return found


def _ranges(made: RunBuilder, register: int, own: dict[int, Edge]) -> dict[int, tuple[int, int]] | None:
    """The check of a register for each of the edges from a place, by their numbers; None if one does more with it."""
    if register == made.begun:
        return None
    found = {}
    for e, edge in own.items():
        check = _range(edge.ops, register, register in made.needed[edge.to])
        if register == made.since and edge.to in made.automaton.last:
            check = check and (LESS, WINDOW)  # it is looked at where a match ends, and has to have left the window then
        elif register != made.since and register in made.ends[edge.to]:
            return None
        if check is None:
            return None
        found[e] = check
    return found


def looks_at(
    made: RunBuilder, edge: Edge, index: dict[int, tuple[int, ...]], ordered: dict[int, Ordering], apart: bool
) -> int:
    """How many of the runs that wait at its source an event looks at for an edge (Registers)."""
    p = edge.source
    if p == FROM_START:
        return max((_searched(way.checks) for way in made.clauses.early if way.decided), default=ONE)
    if p in (NOWHERE, made.late) or edge in made.late_edges:
        return ONE
    stays = edge in made.veto_edges and not any(kind != RESET for kind, _, _ in edge.ops)
    near = nearness([f.contiguous for f in made.follow[p]])
    if stays or (not made.needed[p] and not apart and (near != 1 or edge.contiguous)):
        return ONE  # they are one, or leave the place
    if p in ordered:
        return RANGE if ordered[p][0][1] == NOBODY else RANGES
    if not wanted_terms(edge, index):
        return EACH
    own = set(index[p])
    alone = own == made.needed[p] and (len(own) == 1 or own <= made.sure[p])
    return ONE if alone and not apart and near != 1 else EQUAL_ONES


def _searched(checks: list[Check]) -> int:
    """How much of what happened before a run its first event looks at."""
    kinds = [check.kind for check in checks]
    if EQUAL in kinds:
        return ONE if len(kinds) == 1 else EQUAL_ONES
    return (ONE, RANGE)[len(kinds)] if len(kinds) < 2 else SEARCHED


def nearness(contiguous: list[bool]) -> int:
    return ONLY_NEAR if contiguous and all(contiguous) else int(any(contiguous))
