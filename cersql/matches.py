"""The matches of a query, as a thing that a notebook shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cersql import html

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from cersql.planned import Compiled

SHOWN = 20


class Matches:
    """A result, `df`, that a notebook shows as a table of its first rows and a timeline of the events in them.

    `query` (`cersql.compile`) tells which columns hold the times of which variables; without it, timestamps and dates
    are taken for times. The query runs once, when it is first shown; `df` is an ordinary DataFrame and runs when used.
    """

    def __init__(self, df: DataFrame, query: Compiled | None = None, *, limit: int = SHOWN) -> None:
        self.df = df
        self.query = query
        self._limit = limit
        self._rows: list[Any] | None = None

    def fetch(self) -> list[Any]:
        """The rows that are shown, and one more if there is one."""
        if self._rows is None:
            self._rows = self.df.limit(self._limit + 1).collect()
        return self._rows

    def __repr__(self) -> str:
        return f"<Matches: {', '.join(self.df.columns) or 'no columns'}>"

    def _repr_html_(self) -> str:
        columns, found = self.df.columns, self.fetch()
        if not columns:
            return "<p>Done.</p>"
        rows = found[: self._limit]
        count = f"{len(rows)} match{'' if len(rows) == 1 else 'es'}" if self.query else f"{len(rows)} row(s)"
        if len(found) > self._limit:
            count = f"the first {self._limit} of more"
        times = html.times_in(columns, rows) if self.query is None else html.times_of(self.query.query)
        return f"{html.table(columns, rows)}<p>{count}</p>{html.timeline(rows, times)}"
