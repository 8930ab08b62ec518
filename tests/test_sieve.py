"""Matches that fail a condition on an aggregate are passed over where they are listed, and no other is."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from small import shrunk

import cersql
from planner.physical import PhysicalPlan
from runtime.compact_set.matches import Matches
from runtime.engine import engine_for
from runtime.partition.terms import weight_codes
from runtime.program import NULL_CODE, Program

SCHEMA = {"t": "type STRING, ts LONG, v INT, w DOUBLE, l BIGINT, d DECIMAL(10, 2)"}
PATTERNS = (
    "A a ; B+ b ; C c", "A+ a ; B+ b", "(A a OR B b)+ ; C c", "A a ; (B b ; C? c)+", "B+ b", "A a ; B{2,12} b ; C c",
    "A a ; B+ b ; C c WHERE a.v <= c.v", "SEQ(A a, B+ b, !D, C c)", "A:+ a ; B+ b",
    "A a ; B+ b ; C c WHERE a.v = c.v", "SEQ(A a, B+ b, !D)",
)  # fmt: skip
FUNCTIONS: dict[str, Any] = {"SUM": sum, "MIN": min, "MAX": max, "AVG": lambda own: sum(own) / len(own), "COUNT": len}
HOLDS: dict[str, Any] = {
    "<": lambda a, b: a < b, "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
    "=": lambda a, b: a == b,
}  # fmt: skip
Match = tuple[tuple[int, frozenset[str]], ...]
Values = dict[str, list[float | None]]


def planned(pattern: str, condition: str, events: int = 8) -> PhysicalPlan:
    joined = "AND" if "WHERE" in pattern else "WHERE"
    text = f"FROM t PATTERN {pattern} {joined} {condition} WITHIN {events} EVENTS ORDER BY ts RETURN *"
    return cersql.compile(text, SCHEMA).plan


def symbols_of(plan: PhysicalPlan, kinds: Sequence[str], values: Values) -> Any:
    program = plan.program
    read = [*program.terms, *(sql for _, sql in plan.sifts.columns)]
    found = np.zeros((len(kinds), program.words + len(read)), np.int64)
    for row, kind in enumerate(kinds):
        for bit, guard in enumerate(program.guards):
            found[row, 0] |= int(guard <= {kind}) << bit
        for n, name in enumerate(read):
            value = values["w" if "w" in name else "v"][row]
            weighs = n >= len(program.terms)
            code = NULL_CODE if value is None else np.float64(value + 0.0).view(np.int64) if weighs else int(value)
            found[row, program.words + n] = code
    return found


def listed(program: Program, symbols: Any, borders: Sequence[int], numbers: Any) -> set[Match]:
    """The matches of rows with these numbers, read in pieces: by row and label."""
    engine, found = engine_for(program), list[Match]()

    def take(given: Iterator[Matches]) -> None:
        for some in given:
            for k in range(some.n):
                part = slice(int(some.offsets[k]), int(some.offsets[k + 1]))
                labels = [program.labels[label] for label in some.labels[part]]
                found.append(tuple(zip(some.positions[part].tolist(), labels, strict=True)))

    for begin, end in pairwise(borders):
        clocks = np.arange(begin, end, dtype=np.int64)
        take(engine.feed(symbols[begin:end], clocks, None, None, numbers[begin:end]))
    take(engine.flush())
    assert len(found) == len(set(found))
    return set(found)


def holds(match: Match, asked: Sequence[tuple[str, str, str, str, float]], values: Values, numbers: Any) -> bool:
    at = {int(number): row for row, number in enumerate(numbers)}
    for variable, function, column, op, number in asked:
        own = [values[column][at[place]] for place, label in match if variable in label]
        known = [value for value in own if value is not None]
        if not known and function != "COUNT":
            return False
        if not HOLDS[op](FUNCTIONS[function](known), number):
            return False
    return True


@pytest.mark.parametrize("seed", [*range(12), *(pytest.param(n, marks=pytest.mark.exhaustive) for n in range(12, 500))])
def test_what_holds_is_listed(seed: int) -> None:
    chance = random.Random(seed)
    for pattern in PATTERNS:
        variables = [name for name in "abc" if re.search(rf"[A-C+}}?] {name}\b", pattern)]
        asked = [
            (
                chance.choice(variables), chance.choice(list(FUNCTIONS)), chance.choice("vw"),
                chance.choice(list(HOLDS)), chance.choice((-3, -1, 0, 1, 2, 2.5, 3, 4.5, 6)),
            )
            for _ in range(chance.choice((1, 1, 2)))
        ]  # fmt: skip
        plan = planned(pattern, " AND ".join(f"{f}({v}.{c}) {op} {n}" for v, f, c, op, n in asked))
        assert plan.program.sieve, plan.query.text
        n = chance.randint(1, 14)
        kinds = chance.choices("AABBBCD", k=n)
        whole, some = (None, -2, -1, 0, 1, 2, 3), (None, -1.5, 0.1, 0.2, 1.0, 2.5)
        values: Values = {"v": chance.choices(whole, k=n), "w": chance.choices(some, k=n)}
        symbols = symbols_of(plan, kinds, values)
        numbers = np.array(chance.sample(range(3 * n), n) if chance.random() < 0.5 else range(n), np.int64)
        own = symbols[:, : plan.program.words + len(plan.program.terms)]
        plain = replace(plan.program, sieve=(), n_weights=0)
        every = listed(plain, own[:, 0].copy() if own.shape[1] == 1 else own.copy(), [0, n], numbers)
        borders = sorted({0, n, *chance.choices(range(n + 1), k=3)})
        want = {match for match in every if holds(match, asked, values, numbers)}
        with shrunk():
            found = listed(plan.program, symbols, borders, numbers)
        assert want <= found <= every, (plan.query.text, kinds, values)
        if all(column == "v" for _, _, column, _, _ in asked):  # whole numbers, whose sums are exact
            assert found == want, (plan.query.text, kinds, values)


@pytest.mark.parametrize(
    ("condition", "holding"),
    [
        ("SUM(b.v) > 199", 1), ("SUM(b.v) >= 199", 201), ("SUM(b.v) < 2", 200), ("SUM(b.w) >= 200", 1),
        ("SUM(b.v) > a.v", 1), ("a.w < SUM(b.w)", 1), ("AVG(b.v) < 1", 0), ("AVG(b.w) > 2.5", 0), ("MAX(b.v) > 1", 0),
        ("MIN(b.w) < 1", 0), ("COUNT(b.v) > 199", 1),
    ],
)  # fmt: skip
def test_what_fails_is_passed_over(condition: str, holding: int) -> None:
    """2²⁰⁰ matches, of which few hold."""
    plan = planned("A a ; B+ b ; C c", condition, 300)
    values: Values = {name: [199.0, *[1.0] * 200, 1.0] for name in "vw"}
    symbols = symbols_of(plan, "A" + "B" * 200 + "C", values)
    assert plan.sifts.is_sharp
    assert len(listed(plan.program, symbols, [0, 202], np.arange(202))) == holding


@pytest.mark.parametrize(
    ("condition", "bounds"),
    [
        ("STDDEV(b.v) > 1", 0), ("SUM(b.v) > 1 OR MAX(b.v) < 2", 0), ("SUM(b.v * b.v) > 1", 0),
        ("SUM(b.w * b.w) > 1", 1),
        ("SUM(b.v) <> 1", 0), ("MAX(b.v) < MIN(b.w)", 0), ("SUM(b.v) > AVG(b.v)", 0), ("SUM(b.v) BETWEEN 1 AND 2", 0),
        ("MAX(b.v) = 2", 2), ("SUM(b.v) > 1 AND MIN(b.w) < 0", 2), ("MAX(b.v) < 2", 2),
        ("SUM(b.v) FILTER (WHERE b.w > 1) > 3", 1),
        ("SUM(1 / b.v) > 0", 0), ("SUM(CAST(b.w AS INT)) > 0", 0),
    ],
)  # fmt: skip
def test_what_has_bounds(condition: str, bounds: int) -> None:
    """An expression that could fail on a row that no match has is none of them."""
    assert len(planned("A a ; B+ b ; C c", condition).program.sieve) == bounds


@pytest.mark.parametrize(
    "text",
    [
        "A a ; B+ b WHERE SUM(b.v) > 3 AND a.v = b.v WITHIN 5 RETURN * WITH TIMEOUTS",
        "ALL(A a, B b, C c) WHERE a.v = b.v AND b.v = c.v AND a.w = b.w AND SUM(b.v) > 3 RETURN *",
        "A a ; B+ b RETURN COUNT(*) GROUP BY () HAVING COUNT(*) > 3",
        "A a ; B+ b WHERE a.v < b.v WITHIN 5 SEMANTICS LAST RETURN * HAVING SUM(b.v) > 3",
        "((A a ; B+ b) FILTER SUM(b.v) > 3)+ RETURN *", "(((A a ; B+ b) FILTER SUM(b.v) > 3) OR C) RETURN *",
        "((A a ; B+ b) FILTER SUM(b.v) > 3) ; B b RETURN *",
    ],
)  # fmt: skip
def test_what_has_none(text: str) -> None:
    """Where matches compete, where runs go side by side, and for parts that a match has several times."""
    made = cersql.compile(f"FROM t PATTERN {text.replace(' RETURN', ' ORDER BY ts RETURN')}", SCHEMA)
    assert not made.plan.program.sieve


@pytest.mark.parametrize(
    ("condition", "number"),
    [
        ("COUNT(b.d) <= 2", 3), ("SUM(b.d) > 3.75", 0), ("SUM(b.d) >= 3.75", 1), ("AVG(b.d) < 2", 2),
        ("MAX(b.d) < 2.5", 1), ("COUNT(b.l) <= 2", 3), ("SUM(b.l) > 9007199254740993", 1),
        ("MIN(b.l) < 2", 2), ("SUM(b.d) < COUNT(b.l)", 0),
        ("SUM(b.d) > SUM(b.v)", 3), ("SUM(b.v) < SUM(b.d)", 3),
    ],
)  # fmt: skip
def test_decimals_and_large_numbers(condition: str, number: int) -> None:
    """Weights are DOUBLEs: decimals count in their last digit, and what DOUBLE rounds has wider bounds."""
    plan = planned("A a ; B+ b ; C c", condition)
    rows = pa.table({
        "v": pa.array([0, 1, 1, 0], pa.int32()), "d": pa.array([None, "1.25", "2.50", None]).cast(pa.decimal128(10, 2)),
        "l": pa.array([0, 1, (1 << 53) + 1, 0], pa.int64()),
    })  # fmt: skip
    names = [sql.strip("`") for _, sql in plan.sifts.columns]
    values: Values = {name: [0.0] * 4 for name in "vw"}
    symbols = symbols_of(plan, "ABBC", values)
    symbols[:, plan.program.words :] = weight_codes([rows.column(name) for name in names])
    found = listed(plan.program, symbols, [0, 4], np.arange(4))
    assert len(found) >= number
    assert len(found) == number or "l" in names, found


def test_numbers_that_are_none() -> None:
    """NaN is the greatest DOUBLE; a sum with it, or with infinity, has no bounds."""
    values: Values = {"v": [0, 1, 1, 0], "w": [0.0, math.nan, 1.0, 0.0]}
    for condition, number in (("SUM(b.w) > 100", 3), ("MAX(b.w) > 100", 2), ("MIN(b.w) > 100", 1), ("MIN(b.w) < 2", 2)):
        plan = planned("A a ; B+ b ; C c", condition)
        found = listed(plan.program, symbols_of(plan, "ABBC", values), [0, 4], np.arange(4))
        assert len(found) == number, condition
