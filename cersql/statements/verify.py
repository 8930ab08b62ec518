"""`cersql.verify`: a query over tables by both of its plans, the automaton's and the relational one."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from cersql.language.source import SourceText
from cersql.statements.planned import Planned, plan_query
from runtime.errors import Span

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SHOWN = 5


@dataclass(frozen=True)
class Verified:
    """How many rows the automaton found, and how those of the relational plan differ: rows that are `missing` there,
    and `extra` ones, as JSON, the first few of each.

    `same` where there are none; `print` shows the counts and these rows.
    """

    rows: int
    n_missing: int
    n_extra: int
    missing: list[str] = field(default_factory=list)
    extra: list[str] = field(default_factory=list)

    @property
    def same(self) -> bool:
        return not self.n_missing and not self.n_extra

    def __str__(self) -> str:
        if self.same:
            return f"{self.rows} rows: both plans give the same"
        lines = [f"{self.rows} rows by the automaton; by joins {self.n_missing} are missing, {self.n_extra} too many"]
        lines += [f"  missing: {row}" for row in self.missing]
        lines += [f"  too many: {row}" for row in self.extra]
        return "\n".join(lines)


def verify(spark: SparkSession, query: str, *, order_by: str | None = None) -> Verified:
    """Run a query over tables by both of its plans, and compare the rows.

        print(cersql.verify(spark, "FROM trades PATTERN A a ; B b ORDER BY ts WITHIN 1 HOUR RETURN a.id, b.id"))
        # 12 rows: both plans give the same

    The plans share nothing but how rows are read and what is computed of a match: one is an automaton in Python
    workers, the other joins in Catalyst. Rows are compared in Spark, so there may be millions; a LIMIT, which leaves
    any so many, is left out. Aggregates of DOUBLEs over groups of matches can differ in their last digits, since they
    are added up in another order. Raises SparkError PLAN_REFUSED for a stream, and for a query without a relational
    plan; it says why there is none. UNSTEADY_RESULT where RETURN has other values each time, such as those of rand().
    """
    from spark_ext import relational
    from spark_ext.streaming import is_stream

    text = SourceText.of(query)
    planned = _without_limit(plan_query(spark, text, Span(0, len(text)), order_by=order_by))
    if is_stream(planned.compiled.query, planned.catalog):
        raise relational.refused(relational.STREAM)
    joined, found = (planned.frame_by(way) for way in ("relational", "automaton"))
    counts, missing, extra = relational.compared(found, joined, SHOWN)
    return Verified(*counts, missing, extra)


def _without_limit(planned: Planned) -> Planned:
    """The query with all of its matches."""
    compiled = planned.compiled
    query, own = (replace(q, limit=None) for q in (compiled.query, compiled.plan.query))
    return replace(planned, compiled=replace(compiled, query=query, plan=replace(compiled.plan, query=own)))
