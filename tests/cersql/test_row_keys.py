"""PARTITION BY, ORDER BY and [ ]: columns that every row has, and expressions over one row."""

from __future__ import annotations

import pytest
from queries import SCHEMAS, bound, check_error

from planner.query import Query

END = " ORDER BY ts RETURN *"
T = "FROM t PATTERN "


def names(query: Query) -> list[str | None]:
    return [output.name for output in query.outputs]


@pytest.mark.parametrize(
    ("written", "column", "sql"),
    [
        ("date(ts)", "date(ts)", "date(`ts`)"),
        ("date (  T.ts )", "date ( T.ts )", "date (  `ts` )"),
        ("s.g.h", "s.g.h", "`s`.`g`.`h`"),
        ("t.s.f", "t.s.f", "`s`.`f`"),
        ("(k)", "k", None),
        ("(k + 1) * 2", "(k + 1) * 2", "(`k` + 1) * 2"),
        ("CASE WHEN k > 1 THEN v END", "CASE WHEN k > 1 THEN v END", "CASE WHEN `k` > 1 THEN `v` END"),
        ("k::string", "k::string", "`k`::string"),
        ("m['a']", "m['a']", "`m`['a']"),
        ("`odd.name` % 2", "`odd.name` % 2", "`odd.name` % 2"),
        ("extract(HOUR FROM ts)", "extract(HOUR FROM ts)", "extract(HOUR FROM `ts`)"),
        ("transform(arr, x -> x + k)", "transform(arr, x -> x + k)", "transform(`arr`, x -> x + `k`)"),
        ("NOT k IS NULL", "NOT k IS NULL", "NOT `k` IS NULL"),
        ("datediff(current_date, `date`)", "datediff(current_date, `date`)", "datediff(current_date, `date`)"),
    ],
)
def test_expressions(written: str, column: str, sql: str | None) -> None:
    for clauses in (f"PARTITION BY {written}{END}", f"ORDER BY ts, {written} NULLS LAST RETURN *"):
        query = bound(f"{T}A a {clauses}")
        assert (query.partition_by or (query.order_by[1].column,)) == (column,)
        made = {made.name: [part and part.text for part in made.by] for made in query.made}
        assert made == ({} if sql is None else {column: [sql]})


def test_names_of_expressions() -> None:
    """By AS, or as they are written; RETURN * calls them as Spark does."""
    query = bound(T + "A a PARTITION BY lower(name) AS name, s.g.h, k ORDER BY ts RETURN *")
    assert query.partition_by == ("name'", "s.g.h", "k")
    assert names(query) == ["name", "h", "k", "match_start", "match_end", "a"]
    query = bound(T + "A a PARTITION BY lower(name) AS n, s.g.h, v + 1 ORDER BY ts "
                  "RETURN N, s.g.h, `S`.g . H, v + 1 AS x, (V + 1) * 2 AS y, abs(v+1) AS z "
                  "HAVING n > 'a' AND s.g.h = 1")  # fmt: skip
    sqls = [output.sql.text.replace("__cersql_", "") for output in query.outputs]
    assert sqls == ["`key0`", "`key1`", "`key1`", "`key2`", "(`key2`) * 2", "abs(`key2`)"]
    assert names(query)[:3] == ["N", "h", "h"]
    assert query.having[0].text.replace("__cersql_", "") == "`key0` > 'a' AND `key1` = 1"


def test_an_expression_is_recognized_as_a_whole_only() -> None:
    check_error(T + "A a PARTITION BY v + 1 ORDER BY ts RETURN 2 * ‸v + 1", "UNQUALIFIED_COLUMN", "a.v")
    check_error(T + "A a PARTITION BY s.g.h ORDER BY ts RETURN ‸s.g", "UNQUALIFIED_COLUMN", "a.s")
    # the column h would be another thing
    check_error("FROM t PATTERN A a PARTITION BY s.f ORDER BY ts RETURN ‸f.x", "UNKNOWN_VARIABLE")


def test_in_conditions() -> None:
    query = bound(T + "A a ; B b WHERE lower(name) = 'x' AND h = 1 PARTITION BY lower(name), hour(ts) AS h" + END)
    assert "`lower(name)` = 'x'" in str(query.formula)
    assert "`h` = 1" in str(query.formula)
    assert set(query.reads) == {"type", "lower(name)", "h"}


def test_agreement_on_expressions() -> None:
    query = bound(T + "A a ; B b WHERE [lower(name), s.f, k]" + END)
    assert [column.name for column in query.columns[-2:]] == ["lower(name)", "s.f"]
    assert {"lower(name)", "s.f", "k"} <= set(query.reads)
    # a column may be called as a variable is
    assert "k" in bound(T + "A k ; B b WHERE [k]" + END).reads


@pytest.mark.parametrize(
    ("marked", "condition", "fragment"),
    [
        (
            T + "A a PARTITION BY ‸count(v)" + END,
            "ROW_EXPRESSION",
            "PARTITION BY takes expressions over one row, and COUNT",
        ),
        (T + "A a PARTITION BY v + ‸LAST(v)" + END, "ROW_EXPRESSION", "LAST reads several"),
        (T + "A a PARTITION BY rank() ‸OVER (ORDER BY ts)" + END, "ROW_EXPRESSION", "a window function, OVER,"),
        (T + "A a ; B b WHERE [‸sum(v)]" + END, "ROW_EXPRESSION", "[ ] takes"),
        (T + "A a PARTITION BY k + ‸rand()" + END, "UNSTEADY_KEY", "rand has another value"),
        (T + "A a ORDER BY ts, ‸uuid() RETURN *", "UNSTEADY_KEY", "ORDER BY needs one for each row"),
        (T + "A a PARTITION BY ‸lower('x')" + END, "CONSTANT_KEY", "lower('x') names no column"),
        (T + "A a PARTITION BY ‸current_date" + END, "UNKNOWN_COLUMN", "current_date"),
        (T + "A a PARTITION BY (‸1 + 1)" + END, "CONSTANT_KEY", "names no column"),
        (T + "A a PARTITION BY lower(‸nam)" + END, "UNKNOWN_COLUMN", "Did you mean name?"),
        (T + "A a PARTITION BY lower(‸a.name)" + END, "UNKNOWN_COLUMN", "write PARTITION BY name"),
        (T + "A a PARTITION BY lower(‸q.name)" + END, "UNKNOWN_COLUMN", "q is not a column of t"),
        (T + "A a ; B b WHERE [lower(‸nam)]" + END, "UNKNOWN_COLUMN", "Did you mean name?"),
        (T + "A a ORDER BY ts, ‸m RETURN *", "NOT_ORDERABLE", "map"),
    ],
)
def test_errors(marked: str, condition: str, fragment: str) -> None:
    check_error(marked, condition, fragment)


S = "FROM orders AS O, payments AS P, ticks AS X PATTERN O a ; P b "


@pytest.mark.parametrize(
    ("marked", "fragment"),
    [
        (S + "PARTITION BY ‸id ORDER BY x RETURN *", "id is not a column of X"),
        (S + "PARTITION BY O.‸id ORDER BY x RETURN *", "also of those of X"),
        (S + "ORDER BY ‸ts RETURN *", "ORDER BY asks of every row, also of those of X"),
        (S + "ORDER BY ‸ts RETURN *", "If they are no events, look them up: FROM O JOIN X USING (…)."),
        (S + "PARTITION BY abs(‸id) ORDER BY ts RETURN *", "id is not a column of X"),
        (S + "PARTITION BY abs(‸O.id) ORDER BY ts RETURN *", "PARTITION BY asks of every row"),
        ("FROM orders AS O, payments AS P PATTERN O ; P ORDER BY ts, ‸price RETURN *", "price is not a column of P"),
        ("FROM orders AS O, payments AS P PATTERN O ; P WHERE [‸price]" + END, "also of P"),
        ("FROM orders AS O, payments AS P PATTERN O ; P WHERE [abs(‸price)]" + END, "price is not a column of P"),
        ("FROM orders AS O, payments AS P PATTERN O a ; !P b ; O c WHERE [‸price]" + END, "also of b"),
    ],
)
def test_every_source_has_it(marked: str, fragment: str) -> None:
    check_error(marked, "UNKNOWN_COLUMN", fragment)


def test_what_has_no_time_is_looked_up() -> None:
    marked = "FROM orders AS O, tops PATTERN O ORDER BY ‸ts RETURN *"
    schemas = {**SCHEMAS, "tops": {"top": "int", "id": "int"}}
    check_error(marked, "UNKNOWN_COLUMN", "look them up: FROM O JOIN tops USING (id).", schemas=schemas)


def test_the_order_that_is_configured_is_every_sources() -> None:
    from cersql.api import SchemaCatalog
    from cersql.binding.bind import bind
    from cersql.errors import BindError
    from cersql.language.parse import parse

    text = "FROM orders AS O, payments AS P PATTERN O ; P RETURN O.id"
    assert bind(parse(text), SchemaCatalog(SCHEMAS), order_by="ts, id").order_by[1].column == "id"
    with pytest.raises(BindError) as caught:
        bind(parse(text), SchemaCatalog(SCHEMAS), order_by="ts, price")
    assert "price is not a column of P" in str(caught.value)


def test_expressions_with_several_sources() -> None:
    schemas = {"O": {"ts": "int", "who": "string"}, "P": {"TS": "int", "Who": "string"}}
    query = bound("FROM O, P PATTERN O ; P PARTITION BY lower(WHO) ORDER BY ts RETURN lower(who), match_end", schemas)
    by = next(made.by for made in query.made if made.name == "lower(WHO)")
    assert [sql and sql.text for sql in by] == ["lower(`who`)", "lower(`Who`)"]


def test_a_window_over_an_expression() -> None:
    """Of its type only Spark knows, so that either kind of window may be right."""
    for window in ("5", "10 MINUTES", "3 EVENTS"):
        assert bound(f"{T}A a ; B b ORDER BY ts + INTERVAL 1 HOUR WITHIN {window} RETURN *").window is not None
