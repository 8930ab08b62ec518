"""Warnings: where there is one, and that ordinary queries have none."""

from __future__ import annotations

import pytest
from queries import SCHEMAS, bound


def warnings(pattern: str, rest: str = "ORDER BY ts RETURN *") -> tuple[str, ...]:
    return bound(f"FROM t PATTERN {pattern} {rest}").warnings


@pytest.mark.parametrize(
    ("pattern", "rest", "fragment"),
    [
        ("A a ; B+ b", "ORDER BY ts RETURN *", "A loop with gaps"),
        ("A a ; B* b", "ORDER BY ts RETURN *", "A loop with gaps"),
        ("(A ; B){2,}", "ORDER BY ts RETURN *", "A loop with gaps"),
        ("A ; (B+ WITHIN 5 EVENTS) ; C+", "ORDER BY ts RETURN *", "A loop with gaps"),
        ("A+ a", "WITHIN 5 MINUTES ORDER BY ts RETURN *", "A loop with gaps (A+) has a match for every choice"),
        ("A{5,} a", "PARTITION BY k WITHIN 60 SECONDS ORDER BY ts RETURN *", "for events without gaps :{5,}."),
        ("A{5} a", "ORDER BY ts RETURN *", "up to n^5 of them among n events"),
        ("(A ; B){2,7}", "ORDER BY ts RETURN *", "(A ; B){2,7}) has a match for every choice"),
        ("MAX(A+) ; B* ; C", "ORDER BY ts RETURN *", "(B*) has a match"),
        ("(A+ ; B) UNLESS C", "ORDER BY ts RETURN *", "SEMANTICS NXT"),
        ("A+ ; B", "ORDER BY ts RETURN *", "SEMANTICS SKIP TILL NEXT MATCH"),
        ("PROJECT(b : A a ; B+ b)", "ORDER BY ts RETURN *", "A loop with gaps"),
        ("A a UNLESS B", "ORDER BY ts RETURN *", "which is one event here: it excludes nothing before or after it"),
        ("A UNLESS (B ; C)", "ORDER BY ts RETURN *", "write SEQ(!(…), …) or SEQ(…, !(…)) with WITHIN."),
        ("(A a FILTER a.v > 1) UNLESS B b", "WHERE b.v > 1 ORDER BY ts RETURN *", "SEQ(!B, …)"),
        ("(A : B) UNLESS C", "ORDER BY ts RETURN *", "Here nothing lies there, so it excludes nothing."),
        ("STRICT(A ; B:+) UNLESS (C ; A)", "ORDER BY ts RETURN *", "Here nothing lies there"),
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
        ("A a ; B+ b", "CONSUME BY PARTITION PARTITION BY k ORDER BY ts RETURN *"),
        ("A a ; STRICT(B+) AS g", "WITHIN 5 MINUTES ORDER BY ts RETURN *"),
        ("PROJECT(a : A a ; B+ b ; C c)", "ORDER BY ts RETURN *"),  # its choices are one match
        ("PROJECT(b : A+ a ; B b)", "ORDER BY ts WITHIN 1 HOUR RETURN *"),  # a window over two events
        ("A a ; B+ b", "SEMANTICS NXT ORDER BY ts RETURN *"),
        ("A a ; B+ b", "AFTER MATCH SKIP PAST LAST ROW ORDER BY ts RETURN *"),
        ("A a ; B+ b", "ORDER BY ts RETURN * LIMIT 5"),
        ("A a ; B:+ b ; C{2,4} ; D?", "ORDER BY ts RETURN *"),
        ("A ; MAX(B+) ; (C:+ ; D WITHIN 5 EVENTS)", "ORDER BY ts RETURN *"),
        ("A ; !(B+) ; C", "ORDER BY ts RETURN *"),
        ("A x AND B x", "ORDER BY ts RETURN *"),
        ("(A a ; B b) AND (A a ; (B b OR C c))", "ORDER BY ts RETURN *"),
        ("A ; !B", "WITHIN 5 EVENTS ORDER BY ts RETURN *"),
        ("(A ; C) UNLESS B", "ORDER BY ts RETURN *"),
        ("(A : C) UNLESS A x", "WHERE x.v > 1 ORDER BY ts RETURN *"),
        ("(A : ANY : C) UNLESS B", "ORDER BY ts RETURN *"),
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


@pytest.mark.parametrize(
    ("pattern", "condition", "advice"),
    [
        ("ANY s : ANY:+ u", "u.v > PREV(u.v)", "PREV(u.v) and u[i-1].v are of the u before: the first u has none"),
        ("ANY s : ANY:+ u", "u[i].v > u[i-1].v", "(ANY s : ANY:+ u) AS w, and write w[i].v and w[i-1].v."),
        ("A a ; (B b ; C){2} ; D", "PREV(b).v < b.v", "the first b has none"),
        ("A a ; B b", "b.v > PREV(b.v)", "the first b has none"),  # and there is no other
        ("A? ; B:+ b", "b[i].v > b[i-1].v", "(A? ; B:+ b) AS w"),
        ("(A:+ a) : B", "NEXT(a.v) > a.v", "NEXT(a.v) and a[i+1].v are of the a after: the last a has none"),
        ("A a : (B:+ b FILTER b[i].v > b[i-1].v)", "a.v > 1", "(A a : (B:+ b FILTER b[i].v > b[i-1].v)) AS w"),
    ],
)
def test_neighbours_end_where_the_variable_does(pattern: str, condition: str, advice: str) -> None:
    (found,) = warnings(pattern, f"WHERE {condition} ORDER BY ts RETURN *")
    assert advice in found


@pytest.mark.parametrize(
    ("pattern", "condition"),
    [
        ("A:+ a", "a.v < NEXT(a).v AND a[i].v > a[i-1].w"),
        ("A:+ a : B", "a[i].v > a[i-1].v"),
        ("(A s : B:+ u) AS w", "w[i].v > w[i-1].v AND u.v > 1"),
        ("A s : B:+ u", "u[i].v > u[i-1].v AND u[1].v > s.v"),  # who writes this knows
        ("A s : B:+ u", "u[i].v > u[i-1].v AND FIRST(u.v) > s.v"),
        ("B:+ u : C e", "u[i].v > u[i+1].v AND LAST(u.v) > e.v"),
        ("A s : B:+ u", "INCREASING(u.v)"),
        ("A s : B:+ u", "u.v > s.v"),
    ],
)
def test_neighbours_that_say_all(pattern: str, condition: str) -> None:
    assert not warnings(pattern, f"WHERE {condition} ORDER BY ts RETURN *")


@pytest.mark.parametrize(
    ("sources", "define", "pattern", "warned"),
    [
        ("t", "A AS v > 1", "A", True),
        ("t", "A AS v > 1", "A ; S", True),
        ("t", "A AS type = 'A'", "A ; S", True),  # S is any row
        ("t", "A AS type = 'A' AND v > 1", "A", False),
        ("t TYPE type", "A AS v > 1", "A ; S", False),
        ("orders", "A AS price > 1", "A", False),
        ("t, orders", "A AS v > 1", "A ; T", False),  # of several sources no column is read without TYPE
    ],
)
def test_define_beside_a_column_called_type(sources: str, define: str, pattern: str, warned: bool) -> None:
    found = bound(f"FROM {sources} PATTERN {pattern} DEFINE {define} ORDER BY ts RETURN match_start").warnings
    assert any("Beside DEFINE the column type is not read" in warning for warning in found) == warned
