"""The tables that streams write into: their names, what they can take, and what writes their files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from py4j.java_gateway import is_instance_of
from pyspark.sql import DataFrame, SparkSession

from spark_ext.connect import is_connect
from spark_ext.errors import SparkError

_EXECUTION = "org.apache.spark.sql.execution"


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
        if found != given and sink_of_files(spark, table) is not None:
            columns = ", ".join(f"{column} {kind.upper()}" for column, kind in found.items())
            own = ", ".join(f"{column} {kind.upper()}" for column, kind in given.items())
            problem = f"it has the columns {columns}, and the rows have {own}"
            raise SparkError("STREAM_TABLE", name=name, table=table, problem=problem, hint="Write another table.")


def full_name(spark: SparkSession, table: str) -> str:
    """With its catalog and its database."""
    parts = table.replace("`", "").split(".")
    around = [str(spark.catalog.currentCatalog()), str(spark.catalog.currentDatabase())]
    return ".".join([*around[: max(0, 3 - len(parts))], *parts])


def sink_of_files(spark: SparkSession, table: str) -> Any:
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
