"""What a worker may use, as the session's settings say."""

from __future__ import annotations

import re

from pyspark.sql import SparkSession

from planner.query import Query
from runtime.limits import MATCHES_SETTING, MEMORY_SETTING
from runtime.program import MOST_MATCHES
from runtime.task import Limits
from spark_ext.errors import SparkError

MOST_SHOWN = 500  # characters of a query, in an error


def most_matches(spark: SparkSession) -> int:
    """How many matches a task may list."""
    written = spark.conf.get(MATCHES_SETTING, "")
    if not written:
        return MOST_MATCHES
    if not re.fullmatch(r"[1-9]\d{0,17}", written.strip()):
        raise SparkError("SETTING", name=MATCHES_SETTING, value=written, expected="a whole number, at least 1")
    return int(written)


def limits_of(spark: SparkSession, query: Query) -> Limits:
    """What a worker may use."""
    return Limits(_memory_limit(spark), shown_text(query))


def shown_text(query: Query) -> str:
    """The query in one line, shortened."""
    text = " ".join(query.text.split())
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]} …"


def _memory_limit(spark: SparkSession) -> int | None:
    written = spark.conf.get(MEMORY_SETTING, "")
    if not written:
        return None
    found = re.fullmatch(r"(\d{1,15})([kmgt]?)b?", written.strip().lower())
    if found is not None:
        return int(found[1]) << {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}[found[2]]
    raise SparkError("SETTING", name=MEMORY_SETTING, value=written, expected="a size such as 8g or 512m, or 0 for none")
