"""AFTER MATCH SKIP on streams too long for the oracle: what is chosen of all matches, when all are listed.

Starts that are sure to be skipped have no runs (runtime.steppers.leading), which shows only where many starts overlap.
"""

from __future__ import annotations

from itertools import groupby

import numpy as np
import pytest

import cersql
from runtime import capacities
from runtime.arrays import AnyArray
from runtime.engine import engine_for
from runtime.program import Program, Skip, SkipTo, Strategy
from runtime.selection import select
from runtime.steppers import live, run_table
from runtime.steppers.register_stepper import RegisterStepper
from runtime.steppers.stepper import Stepper
from runtime.steppers.table import TableStepper

SCHEMA = {"t": "type STRING, v INT, ts INT"}
PATTERNS = {
    "cooldown": "ANY g : ANY:* rest",
    "loop": "A+ a",
    "loop, then": "A+ a ; B b",
    "ends before others begin": "A a : B b",
    "between": "SEQ(A a, !B, C c)",
    "branches": "(A a ; B+ b) OR (A a : C c : A d)",
    "rising": "A g ; ANY{1,2} rest WHERE g.v <= rest.v",
    "rising, contiguous": "ANY g : ANY:* rest WHERE g.v <= rest.v",
    "pairs": "A a ; B b ; C? c WHERE a.v = b.v",
    "three": "A a ; B+ b ; C c WHERE a.v < c.v",
}


def program(pattern: str, within: str, rest: str) -> Program:
    return cersql.compile(f"FROM t PATTERN {pattern} ORDER BY ts WITHIN {within} {rest} RETURN *", SCHEMA).program


def stream(made: Program, n: int, seed: int) -> tuple[AnyArray, AnyArray]:
    """Symbols with terms, and times with ties; the same rows for every program of a seed."""
    chance = np.random.default_rng(seed)
    kinds, values = chance.choice(list("AABC"), n), chance.integers(0, 4, n)
    symbols = np.zeros((n, 1 + len(made.terms)), np.int64)
    for bit, guard in enumerate(made.guards):
        own = np.isin(kinds, sorted(guard)) if guard else np.ones(n, bool)
        symbols[:, 0] |= own.astype(np.int64) << bit
    symbols[:, 1:] = values[:, None]
    return symbols, np.cumsum(chance.integers(0, 3, n))


def listed(made: Program, symbols: AnyArray, times: AnyArray, cuts: list[int]) -> list[select.Match]:
    """The matches; at each cut the compact set is compacted."""
    engine, found = engine_for(made), []
    positions = np.arange(len(times), dtype=np.int64)

    def keep(batch) -> None:  # type: ignore[no-untyped-def]
        for k in range(batch.n):
            own = slice(int(batch.offsets[k]), int(batch.offsets[k + 1]))
            labels = tuple(batch.labels[own].tolist())
            names = tuple(made.labels[label] for label in labels)
            found.append(select.Match(tuple(batch.positions[own].tolist()), labels, names))

    for begin, end in zip([0, *cuts], [*cuts, len(times)], strict=True):
        for batch in engine.feed(symbols[begin:end], times[begin:end], positions=positions[begin:end]):
            keep(batch)
        if end in cuts:
            engine.least_row()
    for batch in engine.flush():
        keep(batch)
    return found


@pytest.mark.parametrize("within", ["4", "4 EVENTS"])
@pytest.mark.parametrize("name", PATTERNS)
@pytest.mark.parametrize("to", ["PAST LAST ROW", "TO NEXT ROW"])
def test_one_match_at_a_time(name: str, within: str, to: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pattern, n = PATTERNS[name], 40
    every, some = program(pattern, within, ""), program(pattern, within, f"AFTER MATCH SKIP {to}")
    assert some.family in ("timed", "skipping")
    total = 0
    for seed in range(3):
        monkeypatch.setattr(capacities, "MANY_ROOTS", seed)  # whether earlier ends are left out at once changes nothing
        expected = select.skipped(listed(every, *stream(every, n, seed), []), Skip(to), some.variables)
        total += len(expected)
        wanted = [(m.positions, m.names) for m in expected]
        for cuts in ([], [13, 14, 30]):
            got = listed(some, *stream(some, n, seed), cuts)
            assert [(m.positions, m.names) for m in got] == wanted
    assert total > 0


@pytest.mark.parametrize("by", ["NXT", "LAST"])
@pytest.mark.parametrize("name", PATTERNS)
@pytest.mark.parametrize("to", ["PAST LAST ROW", "TO NEXT ROW"])
def test_one_match_at_a_time_as_they_complete(name: str, by: Strategy, to: SkipTo) -> None:
    """The earliest end first, of those of one end the strategy's choice."""
    pattern, n = PATTERNS[name], 30
    every, some = program(pattern, "4", ""), program(pattern, "4", f"SEMANTICS {by} AFTER MATCH SKIP {to}")
    skip, total = Skip(to, by=by), 0
    for seed in range(2):
        wanted, dropped = list[select.Match](), -1
        matches = sorted(listed(every, *stream(every, n, seed), []), key=lambda match: match.end)
        for _, rivals in groupby(matches, key=lambda match: match.end):
            taken = select.taken(rivals, skip, some.variables, dropped)
            dropped = select.last_dropped(taken[-1], skip) if taken else dropped
            wanted += taken
        total += len(wanted)
        for cuts in ([], [11, 12, 20]):
            got = listed(some, *stream(some, n, seed), cuts)
            assert [(m.positions, m.names) for m in got] == [(m.positions, m.names) for m in wanted]
    assert total > 0


@pytest.mark.parametrize("pattern", ["ANY g : ANY:* rest", "A+ a", "A g ; A* rest WHERE g.v <= rest.v"])
def test_what_is_sure_to_be_skipped_has_no_runs(pattern: str) -> None:
    """Thousands of starts lie in the window; only the first of each match goes on."""
    made = program(pattern, "5000", "AFTER MATCH SKIP PAST LAST ROW")
    symbols, times = stream(made, 4_000, 1)
    engine, most = engine_for(made), 0
    for at in range(0, 4_000, 100):
        engine.count(symbols[at : at + 100], times[at : at + 100])
        most = max(most, n_runs(engine.stepper))
    assert most <= 12


def n_runs(stepper: Stepper) -> int:
    if isinstance(stepper, TableStepper):
        return int(stepper._live.counts[live.N_LIVE])
    assert isinstance(stepper, RegisterStepper)
    return int(stepper._entries.counts[run_table.N_USED])
