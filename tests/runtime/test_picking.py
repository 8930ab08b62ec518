"""NXT, LAST and AFTER MATCH SKIP beside comparisons, by kernels: as the general engine chooses, on streams long enough
for arenas to grow and to be compacted."""

from __future__ import annotations

from itertools import pairwise

import harness
import numpy as np
import pytest

from planner import cel
from planner.choice import choice
from planner.compile import compile_formula
from planner.formula import Formula
from planner.lower import lower_composed
from planner.query import Skip, Window
from planner.rewrite.rules import rewritten
from planner.terms import Comparison, Term
from runtime import capacities
from runtime.arrays import AnyArray
from runtime.engine import engine_for
from runtime.program import Program

A, B, C = (cel.Event(name, frozenset({name.lower()})) for name in "ABC")
EITHER = cel.Event("B", frozenset({"x"}))


def rising(inner: Formula, first: str, second: str, of: tuple[str, str] = ("each", "each")) -> Formula:
    terms = (Term(first, "v", of[0]), Term(second, "v", of[1]))
    return cel.Compare(inner, (Comparison(terms[0], "<", terms[1]),))


FORMULAS = {
    "pair": rising(cel.Sequence(A, B), "a", "b"),
    "chain": rising(rising(cel.Sequence(cel.Sequence(A, B), C), "a", "b"), "b", "c"),
    "loop": rising(cel.Sequence(A, cel.Sequence(cel.Iteration(B), C)), "b", "b", ("earlier", "later")),
    "two labels for one event": rising(cel.Sequence(cel.Sequence(A, cel.Or(B, EITHER)), C), "a", "c"),
    "adjacent loop": rising(cel.ContiguousIteration(cel.Event(None, frozenset({"b"}))), "b", "b", ("earlier", "later")),
    "adjacent": rising(cel.Contiguous(cel.Event(None, frozenset({"a"})), cel.Event(None, frozenset({"b"}))), "a", "b"),
}


def run(program: Program, kinds: AnyArray, values: AnyArray, keys: AnyArray | None, cuts: list[int]) -> list[object]:
    n = len(kinds)
    symbols = np.zeros((n, 1 + len(program.terms)), np.int64)
    for bit, guard in enumerate(program.guards):
        held = np.all([kinds == name for name in guard], axis=0) if guard else np.ones(n, np.bool_)
        symbols[:, 0] |= held.astype(np.int64) << bit
    symbols[:, 1:] = values[:, None]
    times = np.arange(n, dtype=np.int64)
    engine, batches = engine_for(program), []
    for begin, end in zip([0, *cuts], [*cuts, n], strict=True):
        own = None if keys is None else keys[begin:end]
        batches += engine.feed(symbols[begin:end], times[begin:end], positions=times[begin:end], keys=own)
        if end in cuts:
            engine.least_row()
    found = []
    for m in [*batches, *engine.flush()]:
        for k in range(m.n):
            part = slice(m.offsets[k], m.offsets[k + 1])
            labels = tuple(tuple(sorted(program.labels[label])) for label in m.labels[part].tolist())
            found.append((int(m.key[k]), tuple(m.positions[part].tolist()), labels))
    assert len(set(found)) == len(found), "a match is listed twice"
    counting = engine_for(program)
    counted = counting.count(symbols, times, positions=times, keys=keys)
    assert counted + sum(m.n for m in counting.flush()) == len(found)
    return sorted(found)


@pytest.mark.breadth(3)
@pytest.mark.parametrize("rule", ["NXT", "LAST"])
@pytest.mark.parametrize("name", FORMULAS)
def test_as_the_general_engine(name: str, rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capacities, "NODES", 64)
    random = np.random.default_rng(len(name))
    n = 400
    kinds, values = np.array(list("ABC"))[random.integers(0, 3, n)], random.integers(0, 9, n)
    keys = np.repeat(np.arange(4), n // 4)
    total = 0
    for window, own_keys, consume in ((Window("time", 9), None, "NONE"), (Window("events", 7), keys, "PARTITION")):
        options = harness.Options(rule, consume)
        program = harness.compiled(FORMULAS[name], window, options)
        general = lower_composed(
            choice(rewritten(FORMULAS[name]).formula, window, rule, consume, None), program.variables
        ).program
        assert (program.family, program.pick, general.family) == ("registers", rule, "bound")
        expected = run(general, kinds, values, own_keys, [])
        total += len(expected)
        for cuts in ([], [50, 51, 130, 333]):
            assert run(program, kinds, values, own_keys, cuts) == expected
    assert total > 20


@pytest.mark.breadth(4)
@pytest.mark.parametrize("skip", [Skip("PAST LAST ROW"), Skip("TO NEXT ROW"), Skip("TO LAST", "b")], ids=lambda s: s.to)
@pytest.mark.parametrize("name", FORMULAS)
def test_skipping_as_the_general_engine(name: str, skip: Skip, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capacities, "NODES", 64)
    monkeypatch.setattr(capacities, "HELD_STARTS", 3)
    random = np.random.default_rng(len(name))
    n = 400
    kinds, values = np.array(list("ABC"))[random.integers(0, 3, n)], random.integers(0, 9, n)
    keys = np.repeat(np.arange(4), n // 4)
    total = 0
    for window, own_keys in ((Window("time", 9), None), (Window("events", 7), keys)):
        options = harness.Options(skip=skip)
        program = harness.compiled(FORMULAS[name], window, options)
        general = lower_composed(
            choice(rewritten(FORMULAS[name]).formula, window, "ALL", "NONE", skip), program.variables
        ).program
        assert (program.family, general.family) == ("skipping", "bound")
        expected = run(general, kinds, values, own_keys, [])
        total += len(expected)
        for cuts in ([], [50, 51, 130, 333]):
            assert run(program, kinds, values, own_keys, cuts) == expected
    assert total > 20


@pytest.mark.parametrize("strategy", ["NXT", "LAST"])
def test_of_what_an_absence_makes_known_none_is_listed_that_cannot_win(strategy: str) -> None:
    """SEQ(A, B+, !C) of an A and 40 Bs: 2⁴⁰ - 1 matches, of which each B ends one that wins."""
    n, window = 41, Window("time", 100)
    formula = cel.NotAfter(cel.Sequence(A, cel.Iteration(B)), (C,), window)
    program = compile_formula(formula, window=window, strategy=strategy)
    symbols = np.array([1 << next(i for i, g in enumerate(program.guards) if g == {k}) for k in "A" + "B" * (n - 1)])
    engine = engine_for(program)
    batches = [*engine.feed(symbols, np.arange(n)), *engine.flush()]
    found = [batch.positions[a:b].tolist() for batch in batches for a, b in pairwise(batch.offsets.tolist())]
    assert sorted(found) == sorted([*range(end + 1)] for end in range(1, n))
