"""A stream for some minutes: its state and this process's memory stay bounded. `make soak`, or with the minutes.

python tests/bench/soak.py [minutes]
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from pyspark.sql import SparkSession

import cersql
from spark_ext import arrivals

PATTERN = (
    "PATTERN SEQ(A a, B+ b, !C) PARTITION BY k ORDER BY ts WITHIN 10 SECONDS SEMANTICS NXT RETURN k, a.id, size(b)"
)
ROWS, SECONDS = 20_000, 60  # of a file, of event time in it


def started() -> SparkSession:
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    return cersql.enable(spark)


def file(spark: SparkSession, number: int, folder: Path) -> None:
    """Other keys in every file, so that each key goes away for good."""
    first = number * ROWS
    df = spark.range(first, first + ROWS).selectExpr(
        "id", f"timestamp_millis(CAST(1700000000000 + id * {1000 * SECONDS // ROWS} AS BIGINT)) AS ts",
        f"id % 1000 + {1000 * (number // 5)} AS k", "substr('ABBX', CAST(1 + pmod(hash(id), 4) AS INT), 1) AS type",
    )  # fmt: skip
    arrivals.write(df, "ts", folder / f"part{number}", 1, arrivals.Disorder(2.0, number, late=0.01, late_seconds=30.0))
    (written,) = (folder / f"part{number}").glob("part-*.parquet")
    written.rename(folder / "rows" / f"part-{number:05}.parquet")


def resident_mb() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 >> 20


def main(minutes: float) -> None:
    spark = started()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        schema = spark.range(0).selectExpr("id", "now() AS ts", "id AS k", "'' AS type").schema
        source = arrivals.read(spark, schema, folder / "rows").withWatermark("ts", "2 seconds")
        writer = cersql.match(source, PATTERN).writeStream.format("noop")
        query = writer.option("checkpointLocation", str(folder / "checkpoint")).start()
        until, number, held = time.monotonic() + 60 * minutes, 0, []
        try:
            while time.monotonic() < until or number < 4:
                file(spark, number, folder)
                query.processAllAvailable()
                progress = query.lastProgress
                held.append((progress.stateOperators[0].memoryUsedBytes, resident_mb()))
                print(f"file {number}: state {held[-1][0]} bytes, driver {held[-1][1]} MB", flush=True)
                number += 1
        finally:
            query.stop()
    middle = len(held) // 2
    early, late = (max(state for state, _ in part) for part in (held[2 : middle + 1], held[middle:]))
    assert late < 3 * early, f"the state grows: at most {early} bytes in the first half, {late} in the second"
    assert held[-1][1] < held[middle][1] + 200, "this process grows"


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 10)
