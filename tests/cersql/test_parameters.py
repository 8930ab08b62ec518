"""Parameters are filled in as text where an operand can stand, and never where a pattern has the operator."""

from __future__ import annotations

import pytest

from cersql.errors import BindError
from cersql.statements.parameters import check_no_markers, fill, fill_markers, marker_values, uses
from runtime.errors import Span


class Values(dict[str, str]):
    """A value for every name."""

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str) -> str:
        return "9"


def filled(text: str) -> str:
    return fill_markers(text, [Span(0, len(text))], Values()).text


# ---------------------------------------------------------------- markers


@pytest.mark.parametrize(
    "text",
    [
        "PATTERN A :B RETURN *",
        "PATTERN A a :B b RETURN *",
        "PATTERN A+ :B RETURN *",
        "PATTERN A + :B RETURN *",
        "PATTERN A* :B : C? :D RETURN *",
        "PATTERN A{2} :B RETURN *",
        "PATTERN A? ; B ? RETURN *",
        "PATTERN A :+ RETURN *",
        "PATTERN (A ; B) :C RETURN *",
        "PATTERN ANY :B RETURN *",
        "PATTERN ANY ?; Time :B RETURN *",
        "PATTERN Order :Ship ; Time :B RETURN *",
        "PATTERN LAST :START ; End :Group RETURN *",
        "PATTERN PROJECT(x, y :A x) RETURN *",
        "PATTERN PROJECT(x, y(a) :A x) RETURN *",
        "PATTERN (A ; B WITHIN 5) :C RETURN *",
        "PATTERN SEQ(A FILTER v > 5, B ? , C) RETURN *",
        "PATTERN A FILTER v > 5 ; B+ :C RETURN *",
        "PATTERN (A a FILTER a.v IN (SELECT v FROM t WHERE v > 1)) ; B* :C RETURN *",
        "PATTERN A a WHERE a.x::int > 5 RETURN *",
        "PATTERN A a WHERE a.v:field = 5 AND v:field = 5 RETURN a.v:x",
        "PATTERN A a WHERE a.arr[0]:field = 5 AND f(a.x):y = 1 RETURN *",
        "DEFINE A AS time:field = 5 PATTERN A RETURN *",
        "PATTERN A a WHERE a.x = ':p' AND a.y = '?' -- :p ?\n /* :p ? */ RETURN a.x AS `:p`",
    ],
)
def test_what_a_pattern_or_a_path_has_is_no_marker(text: str) -> None:
    assert filled(text) == text
    check_no_markers(text, [Span(0, len(text))])
    assert fill_markers(text, [Span(0, len(text))], []).text == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("WHERE a.x > :p", "WHERE a.x > 9"),
        ("WHERE a.x >:p AND :q < a.y", "WHERE a.x >9 AND 9 < a.y"),
        ("WHERE a.x BETWEEN :p AND :q OR NOT :r", "WHERE a.x BETWEEN 9 AND 9 OR NOT 9"),
        ("WHERE a.x IN (:p, :q)", "WHERE a.x IN (9, 9)"),
        ("WHERE a.x LIKE :p", "WHERE a.x LIKE 9"),
        ("WHERE a.x + :p * :q - :r > 1", "WHERE a.x + 9 * 9 - 9 > 1"),
        ("WHERE a.arr[:p] & :q = 1", "WHERE a.arr[9] & 9 = 1"),
        ("WHERE exists(a.arr, z -> z > :p)", "WHERE exists(a.arr, z -> z > 9)"),
        ("WHERE transform(a.arr, z -> :p)", "WHERE transform(a.arr, z -> 9)"),
        ("WHERE CASE WHEN :p THEN :q ELSE :r END", "WHERE CASE WHEN 9 THEN 9 ELSE 9 END"),
        ("WHERE a.x::int > :p", "WHERE a.x::int > 9"),
        ("WHERE a.v:field > :field", "WHERE a.v:field > 9"),
        ("WHERE a.x = :limit AND a.y = :from", "WHERE a.x = 9 AND a.y = 9"),
        ("WHERE :p < a.x", "WHERE 9 < a.x"),
        ("WITHIN :p MINUTES", "WITHIN 9 MINUTES"),
        ("WITHIN < :p", "WITHIN < 9"),
        ("RETURN a.x, :p AS p LIMIT :n", "RETURN a.x, 9 AS p LIMIT 9"),
        ("HAVING :p < 1", "HAVING 9 < 1"),
        ("PATTERN A{:p}", "PATTERN A{9}"),
        ("PATTERN A{:p,:q} :B", "PATTERN A{9,9} :B"),
        ("PATTERN A :{:p} :B", "PATTERN A :{9} :B"),
        ("PATTERN (A ; B WITHIN :p) :C", "PATTERN (A ; B WITHIN 9) :C"),
        ("PATTERN A a FILTER a.x > :p ; B :C", "PATTERN A a FILTER a.x > 9 ; B :C"),
        ("PATTERN SEQ(A FILTER v + :p > f(:q, :r), B+ :C)", "PATTERN SEQ(A FILTER v + 9 > f(9, 9), B+ :C)"),
        ("PATTERN A WHERE a.x IN (SELECT :p FROM t) WITHIN 5", "PATTERN A WHERE a.x IN (SELECT 9 FROM t) WITHIN 5"),
    ],
)
def test_markers(text: str, expected: str) -> None:
    assert filled(text) == expected
    named = [name for name in ("p", "q", "r", "n", "field", "limit", "from") if f":{name}" in text]
    assert named
    in_order = text if "v:field" in text else _in_order(text)
    if "?" in in_order:
        places = in_order.count("?")
        assert fill_markers(in_order, [Span(0, len(text))], ["9"] * places).text == expected


def _in_order(text: str) -> str:
    for name in ("p", "q", "r", "n", "limit", "from"):
        text = text.replace(f":{name}", "?")
    return text


def test_around_the_queries_named_markers_stay_and_those_in_order_are_counted() -> None:
    sql = "SELECT x & ?, :p FROM (PATTERN A? ; B WHERE b.x = ? RETURN *) WHERE y = ? AND x % ? = 1"
    query = Span(sql.index("PATTERN"), sql.index(") WHERE"))
    text = fill_markers(sql, [query], ["1", "2", "3", "-4"]).text
    assert text == "SELECT x & 1, :p FROM (PATTERN A? ; B WHERE b.x = 2 RETURN *) WHERE y = 3 AND x % (-4) = 1"
    named = sql.replace("?", ":p").replace("A:p", "A?")
    query = Span(named.index("PATTERN"), named.index(") WHERE"))
    assert fill_markers(named, [query], {"p": "1"}).text == named.replace("b.x = :p", "b.x = 1")


def test_the_values_of_the_markers_of_a_statement() -> None:
    sql = "SELECT x & ?, y | ? FROM v LATERAL VIEW explode(?) WHERE k = ?"
    values = marker_values(sql, (), ["1", "2", "3", "4"])
    assert values[sql.rindex("?")] == ("4", len(sql))
    assert sorted(value for value, _ in values.values()) == ["1", "2", "3", "4"]
    sql = "SELECT * FROM v WHERE k = :k AND data:k = :other"
    assert marker_values(sql, (), {"k": "-7"}) == {sql.index(":k"): ("(-7)", sql.index(":k") + 2)}
    assert marker_values(sql, (), None) == {}


@pytest.mark.parametrize(
    ("text", "arguments", "condition", "at", "hint"),
    [
        ("WHERE a.x > :p", {"q": "1", "pp": "2"}, "UNBOUND_PARAMETER", ":p", "args has: q, pp. Did you mean pp?"),
        ("WHERE a.x = ? OR a.y = ?", ["1"], "UNBOUND_PARAMETER", "?", "Give its value: spark.sql(text, args=[…])."),
        ("WHERE a.x = ?", ["1", "2"], "ARGUMENT_COUNT", None, None),
    ],
)
def test_a_value_too_few_or_too_many(
    text: str, arguments: dict[str, str] | list[str], condition: str, at: str | None, hint: str | None
) -> None:
    with pytest.raises(BindError) as caught:
        fill_markers(text, [Span(0, len(text))], arguments)
    assert caught.value.condition == condition
    if at is not None:
        assert caught.value.span is not None
        assert caught.value.span.start == text.rindex(at)
        assert caught.value.hint == hint


def test_a_marker_without_any_values() -> None:
    text = "PATTERN A? ; B\nWHERE a.x > :p RETURN *"
    with pytest.raises(BindError) as caught:
        check_no_markers(text, [Span(0, len(text))])
    assert str(caught.value) == (
        "[UNBOUND_PARAMETER] The parameter :p has no value. (line 2, column 13)\n"
        "Give its value: spark.sql(text, args={'p': …}).\n\n"
        "WHERE a.x > :p RETURN *\n            ^"
    )
    check_no_markers(text, [Span(0, 14)])


# ---------------------------------------------------------------- places


@pytest.mark.parametrize("value", ["1", "'a long text'"])
def test_errors_are_led_back_to_the_text_as_written(value: str) -> None:
    text = "WHERE a.x = :p AND boom.x = :p"
    whole = fill_markers(text, [Span(0, len(text))], {"p": value})
    at = whole.text.index("boom")
    error = whole.original(BindError("UNKNOWN_VARIABLE", name="boom", span=Span(at, at + 4), text=whole.text))
    assert (error.text, error.span) == (text, Span(text.index("boom"), text.index("boom") + 4))
    at = whole.text.index(value)
    error = whole.original(BindError("UNKNOWN_VARIABLE", name="x", span=Span(at, at + len(value)), text=whole.text))
    assert error.span is not None
    assert error.span.start == text.index(":p")
    end = len(whole.text)
    error = whole.original(BindError("UNKNOWN_VARIABLE", name="x", span=Span(end, end), text=whole.text))
    assert error.span == Span(len(text), len(text))


def test_an_error_about_another_text_is_left_alone() -> None:
    whole = fill("a b", [(Span(0, 1), "xxx")])
    error = whole.original(BindError("UNKNOWN_VARIABLE", name="x", span=Span(2, 3), text="other"))
    assert (error.text, error.span) == ("other", Span(2, 3))
    assert whole.text == "xxx b"


# ---------------------------------------------------------------- declared parameters


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("PATTERN A a WHERE a.v > p RETURN *", "PATTERN A a WHERE a.v > <p> RETURN *"),
        ("PATTERN A a WHERE a.v > P OR `p` = f.p RETURN *", "PATTERN A a WHERE a.v > <p> OR <p> = <p> RETURN *"),
        ("PATTERN A a WHERE a.p > p.x AND p(1) RETURN a.p AS p", None),
        ("PATTERN A a WHERE g.p > 1 AND x.f.p = 1 RETURN *", None),
        ("PATTERN A a WHERE a.v = 'p' /* p */ RETURN *", None),
        ("PATTERN A{p} ; B{1,p} WITHIN p LIMIT p", "PATTERN A{[p]} ; B{1,[p]} WITHIN [p] LIMIT [p]"),
        ("PATTERN (A ; B WITHIN p) ; C WHERE a.v = p", "PATTERN (A ; B WITHIN [p]) ; C WHERE a.v = <p>"),
        (
            "PATTERN A a FILTER v > p ; B PARTITION BY p ORDER BY p",
            "PATTERN A a FILTER v > <p> ; B PARTITION BY p ORDER BY p",
        ),
        (
            "DEFINE A AS v > p PATTERN A RETURN p AS q, COUNT(a) + p",
            "DEFINE A AS v > <p> PATTERN A RETURN <p> AS q, COUNT(a) + <p>",
        ),
        (
            "PATTERN A WHERE a.v IN (SELECT p FROM p WHERE x = p)",
            "PATTERN A WHERE a.v IN (SELECT <p> FROM p WHERE x = <p>)",
        ),
    ],
)
def test_uses_of_a_declared_parameter(text: str, expected: str | None) -> None:
    found = uses(text, Span(0, len(text)), "p", "f")
    shown = fill(text, [(span, "[p]" if is_literal else "<p>") for span, is_literal in found]).text
    assert shown == (text if expected is None else expected)
