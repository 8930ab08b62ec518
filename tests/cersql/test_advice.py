"""Warnings: where there is one, and that ordinary queries have none."""

from __future__ import annotations

import pytest
from queries import SCHEMAS, bound


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
        ("(A a ; B b) AS g", "ORDER BY ts RETURN a.v", "g names a part of the pattern, and nothing speaks of g."),
        ("A a ; (B OR C) AS g", "ORDER BY ts RETURN match_start", "nothing speaks of g."),
    ],
)
def test_warning(pattern: str, rest: str, fragment: str) -> None:
    found = warnings(pattern, rest)
    assert len(found) == 1
    assert fragment in found[0]


@pytest.mark.parametrize(
    ("sources", "pattern", "type", "alias"),
    [
        ("(SELECT * FROM t) AS e TYPE type", "S s ; E x", "E", "e"),
        ("t AS e", "S s ; E x", "E", "e"),  # the column that is taken without TYPE
        ("t AS E TYPE type", "E x", "E", "E"),
        ("t TYPE type", "A a ; !T ; B b", "T", "t"),
        ("t AS a TYPE type, orders AS b", "A x ; B y", "A", "a"),
    ],
)
def test_a_type_that_is_the_name_of_its_source(sources: str, pattern: str, type: str, alias: str) -> None:
    statement = "SELECT * FROM t" if "SELECT" in sources else None
    schemas = SCHEMAS if statement is None else {**SCHEMAS, statement: SCHEMAS["t"]}
    text = f"FROM {sources} PATTERN {pattern} ORDER BY ts RETURN *"
    (found,) = bound(text, schemas).warnings
    assert found.startswith(f"{type} is the name of the source here, so it matches every row of it, whatever type says")
    assert f"for example {alias}_rows" in found
    if type != alias:
        assert not bound(text, schemas, case_sensitive=True).warnings


@pytest.mark.parametrize(
    ("sources", "pattern"),
    [
        ("t AS e", "E x"),  # TYPE is not written, and nothing else is read from such a column
        ("t AS e TYPE type DEFINE E AS v > 1", "E x"),
        ("orders AS o, payments AS p", "O x ; P y"),
        ("t AS e TYPE type", "S s"),
        ("t AS o, orders AS p", "O x ; P y"),
    ],
)
def test_a_source_that_is_meant(sources: str, pattern: str) -> None:
    assert not bound(f"FROM {sources} PATTERN {pattern} ORDER BY ts RETURN *").warnings


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
        ("A a ; B b ; B c", "ORDER BY ts RETURN a.v"),
        ("(A ; B) AS g", "WHERE g.v > 1 ORDER BY ts RETURN match_start"),
        ("(A ; B) AS g", "ORDER BY ts RETURN COUNT(*)"),
        ("(A ; B) AS g", "ORDER BY ts RETURN * "),
        ("(A ; B) AS g", "ORDER BY ts RETURN match_start HAVING g[1].v > 1"),
        ("(A ; B) AS g", "AFTER MATCH SKIP TO g ORDER BY ts RETURN match_start"),
        ("PROJECT(g : (A ; B) AS g)", "ORDER BY ts RETURN match_start"),
        ("A ; B", "ORDER BY ts RETURN match_start"),
    ],
)
def test_no_warning(pattern: str, rest: str) -> None:
    assert not warnings(pattern, rest)
