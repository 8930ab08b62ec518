"""Every construction beside the plain sequence of its atoms: states built, events per second, ratio.

    python tests/bench/operators.py [--repeat 5] [--only 'NAME;…'] [--millions 1]

The engine alone, one core, the stream of workload.py in memory. Nothing is listed (`mute`), so that the figures are
those of the automata: what listing costs is in run.py. Each row is measured in turns with its plain sequence.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from run import SCHEMA, median, seconds
from workload import stream

import cersql
from runtime.engine import engine_for
from runtime.program import Program

ABC = "A a ; B b ; C c"
PRICE = "a.price > 80 AND b.price > 80 AND c.price > 80"
BRIEF, NONE = "WITHIN < 100 MILLISECONDS", ""
# name: (pattern, clauses, plain sequence that reads the same types)
QUERIES = {
    "plain": (ABC, NONE, ABC),
    "plain, window": (ABC, BRIEF, ABC),
    "loop": ("A a ; B+ b ; C c", NONE, ABC),
    "b{1,20}": ("A a ; B{1,20} b ; C c", NONE, ABC),
    "b{1,500}": ("A a ; B{1,500} b ; C c", NONE, ABC),
    "b?": ("A a ; B? b ; C c", NONE, ABC),
    "AND": ("(A ; B ; C) AND (A ; B ; C)", NONE, ABC),
    "ALL": ("ALL(A a, B b, C c)", NONE, ABC),
    "UNLESS": ("(A a ; B b ; C c) UNLESS N0", NONE, ABC),
    "START": ("START(A a ; B b ; C c)", NONE, ABC),
    "PROJECT": ("PROJECT(a, c : A a ; B b ; C c)", NONE, ABC),
    "! between": ("A a ; !N0 ; B b ; C c", NONE, "A a ; N0 n ; B b ; C c"),
    "! sub-pattern": ("A a ; !(N0 ; N1) ; B b ; C c", NONE, "A a ; N0 n ; N1 m ; B b ; C c"),
    "! first": ("!N0 ; A a ; B b ; C c", BRIEF, "N0 n ; A a ; B b ; C c"),
    "! last": ("A a ; B b ; C c ; !N0", BRIEF, "A a ; B b ; C c ; N0 n"),
    "! first, beside ABC": ("!N0 ; A a ; B b ; C c", BRIEF, ABC),
    "! last, beside ABC": ("A a ; B b ; C c ; !N0", BRIEF, ABC),
    "STRICT": (ABC, "SEMANTICS STRICT", ABC),
    "NXT": (ABC, "SEMANTICS NXT", ABC),
    "LAST": (ABC, "SEMANTICS LAST", ABC),
    "MAX": (ABC, "SEMANTICS MAX", ABC),
    "NXT, loop": ("A a ; B+ b ; C c", "SEMANTICS NXT", ABC),
    "MAX, loop": ("A a ; B+ b ; C c", "SEMANTICS MAX", ABC),
    "skip till next": (ABC, "SEMANTICS SKIP TILL NEXT MATCH", ABC),
    "A ; NXT(B ; C)": ("A a ; NXT(B b ; C c)", NONE, ABC),
    "inner window": ("(A a ; B b WITHIN 100 MILLISECONDS) ; C c", NONE, ABC),
    "inner, second": ("A a ; (B b ; C c WITHIN 100 MILLISECONDS)", NONE, ABC),
    "NXT, window": (ABC, f"{BRIEF} SEMANTICS NXT", ABC),
    "LAST, window": (ABC, f"{BRIEF} SEMANTICS LAST", ABC),
    "MAX, window": (ABC, f"{BRIEF} SEMANTICS MAX", ABC),
    "consume": (ABC, f"{BRIEF} CONSUME BY PARTITION", ABC),
    "skip": (ABC, f"{BRIEF} AFTER MATCH SKIP PAST LAST ROW", ABC),
}
WINDOWS = (50, 100, 200, 400, 800)  # milliseconds, for the curve of strategies under a window


def compiled(pattern: str, clauses: str) -> Program:
    text = f"FROM events PATTERN {pattern} {clauses} ORDER BY ts RETURN *"
    return cersql.compile(text, {"events": SCHEMA}).program


def symbols(table: dict[str, np.ndarray], program: Program) -> np.ndarray:
    """Each guard is a type; of A, B and C a price above 80 is demanded too, so that the runs are as many everywhere."""
    bits = np.zeros(len(table["type"]), np.int64)
    for i, guard in enumerate(program.guards):
        (kind,) = guard
        held = table["type"] == kind
        if kind in ("A", "B", "C"):
            held = held & (table["price"] > 80)
        bits |= held.astype(np.int64) << i
    return bits


def run(program: Program, read: np.ndarray, times: np.ndarray, mute: np.ndarray) -> int:
    """Nothing is reported but what waits for a window to close."""
    engine = engine_for(program)
    # What waits for its window must be there to wait; it is then counted, too.
    found = engine.count(read, times, mute=None if program.ends_late else mute)
    return found + sum(matches.n for matches in engine.flush())


def states(program: Program, read: np.ndarray, times: np.ndarray) -> int:
    """Deterministic states that the stream reached; 0 where runs hold values."""
    engine = engine_for(program)
    engine.count(read, times, mute=np.ones(len(read), np.bool_))
    held = getattr(engine.stepper, "_states", None)
    return 0 if held is None else len(held.members)


def compare(table: dict[str, np.ndarray], times: np.ndarray, repeat: int, only: list[str]) -> None:
    mute = np.ones(len(times), np.bool_)
    print(f"\n{'construction':20} {'states':>7} {'M events/s':>11} {'plain':>7} {'times slower':>13}")
    for name, (pattern, clauses, plain) in QUERIES.items():
        if only and name not in only:
            continue
        window = BRIEF if BRIEF in clauses else NONE
        own, base = compiled(pattern, clauses), compiled(plain, window)
        read, base_read = symbols(table, own), symbols(table, base)
        ours, theirs = partial(run, own, read, times, mute), partial(run, base, base_read, times, mute)
        ours(), theirs()
        pairs = [(seconds(ours), seconds(theirs)) for _ in range(repeat)]
        mine, plainly = median([a for a, _ in pairs]), median([b for _, b in pairs])
        n = len(times) / 1e6
        print(
            f"{name:20} {states(own, read, times):7,} {n / mine:11.1f} {n / plainly:7.1f} {mine / plainly:13.2f}",
            flush=True,
        )


def curve(table: dict[str, np.ndarray], times: np.ndarray, repeat: int) -> None:
    """Strategies and late absences under a window cost by live starts."""
    mute = np.ones(len(times), np.bool_)
    print(f"\n{'M events/s':20} " + " ".join(f"{w:>7} ms" for w in WINDOWS))
    for name, extra in {"ALL": "", "NXT": "SEMANTICS NXT", "MAX": "SEMANTICS MAX", "! last": "!"}.items():
        pattern, clauses = (f"{ABC} ; !N0", "") if extra == "!" else (ABC, extra)
        rates = []
        for width in WINDOWS:
            program = compiled(pattern, f"WITHIN {width} MILLISECONDS {clauses}")
            read = symbols(table, program)
            once = partial(run, program, read, times, mute)
            once()
            rates.append(len(times) / 1e6 / median([seconds(once) for _ in range(repeat)]))
        print(f"{name:20} " + " ".join(f"{rate:10.1f}" for rate in rates), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--millions", type=int, default=1)
    parser.add_argument("--only", default="", help="names of constructions, with semicolons")
    args = parser.parse_args()
    path = stream(Path(__file__).parents[2] / ".bench", args.millions)
    file = pq.read_table(path, columns=["type", "price", "ts"])
    table = {name: file.column(name).to_numpy() for name in ("type", "price")}
    times = file.column("ts").cast("int64").to_numpy()
    compare(table, times, args.repeat, [name for name in args.only.split(";") if name])
    if not args.only:
        curve(table, times, args.repeat)


if __name__ == "__main__":
    main()
