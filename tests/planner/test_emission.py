"""Which matches can be given as they arrive, and what says why not."""

from __future__ import annotations

import pytest

import cersql
from planner.emission import on_arrival, why_not
from planner.errors import PlanError
from planner.query import Query

SCHEMA = {"t": "type STRING, ts TIMESTAMP, k INT, v INT"}


def query_of(text: str, emit: str = "") -> Query:
    pattern, _, clause = text.partition(" | ")
    return cersql.compile(f"FROM t PATTERN {pattern} ORDER BY ts {clause} RETURN * {emit}", SCHEMA).query


@pytest.mark.parametrize(
    "text",
    [
        "A",
        "A ; B",
        "A a ; B+ b ; C c | WITHIN 1 HOUR",
        "A? ; B* ; C",
        "(A ; B) OR (A ; C)",
        "ALL(A, B) | WITHIN 1 HOUR",
        "(A ; B) AND (ANY ; B)",
        "(A ; B WITHIN 5 MINUTES) ; C",
        "PROJECT(a : A a ; B b)",
        "A a ; B b WHERE a.v < b.v | WITHIN 1 HOUR",
        "A a ; B b WHERE a.v + b.v > 7",
        "A{2,3} ; B",
        "AGG(y : s = SUM(a.v) ; A+ a) ; B b",
        "A+ a WHERE SUM(a.v) > 5 | WITHIN 1 HOUR",
    ],
)
def test_what_no_event_takes_away_is_given_on_arrival(text: str) -> None:
    query = query_of(text)
    assert why_not(query, chooses=False) is None
    assert on_arrival(query, chooses=False)
    assert not on_arrival(query_of(text, "EMIT ON WATERMARK"), chooses=False)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("A : B", "one between two that must follow each other"),
        ("A:+", "one between two that must follow each other"),
        ("A ; B:{2}", "one too many in a window of events, or between two that must follow each other"),
        ("A ; B | WITHIN 5 EVENTS", "one too many in a window of events"),
        ("(A ; B WITHIN 5 EVENTS) ; C", "one too many in a window of events"),
        ("SEQ(A, !B, C) | WITHIN 1 HOUR", "one that must not lie between"),
        ("SEQ(!B, A, C) | WITHIN 1 HOUR", "one that must not come before"),
        ("SEQ(A, C, !B) | WITHIN 1 HOUR", "one that must not come after"),
        ("(A ; B) UNLESS C", "what must not happen meanwhile"),
        ("START(A ; B) | WITHIN 1 HOUR", "one that begins the stream"),
        ("A ; NXT(B ; C) | WITHIN 1 HOUR", "in a match that is chosen in its place inside the pattern"),
        ("A ; B | WITHIN 1 HOUR SEMANTICS NXT", "in a match that NXT chooses in its place"),
        ("A ; B | WITHIN 1 HOUR CONSUME BY PARTITION", "in a match that CONSUME BY PARTITION chooses in its place"),
        ("A ; B | WITHIN 1 HOUR AFTER MATCH SKIP PAST LAST ROW", "in a match that AFTER MATCH SKIP chooses"),
    ],
)
def test_what_can_be_undone_waits_for_the_watermark(text: str, why: str) -> None:
    assert not on_arrival(query_of(text), chooses=False)
    with pytest.raises(PlanError) as caught:
        on_arrival(query_of(text, "EMIT ON ARRIVAL"), chooses=False)
    assert caught.value.condition == "EMIT_ON_ARRIVAL"
    assert f"an event that comes late can be {why}" in str(caught.value)
    assert "write EMIT ON WATERMARK" in str(caught.value)
