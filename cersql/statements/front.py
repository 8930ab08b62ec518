"""The front door: any statement, of ours or of Spark's, in a session of either kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cersql.statements import commands, connected
from spark_ext.connect import is_connect
from spark_ext.quiet import quiet_captures

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def sql(spark: SparkSession, text: str, args: Any = None, *, order_by: str | None = None) -> DataFrame:
    """Run a statement without touching the session; of what Spark refuses the error is ours.

    What it raises is raised, and not also logged by pyspark, which does so with a traceback and the JVM's stack.
    """
    door = connected.sql if is_connect(spark) else commands.run
    with quiet_captures():
        return door(spark, text, args, order_by=order_by)
