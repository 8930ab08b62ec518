"""What an engine refuses: too many subsets, too many symbols, programs and snapshots of another version."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest

from planner.cel import Event, Iteration, Sequence, Window, Within
from planner.compile import compile_formula
from runtime import symbols, timed_engine
from runtime.engine import engine_for
from runtime.errors import ExecutionError, InternalError
from runtime.program import FORMAT, Program, package_version
from runtime.subsets import Subsets
from runtime.symbols import Classes

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
    monkeypatch.setattr(timed_engine, "CODE_BITS", 1)
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


@pytest.mark.parametrize("other", [{"format": FORMAT + 1}, {"package": "0.0.0-other"}])
def test_program_version(other: dict[str, object]) -> None:
    error = error_of(engine_for, replace(program(), **other))  # type: ignore[arg-type]
    assert error.condition == "PROGRAM_VERSION"
    assert f"runs cersql {package_version()} (format {FORMAT})" in error.message
    assert str(next(iter(other.values()))) in error.message
    assert "on the executors as on the driver" in str(error)


def test_snapshot_version() -> None:
    engine = engine_for(program())
    state = pickle.loads(engine.snapshot())
    state["format"] = FORMAT + 1
    error = error_of(engine.restore, pickle.dumps(state))
    assert error.condition == "SNAPSHOT_VERSION"
    assert error.message == f"A snapshot of format {FORMAT + 1} cannot be restored by format {FORMAT}."


def test_no_engine_for_a_rule() -> None:
    with pytest.raises(InternalError) as raised:
        engine_for(replace(program(), rule="no such"))
    assert "'no such'" in str(raised.value)
