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

from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - pyspark's custom

from spark_ext.connect import is_connect
from spark_ext.errors import SparkError
from spark_ext.stream_tables import sink_of_files

_MATCH, _LATE = "match", "late"


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
                if sink_of_files(self.spark, name) is not None:
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
        files = sink_of_files(rows.sparkSession, table)
        if files is not None:
            files.addBatch(batch, rows._jdf)
            _forget_files(self.spark, table)
            return
        numbered = {"txnAppId": f"{self.writer} {table}", "txnVersion": str(batch)}  # Delta's; others ignore it
        rows.writeTo(table).options(**numbered).append()


def _forget_files(spark: SparkSession, table: str) -> None:
    """Let the next statement see which files a table has by now."""
    state: Any = spark._jsparkSession.sessionState()
    state.catalog().invalidateCachedTable(state.sqlParser().parseTableIdentifier(table))
