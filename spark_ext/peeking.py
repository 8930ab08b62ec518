"""The first values of a column of Parquet files, read here: a job of Spark's for a thousand rows takes a quarter of the
time of a query over ten million."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from spark_ext.parquet import Refused, on_this_machine, relation_of
from spark_ext.scan import setting


def first_values(frame: DataFrame, column: str, rows: int) -> list[str | None] | None:
    """The values of a string column in so many first rows, or in all if there are fewer. None where Spark must be
    asked, since the rows are no more than a projection of such files, or these cannot be read so."""
    try:
        if setting(frame.sparkSession) == "spark":
            return None
        node = frame._jdf.queryExecution().optimizedPlan()  # which Spark remembers, and is asked again
        at = [name.casefold() for name in frame.columns].index(column.casefold())
        item = node.output().apply(at)
        if node.nodeName() == "Project":
            item, node = node.projectList().apply(at), node.child()
            item = item.child() if item.nodeName() == "Alias" else item
        name = str(item.name())
        relation = relation_of(node, frame.sparkSession)
        if not on_this_machine(frame.sparkSession):
            return None
        if name in relation.partitions or relation.types[name].typeName() != "string":
            return None
        return _read([file.path for file in relation.files], name, rows)
    except (Refused, PySparkException, Py4JError, OSError, KeyError, ValueError, pa.ArrowException):
        return None


def _read(paths: list[str], name: str, rows: int) -> list[str | None]:
    found: list[str | None] = []
    for path in paths:
        with pq.ParquetFile(path) as file:
            if name not in file.schema_arrow.names:  # it is NULL in all rows, or written otherwise
                raise KeyError(name)
            for batch in file.iter_batches(batch_size=rows, columns=[name], use_threads=False):
                found += batch.column(0).cast(pa.string()).to_pylist()
                if len(found) >= rows:
                    return found[:rows]
    return found
