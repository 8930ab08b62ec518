"""A stream for half an hour with a million live rows: its state, its memory and the time of a micro-batch stay bounded.

    python tests/bench/soak.py [minutes] [--live 1000000] [--rows 20000] [--emit watermark]

Each file has a minute of events in disorder, and some that are late; it is read when the one before has been. The
window is so long that so many rows are live; until it is full, the state grows. Keys go away for good after some files.
Then the first half of what is measured is held to the second.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import SparkSession

import cersql
from spark_ext import arrivals
from spark_ext.stream_metrics import Metrics

PATTERN = (
    "PATTERN A a ; B b WHERE a.v = b.v PARTITION BY k ORDER BY ts WITHIN {} SECONDS EMIT ON {} RETURN k, a.id, b.id"
)
SECONDS = 60  # of event time in a file
RELEVANT = 0.75  # of the rows
FILES_OF_KEYS = 5  # after which others come


class Seen(NamedTuple):
    """After a file."""

    held: int
    state_mb: int
    memory_mb: int
    seconds: float


def started() -> SparkSession:
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.memory", "4g")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    return cersql.enable(spark)


def file(spark: SparkSession, number: int, rows: int, folder: Path) -> None:
    first = number * rows
    df = spark.range(first, first + rows).selectExpr(
        "id", f"timestamp_micros(CAST(1700000000000000 + id * {1_000_000 * SECONDS // rows} AS BIGINT)) AS ts",
        f"id % 1000 + {1000 * (number // FILES_OF_KEYS)} AS k",
        "substr('ABBX', CAST(1 + pmod(hash(id), 4) AS INT), 1) AS type", "pmod(hash(id, 1), 100) AS v",
    )  # fmt: skip
    arrivals.write(df, "ts", folder / f"part{number}", 1, arrivals.Disorder(2.0, number, late=0.01, late_seconds=30.0))
    (written,) = (folder / f"part{number}").glob("part-*.parquet")
    written.rename(folder / "rows" / f"part-{number:05}.parquet")


def on_disk_mb(folder: Path) -> int:
    """The state, with the versions of it that Spark keeps."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) >> 20


def memory_mb(spark: SparkSession) -> int:
    """What the JVM's heap holds after a collection, and what this process and the workers of Python take. (The JVM
    takes as much as it may before it collects.)"""
    jvm = spark.sparkContext._jvm
    jvm.java.lang.System.gc()
    runtime = jvm.java.lang.Runtime.getRuntime()
    return (runtime.totalMemory() - runtime.freeMemory() >> 20) + python_mb()


def python_mb() -> int:
    """This process, and all that it has begun but for the JVM."""
    parents, pages = {}, {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(place.name)] = int((place / "stat").read_text().rpartition(")")[2].split()[1])
            is_java = (place / "comm").read_text().strip() == "java"
            pages[int(place.name)] = 0 if is_java else int((place / "statm").read_text().split()[1])
        except OSError:  # it has ended meanwhile
            continue
    ours = {int(Path("/proc/self").resolve().name)}
    while more := {child for child, parent in parents.items() if parent in ours} - ours:
        ours |= more
    return sum(pages.get(process, 0) for process in ours) * 4096 >> 20


def main(minutes: float, live: int, rows: int, emit: str) -> None:
    window = max(10, round(SECONDS * live / (RELEVANT * rows)))
    filling = 2 + window // SECONDS
    spark = started()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        schema = spark.range(0).selectExpr("id", "now() AS ts", "id AS k", "'' AS type", "1 AS v").schema
        source = arrivals.read(spark, schema, folder / "rows").withWatermark("ts", "2 seconds")
        writer = cersql.match(source, PATTERN.format(window, emit)).writeStream.format("noop")
        query = writer.option("checkpointLocation", str(folder / "checkpoint")).start()
        until, number, seen, metrics = time.monotonic() + 60 * minutes, 0, [], Metrics()
        print(f"{live} live rows: a window of {window} seconds, which is full after {filling} files", flush=True)
        try:
            while time.monotonic() < until or number < 4:
                file(spark, number, rows, folder)
                query.processAllAvailable()
                new = [metrics.batches[-1] for progress in query.recentProgress if metrics.note(progress)]
                total, taken = metrics.total, sum(batch.batch_seconds for batch in new)
                seen.append(Seen(total.held_rows, on_disk_mb(folder / "checkpoint"), memory_mb(spark), taken))
                engine = sum(batch.engine_seconds for batch in new)
                print(
                    f"file {number}: {total.held_rows} rows held, {seen[-1].state_mb} MB of state, "
                    f"{seen[-1].memory_mb} MB of memory, {taken:.1f} s, {engine:.1f} s in the engine; "
                    f"{total.matches} matches, {total.late} late", flush=True,
                )  # fmt: skip
                number += 1
        finally:
            query.stop()
    check(seen[filling:], live)


def check(seen: list[Seen], live: int) -> None:
    """Hold the second half to the first. What has not been full for a while says nothing."""
    if len(seen) < 8:
        print("too short: the window was not full for long enough, so nothing is compared")
        return
    early, late = seen[: len(seen) // 2], seen[len(seen) // 2 :]

    def most(part: list[Seen], name: str) -> float:
        return max(getattr(own, name) for own in part)

    assert most(late, "held") > live / 2, "there were never so many live rows"
    assert most(late, "held") < 1.5 * most(early, "held"), "the rows held grow"
    assert most(late, "state_mb") < 1.5 * most(early, "state_mb") + 16, "the state grows"
    more, less = (statistics.median(own.memory_mb for own in part) for part in (late, early))  # a fork counts twice
    assert more < 1.2 * less, f"the memory grows: {less:.0f} MB at the median, then {more:.0f}"
    slow, fast = (statistics.median(own.seconds for own in part) for part in (late, early))
    assert slow < 1.5 * fast, f"a micro-batch takes longer: {fast:.1f} s at the median, then {slow:.1f} s"
    print(f"bounded: {fast:.1f} s a file in the first half, {slow:.1f} s in the second")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("minutes", nargs="?", type=float, default=30)
    parser.add_argument("--live", type=int, default=1_000_000, help="relevant rows in the window")
    parser.add_argument("--rows", type=int, default=20_000, help="in a file")
    parser.add_argument("--emit", choices=("arrival", "watermark"), default="arrival", help="when matches are given")
    given = parser.parse_args()
    main(given.minutes, given.live, given.rows, given.emit)
