"""Two stacks give the matches that the composed table chooses, and those that wait in registers, on long streams,
whatever the window and the cuts."""

from __future__ import annotations

import random
from collections.abc import Callable

import families
import harness
import pytest
from small import shrunk

import cersql
from planner import candidates
from planner.compile import compile_formula
from runtime.program import Program

ATOMS = ("A", "B", "C", "A a", "B b", "C c1", "(A OR B)", "(A x OR C x)")
LOOPS = ("", "", "", "+", "?", "{2}", "*")


def pattern(chance: random.Random) -> str:
    """Two to four parts in order, with loops, what must not happen between them, and alternatives."""
    parts = [chance.choice(ATOMS) for _ in range(chance.randint(2, 4))]
    parts = [f"({part}){chance.choice(LOOPS)}" if k else part for k, part in enumerate(parts)]
    if chance.random() < 0.4:
        parts.insert(chance.randint(1, len(parts) - 1), f"!{chance.choice('ABC')}")
    made = f"SEQ({', '.join(parts)})"
    return f"({made} OR SEQ(A q, C r))" if chance.random() < 0.25 else made


def query(chance: random.Random, late: bool = False) -> cersql.api.Compiled | None:
    """None where the text says something that the language has no meaning for. `late`: something must not happen after
    the match, in place of a strategy."""
    window = chance.choice(("3", "9", "40", "5 EVENTS", "33 EVENTS", "< 12"))
    if late:
        pattern_of, rest = f"SEQ({pattern(chance)}, !{chance.choice(('A', 'B', 'C', '(A OR B)', 'C, !B'))})", ""
    else:
        pattern_of, rest = pattern(chance), f"SEMANTICS {chance.choice(('NXT', 'LAST'))}"
    text = f"FROM t PATTERN {pattern_of} ORDER BY ts WITHIN {window} {rest}"
    try:
        return cersql.compile(f"{text} RETURN *", families.SCHEMA)
    except cersql.CersqlError:
        return None


@pytest.fixture
def both(monkeypatch: pytest.MonkeyPatch) -> Callable[[cersql.api.Compiled], tuple[Program, Program]]:
    """The program with two stacks, where they run the query, and without."""

    def programs(made: cersql.api.Compiled) -> tuple[Program, Program]:
        asked = {"window": made.query.window, "strategy": made.query.strategy}
        new = compile_formula(made.query.formula, **asked)
        with monkeypatch.context() as patched:
            left = tuple(pair for pair in candidates.CANDIDATES if pair[0] != "two stacks")
            patched.setattr(candidates, "CANDIDATES", left)
            return new, compile_formula(made.query.formula, **asked)

    return programs


@pytest.mark.slow
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("seed", [*range(12), *(pytest.param(n, marks=pytest.mark.exhaustive) for n in range(12, 400))])
def test_the_matches_are_those_of_another_way(
    seed: int, late: bool, both: Callable[[cersql.api.Compiled], tuple[Program, Program]]
) -> None:
    chance = random.Random(seed)
    made = query(chance, late)
    if made is None:
        return
    new, old = both(made)
    if new.family != "two stacks":
        return
    events = families.stream(chance, "A B C", chance.choice((30, 60 if late else 200)), 3)
    wanted, number = families.found(old, events, [])
    assert families.found(new, events, harness.random_cuts(seed, len(events))) == (wanted, number)
    with shrunk():
        assert families.found(new, events, harness.random_cuts(seed + 1, len(events))) == (wanted, number)


@pytest.mark.parametrize("late", [False, True])
def test_most_random_patterns_are_run_by_two_stacks(
    late: bool, both: Callable[[cersql.api.Compiled], tuple[Program, Program]]
) -> None:
    made = [one for one in (query(random.Random(seed), late) for seed in range(60)) if one is not None]
    assert sum(both(one)[0].family == "two stacks" for one in made) > len(made) / 3
