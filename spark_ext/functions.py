"""Pattern functions: table functions in Spark's own registry, whose bodies are planned in Python.

    SELECT * FROM fires(TABLE(sensors) PARTITION BY id ORDER BY ts, threshold => 40)

Spark's analyzer resolves the table argument and then asks the function's builder for a plan. Ours is a Python object
behind Py4J; it makes a DataFrame of the table's plan, matches over it as over any other, and gives that plan back. So
predicates, pruning and everything else go the way of a query, wherever Spark's SQL can call a function: in views, CTEs,
lateral joins, over Thrift, and in sessions whose parser is Spark's own.

The road not taken: a Python UDTF would get the rows in a worker, where no Catalyst can compute conditions or RETURN.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.errors.exceptions.captured import CapturedException
from pyspark.sql import DataFrame, SparkSession

from planner.sql import quote
from runtime.errors import CersqlError, InternalError
from spark_ext import connect
from spark_ext.errors import SparkError, thrown_again, thrown_in_jvm
from spark_ext.patterns import function_identifier
from spark_ext.quiet import quiet_captures
from spark_ext.session import prepare
from spark_ext.views import jsession_of

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Call:
    """One call. Scalar arguments are SQL literals; `partition_by` and `order_by` are None where the call has none, and
    `order_by` is (column, nulls last) for each column."""

    table: DataFrame
    positional: tuple[str, ...]
    named: tuple[tuple[str, str], ...]
    partition_by: tuple[str, ...] | None
    order_by: tuple[tuple[str, bool], ...] | None


_SUFFIXES = {"INT": "", "BIGINT": "L", "SMALLINT": "S", "TINYINT": "Y"}

Implementation = Callable[[Call], DataFrame]


def register(spark: SparkSession, name: str, body: Implementation, *, replace: bool) -> None:
    """Make `name` a temporary table function of the session. Raises SparkError where a function has that name."""
    jsession = jsession_of(spark)
    if jsession is None:
        known = connect.functions(spark)
        if not replace and (name.casefold() in known or spark.catalog.functionExists(quote(name))):
            raise SparkError("FUNCTION_EXISTS", name=name, hint="Write CREATE OR REPLACE PATTERN FUNCTION.")
        known[name.casefold()] = body
        return
    jvm: Any = spark._jvm
    registry = jsession.sessionState().tableFunctionRegistry()
    builtin = getattr(jvm, "org.apache.spark.sql.catalyst.analysis.TableFunctionRegistry").builtin()
    if any(f"{found.funcName()}".casefold() == name.casefold() for found in _seq(builtin.listFunction())):
        raise SparkError("FUNCTION_EXISTS", name=name, hint="It is Spark's own, and found first: take another name.")
    if not replace and registry.functionExists(function_identifier(spark, name)):
        raise SparkError("FUNCTION_EXISTS", name=name, hint="Write CREATE OR REPLACE PATTERN FUNCTION.")
    prepare(spark.sparkContext._gateway)  # the session's parser may be Spark's own
    builder = getattr(jvm, "org.apache.spark.sql.internal.ToScalaUDF").apply(TableFunction(spark, name, body))
    registry.createOrReplaceTempFunction(name, builder, "python_udtf")


def drop(spark: SparkSession, name: str) -> None:
    """Drop a function that is there."""
    jsession = jsession_of(spark)
    if jsession is None:
        connect.functions(spark).pop(name.casefold(), None)
        return
    jsession.sessionState().tableFunctionRegistry().dropFunction(function_identifier(spark, name))


class TableFunction:
    """Spark's Seq[Expression] => LogicalPlan, as a UDF1: a scala.Function1 may not throw an AnalysisException."""

    def __init__(self, spark: SparkSession, name: str, body: Implementation) -> None:
        self._context: Any = spark.sparkContext
        self._jvm: Any = spark._jvm
        self._name, self._body = name, body

    def call(self, arguments: Any) -> Any:
        try:
            with quiet_captures():
                result = self._body(self._call([arguments.apply(i) for i in range(arguments.size())]))
                return result._jdf.queryExecution().analyzed()
        except CapturedException as error:
            raise thrown_again(self._jvm, error, f"{self._name}(…)") from None
        except CersqlError as error:
            ours: CersqlError = error
        except Exception as error:
            logger.error("a bug in cersql", exc_info=True)
            ours = InternalError("INTERNAL", detail=f"{type(error).__name__}: {error}")
        raise thrown_in_jvm(self._jvm, ours, f"{self._name}(…)")

    def _call(self, arguments: list[Any]) -> Call:
        table, positional, named = None, [], []
        for argument in arguments:
            name = None
            if _class(argument) == "NamedArgumentExpression":
                name, argument = str(argument.key()), argument.value()
            if _class(argument) == "FunctionTableSubqueryArgumentExpression":
                if table is not None:
                    raise self._error("its argument is one TABLE(…), and here are two")
                table = argument
            elif name is not None:
                named.append((name, self._literal(argument)))
            else:
                positional.append(self._literal(argument))
        if table is None:
            raise self._error("it needs a TABLE(…) argument")
        return Call(
            self._frame(table.plan()),
            tuple(positional),
            tuple(named),
            self._partition_by(table),
            self._order_by(table),
        )

    def _frame(self, plan: Any) -> DataFrame:
        # The session that is analyzing, which is a clone's own where the function was cloned with a session.
        jsession = getattr(self._jvm, "org.apache.spark.sql.classic.SparkSession").active()
        dataset = getattr(self._jvm, "org.apache.spark.sql.classic.Dataset").ofRows(jsession, plan)
        return DataFrame(dataset, SparkSession(self._context, jsession))

    def _literal(self, expression: Any) -> str:
        if _class(expression) == "Alias":  # of a session variable
            expression = expression.child()
        if not expression.foldable():
            raise self._error(f"its argument {expression.sql()} must be a constant: the pattern is planned with it")
        if _class(expression) == "Literal":
            return str(expression.sql())
        try:
            value = expression.eval(None)
        except Exception:  # what only the optimizer can evaluate, as current_date()
            return str(expression.sql())
        if isinstance(value, int) and not isinstance(value, bool):  # Py4J does not keep apart the sizes of integers
            type = str(expression.dataType().sql())
            if _class(expression.dataType()) == "DayTimeIntervalType":
                return _interval(value)
            if type in _SUFFIXES:  # dates are integers, too
                return f"{value}{_SUFFIXES[type]}"
            return str(expression.sql())
        literals = getattr(self._jvm, "org.apache.spark.sql.catalyst.expressions.Literal")
        return str(literals.create(value, expression.dataType()).sql())

    def _partition_by(self, table: Any) -> tuple[str, ...] | None:
        # WITH SINGLE PARTITION, without which Spark takes no ORDER BY here, says nothing about the pattern's own.
        expressions = table.partitionByExpressions()
        if expressions.isEmpty():
            return None
        return tuple(self._column(expressions.apply(i), "PARTITION BY") for i in range(expressions.size()))

    def _order_by(self, table: Any) -> tuple[tuple[str, bool], ...] | None:
        orders = [table.orderByExpressions().apply(i) for i in range(table.orderByExpressions().size())]
        for order in orders:
            if _class(order.direction()) != "Ascending$":
                raise self._error("its ORDER BY is the order in which events happened, which is ascending")
        columns = [
            (self._column(order.child(), "ORDER BY"), _class(order.nullOrdering()) == "NullsLast$") for order in orders
        ]
        return tuple(columns) or None

    def _column(self, expression: Any, clause: str) -> str:
        if _class(expression) not in ("AttributeReference", "UnresolvedAttribute"):
            raise self._error(f"{clause} takes columns, and {expression.sql()} is none: compute it in TABLE(SELECT …)")
        if _class(expression) == "UnresolvedAttribute":  # t.a, where the call has one table anyway
            return str(expression.nameParts().last())
        return str(expression.name())

    def _error(self, problem: str) -> SparkError:
        return SparkError("FUNCTION_CALL", name=self._name, problem=problem)

    def toString(self) -> str:
        return f"cersql.TableFunction({self._name})"

    def hashCode(self) -> int:
        return id(self) & 0x7FFFFFFF

    def equals(self, other: Any) -> bool:
        return other is self

    class Java:
        implements = ["org.apache.spark.sql.api.java.UDF1"]


def _interval(microseconds: int) -> str:
    """A literal of Spark's, which WITHIN takes as well."""
    sign, left = ("-" if microseconds < 0 else ""), abs(microseconds)
    days, left = divmod(left, 86_400_000_000)
    hours, left = divmod(left, 3_600_000_000)
    minutes, left = divmod(left, 60_000_000)
    seconds, left = divmod(left, 1_000_000)
    return f"INTERVAL '{sign}{days} {hours:02}:{minutes:02}:{seconds:02}.{left:06}' DAY TO SECOND"


def _seq(scala: Any) -> list[Any]:
    return [scala.apply(i) for i in range(scala.size())]


def _class(object: Any) -> str:
    return str(object.getClass().getSimpleName())
