"""WHERE before PATTERN: of the sources' rows, or of the pattern; the names in it say which."""

from __future__ import annotations

import pytest
from queries import bound, check_error, filters

from cersql.api import SchemaCatalog
from cersql.binding.bind import bind
from cersql.language.parse import parse
from planner.query import Column, Query

END = " ORDER BY ts RETURN *"
P = " PATTERN A a ; B b "
TWO = "FROM orders AS O, payments AS P "


def of_rows(query: Query) -> list[str | None]:
    return [source.where and source.where.text for source in query.sources]


@pytest.mark.parametrize(
    ("where", "sql"),
    [
        ("v > 1 AND name = 'a'", "`v` > 1 AND `name` = 'a'"),
        ("T.v > 1 OR s.g.h = 2", "`v` > 1 OR `s`.`g`.`h` = 2"),
        ("k IN (SELECT k FROM u)", "`k` IN (SELECT k FROM u)"),
        ("date < current_date", "`date` < current_date"),
        ("1 = 1", "1 = 1"),
        ("`odd.name` BETWEEN 1 AND 2", "`odd.name` BETWEEN 1 AND 2"),
    ],
)
def test_of_rows(where: str, sql: str) -> None:
    query = bound(f"FROM t WHERE {where}{P}WHERE a.v < b.v{END}")
    assert of_rows(query) == [sql]
    assert query.formula == bound(f"FROM t{P}WHERE a.v < b.v{END}").formula
    assert of_rows(bound(f"FROM t WHERE {where}{P}{END}")) == [sql]
    assert of_rows(bound(f"RETURN a FROM t WHERE {where}{P} ORDER BY ts")) == [sql]


def test_of_the_pattern() -> None:
    """As where the clauses stand in any other order."""
    for where in ("a.v > 1", "a.v > 1 AND b.v > 2", "a[v > 1]", "[k]", "COUNT(a) > 1", "A.v > 1"):
        before, after = bound(f"FROM t WHERE {where}{P}{END}"), bound(f"FROM t{P}WHERE {where}{END}")
        assert of_rows(before) == [None]
        assert before.formula == after.formula
        assert [sql.text for sql in before.on_match] == [sql.text for sql in after.on_match]
    # a partition column is of both, and beside a variable it can be
    query = bound(f"FROM t WHERE k = 1 OR a.v = 2{P}PARTITION BY k{END}")
    assert filters(query.formula) == "(a ; b) | a: (v = 2) OR (k = 1)"
    assert of_rows(bound(f"FROM t WHERE k = 1{P}PARTITION BY k{END}")) == ["`k` = 1"]


def test_a_column_that_is_called_like_a_variable() -> None:
    assert of_rows(bound(f"FROM t WHERE v > 1 PATTERN A v ; B b{END}")) == ["`v` > 1"]
    assert of_rows(bound(f"FROM t WHERE v.v > 1 PATTERN A v ; B b{END}")) == [None]


def test_of_several_sources() -> None:
    """Each condition is about the rows of the source that it names, or about all rows."""
    query = bound(
        TWO + "WHERE O.price > 1 AND (P.paid > 2 OR p.id IS NULL) AND id > 0 PATTERN O x ; P y WHERE x.id = y.id" + END
    )
    assert of_rows(query) == ["(`price` > 1) AND (`id` > 0)", "((`paid` > 2 OR `id` IS NULL)) AND (`id` > 0)"]
    assert of_rows(bound(TWO + "WHERE P.paid > 2 PATTERN O x ; O y WHERE x.id = y.id" + END)) == [None, "`paid` > 2"]


def test_a_name_of_both() -> None:
    """It was the pattern's when WHERE could stand anywhere, and beside a second WHERE it is the source's."""
    query = bound(TWO + "WHERE O.price > 1 PATTERN O ; P" + END)
    assert of_rows(query) == [None, None]
    assert [w for w in query.warnings if "WHERE before PATTERN speaks of O" in w]
    query = bound(TWO + "WHERE O.price > 1 PATTERN O ; P WHERE P.paid > 2" + END)
    assert of_rows(query) == ["`price` > 1", None]
    assert not [w for w in query.warnings if "WHERE before PATTERN" in w]


def test_of_a_dataframe() -> None:
    columns = (Column("ts", "timestamp"), Column("type", "string"), Column("ok", "boolean"))
    query = bind(parse("WHERE ok PATTERN A a ORDER BY ts RETURN *"), SchemaCatalog({}), columns)
    assert of_rows(query) == ["`ok`"]


@pytest.mark.parametrize(
    ("marked", "condition", "fragment"),
    [
        ("FROM t WHERE ‸v > 1 AND a.v > 2" + P + END, "ROWS_AND_EVENTS", "rows of the sources (v) and of events (a.v)"),
        ("FROM t WHERE a.v > 2 AND ‸t.v > 1" + P + END, "ROWS_AND_EVENTS", "(t.v)"),
        ("FROM t WHERE [k] AND ‸v > 1" + P + END, "ROWS_AND_EVENTS", "one after it for the events"),
        ("FROM t WHERE a.v > 2" + P + "‸WHERE b.v > 1" + END, "DUPLICATE_CLAUSE", "join them with AND"),
        ("FROM t WHERE ‸vv > 1" + P + END, "UNKNOWN_COLUMN", "Did you mean v?"),
        ("FROM t WHERE ‸t.vv > 1" + P + END, "UNKNOWN_COLUMN", "vv is not a column of t"),
        ("FROM t WHERE ‸q.v > 1" + P + END, "UNKNOWN_COLUMN", "q is not a column of t"),
        ("FROM t WHERE lag(v) ‸OVER (ORDER BY ts) > 1" + P + END, "ROW_EXPRESSION", "OVER"),
        (TWO + "WHERE O.id = ‸P.id PATTERN O ; P WHERE O.id = P.id" + END, "ROWS_OF_SOURCES", "WHERE a.x = b.y"),
        (TWO + "WHERE ‸price > 1 PATTERN O x ; P y" + END, "UNKNOWN_COLUMN", "to ask of O alone write O.price"),
    ],
)
def test_errors(marked: str, condition: str, fragment: str) -> None:
    check_error(marked, condition, fragment)
