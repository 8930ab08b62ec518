"""What EXPLAIN says that an event costs, held to the clock: the time per event as more and more waits.

    python tests/bench/growth.py [--repeat 3] [--only new-high] [--slow]

Each line is a query in the engine alone, on one core, with 4,000 … 64,000 events in its window and values that differ,
and then how the time per event grew from the first column to the last. A constant cost grows as the caches fill, by 1
to 3; a logarithmic one by little more; a cost by what waits by 16, as the window does. With --slow also the queries of
which EXPLAIN says the last, in windows that they bear. --without "deferred runs" --slow runs queries as they were run
before there was that way.
"""

from __future__ import annotations

import argparse
import time
from typing import Any, NamedTuple

import numpy as np

import cersql
from planner import candidates
from runtime.engine import engine_for

WINDOWS = (4_000, 8_000, 16_000, 32_000, 64_000)
SMALL = (500, 1_000, 2_000, 4_000, 8_000)
SCHEMA = {
    "t": {
        "type": "string",
        "x": "bigint",
        "y": "bigint",
        "z": "bigint",
        "few": "bigint",
        "one": "bigint",
        "ts": "bigint",
    }
}
CONSTANT, LOG, EQUAL, EACH = "constant", "logarithmic", "beside an equal one", "values that wait in the window"


class Query(NamedTuple):
    """`events`: of how many windows the stream is; `claim`: what EXPLAIN says of it, None where it says nothing."""

    pattern: str
    where: str = ""
    rest: str = ""
    claim: str | None = CONSTANT
    events: int = 4


QUERIES = {
    "chain": Query("A ; B ; C", "A.x = B.x AND B.y = C.y"),
    "chain-swapped": Query("A ; B ; C", "B.y = C.y AND A.x = B.x"),
    "chain-of-four": Query("A ; B ; C ; D", "C.z = D.z AND B.y = C.y AND A.x = B.x"),
    "two-equalities": Query("A ; B ; C", "A.few = B.few AND A.x = B.x"),
    "same-twice": Query("A ; B ; C ; D", "A.x = B.x AND A.x = C.x"),
    "equal-loop": Query("A+ ; B ; C", "A.x = B.x"),
    "no-equal-between": Query("SEQ(A a, !B b, C c, D d)", "a.x = b.x AND a.x = c.x"),
    "less": Query("A ; B ; C", "A.x < B.x", claim=LOG),
    "equal-and-less": Query("A ; B ; C", "A.x = B.x AND A.y < B.y", claim=EQUAL),
    "two-apart": Query("A ; B ; C", "A.x = C.x", claim=LOG),
    "two-apart-few": Query("A ; B ; C", "A.few = C.few", claim=LOG),
    "two-apart-alike": Query("A ; B ; C", "A.one = C.one", claim=LOG),
    "loop-between": Query("A ; B+ ; C", "A.x = C.x", claim=LOG),
    "loop-before": Query("A+ a1 ; B b1 ; C c1", "a1.x = c1.x", claim=LOG),
    "four-apart": Query("A ; B ; C ; D", "A.x = D.x", claim=LOG),
    "apart-twice": Query("A a1 ; B ; C ; D ; A a2", "a1.x = C.x AND C.y = a2.y", claim=LOG),
    "apart-with-veto": Query("SEQ(A, B, !D, C)", "A.x = C.x", claim=LOG),
    "apart-own-veto": Query("SEQ(A, B, !D, C)", "A.x = C.x AND D.x = A.x", claim=LOG),
    "two-that-overlap": Query("A ; B ; C ; D", "A.x = C.x AND B.y = D.y", claim=EACH),
    "self-join": Query("ALL(A AS a1, A AS a2, B b)", "a1.x = a2.x AND a2.x = b.x AND a1.y = b.y", claim=LOG),
    "new-high": Query("!ANY x ; ANY g", "x.x >= g.x", claim=LOG),
    "new-low": Query("!ANY x ; ANY g", "x.x <= g.x", claim=LOG),
    "a-change": Query("!ANY x ; ANY g", "x.few <> g.few", claim=LOG),
    "seen-first": Query("!A x ; A g ; B b", "x.y = g.y", claim=LOG),
    "new-high-then": Query("!ANY x ; A a ; B b", "x.x >= a.x", claim=LOG),
    "new-high-and": Query("!ANY x ; ANY g", "x.x >= g.x AND x.few = g.few", claim=None),
    "cooldown": Query("ANY g : ANY:* rest", rest="AFTER MATCH SKIP PAST LAST ROW", claim=None),
    "longest-loop": Query("A+ a", rest="AFTER MATCH SKIP PAST LAST ROW", claim=None),
    "longest-above": Query("A g ; A* rest", "g.few <= rest.few", "AFTER MATCH SKIP PAST LAST ROW", None),
}


def stream(n: int, program: Any) -> np.ndarray:
    """Symbols and terms of n events: a quarter of each type; values that hardly repeat, a few that do, and one."""
    random = np.random.default_rng(7)
    kinds = np.array(list("ABCD"))[random.integers(0, 4, n)]
    columns = {name: random.integers(0, n, n) for name in "xyz"}
    columns |= {"few": random.integers(0, 4, n), "one": np.ones(n, np.int64)}
    symbols = np.zeros((n, 1 + len(program.terms)), np.int64)
    for bit, guard in enumerate(program.guards):
        own = np.ones(n, bool)
        for kind in guard & set("ABCD"):
            own &= kinds == kind
        symbols[:, 0] |= own.astype(np.int64) << bit
    for k, term in enumerate(program.terms):
        symbols[:, 1 + k] = columns[term.strip("`")]
    return symbols if symbols.shape[1] > 1 else symbols[:, 0]


def once(program: Any, symbols: Any, n: int) -> float:
    """Seconds to read the events; matches are not listed, but where the engine must know them to go on."""
    engine, times, mute = engine_for(program), np.arange(n, dtype=np.int64), np.ones(n, np.bool_)
    begin = time.perf_counter()
    for at in range(0, n, 10_000):
        part = slice(at, at + 10_000)
        engine.count(symbols[part], times[part], mute=None if program.skip or program.ends_late else mute[part])
    for _ in engine.flush():
        pass
    return time.perf_counter() - begin


def measured(name: str, query: Query, windows: tuple[int, ...], repeat: int) -> None:
    """One line: the microseconds an event for each window."""
    where = f"WHERE {query.where}" if query.where else ""
    shown: list[float] = []
    for window in windows:
        text = f"FROM t PATTERN {query.pattern} {where} ORDER BY ts WITHIN {window} {query.rest} RETURN match_start"
        compiled = cersql.compile(text, SCHEMA)
        told = compiled.explain("physical")
        if query.claim is not None and query.claim not in told:
            raise SystemExit(f"EXPLAIN does not say '{query.claim}' of {name}:\n{told}")
        n = query.events * window
        symbols = stream(n, compiled.program)
        if not shown:
            once(compiled.program, symbols, n)  # compiles, or loads, the kernels
        shown.append(min(once(compiled.program, symbols, n) for _ in range(repeat)) / n * 1e6)
    values = " ".join(f"{value:8.2f}" for value in shown)
    print(f"{name:18} {query.claim or '':32} {values}  x {shown[-1] / shown[0]:5.1f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", action="append", choices=sorted(QUERIES))
    parser.add_argument("--slow", action="store_true")
    parser.add_argument("--without", choices=[name for name, _ in candidates.CANDIDATES], help="this way of running")
    arguments = parser.parse_args()
    if arguments.without:
        candidates.CANDIDATES = tuple(own for own in candidates.CANDIDATES if own[0] != arguments.without)
    shown = SMALL if arguments.without else WINDOWS
    print(f"{'microseconds an event':51} " + " ".join(f"{window:8}" for window in shown))
    for name in arguments.only or QUERIES:
        query = QUERIES[name]
        if arguments.without:
            query = query._replace(claim=None)
        slow = QUERIES[name].claim == EACH or bool(arguments.without)
        if not slow or arguments.slow:
            measured(name, query, SMALL if slow else WINDOWS, arguments.repeat)


if __name__ == "__main__":
    main()
