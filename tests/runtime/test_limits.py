"""What an engine refuses: too many subsets, too many symbols, programs of another version."""

from __future__ import annotations

import random
import signal
import socket
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice, pairwise
from pathlib import Path

import numpy as np
import pytest

import cersql
from planner.cel import Event, Iteration, Sequence, Strategy, Within
from planner.compile import compile_formula
from planner.terms import Window
from runtime import capacities, limits
from runtime.automata import symbols
from runtime.automata.determinize import Subsets
from runtime.automata.machine import Steps
from runtime.automata.symbols import Classes
from runtime.engine import Engine, engine_for
from runtime.errors import ExecutionError, InternalError
from runtime.program import FORMAT, Program, package_version
from runtime.selection import select
from runtime.steppers import clock_table, table
from runtime.task import Limits

ROOT = Path(__file__).parents[2]

A, B = (Event(name.upper(), frozenset(name)) for name in "ab")


def program() -> Program:
    return compile_formula(Sequence(Iteration(A), B))


def error_of(function: object, *arguments: object) -> ExecutionError:
    with pytest.raises(ExecutionError) as raised:
        function(*arguments)  # type: ignore[operator]
    return raised.value


def test_state_limit() -> None:
    error = error_of(Subsets, replace(program(), max_subsets=0))
    assert error.condition == "STATE_LIMIT"
    assert error.message == "The automaton's subsets grew to 1 states, the limit is 0."
    assert "Shorten repetitions" in str(error)


def test_state_limit_while_running() -> None:
    engine = engine_for(replace(program(), max_subsets=1))
    events = np.array([1, 1, 2], np.int64), np.arange(3, dtype=np.int64)
    assert error_of(lambda: list(engine.feed(*events))).condition == "STATE_LIMIT"


def test_register_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock_table, "CODE_BITS", 1)
    inner = Within(Sequence(A, B), Window("time", 5))
    engine = engine_for(compile_formula(Sequence(Within(Sequence(A, inner), Window("time", 9)), A)))
    events = np.array([1, 1, 2], np.int64), np.arange(3, dtype=np.int64)
    error = error_of(lambda: list(engine.feed(*events)))
    assert error.condition == "REGISTER_LIMIT"
    assert error.message == "A state must remember 1 beginnings of windows inside the pattern, the limit is 0."


@pytest.mark.parametrize(("guards", "words"), [(3, 1), (20, 1), (70, 2)])
def test_symbol_limit(guards: int, words: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(symbols, "MAX_CLASSES", 4)
    classes = Classes(guards, words)
    rows = np.zeros((8, words), np.int64)
    rows[:4, 0] = [0, 1, 2, 3]
    assert classes.of(rows[:4] if words > 1 else rows[:4, 0]).tolist() == [0, 1, 2, 3]
    rows[4:, -1] = [4, 5, 6, 7]
    error = error_of(classes.of, rows if words > 1 else rows[:, 0])
    assert error.condition == "SYMBOL_LIMIT"
    assert error.message == "The rows fall into 5 classes of satisfied conditions, the limit is 4."
    assert "fewer independent conditions" in str(error)


def test_program_version() -> None:
    error = error_of(engine_for, replace(program(), format=FORMAT + 1, package="7.7.0"))
    assert error.condition == "PROGRAM_VERSION"
    assert f"runs cersql {package_version()} (format {FORMAT})" in error.message
    assert f"7.7.0 (format {FORMAT + 1})" in error.message
    assert "on the executors as on the driver" in str(error)


def test_another_release_of_the_same_format_is_run() -> None:
    assert engine_for(replace(program(), package="0.0.0-other")) is not None


def test_no_engine_for_a_rule() -> None:
    with pytest.raises(InternalError) as raised:
        engine_for(replace(program(), family="no such"))
    assert "'no such'" in str(raised.value)


# ---------------------------------------------------------------- what grows beyond the input


COMPARED = (
    "FROM t TYPE type PATTERN ((A+ a ; B b) UNLESS ((C c1 ; C c2) FILTER c1.v < c2.v)) WHERE a.v {op} b.v {more} "
    "ORDER BY ts RETURN a, b"
)
SCHEMAS = {"t": {"ts": "timestamp", "type": "string", "v": "int"}}


def general(op: str = "<=", more: str = "") -> Program:
    """A program of the general engine."""
    made = cersql.compile(COMPARED.format(op=op, more=more), SCHEMAS).program
    assert made.family == "bound"
    return made


def loop_then_b(made: Program, n: int, values: list[int] | None = None) -> tuple[np.ndarray, np.ndarray]:
    """n times A, then B, which is greater than all."""
    bit = {name: i for i, names in enumerate(made.guards) for name in names}
    rows = [[1 << bit["A"], *[0 if values is None else values[i]] * len(made.terms)] for i in range(n)]
    rows.append([1 << bit["B"], *[1 << 40] * len(made.terms)])
    return np.array(rows, np.int64), np.arange(n + 1, dtype=np.int64)


def listed(made: Program, n: int) -> Iterator[tuple[tuple[int, int], ...]]:
    for matches in engine_for(made).feed(*loop_then_b(made, n)):
        for begin, end in pairwise(matches.offsets.tolist()):
            yield tuple(zip(matches.positions[begin:end].tolist(), matches.labels[begin:end].tolist(), strict=True))


@pytest.mark.parametrize("n", [22, 10_000])
def test_the_general_engine_lists_some_of_many_matches_at_once(n: int) -> None:
    made = general()
    tracemalloc.start()
    some = list(islice(listed(made, n), 10))
    assert tracemalloc.get_traced_memory()[1] < 64 << 20
    tracemalloc.stop()
    assert len(set(some)) == 10
    assert {match[-1][0] for match in some} == {n}


@pytest.mark.parametrize("n", [0, 1, 2, 13, 62])
def test_the_general_engine_counts_by_sets(n: int) -> None:
    made = general()
    assert engine_for(made).count(*loop_then_b(made, n)) == 2**n - 1
    if n < 20:
        assert len(set(listed(made, n))) == 2**n - 1


def test_the_general_engine_says_when_there_are_too_many_to_count() -> None:
    made = general()
    assert engine_for(made).count(*loop_then_b(made, 63)) == 2**63 - 1
    assert error_of(engine_for(made).count, *loop_then_b(made, 64)).condition == "COUNT_OVERFLOW"
    assert error_of(engine_for(made).count, *loop_then_b(made, 3000)).condition == "COUNT_OVERFLOW"


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize(
    "window",
    ["WITHIN 7 SECONDS", "WITHIN < 7 SECONDS", "WITHIN 4 EVENTS", "", "SEMANTICS MAX WITHIN 7 SECONDS"],
)
def test_the_general_engine_counts_what_it_lists(seed: int, window: str) -> None:
    """Windows cut sets of which others see more; keys begin anew; some events are mute."""
    made, chance = general("<>", window), np.random.default_rng(seed)
    rows = np.column_stack([chance.choice([0, 1, 1, 2, 4], 40), *[chance.integers(0, 3, 40) for _ in made.terms]])
    times = np.cumsum(chance.integers(0, 3, 40)) * 1_000_000
    keys, mute = np.repeat([4, 7], 20), chance.random(40) < 0.2
    listed = sum(m.n for m in engine_for(made).feed(rows, times, None, keys, None, mute))
    assert engine_for(made).count(rows, times, None, keys, mute) == listed


def test_state_limit_of_values_that_wait() -> None:
    """A run waits for each set of different values: `<>` needs them all."""
    made = replace(general("<>"), max_subsets=2)
    error = error_of(lambda: list(engine_for(made).feed(*loop_then_b(made, 9, list(range(9))))))
    assert error.condition == "STATE_LIMIT"
    assert error.parameters == {"found": "63", "limit": "32"}
    assert "Bound the pattern by WITHIN" in str(error)


@pytest.mark.parametrize("compared", [False, True])
def test_step_limit(monkeypatch: pytest.MonkeyPatch, compared: bool) -> None:
    monkeypatch.setattr(Steps.__init__, "__defaults__", (4,))
    made = general() if compared else compile_formula(Sequence(Strategy("NXT", Iteration(A)), B))
    events = loop_then_b(made, 3) if compared else (np.array([1, 1, 2], np.int64), np.arange(3))
    error = error_of(lambda: list(engine_for(made).feed(*events)))
    assert error.condition == "STEP_LIMIT"
    assert "takes more than 4 steps, the limit is 4." in error.message
    assert "less deeply" in str(error)


def test_step_limit_of_an_event_in_all_states(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under MAX no two sets of events with different sums are one: 2ⁿ states, each of which takes few steps."""
    monkeypatch.setattr("runtime.steppers.general.MOST_EVENT_STEPS", 10_000)
    text = "FROM s PATTERN MAX((A+ a ; B b) FILTER SUM(a.v) > 80) ORDER BY ts RETURN *"
    made = cersql.compile(text, {"s": "ts INT, type STRING, v INT"}).program
    rows = np.array([[1, (i * 37) % 29 + 1] for i in range(18)])
    error = error_of(lambda: list(engine_for(made).feed(rows, np.arange(18))))
    assert error.condition == "STEP_LIMIT"
    assert "in all states of the automaton takes more than 10000 steps" in error.message
    assert "a SUM has one for each set of events" in str(error)


@pytest.mark.parametrize(
    ("clauses", "held"),
    [
        # Of each start and end one.
        ("SEMANTICS NXT", 6),
        ("SEMANTICS LAST", 6),
        ("SEMANTICS MAX", 2**6 - 1),
        ("AFTER MATCH SKIP PAST LAST ROW", 2**6 - 1),
    ],
)
@pytest.mark.parametrize("where", ["", "WHERE a.v <= b.v"])
def test_match_limit_of_what_is_held_to_choose_from(clauses: str, held: int, where: str) -> None:
    text = f"FROM t TYPE type PATTERN A+ a ; B b ; !C {where} WITHIN 1 HOUR {clauses} ORDER BY ts RETURN a"
    made = cersql.compile(text, SCHEMAS).program
    events = loop_then_b(made, 6)

    def found(limit: int) -> list[tuple[int, ...]]:
        engine = engine_for(replace(made, max_matches=limit))
        return [tuple(matches.positions.tolist()) for matches in (*engine.feed(*events), *engine.flush())]

    assert found(held) == [(0, 1, 2, 3, 4, 5, 6)]
    error = error_of(found, held - 1)
    assert error.condition == "MATCH_LIMIT"
    assert error.parameters == {"found": str(held), "limit": str(held - 1)}
    assert "AFTER MATCH SKIP" in str(error)


@pytest.mark.parametrize("strategy", ["NXT", "LAST", "MAX"])
@pytest.mark.parametrize("seed", range(5))
def test_what_is_held_are_those_that_can_win(seed: int, strategy: str) -> None:
    chance = np.random.default_rng(seed)
    made = replace(program(), choose=strategy)
    matches = [
        select.Match((*np.flatnonzero(chance.random(7) < 0.6).tolist(), 7 + int(end)), (), ())
        for end in chance.integers(0, 2, 1000)
    ]
    matches = [replace(match, names=(frozenset("a"),) * len(match.positions)) for match in matches]
    held = select.Held(made)
    for match in matches:
        held.add(match)
    assert len(list(held.matches())) < 500
    assert sorted(m.positions for m in held.chosen()) == sorted(m.positions for m in select.chosen(matches, strategy))


@pytest.mark.parametrize("seed", range(20))
def test_the_greatest_sets(seed: int) -> None:
    chance = np.random.default_rng(seed)
    supports = [tuple(np.flatnonzero(chance.random(9) < chance.random()).tolist()) for _ in range(60)]
    sets = list(map(frozenset, supports))
    wanted = [i for i, own in enumerate(sets) if not any(own < other for other in sets)]
    assert select.winners(supports, "MAX") == wanted


ABSORBING = (
    "A+ a1 ; B b1", "A a1 ; B+ b1 ; C c1", "(A a1 ; B b1) OR (B b2 ; C+ c1)", "A a1 ; ((B OR C)* AS x) ; D",
    "A+ a1 ; B b1 ; C* c1", "((A ; B)+ AS x) ; D", "A:+ a1 ; B b1", "ALL(A a1, B b1, C+ c1)",
    "(A+ a1 ; C c1) UNLESS (B ; B)", "ANY+ u ; B b1", "START(A a1 ; B+ b1 ; C)", "PROJECT(b1 : A+ ; B b1 ; C?)",
)  # fmt: skip


def skipping(pattern: str) -> Program:
    text = f"FROM t TYPE type PATTERN {pattern} AFTER MATCH SKIP PAST LAST ROW ORDER BY ts RETURN *"
    return cersql.compile(text, SCHEMAS).program


def chosen_of(made: Program, kinds: str, keys: np.ndarray | None = None) -> list[tuple[list[int], list[int]]]:
    """The positions and labels of each match."""
    bit = {name: 1 << i for i, names in enumerate(made.guards) for name in names}
    every = bit.get("TRUE", 0)
    symbols = np.array([bit.get(kind, 0) | every for kind in kinds], np.int64)
    engine = engine_for(made)
    found = (*engine.feed(symbols, np.arange(len(kinds), dtype=np.int64), None, keys), *engine.flush())
    return [
        (positions.tolist(), labels.tolist())
        for matches in found
        for positions, labels in zip(
            np.split(matches.positions, matches.offsets[1:-1]),
            np.split(matches.labels, matches.offsets[1:-1]),
            strict=True,
        )
    ]


@pytest.mark.parametrize("pattern", ABSORBING)
def test_runs_that_an_earlier_start_makes_superfluous_change_no_match(
    pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, chance = skipping(pattern), random.Random(pattern)
    for _ in range(25):
        kinds = "".join(chance.choices("AABBCD", k=chance.randint(5, 60)))
        keys = np.sort(np.array(chance.choices((3, 4), weights=(3, 1), k=len(kinds))))
        monkeypatch.setattr(capacities, "PIECE", 1 << 30)
        monkeypatch.setattr(capacities, "FEW_RUNS", 1 << 30)
        wanted = chosen_of(made, kinds, keys)
        monkeypatch.setattr(capacities, "PIECE", chance.choice((1, 2, 5)))
        monkeypatch.setattr(capacities, "FEW_RUNS", 1)
        assert chosen_of(made, kinds, keys) == wanted, kinds


def test_a_loop_that_skips_past_its_match_has_few_runs() -> None:
    made = skipping("A+ a1 ; B b1")
    engine = engine_for(made)
    symbols = np.array([1] * 5000 + [2], np.int64)
    assert made.guards[0] == frozenset({"A"})
    (matches,) = (*engine.feed(symbols, np.arange(5001)), *engine.flush())
    assert matches.positions.tolist() == list(range(5001))
    assert engine_nodes(engine) < 5000 * 700  # one for each event and start that is looked at, not for each start


def engine_nodes(engine: Engine) -> int:
    assert isinstance(engine.stepper, table.TableStepper)
    return len(engine._store.arena.row)


# ---------------------------------------------------------------- memory, and who reads


def growing() -> Iterator[int]:
    held = []
    while True:
        held.append(bytearray(1 << 20))
        if len(held) % 2000 == 0:
            yield len(held)


def test_memory_limit() -> None:
    most = limits.held_bytes() + (64 << 20)
    error = error_of(lambda: list(limits.watched(Limits(most, "PATTERN A+ a"), growing())))
    assert error.condition == "MEMORY_LIMIT"
    assert "the limit is" in error.message
    assert error.message.endswith("for the query PATTERN A+ a.")
    assert "cersql.memoryLimit" in str(error)
    assert limits.held_bytes() < most + (1 << 30)


def test_memory_that_is_not_given() -> None:
    def starved() -> Iterator[int]:
        yield 1
        raise MemoryError

    found = limits.watched(Limits(0, "PATTERN A+ a"), starved())
    assert next(found) == 1
    error = error_of(next, found)
    assert error.condition == "OUT_OF_MEMORY"
    assert "gets no more memory, for the query PATTERN A+ a." in error.message


def test_the_timer_is_set_only_while_something_is_made() -> None:
    def made() -> Iterator[float]:
        for _ in range(2):
            yield signal.getitimer(signal.ITIMER_REAL)[1]

    before = signal.getsignal(signal.SIGALRM)
    for interval in limits.watched(Limits(), made()):
        assert interval == limits.EVERY
        assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
        assert signal.getsignal(signal.SIGALRM) == before


def test_an_iterator_that_nobody_reads_on_is_closed() -> None:
    closed = []

    def made() -> Iterator[int]:
        try:
            yield 1
            yield 2
        finally:
            closed.append(True)

    found = limits.watched(Limits(), made())
    assert next(found) == 1
    found.close()  # type: ignore[attr-defined]
    assert closed


def test_half_of_the_machine_is_the_limit_where_none_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    assert limits.half_of_machine() > 1 << 28
    monkeypatch.setattr(limits, "half_of_machine", lambda: 1 << 20)
    assert error_of(lambda: list(limits.watched(Limits(), growing()))).parameters["limit"] == "1.0 MB"


@pytest.mark.parametrize("family", [socket.AF_UNIX, socket.AF_INET])
def test_a_closed_connection_is_seen_whatever_was_written_to_it(family: int) -> None:
    ours, theirs = socket.socketpair(family) if family == socket.AF_UNIX else connected()
    with ours, theirs:
        assert not limits.is_closed(ours.fileno())
        theirs.sendall(b"rows that nobody has read yet")
        assert not limits.is_closed(ours.fileno())
        theirs.close()
        end = time.monotonic() + 10
        while not limits.is_closed(ours.fileno()):
            assert time.monotonic() < end


def connected() -> tuple[socket.socket, socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        ours = socket.create_connection(server.getsockname())
        return ours, server.accept()[0]


SCRIPT = """
import socket
from runtime import limits
from runtime.task import Limits

ours, theirs = socket.socketpair()

def endless():
    theirs.close()
    while True:
        pass
    yield

list(limits.watched(Limits(), endless(), ours.fileno()))
"""


def test_a_process_ends_when_nobody_reads_what_it_makes() -> None:
    assert subprocess.run([sys.executable, "-c", SCRIPT], cwd=ROOT, timeout=100).returncode == 1
