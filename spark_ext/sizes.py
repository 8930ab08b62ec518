"""How much Spark believes that a plan reads, and how many tasks run at once."""

from __future__ import annotations

from typing import Any

from spark_ext import connect

PARTITION_BYTES = 128 << 20  # what a task should read, by Catalyst's estimate
UNKNOWN_BYTES = 1 << 60  # the estimate of what Spark knows nothing about, such as rows that came from Python
LEAVES_TIMES = 4  # so often what it reads a source is taken to be at the most


def estimate(plan: Any) -> int:
    """Catalyst's estimate in bytes; it multiplies the sides of a join, which are believed to fit each other."""
    size = int(plan.stats().sizeInBytes())
    if size > PARTITION_BYTES:
        leaves = plan.collectLeaves()
        size = min(size, LEAVES_TIMES * sum(int(leaves.apply(i).stats().sizeInBytes()) for i in range(leaves.size())))
    return size


def is_local(spark: object) -> bool:
    session = getattr(spark, "_jsparkSession", None)
    return session is not None and str(session.sparkContext().master()).startswith("local")


def parallelism(spark: object) -> int:
    context = getattr(spark, "_jsparkSession", None)
    return int(context.sparkContext().defaultParallelism()) if context is not None else connect.parallelism(spark)
