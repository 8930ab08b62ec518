"""Conditions on two events that Spark decides, on a stream: the pairs that meet, as they come.

    rows of the events ──────────────────────────────────────────────────────────────────────────────┐
    rows that can be one of the two → pack → transformWithState(meet) → unpack → condition → pairs ─── union → …

A first stateful operator holds the rows that a new one can still meet, and gives out what meets
(runtime.stream.meeting); Catalyst asks the condition, and the pairs go beside the rows of events into the second one.
Both have the watermark of the source. A union reads one source for both of its sides: a micro-batch has the same rows
on both.

Roads not taken: a join of the stream with itself. The watermark that it hands on lies a window behind the source's
(tried on Spark 4.3), so that each match would come so much later, and a row that the join drops as late would still be
in time for the engine; nor can it bound pairs by a number of events, or ask equal values once. One operator that also
passes the rows on: a UDF after it is called for them, too, with NULLs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from planner.sql import quote
from planner.terms import Tabulated, left_column, right_column
from runtime.stream.meeting import MeetingTask, Role
from spark_ext.mapping import mapped
from spark_ext.objections import analyzed
from spark_ext.shipping import for_worker
from spark_ext.stream_worker import BUCKET, PACKED, ROWS, PairBucket, unpack
from spark_ext.tabulating import PAIR_COLUMN, Side

Packs = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
UNTIL_COLUMN = "__cersql_until"  # of a pair: up to which time rows of its values are to come


class Sent(NamedTuple):
    """What the operator is sent of a row: as SQL, and as columns for each of the two events."""

    items: Sequence[str]
    left: Role
    right: Role


def sent(made: Tabulated, sides: tuple[Side, Side]) -> Sent:
    """What must be known of a row to let it meet others; nothing is computed of an event that it cannot be."""
    names = [left_column(i) for i in range(len(made.left))], [right_column(i) for i in range(len(made.right))]
    items, roles = [], []
    for side, columns, name in zip(sides, names, ("left", "right"), strict=True):
        role = Role(f"__cersql_is_{name}", tuple(columns), f"__cersql_{name}_code")
        items.append(f"coalesce({side.condition}, FALSE) AS {role.can_be}")
        for sql, column in zip((*side.columns, side.code), (*role.values, role.code), strict=True):
            items.append(f"IF({side.condition}, {sql}, NULL) AS {column}")
        roles.append(role)
    return Sent(items, *roles)


def meeting_pairs(
    rows: DataFrame, task: MeetingTask, packs: Packs, number: int, condition: str, terms: tuple[str, str]
) -> DataFrame:
    """The pairs of which the condition is TRUE, as they come: slab, time, until when they are needed, the codes in the
    columns `terms`, and the number of the condition. `packs`: rows into buckets."""
    packed = mapped(rows, packs, PACKED)
    met = packed.groupBy(BUCKET).transformWithStateInPandas(PairBucket(task), f"{ROWS} BINARY", "Append", "EventTime")
    fields = {field.name: field for field in rows.schema.fields}
    fields[task.until] = fields[task.time]
    schema = StructType()
    for name in task.result:
        schema = schema.add(name, fields[name].dataType)
    pairs = analyzed(met.mapInArrow(for_worker(unpack), schema).where(condition))
    codes = [f"{role.code} AS {term}" for role, term in zip((task.left, task.right), terms, strict=True)]
    return pairs.selectExpr(task.slab, quote(task.time), task.until, *codes, f"{number} AS {PAIR_COLUMN}")
