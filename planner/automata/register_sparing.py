"""Takes away what is superfluous of the operations on registers, and ends runs that cannot match any more.

A.x = B.x AND A.x = C.x      two registers that always hold the same, A.x, are one
A+ a ; B b WHERE a.x = b.x   a run whose As differ in x ends there: each A → A edge has a check besides
"""

from __future__ import annotations

from planner.automata.register_clauses import Op
from planner.automata.register_flow import Edge, Ops, asked_by, is_change, named_by, of_register, written_by
from runtime.chain_cea import (
    ANY_OF,
    EQUAL,
    FROM_START,
    GREATEST,
    HIGHEST,
    LEAST,
    LESS,
    LOWEST,
    NOBODY,
    REFUSED,
    RELATES,
    RESET,
    SAME,
    UNEQUAL,
)


def _changes(ops: Ops, register: int) -> Ops:
    return [(kind, 0, term) for kind, own, term in ops if own == register and is_change(kind)]


def asking(edge: Edge, held: list[set[int]]) -> Edge:
    """Without checks of registers that hold nothing yet, which all pass."""
    ops, known = list[Op](), set[int]() if edge.source == FROM_START else set(held[edge.source])
    sides = 0  # of an OR, which stay
    for op in edge.ops:
        kind, register, _ = op
        checks = LESS <= kind <= UNEQUAL or REFUSED <= kind < ANY_OF
        if sides or not checks or register in known:
            ops.append(op)
        sides = register if kind == ANY_OF else max(0, sides - 1)
        known = written_by([op], known)
    return edge._replace(ops=ops)


def trimmed(edge: Edge, live: list[set[int]], ends: list[set[int]]) -> Edge:
    """Without changes of registers that are not looked at afterwards; what only happens if it has a value stays."""
    ops, asked = list[Op](), set() if edge.to == NOBODY else live[edge.to] | ends[edge.to]
    for op in reversed(edge.ops):
        kind, register, _ = op
        if is_change(kind) and kind not in (HIGHEST, LOWEST) and register not in asked:
            continue
        ops.append(op)
        asked = asked_by([op], asked) if kind == RESET or not is_change(kind) else asked
    return edge._replace(ops=ops[::-1])


def alike_registers(edges: list[Edge], n: int) -> dict[int, int]:
    """For each register the first that always holds the same: `A.x = B.x AND A.x = C.x` keeps A.x once.

    Two do that are changed alike by every edge. None is looked at after a change, which may not have reached both.
    """
    safe = [all(_checked_first(edge.ops, r) for edge in edges) for r in range(n)]
    found: dict[int, int] = {}
    seen: dict[tuple[tuple[Op, ...], ...], int] = {}
    for r in range(n):
        how = tuple(tuple(_changes(edge.ops, r)) for edge in edges)
        found[r] = seen.setdefault(how, r) if safe[r] and any(how) else r
    return found


def _checked_first(ops: Ops, register: int) -> bool:
    """Is a register only looked at before it is changed?"""
    kinds = [kind for kind, _ in of_register(ops, register)]
    changes = [n for n, kind in enumerate(kinds) if is_change(kind)]
    return not changes or all(map(is_change, kinds[changes[0] :]))


def renamed(edge: Edge, names: dict[int, int]) -> Edge:
    """An edge with other registers; what is then done twice is done once."""
    ops: Ops = []
    before: dict[int, Op] = {}
    for kind, register, term in edge.ops:
        own = named_by(kind, register, term)
        if kind == RELATES:
            register = tuple(source if source >= 0 else -1 - names[-1 - source] for source in register)
        elif own:
            register = names[register]
            term = names[term] if len(own) > 1 else term
        op = (kind, register, term)
        if not is_change(kind) or before.get(register) != op:
            ops.append(op)
        if is_change(kind):
            before[register] = op
    return edge._replace(ops=ops)


def ending_early(edges: list[Edge], stopping: list[Edge], doomed: list[bool]) -> list[Edge]:
    """The edges with a check where several events must be equal, so that a run which they spoil ends there.

    Without it all As would wait in `A+ a ; B b WHERE a.x = b.x`; with it an index finds those that an A goes on with.
    Only where a failed check lies ahead of such a run, on whatever way: a B that may be missing asks nothing.
    """
    registers = {register for edge in edges for kind, register, _ in edge.ops if kind == SAME}
    for r in registers:
        ends = _spoiled(r, [*edges, *stopping], list(doomed))
        edges = [_with_check(edge, r) if edge.source != FROM_START and ends[edge.to] else edge for edge in edges]
    return edges


STAYS_BAD = (GREATEST, LEAST, SAME)  # changes that leave BAD what it is


def _spoiled(register: int, edges: list[Edge], ends: list[bool]) -> list[bool]:
    """At which places can no run match any more that holds BAD in the register? `ends`: where no match ends."""
    changed = True
    while changed:
        changed = False
        for edge in edges:
            if edge.source == FROM_START or not ends[edge.source]:
                continue
            own = [kind for kind, _ in of_register(edge.ops, register)]
            kinds = [kind for kind in own if kind <= UNEQUAL or (is_change(kind) and kind not in STAYS_BAD)]
            fails = bool(kinds) and kinds[0] != RESET and kinds[0] <= UNEQUAL
            if not fails and (kinds or (edge.to != NOBODY and not ends[edge.to])):
                ends[edge.source], changed = False, True
    return ends


def _with_check(edge: Edge, register: int) -> Edge:
    at = next((n for n, op in enumerate(edge.ops) if op[:2] == (SAME, register)), None)
    if at is None or any(op[0] == RESET and op[1] == register for op in edge.ops):
        return edge
    return edge._replace(ops=[*edge.ops[:at], (EQUAL, register, edge.ops[at][2]), *edge.ops[at:]])
