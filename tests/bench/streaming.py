"""Sustained events/s of a pattern over a stream, beside the same events through a stateless stream, in one run.

Q2: A ; B ; C of one key; one event in five is of one of these types. For 1, 10³ and 10⁵ keys, and of 10³ keys also
trends in windows of 15 seconds; then micro-batches of 1,000 events over 10⁵ keys that have state, beside empty ones,
and what that state takes; then how long after its last event a match is a row, where 1,000 events come a second.
A micro-batch costs some two seconds however small it is (a stateful query commits its state), so a stream that brings
more events a second settles at larger ones: the rate is that of micro-batches of `rows`.

    python tests/bench/streaming.py [rows in a micro-batch] [micro-batches]      0: latency alone
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import cersql
from spark_ext import arrivals

PATTERN = "PATTERN A a ; B b ; C c PARTITION BY k ORDER BY ts WITHIN 1 MINUTE RETURN k, a.v AS a, b.v AS b, c.v AS c"
WINDOWS = {1: "15 MILLISECONDS", 1_000: "15 SECONDS", 100_000: "1 MINUTE"}  # by keys: some As and Bs of one key
TRENDS = (
    "PATTERN A a ; B+ b ; C c PARTITION BY k ORDER BY ts WITHIN 15 SECONDS SLIDE {} RETURN k, COUNT(*), MAX(b.v) "
    "GROUP BY k"
)
SLIDES = ("15 SECONDS", "5 SECONDS")  # an event is in one window, in three
EVENTS_A_SECOND = 1_000  # of event time: so many rows of a window the state holds


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


def events(spark: SparkSession, n: int, keys: int) -> DataFrame:
    """One event in five is an A, B or C; keys are random, so that few of many keys have a whole match."""
    kind = "IF(pmod(hash(id, 1), 5) = 0, substr('ABC', CAST(1 + pmod(hash(id, 2), 3) AS INT), 1), 'other')"
    time = f"timestamp_micros(CAST(1700000000000000 + id * {1_000_000 // EVENTS_A_SECOND} AS BIGINT))"
    return spark.range(n).selectExpr(
        "id", f"{time} AS ts", f"pmod(hash(id, 3), {keys}) AS k", f"{kind} AS type", "CAST(id AS DOUBLE) AS v"
    )


def run(df: DataFrame, checkpoint: Path) -> list[Any]:
    query = (
        df.writeStream.format("noop").option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    )
    query.awaitTermination()
    return list(query.recentProgress)


def rate(progress: list[Any]) -> dict[str, float]:
    """Of the micro-batches after the first two, which start workers and compile."""
    own = [p for p in progress[2:] if p.numInputRows]
    seconds = sum(p.durationMs["triggerExecution"] for p in own) / 1000
    state = [p.stateOperators[0] for p in own if p.stateOperators]
    return {
        "events_per_second": round(sum(p.numInputRows for p in own) / seconds),
        "batch_seconds": round(statistics.median(p.durationMs["triggerExecution"] for p in own) / 1000, 2),
        "state_bytes": state[-1].memoryUsedBytes if state else 0,
        "matches": sum(row.asDict().get("matches") or 0 for p in progress for row in p.observedMetrics.values()),
    }


def main(rows: int, batches: int) -> None:
    spark = started()
    with tempfile.TemporaryDirectory() as place:
        if not rows:
            latency(spark, Path(place, "latency"))
            return
        for keys, window in WINDOWS.items():
            folder = Path(place, f"keys{keys}")
            df = events(spark, rows * batches, keys)
            arrivals.write(df, "ts", folder / "rows", batches, arrivals.Disorder(2.0))
            source = arrivals.read(spark, df.schema, folder / "rows").withWatermark("ts", "2 seconds")
            plain = rate(run(source.where("v >= 0"), folder / "plain"))
            ours = rate(run(cersql.match(source, PATTERN.replace("1 MINUTE", window)), folder / "ours"))
            print(json.dumps({"keys": keys, "stateless": plain, "pattern": ours}), flush=True)
            if keys == 1_000:
                trends(source, folder)
        idle(spark, Path(place, "idle"))
        latency(spark, Path(place, "latency"))


def trends(source: DataFrame, folder: Path) -> None:
    """Groups in windows that follow each other, and in ones of which each event is in three."""
    for slide in SLIDES:
        found = rate(run(cersql.match(source, TRENDS.format(slide)), folder / f"trends {slide}"))
        print(json.dumps({"slide": slide, "trends": found}), flush=True)


def idle(spark: SparkSession, folder: Path, keys: int = 100_000, small: int = 1_000, times: int = 6) -> None:
    """Every key has an A within the hour; then small micro-batches, each beside the empty one that follows it."""
    pattern = PATTERN.replace("1 MINUTE", "1 HOUR")
    start = "timestamp_micros(CAST(1700000000000000 + id AS BIGINT))"
    first = spark.range(keys).selectExpr("id", f"{start} AS ts", "CAST(id AS INT) AS k", "'A' AS type", "0D AS v")
    more = spark.range(small * times).selectExpr(
        "id", f"timestamp_seconds(1700000010 + 10 * (id DIV {small})) AS ts", f"pmod(hash(id), {keys}) AS k",
        "substr('BC', CAST(1 + id % 2 AS INT), 1) AS type", "0D AS v",
    )  # fmt: skip
    source = arrivals.read(spark, first.schema, folder / "rows").withWatermark("ts", "1 second")
    query = (
        cersql.match(source, pattern).writeStream.format("noop").option("checkpointLocation", str(folder / "c")).start()
    )
    try:
        for number, part in enumerate((first, *(more.where(f"id DIV {small} = {i}") for i in range(times)))):
            arrivals.write(part, "ts", folder / f"part{number}", 1, arrivals.Disorder())
            for file in (folder / f"part{number}").glob("part-*.parquet"):
                file.rename(folder / "rows" / f"part-{number:03}.parquet")
            query.processAllAvailable()
        spent = [(p.numInputRows, p.durationMs["triggerExecution"] / 1000) for p in query.recentProgress[4:]]
        stored = query.recentProgress[-1].stateOperators[0].customMetrics["rocksdbSstFileSize"]
    finally:
        query.stop()
    full = statistics.median(seconds for n, seconds in spent if n)
    empty = [seconds for n, seconds in spent if not n]
    rows = keys + small * times
    alone = spark.read.parquet(str(folder / "rows"))
    arrow = alone.toArrow().nbytes
    shown = {"idle_keys": keys, "events": small, "seconds": full, "empty_seconds": sorted(empty)}
    print(json.dumps({**shown, "state_bytes": stored, "live_rows": rows, "rows_as_arrow": arrow}), flush=True)


def latency(spark: SparkSession, folder: Path, seconds: int = 60, a_second: int = 1_000, keys: int = 1_000) -> None:
    """How long after its last event was written a match is a row, beside a micro-batch of the same stream without any
    pattern. Events are at most a second late; one in five is an A, B or C. The first third warms up."""
    pattern = PATTERN[: PATTERN.index(" RETURN")] + " RETURN greatest(a.v, b.v, c.v) AS written"
    emits = ("ON ARRIVAL", "ON WATERMARK")
    for name, text in (("stateless", None), *((emit, f"{pattern} EMIT {emit}") for emit in emits)):
        own = folder / name.replace(" ", "_")
        own.joinpath("rows").mkdir(parents=True)
        schema = "ts timestamp, k long, type string, v double"
        source = spark.readStream.schema(schema).parquet(str(own / "rows")).withWatermark("ts", "1 second")
        result = source.selectExpr("v AS written") if text is None else cersql.match(source, text)
        seen: list[float] = []
        warm = time.time() + seconds / 3

        def note(rows: DataFrame, number: int, seen: list[float] = seen, warm: float = warm) -> None:
            found = rows.toArrow().column("written").to_numpy()
            now = time.time()
            seen.extend((now - found[found > warm]).tolist())

        query = result.writeStream.foreachBatch(note).option("checkpointLocation", str(own / "c")).start()
        try:
            _written(own, seconds, a_second, keys)
            query.processAllAvailable()
            spent = [p.durationMs["triggerExecution"] / 1000 for p in query.recentProgress[-20:] if p.numInputRows]
        finally:
            query.stop()
        at = {f"p{share}": round(float(np.percentile(seen, share)), 2) for share in (50, 95, 99)}
        shown = {"latency": name, "seconds": at, "micro_batch": round(statistics.median(spent), 2), "rows": len(seen)}
        print(json.dumps({**shown, "events_a_second": a_second}), flush=True)


def _written(folder: Path, seconds: int, a_second: int, keys: int) -> None:
    """A file a second, whose events bear the time of writing in v."""
    random = np.random.default_rng(5)
    for number in range(seconds):
        time.sleep(1)
        now = time.time()
        columns = {
            "ts": pa.array(((now - random.uniform(0, 1, a_second)) * 1e6).astype(np.int64), pa.timestamp("us", "UTC")),
            "k": random.integers(0, keys, a_second),
            "type": np.array([*"ABC", *["other"] * 12])[random.integers(0, 15, a_second)],
            "v": np.full(a_second, now),
        }
        pq.write_table(pa.table(columns), folder / "part.parquet")
        folder.joinpath("part.parquet").rename(folder / "rows" / f"part-{number:04}.parquet")


if __name__ == "__main__":
    main(*(int(argument) for argument in (*sys.argv[1:], "2000000", "5")[:2]))
