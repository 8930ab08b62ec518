"""Patterns as formulas."""

from __future__ import annotations

import pytest
from queries import bound, filters

from cersql.binding.formulas import MANY, occurrences, together
from planner import cel
from planner.formula import Formula


def formula(pattern: str) -> Formula:
    return bound(f"FROM t PATTERN {pattern} ORDER BY ts RETURN *").formula


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("A", "A"), ("A a", "a"), ("ANY", "ANY"), ("ANY x", "x"),
        ("A ; B ; C", "((A ; B) ; C)"), ("SEQ(A, B, C)", "((A ; B) ; C)"), ("A -> B -> C", "((A ; B) ; C)"),
        ("A : B ; C : D", "((A : B) ; (C : D))"),
        ("A+ a", "a+"), ("A a+", "a+"), ("A+ a[]", "a+"), ("A:+ a", "a:+"), ("(A a)+", "a+"), ("A{1} a", "a"),
        ("(A ; B)+ AS x", "((A ; B)+ AS x)"), ("(A a ; B) AS x", "((a ; B) AS x)"),
        ("A OR B OR C", "[[A] OR [B]] OR [C]"), ("ANY(A, B)", "[A] OR [B]"), ("SEQ(A)", "A"),
        ("(A a FILTER a.v > 1) ; B", "(a | a: v > 1 ; B)"),
        ("(A a FILTER a.v > 1)+", "a | a: v > 1+"),
        ("(A ; B) FILTER A.v > 1 AND B.v > 2", "(A ; B) | A: v > 1 | B: v > 2"),
    ],
)  # fmt: skip
def test_pattern(pattern: str, expected: str) -> None:
    assert filters(formula(pattern)) == expected


def test_marks() -> None:
    """An event of a type with an alias carries the type's hidden mark, be it bare or not."""
    assert formula("A x ; A ; B") == cel.Sequence(
        cel.Sequence(cel.Event("A", frozenset({"x", "@A"})), cel.Event("A", frozenset({"A", "@A"}))),
        cel.Event("B", frozenset({"B"})),
    )


@pytest.mark.parametrize(
    ("pattern", "many"),
    [
        ("A a ; B b", ""), ("A+ a ; B b", "a"), ("(A a ; B b)+", "ab"), ("A a ; B b ; A a", "a"), ("A x OR B x", ""),
        ("(A a ; B b) AS g", "g"), ("(A a OR B b) AS g", ""), ("A x ; (B x OR C y)", "x"),
    ],
)  # fmt: skip
def test_occurrences(pattern: str, many: str) -> None:
    counts = occurrences(formula(pattern))
    assert {v for v, n in counts.items() if n >= MANY and v[0] != "@"} == set(many)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("A a ; B b", {"ab"}), ("A a OR B b", set()), ("(A a OR B b) ; C c", {"ac", "bc"}), ("(A a OR B b)+", {"ab"}),
        ("(A a OR B b) AS f", {"af", "bf"}), ("(A a : B b) OR C c", {"ab"}),
    ],
)  # fmt: skip
def test_variables_that_occur_together(pattern: str, expected: set[str]) -> None:
    pairs = {"".join(sorted(p)) for p in together(formula(pattern)) if len(p) == 2 and not any(v[0] == "@" for v in p)}
    assert pairs == expected


def test_long_patterns() -> None:
    """No length of a list ends Python's stack."""
    long = "SEQ(" + ", ".join(f"A a{i}" for i in range(2000)) + ")"
    assert len(bound(f"FROM t PATTERN {long} ORDER BY ts RETURN a1.v").marks) == 2000
    either = " OR ".join(f"A{i}" for i in range(2000))
    assert len(bound(f"FROM t PATTERN {either} ORDER BY ts RETURN A1.v").marks) == 2000


def test_long_conditions() -> None:
    names = [f"a{i}" for i in range(150)]
    pattern, condition = " ; ".join(f"A {name}" for name in names), " AND ".join(f"{name}.v <> 0" for name in names)
    query = bound(f"FROM t PATTERN {pattern} WHERE {condition} ORDER BY ts RETURN *")
    assert filters(query.formula).count(" | ") == 150
