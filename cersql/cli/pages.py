"""`cersql run --html`: a section for each statement, on one page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO, TYPE_CHECKING

from cersql.cli.texts import Statement
from cersql.show.report import Section
from cersql.statements import report
from cersql.statements.planned import Planned, query_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Page:
    """What the statements of a script found; at most `rows` of each result are shown."""

    def __init__(self, name: str, rows: int) -> None:
        self.name, self.rows = name, rows
        self.sections: list[Section] = []

    def add(self, statement: Statement, result: DataFrame, planned: Sequence[Planned]) -> int:
        """Show a result and the patterns that were planned for it; the number of its rows."""
        found, whole = None, query_of(result)
        if result.columns and statement.gives_rows:
            found = report.found(result, whole, self.rows)
        text = statement.script.text[statement.span.start : statement.span.end]
        patterns = [whole] if whole is not None else list(planned)
        title = f"{self.name}, line {statement.line}"
        self.sections.append(report.section(title, text, found, patterns, whole is not None))
        return 0 if found is None else found.total

    def write(self, spark: SparkSession, file: IO[str]) -> None:
        file.write(report.written(spark, "What was found", self.sections))
