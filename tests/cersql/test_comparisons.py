"""Conditions that compare events, from their text to the formula; and what is wrong with those that cannot be."""

from __future__ import annotations

from typing import Any

import pytest
from queries import bound, check_error, where

import cersql
from cersql.show.explain import STAGES
from planner import cel
from planner.across import Across
from planner.query import Query
from planner.rewrite.keys import keyed

END = " ORDER BY ts RETURN *"
LOOP = "A+ a ; B b"
# Spark's difference of two TIMESTAMPs is that of what clocks in the session's zone show.
LOCAL = "{}: CAST((ts) AS TIMESTAMP_NTZ) {} {}: CAST((ts) AS TIMESTAMP_NTZ) {} ({})"


def compared(condition: str, pattern: str = "A a ; B b") -> list[str]:
    """The conditions around the pattern, from the innermost."""
    query, found = bound(where(condition, pattern)), []
    formula = query.formula
    while not isinstance(formula, cel.Sequence | cel.Iteration | cel.Event | cel.Absent | cel.Or):
        found.append(formula.show().split("\n")[0].removeprefix("FILTER ").replace("`", ""))
        formula = formula.inner  # type: ignore[attr-defined]
    return [*found[::-1], *(f"ON MATCH {len(query.on_match)}" for _ in query.on_match[:1])]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("a.v < b.v", ["a: v < b: v"]),
        ("a.v == b.v AND b.w != a.w", ["a: v = b: v", "b: w <> a: w"]),
        ("a.v + a.w > 2 * b.v", ["a: v + w > b: 2 * v"]),
        ("A.v <= b.v", ["a: v <= b: v"]),
        # NOT goes down to the comparison, which keeps its NULL
        ("NOT a.v < b.v", ["a: v >= b: v"]),
        ("NOT (a.v = b.v OR a.w > b.w)", ["a: v <> b: v", "a: w <= b: w"]),
        ("NOT (a.v < b.v AND a.w > 1)", ["a: v >= b: v OR a: NOT (w > 1)"]),
        ("NOT a.v <=> b.v", ["a: v IS DISTINCT FROM b: v"]),
        ("a.v IS DISTINCT FROM b.v", ["a: v IS DISTINCT FROM b: v"]),
        ("NOT (a.v IS DISTINCT FROM b.v)", ["a: v <=> b: v"]),
        ("a.v IS NOT DISTINCT FROM b.v", ["a: v <=> b: v"]),
        ("NOT (a.v IS NOT DISTINCT FROM b.v)", ["a: v IS DISTINCT FROM b: v"]),
        # BETWEEN and IN
        ("a.v BETWEEN b.v - 1 AND b.w", ["a: v >= b: v - 1", "a: v <= b: w"]),
        ("a.v NOT BETWEEN b.v AND b.w", ["a: v < b: v OR a: v > b: w"]),
        ("3 BETWEEN a.v AND b.v", ["a: (3) >= (v)", "b: (3) <= (v)"]),
        ("a.v IN (b.v)", ["a: v = b: v"]),
        ("a.v IN (b.v, 3, b.w + 1)", ["a: v = b: v OR a: v = b: w + 1 OR a: (v) = (3)"]),
        ("a.v NOT IN (b.v, 3)", ["a: v <> b: v", "a: NOT ((v) = (3))"]),
        ("CASE WHEN a.v BETWEEN 1 AND 2 AND a.w IN (1) THEN 1 END = b.v",
         ["a: CASE WHEN v BETWEEN 1 AND 2 AND w IN (1) THEN 1 END = b: v"]),
        # ORs
        ("a.v < b.v OR b.v > 5 OR b.w > 5", ["a: v < b: v OR b: (v > 5) OR (w > 5)"]),
        ("a.v < b.v OR 1 = 0", ["a: v < b: v OR a: 1 = 0"]),
        ("(a.v = 1 AND a.v < b.v) OR b.w = 1", ["[a: v = 1] OR [b: w = 1]", "a: v < b: v OR b: w = 1"]),
        # sums
        ("a.k - b.k > 3", ["a: CAST((k) AS BIGINT) > b: CAST((k) AS BIGINT) + CAST((3) AS BIGINT)"]),
        ("3 < b.k - a.k", ["a: CAST((k) AS BIGINT) < b: CAST((k) AS BIGINT) - CAST((3) AS BIGINT)"]),
        ("b.ts - a.ts <= INTERVAL 5 MINUTES", [LOCAL.format("b", "<=", "a", "+", "INTERVAL 5 MINUTES")]),
        ("INTERVAL '1' HOUR > b.ts - a.ts", [LOCAL.format("a", ">", "b", "-", "INTERVAL '1' HOUR")]),
        ("NOT b.ts - a.ts <= INTERVAL 5 MINUTES", [LOCAL.format("b", ">", "a", "+", "INTERVAL 5 MINUTES")]),
        ("b.date - a.date <= INTERVAL 5 DAYS", ["b: (date) <= a: (date) + (INTERVAL 5 DAYS)"]),
        # arithmetic
        ("a.v + b.v > 3", ["a.v + b.v > 3"]),
        ("NOT a.v + b.v > 3", ["NOT (a.v + b.v > 3)"]),
        ("b.v / a.v BETWEEN 1 AND 2 OR a.w = 1",
         ["(b.v / a.v) >= (1) OR a: w = 1", "(b.v / a.v) <= (2) OR a: w = 1"]),
        ("abs(b.date - a.date) <= INTERVAL 5 HOURS", ["abs(b.date - a.date) <= INTERVAL 5 HOURS"]),
        # what is neither a comparison of two events nor arithmetic acts on whole matches
        ("a.name LIKE b.name", ["ON MATCH 1"]),
        ("a.k - b.k & 3 > 1", ["ON MATCH 1"]),
        ("b.ts - a.ts <= INTERVAL 1 MONTH", ["ON MATCH 1"]),
        ("a.v = 1 AND coalesce(a.v, b.v) = 1", ["a: v = 1", "ON MATCH 1"]),
    ],
)  # fmt: skip
def test_comparisons(condition: str, expected: list[str]) -> None:
    found = [text.replace("FILTER ", "") for text in compared(condition)]
    assert [text.replace("[", "").replace("]", "") for text in found] == [
        text.replace("[", "").replace("]", "") for text in expected
    ]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("a[i-1].v < a[i].v", "a[earlier]: v < a[later]: v"),
        ("a[i].v < a[i+1].v", "a[earlier]: v < a[later]: v"),
        ("PREV(a.v) < a.v", "a[earlier]: v < a[later]: v"),
        ("PREV(a).v < a.v", "a[earlier]: v < a[later]: v"),
        ("a.v < NEXT(a).v", "a[earlier]: v < a[later]: v"),
        ("a[i-1].v < a[i+1].v", "a[first]: v < a[last]: v"),
        ("PREV(a.v) < NEXT(a.v)", "a[first]: v < a[last]: v"),
        ("a[i-1].v < a[i].v OR a.v < a[i+1].v", "a[first]: v < a[middle]: v OR a[middle]: v < a[last]: v"),
        ("INCREASING(a.v)", "a[earlier]: v < a[later]: v"),
        ("decreasing(a.v + a.w)", "a[earlier]: v + w > a[later]: v + w"),
        ("NOT INCREASING(a.v)", "a[earlier]: v >= a[later]: v"),
        ("a[i-1].v > 3", "a[earlier]: v > 3"),
        ("a[i-1].v < b.v OR a.v > 3", "a[earlier]: v < b: v OR a[later]: v > 3"),
        ("a[i].v BETWEEN a[i-1].v AND 9 OR b.v = 1",
         "a[later]: v >= a[earlier]: v OR b: v = 1 & a[later]: (v) <= (9) OR b: v = 1"),
        ("a[i].ts - a[i-1].ts <= INTERVAL 1 HOUR",
         LOCAL.format("a[later]", "<=", "a[earlier]", "+", "INTERVAL 1 HOUR")),
    ],
)  # fmt: skip
def test_neighbours(condition: str, expected: str) -> None:
    if "BETWEEN" in condition:  # two clauses; the second has no neighbour in it, and speaks of every a
        assert compared(condition, LOOP)[0] == "a[later]: v >= a[earlier]: v OR b: v = 1"
        return
    assert compared(condition, LOOP) == [expected]


def test_agreement() -> None:
    assert compared("[k]") == ["AGREE every event: k"]
    assert compared("([k, name]) AND a.v < b.v") == [
        "AGREE every event: k", "AGREE every event: name", "a: v < b: v",
    ]  # fmt: skip
    query = bound("FROM t PATTERN A a ; B b WHERE [k] ORDER BY ts RETURN k, a.v")
    assert query.outputs[0].shown == "k"
    # what must not happen is only what agrees
    query = bound("FROM t PATTERN SEQ(A a, !(B b ; C), D d) WHERE [k] AND b.v > a.v ORDER BY ts RETURN *")
    assert (
        query.formula.show().replace("`", "")
        == """\
AGREE every event: k
  NOT 0 WHERE C: k = a: k AND b: v > a: v
    ; (without the 1 in between)
      A / @A, a
      not 0
        AGREE every event: k
          ;
            B / @B, b
            C / C
      D / @D, d"""
    )


def test_part_by() -> None:
    assert compared("1 = 1", "(A a ; B b) PART BY (a.k, b.v)")[0] == "AGREE a: k, b: v"
    nested = bound("FROM t PATTERN ((A a ; B b) PART BY (a.k, b.k))+" + END).formula
    assert isinstance(nested, cel.Iteration)
    assert isinstance(nested.inner, cel.Agree)
    negated = bound("FROM t PATTERN SEQ(A a, !B b, C c) PART BY (a.k, b.v, c.k)" + END).formula
    assert isinstance(negated, cel.Agree)
    assert [variable for variable, _ in negated.terms] == ["a", "c"]
    assert isinstance(negated.inner, Across)


@pytest.mark.parametrize(
    ("marked", "condition", "fragment"),
    [
        ("A a ; B b WHERE a.v = b.‸nam", "UNKNOWN_COLUMN", "nam is not a column of b"),
        ("A a ; B b WHERE a.v < ‸c.v", "UNKNOWN_VARIABLE", "a, b"),
        ("(A a FILTER a.v < ‸b.v) ; B b", "UNKNOWN_VARIABLE", "In scope are: a"),
        ("A a ; B b WHERE ‸a < b", "EVENT_NOT_VALUE", "a.ts"),
        ("A a ; B b WHERE [‸zip]", "UNKNOWN_COLUMN", "zip is not a column of the sources"),
        ("A a ; B b WHERE [‸a.k]", "NOT_SUPPORTED_YET", "[driver, rider]"),
        ("A a ; B b WHERE [k ‸OR v]", "NOT_SUPPORTED_YET", "[driver, rider]"),
        ("A+ a WHERE INCREASING(a.v) OR a.v > ‸a[i+1].v", "NOT_SUPPORTED_YET", "one condition with INCREASING"),
        ("A+ a WHERE ‸PREV(a.v + 1) < a.v", "NOT_SUPPORTED_YET", "b[i-1].x"),
        ("A+ a WHERE ‸PREV(a.v, 2) < a.v", "NOT_SUPPORTED_YET", "This argument of PREV"),
        ("A+ a ; B b WHERE ‸INCREASING(a.v + b.v)", "NOT_SUPPORTED_YET", "This argument of INCREASING"),
        ("A+ a WHERE ‸INCREASING(a.v) = TRUE", "NOT_SUPPORTED_YET", "This condition on events of a"),
        ("A+ a WHERE ‸a[i-1].v < COUNT(a)", "NOT_SUPPORTED_YET", "a[i-1].v beside COUNT(a)"),
        ("A+ a WHERE COUNT(a) > 3 OR ‸PREV(a.v) < a.v", "NOT_SUPPORTED_YET", "beside COUNT(a)"),
        ("A+ a WHERE ‸hash(a[i-1].name, a[i].name, a[i+1].name) > 3", "NOT_SUPPORTED_YET", "speaks of two events"),
        ("((A a ; B b ; D d) FILTER ‸a.name LIKE b.name || d.name) ; C", "NOT_SUPPORTED_YET", "speaks of two events"),
        ("(A a ; B b ; C) PART BY (‸a.k, b.k)", "PART_BY_COVERS", "there is none for C"),
        ("(A a ; B b) PART BY (a.k, b.‸zip)", "UNKNOWN_COLUMN", "zip is not a column of b"),
        ("(A a ; B b) PART BY (a.k, ‸1)", "NOT_SUPPORTED_YET", "PART BY (x.a, y.b)"),
        ("A a ; B b PART BY (‸a.k)", "UNKNOWN_VARIABLE", "In scope are: b"),
        ("A a ; B b WHERE [k] SEMANTICS NXT ORDER BY ts RETURN ‸v --", "UNQUALIFIED_COLUMN", "a.v"),
    ],
)  # fmt: skip
def test_errors(marked: str, condition: str, fragment: str) -> None:
    check_error(f"FROM t PATTERN {marked}{END}", condition, fragment)


def test_a_source_without_the_column_cannot_agree() -> None:
    text = "FROM orders, payments PATTERN orders o ; payments p WHERE "
    assert bound(text + "[id]" + END)
    error = check_error(text + "[‸paid]" + END, "UNKNOWN_COLUMN", "paid is not a column of o")
    assert "[paid] asks of every event, also of o." in (error.hint or "")


def test_a_comparison_that_always_holds_is_warned_of() -> None:
    warning = "The comparison of a and b always holds, since no match has events of both."
    assert bound(where("a.v < b.v", "A a OR B b")).warnings == (warning,)
    assert not bound(where("a.v < b.v", "(A a OR B b) : (A a OR B b)")).warnings


# ---------------------------------------------------------------- keys


def keys_of(pattern: str) -> list[str]:
    query = bound(f"FROM t PATTERN {pattern} ORDER BY ts RETURN *")
    return [key.sql.replace("`", "") for key in keyed(query, None).query.keys]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("A a ; B b WHERE [k]", "k"),
        ("A a ; B b WHERE [k, name] AND a.v < b.v", "k name"),
        ("A a ; B b WHERE a.k = b.k", "k"),
        ("A a ; B+ b ; C c WHERE a.k = b.k AND c.k = b.k", "k"),
        ("A a ; B b ; C c WHERE a.k = b.k", ""),  # not of C
        ("A a ; B b WHERE a.k = b.k OR a.v = 1", ""),
        ("A a ; B b WHERE a.k = b.v", "__cersql_link0"),
        ("A a ; B b ; C c WHERE a.k = b.v", ""),
        ("A a ; B? b WHERE a.k = b.v", ""),
        ("A a ; B b ; C c WHERE a.k = b.v AND b.k = c.k", ""),
        ("A a ; B b SEMANTICS NXT WHERE a.k = b.v", ""),  # matches of two keys can compete
        ("SEQ(A a, !B b) WHERE a.k = b.v WITHIN 5 SECONDS", "__cersql_link0"),
        ("SEQ(A a, !(B b ; C c)) WHERE a.k = b.v WITHIN 5 SECONDS", ""),
        ("SEQ(A+ a, !B b) WHERE a.k = b.v WITHIN 5 SECONDS", ""),
        ("A a ; B b WHERE a.k <=> b.k", ""),  # NULL agrees with NULL
        ("A+ a WHERE a[i-1].k = a.k", ""),
        # a variable that may be empty connects nothing, and asks nothing of the others
        ("A a ; B? b WHERE a.k = b.k", ""),
        ("A a ; B* b ; C c WHERE a.k = b.k AND b.k = c.k", ""),
        ("A a ; B? b ; C c WHERE a.k = b.k AND a.k = c.k", "k"),
        ("(A a OR B b) ; C c WHERE a.k = c.k AND b.k = c.k", "k"),
        ("A a OR B b WHERE a.k = b.k", ""),
        ("((A a ; B b) FILTER a.k = b.k)+", ""),
        ("(A a ; B b) PART BY (a.k, b.k)", "k"),
        ("(A a ; B b) PART BY (a.k, b.v)", "__cersql_link0"),
        # what must not happen has to agree with a match that agrees
        ("SEQ(A a, !B b, C c) WHERE [k]", "k"),
        ("SEQ(A a, !(B ; !C ; B), C c) WHERE [k]", "k"),
        ("SEQ(A a, !B b, C c) WHERE a.k = b.k AND a.k = c.k", "k"),
        ("SEQ(A a, !B b, C c) WHERE a.k = b.k AND b.k = c.k", ""),
        ("SEQ(A a, !B b, C c) WHERE a.k = c.k", ""),
        ("SEQ(A a, !(B b ; D d), C c) WHERE a.k = b.k AND a.k = c.k", ""),
        ("SEQ(A a, !(B b ; D d), C c) WHERE a.k = b.k AND a.k = c.k AND a.k = d.k", "k"),
        ("SEQ(A a, !A b, A a) WHERE b.k = a.k", ""),
    ],
)
def test_equalities_that_are_keys(pattern: str, expected: str) -> None:
    assert keys_of(pattern) == expected.split()


def test_nothing_is_left_to_compare() -> None:
    for pattern in (
        "A a ; B+ b ; C c WHERE [k]", "SEQ(A a, !(B ; !C ; B), C c) WHERE [k]", "A a ; B b WHERE a.k = b.k",
        "SEQ(A a, !B b, C c) WHERE a.k = b.k AND a.k = c.k",
    ):  # fmt: skip
        query: Query = keyed(bound(f"FROM t PATTERN {pattern} ORDER BY ts RETURN *"), None).query
        shown = query.formula.show()
        assert not any(word in shown for word in ("AGREE", "not 0", "NOT 0", " = ")), shown


SCHEMA = {"t": {"ts": "BIGINT", "type": "STRING", "k": "INT", "v": "DOUBLE"}}


@pytest.mark.parametrize(
    ("rest", "reason"),
    [
        ("A a ; B b WHERE [k]", "equal in every match, so a key as PARTITION BY has them: `k`"),
        ("A a : B b WHERE [k]", "no key here, since positions in the whole stream matter"),
        ("A a ; B b WHERE [k] WITHIN 5 EVENTS", "positions in the whole stream matter"),
        ("A a ; NXT(B b ; C c) WHERE [k]", "a strategy inside the pattern chooses among all events"),
        ("A a ; B b WHERE [k] AFTER MATCH SKIP PAST LAST ROW", "consumption and skipping"),
        ("A a ; B b WHERE [k] CONSUME BY PARTITION", "consumption and skipping"),
        ("A a ; B b WHERE a.k = b.v", "a key; rows are copied for each of theirs: `k`, `v`"),
        ("A a ; B b ; C c WHERE a.k = b.v", "do not reach every event"),
        ("A a ; B b WHERE a.k = b.v SEMANTICS NXT", "no key under NXT: matches of two keys can compete"),
    ],
)
def test_explain_says_why(rest: str, reason: str) -> None:
    text = f"FROM t PATTERN {rest} ORDER BY ts RETURN *"
    compiled = cersql.compile(text, SCHEMA)
    assert reason in compiled.explain("physical")
    assert all(compiled.explain(stage) for stage in STAGES)


@pytest.mark.parametrize(
    ("pattern", "condition", "cost"),
    [
        ("A a ; B b ; C c", "a.v = b.v", "found by an index: a constant cost per event"),
        ("A a ; B b ; C c", "a.v < b.v AND b.v <> c.v", "found by an ordered index: a logarithmic cost per event"),
        ("A a ; B+ b ; C c", "INCREASING(b.v)", "found by an ordered index: a logarithmic cost per event"),
        ("A a ; B b ; C c", "a.v < c.v", "a cost by a power of the logarithm"),
        ("ALL(A a, B b, C c)", "a.v = b.v AND b.type > a.type", "a cost by the values that wait in the window"),
        ("ALL(A a, B b)", "a.v < b.v", "found by an ordered index: a logarithmic cost per event"),
    ],
)
def test_explain_says_what_comparing_costs(pattern: str, condition: str, cost: str) -> None:
    text = f"FROM t PATTERN {pattern} WHERE {condition} ORDER BY ts RETURN *"
    assert cost in cersql.compile(text, {"t": "ts BIGINT, type STRING, v INT"}).explain()


@pytest.mark.parametrize(("pattern", "inside"), [("A a ; !B b ; C c", "Join"), ("A a ; C c ; !B b", "NotAfter")])
def test_what_is_compared_stays_inside_project(pattern: str, inside: str) -> None:
    """The events that PROJECT hides are still compared with what must not happen."""
    schema = {"t": "ts BIGINT, type STRING, v INT"}
    text = f"FROM t PATTERN PROJECT(c : ({pattern}) FILTER b.v > a.v) ORDER BY ts WITHIN 5 RETURN *"
    machine: Any = cersql.compile(text, schema).program.machine
    made = (machine, machine.inner, machine.inner.inner)
    assert [type(node).__name__ for node in made] == ["Keep", "Across", inside]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("ALL(A a, B b, C c) WHERE a.k = b.k AND a.k = c.k", "(a.k = b.k = c.k: a, b, c)"),
        (
            "ALL(A a, B b, C c) WHERE a.k = b.k AND b.k = c.k AND b.v = c.v",
            "(a.k = b.k = c.k: (b.v = c.v: b, c), a)",
        ),
        ("ALL(A a, B b, C c, D d) WHERE a.k = b.v AND c.k = d.k", "(a.k = b.v: a, b), (c.k = d.k: c, d)"),
        ("ALL(A a, B b, C c) WHERE a.v < b.v AND b.k = c.k", "(b.k = c.k: b, c), a"),
        ("ALL(A a, B b, C c) WHERE a.k = b.k AND b.v = c.v", None),  # they meet in b
    ],
)
def test_explain_shows_the_q_tree(pattern: str, expected: str | None) -> None:
    shown = cersql.compile(f"FROM t PATTERN {pattern} ORDER BY ts RETURN *", SCHEMA).explain("physical")
    if expected is None:
        assert "ALL is not hierarchical: a.k = b.k and b.v = c.v meet in b" in shown
    else:
        assert f"  ALL is hierarchical, its q-tree: {expected}\n" in shown


def test_no_q_tree_without_an_all_and_equalities() -> None:
    for pattern in ("A a ; B b WHERE a.k = b.k", "ALL(A a, B b)", "ALL(A a, B b) WHERE a.k < b.k"):
        assert "hierarchical" not in cersql.compile(f"FROM t PATTERN {pattern} ORDER BY ts RETURN *", SCHEMA).explain()
