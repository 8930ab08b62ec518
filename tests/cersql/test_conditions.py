"""Conditions as filters: the boolean structure, the rule of the language by brute force, and conditions on matches."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from queries import bound, check_error, filters, where

from cersql.binding.booleans import structure
from cersql.binding.expressions import read
from planner import cel
from planner.formula import Formula
from runtime.errors import Span

Truth = bool | None


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("a.v > 1 AND b.v < 3", "(a ; b) | a: v > 1 | b: v < 3"),
        ("a.v > 1 OR b.v < 3", "(a ; b) | [a: v > 1] OR [b: v < 3]"),
        ("a.v > 1 OR a.w < 3", "(a ; b) | a: v > 1 OR w < 3"),
        ("NOT (a.v > 1 OR b.v < 3)", "(a ; b) | a: NOT (v > 1) | b: NOT (v < 3)"),
        ("NOT (a.v > 1 AND NOT (b.v < 3))", "(a ; b) | [a: NOT (v > 1)] OR [b: NOT (NOT (v < 3))]"),
        ("! a.v > 1 AND !(b.v = 1)", "(a ; b) | a: ! v > 1 | b: !(v = 1)"),
        ("NOT a.v > 1 OR b.w IS NOT NULL", "(a ; b) | [a: NOT v > 1] OR [b: w IS NOT NULL]"),
        ("a.v BETWEEN 1 AND 2 AND b.v NOT BETWEEN 3 AND 4",
         "(a ; b) | a: v BETWEEN 1 AND 2 | b: v NOT BETWEEN 3 AND 4"),
        (
            "CASE WHEN a.v = 1 AND a.w = 2 OR a.v = 3 THEN 1 END = 1 AND b.v IN (1, 2) AND NOT b.name LIKE 'AND'",
            "(a ; b) | a: CASE WHEN v = 1 AND w = 2 OR v = 3 THEN 1 END = 1 | b: v IN (1, 2) | b: NOT name LIKE 'AND'",
        ),
        ("((a.v = 1) AND ((b.v = 2)))", "(a ; b) | a: (v = 1) | b: ((v = 2))"),
        ("a.v IN (1, 2) OR b.v NOT IN (3)", "(a ; b) | [a: v IN (1, 2)] OR [b: v NOT IN (3)]"),
        ("a.v = NULL", "(a ; b) | a: v = NULL"),
        ("1 = 1", "(a ; b) | None: 1 = 1"),
        ("NULL OR FALSE", "(a ; b) | None: NULL OR FALSE"),
        ("a.v = 1 OR 1 = 0 OR b.v = 2", "(a ; b) | [a: (v = 1) OR (1 = 0)] OR [b: (v = 2) OR (1 = 0)]"),
        # what holds of no variable is not hidden behind one that may be empty
        ("NOT (a.v = 1 OR 1 = 1)", "(a ; b) | a: NOT (v = 1) | None: NOT (1 = 1)"),
        ("a[v > 1 AND k = 2] AND NOT b[name = 'x']", "(a ; b) | a: (v > 1 AND k = 2) | b: NOT (name = 'x')"),
        ("a.s.g.h + a.arr[0] = a.m['k'] AND a.`odd.name`::int = 1",
         "(a ; b) | a: s.g.h + arr[0] = m['k'] | a: odd.name::int = 1"),
        ("A.v = 1 AND B[].v = 2 AND b[i].w = 3", "(a ; b) | a: v = 1 | b: v = 2 | b: w = 3"),
        ("a.v = 1 AND /* b.v */ b.v -- a.v\n = 2", "(a ; b) | a: v = 1 | b: v -- a.v\n = 2"),
    ],
)  # fmt: skip
def test_filters(condition: str, expected: str) -> None:
    assert filters(bound(where(condition)).formula) == expected


def test_reads_are_the_columns_of_the_pattern() -> None:
    query = bound("FROM t PATTERN A a ; B b WHERE a[v > 1] AND b.s.f = 1 PARTITION BY k ORDER BY ts RETURN a.w")
    assert query.reads == ("type", "k", "v", "s")
    assert query.used == (("w",), (), (), ())


def test_partition_columns_stand_bare() -> None:
    query = bound("FROM t PATTERN A a ; B b WHERE k = 1 OR a.v = 2 PARTITION BY K ORDER BY ts RETURN k")
    assert filters(query.formula) == "(a ; b) | a: (v = 2) OR (k = 1)"


# ---------------------------------------------------------------- the rule, by brute force


def trees() -> st.SearchStrategy[str]:
    """Conditions over a.v, a.w, b.v, and constants."""
    leaves = st.sampled_from(["a.v = 1", "a.w = 1", "b.v = 1", "b.w = 1", "1 = 1", "1 = 0", "NULL = 1"])
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            inner.map("NOT ({})".format),
            st.lists(inner, min_size=2, max_size=3).map(lambda parts: "(" + " AND ".join(parts) + ")"),
            st.lists(inner, min_size=2, max_size=3).map(lambda parts: "(" + " OR ".join(parts) + ")"),
        ),
        max_leaves=5,
    )


def truth(condition: str, atom: Callable[[str], Truth]) -> Truth:
    """A condition in SQL's three-valued logic."""
    return _truth(structure(read(condition, Span(0, len(condition)), lambda _: None)), condition, atom)


def _truth(tree, text, atom) -> Truth:  # type: ignore[no-untyped-def]
    values = [_truth(part, text, atom) for part in tree.parts]
    if tree.kind == "not":
        return None if values[0] is None else not values[0]
    if tree.kind == "atom":
        written = text[tree.span.start : tree.span.end].strip("() ")
        return atom(written)
    decisive = tree.kind == "or"
    return decisive if decisive in values else None if None in values else not decisive


def normal_form(condition: str) -> list[list[tuple[str, bool]]]:
    """The definition, literally: NOT down to the comparisons, then an AND of ORs; every comparison on its own."""

    def form(tree, positive: bool) -> list[list[tuple[str, bool]]]:  # type: ignore[no-untyped-def]
        if tree.kind == "atom":
            return [[(condition[tree.span.start : tree.span.end].strip("() "), positive)]]
        if tree.kind == "not":
            return form(tree.parts[0], not positive)
        sides = [form(part, positive) for part in tree.parts]
        if (tree.kind == "and") == positive:
            return [clause for side in sides for clause in side]
        return [[literal for clause in choice for literal in clause] for choice in itertools.product(*sides)]

    return form(structure(read(condition, Span(0, len(condition)), lambda _: None)), True)


Row = Mapping[str, int | None]


def compare(atom: str, row: Mapping[str, int | None]) -> Truth:
    left, right = atom.split(" = ")
    values = [None if side == "NULL" else int(side) if side.isdigit() else row[side] for side in (left, right)]
    return None if None in values else values[0] == values[1]


def by_definition(condition: str, a: list[Row], b: list[Row]) -> bool:
    """Each OR is TRUE for every choice of one event for each variable in it; it holds if one of them is empty."""

    def holds(clause: list[tuple[str, bool]]) -> bool:
        used = [name for name in ("a", "b") if any(atom.startswith(f"{name}.") for atom, _ in clause)]
        for choice in itertools.product(*({"a": a, "b": b}[name] for name in used)):
            row = {
                f"{name}.{column}": value
                for name, event in zip(used, choice, strict=True)
                for column, value in event.items()
            }
            values = [compare(atom, row) for atom, _ in clause]
            if not any(value is positive for value, (_, positive) in zip(values, clause, strict=True)):
                return False
        return True

    return all(holds(clause) for clause in normal_form(condition))


def by_formula(formula: Formula, a: list[Row], b: list[Row]) -> bool:
    """Does the match that binds a and b pass the filters?"""
    match formula:
        case cel.Filter(inner, variable, predicate):
            events: Iterable[Row] = {"a": a, "b": b, None: [*a, *b, {}]}[variable]  # a match is never empty
            sql = predicate.sql.replace("`", "")
            return by_formula(inner, a, b) and all(
                truth(sql, lambda atom, e=e: compare(atom, e)) is True for e in events
            )
        case cel.FilterAny(inner, sides):
            return by_formula(inner, a, b) and any(
                by_formula(cel.Filter(cel.Event(None, frozenset()), *side), a, b) for side in sides
            )
    return True


VALUES = st.sampled_from([0, 1, None])
EVENTS = st.lists(st.fixed_dictionaries({"v": VALUES, "w": VALUES}), max_size=2)


@given(trees(), EVENTS, EVENTS)
def test_the_rule(condition: str, a: list[Row], b: list[Row]) -> None:
    formula = bound(where(condition, pattern="(A+ a) ; (B+ b)")).formula
    assert by_formula(formula, a, b) == by_definition(condition, a, b)


# ---------------------------------------------------------------- conditions on the whole match


def on_match(condition: str, pattern: str = "A+ a ; B+ b") -> str:
    """The conditions on the match, with the lists of events shortened."""
    texts = [sql.text for sql in bound(where(condition, pattern)).on_match]
    return " & ".join(re.sub(r"`__cersql_(\w+?)`", r"\1", text) for text in texts)


def test_aggregates_are_conditions_on_the_match() -> None:
    assert on_match("COUNT(b) > 2") == "walked0 > 2"
    assert on_match("COUNT(*) > 2") == "CAST(size AS BIGINT) > 2"
    assert on_match("a.v > 1 AND NOT (COUNT(b) > 2 OR FIRST(b.v) = 1)") == (
        "NOT (walked0 > 2 OR get(transform(var1, __e1 -> __e1.`v`), 0) = 1)"
    )


def test_events_beside_an_aggregate_are_asked_one_by_one() -> None:
    assert on_match("b.v > COUNT(a)") == "forall(var1, __e1 -> coalesce(__e1.`v` > walked0, FALSE))"
    assert on_match("a.v = b.v OR COUNT(*) > 9") == (
        "forall(var1, __e2 -> forall(var0, __e1 -> "
        "coalesce((__e1.`v` = __e2.`v`) OR (CAST(size AS BIGINT) > 9), FALSE)))"
    )
    # Two ORs: one speaks of each a and is a filter, one of the match.
    assert on_match("(a.v = 1 AND COUNT(*) > 1) OR 1 = 0") == "(CAST(size AS BIGINT) > 1) OR (1 = 0)"


def test_a_condition_on_events_stays_a_filter() -> None:
    query = bound(where("a.v = 1 AND (b.v = 2 OR COUNT(a) = 1) AND b.w = 3", "A a ; B+ b"))
    assert filters(query.formula) == "(a ; b+) | a: v = 1 | b: w = 3"
    assert len(query.on_match) == 1


@pytest.mark.parametrize(
    "marked",
    [
        "FROM t PATTERN A a ; B b WHERE a.v > 1 OR ‸OR b.v > 1 ORDER BY ts RETURN *",
        "FROM t PATTERN A a WHERE ‸AND a.v > 1 ORDER BY ts RETURN *",
        "FROM t PATTERN A a WHERE (a.v > 1 ‸OR) ORDER BY ts RETURN *",
    ],
)
def test_an_operator_without_a_side(marked: str) -> None:
    check_error(marked, "EMPTY_CONDITION", "stands between two conditions")


def test_warning_for_an_or_that_always_holds() -> None:
    query = bound(where("a.v > 5 OR b.v > 5", "(A a OR B b)"))
    assert query.warnings == (
        "An OR of conditions on a and b is always true, since no match has events of both: write AND.",
    )
    assert not bound(where("a.v > 5 OR b.v > 5", "(A a OR B b):+")).warnings
    assert not bound(where("a.v > 5 AND b.v > 5", "A a OR B b")).warnings
    assert len(bound(where("a.v > 5 OR b.v > 5 OR c.v > 5", "(A a OR B b) ; C c")).warnings) == 1
    assert not bound(where("a.v > 5 OR f.v > 5", "(A a OR B b) AS f ; C c")).warnings


def test_very_many_ands_on_one_event_are_one_filter() -> None:
    parts = [f"a.v <> {i}" for i in range(300)]
    (line,) = [filters(bound(where(" AND ".join([*parts, "b.v > 1", "b.k = 2"]))).formula)]
    assert line.count("| a: ") == line.count("| b: ") == 1
    assert all(f"(v <> {i})" in line for i in range(300))
    assert "(v > 1) AND (k = 2)" in line
    few = filters(bound(where("a.v <> 1 AND a.v <> 2")).formula)
    assert few.count("| a: ") == 2


@pytest.mark.parametrize(
    ("condition", "hint"),
    [
        ("‸f[i].ts - f[i-1].ts <= 60", "INTERVAL 60 SECONDS"),
        ("‸30 >= f[i].date - f[i-1].date", "INTERVAL 30 DAYS"),
    ],
)
def test_a_difference_of_times_is_no_number(condition: str, hint: str) -> None:
    check_error(where(condition, "A+ f"), "NOT_SUPPORTED_YET", hint)
