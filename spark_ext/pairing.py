"""Rows that tell runs which pairs of events fulfil a condition that Spark alone can decide (spark_ext.tabulating)."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

from pyspark.sql import DataFrame

from planner.reasons import in_window
from planner.sql import quote
from planner.tabulated import Tabulated
from spark_ext.errors import SparkError
from spark_ext.forms import clock_sql
from spark_ext.listing import is_steady
from spark_ext.objections import analyzed, explained
from spark_ext.source_rows import SourceRows
from spark_ext.tabulating import Meeting, Side, pair_rows, with_pairs


class Pairing(SourceRows):
    """Adds them to the rows of one plan."""

    def _with_pairs(self, rows: DataFrame, groups: Sequence[str], *more: str) -> DataFrame:
        """The rows, with the pairs of which Spark finds a condition TRUE; `groups`: the columns in which rows that meet
        agree, `more`: SQL of those that are no keys."""
        if not self.plan.tabulated:
            return rows
        self._check_steady()
        own = [f"{self.key_sql[name]} AS {name}" for name in groups if name in self.key_sql]
        source, _ = self._kept()
        time, window = self.query.order_by[0].column, self.query.window
        meeting = Meeting(groups, quote(time), None)
        if window is not None and in_window(self.query):
            meeting = Meeting(groups, clock_sql(time, self.types), int(window.size))

        def of(condition: str, columns: Sequence[str]) -> DataFrame:
            return source.where(f"({condition}) AND {quote(time)} IS NOT NULL").selectExpr(*own, *more, *columns)

        pairs = []
        for asked in self.plan.tabulated:
            sides, terms = self._sides(asked)
            with self._objecting():
                pairs.append(analyzed(pair_rows(of, asked, sides, terms, meeting)))
        return with_pairs(rows, pairs)

    def _sides(self, asked: Tabulated) -> tuple[tuple[Side, Side], tuple[str, str]]:
        """The two events of a condition, and the columns of the terms that are their codes."""
        related, made = asked.related, asked.related.tabulated
        assert made is not None
        left, right = (
            Side(self._can_be(term.variable), sql, term.sql)
            for term, sql in zip(related.terms, (made.left, made.right), strict=True)
        )
        places = [
            self.plan.terms.index((term.sql, type)) for term, type in zip(related.terms, related.types, strict=True)
        ]
        return (left, right), (self.terms[places[0]][0], self.terms[places[1]][0])

    def _objecting(self) -> AbstractContextManager[None]:
        """Around what is asked of pairs: an objection of Spark's gets its place in the query."""
        return explained(self.query.text, self.source, [sql for _, sql in self.query.origins], condition=True)

    def _can_be(self, variable: str) -> str:
        """Which rows can be events of a variable; any, where that could be others the next time."""
        if not self._deterministic:
            return "TRUE"
        types = dict(self.query.types)
        kinds = {kind for own, kind in self.query.formula.bindings() if own == variable}
        tests = ["TRUE" if kind is None else types[kind] for kind in sorted(kinds, key=str)]
        return "TRUE" if "TRUE" in tests else " OR ".join(f"({test})" for test in tests) or "FALSE"

    def _check_steady(self) -> None:
        """Pairs are made in a look of their own at the source, which must find the same rows."""
        if hasattr(self.source, "_jdf") and not self._is_steady():  # Connect cannot say
            hint = "Cache it, or write it to a table, before matching."
            raise SparkError("UNSTEADY_SOURCE", shown=self.plan.tabulated[0].related, hint=hint)

    def _is_steady(self) -> bool:
        """Is the source the same each time it is read, with what is cached by now?"""
        return is_steady(self.source.selectExpr("*")._jdf.queryExecution().withCachedData())
