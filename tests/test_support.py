"""docs/support.md says of each construct whether it runs in batch and on a stream, as EXPLAIN does."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import sparks
from pyspark.sql import SparkSession

import cersql
from runtime.errors import CersqlError

PAGE = Path(__file__).resolve().parent.parent / "docs/support.md"
COLUMNS = "ts TIMESTAMP, type STRING, k INT, v INT"
LINE = re.compile(r"^\| ([^|`]+) \| `(.+)` \| (\S+) \| (\S+) \|$", re.MULTILINE)
NOT_SUPPORTED = "0A000"
CLAUSES = "PARTITION BY k ORDER BY ts"


def written(example: str) -> str:
    """A whole query around an example of the page."""
    returned = "" if "RETURN" in example else " RETURN *"
    return f"FROM events PATTERN {example} {CLAUSES}{returned}"


def lines() -> Iterator[tuple[str, str, str, str]]:
    yield from LINE.findall(PAGE.read_text(encoding="utf-8"))


def speed(told: str) -> str:
    """What EXPLAIN says of the plan: slow is what Python runs event by event, and what lists all matches before it
    chooses or groups them."""
    lines = told.splitlines()
    listed = any("listed" in line and "no match is listed" not in line for line in lines)
    refused = any(line.startswith("stream: refused") for line in lines)
    return "no" if refused else "slow" if listed or "run by: general engine" in lines else "yes"


def of(explain: Callable[[str], str], text: str) -> str:
    """What becomes of a query; one that is not supported says that, and not that something else is wrong with it."""
    try:
        return speed(explain(text))
    except CersqlError as error:
        return "no" if error.sqlstate == NOT_SUPPORTED else str(error)


def test_every_line_of_the_page_is_read() -> None:
    table = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ") and "`" in line]
    assert len(list(lines())) == len(table) > 40


def test_the_page_says_what_runs_in_batch() -> None:
    def explain(text: str) -> str:
        return cersql.compile(text, {"events": COLUMNS}).explain("physical")

    found = {example: of(explain, written(example)) for _, example, _, _ in lines()}
    assert found == {example: batch for _, example, batch, _ in lines()}


def test_the_page_says_what_runs_on_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    session = sparks.taught(spark)
    live = session.readStream.schema(COLUMNS).parquet(str(tmp_path)).withWatermark("ts", "1 minute")
    live.createOrReplaceTempView("events")

    def explain(text: str) -> str:
        return cersql.explain(session, text, "physical")

    found = {example: of(explain, written(example)) for _, example, _, _ in lines()}
    assert found == {example: stream for _, example, _, stream in lines()}
