"""Windows that slide: every row once for each window that it lies in, and what a window is called in the result.

    WITHIN 10 MINUTES SLIDE 5 MINUTES       09:07 lies in the windows from 09:00 and from 09:05

A window is known by where it begins, in units of the clock: a multiple of what windows slide by, counted from the epoch
in UTC, as Spark's own window() does. It is a key of the pattern, so that whatever looks at other rows sees those of its
window only.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql.types import DataType

from planner.groups import WINDOW_COLUMN, Sliding
from planner.sql import quote


def clock_sql(column: str, types: dict[str, DataType]) -> str:
    """The ORDER BY column as the whole number that windows are measured in."""
    name, kind = quote(column), types[column].simpleString()
    if kind == "timestamp":
        return f"unix_micros({name})"
    if kind == "timestamp_ntz":
        # Its wall clock read as UTC: a cast would go through the session's zone, which has gaps.
        parts = ", ".join(
            f"extract({part} FROM {name})" for part in ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")
        )
        return f"unix_micros(make_timestamp_ltz({parts}, 'UTC'))"
    if kind == "date":
        return f"CAST(unix_date({name}) AS BIGINT)"
    if kind.startswith("decimal"):
        scale = int(kind.split(",")[1].rstrip(")"))
        return f"CAST({name} * {10**scale}BD AS BIGINT)"
    return f"CAST({name} AS BIGINT)"


def with_windows(rows: DataFrame, sliding: Sliding) -> DataFrame:
    """The rows, once for each window that they lie in; one whose time is NULL is still found."""
    types = {field.name: field.dataType for field in rows.schema.fields}
    clock, size, slide = clock_sql(sliding.column, types), sliding.size, sliding.slide
    last = f"(({clock}) - pmod(({clock}), {slide}L)) DIV {slide}L"
    before = f"(({clock}) - {size}L)"
    first = f"({before} - pmod({before}, {slide}L)) DIV {slide}L + 1L"
    begins = f"transform(IF({first} > {last}, array(), sequence({first}, {last})), k -> k * {slide}L)"
    nothing = "array(CAST(NULL AS BIGINT))"
    return rows.selectExpr("*", f"explode(IF({quote(sliding.column)} IS NULL, {nothing}, {begins})) AS {WINDOW_COLUMN}")
