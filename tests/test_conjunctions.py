"""AND beside comparisons: pairs of positions, whose runs hold values. From texts, held to the oracle.

All short streams at once (each is a key of one feed), then texts and streams at random in every way in which a stream
can be fed.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Iterator
from contextlib import nullcontext

import harness
import oracle
import pytest
from harness import Options
from held_values import event, types_of
from small import shrunk

import cersql

SCHEMA = {"t": "type STRING, x INT, y INT, ts INT"}
WINDOWS = ("", "WITHIN 3", "WITHIN 4 EVENTS")
KERNELS = ("registers", "deferred", "ranged", "skipping")
TEXTS = {
    "the same twice": "(A ; ANY u ; B) AND (A ; ANY u ; B) WHERE A.x = B.x",
    "types on one side": "((A p ; B q) AND (ANY p ; B q)) WHERE p.x < q.x",
    "each side compares": "((A p ; B q) FILTER p.x = q.x) AND ((ANY p ; ANY q) FILTER p.y <> q.y)",
    "a loop and copies": "((A p ; B+ q ; A r) AND (ANY p ; ANY{1,2} q ; ANY r)) WHERE p.x <= q.x",
    "loops": "((A+ p ; B q) AND (ANY p ; ANY* p ; B q)) WHERE p.x <= q.x",
    "at once on one side": "((A p : B q) AND (A p ; B q)) ; C r WHERE p.x = r.x",
    "at once on the other side": "((A p ; B q ; A r) AND (ANY p ; ANY q : ANY r)) WHERE p.x = r.x",
    "an absence on one side": "(SEQ(A p, !C, B q) AND (A p ; B q)) WHERE p.x = q.x",
    "an absence on either side": "(SEQ(A p, !C, B q) AND SEQ(A p, !D, B q)) WHERE p.x < q.x",
    "a compared absence on one side": "(SEQ(A p, !C r, B q) AND (ANY p ; B q)) WHERE r.x = p.x AND p.y <= q.y",
    "UNLESS on one side": "(((A p ; B q) UNLESS C) AND (ANY p ; ANY q)) WHERE p.x = q.x",
    "UNLESS around it": "(((A p ; B q) AND (ANY p ; ANY q)) UNLESS C) WHERE p.x = q.x",
    "in a loop": "(((A p ; B q) AND (ANY p ; ANY q)) FILTER p.x = q.x)+",
    "followed": "A p1 ; ((A p ; B q) AND (ANY p ; ANY q)) ; A p2 WHERE p.x = q.x AND p1.x <= p2.x",
    "an OR on one side": "((A p ; (B q OR C q)) AND (ANY p ; ANY q)) WHERE p.x <= q.x",
    "an OR of them": "(((A p) AND (ANY p)) ; B q) OR (((C p) AND (ANY p)) ; B q) WHERE p.x < q.x",
    "an OR of equalities": "((A p ; B q) AND (ANY p ; ANY q)) WHERE p.x = q.x OR p.y = q.y",
    "a window on one side": "((A p ; B q WITHIN 2) AND (A p ; ANY q)) WHERE p.x <= q.x",
    "any order on one side": "((A p ALL B q) AND (ANY q ; ANY p)) WHERE p.x >= q.x",
    "START on one side": "((START(A p) ; B q) AND (ANY p ; ANY q)) WHERE p.x = q.x",
    "START around it": "START((A p ; B q) AND (ANY p ; ANY q)) ; A r WHERE p.x = r.x",
    "PROJECT around it": "PROJECT(p, q : (A p ; B q) AND (ANY p ; ANY q)) ; C r WHERE q.x <= r.x",
    "of three sides": "((A p ; ANY q) AND (ANY p ; B q) AND (ANY p ; ANY q)) WHERE p.x < q.x",
    "neighbours in a loop": "((A+ p) AND (ANY+ p)) WHERE p[i-1].x = p[i].x",
    "part by": "(((A p ; B+ q) AND (ANY p ; ANY+ q)) PART BY (x)) ; A r",
}
NOT_SO = {
    "nothing in common": ("((A p ; B q) AND (A q ; B p)) WHERE p.x < q.x", "no events are a match of both sides"),
    "one event for two": ("((A p ; B q) AND (A p)) WHERE p.x < q.x", "no events are a match of both sides"),
    "without variables": (
        "(PROJECT(p, r : A p ; B q ; A r) AND (A p ; A r)) WHERE p.x = r.x",
        "PROJECT leaves events of an AND without a variable",
    ),
    "too many": (
        "(((A{13} p)+ ; B q) AND ((A{23} p)+ ; B q)) WHERE p.x < q.x",
        "the sides of an AND go together in more than 256 ways",
    ),
    "two ways": (
        "((A+ p ; B q) AND ((ANY p OR ANY+ p) ; B q)) WHERE p.x < q.x",
        "two ways lead to the same events",
    ),
}


def compiled(pattern: str, rest: str = "") -> cersql.Compiled:
    return cersql.compile(f"FROM t PATTERN {pattern} ORDER BY ts {rest} RETURN *", SCHEMA)


@pytest.mark.parametrize("name", TEXTS)
def test_a_kernel_runs_it(name: str) -> None:
    assert compiled(TEXTS[name]).program.family in KERNELS


@pytest.mark.parametrize("name", NOT_SO)
def test_what_is_left_to_the_general_engine_and_why(name: str) -> None:
    pattern, why = NOT_SO[name]
    told = compiled(pattern).explain("physical")
    refusal = re.search("not by registers: (.*)", told)
    assert refusal is not None, told
    assert why in refusal[1], refusal[1]


# ---------------------------------------------------------------- everything short


def all_short(pattern: str, most: int) -> Iterator[list[oracle.Event]]:
    """All streams of the greatest length of which there are not more than so many; each is a key."""
    values = [(1, 1), (2, 1), *([(1, 2)] if ".y" in pattern else [])]
    letters = [(kind, *own) for kind in types_of(pattern) for own in values]
    length = max(n for n in range(3, 9) if len(letters) ** n <= most)
    for key, word in enumerate(itertools.product(letters, repeat=length)):
        yield [event(kind, time, x, y, key) for time, (kind, x, y) in enumerate(word)]


def all_streams_agree(pattern: str, rest: str, most: int) -> None:
    query = compiled(pattern, rest).query
    streams = list(all_short(pattern, most))
    events = [e for own in streams for e in own]
    demands = harness.demands_of(query.formula, events)
    program = harness.compiled(query.formula, query.window, Options(query.strategy, query.consume, query.skip), demands)
    assert program.family in KERNELS
    rows = harness.rows_of(program, events, keyed=True)
    found = harness.unique(harness.run_whole(program, rows))
    counted = harness.count(program, rows)
    assert counted == sum(map(len, found.values())) > 0
    given = Options(query.strategy, query.consume, query.skip).given()
    for key, own in enumerate(streams):
        wanted = oracle.evaluate(query.formula, own, query.window, **given)
        assert found.get(key, set()) == wanted, harness.difference(pattern, {key: found.get(key, set())}, {key: wanted})


@pytest.mark.breadth(6)
@pytest.mark.parametrize("rest", WINDOWS)
@pytest.mark.parametrize("name", TEXTS)
def test_all_short_streams(name: str, rest: str) -> None:
    all_streams_agree(TEXTS[name], rest, 1_300)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", TEXTS)
def test_all_longer_streams(name: str) -> None:
    all_streams_agree(TEXTS[name], "", 20_000)


STRATEGIES = {
    "STRICT": ("types on one side", "loops", "an OR on one side"),
    "NXT": ("types on one side", "loops", "an absence on one side", "an OR on one side"),
    "LAST": ("types on one side", "loops", "an absence on one side", "an OR on one side"),
}


@pytest.mark.parametrize(("strategy", "name"), [(s, name) for s, names in STRATEGIES.items() for name in names])
def test_strategies_on_all_short_streams(strategy: str, name: str) -> None:
    all_streams_agree(TEXTS[name], f"WITHIN 3 SEMANTICS {strategy}", 300)


# ---------------------------------------------------------------- at random


def stream(chance: random.Random, kinds: str, n: int) -> list[oracle.Event]:
    """Events with NULLs, of two keys, some at one time."""
    now, found = 0, []
    for _ in range(n):
        now += chance.choice((0, 0, 1))
        x, y = chance.choice((1, 1, 1, 2, None)), chance.choice((1, 1, 2, None))
        found.append(event(chance.choice(kinds), now, x, y, chance.choice((0, 0, 1))))
    return found


@pytest.mark.breadth(6)
@pytest.mark.parametrize("name", TEXTS)
def test_streams_at_random(name: str) -> None:
    chance, total, kinds = random.Random(name), 0, "".join(types_of(TEXTS[name]))
    for seed in range(6):
        query = compiled(TEXTS[name], ("", "WITHIN 3", "WITHIN 9 EVENTS")[seed % 3]).query
        events = stream(chance, kinds, 12 if seed % 3 else 9)
        try:
            with shrunk() if seed % 2 else nullcontext():
                total += harness.check(query.formula, events, query.window, seed % 3 > 0, seed, 3_000)
        except oracle.TooLarge:
            continue
    assert total > 0


MANY = ("{0}+ {1}", "{0}{{1,2}} {1}", "{0} {1} ; {0}* {1}", "{0}:+ {1}")


def side(chance: random.Random, items: list[tuple[str, bool]], kinds: str) -> str:
    """One side of an AND: the items (variable, may it be several events?), of a type or any, in any of their forms."""
    text = ""
    for k, (name, many) in enumerate(items):
        kind = chance.choice((*kinds, "ANY"))
        form = chance.choice(MANY if many else ("{0} {1}",))
        gap = "" if not k else chance.choice((" ; ", " ; ", " ; ", " : "))
        text += gap + form.format(kind, name)
    if chance.random() < 0.25:
        text = f"({text}) UNLESS {chance.choice('CD')}"
    if chance.random() < 0.3:
        text = f"({text}) FILTER {condition(chance, items)}"
    return f"({text})"


def condition(chance: random.Random, items: list[tuple[str, bool]]) -> str:
    a, b = sorted(chance.sample([name for name, _ in items], 2))
    return f"{a}.{chance.choice('xy')} {chance.choice(('=', '=', '<', '>=', '<>'))} {b}.{chance.choice('xy')}"


def drawn(chance: random.Random) -> str:
    """An AND of two or three sides with the same variables, perhaps in a loop or followed, and comparisons."""
    items = [(f"v{k}", chance.random() < 0.3) for k in range(chance.randint(2, 3))]
    kinds = chance.choice(("A", "AB", "ABC"))
    text = " AND ".join(side(chance, items, kinds) for _ in range(chance.choice((2, 2, 3))))
    if chance.random() < 0.2:
        return f"(({text}) FILTER {condition(chance, items)})+"
    where = condition(chance, items)
    if chance.random() < 0.4:
        text, where = f"({text}) ; {chance.choice(kinds)} w", f"{where} AND {items[0][0]}.x = w.x"
    return f"({text}) WHERE {where}"


def drawn_agree(rounds: int, seed: int) -> None:
    chance, total, n = random.Random(seed), 0, 0
    while n < rounds:
        text, rest = drawn(chance), chance.choice(("", "WITHIN 2", "WITHIN 8 EVENTS"))
        made = compiled(text, rest)
        query = made.query
        if made.program.family not in KERNELS:
            continue
        n += 1
        for k in range(3):
            try:
                with shrunk():
                    events = stream(chance, "AABBCD", 9)
                    total += harness.check(query.formula, events, query.window, k > 0, k, 2_000)
            except oracle.TooLarge:
                continue
            except AssertionError as error:
                raise AssertionError(f"{text} {rest}") from error
    assert total > rounds / 4


def test_texts_at_random() -> None:
    drawn_agree(15, 1)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(2, 8))
def test_more_texts_at_random(seed: int) -> None:
    drawn_agree(80, seed)
