"""What a micro-batch costs by the rows that a stream holds: 2,000 new rows beside 10⁴ to 5·10⁶ that wait.

Of 1, 10³ and 10⁵ keys, for a sequence whose first event waits (nothing is listed), and one where a new row finds the
waiting one that has its value (a match for most). Beside them the micro-batch of a stateless stream of the same rows,
and of a Python stateful operator that does nothing, with as many buckets. Each figure is the median of the
micro-batches after the first three, and the slowest of them.

    python tests/bench/live.py [--most 5000000] [--keys 1 1000 100000] [--times 12]
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle, TimerValues
from streaming import started

import cersql
from runtime.stream.spread import called
from spark_ext import arrivals
from spark_ext.streaming import buckets, choose_store

NEW = 2_000
QUERIES = {
    "waits": "PATTERN A a ; B b ; C c PARTITION BY k ORDER BY ts WITHIN 1 DAY RETURN k, a.v AS a, c.v AS c",
    "compared": "PATTERN A a ; B b PARTITION BY k ORDER BY ts WITHIN 1 DAY WHERE a.v = b.v RETURN k, a.v AS v",
}
NOTHING = "nothing"  # a stateful operator that does nothing
STATELESS = "stateless"


class _Nothing(StatefulProcessor):
    def init(self, handle: StatefulProcessorHandle) -> None:
        self._value = handle.getValueState("n", "n BIGINT")

    def handleInputRows(  # noqa: N802 - pyspark's name
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: TimerValues,  # noqa: N803
    ) -> Iterator[Any]:
        for frame in rows:
            del frame
        yield pd.DataFrame({"n": [1]})

    def close(self) -> None:
        pass


def nothing(source: DataFrame) -> DataFrame:
    """One row for each bucket; they are called as ours are."""
    numbers = called(buckets(source.sparkSession)).tolist()
    bucket = f"element_at(array({', '.join(map(str, numbers))}), CAST(1 + k % {len(numbers)} AS INT)) AS bucket"
    grouped = source.selectExpr(bucket, "v").groupBy("bucket")
    return grouped.transformWithStateInPandas(_Nothing(), "n BIGINT", "Append", "EventTime")


def rows(spark: SparkSession, begin: int, end: int, keys: int) -> DataFrame:
    """As, and in the small micro-batches one row in two is a B that has the value of an A of its key."""
    time = "timestamp_micros(1700000000000000 + id * 1000)"
    return spark.range(begin, end).selectExpr(
        "id", f"{time} AS ts", f"id % {keys} AS k", "'A' AS type", "CAST(id AS DOUBLE) AS v"
    )


def small(spark: SparkSession, begin: int, keys: int) -> DataFrame:
    """New rows: As, and Bs of earlier As."""
    made = rows(spark, begin, begin + NEW, keys)
    earlier = f"(id % {keys}) + {keys} * ((id * 7919) % greatest(1, {begin} DIV {keys}))"
    return made.selectExpr(
        "ts", "k", "IF(hash(id) % 2 = 0, 'A', 'B') AS type", f"IF(hash(id) % 2 = 0, v, CAST({earlier} AS DOUBLE)) AS v"
    )


def stream_of(spark: SparkSession, source: DataFrame, query: str) -> DataFrame:
    if query == STATELESS:
        return source.where("v >= 0")
    if query == NOTHING:
        return nothing(source)
    return cersql.match(source, QUERIES[query])


def measured(spark: SparkSession, place: Path, query: str, live: int, keys: int, times: int) -> dict[str, Any]:
    """Seconds of micro-batches with new rows beside so many that are held."""
    folder, schema = place / "rows", rows(spark, 0, 1, 1).drop("id").schema
    folder.mkdir(parents=True)
    source = arrivals.read(spark, schema, folder).withWatermark("ts", "1 second")
    writer = stream_of(spark, source, query).writeStream.format("noop")
    running = writer.option("checkpointLocation", str(place / "c")).start()
    try:
        parts = [rows(spark, part * live // 4, (part + 1) * live // 4, keys).drop("id") for part in range(4)]
        parts += [small(spark, live + NEW * number, keys) for number in range(times)]
        for number, part in enumerate(parts):
            written = place / f"part{number}"
            part.coalesce(1).write.parquet(str(written))
            for file in written.glob("part-*.parquet"):
                file.rename(folder / f"part-{number:03}.parquet")
            running.processAllAvailable()
        spent = [p.durationMs["triggerExecution"] / 1000 for p in running.recentProgress if p.numInputRows][4:]
        last = running.recentProgress[-1].stateOperators
    finally:
        running.stop()
    found: dict[str, Any] = {"query": query, "keys": keys, "live": live, "median": statistics.median(spent[3:])}
    found |= {"most": max(spent[3:]), "first": spent[0]}
    if last:
        found["state_bytes"] = last[0].customMetrics.get("rocksdbSstFileSize", last[0].memoryUsedBytes)
    return found


def main() -> None:
    asked = argparse.ArgumentParser()
    asked.add_argument("--most", type=int, default=5_000_000)
    asked.add_argument("--keys", type=int, nargs="*", default=[1, 1_000, 100_000])
    asked.add_argument("--times", type=int, default=12)
    asked.add_argument("--queries", nargs="*", default=[STATELESS, NOTHING, *QUERIES])
    asked.add_argument("--live", type=int, nargs="*", default=[10_000, 100_000, 1_000_000, 5_000_000])
    given = asked.parse_args()
    spark = started()
    choose_store(spark)
    for query in given.queries:
        plain = query in (STATELESS, NOTHING)
        for keys in given.keys[:1] if plain else given.keys:
            for live in given.live[:1] if plain else given.live:
                if live <= given.most:
                    with tempfile.TemporaryDirectory() as place:
                        print(json.dumps(measured(spark, Path(place), query, live, keys, given.times)), flush=True)


if __name__ == "__main__":
    main()
