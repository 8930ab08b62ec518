"""Ordinary SQL is Spark's: the same plan and the same error with and without us, and with pattern views beside it."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as profile
from hypothesis import strategies as st
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from sparks import taught, view

from cersql.statements.find import is_ours
from spark_ext import types_seen

STATEMENTS = (Path(__file__).parent / "statements.sql").read_text(encoding="utf-8").splitlines()
"""One a line: what Spark has, with words of ours as names, and mistakes at the end."""

FRAGMENTS = (
    "SELECT * FROM t v pattern match return within a 1 'PATTERN (A)' , ( ) ; WHERE GROUP BY ORDER PARTITION WITH AS "
    "JOIN ON = . AND `pattern` /*c*/ count(*) UNION INSERT INTO CREATE VIEW : ? [0] -> RETURNS DEFINE TABLE(t) f( =>"
).split()


_NUMBERS = re.compile(r"#\d+|@[0-9a-f]+|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")  # also the names of blocks


def outcome(parser: Any, sql: str) -> tuple[Any, ...]:
    """The plan, or the error with all that is in it; numbers that Spark gives out are left out."""
    try:
        found: tuple[Any, ...] = ("plan", parser.parsePlan(sql).toString())
    except PySparkException as error:
        contexts = [c.fragment() for c in error.getQueryContext() or [] if c.contextType().name == "SQL"]
        found = (
            type(error).__name__, error.getCondition(), error.getSqlState(), str(error),
            error.getMessageParameters(), contexts,
        )  # fmt: skip
    except Py4JJavaError as error:
        found = ("java", str(error.java_exception))
    return tuple(_NUMBERS.sub("#", part) if isinstance(part, str) else part for part in found)


@pytest.fixture(scope="module")
def parsers(spark: SparkSession) -> Iterator[tuple[Any, Any, Any]]:
    """Spark's own, ours, and ours in a session with a pattern view `seen` and a pattern function f."""
    classic: Any = spark._jvm.org.apache.spark.sql.classic  # type: ignore[union-attr]
    plain = SparkSession(spark.sparkContext, classic.SparkSession.builder().create())
    hooked, defined = taught(spark), taught(spark)
    view(defined, "ev", [(1, "A", 1)], "a INT, type STRING, ts INT")
    defined.sql(
        "CREATE PATTERN VIEW seen AS FROM ev PATTERN A x PARTITION BY type ORDER BY ts RETURN x.a AS a, type AS b"
    )
    defined.sql("CREATE PATTERN FUNCTION f AS PATTERN A x ORDER BY ts RETURN x.a")
    yield tuple(session._jsparkSession.sessionState().sqlParser() for session in (plain, hooked, defined))  # type: ignore[misc]
    defined.sql("DROP PATTERN VIEW seen")


@pytest.mark.parametrize("begin", range(0, 260, 20))
def test_the_same_plan_or_error(parsers: tuple[Any, Any, Any], begin: int) -> None:
    for sql in STATEMENTS[begin : begin + 20]:
        plain, hooked, defined = (outcome(parser, sql) for parser in parsers)
        assert hooked == plain, sql
        assert defined == plain, sql


def test_the_list_is_all_read() -> None:
    assert 200 < len(STATEMENTS) <= 260


@profile(max_examples=20)
@given(
    words=st.lists(st.sampled_from(FRAGMENTS), max_size=12),
    first=st.sampled_from(["SELECT", "FROM t", "CREATE VIEW", ""]),
)
def test_words_in_any_order(parsers: tuple[Any, Any, Any], words: list[str], first: str) -> None:
    sql = " ".join([first, *words])
    if is_ours(sql):
        return
    plain, hooked, _ = (outcome(parser, sql) for parser in parsers)
    assert hooked == plain


@profile(max_examples=12)
@given(data=st.data())
def test_statements_in_other_clothes(parsers: tuple[Any, Any, Any], data: st.DataObject) -> None:
    """Comments, case, semicolons and parentheses around them, and some word in them lost or twice."""
    statement = data.draw(st.sampled_from(STATEMENTS))
    words = statement.split(" ")
    at = data.draw(st.integers(0, len(words) - 1))
    word = words[at]
    words[at : at + 1] = data.draw(st.sampled_from([[word], [], [word, word], [word.upper()], [word, "pattern"]]))
    clothes = [("", ""), ("-- PATTERN A\n", ";"), ("/* x */ ", " -- (PATTERN A)"), ("(", ")")]
    before, after = data.draw(st.sampled_from(clothes))
    sql = f"{before}{' '.join(words)}{after}"
    if is_ours(sql):
        return
    plain, hooked, _ = (outcome(parser, sql) for parser in parsers)
    assert hooked == plain, sql


@pytest.mark.parametrize(
    ("source", "type", "told"),
    [
        ("range(5)", "fial", "No row of s has the type 'fial'. The nearest value is 'fail', in 3 of them."),
        (
            "range(5) WHERE id > 0",
            "fial",
            "No row of s has the type 'fial'. The nearest value is 'fail', in 2 of them.",
        ),
        ("range(5)", "other", "No row of s has the type 'other'. There are 'fail', 'user2'."),
        ("range(5)", "fail", None),
        ("range(5000)", "fial", "No type in the first 1,000 rows of s is 'fial', and there is 'fail'."),
        ("range(5000)", "user3", None),  # rows further on may have it
        ("range(5000)", "other", None),
        ("range(0)", "fail", None),
    ],
)
def test_types_that_the_first_rows_do_not_have(
    spark: SparkSession, caplog: pytest.LogCaptureFixture, source: str, type: str, told: str | None
) -> None:
    rows = f"(SELECT id AS ts, IF(id % 2 = 0, 'fail', 'user2') AS type FROM {source})"
    session = taught(spark)
    session.conf.unset("cersql.peekRows")
    with caplog.at_level(logging.WARNING):
        session.sql(f"FROM {rows} AS s PATTERN {type} a ORDER BY ts RETURN a.ts")
    assert [record.message for record in caplog.records if "type" in record.message] == ([told] if told else [])


def test_types_that_were_seen_are_not_looked_for_again(
    spark: SparkSession, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, read = taught(spark), []
    session.conf.unset("cersql.peekRows")
    session.sql("SELECT id AS ts, IF(id % 2 = 0, 'one', 'two') AS type FROM range(7)").createOrReplaceTempView("seven")
    first = types_seen._first_rows
    monkeypatch.setattr(types_seen, "_first_rows", lambda *given: (read.append(given), first(*given))[1])
    with caplog.at_level(logging.WARNING):
        for pattern, times in (("one", 1), ("one", 1), ("one ; two", 2), ("two ; one", 2), ("tow", 3), ("tow", 4)):
            session.sql(f"FROM seven PATTERN ({pattern}) AS m ORDER BY ts RETURN match_start AS x")
            assert len(read) == times, pattern
    assert len([record for record in caplog.records if "'tow'" in record.message]) == 2
