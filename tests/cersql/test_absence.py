"""`!p` and UNLESS: where negated parts stand, and which conditions belong to them."""

from __future__ import annotations

import pytest
from queries import bound, check_error

from planner import cel, terms
from planner.across import Across, Candidate
from planner.formula import Formula
from planner.terms import Comparison, Predicate, Term, Window

END = " ORDER BY ts RETURN *"


def formula(pattern: str, rest: str = "") -> Formula:
    return bound(f"FROM t PATTERN {pattern} {rest} ORDER BY ts RETURN *").formula


def atom(type: str, *marks: str) -> cel.Event:
    return cel.Event(type, frozenset(marks or {type}))


A, B, C, D, X = map(atom, "ABCDX")
FIVE = Window("events", 5)
b = atom("B", "b", "@B")


def where(inner: Formula, variable: str, sql: str) -> Formula:
    return cel.Filter(inner, variable, Predicate(sql))


@pytest.mark.parametrize(
    "pattern", ["SEQ(A, !B, C)", "A ; NOT B ; C", "A -> !B -> C", "A ; (!B ; C)", "(A ; !B) ; C", "A ; (!B) ; C"]
)
def test_in_the_middle(pattern: str) -> None:
    assert formula(pattern) == cel.Absent(A, (B,), C)


def test_several_in_a_row() -> None:
    assert formula("A ; !B ; !X ; C ; !D ; A") == cel.Absent(cel.Absent(A, (B, X), C), (D,), A)
    assert formula("A ; B ; !X ; C ; D") == cel.Sequence(cel.Absent(cel.Sequence(A, B), (X,), C), D)


def test_what_is_negated_can_be_any_pattern() -> None:
    assert formula("A ; !(B ; X) ; C") == cel.Absent(A, (cel.Sequence(B, X),), C)
    assert formula("A ; !(B OR X) ; C") == cel.Absent(A, (cel.Or(B, X),), C)
    assert formula("A ; !(B ; !X ; D) ; C") == cel.Absent(A, (cel.Absent(B, (X,), D),), C)


def test_a_group_with_a_name_is_one_part() -> None:
    assert formula("((A ; !B ; C) AS g) ; D") == cel.Sequence(cel.As(cel.Absent(A, (B,), C), "g"), D)
    assert formula("(A ; !B ; C)+") == cel.Iteration(cel.Absent(A, (B,), C))
    assert formula("A : (B ; !X ; C)") == cel.Contiguous(A, cel.Absent(B, (X,), C))


def test_at_the_edges() -> None:
    within = "WITHIN 5 EVENTS"
    assert formula("SEQ(A, !B)", within) == cel.NotAfter(A, (B,), FIVE)
    assert formula("SEQ(!B, A)", within) == cel.NotBefore((B,), A, FIVE)
    assert formula("SEQ(!B, !X, A, C, !D)", within) == cel.NotAfter(
        cel.NotBefore((B, X), cel.Sequence(A, C), FIVE), (D,), FIVE
    )
    assert formula("(A ; !B) AS g", within) == cel.As(cel.NotAfter(A, (B,), FIVE), "g")
    assert formula("PROJECT(A : SEQ(A, C, !B))", within) == cel.Project(
        cel.NotAfter(cel.Sequence(A, C), (B,), FIVE), frozenset("A")
    )
    assert formula("(A ; !B) FILTER A.v > 1", within) == where(cel.NotAfter(A, (B,), FIVE), "A", "`v` > 1")
    assert formula("A : C ; !B", "WITHIN 10 SECONDS") == cel.NotAfter(
        cel.Contiguous(A, C), (B,), Window("time", 10_000_000)
    )


def test_long_sequences() -> None:
    long = "SEQ(" + ", ".join(f"A{i}, !B{i}" for i in range(500)) + ", C)"
    found = formula(long)
    depth = 0
    while not isinstance(found, cel.Event):
        found, depth = found.positive()[0], depth + 1
    assert depth < 70


@pytest.mark.parametrize(
    ("marked", "condition", "fragment"),
    [
        ("A ; ‸!B : C", "ABSENCE_BESIDE_COLON", ""),
        ("A : ‸!B", "ABSENCE_BESIDE_COLON", ""),
        ("A : (B ; ‸!C)", "ABSENCE_AT_EDGE", "at the end"),
        ("(‸!B ; A) OR C", "ABSENCE_AT_EDGE", "at the start"),
        ("(A ; ‸!B)+", "ABSENCE_AT_EDGE", "at the end"),
        ("(A ; ‸!B) AND C", "ABSENCE_AT_EDGE", ""),
        ("ALL(A, (‸!B ; C))", "ABSENCE_AT_EDGE", ""),
        ("C UNLESS (A ; ‸!B)", "ABSENCE_AT_EDGE", ""),
        ("NXT(A ; ‸!B)", "ABSENCE_AT_EDGE", ""),
        ("START(‸!B ; A)", "ABSENCE_AT_EDGE", ""),
        (
            "(A ; ‸!B WITHIN 5 EVENTS)",
            "ABSENCE_AT_EDGE",
            "the clause, outside all parentheses: PATTERN (…) WITHIN 5 EVEN",
        ),
        ("((‸!B ; A) AS g WITHIN < 5 MINUTES) ; C", "ABSENCE_AT_EDGE", "PATTERN (…) WITHIN < 5 MINUTES."),
        ("((A ; ‸!B) AS g) ; C", "ABSENCE_AT_EDGE", ""),
        ("A ; !(B ; ‸!X) ; C", "ABSENCE_AT_EDGE", ""),
        ("‸!A", "ONLY_ABSENCE", ""),
        ("‸!A ; !B", "ONLY_ABSENCE", ""),
        ("A OR ‸!B", "ONLY_ABSENCE", ""),
        ("(‸!B)+ ; A", "ONLY_ABSENCE", ""),
        ("A ; ((‸!B) AS x) ; C", "ONLY_ABSENCE", ""),
        ("A ; !‸!B ; C", "ONLY_ABSENCE", ""),
        ("A ; ‸!B ; C?", "ABSENCE_BESIDE_NOTHING", "after"),
        ("A ; B* ; ‸!X ; C", "ABSENCE_BESIDE_NOTHING", "before"),
        ("‸!X ; A? ; C", "ABSENCE_BESIDE_NOTHING", "after"),
    ],
)
def test_where_it_cannot_stand(marked: str, condition: str, fragment: str) -> None:
    check_error(f"FROM t PATTERN {marked} WITHIN 5 EVENTS{END}", condition, fragment)


@pytest.mark.parametrize(("marked", "edge"), [("A ; ‸!B", "end"), ("‸!B ; A", "start"), ("(‸NOT B ; A) AS g", "start")])
def test_without_a_window(marked: str, edge: str) -> None:
    way = {"start": "back", "end": "ahead"}[edge]
    error = check_error(
        f"FROM t PATTERN {marked}{END}", "ABSENCE_WITHOUT_WINDOW", f"at the {edge}", f"how far {way} to"
    )
    assert error.hint == "Write WITHIN 10 MINUTES, for example."


@pytest.mark.parametrize(
    ("order", "hint"),
    [("n", "Write WITHIN 500, in that"), ("x", "WITHIN 500"), ("day", "10 MINUTES"), ("s", "100 EVENTS")],
)
def test_the_window_that_is_proposed_fits_the_clock(order: str, hint: str) -> None:
    for marked in ("ticks ; ‸!ticks x", "‸!ticks x ; ticks"):
        text = f"FROM ticks PATTERN {marked} ORDER BY {order} RETURN *"
        assert hint in (check_error(text, "ABSENCE_WITHOUT_WINDOW").hint or "")


# ---------------------------------------------------------------- conditions


def test_conditions_of_a_negated_part() -> None:
    vetoed = where(where(b, "b", "`v` > 1"), "b", "`w` = 2")
    a = atom("A", "a", "@A")
    plain = cel.Absent(a, (vetoed,), C)
    assert formula("SEQ(A a, !B b, C)", "WHERE b.v > 1 AND a.v = 3 AND b.w = 2") == where(plain, "a", "`v` = 3")
    assert formula("SEQ(A a, !B b, C) FILTER b.v > 1 AND b.w = 2") == plain
    assert formula("SEQ(A a, !((B b FILTER b.v > 1) FILTER b.w = 2), C)") == plain


def test_conditions_of_each_part() -> None:
    x = atom("X", "x", "@X")
    assert formula("SEQ(A, !B b, C, !X x, D)", "WHERE x.v > 1 AND b.v > 2 AND 1 = 1") == cel.Filter(
        cel.Absent(cel.Absent(A, (where(b, "b", "`v` > 2"),), C), (where(x, "x", "`v` > 1"),), D),
        None, Predicate("1 = 1"),
    )  # fmt: skip
    assert formula("A UNLESS B b", "WHERE b.v > 1") == cel.Unless(A, where(b, "b", "`v` > 1"))
    assert formula("SEQ(A, !B b)", "WHERE b.v > 1 WITHIN 5 EVENTS") == cel.NotAfter(
        A, (where(b, "b", "`v` > 1"),), FIVE
    )
    assert formula("SEQ(A, !(B b ; !X x ; D), C)", "WHERE x.v > 1") == cel.Absent(
        A, (cel.Absent(b, (where(x, "x", "`v` > 1"),), D),), C
    )
    two = cel.FilterAny(cel.Sequence(b, x), (("b", Predicate("`v` > 1")), ("x", Predicate("`v` > 2"))))
    assert formula("SEQ(A, !(B b ; X x), C)", "WHERE b.v > 1 OR x.v > 2") == cel.Absent(A, (two,), C)


def test_conditions_between_a_negated_part_and_the_match() -> None:
    a, candidate = atom("A", "a", "@A"), Candidate(b, 0)

    def equal(left: str, right: str) -> Comparison:
        return Comparison(Term(left, "`v`"), "=", Term(right, "`v`"))

    inner = cel.Absent(a, (candidate,), C)
    assert formula("SEQ(A a, !B b, C)", "WHERE b.v = a.v") == Across(inner, 0, ((equal("b", "a"),),))
    # all conditions together say what may not be there; those on b alone belong to it
    both = formula("SEQ(A a, !B b, C)", "WHERE b.v = a.v AND b.w = 1 AND (b.v = C.v OR b.w > 2)")
    vetoed = cel.Absent(a, (Candidate(where(b, "b", "`w` = 1"), 0),), C)
    either = (equal("b", "C"), terms.Test("b", Predicate("`w` > 2")))
    assert both == Across(vetoed, 0, ((equal("b", "a"),), either))
    assert formula("SEQ(A a, !B b, C) FILTER a.v = b.v", "WHERE C.v = b.v") == Across(
        inner, 0, ((equal("a", "b"),), (equal("C", "b"),))
    )
    assert formula("A a UNLESS B b", "WHERE a.v = b.v") == Across(cel.Unless(a, candidate), 0, ((equal("a", "b"),),))
    assert formula("SEQ(A a, !B b)", "WHERE a.v = b.v WITHIN 5 EVENTS") == Across(
        cel.NotAfter(a, (candidate,), FIVE), 0, ((equal("a", "b"),),)
    )
    # inside a negated part, events of it are compared as anywhere
    x = atom("X", "x", "@X")
    assert formula("SEQ(A, !(B b ; X x), C)", "WHERE b.v = x.v") == cel.Absent(
        A, (cel.Compare(cel.Sequence(b, x), (equal("b", "x"),)),), C
    )
    check_error(
        "FROM t PATTERN ((SEQ(A a, !B b, C) FILTER a.v = b.v) ; D d) WHERE ‸b.v = d.v" + END,
        "NOT_SUPPORTED_YET", "A second condition between the same negated part",
    )  # fmt: skip


def test_agreement_names_the_events_that_must_not_happen_apart() -> None:
    """C is the name of events of the match, too."""
    for pattern, names in (
        ("SEQ(A a, !(C n OR C m), C c)", {"n", "m"}), ("SEQ(A a, !C, C)", {"@not 0"}), ("SEQ(A a, !C n, C c)", {"n"}),
    ):  # fmt: skip
        found = formula(pattern, "WHERE [k]")
        across = next(part for part in found.walk() if isinstance(part, Across))
        negated = {side.left.variable for clause in across.clauses for side in clause}  # type: ignore[union-attr]
        assert negated == names, pattern


def test_a_types_name_stands_for_what_happens() -> None:
    assert formula("SEQ(A, !B, C)", "WHERE B.v > 1") == cel.Absent(A, (where(B, "B", "`v` > 1"),), C)
    assert formula("SEQ(A, !B, B)", "WHERE B.v > 1") == where(cel.Absent(A, (B,), B), "B", "`v` > 1")
    both = formula("SEQ(A, !B, B b)", "WHERE B.v > 1")
    assert isinstance(both, cel.Filter)
    assert both.variable == "b"
    # `a` is every A that happens, so A.v is a.v
    assert isinstance(formula("SEQ(A a, !A, C)", "WHERE A.v > 1"), cel.Filter)
    check_error("FROM t PATTERN SEQ(A, !A ‸a, C)" + END, "ALIAS_IS_TYPE")


@pytest.mark.parametrize(
    ("marked", "condition", "fragment"),
    [
        (
            "SEQ(A a, !B b, C c) WHERE a.v > 1 AND ‸b.name LIKE concat(a.name, c.name)",
            "NOT_SUPPORTED_YET",
            "of b and a and c",
        ),
        (
            "SEQ(A, !(B b ; X x ; D y), C) WHERE ‸b.name LIKE concat(x.name, y.name)",
            "NOT_SUPPORTED_YET",
            "of b and x and y",
        ),
        ("SEQ(A, !B n, C, !X m, D) WHERE n.v = ‸m.v", "TWO_NEGATED_PARTS", "n and m"),
        ("SEQ(A a, !B b, C c) WHERE ‸b.v > 1 OR a.v = c.v", "NEGATED_OR", "on b, which must not happen, and on a"),
        ("SEQ(A, !B b, C) WHERE ‸COUNT(b) > 1", "NOT_SUPPORTED_YET", "COUNT(b), about the events of a negated part"),
        ("SEQ(A a, !B b, C) WHERE ‸b.v > 1 OR a.v > 1", "NEGATED_OR", "on b, which must not happen, and on a"),
        ("SEQ(A, !B n, C, !X m, D) WHERE n.v > 1 OR ‸m.v > 1", "TWO_NEGATED_PARTS", "n and m"),
        ("SEQ(A, !B n, C, !X n, D) WHERE ‸n.v > 1", "TWO_NEGATED_PARTS", "n and n"),
        ("SEQ(A, !B, C, !B, D) WHERE ‸B.v > 1", "TWO_NEGATED_PARTS", "B and B"),
        ("A ; (C c ; D FILTER ‸b.v > 1) ; !B b ; D", "NEGATED_VARIABLE", ""),
    ],
)
def test_conditions_that_belong_nowhere(marked: str, condition: str, fragment: str) -> None:
    check_error(f"FROM t PATTERN {marked}{END}", condition, fragment)


def test_negated_variables_are_nowhere_else() -> None:
    start = "FROM t PATTERN SEQ(A a, !B b, C) "
    for end in (
        "ORDER BY ts RETURN ‸b.v", "ORDER BY ts RETURN a.v, COUNT(‸b)", "ORDER BY ts RETURN * HAVING COUNT(‸b) > 1",
        "ORDER BY ts RETURN ‸B.v", "AFTER MATCH SKIP TO ‸b ORDER BY ts RETURN *",
    ):  # fmt: skip
        check_error(start + end, "NEGATED_VARIABLE")
    check_error("FROM t PATTERN A a UNLESS B b ORDER BY ts RETURN ‸b", "NEGATED_VARIABLE")


def test_names_in_a_negated_part_and_outside() -> None:
    check_error("FROM t PATTERN SEQ(A x, !B ‸X, C)" + END, "NAME_IN_NEGATED_PART")
    check_error("FROM t PATTERN A x UNLESS (B ; C ‸x)" + END, "NAME_IN_NEGATED_PART")
    assert formula("SEQ(A, !B x, C, !B x, D)")
