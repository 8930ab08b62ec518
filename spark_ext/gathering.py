"""Arrays of values that Spark computes row by row, not in a lambda: UDFs of Python's and SQL's, and subqueries.

matches → posexplode(combinations of events) → the values → mapInArrow(gathered: the rows of a match as one again)

Nothing is joined, shuffled or sorted, so that it stands on streams, too, and the rows of a match stay together: only
its first one carries the match.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from pyarrow import RecordBatch
from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, StructField, StructType

from planner.query import ROW_COLUMN, Gathered
from planner.sql import quote
from spark_ext.objections import analyzed, explained
from spark_ext.worker import GATHERED_COLUMN, PLACE_COLUMN, gathered_rows

Mapped = Callable[[DataFrame, Callable[..., Iterator[RecordBatch]], StructType], DataFrame]


def with_gathered(text: str, matches: DataFrame, wanted: Sequence[Gathered], mapped: Mapped) -> DataFrame:
    """The matches with a column for each. `mapped`: mapInArrow."""
    for each in wanted:
        exploded = f"posexplode_outer({each.combinations}) AS ({PLACE_COLUMN}, {ROW_COLUMN})"
        rows = analyzed(matches.selectExpr("*", exploded))
        carried = [f"IF({PLACE_COLUMN} > 0, NULL, {quote(name)}) AS {quote(name)}" for name in matches.columns]
        with explained(text, rows, [each.value]):
            value = f"{each.value.text} AS {GATHERED_COLUMN}"
            computed = analyzed(rows.selectExpr(PLACE_COLUMN, value, *carried))
        array = ArrayType(computed.schema[GATHERED_COLUMN].dataType)
        schema = StructType([*matches.schema.fields, StructField(each.column, array)])
        matches = mapped(computed, gathered_rows, schema)
    return matches
