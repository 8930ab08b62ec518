"""Matches that share their beginnings: the same rows as where each match is listed whole, however they are read."""

from __future__ import annotations

import dataclasses
import datetime
import math
import random
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from harness import symbols_of
from oracle import Event
from small import shrunk

import cersql
from runtime.compact_set import chained
from runtime.engine import engine_for
from runtime.partition import partition
from runtime.task import OrderColumn, OutputVariable, Task, Walked

TYPES = {
    "i": pa.int32(), "l": pa.int64(), "f": pa.float32(), "d": pa.float64(), "m": pa.decimal128(9, 3), "b": pa.bool_(),
    "day": pa.date32(), "at": pa.timestamp("us"),
}  # fmt: skip
NUMBERS = ("i", "l", "f", "d", "m")
PATTERNS = (
    "A a ; B+ b ; C c",
    "A a ; B:+ b ; C c",
    "A a : B:+ b ; C c",
    "A+ a ; B+ b",
    "B+ b",
    "A? a ; (B b OR C c)+",
    "A a ; B* b ; C c WHERE a.l <= c.l",
    "A a ; B+ b WHERE b.d > a.d",
)


def value(chance: random.Random, name: str) -> Any:
    if chance.random() < 0.25:
        return None
    x = chance.choice((-9, -1, 0, 0, 3, 7))
    return {
        "l": x * 10**18, "f": x / 3, "d": chance.choice((x / 7, -0.0, 0.0, math.nan, 1e300, -1e300)),
        "m": Decimal(x) / 8, "b": x > 0, "day": datetime.date(2024, 1, 10 + x),
        "at": datetime.datetime(2024, 1, 10 + x),
    }.get(name, x)  # fmt: skip


def task_of(pattern: str, window: str) -> Task:
    """All aggregates of `b`, and the events of which there is one."""
    schema = {"t": "type STRING, ts BIGINT, l BIGINT, d DOUBLE"}
    made = cersql.compile(f"FROM t PATTERN {pattern} ORDER BY ts{window} RETURN *", schema)
    program, terms = made.program, made.plan.terms
    walked = [Walked("n", "COUNT", "b", None)]
    walked += [Walked(f"{f}_{name}", f, "b", name) for name in TYPES for f in ("COUNT", "MIN", "MAX")]
    walked += [Walked(f"SUM_{name}", "SUM", "b", name) for name in NUMBERS]
    walked += [Walked(f"AVG_{name}", "AVG", "b", name) for name in NUMBERS if name != "m"]
    singles = [v.mark for v in made.query.variables if v.single and v.mark in program.variables]
    return Task(
        program, ("symbol",), (OrderColumn("ts"),), ("k",), (),
        tuple(OutputVariable(mark, mark, True, ("ts", "d")) for mark in singles),
        key_outputs=(("k", "key"),), start="from", end="to", size="size",
        terms=tuple(sql.strip("`") for sql, _ in terms), walked=tuple(walked),
    )  # fmt: skip


def rows_of(task: Task, chance: random.Random, n: int) -> pa.Table:
    """Of three keys, in order."""
    found = []
    for key in range(3):
        kinds = [chance.choice("ABBBC") for _ in range(n)]
        events = [Event(frozenset({kind}), ts) for ts, kind in enumerate(kinds)]
        for ts, symbol in enumerate(symbols_of(task.program, events).reshape(n, -1)[:, 0].tolist()):
            own = {name: value(chance, name) for name in TYPES}
            found.append({"k": key, "ts": ts, "symbol": symbol, **own})
    kinds = {"k": pa.int64(), "ts": pa.int64(), "symbol": pa.int64(), **TYPES}
    return pa.table({name: pa.array([row[name] for row in found], kind) for name, kind in kinds.items()})


def listed(task: Task, rows: pa.Table) -> list[str]:
    batches = partition.run(task, rows.to_batches(max_chunksize=7))
    return sorted(repr(row) for batch in batches for row in batch.to_pylist())


@pytest.mark.parametrize("window", ["", " WITHIN 5"])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_same_rows(pattern: str, window: str, monkeypatch: pytest.MonkeyPatch) -> None:
    task, chance = task_of(pattern, window), random.Random(pattern)
    for n in (1, 4, 9):
        rows = rows_of(task, chance, n)
        wanted = listed(task, rows)
        with_chains = dataclasses.replace(task, chains=True)
        assert listed(with_chains, rows) == wanted
        with shrunk():
            assert listed(with_chains, rows) == wanted
        monkeypatch.setattr(partition, "STREAM_ROWS", 3)
        assert listed(dataclasses.replace(with_chains, presorted=True), rows) == wanted
    assert wanted


def test_what_matches_share_is_written_once() -> None:
    """A, then 50 times B, then 40 times C: the beginnings of 2,000 matches are 51 events, their ends a C each."""
    made = cersql.compile("FROM t PATTERN A : B:+ ; C ORDER BY ts RETURN *", {"t": "type STRING, ts BIGINT"})
    events = [Event(frozenset({kind}), ts) for ts, kind in enumerate("A" + "B" * 50 + "C" * 40)]
    symbols, times = symbols_of(made.program, events), np.arange(len(events))
    n = written = 0
    for matches in engine_for(made.program, chains=True).feed(symbols, times):
        assert matches.beginnings is not None
        n, written = n + matches.n, written + len(matches.positions)
        assert matches.beginnings.n <= 54
        first = chained.events(matches.beginnings, int(matches.beginnings.of[0]))
        assert matches.beginnings.row[first].tolist() == list(range(len(first) - 1, -1, -1))
    assert n == 50 * 40
    assert written <= n


@pytest.mark.parametrize(
    ("pattern", "clauses", "last"),
    [
        ("A ; B+", "AFTER MATCH SKIP TO NEXT ROW", ""),
        ("A a ; B+ b WHERE a.x <= b.x", "SEMANTICS NXT", ""),
        ("A a ; B+ b", "WITHIN 9", " WITH TIMEOUTS"),
    ],
)
def test_who_chooses_among_matches_gets_them_whole(pattern: str, clauses: str, last: str) -> None:
    text = f"FROM t PATTERN {pattern} ORDER BY ts {clauses} RETURN *{last}"
    program = cersql.compile(text, {"t": "type STRING, ts BIGINT, x INT"}).program
    events = [Event(frozenset({kind}), ts, values=(("`x`", 1),)) for ts, kind in enumerate("ABBB")]
    engine = engine_for(program, chains=True)
    found = [*engine.feed(symbols_of(program, events), np.arange(4)), *engine.flush()]
    assert found
    assert all(matches.beginnings is None for matches in found)
