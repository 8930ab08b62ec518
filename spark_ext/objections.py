"""Spark's objections to an expression, at their place in the user's text."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pyspark.errors import AnalysisException, ParseException
from pyspark.errors.exceptions.base import PySparkException
from pyspark.sql import DataFrame, SparkSession

from planner.sql import Sql
from runtime.errors import CersqlError, Span
from spark_ext.errors import ExpressionError
from spark_ext.function_hints import function_hint
from spark_ext.impossible import impossible_text
from spark_ext.quiet import quiet_captures


@contextmanager
def explained(
    text: str, frame: DataFrame, expressions: Sequence[Sql], condition: bool = False, columns: Sequence[str] = (),
    beside: bool = True,
) -> Iterator[None]:  # fmt: skip
    """Turn an error of Spark's that one of the expressions over `frame` causes into one with a place in `text`.

    `columns`: names that can be meant by one that nobody knows. `beside`: the expressions stand beside columns, so that
    an aggregate is a mistake. A text that Spark takes now, and fails on with the first row, is an error at once.
    """
    try:
        with quiet_captures():
            yield
    except (AnalysisException, ParseException):
        for sql in expressions:
            found = _objection(text, frame, sql, condition, columns, beside)
            if found is not None:
                raise found.at(text) from None  # it says all of it, in fewer words
        raise
    except PySparkException:  # a constant that the optimizer could not compute, where a plan was looked at
        _check_texts(text, frame, expressions, columns)
        raise
    _check_texts(text, frame, expressions, columns)


def _check_texts(text: str, frame: DataFrame, expressions: Sequence[Sql], columns: Sequence[str]) -> None:
    impossible = impossible_text(frame, expressions, columns)
    if impossible is not None:
        raise impossible.at(text) from None


def analyzed(frame: DataFrame) -> DataFrame:
    """The same, with its mistakes found: Spark Connect has the server analyze only what is asked about."""
    if not hasattr(frame, "_jdf"):
        _ = frame.schema
    return frame


def one_row_each(text: str, matches: DataFrame, rows: DataFrame, outputs: Sequence[Sql]) -> DataFrame:
    """`rows`, which come of `matches` by RETURN, if each match is one row of them: no aggregate, window function or
    generator has made another plan of it. Else the first output that does is an error."""
    expected = _plan_above(matches)
    if _plan_above(rows) != expected:
        for sql in outputs:
            if _plan_above(analyzed(matches.selectExpr("*", sql.text))) != expected:
                raise several_rows(sql).at(text)
        raise several_rows(outputs[0]).at(text)
    return rows


def _plan_above(frame: DataFrame) -> list[str]:
    """The nodes of the analyzed plan above the engine, but projections."""
    found = []
    for name in _chain(frame):
        if name == "MapInArrow":
            break
        if name != "Project":
            found.append(name)
    return found


def _chain(frame: DataFrame) -> Iterator[str]:
    """The names of a plan's nodes from the top, the first child of each."""
    made: Any = frame
    if not hasattr(made, "_jdf"):
        shown = made._explain_string(mode="extended").split("== Analyzed Logical Plan ==\n")[-1]
        plan = shown.split("== Optimized")[0].partition("\n")[2]  # the first line is the schema
        yield from re.findall(r"^[ +-]*(\w+)", plan, re.MULTILINE)
        return
    plan = made._jdf.queryExecution().analyzed()
    while True:
        yield plan.nodeName()
        if plan.children().isEmpty():
            return
        plan = plan.children().head()


def several_rows(sql: Sql) -> ExpressionError:
    """What makes several rows of one match, or one of several."""
    at = sql.locate(len(sql.text) - len(sql.text.lstrip()))
    return ExpressionError("ONE_ROW", span=Span(at, at + 1), hint=AROUND)


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


def _objection(
    text: str, frame: DataFrame, sql: Sql, condition: bool, columns: Sequence[str], beside: bool
) -> CersqlError | None:
    """The error of one expression on its own, or None if Spark takes it."""
    before, after = ("IF(", ", 1, 0)") if condition else ("", "")
    try:
        analyzed(frame.selectExpr(*(["*"] if beside else []), f"{before}{sql.text}{after}"))
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
        if spark_condition.startswith(_SEVERAL_ROWS):
            return ExpressionError("ONE_ROW", span=span, hint=AROUND, spark=spark_condition)
        type = _no_boolean(error)
        if type is not None:
            detail = f"a condition is a BOOLEAN, and this is {type}."
            return ExpressionError("INVALID_EXPRESSION", span=span, detail=detail)
        way_out = _interval(error) or function_hint(error, frame.sparkSession)
        if way_out is None and spark_condition.startswith("DATATYPE_MISMATCH") and "||" in sql.text:
            way_out = "In SQL || joins texts; between conditions write OR."
        return ExpressionError("INVALID_EXPRESSION", span=span, detail=_detail(error), hint=way_out)


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
# Aggregates of the user's own, and window functions and generators where they are refused by Spark.
_SEVERAL_ROWS = (
    "MISSING_GROUP_BY", "MISSING_AGGREGATION", "INVALID_WHERE_CONDITION", "WINDOW_FUNCTION_NOT_ALLOWED_IN_CLAUSE",
    "UNSUPPORTED_GENERATOR", "UNSUPPORTED_EXPR_FOR_OPERATOR",
)  # fmt: skip
AROUND = "Put a SELECT around it, which reads the matches: SELECT … FROM (PATTERN … RETURN …) AS m."


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
    message = re.sub(r"`?__cersql_\w+\u2028?`?\.?|namedlambdavariable\(\)\.?", "", message)
    return re.sub(r" *SQLSTATE: \w{5}", "", " ".join(message.split()))
