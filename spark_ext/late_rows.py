"""The rows of a stream that come too late, as a stream: at or before the watermark that holds in their micro-batch.

    source with watermark → (drop) → mapInArrow(pack) → transformWithState(late) → mapInArrow(unpack)

Only a stateful operator is told the watermark, so one is asked; it holds no state. It is given the rows that the
pattern's own operator would be given, with all columns of the source. Beside the matches in one streaming query both
operators read the same rows and are told the same watermark, so that these rows are exactly those that the pattern
drops (spark_ext.two_tables). By itself it is a query of its own: other micro-batches, another watermark.

Roads not taken: the pattern's operator gives late rows out itself. They would have to travel there with all their
columns, and in every pack; and a query has one result, which must then be cut in two before RETURN.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from pyspark.sql import DataFrame

from planner.physical import PhysicalPlan
from planner.sql import quote
from planner.symbols import drop_sql
from runtime.program import Later
from spark_ext.errors import SparkError
from spark_ext.mapping import mapped
from spark_ext.schema import SparkCatalog
from spark_ext.shipping import for_worker
from spark_ext.stream_worker import BUCKET, PACKED, ROWS, LateBucket, pack, unpack
from spark_ext.streaming import DELAY, SLAB_COLUMN, Streaming, buckets, choose_store, is_stream


def of_plan(plan: PhysicalPlan, catalog: SparkCatalog) -> DataFrame:
    """The late rows that a plan drops, with their sources' columns: those that its pattern could have had as events."""
    query = plan.query
    if not is_stream(query, catalog):
        raise _none("is made of tables")
    # A row that several windows hold, or that is copied for several keys, is late once.
    plain = replace(query, groups=None, partition_by=(), keys=(), links=())
    made = _Source(replace(plan, query=plain), catalog)
    source, wanted = made.source, None if query.links else drop_sql(made.plan)
    if wanted is not None and made.is_steady:
        source = source.where(wanted)
    own = {column.name for of in query.sources for column in of.columns}
    return _late(source, [quote(name) for name in source.columns if name in own], query.order_by[0].column)


def of_stream(df: DataFrame) -> DataFrame:
    """The late rows of a stream that has a watermark."""
    times = [field.name for field in df.schema.fields if DELAY in field.metadata]
    if not df.isStreaming or len(times) != 1:
        problem = "is no stream" if not df.isStreaming else f"has {len(times)} columns with a watermark"
        raise _none(problem)
    return _late(df, [quote(name) for name in df.columns], times[0])


def _none(problem: str) -> SparkError:
    hint = "Give it what cersql.match or cersql.sql made of a stream, or a stream after withWatermark."
    return SparkError("LATE_ROWS", problem=problem, hint=hint)


def _late(source: DataFrame, columns: list[str], time: str) -> DataFrame:
    spark = source.sparkSession
    choose_store(spark)
    n = buckets(spark)
    rows = source.selectExpr(f"pmod(hash({quote(time)}), {n}) AS {SLAB_COLUMN}", *columns)
    packed = mapped(rows, partial(pack, SLAB_COLUMN, 1, n), PACKED)
    late = packed.groupBy(BUCKET).transformWithStateInPandas(
        LateBucket(SLAB_COLUMN, time), f"{ROWS} BINARY", "Append", "EventTime"
    )
    return late.mapInArrow(for_worker(unpack), source.selectExpr(*columns).schema)


class _Source(Streaming):
    """The rows of a plan as a stream, whatever becomes of its matches."""

    @property
    def is_steady(self) -> bool:
        """Are its conditions on rows the same each time they are asked?"""
        return self._deterministic

    def _check_later(self, later: Later | None) -> None:
        """No match is looked for."""
