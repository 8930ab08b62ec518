"""Positions in an order that is spread over partitions, all in Catalyst, so that rows can be dropped afterwards.

Spark's own ways to number rows are a window in a single task, or an RDD's zipWithIndex, which runs a job of its own.
Here the order is cut at sampled percentiles of the time; a row's range is its partition (`repartitionById`), each
partition is sorted, and `monotonically_increasing_id` counts inside it. What comes before a range is the sum of
the sizes of the ranges before. Percentiles and sizes are scalar subqueries: they run when the query does. Since they
read the source once more, a source that gives other rows each time would be numbered wrongly: a last row in every
range, which came through the same shuffle, checks its size.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - pyspark's custom
from pyspark.sql.types import DataType, DateType, NumericType, TimestampNTZType, TimestampType

from planner.sql import quote
from runtime.task import OrderColumn

POSITION_COLUMN = "__cersql_position"
RANGE_COLUMN, INDEX_COLUMN = "__cersql_range", "__cersql_index"
# A subquery's result is a column first, however often it is looked at: each mention would be a plan of its own.
BOUNDS_COLUMN, SIZES_COLUMN = "__cersql_bounds", "__cersql_sizes"
SAMPLE = 0.01
MANY_ROWS_BYTES = 4 << 20  # a smaller source is one range: cutting it costs two more jobs
INDEX_BITS = (1 << 33) - 1  # of monotonically_increasing_id: below its partition's number

CHANGED = (
    "[SOURCE_CHANGED] The rows of the source were not the same each time they were read; cache it, or write it to a "
    "table, before matching by position."
)


def can_be_cut(type: DataType) -> bool:
    """Are there percentiles of it?"""
    return isinstance(type, NumericType | TimestampType | TimestampNTZType | DateType)


def with_positions(
    rows: DataFrame, source: DataFrame, order: Sequence[OrderColumn], relevant: str, n: int
) -> DataFrame:
    """The relevant rows, with their positions among all rows in POSITION_COLUMN, over n ranges.

    `rows` has the time (order[0], never NULL) and all columns of `order`; `source` is what it was made of. O(rows) in
    Spark for scan, shuffle and sort.
    """
    time = order[0].name
    if n == 1:
        ordered = _sorted(rows.repartition(1), order)
        kept = ordered.withColumn(POSITION_COLUMN, F.monotonically_increasing_id().bitwiseAND(F.lit(INDEX_BITS)))
        return kept.where(relevant)
    bounds = _bounds(source, time, n)
    ranged = rows.withColumn(BOUNDS_COLUMN, bounds).withColumn(RANGE_COLUMN, _range_of(time, n)).drop(BOUNDS_COLUMN)
    # Its time is NULL, as no other's: it sorts last.
    ends = rows.sparkSession.range(n).select(
        *(F.lit(None).cast(f.dataType).alias(f.name) for f in rows.schema.fields),
        F.col("id").cast("int").alias(RANGE_COLUMN),
    )
    placed = ranged.union(ends).repartitionById(n, F.col(RANGE_COLUMN))
    indexed = _sorted(placed, order, time_nulls_last=True).withColumn(
        INDEX_COLUMN, F.monotonically_increasing_id().bitwiseAND(F.lit(INDEX_BITS))
    )
    sized = indexed.withColumn(SIZES_COLUMN, _sizes(source, time, bounds, n))
    size, before = (F.get(F.col(SIZES_COLUMN)[of], F.col(RANGE_COLUMN)) for of in ("own", "before"))
    checked = F.when(size == F.col(INDEX_COLUMN), F.lit(False)).otherwise(F.raise_error(F.lit(CHANGED)).cast("boolean"))
    kept = sized.where(F.when(F.col(quote(time)).isNull(), checked).otherwise(F.expr(relevant)))
    return kept.withColumn(POSITION_COLUMN, before + F.col(INDEX_COLUMN)).drop(RANGE_COLUMN, INDEX_COLUMN, SIZES_COLUMN)


def _sorted(rows: DataFrame, order: Sequence[OrderColumn], time_nulls_last: bool = False) -> DataFrame:
    columns = []
    for k, item in enumerate(order):
        column = rows[quote(item.name)]
        last = item.nulls_last or (k == 0 and time_nulls_last)
        columns.append(column.asc_nulls_last() if last else column.asc_nulls_first())
    return rows.sortWithinPartitions(*columns)


def _bounds(source: DataFrame, time: str, n: int) -> Column:
    """n − 1 times that cut a sample of the source evenly (NULL for an empty sample): any bounds are right."""
    shares = ", ".join(str(k / n) for k in range(1, n))
    sample = source.select(F.col(quote(time)).alias("t")).sample(fraction=SAMPLE, seed=7)
    return sample.selectExpr(f"approx_percentile(t, array({shares}), 200)").scalar()


def _range_of(time: str, n: int) -> Column:
    """The range of a row: how many of its bounds are not after its time."""
    found = F.lit(0)
    for k in range(n - 1):
        found = found + F.when(F.col(quote(time)) >= F.get(F.col(BOUNDS_COLUMN), F.lit(k)), 1).otherwise(0)
    return found


def _sizes(source: DataFrame, time: str, bounds: Column, n: int) -> Column:
    """A struct of arrays: how many rows each range has, `own`, and how many those before it have, `before`."""
    bounded = source.select(F.col(quote(time)), bounds.alias(BOUNDS_COLUMN))
    counts = bounded.select(_range_of(time, n).alias("r")).groupBy("r").count()
    sizes = counts.selectExpr("map_from_entries(collect_list(struct(r, count))) AS m").selectExpr(
        f"transform(sequence(0, {n - 1}), k -> coalesce(try_element_at(m, k), 0L)) AS own"
    )
    earlier = "transform(own, (_, k) -> aggregate(slice(own, 1, k), 0L, (total, x) -> total + x))"
    return sizes.selectExpr(f"struct(own, {earlier} AS before)").scalar()
