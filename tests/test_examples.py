"""What the README shows and the examples hold runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import cersql

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
EXAMPLES = sorted((ROOT / "examples").rglob("*.sql"))


def blocks(language: str) -> list[str]:
    """The README's code blocks of a language."""
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


@pytest.fixture
def flights(spark, monkeypatch):
    """A session that speaks PATTERN and has the example's tables; the working directory is the project's."""
    monkeypatch.chdir(ROOT)
    cersql.enable(spark)
    for table in ("flights", "planes", "airlines"):
        frame = spark.read.csv(str(ROOT / f"examples/flights/{table}.csv"), header=True, inferSchema=True)
        frame.createOrReplaceTempView(table)
    return spark


@pytest.mark.parametrize("text", blocks("sql"))
def test_readme_sql(flights, text):
    rows = flights.sql(text).collect()
    assert sum(row.times for row in rows) == 231
    assert [row.times for row in rows] == sorted((row.times for row in rows), reverse=True)


@pytest.mark.parametrize("code", blocks("python"))
def test_readme_python(flights, code, capsys):
    scope: dict[str, object] = {}
    exec(compile(code, "README.md", "exec"), scope)
    shown = capsys.readouterr().out
    assert "mean_delay" in shown
    assert "only showing top 5 rows" in shown


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(flights, path):
    rows = flights.sql(path.read_text(encoding="utf-8")).collect()
    assert rows
    if path.stem == "knock_on":
        assert len(rows) == 231


def test_readme_names_the_public_functions():
    for name in ("session", "enable", "sql", "match", "explain", "compile"):
        assert f"cersql.{name}(" in README
