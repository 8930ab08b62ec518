"""What an event costs as more and more waits, beside what EXPLAIN says of it: the queries of the papers, and others.

    python tests/bench/curves.py [--repeat 3] [--only two-apart] [--seconds 20] [--most 1000000] [--values hot]
    python tests/bench/curves.py --without "deferred runs"      as queries were run before there was that way

Each line is a query in the engine alone, on one core, with 1,000, 2,000, 4,000 … events in its window and values that
hardly repeat; matches are not listed, but where the engine must know them to go on. A line ends with the slope of the
last half of its curve in log-log (0: constant, 1: linear), and goes on until one run takes longer than --seconds. What
EXPLAIN calls constant must have a slope below 0.2, logarithmic below 0.35, a power of the logarithm below 0.5, else the
line says so, and the exit code is 1. Which cost EXPLAIN says of each, tests/cersql/test_costs.py holds.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any, NamedTuple

import numpy as np

import cersql
from planner import candidates
from runtime.engine import engine_for

SCHEMA = {"t": {"type": "string", **dict.fromkeys(("x", "y", "z", "few", "ts"), "bigint")}}
VALUES = ("distinct", "equal", "sorted", "reversed", "hot")
MOST_SLOPE = {"a constant cost": 0.2, "a logarithmic cost": 0.35, "a power of the logarithm": 0.5}
FIRST, FIRST_SLOW, LEAST_EVENTS = 1_000, 125, 40_000  # events in the first window; of the general engine; of a stream


class Query(NamedTuple):
    pattern: str
    where: str = ""
    rest: str = ""


QUERIES = {
    # equality, between neighbours and others
    "chain": Query("A ; B ; C", "A.x = B.x AND B.y = C.y"),
    "chain-swapped": Query("A ; B ; C", "B.y = C.y AND A.x = B.x"),
    "two-equalities": Query("A ; B ; C", "A.few = B.few AND A.x = B.x"),
    "two-apart": Query("A ; B ; C", "A.x = C.x"),
    "apart-few": Query("A ; B ; C", "A.few = C.few"),
    "apart-loop": Query("A ; B+ ; C", "A.x = C.x"),
    "apart-before": Query("A+ a1 ; B b1 ; C c1", "a1.x = c1.x"),
    "four-apart": Query("A ; B ; C ; D", "A.x = D.x"),
    "apart-twice": Query("A a1 ; B ; C ; D ; A a2", "a1.x = C.x AND C.y = a2.y"),
    "apart-veto": Query("SEQ(A, B, !D, C)", "A.x = C.x"),
    "apart-own-veto": Query("SEQ(A, B, !D, C)", "A.x = C.x AND D.x = A.x"),
    "overlapping": Query("A ; B ; C ; D", "A.x = C.x AND B.y = D.y"),
    "chain-of-four": Query("A ; B ; C ; D", "C.z = D.z AND B.y = C.y AND A.x = B.x"),
    "same-twice": Query("A ; B ; C ; D", "A.x = B.x AND A.x = C.x"),
    "equal-loop": Query("A+ ; B ; C", "A.x = B.x"),
    "equal-veto": Query("SEQ(A a, !B b, C c, D d)", "a.x = b.x AND a.x = c.x"),
    "unequal": Query("A ; B", "A.x <> B.x AND A.y <> B.y"),
    "both-less": Query("A ; B", "A.x < B.x AND A.y > B.y"),
    "between": Query("A ; B", "A.x <= B.z AND A.y >= B.z"),
    "equal-unequal": Query("A ; B ; C", "A.x = B.x AND A.y <> B.y"),
    "equal-or": Query("A ; B", "A.x = B.x OR A.y = B.y"),
    "loop-unequal": Query("A+ m", "m[i-1].x = m[i].x AND m[i-1].y <> m[i].y"),
    "example-4": Query("(A AS p ; (B+ PART BY (y)) AS q ; B AS r) PART BY (p.x, q.x, r.x)"),  # φ₂* of [CHAIN]
    "proposition-9": Query("((A ; B) PART BY (x) ; C) OR (A ; (B ; C) PART BY (x))"),  # of [CHAIN]
    "loop-or": Query("((A a ; (B b OR C c)) FILTER a.x = b.x OR a.x = c.x)+"),
    "or-of-pairs": Query("((A ; B) FILTER A.x = B.x) OR ((A ; C) FILTER A.x = C.x)"),
    # order
    "less": Query("A ; B ; C", "A.x < B.x"),
    "equal-and-less": Query("A ; B ; C", "A.x = B.x AND A.y < B.y"),
    "arithmetic": Query("A a ; B+ b ; C c", "b[i].x > 1.1 * a.x"),
    "above-twice": Query("A a ; B b ; C c", "b.x > a.x AND c.x > a.x"),
    "greatest-apart": Query("A+ a1 ; B b1 ; C c1", "a1.x < c1.x"),
    "above-veto": Query("SEQ(A a1, B+ b1, !D d1, C c1)", "b1.x >= a1.x AND d1.x > a1.x"),
    "above-and-equal": Query("A a ; B+ b ; C c", "b.x > a.x AND c.x = a.x"),
    # what must not happen before
    "new-high": Query("!ANY x ; ANY g", "x.x >= g.x"),
    "new-low": Query("!ANY x ; ANY g", "x.x <= g.x"),
    "a-change": Query("!ANY x ; ANY g", "x.few <> g.few"),
    "seen-first": Query("!A x ; A g ; B b", "x.y = g.y"),
    "new-high-then": Query("!ANY x ; A a ; B b", "x.x >= a.x"),
    # in any order
    "p0": Query("(A a ALL B b) ; C c", "a.x = b.x AND b.x = c.x AND b.y = c.y"),  # Example 3.3 of [PCEA]
    "self-join": Query("ALL(A AS a1, A AS a2, B b)", "a1.x = a2.x AND a2.x = b.x AND a1.y = b.y"),
    "all-of-parts": Query("ALL((A ; B), C)", "A.x = B.x AND B.x = C.x AND A.y = C.y"),
    "or-of-all": Query("ALL(A, B) OR ALL(A, C)", "A.x = B.x AND A.y = C.y"),
    # operators around one equality
    "project": Query("PROJECT(a, b : A a ; B b) ; C", "a.x = b.x"),
    "unless": Query("(A ; B ; C) UNLESS D", "A.x = B.x"),
    "unless-several": Query("(A p ; B q) UNLESS (D:{9})", "p.x < q.x"),
    "unless-several-equal": Query("(A p ; B q ; C) UNLESS (D:{9})", "p.x = q.x"),
    "unless-part": Query("((A p ; B q) UNLESS (D:{9})) ; C", "p.x < q.x"),
    "start": Query("START(A ; B) ; C", "A.x = B.x"),
    "and": Query("(A ; ANY u ; B) AND (A ; ANY u ; B)", "A.x = B.x"),
    "and-equal": Query("((A p ; B q) AND (ANY p ; B q)) ; C", "p.x = q.x"),
    "and-less": Query("((A p ; B q) AND (ANY p ; B q)) ; C", "p.x < q.x"),
    "nested-nxt": Query("NXT(A ; B) ; C", "A.x = B.x"),
    "max": Query("MAX(A+ ; B)", "A.x = B.x"),
    "inner-window": Query("(A ; B WITHIN 100) ; C", "A.x = B.x"),
    # windows and strategies
    "plain": Query("A ; B+ ; C"),
    "window-inside": Query("(A ; B WITHIN 100) ; C"),
    "nxt": Query("A+ ; B", rest="SEMANTICS NXT"),
    "nxt-of-three": Query("A ; B ; C", rest="SEMANTICS NXT"),
    "last-of-three": Query("SEQ(A, !D, B+, C)", rest="SEMANTICS LAST"),
    "last": Query("A+ ; B", rest="SEMANTICS LAST"),
    "max-clause": Query("A+ ; B", rest="SEMANTICS MAX"),
    "trailing": Query("SEQ(A, B, !C)"),
    "trailing-veto": Query("SEQ(A, !D, B, !C)"),
    "skip": Query("A ; B", rest="AFTER MATCH SKIP PAST LAST ROW"),
    "cooldown": Query("ANY g : ANY:* rest", rest="AFTER MATCH SKIP PAST LAST ROW"),
    "longest-loop": Query("A+ a", rest="AFTER MATCH SKIP PAST LAST ROW"),
    "longest-above": Query("A g ; A* rest", "g.few <= rest.few", "AFTER MATCH SKIP PAST LAST ROW"),
    "repeat": Query("A ; B{1,500} ; C"),
    "at-least": Query("A ; B{5,} ; C"),
}


class Events(NamedTuple):
    """Columns of a stream: a quarter of each type, and values."""

    kinds: np.ndarray
    columns: dict[str, np.ndarray]


def events(n: int, values: str = "distinct") -> Events:
    """`values` of x, y and z: that hardly repeat, that are all one, that rise, that fall, and half of which are one.
    There are four of `few`."""
    random = np.random.default_rng(7)
    kinds = np.array(list("ABCD"))[random.integers(0, 4, n)]
    columns = {name: random.integers(0, n, n) for name in "xyz"}
    for name, own in columns.items():
        if values in ("sorted", "reversed"):
            columns[name] = np.arange(n)[:: 1 if values == "sorted" else -1].copy()
        elif values != "distinct":
            columns[name] = np.where((values == "equal") | (random.integers(0, 2, n) == 0), 1, own)
    return Events(kinds, columns | {"few": random.integers(0, 4, n)})


def symbols_of(program: Any, stream: Events) -> np.ndarray:
    """What the engine is fed for them."""
    n = len(stream.kinds)
    symbols = np.zeros((n, 1 + len(program.terms)), np.int64)
    for bit, guard in enumerate(program.guards):
        own = np.ones(n, bool)
        for kind in guard & set("ABCD"):
            own &= stream.kinds == kind
        symbols[:, 0] |= own.astype(np.int64) << bit
    for k, term in enumerate(program.terms):
        column = stream.columns[term.replace("`", "").split()[-1]]
        symbols[:, 1 + k] = column * 11 // 10 if "1.1" in term else column
    return symbols if symbols.shape[1] > 1 else symbols[:, 0]


def once(program: Any, symbols: np.ndarray) -> float:
    """Seconds to read the events."""
    n = len(symbols)
    chooses = program.skip or program.ends_late or program.pick != "ALL" or program.family == "two stacks"
    engine, times, mute = engine_for(program), np.arange(n, dtype=np.int64), np.ones(n, np.bool_)
    begin = time.perf_counter()
    for at in range(0, n, 10_000):
        part = slice(at, at + 10_000)
        engine.count(symbols[part], times[part], mute=None if chooses else mute[part])
    for _ in engine.flush():
        pass
    return time.perf_counter() - begin


def claim_of(told: str) -> str:
    """What EXPLAIN says that an event costs where runs hold something; nothing else is said to grow."""
    costs = [line for line in told.splitlines() if "cost" in line]
    for claim in MOST_SLOPE:
        if any(claim in line for line in costs):
            return claim
    return "by what waits" if costs else ""


def measured(name: str, query: Query, arguments: argparse.Namespace) -> bool:
    """One line: the microseconds an event for each window, and the slope. Is it what EXPLAIN says?"""
    where = f"WHERE {query.where}" if query.where else ""
    text = f"FROM t PATTERN {query.pattern} {where} ORDER BY ts WITHIN WINDOW {query.rest} RETURN match_start"
    shown: list[float] = []
    window, steps, claim = FIRST, list[int](), ""
    while window <= arguments.most:
        compiled = cersql.compile(text.replace("WINDOW", str(window)), SCHEMA)
        claim, runs = claim_of(compiled.explain("physical")), compiled.plan.stepper
        if not shown and runs == "general engine":
            window = FIRST_SLOW
            compiled = cersql.compile(text.replace("WINDOW", str(window)), SCHEMA)
        if not shown:
            print(f"{name:15} {runs:15} {claim:18}", end="", flush=True)
            once(compiled.program, symbols_of(compiled.program, events(200)))  # compiles, or loads, the kernels
        n = max(3 * window, LEAST_EVENTS) if runs != "general engine" else 2 * window
        symbols = symbols_of(compiled.program, events(n, arguments.values))
        begin = time.perf_counter()
        shown.append(min(once(compiled.program, symbols) for _ in range(arguments.repeat)) / n * 1e6)
        steps.append(window)
        print(f" {shown[-1]:8.2f}", end="", flush=True)
        if 2 * (time.perf_counter() - begin) > arguments.seconds * arguments.repeat:
            break
        window *= 2
    half = len(shown) // 2
    slope = float(np.polyfit(np.log(steps[half:]), np.log(shown[half:]), 1)[0]) if len(shown) > 3 else float("nan")
    as_said = not slope > MOST_SLOPE.get(claim, np.inf)
    print(f"  slope {slope:5.2f}{'' if as_said else '  MORE THAN EXPLAIN SAYS'}", flush=True)
    return as_said


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", action="append", choices=sorted(QUERIES))
    parser.add_argument("--seconds", type=float, default=20, help="no longer windows after a run that took so long")
    parser.add_argument("--most", type=int, default=64_000, help="events in the longest window")
    parser.add_argument("--values", choices=VALUES, default=VALUES[0])
    parser.add_argument("--without", choices=[name for name, _ in candidates.CANDIDATES], help="this way of running")
    arguments = parser.parse_args()
    candidates.CANDIDATES = tuple(own for own in candidates.CANDIDATES if own[0] != arguments.without)
    print(f"microseconds an event, {FIRST:,} events in the window (general engine: {FIRST_SLOW}), then twice as many")
    as_said = [measured(name, QUERIES[name], arguments) for name in arguments.only or QUERIES]
    return 0 if all(as_said) else 1


if __name__ == "__main__":
    sys.exit(main())
