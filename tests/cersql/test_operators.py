"""All operators of CEL as formulas: quantifiers, AND, ALL, UNLESS, START, strategies, PROJECT, WITHIN inside."""

from __future__ import annotations

import pytest
from queries import bound, check_error

from cersql.binding.formulas import MANY, always, occurrences, own_types, shown_marks, size, together
from planner.formula import Formula
from planner.query import Query

END = " ORDER BY ts RETURN *"


def query(pattern: str, rest: str = "") -> Query:
    return bound(f"FROM t PATTERN {pattern} {rest} ORDER BY ts RETURN *")


def line(formula: Formula) -> str:
    """The formula in one line, by depth: `;( A / a, B / b )`."""
    shown = formula.show().splitlines()
    text, depth = "", 0
    for row in shown:
        level = (len(row) - len(row.lstrip())) // 2
        text += (
            " (" * (level - depth) + " )" * (depth - level) + (", " if text and level <= depth else " ") + row.strip()
        )
        depth = level
    return (text + " )" * depth).replace(" ,", ",").replace("`", "").strip()


def formula(pattern: str, rest: str = "") -> str:
    return line(query(pattern, rest).formula)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("A ; B? ; C", "; ( ; ( A / A, {0,1} ( B / B ) ), C / C )"),
        ("A ; B* ; C", "; ( ; ( A / A, {0,} ( B / B ) ), C / C )"),
        ("A{3}", "{3,3} ( A / A )"),
        ("A{1}", "A / A"),
        ("A{1,}", "+ ( A / A )"),
        ("A:{1,}", ":+ ( A / A )"),
        ("A{0,2} ; B", "; ( {0,2} ( A / A ), B / B )"),
        ("(A ; B):{2,3}", ":{2,3} ( ; ( A / A, B / B ) )"),
        ("A:{2,} x", ":{2,} ( A / @A, x )"),
        ("A{2} AS x", "{2,2} ( A / @A, x )"),
        ("A ; B* b[] ; C", "; ( ; ( A / A, {0,} ( B / @B, b ) ), C / C )"),
        ("(A ; B)? ; C", "; ( {0,1} ( ; ( A / A, B / B ) ), C / C )"),
        ("A : B? : C", ": ( : ( A / A, {0,1} ( B / B ) ), C / C )"),
        ("(B+)? ; A", "; ( {0,1} ( + ( B / B ) ), A / A )"),
        ("A AND A", "AND ( A / A, A / A )"),
        ("A ALL B ALL C", "ALL ( ALL ( A / A, B / B ), C / C )"),
        ("ALL(A, B)", "ALL ( A / A, B / B )"),
        ("A UNLESS B", "UNLESS (the second is the veto) ( A / A, B / B )"),
        ("A UNLESS B UNLESS C",
         "UNLESS (the second is the veto) ( UNLESS (the second is the veto) ( A / A, B / B ), C / C )"),
        ("START(A ; B)", "START ( ; ( A / A, B / B ) )"),
        ("STRICT(A)", "STRICT ( A / A )"), ("NXT(A)", "NXT ( A / A )"),
        ("LAST(A)", "LAST ( A / A )"), ("MAX(A)", "MAX ( A / A )"),
        ("A ; NXT(B ; C)", "; ( A / A, NXT ( ; ( B / B, C / C ) ) )"),
        ("(A ; B WITHIN 5 EVENTS) ; C", "; ( WITHIN 5 EVENTS ( ; ( A / A, B / B ) ), C / C )"),
        ("(A ; B WITHIN < 2 SECONDS)", "WITHIN 1999999 ( ; ( A / A, B / B ) )"),
        ("PROJECT(x : A x ; B y)", "PROJECT x ( ; ( A / @A, x, B / @B, y ) )"),
        ("PROJECT(A, y : A ; B y)", "PROJECT A, y ( ; ( A / A, B / @B, y ) )"),
        ("PROJECT(H : H h1 ; H h2)", "PROJECT @H ( ; ( H / @H, h1, H / @H, h2 ) )"),
        ("PROJECT(H : H ; H h2)", "PROJECT @H, H ( ; ( H / @H, H, H / @H, h2 ) )"),
        ("PROJECT(g : (A ; B) AS g)", "PROJECT g ( AS g ( ; ( A / A, B / B ) ) )"),
    ],
)  # fmt: skip
def test_operator(pattern: str, expected: str) -> None:
    assert formula(pattern) == expected


def test_an_or_of_conditions_is_one_filter() -> None:
    assert formula("A a ; B b", "WHERE a.v > 1 OR b.v > 2 OR a.w = 3") == (
        "FILTER a: (v > 1) OR (w = 3) OR b: v > 2 ( ; ( A / @A, a, B / @B, b ) )"
    )


# ---------------------------------------------------------------- zero copies


@pytest.mark.parametrize(
    "pattern", ["A? ; B", "(A? OR B) ; C", "(A?)+ ; B", "(A* AS x) ; B", "(A ; B?)+", "(A a? FILTER a.v > 1) ; B"]
)
def test_zero_copies_may_pass(pattern: str) -> None:
    query(pattern)


@pytest.mark.parametrize(
    ("marked", "construct"),
    [
        ("‸A?", "a match"), ("‸A* ; B*", "a match"), ("‸(A?)+", "a match"), ("‸A OR B?", "a match"),
        ("A AND ‸B?", "each side of AND"), ("‸A* UNLESS B", "each side of UNLESS"),
        ("A UNLESS ‸B*", "each side of UNLESS"),
        ("A ; !‸B? ; C", "a '!'"), ("A ; START(‸B?)", "START(…)"), ("A ; MAX(‸B* ; C*)", "MAX(…)"),
        ("A ; PROJECT(b : ‸B? b)", "PROJECT"), ("A ; (‸B? WITHIN 5 EVENTS)", "WITHIN"),
    ],
)  # fmt: skip
def test_zero_copies_may_not_stand(marked: str, construct: str) -> None:
    check_error(f"FROM t PATTERN {marked}{END}", "MAY_BE_EMPTY", f"{construct} needs an event")


# ---------------------------------------------------------------- PROJECT


def columns(of: Query) -> dict[str, tuple[str, ...]]:
    return {variable.name: variable.columns for variable in of.variables if not variable.mark.startswith("@")}


def test_project_narrows_variables_and_columns() -> None:
    narrowed = query("PROJECT(x(V, w), y : (A x ; B y ; C z) AS g)")
    assert columns(narrowed) == {"x": ("v", "w"), "y": columns(query("A x ; B y"))["y"]}
    assert [output.name for output in narrowed.outputs] == ["match_start", "match_end", "x", "y"]


def test_conditions_inside_project_see_everything() -> None:
    inside = query("PROJECT(x(v) : (A x ; B y) FILTER x.k = 1 AND y.v > 2)", "WHERE x.v > 1")
    assert line(inside.formula).startswith("FILTER x: v > 1 ( PROJECT x ( FILTER y: v > 2")
    assert set(inside.reads) >= {"k", "v"}


def test_columns_of_a_variable_in_two_places() -> None:
    """One place without PROJECT: an event of x can have all columns."""
    both = query("PROJECT(x(v) : A x) ; (A x FILTER x.k = 1)")
    assert "k" in columns(both)["x"]
    assert columns(query("PROJECT(x(v) : A x) ; PROJECT(x(w) : B x)"))["x"] == ("v", "w")
    assert columns(query("PROJECT(x(v) : PROJECT(x(v, w) : A x))"))["x"] == ("v",)
    assert columns(query("PROJECT(x(v) : A x ; B) AS g")) == {"x": ("v",), "g": ("v",)}


@pytest.mark.parametrize(
    ("marked", "condition", "fragment"),
    [
        ("FROM t PATTERN PROJECT(x(v) : A x) WHERE x.‸w > 1" + END, "UNKNOWN_COLUMN", "It has: v"),
        ("FROM t PATTERN PROJECT(x(v) : A x) ORDER BY ts RETURN x.‸w", "UNKNOWN_COLUMN", "It has: v"),
        ("FROM t PATTERN PROJECT(x(v) : A x) ORDER BY ts RETURN x.‸w", "UNKNOWN_COLUMN", "PROJECT keeps only some"),
        ("FROM t PATTERN PROJECT(x(‸vv) : A x)" + END, "UNKNOWN_COLUMN", "Did you mean v?"),
        ("FROM t PATTERN PROJECT(‸xx : A x)" + END, "UNKNOWN_VARIABLE", "Did you mean x?"),
        ("FROM t PATTERN PROJECT(‸y : A x) ; B y" + END, "UNKNOWN_VARIABLE", "In scope are: x"),
        ("FROM t PATTERN PROJECT(x : A x ; B y) WHERE ‸y.v > 1" + END, "UNKNOWN_VARIABLE", "In scope are: x"),
        ("FROM t PATTERN PROJECT(x : A x ; B y) ORDER BY ts RETURN ‸y.v", "UNKNOWN_VARIABLE", "In scope are: x"),
        ("FROM t PATTERN PROJECT(x : A x ; B y) ORDER BY ts RETURN ‸Y.v", "UNKNOWN_VARIABLE", "PROJECT drops Y; to"),
        ("FROM t PATTERN PROJECT(x : A x ; B y) ORDER BY ts RETURN ‸B.v", "UNKNOWN_VARIABLE", "PROJECT drops B; to"),
        ("FROM t PATTERN (PROJECT(x : A x ; B y) ; C) FILTER ‸y.v > 1" + END, "UNKNOWN_VARIABLE", "PROJECT drops y"),
        (
            "FROM t PATTERN PROJECT(x : A x ; B y) AFTER MATCH SKIP TO ‸y ORDER BY ts RETURN x.v",
            "UNKNOWN_VARIABLE",
            "PROJECT drops y",
        ),
        ("FROM t PATTERN PROJECT(x, ‸b : SEQ(A x, !B b, C))" + END, "NEGATED_VARIABLE", "b must not happen"),
        ("FROM t PATTERN PROJECT(x ‸y : A x)" + END, "UNEXPECTED_TOKEN", "columns in parentheses"),
        ("FROM t PATTERN PROJECT(x,‸ : A x)" + END, "UNEXPECTED_TOKEN", "a variable"),
        ("FROM t PATTERN PROJECT(x(‸) : A x)" + END, "UNEXPECTED_TOKEN", "a column"),
        ("FROM t PATTERN PROJECT(x(v ‸w) : A x)" + END, "UNEXPECTED_TOKEN", "a column"),
        ("FROM t PATTERN PROJECT(‸1 : A x)" + END, "UNEXPECTED_TOKEN", "a variable"),
    ],
)
def test_project_errors(marked: str, condition: str, fragment: str) -> None:
    check_error(marked, condition, fragment)


# ---------------------------------------------------------------- what the shape says


@pytest.mark.parametrize(
    ("pattern", "many"),
    [
        ("A? a ; B", ""), ("A* a ; B", "a"), ("A{2} a", "a"), ("A a ALL B b", ""), ("A x ALL B x", "x"),
        ("A+ x AND A x", ""), ("A+ x AND A+ x", "x"), ("SEQ(A x, !B b, C x)", "x"), ("A x UNLESS B b", ""),
        ("PROJECT(x : A x ; B+ y) AS g", ""), ("PROJECT(x, y : A x ; B y) AS g", "g"), ("NXT(A+ x)", "x"),
        ("(A x ; B y WITHIN 5 EVENTS) AS g", "g"), ("(A x? ; B y)", ""), ("((A x)? AS g) ; B", ""),
        ("(A x AND A x) AS g", ""), ("START(A x) AS g", ""), ("(A x ALL B y) AS g", "g"),
    ],
)  # fmt: skip
def test_occurrences(pattern: str, many: str) -> None:
    found = query(pattern)
    counts = occurrences(found.formula)
    assert {v for v, n in counts.items() if n >= MANY and v[0] != "@"} == set(many)
    assert {v.name for v in found.variables if not v.single and v.mark[0] != "@"} == set(many)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("A a ALL B b", {"ab"}), ("(A a ; B b) AND (A a ; B b)", {"ab"}), ("(A a OR B b)? ; C", set()),
        ("(A a OR B b){2}", {"ab"}), ("PROJECT(a, c : A a ; B b ; C c)", {"ac"}), ("SEQ(A a, !X x, B b)", {"ab"}),
        ("(A a OR B b) AND (A a OR B b)", set()),
    ],
)  # fmt: skip
def test_variables_that_occur_together(pattern: str, expected: set[str]) -> None:
    pairs = together(query(pattern).formula)
    assert {"".join(sorted(p)) for p in pairs if len(p) == 2 and not any(v[0] in "@C" for v in p)} == expected


def test_what_every_match_has() -> None:
    found = query("A a ; (B b OR B c) ; D* d ; (E e){2}").formula
    assert always(found, shown_marks) == {"a", "e"}
    assert always(found, own_types) == {"A", "B", "E"}
    assert size(found) == MANY


def test_order_of_columns() -> None:
    names = [o.name for o in query("SEQ(!X m, A z, !B n, C y) AS g", "WITHIN 5 EVENTS").outputs]
    assert names == ["match_start", "match_end", "z", "y", "g"]
    # the first B is negated: the column of the other stands where that does
    assert [o.name for o in query("SEQ(A, !B, C, B)").outputs][2:] == ["A", "C", "B"]
