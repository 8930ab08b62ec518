"""So many matches of each end, CORE's LIMIT: those that there are, and as many as there are up to that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import harness
import oracle
import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st

import cersql
from planner.formula import Formula
from runtime.engine import engine_for
from runtime.errors import InternalError
from runtime.program import Program


def ends(matches: Iterable[oracle.Match]) -> Counter[int]:
    return Counter(end for _, end, _ in matches)


def check(program: Program, events: list[oracle.Event], keyed: bool, most: int) -> None:
    every = harness.unique(harness.run_whole(program, harness.rows_of(program, events, keyed)))
    bounded = replace(program, most_at_end=most)
    expected = {key: {end: min(n, most) for end, n in ends(found).items()} for key, found in every.items()}
    for found in harness.every_way(bounded, events, keyed, seed=3).values():
        assert {key: ends(some) for key, some in harness.unique(found).items()} == expected
        assert all(set(some) <= every[key] for key, some in found.items())
    total = sum(n for found in expected.values() for n in found.values())
    assert harness.count(bounded, harness.rows_of(bounded, events, keyed)) == total


@given(
    strategies.formulas(5), strategies.streams(max_size=9, keys=(0, 1)), strategies.windows(), st.booleans(),
    st.sampled_from(["ALL", "NXT", "LAST", "MAX", "STRICT"]), st.sampled_from(["NONE", "PARTITION"]),
    st.integers(1, 3),
)  # fmt: skip
@strategies.examples(150)
def test_some_of_each_end(
    formula: Formula, rows: list[strategies.Row], window: oracle.Window | None, keyed: bool, strategy: str,
    consume: str, most: int,
) -> None:  # fmt: skip
    program = harness.compiled(formula, window, harness.Options(strategy, consume))
    check(program, [row.event() for row in rows], keyed, most)


def program_of(pattern: str, clauses: str = "") -> Program:
    text = f"FROM t PATTERN {pattern} ORDER BY ts {clauses} RETURN *"
    return cersql.compile(text, {"t": "type STRING, ts BIGINT, id INT"}).program


@pytest.mark.parametrize("pattern", ["A+ ; B", "A ALL B+", "(A+ ; B) OR (A ; B)", "PROJECT( : A ; A+ ; B)"])
def test_it_lists_no_more_than_it_gives(pattern: str) -> None:
    """Sixty times A have 2⁶⁰ − 1 matches with each B."""
    program = replace(program_of(pattern), most_at_end=2)
    events = [oracle.Event(frozenset([type]), n) for n, type in enumerate("A" * 60 + "BB")]
    found = harness.run_whole(program, harness.rows_of(program, events))
    assert all(n <= 2 for n in ends(found[None]).values())
    assert ends(found[None])[60] == 2


def test_beside_what_chooses_late() -> None:
    program = replace(program_of("A ; B", "AFTER MATCH SKIP PAST LAST ROW"), most_at_end=2)
    with pytest.raises(InternalError):
        engine_for(program)
