"""Both plans of a query side by side: the automaton's and the relational one, and what `auto` chose.

    python tests/bench/relational.py [--millions 1] [--repeat 5] [--only "NAME|…"]

Whole queries over Parquet into a noop sink, in turns; seconds are medians. The last column is what auto loses to the
better of the two: at the most 1.2.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any

from run import FOLDER, median, seconds
from spark_bench import CONFIG
from workload import stream

import cersql

WARM_UPS = 2
HIGH = "a.price > 99 AND b.price > 99"
# name: (pattern and WHERE, other clauses)
QUERIES = {
    "A ; B, key, 1 s": (f"A a ; B b WHERE {HIGH}", "PARTITION BY key WITHIN 1 SECOND"),
    "A ; B, key, 1 min": (f"A a ; B b WHERE {HIGH}", "PARTITION BY key WITHIN 1 MINUTE"),
    "A ; B, no key, 1 s": (f"A a ; B b WHERE {HIGH}", "WITHIN 1 SECOND"),
    "A ; B, id = id + 1": ("A a ; B b WHERE a.id = b.id - 1", "WITHIN 1 SECOND"),
    "A ; B ; C, key": (f"A a ; B b ; C c WHERE {HIGH} AND c.price > 99", "PARTITION BY key WITHIN 1 MINUTE"),
    "A : B, key": (f"A a : B b WHERE {HIGH}", "PARTITION BY key"),
    "A : B, no key": (f"A a : B b WHERE {HIGH}", ""),
    "A ALL B": (f"A a ALL B b WHERE {HIGH}", "PARTITION BY key WITHIN 1 MINUTE"),
    "!C between": (f"A a ; !C ; B b WHERE {HIGH}", "PARTITION BY key WITHIN 1 MINUTE"),
    "!C compared": (f"A a ; !C c ; B b WHERE {HIGH} AND c.price > a.price", "PARTITION BY key WITHIN 1 MINUTE"),
    "!C after": (f"A a ; B b ; !C WHERE {HIGH}", "PARTITION BY key WITHIN 1 MINUTE"),
    "UNLESS": (f"(A a ; B b) UNLESS C WHERE {HIGH}", "PARTITION BY key WITHIN 1 MINUTE"),
    "b{1,2}": (f"A a ; B{{1,2}} b WHERE {HIGH}", "PARTITION BY key WITHIN 1 MINUTE"),
    "B OR C": (f"A a ; (B b OR C c) WHERE {HIGH} AND c.price > 99", "PARTITION BY key WITHIN 1 MINUTE"),
    "NXT": (f"A a ; B b WHERE {HIGH}", "PARTITION BY key WITHIN 1 MINUTE SEMANTICS NXT"),
    "NXT, compared": (
        f"A a ; B b WHERE {HIGH} AND a.price < b.price", "PARTITION BY key WITHIN 1 MINUTE SEMANTICS NXT",
    ),
    "MAX, compared": (
        f"A a ; B b WHERE {HIGH} AND a.price < b.price", "PARTITION BY key WITHIN 1 MINUTE SEMANTICS MAX",
    ),
    "skip till next": (f"A a ; B b WHERE {HIGH}", "PARTITION BY key WITHIN 1 MINUTE SEMANTICS SKIP TILL NEXT MATCH"),
    "ALL, compared": (
        "(A a ; B b) ALL (C c ; D d) WHERE a.price > 99 AND b.price > 90 AND c.price > 99 AND d.price > 90 "
        "AND a.volume < c.volume", "PARTITION BY key WITHIN 1 MINUTE",
    ),
    "AND, compared": (
        f"(A a ; B b) AND ((A a ; B b) FILTER a.volume < b.volume) WHERE {HIGH}", "PARTITION BY key WITHIN 1 MINUTE",
    ),
    "UNLESS, compared": (
        f"(A a ; B b) UNLESS ((C c ; D d) FILTER c.price < d.price) WHERE {HIGH}", "PARTITION BY key WITHIN 1 MINUTE",
    ),
    "UNLESS, compared, all": ("(A a ; B b) UNLESS ((C c ; D d) FILTER c.price < d.price)",
                              "PARTITION BY key WITHIN 30 SECONDS"),
    "MAX, compared, half": ("A a ; B b WHERE a.price > 50 AND b.price > 50 AND a.price < b.price",
                            "PARTITION BY key WITHIN 1 MINUTE SEMANTICS MAX"),
    "a function": (
        f"A a ; B b WHERE {HIGH} AND levenshtein(CAST(a.volume AS STRING), CAST(b.volume AS STRING)) < 2",
        "PARTITION BY key WITHIN 1 MINUTE",
    ),
    "a function, no key": (
        f"A a ; B b WHERE {HIGH} AND levenshtein(CAST(a.volume AS STRING), CAST(b.volume AS STRING)) < 2",
        "WITHIN 1 SECOND",
    ),
}  # fmt: skip


def text(name: str) -> str:
    pattern, clauses = QUERIES[name]
    return f"FROM events PATTERN {pattern} ORDER BY ts {clauses} RETURN match_start, match_end, *"


def run(spark: Any, query: str, way: str) -> None:
    spark.conf.set("cersql.plan", way)
    spark.sql(query).write.format("noop").mode("overwrite").save()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--millions", type=int, default=1)
    parser.add_argument("--rows", type=int, help="so many of the first million")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--only", default="")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    args = parser.parse_args()
    spark = cersql.session("cersql-bench", CONFIG)
    spark.sparkContext.setLogLevel("ERROR")
    events = spark.read.parquet(str(stream(args.folder, args.millions)))
    if args.rows:
        small = str(args.folder / f"stream-{args.rows}.parquet")
        events.where(f"id < {args.rows}").coalesce(1).write.mode("overwrite").parquet(small)
        events = spark.read.parquet(small)
    events.createOrReplaceTempView("events")
    print(f"{args.rows or args.millions * 1_000_000} events from Parquet, noop sink, medians of {args.repeat}")
    print(f"{'query':20} {'run by':>16} {'automaton':>10} {'relational':>11} {'ratio':>6} {'auto':>11} {'loses':>6}")
    for name in filter(None, args.only.split("|")) if args.only else QUERIES:
        query, times = text(name), {}
        spark.conf.set("cersql.plan", "auto")
        told = cersql.explain(spark, query, "physical")
        stepper = next(line for line in told.splitlines() if line.startswith("run by: ")).removeprefix("run by: ")
        chosen = "relational" if "\nplan: relational" in told else "automaton"
        for _ in range(WARM_UPS):
            for way in ("automaton", "relational"):
                run(spark, query, way)
        for _ in range(args.repeat):
            for way in ("automaton", "relational"):
                times.setdefault(way, []).append(seconds(partial(run, spark, query, way)))
        a, r = median(times["automaton"]), median(times["relational"])
        lost = (r if chosen == "relational" else a) / min(a, r)
        print(f"{name:20} {stepper:>16} {a:10.2f} {r:11.2f} {r / a:6.2f} {chosen:>11} {lost:6.2f}", flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
