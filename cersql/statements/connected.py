"""Statements in a session of Spark Connect, which has no parser hook: read here, before the server sees them."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from cersql.language.source import SourceText
from cersql.statements.calls import replaced
from cersql.statements.commands import run
from cersql.statements.parameters import fill
from cersql.statements.table_arguments import single_partitions
from runtime.errors import CersqlError
from spark_ext import connect, patterns
from spark_ext.arguments import of_values
from spark_ext.session import check_version

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

    text = SourceText.of(text)
    # ORDER BY of a call as Spark takes it, which is how its arguments are told apart.
    spaced = fill(text, single_partitions(text) if connect.functions(spark) else [])
    try:
        calls = replaced(spark, spaced.text, values, lambda spark, query: sql(spark, query))
        if calls is None:
            return run(spark, text, args, order_by=order_by, every=every)
        left = args if isinstance(args, Mapping) else None  # those in order are filled in by now
        try:
            result = run(spark, calls.filled.text, left, order_by=order_by, every=every)
        except CersqlError as error:
            raise calls.filled.original(error) from None
    except CersqlError as error:
        raise spaced.original(error) from None
    patterns.retell(spark, calls.filled.text, text if calls.told == spaced.text else calls.told)
    return result
