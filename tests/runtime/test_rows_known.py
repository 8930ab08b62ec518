"""Rows that the general engine knows: found where an event says the same, and nowhere else."""

from __future__ import annotations

import random

import harness
import oracle
import pytest

from planner import cel
from planner.across import Across, Candidate
from planner.terms import Comparison, Term, Window
from runtime import capacities
from runtime.automata.machine import NOW, Clock
from runtime.steppers.rows_known import Asked, KnownRows, Row

STATE: frozenset[int] = frozenset({1})
OTHER: frozenset[int] = frozenset({2})


def event(*values: int | None, closed: bool = False, guards: int = 1) -> Asked:
    return Asked((guards,), values, lambda clock, window: closed)


def kept(known: KnownRows, asked: Asked, state: frozenset[int] = STATE, live: int = 0) -> Row:
    row: Row = (state, [], False)
    known.keep(state, asked, row, live)
    return row


def test_a_row_is_found_by_what_was_asked() -> None:
    known, first = KnownRows(), event(5, 7)
    assert known.find(STATE, first) is None
    first.value(1)
    row = kept(known, first)
    assert known.find(STATE, event(6, 7)) is row
    assert known.find(STATE, event(5, 8)) is None
    assert known.find(OTHER, event(6, 7)) is None
    assert known.find(STATE, event(6, 7, guards=3)) is None


def test_windows_are_asked_for_too() -> None:
    known, first = KnownRows(), event()
    assert not first.closed(NOW, 0), "nothing is asked about what begins here"
    first.closed(Clock(3), 0)
    row = kept(known, first)
    assert known.find(STATE, event()) is row
    assert known.find(STATE, event(closed=True)) is None


def test_questions_of_other_states_do_not_count() -> None:
    known, asked = KnownRows(), event(5)
    asked.value(0)
    assert known.find(OTHER, asked) is None
    row = kept(known, asked, OTHER)
    assert known.find(OTHER, event(6)) is row


def test_rows_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capacities, "KNOWN_ROWS", 2)
    known = KnownRows()
    for n in range(3):
        asked = event(n)
        asked.value(0)
        kept(known, asked)
    assert known.find(STATE, event(0)) is not None
    kept(known, event(9), OTHER)
    assert known.find(STATE, event(0)) is None


FORMULA = Across(
    cel.Unless(
        cel.Within(cel.Sequence(cel.Event("A", frozenset("a")), cel.Event("B", frozenset("b"))), Window("time", 9)),
        Candidate(cel.Event("C", frozenset("c")), 0),
    ),
    0,
    ((Comparison(Term("c", "v"), "=", Term("a", "v")),),),
)


def test_knowing_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capacities, "KNOWN_ROWS", 1 << 13)
    pick = random.Random(3)
    events = [oracle.Event(frozenset({pick.choice("ABC")}), n, 0, (("v", pick.randint(1, 4)),)) for n in range(400)]
    program = harness.compiled(FORMULA)
    rows, made = harness.rows_of(program, events), 0
    keep = KnownRows.keep

    def counted(known: KnownRows, *row: object) -> None:
        nonlocal made
        made += 1
        keep(known, *row)  # type: ignore[arg-type]

    monkeypatch.setattr(KnownRows, "keep", counted)
    found, with_them = harness.unique(harness.run_whole(program, rows)), made
    monkeypatch.setattr(KnownRows, "keep", lambda _, *row: counted(KnownRows(), *row))
    assert harness.unique(harness.run_whole(program, rows)) == found != {}
    assert 0 < with_them < (made - with_them) / 2
