"""Aggregates: over all matches of a group without listing them, and over the events of each match.

    python tests/bench/aggregates.py [--rows 1000000] [--repeat 3]

First the engine alone, over rows that are in memory: it reads `A ; B+ ; C` over a million events, of which one in a
hundred is an A and one a C, and gives nothing; then it sums up all matches, of which there are more than 2^900000. Then
the same through Spark, also with windows; SELECT k, count(*) … GROUP BY k around a query, beside count(k), which lists
the matches; RETURN SUM(b.x) over loops of 1,000 events, with arrays and without; and conditions that few of 2^n matches
fulfil (--failing n).
"""

from __future__ import annotations

import argparse
import logging
import time
from collections.abc import Callable
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from run import median

import cersql
from cersql.binding import match_values
from planner import physical
from planner.sieve import NO_SIEVE
from runtime.engine import engine_for
from runtime.partition.grouping import Grouping
from runtime.task import GroupedBy, Summed, Trend

PATTERN = "PATTERN A a ; B+ b ; C c ORDER BY ts"
SCHEMA = {"t": "ts BIGINT, type STRING, x BIGINT, k BIGINT"}
MEAN = Summed("AVG OF DOUBLE", "b", "x", ("s", "n", "p"), "AVG(b.x)")
MOST = Summed("MAX", "b", "x", ("m",), "MAX(b.x)")
SOURCE = (
    "SELECT id AS ts, CASE id % 100 WHEN 0 THEN 'A' WHEN 50 THEN 'C' ELSE 'B' END AS type, hash(id) % 1000 AS x, "
    "id % 100000 AS k FROM range({rows})"
)
GROUPS = [
    ("AVG, MAX, one group", f"{PATTERN} RETURN AVG(b.x), MAX(b.x) GROUP BY ()"),
    ("AVG, MAX by c.k", f"{PATTERN} RETURN c.k, AVG(b.x), MAX(b.x) GROUP BY c.k"),
    ("COUNT, SUM, WITHIN 20", f"{PATTERN} WITHIN 20 RETURN COUNT(*), SUM(b.x) GROUP BY ()"),
    ("COUNT, SUM, WITHIN 100 SLIDE 20", f"{PATTERN} WITHIN 100 SLIDE 20 RETURN window, COUNT(*), SUM(b.x)"),
]
COUNTED = [
    ("A ; C WITHIN 60, a match in a hundred events", "A a ; C c", 60),
    ("A ; B WITHIN 100, a match an event", "A a ; B b", 100),
    ("A ; B ; C WITHIN 300, 4.5 matches an event", "A a ; B b ; C c", 300),
    ("A ; B ; B ; C WITHIN 100, 12 matches an event", "A a ; B b ; B d ; C c", 100),
]
LOOPS = (
    "SELECT id AS ts, CASE WHEN id % {own} = 0 THEN 'A' WHEN id % {own} > 1000 THEN 'C' ELSE 'B' END AS type, "
    "hash(id) % 1000 AS x, id DIV {own} AS k FROM range({own} * {loops})"
)
SHAPES = {  # of loops of 1,000 events: how many ends each has, and the pattern
    "one match": (1, "A a : B:+ b : C c"),
    "50,000 matches": (50, "A a : B:+ b ; C c"),
}
ASKED = ("SUM(b.x) >= {0}", "SUM(b.d) >= {0}", "AVG(b.x) > 1.5", "MAX(b.x) > 1", "MIN(b.x) < 1")
CALLS = ("SUM(b.x)", "COUNT(b), SUM(b.x), AVG(b.x), MIN(b.x), MAX(b.x)")


def seconds(run: Callable[[], Any], repeat: int) -> float:
    taken = []
    for _ in range(repeat + 1):
        begin = time.perf_counter()
        run()
        taken.append(time.perf_counter() - begin)
    return median(taken[1:])


def written(spark: SparkSession, query: str) -> None:
    """All rows, to nowhere."""
    spark.sql(query).write.format("noop").mode("overwrite").save()


def engine_alone(rows: int, repeat: int) -> None:
    """The engine, with nothing to say and with groups."""
    program = cersql.compile(f"FROM t {PATTERN} RETURN a.x, b.x, c.x", SCHEMA).program
    bit = {name: 1 << program.guards.index(frozenset({name})) for name in "ABC"}
    symbols = np.full(rows, bit["B"], np.int64)
    symbols[::100], symbols[50::100] = bit["A"], bit["C"]
    times, mute = np.arange(rows, dtype=np.int64), np.ones(rows, np.bool_)
    table = pa.table({"x": pa.array(times * 7919 % 1000), "k": pa.array(times % 100_000)})

    def plain() -> None:
        assert not list(engine_for(program).feed(symbols, times, mute=mute))

    def summed(trend: Trend, prepared: Grouping | None = None) -> None:
        grouping = prepared or Grouping(trend, program, table)
        engine = engine_for(program)
        trends = engine.trends(lifts[trend] if prepared else grouping.lift(), grouping.of_row, grouping.width, False)
        engine.sum_up(trends, symbols, times, rows=times)
        engine.sum_rest(trends)
        grouping.batch(trends.found)

    by = (GroupedBy("k", "c", "k", "c.k"),)
    base = seconds(plain, repeat)
    print(f"{'engine alone, ' + format(rows, ',') + ' events':40}{'seconds':>10}{'of plain':>10}{'M events/s':>12}")
    print(f"{'plain, without any output':40}{base:>10.3f}{1.0:>10.2f}{rows / base / 1e6:>12.1f}")
    lifts: dict[Trend, Any] = {}
    for name, trend in (
        ("MAX", Trend((), (MOST,))), ("AVG", Trend((), (MEAN,))), ("AVG, MAX", Trend((), (MEAN, MOST))),
        ("AVG, MAX by c.k", Trend(by, (MEAN, MOST))),
    ):  # fmt: skip
        prepared = Grouping(trend, program, table)
        lifts[trend] = prepared.lift()
        for what, run in (
            (f"{name}: kernels", lambda t=trend, p=prepared: summed(t, p)),
            (f"{name}: with columns", lambda t=trend: summed(t)),
        ):
            taken = seconds(run, repeat)
            print(f"{what:40}{taken:>10.3f}{taken / base:>10.2f}{rows / taken / 1e6:>12.1f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--failing", type=int, default=20, help="2^n matches, of which few hold")
    given = parser.parse_args()
    logging.disable(logging.WARNING)
    engine_alone(given.rows, given.repeat)
    spark = cersql.session(config={"spark.master": "local[2]", "spark.ui.enabled": "false"})
    spark.sparkContext.setLogLevel("ERROR")
    spark.sql(SOURCE.format(rows=given.rows)).cache().createOrReplaceTempView("t")
    once = "SELECT count(*) FROM (FROM t PATTERN A a ; C c ORDER BY ts WITHIN 20 RETURN a.x)"
    print(f"\n{'through Spark':40}{'seconds':>10}{'of count':>10}")
    base = seconds(lambda: spark.sql(once).collect(), given.repeat)
    print(f"{'count(*) of A ; C WITHIN 20':40}{base:>10.2f}{1.0:>10.2f}", flush=True)
    for name, text in GROUPS:
        taken = seconds(lambda text=text: spark.sql(f"FROM t {text}").collect(), given.repeat)
        print(f"{name:40}{taken:>10.2f}{taken / base:>10.2f}", flush=True)
    print(f"\n{'SELECT x, count … GROUP BY x around it':50}{'listed':>10}{'groups':>10}{'times':>8}")
    for name, pattern, window in COUNTED:
        around = f"FROM (FROM t PATTERN {pattern} ORDER BY ts WITHIN {window} RETURN a.x % 8 AS x) GROUP BY x"
        texts = [f"SELECT x, {count} AS n {around} ORDER BY x" for count in ("count(x)", "count(*)")]
        assert spark.sql(texts[0]).collect() == spark.sql(texts[1]).collect()
        old, new = (seconds(lambda text=text: spark.sql(text).collect(), given.repeat) for text in texts)
        print(f"{name:50}{old:>10.2f}{new:>10.2f}{old / new:>8.1f}", flush=True)
    for shape in SHAPES:
        of_each_match(spark, shape, given.rows // 1000, given.repeat)
    few_that_hold(spark, given.failing, given.repeat)
    spark.stop()


def few_that_hold(spark: SparkSession, n: int, repeat: int) -> None:
    """A, n times B and C: 2^n - 1 matches, of which none to n + 1 hold; passed over, and all listed and filtered."""
    rows = "SELECT id AS ts, CASE id WHEN 0 THEN 'A' WHEN {n} + 1 THEN 'C' ELSE 'B' END AS type, 1 AS x, 1.0D AS d"
    for view, m in (("failing", n), ("twice", 2 * n)):
        spark.sql(f"{rows.format(n=m)} FROM range({m} + 2)").cache().createOrReplaceTempView(view)
    columns = f"{'hold':>10}{'all listed':>12}{'passed over':>13}{'times':>8}{f'of 2^{2 * n}':>10}"
    print(f"\n{f'of 2^{n} - 1 matches':40}{columns}")
    for asked in ASKED:
        asking = PATTERN.replace("ORDER", f"WHERE {asked} ORDER")
        counts = f"SELECT count(*) FROM (FROM {{1}} {asking} RETURN c.ts)"
        texts = [counts.format(m, view) for view, m in (("failing", n), ("twice", 2 * n))]
        passed, of_more = (seconds(lambda text=text: spark.sql(text).collect(), repeat) for text in texts)
        with patch.object(physical, "sieve", lambda *_: NO_SIEVE):
            listed = seconds(lambda text=texts[0]: spark.sql(text).collect(), 1)
        hold = spark.sql(texts[0]).collect()[0][0]
        shown = f"{asked.format(n):40}{hold:>10}{listed:>12.2f}{passed:>13.2f}{listed / passed:>8.1f}{of_more:>10.2f}"
        print(shown, flush=True)


def of_each_match(spark: SparkSession, shape: str, most: int, repeat: int) -> None:
    """Aggregates over loops of 1,000 events, as numbers along the walk and by Spark over arrays."""
    ends, pattern = SHAPES[shape]
    loops = most if ends == 1 else min(most, 20)
    spark.catalog.clearCache()
    spark.sql(LOOPS.format(own=1001 + ends, loops=loops)).cache().createOrReplaceTempView("loops")
    print(f"\n{f'{loops:,} loops of 1,000 events, {shape} each':60}{'arrays':>10}{'walked':>10}{'times':>8}")
    for calls in CALLS:
        write = partial(written, spark, f"FROM loops PATTERN {pattern} PARTITION BY k ORDER BY ts RETURN k, {calls}")
        walked = seconds(write, repeat)
        with patch.object(match_values, "_is_walked", lambda function, parts: False):
            old = seconds(write, repeat)
        print(f"{calls:60}{old:>10.2f}{walked:>10.2f}{old / walked:>8.1f}", flush=True)


if __name__ == "__main__":
    main()
