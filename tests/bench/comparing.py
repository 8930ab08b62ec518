"""Comparisons of events: events per second by the window, in the engine alone, and beside plain Spark SQL.

    python tests/bench/comparing.py [--repeat 3] [--spark]

The stream of workload.py in memory, one core; nothing is listed. The curve over the window shows what an event costs by
the bindings that wait: equality by an index should not depend on it, inequalities grow with it. With --spark the same
answers are counted end to end, by cersql, by a self-join in Spark SQL and by a Python loop in applyInPandas.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from run import SCHEMA, median, seconds
from workload import stream

import cersql
from runtime.engine import engine_for
from runtime.order import float_codes

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
}


def measured(name: str, table: Any, repeat: int) -> None:
    pattern, condition = QUERIES[name]
    kinds, price = np.array(table["type"].to_pylist()), np.asarray(table["price"])
    volume = np.asarray(table["volume"])
    for window in WINDOWS:
        text = f"FROM events PATTERN {pattern} WHERE {condition} ORDER BY ts WITHIN {window} EVENTS RETURN a.id"
        program = cersql.compile(text, {"events": SCHEMA}).program
        symbols = np.zeros((len(kinds), 1 + len(program.terms)), np.int64)
        for bit, guard in enumerate(program.guards):
            own = [part for part in guard if len(part) <= 3]
            symbols[:, 0] |= np.all([kinds == kind for kind in own], axis=0).astype(np.int64) << bit
        for k, term in enumerate(program.terms):
            symbols[:, 1 + k] = (
                volume if "volume" in term[0] else float_codes(price * 1.1 if "1.1" in term[0] else price)
            )
        n = int(min(len(kinds), max(20_000, MOST / window / 100)))
        rows, mute = np.arange(n, dtype=np.int64), np.ones(n, np.bool_)

        def once(program: Any = program, part: Any = symbols[:n], rows: Any = rows, mute: Any = mute) -> None:
            engine_for(program).count(part if part.shape[1] > 1 else part[:, 0], rows, mute=mute)

        once()
        took = median([seconds(once) for _ in range(repeat)])
        print(f"{name:28} {program.rule:10} {window:>8} {n / took / 1e6:10.3f}")


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
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(repeat):
        for name, way in ways.items():
            times[name].append(seconds(way))
    for name, own in times.items():
        print(f"{name:12} {median(own):8.2f} s {median(own) / median(times['cersql']):8.2f}")
    spark.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--spark", action="store_true")
    parser.add_argument("--folder", type=Path, default=Path(".bench"))
    arguments = parser.parse_args()
    if arguments.spark:
        spark_side(arguments.folder, arguments.repeat)
        return
    table = pq.read_table(stream(arguments.folder, 1), columns=["type", "price", "volume"])
    print(f"{'query':28} {'engine':10} {'window':>8} {'M events/s':>10}")
    for name in QUERIES:
        measured(name, table, arguments.repeat)


if __name__ == "__main__":
    main()
