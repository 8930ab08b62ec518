"""Whatever there is to list comes in small batches, at once, and is counted without listing: for every stepper."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from itertools import islice

import numpy as np
import pytest

import cersql
from runtime.arrays import AnyArray
from runtime.capacities import CHUNK_EVENTS, CHUNK_MATCHES
from runtime.compact_set.matches import Matches
from runtime.engine import engine_for
from runtime.program import Program
from runtime.steppers.deferred_stepper import DeferredStepper
from runtime.steppers.general import GeneralStepper
from runtime.steppers.late_stacks_stepper import LateStacksStepper
from runtime.steppers.pcea_stepper import PceaStepper
from runtime.steppers.ranged_stepper import RangedStepper
from runtime.steppers.register_stepper import RegisterStepper
from runtime.steppers.stepper import Stepper
from runtime.steppers.table import TableStepper

SCHEMAS = {"t": {"ts": "timestamp", "type": "string", "v": "int", "w": "int"}}
LOOP = 2**40 - 1  # of 40 times A, any but none
LONGEST = 42  # events of a match
QUERIES: dict[str, tuple[str, type[Stepper], int]] = {
    "table": ("A+ a ; B b", TableStepper, LOOP),
    "composed": ("(A+ a ; B b) UNLESS C", TableStepper, LOOP),
    "timed": ("((A+ a) WITHIN 1 HOUR) ; B b", TableStepper, LOOP),
    "known late": ("A+ a ; B b ; !C WITHIN 1 HOUR", LateStacksStepper, LOOP),
    "registers": ("A+ a ; B b WHERE a.v <= b.v AND a.w <= b.w", RegisterStepper, LOOP),
    "side by side": (
        "ALL(A a1, A a2, A a3, B b1) WHERE a1.v = a2.v AND a2.v = a3.v AND a3.v = b1.v AND a1.w = a2.w",
        PceaStepper,
        40**3,
    ),
    "catching up": ("A+ a1 ; A? a2 ; B b1 WHERE a1.v = b1.v", DeferredStepper, 2**41 - 42),
    "in order": ("A+ a1 ; A? a2 ; B b1 WHERE a1.v <= b1.v", RangedStepper, 2**41 - 42),
    "general": ("((A+ a ; B b) UNLESS ((C c1 ; C c2) FILTER c1.v < c2.v)) WHERE a.v <= b.v", GeneralStepper, LOOP),
    "meanwhile": ("((A+ a ; B b) UNLESS (C ; C)) WHERE a.v <= b.v", RegisterStepper, LOOP),
    "general, known late": (
        "((A+ a ; B b) UNLESS ((C c1 ; C c2) FILTER c1.v < c2.v)) ; !C WHERE a.v <= b.v WITHIN 1 HOUR",
        GeneralStepper,
        LOOP,
    ),
}


def program(pattern: str) -> Program:
    return cersql.compile(f"FROM t TYPE type PATTERN {pattern} ORDER BY ts RETURN *", SCHEMAS).program


def events(made: Program) -> tuple[AnyArray, AnyArray]:
    """40 times A, then B; all values are equal."""
    bit = {kind: sum(1 << i for i, names in enumerate(made.guards) if kind in names) for kind in "AB"}
    every = sum(1 << i for i, names in enumerate(made.guards) if not names)
    rows = [[bit[kind] | every, *[7] * len(made.terms)] for kind in "A" * 40 + "B"]
    return np.array(rows, np.int64), np.arange(41, dtype=np.int64)


def batches(made: Program) -> Iterator[Matches]:
    engine = engine_for(made)
    yield from engine.feed(*events(made))
    yield from engine.flush()


@pytest.mark.parametrize("name", QUERIES)
def test_batches_are_small_and_the_first_comes_at_once(name: str) -> None:
    pattern, stepper, total = QUERIES[name]
    made = program(pattern)
    assert type(engine_for(made).stepper) is stepper
    next(batches(made), None)  # kernels are compiled
    tracemalloc.start()
    try:
        found = list(islice(batches(made), 3))
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    n = sum(batch.n for batch in found)
    assert n == total if len(found) < 3 else 3 <= n < total
    room = max(CHUNK_EVENTS, 2 * LONGEST)  # a match that is longer than a chunk has room for itself
    assert all(batch.n <= CHUNK_MATCHES and len(batch.positions) <= room for batch in found)
    assert most < 100 << 20


@pytest.mark.parametrize("name", QUERIES)
def test_they_are_counted_without_listing(name: str) -> None:
    pattern, _, total = QUERIES[name]
    made = program(pattern)
    engine = engine_for(made)
    assert engine.count(*events(made)) + engine.count_rest() == total


@pytest.mark.parametrize("clauses", ["SEMANTICS NXT", "SEMANTICS LAST", "AFTER MATCH SKIP PAST LAST ROW",
                                     "AFTER MATCH SKIP TO NEXT ROW", "SEMANTICS NXT AFTER MATCH SKIP TO NEXT ROW",
                                     "CONSUME BY PARTITION SEMANTICS NXT"])  # fmt: skip
@pytest.mark.parametrize("pattern", ["A+ a ; B b", "A+ a ; B b WHERE a.v <= b.v"])
def test_what_is_chosen_is_not_listed_before(pattern: str, clauses: str) -> None:
    made = program(f"{pattern} WITHIN 1 HOUR {clauses}")
    tracemalloc.start()
    try:
        found = list(batches(made))
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert 1 <= sum(batch.n for batch in found) <= 40
    assert most < 100 << 20
