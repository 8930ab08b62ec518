"""A table as a stream: its rows in files that a stream reads one after the other, late and in disorder as one likes.

The order of files is that of their modification times, so the directory must be one that this process and Spark's
workers see alike, such as a local one in local mode.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - pyspark's custom
from pyspark.sql.types import StructField, StructType

from planner.sql import quote

ARRIVAL = "__cersql_arrival"
END = "TIMESTAMP '9999-12-31 00:00:00'"
"""The time of the row that ends a stream: a watermark a year or less behind it closes every window."""


@dataclass(frozen=True)
class Disorder:
    """How rows arrive: less than `seconds` after their time, by `seed`; the share `late` comes `late_seconds` later."""

    seconds: float = 0.0
    seed: int = 0
    late: float = 0.0
    late_seconds: float = 0.0


def write(df: DataFrame, time: str, folder: Path, files: int, disorder: Disorder, ended: bool = False) -> None:
    """Write the rows in the order of their arrival; `ended`: and a last row, of NULLs, at the end of all time."""
    plain, clock = quote(time), f"CAST({quote(time)} AS DOUBLE)"
    if df.schema[time].dataType.simpleString() == "timestamp_ntz":
        clock = f"CAST(CAST({plain} AS TIMESTAMP) AS DOUBLE)"
    delay = f"rand({disorder.seed}) * {max(0.0, disorder.seconds - 0.002)}D"
    later = f"IF(rand({disorder.seed + 1}) < {disorder.late}D, {disorder.late_seconds}D, 0D)"
    arriving = df.withColumn(ARRIVAL, F.expr(f"{clock} + {delay} + {later}"))
    ordered = arriving.repartitionByRange(files, ARRIVAL).sortWithinPartitions(ARRIVAL).drop(ARRIVAL)
    ordered.write.mode("append").parquet(str(folder))
    _in_order(sorted(folder.glob("part-*.parquet")), 0)
    if ended:
        _end(df.sparkSession, df.schema, time, folder)


def _end(spark: SparkSession, schema: StructType, time: str, folder: Path) -> None:
    before = set(folder.glob("part-*.parquet"))
    columns = [
        f"CAST({END if field.name == time else 'NULL'} AS {field.dataType.simpleString()}) AS {quote(field.name)}"
        for field in schema.fields
    ]
    spark.range(1).selectExpr(*columns).coalesce(1).write.mode("append").parquet(str(folder))
    _in_order(sorted(set(folder.glob("part-*.parquet")) - before), len(before))


def _in_order(files: list[Path], first: int) -> None:
    for number, file in enumerate(files, first):
        os.utime(file, (1_000_000_000 + 10 * number,) * 2)


def read(spark: SparkSession, schema: StructType, folder: Path, files_at_once: int = 1) -> DataFrame:
    """The stream of the files, so many in a micro-batch; there need be none yet."""
    folder.mkdir(parents=True, exist_ok=True)
    nullable = StructType([StructField(field.name, field.dataType) for field in schema.fields])
    return spark.readStream.schema(nullable).option("maxFilesPerTrigger", files_at_once).parquet(str(folder))
