"""What registers hold at each place of a chain-CEA, and where they are still looked at.

For `A+ a ; B b WHERE a.v < b.v`, with one register r, the edges are

    start → A0    GREATEST r, v        after it r holds something
    A0 → B1       LESS r, v; RESET r   it looks at r, and forgets it

so r is `held` at A0, and for `sure`; and it is `live` there: it can still be looked at. At B1 it is neither.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from planner.automata.register_clauses import Op
from runtime.chain_cea import (
    ANY_OF,
    BOTH,
    FAILED,
    FROM_START,
    HOLDS,
    LACKS,
    LESS,
    LOWEST,
    NOBODY,
    NOT_ALL,
    NOTE,
    NOTED,
    OWN,
    REFUSED,
    RELATES,
    RESET,
    SET,
)

Ops = list[Op]


class Edge(NamedTuple):
    source: int
    to: int  # the place a run goes to, or NOBODY
    contiguous: bool
    ops: Ops


def is_change(kind: int) -> bool:
    return kind == RESET or SET <= kind <= LOWEST or kind >= FAILED


def named_by(kind: int, register: Any, term: int) -> tuple[int, ...]:
    """The registers that an op names."""
    if kind == RELATES:
        return tuple(-1 - source for source in register if source < 0)
    if kind in (ANY_OF, HOLDS, LACKS) or OWN <= kind < BOTH:
        return ()
    return (register, term) if BOTH <= kind < REFUSED else (register,)


def _single_ops(ops: Ops) -> Iterator[Op]:
    """All ops; the sides of an OR one by one."""
    return (op for op in ops if op[0] != ANY_OF)


def of_register(ops: Ops, register: int) -> Iterator[tuple[int, int]]:
    """(kind, term) of what is done with a register, one after the other; ANY_OF or RELATES where one looks at it."""
    at = 0
    while at < len(ops):
        kind, own, term = ops[at]
        at += 1
        if kind == ANY_OF:
            if register in asked_by(ops[at : at + own], set()):
                yield ANY_OF, 0
            at += own
        elif kind == RELATES:
            if register in asked_by([(kind, own, term)], set()):
                yield RELATES, 0
        elif own == register and not OWN <= kind < BOTH:
            yield kind, term


def written_by(ops: Ops, held: set[int]) -> set[int]:
    """The registers that can hold something after the ops."""
    found = set(held)
    for kind, register, _ in _single_ops(ops):
        if kind == RESET:
            found.discard(register)
        elif SET <= kind <= LOWEST or kind >= FAILED:
            found.add(register)
    return found


def asked_by(ops: Ops, live: set[int]) -> set[int]:
    """The registers that the ops, or what comes after them, can look at."""
    found = set(live)
    for kind, register, term in reversed(list(_single_ops(ops))):
        if kind == RELATES:
            found |= {-1 - source for source in register if source < 0}
        elif kind in (RESET, SET, NOTE):
            found.discard(register)
        elif BOTH <= kind < REFUSED:
            found |= {register, term}
        elif LESS <= kind < SET or kind in (NOT_ALL, NOTED) or REFUSED <= kind < ANY_OF:
            found.add(register)
    return found


def held_at(n: int, edges: list[Edge], begins: set[int]) -> list[set[int]]:
    """For each place the registers that can hold something there; `begins`: those that hold something at once."""
    found: list[set[int]] = [set() for _ in range(n)]
    changed = True
    while changed:
        changed = False
        for source, to, _, ops in edges:
            if to != NOBODY:
                more = written_by(ops, begins if source == FROM_START else found[source]) - found[to]
                found[to] |= more
                changed = changed or bool(more)
    return found


def sure_at(n: int, edges: list[Edge], begins: set[int]) -> list[set[int]]:
    """For each place the registers that hold something there, whatever the way that led to it."""
    found: list[set[int] | None] = [None] * n  # None: no way is known yet
    changed = True
    while changed:
        changed = False
        for source, to, _, ops in edges:
            before = begins if source == FROM_START else found[source]
            if to == NOBODY or before is None:
                continue
            now, known = written_by(ops, before), found[to]
            if known is None or not known <= now:
                found[to] = now if known is None else known & now
                changed = True
    return [held or set() for held in found]


def live_at(n: int, edges: list[Edge], ends: list[set[int]]) -> list[set[int]]:
    """For each place the registers that can still be looked at; `ends`: those that are when a run comes there."""
    found: list[set[int]] = [set() for _ in range(n)]
    changed = True
    while changed:
        changed = False
        for source, to, _, ops in edges:
            if source != FROM_START:
                more = asked_by(ops, set() if to == NOBODY else found[to] | ends[to]) - found[source]
                found[source] |= more
                changed = changed or bool(more)
    return found
