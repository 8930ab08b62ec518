"""Rows through a function of Python's, as Arrow batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from pyarrow import RecordBatch
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import StructType

from spark_ext.errors import SparkError
from spark_ext.shipping import for_worker
from spark_ext.worker import renamed


def mapped(rows: DataFrame, function: Callable[..., Iterator[RecordBatch]], schema: StructType) -> DataFrame:
    """mapInArrow, which by itself cannot read columns whose names have dots or back-ticks in them."""
    for field in rows.schema.fields:
        try:
            to_arrow_type(field.dataType, timezone="UTC")
        except PySparkException as error:
            type = field.dataType.simpleString()
            raise SparkError("NO_ARROW_TYPE", name=field.name, type=type, hint="Cast it in a subquery.") from error
    names = tuple(rows.columns)
    if not all(name.isidentifier() for name in names):
        rows = rows.toDF(*(f"__cersql_column{i}" for i in range(len(names))))
        function = partial(renamed, names, function)
    return rows.mapInArrow(for_worker(function), schema)
