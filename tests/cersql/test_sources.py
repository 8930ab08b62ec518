"""FROM, TYPE and DEFINE: which sources there are, and what a type demands of a row."""

from __future__ import annotations

import pytest
from queries import SCHEMAS, bound, check_error

from cersql.api import SchemaCatalog
from cersql.binding.bind import bind
from cersql.errors import BindError
from cersql.language.parse import parse
from planner.query import Column

END = " ORDER BY ts RETURN *"
TWICE = {"ts": "timestamp", "type": "string", "k": "int", "K": "int"}


def types(text: str, **schemas: dict[str, str]) -> dict[str, str]:
    return dict(bound(text + END, SCHEMAS | schemas).types)


def sources(text: str) -> list[tuple[str, str | None, str | None]]:
    return [(s.alias, s.relation, s.type_column) for s in bound(text + END).sources]


def test_sources() -> None:
    assert sources("FROM t PATTERN A") == [("t", "SELECT * FROM `t`", "type")]
    assert sources("FROM t AS x TYPE NAME PATTERN A") == [("x", "SELECT * FROM `t`", "name")]
    assert sources("PATTERN orders ; payments ; orders") == [
        ("orders", "SELECT * FROM `orders`", None),
        ("payments", "SELECT * FROM `payments`", None),
    ]
    assert sources("FROM t a, orders PATTERN a ; orders") == [
        ("a", "SELECT * FROM `t`", None),
        ("orders", "SELECT * FROM `orders`", None),
    ]


@pytest.mark.parametrize(
    ("written", "alias", "type_column"),
    [
        ("db.orders AS o JOIN parts USING (id)", "o", "type"),
        ("orders JOIN parts AS p ON orders.id = p.part", "orders", "type"),
        ("orders o LEFT OUTER JOIN (SELECT * FROM parts) AS p USING (id) JOIN t ON o.x = t.y TYPE kind", "o", "kind"),
        ("(SELECT * FROM a, b) AS o INNER JOIN parts p ON o.id = p.id AND o.n IN (1, 2)", "o", "type"),
        ("orders AS `left` NATURAL JOIN parts", "left", "type"),
        ("orders CROSS JOIN parts", "orders", "type"),
    ],
)
def test_a_join_is_a_source(written: str, alias: str, type_column: str) -> None:
    """It stands for a subquery, under the name of its first table."""
    join = written.removesuffix(" TYPE kind")
    known = {join.replace("`", ""): {"ts": "timestamp", "type": "string", "kind": "string"}}
    query = bind(parse(f"FROM {written} PATTERN A{END}"), SchemaCatalog(known))
    assert [(s.alias, s.relation, s.type_column) for s in query.sources] == [
        (alias, f"SELECT * FROM {join}", type_column)
    ]
    beside = bind(parse(f"FROM {written}, t PATTERN t{END}"), SchemaCatalog(known | {"t": {"ts": "timestamp"}}))
    assert [source.alias for source in beside.sources] == [alias, "t"]


def test_a_join_with_a_column_twice() -> None:
    with pytest.raises(BindError) as caught:
        bind(parse(f"FROM a JOIN b ON a.k = b.k PATTERN A{END}"), SchemaCatalog({"a JOIN b ON a.k = b.k": TWICE}))
    assert caught.value.condition == "DUPLICATE_COLUMN"
    assert "the join has two columns called K. " in str(caught.value)
    assert "Join by USING (`K`), which gives it once" in str(caught.value)


@pytest.mark.parametrize(
    ("written", "missing"),
    [
        ("a JOIN ‸db.bb USING (k)", "db.bb"),
        ("‸aa x JOIN b ON x.k = b.k", "aa"),
        ("a JOIN b USING (k) JOIN ‸`c d` USING (k)", "c d"),
    ],
)
def test_a_table_of_a_join_that_is_not_there(written: str, missing: str) -> None:
    text = f"FROM {written.replace('‸', '')} PATTERN A{END}"
    with pytest.raises(BindError) as caught:
        bind(parse(text), SchemaCatalog({"a": TWICE, "b": TWICE}))
    assert caught.value.condition == "UNKNOWN_SOURCE"
    assert f"There is no table or view {missing}. " in str(caught.value)
    assert caught.value.span is not None
    assert caught.value.span.start == 5 + written.index("‸")


def test_type_column_by_default() -> None:
    assert types("FROM t PATTERN A ; a_b x") == {"A": "`type` = 'A'", "a_b": "`type` = 'a_b'"}
    other = {"ts": "timestamp", "EVENT_TYPE": "string"}
    assert types("FROM e PATTERN A", e=other) == {"A": "`EVENT_TYPE` = 'A'"}
    # not beside a DEFINE, but where it is written
    assert types("FROM t DEFINE A AS v > 1 PATTERN A ; Bxy")["Bxy"] == "TRUE"
    assert types("FROM t TYPE type DEFINE A AS v > 1 PATTERN A ; Bxy")["Bxy"] == "`type` = 'Bxy'"


def test_values_of_a_type_column_are_compared_exactly() -> None:
    assert types("FROM t PATTERN `it's a \\` ; `1`") == {"it's a \\": r"`type` = 'it\'s a \\'", "1": "`type` = '1'"}
    assert types("FROM t TYPE k PATTERN `1`") == {"1": "CAST(`k` AS STRING) = '1'"}
    collated = {"ts": "timestamp", "type": "string collate UNICODE_CI"}
    assert types("FROM e PATTERN A", e=collated) == {"A": "`type` COLLATE UTF8_BINARY = 'A'"}


def test_aliases_are_types() -> None:
    assert types("FROM orders AS O PATTERN o") == {"o": "TRUE"}
    assert types("FROM orders AS O, payments PATTERN o ; PAYMENTS") == {
        "o": "__cersql_source = 0",
        "PAYMENTS": "__cersql_source = 1",
    }
    assert types("FROM orders AS O, payments DEFINE o AS price > 1 PATTERN O") == {
        "O": "__cersql_source = 0 AND (`price` > 1)"
    }
    assert types("FROM orders AS O, t TYPE type PATTERN O ; A") == {
        "O": "__cersql_source = 0",
        "A": "(__cersql_source = 1 AND `type` = 'A')",
    }


def test_definitions_without_case() -> None:
    assert types("FROM orders DEFINE big AS Price > 1 PATTERN BIG") == {"BIG": "(`price` > 1)"}


def test_a_dataframe_as_the_source() -> None:
    columns = (Column("ts", "timestamp"), Column("type", "string"))
    query = bind(parse("PATTERN A a" + END), SchemaCatalog({}), columns)
    assert [(s.alias, s.relation, s.type_column) for s in query.sources] == [("events", None, "type")]
    twice = (*columns, Column("TYPE", "int"))
    with pytest.raises(Exception, match="DUPLICATE_COLUMN"):
        bind(parse("PATTERN A a" + END), SchemaCatalog({}), twice)


@pytest.mark.parametrize(
    ("marked", "condition", "fragment"),
    [
        ("FROM t TYPE ‸kind PATTERN A", "UNKNOWN_COLUMN", "kind is not a column of t. It has: ts, type"),
        ("FROM orders, payments PATTERN orders ; ‸A", "UNKNOWN_TYPE", "The types are: orders, payments"),
        ("FROM orders PATTERN orders ; ‸A", "NO_TYPE_COLUMN", "DEFINE A AS"),
        ("FROM orders DEFINE High AS price > 1 PATTERN High ; ‸Hugh", "UNKNOWN_TYPE", "Did you mean High?"),
        ("FROM db.‸x.t PATTERN A".replace("db.‸x", "‸db.x"), "UNKNOWN_SOURCE", "no table or view db.x.t"),
        ("FROM ‸`t t` PATTERN A", "UNKNOWN_SOURCE", "no table or view t t"),
        ("‸PATTERN ANY", "NO_SOURCE", "(ANY)"),
    ],
)
def test_errors(marked: str, condition: str, fragment: str) -> None:
    check_error(marked + END, condition, fragment)


def test_short_names_are_not_taken_for_misspelt() -> None:
    assert types("FROM orders DEFINE A AS price > 1 PATTERN A ; B") == {"A": "(`price` > 1)", "B": "TRUE"}


def test_a_dataframe_and_from() -> None:
    text = "FROM t PATTERN A a ORDER BY ts RETURN *"
    with pytest.raises(BindError) as caught:
        bind(parse(text), SchemaCatalog(SCHEMAS), (Column("type", "string"), Column("ts", "timestamp")))
    assert caught.value.condition == "FROM_BESIDE_DATAFRAME"
    assert (caught.value.line, caught.value.column) == (1, 1)
    assert "Leave FROM out" in str(caught.value)
