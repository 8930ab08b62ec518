"""What a place holds, by what its runs are found, and what EXPLAIN says that costs: from texts."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from numpy.typing import NDArray

import cersql
from planner.reasons import LOOKS
from runtime.chain_cea import EACH, EQUAL, NOBODY, SAME, Registers
from runtime.engine import engine_for
from runtime.steppers import run_table
from runtime.steppers.register_stepper import RegisterStepper

SCHEMA = {"t": "type STRING, x BIGINT, y BIGINT, z BIGINT, ts BIGINT"}


def compiled(pattern: str, where: str, rest: str = "") -> cersql.Compiled:
    text = f"FROM t PATTERN {pattern} WHERE {where} ORDER BY ts WITHIN 1000000 {rest} RETURN match_start"
    return cersql.compile(text, SCHEMA)


def told(made: cersql.Compiled) -> str:
    """What EXPLAIN says that a comparison costs."""
    kinds = ("in registers", "in runs that catch up", "in the general engine")
    return next(r for r in made.plan.reasons if any(kind in r for kind in kinds))


# Every order of the conjuncts, and of their sides: conditions, and at how many runs of each place an event looks.
CHAINS = {
    "three": ("A ; B ; C", ("A.x = B.x", "B.y = C.y")),
    "four": ("A ; B ; C ; D", ("A.x = B.x", "B.y = C.y", "C.z = D.z")),
    "two between neighbours": ("A ; B ; C", ("A.x = B.x", "A.y = B.y")),
    "different attributes": ("A ; B ; C", ("A.x = B.y", "A.y = B.x")),
    "one for two": ("A ; B ; C ; D", ("A.x = B.x", "A.x = C.x")),
    "with aliases": ("A a ; B b ; C c", ("a.x = b.x", "b.y = c.y")),
    "self-join": ("A a1 ; A a2 ; A a3", ("a1.x = a2.x", "a2.y = a3.y")),
    "a veto": ("SEQ(A a, !B b, C c, D d)", ("a.x = b.x", "a.x = c.x")),
    "a loop": ("A+ a ; B b ; C c", ("a.x = b.x",)),
    "a loop of two values": ("A+ a ; B b ; C c", ("a.x = b.x", "a.y = b.y")),
}


def orders(conditions: tuple[str, ...]) -> list[str]:
    """All orders of the conditions, as they are and with their sides exchanged."""
    turned = tuple(" = ".join(reversed(c.split(" = "))) for c in conditions)
    return [" AND ".join(order) for own in (conditions, turned) for order in permutations(own)]


@pytest.mark.parametrize("name", CHAINS)
def test_equal_neighbours_are_found_by_an_index(name: str) -> None:
    pattern, conditions = CHAINS[name]
    for where in orders(conditions):
        made = compiled(pattern, where)
        assert "found by an index: a constant cost per event" in told(made), where
        assert chain_length(made) <= 12, where


def chain_length(made: cersql.Compiled) -> int:
    """At how many runs an event looks at the most, when thousands with other values wait."""
    program, n = made.program, 8_000
    engine = engine_for(program)
    assert isinstance(engine.stepper, RegisterStepper)
    symbols = values_of(made, n)
    engine.count(symbols, np.arange(n, dtype=np.int64), mute=np.ones(n, np.bool_))
    entries = engine.stepper._entries
    assert entries is not None
    waiting = entries.counts[run_table.N_USED]
    assert waiting > 1_000
    indexed = entries.index_of[np.maximum(entries.at, 0), 0] != NOBODY
    assert (indexed & (entries.at >= 0)).sum() > 0.9 * waiting or "registers" not in program.family
    longest = 0
    for first in entries.bucket[entries.bucket != NOBODY].tolist():
        length, e = 0, first
        while e != NOBODY:
            length, e = length + 1, int(entries.chain_next[e])
        longest = max(longest, length)
    return longest


def values_of(made: cersql.Compiled, n: int) -> NDArray[np.int64]:
    """Events of all types, most As, with values that never repeat."""
    program, chance = made.program, np.random.default_rng(1)
    kinds = np.array(list("AAAABCD"))[chance.integers(0, 7, n)]
    symbols = np.zeros((n, 1 + len(program.terms)), np.int64)
    for bit, guard in enumerate(program.guards):
        symbols[:, 0] |= np.isin(kinds, sorted(guard)).astype(np.int64) << bit
    for k in range(len(program.terms)):
        symbols[:, 1 + k] = chance.permutation(n)
    return symbols


HONEST = {
    "an index, then each of the equal ones": ("A ; B ; C", "A.x = B.x AND A.y < B.y", "beside an equal one"),
    "equal to two that come after each other": ("A ; B ; C ; D", "A.x = B.x AND A.y = C.y", "beside an equal one"),
    "not equal to what comes next": ("A ; B ; C", "A.x = C.x", "runs that catch up: a logarithmic cost per event"),
    "two that overlap": ("A ; B ; C ; D", "A.x = C.x AND B.y = D.y", "a cost by the values that wait"),
    "what can be missing": ("A a ; B? b ; C c ; D", "a.x = c.x AND b.y = c.y", "a cost by the values that wait"),
    "less": ("A ; B ; C", "A.x < B.x", "found by an ordered index"),
    "an OR": ("A ; B ; C", "A.x = B.x OR A.y = B.y", "a cost by the values that wait"),
}


@pytest.mark.parametrize("name", HONEST)
def test_what_explain_says_where_an_index_is_not_all(name: str) -> None:
    pattern, where, claim = HONEST[name]
    assert claim in told(compiled(pattern, where))


def test_one_run_for_each_start_is_not_found_at_a_constant_cost() -> None:
    made = compiled("A ; B", "A.x = B.x", "AFTER MATCH SKIP TO NEXT ROW")
    assert "beside an equal one" in told(made)


@pytest.mark.parametrize("where", ["x.x >= g.x", "x.x < g.x", "x.x <> g.x"])
def test_what_came_before_is_found_by_its_extremes(where: str) -> None:
    assert "a logarithmic cost per event" in told(compiled("!ANY x ; ANY g", where))
    assert "a logarithmic cost per event" in told(compiled("!ANY x ; ANY g ; B b", where))
    several = told(compiled("!ANY x ; ANY g", f"{where} AND x.y < g.y"))
    assert "found by a search: at the most a cost by what happened in the window" in several


def test_every_way_of_looking_has_its_words() -> None:
    assert sorted(LOOKS) == list(range(EACH + 1))


def test_a_loop_whose_events_must_be_equal_forgets_runs_that_are_not() -> None:
    """But where what they are equal to may be missing, and under SKIP TILL NEXT MATCH, which takes what it can."""

    def checks(pattern: str, rest: str = "") -> int:
        machine = compiled(pattern, "a.x = b.x", rest).program.machine
        assert isinstance(machine, Registers)
        (loop,) = (e for e in range(int(machine.edge_of[1])) if machine.source[e] == 0)
        kinds = machine.op_kind[machine.op_of[loop] : machine.op_of[loop + 1]].tolist()
        assert SAME in kinds
        return kinds.count(EQUAL)

    assert checks("A+ a ; B b ; C c") == 1
    assert checks("A+ a ; B? b ; C c") == 0
    assert checks("A+ a ; B b ; C c", "SEMANTICS SKIP TILL NEXT MATCH") == 0
