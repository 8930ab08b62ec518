"""Whole queries from a Parquet file, against what plain Spark needs for the part of the work that it must do anyway."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from run import BenchQuery, median, peak_mb, seconds
from workload import stream

import cersql
from cersql.statements.planned import plan_query
from runtime.errors import Span
from spark_ext.batch import Batch

WARM_UPS = 3  # the JVM compiles what runs often, on either side
CONFIG = {
    "spark.master": "local[2]",
    "spark.driver.memory": "6g",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
}


def run_spark(queries: list[BenchQuery], folder: Path, millions: int, repeat: int) -> None:
    """One line a query: seconds, the baseline's, and the ratio; runs alternate."""
    spark = cersql.session("cersql-bench", CONFIG)
    spark.sparkContext.setLogLevel("ERROR")
    spark.read.parquet(str(stream(folder, millions))).createOrReplaceTempView("events")
    print(f"\nend to end, {millions} M events from Parquet, {spark.sparkContext.defaultParallelism} cores, noop sink")
    print(f"{'query':10} {'seconds':>8} {'M events/s':>11} {'baseline':>9} {'plain Spark':>12} {'ratio':>7}")
    for query in queries:
        if millions == 1:
            found = spark.sql(_counted(query)).first()[0]
            if found != query.matches:
                raise SystemExit(f"{query.name}: {found} matches, {query.matches} expected")
        ours, theirs = _ours(spark, query), _baseline(spark, query)
        for _ in range(WARM_UPS):
            ours(), theirs()
        pairs = [(seconds(ours), seconds(theirs)) for _ in range(repeat)]
        mine, plain = median([a for a, _ in pairs]), median([b for _, b in pairs])
        rate = millions / mine
        print(
            f"{query.name:10} {mine:8.2f} {rate:11.1f} {query.baseline:>9} {plain:12.2f} {mine / plain:7.2f}",
            flush=True,
        )
    print(
        f"peak memory: driver {peak_mb():,.0f} MB, JVM {_jvm_mb(spark):,.0f} MB, largest worker {_worker_mb():,.0f} MB"
    )
    spark.stop()


def _counted(query: BenchQuery) -> str:
    return f"SELECT count(*) FROM ({query.text()})"


def _noop(frame: Any) -> None:
    frame.write.format("noop").mode("overwrite").save()


def _ours(spark: Any, query: BenchQuery) -> Any:
    if query.count:
        return lambda: spark.sql(_counted(query)).collect()
    return lambda: _noop(spark.sql(query.text()))


def _baseline(spark: Any, query: BenchQuery) -> Any:
    """Plain Spark: count the rows that can matter, or shuffle and sort them as the query must."""
    if query.baseline == "count":
        return lambda: spark.sql(f"SELECT count(*) FROM events WHERE {query.filter}").collect()
    if query.partition:
        rows = spark.sql(f"SELECT {query.partition}, ts, type, id FROM events WHERE {query.filter}")
        n = _partitions(spark, query)
        return lambda: _noop(rows.repartition(n, query.partition).sortWithinPartitions(query.partition, "ts"))
    # Positions count: no row can be left out before it has one.
    rows = spark.sql("SELECT ts, type, id FROM events")
    n = _partitions(spark, query)
    return lambda: _noop(rows.repartitionByRange(n, "ts").sortWithinPartitions("ts"))


def _partitions(spark: Any, query: BenchQuery) -> int:
    """As many partitions as our own plan shuffles into."""
    planned = plan_query(spark, query.text(), Span(0, len(query.text())))
    compiled, catalog = planned.compiled, planned.catalog
    return Batch(compiled.plan, catalog)._partitions()


def _jvm_mb(spark: Any) -> float:
    runtime = spark._jvm.java.lang.Runtime.getRuntime()
    return (runtime.totalMemory() - runtime.freeMemory()) / 2**20


def _worker_mb() -> float:
    """The greatest resident size of a Python worker that is still alive (Linux)."""
    greatest = 0.0
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if b"pyspark.daemon" in (entry / "cmdline").read_bytes() and entry.name != str(os.getpid()):
                status = (entry / "status").read_text()
                greatest = max(greatest, int(status.split("VmHWM:")[1].split()[0]) / 1024)
        except (OSError, IndexError):
            continue
    return greatest
