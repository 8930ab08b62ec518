"""WITH TIMEOUTS: starts whose window closed without a match, and how far they came, as the oracle says."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import replace
from itertools import pairwise

import harness
import oracle
import pytest
import strategies
import test_registers
from harness import Options, Rows
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import Row

from planner import cel
from planner.across import Across, Candidate
from planner.compile import compile_formula
from planner.errors import PlanError
from planner.formula import Formula
from planner.query import Skip
from planner.terms import Comparison, Term, Window
from runtime.engine import engine_for
from runtime.program import Program

pytestmark = pytest.mark.slow  # minutes together; `make test` runs them

LIMIT = 2000  # complex events of the oracle; larger examples are left out
DEFINED = ("seq", "seq", "contiguous", "or", "loop", "repeat", "as", "filter", "filter any", "absent", "all", "unless",
           "project", "within")  # fmt: skip

A, B, C, D = (cel.Event(name, frozenset({name})) for name in "ABCD")
Shown = tuple[int, str | None, oracle.Match]  # (start, match_reached, the run: its start twice, and its variables)


def seq(*parts: Formula) -> Formula:
    first, *others = parts
    for part in others:
        first = cel.Sequence(first, part)
    return first


def order_of(formula: Formula) -> tuple[str, ...]:
    """The variables; by name, which in these tests is some order like another."""
    return tuple(sorted(v for v in formula.binds() if not v.startswith("@")))


def compiled(formula: Formula, window: Window | None = None, options: Options = harness.PLAIN) -> Program:
    return compile_formula(formula, window, order_of(formula), timeouts=True, **options.given())


def run(
    program: Program, rows: Rows, cuts: Iterable[int] = (), compact: bool = False
) -> tuple[harness.Found, dict[Hashable, list[Shown]]]:
    """The matches, and the timeouts, by key."""
    engine, batches = engine_for(program), []
    for start, stop in pairwise([0, *sorted(cuts), len(rows)]):
        batches += engine.feed(*rows.cut(start, stop))
        if compact:
            engine.least_row()
    batches += engine.flush()
    matches = harness.decode(program, rows, [batch for batch in batches if not batch.timeout])
    runs = harness.decode(program, rows, [batch for batch in batches if batch.timeout])
    ranks = program.ranks()
    shown: dict[Hashable, list[Shown]] = {key: [] for key in runs}
    for batch in batches:
        for k in range(batch.n if batch.timeout else 0):
            own = ranks[batch.labels[batch.offsets[k] : batch.offsets[k + 1]]]
            rank = own[own >= 0][-1] if (own >= 0).any() else -1
            key = rows.names[int(batch.key[k])] if rows.keys is not None else None
            start, _, mu = runs[key][len(shown[key])]
            shown[key].append((start, program.variables[rank] if rank >= 0 else None, (start, start, mu)))
    return matches, shown


def check(
    formula: Formula,
    events: list[oracle.Event],
    window: Window | None = None,
    options: Options = harness.PLAIN,
    keyed: bool = False,
    seed: int = 0,
) -> dict[Hashable, list[Shown]]:
    """Engine and oracle agree, however the stream is fed. Gives the timeouts."""
    order = order_of(formula)
    parts = oracle.split(events) if keyed else {None: events}
    expected = {key: oracle.timeouts(formula, part, order, window, LIMIT, **options.given())
                for key, part in parts.items()}  # fmt: skip
    own = harness.expected_matches(formula, events, window, keyed, LIMIT, options)
    program = compiled(formula, window, options)
    rows, sparse = (harness.rows_of(program, events, keyed, drop) for drop in (False, True))
    ways = {
        "whole": run(program, rows),
        "one row at a time": run(program, rows, range(1, len(rows))),
        "cut and compacted": run(program, rows, harness.random_cuts(seed, len(rows)), compact=True),
        "dropped, cut and compacted": run(program, sparse, harness.random_cuts(seed + 1, len(sparse)), compact=True),
    }
    for way, (matches, shown) in ways.items():
        assert harness.unique(matches) == own, harness.difference(way, harness.unique(matches), own)
        for key, wanted in expected.items():
            found = shown.get(key, [])
            starts = [start for start, _, _ in found]
            assert starts == sorted(wanted), f"{way}, key {key!r}: starts {starts}, not {sorted(wanted)}"
            for start, name, match in found:
                rank, allowed = wanted[start]
                reached = order[rank] if rank >= 0 else None
                assert name == reached, f"{way}, key {key!r}, start {start}: reached {name}, not {reached}"
                assert match in allowed, f"{way}, key {key!r}, start {start}: {match} is none of {allowed}"
    total = sum(map(len, own.values())) + sum(map(len, expected.values()))
    assert harness.count(program, rows) == total
    return ways["whole"][1]


def stream(text: str) -> list[oracle.Event]:
    """`A AB .`: an A, an event of both types, an event of no type; at the times 0, 1, 2."""
    return [oracle.Event(frozenset(word.strip(".")), time) for time, word in enumerate(text.split())]


def timeouts(
    formula: Formula, text: str, window: Window | None = None, options: Options = harness.PLAIN
) -> list[tuple[str | None, list[int]]]:
    """(match_reached, positions) of each timeout, by start."""
    shown = check(formula, stream(text), window, options).get(None, [])
    return [(name, sorted({start, *(p for _, held in mu for p in held)})) for start, name, (_, _, mu) in shown]


def time(size: int, strict: bool = False) -> Window:
    return Window("time", size, strict)


# ---------------------------------------------------------------- by hand


def test_a_sequence_in_a_window() -> None:
    abc = seq(A, B, C)
    assert timeouts(abc, "A B . C", time(3)) == []
    assert timeouts(abc, "A B . C", time(3, strict=True)) == [("B", [0, 1])]
    assert timeouts(abc, "A B . . C", time(3)) == [("B", [0, 1])]
    assert timeouts(abc, "A . . . B", time(3)) == [("A", [0])]
    assert timeouts(abc, "A B C", Window("events", 3)) == []
    assert timeouts(abc, "A B . C", Window("events", 3)) == [("B", [0, 1])]
    assert timeouts(abc, ". B C") == []


def test_the_end_closes_every_window() -> None:
    assert timeouts(seq(A, B, C), "A A B") == [("B", [0, 2]), ("B", [1, 2])]
    assert timeouts(seq(A, B, C), "A B C A") == [("A", [3])]
    assert timeouts(A, "A A") == []


def test_the_furthest_run_is_the_one_with_the_greatest_rank() -> None:
    """C after the first B only, or the run through the earliest B where it makes no difference."""
    assert timeouts(seq(A, B, C, D), "A B B C B") == [("C", [0, 1, 3])]
    assert timeouts(seq(A, cel.Contiguous(B, C), D), "A B B C B") == [("C", [0, 2, 3])]
    # B and C lead to the same state; the run through B would win there, but the one through C came further
    assert timeouts(seq(A, cel.Or(B, C), D), "A B C") == [("C", [0, 2])]


def test_loops_show_all_that_they_took() -> None:
    assert timeouts(seq(A, cel.Iteration(B), C), "A B . B B") == [("B", [0, 1, 3, 4])]
    assert timeouts(seq(A, cel.Repeat(B, 3, 3), C), "A B B") == [("B", [0, 1, 2])]
    assert timeouts(cel.Repeat(A, 3, 3), "A A A A") == [("A", [2, 3]), ("A", [3])]
    assert timeouts(seq(A, cel.Iteration(B), C), "A B B B", time(2)) == [("B", [0, 1, 2])]


def test_contiguous_parts_time_out_where_they_stopped() -> None:
    assert timeouts(cel.Contiguous(A, B), "A . B A") == [("A", [0]), ("A", [3])]


def test_a_trailing_absence() -> None:
    """A match that is vetoed times out, with all its variables; one that survives does not."""
    formula = cel.NotAfter(seq(A, B), (C,), time(3))
    assert timeouts(formula, "A B . C A B", time(3)) == [("B", [0, 1])]
    assert timeouts(formula, "A B . . C", time(3)) == []
    assert timeouts(formula, "A B C B", time(3)) == []  # the second match survives
    assert timeouts(cel.As(formula, "x"), "A . . . B", time(3)) == [("A", [0])]
    assert timeouts(cel.NotAfter(A, (B,), time(1)), "A B A", time(1)) == [("A", [0])]


def test_an_absence_before() -> None:
    formula = cel.NotBefore((C,), seq(A, B), time(2))
    assert timeouts(formula, "C A B", time(2)) == [("B", [1, 2])]
    assert timeouts(formula, "C . A B", time(2)) == []
    assert timeouts(cel.NotBefore((C,), A, time(2)), "C A . A", time(2)) == [("A", [1])]


def test_an_absence_between_ends_the_run() -> None:
    assert timeouts(cel.Absent(seq(A, B), (D,), C), "A B D C") == [("B", [0, 1])]
    assert timeouts(cel.Unless(seq(A, B, C), D), "A D B C A B") == [("A", [0]), ("B", [4, 5])]


def test_strategies_do_not_matter() -> None:
    """Only what no match begins at times out, whichever match is chosen."""
    for strategy in ("NXT", "LAST", "MAX", "STRICT"):
        assert timeouts(seq(A, B), "A A . B A", options=Options(strategy)) == [("A", [4])]


def test_consumption() -> None:
    consume = Options(consume="PARTITION")
    assert timeouts(seq(A, B), "A B A", options=consume) == [("A", [2])]
    both = cel.Or(seq(A, B), seq(C, D))
    assert timeouts(both, "A C B . D", options=consume) == []  # the C was consumed
    assert timeouts(both, "A C B . D", time(2), consume) == []
    assert timeouts(both, "C A . B", time(2), consume) == [("C", [0])]  # its window had closed before
    assert timeouts(both, "C A B", Window("events", 2), consume) == [("C", [0])]


def test_skipping() -> None:
    abc, past = cel.Or(seq(A, B), seq(C, D)), Options(skip=Skip("PAST LAST ROW"))
    assert timeouts(abc, "A C B C", options=past) == [("C", [3])]
    assert timeouts(abc, "A C B C", options=Options(skip=Skip("TO NEXT ROW"))) == [("C", [1]), ("C", [3])]
    assert timeouts(abc, "A C B C", options=Options(skip=Skip("TO LAST", "B"))) == [("C", [3])]


def test_projection() -> None:
    """A start whose event has no variable is a start all the same."""
    formula = cel.Project(seq(A, B, C), frozenset({"B", "C"}))
    assert timeouts(formula, "A . A B") == [("B", [0, 3]), ("B", [2, 3])]
    assert timeouts(formula, "A B C A") == [(None, [3])]
    # the start's own event is compared only where it has a variable
    either = seq(cel.All(A, cel.Event("A", frozenset({"x"}))), B)
    assert timeouts(cel.Project(either, frozenset({"A"})), "A A A") == [("A", [0]), ("A", [1]), ("A", [2])]


def test_each_key_has_its_own() -> None:
    kinds = [("A", 1), ("A", 2), ("B", 1), ("A", None), ("C", 1), ("B", 2), ("C", None)]
    events = [oracle.Event(frozenset({kind}), time, key) for time, (kind, key) in enumerate(kinds)]
    for options in (harness.PLAIN, Options("NXT"), Options(consume="PARTITION"), Options(skip=Skip("PAST LAST ROW"))):
        shown = check(seq(A, B, C), events, options=options, keyed=True)
        assert {key: [(start, name) for start, name, _ in found] for key, found in shown.items()} == {
            2: [(0, "B")],
            None: [(0, "A")],
        }


def test_a_long_loop_and_many_starts() -> None:
    """More moves than the log holds at once."""
    program = compiled(seq(cel.Iteration(A), B))
    rows = harness.rows_of(program, stream("A " * 700))
    _, shown = run(program, rows)
    assert [(start, name) for start, name, _ in shown[None]] == [(n, "A") for n in range(700)]
    assert all(len(dict(mu)["A"]) == 700 - start for start, _, (_, _, mu) in shown[None])
    assert run(program, rows, [350], compact=True)[1] == shown


def test_many_starts_at_once() -> None:
    """One event that moves more runs than the arena has room for at first."""
    text = stream("A " * 3000 + "B . B A")
    for options in (harness.PLAIN, Options(skip=Skip("TO NEXT ROW"))):
        program = compiled(seq(A, B, C), None, options)
        _, shown = run(program, harness.rows_of(program, text))
        assert [name for _, name, _ in shown[None]] == ["B"] * 3000 + ["A"]
    skipping = harness.compiled(seq(A, B), None, Options(skip=Skip("TO NEXT ROW")))
    assert harness.count(skipping, harness.rows_of(skipping, text)) == 3000


def test_runs_that_must_take_what_they_can() -> None:
    """The A could be followed by the B and the second C, but its run has taken the first, too early to be followed."""
    greedy, ba = Options("NEXT_MATCH"), seq(A, cel.Or(B, C), D)
    assert timeouts(seq(A, B, C), "A B . C A B", options=greedy) == [("B", [4, 5])]
    assert timeouts(seq(A, cel.Contiguous(B, C)), "A B . B C", options=greedy) == [("B", [0, 1])]
    assert timeouts(seq(A, cel.Contiguous(B, C)), "A B . B C") == []
    assert timeouts(ba, "A B C", options=greedy) == [("B", [0, 1])]
    assert timeouts(cel.NotAfter(seq(A, B), (C,), time(2)), "A B C A B", time(2), greedy) == [("B", [0, 1])]


def test_comparisons() -> None:
    """A run goes no further than what its conditions allow."""

    def at(kind: str, n: int, v: int | None) -> oracle.Event:
        return oracle.Event(frozenset({kind}), n, 0, () if v is None else (("v", v),))

    a, b = Term("A", "v"), Term("B", "v")
    rising = cel.Compare(seq(A, B, C), (Comparison(a, "<", b),))
    events = [at("A", 0, 5), at("B", 1, 4), at("B", 2, 7), at("A", 3, 9), at("B", 4, 8), at("A", 5, None)]
    shown = check(rising, events)[None]
    assert [(start, name) for start, name, _ in shown] == [(0, "B"), (3, "A"), (5, "A")]
    shown = check(rising, [*events, at("C", 6, 1)])[None]
    assert [start for start, _, _ in shown] == [3, 5]


EQUAL = (Comparison(Term("A", "v"), "=", Term("C", "v")),)
GAP = Across(cel.Absent(A, (Candidate(C, 0),), B), 0, (EQUAL,))


def test_what_must_not_happen_is_compared() -> None:
    """A run ends with a veto that nothing can lift; what comes after decides where it is compared with that."""

    def found(formula: Formula, text: str, window: Window | None = None) -> list[tuple[int, str | None]]:
        words = [(word[0], int(word[1:])) for word in text.split()]
        events = [oracle.Event(frozenset({kind}), n, 0, (("v", v),)) for n, (kind, v) in enumerate(words)]
        return [(start, name) for start, name, _ in check(formula, events, window).get(None, [])]

    assert found(seq(GAP, D), "A1 C2 B0") == [(0, "B")]
    assert found(seq(GAP, D), "A1 C1 B0") == [(0, "A")]
    assert found(seq(GAP, D), "A1 C1 B0 D0 A2 C1 B0") == [(0, "A"), (4, "B")]
    less = (Comparison(Term("C", "v"), "<", Term("B", "v")),)
    later = Across(cel.Absent(A, (Candidate(C, 0),), cel.Iteration(B)), 0, (less,))
    assert found(seq(later, D), "A0 C5 B9") == [(0, "B")]  # another B, of 5 or less, could lift it
    after = Across(cel.NotAfter(seq(A, B), (Candidate(C, 0),), time(3)), 0, (EQUAL,))
    assert found(after, "A1 B0 C1", time(3)) == [(0, "B")]
    assert found(after, "A1 B0 C2", time(3)) == []
    before = Across(cel.NotBefore((Candidate(C, 0),), seq(A, B), time(3)), 0, (EQUAL,))
    assert found(before, "C1 A1 B0 A2", time(3)) == [(1, "B"), (3, "A")]


def test_what_is_refused() -> None:
    with pytest.raises(PlanError) as raised:
        compiled(cel.Unless(GAP, D))
    assert raised.value.condition == "TIMEOUTS"


# ---------------------------------------------------------------- against the oracle


@st.composite
def asked(draw: st.DrawFn) -> tuple[Formula, Window | None, Options]:
    formula = draw(strategies.all_formulas(draw(st.integers(1, 3)), DEFINED))
    window = strategies.clause_of(formula) or draw(st.one_of(st.none(), strategies.small_windows()))
    trailing = any(isinstance(part, cel.NotAfter) for part in strategies.subformulas(formula))
    kind = draw(st.sampled_from(("plain", "plain", "strategy", "consume", "skip")))
    options = harness.PLAIN
    if kind == "strategy":
        options = Options(draw(st.sampled_from(strategies.RULES)))
    elif kind == "consume" and not trailing:
        options = Options(draw(st.sampled_from(("ALL", "NXT"))), "PARTITION")
    elif kind == "skip":
        to = draw(st.sampled_from(("PAST LAST ROW", "TO NEXT ROW", "TO FIRST", "TO LAST")))
        mark = draw(st.sampled_from(order_of(formula))) if to in ("TO FIRST", "TO LAST") else None
        options = Options(skip=Skip(to, mark))
    return formula, window, options


@st.composite
def greedy(draw: st.DrawFn) -> tuple[Formula, Window | None, Options]:
    formula = draw(strategies.all_formulas(draw(st.integers(1, 3)), strategies.SIMPLE))
    window = strategies.clause_of(formula) or draw(st.one_of(st.none(), strategies.small_windows()))
    trailing = any(isinstance(part, cel.NotAfter) for part in strategies.subformulas(formula))
    consume = "NONE" if trailing else draw(st.sampled_from(("NONE", "NONE", "PARTITION")))
    return formula, window, Options("NEXT_MATCH", consume)


@st.composite
def comparing(draw: st.DrawFn) -> tuple[Formula, Window | None, Options]:
    """As `asked`, or `greedy`, with comparisons."""
    formula, window, options = draw(st.one_of(asked(), asked(), greedy()))
    clause = draw(strategies.clauses(sorted(formula.binds()), draw(st.booleans())))
    return cel.Compare(formula, clause), window, options


@strategies.examples(60)
@given(st.one_of(greedy(), comparing()), strategies.busy_streams(max_size=7), st.booleans(), st.integers(0, 2**16))
def test_random_formulas_of_greedy_runs_and_with_comparisons(
    asked: tuple[Formula, Window | None, Options], rows: list[Row], keyed: bool, seed: int
) -> None:
    formula, window, options = asked
    rows = [replace(row, key=n % 2) for n, row in enumerate(rows)] if keyed else rows
    try:
        check(formula, [row.event() for row in rows], window, options, keyed, seed)
    except oracle.TooLarge:
        return


@strategies.examples(150)
@given(asked(), strategies.busy_streams(max_size=7), st.integers(0, 2**16))
def test_random_formulas(asked: tuple[Formula, Window | None, Options], rows: list[Row], seed: int) -> None:
    formula, window, options = asked
    try:
        check(formula, [row.event() for row in rows], window, options, seed=seed)
    except oracle.TooLarge:
        return


@strategies.examples(50)
@given(asked(), strategies.busy_streams(max_size=8, keys=(1, 2, None)), st.integers(0, 2**16))
def test_random_formulas_by_key(asked: tuple[Formula, Window | None, Options], rows: list[Row], seed: int) -> None:
    formula, window, options = asked
    try:
        check(formula, [row.event() for row in rows], window, options, keyed=True, seed=seed)
    except oracle.TooLarge:
        return


@st.composite
def compared_absences(draw: st.DrawFn) -> tuple[Formula, Window | None, Options]:
    """Chains with what must not happen between, before and after them, which is compared."""
    window = draw(strategies.small_windows())
    around = draw(st.booleans())
    formula = draw(test_registers.surrounded(window) if around else test_registers.chains())
    trailing = any(isinstance(part, cel.NotAfter) for part in strategies.subformulas(formula))
    consume = "NONE" if trailing else draw(st.sampled_from(("NONE", "NONE", "PARTITION")))
    strategy = draw(st.sampled_from(("ALL", "ALL", "NXT", "NEXT_MATCH")))
    return formula, window if around or draw(st.booleans()) else None, Options(strategy, consume)


@pytest.mark.exhaustive
@strategies.examples(150)
@given(compared_absences(), strategies.busy_streams(max_size=8), st.booleans(), st.integers(0, 2**16))
def test_random_absences_that_are_compared(
    asked: tuple[Formula, Window | None, Options], rows: list[Row], keyed: bool, seed: int
) -> None:
    formula, window, options = asked
    assume(oracle.compares_absences(formula))
    rows = [replace(row, key=n % 2) for n, row in enumerate(rows)] if keyed else rows
    try:
        check(formula, [row.event() for row in rows], window, options, keyed, seed)
    except oracle.TooLarge:
        return


# ---------------------------------------------------------------- CONSUME BY ANY


def dropped_by_any(part: list[int], events: list[oracle.Event], ends: list[int], window: Window | None) -> set[int]:
    """Of the events of a key (`part`: their places in the whole stream), by their number in it: those that were under
    way when a match of some key ended, the first from there on."""
    found = set()
    for start, place in enumerate(part):
        end = next((end for end in ends if end >= place), None)
        if end is None:
            continue
        last = sum(other <= end for other in part) - 1
        if window is None:
            inside = True
        elif window.kind == "events":
            inside = last - start < window.size
        else:
            length = events[end].time - events[place].time
            inside = length < window.size if window.strict else length <= window.size
        if inside:
            found.add(start)
    return found


@given(
    strategies.parts(2, DEFINED, solid=True), strategies.busy_streams(10, (0, 1)), st.booleans(),
    st.none() | strategies.small_windows(), st.integers(0, 99),
)  # fmt: skip
@strategies.examples(60)
def test_what_any_key_has_consumed(
    formula: Formula, rows: list[Row], keyed: bool, window: Window | None, seed: int
) -> None:
    events, options = [row.event() for row in rows], Options(consume="ANY")
    parts = oracle.split(events) if keyed else {None: events}
    places = {key: [n for n, e in enumerate(events) if not keyed or e.key == key] for key in parts}
    try:
        own = harness.expected_matches(formula, events, window, keyed, LIMIT, options)
        order = order_of(formula)
        whole = {key: oracle.timeouts(formula, part, order, window, LIMIT) for key, part in parts.items()}
    except oracle.TooLarge:
        return
    program = compiled(formula, window, options)
    assert program.family == "any"
    ends = sorted(places[key][end] for key, matches in own.items() for _, end, _ in matches)
    fed = harness.rows_of(program, events, keyed)
    for cuts, compact in (((), False), (harness.random_cuts(seed, len(fed)), True)):
        matches, shown = run(program, fed, cuts, compact)
        assert harness.unique(matches) == own
        for key, timed_out in whole.items():
            lost = dropped_by_any(places[key], events, ends, window)
            assert [start for start, _, _ in shown.get(key, [])] == sorted(set(timed_out) - lost)
