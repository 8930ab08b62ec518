"""Filters that compare events: the engine gives what the oracle gives, with every operator, clause, key and cut.

Random formulas with comparisons anywhere in them, also with what must not happen; then each comparison by itself over
each shape of pattern, on all very short streams with values that are NULL, 1 or 2.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import cache
from itertools import product

import harness
import numpy as np
import oracle
import pytest
import strategies
from harness import Options
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import COMPARING, EVERY, OPERATORS, RULES, SIMPLE, Asked, Row

import cersql
from planner import cel
from planner.across import Across, Candidate
from planner.errors import PlanError
from planner.formula import Formula
from planner.physical import plan
from planner.query import Query, Skip
from planner.terms import Comparison, Term

pytestmark = pytest.mark.slow

LIMIT = 200  # complex events in one set of the oracle; larger examples are cut short
ANYWHERE = (*EVERY, *COMPARING, "across", "across")
COMPARED = cel.Compare | cel.Agree | Across
KEYS = (0, 1, None)


@st.composite
def comparing(draw: st.DrawFn, depth: int, allowed: Sequence[str]) -> Formula:
    """A formula in which events are compared; if none happen to be, around the whole."""
    formula = draw(strategies.all_formulas(depth, allowed))
    if not any(isinstance(part, COMPARED) for part in strategies.subformulas(formula)):
        clause = draw(strategies.clauses(sorted(formula.binds()), draw(st.booleans())))
        formula = cel.Compare(formula, clause)
    return formula


def trails(formula: Formula) -> bool:
    """Does an absence follow the whole?"""
    return any(isinstance(part, cel.NotAfter) for part in strategies.subformulas(formula))


@st.composite
def plain(draw: st.DrawFn, depth: int = 3) -> Asked:
    formula = draw(comparing(depth, ANYWHERE))
    return windowed(draw, formula, Options())


@st.composite
def chosen(draw: st.DrawFn, depth: int = 3) -> Asked:
    formula = draw(comparing(depth, ANYWHERE))
    consume = "NONE" if trails(formula) else draw(st.sampled_from(("NONE", "PARTITION")))
    return windowed(draw, formula, Options(draw(st.sampled_from(RULES)), consume))


@st.composite
def greedy(draw: st.DrawFn, depth: int = 3) -> Asked:
    formula = draw(comparing(depth, (*SIMPLE, *COMPARING, "across", "across")))
    assume(not any(isinstance(part, cel.Unless) for part in strategies.subformulas(formula)))
    consume = "NONE" if trails(formula) else draw(st.sampled_from(("NONE", "NONE", "PARTITION")))
    return windowed(draw, formula, Options("NEXT_MATCH", consume))


@st.composite
def consuming(draw: st.DrawFn, depth: int = 3) -> Asked:
    formula = draw(comparing(depth, ANYWHERE))
    assume(not trails(formula))
    return windowed(draw, formula, Options(consume="PARTITION"))


@st.composite
def skipping(draw: st.DrawFn, depth: int = 3) -> Asked:
    formula = draw(comparing(depth, ANYWHERE))
    to = draw(st.sampled_from(("PAST LAST ROW", "TO NEXT ROW", "TO FIRST", "TO LAST")))
    mark = draw(st.sampled_from(sorted(formula.binds()))) if to in ("TO FIRST", "TO LAST") else None
    return windowed(draw, formula, Options(skip=Skip(to, mark)))


def windowed(draw: st.DrawFn, formula: Formula, options: Options) -> Asked:
    window = strategies.clause_of(formula) or draw(st.one_of(st.none(), strategies.small_windows()))
    return Asked(formula, window, options)


MODES: dict[str, Callable[..., st.SearchStrategy[Asked]]] = {
    "plain": plain, "strategy": chosen, "next match": greedy, "consume": consuming, "skip": skipping,
}  # fmt: skip


def affordable(asked: Asked, rows: Sequence[Row], keyed: bool) -> list[Row]:
    """The longest beginning of the rows that the oracle can evaluate."""
    rows = list(rows)
    while rows:
        try:
            harness.expected_matches(
                asked.formula, [row.event() for row in rows], asked.window, keyed, LIMIT, asked.options
            )
        except oracle.TooLarge:
            rows.pop()
        else:
            break
    return rows


def numbered_anew(asked: Asked, events: Sequence[oracle.Event], seed: int) -> dict[Hashable, set[oracle.Match]]:
    """The matches where rows have other numbers than their positions, in no order, as in an unsorted partition."""
    program = harness.compiled(asked.formula, asked.window, asked.options)
    rows = harness.rows_of(program, events)
    numbers = random.Random(seed).sample(range(3 * len(events) + 1), len(events))
    engine = harness.engine_for(program)
    batches = [*engine.feed(*rows.cut(0, len(rows)), np.array(numbers, np.int64)), *engine.flush()]
    position = {number: n for n, number in enumerate(numbers)}
    for batch in batches:
        batch.positions[:] = [position[number] for number in batch.positions.tolist()]
    return harness.unique(harness.decode(program, rows, batches))


def agree(asked: Asked, rows: Sequence[Row], seed: int, keyed: bool = False) -> None:
    numbers = [part.number for part in strategies.subformulas(asked.formula) if isinstance(part, Across)]
    assume(len(set(numbers)) == len(numbers))
    rows = affordable(asked, rows, keyed)
    events = [row.event() for row in rows]
    try:
        harness.check(asked.formula, events, asked.window, keyed, seed, options=asked.options)
        if not keyed:
            expected = harness.expected_matches(asked.formula, events, asked.window, options=asked.options)
            assert numbered_anew(asked, events, seed) == expected, "the numbers of rows are not their positions"
    except Exception as error:
        error.add_note(f"{asked.formula.show()}\n{asked.window}, {asked.options}, keyed {keyed}\n{rows}")
        raise


@pytest.mark.parametrize("mode", MODES)
def test_engine_and_oracle_agree(mode: str) -> None:
    @given(MODES[mode](), strategies.busy_streams(), st.integers(0, 1 << 16))
    @strategies.examples(30)
    def check(asked: Asked, rows: list[Row], seed: int) -> None:
        agree(asked, rows, seed)

    check()


@pytest.mark.parametrize("mode", MODES)
def test_engine_and_oracle_agree_on_each_key(mode: str) -> None:
    @given(MODES[mode](2), strategies.busy_streams(12, KEYS), st.integers(0, 1 << 16))
    @strategies.examples(12)
    def check(asked: Asked, rows: list[Row], seed: int) -> None:
        agree(asked, rows, seed, keyed=True)

    check()


# ---------------------------------------------------------------- equalities that become keys

LOOSE = tuple(name for name in (*EVERY, "across") if name not in ("contiguous", "start", "strategy", "within"))


@cache
def template() -> Query:
    return cersql.compile("FROM t PATTERN A ; B ; C ORDER BY ts RETURN *", {"t": "ts BIGINT, type STRING, v INT"}).query


@st.composite
def agreeing(draw: st.DrawFn) -> Formula:
    """Filters of which some say that events have one value of v, around a formula with few repeated names."""
    formula = draw(strategies.parts(draw(st.integers(1, 2)), LOOSE, solid=True))
    for _ in range(draw(st.integers(1, 3))):
        names = sorted(formula.binds())
        match draw(st.sampled_from(("agree", "equal", "equal", "equal", "across", "other"))):
            case "agree":
                terms = ((None, "v"),) if draw(st.booleans()) else tuple((name, "v") for name in names)
                formula = cel.Agree(formula, terms)
            case "equal":
                x, y = draw(st.permutations([*names, *names]))[:2]
                formula = cel.Compare(formula, (equal(x, y),))
            case "across":
                veto = Candidate(cel.Event(draw(st.sampled_from("ABC")), frozenset({"w"})), draw(st.integers(0)))
                inside = cel.Absent(formula, (veto,), cel.Event("C", frozenset({"z"})))
                if not strategies.neighbour(formula, last=True).may_be_empty():
                    outside = draw(st.sampled_from(sorted(inside.binds())))
                    formula = Across(inside, veto.number, ((equal("w", outside),),))
            case _:
                formula = cel.Compare(formula, draw(strategies.clauses(names, neighbours=False)))
    return formula


def equal(x: str, y: str) -> Comparison:
    return Comparison(Term(x, "v"), "=", Term(y, "v"))


@given(agreeing(), strategies.busy_streams(10), st.sampled_from(("ALL", "ALL", *RULES, "NEXT_MATCH")))
@strategies.examples(40)
def test_keys_change_nothing(formula: Formula, rows: list[Row], strategy: str) -> None:
    options = Options(strategy)
    if strategy == "NEXT_MATCH":
        undefined = cel.And | cel.All | cel.Unless | cel.Project | Across  # the oracle has no rule for these
        assume(not any(isinstance(part, undefined) for part in strategies.subformulas(formula)))
    marks = tuple(sorted(formula.binds()))
    try:
        planned = plan(replace(template(), formula=formula, marks=marks, strategy=strategy))
    except PlanError:
        assume(False)
    rows = affordable(Asked(formula, None, options), rows, keyed=False)
    events = [row.event() for row in rows]
    expected = harness.expected_matches(formula, events, options=options).get(None, set())
    keys = planned.query.keys
    assume(keys and not planned.query.links)  # rows that are copied: test_comparisons_spark
    kept = [n for n, event in enumerate(events) if all(event.value(key.sql) is not None for key in keys)]
    keyed = [replace(events[n], key=tuple(events[n].value(key.sql) for key in keys)) for n in kept]
    found = set()
    own: dict[Hashable, list[int]] = {}
    for n, event in zip(kept, keyed, strict=True):
        own.setdefault(event.key, []).append(n)
    fed = harness.rows_of(planned.program, keyed, keyed=True)
    for key, matches in harness.unique(harness.run_whole(planned.program, fed)).items():
        at = own[key]
        for start, end, mu in matches:
            found.add((at[start], at[end], frozenset((v, frozenset(at[p] for p in held)) for v, held in mu)))
    assert found == expected, f"{formula.show()}\nkeys {keys}, {strategy}\n{rows}"


# ---------------------------------------------------------------- everything small

ATOMS = {name: cel.Event(name.upper(), frozenset({name})) for name in "ab"}
ROWS = tuple(product("AB", (None, 1, 2)))


def shapes() -> dict[str, Formula]:
    a, b = ATOMS["a"], ATOMS["b"]
    return {
        "a ; b": cel.Sequence(a, b),
        "a : b": cel.Contiguous(a, b),
        "a OR b": cel.Or(a, b),
        "a ; b+": cel.Sequence(a, cel.Iteration(b)),
        "a+ ; b": cel.Sequence(cel.Iteration(a), b),
        "(a ; b)+": cel.Iteration(cel.Sequence(a, b)),
        "a? : b": cel.Contiguous(cel.Repeat(a, 0, 1), b),
        "a ; b{0,2} ; a": cel.Sequence(cel.Sequence(a, cel.Repeat(b, 0, 2)), a),
    }


def comparisons(op: str) -> list[Comparison]:
    """Between two variables, and between consecutive events of one."""
    of_a = [Term("a", "v", of) for of in ("earlier", "later")]
    return [
        Comparison(Term("a", "v"), op, Term("b", "v")),
        Comparison(of_a[0], op, of_a[1]),
        Comparison(of_a[1], op, Term("b", "v")),
    ]


@cache
def small_streams() -> list[tuple[tuple[str, int | None], ...]]:
    """All of up to three rows, and some of four."""
    short = [stream for length in range(1, 4) for stream in product(ROWS, repeat=length)]
    return short + list(product(ROWS, repeat=4))[::13]


@cache
def small_events() -> list[oracle.Event]:
    """All short streams in one, each with a key of its own."""
    return [
        oracle.Event(frozenset({kind}), n, number, () if v is None else (("v", v),))
        for number, stream in enumerate(small_streams())
        for n, (kind, v) in enumerate(stream)
    ]


@cache
def without_values(shape: str, kinds: str) -> list[oracle.Complex]:
    """All complex events of a shape, whatever the values."""
    meaning = oracle.Meaning([oracle.Event(frozenset({kind})) for kind in kinds])
    return [c for n in range(len(kinds)) for c in meaning.of(shapes()[shape], 0, n)]


@pytest.mark.parametrize("shape", shapes())
@pytest.mark.parametrize("op", dict.fromkeys(OPERATORS))
def test_every_comparison_on_very_short_streams(op: str, shape: str) -> None:
    for comparison in comparisons(op):
        formula = cel.Compare(shapes()[shape], (comparison,))
        program = harness.compiled(formula)
        found = harness.unique(harness.run_whole(program, harness.rows_of(program, small_events(), keyed=True)))
        for number, stream in enumerate(small_streams()):
            events = [oracle.Event(frozenset(), values=() if v is None else (("v", v),)) for _, v in stream]
            complete = without_values(shape, "".join(kind for kind, _ in stream))
            expected = {oracle.as_match(c) for c in complete if oracle.all_choices_hold((comparison,), c[2], events)}
            assert found.get(number, set()) == expected, f"{comparison} on {stream}"
