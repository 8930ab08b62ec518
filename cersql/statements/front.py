"""The ways in that need a session: a statement, a query over a DataFrame, EXPLAIN, and teaching a session to take them.

    cersql.sql(spark, text)      sql        by connected.py over Spark Connect, else by commands.py
    spark.sql(text)              enable     hands the same two to the session, which asks them from then on
    cersql.match(df, text)       match      planned.py, the DataFrame as the source
    cersql.late(stream)          late       the same, of the query that a stream is the result of
    cersql.explain(spark, text)  explain    planned.py, and nothing runs

What they raise is raised, and not also logged by pyspark, which does so with a traceback and the JVM's stack.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cersql.language.source import SourceText
from cersql.statements import commands, connected, refining
from cersql.statements.find import first_query
from cersql.statements.parameters import with_values
from cersql.statements.planned import plan_query, query_of
from runtime.errors import Span
from spark_ext import late_rows, session
from spark_ext.arguments import of_values
from spark_ext.connect import is_connect
from spark_ext.quiet import quiet_captures

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def enable(spark: SparkSession) -> SparkSession:
    """Teach a session of either kind, in place. Returns it."""
    if is_connect(spark):
        return connected.enable(spark)
    return session.enable(spark, commands.rewrite, refining.refine)


def sql(spark: SparkSession, text: str, args: Any = None, *, order_by: str | None = None) -> DataFrame:
    """Run a statement without touching the session; of what Spark refuses the error is ours."""
    door = connected.sql if is_connect(spark) else commands.run
    with quiet_captures():
        return door(spark, text, args, order_by=order_by)


def match(df: DataFrame, text: str, args: Any = None, *, order_by: str | None = None) -> DataFrame:
    """Run a query without FROM over a DataFrame."""
    spark = df.sparkSession
    with quiet_captures():
        arguments = of_values(spark, args) if args else None
        with with_values(SourceText.of(text), [Span(0, len(text))], arguments) as filled:
            return plan_query(spark, filled, Span(0, len(filled)), given=df, order_by=order_by).frame()


def explain(spark: SparkSession, text: str, stage: str | None = None, *, order_by: str | None = None) -> str:
    """What becomes of the first query in a statement."""
    source = SourceText.of(text)
    with quiet_captures():
        return plan_query(spark, source, first_query(source), order_by=order_by).explain(stage)


def late(stream: DataFrame) -> DataFrame:
    """The rows of a stream that come too late: for the pattern that it is the result of, or at all."""
    with quiet_captures():
        planned = query_of(stream)
        return late_rows.of_stream(stream) if planned is None else planned.late()
