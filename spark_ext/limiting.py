"""LIMIT on a stream: so many rows in all, the first that become known, and then no more.

Spark's limit over a stream counts in a state of its own, so a restart goes on counting. It is one more stateful
operator, of one task, behind that of the pattern. What is read and held goes on behind it, as Spark has no way to say
that nothing is wanted any more: so the rows before it and behind it are counted where progress shows them, and who
started the query can stop it (spark_ext.streams).
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - pyspark's custom

_ASKED, _GIVEN = "cersqllimit_asked_", "cersqllimit_given_"


def limited(rows: DataFrame, n: int) -> DataFrame:
    """At most n of the rows; of a stream in all its micro-batches together."""
    if not rows.isStreaming:
        return rows.limit(n)
    id = uuid.uuid4().hex
    counted = rows.observe(_ASKED + id, F.count(F.lit(1)).alias("n")).limit(n)
    return counted.observe(_GIVEN + id, F.count(F.lit(1)).alias("n"))


def counted(metrics: Mapping[str, Any]) -> tuple[int, int]:
    """How many rows came to the limit in a micro-batch, and how many it gave."""
    asked, given = (
        sum(row["n"] or 0 for name, row in metrics.items() if name.startswith(kind)) for kind in (_ASKED, _GIVEN)
    )
    return asked, given
