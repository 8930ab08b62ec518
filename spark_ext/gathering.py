"""Arrays of values that Spark computes row by row, not in a lambda: UDFs of Python's and SQL's, and subqueries.

matches → posexplode(combinations of events) → the values → mapInArrow(gathered: the rows of a match as one again)

Nothing is joined, shuffled or sorted, so that it stands on streams, too, and the rows of a match stay together: only
its first one carries the match.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, StructField, StructType

from planner.query import ROW_COLUMN, Folded, Gathered
from planner.sql import quote
from spark_ext.folding import with_folded
from spark_ext.mapping import mapped
from spark_ext.objections import analyzed, explained
from spark_ext.worker import PLACE_COLUMN, gathered_rows


def with_gathered(text: str, matches: DataFrame, wanted: Sequence[Gathered | Folded]) -> DataFrame:
    """The matches with a column for each."""
    for together in _together(wanted):
        if isinstance(together, Folded):
            with explained(text, matches, [together.sql]):
                matches = with_folded(matches, together)
            continue
        exploded = f"posexplode_outer({together[0].combinations}) AS ({PLACE_COLUMN}, {ROW_COLUMN})"
        rows = analyzed(matches.selectExpr("*", exploded))
        values = [f"{each.value.text} AS {quote(each.column)}" for each in together]
        carried = [f"IF({PLACE_COLUMN} > 0, NULL, {quote(name)}) AS {quote(name)}" for name in matches.columns]
        with explained(text, rows, [each.value for each in together]):
            computed = analyzed(rows.selectExpr(PLACE_COLUMN, *carried, *values))
        types = computed.schema.fields[-len(together) :]
        arrays = [StructField(field.name, ArrayType(field.dataType)) for field in types]
        schema = StructType([*matches.schema.fields, *arrays])
        matches = mapped(computed, partial(gathered_rows, len(together)), schema)
    return matches


def _together(wanted: Sequence[Gathered | Folded]) -> list[list[Gathered] | Folded]:
    """What is asked of the same combinations, and needs nothing else of them, in one pass."""
    found: list[list[Gathered] | Folded] = []
    for each in wanted:
        if isinstance(each, Folded):
            found.append(each)
            continue
        last = found[-1] if found else []
        if isinstance(last, Folded):
            last = []
        reads = any(other.column in each.value.text for other in last)
        if last and last[0].combinations == each.combinations and not reads:
            last.append(each)
        else:
            found.append([each])
    return found
