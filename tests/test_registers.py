"""What the kernel of registers runs beside plain comparisons: what must not happen in between, and ORs.

Chains of events with these between and around them, under each strategy, against the oracle; and the same by the
general engine, which knows no registers. Which patterns run so is part of the test.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import harness
import oracle
import pytest
import strategies
import test_comparisons
from harness import Options
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import Asked, Row

import cersql
from planner import cel, terms
from planner.across import Across, Candidate
from planner.formula import Formula
from planner.query import Skip
from planner.terms import Comparison, Side, Term, Window

BY_REGISTERS = ("registers", "deferred", "skipping")
OPERATORS = ("=", "<>", "<", "<=", ">", ">=")
OPTIONS = (
    *[Options()] * 3, Options("NXT"), Options("LAST"), Options("NEXT_MATCH"), Options("NEXT_MATCH"),
    Options(consume="PARTITION"), Options(skip=Skip("PAST LAST ROW", None)), Options(skip=Skip("TO NEXT ROW", None)),
)  # fmt: skip
AROUND = (Options(), Options(), Options("NEXT_MATCH"), Options("NXT"))


@st.composite
def chains(draw: st.DrawFn) -> Formula:
    """Two to four events or loops; between some of them an absence, of which conditions may speak."""
    n = draw(st.integers(2, 4))
    names = [f"v{k}" for k in range(n)]
    made, acrosses = item(draw, names[0]), list[Across]()
    for k in range(1, n):
        follower, between = item(draw, names[k]), draw(st.sampled_from((";", ";", ":", "!", "!", "!!", "across")))
        if between == "across":
            veto = Candidate(draw(events(f"w{k}")), k)
            inside = sorted(veto.binds())
            others = names[:k] if draw(st.booleans()) else [*names[:k], names[k]]
            n_sides = draw(st.integers(1, 2))
            sides = tuple(
                (comparison(draw, draw(st.sampled_from(inside)), draw(st.sampled_from(others))),)
                for _ in range(n_sides)
            )
            made = cel.Absent(made, (veto,), follower)
            acrosses.append(Across(made, k, sides))
        elif between[0] == "!":
            made = cel.Absent(made, tuple(draw(atoms("w")) for _ in between), follower)
        else:
            made = cel.Sequence(made, follower) if between == ";" else cel.Contiguous(made, follower)
    if n > 2 and draw(st.integers(0, 2)) == 0:
        made = cel.Or(made, cel.Sequence(draw(atoms(names[0])), draw(atoms(names[1]))))
    for across in acrosses:
        made = Across(made, across.number, across.clauses)
    for _ in range(draw(st.integers(0 if acrosses else 1, 2))):
        made = cel.Compare(made, either(draw, names))
    if draw(st.integers(0, 3)) == 0:
        made = cel.FilterAny(made, tuple((x, draw(st.sampled_from(strategies.PREDICATES))) for x in names[:2]))
    return made


@st.composite
def wrapped(draw: st.DrawFn) -> Formula:
    """Events and loops, parts of which have a window of their own, must not hold some event, come first, or are
    projected on all they have; and comparisons of their events, some inside such a part."""

    def around(part: Formula, names: Sequence[str]) -> Formula:
        if len(names) > 1 and draw(st.integers(0, 2)) == 0:
            part = cel.Compare(part, (comparison(draw, *draw(st.permutations(names))[:2]),))
        match draw(st.integers(0, 6)):
            case 0 | 1:
                return cel.Within(part, draw(strategies.small_windows()))
            case 2:
                return cel.Unless(part, cel.Event(draw(st.sampled_from(strategies.TYPES)), frozenset({"w"})))
            case 3:
                return cel.Start(part)
            case 4:
                return cel.Project(part, part.binds())
        return part

    def part(names: Sequence[str]) -> Formula:
        if len(names) == 1:
            return around(item(draw, names[0]), names)
        at = draw(st.integers(1, len(names) - 1))
        left, right = part(names[:at]), part(names[at:])
        match draw(st.integers(0, 6)):
            case 0:
                made: Formula = cel.Contiguous(left, right)
            case 1:
                made = cel.Absent(left, (draw(atoms("w")),), right)
            case 2:
                made = cel.Or(left, right)
            case _:
                made = cel.Sequence(left, right)
        if draw(st.integers(0, 5)) == 0:
            made = cel.Iteration(made)
        return around(made, names)

    names = [f"v{k}" for k in range(draw(st.integers(2, 4)))]
    return cel.Compare(part(names), (comparison(draw, *draw(st.permutations(names))[:2]),))


def item(draw: st.DrawFn, name: str) -> Formula:
    atom = draw(atoms(name))
    return cel.Iteration(atom) if draw(st.integers(0, 3)) == 0 else atom


@st.composite
def atoms(draw: st.DrawFn, name: str) -> Formula:
    return cel.Event(draw(st.sampled_from(strategies.TYPES)), frozenset({name}))


@st.composite
def events(draw: st.DrawFn, name: str) -> Formula:
    """One event, or one of two, of which conditions may speak apart."""
    if draw(st.integers(0, 2)):
        return draw(atoms(name))
    return cel.Or(draw(atoms(name)), draw(atoms(f"{name}x")))


def comparison(draw: st.DrawFn, x: str, y: str) -> Side:
    terms = [Term(v, draw(st.sampled_from(("v", "v", "ts")))) for v in draw(st.permutations((x, y)))]
    return strategies.compares(draw, terms[0], terms[1])


def either(draw: st.DrawFn, names: Sequence[str]) -> tuple[Side, ...]:
    """An OR of comparisons and conditions on two or three of the variables."""
    of = draw(st.permutations(names))
    sides: list[Side] = [comparison(draw, of[0], of[1])]
    if draw(st.integers(0, 2)):
        sides.append(comparison(draw, *draw(st.permutations(of[:3]))[:2]))
    if draw(st.integers(0, 2)) == 0:
        sides.append(terms.Test(of[0], draw(st.sampled_from(strategies.PREDICATES))))
    return tuple(sides)


@pytest.mark.slow
@given(
    chains(), st.sampled_from(OPTIONS), st.none() | strategies.small_windows(), strategies.busy_streams(10),
    st.integers(0, 1 << 16),
)  # fmt: skip
@strategies.examples(120)
def test_kernel_and_oracle_agree(
    formula: Formula, options: Options, window: Window | None, rows: list[Row], seed: int
) -> None:
    assume(harness.compiled(formula, window, options).family in BY_REGISTERS)
    test_comparisons.agree(Asked(formula, window, options), rows, seed)


@pytest.mark.slow
@given(chains(), st.sampled_from(OPTIONS), strategies.busy_streams(14, test_comparisons.KEYS), st.integers(0, 1 << 16))
@strategies.examples(50)
def test_kernel_and_oracle_agree_on_each_key(formula: Formula, options: Options, rows: list[Row], seed: int) -> None:
    assume(harness.compiled(formula, None, options).family in BY_REGISTERS)
    test_comparisons.agree(Asked(formula, None, options), rows, seed, keyed=True)


@st.composite
def alike(draw: st.DrawFn) -> Formula:
    """Two or three alternatives that differ in where parentheses and conditions stand, and in little else."""
    names = [f"v{k}" for k in range(draw(st.integers(2, 4)))]
    kinds = [draw(st.sampled_from(strategies.TYPES)) for _ in names]

    def part(low: int, high: int) -> Formula:
        if high - low == 1:
            return cel.Event(kinds[low], frozenset({names[low]}))
        at = draw(st.integers(low + 1, high - 1))
        join = cel.Contiguous if draw(st.integers(0, 9)) == 0 else cel.Sequence
        made: Formula = join(part(low, at), part(at, high))
        match draw(st.integers(0, 3)):
            case 0:
                return cel.Agree(made, ((None, "v"),))
            case 1:
                return cel.Compare(made, (comparison(draw, *draw(st.permutations(names[low:high]))[:2]),))
        return made

    made = part(0, len(names))
    for _ in range(draw(st.integers(1, 2))):
        made = cel.Or(made, part(0, len(names)))
    return made


@given(
    alike(), st.sampled_from(OPTIONS), st.none() | strategies.small_windows(), strategies.busy_streams(10),
    st.integers(0, 1 << 16),
)  # fmt: skip
@strategies.examples(100)
def test_alternatives_that_are_alike(
    formula: Formula, options: Options, window: Window | None, rows: list[Row], seed: int
) -> None:
    test_comparisons.agree(Asked(formula, window, options), rows, seed)


@st.composite
def chained(draw: st.DrawFn) -> Formula:
    """ALL of two or three chains of one or two events, some with conditions, and a comparison around it."""
    n = draw(st.integers(2, 3))
    kinds, parts, names = list(strategies.TYPES), list[Formula](), list[str]()
    for k in range(n):
        own = [f"v{k}", f"w{k}"][: draw(st.integers(1, 2)) if sum(map(bool, names)) < 3 else 1]
        marks = [frozenset({name}) if draw(st.integers(0, 3)) else frozenset({name, "@h"}) for name in own]
        part: Formula = cel.Event(draw(st.sampled_from(kinds)), marks[0])
        for mark in marks[1:]:
            part = cel.Sequence(part, cel.Event(draw(st.sampled_from(kinds)), mark))
        if len(own) > 1 and draw(st.booleans()):
            part = cel.Compare(part, (comparison(draw, *own),))
        parts.append(part)
        names += own
    made = parts[0]
    for part in parts[1:]:
        made = cel.All(made, part)
    return cel.Compare(made, (comparison(draw, *draw(st.permutations(names))[:2]),))


@given(chained(), st.none() | strategies.small_windows(), strategies.busy_streams(9), st.integers(0, 1 << 16))
@strategies.examples(100)
def test_all_of_chains(formula: Formula, window: Window | None, rows: list[Row], seed: int) -> None:
    test_comparisons.agree(Asked(formula, window, Options()), rows, seed)


@st.composite
def equalities(draw: st.DrawFn) -> Formula:
    """Events and loops, and an OR or two of equalities between some of them, NULLs among their values."""
    names = [f"v{k}" for k in range(draw(st.integers(2, 4)))]
    made = item(draw, names[0])
    for name in names[1:]:
        join = draw(st.sampled_from((cel.Sequence, cel.Sequence, cel.Contiguous, cel.Or)))
        made = join(made, item(draw, name))
    for _ in range(draw(st.integers(1, 2))):
        sides = []
        for _ in range(draw(st.integers(2, 3))):
            x, y = draw(st.permutations(names))[:2]
            sides.append(Comparison(Term(x, draw(st.sampled_from(("v", "ts")))), "=", Term(y, "v")))
        made = cel.Compare(made, tuple(sides))
    return made


@given(
    equalities(), st.sampled_from(OPTIONS), st.none() | strategies.small_windows(), st.booleans(), st.data(),
    st.integers(0, 1 << 16),
)  # fmt: skip
@strategies.examples(100)
def test_an_or_of_equalities(
    formula: Formula, options: Options, window: Window | None, keyed: bool, data: st.DataObject, seed: int
) -> None:
    rows = data.draw(strategies.busy_streams(14, test_comparisons.KEYS) if keyed else strategies.busy_streams(10))
    assume(harness.compiled(formula, window, options).family in BY_REGISTERS)
    test_comparisons.agree(Asked(formula, window, options), rows, seed, keyed=keyed)


@pytest.mark.slow
@given(
    wrapped(), st.sampled_from([option for option in OPTIONS if option.strategy != "NEXT_MATCH"]),
    st.none() | strategies.small_windows(), st.booleans(), st.data(), st.integers(0, 1 << 16),
)  # fmt: skip
@strategies.examples(120)
def test_kernel_and_oracle_agree_on_windows_inside_and_unless(
    formula: Formula, options: Options, window: Window | None, keyed: bool, data: st.DataObject, seed: int
) -> None:
    assume(harness.compiled(formula, window, options).family in BY_REGISTERS)
    rows = data.draw(strategies.busy_streams(14, test_comparisons.KEYS) if keyed else strategies.busy_streams(10))
    test_comparisons.agree(Asked(formula, window, options), rows, seed, keyed=keyed)


@st.composite
def surrounded(draw: st.DrawFn, window: Window) -> Formula:
    """A chain with what must not happen before it, or after it, where that may be compared with it."""
    made, number = draw(chains()), 99
    names = sorted(v for v in made.binds() if v[0] == "v")
    if draw(st.integers(0, 2)) == 0:
        earlier = tuple(draw(st.lists(atoms("w"), min_size=1, max_size=2)))
        if draw(st.booleans()):
            candidate = Candidate(draw(events("w98")), 98)
            made = compared_with(draw, cel.NotBefore((*earlier, candidate), made, window), candidate, names)
        else:
            made = cel.NotBefore(earlier, made, window)
        if draw(st.booleans()):
            return made
    vetoes: tuple[Formula, ...] = tuple(draw(st.lists(atoms("w"), max_size=2)))
    if vetoes and draw(st.booleans()):
        return cel.NotAfter(made, vetoes, window)
    candidate = Candidate(draw(events(f"w{number}")), number)
    return compared_with(draw, cel.NotAfter(made, (*vetoes, candidate), window), candidate, names)


def compared_with(draw: st.DrawFn, formula: Formula, candidate: Candidate, names: Sequence[str]) -> Formula:
    """The formula with one or two comparisons of the negated part with what is around it."""
    inside = sorted(candidate.binds())
    clauses = tuple(
        (comparison(draw, draw(st.sampled_from(inside)), draw(st.sampled_from(names))),)
        for _ in range(draw(st.integers(1, 2)))
    )
    return Across(formula, candidate.number, clauses)


@pytest.mark.slow
@given(st.data(), st.sampled_from(AROUND), st.booleans(), st.integers(0, 1 << 16))
@strategies.examples(100)
def test_kernel_and_oracle_agree_on_what_must_not_happen_around(
    data: st.DataObject, options: Options, keyed: bool, seed: int
) -> None:
    window = data.draw(strategies.small_windows())
    formula = data.draw(surrounded(window))
    rows = data.draw(strategies.busy_streams(14, test_comparisons.KEYS) if keyed else strategies.busy_streams(10))
    assume(harness.compiled(formula, window, options).family in BY_REGISTERS)
    test_comparisons.agree(Asked(formula, window, options), rows, seed, keyed=keyed)


@pytest.mark.exhaustive
@pytest.mark.parametrize("strict", [False, True])
def test_clocks_that_are_no_whole_numbers(strict: bool) -> None:
    window = Window("time", 2, strict)
    chain = cel.Sequence(cel.Event("A", frozenset({"a"})), cel.Event("C", frozenset({"c"})))
    rising = cel.Compare(chain, (Comparison(Term("a", "v"), "<", Term("c", "v")),))
    veto = cel.Event("B", frozenset({"b"}))
    around = cel.NotAfter(cel.NotBefore((veto,), rising, window), (veto,), window)
    chance, found = random.Random(2), 0
    for n in range(60):
        times = sorted(chance.choice((0.0, 0.25, 0.5)) * k for k in range(9))
        events = [
            oracle.Event(frozenset({chance.choice("ABC")}), t, None, (("v", chance.randrange(3)),)) for t in times
        ]
        assert harness.compiled(around, window).family == "registers"
        found += harness.check(around, events, window, False, n)
    assert found > 20


SCHEMA = {"t": "type STRING, ts TIMESTAMP, x INT, y INT"}
PATTERNS = {
    "an absence beside a comparison": "SEQ(A a, !B, C c) WHERE a.x < c.x",
    "after a loop": "SEQ(A a, B+ b, !D, C c) WHERE a.x < b[i].x AND a.y = c.y",
    "of several types": "SEQ(A a, !(B OR D), C c) WHERE a.x < c.x",
    "compared with what came before": "SEQ(A a, !B b, C c) WHERE a.x < b.x AND b.y >= a.y",
    "compared with what comes next": "SEQ(A a, !B b, C c) WHERE b.x > c.x",
    "compared with both": "SEQ(A a, !B b, C c) WHERE b.y = a.y AND b.x > c.x",
    "an OR of two variables": "A a ; C c WHERE a.x = c.x OR a.y > c.y",
    "an OR of three": "A a ; B b ; C c WHERE a.x = b.x OR b.y > c.y",
    "an OR with a condition": "A a ; C+ c WHERE a.x = c[i].x OR c[i].y > 5",
    "an OR of conditions": "A a ; B b ; C c WHERE (a.x > 5 OR c.x > 5) AND a.y < b.y",
    "an absence before": "SEQ(!D, A a, C c) WHERE a.x < c.x",
    "before, and compared with what comes first": "SEQ(!D d, A a, C c) WHERE a.x < c.x AND d.x > a.x",
    "before, and compared with what comes last": "SEQ(!D d, A a, C c) WHERE d.x > c.x",
    "the running maximum": "SEQ(!ANY x, ANY g) WHERE x.x >= g.x",
}
ALONE = {
    "an absence after": "SEQ(A a, C c, !D) WHERE a.x < c.x",
    "after, and compared": "SEQ(A a, B b, !D d) WHERE d.x > a.x AND d.y <= b.y",
    "absences on both sides": "SEQ(!B, A a, C c, !(B OR D)) WHERE a.x < c.x",
}
NOT_SO = {
    "several events": "SEQ(A a, !(B ; D), C c) WHERE a.x < c.x",
    "several events after": "SEQ(A a, C c, !(B ; D)) WHERE a.x < c.x",
    "several events before": "SEQ(!(D d ; B), A a, C c) WHERE a.x < c.x AND d.x > a.x",
    "an event that comes later": "SEQ(A a, !B b, C c, D d) WHERE b.x > d.x",
    "what several events were bound to before": "A+ a ; C c WHERE a[i].x = c.x OR a[i].y > c.y",
}


def rule(pattern: str, strategy: str = "ALL") -> str:
    text = f"FROM t PATTERN {pattern} ORDER BY ts WITHIN 10 SECONDS SEMANTICS {strategy} RETURN *"
    return cersql.compile(text, SCHEMA).plan.program.family


@pytest.mark.parametrize("strategy", ["ALL", "NXT", "SKIP TILL NEXT MATCH"])
@pytest.mark.parametrize("name", PATTERNS)
def test_runs_by_registers(name: str, strategy: str) -> None:
    assert rule(PATTERNS[name], strategy) == "registers"


@pytest.mark.parametrize("strategy", ["ALL", "SKIP TILL NEXT MATCH"])
@pytest.mark.parametrize("name", ALONE)
def test_what_waits_for_its_window_runs_by_registers(name: str, strategy: str) -> None:
    assert rule(ALONE[name], strategy) == "registers"
    assert rule(ALONE[name], "NXT") == "bound"


@pytest.mark.parametrize("name", NOT_SO)
def test_runs_in_the_general_engine(name: str) -> None:
    assert rule(NOT_SO[name]) == "bound"
