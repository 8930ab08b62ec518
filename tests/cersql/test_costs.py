"""What EXPLAIN says that an event costs, for the queries whose curves tests/bench/curves.py draws."""

from __future__ import annotations

import sys
from itertools import pairwise, permutations
from pathlib import Path

import numpy as np
import pytest

import cersql
from runtime.engine import engine_for

sys.path.append(str(Path(__file__).parents[1] / "bench"))
import curves

CONSTANT, LOG, POWER = curves.MOST_SLOPE
COSTS = {
    CONSTANT: """
        chain chain-swapped two-equalities chain-of-four same-twice equal-loop equal-veto example-4 loop-or or-of-pairs
        or-of-all project unless unless-several-equal start and-equal nxt last nxt-of-three last-of-three
        trailing trailing-veto
    """,
    LOG: """
        two-apart apart-few apart-loop apart-before four-apart apart-twice apart-veto apart-own-veto proposition-9 less
        unless-several and and-less
        p0 all-of-parts self-join window-inside new-high new-low a-change seen-first new-high-then
    """,
    POWER: """
        unless-part unequal both-less between arithmetic above-twice greatest-apart above-veto above-and-equal
    """,
    "by what waits": """
        overlapping equal-unequal equal-or loop-unequal equal-and-less inner-window
        nested-nxt max max-clause
    """,
}
FLAT = "plain skip repeat at-least cooldown longest-loop longest-above"


@pytest.mark.parametrize("name", curves.QUERIES)
def test_what_explain_says_of_it(name: str) -> None:
    query = curves.QUERIES[name]
    where = f"WHERE {query.where}" if query.where else ""
    text = f"FROM t PATTERN {query.pattern} {where} ORDER BY ts WITHIN 100 {query.rest} RETURN match_start"
    said = curves.claim_of(cersql.compile(text, curves.SCHEMA).explain("physical"))
    wanted = [cost for cost, names in COSTS.items() if name in names.split()]
    if name in FLAT.split():
        assert wanted == []
    else:
        assert [said] == wanted


SEVERAL = [name for name, query in curves.QUERIES.items() if " AND " in query.where]


def matches(compiled: cersql.api.Compiled) -> set[tuple[int, ...]]:
    """The rows of each match in 60 events whose values repeat."""
    stream = curves.events(60)
    few = curves.Events(stream.kinds, {name: column % 2 for name, column in stream.columns.items()})
    engine, found = engine_for(compiled.program), set()
    symbols, times = curves.symbols_of(compiled.program, few), np.arange(60, dtype=np.int64)
    for part in (engine.feed(symbols, times), engine.flush()):
        for one in part:
            ends = one.offsets.tolist()
            found |= {tuple(one.positions[a:b].tolist()) for a, b in pairwise(ends)}
    return found


@pytest.mark.parametrize("name", SEVERAL)
def test_the_order_of_conditions_changes_neither_matches_nor_cost(name: str) -> None:
    query = curves.QUERIES[name]
    text = f"FROM t PATTERN {query.pattern} WHERE {{}} ORDER BY ts WITHIN 30 RETURN *"
    made = [cersql.compile(text.format(" AND ".join(conditions)), curves.SCHEMA)
            for conditions in permutations(query.where.split(" AND "))]  # fmt: skip
    assert len({curves.claim_of(one.explain("physical")) for one in made}) == 1
    first, *others = map(matches, made)
    assert first
    assert all(other == first for other in others)
