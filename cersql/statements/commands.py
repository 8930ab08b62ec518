"""Carries out the statements that cersql/statements/find.py finds, in a session."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from cersql.errors import BindError, suggestion
from cersql.language.source import SourceText
from cersql.statements.catalog import in_catalog
from cersql.statements.ctes import visible
from cersql.statements.describe import Fact, columns_of, describe, signature
from cersql.statements.find import find
from cersql.statements.functions import body_of, check_function
from cersql.statements.kinds import (
    Counted,
    CreateFunction,
    CreateView,
    Describe,
    Drop,
    DropStream,
    Embedded,
    Explain,
    Show,
    ShowMetrics,
    ShowStreams,
    StartStream,
    Statement,
    StopStream,
    Whole,
    queries_of,
)  # fmt: skip
from cersql.statements.parameters import Arguments, Values, fill, fill_markers, marker_values, with_values
from cersql.statements.planned import Planned, collected, plan_query
from cersql.statements.pushdown import reading_of
from cersql.statements.refining import counted, explanation, refine, refined
from cersql.statements.table_arguments import single_partitions
from runtime.errors import CersqlError, Span
from spark_ext import functions, patterns, streams, views
from spark_ext.arguments import of_values
from spark_ext.quiet import quiet_captures
from spark_ext.session import run_sql, try_sql
from spark_ext.streaming import few_partitions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

logger = logging.getLogger("cersql")
_OF_SESSION = (
    "%s is a view of this session alone, as with TEMPORARY. To have it in every session put the statement into a file, "
    "which --init or cersql.patterns(spark).load runs."
)

Plan = Callable[..., Planned]
"""(session, text, place of the query, ctes=what stands in place of its WITH) -> the query, planned; errors point into
`text`."""


def rewrite(
    spark: SparkSession,
    sql: str,
    values: Values = lambda: None,
    *,
    order_by: str | None = None,
    every: bool = False,
    plan: Plan | None = None,
) -> str | DataFrame | None:
    """Another text for Spark, the result itself, or None if the text is not ours.

    `values`: those of `:name` or `?` in our parts; where they are in order, those around our parts are filled in
    as well. `every`: whatever Spark refuses is ours (`cersql.sql`).
    """
    sql = SourceText.of(sql)
    filled = fill(sql, single_partitions(sql))
    changed = filled.text != sql
    try:
        found = find(filled.text, every=every and not changed)
        if found is None:
            return _with_values_in_order(filled.text, values()) if changed else None
        return _arranged(spark, filled.text, found, values(), plan or partial(plan_query, order_by=order_by))
    except CersqlError as error:
        raise filled.original(error.at(filled.text)) from None


def run(
    spark: SparkSession, text: str, args: Any = None, *, order_by: str | None = None, every: bool = True
) -> DataFrame:
    """Run any statement: over fewer keys where it allows that, as Spark's own where Spark reads it, else as ours.

    `args` are those of `spark.sql`; `every`: an error is ours, whatever Spark refuses.
    """

    def values() -> Arguments | None:
        return of_values(spark, args) if args else None

    text = SourceText.of(text)
    fewer = refine(spark, text, values)
    if not isinstance(fewer, str | None):
        return fewer
    text = fewer or text
    with collected() as met:  # where the session speaks PATTERN, its parser plans ours
        plain = try_sql(spark, text, args)
    if plain is not None:
        return _known(plain, SourceText.of(text), met)
    with quiet_captures():
        ours = rewrite(spark, text, values, order_by=order_by, every=every)
    if ours is None:
        return run_sql(spark, text, args)  # and Spark says what is wrong
    if isinstance(ours, str):  # values in order are filled in by now
        return run_sql(spark, ours, args if isinstance(args, Mapping) else None)
    return ours


def _known(df: DataFrame, text: SourceText, met: Sequence[Planned]) -> DataFrame:
    """The result of a statement that was planned as one query of ours knows it."""
    if len(met) == 1 and met[0].compiled.written == str(text) and isinstance(find(text), Whole):
        met[0].tell(df)
    return df


def _with_values_in_order(sql: SourceText, arguments: Arguments | None) -> str:
    """A text for Spark, which is not given values in order a second time."""
    return sql if arguments is None or isinstance(arguments, Mapping) else fill_markers(sql, (), arguments).text


def _arranged(
    spark: SparkSession, sql: SourceText, found: Statement, arguments: Arguments | None, plan: Plan
) -> str | DataFrame:
    """Carry out a statement, with the values of its parameters filled in."""
    queries = list(queries_of(found))
    if arguments:  # a WITH around a query is put before it, with its markers
        queries += [definition.span for query in queries for definition in visible(sql, query)]
    with with_values(sql, queries, arguments) as filled:
        again = found if filled is sql else find(filled, every=True)
        assert again is not None
        return _Command(spark, filled, plan, arguments or None).run(again)


class _Command:
    def __init__(self, spark: SparkSession, sql: SourceText, plan: Plan, arguments: Arguments | None) -> None:
        self.spark, self.sql, self._plan, self.arguments = spark, sql, plan, arguments

    def run(self, found: Statement) -> str | DataFrame:
        match found:
            case Whole(query):
                return self.plan(query).frame()
            case Embedded():
                return self.embedded(found)
            case Counted():
                counted = self.plan(found.query).count()
                return self.run(found.otherwise) if counted is None else counted.toDF(found.column)
            case Explain():
                return self.explain(found)
            case CreateView():
                return self.create_view(found)
            case CreateFunction():
                return self.create_function(found)
            case Drop():
                return self.drop(found)
            case Show(like):
                return self.show(like)
            case Describe():
                return self.describe(found)
            case StartStream():
                return self.start_stream(found)
            case StopStream(name, span):
                if not streams.stop(name, by=views.user(self.spark)):
                    raise _unknown_stream(name, span)
                return views.nothing(self.spark)
            case DropStream():
                return self.drop_stream(found)
            case ShowStreams():
                return views.table(self.spark, list(streams.COLUMNS), streams.rows())
            case ShowMetrics(name, span):
                return metrics_of(self.spark, name, span)

    def plan(self, query: Span, ctes: str | None = None) -> Planned:
        if ctes is None:
            return self._plan(self.spark, self.sql, query)
        return self._plan(self.spark, self.sql, query, ctes=ctes)

    def embedded(self, found: Embedded, explained: list[str] | None = None) -> str:
        """The statement with a private view in place of each query; what EXPLAIN says of them goes to `explained`."""
        values = marker_values(self.sql, found.queries, self.arguments)
        places: list[tuple[Span, str]] = []
        for query in found.queries:
            planned = self.plan(query, self._ctes(query, places))
            reading = reading_of(self.sql, query)
            planned, counts = counted(planned, query, reading, self.sql, found.lasting)
            fewer, note = refined(planned, reading, self.sql, values, found.lasting)
            if explained is not None:
                explained.append(f"{planned.explain()}\n{note}")
            df = planned.frame(found.lasting) if fewer is None else fewer
            view = views.private_view(self.spark, df, lasting=found.lasting)
            places.append((query, _in_place(f"SELECT * FROM {view}", self.sql[query.start : query.end])))
            places += counts
        return fill(self.sql, sorted(places, key=lambda place: place[0].start)).text

    def _ctes(self, query: Span, places: Sequence[tuple[Span, str]]) -> str | None:
        """The WITH that a query sees, whose queries before it have been replaced; None where it has its own alone."""
        definitions = visible(self.sql, query)
        if not definitions:
            return None
        texts = []
        for _, span, _ in definitions:
            own = [(Span(place.start - span.start, place.end - span.start), text)
                   for place, text in places if span.start <= place.start < span.end]  # fmt: skip
            texts.append(fill(self.sql[span.start : span.end], own).text)
        recursive = "RECURSIVE " if any(definition.recursive for definition in definitions) else ""
        return f"WITH {recursive}{', '.join(texts)}"

    def explain(self, found: Explain) -> DataFrame:
        """What we planned, then what Spark makes of the whole, as the one text that EXPLAIN gives."""
        parts: list[str] = []
        if isinstance(found.inner, Whole):
            planned = self.plan(found.inner.query)
            parts.append(planned.explain())
            statement = f"SELECT * FROM {views.private_view(self.spark, planned.frame(), lasting=False)}"
        else:
            statement = self.embedded(found.inner, parts)[found.rest.start :]
        return explanation(self.spark, parts, f"EXPLAIN {found.mode or ''} {statement}", self.arguments)

    def start_stream(self, found: StartStream) -> DataFrame:
        if streams.running(found.name):
            hint = f"STOP PATTERN STREAM {found.name} ends it."
            raise BindError("STREAM_EXISTS", span=found.span, name=found.name, hint=hint)
        text = SourceText(self.sql[found.query.start : found.query.end])
        inner = find(text)
        with streams.as_begun(self.spark, found.name, found.checkpoint), few_partitions(self.spark):
            planned = self.plan(found.query) if isinstance(inner, Whole) else None
            df = run(self.spark, text) if planned is None else planned.frame()
            if not df.isStreaming:
                raise BindError(
                    "NO_STREAM", span=found.query, name=found.name,
                    hint="Read the source by spark.readStream and make a view of it; over a table, CREATE TABLE AS "
                    "will do.",
                )  # fmt: skip
            try:
                limit = None if planned is None else planned.compiled.query.limit
                late = None
                if found.late is not None:
                    late = streams.Late(found.late[0], self._late_rows(planned, found.late[1]))
                streams.start(df, found.name, found.table, found.checkpoint, found.trigger, late, limit)
            except CersqlError as error:
                raise error.at(self.sql, found.span) from None
        return views.nothing(self.spark)

    def _late_rows(self, planned: Planned | None, place: Span) -> DataFrame:
        """The rows that come too late for a pattern stream."""
        if planned is None:
            hint = "Put SQL around it into a view that reads the table of matches."
            raise BindError("LATE_OF_WHAT", span=place, hint=hint)
        return planned.late()

    def drop_stream(self, found: DropStream) -> DataFrame:
        if streams.running(found.name):
            hint = f"STOP PATTERN STREAM {found.name} ends it; it can be dropped then."
            raise BindError("STREAM_RUNNING", span=found.span, name=found.name, hint=hint)
        if not streams.drop(found.name) and not found.if_exists:
            raise _unknown_stream(found.name, found.span)
        return views.nothing(self.spark)

    # ------------------------------------------------------------ definitions

    def create_view(self, found: CreateView) -> DataFrame:
        planned = self.plan(found.query)
        df = planned.frame(lasting=True)
        facts = (*columns_of(df.schema), *describe(self.sql[found.query.start : found.query.end], planned.compiled))
        with patterns.changing:
            views.create_view(df, found.name.value, replace=found.replace, is_global=found.is_global)
            self._remember("VIEW", found.name.value, found.is_global, facts, planned)
        if not found.says_temporary and not in_catalog():
            logger.warning(_OF_SESSION, found.name.value)
        return views.nothing(self.spark)

    def create_function(self, found: CreateFunction) -> DataFrame:
        check_function(self.spark, self.sql, found)
        name = found.name.value
        with patterns.changing:
            functions.register(self.spark, name, body_of(self.sql, found), replace=found.replace)
            self._remember("FUNCTION", name, False, signature(self.sql, found))
        return views.nothing(self.spark)

    def _remember(
        self, kind: str, name: str, is_global: bool, facts: tuple[Fact, ...], planned: Planned | None = None
    ) -> None:
        # Without a last comment, which would swallow what is put behind it.
        text = self.sql[: self.sql.statement[-1].end].strip()
        patterns.remember(self.spark, patterns.Definition(name, kind, is_global, text, facts, planned))

    def drop(self, found: Drop) -> DataFrame:
        with patterns.changing:
            definition = patterns.lookup(self.spark, found.name.value, found.kind, found.is_global)
            if definition is None:
                if not found.if_exists:
                    raise self._unknown(found.name.value, found.name.span, found.kind)
            elif found.kind == "VIEW":
                views.drop_view(self.spark, definition.name, is_global=definition.is_global)
            else:
                functions.drop(self.spark, definition.name)
        return views.nothing(self.spark)

    def show(self, like: str | None) -> DataFrame:
        wanted = _names_like(like or "*")
        rows = [
            (d.name, d.kind, "GLOBAL" if d.is_global else "SESSION", d.text)
            for d in patterns.definitions(self.spark)
            if any(pattern.fullmatch(d.name) for pattern in wanted)
        ]
        return views.table(self.spark, ["name", "kind", "scope", "definition"], rows)

    def describe(self, found: Describe) -> str | DataFrame:
        definition = patterns.lookup(self.spark, found.name.value, is_global=found.is_global)
        if definition is None:
            if self.spark.catalog.tableExists("pattern"):
                return self.sql  # a column of that table, and Spark's business
            raise self._unknown(found.name.value, found.name.span, None)
        return views.table(self.spark, ["section", "name", "value"], definition.facts)

    def _unknown(self, name: str, span: Span, kind: str | None) -> BindError:
        what = {"VIEW": "pattern view", "FUNCTION": "pattern function", None: "pattern view or function"}[kind]
        there = [d.name for d in patterns.definitions(self.spark) if kind in (None, d.kind)]
        hint = suggestion(name, there, "There are")
        return BindError("UNKNOWN_PATTERN", span=span, what=what, name=name, hint=hint)


def metrics_of(spark: SparkSession, of: str | StreamingQuery | None, span: Span | None = None) -> DataFrame:
    """What the micro-batches of a stream, by its name, of a query or of all streams have told. Raises BindError."""
    found = streams.metrics(spark, of)
    if found is None:
        raise _unknown_stream(str(of), span)
    return found


def _unknown_stream(name: str, span: Span | None) -> BindError:
    hint = suggestion(name, streams.names(), "There are")
    return BindError("UNKNOWN_STREAM", span=span, name=name, hint=hint)


def _in_place(text: str, written: str) -> str:
    """The words of `text` among blanks where `written` has other characters, so that what follows stands where it did:
    Spark names places in the text that it reads. As it is, where it does not fit."""
    made, at = re.sub(r"[^\n]", " ", written), 0
    for word in text.split(" "):
        while "\n" in made[at : at + len(word)]:
            at = made.index("\n", at) + 1
        if at + len(word) > len(made):
            return text
        made, at = f"{made[:at]}{word}{made[at + len(word) :]}", at + len(word) + 1
    return made


def _names_like(like: str) -> list[re.Pattern[str]]:
    """As in Spark's SHOW TABLES: `*` is any text, `|` separates alternatives, the rest is a regular expression, one
    that is none matches nothing, and case does not matter."""
    found = []
    for pattern in like.strip().split("|"):
        with suppress(re.error):
            found.append(re.compile(pattern.replace("*", ".*"), re.IGNORECASE))
    return found
