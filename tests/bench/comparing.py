"""Comparisons of events: relevant events per second, in the engine alone, and beside plain Spark SQL.

    python tests/bench/comparing.py [--repeat 3] [--curves | --spark]

The stream of workload.py in memory, one core; nothing is listed, and events of no type of the pattern are left out,
as Spark leaves them out. The curve over the window shows what an event costs by what waits: equality by an index
should not depend on it, other comparisons grow with it. With --curves also by the number of keys, of values that are
bound, and by how often a comparison holds. With --spark the same answers are counted end to end, by cersql, by a
self-join in Spark SQL and by a Python loop in applyInPandas.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow.parquet as pq
from run import SCHEMA, median, seconds
from workload import stream

import cersql
from runtime.engine import engine_for
from runtime.partition.order import float_codes

WINDOWS = (100, 1_000, 10_000, 100_000)
MOST = 1e11  # events times the window: where more would take too long, less of the stream is read
QUERIES = {
    "A ; B, no comparison": ("A a ; B b", "TRUE"),
    "a.price = b.price": ("A a ; B b", "a.price = b.price"),
    "a.price < b.price": ("A a ; B b", "a.price < b.price"),
    "a < b < c": ("A a ; B b ; C c", "a.price < b.price AND b.price < c.price"),
    "b.price > 1.1 * a.price": ("A a ; B+ b", "b.price > 1.1 * a.price"),
    "INCREASING(b.price)": ("A a ; B+ b ; C c", "INCREASING(b.price)"),
    "a.price < b.price, adjacent": ("A a : B b", "a.price < b.price"),
    "a.id = b.id, price rises": ("A a ; B b ; C c", "a.id = b.id AND a.price < b.price"),
    "ALL, a = b and b = c": ("ALL(A a, B b, C c)", "a.price = b.price AND b.volume = c.volume"),
    "ALL, hierarchical": ("ALL(A a, B b, C c)", "a.volume = b.volume AND b.volume = c.volume AND a.price = b.price"),
    "a.price <> b.price": ("A a ; B b ; C c", "a.price <> b.price"),
    "a < c, no B between": ("SEQ(A a, !B, C c)", "a.price < c.price"),
    "no higher B between": ("SEQ(A a, !B b, C c)", "a.price < b.price"),
    "no B above C between": ("SEQ(A a, !B b, C c)", "b.price > c.price"),
    "no D after, a < c": ("SEQ(A a, C c, !D)", "a.price < c.price"),
    "no higher D after": ("SEQ(A a, !D d)", "a.price < d.price"),
    "no D before, a < c": ("SEQ(!D, A a, C c)", "a.price < c.price"),
    "a = b OR a > b": ("A a ; B b", "a.price = b.price OR a.volume > b.volume"),
}


class Stream(NamedTuple):
    """Columns of the events: kinds, and what is compared."""

    kinds: Any
    price: Any
    volume: Any


def prepared(name: str, events: Stream, window: int) -> tuple[Any, Any, Any]:
    """The program, and the symbols and positions of the relevant events."""
    pattern, condition = QUERIES[name]
    text = f"FROM events PATTERN {pattern} WHERE {condition} ORDER BY ts WITHIN {window} EVENTS RETURN a.id"
    program = cersql.compile(text, {"events": SCHEMA}).program
    symbols = np.zeros((len(events.kinds), 1 + len(program.terms)), np.int64)
    for bit, guard in enumerate(program.guards):
        own = [part for part in guard if len(part) <= 3]
        symbols[:, 0] |= np.all([events.kinds == kind for kind in own], axis=0).astype(np.int64) << bit
    for k, term in enumerate(program.terms):
        price = events.price * 1.1 if "1.1" in term else events.price
        symbols[:, 1 + k] = events.volume if "volume" in term else float_codes(price)
    kept = np.flatnonzero(symbols[:, 0])
    return program, symbols[kept] if symbols.shape[1] > 1 else symbols[kept, 0], kept.astype(np.int64)


def rate(program: Any, symbols: Any, positions: Any, keys: Any, repeat: int) -> float:
    """Millions of relevant events a second."""
    # What waits for its window must be there to wait.
    mute = None if program.ends_late else np.ones(len(positions), np.bool_)

    def once() -> None:
        engine = engine_for(program)
        engine.count(symbols, positions, positions=positions, keys=keys, mute=mute)
        for _ in engine.flush():
            pass

    once()
    return len(positions) / median([seconds(once) for _ in range(repeat)]) / 1e6


def measured(name: str, events: Stream, repeat: int, most_seconds: float) -> None:
    for window in WINDOWS:
        program, symbols, positions = prepared(name, events, window)
        n = int(min(len(positions), max(20_000, MOST / window / 100)))
        begin = time.perf_counter()
        shown = rate(program, symbols[:n], positions[:n], None, repeat)
        print(f"{name:28} {program.family:10} {window:>8} {shown:10.3f}", flush=True)
        if 10 * (time.perf_counter() - begin) > most_seconds:
            return  # ten times the window is at least ten times the work here


def curves(events: Stream, repeat: int) -> None:
    """By keys, by values that are bound, and by how often a comparison holds; a window of 1,000 events."""
    random, n = np.random.default_rng(3), len(events.kinds)
    for name in ("a.price = b.price", "a.price < b.price", "ALL, hierarchical"):
        for n_keys in (1, 100, 10_000, 100_000):
            keys = np.sort(random.integers(0, n_keys, n))
            program, symbols, positions = prepared(name, events, 1_000)
            shown = rate(program, symbols, positions, keys[positions], repeat)
            print(f"{name:28} {'keys':12} {n_keys:>8} {shown:10.3f}", flush=True)
    for distinct in (1, 10, 100, 1_000, 10_000):
        few = events._replace(price=random.integers(0, distinct, n) / distinct)
        for name in ("b.price > 1.1 * a.price", "INCREASING(b.price)"):
            program, symbols, positions = prepared(name, few, 1_000)
            shown = rate(program, symbols[:200_000], positions[:200_000], None, repeat)
            print(f"{name:28} {'bound values':12} {distinct:>8} {shown:10.3f}", flush=True)
    for holds in (0.001, 0.01, 0.1, 0.5, 0.99):
        # a.price is uniform in (0, 1), b.price `holds`: so often is the first the less.
        price = np.where(events.kinds == "B", holds, random.uniform(0, 1, n))
        program, symbols, positions = prepared("a.price < b.price", events._replace(price=price), 1_000)
        shown = rate(program, symbols, positions, None, repeat)
        print(f"{'a.price < b.price':28} {'holds':12} {holds:>8} {shown:10.3f}", flush=True)


def spark_side(folder: Path, repeat: int) -> None:
    """`a.price < b.price` within 100 ms over a million rows: cersql, a self-join with time buckets, a Python loop."""
    spark = cersql.session("bench", {"spark.master": "local[2]", "spark.ui.enabled": "false"})
    spark.sparkContext.setLogLevel("ERROR")
    spark.read.parquet(str(stream(folder, 1))).createOrReplaceTempView("events")
    ours = """SELECT count(*) FROM (FROM events PATTERN A a ; B b WHERE a.price < b.price
              ORDER BY ts WITHIN < 100 MILLISECONDS RETURN a.id)"""
    join = """WITH a AS (SELECT *, unix_millis(ts) DIV 100 AS t FROM events WHERE type = 'A'),
                   b AS (SELECT *, unix_millis(ts) DIV 100 AS t FROM events WHERE type = 'B')
              SELECT count(*) FROM (SELECT *, explode(array(t, t + 1)) AS k FROM a) a JOIN b ON b.t = a.k
              WHERE a.id < b.id AND b.ts - a.ts < INTERVAL '0.1' SECOND AND a.price < b.price"""

    def loop(frame: Any) -> Any:
        import pandas as pd

        frame = frame.sort_values("id")
        waiting: list[tuple[int, float]] = []
        found = 0
        for id, kind, price in zip(frame["id"], frame["type"], frame["price"], strict=True):
            waiting = [(i, p) for i, p in waiting if id - i < 100]
            if kind == "A":
                waiting.append((id, price))
            else:
                found += sum(p < price for _, p in waiting)
        return pd.DataFrame({"n": [found]})

    needed = spark.sql("SELECT id, type, price FROM events WHERE type IN ('A', 'B')")
    ways = {
        "cersql": lambda: spark.sql(ours).first()[0],
        "self-join": lambda: spark.sql(join).first()[0],
        "Python loop": lambda: needed.groupBy().applyInPandas(loop, "n long").first()[0],
    }
    counts = {name: way() for name, way in ways.items()}
    print(counts)
    if len(set(counts.values())) > 1:
        raise SystemExit("they do not agree")
    # One after the other: a pandas UDF costs what comes next a fresh worker, which takes two seconds to load kernels.
    times: dict[str, list[float]] = {}
    for name, way in ways.items():
        for _ in range(3):  # the JVM compiles what it runs often
            way()
        times[name] = [seconds(way) for _ in range(repeat)]
    for name, own in times.items():
        print(f"{name:12} {median(own):8.2f} s {median(own) / median(times['cersql']):8.2f}")
    spark.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=60, help="leave out longer windows after one that took longer")
    parser.add_argument("--spark", action="store_true")
    parser.add_argument("--curves", action="store_true")
    parser.add_argument("--folder", type=Path, default=Path(".bench"))
    arguments = parser.parse_args()
    if arguments.spark:
        spark_side(arguments.folder, arguments.repeat)
        return
    table = pq.read_table(stream(arguments.folder, 1), columns=["type", "price", "volume"])
    kinds, price = np.array(table["type"].to_pylist()), np.asarray(table["price"])
    events = Stream(kinds, price, np.asarray(table["volume"]))
    if arguments.curves:
        print(f"{'query':28} {'by':12} {'':>8} {'M events/s':>10}")
        curves(events, arguments.repeat)
        return
    print(f"{'query':28} {'engine':10} {'window':>8} {'M events/s':>10}")
    for name in QUERIES:
        measured(name, events, arguments.repeat, arguments.seconds)


if __name__ == "__main__":
    main()
