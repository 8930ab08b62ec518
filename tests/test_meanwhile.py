"""UNLESS of several events beside comparisons: it moves where windows begin. From texts, held to the oracle.

All short streams at once (each is a key of one feed), then texts and streams at random in every way in which a stream
can be fed.
"""

from __future__ import annotations

import random
import re
from contextlib import nullcontext

import harness
import numpy as np
import oracle
import pytest
from harness import Options
from held_values import types_of
from small import shrunk
from test_conjunctions import all_streams_agree, compiled, condition, stream

from planner import cel
from planner.automata.simple import apart_by_number, least_events, watched
from runtime.chain_cea import Registers
from runtime.engine import engine_for

WINDOWS = ("", "WITHIN 3", "WITHIN < 4", "WITHIN 4 EVENTS")
TEXTS = {
    "two of a type": "((A p ; B q) UNLESS (C ; C)) WHERE p.x < q.x",
    "equality": "((A p ; B q ; A r) UNLESS (C ; D)) WHERE p.x = q.x",
    "of its own events": "((A p ; B q ; A r) UNLESS (A ; A ; A)) WHERE p.x <= r.x",
    "of any event": "((A p ; A q) UNLESS (ANY ; B)) WHERE p.x <= q.x",
    "at once": "((A p ; B q) UNLESS (C : C)) WHERE p.x <= q.x",
    "at once, of any event": "((A p ; A q) UNLESS (ANY : B)) WHERE p.x <= q.x",
    "loops": "((A+ p ; B q) UNLESS (C ; C)) WHERE p.x <= q.x",
    "a loop in it": "((A p ; B q) UNLESS (C ; B+ ; C)) WHERE p.x = q.x",
    "a loop at once in it": "((A p ; B q) UNLESS (C:{2,3})) WHERE p.x <= q.x",
    "counted in it": "((A p ; B q) UNLESS (C{2,})) WHERE p.x <> q.x",
    "a part that may be missing in it": "((A p ; B q) UNLESS (C ; A? ; C)) WHERE p.x < q.x",
    "either": "((A p ; B q) UNLESS ((C ; C) OR (D ; D))) WHERE p.x <= q.x",
    "one or several": "((A p ; B q) UNLESS ((C ; C) OR D)) WHERE p.x <= q.x",
    "twice": "(((A p ; B q) UNLESS (C ; C)) UNLESS (D ; C)) WHERE p.x <= q.x",
    "with conditions of its own": "((A p ; B q) UNLESS (C c1 ; C c2)) WHERE p.x <= q.x AND c1.x = c1.y",
    "below AND": "(((A p ; B q) UNLESS (C ; C)) AND ((ANY p ; B q) UNLESS (D ; D))) WHERE p.x <= q.x",
    "with an absence": "(SEQ(A p, !D, B q) UNLESS (C ; C)) WHERE p.x <= q.x",
    "with a compared absence": "(SEQ(A p, !D r, B q) UNLESS (C ; C)) WHERE p.x <= q.x AND r.x = p.x",
    "with a window inside": "(((A p ; B q WITHIN 2) ; A r) UNLESS (C ; C)) WHERE p.x <= q.x",
    "inside a window": "(((A p ; B q) UNLESS (C ; C)) WITHIN 2) WHERE p.x <= q.x",
    "an OR": "((A p ; B q) UNLESS (C ; C)) WHERE p.x = q.x OR p.y < q.y",
    "any order": "((A p ALL B q) UNLESS (C ; C)) WHERE p.x <= q.x",
    "START": "START((A p ; B q) UNLESS (C ; C)) WHERE p.x <= q.x",
    "three": "((A p ; B q) UNLESS (C ; D ; C)) WHERE p.x <= q.x",
}
PARTS = {
    "followed": "((A p ; B q) UNLESS (C ; C)) ; A r WHERE p.x < q.x",
    "followed, compared with it": "((A p ; B q) UNLESS (C ; C)) ; A r WHERE p.x < q.x AND q.x <> r.x",
    "at the end": "A p ; ((B q ; A r) UNLESS (C ; C)) WHERE p.x <= r.x",
    "a side of OR": "(((A p ; B q) UNLESS (C ; C)) OR (C p)) WHERE p.x < q.x",
    "a loop": "((A p ; B q) UNLESS (C ; C))+ WHERE p.x <= q.x",
    "two parts": "((A p ; B q) UNLESS (B ; A)) ; ((A r ; B s) UNLESS (B : B)) WHERE p.x <= q.x AND r.x = s.x",
    "one in the other": "(((A p ; B q) UNLESS (C ; C)) ; A r) UNLESS (B : B) WHERE p.x <= r.x",
    "beside a window": "(((A p ; B q) UNLESS (C ; C)) ; A r WITHIN 2) ; B s WHERE p.x <= q.x",
    "at once": "((A p : B q ; A r) UNLESS (C : C)) ; B s WHERE p.x <= r.x",
    "one or several": "((A p ; B q) UNLESS ((C : C) OR D)) ; A r WHERE p.x <= q.x",
    "one event": "((A p) UNLESS (C ; C)) ; A r WHERE p.x <= r.x",
}
EVERY = TEXTS | {f"part: {name}": text for name, text in PARTS.items()}
RESTS = {
    "skipped": ("((A p ; B q) UNLESS (C ; C)) WHERE p.x < q.x", "AFTER MATCH SKIP PAST LAST ROW"),
    "skipped in a window": ("((A p ; B+ q) UNLESS (C ; D)) WHERE p.x < q.x", "WITHIN 3 AFTER MATCH SKIP TO NEXT ROW"),
    "absent before": ("SEQ(!D, ((A p ; B q) UNLESS (C ; C))) WHERE p.x <= q.x", "WITHIN 3"),
    "absent after": ("SEQ(((A p ; B q) UNLESS (C ; C)), !D) WHERE p.x <= q.x", "WITHIN 3"),
}
NOT_SO = {
    "compared events": (
        "((A p ; B q) UNLESS ((C c1 ; C c2) FILTER c1.x < c2.x)) WHERE p.x < q.x",
        "more than an event",
    ),
    "more than a part of it": ("((A p ; B q) UNLESS (C+ ; D?)) ; A r WHERE p.x < q.x", "more than an event"),
    "nothing compared": ("((A p ; B q) UNLESS (C ; C)) ; (A r WITHIN 3)", "no events are compared"),
}


@pytest.mark.parametrize("name", PARTS)
def test_registers_run_parts(name: str) -> None:
    program = compiled(PARTS[name]).program
    assert isinstance(program.machine, Registers)
    assert program.machine.inside


@pytest.mark.parametrize("name", RESTS)
def test_registers_run_it_beside_clauses(name: str) -> None:
    program = compiled(*RESTS[name]).program
    assert isinstance(program.machine, Registers)
    assert program.machine.inside


@pytest.mark.parametrize("name", NOT_SO)
def test_what_is_left_to_others(name: str) -> None:
    pattern, why = NOT_SO[name]
    told = compiled(pattern).explain("physical")
    refusal = re.search("not by registers: (.*)", told)
    assert refusal is not None, told
    assert re.search(why, refusal[1]), refusal[1]


def test_what_is_taken_out() -> None:
    a, b, c = (cel.Event(name, frozenset({name.lower()})) for name in "ABC")
    several = cel.Sequence(b, c)
    assert watched(cel.Unless(a, several)) == (a, (several,))
    assert apart_by_number(cel.Unless(a, cel.Or(several, c))) == cel.Unless(cel.Unless(a, several), c)
    assert apart_by_number(cel.Unless(a, cel.Or(b, c))) == cel.Unless(a, cel.Or(b, c))
    named = cel.Unless(a, cel.As(cel.Or(c, several), "x"))
    assert watched(apart_by_number(named)) == (cel.Unless(a, cel.As(c, "x")), (cel.As(several, "x"),))
    assert watched(cel.Sequence(cel.Unless(a, several), b)) == (cel.Sequence(cel.Unless(a, several), b), ())
    assert watched(cel.Or(cel.Unless(a, several), b))[1] == ()
    numbers = [(cel.Repeat(several, 2, 3), 4), (cel.Iteration(c), 1), (cel.Or(several, c), 1), (cel.Repeat(c, 0, 1), 0)]
    assert [least_events(formula) for formula, _ in numbers] == [number for _, number in numbers]


# ---------------------------------------------------------------- everything short


@pytest.mark.breadth(8)
@pytest.mark.parametrize("rest", WINDOWS)
@pytest.mark.parametrize("name", EVERY)
def test_all_short_streams(name: str, rest: str) -> None:
    all_streams_agree(EVERY[name], rest, 1_300)


@pytest.mark.parametrize("name", RESTS)
def test_all_short_streams_beside_clauses(name: str) -> None:
    all_streams_agree(*RESTS[name], 1_300)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", EVERY)
def test_all_longer_streams(name: str) -> None:
    all_streams_agree(EVERY[name], "", 20_000)


@pytest.mark.breadth(4)
@pytest.mark.parametrize("rest", ["NXT", "LAST", "STRICT"])
@pytest.mark.parametrize("name", ["two of a type", "of its own events", "loops", "either"])
def test_strategies_on_all_short_streams(name: str, rest: str) -> None:
    all_streams_agree(EVERY[name], f"WITHIN 3 SEMANTICS {rest}", 1_300)


# ---------------------------------------------------------------- at random


@pytest.mark.breadth(8)
@pytest.mark.parametrize("name", EVERY)
def test_streams_at_random(name: str) -> None:
    chance, total, kinds = random.Random(name), 0, "".join(types_of(EVERY[name])) + "AB"
    for seed in range(9):
        query = compiled(EVERY[name], ("", "WITHIN 3", "WITHIN 9 EVENTS")[seed % 3]).query
        events = stream(chance, kinds, 14 if seed % 3 else 9)
        try:
            with shrunk() if seed % 2 else nullcontext():
                total += harness.check(query.formula, events, query.window, seed % 3 > 0, seed, 3_000)
        except oracle.TooLarge:
            continue
    assert total > 0


def drawn(chance: random.Random) -> str:
    """Two or three events or loops, what must not happen meanwhile, once or twice, and one or two comparisons."""
    items = [(f"v{k}", False) for k in range(chance.randint(2, 3))]
    kinds = chance.choice(("A", "AB", "ABC"))
    text = ""
    for k, (name, _) in enumerate(items):
        gap = "" if not k else chance.choice((" ; ", " ; ", " : "))
        text += f"{gap}{chance.choice(kinds)}{chance.choice(('', '', '+', '{1,2}'))} {name}"
    for _ in range(chance.choice((1, 1, 2))):
        parts = [chance.choice("ABCD") + chance.choice(("", "", "+", "?")) for _ in range(chance.randint(1, 2))]
        veto = [chance.choice("ABCD"), *parts, chance.choice(("A", "B", "C", "D", "ANY"))]
        text = f"(({text}) UNLESS ({chance.choice((' ; ', ' ; ', ' : ')).join(veto)}))"
        if chance.random() < 0.3:
            name = f"v{len(items)}"
            items.append((name, False))
            text = f"{text} ; {chance.choice(kinds)} {name}"
    where = " AND ".join(condition(chance, items) for _ in range(chance.choice((1, 1, 2))))
    return f"{text} WHERE {where}"


ANY_REST = ("", "WITHIN 2", "WITHIN 8 EVENTS", "CONSUME BY PARTITION", "AFTER MATCH SKIP PAST LAST ROW")


def drawn_agree(rounds: int, seed: int) -> None:
    chance, total, n = random.Random(seed), 0, 0
    while n < rounds:
        text, rest = drawn(chance), chance.choice(ANY_REST)
        made = compiled(text, rest)
        query = made.query
        machine = made.program.machine
        if not isinstance(machine, Registers) or not (machine.meanwhile or machine.inside):
            continue
        n += 1
        options = Options(query.strategy, query.consume, query.skip)
        for k in range(3):
            try:
                with shrunk():
                    events = stream(chance, "AAABBCD", 9)
                    total += harness.check(query.formula, events, query.window, k > 0, k, 2_000, options)
            except oracle.TooLarge:
                continue
            except AssertionError as error:
                raise AssertionError(f"{text} {rest}") from error
    assert total > rounds / 4


def test_texts_at_random() -> None:
    drawn_agree(20, 1)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(2, 8))
def test_more_texts_at_random(seed: int) -> None:
    drawn_agree(80, seed)


# ---------------------------------------------------------------- long streams


def test_what_is_kept_is_what_can_still_match() -> None:
    """Without a window, too: what must not happen ends runs, and their nodes are given back."""
    program, sizes = compiled("((A p ; B q) UNLESS (C ; C)) WHERE p.x = q.x").program, list[int]()
    for n in (20_000, 200_000):
        random = np.random.default_rng(n)
        kinds = random.integers(0, 3, n)
        symbols = np.zeros((n, 1 + len(program.terms)), np.int64)
        for bit, guard in enumerate(program.guards):
            symbols[:, 0] |= (kinds == "ABC".index(min(guard))).astype(np.int64) << bit
        symbols[:, 1] = np.arange(n)
        engine, times = engine_for(program), np.arange(n, dtype=np.int64)
        for at in range(0, n, 1_000):
            engine.count(symbols[at : at + 1_000], times[at : at + 1_000])
        engine.least_row()
        sizes.append(engine.nodes)
    assert max(sizes) < 3_000
