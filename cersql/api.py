"""The public functions: each calls the stages, in order."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from cersql import bare_words, syntax
from cersql.bind import bind
from cersql.explain import explain_stage
from cersql.parse import parse
from cersql.schemas import Schema, columns_of
from cersql.schemas import check as check_schemas
from cersql.scope import Names
from planner.physical import PhysicalPlan, plan
from planner.query import Column, Query, Source
from runtime.errors import CersqlError
from runtime.program import Program

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from spark_ext.schema import SparkCatalog

ORDER_SETTING = "cersql.orderBy"

logger = logging.getLogger("cersql")


@dataclass(frozen=True)
class Compiled:
    """A query at every stage of its way, without any Spark."""

    syntax: syntax.Query
    query: Query
    plan: PhysicalPlan

    @property
    def program(self) -> Program:
        return self.plan.program

    def explain(self, stage: str | None = None) -> str:
        """One stage (syntax, cel, automaton, deterministic, physical, program, dot, mermaid, svg), or the main ones."""
        return explain_stage(self, stage)


class SchemaCatalog:
    """A catalog of plain schemas: table → column → Spark type, or table → DDL."""

    def __init__(self, schemas: Mapping[str, Schema], case_sensitive: bool = False) -> None:
        check_schemas(schemas)
        self._schemas = schemas
        self.case_sensitive = case_sensitive

    def relation(self, statement: str) -> tuple[Column, ...] | None:
        name = statement.removeprefix("SELECT * FROM ").replace("`", "")
        for known, schema in self._schemas.items():
            if name in Names([known], self.case_sensitive):
                return columns_of(known, schema)
        return None

    def tables(self) -> list[str]:
        return sorted(self._schemas)

    def union(self, sources: Sequence[Source]) -> tuple[Column, ...]:
        columns = [column for source in sources for column in source.columns]
        names = Names((column.name for column in columns), self.case_sensitive)
        return tuple(next(c for c in columns if c.name == name) for name in names)

    def type_of(self, expression: str, columns: Sequence[Column]) -> str:
        """A column's own type; without Spark, anything else counts as a double."""
        return next((c.type for c in columns if expression.strip().strip("`") == c.name), "double")


def compile(text: str, schemas: Mapping[str, Schema], *, order_by: str | None = None) -> Compiled:
    """Parse, bind and plan a query against plain schemas, without any Spark: `{"trades": {"ts": "timestamp", …}}` or
    `{"trades": "ts TIMESTAMP, …"}`.

    Raises CersqlError (ParseError, BindError, PlanError). Spark's own objections to an expression need a session.
    """
    catalog = SchemaCatalog(schemas)
    tree = parse(text)
    query = bind(tree, catalog, order_by=order_by)
    try:
        bare_words.check(tree, query, catalog.case_sensitive)
    except CersqlError as error:
        raise error.at(text) from None
    return Compiled(tree, query, _planned(tree, query))


def _planned(tree: syntax.Query, query: Query) -> PhysicalPlan:
    """The physical plan; what cannot be planned is said at the pattern."""
    try:
        return plan(query)
    except CersqlError as error:
        raise error.at(tree.text, tree.clause("PATTERN")) from None


def session(app_name: str = "cersql", config: Mapping[str, str] | None = None) -> SparkSession:
    """A SparkSession that speaks PATTERN: in `spark.sql`, in subqueries, in CREATE TEMPORARY PATTERN VIEW."""
    from spark_ext import session as hook

    return hook.session(app_name, dict(config or {}), rewrite=_rewrite)


def enable(spark: SparkSession) -> SparkSession:
    """Teach the session you have, in place, and its later newSession()s. Returns it."""
    from spark_ext import session as hook

    return hook.enable(spark, rewrite=_rewrite)


def sql(spark: SparkSession, text: str, *, order_by: str | None = None) -> DataFrame:
    """Run a statement of ours, or any of Spark's, without touching the session."""
    from cersql.statements import rewrite
    from spark_ext.session import try_sql

    run = partial(_run, order_by=order_by)
    plain = try_sql(spark, text)
    if plain is not None:
        return plain
    ours = rewrite(spark, text, run, partial(_count, order_by=order_by), every=True)
    if ours is None or isinstance(ours, str):
        return spark.sql(text if ours is None else ours)
    return ours


def match(df: DataFrame, text: str, *, order_by: str | None = None) -> DataFrame:
    """Run a query whose source is the DataFrame: the text has no FROM."""
    return _run(df.sparkSession, text, 0, len(text), given=df, order_by=order_by)


def explain(spark: SparkSession, text: str, stage: str | None = None, *, order_by: str | None = None) -> str:
    """What becomes of a query, or of the first one in a statement: one stage, or the formula, automaton and plan.

    Stages: syntax, cel, automaton, deterministic, physical, program; and the automaton drawn: dot (for Graphviz),
    mermaid, svg.
    """
    from cersql.statements import first_query

    query = first_query(text)
    compiled, _ = _compile(spark, text, query.start, query.end, order_by=order_by)
    return compiled.explain(stage)


def _compile(
    spark: SparkSession, text: str, start: int, end: int, given: DataFrame | None = None, order_by: str | None = None
) -> tuple[Compiled, SparkCatalog]:
    from spark_ext.schema import SparkCatalog

    tree = parse(text, start=start, end=end)
    catalog = SparkCatalog(spark, given)
    columns = None if given is None else catalog.given_columns()
    order_by = order_by or spark.conf.get(ORDER_SETTING, None)
    query = bind(tree, catalog, columns, order_by)
    for warning in query.warnings:
        logger.warning("%s", warning)
    return Compiled(tree, query, _planned(tree, query)), catalog


def _run(
    spark: SparkSession,
    text: str,
    start: int,
    end: int,
    given: DataFrame | None = None,
    order_by: str | None = None,
) -> DataFrame:
    from spark_ext.batch import result

    compiled, catalog = _compile(spark, text, start, end, given, order_by)
    return result(compiled.plan, catalog)


def _count(spark: SparkSession, text: str, start: int, end: int, order_by: str | None = None) -> DataFrame | None:
    from spark_ext.batch import count

    compiled, catalog = _compile(spark, text, start, end, order_by=order_by)
    return count(compiled.plan, catalog)


def _rewrite(spark: SparkSession, text: str) -> str | DataFrame | None:
    """What the parser hook calls with a text that Spark refuses."""
    from cersql.statements import rewrite

    return rewrite(spark, text, _run, _count)
