"""The public functions: each calls the stages, in order."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cersql.binding import bare_words
from cersql.binding.bind import bind
from cersql.binding.schemas import Schema, columns_of
from cersql.binding.schemas import check as check_schemas
from cersql.binding.scope import Names
from cersql.language.parse import parse
from cersql.statements.patterns import Patterns
from cersql.statements.planned import Compiled, planned
from planner.query import Column, Computed
from planner.sql import Sql, quote
from runtime.errors import CersqlError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from spark_ext.thrift import ThriftServer


_WIDTHS = {
    type: k for k, type in enumerate("tinyint smallint int bigint decimal float double".split(), 1)
}  # fmt: skip


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

    def common(self, columns: Sequence[Column], name: str) -> Column | None:
        """As far as it can be told without Spark: the widest number, and never an array beside what is none."""
        types = list(dict.fromkeys(column.type for column in columns))
        if len({re.match(r"(?:array|map|struct)<|variant$|", type)[0] for type in types}) > 1:  # type: ignore[index]
            return None
        ranks = [_WIDTHS.get(type.partition("(")[0], 0) for type in types]
        return Column(name, types[ranks.index(max(ranks))] if all(ranks) else types[0])

    def computed(self, text: str, sql: Sql, columns: Sequence[Column]) -> Computed:
        """Only Spark knows its type, which is '' here."""
        path = re.fullmatch(r"`((?:[^`]|``)+)`(?:\.`(?:[^`]|``)+`)*", sql.text)
        name = sql.text if path is None else sql.text.rsplit(".", 1)[-1].strip("`")
        type = next((c.type for c in columns if sql.text == quote(c.name)), "")
        return Computed(Column(name.replace("`", ""), type), True)

    def is_stream(self, relation: str | None) -> bool:
        """A schema says nothing of it."""
        return False

    def type_of(self, expression: str, columns: Sequence[Column]) -> str:
        """A column's own type, or a literal's; without Spark, anything else counts as a double."""
        expression = expression.strip()
        if re.fullmatch(r"-?\s*\d{1,9}", expression):
            return "int"
        if re.match(r"-?\s*INTERVAL\b(?!.*\b(MONTH|YEAR))", expression, re.IGNORECASE | re.DOTALL):
            days = re.fullmatch(r"-?\s*INTERVAL\s+'?\s*-?\d+\s*'?\s+DAYS?", expression, re.IGNORECASE)
            return "interval day" if days else "interval day to second"
        return next((c.type for c in columns if expression.strip("`") == c.name), "double")

    def common_type(self, left: str, right: str, columns: Sequence[Column]) -> str:
        """Only Spark knows."""
        return ""

    def check(self, text: str, condition: Sql, columns: Sequence[Column]) -> None:
        """Without Spark nothing is known of it."""

    ansi = True

    def aggregate_type(self, text: str, sql: Sql, columns: Sequence[Column]) -> str:
        """Only Spark knows; what is made of it is not run."""
        return "double"

    def aggregated(self, text: str, sql: Sql, columns: Sequence[Column], name: str) -> Column:
        return Column(name, self.aggregate_type(text, sql, columns))

    def in_lambda(self, expressions: Sequence[str], columns: Sequence[Column]) -> bool:
        """Only Spark knows its UDFs."""
        return True


def compile(text: str, schemas: Mapping[str, Schema], *, order_by: str | None = None) -> Compiled:
    """Parse, bind and plan a query against plain schemas, without any Spark.

        schemas = {"trades": "ts TIMESTAMP, type STRING, id INT"}
        found = cersql.compile("FROM trades PATTERN A a ; B b ORDER BY ts RETURN a.id", schemas)
        print(found.explain("automaton"))

    `schemas`: table → columns, as a text like this one or as `{"ts": "timestamp", …}`. `order_by`: ORDER BY for a
    text that has none. Raises CersqlError (ParseError, BindError, PlanError). Spark's own objections to an expression
    need a session.
    """
    catalog = SchemaCatalog(schemas)
    tree = parse(text)
    query = bind(tree, catalog, order_by=order_by)
    try:
        bare_words.check(tree, query, catalog.case_sensitive)
    except CersqlError as error:
        raise error.at(tree.text) from None
    return Compiled(tree, query, planned(tree, query))


def session(app_name: str = "cersql", config: Mapping[str, str] | None = None, *, ship: bool = False) -> SparkSession:
    """A SparkSession that speaks PATTERN: in `spark.sql`, in subqueries, in CREATE TEMPORARY PATTERN VIEW.

        spark = cersql.session("app", {"spark.master": "local[4]"})
        spark.sql("FROM trades PATTERN A a ; B b ORDER BY ts RETURN a.id").show()

    `config` are Spark's settings. Where a session runs already, it is that one, which is taught. `ship=True`
    also sends cersql to the workers, as `cersql.ship` does.
    """
    from spark_ext import session as hook
    from spark_ext import shipping

    spark = enable(hook.started(app_name, config))
    return shipping.ship(spark) if ship else spark


def enable(spark: SparkSession) -> SparkSession:
    """Teach the session you have, in place, and its later newSession()s. Returns it; twice is harmless.

        cersql.enable(spark).sql("FROM trades PATTERN A a ; B b ORDER BY ts RETURN a.id")

    What is no statement of ours goes to Spark as it is. Of a Spark Connect session it is the object that is taught, not
    the server, which a warning in the log says.
    """
    from cersql.statements import front
    from spark_ext import shipping

    front.enable(spark)
    return shipping.ship(spark) if shipping.comes_in_an_archive() else spark


def ship(spark: SparkSession) -> SparkSession:
    """Send cersql to the workers of this application, where it is not installed. Returns `spark`; twice is harmless.

    Their Python needs numpy, numba, pyarrow and pandas of its own. Where cersql was imported from an archive
    (`spark-submit --py-files cersql-….whl`), `enable` and `session` do this by themselves.
    """
    from spark_ext import shipping

    return shipping.ship(spark)


def sql(
    spark: SparkSession,
    text: str,
    args: Mapping[str, Any] | Sequence[Any] | None = None,
    *,
    order_by: str | None = None,
) -> DataFrame:
    """Run a statement of ours, or any of Spark's, without touching the session.

        cersql.sql(spark, "FROM trades PATTERN A a ; B b WHERE a.price > :least ORDER BY ts RETURN a.id", {"least": 80})

    Returns a DataFrame: a row for each match, with the columns of RETURN. `args` are those of `spark.sql`: a
    dict for `:name`, a list for `?`. `order_by`: ORDER BY for a text that has none. Raises CersqlError; `spark.sql` of
    a taught session raises Spark's ParseException with the same text.
    """
    from cersql.statements import front

    return front.sql(spark, text, args, order_by=order_by)


def match(
    df: DataFrame,
    text: str,
    args: Mapping[str, Any] | Sequence[Any] | None = None,
    *,
    order_by: str | None = None,
) -> DataFrame:
    """Run a query whose source is the DataFrame: the text has no FROM.

        cersql.match(df, "PATTERN A a ; B b ORDER BY ts WITHIN 1 HOUR RETURN a.id, b.id")

    Returns a DataFrame with a row for each match; a stream where `df` is one, which needs a watermark. `args` and
    `order_by` are those of `cersql.sql`. Raises CersqlError.
    """
    from cersql.statements import front

    return front.match(df, text, args, order_by=order_by)


def late(stream: DataFrame) -> DataFrame:
    """The rows of a stream that come too late, at or before its watermark, with all columns of their source.

        found = cersql.match(live, "PATTERN A a ; B b ORDER BY ts WITHIN 1 HOUR RETURN a.id, b.id")
        cersql.late(found).writeStream.option("checkpointLocation", "…").toTable("late")

    `stream`: what `cersql.match` or `cersql.sql` gave, whose pattern says which rows it would have read; or any stream
    with a watermark, all of whose rows count. Returns a streaming DataFrame. Started by itself it is another query,
    whose micro-batches, and so whose watermark, are its own; START PATTERN STREAM … WITH LATE ROWS INTO TABLE writes
    exactly those that the matches lack. Raises CersqlError.
    """
    from cersql.statements import front

    return front.late(stream)


def explain(spark: SparkSession, text: str, stage: str | None = None, *, order_by: str | None = None) -> str:
    """What becomes of a query, or of the first one in a statement: one stage, or the formula, automaton and plan.

        print(cersql.explain(spark, "FROM trades PATTERN A a ; B b ORDER BY ts RETURN a.id", "automaton"))

    Nothing runs. Stages: syntax, cel, rewritten, automaton, deterministic, physical, program; and the automaton drawn:
    dot (for Graphviz), mermaid, svg.
    """
    from cersql.statements import front

    return front.explain(spark, text, stage, order_by=order_by)


def metrics(spark: SparkSession, stream: str | StreamingQuery | None = None) -> DataFrame:
    """What the newest micro-batches of a pattern stream have done, a row each; without a name, of all streams.

        cersql.metrics(spark, "pairs").select("at", "matches", "held_rows", "lag_seconds", "engine_seconds").show()

    `stream`: the name after START PATTERN STREAM, or any running StreamingQuery that reads patterns. The columns are in
    [Streams](streams.md). `SHOW PATTERN STREAM METRICS pairs` gives the same. Raises BindError.
    """
    from cersql.statements import commands

    return commands.metrics_of(spark, stream)


def patterns(spark: SparkSession) -> Patterns:
    """The pattern views and functions of a session: look at them, save them as a text file, load them from one.

    cersql.patterns(spark).save("patterns.sql")
    cersql.patterns(spark).load("patterns.sql")
    """
    return Patterns(spark)


def register_aggregate(
    name: str,
    lift: Callable[..., Any],
    combine: Callable[[Any, Any], Any],
    lower: Callable[[Any], Any],
    identity: Any,
    type: str,
    *,
    samples: Sequence[Any] = (),
) -> None:
    """An aggregate function of your own, in Python, for all queries of this process, wherever SUM may stand.

        cersql.register_aggregate("RMS", lift=lambda x: (x * x, 1), combine=lambda a, b: (a[0] + b[0], a[1] + b[1]),
            lower=lambda s: (s[0] / s[1]) ** 0.5 if s[1] else None, identity=(0, 0), type="DOUBLE")
        spark.sql("FROM trades PATTERN A a ; B+ b WHERE RMS(b.price) > 9 ORDER BY ts RETURN a.id, RMS(b.price) AS r")

    `lift` makes of a value (or of several, as many as it has parameters: `MY(b.x, b.w)`) what `combine` puts together,
    `lower` of that the result, of the Spark type `type`; over no value it is `lower(identity)`. None is NULL, and a
    value that is NULL is left out. `combine` must be associative and commutative, and leave its arguments as they are:
    this is tried on `samples`, values or tuples of arguments, or on some of ours, and an error names those that
    contradict it. A name is replaced where it is registered again. The functions travel to workers as those of UDFs do.
    Raises BindError.
    """
    from cersql.statements import aggregates

    aggregates.register(name, lift, combine, lower, identity, type, samples)


def serve(
    spark: SparkSession,
    *,
    host: str = "127.0.0.1",
    port: int = 10000,
    settings: Mapping[str, str] | None = None,
    shared: bool | None = None,
) -> ThriftServer:
    """Start a Thrift server in front of a session, which is taught if need be: for JDBC, beeline, PyHive, BI tools.

        with cersql.serve(spark, port=10000) as server:
            server.wait()

    The handle has `url`, `port` (0 takes a free one), `wait()` and `stop()`, which the end of a with block calls too.
    `settings` are Hive's, such as `hive.server2.authentication`. All clients share the session; with `shared=False`,
    or where spark.sql.hive.thriftServer.singleSession is set to false, each connection has its own, which sees tables
    and global views. Raises CersqlError.
    """
    from spark_ext import thrift
    from spark_ext.connect import is_connect
    from spark_ext.errors import SparkError

    if is_connect(spark):
        raise SparkError("CONNECT", what="a Thrift server", hint="Call cersql.serve where the server itself runs.")
    return thrift.serve(enable(spark), host=host, port=port, settings=settings, shared=shared)
