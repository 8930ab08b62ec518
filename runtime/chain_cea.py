"""A chain-CEA as flat arrays: positions, edges between them, and what each edge does with registers ([CHAIN]).

planner.automata.registers makes it, runtime.steppers.registers runs it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from runtime.arrays import IntArray
from runtime.nodes import Flat, Node
from runtime.relations import Relation

# Kinds of ops of Registers. Checks of a register with a term of the event:
RESET, LESS, LESS_EQUAL, GREATER, GREATER_EQUAL, EQUAL, UNEQUAL = range(7)
# Changes of a register: by a term; to whether the event satisfies a guard; by a term that vetoes, which no NULL does.
SET, GREATEST, LEAST, SAME, NOTE, HIGHEST, LOWEST = range(7, 14)
NOT_ALL = 14  # fails if the register holds the `term`: all of these bits
RELATES = 15  # a relation by its number, the term, with the operands from relation_operand[register] on
OWN = 16  # + a check: of two terms of the event; the register is the number of the first
BOTH = 32  # + a check: of two registers; the term is the number of the second
REFUSED = 48  # + a check, which must fail, of a register with a term
ANY_OF = 64  # one of the next `register` ops must pass, or a register in them is still empty:
HOLDS, NOTED = 65, 66  # among these: the event satisfies a guard; a NOTE said so
LACKS = 67  # fails if the event satisfies a guard
FAILED = 128  # + the number of a bit: set in the register if the event does not satisfy a guard
NOBODY = -1  # no register, term, or run
ONLY_NEAR = 2  # nothing but contiguous followers
EVERY = -1  # no check: all runs pass
FROM_START = -1  # the source of an edge from the beginning
LATE, SINCE, BEGUN = 0, 1, 2  # places in Registers.special
# Terms that the stepper adds to those of Spark, in this order: the position of the event, that of the first event of
# the stream, for each of Registers.inside the first position after the latest start of what has ended by then, and for
# each inner window the position with which it begins, if the event ends it.
POSITION, FIRST, BEGINS = 0, 1, 2
WINDOW = -2  # in place of a term: the position with which the window begins
# What an event looks at: one run, some by an index in order of one value, or of two, those with an equal value, what
# a search meets, each.
ONE, RANGE, RANGES, EQUAL_ONES, SEARCHED, EACH = range(6)


class Early(NamedTuple):
    """What must not come before a match, by its kinds (runtime.steppers.happened).

    `!ANY x ; ANY g WHERE x.v >= g.v` has one kind and one check: GREATER_EQUAL, of the v of what happened with the v of
    the first event of the run, which decides.

    An event is of kind w if it satisfies guard[w] and the ops of edge[w] pass. It prevents the matches that pass all of
    the checks check_of[w] … check_of[w + 1]. A check compares what the run has, by `kind`, with the `term` of what
    happened; NOBODY is a check that passes. If the first event decides (decided[w]), the run has outside[p, c], a term
    of that event, at position p; else it has what `register` holds when the match ends. `equal[w]`: a check for
    equality, or NOBODY.
    """

    guard: IntArray
    edge: IntArray
    decided: IntArray
    check_of: IntArray
    equal: IntArray
    kind: IntArray
    term: IntArray
    register: IntArray
    outside: IntArray


@dataclass(frozen=True, eq=False)
class Registers(Node):
    """A position automaton whose runs compare events by a few registers each (chain-CEA, run by runtime.steppers).

    `A+ a ; B b WHERE a.v < b.v` has the positions A0 and B1, one register r, and three edges:

        edge 0   FROM_START → 0   GREATEST r, v
        edge 1   0 → 0            GREATEST r, v
        edge 2   0 → 1            LESS r, v, and then RESET r

    *Positions.* A run at position p has just taken an event there. It takes an event at q over an edge, if the event
    satisfies guard[q] and all ops of the edge pass. `label`: an index into Program.labels. `last`: can a match end
    there? `goes_on`: does anything follow? `near`: does something contiguous follow, or ONLY_NEAR.

    *Edges* are sorted by q: those of q are edge_of[q] … edge_of[q + 1]. `source`: the position before, or FROM_START.
    `contiguous`: only at the next event. `looks`: at how many of the runs at its source an event looks (for EXPLAIN).

    *Ops* of edge e are op_of[e] … op_of[e + 1], each of a kind (see above), with a register and a term. An op RELATES
    has its operands in relation_operand, as many as the relation has: a term of the event, or -1 - a register.

    *Indexes.* index_of[p]: the registers by which runs at p are found, filled up with NOBODY. wanted[e]: the terms that
    these must be equal to for edge e, all NOBODY where the index does not serve it. ordered_of[p]: the number of the
    ordered index (runtime.steppers.ordered) of the runs at p, by the registers sorted_by[p], or NOBODY: one, or two. An
    edge from there takes the runs whose registers pass range_kind[e] with the terms range_term[e], or all: EVERY.

    *Vetoes* are what must not happen. An event with veto_guard[v] concerns the runs at the source of edge (number of
    edges + v) that pass the ops of that edge. It moves them to position veto_to[v], or ends them: NOBODY. Such
    positions come after those of the pattern, which `guard`, `label`, `last` and `goes_on` are of. No edge of an event
    leads there.

    `special` has three entries. LATE: the place where matches wait for their window to close, NOBODY if none does. One
    that ends at q goes there over edge late_edge[q], and every start then has runs of its own. SINCE: the register for
    the position of the last event before the run that must not come before its match, by what its first event says.
    BEGUN: the register for the position where the run began, where later events say more. NOBODY where none is asked
    for; see Early.

    `greedy`: a run must take what it can, and is then not there any more (SKIP TILL NEXT MATCH). `apart`: the last
    register is where a run began (AFTER MATCH SKIP). `places`: are there terms that the stepper adds? `meanwhile`: what
    must not happen while a match goes on, where it is several events (runtime.steppers.meanwhile); `inside`: while a
    part of one does.
    """

    guard: IntArray
    label: IntArray
    last: IntArray
    goes_on: IntArray
    near: IntArray
    edge_of: IntArray
    source: IntArray
    contiguous: IntArray
    wanted: IntArray
    index_of: IntArray
    ordered_of: IntArray
    sorted_by: IntArray
    range_kind: IntArray
    range_term: IntArray
    looks: IntArray
    op_of: IntArray
    op_kind: IntArray
    op_register: IntArray
    op_term: IntArray
    relation_operand: IntArray
    veto_guard: IntArray
    veto_to: IntArray
    early: Early
    late_edge: IntArray
    special: IntArray
    n_registers: int
    greedy: bool = False
    apart: bool = False
    relations: tuple[Relation, ...] = ()
    places: bool = False
    meanwhile: tuple[Flat, ...] = ()
    inside: tuple[Flat, ...] = ()
