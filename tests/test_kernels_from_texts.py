"""Which engine a text gets, and that it answers as the oracle: the names that are written must not decide.

A type that has aliases carries a hidden variable for its name (`@R`), which no engine may take for one that is shared.
"""

from __future__ import annotations

import random
import re

import harness
import oracle
import pytest
from harness import Options

import cersql
from planner.query import Query

SCHEMA = {"t": "type STRING, x INT, y INT, ts INT"}
RESTS = {
    "ALL": "",
    "NXT": "SEMANTICS NXT",
    "MAX": "SEMANTICS MAX",
    "next match": "SEMANTICS SKIP TILL NEXT MATCH",
    "consume": "CONSUME BY PARTITION",
    "skip": "AFTER MATCH SKIP PAST LAST ROW",
}
# Upper case letters are types; A and B become one type for the self-joins.
TEXTS = {
    "chain": ("A ; B ; C", "A.x = B.x AND B.y < C.y"),
    "loop": ("A+ ; B ; C", "A.x = B.x"),
    "contiguous": ("A : B ; C", "A.x <= B.x"),
    "either": ("A ; (B OR C) ; D", "A.x = D.x"),
    "hierarchical": ("ALL(A, B, C)", "A.x = B.x AND B.x = C.x AND A.y = C.y"),
    "hierarchical, of four": ("ALL(A, B, C, D)", "A.x = B.x AND B.x = C.x AND C.x = D.x AND A.y = B.y"),
    "not hierarchical": ("ALL(A, B, C)", "A.x = B.x AND B.y = C.y"),
    "no comparison": ("ALL(A, B)", "A.x > 0"),
    "absence between": ("SEQ(A, !D, C)", "D.x = A.x"),
    "absence before": ("SEQ(!D, A, B)", "D.x >= A.x AND A.y <= B.y"),
    "absence after": ("SEQ(A, B, !D)", "D.x < A.x AND D.y = B.y"),
    "unless": ("(A ; B) UNLESS D", "D.x = A.x"),
    "strategy inside": ("NXT(A ; B) ; C", "A.x = C.x"),
    "nothing": ("A ; B", "A.x > 0 OR B.x > 0"),
}


def aliased(pattern: str, types: str = "ABCD") -> str:
    """A is a, of the first of the types, and so on."""
    return re.sub(r"\b([ABCD])(\+?)(?![\w(])", lambda m: f"{types['ABCD'.index(m[1])]}{m[2]} {m[1].lower()}_", pattern)


def outcome(pattern: str, where: str, rest: str) -> str:
    """The rule of the program, or the condition of the error."""
    text = f"FROM t PATTERN {pattern} WHERE {where} ORDER BY ts WITHIN 9 {rest} RETURN *"
    try:
        return cersql.compile(text, SCHEMA).program.family
    except cersql.CersqlError as error:
        return error.condition


@pytest.mark.parametrize("rest", RESTS)
@pytest.mark.parametrize("name", TEXTS)
def test_names_do_not_choose_the_engine(name: str, rest: str) -> None:
    pattern, where = TEXTS[name]
    by_alias = re.sub(r"\b([ABCD])\.", lambda m: f"{m[1].lower()}_.", where)
    bare = outcome(pattern, where, RESTS[rest])
    assert outcome(aliased(pattern), by_alias, RESTS[rest]) == bare
    assert outcome(aliased(pattern), where, RESTS[rest]) == bare, "the type's name stands for its alias"
    for types in ("AACD", "ABBD", "AAAD", "AAAA"):
        assert outcome(aliased(pattern, types), by_alias, RESTS[rest]) == bare, types


def bound(text: str) -> Query:
    return cersql.compile(f"FROM t PATTERN {text} ORDER BY ts WITHIN 6 RETURN *", SCHEMA).query


def stream(chance: random.Random, n: int) -> list[oracle.Event]:
    now, found = 0, []
    for _ in range(n):
        now += chance.choice((0, 1, 1, 2))
        values = tuple((f"`{name}`", v) for name in "xy" if (v := chance.choice((1, 1, 2, 3, None))) is not None)
        found.append(oracle.Event(frozenset({chance.choice("RRRSUU")}), now, 0, values))
    return found


ANSWERS = {
    "self-join": ("pcea", "ALL(R AS r1, R AS r2, U) WHERE r1.x = r2.x AND r2.x = U.x AND r1.y = U.y"),
    "self-join of three": ("pcea", "ALL(R AS r1, R AS r2, R AS r3) WHERE r1.x = r2.x AND r2.x = r3.x AND r1.y = r2.y"),
    "bare beside aliases": ("pcea", "ALL(R r1, S, U) WHERE r1.x = S.x AND S.x = U.x AND r1.y = S.y"),
    "of two values": ("pcea", "ALL(R AS r1, R AS r2) WHERE r1.x = r2.y AND r1.y = r2.x"),
    "not hierarchical": ("registers", "ALL(R AS r1, R AS r2, U) WHERE r1.x = r2.x AND r2.y = U.y"),
    "in a sequence": ("registers", "ALL(R AS r1, R AS r2) ; U WHERE r1.x = r2.x AND r1.y = U.y"),
    "the type's name": ("registers", "R AS r1 ; R AS r2 ; U u ; S? WHERE R.x = u.x"),
    "chain of one type": ("registers", "R AS r1 ; R AS r2 ; R AS r3 WHERE r1.x = r2.x AND r2.y = r3.y"),
    "two equalities": ("registers", "R AS r1 ; R AS r2 ; U WHERE r1.x = r2.x AND r1.y = r2.y"),
    "one for two": ("registers", "R AS r1 ; R AS r2 ; U ; S WHERE r1.x = r2.x AND r1.x = U.x"),
    "equal loop": ("registers", "R+ r ; U ; S WHERE r.x = U.x"),
    "equal loop that may be alone": ("registers", "R+ r ; U? u ; S WHERE r.x = u.x"),
    "running maximum": ("registers", "!ANY x ; R r WHERE x.x >= r.x"),
    "a change": ("registers", "!R r1 ; R r2 WHERE r1.x <> r2.x"),
    "first of its value, then": ("registers", "!R r1 ; R r2 ; U u WHERE r1.x = r2.x AND r2.y <= u.y"),
    "later one decides": ("registers", "!R r1 ; R r2 ; U u WHERE r1.x > u.x AND r1.y < r2.y"),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_answers_are_the_oracles(name: str) -> None:
    rule, text = ANSWERS[name]
    query, chance, total = bound(text), random.Random(len(text)), 0
    for seed in range(15):
        events = stream(chance, 9)
        formula = query.formula
        program = harness.compiled(formula, query.window, Options())
        assert program.family == rule
        try:
            total += harness.check(formula, events, query.window, seed=seed)
        except oracle.TooLarge:
            continue
    assert total > 0
