"""What the README and its pages show, and the examples hold, runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import sparks
from pyspark.sql import DataFrame, SparkSession

import cersql
from cersql.language import scripts

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
# These are followed step by step in test_pages.py.
FOLLOWED = ("cookbook", "tutorial", "coming-from", "plans")
PAGES = [page for page in sorted((ROOT / "docs").glob("*.md")) if page.stem not in FOLLOWED]
SHOWN = "\n".join([README, *(page.read_text(encoding="utf-8") for page in PAGES)])
EXAMPLES = sorted((ROOT / "examples").rglob("*.sql"))
ROWS = {"knock_on": 231, "stranded": 227}  # by plain loops over the same tables
TABLE = re.compile(r"^\| (.+) \| matches on (.+) \|\n\|---\|---\|\n((?:\|.*\n)+)", re.MULTILINE)


def blocks(language: str) -> list[str]:
    """The code blocks of a language, in the README and the pages behind it; `py` is for pieces that run nowhere."""
    return re.findall(rf"```{language}\n(.*?)```", SHOWN, re.DOTALL)


@pytest.fixture
def flights(spark, monkeypatch):
    """A session that speaks PATTERN and has the example's tables; the working directory is the project's."""
    monkeypatch.chdir(ROOT)
    cersql.enable(spark)
    for table in ("flights", "planes", "airlines"):
        frame = spark.read.csv(str(ROOT / f"examples/flights/{table}.csv"), header=True, inferSchema=True)
        frame.createOrReplaceTempView(table)
    return spark


def test_readme_sql(flights):
    query, function = (script(flights, text) for text in blocks("sql"))
    try:
        assert [row.legs for row in function] == sorted((row.legs for row in function), reverse=True)
        assert len(function) == 5
        assert all(row.legs >= 3 for row in function)
    finally:
        flights.sql("DROP PATTERN FUNCTION delays")
    assert sum(row.times for row in query) == 231
    assert [row.times for row in query] == sorted((row.times for row in query), reverse=True)


def script(spark, text):
    """The rows of the last statement."""
    for statement in [text[span.start : span.end] for span in scripts.split(text)]:
        frame = spark.sql(statement)
    return frame.collect()


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
    assert len(rows) == ROWS.get(path.stem, len(rows))


def shown(spark: SparkSession, before: str, events: str, lines: str) -> list[tuple[str, DataFrame, list[list[int]]]]:
    """The rows of one of the tables: a query's text, what it gives, and what the page says."""
    stream = ", ".join(
        f"({time}, '{event[0]}', {value or 'NULL'})"
        for event in events.split()
        for time, _, value in [event[1:].partition("=")]
    )
    stream = f"(SELECT t, type, CAST(v AS INT) AS v FROM VALUES {stream} AS v(t, type, v)) AS stream"
    common = "".join(re.findall("`(.+)`", before))  # a table of clauses has its pattern in the head
    found = []
    for written, matches in re.findall(r"^\| `(.+)` \| (.+) \|$", lines, re.MULTILINE):
        text = f"FROM {stream} PATTERN {common} {written} ORDER BY t RETURN *"
        times = [] if matches == "—" else [[int(time) for time in match.split()] for match in matches.split(", ")]
        found.append((f"{common} {written}", spark.sql(text), times))
    assert len(found) == lines.count("\n")
    return found


def times_of(row: dict[str, object]) -> list[int]:
    """The times of a match's events, from the variables of its row."""
    bound = [events if isinstance(events, list) else [events] for events in row.values()]
    return sorted({event["t"] for events in bound for event in events if isinstance(event, dict)})


def test_readme_tables_of_matches(flights):
    tables = TABLE.findall(SHOWN)
    assert len(tables) == 4
    rows = [row for table in tables for row in shown(flights, *table)]
    given = sparks.together([df for _, df, _ in rows])
    wrong = {}
    for (text, _, expected), got in zip(rows, given, strict=True):
        times = sorted(map(times_of, got))
        if times != sorted(expected):
            wrong[text] = times
    assert not wrong


def test_readme_draws_the_automaton():
    columns = {"flights": {"row_id": "int", "dep_delay_min": "int"}}
    (pattern,) = re.findall(r"^`mermaid` of `(.+)`:$", SHOWN, re.MULTILINE)
    text = f"FROM flights DEFINE Late AS dep_delay_min > 60 {pattern} ORDER BY row_id RETURN *"
    assert [block.strip() for block in blocks("mermaid")] == [cersql.compile(text, columns).explain("mermaid").strip()]


def test_readme_names_the_public_functions():
    for name in ("session", "enable", "sql", "match", "explain", "compile"):
        assert f"cersql.{name}(" in README
