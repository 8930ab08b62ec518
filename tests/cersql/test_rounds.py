"""AGG and conditions on whole parts, as they are bound: marks, columns, and every mistake with its place."""

from __future__ import annotations

import pytest
from queries import SCHEMAS, bound, check_error

import cersql
from planner.acel import Measured
from planner.physical import plan

T, END = "FROM t PATTERN ", " ORDER BY ts RETURN *"


def test_marks_make_rounds_visible() -> None:
    query = bound(T + "PROJECT(y : AGG(y : s = SUM(x.v) ; A x ; B+ x))+" + END)
    assert query.formula.show().splitlines() == [
        "+",
        "  PROJECT @#1, @#1:x, y",
        "    AGG 1 @#1, y: s = SUM(x.v)",
        "      ;",
        "        A / @#1:x, @A, x",
        "        +",
        "          B / @#1:x, @B, x",
    ]


def test_a_created_event_has_its_time_and_attributes() -> None:
    query = bound(T + "AGG(y : n = COUNT(a), s = SUM(a.v) ; A+ a) WHERE y[n > 1] AND y.s > 3" + END)
    variable = next(v for v in query.variables if v.created)
    assert (variable.name, variable.single, variable.columns) == ("y", True, ("ts", "n", "s"))
    assert len(query.on_match) == 2
    assert query.created is not None
    assert query.created.identity is None  # no two of what is listed are equal


@pytest.mark.parametrize(
    ("pattern", "repeats"),
    [
        ("AGG(y : n = COUNT(a) ; A+ a ; B b)+", False),
        ("PROJECT(y : AGG(y : n = COUNT(a) ; A+ a))", True),
        ("(A a ; B+ b) FILTER COUNT(b) > 1 ; C c", True),
        ("((A a ; B+ b) FILTER COUNT(b) > 1) ; C c", True),
        ("AGG(y : n = COUNT(x) ; A x) OR AGG(y : n = COUNT(x) ; B x)", True),
        ("A a ; AGG(y : n = COUNT(a) ; A a)", True),
    ],
)
def test_equal_matches_are_one(pattern: str, repeats: bool) -> None:
    query = bound(T + pattern + END)
    assert query.created is not None
    assert (query.created.identity is not None) == repeats
    later = plan(query).later
    assert (later is not None and later.distinct is not None) == repeats


def test_a_projected_variable_may_have_a_second_name() -> None:
    query = bound(T + "PROJECT(y : AGG(y : n = COUNT(a) ; A a)) AS z" + END)
    assert [(v.name, v.columns) for v in query.variables if v.created] == [("y", ("ts", "n")), ("z", ("ts", "n"))]


def test_runs_ask_what_they_can_where_matches_are_not_listed() -> None:
    def measured(pattern: str) -> list[str]:
        formula = bound(T + pattern + END).formula
        return [part.condition for part in formula.walk() if isinstance(part, Measured)]

    assert measured("NXT((A a ; B+ b) FILTER COUNT(b) > 1 AND 2.5 > SUM(b.v)) ; C") == [
        "2.5 > SUM(b.v)",
        "COUNT(b) > 1",
    ]
    assert measured("A a UNLESS ((B b ; C+ c) FILTER MAX(c.v) <= MIN(c.v) OR COUNT(*) = 2)") == [
        "MAX(c.v) <= MIN(c.v) OR COUNT(*) = 2"
    ]
    assert measured("((A a ; B+ b) FILTER COUNT(b) > 1) ; C") == []


def test_explain_prints_registers_as_the_paper_draws_them() -> None:
    """[ACEL] Figure 2, Example 6."""
    text = "FROM t PATTERN AGG(M : MAX = MAX(intel.v) ; A AS msft ; (B AS intel)+ ; C AS amzn) ORDER BY ts RETURN M"
    shown = cersql.compile(text, SCHEMAS).explain("automaton")
    assert shown.splitlines()[3:] == [
        "q0 -[A / msft]-> q1",
        "q1 -[TRUE / -]-> q1",
        "q1 -[B / @#1:intel, intel]-> q1",
        "q1 -[B / @#1:intel, intel]-> q2",
        "q2 -[TRUE / -]-> q2",
        "q2 -[C / @#1, M, amzn]-> q3",
        "round 1 has the registers MAX, empty at first:",
        "  @#1:…  MAX <- MAX(intel.v), with this event",
        "  @#1  M <- a new event with MAX; then the registers are empty again",
    ]


def test_explain_says_what_a_condition_costs() -> None:
    def physical(pattern: str) -> str:
        return cersql.compile(T + pattern + END, SCHEMAS).explain("physical")

    assert "since SUM(b.v) > 5 asks about a part as a whole" in physical("((A a ; B+ b) FILTER SUM(b.v) > 5)+ ; C")
    passed = "SUM(b.v) > 5 asks about a part as a whole: by bounds on sums in the compact set those that fail"
    assert passed in physical("((A a ; B+ b) FILTER SUM(b.v) > 5) ; C")
    assert "COUNT(b) > 1: runs hold registers, of few values" in physical("NXT((A a ; B+ b) FILTER COUNT(b) > 1)")
    assert "SUM(b.v) > 1: runs hold registers, of as many" in physical("NXT((A a ; B+ b) FILTER SUM(b.v) > 1)")
    assert "y of AGG: computed of each match that is listed" in physical("AGG(y : n = COUNT(a) ; A+ a)")


WHOLE = "a condition on a part as a whole"


TWO = "(‸AGG(y : n = COUNT(x) ; A x)) AND AGG(y : n = SUM(x.v) ; A x)"


@pytest.mark.parametrize(
    ("marked", "condition", "fragment"),
    [
        ("AGG(‸a : n = COUNT(a) ; A a)", "AGG_VARIABLE", "Choose another name"),
        ("A y ; AGG(‸y : n = COUNT(b) ; B b)", "AGG_VARIABLE", "holds events of the stream"),
        ("AGG(‸A : n = COUNT(a) ; A a)", "AGG_VARIABLE", "Choose another name"),
        ("AGG(‸A : n = COUNT(x) ; A x)", "ALIAS_IS_TYPE", "looks like the event type"),
        ("AGG(y : n = COUNT(a), ‸N = SUM(a.v) ; A a)", "AGG_NAME", "names of their own"),
        ("AGG(y : ‸ts = COUNT(a) ; A a)", "AGG_NAME", "the time ts"),
        ("AGG(y : n = COUNT(a) ; A a) OR AGG(‸y : m = COUNT(b) ; B b)", "AGG_ATTRIBUTES", "Elsewhere it has n"),
        ("AGG(y : n = COUNT(a) ; A a) AS ‸z", "MIXED_VARIABLE", "PROJECT(y : …) AS z"),
        ("(AGG(y : n = COUNT(a) ; A a) ; B b) AS ‸z", "MIXED_VARIABLE", "events of the stream"),
        ("PROJECT(x, y : AGG(y : n = COUNT(a) ; A a) ; AGG(x : m = COUNT(b) ; B b)) AS ‸z", "AGG_ATTRIBUTES", "Give"),
        ("AGG(y : n = COUNT(‸b) ; A a) ; B b", "UNKNOWN_VARIABLE", "In scope are: a"),
        ("AGG(y : n = SUM(a.‸vv) ; A a)", "UNKNOWN_COLUMN", "Did you mean v?"),
        ("AGG(y : n = SUM(‸a) ; A a)", "EVENT_NOT_VALUE", "a.ts"),
        ("AGG(y : n = ‸a ; A a)", "EVENT_NOT_VALUE", "a.ts"),
        ("AGG(y : n = SUM(‸COUNT(a)) ; A a)", "NOT_SUPPORTED_YET", "An aggregate inside another"),
        ("AGG(y : n = ‸match_start ; A a)", "NOT_SUPPORTED_YET", "FIRST(x.ts)"),
        ("AGG(y : n = ‸v ; A a)", "UNQUALIFIED_COLUMN", "a.v"),
        ("AGG(y : n = COUNT(‸x) ; SEQ(A a, !B x, C c))", "NEGATED_VARIABLE", "must not happen"),
        ("AGG(y : n = COUNT(a) ; ‸A* a)", "MAY_BE_EMPTY", "A+ instead"),
        ("AGG(y ‸n = COUNT(a) ; A a)", "UNEXPECTED_TOKEN", "':'"),
        ("AGG(y : ‸3 = COUNT(a) ; A a)", "UNEXPECTED_TOKEN", "a name for the attribute"),
        ("AGG(y : n ‸COUNT(a) ; A a)", "UNEXPECTED_TOKEN", "'='"),
        ("AGG(y : n = COUNT(a),‸ ; A a)", "UNEXPECTED_TOKEN", "name for the attribute"),
        ("AGG(‸3 : n = COUNT(a) ; A a)", "UNEXPECTED_TOKEN", "a variable"),
        ("AGG(y : n =‸ ; A a)", "UNEXPECTED_TOKEN", "an aggregate"),
        ("AGG(y : n = COUNT(a) ; A a) WHERE y.‸m > 1", "UNKNOWN_COLUMN", "It has: ts, n"),
        ("AGG(y : n = COUNT(a) ; A a) WHERE y[‸v > 1]", "UNKNOWN_COLUMN", "It has: ts, n"),
        ("AGG(y : n = COUNT(a) ; A+ a)+ WHERE ‸PREV(y.n) < y.n", "NOT_SUPPORTED_YET", "INCREASING(y.n)"),
        ("AGG(y : n = COUNT(a) ; A+ a)+ WHERE y[i].n > ‸y[i-1].n", "NOT_SUPPORTED_YET", "INCREASING(y.n)"),
        ("SEQ(A a, !B b, C c) WHERE ‸SUM(b.v) > 3", "NOT_SUPPORTED_YET", "!((B+ b) FILTER"),
        ("NXT((A a ; B+ b) FILTER ‸LAST(b.v) > 1) ; C", "NOT_SUPPORTED_YET", WHOLE),
        ("A a UNLESS ((B b ; C+ c) FILTER ‸SIZE(COLLECT_SET(c.v)) > 1)", "NOT_SUPPORTED_YET", WHOLE),
        ("SEQ(A a, !(B+ b FILTER ‸SUM(b.v) > AVG(b.v) + 1), C c)", "NOT_SUPPORTED_YET", WHOLE),
        ("(B* b FILTER ‸COUNT(b) < 3) ; C", "MAY_BE_EMPTY", "ask it in WHERE"),
        (f"NXT({TWO})", "NOT_SUPPORTED_YET", "It stands inside NXT"),
        (f"SEQ(A a, !({TWO}), C c)", "NOT_SUPPORTED_YET", "must not happen"),
        ("NXT(NXT(AGG(y : n = COUNT(x) ; A x)) FILTER ‸y.n > 1)", "NOT_SUPPORTED_YET", WHOLE),
        ("NXT(PROJECT(y : ‸AGG(y : n = COUNT(a) ; A+ a)))", "NOT_SUPPORTED_YET", "NXT around a PROJECT"),
    ],
)  # fmt: skip
def test_mistakes(marked: str, condition: str, fragment: str) -> None:
    check_error(T + marked + END, condition, fragment)
