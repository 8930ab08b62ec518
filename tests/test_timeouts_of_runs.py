"""WITH TIMEOUTS beside comparisons, where runs hold values: from texts, held to the oracle."""

from __future__ import annotations

import random
from contextlib import nullcontext

import oracle
import pytest
from small import shrunk
from test_conjunctions import SCHEMA, all_short
from test_conjunctions import compiled as bound
from test_conjunctions import stream as drawn_stream
from test_deferred import drawn, types_of
from test_timeouts import check, compiled

import cersql
from runtime.chain_cea import Registers

WINDOWS = ("", "WITHIN 2", "WITHIN < 3", "WITHIN 3 EVENTS")
TEXTS = {
    "order": "A p ; B q WHERE p.x < q.x",
    "equality": "A p ; B q ; A r WHERE p.x = q.x",
    "equality of others": "A p ; B q ; A r WHERE p.x = r.x",
    "two orders": "A p ; B q ; A r WHERE p.x <= q.x AND q.y <> r.y",
    "a loop, all equal": "A+ p ; B q WHERE p.x = q.x",
    "a loop, in order": "A+ p ; B q WHERE p.x < q.x",
    "a loop behind": "A p ; B+ q ; A r WHERE p.x <= q.x",
    "neighbours": "A+ p ; B q WHERE p[i-1].x < p[i].x",
    "an OR": "A p ; (B q OR C r) ; A s WHERE p.x = q.x AND p.x <= s.x",
    "an OR of comparisons": "A p ; B q ; A r WHERE p.x < q.x OR q.x < r.x",
    "an OR of equalities": "A p ; B q WHERE p.x = q.x OR p.y = q.y",
    "what may be missing": "A p ; B? q ; A r WHERE p.x <= q.x",
    "counted": "A p ; B{1,2} q ; A r WHERE p.x = q.x",
    "at once": "A p : B q ; A r WHERE p.x <= r.x",
    "all of a loop agree": "((A p ; B+ q) PART BY (x)) ; A r",
    "an absence": "SEQ(A p, !C, B q, A r) WHERE p.x < q.x",
    "any order": "((A p ALL B q) ; A r) WHERE p.x <= q.x",
    "of one type": "A p ; A q ; A r WHERE p.x < r.x AND p.x <= q.x",
}
NOT_SO = {
    "by a strategy": ("A p ; B q WHERE p.x < q.x", "WITHIN 3 SEMANTICS NXT"),
    "consumed": ("A p ; B q WHERE p.x < q.x", "WITHIN 3 CONSUME BY PARTITION"),
    "AND": ("(A p ; B q) AND (ANY p ; B q) WHERE p.x < q.x", ""),
    "a compared absence": ("SEQ(A p, !C r, B q) WHERE p.x < q.x AND r.x = p.x", ""),
}


@pytest.mark.parametrize("name", TEXTS)
def test_registers_watch_it(name: str) -> None:
    program = compiled(bound(TEXTS[name]).query.formula)
    assert program.family in ("registers", "deferred", "ranged")
    assert program.timeouts is not None
    assert isinstance(program.timeouts.machine, Registers)
    assert program.timeouts.machine.apart


@pytest.mark.parametrize("name", NOT_SO)
def test_what_is_left_to_the_general_engine(name: str) -> None:
    pattern, rest = NOT_SO[name]
    told = explained(pattern, rest)
    assert "run by: general engine" in told
    assert "not by registers: WITH TIMEOUTS looks on, at every run" in told


def explained(pattern: str, rest: str) -> str:
    text = f"FROM t PATTERN {pattern} ORDER BY ts {rest} RETURN * WITH TIMEOUTS"
    return cersql.compile(text, SCHEMA).explain("physical")


def test_explain_says_what_it_costs() -> None:
    told = explained("A p ; B q WHERE p.x < q.x", "WITHIN 3")
    assert "by `x` in registers, of each start: a cost by the starts that wait in the window" in told


def all_agree(name: str, rest: str, most: int) -> None:
    query = bound(TEXTS[name], rest).query
    events = [event for own in all_short(TEXTS[name], most) for event in own]
    shown = check(query.formula, events, query.window, keyed=True)
    assert any(shown.values())


@pytest.mark.breadth(8)
@pytest.mark.parametrize("rest", WINDOWS)
@pytest.mark.parametrize("name", TEXTS)
def test_all_short_streams(name: str, rest: str) -> None:
    all_agree(name, rest, 300)


@pytest.mark.exhaustive
@pytest.mark.parametrize("rest", WINDOWS[:2])
@pytest.mark.parametrize("name", TEXTS)
def test_all_longer_streams(name: str, rest: str) -> None:
    all_agree(name, rest, 5_000)


@pytest.mark.breadth(6)
@pytest.mark.parametrize("name", TEXTS)
def test_streams_at_random(name: str) -> None:
    chance, kinds = random.Random(name), "".join(types_of(TEXTS[name])) + "AB"
    for seed in range(8):
        query = bound(TEXTS[name], WINDOWS[seed % 4]).query
        with shrunk() if seed % 2 else nullcontext():
            try:
                check(query.formula, drawn_stream(chance, kinds, 9), query.window, keyed=seed % 3 > 0, seed=seed)
            except oracle.TooLarge:
                continue


def drawn_agree(rounds: int, seed: int) -> None:
    """Texts of sequences with loops, choices and absences, whose events are compared in any way."""
    chance, shown, n = random.Random(seed), 0, 0
    while n < rounds:
        text = drawn(chance)
        for _ in range(text.count(" = ")):
            text = text.replace(" = ", f" {chance.choice(('==', '==', '<', '>=', '<>'))} ", 1)
        query = bound(text.replace("==", "="), chance.choice(WINDOWS)).query
        program = compiled(query.formula, query.window)
        if program.timeouts is None or not isinstance(program.timeouts.machine, Registers):
            continue
        n += 1
        for k in range(2):
            events = drawn_stream(chance, "AABBCD", 8)
            try:
                with shrunk() if k else nullcontext():
                    shown += sum(map(len, check(query.formula, events, query.window, keyed=k > 0, seed=k).values()))
            except oracle.TooLarge:
                continue
            except AssertionError as error:
                raise AssertionError(text) from error
    assert shown > rounds


def test_texts_at_random() -> None:
    drawn_agree(15, 1)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(2, 6))
def test_more_texts_at_random(seed: int) -> None:
    drawn_agree(60, seed)
