"""Loops with great numbers run as loops without: `B{2,500}` as `B+`, of whose matches some are given."""

from __future__ import annotations

import random

import harness
import numpy as np
import oracle
import pytest

import cersql
from planner import cel
from planner.automata import counted as counting
from planner.compile import compile_formula
from planner.formula import Formula
from runtime.engine import engine_for

SCHEMA = {"t": "type STRING, ts LONG, v INT"}
A, B, C = (cel.Event(type, frozenset({type.lower()})) for type in "ABC")


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops of any number are counted."""
    monkeypatch.setattr(counting, "MOST_UNROLLED", 0)


def event(chance: random.Random, name: str) -> Formula:
    made: Formula = cel.Event(chance.choice("AABC"), frozenset({name}))
    return cel.As(made, name + "1") if chance.random() < 0.2 else made


def pattern(chance: random.Random) -> Formula:
    """A few parts in order, of which some are loops with numbers."""
    parts: list[Formula] = []
    for name in "wxyz"[: chance.randint(1, 4)]:
        one, low = event(chance, name), chance.randint(0, 3)
        if chance.random() < 0.6 and (low or parts):
            high = None if chance.random() < 0.25 else low + chance.randint(0, 2) + (low == 0)
            one = cel.Repeat(one, low, high)
        if chance.random() < 0.15:
            one = cel.As(one, name + "2")
        parts.append(one)
    if parts[-1].may_be_empty():
        parts.append(event(chance, "v"))
    made = parts[0]
    for part in parts[1:]:
        made = cel.Contiguous(made, part) if chance.random() < 0.15 else cel.Sequence(made, part)
    return made


@pytest.mark.slow
@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("seed", [*range(25), *(pytest.param(n, marks=pytest.mark.exhaustive) for n in range(25, 600))])
def test_engine_and_oracle_agree(seed: int) -> None:
    chance = random.Random(seed)
    formula = pattern(chance)
    kinds = [oracle.Event(frozenset({chance.choice("ABCD")}), time, chance.choice((0, 0, 1))) for time in range(8)]
    window = chance.choice((None, None, oracle.Window("time", 4), oracle.Window("events", 6)))
    harness.check(formula, kinds, window, keyed=chance.random() < 0.3, seed=seed)


@pytest.mark.usefixtures("small")
def test_many_random_patterns_are_counted() -> None:
    programs = [harness.compiled(pattern(random.Random(seed))) for seed in range(100)]
    assert sum(program.counted is not None for program in programs) > 50


def test_matches_are_those_of_the_loop_that_is_written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over 40 Bs in a window of 12, with up to 10 of them and with 9 and more."""
    events = [oracle.Event(frozenset({kind}), time) for time, kind in enumerate("ABBBBBBBBBBBBC" * 3)]
    window = oracle.Window("time", 13)
    for low, high in ((1, 10), (9, None), (10, 11), (0, 9)):
        formula = cel.Sequence(cel.Sequence(A, cel.Repeat(B, low, high)), C)
        new = compile_formula(formula, window)
        with monkeypatch.context() as patched:
            patched.setattr(counting, "MOST_UNROLLED", 1_000)
            old = compile_formula(formula, window)
        assert (new.counted, old.counted) == (("b", low, high), None)
        found = [harness.unique(harness.run_whole(p, harness.rows_of(p, events))) for p in (new, old)]
        assert found[0] == found[1]
        assert [harness.count(p, harness.rows_of(p, events)) for p in (new, old)] == [len(found[0][None])] * 2


def test_the_first_of_many_matches_come_at_once() -> None:
    """2^200 subsets of Bs, of which those with 199 and 200 are 201."""
    program = compile_formula(cel.Sequence(cel.Sequence(A, cel.Repeat(B, 199, 500)), C))
    guards = [1 << program.guards.index(frozenset({kind})) for kind in "ABC"]
    symbols = np.array([guards[0], *[guards[1]] * 200, guards[2]])
    sizes = [part.offsets[k + 1] - part.offsets[k] for part in engine_for(program).feed(symbols, np.arange(202))
             for k in range(part.n)]  # fmt: skip
    assert sorted(sizes) == [201] * 200 + [202]
    assert engine_for(program).count(symbols, np.arange(202)) == 201


def test_numbers_that_no_bigint_holds_are_an_error() -> None:
    program = compile_formula(cel.Sequence(A, cel.Repeat(B, 10, 90)))
    guards = [1 << program.guards.index(frozenset({kind})) for kind in "AB"]
    symbols = np.array([guards[0], *[guards[1]] * 80])
    with pytest.raises(Exception, match="COUNT_OVERFLOW"):
        engine_for(program).count(symbols, np.arange(81))


@pytest.mark.parametrize(
    ("text", "counted"),
    [
        ("A ; B{1,500} ; C", ("B", 1, 500)),
        ("A ; B{1,500} b ; C", ("b", 1, 500)),
        ("A ; (B b)* ; C", None),
        ("A ; B{9,} b ; C", ("b", 9, None)),
        ("A ; B{1,8} b ; C", None),
        ("A ; B{1,20} b ; B{2,30} d ; C", ("d", 2, 30)),
        ("A ; B{1,20} b ; B b ; C", None),  # another part binds b, too
        ("(A ; B{1,20} b ; C)+", None),
        ("A ; (B b ; C c){1,20}", None),
        ("(A ; B{1,20} b) OR C", None),
        ("A : B:{1,20} b : C", None),
    ],
)
def test_which_loops_are_counted(text: str, counted: tuple[str, int, int | None] | None) -> None:
    made = cersql.compile(f"FROM t PATTERN {text} ORDER BY ts RETURN *", SCHEMA)
    assert made.program.counted == counted


def test_groups_are_summed_up_by_states() -> None:
    text = "FROM t PATTERN A ; B{1,20} b ; C ORDER BY ts RETURN COUNT(*) GROUP BY ()"
    assert cersql.compile(text, SCHEMA).program.counted is None
