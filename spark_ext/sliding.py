"""Windows that slide: every row once for each window that it lies in, and what a window is called in the result.

    WITHIN 10 MINUTES SLIDE 5 MINUTES       09:07 lies in the windows from 09:00 and from 09:05

A window is known by where it begins, in units of the clock: a multiple of what windows slide by, counted from the epoch
in UTC, as Spark's own window() does. It is a key of the pattern, so that whatever looks at other rows sees those of its
window only.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from planner.groups import WINDOW_COLUMN, Sliding
from planner.sql import quote
from spark_ext.forms import clock_sql


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
