"""The matches of a query, as a thing that a notebook shows."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cersql.errors import BindError
from cersql.language.source import SourceText
from cersql.show import html
from cersql.statements import report
from cersql.statements.files import check_place, write_whole
from cersql.statements.find import first_query
from cersql.statements.planned import Compiled, Planned, plan_query, query_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SHOWN = 20


class Matches:
    """A result, `df`, that a notebook shows as a table of its first rows and a timeline of the events in them, and
    `save` writes as a page.

        cersql.Matches(cersql.sql(spark, "FROM trades PATTERN A a ; B b ORDER BY ts RETURN *"))

    `query` tells which columns hold the times of which variables, and is drawn: the query's text, or what
    `cersql.compile` made of it. A DataFrame that `cersql.sql` or `cersql.match` gave for a whole query knows it; of any
    other one it must be said, or timestamps and dates are taken for times. The query runs once, when it is first shown;
    `df` is an ordinary DataFrame and runs when used.
    """

    def __init__(self, df: DataFrame, query: Compiled | str | None = None, *, limit: int = SHOWN) -> None:
        self.df = df
        self._planned = _planned(df, query) if isinstance(query, str) else query_of(df) if query is None else None
        self.query = query if isinstance(query, Compiled) else self._planned.compiled if self._planned else None
        self._limit = limit
        self._rows: list[Any] | None = None

    def save(self, path: str | os.PathLike[str], *, rows: int = report.SHOWN) -> None:
        """Write a page of what was found to a file: HTML with all that it shows, readable without scripts.

        It draws and lists the first `rows` matches, and says how many there are. Of a query whose tables are known
        (its text, or what `cersql.sql` and `cersql.match` gave) it shows how far starts came, too; that runs one more
        query. Raises OSError where the file cannot be written, CersqlError, and Spark's own errors.
        """
        target = Path(path)
        check_place(target)
        if rows < 1:
            raise ValueError(f"rows is {rows}; a page shows from 1 on")
        patterns = [found for found in (self._planned or self.query,) if found is not None]
        text = None if self.query is None else self.query.written
        found = report.found(self.df, self._planned, rows) if self.df.columns else None
        section = report.section("Matches", text, found, patterns, whole=bool(patterns))
        write_whole(target, report.written(self.df.sparkSession, "What was found", [section]))

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


def _planned(df: DataFrame, text: str) -> Planned:
    """The query of a DataFrame, by its text. Raises CersqlError, also where it gives other columns."""
    source = SourceText.of(text)
    planned = plan_query(df.sparkSession, source, first_query(source))
    expected = planned.frame().columns
    if df.columns != expected:
        raise BindError(
            "OTHER_COLUMNS", found=", ".join(df.columns) or "(none)", expected=", ".join(expected),
            hint="Give the text of the query whose result it is, or none.",
        )  # fmt: skip
    return planned
