"""Every stage's print of representative queries, compared with tests/golden/<stage>/."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from queries import SCHEMAS

import cersql
from cersql.explain import STAGES

QUERIES = {
    "sequence": (
        "FROM t TYPE type PATTERN A a ; B b WHERE a.v > 1 AND (b.v < 3 OR b.name = 'x') "
        "PARTITION BY k ORDER BY ts, w NULLS LAST WITHIN 10 MINUTES RETURN a.v, b.v + 1 AS next LIMIT 10"
    ),
    "loop": (
        "FROM t PATTERN SEQ(Start a, Step+ b[], End c) WHERE b.v BETWEEN 1 AND 2 "
        "ORDER BY ts WITHIN < 1 HOUR RETURN COUNT(b), MAX(b.v), LAST(b).name HAVING SUM(b.v) > 10"
    ),
    "contiguous": "FROM t PATTERN A a : B:+ b : C c ORDER BY ts RETURN *",
    "alternatives": (
        "FROM orders AS Placed, payments AS Paid PATTERN Placed p ; (Paid q OR Placed r)+ "
        "WHERE p.price > 1 OR q.paid > 2 "
        "ORDER BY ts WITHIN 5 EVENTS RETURN p.id, COUNT(*)"
    ),
    "defined": (
        "FROM ticks DEFINE Up AS x > 1 AND n < 5 PATTERN (Up ; Down)+ AS w "
        "FILTER w.x <> 0 ORDER BY n WITHIN 500 RETURN w"
    ),
    "aggregate": (
        "PATTERN orders o ; (payments p ; payments q) WHERE payments.paid > 1 AND o.price > AVG(payments.paid) "
        "ORDER BY ts RETURN o.id, SUM(payments.paid) AS total"
    ),
}


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("name", QUERIES)
def test_print(name: str, stage: str, golden: Callable[[str, str, str], None]) -> None:
    golden(stage, name, cersql.compile(QUERIES[name], SCHEMAS).explain(stage))


def test_default_is_what_a_user_asks_for_first() -> None:
    compiled = cersql.compile(QUERIES["sequence"], SCHEMAS)
    parts = ("cel", "automaton", "physical")
    assert compiled.explain() == "\n\n".join(f"== {part} ==\n{compiled.explain(part)}" for part in parts)
    assert compiled.explain("dot").startswith("digraph")
