"""Chooses by which registers the runs that wait at a place are found, and says how many an event then looks at.

A ; B WHERE A.x = B.x     by x: the runs at A0 are found by the B's own x, ONE entry
A ; B WHERE A.v < B.v     in order of v: an event takes all that pass, a RANGE
A ; B WHERE A.v < B.v AND A.w < B.w     two registers: the event looks at EACH
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


def ordered_places(
    made: RunBuilder, index: dict[int, tuple[int, ...]]
) -> dict[int, tuple[int, dict[int, tuple[int, int]]]]:
    """The places whose runs an ordered index finds: the register, and for each edge (by its number) its range.

    What must not happen may end all runs of such a place, but not some of them, nor move them.
    """
    found: dict[int, tuple[int, dict[int, tuple[int, int]]]] = {}
    moving = {p for edge in made.veto_edges if edge.ops or edge.to != NOBODY for p in (edge.source, edge.to)}
    for p, registers in enumerate(made.needed):
        if len(registers) != 1 or p in index or p in moving:
            continue
        (register,) = registers
        own = {e: edge for e, edge in enumerate(made.edges) if edge.source == p}
        ranges = {e: _range(edge.ops, register, register in made.needed[edge.to]) for e, edge in own.items()}
        if register == made.since:  # it is looked at where a match ends, and has to have left the window then
            gone = (LESS, WINDOW)
            ranges = {e: range_ and (gone if edge.to in made.automaton.last else range_)
                      for (e, edge), range_ in zip(own.items(), ranges.values(), strict=True)}  # fmt: skip
        elif register == made.begun or any(register in made.ends[edge.to] for edge in own.values()):
            continue
        if not any(edge.contiguous for edge in own.values()) and None not in ranges.values():
            found[p] = register, {e: range_ for e, range_ in ranges.items() if range_ is not None}
    return found


def looks_at(made: RunBuilder, edge: Edge, index: dict[int, tuple[int, ...]], ordered: set[int], apart: bool) -> int:
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
        return RANGE
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
