"""Random queries whose WHERE asks about whole matches, from texts through Spark, beside any clause that chooses."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import oracle
import pytest
import sparks
from oracle import Event

import cersql
from planner import cel
from planner.formula import Formula
from planner.query import Skip
from planner.terms import Window

ROUNDS = int(os.environ.get("CERSQL_DIFFERENTIAL", "1"))
QUERIES = 12  # a round is one Spark job
SCHEMA = "id bigint, ts bigint, key int, type string, v int"
Row = dict[str, Any]

A, B, C = (cel.Event(kind, frozenset({name})) for kind, name in zip("ABC", "xyz", strict=True))
ANOTHER = cel.Event("A", frozenset({"y"}))
PATTERNS: dict[str, Formula] = {
    "A x ; B y": cel.Sequence(A, B),
    "A+ x ; B y": cel.Sequence(cel.Iteration(A), B),
    "A x : (B y OR A y)": cel.Contiguous(A, cel.Or(B, ANOTHER)),
    "A x ; B+ y ; C z": cel.Sequence(cel.Sequence(A, cel.Iteration(B)), C),
    "SEQ(A x, !C z, B y)": cel.Absent(A, (C,), B),
}
Held = Mapping[str, Sequence[Row]]


def total(held: Held, name: str) -> int | None:
    values = [row["v"] for row in held.get(name, ()) if row["v"] is not None]
    return sum(values) if values else None


def above(value: int | None, least: int | None) -> bool:
    return value is not None and least is not None and value > least


def last_above_first(held: Held) -> bool:
    a, b = held["x"][0]["v"], held["y"][-1]["v"]
    return above(b, a)


def product_is_odd(held: Held) -> bool:
    """For every x and y; an arithmetic on two events that no engine sorts by."""
    pairs = [(a["v"], b["v"]) for a in held["x"] for b in held["y"]]
    return all(a is not None and b is not None and (a * a + b) % 3 != 0 for a, b in pairs)


CONDITIONS: dict[str, Any] = {
    "LAST(y.v) > FIRST(x.v)": last_above_first,
    "y[1].v <> 3": lambda held: held["y"][0]["v"] not in (None, 3),
    "SUM(x.v) > 2": lambda held: above(total(held, "x"), 2),
    "COUNT(x) + COUNT(y) > 2": lambda held: len(held["x"]) + len(held["y"]) > 2,
    "(x.v * x.v + y.v) % 3 <> 0": product_is_odd,
}
SKIPS = {
    "PAST LAST ROW": Skip("PAST LAST ROW"), "TO NEXT ROW": Skip("TO NEXT ROW"), "TO FIRST y": Skip("TO FIRST", "y"),
    "TO LAST x": Skip("TO LAST", "x"),
}  # fmt: skip
NAMES = {"ALL": "", "NEXT_MATCH": "SKIP TILL NEXT MATCH"}


class Query:
    """One that the oracle can say the answer of."""

    def __init__(self, chance: random.Random) -> None:
        self.pattern = chance.choice(list(PATTERNS))
        self.condition = chance.choice(list(CONDITIONS))
        kind = chance.choice(("strategy", "consume", "skip", "skip", "timeouts"))
        strategies = ["ALL", "NXT", "LAST"] if kind == "skip" else ["ALL", "STRICT", "NXT", "LAST", "MAX"]
        decided = "(" not in self.condition or self.condition[0] != "("  # at the end of a match
        self.strategy = chance.choice([*strategies, *(["NEXT_MATCH"] if decided else [])])
        self.consume = chance.choice(("PARTITION", "ANY")) if kind == "consume" else "NONE"
        self.skip = chance.choice(list(SKIPS)) if kind == "skip" else None
        self.timeouts = kind == "timeouts" or (self.consume != "ANY" and chance.random() < 0.3)
        self.window = chance.choice((None, Window("time", 4), Window("events", 5)))
        self.keyed = chance.random() < 0.6

    def text(self) -> str:
        lines = [
            f"FROM rivals_at_random PATTERN {self.pattern}",
            f"WHERE {self.condition}",
            "PARTITION BY key" if self.keyed else "",
            "ORDER BY ts, id",
            "" if self.window is None else f"WITHIN {self.window.size} {'EVENTS' * (self.window.kind == 'events')}",
            f"SEMANTICS {NAMES.get(self.strategy, self.strategy)}" if self.strategy != "ALL" else "",
            f"CONSUME BY {self.consume}" if self.consume != "NONE" else "",
            f"AFTER MATCH SKIP {self.skip}" if self.skip else "",
            "RETURN * WITH TIMEOUTS" if self.timeouts else "RETURN *",
        ]
        return "\n".join(filter(None, lines))

    def expected(self, rows: Sequence[Row]) -> Counter[tuple[Hashable, ...]]:
        """Status and events of each row, of a timeout its start."""
        formula, kept = PATTERNS[self.pattern], CONDITIONS[self.condition]
        order = sorted(rows, key=lambda row: (row["ts"], row["id"]))
        parts: dict[Hashable, list[Row]] = {}
        for row in order:
            parts.setdefault(row["key"] if self.keyed else None, []).append(row)

        def where(key: Hashable, c: oracle.Complex) -> bool:
            held = {name: [parts[key][p] for p in sorted(own)] for name, own in oracle.as_match(c)[2]}
            return bool(kept(held))

        events = [Event(frozenset({row["type"]}), row["ts"], row["key"] if self.keyed else None) for row in order]
        skip = SKIPS[self.skip] if self.skip else None
        options: dict[str, Any] = {"strategy": self.strategy, "consume": self.consume, "skip": skip}
        found: Counter[tuple[Hashable, ...]] = Counter()
        chosen = oracle.evaluate_partitioned(formula, events, self.window, None, where=where, **options)
        for key, matches in chosen.items():
            for _, _, mu in matches:
                held = frozenset((name, tuple(sorted(parts[key][p]["id"] for p in own))) for name, own in mu)
                found["match", held] += 1
        for key, own in parts.items() if self.timeouts else ():
            part = [Event(frozenset({row["type"]}), row["ts"]) for row in own]
            late = oracle.timeouts(
                formula, part, ("x", "y", "z"), self.window, **options, where=lambda _, c, key=key: where(key, c)
            )
            for start in late:
                found["timeout", own[start]["id"]] += 1
        return found

    def found(self, rows: Sequence[Mapping[str, Any]]) -> Counter[tuple[Hashable, ...]]:
        found: Counter[tuple[Hashable, ...]] = Counter()
        for row in rows:
            held = sparks.bound(row, without=("key", "match_start", "match_end", "match_status", "match_reached"))
            if row.get("match_status", "match") == "match":
                found["match", held] += 1
            else:
                found["timeout", min(ids[0] for _, ids in held)] += 1
        return found


def draw_rows(chance: random.Random) -> list[Row]:
    rows, now = [], 0
    for number in range(chance.randint(14, 18)):
        now += chance.choice((0, 1, 1, 2))
        kind, v = chance.choice("AAABBBC-"), chance.choice((None, *range(7)))
        rows.append({"id": number, "ts": now, "key": chance.choice((0, 0, 1, None)), "type": kind, "v": v})
    return rows


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_random_queries(spark: Any, seed: int) -> None:
    session, chance = sparks.taught(spark), random.Random(seed)
    rows = draw_rows(chance)
    sparks.view(session, "rivals_at_random", [tuple(row.values()) for row in rows], SCHEMA)
    queries = [Query(chance) for _ in range(QUERIES)]
    frames = [cersql.sql(session, query.text()) for query in queries]
    total = 0
    for query, found in zip(queries, sparks.together(frames), strict=True):
        have, want = query.found(found), query.expected(rows)
        assert have == want, f"{query.text()}\nmissing {want - have}\ntoo many {have - want}\n{rows}"
        total += want.total()
    assert total > 0
