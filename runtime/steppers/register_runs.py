"""What kernels hand on of runs that compare events: the automaton, what is remembered, what an event leads to."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from runtime.arrays import AnyArray
from runtime.chain_cea import Early
from runtime.jit import inlined
from runtime.steppers.happened import (
    Happened,
)
from runtime.steppers.ordered import Ordered
from runtime.steppers.relation_ops import Relations
from runtime.steppers.run_table import (
    Entries,
)

# What becomes of two runs of one entry where every start has its own: both go on, or the NXT-greater one.
TOGETHER, NEXT_BEST, BOTH_STAY = range(3)


class Pending(NamedTuple):
    """What the event being read leads to, before it takes effect."""

    registers: AnyArray
    at: AnyArray
    child: AnyArray
    start: AnyArray
    table: AnyArray  # int32[power of two] …
    stamp: AnyArray  # … valid where this is the serial number of the event


class Automaton(NamedTuple):
    """The arrays of runtime.chain_cea.Registers, and of its relations."""

    guard: AnyArray
    label: AnyArray
    last: AnyArray
    goes_on: AnyArray
    near: AnyArray
    edge_of: AnyArray
    source: AnyArray
    contiguous: AnyArray
    wanted: AnyArray
    ordered_of: AnyArray
    sorted_by: AnyArray
    range_kind: AnyArray
    range_term: AnyArray
    op_of: AnyArray
    op_kind: AnyArray
    op_register: AnyArray
    op_term: AnyArray
    relation_operand: AnyArray
    veto_guard: AnyArray
    veto_to: AnyArray
    late_edge: AnyArray
    special: AnyArray  # the late place, and the registers for what must not come before, or NOBODY
    early: Early
    relations: Relations
    words: int  # of a symbol, before its terms


class Runs(NamedTuple):
    """All that is remembered of the stream: runs that wait, some of them in order; what must not come before; and what
    the event being read leads to."""

    entries: Entries
    ordered: Ordered
    happened: Happened
    pending: Pending


class Options(NamedTuple):
    """`greedy`: SKIP TILL NEXT MATCH; `consume`: a match that ends drops all runs; `apart`: NEXT_BEST (all events of
    one key, and roots know their beginnings), …; `logs`: moves that end no match are roots, too, without an end."""

    greedy: bool
    consume: bool
    apart: int
    logs: bool


class Run(NamedTuple):
    """Runs that wait: their node, latest beginning and last event's position."""

    node: Any  # int64
    start: Any
    last: Any


@inlined
def same(a, i, b, j):
    equal = True
    for r in range(a.shape[1]):
        equal = equal and a[i, r] == b[j, r]
    return equal


def new_pending(capacity: int, n_registers: int, clock: np.dtype) -> Pending:
    """Half of it is used at the most, so that the table has gaps."""
    return Pending(
        registers=np.zeros((capacity, max(1, n_registers)), np.int64),
        at=np.zeros(capacity, np.int32),
        child=np.zeros(capacity, np.int32),
        start=np.zeros(capacity, clock),
        table=np.zeros(2 * capacity, np.int32),
        stamp=np.full(2 * capacity, -1, np.int64),
    )
