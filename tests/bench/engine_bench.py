"""The engine alone, on one core: symbols and times in memory, matches listed or only counted."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from run import SCHEMA, BenchQuery, median, peak_mb, seconds
from workload import stream

import cersql
from runtime.engine import engine_for
from runtime.program import Program, Window


def symbols(table: dict[str, np.ndarray], program: Program, query: BenchQuery) -> np.ndarray:
    """What Catalyst would compute: the bit of each guard (a type, and a price above the query's)."""
    least = float(query.where.split("> ")[1].split()[0]) if query.where else -1.0
    bits = np.zeros(len(table["type"]), np.int64)
    for i, guard in enumerate(program.guards):
        kind = next(part for part in guard if len(part) == 1)
        bits |= ((table["type"] == kind) & (table["price"] > least)).astype(np.int64) << i
    return bits


def run_engine(queries: list[BenchQuery], folder: Path, millions: int, repeat: int) -> None:
    """One line a query: M events/s listing, M events/s with a window 100 times larger where nothing is listed."""
    file = pq.read_table(stream(folder, millions), columns=["type", "key", "price", "ts"])
    table = {name: file.column(name).to_numpy() for name in ("type", "key", "price")}
    times = file.column("ts").cast("int64").to_numpy()
    print(f"\nengine alone, {millions} M events, one core")
    print(f"{'query':10} {'matches':>12} {'M events/s':>11} {'window x100, nothing listed':>28} {'nodes':>8}")
    for query in queries:
        program = cersql.compile(query.text(), {"events": SCHEMA}).program
        read, clock, keys = symbols(table, program, query), times, None
        if query.partition:
            order = np.lexsort((times, table["key"]))
            read, clock, keys = read[order], times[order], table["key"][order].astype(np.int64)
        found = _run(program, read, clock, keys, query.count)
        if millions == 1 and found != query.matches:
            raise SystemExit(f"{query.name}: {found} matches, {query.matches} expected")
        listed = median([seconds(partial(_run, program, read, clock, keys, query.count)) for _ in range(repeat)])
        wide = _widened(program)
        silent = read & ~np.int64(_last_bit(program))
        same = median([seconds(partial(_run, program, silent, clock, keys, True)) for _ in range(repeat)])
        wider = median([seconds(partial(_run, wide, silent, clock, keys, True)) for _ in range(repeat)])
        engine = engine_for(program)
        engine.count(read, clock, keys=keys)
        rate = len(read) / listed / 1e6
        print(f"{query.name:10} {found:12,} {rate:11.1f} {wider / same:21.2f} times {engine.nodes:14,}")
    print(f"peak memory {peak_mb():,.0f} MB")


def _run(program: Program, read: np.ndarray, clock: np.ndarray, keys: np.ndarray | None, count: bool) -> int:
    engine = engine_for(program)
    if count:
        return engine.count(read, clock, keys=keys)
    return sum(matches.n for matches in engine.feed(read, clock, keys=keys))


def _last_bit(program: Program) -> int:
    """The guard of the last type, C: without it nothing matches, and all runs stay open."""
    return next(1 << i for i, guard in enumerate(program.guards) if "C" in guard)


def _widened(program: Program) -> Program:
    window = program.window
    return program if window is None else replace(program, window=Window(window.kind, window.size * 100, window.strict))
