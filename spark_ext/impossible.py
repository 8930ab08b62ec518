"""Texts in an expression that Spark would have to read as a number, a time or a truth value, and cannot.

    WHERE a.price > 'abc'      [IMPOSSIBLE_TEXT] 'abc' is no BIGINT, and Spark would read it as one

Under `spark.sql.ansi.enabled` Spark fails on the first row that asks for such a value, with words about columns of
ours. A text that is such a value, `a.price > '5'`, is one; without ANSI the value of the other is NULL. Both are left
to Spark. So is a text that is only one of several values, `coalesce(a.price, 'none')`: perhaps no row asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from planner.sql import Sql
from runtime.errors import Span
from spark_ext.errors import ExpressionError
from spark_ext.quiet import quiet_captures

_QUOTES = ("'", '"')
_CHOICES = frozenset({"Coalesce", "If", "CaseWhen"})  # of these a row computes the first part, and others by need


def impossible_text(frame: DataFrame, expressions: Sequence[Sql], columns: Sequence[str]) -> ExpressionError | None:
    """The error for the first such text, or None. `columns`: names that can be meant by one that is in quotes."""
    asked = [sql for sql in expressions if any(mark in sql.text for mark in _QUOTES)]
    if not asked or not hasattr(frame, "_jdf"):  # Spark Connect does not show its plans: it fails when it runs
        return None
    with quiet_captures():
        try:
            analyzed = frame.selectExpr(*(sql.text for sql in asked))._jdf.queryExecution().analyzed()
        except PySparkException:  # they stand on their own elsewhere: as an aggregate of groups, for example
            return None
        found = analyzed.expressions()
        if found.length() != len(asked):
            return None
        for k, sql in enumerate(asked):
            if "CAST('" not in found.apply(k).sql():
                continue
            for cast in _casts(found.apply(k)):
                if not _has_value(cast):
                    return _error(cast, sql, columns)
    return None


def _casts(expression: Any, chosen: bool = False) -> Iterator[Any]:
    """The casts of literals that are texts, in what each row computes; `chosen`: only some rows compute this."""
    name = expression.getClass().getSimpleName()
    children = expression.children()
    inside = [children.apply(i) for i in range(children.length())]
    if name == "Cast" and inside[0].getClass().getSimpleName() == "Literal":
        if not chosen and inside[0].dataType().typeName().startswith("string"):
            yield expression
        return
    for k, child in enumerate(inside):  # the first is what a choice begins with
        yield from _casts(child, chosen or (k > 0 and name in _CHOICES))


def _has_value(cast: Any) -> bool:
    """Can Spark compute it? NULL is a value, too."""
    try:
        cast.eval(None)
    except PySparkException as error:
        return error.getCondition() != "CAST_INVALID_INPUT"
    return True


def _error(cast: Any, sql: Sql, columns: Sequence[str]) -> ExpressionError:
    literal, type = cast.child(), str(cast.dataType().sql())
    text = str(literal.toString())
    start, stop = literal.origin().startIndex(), literal.origin().stopIndex()
    first, last = (start.get(), stop.get()) if start.isDefined() and stop.isDefined() else (0, 0)
    span = Span(sql.locate(first), sql.locate(last) + 1)
    return ExpressionError(
        "IMPOSSIBLE_TEXT", span=span, value=f"'{text}'", type=type, hint=_way_out(text, type, columns)
    )


def _way_out(text: str, type: str, columns: Sequence[str]) -> str:
    column = next((column for column in columns if column.casefold() == text.casefold()), None)
    if column is not None:
        return f"If the column {column} is meant, take the quotes away."
    return f"{_WRITTEN.get(type, 'Write a number, without quotes')}, or compare texts: CAST(… AS STRING)."


_WRITTEN = {
    "BOOLEAN": "Write TRUE or FALSE",
    "DATE": "Write a day as DATE '2024-01-31'",
    "TIMESTAMP": "Write a time as TIMESTAMP '2024-01-31 12:00:00'",
    "TIMESTAMP_NTZ": "Write a time as TIMESTAMP_NTZ '2024-01-31 12:00:00'",
}
