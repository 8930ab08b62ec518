"""Spark as a catalog: the schemas, types and names that binding asks for, all from Spark's own analyzer."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType, StringType, StructField, StructType

from planner.query import SOURCE_COLUMN, Column, Computed, Query, Variable
from planner.sql import Sql, quote
from spark_ext.errors import ExpressionError
from spark_ext.objections import analyzed, explained
from spark_ext.quiet import quiet_captures
from spark_ext.sliding import with_windows

_ANY_COLUMN = Column("__cersql_none", "string")  # where an expression reads none
_NOT_IN_LAMBDAS = (
    "UNSUPPORTED_FEATURE.LAMBDA_FUNCTION_WITH_",
    "UNSUPPORTED_SUBQUERY_EXPRESSION_CATEGORY.HIGHER_ORDER_FUNCTION",
)
_NO_AGGREGATE = "an aggregate function, where one row is spoken of."


class SparkCatalog:
    """Answers for one session (see cersql.binding.scope.Catalog). Keeps the DataFrames that it made."""

    def __init__(self, spark: SparkSession, given: DataFrame | None = None) -> None:
        self._spark = spark
        self._given = given
        self._frames: dict[str, DataFrame] = {}
        self._types: dict[Column, DataType] = {}
        self._condition: str | None = None
        self._empty: dict[tuple[Column, ...], DataFrame] = {}
        self.case_sensitive = str(spark.conf.get("spark.sql.caseSensitive")).lower() == "true"

    @property
    def spark(self) -> SparkSession:
        return self._spark

    def frame(self, relation: str | None) -> DataFrame:
        """The DataFrame of a source."""
        if relation is None:
            assert self._given is not None
            return self._given
        if relation not in self._frames:
            self._frames[relation] = self._spark.sql(relation)
        return self._frames[relation]

    def filtered(self, condition: str) -> SparkCatalog:
        """This catalog, whose `union_frame` holds only the rows that fulfil a condition on its columns."""
        found = copy.copy(self)
        found._condition = condition
        return found

    def relation(self, statement: str) -> tuple[Column, ...] | None:
        try:
            return self._columns(self.frame(statement))
        except AnalysisException as error:
            if error.getCondition() == "TABLE_OR_VIEW_NOT_FOUND":
                return None
            raise

    def is_stream(self, relation: str | None) -> bool:
        return self.frame(relation).isStreaming

    def tables(self) -> list[str]:
        return sorted(table.name for table in self._spark.catalog.listTables())

    def union_frame(self, query: Query) -> DataFrame:
        """The stream: all sources as one DataFrame with the query's columns; with several sources, one more column says
        which one a row is from."""
        tagged = [self._rows(query, i) for i in range(len(query.sources))]
        union = tagged[0]
        for other in tagged[1:]:
            union = union.unionByName(other, allowMissingColumns=True)
        if len(tagged) > 1:
            # In one order, whatever columns the first source lacks.
            union = union.select(*(quote(column.name) for column in query.columns), SOURCE_COLUMN)
        if query.groups is not None and query.groups.sliding is not None:
            union = with_windows(union, query.groups.sliding)
        return union if self._condition is None else union.where(self._condition)

    def _rows(self, query: Query, i: int) -> DataFrame:
        """The rows of one source that are read, with those of the stream's columns that it has."""
        frame = self._wanted(query, i)
        made = [(quote(column.name), sql) for column in query.made if (sql := column.by[i]) is not None]
        columns = [sql.text if sql.text == name else f"{sql.text} AS {name}" for name, sql in made]
        if len(query.sources) > 1:
            return frame.selectExpr(*columns, f"{i} AS {SOURCE_COLUMN}")
        return frame.selectExpr("*", *columns) if columns else frame

    def _wanted(self, query: Query, i: int) -> DataFrame:
        """The rows of one source that its WHERE lets pass."""
        source = query.sources[i]
        frame = self.frame(source.relation)
        time = next((c for c in source.columns if c.name in _own_names(query, i, query.order_by[0].column)), None)
        moves = frame.isStreaming and filters_rows(query) and time is not None and time.type.startswith("timestamp")
        if moves and time is not None and query.watermark_us is not None:
            frame = frame.withWatermark(time.name, f"{-(-query.watermark_us // 1000)} milliseconds")
        if source.where is None:
            return frame
        with explained(query.text, frame, [source.where], condition=True):
            wanted = analyzed(frame.where(source.where.text))
        if moves and time is not None:
            # It names the time, in a year that no row has: else Catalyst would ask it below the watermark, which all
            # rows move on.
            return frame.where(f"({source.where.text}) OR year({quote(time.name)}) = 1000000")
        return wanted

    def common(self, columns: Sequence[Column], name: str) -> Column | None:
        """UNION's column, under a name, of columns of several relations; None if it has no type for them."""
        first, *others = dict.fromkeys(self._renamed(column, name) for column in columns)
        union = self.empty([first])
        try:
            for other in others:  # as union_frame does it
                union = union.unionByName(self.empty([other]), allowMissingColumns=True)
            return self._columns(union)[0]
        except AnalysisException:
            return None

    def _renamed(self, column: Column, name: str) -> Column:
        renamed = Column(name, column.type)
        self._types.setdefault(renamed, self.type(column))
        return renamed

    def computed(self, text: str, sql: Sql, columns: Sequence[Column]) -> Computed:
        """What Spark says of an expression over one row of such columns. Raises ExpressionError, with its place."""
        empty, one = self.empty(columns), sql.wrapped("coalesce(", ")")
        try:
            # As an argument, beside other columns: an aggregate, or a generator of rows, cannot stand there.
            with explained(text, empty, [one]):
                frame = analyzed(empty.selectExpr("*", one.text))
        except ExpressionError as error:
            if error.condition == "ONE_ROW":
                several = error.parameters["spark"].startswith("UNSUPPORTED_GENERATOR")
                detail = "it makes many rows of one." if several else _NO_AGGREGATE
                raise ExpressionError("INVALID_EXPRESSION", span=error.span, detail=detail).at(text) from None
            raise
        (column,) = self._columns(empty.selectExpr(sql.text))
        steady = True
        if hasattr(frame, "_jdf"):  # over Connect nothing shows it
            expressions = frame._jdf.queryExecution().analyzed().expressions()
            steady = bool(expressions.apply(expressions.length() - 1).deterministic())
        return Computed(column, steady)

    def type_of(self, expression: str, columns: Sequence[Column]) -> str:
        """The type of an expression; a mistake in it is reported with its place later, when RETURN is analyzed."""
        try:
            return str(self.empty(columns).selectExpr(expression).schema.fields[0].dataType.simpleString())
        except (AnalysisException, ParseException):
            return "double"

    def common_type(self, left: str, right: str, columns: Sequence[Column]) -> str:
        """The type to which Spark casts two expressions to compare them; '' if it cannot, which is reported later."""
        empty = self.empty(columns)
        try:
            if not hasattr(empty, "_jdf"):  # over Connect nothing shows the casts
                return str(empty.selectExpr(f"coalesce({left}, {right})").schema.fields[0].dataType.simpleString())
            plan = empty.selectExpr(f"({left}) <=> ({right})")._jdf.queryExecution().analyzed()
            compared = plan.expressions().apply(0).child()
            return str(compared.left().dataType().sql())
        except (AnalysisException, ParseException):
            return ""

    def check(self, text: str, condition: Sql, columns: Sequence[Column]) -> None:
        """Raises what Spark objects to in a condition on a row, at its place in `text`."""
        frame = self.empty(columns)
        with explained(text, frame, [condition], condition=True, columns=[column.name for column in columns]):
            analyzed(frame.where(condition.text))

    @property
    def ansi(self) -> bool:
        """Does an expression fail where its value does not fit its type?"""
        return str(self._spark.conf.get("spark.sql.ansi.enabled")).lower() == "true"

    def aggregate_type(self, text: str, sql: Sql, columns: Sequence[Column]) -> str:
        """The type of an aggregate; what Spark has against it comes at its place in the user's text."""
        return self.aggregated(text, sql, columns, "aggregated").type

    def aggregated(self, text: str, sql: Sql, columns: Sequence[Column], name: str) -> Column:
        """An aggregate as a column with a name."""
        empty = self.empty(columns or (_ANY_COLUMN,))
        with explained(text, empty, [sql], columns=[column.name for column in columns], beside=False):
            return self._columns(empty.selectExpr(f"{sql.text} AS {quote(name)}"))[0]

    def in_lambda(self, expressions: Sequence[str], columns: Sequence[Column]) -> bool:
        """Does Spark take these in a lambda? It takes no UDFs of Python's or SQL's there, and no subqueries."""
        event = ", ".join(quote(column.name) for column in columns) or "1"
        try:
            with quiet_captures():
                _ = (
                    self.empty(columns or (_ANY_COLUMN,))
                    .selectExpr(f"transform(array(struct({event})), __e -> struct({', '.join(expressions)}))")
                    .schema
                )
        except (AnalysisException, ParseException) as error:
            return not (error.getCondition() or "").startswith(_NOT_IN_LAMBDAS)
        return True

    def _columns(self, df: DataFrame) -> tuple[Column, ...]:
        """A DataFrame's columns, remembering their exact types (a type's text does not quote odd field names)."""
        fields = df.schema.fields
        columns = tuple(Column(field.name, field.dataType.simpleString()) for field in fields)
        self._types.update(zip(columns, (field.dataType for field in fields), strict=True))
        return columns

    def given_columns(self) -> tuple[Column, ...]:
        """The columns of the DataFrame that was handed in."""
        return self._columns(self.frame(None))

    def type(self, column: Column) -> DataType:
        return StringType() if column is _ANY_COLUMN else self._types[column]

    def empty(self, columns: Sequence[Column]) -> DataFrame:
        """A relation of these columns and no rows, to ask the analyzer; the same for the same columns."""
        key = tuple(columns)
        if key not in self._empty:
            self._empty[key] = self.without_rows(StructType([StructField(c.name, self.type(c)) for c in columns]))
        return self._empty[key]

    def without_rows(self, schema: StructType) -> DataFrame:
        """A relation of this schema and no rows."""
        session: Any = getattr(self._spark, "_jsparkSession", None)
        if session is None:
            return self._spark.createDataFrame([], schema)
        jvm: Any = self._spark._jvm  # createDataFrame of Python's would make an RDD, which takes ten times as long
        rows = session.createDataFrame(getattr(jvm, "java.util.ArrayList")(), session.parseDataType(schema.json()))
        return DataFrame(rows, self._spark)

    def name_of(self, shown: str, variables: Sequence[Variable]) -> str | None:
        """What Spark would call the expression over relations named like the variables; None if it cannot say."""
        if not variables:
            return None
        joined: DataFrame | None = None
        # `A a` has a variable a, and a hidden one for all events of type A: the name means the first.
        named = {v.name if self.case_sensitive else v.name.casefold(): v for v in reversed(variables)}
        for variable in named.values():
            relation = self.empty(variable.types).alias(variable.name)
            joined = relation if joined is None else joined.crossJoin(relation)
        assert joined is not None
        try:
            return str(joined.selectExpr(shown).columns[0])
        except AnalysisException:
            return None


def filters_rows(query: Query) -> bool:
    """Are some rows of the sources left out? Then the sources of a stream get their watermarks before that. A row
    between windows, which is in none, is left out, too."""
    sliding = None if query.groups is None else query.groups.sliding
    return any(source.where is not None for source in query.sources) or (
        sliding is not None and sliding.slide > sliding.size
    )


def _own_names(query: Query, i: int, column: str) -> tuple[str, ...]:
    """What a source itself may call a column of the stream that is one of its own."""
    made = next((made.by[i] for made in query.made if made.name == column), None)
    return (column,) if made is None else tuple(c.name for c in query.sources[i].columns if quote(c.name) == made.text)
