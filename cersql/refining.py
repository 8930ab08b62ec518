"""Pattern views under a filter on their keys: the pattern runs over those keys only (cersql/pushdown.py says when)."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING

from cersql.parameters import Values, marker_values
from cersql.planned import Planned
from cersql.pushdown import Reading, conditions, readings
from planner.sql import quote
from spark_ext import patterns, views

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Statements that are read once; others (CREATE VIEW) keep their text, which must not name a private view.
_READ_ONCE = re.compile(
    r"\s*(?:(EXPLAIN)\s+(?:FORMATTED|EXTENDED|CODEGEN|COST)?\s*)?(?:SELECT|WITH|FROM|INSERT|\()", re.I
)


_thread = threading.local()


def refine(spark: SparkSession, sql: str, arguments: Values) -> str | DataFrame | None:
    """A statement of Spark's that reads pattern views, over fewer keys; under EXPLAIN, with what we planned for them.

    None: as it is. Costs a dictionary lookup where the session has no pattern views.
    """
    if getattr(_thread, "explaining", False):
        return None
    names = patterns.any_views(spark)
    lowered = sql.casefold()
    start = _READ_ONCE.match(sql) if any(name in lowered for name in names) else None
    if start is None:
        return None
    values = marker_values(sql, arguments())
    pieces, at, notes = [], 0, []
    for reading in readings(sql, names):
        definition = patterns.lookup(spark, reading.view, "VIEW", reading.is_global)
        if definition is None or not isinstance(definition.planned, Planned):
            continue
        df, note = refined(definition.planned, reading, sql, values)
        notes.append(f"{definition.planned.compiled.explain()}\n{note}")
        if df is not None:
            private = views.private_view(spark, df, lasting=False)
            alias = "" if reading.aliased else f" AS {quote(reading.view)}"
            pieces += [sql[at : reading.name.start], private, alias]
            at = reading.name.end
    text = "".join(pieces) + sql[at:]
    if start[1] and notes:
        return explanation(spark, notes, text)
    return text if pieces else None


def refined(
    planned: Planned, reading: Reading | None, sql: str, values: Mapping[int, tuple[str, int]]
) -> tuple[DataFrame | None, str]:
    """The query over the keys that are asked for, or None if that is all of them; and what EXPLAIN says about it."""
    found = [] if reading is None or planned.obstacle else conditions(reading, sql, planned.keys, values)
    if found:
        written = " AND ".join(term for term, _ in found)
        return planned.refined(" AND ".join(f"({moved})" for _, moved in found)), f"before the pattern: {written}"
    if not planned.compiled.query.partition_by:
        why = "it has no PARTITION BY"
    elif reading is None:
        why = "the query is no relation of a FROM"
    else:
        why = planned.obstacle or reading.obstacle or _WHY_NONE
    return None, f"no filter acts before the pattern: {why}"


_WHY_NONE = "no term of the WHERE beside it compares a column of its PARTITION BY with literals alone"


def explanation(spark: SparkSession, parts: list[str], statement: str) -> DataFrame:
    """What EXPLAIN gives: our parts, then Spark's plan, in one text."""
    _thread.explaining = True  # the hook sees this statement, too
    try:
        plan = spark.sql(statement).collect()[0][0]
    finally:
        _thread.explaining = False
    return views.table(spark, ["plan"], [["\n\n".join([*parts, plan])]])
