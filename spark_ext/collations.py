"""Keys of collations: bytes that are equal, and in order, as strings are under a collation.

Spark has the expression, with which it groups and joins, and no SQL name for it. It gets one in the session that asks,
which is how a condition's text can call it.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from spark_ext.errors import SparkError
from spark_ext.patterns import function_identifier
from spark_ext.session import prepare
from spark_ext.views import jsession_of

NAME = "__cersql_collation_key"


def key(spark: SparkSession, sql: str) -> str:
    """SQL for the key of a string's collation, in texts of this session. SparkError COLLATION where no JVM is here."""
    jsession = jsession_of(spark)
    if jsession is None:
        raise SparkError("COLLATION", sql=sql, hint=f"Compare CAST({sql} AS STRING COLLATE UTF8_BINARY) instead.")
    registry = jsession.sessionState().functionRegistry()
    if not registry.functionExists(function_identifier(spark, NAME)):
        jvm: Any = spark._jvm
        prepare(spark.sparkContext._gateway)
        builder = getattr(jvm, "org.apache.spark.sql.internal.ToScalaUDF").apply(_Builder(jvm))
        registry.createOrReplaceTempFunction(NAME, builder, "scala_udf")
    return f"{NAME}({sql})"


class _Builder:
    """Spark's Seq[Expression] => Expression, as a UDF1."""

    def __init__(self, jvm: Any) -> None:
        self._jvm = jvm

    def call(self, arguments: Any) -> Any:
        return getattr(self._jvm, "org.apache.spark.sql.catalyst.expressions.CollationKey")(arguments.apply(0))

    def toString(self) -> str:
        return NAME

    class Java:
        implements = ["org.apache.spark.sql.api.java.UDF1"]
