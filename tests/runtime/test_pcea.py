"""Hierarchical ALL by runs side by side ([PCEA] Theorem 4.1, Algorithm 1): as the oracle says, and as the engine that
holds pairs of values says on streams long enough to merge heaps, drop old runs, grow and compact."""

from __future__ import annotations

from functools import reduce

import harness
import numpy as np
import oracle
import pytest
import strategies
from hypothesis import assume, given
from hypothesis import strategies as st

from planner import cel
from planner.automata.pcea import pcea_of
from planner.choice import choice
from planner.formula import Formula
from planner.lower import lower_composed
from planner.query import Window
from planner.refusal import Refusal
from planner.rewrite.rules import rewritten
from planner.terms import Comparison, Term
from runtime import capacities
from runtime.arrays import AnyArray
from runtime.compact_set import products
from runtime.compact_set import tecs as ecs
from runtime.engine import engine_for
from runtime.pcea import Parallel
from runtime.program import NULL_CODE, Program

NAMES = "abcd"


def in_any_order(types: str, equal: tuple[tuple[str, str], ...], type: str = "") -> Formula:
    """ALL of one event of each type, a, b, c …, with equalities such as ("a.x", "b.y")."""
    events = [cel.Event(t if t != "*" else None, frozenset({name})) for t, name in zip(types, NAMES, strict=False)]
    formula = reduce(cel.All, events)
    for left, right in equal:
        terms = (Term(*left.split(".")), Term(*right.split(".")))
        formula = cel.Compare(formula, (Comparison(terms[0], "=", terms[1], type),))
    return formula


def event(types: str, time: int, key: int, *values: int | None) -> oracle.Event:
    held = tuple((name, value) for name, value in zip("xyz", values, strict=False) if value is not None)
    return oracle.Event(frozenset(types), time, key, held)


@st.composite
def queries(draw: st.DrawFn) -> Formula:
    """ALL of two to four events with equalities that keep it hierarchical, self-joins and one-event values included."""
    n = draw(st.integers(2, 4))
    types = "".join(draw(st.sampled_from("AABBC*")) for _ in range(n))
    ends = st.builds(lambda name, attribute: f"{name}.{attribute}", st.sampled_from(NAMES[:n]), st.sampled_from("xyz"))
    equal = draw(st.lists(st.tuples(ends, ends), min_size=1, max_size=4))
    formula = in_any_order(types, tuple(equal))
    assume(harness.compiled(formula).family == "pcea")
    return formula


@st.composite
def streams(draw: st.DrawFn) -> list[oracle.Event]:
    row = st.tuples(
        st.sampled_from(("A", "B", "C", "AB", "AB", "ABC", "")),
        st.sampled_from((0, 1, 1, 3)),
        st.integers(0, 1),
        *[st.sampled_from((1, 1, 2, None))] * 3,
    )
    now, found = 0, []
    for types, step, key, *values in draw(st.lists(row, min_size=2, max_size=8)):
        now += step
        found.append(event(types, now, key, *values))
    return found


@pytest.mark.breadth(1)
@pytest.mark.parametrize("keyed", [False, True], ids=["one stream", "keys"])
def test_as_the_oracle(keyed: bool) -> None:
    matched = []

    @given(queries(), streams(), st.one_of(st.none(), strategies.small_windows()), st.integers(0, 1 << 16))
    @strategies.examples(220)
    def check(formula: Formula, stream: list[oracle.Event], window: Window | None, seed: int) -> None:
        matched.append(harness.check(formula, stream, window, keyed, seed))

    check()
    assert sum(map(bool, matched)) > 20


# Q₀(x, y) ← T(x), S(x, y), R(x, y), and the stream S₀ of Section 2.
Q0 = in_any_order("TSR", (("a.x", "b.x"), ("b.x", "c.x"), ("b.y", "c.y")))
S0 = [
    event(relation, n, 0, *values)
    for n, (relation, *values) in enumerate(
        [("S", 2, 11), ("T", 2), ("R", 1, 10), ("S", 2, 11), ("T", 1), ("R", 2, 11), ("S", 4, 13), ("T", 1)]
    )
]


def test_the_example_of_the_paper() -> None:
    """⟦Q₀⟧₅(S₀): {0, 1, 5} and {1, 3, 5}; P₀ finds them at position 5 and no others anywhere."""
    program = harness.compiled(Q0)
    assert program.family == "pcea"
    found = harness.run_whole(program, harness.rows_of(program, S0))[None]
    events = sorted(sorted(row for _, rows in mu for row in rows) for _, _, mu in found)
    assert events == [[0, 1, 5], [1, 3, 5]]


TREES = {
    "one value": ("AB", (("a.x", "b.x"),)),
    "two deep": ("ABC", (("a.x", "b.x"), ("b.x", "c.x"), ("a.y", "b.y"))),
    "two trees": ("ABCA", (("a.x", "b.x"), ("c.y", "d.y"))),
    "self-join": ("AAA", (("a.x", "b.x"), ("b.x", "c.x"), ("b.y", "c.z"))),
    "two values at once": ("ABC", (("a.x", "b.x"), ("a.y", "b.y"), ("b.z", "c.z"), ("a.z", "b.z"))),
    "three deep": (
        "ABCB",
        (("a.x", "b.x"), ("b.x", "c.x"), ("c.x", "d.x"), ("a.y", "b.y"), ("b.y", "c.y"), ("a.z", "b.z")),
    ),
}


def long_stream(program: Program, n: int, seed: int, distinct: int) -> AnyArray:
    random = np.random.default_rng(seed)
    kind = random.integers(0, 3, n)
    symbols = np.zeros((n, 1 + len(program.terms)), np.int64)
    for bit, guard in enumerate(program.guards):
        (name,) = guard
        symbols[:, 0] |= ((kind == "ABC".index(name)) | (random.random(n) < 0.05)).astype(np.int64) << bit
    for column in "xyz":
        values = random.integers(0, distinct, n)
        values[random.random(n) < 0.05] = NULL_CODE
        for i, term in enumerate(program.terms):
            if term == column:
                symbols[:, 1 + i] = values
    return symbols


def run(program: Program, symbols: AnyArray, times: AnyArray, keys: AnyArray | None, cuts: list[int]) -> list[object]:
    engine, found = engine_for(program), []
    positions = np.arange(len(symbols), dtype=np.int64)
    for begin, end in zip([0, *cuts], [*cuts, len(symbols)], strict=True):
        part = slice(begin, end)
        own = None if keys is None else keys[part]
        for m in engine.feed(symbols[part], times[part], positions=positions[part], keys=own):
            for k in range(m.n):
                held = slice(m.offsets[k], m.offsets[k + 1])
                labels = tuple(tuple(sorted(program.labels[label])) for label in m.labels[held].tolist())
                found.append((int(m.key[k]), tuple(m.positions[held].tolist()), labels))
        if end in cuts:
            engine.least_row()
    assert len(set(found)) == len(found), "a match is listed twice"
    return sorted(found)


@pytest.mark.breadth(2)
@pytest.mark.parametrize("tree", TREES)
def test_as_the_general_engine(tree: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capacities, "PLACES", 16)
    formula = in_any_order(*TREES[tree])
    few = len(TREES[tree][0]) > 3
    total = 0
    for seed, (size, distinct, keyed) in enumerate([(12, 3, False), (20, 4, True), (6, 2, False)]):
        window = Window("time", size // (2 if few else 1))
        program = harness.compiled(formula, window)
        general = lower_composed(
            choice(rewritten(formula).formula, window, "ALL", "NONE", None), program.variables
        ).program
        assert (program.family, general.family) == ("pcea", "bound")
        n = 240
        symbols = long_stream(program, n, seed, distinct)
        order = [1 + program.terms.index(term) for term in general.terms]
        bits = [program.guards.index(guard) for guard in general.guards]
        other = symbols[:, [0, *order]].copy()
        other[:, 0] = sum((symbols[:, 0] >> bit & 1) << i for i, bit in enumerate(bits))
        keys = np.repeat(np.arange(3), n // 3) if keyed else None
        times = np.concatenate([np.arange(n // 3)] * 3) if keyed else np.arange(n) * 2 // 3
        expected = run(general, other, times, keys, [])
        total += len(expected)
        for cuts in ([], [31, 110, 111, 200]):
            assert run(program, symbols, times, keys, cuts) == expected
        assert engine_for(program).count(symbols, times, keys=keys) == len(expected)
    assert total > 50


def test_many_matches_are_counted_and_listed_in_parts() -> None:
    """Products of 60 × 60 × 60 runs: listing stops and goes on, and counting multiplies."""
    program = harness.compiled(in_any_order("ABC", (("a.x", "b.x"), ("b.x", "c.x"))))
    n = 60
    symbols = np.ones((3 * n, 2), np.int64)
    symbols[:, 0] = np.tile([1, 2, 4], n)
    times = np.arange(3 * n, dtype=np.int64)
    engine = engine_for(program)
    listed = sum(m.n for m in engine.feed(symbols, times))
    assert listed == n**3 == engine_for(program).count(symbols, times)


def test_heaps_stay_shallow() -> None:
    """The way that an insertion copies is at most log₂(runs), whatever the order of the beginnings."""
    n = 3000
    random = np.random.default_rng(5)
    for order in (np.arange(n), np.arange(n)[::-1], random.permutation(n), random.integers(1, 10, n) * 300):
        arena = ecs.new_arena(1 << 17, np.dtype(np.int64))
        path = np.zeros(products.MOST_RANKS, np.int32)
        heap, most = ecs.BOTTOM, 0
        for start in order.tolist():
            before = arena.size[0] + 1
            output = ecs.extend(arena, start, 0, ecs.BOTTOM, start)
            heap = products.inserted(arena, heap, output, n, ecs.Bounds(n + 1, False), path)
            most = max(most, arena.size[0] - before)
        assert most <= 2 * (1 + n.bit_length())
        roots = ecs.new_roots(1, np.dtype(np.int64))._replace(node=np.array([heap], np.int32), clock=np.array([n]))
        space = ecs.Space(arena, roots, ecs.Bounds(n + 1, False))
        total, counts = np.zeros(1, np.int64), ecs.new_counts(1 << 17)
        stack = np.zeros(1 << 14, np.int32)
        assert ecs.count_kernel(space, 0, 1, stack, counts, total) == 1
        assert total[0] == n
        total[:] = 0
        half = space._replace(bounds=ecs.Bounds(n // 2, False))
        ecs.count_kernel(half, 0, 1, stack, counts, total)  # the other half has left
        assert total[0] == (order >= n - n // 2).sum()


def test_what_is_not_run_side_by_side() -> None:
    not_hierarchical = in_any_order("ABC", (("a.x", "b.x"), ("b.y", "c.y")))
    assert harness.compiled(not_hierarchical).family == "registers"
    assert pcea_of(not_hierarchical) == Refusal("it is not hierarchical")
    unequal = cel.Compare(in_any_order("AB", (("a.x", "b.x"),)), (Comparison(Term("a", "y"), "<", Term("b", "y")),))
    assert pcea_of(unequal) == Refusal("a condition that is no equality of two events")
    twice = cel.Compare(
        in_any_order("AB", (("a.x", "b.x"),), "INT"),
        (Comparison(Term("a", "x"), "=", Term("b", "y"), "BIGINT"),),
    )
    assert pcea_of(twice) == Refusal("one value compared in several types")
    machine = harness.compiled(Q0).machine
    assert isinstance(machine, Parallel)
    assert machine.depth == 2
