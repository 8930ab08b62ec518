"""Negated parts inside strategies and other negated parts, compared with what is around them all.

The oracle makes each choice once for every way in which the variables around it could be bound; the engine decides at
the end, by what its runs have seen.
"""

from __future__ import annotations

import random
from functools import cache
from itertools import product

import harness
import oracle
import pytest
import strategies
import test_timeouts
from harness import Options
from hypothesis import given
from hypothesis import strategies as st
from strategies import RULES, Asked, Row
from test_comparisons import agree, windowed

from planner import cel
from planner.across import Across, Candidate
from planner.formula import Formula
from planner.query import Skip
from planner.terms import Comparison, Term, Window

pytestmark = pytest.mark.slow


@st.composite
def asked(draw: st.DrawFn) -> Asked:
    """With any clause beside it."""
    options = [Options(), Options(), Options(draw(st.sampled_from(RULES))), Options(consume="PARTITION")]
    options.append(Options(skip=Skip(draw(st.sampled_from(("PAST LAST ROW", "TO NEXT ROW"))))))
    return windowed(draw, draw(strategies.in_choices()), draw(st.sampled_from(options)))


@given(asked(), strategies.busy_streams(8), st.integers(0, 1 << 16))
@strategies.examples(120)
def test_engine_and_oracle_agree(asked: Asked, rows: list[Row], seed: int) -> None:
    agree(asked, rows, seed)


def event(kind: str, name: str) -> cel.Event:
    return cel.Event(kind, frozenset({name}))


GAP = cel.Absent(event("A", "a"), (Candidate(event("B", "x"), 0),), event("A", "b"))
LOOP = cel.Absent(cel.Iteration(event("A", "a")), GAP.vetoes, event("A", "b"))
PAIR = cel.Unless(cel.Sequence(event("A", "a"), event("A", "b")), GAP.vetoes[0])
Z, Y = event("B", "z"), event("B", "y")
BOTH = cel.Sequence(Y, cel.Strategy("MAX", LOOP))
OTHER = cel.Absent(event("A", "y"), (Candidate(GAP, 1),), Z)  # itself compared, with y

SHAPES: dict[str, tuple[Formula, str]] = {
    "what came before": (cel.Sequence(Z, cel.Strategy("NXT", GAP)), "x = z"),
    "what comes after": (cel.Sequence(cel.Strategy("LAST", GAP), Z), "x < z"),
    "of many": (cel.Sequence(cel.Strategy("MAX", LOOP), Z), "x <> z"),
    "inside and outside": (cel.Sequence(Z, cel.Strategy("NXT", GAP)), "x = z, x > a"),
    "in each round": (cel.Sequence(Z, cel.Iteration(cel.Strategy("LAST", GAP))), "x >= z, x >= b"),
    "two strategies": (cel.Sequence(cel.Strategy("NXT", BOTH), Z), "x = z, x = y"),
    "a negated part": (cel.Absent(event("A", "y"), (GAP,), Z), "x = y"),
    "UNLESS twice": (cel.Unless(cel.Sequence(event("A", "y"), Z), PAIR), "x <> z"),
    "a compared negated part": (Across(OTHER, 1, ((Comparison(Term("a", "v"), "=", Term("y", "v")),),)),
                                "x = z"),
    "side by side": (cel.All(Z, cel.Strategy("NXT", GAP)), "x < z"),
}  # fmt: skip


def clause(text: str) -> tuple[Comparison]:
    left, op, right = text.split()
    return (Comparison(Term(left, "v"), op, Term(right, "v")),)


Rows = tuple[tuple[str, int], ...]


@cache
def short() -> list[Rows]:
    """All of up to five rows of two kinds with two values."""
    rows = tuple(product("AB", (1, 2)))
    return [stream for length in range(1, 6) for stream in product(rows, repeat=length)]


@cache
def longer() -> list[Rows]:
    """Some of up to ten rows of four kinds; in half of them there is room between two D."""
    pick, found = random.Random(5), []
    for n in range(1200):
        inside = "".join(pick.choice("AABBC") for _ in range(pick.randint(3, 9)))
        kinds = f"AD{inside[:6].replace('C', 'A')}DC" if n % 2 else inside
        found.append(tuple((kind, pick.randint(1, 2)) for kind in kinds))
    return found


END = event("C", "z")  # skip till next match would take a B that x could be
ROUND = cel.Absent(event("A", "y"), (GAP,), END)
NEXT_MATCH: dict[str, tuple[Formula, str]] = {
    "what came before": (ROUND, "x = y"),
    "what ends it": (ROUND, "x < z"),
    "both": (ROUND, "x >= y, x <> z"),
    "what is to come": (cel.Sequence(ROUND, event("A", "w")), "x <> w"),
    "all rounds": (cel.Iteration(ROUND), "x = z"),
    "itself compared": (
        Across(
            cel.Absent(event("A", "y"), (Candidate(GAP, 1),), END),
            1,
            ((Comparison(Term("a", "v"), "=", Term("y", "v")),),),
        ),
        "x = z",
    ),
    "twice": (cel.Absent(event("A", "y"), (cel.Absent(event("D", "v"), (GAP,), event("D", "w")),), END), "x = z"),
}


@pytest.mark.breadth(1)
@pytest.mark.parametrize("shape", SHAPES)
def test_all_short_streams(shape: str) -> None:
    check(*SHAPES[shape], Options(), short())


@pytest.mark.breadth(1)
@pytest.mark.parametrize("shape", NEXT_MATCH)
def test_skip_till_next_match(shape: str) -> None:
    check(*NEXT_MATCH[shape], Options("NEXT_MATCH"), longer())


def test_what_a_scope_decides_before_another_does() -> None:
    """Of two negated parts, one in the other, the inner one's comparison ends before the outer one's is made."""
    pick, options = random.Random(1), Options("NEXT_MATCH")
    outer = Candidate(cel.Absent(event("D", "v"), (GAP,), event("D", "w")), 1)
    first = Across(cel.Absent(event("A", "y"), (outer,), END), 0, (clause("x = y"),))
    formula = Across(cel.Sequence(first, event("E", "u")), 1, (clause("v = u"),))
    kinds = ["AD" + "".join(pick.choice("AAB") for _ in range(pick.randint(2, 5))) + "DCE" for _ in range(600)]
    events = events_of([tuple((kind, pick.randint(1, 2)) for kind in text) for text in kinds])
    program = harness.compiled(formula, None, options)
    found = harness.unique(harness.run_whole(program, harness.rows_of(program, events, keyed=True)))
    expected = harness.expected_matches(formula, events, None, True, options=options)
    assert found == {key: matches for key, matches in expected.items() if matches}
    assert 100 < len(found) < 600


@pytest.mark.breadth(3)
@pytest.mark.parametrize("strategy", ["ALL", "NEXT_MATCH"])
@pytest.mark.parametrize("shape", NEXT_MATCH)
def test_timeouts_beside_it(shape: str, strategy: str) -> None:
    formula, events = compared(*NEXT_MATCH[shape]), events_of(longer()[:60])
    shown = test_timeouts.check(formula, events, Window("events", 7), Options(strategy), keyed=True)
    assert any(shown.values())


def compared(inner: Formula, conditions: str) -> Formula:
    return Across(inner, 0, tuple(clause(text) for text in conditions.split(", ")))


def events_of(streams: list[Rows]) -> list[oracle.Event]:
    """Each stream with a key of its own."""
    return [
        oracle.Event(frozenset({kind}), n, number, (("v", v),))
        for number, stream in enumerate(streams)
        for n, (kind, v) in enumerate(stream)
    ]


def check(inner: Formula, conditions: str, options: Options, streams: list[Rows]) -> None:
    """The engine gives for each stream what the oracle gives, which is not what it would be without comparing."""
    formula, events = compared(inner, conditions), events_of(streams)
    program = harness.compiled(formula, None, options)
    found = harness.unique(harness.run_whole(program, harness.rows_of(program, events, keyed=True)))
    expected = harness.expected_matches(formula, events, None, True, options=options)
    assert found == {key: matches for key, matches in expected.items() if matches}
    always = oracle.put(inner, GAP.vetoes[0], event("B", "x"))
    assert expected != harness.expected_matches(always, events, None, True, options=options), "nothing is compared"
