"""The matches of a query, as a thing that a notebook shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cersql.show import html

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from cersql.statements.planned import Compiled

SHOWN = 20


class Matches:
    """A result, `df`, that a notebook shows as a table of its first rows and a timeline of the events in them.

        cersql.Matches(spark.sql("FROM trades PATTERN A a ; B b ORDER BY ts RETURN *"))

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
            self._rows = self.df.limit(self._limit + 1).collect() if self.df.columns else []
        return self._rows

    def __getattr__(self, name: str) -> Any:
        # Not the DataFrame's own: what takes a DataFrame would not take this, which a name that works would hide.
        hint = "" if name.startswith("_") else f"; the DataFrame is .df, as in .df.{name}"
        raise AttributeError(f"Matches has no attribute {name!r}{hint}")

    def __repr__(self) -> str:
        """Runs nothing: the rows are in it once they have been fetched, as %%pattern does."""
        columns = self.df.columns
        if self._rows is None or not columns:
            return f"<Matches: {', '.join(columns) or 'no columns'}>"
        return f"{html.text_table(columns, self._rows[: self._limit])}\n{self._count()}"

    def _repr_html_(self) -> str:
        columns, found = self.df.columns, self.fetch()
        if not columns:
            return "<p>Done.</p>"
        rows = found[: self._limit]
        times = html.times_in(columns, rows) if self.query is None else html.times_of(self.query.query)
        return f"{html.table(columns, rows)}<p>{self._count()}</p>{html.timeline(rows, times)}"

    def _count(self) -> str:
        n = len(self.fetch())
        if n > self._limit:
            return f"the first {self._limit} of more"
        return f"{n} match{'' if n == 1 else 'es'}" if self.query else f"{n} row{'' if n == 1 else 's'}"
