"""Layouts, what is dropped and why, spans, and the symbol's columns."""

from __future__ import annotations

from dataclasses import replace

import pytest
from queries import bound

from planner.layout import LEAST_SLICE, MAX_SPAN, SLICE_WINDOWS
from planner.physical import PhysicalPlan, plan
from planner.symbols import drop_sql, packed_symbol_sql, symbol_sql


def planned(rest: str, source: str = "t") -> PhysicalPlan:
    order = "" if "ORDER BY" in rest else " ORDER BY ts"
    return plan(bound(f"FROM {source} PATTERN {rest}{order} RETURN *"))


@pytest.mark.parametrize(
    ("rest", "layout", "drops", "span", "fragment"),
    [
        ("A ; B PARTITION BY k", "keys", True, None, "PARTITION BY k: each key's rows meet in one task"),
        ("A ; B PARTITION BY k, w WITHIN 5 MINUTES", "keys", True, None, "PARTITION BY k, w"),
        ("A : B PARTITION BY k", "keys", False, 2, "rows that satisfy no condition are kept"),
        ("A ; B WITHIN 5 MINUTES", "slices", True, None, f"slices of {SLICE_WINDOWS} windows"),
        ("A : B WITHIN 5 MINUTES", "slices", False, 2, "the pattern sees what lies between"),
        ("A ; B", "single", True, None, "matched in one task"),
        ("A", "single", True, 1, "none of the 1 conditions (A)"),
        ("A : B", "ranges", False, 2, "a match spans at most 2"),
        ("A : (B : C OR D)", "ranges", False, 3, "a match spans at most 3"),
        ("A : B:+", "ranges", False, None, "unbounded span"),
        ("A : B ; C", "ranges", False, None, "unbounded span"),
        ("A ; B WITHIN 100 EVENTS", "ranges", False, 100, "a match spans at most 100"),
        ("A : B WITHIN 100 EVENTS", "ranges", False, 2, "a match spans at most 2"),
        (f"A ; B WITHIN {MAX_SPAN + 1} EVENTS", "ranges", False, None, "unbounded span"),
        ("ANY x ; A", "single", False, None, "every row can be part of a match"),
        ("A ; B ; C ; D ; E", "single", True, None, "(A or B or C or …)"),
    ],
)
def test_layout(rest: str, layout: str, drops: bool, span: int | None, fragment: str) -> None:
    found = planned(rest)
    assert (found.layout, found.drops, found.span) == (layout, drops, span)
    assert fragment in " ".join(found.reasons)
    assert f"layout: {layout}" in str(found)
    assert (found.slice_size is not None) == (layout == "slices" or (layout == "ranges" and span is not None))


def test_slices() -> None:
    assert planned("A ; B WITHIN 5 MINUTES").slice_size == SLICE_WINDOWS * 300_000_000
    # a window of no length still needs slices of some; floats have no slices, nor has a window without end
    assert planned("ticks ; ticks WITHIN < 1 ORDER BY n", "ticks").slice_size == 1
    assert planned("ticks ; ticks WITHIN 1.5 ORDER BY x", "ticks").layout == "single"
    assert planned("ticks ; ticks WITHIN 1e30 ORDER BY n", "ticks").layout == "single"


def test_slices_of_positions() -> None:
    assert planned("A : B").slice_size == LEAST_SLICE
    assert planned("A ; B WITHIN 5000 EVENTS").slice_size == SLICE_WINDOWS * 5000


def test_the_type_in_the_symbol() -> None:
    """What breaks ties where the type is only tested: the symbol itself, or a rank packed above it."""
    dropped = planned("B b ; A a")
    assert (dropped.type_column, dropped.type_in_symbol) == ("type", True)
    assert dropped.guards == ("(`type` = 'A')", "(`type` = 'B')")  # symbols sort as the types do
    assert packed_symbol_sql(dropped) is None
    kept = planned("B b : A a")
    assert (kept.type_column, kept.type_in_symbol) == ("type", False)
    assert "`type` >= 'A'" in (packed_symbol_sql(kept) or "")
    assert packed_symbol_sql(planned("B b : A a WHERE a.v > 1")) is None  # v breaks ties, too
    assert planned("ANY x : A").type_column is None
    assert planned("A x ; A y WHERE x.v > 1").type_in_symbol is False


def test_the_rank_and_the_symbol_fit_an_int() -> None:
    """Two types have ranks of three bits; the sign is not used."""
    made = planned("B b : A a")
    packed = [packed_symbol_sql(replace(made, guards=tuple(f"g{i}" for i in range(n)))) for n in (12, 13, 28, 29)]
    types = [None if sql is None else sql.rsplit(" AS ", 1)[1] for sql in packed]
    assert types == ["SMALLINT)", "INT)", "INT)", None]


def test_guards() -> None:
    found = planned("A a ; B b WHERE a.v > 1 AND a.w > 2 AND b.v > 1")
    assert found.guards == ("(`type` = 'A') AND (`v` > 1) AND (`w` > 2)", "(`type` = 'B') AND (`v` > 1)")
    assert drop_sql(found) == f"({found.guards[0]}) OR ({found.guards[1]}) OR `ts` IS NULL"
    assert drop_sql(planned("A : B")) is None


def test_an_event_that_anything_satisfies() -> None:
    assert planned("ANY a ; ANY b").guards == ("TRUE",)


@pytest.mark.parametrize(
    ("n", "types"),
    [
        (1, ["TINYINT"]), (7, ["TINYINT"]), (8, ["SMALLINT"]), (15, ["SMALLINT"]), (16, ["INT"]), (31, ["INT"]),
        (32, ["BIGINT"]), (62, ["BIGINT"]), (63, ["BIGINT", "TINYINT"]), (125, ["BIGINT", "BIGINT", "TINYINT"]),
    ],
)  # fmt: skip
def test_symbol_columns(n: int, types: list[str]) -> None:
    """The narrowest type that holds the bits and stays positive: the highest bit of each is the sign."""
    columns = symbol_sql(tuple(f"x = {i}" for i in range(n)))
    assert [name for name, _ in columns] == [f"__cersql_symbol{w}" for w in range(len(types))]
    assert [sql.rsplit(" AS ", 1)[1].rstrip(")") for _, sql in columns] == types
    last = columns[-1][1]
    bit = (n - 1) % 62
    suffix = "L" if bit > 30 else ""
    assert f"IF(x = {n - 1}, {1 << bit}{suffix}, 0{suffix})" in last
    assert sum(sql.count("IF(") for _, sql in columns) == n


def test_no_guards() -> None:
    assert symbol_sql(()) == [("__cersql_symbol0", "CAST(0 AS TINYINT)")]


def test_many_types_make_two_words() -> None:
    pattern = " OR ".join(f"T{i}" for i in range(63))
    found = planned(pattern)
    assert found.program.words == 2
    assert len(symbol_sql(found.guards)) == 2


@pytest.mark.parametrize(
    ("pattern", "having", "why"),
    [
        ("A a ; B+ b WHERE STDDEV(b.v) > 10", "", "since WHERE asks about them as a whole"),
        ("A a ; B+ b", "HAVING STDDEV(b.v) > 10", "since HAVING asks about them as a whole"),
        ("A a ; B+ b WHERE LAST(b.v) > 10", "HAVING LAST(b.v) < 9", "since WHERE and HAVING ask about them as a whole"),
        ("A a ; B+ b WHERE STDDEV(b.v) > 10 SEMANTICS SKIP TILL NEXT MATCH", "", "since WHERE asks"),
        ("A a ; B+ b WHERE SUM(b.v) > 10 SEMANTICS MAX", "HAVING COUNT(b) > 1", "since HAVING asks"),
        ("A a ; B+ b WHERE b.v > 10", "", None),
    ],
)
def test_what_lists_all_matches_is_said(pattern: str, having: str, why: str | None) -> None:
    found = str(plan(bound(f"FROM t PATTERN {pattern} ORDER BY ts RETURN * {having}")))
    lines = [line for line in found.split("\n") if "all matches are listed and then filtered" in line]
    assert len(lines) == (why is not None)
    assert why is None or why in lines[0]
    assert ("MAX: in a second pass" in found) == ("SEMANTICS MAX" in pattern)
