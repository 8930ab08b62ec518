"""RETURN, HAVING: expressions over the columns of a match."""

from __future__ import annotations

import re

import pytest
from queries import bound, check_error

from cersql.binding.aggregates import TABLE, Parts


def items(returned: str, pattern: str = "A a ; B+ b", rest: str = "") -> list[tuple[str | None, str]]:
    """(name, SQL) of the columns, `__cersql_var0` shortened to var0."""
    query = bound(f"FROM t PATTERN {pattern} {rest} ORDER BY ts RETURN {returned}")
    return [(output.name, re.sub(r"`?__cersql_(\w+?)`?(?=\W|$)", r"\1", output.sql.text)) for output in query.outputs]


LIST_A = "filter(array(var0), __e -> __e IS NOT NULL)"


@pytest.mark.parametrize(
    ("item", "name", "sql"),
    [
        ("a", "a", "var0"),
        ("A.V", "V", "var0.`v`"),
        ("b.v", "v", "var1.`v`"),
        ("b[].v", "v", "var1.`v`"),
        ("b[2].v", "v", "get(var1, 1).`v`"),
        ("a[1].v", "v", f"get({LIST_A}, 0).`v`"),
        ("a.s.f", None, "var0.`s`.f"),
        ("a.v AS x", "x", "var0.`v`"),
        ("a.v + 1", None, "var0.`v` + 1"),
        ("match_start", "match_start", "start"),
        ("MATCH_END - Match_Start", None, "end - start"),
        ("COUNT(*)", None, "CAST(size AS BIGINT)"),
        ("COUNT(1)", None, "CAST(size AS BIGINT)"),
        ("COUNT(b)", None, "walked0"),
        ("COUNT(b.v)", None, "walked0"),
        ("COUNT(b.v + 1)", None,
         "CAST(size(filter(transform(var1, __e1 -> __e1.`v` + 1), __v -> __v IS NOT NULL)) AS BIGINT)"),
        ("MAX(DISTINCT b.k)", None,
         "array_max(array_distinct(filter(transform(var1, __e1 -> __e1.`k`), __v -> __v IS NOT NULL)))"),
        ("COLLECT_LIST(a.v * b.v)", None,
         f"filter(flatten(transform({LIST_A}, __e1 -> transform(var1, __e2 -> __e1.`v` * __e2.`v`))), "
         "__v -> __v IS NOT NULL)"),
        ("FIRST(b)", None, "get(var1, 0)"),
        ("LAST(b).v", None, "get(var1, size(var1) - 1).`v`"),
        ("LAST(b.v)", None, "get(transform(var1, __e1 -> __e1.`v`), size(transform(var1, __e1 -> __e1.`v`)) - 1)"),
        ("'a.v' || current_date", None, "'a.v' || current_date"),
        ("transform(b.v, a -> a + 1)", None, "transform(var1.`v`, a -> a + 1)"),
        ("(SELECT max(a.v) FROM t a)", None, "(SELECT max(a.v) FROM t a)"),
    ],
)  # fmt: skip
def test_item(item: str, name: str | None, sql: str) -> None:
    assert items(item) == [(name, sql)]


def test_all_columns_of_a_variable() -> None:
    all_a = [name for name, _ in items("a.*")]
    assert all_a == ["ts", "type", "k", "v", "w", "name", "s", "arr", "m", "odd.name", "end", "date"]
    assert items("b[2].*")[3] == ("v", "get(var1, 1).`v`")
    assert items("FIRST(b).*")[3] == ("v", "get(var1, 0).`v`")


def test_star() -> None:
    assert items("*", rest="PARTITION BY k") == [
        ("k", "key0"), ("match_start", "start"), ("match_end", "end"), ("a", "var0"), ("b", "var1"),
    ]  # fmt: skip


def test_partition_columns() -> None:
    assert items("k, K + 1", rest="PARTITION BY k") == [("k", "key0"), (None, "key0 + 1")]
    assert items("SUM(b.v * k)", rest="PARTITION BY k")[0][1].count("key0") >= 1
    assert items("s.f, a.v", rest="PARTITION BY s") == [("f", "key0.`f`"), ("v", "var0.`v`")]


def test_columns_that_return_reads() -> None:
    query = bound("FROM t PATTERN A a ; B+ b ; C ORDER BY ts RETURN a.v, SUM(b.w), COUNT(C) HAVING FIRST(b.k) > 1")
    used = dict(zip((v.name for v in query.variables if v.mark[0] != "@"), query.used, strict=False))
    assert used == {"a": ("v",), "b": ("k", "w"), "C": ()}
    assert not query.uses_size
    assert bound("FROM t PATTERN A a ORDER BY ts RETURN COUNT(*)").uses_size


def test_having() -> None:
    query = bound("FROM t PATTERN A a ; B+ b ORDER BY ts RETURN * HAVING a.v > 1 AND COUNT(b) > 2")
    assert [sql.text for sql in query.having] == ["`__cersql_var0`.`v` > 1 AND `__cersql_walked0` > 2"]


@pytest.mark.parametrize(
    ("function", "type", "result"),
    [
        ("SUM", "int", "BIGINT"), ("SUM", "double", "DOUBLE"), ("SUM", "float", "DOUBLE"),
        ("SUM", "decimal(10,2)", "DECIMAL(20,2)"), ("SUM", "decimal(35,2)", "DECIMAL(38,2)"),
        ("AVG", "bigint", "DOUBLE"), ("AVG", "decimal(10,2)", "DECIMAL(14,6)"),
        ("SUM", "interval day to second", "interval day to second"),
    ],
)  # fmt: skip
def test_result_types_are_those_of_spark(function: str, type: str, result: str) -> None:
    text = TABLE[function].build(Parts(function, "x", (type,), result))
    assert f" AS {result})" in text
    assert "filter(x, __v -> __v IS NOT NULL)" in text


@pytest.mark.parametrize(
    ("marked", "condition", "fragment"),
    [
        ("FROM t PATTERN A+ a ORDER BY ts RETURN ‸a.* + 1", "EVENT_NOT_VALUE", "an item of its own"),
        ("FROM t PATTERN A+ a ORDER BY ts RETURN MAX(‸a)", "EVENT_NOT_VALUE", "a.ts"),
        ("FROM t PATTERN A+ a ORDER BY ts RETURN ‸MAX(a).v", "EVENT_NOT_VALUE", "Write MAX(a.v)"),
        ("FROM t PATTERN A+ a ORDER BY ts RETURN MAX(‸A)", "EVENT_NOT_VALUE", "A.ts"),
        ("FROM t PATTERN A+ a ORDER BY ts RETURN a.v, ‸x.y.z", "UNKNOWN_VARIABLE", "no variable x"),
        ("FROM t PATTERN A a ; (C ; B) AS g ORDER BY ts RETURN ‸w", "UNQUALIFIED_COLUMN", "a.w"),
    ],
)
def test_errors(marked: str, condition: str, fragment: str) -> None:
    check_error(marked, condition, fragment)
