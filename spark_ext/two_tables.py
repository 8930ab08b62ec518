"""One streaming query that fills two tables: matches, and the rows that came too late to be in one.

    matches  → struct(*) AS match ─┐
    late rows → struct(*) AS late ─┴→ union → foreachBatch: each to its table

A query has one sink, so a function writes both tables in each micro-batch. A micro-batch that was begun and not
finished runs again after a restart. So a table of files is written by the sink that Spark itself takes for it
(DataStreamWriter.toTable), which keeps a log of the micro-batches that it has; Delta is told the number of the
micro-batch, and does the same. Any other table is appended to: there a restart can bring the rows of one micro-batch a
second time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from py4j.java_gateway import is_instance_of
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - pyspark's custom

from spark_ext.connect import is_connect
from spark_ext.errors import SparkError

_MATCH, _LATE = "match", "late"
_EXECUTION = "org.apache.spark.sql.execution"


def together(matches: DataFrame, late: DataFrame) -> DataFrame:
    """Both kinds of rows as one stream, each in a column of its own."""
    if is_connect(matches.sparkSession):
        raise SparkError("CONNECT", what="WITH LATE ROWS", hint="Start the stream where the server itself runs.")
    either = matches.select(F.struct("*").alias(_MATCH))
    return either.unionByName(late.select(F.struct("*").alias(_LATE)), allowMissingColumns=True)


@dataclass(frozen=True)
class TwoTables:
    """Writes the micro-batches of `together`. `spark`: the session that reads the tables; `writer`: a name that the
    stream keeps over restarts."""

    spark: SparkSession
    matches: str
    late: str
    writer: str

    def make(self, matches: DataFrame, late: DataFrame) -> None:
        """See that there are the two tables."""
        for name, df in ((self.matches, matches), (self.late, late)):
            if not self.spark.catalog.tableExists(name):
                self.spark.catalog.createTable(name, schema=df.schema)
                if _sink_of_files(self.spark, name) is not None:
                    _forget_files(self.spark, name)

    def write(self, rows: DataFrame, batch: int) -> None:
        """Write a micro-batch."""
        rows.persist()  # or it would be computed twice
        try:
            for name, kind in ((self.matches, _MATCH), (self.late, _LATE)):
                self._append(rows.where(f"{kind} IS NOT NULL").select(f"{kind}.*"), name, batch)
        finally:
            rows.unpersist()

    def _append(self, rows: DataFrame, table: str, batch: int) -> None:
        files = _sink_of_files(rows.sparkSession, table)
        if files is not None:
            files.addBatch(batch, rows._jdf)
            _forget_files(self.spark, table)
            return
        numbered = {"txnAppId": f"{self.writer} {table}", "txnVersion": str(batch)}  # Delta's; others ignore it
        rows.writeTo(table).options(**numbered).append()


def check_tables(name: str, tables: Sequence[tuple[str, DataFrame]]) -> None:
    """See that a stream can write rows into each of these tables. SparkError STREAM_TABLE for one that is given twice,
    that is a view, or whose files have other columns: Spark would find out with the first micro-batch, or never."""
    seen: set[str] = set()
    for table, rows in tables:
        spark, full = rows.sparkSession, full_name(rows.sparkSession, table).casefold()
        if full in seen:
            hint = "Write another table, late rows have columns of their own."
            raise SparkError("STREAM_TABLE", name=name, table=table, problem="the matches go there", hint=hint)
        seen.add(full)
        if is_connect(spark) or not spark.catalog.tableExists(table):
            continue
        if spark.catalog.getTable(table).tableType in ("VIEW", "TEMPORARY"):
            raise SparkError(
                "STREAM_TABLE", name=name, table=table, problem="it is a view", hint="Write a table's name."
            )
        found, given = (
            {field.name.casefold(): field.dataType.simpleString() for field in schema.fields}
            for schema in (spark.table(table).schema, rows.schema)
        )
        if found != given and _sink_of_files(spark, table) is not None:
            columns = ", ".join(f"{column} {kind.upper()}" for column, kind in found.items())
            own = ", ".join(f"{column} {kind.upper()}" for column, kind in given.items())
            problem = f"it has the columns {columns}, and the rows have {own}"
            raise SparkError("STREAM_TABLE", name=name, table=table, problem=problem, hint="Write another table.")


def full_name(spark: SparkSession, table: str) -> str:
    """With its catalog and its database."""
    parts = table.replace("`", "").split(".")
    around = [str(spark.catalog.currentCatalog()), str(spark.catalog.currentDatabase())]
    return ".".join([*around[: max(0, 3 - len(parts))], *parts])


def _forget_files(spark: SparkSession, table: str) -> None:
    """Let the next statement see which files a table has by now."""
    state: Any = spark._jsparkSession.sessionState()
    state.catalog().invalidateCachedTable(state.sqlParser().parseTableIdentifier(table))


def _sink_of_files(spark: SparkSession, table: str) -> Any:
    """What Spark itself would write a stream into a table of files with; None for any other table."""
    jvm, gateway = spark._jvm, spark.sparkContext._gateway
    state: Any = spark._jsparkSession.sessionState()
    parts = state.sqlParser().parseMultipartIdentifier(table)
    if parts.length() > 2 or state.catalogManager().currentCatalog().name() != "spark_catalog":
        return None
    found = state.catalog().getTableMetadata(state.sqlParser().parseTableIdentifier(table))
    sources = getattr(jvm, f"{_EXECUTION}.datasources.DataSource")
    format = sources.lookupDataSource(found.provider().get(), state.conf()).newInstance()
    if is_instance_of(gateway, format, f"{_EXECUTION}.datasources.v2.FileDataSourceV2"):
        format = format.fallbackFileFormat().newInstance()
    if not is_instance_of(gateway, format, f"{_EXECUTION}.datasources.FileFormat"):
        return None
    place, by = str(found.location().toString()), found.partitionColumnNames()
    options = getattr(jvm, "org.apache.spark.api.python.PythonUtils").toScalaMap({})
    return getattr(jvm, f"{_EXECUTION}.streaming.sinks.FileStreamSink")(
        spark._jsparkSession, place, format, by, options
    )
