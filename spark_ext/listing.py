"""The limit on matches where Catalyst lists them: `cersql.maxMatches` for the relational plan.

Rows of a task are numbered as they come, and the first with a number beyond the limit is an error, the one of a worker
that lists as many. No row is held for that, and a LIMIT above ends the task before.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame

from planner.sql import literal
from runtime.limits import too_many
from spark_ext.numbering import INDEX_BITS, INDEX_COLUMN, POSITION_COLUMN
from spark_ext.objections import analyzed

LISTED_COLUMN = "__cersql_listed"
_OWN = tuple(f"AS {name}#" for name in (LISTED_COLUMN, POSITION_COLUMN, INDEX_COLUMN))


def listed(matches: DataFrame, most: int) -> DataFrame:
    """The matches; ExecutionError MATCH_LIMIT, as Spark's own error, where a task has more than `most`."""
    number = f"monotonically_increasing_id() & {INDEX_BITS}L AS {LISTED_COLUMN}"
    error = literal(str(too_many(most + 1, most)))
    kept = f"IF({LISTED_COLUMN} < {min(most, INDEX_BITS)}L, TRUE, raise_error({error}))"
    return analyzed(matches.selectExpr("*", number).where(kept).drop(LISTED_COLUMN))


def is_steady(plan: Any) -> bool:
    """Does a plan of Catalyst's give the same rows each time?"""
    return next(unsteady(plan), None) is None


def unsteady(plan: Any) -> Iterator[str]:
    """What in a plan has other values each time, as Spark writes it. Numbers that rows get in their task count as
    steady: what becomes of them here is the same whatever task a row is in, or an error."""
    if bool(plan.deterministic()):
        return
    expressions, children = plan.expressions(), plan.children()
    for i in range(expressions.length()):
        expression = expressions.apply(i)
        if not bool(expression.deterministic()):
            shown = str(expression.toString())
            if not any(name in shown for name in _OWN):
                yield shown
    for i in range(children.length()):
        yield from unsteady(children.apply(i))
