"""What the pages of docs/ tell step by step runs as it stands, and gives what stands below it.

A page is a list of code blocks, which run in their order, in one session:

    ```sql … ```       statements; a table below has the rows of the last one, in any order, and their columns
    ```python … ```    code; its names, such as `spark`, stay for the blocks that follow

A ```text block below one of these is what is printed, or the error. A line `…` in it stands for lines left out.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import sparks
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import cersql
from cersql.language import scripts

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(
    r"^```(sql|python)\n(.*?)^```\n"
    r"(?:\n((?:\|[^\n]*\n)+)|\n```text\n(.*?)^```\n)?",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class Block:
    """Code of a page, and what the page shows below it: the lines of a table, or what is printed."""

    line: int
    language: str
    text: str
    table: list[str]
    printed: str | None


def blocks(page: str) -> Iterator[Block]:
    for found in BLOCK.finditer(page):
        language, text, table, printed = found.groups()
        yield Block(page.count("\n", 0, found.start()) + 1, language, text, (table or "").splitlines(), printed)


def cell(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(cell, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(map(cell, value.values()))}}}"
    return "NULL" if value is None else str(value)


def as_table(columns: list[str], rows: list[dict[str, Any]]) -> list[str]:
    """The lines of a table in Markdown, sorted below the head."""
    lines = sorted(f"| {' | '.join(cell(row[name]) for name in columns)} |" for row in rows)
    return [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|", *lines]


def is_told(shown: str, printed: str) -> bool:
    """Whether each stretch between lines `…` is in what was printed, in this order."""
    at = 0
    for stretch in re.split(r"^…\n", shown, flags=re.MULTILINE):
        at = printed.find(stretch.rstrip("\n"), at)
        if at < 0:
            return False
        at += len(stretch.rstrip("\n"))
    return True


@dataclass
class Reader:
    """Someone who follows a page: runs each block, and notes what differs from it."""

    spark: SparkSession
    scope: dict[str, Any] = field(default_factory=dict)
    tables: list[tuple[Block, DataFrame]] = field(default_factory=list)
    wrong: dict[int, object] = field(default_factory=dict)

    def follow(self, page: str) -> dict[int, object]:
        """Line of the page → what was found there instead."""
        for block in blocks(page):
            frame, printed = self._run(block)
            if block.printed is not None and not is_told(block.printed, printed):
                self.wrong[block.line] = printed
            if block.table and frame is not None:
                self.tables.append((block, frame))
        frames = [frame for _, frame in self.tables]
        for (block, frame), rows in zip(self.tables, sparks.together(frames), strict=True):
            found, (head, line, *lines) = as_table(frame.columns, rows), block.table
            if found != [head, line, *sorted(lines)]:
                self.wrong[block.line] = found
        return self.wrong

    def _run(self, block: Block) -> tuple[DataFrame | None, str]:
        if block.language == "python":
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(block.text, f"line {block.line}", "exec"), self.scope)
            return None, out.getvalue()
        frame = None
        try:
            for statement in scripts.split(block.text):
                frame = self.session.sql(block.text[statement.start : statement.end])
        except (PySparkException, cersql.CersqlError) as error:
            if block.printed is None:
                raise
            return None, str(error)
        return frame, "" if block.printed is None or frame is None else "\n".join(row[0] for row in frame.collect())

    @property
    def session(self) -> SparkSession:
        """The one that the page made, if it did."""
        return self.scope.get("spark", self.spark)


def page(name: str) -> str:
    return (ROOT / f"docs/{name}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["cookbook", "tutorial", "coming-from", "plans"])
def test_a_page_gives_what_it_says(spark: SparkSession, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert not Reader(sparks.taught(spark)).follow(page(name))


def test_each_recipe_has_a_table() -> None:
    sections = page("cookbook").split("\n### ")[1:]
    assert len(sections) >= 25
    assert all(len([block for block in blocks(section) if block.table]) == 1 for section in sections)


def test_what_is_left_out() -> None:
    assert is_told("a\n…\nc\n", "a\nb\nc\n")
    assert not is_told("c\n…\na\n", "a\nb\nc\n")
    assert not is_told("a\nc\n", "a\nb\nc\n")
