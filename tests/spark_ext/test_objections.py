"""What Spark's analyzer says against an expression comes back at its place in the user's text."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, NumberFormatException, ParseException
from queries import check_place
from sparks import settings, taught, view

import cersql
from spark_ext.errors import ExpressionError

SCHEMA = "ts BIGINT, type STRING, k INT, v DOUBLE, name STRING, arr ARRAY<INT>"


@pytest.fixture(scope="module")
def session(spark: Any) -> Any:
    """A session with a small table."""
    found = taught(spark)
    view(found, "t", [(1, "A", 1, 1.0, "x", [1, 2]), (2, "B", 1, 2.0, "y", [3]), (3, "B", 1, None, None, None)], SCHEMA)
    return found


T = "FROM t PATTERN A a ; B+ b "
END = " ORDER BY ts RETURN *"
WRONG = "INVALID_EXPRESSION"
TEXT = "IMPOSSIBLE_TEXT"
NAME = "UNRESOLVED_NAME"


@pytest.mark.parametrize(
    ("marked", "condition", "fragments"),
    [
        # COGRA's unquoted word
        (T + "WHERE a.v > 0 AND a.name = ‸passive" + END, NAME, ("passive is neither", "in quotes: 'passive'")),
        (T + "WHERE\n  a.v > 0 AND\n\tb.v < ‸nosuch(b.v)" + END, WRONG, ("nosuch",)),
        (T + "WHERE NOT (a.v > 0 OR b.name > ‸zzz)" + END, NAME, ("zzz",)),
        (T + "WHERE ‸a.v" + END, WRONG, ("DOUBLE", "BOOLEAN")),
        (T + "WHERE ‸a.v + b.v" + END, WRONG, ("DOUBLE", "BOOLEAN")),
        (T + "WHERE ‸COUNT(b)" + END, WRONG, ("BIGINT", "BOOLEAN")),
        (T + "WHERE ‸b.ts - a.ts <= INTERVAL 3 SECONDS" + END, WRONG, ("INTERVAL",)),
        (T + "WHERE ‸a.arr > 1" + END, WRONG, ("ARRAY<INT>",)),
        (T + "WHERE a.v > 0 AND 1 < ‸median(a.arr)" + END, WRONG, ("ARRAY<INT>",)),
        (T + "WHERE a.v > (SELECT max(‸nope) FROM t)" + END, NAME, ("nope",)),
        (T + "WHERE a[v > 1 AND ‸zzz = 2]" + END, NAME, ("zzz",)),
        ("FROM t DEFINE A AS v > 1 AND name = ‸zzz, B AS TRUE PATTERN A a ; B b" + END, NAME, ("zzz",)),
        ("FROM t DEFINE A AS v > 1, Bee AS ‸length(arr) > 1 PATTERN A a ; Bee b" + END, WRONG, ("ARRAY<INT>",)),
        (T + "ORDER BY ts RETURN a.v, ‸nosuch(a.v) AS x", WRONG, ("nosuch",)),
        (T + "ORDER BY ts RETURN a.v + ‸zzz", NAME, ("zzz",)),
        (T + "ORDER BY ts RETURN a.name, ‸b.v + 1", WRONG, ("ARRAY<DOUBLE>",)),
        (T + "ORDER BY ts RETURN * HAVING COUNT(b) > ‸zzz", NAME, ("zzz",)),
        (T + "ORDER BY ts RETURN * HAVING ‸COUNT(b) + 1", WRONG, ("BOOLEAN",)),
        (T + "WHERE COUNT(b) > 1 AND a.v > ‸nosuch(COUNT(b))" + END, WRONG, ("nosuch",)),
        (T + "ORDER BY ts RETURN a.v, MAX(‸nosuch(b.v))", WRONG, ("nosuch",)),
        (T + "ORDER BY ts RETURN a.v, COUNT(b) + MIN(b.v + ‸zzz)", NAME, ("zzz",)),
        (T + "WHERE ‸lenght(a.name) > 1" + END, WRONG, ("Did you mean length?",)),
        (T + "ORDER BY ts RETURN ‸AVERAGE(a.v)", WRONG, ("Did you mean avg?",)),
        (T + "WHERE ‸LAG(a.v) > 1" + END, WRONG, ("PREV(b.price), or b[i-1].price",)),
        (T + "WHERE ‸a.v > 1 || a.k > 1" + END, WRONG, ("write OR",)),
        # Texts that cannot be what Spark would read them as
        (T + "WHERE a.v > 0 AND\n b.k > ‸'abc'" + END, TEXT, ("'abc' is no BIGINT", "without quotes", "AS STRING")),
        (T + "WHERE a.k > ‸'v'" + END, TEXT, ("If the column v is meant, take the quotes away",)),
        (T + "WHERE b.v < a.v + ‸'abc'" + END, TEXT, ("DOUBLE",)),
        (T + "WHERE a.k IN (1, ‸'x')" + END, TEXT, ("BIGINT",)),
        (T + "WHERE (a.v > 1) = ‸'perhaps'" + END, TEXT, ("BOOLEAN", "TRUE or FALSE")),
        (T + "WHERE date(a.name) > ‸'today'" + END, TEXT, ("DATE '2024-01-31'",)),
        (T + "WHERE timestamp(a.ts) > ‸'noon'" + END, TEXT, ("TIMESTAMP '2024-01-31 12:00:00'",)),
        ("FROM t PATTERN (A a ; B+ b) FILTER a.k > ‸'abc'" + END, TEXT, ()),
        ("FROM t DEFINE A AS v > ‸'abc', B AS TRUE PATTERN A a ; B b" + END, TEXT, ()),
        ("FROM t WHERE v > ‸'abc' PATTERN A a ; B b" + END, TEXT, ()),
        (T + "ORDER BY ts RETURN * HAVING COUNT(b) > ‸'many'", TEXT, ()),
        (T + "ORDER BY ts RETURN a.k, COUNT(b) + ‸'x'", TEXT, ()),
        (T + "ORDER BY ts RETURN SUM(b.k + ‸'x')", TEXT, ()),
    ],
)
def test_place(session: Any, marked: str, condition: str, fragments: tuple[str, ...]) -> None:
    text = marked.replace("‸", "")
    with pytest.raises(ExpressionError) as raised:
        cersql.sql(session, text)
    check_place(raised.value, text, marked.index("‸"), condition, *fragments)
    assert "__cersql" not in str(raised.value)
    assert "lambda" not in str(raised.value)


@pytest.mark.parametrize(
    ("condition", "n"),
    [
        ("a.v > (SELECT min(v) - 1 FROM t) AND b.v >= 2", 1),
        ("exists(a.arr, x -> x > 1) AND a.v::int = 1 AND CAST(b.ts AS DATE) IS NULL", None),
        ("exists(a.arr, b -> b > 1) AND filter(b.arr, x -> x > 2)[0] = 3", 1),
        ("COUNT(b) = 2 OR b.v = 2", 2),  # the second B alone has no v
        ("b.v >= AVG(b.v)", 1),
        ("b.v > 5 OR COUNT(b) = 2", 1),
        ("NOT (COUNT(b) = 2 OR b.v IS NULL)", 1),
        ("a.v < FIRST(b.v)", 2),
        ("a.v < b[2].v", 0),
        ("a.v < '2' AND a.k = ' 1 ' AND a.name = 'x'", 3),  # texts that are numbers, and texts that are texts
        ("coalesce(a.v, 'none') = 1 AND try_cast('x' AS INT) IS NULL", 3),  # no row asks for 'none'
        ("CASE WHEN a.v IS NULL THEN a.v > 'abc' ELSE TRUE END", 3),  # nor for this
    ],
)
def test_what_spark_takes(session: Any, condition: str, n: int | None) -> None:
    text = T + f"WHERE {condition} ORDER BY ts RETURN COUNT(*)"
    if n is None:
        with pytest.raises(ExpressionError):
            cersql.sql(session, text)
    else:
        assert cersql.sql(session, text).count() == n


def test_without_ansi_an_impossible_text_makes_null(session: Any) -> None:
    with settings(session, spark__sql__ansi__enabled="false"):
        assert cersql.sql(session, T + "WHERE (a.v > 'abc') IS NULL ORDER BY ts RETURN COUNT(*)").count() == 3


def test_an_impossible_text_keeps_sparks_sqlstate(session: Any) -> None:
    with pytest.raises(ParseException) as raised:
        session.sql(T + "WHERE a.v > 'abc'" + END)
    assert raised.value.getSqlState() == "22018"


def test_an_impossible_text_over_files(session: Any, tmp_path: Path) -> None:
    """Their plan is looked at before it runs, so that the optimizer fails on the text first."""
    (tmp_path / "t.csv").write_text("1,A,1.5\n", encoding="utf-8")
    session.read.schema("ts BIGINT, type STRING, v DOUBLE").csv(str(tmp_path)).createOrReplaceTempView("in_files")
    marked = "FROM in_files PATTERN A a WHERE a.v > ‸'abc'" + END
    with pytest.raises(ExpressionError) as raised:
        cersql.sql(session, marked.replace("‸", ""))
    check_place(raised.value, marked.replace("‸", ""), marked.index("‸"), TEXT)


def test_what_spark_quotes_of_a_row_is_not_ours(session: Any) -> None:
    """It fails where it runs: the line that Spark quotes has no name of ours."""
    for condition in ("a.v > a.name", "a.name > b.v"):
        with pytest.raises(NumberFormatException) as raised:
            session.sql(T + f"WHERE {condition}" + END).collect()
        assert "`name`" in str(raised.value)
        assert "__cersql" not in str(raised.value)


def test_place_in_a_subquery(session: Any) -> None:
    marked = "SELECT count(*) FROM (\n  FROM t PATTERN A a\n  WHERE a.name = ‸zzz ORDER BY ts RETURN *\n) AS m"
    text = marked.replace("‸", "")
    with pytest.raises(ExpressionError) as raised:
        cersql.sql(session, text)
    check_place(raised.value, text, marked.index("‸"), NAME, "zzz")


def test_a_variable_inside_a_subquery_of_a_condition(session: Any) -> None:
    text = T + "WHERE a.v > (SELECT max(v) FROM t AS u WHERE u.k = a.k)" + END
    with pytest.raises(ExpressionError) as raised:
        cersql.sql(session, text)
    assert "cannot see the variables" in str(raised.value)


@pytest.mark.parametrize(
    ("marked", "hint"),
    [
        ("FROM t DEFINE A AS v > 1 AND ‸nmae = 'x' PATTERN A a ORDER BY ts RETURN *", "the column name?"),
        (T + "WHERE a.v > 0 AND a.name = ‸nmae" + END, "the column name?"),
        (T + "ORDER BY ts RETURN a.v, upper(‸nmae)", "the column name?"),
        (T + "ORDER BY ts RETURN * HAVING COUNT(b) > ‸nmae", "the column name?"),
        (
            T.replace("FROM t", "FROM timed") + "WHERE ‸timestamp(a.at) - timestamp(a.ts) <= 60" + END,
            "INTERVAL 60 SECONDS",
        ),
        ("FROM timed DEFINE A AS ‸at - ts > 90.5 PATTERN A a ORDER BY ts RETURN *", "INTERVAL 90.5 SECONDS"),
        ("FROM timed DEFINE A AS ‸30 <= day - date(ts) PATTERN A a ORDER BY ts RETURN *", "INTERVAL 30 DAYS"),
    ],
)
def test_what_was_meant(session: Any, marked: str, hint: str) -> None:
    session.sql(
        "SELECT TIMESTAMP '2024-01-01' AS ts, TIMESTAMP '2024-01-02' AS at, DATE '2024-01-01' AS day, 'A' AS type"
    ).createOrReplaceTempView("timed")
    text = marked.replace("‸", "")
    with pytest.raises(ExpressionError) as raised:
        cersql.sql(session, text)
    check_place(raised.value, text, marked.index("‸"), raised.value.condition, hint)


class _Records(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.found.append(record)


@pytest.fixture
def logged() -> Iterator[list[logging.LogRecord]]:
    """What pyspark logs of the exceptions that it captures."""
    handler, loggers = _Records(), [logging.getLogger(f"{kind}QueryContextLogger") for kind in ("SQL", "DataFrame")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)  # the command line, in this process, may have muted them
    yield handler.found
    for logger, level in zip(loggers, levels, strict=True):
        logger.removeHandler(handler)
        logger.setLevel(level)


@pytest.mark.parametrize(
    "query",
    [
        "PATTERN A a ; B b WHERE a.v + 'q' ORDER BY ts RETURN *",
        "PATTERN A a ; B b WHERE nosuch(a.v) ORDER BY ts RETURN *",
        "PATTERN A a ; B b WHERE a.name = zzz ORDER BY ts RETURN *",
        "PATTERN A a ; B b ORDER BY ts RETURN a.v, nosuch(a.v)",
        "PATTERN A a ; B b ORDER BY ts RETURN * HAVING nosuch(COUNT(b)) > 1",
    ],
)
def test_only_our_error_is_told(spark: Any, session: Any, query: str, logged: list[logging.LogRecord]) -> None:
    spark.createDataFrame(session.table("t").collect(), SCHEMA).createOrReplaceTempView("quiet")
    whole = f"FROM quiet {query}"
    entries: list[Callable[[], Any]] = [
        lambda: cersql.sql(spark, whole),  # a session that was not taught
        lambda: cersql.match(spark.table("quiet"), query),
        lambda: session.sql(whole.replace("quiet", "t")),
        lambda: cersql.sql(spark, f"SELECT * FROM ({whole}) AS m"),
    ]
    for entry in entries:
        with pytest.raises((ExpressionError, ParseException)):
            entry()
    assert not logged


def test_an_error_of_a_source_is_told_once(spark: Any, logged: list[logging.LogRecord]) -> None:
    for text in ("FROM (SELECT nix FROM VALUES (1) AS t(ts)) AS q PATTERN A a ORDER BY ts RETURN *", "SELECT nix"):
        with pytest.raises(AnalysisException):
            cersql.sql(spark, text)
    with pytest.raises(AnalysisException):
        cersql.explain(spark, "FROM (SELECT nix FROM VALUES (1) AS t(ts)) AS q PATTERN A a ORDER BY ts RETURN *")
    assert not logged
    with pytest.raises(AnalysisException):
        spark.sql("SELECT nix")
    assert logged  # what is Spark's stays as it was
