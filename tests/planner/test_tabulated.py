"""Which event of a pair comes first, of conditions that Spark tabulates."""

from __future__ import annotations

import pytest
from queries import bound

from planner.physical import plan
from planner.tabulated import tabulated


@pytest.mark.parametrize(
    ("pattern", "ordered"),
    [
        ("((A a ; B b) FILTER hash(a.k, b.k) > 1) ; C", True),
        ("((A a : ANY ; B b) FILTER hash(b.k, a.k) > 1) ; C", False),
        ("((A a ; B b)+ FILTER hash(a.k, b.k) > 1) ; C", False),
        ("((A a ; B b) FILTER hash(a.k, b.k) > 1)+ ; C", True),
        ("(((A a ; B b) OR (C ; A a ; B b)) FILTER hash(a.k, b.k) > 1) ; C", True),
        ("(((A a ; B b) OR (B b ; A a)) FILTER hash(a.k, b.k) > 1) ; C", False),
        ("(ALL(A a, B b) FILTER hash(a.k, b.k) > 1) ; C", False),
        ("(((A ; D) AS m ; B b) FILTER hash(m.k, b.k) > 1) ; C", True),
        ("A+ a WHERE hash(a[i].k, a[i-1].k) > 1", True),
        ("SEQ(A a, !B b, C c) WHERE hash(a.k, b.k) > 1", False),
    ],
)
def test_which_event_comes_first(pattern: str, ordered: bool) -> None:
    (asked,) = tabulated(bound(f"FROM t PATTERN {pattern} ORDER BY ts RETURN *").formula)
    assert asked.ordered is ordered


def test_one_condition_is_tabulated_once() -> None:
    """An OR of agreements makes two formulas of one."""
    text = "FROM t PATTERN ((A a ; B b) FILTER hash(a.k, b.k) > 1) AS m WHERE [k] OR [v] ORDER BY ts RETURN *"
    found = plan(bound(text))
    assert [asked.related.relation.table for asked in found.tabulated] == [0]
    assert len(found.program.tables) == 1


def test_of_neighbours_the_earlier_is_on_the_left() -> None:
    query = bound("FROM t PATTERN A+ a WHERE length(repeat(a[i].name, a[i-1].k)) > 1 ORDER BY ts RETURN *")
    (asked,) = tabulated(query.formula)
    made = asked.related.tabulated
    assert made is not None
    assert (made.left, made.right) == (("`k`",), ("`name`",))
    assert made.sql == "length(repeat(__cersql_right0, __cersql_left0)) > 1"
    assert [term.of for term in asked.related.terms] == ["earlier", "later"]
