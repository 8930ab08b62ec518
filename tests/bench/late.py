"""What one late row costs by the matches that were given before it: one key, A ; B+ ; C, whose 2ᵏ matches end later.

Micro-batches whose row lies before the last B, so that one match contains it, and whose row is an A behind all Bs, so
that none does. No Spark: one bucket of the state in memory. Each figure is the least of some.

    python tests/bench/late.py [--most 18]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from buckets import Memory, bucket_of, stream_task, table_of
from strategies import Row

from planner import cel
from planner.terms import Window
from runtime.stream.task import NEVER

A, B, C = (cel.Event(name, frozenset({name})) for name in "ABC")
LATE = {"one match": -1, "none": 1}  # where the A lies, from the last B


def measured(k: int, late: int, times: int = 5) -> tuple[int, float]:
    """How many matches a late row brings, and in how many seconds."""
    task = stream_task(cel.Sequence(cel.Sequence(A, cel.Iteration(B)), C), Window("time", 1000))
    rows = [Row("A", 1, 0, 0), *(Row("B", 1, 2 * n, 0) for n in range(1, k + 1)), Row("C", 1, 500, 0)]
    rows += [Row("A", 1, 2 * k + late, 0)] * times
    table, store, spent, found = table_of(task, rows), Memory(), [], 0
    for begin, end in ((0, k + 2), *((at, at + 1) for at in range(k + 2, k + 2 + times))):
        began = time.perf_counter()
        bucket = bucket_of(task, store)
        found = sum(batch.num_rows for batch in bucket.run([table.slice(begin, end - begin)], NEVER))
        bucket.save()
        spent.append(time.perf_counter() - began)
    return found, min(spent[1:])


def main() -> None:
    asked = argparse.ArgumentParser()
    asked.add_argument("--most", type=int, default=18)
    most = asked.parse_args().most
    for name, late in LATE.items():
        measured(2, late)
        for k in range(6, most + 1, 4):
            found, seconds = measured(k, late)
            shown = {"late row brings": name, "given before": 2**k - 1, "found": found, "ms": round(1000 * seconds, 2)}
            sys.stdout.write(json.dumps(shown) + "\n")


if __name__ == "__main__":
    main()
