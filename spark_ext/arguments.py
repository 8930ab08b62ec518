"""The values that a statement is run with, as SQL literals."""

from __future__ import annotations

import datetime
import decimal
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.functions import lit

from planner.sql import literal
from spark_ext.connect import plain_sql
from spark_ext.errors import SparkError
from spark_ext.quiet import quiet_captures

_LITERAL = re.compile(r"-?\d+(?:\.\d+)?|'[^'\\]*'|NULL|TRUE|FALSE", re.IGNORECASE)
_QUERY = re.compile(r"\b(?:SELECT|FROM)\b", re.IGNORECASE)

Literals = dict[str, str] | list[str]


def of_context(context: Any) -> Literals | None:
    """Of what `spark.sql(text, args)` and EXECUTE IMMEDIATE hand to a parser: a ParameterContext of the JVM, or None."""  # noqa: E501
    if context is None:
        return None
    kind = context.getClass().getSimpleName()
    if kind == "NamedParameterContext":
        pairs = context.params().toSeq()
        return {str(pair._1()): str(pair._2().sql()) for pair in (pairs.apply(i) for i in range(pairs.size()))} or None
    if kind == "PositionalParameterContext":
        return _texts(context.params()) or None
    if kind == "HybridParameterContext":  # EXECUTE IMMEDIATE … USING 1, 2 AS x
        values, names = _texts(context.args()), context.paramNames()
        named = {str(names.apply(i)): values[i] for i in range(names.size()) if names.apply(i)}
        return named or values or None
    raise SparkError("SPARK_INTERNALS", detail=f"it hands parameters over as a {kind}")


def _texts(expressions: Any) -> list[str]:
    return [str(expressions.apply(i).sql()) for i in range(expressions.size())]


def of_values(spark: SparkSession, values: Mapping[str, Any] | Sequence[Any]) -> Literals:
    """Of Python's values, as Spark itself reads them where its JVM can be asked."""
    if isinstance(values, Mapping):
        return {name: _of_value(spark, value) for name, value in values.items()}
    return [_of_value(spark, value) for value in values]


def constant(spark: SparkSession, expression: str) -> str | None:
    """An expression that reads nothing, as the literal that it comes to (or itself); None if it is no such expression.

    For Spark Connect: elsewhere the JVM says it.
    """
    if _LITERAL.fullmatch(expression):
        return expression
    if _QUERY.search(expression):
        return None
    try:
        with quiet_captures():
            (row,) = plain_sql(spark)(f"SELECT {expression} AS value").collect()
    except PySparkException:
        return None
    if len(row) != 1:
        return None
    try:
        return _of_value(spark, row[0])
    except SparkError:
        return f"({expression})"


def _of_value(spark: SparkSession, value: Any) -> str:
    if hasattr(spark, "_jsparkSession"):
        converter: Any = getattr(spark._jvm, "org.apache.spark.sql.classic.ColumnNodeToExpressionConverter$")
        converter = getattr(converter, "MODULE$")
        column: Any = lit(value)
        return str(converter.apply(column._jc.node()).sql())
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return f"{value!r}D" if math.isfinite(value) else f"CAST('{value}' AS DOUBLE)"
    if isinstance(value, str):
        return literal(value)
    if isinstance(value, decimal.Decimal) and value.is_finite():
        return f"{value:f}BD"
    if isinstance(value, datetime.datetime):
        return f"TIMESTAMP {literal(value.astimezone(datetime.UTC).isoformat())}"
    if isinstance(value, datetime.date):
        return f"DATE {literal(value.isoformat())}"
    raise SparkError("ARGUMENT_TYPE", type=type(value).__name__, hint="Write it into the text.")
