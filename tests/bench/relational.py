"""Both plans of a query side by side: the automaton's and the relational one, and what `auto` chose.

    python tests/bench/relational.py [--millions 1] [--repeat 5] [--only "NAME|…"] [--cpu]
    python tests/bench/relational.py --verify [--millions 10]       cersql.verify: do the rows of both agree?

Whole queries over Parquet into a noop sink, in turns; seconds are the least of all turns. The last column is what auto
loses to the better of the two: at the most 1.2. On a machine that others use, too, `--cpu` compares the processor time
of the driver, the JVM and the workers.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from run import FOLDER, seconds
from spark_bench import CONFIG
from workload import stream

import cersql

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
    "UNLESS, all, 5 min": (
        "(A a ; B b) UNLESS ((C c ; D d) FILTER c.price < d.price)", "PARTITION BY key WITHIN 5 MINUTES",
    ),
    "UNLESS, all, 30 rows": (
        "(A a ; B b) UNLESS ((C c ; D d) FILTER c.price < d.price)", "PARTITION BY key WITHIN 30 EVENTS",
    ),
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
    "no window": (f"A a ; B b WHERE {HIGH}", "PARTITION BY key"),
    "1 hour": ("A a ; B b WHERE a.price > 95 AND b.price > 95", "PARTITION BY key WITHIN 1 HOUR"),
    "equal prices": ("A a ; B b WHERE a.price = b.price", "WITHIN 1 HOUR"),
    "equal prices, 10 s": ("A a ; B b WHERE a.price = b.price AND a.volume < b.volume", "WITHIN 10 SECONDS"),
    "few A": ("A a ; B b WHERE a.price > 99.99", "WITHIN 1 SECOND"),
    "few A, key": ("A a ; B b WHERE a.price > 99.99", "PARTITION BY key WITHIN 1 MINUTE"),
    "many matches": ("A a ; B b", "PARTITION BY key WITHIN 1 MINUTE"),
    "many, compared": ("A a ; B b WHERE a.price < b.price", "PARTITION BY key WITHIN 1 MINUTE"),
    "few C": ("A a ; B b ; C c WHERE c.price > 99.99", "PARTITION BY key WITHIN 1 MINUTE"),
    "few C, compared": ("A a ; B b ; C c WHERE c.price > 99.99 AND a.price < b.price",
                        "PARTITION BY key WITHIN 1 MINUTE"),
    "ALL of three": (f"A a ALL B b ALL C c WHERE {HIGH} AND c.price > 99", "PARTITION BY key WITHIN 1 MINUTE"),
    "ALL of three, compared": (
        f"A a ALL B b ALL C c WHERE {HIGH} AND c.price > 90 AND a.volume < b.volume AND b.volume < c.volume",
        "PARTITION BY key WITHIN 1 MINUTE",
    ),
    "!C after, compared": (f"A a ; B b ; !C c WHERE {HIGH} AND c.price > a.price", "PARTITION BY key WITHIN 1 MINUTE"),
    "two sources": (f"x a ; y b WHERE {HIGH}", "PARTITION BY key WITHIN 1 MINUTE", "events_a AS x, events_b AS y"),
    "two sources, UNLESS": (
        "(x a ; y b) UNLESS ((x c ; y d) FILTER c.price < d.price)", "PARTITION BY key WITHIN 10 SECONDS",
        "events_a AS x, events_b AS y",
    ),
    "NXT inside": (f"A a ; NXT(B b ; C c) WHERE {HIGH} AND c.price > 99", "PARTITION BY key WITHIN 1 MINUTE"),
    "NXT inside, compared": (
        "A a ; NXT((B b ; C c) FILTER b.price < c.price) WHERE a.price > 99 AND b.price > 90 AND c.price > 90",
        "PARTITION BY key WITHIN 1 MINUTE",
    ),
    "UNLESS, few C": (
        f"(A a ; B b) UNLESS ((C c ; D d) FILTER c.price < d.price) WHERE {HIGH} AND c.price > 99",
        "PARTITION BY key WITHIN 1 MINUTE",
    ),
    "UNLESS, equal": (
        f"(A a ; B b) UNLESS ((C c ; D d) FILTER c.volume = d.volume) WHERE {HIGH}", "PARTITION BY key WITHIN 1 MINUTE",
    ),
    "UNLESS, 10 min": (
        f"(A a ; B b) UNLESS ((C c ; D d) FILTER c.price < d.price) WHERE {HIGH}", "PARTITION BY key WITHIN 10 MINUTES",
    ),
    "UNLESS, no key": (
        f"(A a ; B b) UNLESS ((C c ; D d) FILTER c.price < d.price) WHERE {HIGH}", "WITHIN 0.1 SECONDS",
    ),
    "UNLESS, no window": (
        f"(A a ; B b) UNLESS ((C c ; D d) FILTER c.price < d.price) WHERE {HIGH} AND c.price > 99 AND d.price > 99",
        "PARTITION BY key",
    ),
    "UNLESS, three, few B": (
        "(A a ; N1 n ; B b) UNLESS ((C c ; D d) FILTER c.price < d.price) WHERE b.price > 99.9",
        "PARTITION BY key WITHIN 1 MINUTE",
    ),
    "AND, all": ("(A a ; B b) AND ((A a ; B b) FILTER a.volume < b.volume)", "PARTITION BY key WITHIN 1 MINUTE"),
    "MAX, compared, 2 s": ("A a ; B b WHERE a.price < b.price", "PARTITION BY key WITHIN 2 SECONDS SEMANTICS MAX"),
}  # fmt: skip


def text(name: str) -> str:
    pattern, clauses, *source = QUERIES[name]
    read = source[0] if source else "events"
    return f"FROM {read} PATTERN {pattern} ORDER BY ts {clauses} RETURN match_start, match_end, *"


def run(spark: Any, query: str, way: str) -> None:
    spark.conf.set("cersql.plan", way)
    spark.sql(query).write.format("noop").mode("overwrite").save()


def processor_seconds() -> float:
    """What this process and all that it has started have used so far (Linux)."""
    times, children = {}, {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal():
            continue
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        times[int(folder.name)] = sum(map(int, fields[11:15]))  # its own, and those of children that have ended
        children.setdefault(int(fields[1]), []).append(int(folder.name))
    total, todo = 0, [os.getpid()]
    while todo:
        process = todo.pop()
        total += times.get(process, 0)
        todo += children.get(process, [])
    return total / os.sysconf("SC_CLK_TCK")


def processor_time(work: Callable[[], Any]) -> float:
    begin = processor_seconds()
    work()
    return processor_seconds() - begin


def verified(spark: Any, names: list[str], args: argparse.Namespace) -> None:
    """What cersql.verify says of each, and how long it takes: both plans, and all rows as text, compared."""
    print(f"{'query':20} {'seconds':>8}  says")
    for name in names:
        begin = time.perf_counter()
        said = cersql.verify(spark, text(name))
        print(f"{name:20} {time.perf_counter() - begin:8.1f}  {said}", flush=True)


def compared(spark: Any, names: list[str], args: argparse.Namespace) -> None:
    """Both plans in turns, and auto's choice."""
    timed = processor_time if args.cpu else seconds
    print(f"{'query':20} {'run by':>16} {'automaton':>10} {'relational':>11} {'ratio':>6} {'auto':>11} {'loses':>6}")
    for name in names:
        query, times = text(name), {}
        spark.conf.set("cersql.plan", "auto")
        told = cersql.explain(spark, query, "physical")
        stepper = next(line for line in told.splitlines() if line.startswith("run by: ")).removeprefix("run by: ")
        chosen = "relational" if "\nplan: relational" in told else "automaton"
        for _ in range(args.warm_ups):
            for way in ("automaton", "relational"):
                run(spark, query, way)
        for _ in range(args.repeat):
            for way in ("automaton", "relational"):
                times.setdefault(way, []).append(timed(partial(run, spark, query, way)))
        a, r = min(times["automaton"]), min(times["relational"])
        lost = (r if chosen == "relational" else a) / min(a, r)
        print(f"{name:20} {stepper:>16} {a:10.2f} {r:11.2f} {r / a:6.2f} {chosen:>11} {lost:6.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--millions", type=int, default=1)
    parser.add_argument("--rows", type=int, help="so many of the first million")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--warm-ups", type=int, default=2)
    parser.add_argument("--only", default="")
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--verify", action="store_true")
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
    for type in "AB":
        own = str(args.folder / f"stream-{args.rows or args.millions}-{type}.parquet")
        events.where(f"type = '{type}'").coalesce(1).write.mode("overwrite").parquet(own)
        spark.read.parquet(own).createOrReplaceTempView(f"events_{type.lower()}")
    names = list(filter(None, args.only.split("|"))) if args.only else list(QUERIES)
    print(f"{args.rows or args.millions * 1_000_000} events from Parquet, {'processor ' * args.cpu}seconds")
    (verified if args.verify else compared)(spark, names, args)
    spark.stop()


if __name__ == "__main__":
    main()
