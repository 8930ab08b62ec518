"""Multiset predicates, `x[a]`, `x[increasing(a)]`, `x[decreasing(a)]`: [ACEL] Appendix A.1, word by word, over what is
listed without them. NULL agrees with nothing, and is neither greater nor less."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import sparks

import cersql
from runtime.errors import CersqlError

SCHEMA = "ts BIGINT, k INT, type STRING, v INT"
Truth = bool | None
Event = tuple[int, Any]  # time, value


@pytest.fixture(scope="module")
def session(spark: Any) -> Any:
    own = sparks.taught(spark)
    events = "A1 A2 B1 A3 B2 A3 B- C1 A- A1 B3 A2 B2 C2"
    rows = [(i, i % 2, e[0], None if e[1] == "-" else int(e[1])) for i, e in enumerate(events.split())]
    sparks.view(own, "multi", rows, SCHEMA)
    return own


def agree(events: Sequence[Event]) -> Truth:
    values = [v for _, v in events]
    known = {v for v in values if v is not None}
    return False if len(known) > 1 else None if None in values else True


def trend(holds: Callable[[int, int], bool]) -> Callable[[Sequence[Event]], Truth]:
    def told(events: Sequence[Event]) -> Truth:
        found = [
            None if a is None or b is None else holds(a, b)
            for i, a in events
            for j, b in events
            if i < j and not any(i < other < j for other, _ in events)  # Succ
        ]
        return False if False in found else None if None in found else True

    return told


PREDICATES: dict[str, Callable[[Sequence[Event]], Truth]] = {
    "X[v]": agree,
    "X[increasing(v)]": trend(lambda a, b: a < b),
    "DECREASING(X.v)": trend(lambda a, b: a > b),
}
# (pattern, what is returned of X): of the stream, and created.
PATTERNS = {
    "group": "((A a ; B b)+ AS X)",
    "loop": "(A+ X ; B b)",
    "created": "(AGG(X : v = MAX(a.v) ; A a ; B b))+",
}
RETURNED = "RETURN X.ts AS ts, X.v AS v, COUNT(*) AS n"


def listed(session: Any, pattern: str, clauses: str = "", having: str = "") -> list[tuple[Any, ...]]:
    text = f"FROM multi PATTERN {pattern} {clauses} ORDER BY ts WITHIN 9 {RETURNED} {having}"
    rows = cersql.sql(session, text).collect()
    return sorted(((tuple(zip(row.ts, row.v, strict=True)), row.n) for row in rows), key=repr)


@pytest.mark.breadth(1)
@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("predicate", PREDICATES)
def test_wherever_a_condition_may_stand(session: Any, pattern: str, predicate: str) -> None:
    told, part = PREDICATES[predicate], PATTERNS[pattern]
    every = listed(session, part)
    for condition, holds in (
        (predicate, lambda t, n: t is True),
        (f"NOT {predicate}", lambda t, n: t is False),
        (f"({predicate} OR COUNT(X) > 2)", lambda t, n: t is True or n > 2),
        (f"({predicate} AND COUNT(X) > 1)", lambda t, n: t is True and n > 1),
    ):
        if condition == "NOT DECREASING(X.v)":  # which says it of every two neighbours, as every comparison does
            told = trend(lambda a, b: a <= b)
            holds = lambda t, n: t is True  # noqa: E731
        want = [match for match in every if holds(told(match[0]), len(match[0]))]
        assert 0 < len(want) < len(every), condition
        assert listed(session, part, f"WHERE {condition}") == want, condition
        assert listed(session, f"({part} FILTER {condition})") == want, condition
        if condition != "NOT DECREASING(X.v)":  # there it is an expression like any other
            assert listed(session, part, having=f"HAVING {condition}") == want, condition
        told = PREDICATES[predicate]


@pytest.mark.breadth(1)
@pytest.mark.parametrize("predicate", PREDICATES)
def test_of_each_round(session: Any, predicate: str) -> None:
    """Inside a loop it is asked of each round, as of the part alone."""
    loops = [f"(((A+ X ; B b) FILTER {p}) ; C c)" for p in (predicate, f"({predicate} OR COUNT(X) > 9)")]
    found = [listed(session, f"{part}") for part in loops]
    assert found[0] == found[1]
    rounds = [listed(session, f"({part})+") for part in loops]
    assert rounds[0] == rounds[1]
    assert len(rounds[0]) >= len(found[0]) > 0


@pytest.mark.breadth(4)
@pytest.mark.parametrize("predicate", ["X[v]", "X[increasing(v)]"])
@pytest.mark.parametrize("around", ["NXT({})", "LAST({})", "MAX({})", "STRICT({})", "{} UNLESS C", "({}) ALL (C c)"])
def test_beside_operators_it_is_a_filter(session: Any, around: str, predicate: str) -> None:
    """Of one event that is several: X[v] as b1.v = b2.v."""
    op = {"X[v]": "=", "X[increasing(v)]": "<"}[predicate]
    parts = (f"((A x1 ; A x2) AS X ; B b) FILTER {predicate}", f"((A x1 ; A x2) AS X ; B b) FILTER x1.v {op} x2.v")
    found = [listed(session, around.format(f"({part})")) for part in parts]
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("pattern", "condition", "name"),
    [
        ("(AGG(X : n = COUNT(a) ; A a))+", "X[m]", "UNKNOWN_COLUMN"),
        ("(AGG(X : n = COUNT(a) ; A a))+", "X[n.m]", "NOT_SUPPORTED_YET"),
        ("(AGG(X : n = COUNT(a) ; A a))+", "INCREASING(X.m)", "UNKNOWN_COLUMN"),
        ("A+ X ; B b", "(INCREASING(X.v + b.v) OR COUNT(X) > 1)", "NOT_SUPPORTED_YET"),
    ],
)
def test_mistakes(session: Any, pattern: str, condition: str, name: str) -> None:
    with pytest.raises(CersqlError) as caught:
        cersql.sql(session, f"FROM multi PATTERN {pattern} WHERE {condition} ORDER BY ts WITHIN 7 RETURN match_start")
    assert caught.value.condition == name, caught.value
    assert caught.value.span is not None
