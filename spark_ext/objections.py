"""Spark's objections to an expression, at their place in the user's text."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pyspark.errors import AnalysisException, ParseException
from pyspark.errors.exceptions.base import PySparkException
from pyspark.sql import DataFrame, SparkSession

from planner.sql import Sql
from runtime.errors import CersqlError, Span
from spark_ext.errors import ExpressionError
from spark_ext.quiet import quiet_captures


@contextmanager
def explained(
    text: str, frame: DataFrame, expressions: Sequence[Sql], condition: bool = False, columns: Sequence[str] = ()
) -> Iterator[None]:
    """Turn an error of Spark's that one of the expressions over `frame` causes into one with a place in `text`.

    `columns`: names that can be meant by one that nobody knows.
    """
    try:
        with quiet_captures():
            yield
    except (AnalysisException, ParseException):
        for sql in expressions:
            found = _objection(text, frame, sql, condition, columns)
            if found is not None:
                raise found.at(text) from None  # it says all of it, in fewer words
        raise


def analyzed(frame: DataFrame) -> DataFrame:
    """The same, with its mistakes found: Spark Connect has the server analyze only what is asked about."""
    if not hasattr(frame, "_jdf"):
        _ = frame.schema
    return frame


def is_accepted(spark: SparkSession, expression: str) -> bool:
    """Does Spark take an expression that reads no columns?"""
    try:
        with quiet_captures():
            analyzed(spark.range(0).selectExpr(expression))
        return True
    except (AnalysisException, ParseException):
        return False


def evaluated(spark: SparkSession, expression: str) -> str | None:
    """The value of an expression that reads no columns, as text, '' for NULL; None where it has none, or fails."""
    try:
        with quiet_captures():
            row = spark.sql(f"SELECT coalesce(CAST({expression} AS STRING), '') FROM VALUES (1)").first()
    except PySparkException:
        return None
    return None if row is None else str(row[0])


def _objection(text: str, frame: DataFrame, sql: Sql, condition: bool, columns: Sequence[str]) -> CersqlError | None:
    """The error of one expression on its own, or None if Spark takes it."""
    before, after = ("IF(", ", 1, 0)") if condition else ("", "")
    try:
        # Beside columns, so that an aggregate is no query of its own.
        analyzed(frame.selectExpr("*", f"{before}{sql.text}{after}"))
        return None
    except (AnalysisException, ParseException) as error:
        place = _place(error)
        start, length = place or (0, 1)
        offset = max(0, start - len(before))
        at = sql.locate(offset)
        span = Span(at, at + max(1, length))
        if isinstance(error, ParseException) and place and not sql.text[offset:].strip(" )"):
            end = sql.locate(len(sql.text.rstrip(" )")) - 1) + 1
            return ExpressionError("INVALID_EXPRESSION", span=Span(end, end + 1), detail="it ends too early.")
        spark_condition = error.getCondition() or ""
        if spark_condition.startswith("UNRESOLVED_COLUMN"):
            name = (error.getMessageParameters() or {}).get("objectName", "").replace("`", "")
            if place is None:  # as inside lambdas, which aggregates become: the first such word of the expression
                found = re.compile(rf"(?<![\w`.]){re.escape(name)}(?!\w)").search(text, at)
                span = Span(*found.span()) if found else span
            hint = _if_text(name, columns) if "." not in name else _IN_SUBQUERY
            return ExpressionError("UNRESOLVED_NAME", span=span, name=name, hint=hint)
        if spark_condition in _AGGREGATE:
            return ExpressionError("INVALID_EXPRESSION", span=span, detail=NO_AGGREGATE, hint=_AGGREGATES)
        type = _no_boolean(error)
        if type is not None:
            detail = f"a condition is a BOOLEAN, and this is {type}."
            return ExpressionError("INVALID_EXPRESSION", span=span, detail=detail)
        return ExpressionError("INVALID_EXPRESSION", span=span, detail=_detail(error), hint=_interval(error))


def _if_text(name: str, columns: Sequence[str]) -> str:
    """What a word can mean that stands for nothing: a column that is misspelt, or a text."""
    folded = {column.casefold(): column for column in reversed(columns)}
    near = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.6)
    column = f"Did you mean the column {folded[near[0]]}? " if near else ""
    return f"{column}If it is a text, put it in quotes: '{name}'."


def _interval(error: PySparkException) -> str | None:
    """`b.ts - a.ts <= 60` compares a length of time with a number: what to write instead."""
    told = error.getMessageParameters() or {}
    types = [told.get("left", "").strip('"'), told.get("right", "").strip('"')]
    spans = [type for type in types if type.startswith(("INTERVAL DAY", "INTERVAL SECOND"))]
    numbers = [type for type in types if re.match(r"(TINY|SMALL|BIG)?INT\b|DECIMAL|DOUBLE|FLOAT", type)]
    if len(spans) != 1 or len(numbers) != 1:
        return None
    unit = "DAYS" if spans[0] == "INTERVAL DAY" else "SECONDS"
    written = told.get("sqlExpr", "").strip('"').strip("() ")
    number = (
        re.match(r"(\d+(?:\.\d+)?)\b", written)
        if types[0] in numbers
        else re.search(r"(?<![\w.])(\d+(?:\.\d+)?)$", written)
    )
    amount = "60" if number is None else number[1]
    return f"The difference of two times is an interval: compare it with INTERVAL {amount} {unit}, for example."


_IN_SUBQUERY = "A subquery in a condition cannot see the variables of the pattern."
_AGGREGATE = ("MISSING_GROUP_BY", "MISSING_AGGREGATION")
NO_AGGREGATE = "an aggregate function that is not one over the events of a match."
_AGGREGATES = (
    "Those are COUNT, SUM, AVG, MIN, MAX, RANGE and COLLECT_LIST; others can take an array, COLLECT_LIST(x.a)."
)


def _no_boolean(error: PySparkException) -> str | None:
    """The type of what stands where TRUE or FALSE is wanted; None if that is not what Spark objects to."""
    told = error.getMessageParameters() or {}
    if told.get("requiredType") == '"BOOLEAN"':
        return told.get("inputType", "").strip('"')
    # A condition on the whole match is coalesce(…, FALSE).
    types = re.findall(r"[A-Z][\w<>(), ]*", told.get("dataType", ""))
    if told.get("functionName") == "`coalesce`" and "BOOLEAN" in types:
        return next((type for type in types if type != "BOOLEAN"), None)
    return None


def _place(error: PySparkException) -> tuple[int, int] | None:
    """Where in the expression: (offset, length); None if Spark does not say."""
    for context in error.getQueryContext() or []:
        if context.contextType().name == "SQL":
            return context.startIndex(), context.stopIndex() - context.startIndex() + 1
    found = re.search(r"line 1,? pos (\d+)", str(error))
    return (int(found.group(1)), 1) if found else None


def _detail(error: PySparkException) -> str:
    message = (error.getMessage() or str(error)).split("\n== SQL")[0]
    message = re.sub(r"`?__cersql_\w+`?\.?|namedlambdavariable\(\)\.?", "", message)
    return re.sub(r" *SQLSTATE: \w{5}", "", " ".join(message.split()))
