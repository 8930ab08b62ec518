"""Aggregate functions of users' own, in Spark: Python's functions over an array of values, one call for each match.

They are no functions of the session's: a query that names one carries it, on a stream and over Connect, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.types import ArrayType, DataType

from planner.query import Folded
from runtime.own import Own
from spark_ext.objections import analyzed
from spark_ext.quiet import quiet_captures


def packed(functions: tuple[Any, ...]) -> bytes:
    """Functions as they travel to workers, by value where they are of no module there. Raises what cannot be."""
    return bytes(cloudpickle.dumps(functions))  # type: ignore[no-untyped-call]


def is_function(name: str) -> bool:
    """Is it a function of Spark's? Without a session that is only known of those that pyspark has, too."""
    spark = SparkSession.getActiveSession()
    if spark is None:
        return hasattr(fn, name.lower())
    with quiet_captures():
        return hasattr(fn, name.lower()) or bool(spark.catalog.functionExists(name))


def type_of(type: str) -> str | None:
    """A type as Spark writes it; None for what is none, the text itself where there is no session to ask."""
    spark = SparkSession.getActiveSession()
    if spark is None:
        return " ".join(type.split()).lower()
    try:
        with quiet_captures():
            return str(spark.range(0).selectExpr(f"CAST(NULL AS {type}) AS t").schema.fields[0].dataType.simpleString())
    except PySparkException:
        return None


def with_folded(matches: DataFrame, wanted: Folded) -> DataFrame:
    """The matches with a column for what a user's own function makes of an array."""
    return analyzed(matches.withColumn(wanted.column, folded(wanted.own, wanted.sql.text, matches, wanted.each)))


def folded(own: Own, values: str, frame: DataFrame, each: bool = False) -> Column:
    """The aggregate of an array of values; of each of the arrays in one, if asked.

    For Spark it is not deterministic: so it is computed once, where it stands, and in no lambda.
    """
    type = frame.limit(0).selectExpr(f"CAST(NULL AS {own.type}) AS t").schema.fields[0].dataType
    returned: DataType = ArrayType(type) if each else type
    function = _of_each(own) if each else _of_one(own)
    function.__name__ = own.name.lower()
    function.__annotations__ = {}  # of which Spark would make another kind of UDF
    return fn.udf(function, returned, useArrow=False).asNondeterministic()(fn.expr(values))


def _of_one(own: Own) -> Callable[[Any], Any]:
    def aggregated(values: Any) -> Any:
        return own.folded(values or ())

    return aggregated


def _of_each(own: Own) -> Callable[[Any], Any]:
    def aggregated(arrays: Any) -> Any:
        return [own.folded(values or ()) for values in arrays or ()]

    return aggregated
