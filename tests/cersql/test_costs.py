"""What EXPLAIN says that an event costs, for the queries whose curves tests/bench/curves.py draws."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import cersql

sys.path.append(str(Path(__file__).parents[1] / "bench"))
import curves

CONSTANT, LOG = curves.MOST_SLOPE
COSTS = {
    CONSTANT: """
        chain chain-swapped two-equalities chain-of-four same-twice equal-loop equal-veto example-4 loop-or or-of-pairs
        or-of-all project unless start
    """,
    LOG: """
        two-apart apart-few apart-loop apart-before four-apart apart-twice apart-veto apart-own-veto proposition-9 less
        p0 all-of-parts self-join window-inside new-high new-low a-change seen-first new-high-then
    """,
    "by what waits": """
        overlapping unequal equal-unequal equal-or loop-unequal equal-and-less arithmetic inner-window trailing and
        nested-nxt max nxt last max-clause
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
