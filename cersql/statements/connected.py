"""Statements in a session of Spark Connect, which has no parser hook: read here, before the server sees them."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from cersql.statements.calls import replaced
from cersql.statements.commands import rewrite
from cersql.statements.find import single_partitions
from cersql.statements.parameters import fill
from cersql.statements.refining import refine
from runtime.errors import CersqlError
from spark_ext import connect, patterns
from spark_ext.arguments import of_values
from spark_ext.quiet import quiet_captures
from spark_ext.session import check_version, run_sql, try_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from cersql.statements.parameters import Arguments

logger = logging.getLogger("cersql")


def enable(spark: SparkSession) -> SparkSession:
    """Let `spark.sql` of this session object speak PATTERN. Returns it; twice is harmless."""
    check_version()
    if connect.enable(spark, partial(sql, every=False)):
        logger.warning(
            "A Spark Connect session: spark.sql of this object speaks PATTERN, and of those that newSession() makes; "
            "the server's parser, other clients and cersql.serve do not."
        )
    return spark


def sql(
    spark: SparkSession, text: str, args: Any = None, *, order_by: str | None = None, every: bool = True
) -> DataFrame:
    """What `cersql.sql` does. `every`: an error is ours, whatever Spark refuses."""

    def values() -> Arguments | None:
        return of_values(spark, args) if args else None

    # ORDER BY of a call as Spark takes it, which is how its arguments are told apart.
    spaced = fill(text, single_partitions(text) if connect.functions(spark) else [])
    try:
        calls = replaced(spark, spaced.text, values, lambda spark, query: sql(spark, query))
        if calls is None:
            return _sql(spark, text, args, order_by, every)
        left = args if isinstance(args, Mapping) else None  # those in order are filled in by now
        try:
            result = _sql(spark, calls.filled.text, left, order_by, every)
        except CersqlError as error:
            raise calls.filled.original(error) from None
    except CersqlError as error:
        raise spaced.original(error) from None
    patterns.retell(spark, calls.filled.text, text if calls.told == spaced.text else calls.told)
    return result


def _sql(spark: SparkSession, text: str, args: Any, order_by: str | None, every: bool) -> DataFrame:
    def values() -> Arguments | None:
        return of_values(spark, args) if args else None

    fewer = refine(spark, text, values)
    if not isinstance(fewer, str | None):
        return fewer
    text = fewer or text
    plain = try_sql(spark, text, args)
    if plain is not None:
        return plain
    with quiet_captures():
        ours = rewrite(spark, text, values, order_by=order_by, every=every)
    if ours is None:
        return run_sql(spark, text, args)  # and Spark says what is wrong
    if isinstance(ours, str):
        return run_sql(spark, ours, args if isinstance(args, Mapping) else None)
    return ours
