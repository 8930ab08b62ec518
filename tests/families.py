"""Every kernel at work: a few queries for each stepper and each selection, on random streams.

`python tests/families.py` runs them all, or those named, as the interpreter was told to: with the compiler or without
it (NUMBA_DISABLE_JIT=1), with a look at where arrays end (NUMBA_BOUNDSCHECK=1). CERSQL_QUICK=1 takes fewer streams. All
arrays that grow begin with room for 2 to 8 (small.py). Short streams are judged by the oracle; long ones by the
engine itself with arrays as long as they are outside tests.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator

import harness
import oracle
from small import shrunk

import cersql
from runtime.engine import engine_for
from runtime.program import Program

SCHEMA = {"t": "type STRING, ts BIGINT, x INT, y INT"}
AFTER = "AFTER MATCH SKIP"
FAMILIES: dict[str, tuple[str, ...]] = {
    "table": (
        "A ; B+ ; C",
        "A ; B ; C WITHIN 6",
        "A ; (B OR C)+ ; A WITHIN 5 EVENTS",
        "A : (B : C)+",
        "(A+ ; B) OR (A ; C+)",
        "(A ; B) UNLESS C",
        "A ; B ; C WITHIN < 4 SEMANTICS STRICT",
    ),
    "timed": (
        "((A+) WITHIN 2) ; B WITHIN 7",
        "A ; ((B ; A) WITHIN < 3) ; C",
        "((A ; B+) WITHIN 3 EVENTS) ; C",
        "A+ ; B ; !C WITHIN 5",
        "!C ; A+ ; B WITHIN 4",
        f"A : ANY:* WITHIN 4 {AFTER} PAST LAST ROW",
        f"A+ ; B {AFTER} PAST LAST ROW",
        f"A ; B+ WITHIN 5 {AFTER} TO NEXT ROW",
        "A+ ; B WITHIN 6 CONSUME BY PARTITION",
        "A+ ; B SEMANTICS NXT",
        "A+ ; B ; C WITHIN 6 SEMANTICS LAST",
        "A+ ; B WITHIN 4 SEMANTICS MAX",
        "A+ ; B ; !C WITHIN 5 SEMANTICS NXT",
    ),
    "registers": (
        "A a ; B b ; C c WHERE a.x = b.x AND b.y = c.y WITHIN 9",
        "A a ; B b WHERE a.x < b.x WITHIN 9",
        "A a ; B b WHERE a.x <> b.x",
        "A a ; B b ; C c WHERE a.x = b.x AND a.y < c.y",
        "A a ; B b WHERE a.x >= b.x WITHIN 4 EVENTS",
        "A a ; B+ b ; C c WHERE a.x <= b.x AND a.y = c.y WITHIN 6",
        "A a : B b WHERE a.x > b.x",
        "A a ; B b ; C c WHERE a.x < c.x AND b.y <> c.y",
        "SEQ(A a, !B b, C c) WHERE a.x = b.x AND a.y <= c.y WITHIN 6",
        "SEQ(!C d, A a, B b) WHERE d.x > b.x AND a.y <= b.y WITHIN 5",
        "SEQ(!C d, A a, B b) WHERE d.x = a.x AND a.y <= b.y WITHIN 5",
        "SEQ(A a, B b, !C d) WHERE d.x > a.x AND d.y <= b.y WITHIN 4",
        "A a ; B b ; C c WHERE a.x = b.x OR b.y > c.y",
        "A a ; B b WHERE a.x + b.y > 3 WITHIN 8",
        "A a ; B+ b WHERE a.x <= b.x WITHIN 6 SEMANTICS NXT",
        "A a ; B b ; C c WHERE a.x <= c.x WITHIN 8 SEMANTICS LAST",
        "A a ; B b WHERE a.x = b.x WITHIN 8 CONSUME BY PARTITION",
        "A a ; B b ; C c WHERE a.x <= c.x WITHIN 8 SEMANTICS SKIP TILL NEXT MATCH",
    ),
    "skipping": (
        f"A a ; B+ b ; C c WHERE a.x <= c.x WITHIN 6 {AFTER} PAST LAST ROW",
        f"A g : ANY:* r WHERE g.x <= r.x WITHIN 4 {AFTER} PAST LAST ROW",
        f"A a ; B b WHERE a.x = b.x WITHIN 8 {AFTER} TO NEXT ROW",
        f"A a ; B b ; C c WHERE a.x < c.x WITHIN 8 {AFTER} TO LAST b",
    ),
    "pcea": (
        "ALL(A a, B b) WHERE a.x = b.x WITHIN 7",
        "ALL(A a, B b, C c) WHERE a.x = b.x AND b.x = c.x AND a.y = b.y",
        "ALL(A p, A q, B r) WHERE p.x = q.x AND q.x = r.x WITHIN 9",
        "ALL(A a, B b, C c) WHERE a.x = b.x AND b.x = c.x WITHIN 6 EVENTS",
    ),
    "general": (
        "((A+ a ; B b) UNLESS C) WHERE a.x <= b.x",
        "((A+ a ; B b) UNLESS (C ; C)) ; !C WHERE a.x <= b.x WITHIN 5",
        "((A a ; B b) UNLESS C) WHERE a.x <= b.x WITHIN 6 SEMANTICS MAX",
        "((A a ; B b) UNLESS C) WHERE a.x = b.x WITHIN 5 CONSUME BY PARTITION",
        f"((A+ a ; B b) UNLESS C) WHERE a.x < b.x WITHIN 6 {AFTER} PAST LAST ROW",
    ),
    "any": ("A+ ; B WITHIN 6 CONSUME BY ANY", "A a ; B b WHERE a.x = b.x WITHIN 6 CONSUME BY ANY"),
}
# Of a family, if not its name.
RULES = {
    "table": ("plain", "composed"),
    "timed": ("timed", "composed", "registers"),
    "general": ("bound",),
}  # of a family, if not its name


def compiled(text: str) -> tuple[cersql.api.Compiled, harness.Options]:
    """A query, and what it says besides its formula and window."""
    head, clause = text, ""
    for word in ("WITHIN", AFTER, "CONSUME", "SEMANTICS"):
        at = text.rfind(f" {word}")
        if at >= 0 and ")" not in text[at:]:
            head, clause = text[:at], text[at:]
            break
    made = cersql.compile(f"FROM t PATTERN {head} ORDER BY ts{clause} RETURN *", SCHEMA)
    return made, harness.Options(made.query.strategy, made.query.consume, made.query.skip)


def stream(chance: random.Random, n: int, distinct: int) -> list[oracle.Event]:
    """Events of three types with small values, some of them NULL, of two keys, some at one time."""
    now, found = 0, []
    for _ in range(n):
        now += chance.choice((0, 1, 1, 2))
        values = tuple((f"`{name}`", chance.randint(1, distinct)) for name in "xy" if chance.random() < 0.9)
        found.append(oracle.Event(frozenset({chance.choice("AABBCD")}), now, chance.choice((0, 0, 1)), values))
    return found


def found(program: Program, events: list[oracle.Event], cuts: list[int]) -> tuple[list[object], int]:
    """The matches, and how many they are when they are counted."""
    rows = harness.rows_of(program, events, keyed=True)
    listed = harness.run_cut(program, rows, cuts, compact=True)
    engine = engine_for(program)
    counted = engine.count(*rows.cut(0, len(rows))) + engine.count_rest()
    return sorted((repr(key), *sorted(map(repr, matches))) for key, matches in listed.items()), counted


def check(family: str, text: str, quick: bool = False) -> int:
    """Returns how many matches there were."""
    made, options = compiled(text)
    query, total = made.query, 0
    program = harness.compiled(query.formula, query.window, options)
    assert program.family in RULES.get(family, (family,)), f"{text}: {program.family}"
    chance = random.Random(text)
    with shrunk():
        for seed in range(3 if quick else 8):
            events = stream(chance, 9 if quick else 11, 3)
            try:
                total += harness.check(query.formula, events, query.window, seed % 2 > 0, seed, 2000, options)
            except oracle.TooLarge:
                continue
    if query.window is None or quick:
        return total
    events = stream(chance, 120, 9)
    wanted = found(program, events, [])
    with shrunk():
        for cuts in ([], harness.random_cuts(7, 100)):
            assert found(program, events, cuts) == wanted, text
    return total


def cases() -> Iterator[tuple[str, str]]:
    for family, texts in FAMILIES.items():
        yield from ((family, text) for text in texts)


def main(names: list[str]) -> None:
    """Check the families of these names, or all."""
    quick = bool(os.environ.get("CERSQL_QUICK"))
    for name in names or FAMILIES:
        total = sum(check(name, text, quick) for text in FAMILIES[name])
        assert total > 0, name
        print(f"{name}: {total}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
