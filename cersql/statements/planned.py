"""A query at every stage of its way, and what can be asked of it."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from cersql.binding.bind import bind
from cersql.language import syntax
from cersql.language.parse import parse
from cersql.language.translated import Translated
from cersql.show import html
from cersql.show.explain import explain_stage
from cersql.statements.counting import grouped_text
from cersql.statements.describe import describe
from cersql.statements.pushdown import Key
from planner.errors import too_complex
from planner.physical import PhysicalPlan, plan
from planner.query import Query, key_column
from planner.sql import quote
from runtime.errors import CersqlError, Span
from runtime.program import Program

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from spark_ext import relational
    from spark_ext.schema import SparkCatalog

ORDER_SETTING = "cersql.orderBy"
MOST_DRAWN = 60  # states, in a notebook; nobody reads a picture of more
_FACTS = ("partition by", "order by", "within", "semantics", "consume by", "after match skip", "states", "layout")

# Where the mistake is, of those that only a stream makes.
_STREAM_CLAUSES = {
    "STREAM_WATERMARK": "ORDER BY",
    "STREAM_ORDER": "ORDER BY",
    "STREAM_LATER": "SEMANTICS",
    "STREAM_GROUPS": "GROUP BY",
    "STREAM_KEY": "GROUP BY",
    "STREAM_MIXED": "FROM",
    "WATERMARK_TWICE": "WATERMARK",
}

logger = logging.getLogger("cersql")


@dataclass(frozen=True, repr=False)
class Compiled:
    """A query at every stage of its way, without any Spark.

    `syntax` is as written, `query` has its names bound, `plan` has the automaton and the `program` that workers get.
    A notebook shows the automaton.
    """

    syntax: syntax.Query
    query: Query
    plan: PhysicalPlan

    @property
    def program(self) -> Program:
        return self.plan.program

    @property
    def written(self) -> str:
        """The statement that the query stands in, as the user wrote it."""
        text = self.syntax.text
        return str(text.written if isinstance(text, Translated) else text)

    def explain(self, stage: str | None = None) -> str:
        """One stage (syntax, cel, rewritten, automaton, deterministic, physical, program, dot, mermaid, svg), or the
        main ones."""
        return explain_stage(self, stage)

    def __repr__(self) -> str:
        automaton = self.plan.automaton
        return f"<Compiled: {automaton.n_states} states, {len(automaton.transitions)} transitions>"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """What IPython shows in a terminal."""
        printer.text(self.explain())

    def _repr_html_(self) -> str:
        """What a notebook shows: the automaton, the formula, a few facts, and the main stages to unfold."""
        told = {name: value for _, name, value in describe("", self)}
        facts = [(name, _MICROSECONDS.sub(_duration, told[name])) for name in _FACTS if name in told]
        small = self.plan.automaton.n_states <= MOST_DRAWN
        return html.automaton(self.explain("svg") if small else None, told["formula"], facts, self.explain())


_MICROSECONDS = re.compile(r"\b(\d{1,18}) microseconds")


def _duration(found: re.Match[str]) -> str:
    return str(timedelta(microseconds=int(found[1])))


@dataclass(frozen=True)
class Planned:
    """A query over the tables of a session."""

    compiled: Compiled
    catalog: SparkCatalog
    order_by: str | None = None
    """What to order by where the text does not say."""

    def explain(self, stage: str | None = None) -> str:
        """As Compiled.explain; also how the source is read, and of a stream what is held, for how long, and where."""
        from spark_ext import batch, relational, streaming, windowed

        text, plan = self.compiled.explain(stage), self.compiled.plan
        if stage not in (None, "physical"):
            return text
        if not streaming.is_stream(plan.query, self.catalog):
            joined = self._way(self.catalog)
            scanned = batch.told(plan, self.catalog) if joined.joins is None else ()
            return "\n".join([text, *joined.told, *scanned])
        chosen = relational.told_of_stream(self.catalog.spark)
        return "\n".join([text, *chosen, *streaming.told(plan, self.catalog, windowed.kind_of(plan))])

    def frame(self, lasting: bool = False) -> DataFrame:
        """The rows. `lasting`: also those of a later time, when the source may have others."""
        df = self._result(self.catalog, lasting)
        self.tell(df)
        return df

    def tell(self, df: DataFrame) -> None:
        """Let a DataFrame know that it is the result of this query."""
        df.__dict__[_QUERY] = self

    def refined(self, condition: str, lasting: bool = False) -> DataFrame:
        """The same over the rows of the sources that fulfil a condition, as SQL on their columns."""
        return self._result(self.catalog.filtered(condition), lasting)

    def frame_by(self, way: str) -> DataFrame:
        """The rows by a plan, automaton or relational, whatever the session prefers."""
        return self._result(self.catalog, lasting=False, asked=way)

    def _result(self, catalog: SparkCatalog, lasting: bool, asked: str | None = None) -> DataFrame:
        from spark_ext import grouping, relational, windowed
        from spark_ext.batch import result
        from spark_ext.stream_metrics import counted
        from spark_ext.streaming import Streaming, is_stream

        plan, tree = self.compiled.plan, self.compiled.syntax
        if not is_stream(plan.query, catalog):
            joins = self._way(catalog, asked).joins
            if joins is not None:
                most = relational.most_listed(self.compiled.query, plan, catalog.spark)
                return relational.result(joins, most)
            kind = result if plan.query.groups is None else grouping.result
            return kind(plan, catalog, lasting=lasting)
        try:
            rows = result(plan, catalog, Streaming) if plan.query.groups is None else windowed.result(plan, catalog)
            return counted(plan.query, rows)
        except CersqlError as error:
            clause = _STREAM_CLAUSES.get(error.condition, "PATTERN")
            raise error.at(tree.text, tree.clause(clause) or tree.clause("PATTERN")) from None

    def late(self) -> DataFrame:
        """The rows of a stream that come too late for the pattern."""
        from spark_ext import late_rows

        return late_rows.of_plan(self.compiled.plan, self.catalog)

    def _way(self, catalog: SparkCatalog, asked: str | None = None) -> relational.Way:
        """Which plan runs it, of tables. `asked`: in place of the session's setting."""
        from spark_ext import relational

        try:
            return relational.way(self.compiled.query, self.compiled.plan, catalog, asked)
        except CersqlError as error:
            tree = self.compiled.syntax
            raise error.at(tree.text, tree.clause("PATTERN")) from None

    def unseen(self, if_small: bool) -> list[str]:
        """What is to be said of types of the pattern that no row has. Reads the rows; not of a stream, and with
        `if_small` only where these are few."""
        from spark_ext.streaming import is_stream
        from spark_ext.types_seen import is_small, unseen

        query = self.compiled.query
        if is_stream(query, self.catalog) or (if_small and not is_small(query, self.catalog)):
            return []
        return unseen(query, self.catalog)

    def count(self) -> DataFrame | None:
        """The number of matches, one BIGINT; None if that takes the rows themselves."""
        from spark_ext import relational
        from spark_ext.batch import count
        from spark_ext.streaming import is_stream

        if is_stream(self.compiled.query, self.catalog):
            return None
        joins = self._way(self.catalog).joins
        if joins is not None:
            return relational.count(joins)
        return count(self.compiled.plan, self.catalog)

    def counted_by(self, columns: Sequence[str], query: Span) -> Planned | None:
        """The query with a row for each of the values that some of its columns have, and how many matches have them, as
        COUNT_NAME; None where these would be listed to be counted. `query`: its place in its text."""
        from spark_ext.streaming import is_stream

        tree, bound, catalog = self.compiled.syntax, self.compiled.query, self.catalog
        if is_stream(bound, catalog) or catalog.case_sensitive or not catalog.ansi:
            return None  # without ANSI a number that is too large would be another one
        text = grouped_text(tree, query, [output.name for output in bound.outputs], columns)
        if text is None:
            return None
        try:
            grouped = replace(parse(text), ctes=tree.ctes)
            bound = bind(grouped, catalog, None, self.order_by)
            found = Planned(Compiled(grouped, bound, plan(bound)), catalog, self.order_by)
        except CersqlError:  # what cannot be grouped is counted as it is written
            return None
        groups = found.compiled.plan.query.groups
        assert groups is not None
        of_several = len({own.mark for own in groups.by if own.mark is not None}) > 1
        return None if groups.listed or of_several else found

    @property
    def keys(self) -> dict[str, Key]:
        """For each column of the result, in lower case, that is a PARTITION BY column as it is: that column."""
        query = self.compiled.query
        columns = {quote(key_column(i)): name for i, name in enumerate(query.partition_by)}
        columns |= {key_column(i): name for i, name in enumerate(query.partition_by)}
        return {
            output.name.casefold(): Key(columns[output.sql.text], query.column(columns[output.sql.text]).type)
            for output in query.outputs
            if output.name is not None and output.sql.text in columns
        }

    @property
    def obstacle(self) -> str | None:
        """Why a filter on keys may not act before the pattern; None if each key's matches are its own."""
        from spark_ext.streaming import is_stream

        query = self.compiled.query
        if self.catalog.case_sensitive:
            return "names of columns are case-sensitive in this session"
        if not self.keys:
            return "the pattern returns no column of its PARTITION BY"
        if is_stream(query, self.catalog):
            return "all rows of a stream move its watermark"
        if query.limit is not None:
            return "its LIMIT chooses among the matches of all keys"
        if query.consume == "ANY":
            return "CONSUME BY ANY lets a match of one key consume what others have begun"
        return None


def query_of(df: DataFrame) -> Planned | None:
    """The query whose result a DataFrame is, if `cersql.sql` or `cersql.match` gave it, or `spark.sql` over Connect.
    What is made of it (`df.where(…)`) is another one, and so is what Spark's own parser was handed."""
    found = df.__dict__.get(_QUERY)
    return found if isinstance(found, Planned) else None


_QUERY = "_cersql_query"  # an attribute of such a DataFrame

_listeners: list[Callable[[Planned], None]] = []


@contextmanager
def collected() -> Iterator[list[Planned]]:
    """The queries that are planned meanwhile."""
    found: list[Planned] = []
    _listeners.append(found.append)
    try:
        yield found
    finally:
        _listeners.remove(found.append)


def plan_query(
    spark: SparkSession,
    text: str,
    query: Span,
    given: DataFrame | None = None,
    order_by: str | None = None,
    ctes: str | None = None,
) -> Planned:
    """Parse, bind and plan the query at a place of `text`; errors point into `text`. `ctes`: in place of its WITH."""
    tree = parse(text, start=query.start, end=query.end)
    if ctes is not None:
        tree = replace(tree, ctes=syntax.Text(ctes, query))
    return plan_tree(spark, tree, given, order_by)


def plan_tree(
    spark: SparkSession, tree: syntax.Query, given: DataFrame | None = None, order_by: str | None = None
) -> Planned:
    """Bind and plan a query."""
    from spark_ext.schema import SparkCatalog
    from spark_ext.types_seen import unlike

    catalog = SparkCatalog(spark, given)
    columns = None if given is None else catalog.given_columns()
    order_by = order_by or spark.conf.get(ORDER_SETTING, None)
    bound = bind(tree, catalog, columns, order_by)
    bound = replace(bound, warnings=(*bound.warnings, *dict.fromkeys(unlike(bound, catalog))))
    for warning in bound.warnings:
        logger.warning("%s", warning)
    found = Planned(Compiled(tree, bound, planned(tree, bound)), catalog, order_by)
    for seen in _listeners:
        seen(found)
    return found


def planned(tree: syntax.Query, query: Query) -> PhysicalPlan:
    """The physical plan; what cannot be planned is said at the pattern."""
    try:
        return plan(query)
    except CersqlError as error:
        raise error.at(tree.text, tree.clause("PATTERN")) from None
    except RecursionError:
        raise too_complex().at(tree.text, tree.clause("PATTERN")) from None
