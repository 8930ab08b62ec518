"""Every stepper and every selection, the engine alone on one core: events per second of processor time.

    python tests/bench/steppers.py [--repeat 5] [--only 'NAME;…']

To compare two checkouts, run it in turns with PYTHONPATH set to one and to the other.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import cersql
from runtime.engine import engine_for
from runtime.program import Program

SCHEMAS = {"t": {"ts": "timestamp", "type": "string", "v": "int", "k": "int"}}
ABC = "A a ; B b ; C c"
GENERAL = "((A a ; B b) UNLESS C) WHERE a.v {} b.v"
# name: (pattern and clauses, thousand events, is nothing listed?)
QUERIES = {
    "table": (f"{ABC} WITHIN 100 SECONDS", 1000, True),
    "table, loop": ("A a ; B+ b ; C c WITHIN 100 SECONDS", 1000, True),
    "NXT": ("A a ; B+ b ; C c WITHIN 20 SECONDS SEMANTICS NXT", 200, False),
    "MAX": (f"{ABC} WITHIN 20 SECONDS SEMANTICS MAX", 20, False),
    "inner window": ("(A a ; B b WITHIN 10 SECONDS) ; C c WITHIN 100 SECONDS", 1000, True),
    "consume": (f"{ABC} WITHIN 100 SECONDS CONSUME BY PARTITION", 1000, False),
    "skip": (f"{ABC} WITHIN 50 SECONDS AFTER MATCH SKIP PAST LAST ROW", 200, False),
    "skip, registers": (f"{ABC} WHERE a.v <= c.v WITHIN 50 SECONDS AFTER MATCH SKIP PAST LAST ROW", 200, False),
    "taking": (f"{ABC} WITHIN 50 SECONDS SEMANTICS NXT AFTER MATCH SKIP TO NEXT ROW", 200, False),
    "late": ("A a ; B b ; !C WITHIN 50 SECONDS SEMANTICS NXT", 20, False),
    "registers": (f"{ABC} WHERE a.v < b.v WITHIN 50 SECONDS", 1000, True),
    "PCEA": ("ALL(A a, B b, C c) WHERE a.v = b.v AND b.v = c.v AND a.k = b.k WITHIN 100 SECONDS", 1000, True),
    "general": (f"{GENERAL.format('<=')} WITHIN 30 SECONDS", 20, False),
    "general, <>": (f"{GENERAL.format('<>')} WITHIN 15 SECONDS", 20, False),
    "timeouts": (f"{ABC} WITHIN 20 SECONDS RETURN * WITH TIMEOUTS", 20, False),
    "all keys": (f"{ABC} WITHIN 20 SECONDS PARTITION BY k CONSUME BY ANY", 20, False),
}


def program(text: str) -> Program:
    clauses, _, returned = text.partition(" RETURN ")
    query = f"FROM t TYPE type PATTERN {clauses} ORDER BY ts RETURN {returned or '*'}"
    return cersql.compile(query, SCHEMAS).program


def stream(made: Program, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Symbols, times and keys: an eighth of the events each is an A, B or C; 1,000 different values, 50 keys."""
    random = np.random.default_rng(1)
    kinds = random.choice(list("ABCXXXXX"), n)
    symbols = np.zeros((n, made.words + len(made.terms)), np.int64)
    for i, guard in enumerate(made.guards):
        holds = np.isin(kinds, sorted(guard)) if guard and guard != {"TRUE"} else np.ones(n, np.bool_)
        symbols[:, 0] |= holds.astype(np.int64) << i
    symbols[:, made.words :] = random.integers(0, 1000, n)[:, None]
    times = np.cumsum(random.integers(0, 2, n)) * 1_000_000
    keys = random.integers(0, 5, n) if made.family == "any" else np.sort(random.integers(0, 50, n))
    return symbols if made.terms else symbols[:, 0].copy(), times, keys


def run(made: Program, events: tuple[np.ndarray, np.ndarray, np.ndarray], silent: bool) -> int:
    symbols, times, keys = events
    engine, mute = engine_for(made), np.ones(len(times), np.bool_) if silent else None
    return engine.count(symbols, times, None, keys, mute) + sum(matches.n for matches in engine.flush())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--only", default=";".join(QUERIES))
    arguments = parser.parse_args()
    print(f"{'query':16} {'stepper':10} {'matches':>10} {'M events/s':>11}")
    for name in arguments.only.split(";"):
        text, thousands, silent = QUERIES[name]
        made = program(text)
        events = stream(made, 1000 * thousands)
        found, taken = run(made, events, silent), []
        for _ in range(arguments.repeat):
            begin = time.process_time()
            run(made, events, silent)
            taken.append(time.process_time() - begin)
        print(f"{name:16} {made.family:10} {found:10,} {thousands / 1000 / min(taken):11.3f}", flush=True)


if __name__ == "__main__":
    main()
