"""Compile the kernels once, before several workers would do it side by side.

numba keeps compiled code beside the sources (or in the user's cache folder), so this costs seconds on a machine once,
and a fraction of a second in every process after that.
"""

from __future__ import annotations

import functools
import time
from dataclasses import replace
from typing import assert_never

import numpy as np
import pyarrow as pa

from runtime import compiling, nodes
from runtime.arrays import IntArray
from runtime.chain_cea import EVERY, FROM_START, LESS, NOBODY, ONE, RANGE, SET, Early, Registers
from runtime.compact_set.semirings import N_PRIMES, Lift
from runtime.deferred import Deferred
from runtime.engine import engine_for
from runtime.partition import partition
from runtime.pcea import ROOT, Parallel
from runtime.program import ALWAYS, SKIP, Family, Program, Window
from runtime.ranged import Ranged
from runtime.task import OrderColumn, OutputVariable, Task, Walked
from runtime.two_stacks import TwoStacks

FAMILIES: dict[Family, str] = {
    "plain": "sequences, loops, OR",
    "timed": "windows inside the pattern, strategies, consumption",
    "registers": "comparisons of events, what must not happen before",
    "deferred": "equality of events that are not neighbours",
    "ranged": "values that are kept and compared by order",
    "two stacks": "NXT and LAST in a window, what must not happen after the match",
    "pcea": "ALL with equalities",
}

logger = compiling.logger


@functools.cache
def compile_kernels(family: Family = "plain") -> None:
    """Run one event of each kind through the engine of a family, listing and counting."""
    begin = time.monotonic()
    with compiling.noted():
        _run_each(family)
    took = time.monotonic() - begin
    if took > compiling.LONG:
        logger.info("compiled the kernels in %.0f s; they are cached from now on", took)


@functools.cache
def compile_sums() -> None:
    """The kernels that sum up groups of matches, which are the same for every family."""
    with compiling.noted():
        for window in (Window("time", 10), None):
            program = replace(_two_events(), window=window)
            lift = Lift(
                counts=np.zeros((2, 1), np.bool_),
                picks=np.zeros((2, 0), np.bool_),
                shifts=np.zeros((2, 0), np.bool_),
                exact=np.zeros((3, 1, N_PRIMES), np.uint32),
                size=np.zeros((3, 1), np.float64),
                rank=np.zeros((3, 0), np.int64),
                shift=np.zeros((3, 0), np.int64),
                begins=np.zeros(0, np.int64),
                opens=np.ones(2, np.bool_),
            )
            engine = engine_for(program)
            trends = engine.trends(lift, np.zeros(3, np.int64), 1, uncut=False)
            engine.sum_up(trends, np.array([1, 0, 2], np.int64), np.arange(3, dtype=np.int64))
            engine.least_row()


@functools.cache
def compile_beginnings() -> None:
    """The kernels for matches that share their beginnings, which are the same for every family."""
    with compiling.noted():
        rows = pa.table({"ts": [0, 1], "symbol": [1, 2], "x": [1, 2], "y": [1.0, 2.0]})
        walked = tuple(Walked(f"{f}{x}", f, "a", x) for f in ("SUM", "MIN") for x in ("x", "y"))
        single = (OutputVariable("a", "a", True, ("x",)),)
        for window in (Window("time", 10), None):
            program, order = replace(_two_events(), window=window), (OrderColumn("ts"),)
            task = Task(
                program, ("symbol",), order, (), (), single, (), "from", "to", "size", walked=walked, chains=True
            )
            list(partition.run(task, rows.to_batches()))


def _two_events() -> Program:
    """A ; B within 10."""
    waiting, then = (0, ALWAYS, SKIP, 0), (1, ALWAYS, SKIP, 1)
    return Program(
        n_states=3,
        transitions=np.array([waiting, (0, 0, 0, 1), then, (1, 1, 1, 2)], np.int64),
        initial=(0,),
        final=(2,),
        guards=(frozenset({"A"}), frozenset({"B"})),
        labels=(frozenset({"a"}), frozenset({"b"})),
        variables=("a", "b"),
        window=Window("time", 10),
    )


def _run_each(family: Family) -> None:
    program = _two_events()
    match family:
        case "plain" | "composed":
            _run(program)
        case "registers" | "skipping":
            _run(replace(program, family="registers", machine=_two_in_order(), terms=("x",)))
            meanwhile = replace(_two_in_order(), meanwhile=(_flat(program),))
            _run(replace(program, family="registers", machine=meanwhile, terms=("x",)))
        case "deferred":
            _run(replace(program, family=family, machine=_apart(), terms=("x",)))
        case "ranged":
            _run(replace(program, family=family, machine=_kept_in_order(), terms=("x",)))
        case "two stacks":
            _run(replace(program, family=family, machine=_next_of_two()))
            waiting = replace(_next_of_two(), n_places=3, late=2)
            _run(replace(program, family=family, machine=waiting, ends_late=True))
        case "pcea":
            _run(replace(program, family=family, machine=_side_by_side(), terms=("x",)))
        case "timed" | "any":
            _run(_within(program))
        case "bound":
            pass  # its kernels are small
        case _:
            assert_never(family)


def _within(program: Program) -> Program:
    """The same as a window inside the pattern."""
    flat = _flat(program)
    inner = replace(program, family="timed", machine=nodes.Within(flat, 0), inner_windows=(Window("time", 10),))
    labels = (frozenset[str](), *program.labels)
    return replace(inner, masks=(0, *flat.masks), labels=labels, keep=nodes.VISIBLE)


def _flat(program: Program) -> nodes.Flat:
    """Its automaton as a part of another."""
    return nodes.Flat(program.transitions, (1 << nodes.FIRST_VARIABLE, 2 << nodes.FIRST_VARIABLE), (0,), (2,))


def _two_in_order() -> Registers:
    """A ; B with a register that is set and checked."""

    def ints(*values: int) -> IntArray:
        return np.array(values, np.int64)

    return Registers(
        guard=ints(0, 1),
        label=ints(0, 1),
        last=ints(0, 1),
        goes_on=ints(1, 0),
        near=ints(0, 0),
        edge_of=ints(0, 1, 2),
        source=ints(FROM_START, 0),
        contiguous=ints(0, 0),
        wanted=np.full((2, 1), NOBODY),
        index_of=np.full((2, 1), NOBODY),
        ordered_of=ints(0, NOBODY),
        sorted_by=np.array([[0, NOBODY], [NOBODY, NOBODY]], np.int64),
        range_kind=np.array([[EVERY, EVERY], [LESS, EVERY]], np.int64),
        range_term=np.zeros((2, 2), np.int64),
        looks=ints(ONE, RANGE),
        op_of=ints(0, 1, 2),
        op_kind=ints(SET, LESS),
        op_register=ints(0, 0),
        op_term=ints(0, 0),
        relation_operand=ints(),
        veto_guard=ints(),
        veto_to=ints(),
        early=Early(
            guard=ints(),
            edge=ints(),
            decided=np.zeros(0, np.bool_),
            check_of=ints(0),
            equal=ints(),
            kind=ints(),
            term=ints(),
            register=ints(),
            outside=np.zeros((2, 0), np.int64),
        ),
        late_edge=ints(NOBODY, NOBODY),
        special=ints(NOBODY, NOBODY, NOBODY),
        n_registers=1,
    )


def _apart() -> Deferred:
    """A ; A ; B with an equality of the first and the last."""

    def ints(*values: int) -> IntArray:
        return np.array(values, np.int64)

    return Deferred(
        guard=ints(0, 0, 1),
        label=ints(0, 0, 1),
        last=ints(0, 0, 1),
        goes_on=ints(1, 1, 0),
        held=ints(0, 1, NOBODY),
        component=ints(0, 0),
        edge_of=ints(0, 1, 2, 3),
        source=ints(FROM_START, 0, 1),
        pair=ints(NOBODY, 0, NOBODY),
        ask_of=ints(0, 0, 0, 1),
        ask=ints(0),
        into_of=ints(0, 1, 1, 1),
        into=ints(0),
        test_of=ints(0, 0, 0, 0),
        test_kind=ints(),
        test_left=ints(),
        test_right=ints(),
        pair_from=ints(0),
        pair_to=ints(1),
        pair_of=np.array([[NOBODY, 0], [NOBODY, NOBODY]], np.int64),
        same=ints(0, 1),
        veto_guard=ints(),
        veto_to=ints(),
        label_of=ints(0, 1, 0, 1),
        depth=1,
    )


def _kept_in_order() -> Ranged:
    """A ; A ; B with a comparison of the first and the last."""

    def ints(*values: int) -> IntArray:
        return np.array(values, np.int64)

    return Ranged(
        guard=ints(0, 0, 1),
        label=ints(0, 0, 1),
        last=ints(0, 0, 1),
        goes_on=ints(1, 1, 0),
        held=ints(0, 1, NOBODY),
        takes_null=ints(0, 0),
        edge_of=ints(0, 1, 2, 3),
        source=ints(FROM_START, 0, 1),
        pair=ints(NOBODY, 0, NOBODY),
        into=ints(0, NOBODY, NOBODY),
        act=ints(NOBODY, 0, 1),
        check_of=ints(0, 0, 0, 1),
        check_kind=ints(LESS),
        check_term=ints(0),
        test_of=ints(0, 0, 0, 0),
        test_kind=ints(),
        test_left=ints(),
        test_right=ints(),
        pair_from=ints(0),
        pair_to=ints(1),
        pair_of=np.array([[NOBODY, 0], [NOBODY, NOBODY]], np.int64),
        same=ints(0, 1),
        veto_guard=ints(),
        veto_to=ints(),
        label_of=ints(0, 1, 0, 1),
    )


def _next_of_two() -> TwoStacks:
    """SEQ(A, !C, B) SEMANTICS NXT, without a C."""

    def ints(*values: int) -> IntArray:
        return np.array(values, np.int64)

    return TwoStacks(
        guard=ints(0, 1),
        label=ints(0, 1),
        last=ints(0, 1),
        to=ints(1, NOBODY),
        lacks_of=ints(0, 0, 0),
        lacks=ints(),
        edge_of=ints(0, 1, 2),
        source=ints(0, 1),
        veto_guard=ints(),
        veto_from=ints(),
        veto_to=ints(),
        n_places=2,
        later=False,
    )


def _side_by_side() -> Parallel:
    """ALL(A a, B b) WHERE a.x = b.x, but that no event is both."""

    def ints(*values: int) -> IntArray:
        return np.array(values, np.int64)

    return Parallel(
        guard=ints(0, 1),
        own_of=ints(0, 1, 2),
        own_left=ints(0, 0),
        own_right=ints(0, 0),
        atoms=ints(1, 2),
        together_of=ints(0, 0, 0),
        together_left=ints(),
        together_right=ints(),
        step_of=ints(0, 2, 4),
        part_of=ints(0, 0, 1, 1, 2),
        part=ints(1, 0),
        key_of=ints(0, 1, 2),
        key=ints(0, 0),
        place=ints(0, ROOT, 1, ROOT),
        into_of=ints(0, 1, 1, 2, 2),
        into=ints(0, 0),
        label_of=ints(0, 0, 1, 0),
        depth=1,
    )


def _run(program: Program) -> None:
    engine = engine_for(program)
    symbols, times = np.array([1, 0, 2], np.int64), np.arange(3, dtype=np.int64)
    if program.terms:
        alike = program.family in ("deferred", "pcea")
        symbols = np.stack([symbols, np.zeros(3, np.int64) if alike else times], axis=1)
    list(engine.feed(symbols, times))
    engine.count(symbols, times + 3)
    engine.least_row()
