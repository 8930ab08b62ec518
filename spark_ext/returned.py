"""What becomes of the matches that the engine gives.

All of it is Catalyst's, but for a second pass over matches that compete.

matches → WHERE on whole matches (→ mapInArrow(strategy)) → HAVING → RETURN → LIMIT
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame
from pyspark.sql.types import ByteType, StructField, StructType

from planner.physical import PhysicalPlan
from planner.query import Query, output_column
from planner.sql import quote
from runtime.partition.rows import EMPTY
from runtime.program import Later
from runtime.selection import rivals
from runtime.selection.distinct import CREATED
from runtime.task import Limits
from spark_ext.created import with_created
from spark_ext.gathering import with_gathered
from spark_ext.limiting import limited
from spark_ext.limits import limits_of
from spark_ext.objections import analyzed, explained, one_row_each
from spark_ext.schema import SparkCatalog
from spark_ext.shipping import for_worker
from spark_ext.worker import chosen_matches

Choose = Callable[[DataFrame], DataFrame]


def returned(plan: PhysicalPlan, catalog: SparkCatalog, matches: DataFrame) -> DataFrame:
    """The rows of a query, of the matches that the engine gives."""
    return rows_of(plan, catalog, chosen(plan, catalog, matches))


def chosen(
    plan: PhysicalPlan, catalog: SparkCatalog, matches: DataFrame, choose: Choose = lambda matches: matches
) -> DataFrame:
    """The matches that are given, of those that the engine gives. `choose`: what chooses among matches that fulfil the
    conditions on the whole, where neither the engine nor a second pass does."""
    query, columns = plan.query, [column.name for column in plan.query.columns]
    if query.created is not None:
        matches = with_created(plan, query.created, matches)
    matches = with_gathered(query.text, matches, query.gathered[: query.gathered_on_match])
    with explained(query.text, matches, query.on_match, condition=True, columns=columns):
        for condition in query.on_match:
            matches = analyzed(matches.where(_of_matches(plan, condition.text)))
    if plan.later is not None:
        matches = _competing(plan, plan.later, matches, limits_of(catalog.spark, query))
    matches = choose(matches)
    return with_gathered(query.text, matches, query.gathered[query.gathered_on_match :])


def rows_of(plan: PhysicalPlan, catalog: SparkCatalog, matches: DataFrame) -> DataFrame:
    """HAVING, RETURN and LIMIT on matches, or on groups of them."""
    query, columns = plan.query, [column.name for column in plan.query.columns]
    matches = _with_computed(query, matches)
    with explained(query.text, matches, query.having, condition=True, columns=columns):
        for condition in query.having:
            matches = analyzed(matches.where(condition.text))
    outputs = [output.sql for output in query.outputs]
    with explained(query.text, matches, outputs, columns=columns):
        items = (_named(i, query, catalog) for i in range(len(outputs)))
        rows = one_row_each(query.text, matches, analyzed(matches.selectExpr(*items)), outputs)
    return rows if query.limit is None else limited(rows, query.limit)


def _of_matches(plan: PhysicalPlan, condition: str) -> str:
    """A condition of WHERE, of which the starts that may time out are not asked."""
    if plan.later is None or not plan.later.timeouts:
        return condition
    return f"IF({rivals.KIND} = {rivals.TIMEOUT}, TRUE, {condition})"


def _competing(plan: PhysicalPlan, later: Later, matches: DataFrame, limits: Limits) -> DataFrame:
    """The second pass, in the same tasks."""
    fields = [field for field in matches.schema.fields if field.name not in (*rivals.COLUMNS, CREATED)]
    if not fields:  # nothing else of a match is asked for
        matches, fields = matches.selectExpr("*", f"0Y AS {EMPTY}"), [StructField(EMPTY, ByteType())]
    names = tuple(field.name for field in fields)
    return matches.mapInArrow(for_worker(chosen_matches, later, plan.program, names, limits), StructType(fields))


def _with_computed(query: Query, matches: DataFrame) -> DataFrame:
    """The items of RETURN that HAVING reads as columns, so that it reads what is returned."""
    if not query.computed:
        return matches
    outputs = [query.outputs[i].sql for i in query.computed]
    named = [f"{sql.text} AS {output_column(i)}" for i, sql in zip(query.computed, outputs, strict=True)]
    with explained(query.text, matches, outputs):
        return one_row_each(query.text, matches, analyzed(matches.selectExpr("*", *named)), outputs)


def _named(i: int, query: Query, catalog: SparkCatalog) -> str:
    """An item of RETURN under its alias, or the name that Spark gives to what the user wrote."""
    output = query.outputs[i]
    name = output.name or catalog.name_of(output.shown, query.variables)
    sql = quote(output_column(i)) if i in query.computed else output.sql.text
    return f"{sql} AS {quote(name or ' '.join(output.shown.split()))}"
