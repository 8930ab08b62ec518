"""Ordered indexes change no result: the register kernel with and without them, on streams long enough to merge blocks,
drop old ones and compact the arena."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import cersql
from runtime import capacities
from runtime.arrays import AnyArray
from runtime.chain_cea import NOBODY, Registers
from runtime.engine import engine_for
from runtime.program import NULL_CODE, Program
from runtime.steppers import ordered, register_stepper

QUERIES = {
    "less": ("A a ; B b", "a.v < b.v"),
    "at most": ("A a ; B b", "a.v <= b.v"),
    "greater": ("A a ; B b", "a.v > b.v"),
    "at least": ("A a ; B b", "a.v >= b.v"),
    "not equal": ("A a ; B b", "a.v <> b.v"),
    "chain": ("A a ; B b ; C c", "a.v < b.v AND b.v > c.v"),
    "one of two": ("A a ; (B b OR C c)", "a.v < b.v"),
    "no check on the second": ("A a ; (B b OR C c) ; C d", "a.v < b.v AND b.v <> d.v"),
    "rising": ("A a ; B+ b ; C c", "INCREASING(b.v)"),
    "may be empty": ("A a? ; B b", "a.v < b.v"),
    "both less": ("A a ; B b", "a.v < b.v AND a.w < b.w"),
    "less and greater": ("A a ; B b", "a.v < b.v AND a.w >= b.w"),
    "both unequal": ("A a ; B b", "a.v <> b.v AND a.w <> b.w"),
    "between": ("A a ; B b", "a.v <= b.w AND a.w > b.w"),
    "chain of two": ("A a ; B b ; C c", "a.v < b.v AND a.w >= b.w AND b.v <> c.v AND b.w <= c.w"),
    "one value each": ("A a ; (B b OR C c)", "a.v < b.v AND a.w <> c.w"),
}


def program(name: str, window: str) -> Program:
    pattern, condition = QUERIES[name]
    text = f"FROM t PATTERN {pattern} WHERE {condition} ORDER BY ts WITHIN {window} RETURN *"
    return cersql.compile(text, {"t": "ts BIGINT, type STRING, v INT, w INT"}).program


def stream(program: Program, n: int, seed: int, kinds: int, distinct: int) -> AnyArray:
    random = np.random.default_rng(seed)
    values = random.integers(0, distinct, (n, len(program.terms)))
    values[random.random(values.shape) < 0.05] = NULL_CODE
    kind = random.integers(0, kinds, n)
    symbols = np.zeros((n, 1 + len(program.terms)), np.int64)
    for bit, guard in enumerate(program.guards):
        (name,) = (part for part in guard if len(part) == 1)
        symbols[:, 0] |= (kind == "ABC".index(name)).astype(np.int64) << bit
    symbols[:, 1:] = values
    return symbols


def run(program: Program, symbols: AnyArray, times: AnyArray, keys: AnyArray | None, cuts: list[int]) -> list[object]:
    """The matches (key, rows, labels) in some fixed order; the compact set is compacted at each cut."""
    engine, found = engine_for(program), []
    ends = [*cuts, len(symbols)]
    positions = np.arange(len(symbols), dtype=np.int64)
    for begin, end in zip([0, *cuts], ends, strict=True):
        part = slice(begin, end)
        own = None if keys is None else keys[part]
        for m in engine.feed(symbols[part], times[part], positions=positions[part], keys=own, rows=positions[part]):
            for k in range(m.n):
                held = slice(m.offsets[k], m.offsets[k + 1])
                key = 0 if keys is None else int(m.key[k])
                found.append((key, tuple(m.positions[held].tolist()), tuple(m.labels[held].tolist())))
        if end in cuts:
            engine.least_row()
    return sorted(found)  # type: ignore[type-var]


def without(program: Program) -> Program:
    machine = program.machine
    assert isinstance(machine, Registers)
    assert (machine.ordered_of != NOBODY).any()
    return replace(program, machine=replace(machine, ordered_of=np.full_like(machine.ordered_of, NOBODY)))


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("keyed", [False, True], ids=["one stream", "three keys"])
def test_as_without(name: str, keyed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for capacity, first in (("ENTRIES", 16), ("PENDING", 16), ("ORDERED", 64), ("GROUP", 4)):
        monkeypatch.setattr(capacities, capacity, first)
    n = 600
    for seed, (window, distinct) in enumerate((("40", 5), ("25", 1000), ("< 60", 30))):
        own = program(name, "12" if "rising" in name or "no check" in name else window)
        symbols = stream(own, n, seed, 3, distinct)
        keys = np.repeat(np.arange(3), n // 3) if keyed else None
        times = np.concatenate([np.arange(n // 3)] * 3) if keyed else np.arange(n) * 2 // 3  # with ties
        expected = run(without(own), symbols, times.astype(np.int64), keys, [])
        assert expected
        for cuts in ([], [101, 350, 351, 500]):
            assert run(own, symbols, times.astype(np.int64), keys, cuts) == expected, (window, cuts)


def test_blocks_stay_few() -> None:
    """Blocks at least halve from one to the next, whatever leaves the window, and old ones go."""
    own = program("less", "300")
    engine = engine_for(own)
    assert isinstance(engine.stepper, register_stepper.RegisterStepper)
    n = 5000
    symbols = stream(own, n, 1, 2, 1 << 40)
    times = np.arange(n, dtype=np.int64)
    for begin in range(0, n, 100):
        engine.count(symbols[begin : begin + 100], times[begin : begin + 100])
        index = engine.stepper._ordered
        blocks, end = index.ends[0]
        sizes = np.diff([*index.begin[0, :blocks], end])
        assert (sizes[:-1] >= 2 * sizes[1:]).all()
        assert ordered.held(index) <= 4 * 300


def test_one_event_may_bring_more_than_an_index_has_room_for() -> None:
    """Each A waits with a value of its own; B leads all of them to where they wait in order."""
    text = "FROM t PATTERN A a ; B b ; C c WHERE a.w = b.w AND a.v < c.v ORDER BY ts RETURN *"
    own = cersql.compile(text, {"t": "ts BIGINT, type STRING, v INT, w INT"}).program
    n = 2 * capacities.ORDERED
    kinds = np.array([*"A" * n, "B", "C"])
    symbols = np.zeros((n + 2, 1 + len(own.terms)), np.int64)
    for bit, guard in enumerate(own.guards):
        symbols[:, 0] |= np.isin(kinds, sorted(guard)).astype(np.int64) << bit
    symbols[:, 1 + own.terms.index("`v`")] = np.arange(n + 2)
    assert engine_for(own).count(symbols, np.arange(n + 2)) == n
