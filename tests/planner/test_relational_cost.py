"""What joins and the general engine are believed to cost, by the first rows of a stream."""

from __future__ import annotations

from dataclasses import replace

import pytest

import cersql
from planner.query import Query, Window
from planner.relational.branch import Branch
from planner.relational.conditions import Guard
from planner.relational.cost import First, Rows, Seen, of_engine, of_joins, seen
from planner.relational.planning import RelationalPlan, relational
from planner.relational.sql import slots_in

TIME = Window("time", 60_000_000)
MILLION = Rows(1e6, 1e6)
UNLESS = "(A a ; B b) UNLESS ((C c ; D d) FILTER c.v < d.v)"


def made(pattern: str, clauses: str = "WITHIN 1 MINUTE") -> RelationalPlan:
    text = f"FROM t PATTERN {pattern} PARTITION BY k ORDER BY ts {clauses} RETURN *"
    query: Query = cersql.compile(text, {"t": "ts timestamp, type string, k int, v double"}).query
    found = relational(query)
    assert isinstance(found, RelationalPlan)
    return found


def first(branches: tuple[Branch, ...], every: int, keys: int = 100, **shares: float) -> First:
    """A thousand rows, `every` so many microseconds one, each kind a fifteenth of them or as `shares` says."""
    guards: dict[Guard, float] = {slot.guard: shares.get(str(slot.type), 1 / 15) for slot in slots_in(branches)}
    return First(guards, sum(guards.values()), [i % keys for i in range(1000)], [i * every for i in range(1000)])


def costs(
    plan: RelationalPlan, rows: First, known: Rows = MILLION, window: Window | None = TIME
) -> tuple[float, float]:
    least, most = seen(rows, known, window, 3)
    return of_engine(plan.branches, plan.strategy, least), of_joins(plan.branches, plan.strategy, most)


def test_joins_are_cheaper_where_many_of_each_kind_wait() -> None:
    plan = made(UNLESS)
    engine, joins = costs(plan, first(plan.branches, 20_000))  # 3,000 rows in a minute, 30 of a key, 2 of each kind
    assert engine > 1.5 * joins
    engine, joins = costs(plan, first(plan.branches, 20_000, A=0.001))
    assert engine < joins, "of A there are few, and the engine meets no state"
    engine, joins = costs(plan, first(plan.branches, 20_000), Rows(10_000, 10_000))
    assert engine < joins, "joins have stages"


def test_joins_that_explode_cost_more_than_any_engine() -> None:
    """Of what comes out of `A ; B ; E` with few E, the engine sees what ends; a join of A and B has all pairs."""
    plan = made("(A a ; B b ; E e) UNLESS ((C c ; D d) FILTER c.v < d.v)")
    engine, joins = costs(plan, first(plan.branches, 100, E=0.001))  # 400 of A and B in a minute of a key
    assert joins > 20 * engine
    near, far = (costs(made(UNLESS), first(made(UNLESS).branches, every)) for every in (20_000, 500))
    assert far[1] > 100 * near[1], "40 times as many rows in a window"
    assert far[1] > 5 * far[0]


def test_skewed_keys_meet_more() -> None:
    plan = made(UNLESS)
    even = first(plan.branches, 20_000)
    skewed = replace(even, keys=[0 if i % 4 == 0 else i for i in range(1000)])
    assert costs(plan, skewed)[1] > 2 * costs(plan, even)[1]
    assert skewed.concentration(2) > skewed.concentration(0)


def test_rows_out_of_order_may_lie_anywhere() -> None:
    plan = made(UNLESS)
    ordered = first(plan.branches, 20_000)
    mixed = replace(ordered, clocks=ordered.clocks[::-1])
    assert costs(plan, mixed)[1] > 100 * costs(plan, ordered)[1]
    assert costs(plan, mixed)[0] == costs(plan, ordered)[0]
    assert costs(plan, ordered, Rows(1e6, 1e6, files=50))[1] > 100 * costs(plan, ordered)[1], "files begin anew"
    at_once = replace(ordered, clocks=[7] * 1000)
    assert costs(plan, at_once)[1] > 100 * costs(plan, ordered)[1]


def test_without_a_window_all_rows_of_a_key_meet() -> None:
    plan = made(UNLESS, "")
    (least, most) = seen(first(plan.branches, 20_000), MILLION, None, 3)
    assert most.met(0) == pytest.approx(10_000, rel=0.1)
    assert least.near == pytest.approx(10_000, rel=0.2)
    (_, counted) = seen(first(plan.branches, 1), MILLION, Window("events", 10), 3)
    assert counted.met(0) == 30


def test_rows_that_no_first_one_was_like_may_come() -> None:
    plan = made(UNLESS)
    least, most = seen(first(plan.branches, 20_000, D=0.0), MILLION, TIME, 3)
    guard = next(slot.guard for slot in slots_in(plan.branches) if slot.type == "D")
    assert (least.shares[guard], most.shares[guard]) == (0.0, 0.003)


def test_max_compares_the_matches_of_each_end() -> None:
    plan = made("A a ; B b", "WITHIN 1 MINUTE SEMANTICS MAX")
    assert plan.strategy == "MAX"
    shares = {slot.guard: 0.1 for slot in slots_in(plan.branches)}
    some = Seen(1e6, 0.2, shares, 100, [300])
    assert of_joins(plan.branches, "MAX", some) > 1.2 * of_joins(plan.branches, "ALL", some)
    assert of_engine(plan.branches, "MAX", some) > 1.5 * of_engine(plan.branches, "ALL", some)
