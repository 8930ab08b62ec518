"""Measurements, side by side in one run: the engine alone, whole queries against plain Spark, and what the parser hook
costs ordinary statements.

    python tests/bench/run.py                 # engine on 1 M events, Spark on 10 M
    python tests/bench/run.py --spark 1 --only Q1,Q4 --repeat 5
    python tests/bench/run.py --engine 0 --spark 0     # the hook alone

Prints ratios, not only seconds: machines differ, and this one may be busy. Every query is warmed up, runs
alternate with their baseline, and the median counts. On one million events the number of matches is checked.
"""

from __future__ import annotations

import argparse
import platform
import resource
import statistics
import sys
import time
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
FOLDER = HERE.parent.parent / ".bench"
SCHEMA = {"id": "bigint", "type": "string", "key": "int", "ts": "timestamp", "price": "double", "volume": "int"}


@dataclass(frozen=True)
class BenchQuery:
    """One entry of queries.toml."""

    name: str
    pattern: str
    filter: str
    matches: int
    baseline: str
    where: str | None = None
    partition: str | None = None
    within: str | None = None
    count: bool = False

    def text(self, source: str = "events") -> str:
        clauses = [f"FROM {source}", f"PATTERN {self.pattern}"]
        clauses += [f"WHERE {self.where}"] if self.where else []
        clauses += [f"PARTITION BY {self.partition}"] if self.partition else []
        clauses += ["ORDER BY ts"]
        clauses += [f"WITHIN {self.within}"] if self.within else []
        return " ".join([*clauses, "RETURN a.id AS a, b.id AS b, c.id AS c"])


def load() -> list[BenchQuery]:
    entries = tomllib.loads((HERE / "queries.toml").read_text())
    return [BenchQuery(name, **entry) for name, entry in entries.items()]


def seconds(work: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def peak_mb(children: bool = False) -> float:
    """The greatest resident size so far, of this process or of the greatest of those it waited for."""
    who = resource.RUSAGE_CHILDREN if children else resource.RUSAGE_SELF
    return resource.getrusage(who).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--engine", type=int, default=1, metavar="M", help="millions of events for the engine (0: skip)"
    )
    parser.add_argument("--spark", type=int, default=10, metavar="M", help="millions of events for Spark (0: skip)")
    parser.add_argument("--hook", type=int, default=500, metavar="N", help="statements for the hook (0: skip)")
    parser.add_argument("--repeat", type=int, default=5, help="runs of each, after a warm-up")
    parser.add_argument("--only", default="", help="names of queries, with commas")
    arguments = parser.parse_args()
    wanted = set(filter(None, arguments.only.split(",")))
    queries = [q for q in load() if not wanted or q.name in wanted]
    print(
        f"python {platform.python_version()}, {platform.machine()}; {len(queries)} queries, "
        f"median of {arguments.repeat}"
    )
    if arguments.engine:
        from engine_bench import run_engine

        run_engine(queries, FOLDER, arguments.engine, arguments.repeat)
    if arguments.spark:
        from spark_bench import run_spark

        run_spark(queries, FOLDER, arguments.spark, arguments.repeat)
    if arguments.hook:
        from overhead_bench import run_overhead

        run_overhead(arguments.hook)


def median(times: list[float]) -> float:
    return statistics.median(times)


if __name__ == "__main__":
    main()
