"""Each recipe of docs/cookbook.md gives the table below it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import sparks
from pyspark.sql import SparkSession

from cersql.language import scripts

COOKBOOK = (Path(__file__).resolve().parent.parent / "docs/cookbook.md").read_text(encoding="utf-8")
SETUP, *_ = re.findall(r"```sql\n(.*?)```", COOKBOOK, re.DOTALL)
RECIPE = re.compile(r"```sql\n((?s:.*?))```\n\n((?:\|.*\n)+)")


def cell(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(cell, value))}]"
    return "NULL" if value is None else str(value)


def test_recipes(spark: SparkSession) -> None:
    session = sparks.taught(spark)
    for statement in scripts.split(SETUP):
        session.sql(SETUP[statement.start : statement.end])
    sections = [section.partition("\n") for section in COOKBOOK.split("\n### ")[1:]]
    recipes = [(title, text, table) for title, _, body in sections for text, table in RECIPE.findall(body)]
    assert len(recipes) == len(sections) >= 25
    frames = [session.sql(text) for _, text, _ in recipes]
    wrong = {}
    for (title, _, table), df, rows in zip(recipes, frames, sparks.together(frames), strict=True):
        head, _, *lines = table.splitlines()
        found = sorted(f"| {' | '.join(cell(row[name]) for name in df.columns)} |" for row in rows)
        if head != f"| {' | '.join(df.columns)} |" or found != sorted(lines):
            wrong[title] = found
    assert not wrong
