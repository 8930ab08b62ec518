"""WITH TIMEOUTS through spark.sql: all columns, their types, HAVING, LIMIT and COUNT, in both ways of sorting."""

from __future__ import annotations

import random

import pytest
import sparks
from pyspark.sql import SparkSession

import cersql
import planner.physical
from planner.rewrite.keys import Keyed

ROWS = "(0, 'A', 1), (1, 'B', 1), (2, 'A', 2), (3, 'C', 1), (4, 'A', 1), (5, 'B', 1), (6, 'B', 1), (7, 'A', NULL)"
PATTERN = "PATTERN A a ; B+ b ; C c PARTITION BY k ORDER BY ts WITHIN 5"
TIMEOUTS = [
    # k, from, to, status, reached, a, b, c
    (1, 0, 3, "match", "c", 0, [1], 3),
    (1, 4, 6, "timeout", "b", 4, [5, 6], None),
    (2, 2, 2, "timeout", "a", 2, [], None),
    (None, 7, 7, "timeout", "a", 7, [], None),
]


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    session = sparks.taught(spark)
    session.sql(f"SELECT ts, type, k FROM VALUES {ROWS} AS e(ts, type, k)").createOrReplaceTempView("events")
    return session


@pytest.mark.parametrize("sort", ["worker", "spark"])
def test_all_columns(session: SparkSession, sort: str) -> None:
    with sparks.settings(session, cersql__sort=sort):
        df = session.sql(f"FROM events {PATTERN} RETURN * WITH TIMEOUTS")
        rows = df.collect()
    assert df.columns == ["k", "match_start", "match_end", "match_status", "match_reached", "a", "b", "c"]
    assert [df.schema[name].dataType.simpleString() for name in ("match_status", "match_reached")] == ["string"] * 2
    found = [
        (r.k, r.match_start, r.match_end, r.match_status, r.match_reached, r.a.ts, [b.ts for b in r.b], r.c and r.c.ts)
        for r in rows
    ]
    assert sorted(found, key=lambda row: (row[0] is None, row[0] or 0, row[1])) == TIMEOUTS


def test_what_is_done_with_them(session: SparkSession) -> None:
    """HAVING, LIMIT and COUNT see matches and timeouts alike."""
    text = f"FROM events {PATTERN} RETURN a.ts AS a, c.ts AS c, match_reached AS reached WITH TIMEOUTS"
    assert session.sql(text).count() == 4
    assert session.sql(f"SELECT count(*) FROM ({text})").collect()[0][0] == 4
    kept = session.sql(f"{text} HAVING match_status = 'timeout' AND match_reached <> 'a'").collect()
    assert [tuple(row) for row in kept] == [(4, None, "b", "timeout")]
    assert len(session.sql(f"{text} LIMIT 2").collect()) == 2


def test_without_keys_and_with_a_choice(session: SparkSession) -> None:
    """One task; a start that was skipped gives no row, and neither does one whose absence held."""
    text = (
        "FROM events PATTERN {} ORDER BY ts WITHIN 5 {} RETURN match_start, match_status, match_reached WITH TIMEOUTS"
    )
    skipped = session.sql(text.format("A a ; C c", "AFTER MATCH SKIP PAST LAST ROW")).collect()
    assert sorted(map(tuple, skipped)) == [(0, "match", "c"), (4, "timeout", "a"), (7, "timeout", "a")]
    absent = session.sql(text.format("SEQ(A a, B b, !C)", "SEMANTICS NXT")).collect()
    assert sorted(map(tuple, absent)) == [(0, "match", "b"), (2, "match", "b"), (7, "timeout", "a")]


@pytest.mark.parametrize("clauses", ["", "SEMANTICS NXT", "SEMANTICS SKIP TILL NEXT MATCH"])
def test_agreement_is_a_key(session: SparkSession, monkeypatch: pytest.MonkeyPatch, clauses: str) -> None:
    """A start without a k agrees not even with itself. What only compares, leaves a start that has none to wait."""
    agree = f"FROM events PATTERN A a ; B+ b ; C c WHERE [k] ORDER BY ts WITHIN 5 {clauses} RETURN * WITH TIMEOUTS"
    pairs = agree.replace("[k]", "a.k = b.k AND b.k = c.k AND a.k = c.k")
    assert "so a key" in cersql.explain(session, agree, "physical")
    by_run = "SKIP" in clauses  # what runs must take, they take whatever they are compared with
    assert ("run by: flat table" in cersql.explain(session, pairs, "physical")) != (by_run or bool(clauses))
    rows = [sorted(map(repr, session.sql(text).collect())) for text in (agree, pairs)]
    monkeypatch.setattr(planner.physical, "keyed", lambda query, obstacle: Keyed(query))
    assert rows == [sorted(map(repr, session.sql(text).collect())) for text in (agree, pairs)]
    assert len(rows[0]) + 1 == len(rows[1])


BY_KEYS = [
    # pattern, conditions, is it by keys?
    ("A a ; B b", "b.k = a.k", True),
    ("A a ; B b ; C c", "a.k = b.k AND b.k = c.k", True),
    ("A a ; B+ b ; C c", "a.k = b.k AND a.k = c.k AND b.v < c.v", True),
    ("A a ; B? b ; C c", "a.k = b.k AND a.k = c.k", True),
    ("A a ; (B b OR C c)+", "a.k = b.k AND a.k = c.k", True),
    ("ANY a ; ANY b", "a.k = b.k AND a.v = b.v", True),
    ("A a ; B b ; C c", "a.k = c.k AND b.k = c.k", False),  # any B is taken before the C comes
    ("A+ a ; B b", "a.k = b.k", False),  # and any As
    ("A a ; B? b ; C c", "b.k = c.k AND a.k = b.k", False),
    ("SEQ(A a, !C c, B b)", "a.k = b.k AND a.k = c.k", False),
]


@pytest.fixture(scope="module")
def mixed(session: SparkSession) -> SparkSession:
    chance = random.Random(5)
    rows = [
        (n // 2, chance.choice("AABBC"), chance.choice((1, 2, None)), chance.choice((1, 2, 3, None))) for n in range(60)
    ]
    session.createDataFrame(rows, "ts INT, type STRING, k INT, v INT").createOrReplaceTempView("mixed")
    return session


@pytest.mark.parametrize(("pattern", "where", "keys"), BY_KEYS)
def test_starts_are_told_by_keys(
    mixed: SparkSession, monkeypatch: pytest.MonkeyPatch, pattern: str, where: str, keys: bool
) -> None:
    """Where no run takes an event of another key. A start without a value is a row."""
    text = f"FROM mixed PATTERN {pattern} WHERE {where} ORDER BY ts WITHIN 6 RETURN * WITH TIMEOUTS"
    assert ("so a key" in cersql.explain(mixed, text, "physical")) == keys
    if not keys:
        return
    rows = sorted(map(repr, mixed.sql(text).collect()))
    monkeypatch.setattr(planner.physical, "keyed", lambda query, obstacle: Keyed(query))
    assert rows == sorted(map(repr, mixed.sql(text).collect()))
    assert any("k=None" in row and "timeout" in row for row in rows)
