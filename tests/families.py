"""Every kernel at work: a few queries for each stepper and each selection, on random streams.

`python tests/families.py` runs them all, or those named, as the interpreter was told to: with the compiler or without
it (NUMBA_DISABLE_JIT=1), with a look at where arrays end (NUMBA_BOUNDSCHECK=1). CERSQL_QUICK=1 takes fewer streams. All
arrays that grow begin with room for 2 to 8 (small.py). Short streams are judged by the oracle; long ones by the
engine itself with arrays as long as they are outside tests.
"""

from __future__ import annotations

import os
import random
import re
import sys
from collections.abc import Callable, Iterator
from unittest import mock

import harness
import oracle
from small import shrunk

import cersql
from planner import candidates
from runtime.engine import engine_for
from runtime.program import Program

SCHEMA = {name: f"type STRING, ts {type}, x INT, y INT" for name, type in (("t", "BIGINT"), ("halves", "DOUBLE"))}
AFTER = "AFTER MATCH SKIP"
MOST = 2000  # complex events that the oracle looks at
PREDICATES: dict[str, Callable[[int | None, int | None], bool]] = {
    "`x` > 1": lambda x, y: x is not None and x > 1,
    "`y` < 3": lambda x, y: y is not None and y < 3,
    "`x` > `y`": lambda x, y: x is not None and y is not None and x > y,
}
FAMILIES: dict[str, tuple[str, ...]] = {
    "table": (
        "A ; B+ ; C",
        "A ; B ; C WITHIN 6",
        "A ; (B OR C)+ ; A WITHIN 5 EVENTS",
        "A : (B : C)+",
        "(A+ ; B) OR (A ; C+)",
        "(A ; B) UNLESS C",
        "A ; B ; C WITHIN < 4 SEMANTICS STRICT",
        "A ; B WITHIN 60",
    ),
    "timed": (
        "((A+) WITHIN 2) ; B WITHIN 7",
        "A ; ((B+ ; A) WITHIN < 3) ; C",
        "((A ; B+) WITHIN 3 EVENTS) ; C",
        "!C ; A+ ; B WITHIN 4",
        "((A+) WITHIN < 3) ; ((B ; C) WITHIN 4) WITHIN 9",
        "(A : B) OR (A a1 : B b1) WITHIN 6 SEMANTICS NXT",
        f"A : ANY:* WITHIN 4 {AFTER} PAST LAST ROW",
        f"A+ ; B {AFTER} PAST LAST ROW",
        f"A ; B+ WITHIN 5 {AFTER} TO NEXT ROW",
        "A+ ; B WITHIN 6 CONSUME BY PARTITION",
        "A+ ; B SEMANTICS NXT",
        "A+ ; B : C WITHIN 6 SEMANTICS LAST",
        "A+ ; B WITHIN 4 SEMANTICS MAX",
        "A+ ; B ; !C WITHIN 5 SEMANTICS NXT",
    ),
    "registers": (
        "A a ; B b ; C c WHERE a.x = b.x AND b.y = c.y WITHIN 9",
        "A a ; B b WHERE a.x < b.x WITHIN 9",
        "A ; !C WITHIN 4",
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
        "A a ; B b WHERE abs(a.x - b.x) = 1 WITHIN 8",
        "A a ; B b WHERE a.x * b.y > 3 OR a.y = b.y WITHIN 8",
        "A a ; B b WHERE a.x <= b.x AND a.y <> b.y WITHIN 7",
        "A+ a ; B b WHERE a.x < b.x AND a.y > b.y WITHIN 7",
        "A+ a ; B b ; C c1 WHERE a.x = b.x AND a.y >= c1.y WITHIN 6",
        "A a ; B b WHERE a.x > 1 OR a.y = b.y WITHIN 7",
        "A+ a ; B+ b WHERE (a.x > 1 OR b.y < 3) AND a.x <= b.x WITHIN 7",
        "A a ; B b WHERE b.x > b.y OR a.x = b.x",
        "A+ a WHERE a[i].x = a[i-1].x AND a[i].y = a[i-1].y WITHIN 6",
        "(A a OR B b) ; C c1 WHERE a.x = c1.x AND b.y < c1.y WITHIN 8",
        "SEQ(A a, !B b, C c1) WHERE b.x < c1.x WITHIN 7",
        "SEQ(A a, !B b, C c1) WHERE b.x >= c1.x AND b.y = a.y WITHIN 7",
        "SEQ(A a, !B b, C c1) WHERE b.x > 1 AND b.y <= a.y WITHIN 7",
        "SEQ(A a, !B b, C c1) WHERE a.x * b.y > 3 WITHIN 7",
        "SEQ(!C d, A a, B b) WHERE d.x >= a.x AND d.y < b.y WITHIN 5",
        "SEQ(!C d, A a, B b) WHERE d.x <> a.x AND d.y > b.y WITHIN 5",
        "SEQ(!C d, A a, B b) WHERE d.x = b.x AND d.y = a.y WITHIN 6",
        "SEQ(!C d, A a, B b) WHERE d.x <= a.x WITHIN 6",
        "SEQ(!C c1, !D d1, A a, B b) WHERE c1.x >= a.x AND d1.y < b.x AND d1.x > a.y WITHIN 8",
        "A a ; B+ b WHERE a.x <= b.x WITHIN 6 SEMANTICS NXT",
        "A a ; B b ; C c WHERE a.x <= c.x WITHIN 8 SEMANTICS LAST",
        "A a ; B b WHERE a.x = b.x WITHIN 8 CONSUME BY PARTITION",
        "A a ; B b ; C c WHERE a.x <= c.x WITHIN 8 SEMANTICS SKIP TILL NEXT MATCH",
        "SEQ(A, B, !C) WITHIN 6 SEMANTICS SKIP TILL NEXT MATCH",
        "A ; ((B ; A) WITHIN < 3) ; C",
        "((A ; B) WITHIN 3 EVENTS) ; C WITHIN 7",
        "((A a ; B b) WITHIN 3) ; C WHERE a.x = b.x WITHIN 9",
        "A a ; ((B+ b ; C c) WITHIN < 3) WHERE a.x <= c.x WITHIN 9",
        "((A+ a ; B b) WITHIN 3 EVENTS) ; C c WHERE a.x <= c.x WITHIN 9",
        "((A+ a ; B b) UNLESS C) WHERE a.x <= b.x",
        "((A a ; B b) UNLESS C) ; C c1 WHERE a.x = c1.x WITHIN 8",
        "((A+ a ; B b) UNLESS (C ; C)) WHERE a.x <= b.x",
        "((A a ; B b) UNLESS (C ; B : A)) WHERE a.x = b.x WITHIN 9",
        "((A a ; B b) UNLESS (C ; C)) ; C c1 WHERE a.x <= b.x WITHIN 9",
        "((A+ a ; B b) UNLESS (C : C)) WHERE a.x < b.x WITHIN 7 EVENTS CONSUME BY PARTITION",
        "((A p ; B q) AND (ANY p ; ANY q)) ; C c WHERE p.x <= q.x AND p.y = c.y WITHIN 8",
        "START(A a ; B+ b) ; C c WHERE a.x <= c.x",
        "A a ; START(B b ; C c) WHERE a.x <= c.x WITHIN 6",
        "PROJECT(a, b : A a ; B b) ; C c WHERE b.x <= c.x WITHIN 6",
        "A a ; B b WHERE a.x = b.x OR a.y = b.y WITHIN 8",
        "((A ; B) PART BY (x) ; C) OR (A ; (B ; C) PART BY (x)) WITHIN 8",
        "A a ; (B+ PART BY (x)) AS b1 ; C WHERE a.y <= b1.y WITHIN 7",
        "((A a ; B b) FILTER a.x = b.x) OR ((A a ; C c) FILTER a.x = c.x) WITHIN 6",
    ),
    "skipping": (
        f"A a ; B+ b ; C c WHERE a.x <= c.x WITHIN 6 {AFTER} PAST LAST ROW",
        f"A g : ANY:* r WHERE g.x <= r.x WITHIN 4 {AFTER} PAST LAST ROW",
        f"A a ; B b WHERE a.x = b.x WITHIN 8 {AFTER} TO NEXT ROW",
        f"((A a ; B+ b) UNLESS (C ; C)) WHERE a.x <= b.x WITHIN 6 {AFTER} PAST LAST ROW",
        f"A a ; B b ; C c WHERE a.x < c.x WITHIN 8 {AFTER} TO LAST b",
        f"(A a2 OR A a1) ; (B b2 OR B b1) ; B b3 ; C c1 WHERE b3.x <= c1.x WITHIN 9 {AFTER} TO NEXT ROW",
    ),
    "deferred": (
        "A ; B ; C WHERE A.x = C.x WITHIN 7",
        "A ; B+ ; C WHERE A.x = C.x AND A.y = C.y WITHIN 9 EVENTS",
        "A+ a1 ; B? b1 ; C c1 ; B b2 WHERE a1.x = c1.x",
        "SEQ(A a1, B b1, !C, B b2, A a2) WHERE a1.x = a2.y WITHIN 9",
        "SEQ(A a1, B+ b1, !C c1, B b2) WHERE a1.x = b2.x AND c1.x = a1.x WITHIN 9",
        "SEQ(A+, !C, B b1, A a2, B b2) WHERE b1.x = b2.x WITHIN 9",
        "A a1 ; B b1 ; A a2 ; B b2 ; A a3 WHERE a1.x = a2.x AND a2.y = a3.y WITHIN 12",
    ),
    "ranged": (
        "A a ; B+ b ; C c WHERE b[i].x > a.x WITHIN 7",
        "A+ a1 ; B b1 ; C c1 WHERE a1.x <= c1.x WITHIN 9 EVENTS",
        "A a ; B+ b ; C c WHERE b[i].x >= a.x AND c.x <> a.x",
        "A p ; A+ q ; B r WHERE p.x < q.x AND r.x > p.x WITHIN 6",
        "SEQ(A a1, B+ b1, !D d1, C c1) WHERE b1.x >= a1.x AND d1.x > a1.x WITHIN 9",
        "SEQ(A a1, !B b1, B b2, !D, C c1) WHERE b1.x < a1.x AND c1.y >= a1.x WITHIN 9",
        "A a ; (B b OR C c)+ ; D d WHERE b.x > a.x WITHIN 8",
    ),
    "counted": (
        "A ; B{2,9} ; C WITHIN 9",
        "A+ ; B{1,12} ; C WITHIN 9",
        "A ; B{0,9} ; C WITHIN 12 EVENTS",
    ),
    "two stacks": (
        "A ; B WITHIN 6 SEMANTICS NXT",
        "A ; B ; C WITHIN 7 EVENTS SEMANTICS LAST",
        "A+ ; B ; C WITHIN 6 SEMANTICS LAST",
        "A+ ; (B OR C)+ ; A a2 WITHIN 9 SEMANTICS NXT",
        "(A ; B) OR (A a1 ; B b1) WITHIN 6 SEMANTICS NXT",
        "SEQ(A, !C, B+) WITHIN 8 SEMANTICS NXT",
        "SEQ(A, B+, !C, B b2) OR (A ; C) WITHIN 9 SEMANTICS LAST",
        "A? ; B+ ; C* ; B b2 WITHIN 6 SEMANTICS NXT",
        "A+ ; B ; !C WITHIN 5",
        "A ; B+ ; !C WITHIN 6 EVENTS",
        "SEQ(A, !B, C+, !B) WITHIN 7",
        "SEQ(A a, (B OR C)+, A a2, !B, !(C OR A)) WITHIN 9",
        "SEQ(A? a, B+ b, A+ a2, !C) WITHIN 6",
    ),
    "pcea": (
        "ALL(A a, B b) WHERE a.x = b.x WITHIN 7",
        "ALL(A a, B b, C c) WHERE a.x = b.x AND b.x = c.x AND a.y = b.y",
        "ALL(A p, A q, B r) WHERE p.x = q.x AND q.x = r.x WITHIN 9",
        "ALL(A a, B b, C c) WHERE a.x = b.x AND b.x = c.x WITHIN 6 EVENTS",
    ),
    "general": (
        "((A+ a ; B b) UNLESS ((C c1 ; C c2) FILTER c1.x <= c2.x)) WHERE a.x <= b.x",
        "((A+ a ; B b) UNLESS ((C c1 ; C c2) FILTER c1.x <= c2.x)) ; !C WHERE a.x <= b.x WITHIN 5",
        "(((A+ a ; B b) WITHIN 3) UNLESS ((C c1 ; C c2) FILTER c1.x <= c2.x)) ; C c3 WHERE a.x <= b.x WITHIN 9",
        "((A a ; B b) UNLESS (C ; C)) WHERE a.x <= b.x WITHIN 6 SEMANTICS MAX",
        "((A a ; B b) UNLESS ((C c1 ; C c2) FILTER c1.x <= c2.x)) WHERE a.x = b.x WITHIN 5 CONSUME BY PARTITION",
        f"((A+ a ; B b) UNLESS ((C c1 ; C c2) FILTER c1.x <= c2.x)) WHERE a.x < b.x WITHIN 6 {AFTER} PAST LAST ROW",
    ),
    "any": ("A+ ; B WITHIN 6 CONSUME BY ANY", "A a ; B b WHERE a.x = b.x WITHIN 6 CONSUME BY ANY"),
}
# Of times with halves: of whole ones `WITHIN <` is a window that is shorter by one. To compile kernels for such times
# takes long, so that these are run without the compiler, or in `make exhaustive`.
FRACTIONS = {
    "A ; B ; C WITHIN < 2.5": "plain",
    "((A+) WITHIN < 1.5) ; B WITHIN 3.5": "timed",
    "A a ; B b WHERE a.x < b.x WITHIN < 2.5": "registers",
    "SEQ(!C d, A a, B b) WHERE d.x < b.x WITHIN < 2.5": "registers",
    "ALL(A a, B b) WHERE a.x = b.x WITHIN < 2.5": "pcea",
    "((A a ; B b) WITHIN < 1.5) ; C c WHERE a.x <= b.x WITHIN 2.5": "registers",
    "A ; B ; C WHERE A.x = C.x WITHIN < 2.5": "deferred",
    "A a ; B+ b ; C c WHERE b[i].x > a.x WITHIN < 2.5": "ranged",
    "A ; B+ WITHIN < 2.5 SEMANTICS NXT": "two stacks",
    "A ; B+ ; !C WITHIN < 2.5": "two stacks",
    "(((A a ; B b) WITHIN < 1.5) UNLESS (C ; C)) WHERE a.x <= b.x WITHIN 2.5": "registers",
    "(((A a ; B b) WITHIN < 1.5) UNLESS ((C c1 ; C c2) FILTER c1.x <= c2.x)) WHERE a.x <= b.x WITHIN 2.5": "bound",
}
# Of a family, if not its name.
RULES = {
    "table": ("plain", "composed"),
    "timed": ("timed", "composed", "registers"),
    "counted": ("plain",),
    "general": ("bound",),
}  # of a family, if not its name


def has_halves(text: str) -> bool:
    return re.search(r"\d\.5", text) is not None


def compiled(text: str) -> tuple[cersql.api.Compiled, harness.Options]:
    """A query, and what it says besides its formula and window."""
    head, clause = text, ""
    for word in ("WITHIN", AFTER, "CONSUME", "SEMANTICS"):
        at = text.rfind(f" {word}")
        if at >= 0 and ")" not in text[at:]:
            head, clause = text[:at], text[at:]
            break
    source = "halves" if has_halves(text) else "t"
    made = cersql.compile(f"FROM {source} PATTERN {head} ORDER BY ts{clause} RETURN *", SCHEMA)
    return made, harness.Options(made.query.strategy, made.query.consume, made.query.skip)


def stream(chance: random.Random, text: str, n: int, distinct: int) -> list[oracle.Event]:
    """Events of a text's types, and of one more, with small values, perhaps NULL, of two keys, some at one time."""
    kinds = [*(kind for kind in "AABBCD" if re.search(rf"\b{kind}\b", text)), "E"]
    now, found = 0, []
    for _ in range(n):
        now += chance.choice((0, 1, 1, 2))
        values = {f"`{name}`": chance.randint(1, distinct) for name in "xy" if chance.random() < 0.9}
        true = [sql for sql, holds in PREDICATES.items() if holds(values.get("`x`"), values.get("`y`"))]
        kind = chance.choice(kinds)
        time = now / 2 if has_halves(text) else now
        found.append(oracle.Event(frozenset({kind, *true}), time, chance.choice((0, 0, 0, 1)), tuple(values.items())))
    return found


def found(program: Program, events: list[oracle.Event], cuts: list[int]) -> tuple[list[object], int]:
    """The matches, and how many they are when they are counted."""
    rows = harness.rows_of(program, events, keyed=True)
    listed = harness.run_cut(program, rows, cuts, compact=True)
    engine = engine_for(program)
    counted = engine.count(*rows.cut(0, len(rows))) + engine.count_rest()
    return sorted((repr(key), *sorted(map(repr, matches))) for key, matches in listed.items()), counted


def promising(
    made: cersql.api.Compiled, options: harness.Options, chance: random.Random, wanted: int, n: int
) -> Iterator[list[oracle.Event]]:
    """So many streams of n events, of which one at the most has no match. At the most 90 are tried."""
    query, empty = made.query, 0
    for _ in range(90):
        events = stream(chance, query.text, n, 3)
        try:
            keyed = harness.expected_matches(query.formula, events, query.window, True, MOST, options)
        except oracle.TooLarge:
            continue
        empty += not keyed
        if keyed or empty == 1:
            wanted -= 1
            yield events
        if wanted == 0:
            return


def check(family: str, text: str, quick: bool = False) -> int:
    """Returns how many matches there were. Registers run what runs in order could run faster."""
    others = tuple(own for own in candidates.CANDIDATES if own[0] != "runs in order" or family != "registers")
    with mock.patch.object(candidates, "CANDIDATES", others):
        return _checked(family, text, quick)


def _checked(family: str, text: str, quick: bool) -> int:
    made, options = compiled(text)
    query, total = made.query, 0
    program = harness.compiled(query.formula, query.window, options)
    assert program.family in RULES.get(family, (family,)), f"{text}: {program.family}"
    chance = random.Random(text)
    with shrunk():
        for seed, events in enumerate(promising(made, options, chance, 3 if quick else 8, 9 if quick else 11)):
            total += harness.check(query.formula, events, query.window, seed % 2 > 0, seed, MOST, options)
    if query.window is None or quick:
        return total
    events = stream(chance, query.text, 120, 9)
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
    for name in names or [*FAMILIES, "fractions"]:
        texts = FAMILIES.get(name) or tuple(FRACTIONS)
        totals = {text: check(FRACTIONS.get(text, name), text, quick) for text in texts}
        assert quick or all(totals.values()), totals
        print(f"{name}: {sum(totals.values())}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
