"""Which statements ask of matches for no more than how many there are, and what they are then."""

from __future__ import annotations

import pytest

from cersql.language.parse import parse
from cersql.language.source import SourceText
from cersql.statements.counting import counts_of, grouped_text
from cersql.statements.parameters import fill
from cersql.statements.pushdown import reading_of
from runtime.errors import Span

QUERY = "FROM t PATTERN A a ; B b ORDER BY ts RETURN a.k AS k, b.v + 1 AS v, upper(b.s) AS s"
N = "coalesce(CAST(sum(`__cersql_count`) AS BIGINT), 0L)"


def made(statement: str, outputs: tuple[str, ...] = ("k", "v", "s")) -> tuple[tuple[str, ...], str] | None:
    """(columns, the statement with sums); QUERY stands for Q in it."""
    sql = SourceText(statement.replace("Q", QUERY, 1))
    query = Span(sql.index(QUERY), sql.index(QUERY) + len(QUERY))
    reading = reading_of(sql, query)
    assert reading is not None
    found = counts_of(sql, query, reading.qualifier, outputs) if reading.alone else None
    return None if found is None else (found.columns, fill(sql, found.places).text.replace(QUERY, "Q"))


@pytest.mark.parametrize(
    ("statement", "columns", "becomes"),
    [
        ("SELECT k, count(*) FROM (Q) GROUP BY k", ("k",), f"SELECT k, {N} AS `count(1)` FROM (Q) GROUP BY k"),
        ("SELECT K, COUNT(1) AS n FROM (Q) AS m GROUP BY 1", ("k",), f"SELECT K, {N} AS n FROM (Q) AS m GROUP BY 1"),
        ("SELECT m.v n, count(*) FROM (Q) m GROUP BY ALL", None, None),
        ("SELECT m.v AS w, count(*) c FROM (Q) m GROUP BY w", ("v",), f"SELECT m.v AS w, {N} c FROM (Q) m GROUP BY w"),
        (
            "SELECT `k` % 2 AS p, s, count(*) * 2 AS n FROM (Q) WHERE v > DATE '2026-01-01' AND k IS NOT NULL "
            "GROUP BY ALL HAVING count(*) > 3 ORDER BY n DESC NULLS LAST, count(1) LIMIT 3",
            ("k", "s", "v"),
            f"SELECT `k` % 2 AS p, s, {N} * 2 AS n FROM (Q) WHERE v > DATE '2026-01-01' AND k IS NOT NULL "
            f"GROUP BY ALL HAVING {N} > 3 ORDER BY n DESC NULLS LAST, {N} LIMIT 3",
        ),
        (
            "SELECT count(*) AS n FROM (Q) WHERE k = 3",
            ("k",),
            f"SELECT {N} AS n FROM (Q) WHERE k = 3",
        ),
        ("EXPLAIN FORMATTED SELECT count(*) AS n FROM (Q) GROUP BY k", ("k",),
         f"EXPLAIN FORMATTED SELECT {N} AS n FROM (Q) GROUP BY k"),
    ],
)  # fmt: skip
def test_counted(statement: str, columns: tuple[str, ...] | None, becomes: str | None) -> None:
    assert made(statement) == (None if columns is None else (columns, becomes))


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT k, sum(v) FROM (Q) GROUP BY k", "SELECT k, count(*), max(v) FROM (Q) GROUP BY k", "SELECT * FROM (Q)",
        "SELECT k, count(v) FROM (Q) GROUP BY k", "SELECT k, count(DISTINCT v) AS n FROM (Q) GROUP BY k",
        "SELECT *, count(*) OVER () AS n FROM (Q)", "SELECT k, count(*) FILTER (WHERE v > 1) AS n FROM (Q) GROUP BY k",
        "SELECT DISTINCT k, count(*) AS n FROM (Q) GROUP BY k", "SELECT k, count(*) AS n FROM (Q) GROUP BY CUBE (k)",
        "SELECT m.k, count(*) AS n FROM (Q) m JOIN t ON t.k = m.k GROUP BY m.k", "SELECT k, v FROM (Q)",
        "SELECT k, count(*) AS n FROM (Q), t GROUP BY k", "SELECT k, count(*) AS v FROM (Q) GROUP BY k",
        "SELECT k, (SELECT max(x) FROM t) AS x, count(*) AS n FROM (Q) GROUP BY k", "SELECT count(*) + 1 FROM (Q)",
        "SELECT k, count(*) AS n FROM (Q) GROUP BY k UNION ALL SELECT 1, 2",
        "SELECT k, count(*) AS n FROM (Q) GROUP BY z",
        "SELECT k, count(*) AS n FROM (Q) TABLESAMPLE (5 ROWS) GROUP BY k", "SELECT k, rand() * count(*) AS n FROM (Q)",
        "SELECT k, count(*) AS n FROM (Q) WHERE v > :v GROUP BY k", "SELECT x.k, count(*) AS n FROM (Q) GROUP BY x.k",
        "INSERT INTO t SELECT k, count(*) AS n FROM (Q) GROUP BY k", "SELECT k.x, count(*) AS n FROM (Q) GROUP BY k.x",
        "SELECT count(*) AS n FROM (Q) GROUP BY k, date_trunc('DAY', v)", "SELECT count(*) AS n FROM (Q) GROUP BY ALL",
        "SELECT 1 AS one, count(*) AS n FROM (Q) GROUP BY one",
    ],
)  # fmt: skip
def test_read_as_it_is(statement: str) -> None:
    assert made(statement) is None


def test_a_column_that_is_called_like_a_word() -> None:
    assert made("SELECT first, count(*) AS n FROM (Q) GROUP BY first", ("first",)) is None


def test_two_columns_of_one_name() -> None:
    assert made("SELECT k, count(*) AS n FROM (Q) GROUP BY k", ("k", "K")) is None


def grouped(text: str, columns: list[str], outputs: list[str | None] | None = None) -> str | None:
    return grouped_text(parse(text), Span(0, len(text)), outputs or ["k", "v", "s"], columns)


def test_the_query_of_groups() -> None:
    counted = "COUNT(*) AS `__cersql_count`"
    before = QUERY[: QUERY.index("RETURN")]
    assert grouped(QUERY, []) == f"{before}RETURN {counted} GROUP BY ()"
    assert grouped(QUERY, ["v"]) == f"{before}RETURN b.v + 1 AS `v`, {counted} GROUP BY b.v + 1"
    text = "PATTERN A a RETURN a.k, 'x' AS c WITHIN 5 ORDER BY ts"
    wanted = f"PATTERN A a RETURN a.k AS `k`, 'x' AS `c`, {counted} GROUP BY a.k, 'x' WITHIN 5 ORDER BY ts"
    assert grouped(text, ["k", "c"], ["k", "c"]) == wanted


@pytest.mark.parametrize(
    ("text", "outputs"),
    [
        (QUERY, ["k", "v", "s"]),  # upper(…) may not give the same twice
        ("PATTERN A a ORDER BY ts RETURN *", ["a", "match_start", "s"]),
        ("PATTERN A a ORDER BY ts RETURN a.s LIMIT 3", ["s"]),
        ("PATTERN A a ORDER BY ts RETURN a.s HAVING a.s > 3", ["s"]),
        ("PATTERN A a WITHIN 3 ORDER BY ts RETURN a.s WITH TIMEOUTS", ["s"]),
        ("PATTERN A a ORDER BY ts RETURN a.s, COUNT(*) AS n GROUP BY a.s", ["s", "n"]),
        ("PATTERN A a WITHIN 30 SLIDE 10 ORDER BY ts RETURN COUNT(*) AS s", ["s"]),
    ],
)
def test_queries_whose_rows_are_not_counted(text: str, outputs: list[str | None]) -> None:
    assert grouped(text, ["s"], outputs) is None
