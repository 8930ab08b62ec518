"""Conditions that Spark tabulates, held to what EXPLAIN says of them: a cost by the pairs of rows that meet.

    python tests/bench/tabulated.py [--repeat 3]

Each line doubles the rows, or how many of them a window holds, and says how the seconds grew from the line before;
with twice the pairs they should grow by 2 at the most. One row in two is an A, the others are Bs; every pair of an A
and a B after it in the window is looked at.
"""

from __future__ import annotations

import argparse
import logging
import time

from run import median

import cersql

QUERY = (
    "SELECT count(*) FROM (FROM source PATTERN A a ; B b WHERE levenshtein(a.s, b.s) < 3 {keys} "
    "WITHIN {window} SECONDS SEMANTICS SKIP TILL NEXT MATCH ORDER BY ts RETURN a.ts)"
)
SOURCE = (
    "SELECT timestamp_micros(id * 1000000) AS ts, IF(id % 2 = 0, 'A', 'B') AS type, id % 10 AS k, "
    "substr(sha2(CAST(id AS STRING), 256), 1, 6) AS s FROM range({rows})"
)
LINES = [(20_000, 50), (40_000, 50), (80_000, 50), (160_000, 50), (160_000, 100), (160_000, 200), (160_000, 400)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=3)
    repeat = parser.parse_args().repeat
    logging.disable(logging.WARNING)
    spark = cersql.session(config={"spark.master": "local[2]"})
    spark.sparkContext.setLogLevel("ERROR")
    for keys in ("", "PARTITION BY k"):
        print(f"{keys or 'no key':18}{'window':>8}{'pairs':>14}{'seconds':>10}{'grew by':>9}")
        before = None
        for rows, window in LINES:
            spark.sql(SOURCE.format(rows=rows)).cache().createOrReplaceTempView("source")
            pairs = rows * window // (40 if keys else 4)
            taken = []
            for _ in range(repeat + 1):
                begin = time.perf_counter()
                spark.sql(QUERY.format(keys=keys, window=window)).collect()
                taken.append(time.perf_counter() - begin)
            spark.catalog.clearCache()
            now = median(taken[1:])
            grew = "" if before is None else f"{now / before:9.2f}"
            print(f"{rows:>18,}{window:>8}{pairs:>14,}{now:>10.2f}{grew}", flush=True)
            before = now
    spark.stop()


if __name__ == "__main__":
    main()
