"""Warnings: where there is one, and that ordinary queries have none."""

from __future__ import annotations

import pytest
from queries import bound


def warnings(pattern: str, rest: str = "ORDER BY ts RETURN *") -> tuple[str, ...]:
    return bound(f"FROM t PATTERN {pattern} {rest}").warnings


@pytest.mark.parametrize(
    ("pattern", "rest", "fragment"),
    [
        ("A a ; B+ b", "ORDER BY ts RETURN *", "A loop without WITHIN"),
        ("A a ; B* b", "ORDER BY ts RETURN *", "A loop without WITHIN"),
        ("(A ; B){2,}", "ORDER BY ts RETURN *", "A loop without WITHIN"),
        ("A ; (B+ WITHIN 5 EVENTS) ; C+", "ORDER BY ts RETURN *", "A loop without WITHIN"),
        ("A a AND B b", "ORDER BY ts RETURN *", "never matches"),
        ("A AND B", "ORDER BY ts RETURN *", "never matches"),
        ("(A a ; B b) AND (A a ; C c)", "ORDER BY ts RETURN *", "never matches"),
        ("A a WITHIN 5 EVENTS", "ORDER BY ts RETURN *", "A WITHIN over a single event"),
        ("(A a WITHIN 5 EVENTS) ; B", "ORDER BY ts RETURN *", "A WITHIN over a single event"),
        ("(A ; C) UNLESS A", "ORDER BY ts RETURN *", "UNLESS A is never true here"),
        ("(A ; C) UNLESS C x", "ORDER BY ts RETURN *", "UNLESS C is never true here"),
        ("A UNLESS ANY", "ORDER BY ts RETURN *", "UNLESS ANY is never true here"),
        ("A a ; B b", "ORDER BY ts RETURN a.v", "b is named in the pattern and used nowhere."),
        ("A a ; B b ; C c", "ORDER BY ts RETURN match_start", "a, b and c are named"),
        ("SEQ(A, !B b, C)", "ORDER BY ts RETURN A.v", "b is named"),
    ],
)
def test_warning(pattern: str, rest: str, fragment: str) -> None:
    found = warnings(pattern, rest)
    assert len(found) == 1
    assert fragment in found[0]


@pytest.mark.parametrize(
    ("pattern", "rest"),
    [
        ("A a ; B+ b", "WITHIN 5 MINUTES ORDER BY ts RETURN *"),
        ("A a ; B+ b", "PARTITION BY k ORDER BY ts RETURN *"),
        ("A a ; B+ b", "SEMANTICS NXT ORDER BY ts RETURN *"),
        ("A a ; B+ b", "AFTER MATCH SKIP PAST LAST ROW ORDER BY ts RETURN *"),
        ("A a ; B+ b", "ORDER BY ts RETURN * LIMIT 5"),
        ("A a ; B:+ b ; C{2,4} ; D?", "ORDER BY ts RETURN *"),
        ("A ; MAX(B+) ; (C+ ; D WITHIN 5 EVENTS)", "ORDER BY ts RETURN *"),
        ("A ; !(B+) ; C", "ORDER BY ts RETURN *"),
        ("A x AND B x", "ORDER BY ts RETURN *"),
        ("(A a ; B b) AND (A a ; (B b OR C c))", "ORDER BY ts RETURN *"),
        ("A ; !B", "WITHIN 5 EVENTS ORDER BY ts RETURN *"),
        ("(A ; C) UNLESS B", "ORDER BY ts RETURN *"),
        ("(A ; C) UNLESS A x", "WHERE x.v > 1 ORDER BY ts RETURN *"),
        ("(A? ; C) UNLESS A", "ORDER BY ts RETURN *"),
        ("((A OR B) ; C) UNLESS A", "ORDER BY ts RETURN *"),
        ("A a ; B b", "WHERE b.v > 1 ORDER BY ts RETURN a.v"),
        ("A a ; B b", "ORDER BY ts RETURN COUNT(*)"),
        ("A a ; B b", "ORDER BY ts RETURN a.v HAVING b.v > 1"),
        ("A a ; B b", "AFTER MATCH SKIP TO b ORDER BY ts RETURN a.v"),
        ("H a ; H b", "ORDER BY ts RETURN COUNT(H)"),
        ("PROJECT(a : A a ; (B b FILTER b.v > 1))", "ORDER BY ts RETURN match_start"),
        ("A ; B", "ORDER BY ts RETURN match_start"),
    ],
)
def test_no_warning(pattern: str, rest: str) -> None:
    assert not warnings(pattern, rest)
