"""Pattern views under a filter on their keys: the pattern runs over those keys only (pushdown.py says when)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from cersql.errors import ParseError
from cersql.language.source import SourceText
from cersql.statements.counting import counts_of
from cersql.statements.find import find
from cersql.statements.kinds import queries_of
from cersql.statements.parameters import Arguments, Values, fill, marker_values
from cersql.statements.planned import Planned
from cersql.statements.pushdown import Reading, conditions, readings
from planner.sql import quote
from runtime.errors import Span
from spark_ext import patterns, views
from spark_ext.errors import SPARK_EXCEPTIONS
from spark_ext.quiet import quiet_captures
from spark_ext.session import BLANK

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Statements that are read once; others (CREATE VIEW) keep their text, which must not name a private view.
_READ_ONCE = re.compile(
    rf"{BLANK}*(?:(EXPLAIN)\b{BLANK}*(?:(?:FORMATTED|EXTENDED|CODEGEN|COST)\b{BLANK}*)?)?(?:SELECT|WITH|FROM|INSERT|\()",
    re.IGNORECASE | re.DOTALL,
)
_SEEN = "/* cersql */ "  # before a statement of ours that the hook sees again


def refine(spark: SparkSession, sql: str, arguments: Values) -> str | DataFrame | None:
    """A statement of Spark's that reads pattern views, over fewer keys; under EXPLAIN, with what we planned for them.

    None: as it is. Costs a dictionary lookup where the session has no pattern views.
    """
    names = patterns.any_views(spark)
    if not names or sql.startswith(_SEEN):
        return None
    lowered = sql.casefold()
    start = _READ_ONCE.match(sql) if any(name in lowered for name in names) else None
    if start is None:
        return None
    sql = SourceText.of(sql)
    try:
        found = readings(sql, names)
    except ParseError:  # Spark reads this text, and we do not: leave it alone
        return None
    given = arguments() if found else None
    values = marker_values(sql, (), given)
    places: list[tuple[Span, str]] = []
    notes = []
    for reading in found:
        definition = patterns.lookup(spark, reading.view, "VIEW", reading.is_global)
        if definition is None or not isinstance(definition.planned, Planned):
            continue
        if not views.reaches(spark, definition.planned.catalog.spark):
            continue
        name = f"{'global_temp.' if reading.is_global else ''}{quote(reading.view)}"
        if reading.terms and spark.catalog.isCached(name):
            reading = replace(reading, obstacle="the view is cached")
        elif not views.reads_alike(spark, definition.planned.catalog.spark):
            reading = replace(reading, obstacle="its session reads literals otherwise (time zone, ANSI mode, escapes)")
        planned = definition.planned
        counts: list[tuple[Span, str]] = []
        if not spark.catalog.isCached(name) and reading.obstacle is None:
            planned, counts = counted(planned, None, reading, sql)
        df, note = refined(planned, reading, sql, values)
        notes.append(f"{planned.explain()}\n{note}")
        if df is None and counts:
            df = planned.frame()
        places += counts
        if df is not None:
            alias = "" if reading.aliased else f" AS {quote(reading.view)}"
            places.append((reading.name, views.private_view(spark, df, lasting=False) + alias))
    text = fill(sql, sorted(places, key=lambda place: place[0].start)).text
    if start[1] and notes:
        return explanation(spark, notes, text, given)
    return text if places else None


def counted(
    planned: Planned, query: Span | None, reading: Reading | None, sql: str, lasting: bool = False
) -> tuple[Planned, list[tuple[Span, str]]]:
    """The query with a row for each group of matches, and what stands in the statement in place of each count(*), where
    it asks for no more (counting.py says when); else the query as it is. `query`: the place of a query in the
    statement, None for that of a view."""
    if reading is None or not reading.alone or lasting:
        return planned, []
    outputs = [output.name for output in planned.compiled.query.outputs if output.name is not None]
    counts = counts_of(sql, query or reading.name, reading.qualifier, outputs)
    if counts is None:
        return planned, []
    places = (query,) if query is not None else queries_of(find(planned.compiled.syntax.text, every=True))
    found = planned.counted_by(counts.columns, places[0]) if len(places) == 1 else None
    return (planned, []) if found is None else (found, list(counts.places))


def refined(
    planned: Planned, reading: Reading | None, sql: str, values: Mapping[int, tuple[str, int]], lasting: bool = False
) -> tuple[DataFrame | None, str]:
    """The query over the keys that are asked for, or None if that is all of them; and what EXPLAIN says about it."""
    found = [] if reading is None or planned.obstacle else conditions(reading, sql, planned.keys, values)
    why = _WHY_NONE
    if found:
        written = " AND ".join(term for term, _ in found)
        try:
            with quiet_captures():
                df = planned.refined(" AND ".join(f"({moved})" for _, moved in found), lasting)
            return df, f"before the pattern: {written}"
        except SPARK_EXCEPTIONS:
            why = "Spark does not take it there"  # nor in the WHERE, and there it says why
    elif not planned.compiled.query.partition_by:
        why = "it has no PARTITION BY"
    elif reading is None:
        why = "the query is no relation of a FROM"
    else:
        why = planned.obstacle or reading.obstacle or why
    return None, f"no filter acts before the pattern: {why}"


_WHY_NONE = "no term of the WHERE beside it compares a column of its PARTITION BY with literals alone"


_NO_PLAN = "Error occurred during query planning"  # what Spark says of all that begins with a stream


def explanation(spark: SparkSession, parts: list[str], statement: str, arguments: Arguments | None) -> DataFrame:
    """What EXPLAIN gives: our parts, then Spark's plan, in one text."""
    values = marker_values(statement, (), arguments)
    filled = fill(statement, [(Span(start, end), value) for start, (value, end) in sorted(values.items())])
    plan = spark.sql(_SEEN + filled.text).collect()[0][0]
    if plan.startswith(_NO_PLAN) and any("\nstream: " in part for part in parts):
        plan = "Spark plans a stream when it is started (writeStream, or START PATTERN STREAM)."
    return views.table(spark, ["plan"], [["\n\n".join([*parts, plan])]])
