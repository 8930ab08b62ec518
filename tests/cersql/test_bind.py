"""Names: what they stand for, by Spark's rules of case; and that what is not built is said so."""

from __future__ import annotations

import pytest
from queries import bound, check_error, filters, where

from cersql.api import SchemaCatalog
from cersql.binding.bind import bind
from cersql.binding.scope import Names, fold_case
from cersql.language.parse import parse

END = " ORDER BY ts RETURN *"


def formula(pattern: str, condition: str = "1 = 1", case_sensitive: bool = False) -> str:
    return filters(bound(where(condition, pattern), case_sensitive=case_sensitive).formula).removesuffix(
        " | None: 1 = 1"
    )


# ---------------------------------------------------------------- case


def test_folding_is_that_of_spark() -> None:
    assert fold_case("PriCE") == "price"
    assert fold_case("ÉTÉ") == fold_case("été")
    assert fold_case("straße") != fold_case("STRASSE")
    assert len(fold_case("ﬁİ")) == 2  # letter by letter


def test_variables_and_columns_without_case() -> None:
    assert (
        formula("A a ; B b", "a.V = 1 AND B.v = 2 AND A.`Odd.Name` = 3")
        == "(a ; b) | a: v = 1 | b: v = 2 | a: odd.name = 3"
    )
    query = bound("FROM T PATTERN A Big ; B b ; A BIG PARTITION BY K ORDER BY TS RETURN *")
    assert [v.name for v in query.variables if not v.mark.startswith("@")] == ["Big", "b"]
    assert (query.partition_by, query.order_by[0].column) == (("k",), "ts")


def test_case_matters_where_the_session_says_so() -> None:
    assert formula("A x ; B X", "x.v = 1 AND X.v = 2", case_sensitive=True) == "(x ; X) | x: v = 1 | X: v = 2"
    check_error("FROM t PATTERN A a WHERE ‸B.v = 1" + END, "UNKNOWN_VARIABLE", case_sensitive=True)
    check_error("FROM t PATTERN A x WHERE ‸X.v = 1" + END, "UNKNOWN_VARIABLE", "Did you mean x?", case_sensitive=True)
    check_error("FROM t PATTERN A a WHERE a.‸V = 1" + END, "UNKNOWN_COLUMN", "Did you mean v?", case_sensitive=True)
    check_error("FROM ‸T PATTERN A a" + END, "UNKNOWN_SOURCE", "Did you mean t?", case_sensitive=True)
    check_error("FROM t PATTERN A a PARTITION BY ‸K" + END, "UNKNOWN_COLUMN", "Did you mean k?", case_sensitive=True)


def test_names_keep_their_own_spelling() -> None:
    names = Names(["Price", "SIZE"], case_sensitive=False)
    assert list(names) == ["Price", "SIZE"]
    assert names.get("price") == "Price"
    assert Names(["Price"], case_sensitive=True).get("price") is None


def test_a_name_behind_a_part_is_no_type() -> None:
    """The habit of MATCH_RECOGNIZE, where A B is a sequence."""
    defined = "FROM t DEFINE A AS v > 1, B AS v < 1 PATTERN "
    check_error(defined + "(A+ ‸B)" + END, "ALIAS_IS_TYPE", "A : B (immediately) or A -> B", "B1")
    check_error(defined + "A ‸B" + END, "ALIAS_IS_TYPE", "A : B")
    check_error("FROM t AS A, t AS B PATTERN A ‸B" + END, "ALIAS_IS_TYPE", "A : B")
    assert bound(defined + "A x ; B y" + END)
    assert bound(defined + "A b" + END)  # another name: it has another case


def test_a_source_is_no_variable() -> None:
    check_error(
        "FROM t AS r PATTERN A a WHERE ‸r.v > 1" + END, "UNKNOWN_VARIABLE", "r is a source", "In scope are: a, A"
    )
    check_error("FROM t PATTERN A a WHERE ‸t.v > 1" + END, "UNKNOWN_VARIABLE", "t is a source")


def test_define_asks_one_row() -> None:
    text = "FROM t DEFINE A AS v > 1, B AS v > ‸A.v PATTERN A : B" + END
    check_error(text, "UNKNOWN_COLUMN", "What compares events stands in WHERE: B.x > A.x")
    check_error("FROM t DEFINE A AS v > 1, B AS v > ‸C.v PATTERN A : B" + END, "UNKNOWN_COLUMN", "It has: ")


def test_a_comparison_with_null_is_told() -> None:
    for text, instead in (("a.v <> NULL", "IS NOT NULL"), ("a.v = NULL", "IS NULL")):
        (warning,) = bound(f"FROM t PATTERN A a WHERE {text}" + END).warnings
        assert "never true" in warning
        assert f"write {instead}." in warning
    assert not bound("FROM t PATTERN A a WHERE a.v IS NOT NULL OR a.v <=> NULL" + END).warnings


# ---------------------------------------------------------------- types and aliases


def test_a_type_stands_for_all_its_events() -> None:
    query = bound("FROM t PATTERN H x ; H y ; T z WHERE H.v > 1 AND t.v > 2 ORDER BY ts RETURN COUNT(H)")
    assert filters(query.formula).count("@H: v > 1") == 1
    assert filters(query.formula).endswith("| @T: v > 2")
    assert [(v.name, v.single) for v in query.variables if v.mark == "@H"] == [("H", False)]
    assert [(v.name, v.single) for v in query.variables if v.mark == "@T"] == [("T", True)]


def test_return_star_has_no_column_for_a_type_under_aliases() -> None:
    query = bound("FROM t PATTERN A x ; B ; ANY ; (C y OR B) AS g ORDER BY ts RETURN *")
    assert [output.name for output in query.outputs] == ["match_start", "match_end", "x", "B", "ANY", "y", "g"]


def test_an_alias_like_its_own_type() -> None:
    assert formula("A a ; B b", "A.v = 1") == "(a ; b) | a: v = 1"
    assert formula("A AS A ; B", "a.v = 1 AND B.v = 2") == "(A ; B) | A: v = 1 | B: v = 2"
    assert formula("(A a)+ ; A+ a", "A.v = 1") == "(a+ ; a+) | a: v = 1"


@pytest.mark.parametrize(
    "marked",
    [
        "FROM t PATTERN A ‸b ; B c" + END,  # another type
        "FROM t PATTERN A ‸a ; A" + END,  # a bare one of its own
        "FROM t PATTERN (A ; B) AS ‸a" + END,
        "FROM t PATTERN A x ; (A y ; B) AS ‸a" + END,  # an alias of a group is nobody's own
        "FROM t PATTERN A ‸a ; (B x ; C) AS a" + END,
        "FROM t PATTERN SELL ‸sell ; sell x" + END,  # two types, one of them its own
    ],
)
def test_an_alias_like_another_type(marked: str) -> None:
    check_error(marked, "ALIAS_IS_TYPE", "looks like the event type")


def test_types_that_differ_in_case() -> None:
    types = dict(bound("FROM t PATTERN Sell x ; SELL y WHERE Sell.v > 1 AND SELL.v > 2" + END).types)
    assert types == {"Sell": "`type` = 'Sell'", "SELL": "`type` = 'SELL'"}
    check_error("FROM t PATTERN Sell x ; SELL y WHERE ‸sell.v > 1" + END, "UNKNOWN_VARIABLE", "x, y, Sell, SELL")


def test_variables_called_like_keywords_and_functions() -> None:
    assert formula("A order ; B end ; C date", "order.v = 1 AND end.end = 2 AND date.date = DATE '2020-01-01'") == (
        "((order ; end) ; date) | order: v = 1 | end: end = 2 | date: date = DATE '2020-01-01'"
    )
    assert formula("A first ; B last ; C year", "first.v = year(first.ts) AND year.v = 1") == (
        "((first ; last) ; year) | first: v = year(ts) | year: v = 1"
    )
    assert formula("A größe ; B été", "GRÖßE.v = 1 AND ÉTÉ.v = 2") == "(größe ; été) | größe: v = 1 | été: v = 2"


def test_columns_of_a_variable() -> None:
    query = bound("FROM orders AS o, payments AS p PATTERN o x ; p y ; (o OR p) AS z ORDER BY ts RETURN *")
    columns = {v.name: v.columns for v in query.variables}
    assert columns["x"] == ("ts", "id", "price")
    assert columns["y"] == ("ts", "id", "paid")
    assert columns["z"] == ("ts", "id", "price", "paid")
    check_error("FROM orders AS o, payments AS p PATTERN o x ; p y WHERE x.‸paid > 1" + END, "UNKNOWN_COLUMN", "price")
    check_error("FROM orders AS o, payments AS p PATTERN o x ; p y WHERE x[‸paid > 1]" + END, "UNKNOWN_COLUMN", "of x")


# ---------------------------------------------------------------- scopes

T = "FROM t PATTERN "


@pytest.mark.parametrize(
    ("marked", "condition", "fragment"),
    [
        (T + "A a ; (B b FILTER ‸a.v > 1)" + END, "UNKNOWN_VARIABLE", "In scope are: b, B"),
        (T + "(A a ; B b) FILTER ‸c.v > 1" + END, "UNKNOWN_VARIABLE", "In scope are: a, b, A, B"),
        (T + "A a WHERE a[‸x.v > 1]" + END, "UNKNOWN_COLUMN", "x is not a column of a"),
        (T + "A a WHERE a[s.f > 1 AND ‸vv.f > 1]" + END, "UNKNOWN_COLUMN", "vv is not a column of a"),
        ("FROM t DEFINE A AS ‸x.v > 1 " + "PATTERN A" + END, "UNKNOWN_COLUMN", "x is not a column of the sources"),
        ("FROM t DEFINE A AS A.‸vv > 1 PATTERN A" + END, "UNKNOWN_COLUMN", "vv is not a column of the sources"),
        ("FROM t DEFINE A AS v > 1, B AS t.‸vv > 1 PATTERN A" + END, "UNKNOWN_COLUMN", "vv"),
        (T + "A a PARTITION BY ‸kk" + END, "UNKNOWN_COLUMN", "Did you mean k?"),
        (T + "A a PARTITION BY ‸a.k" + END, "UNKNOWN_COLUMN", "write PARTITION BY k"),
        (T + "A a PARTITION BY ‸q.k" + END, "UNKNOWN_COLUMN", "q is not a column"),
        (T + "A a PARTITION BY t.‸kk" + END, "UNKNOWN_COLUMN", "Did you mean k?"),
        (T + "A a ORDER BY ‸tss RETURN *", "UNKNOWN_COLUMN", "Did you mean ts?"),
        (T + "A a ORDER BY ts, ‸a.v RETURN *", "UNKNOWN_COLUMN", "write ORDER BY v"),
        (T + "A a ORDER BY ts RETURN a.v, ‸c.v", "UNKNOWN_VARIABLE", "In scope are: a, A"),
        (T + "A a ORDER BY ts RETURN a.‸vv", "UNKNOWN_COLUMN", "Did you mean v?"),
        (T + "A a ORDER BY ts RETURN ‸v", "UNQUALIFIED_COLUMN", "a.v"),
        (T + "A a ORDER BY ts RETURN SUM(‸v)", "UNQUALIFIED_COLUMN", "a.v"),
        (T + "A a ORDER BY ts RETURN SUM(a.‸vv)", "UNKNOWN_COLUMN", "Did you mean v?"),
        (T + "A a ORDER BY ts RETURN * HAVING COUNT(‸c) > 1", "UNKNOWN_VARIABLE", "a, A"),
        (T + "A a ORDER BY ts RETURN * HAVING a.‸vv > 1", "UNKNOWN_COLUMN", "v"),
        (T + "A a ; A b ORDER BY ts RETURN ‸A.v", "AMBIGUOUS_VARIABLE", "rename a"),
        (T + "A a WHERE a.v > ‸t.w" + END, "UNKNOWN_VARIABLE", "no variable t"),
        (T + "ANY ; A WHERE ‸b.v > 1" + END, "UNKNOWN_VARIABLE", "In scope are: ANY, A"),
    ],
)
def test_scope(marked: str, condition: str, fragment: str) -> None:
    check_error(marked, condition, fragment)


def test_definitions_by_any_owner() -> None:
    query = bound("FROM t AS src DEFINE v AS v > 1 AND V.w > 2 AND src.k = 3 AND s.f = 4 PATTERN v x" + END)
    assert dict(query.types) == {"v": "(`v` > 1 AND `w` > 2 AND `k` = 3 AND `s`.`f` = 4)"}
    assert query.reads == ("k", "v", "w", "s")


def test_a_struct_called_like_its_type() -> None:
    assert dict(bound("FROM t DEFINE s AS s.f > 1 PATTERN s" + END).types) == {"s": "(`s`.`f` > 1)"}


def test_a_mistake_in_an_unused_definition() -> None:
    check_error("FROM t DEFINE A AS v > 1, B AS ‸q.v > 1 PATTERN A" + END, "UNKNOWN_COLUMN")


# ---------------------------------------------------------------- order


def test_order_by_default() -> None:
    tree = parse("FROM t PATTERN A a RETURN *")
    query = bind(tree, SchemaCatalog({"t": {"TS": "timestamp", "type": "string", "n": "int"}}), order_by="ts, `n`")
    assert [order.column for order in query.order_by] == ["TS", "n"]


def test_nulls_last_is_kept_but_for_the_first() -> None:
    query = bound("FROM t PATTERN A ORDER BY ts NULLS LAST, k NULLS LAST, v RETURN *")
    assert [order.nulls_last for order in query.order_by] == [False, True, False]


@pytest.mark.parametrize(
    ("type", "fine"),
    [
        ("map<string,int>", False), ("array<map<int,int>>", False), ("struct<a:variant>", False), ("variant", False),
        ("interval", False), ("interval year to month", True), ("interval day to second", True), ("binary", True),
        ("struct<map:int>", True), ("array<struct<a:int>>", True), ("string collate UNICODE_CI", True),
    ],
)  # fmt: skip
def test_what_can_be_ordered(type: str, fine: bool) -> None:
    schemas = {"t": {"ts": "timestamp", "type": "string", "x": type}}
    if fine:
        assert len(bound("FROM t PATTERN A ORDER BY ts, x RETURN *", schemas).order_by) == 2
    else:
        check_error("FROM t PATTERN A ORDER BY ts, ‸x RETURN *", "NOT_ORDERABLE", type, schemas=schemas)


def test_the_first_of_the_order_has_no_collation() -> None:
    for type, fine in (("string", True), ("string collate UTF8_BINARY", True), ("string collate UNICODE_CI", False)):
        schemas, query = {"t": {"x": type, "type": "string"}}, "FROM t PATTERN A ORDER BY {}x RETURN *"
        if fine:
            assert len(bound(query.format(""), schemas).order_by) == 1
        else:
            check_error(query.format("‸"), "NOT_SUPPORTED_YET", "with a collation", schemas=schemas)


# ---------------------------------------------------------------- what is not built yet

UNBUILT = [
    ("FROM t PATTERN A+ a ORDER BY ts RETURN ‸PREV(a.v)", "PREV"),
    ("FROM t PATTERN A+ a ORDER BY ts RETURN ‸a[i-1].v", "a[i-1].v, a neighbouring event,"),
    ("FROM t PATTERN A+ a ORDER BY ts RETURN SUM(‸MAX(a.v) + a.w)", "An aggregate inside another"),
    ("FROM t PATTERN A+ a ORDER BY ts RETURN SUM(‸a[1].v)", "a[1].v, one event, inside an aggregate"),
    ("FROM t PATTERN A+ a ORDER BY ts RETURN ‸SUM(1)", "SUM of no variable"),
    ("FROM t PATTERN A+ a ORDER BY ts RETURN SUM(‸SUM(a.v))", "An aggregate inside another"),
    ("FROM t PATTERN A+ a ORDER BY ts RETURN ‸FIRST(1)", "FIRST of no variable"),
    ("FROM t PATTERN A a ; B b ORDER BY ts RETURN ‸FIRST(a.v + b.v)", "FIRST over several variables"),
    ("FROM t PATTERN A+ a ORDER BY ts RETURN ‸a[v > 1]", "x[condition] in RETURN"),
    ("FROM t PATTERN A+ a WHERE ‸a[v > 1] OR COUNT(a) = 1" + END, "x[condition] beside an aggregate"),
    ("FROM t PATTERN A+ a ORDER BY ts RETURN a.* AS ‸x", "A name for several columns"),
    ("FROM t PATTERN A+ a WHERE a.v > rank() ‸OVER (ORDER BY a.v)" + END, "A window function (OVER) in a condition"),
    ("FROM t DEFINE A AS lag(v) ‸OVER (ORDER BY ts) > 1 PATTERN A" + END, "A window function"),
    ("FROM t DEFINE A AS v > ‸PREV(v) PATTERN A" + END, "PREV in a condition on one row"),
    ("FROM t DEFINE A AS v > ‸LAST(A.v, 1) PATTERN A" + END, "LAST in a condition on one row"),
    ("FROM t DEFINE A AS ‸sum(v) > 1 PATTERN A" + END, "SUM in a condition on one row"),
    ("FROM t DEFINE A AS ‸A[1].v > 1 PATTERN A" + END, "A[1].v in a condition on one row"),
    ("FROM t PATTERN A a WHERE a[v > ‸avg(v)]" + END, "AVG in a condition on one row"),
]


@pytest.mark.parametrize(("marked", "construct"), UNBUILT, ids=[marked for marked, _ in UNBUILT])
def test_not_supported_yet(marked: str, construct: str) -> None:
    check_error(marked, "NOT_SUPPORTED_YET", construct)


# ---------------------------------------------------------------- warnings


def test_filter_of_the_last_part_alone() -> None:
    query = bound("FROM t PATTERN A a ; B:+ b FILTER b.v > 1" + END)
    assert query.warnings == (
        "FILTER binds B:+ b alone; for a condition on the whole pattern write WHERE, or (…) FILTER.",
    )
    assert bound("FROM t PATTERN A a -> B b FILTER b.v > 1" + END).warnings
    for pattern in (
        "A a ; (B b FILTER b.v > 1)",
        "SEQ(A a, B b FILTER b.v > 1)",
        "(A a ; B b) FILTER b.v > 1",
        "B b FILTER b.v > 1",
    ):
        assert not bound(f"FROM t PATTERN {pattern}{END}").warnings


def test_a_type_that_matches_every_row() -> None:
    query = bound("FROM t DEFINE Big AS v > 1 PATTERN Big ; Other ; Big ; Other" + END)
    assert query.warnings[0] == "Other is neither defined nor a source: it matches every row."
    assert dict(query.types)["Other"] == "TRUE"
