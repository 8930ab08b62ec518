"""This file makes the runs of a position automaton hold values in registers: PositionAutomaton → Registers.

The positions and the edges between them come from planner.automata.positions, the operations on registers from
register_clauses. They are put on the edges by register_runs, and what is superfluous is taken away by register_sparing;
register_twins lets runs wait once for each kind of edge, and register_indexes says how they are found. Here all that
becomes arrays. For
`A+ a ; B b WHERE a.v < b.v`, with the positions A0 and B1 and one register r:

    start → A0    r := v, if that is greater
    A0 → A0       r := v, if that is greater
    A0 → B1       only if r < v; then forget r

A register is forgotten as soon as no way leads to an event that is compared with it. Runs that have nothing left to
compare are then equal, and become one. Two registers that always hold the same are one, too.

What must not happen ends a run, or closes some of the ways that lie before it. Such a run waits at a *place* of its
own, which is the position without these ways. In `A ; NOT C ; B WHERE C.v > a.v` a C ends the runs at A0 with r < v.

Some patterns need more than registers. Then `runs_of` says why, as a Refusal, and another stepper runs them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from planner.automata.register_clauses import NotByRegisters
from planner.automata.register_flow import Edge
from planner.automata.register_indexes import indexes, looks_at, nearness, ordered_places, wanted_terms
from planner.automata.register_runs import RunBuilder
from planner.refusal import Refusal
from runtime.chain_cea import (
    EQUAL,
    EVERY,
    NOBODY,
    RELATES,
    Early,
    Registers,
)
from runtime.nodes import Flat
from runtime.position_automaton import PositionAutomaton


class Runs(NamedTuple):
    """How runs behave: `greedy` ones must take what they can, those `apart` are some for each start. `shows`: how far
    they come is a result, so that none ends before it must."""

    greedy: bool = False
    apart: bool = False
    shows: bool = False


def runs_of(automaton: PositionAutomaton, keep: int, runs: Runs, n_terms: int) -> RunBuilder | Refusal:
    """The places and edges of its runs, or what keeps the pattern from being run so.

    `keep`: the bits of masks that tell matches apart. `n_terms`: how many Spark computes; the stepper's own come after
    them.
    """
    try:
        return RunBuilder(automaton, keep, runs.greedy, n_terms, runs.shows)
    except NotByRegisters as why:
        return Refusal(str(why))


def registers_of(made: RunBuilder, labels: dict[int, int], runs: Runs) -> Registers:
    """The node for runtime.steppers.registers. `labels`: the number of the label of each mask that is kept."""
    automaton, keep = made.automaton, made.keep
    positions = range(len(automaton.masks))
    edges = [*made.edges, *made.veto_edges, *made.late_edges, *made.early_edges]
    n_before = len(made.edges) + len(made.veto_edges)
    late_edge = {edge.source: n_before + k for k, edge in enumerate(made.late_edges)}
    apart = runs.apart or made.late != NOBODY
    return Registers(
        guard=_ints(automaton.guards),
        label=_ints(labels[mask & keep] for mask in automaton.masks),
        last=_ints(p in automaton.last for p in positions),
        goes_on=_ints(bool(automaton.follow[p]) for p in positions),
        near=_ints(nearness([f.contiguous for f in follow]) for follow in made.follow),
        edge_of=_ends(sum(edge.to == q for edge in made.edges) for q in positions),
        source=_ints(edge.source for edge in edges),
        contiguous=_ints(edge.contiguous for edge in edges),
        **_indexes(made, edges, runs.greedy, apart),
        **_ops(edges),
        veto_guard=_ints(made.veto_guards),
        veto_to=_ints(edge.to for edge in made.veto_edges),
        early=_early(made, len(edges) - len(made.early_edges)),
        late_edge=_ints(late_edge.get(q, NOBODY) for q in positions),
        special=_ints((made.late, made.since, made.begun)),
        n_registers=made.n_registers + apart,
        greedy=runs.greedy,
        apart=runs.apart,
        relations=tuple(made.clauses.relations),
        places=bool(automaton.windows or automaton.starts or automaton.unless),
        meanwhile=tuple(node for node in automaton.meanwhile if isinstance(node, Flat)),
        inside=tuple(node for node in automaton.inside if isinstance(node, Flat)),
    )


def _indexes(made: RunBuilder, edges: list[Edge], greedy: bool, apart: bool) -> dict[str, np.ndarray]:
    """How the runs that wait at each place are found, by the fields of Registers."""
    index, places = indexes(edges, made.needed, made.sure), range(made.n)
    # Of an ordered index a union of runs is taken, and none can be taken out; it holds no more than two registers.
    ordered = {} if greedy or apart else ordered_places(made, index)
    numbers = {p: x for x, p in enumerate(ordered)}
    every = ((EVERY, 0), (EVERY, 0))
    ranges = [ordered[edge.source][1].get(e, every) if edge.source in ordered else every
              for e, edge in enumerate(edges)]  # fmt: skip
    return {
        "wanted": _padded([wanted_terms(edge, index) for edge in edges]),
        "index_of": _padded([index.get(p, ()) for p in places]),
        "ordered_of": _ints(numbers.get(p, NOBODY) for p in places),
        "sorted_by": np.array([ordered[p][0] if p in ordered else (NOBODY, NOBODY) for p in places], np.int64),
        "range_kind": np.array([[kind for kind, _ in own] for own in ranges], np.int64),
        "range_term": np.array([[term for _, term in own] for own in ranges], np.int64),
        "looks": _ints(looks_at(made, edge, index, ordered, apart) for edge in edges),
    }


def _ops(edges: list[Edge]) -> dict[str, np.ndarray]:
    """The operations of the edges, one after the other, by the fields of Registers."""
    ops = [op for edge in edges for op in edge.ops]
    operands, registers = list[int](), list[Any]()
    for kind, register, _ in ops:
        registers.append(len(operands) if kind == RELATES else register)  # an op that relates: where its operands begin
        operands += register if kind == RELATES else ()
    return {
        "op_of": _ends(len(edge.ops) for edge in edges),
        "op_kind": _ints(kind for kind, _, _ in ops),
        "op_register": _ints(registers),
        "op_term": _ints(term for _, _, term in ops),
        "relation_operand": _ints(operands),
    }


def _early(made: RunBuilder, first_edge: int) -> Early:
    """What must not come before a match; `first_edge`: the edge with what the first kind of it asks of itself."""
    ways, checks = made.clauses.early, [check for own in made.checks for check in own]
    equal = [next((k for k, c in enumerate(own) if c.kind == EQUAL), None) for own in made.checks]
    begin = np.cumsum([0, *map(len, made.checks)]).astype(np.int64)
    outside = [[c.outside.get(p, NOBODY) for c in checks] for p in range(len(made.automaton.masks))]
    return Early(
        guard=np.array([way.guard for way in ways], np.int64),
        edge=np.arange(first_edge, first_edge + len(ways), dtype=np.int64),
        decided=np.array([way.decided for way in ways], np.bool_),
        check_of=begin,
        equal=np.array([NOBODY if k is None else b + k for k, b in zip(equal, begin, strict=False)], np.int64),
        kind=np.array([c.kind for c in checks], np.int64),
        term=np.array([c.term for c in checks], np.int64),
        register=np.array([c.register for c in checks], np.int64),
        outside=np.array(outside, np.int64).reshape(len(outside), len(checks)),
    )


def _padded(rows: list[tuple[int, ...]]) -> np.ndarray:
    """As a matrix of at least one column, NOBODY where a row has no more."""
    width = max(1, *map(len, rows))
    return np.array([(*row, *[NOBODY] * (width - len(row))) for row in rows], np.int64)


def _ints(values: Iterable[Any]) -> np.ndarray:
    return np.array(list(values), np.int64)


def _ends(sizes: Iterable[int]) -> np.ndarray:
    """Where each of several runs of numbers begins, and the last ends."""
    return np.concatenate([[0], np.cumsum(_ints(sizes))]).astype(np.int64)
