"""The papers' spellings through Spark, beside rows worked out in Python; what only a session answers, and streams."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

import cersql

Event = dict[str, Any]
Truth = bool | None  # SQL's
MOST = 3


@pytest.fixture(scope="module")
def rows(spark: Any) -> list[Event]:
    chance = random.Random(11)
    values = [
        (i, chance.choice("AB"), i, chance.choice([1.0, 2.0, None, 3.0]), chance.choice([1, 2, None, 1]))
        for i in range(12)
    ]
    frame = spark.createDataFrame(values, "id BIGINT, type STRING, ts BIGINT, v DOUBLE, key INT")
    frame.createOrReplaceTempView("spellings")
    return [row.asDict() for row in frame.collect()]


def candidates(rows: Sequence[Event]) -> Iterator[tuple[tuple[Event, ...], Event]]:
    """What A{1,3} x ; B b can be."""
    for b in rows:
        before = [row for row in rows if row["type"] == "A" and row["id"] < b["id"]] if b["type"] == "B" else []
        for count in range(1, MOST + 1):
            for x in itertools.combinations(before, count):
                yield x, b


def agree(events: Sequence[Event], column: str) -> Truth:
    values = [event[column] for event in events]
    known = {value for value in values if value is not None}
    if len(known) > 1:
        return False
    return None if None in values else True


def negated(truth: Truth) -> Truth:
    return None if truth is None else not truth


def either(*truths: Truth) -> Truth:
    return True if True in truths else None if None in truths else False


def every(events: Sequence[Event], holds: Callable[[Event], bool]) -> bool:
    return all(holds(event) for event in events)


def rising(events: Sequence[Event], sign: int) -> bool:
    pairs = [(a["v"], b["v"]) for a, b in itertools.pairwise(events)]
    return all(a is not None and b is not None and a * sign < b * sign for a, b in pairs)


def above(event: Event, least: float) -> bool:
    return event["v"] is not None and event["v"] > least


CONDITIONS: dict[str, Callable[[tuple[Event, ...], Event], Truth]] = {
    "x[key]": lambda x, b: agree(x, "key"),
    "[key] OR [v]": lambda x, b: either(agree((*x, b), "key"), agree((*x, b), "v")),
    "NOT [key]": lambda x, b: negated(agree((*x, b), "key")),
    "NOT x[key]": lambda x, b: negated(agree(x, "key")),
    "NOT [key, v]": lambda x, b: either(negated(agree((*x, b), "key")), negated(agree((*x, b), "v"))),
    "[key] OR NOT [v]": lambda x, b: either(agree((*x, b), "key"), negated(agree((*x, b), "v"))),
    "¬[key] ∨ x.v > 2": lambda x, b: either(negated(agree((*x, b), "key")), every(x, lambda e: above(e, 2))),
    "[key] OR COUNT(x) > 2": lambda x, b: either(agree((*x, b), "key"), len(x) > 2),
    "NOT [key] AND COUNT(x) > 1": lambda x, b: len(x) > 1 and negated(agree((*x, b), "key")),
    "x[increasing(v)] OR x[decreasing(v)]": lambda x, b: either(rising(x, 1), rising(x, -1)),
}


OF_MATCHES = [name for name in CONDITIONS if "increasing" not in name and "x.v" not in name]  # what HAVING takes
CLAUSES = [("WHERE", name) for name in CONDITIONS] + [("HAVING", name) for name in OF_MATCHES]


@pytest.mark.breadth(6)
@pytest.mark.parametrize(("clause", "condition"), CLAUSES)
def test_conditions_on_several_events_together(spark: Any, rows: list[Event], condition: str, clause: str) -> None:
    text = f"""FROM spellings PATTERN A{{1,{MOST}}} x ; B b {clause} {condition} ORDER BY ts
        RETURN transform(x, e -> e.id) AS xs, b.id AS b"""
    found = sorted((tuple(row.xs), row.b) for row in cersql.sql(spark, text).collect())
    holds = CONDITIONS[condition]
    expected = sorted((tuple(e["id"] for e in x), b["id"]) for x, b in candidates(rows) if holds(x, b) is True)
    assert found == expected
    if condition != "NOT x[key]":
        assert found


def test_project_that_keeps_nothing(spark: Any, rows: list[Event]) -> None:
    found = cersql.sql(spark, "FROM spellings PATTERN PROJECT( : A+ ; B) ORDER BY ts RETURN *")
    assert found.columns == ["match_start", "match_end"]
    expected = {(x[0]["ts"], b["ts"]) for x, b in candidates(rows)}
    assert sorted(map(tuple, found.collect())) == sorted(expected)
    keyed = cersql.sql(
        spark, "FROM spellings PATTERN PROJECT(:A ; B) PARTITION BY key ORDER BY ts RETURN *, COUNT(*) AS n"
    )
    assert keyed.columns == ["key", "match_start", "match_end", "n"]
    assert {row.n for row in keyed.collect()} == {0}


def test_windows_that_slide_as_the_hint_says(spark: Any, rows: list[Event]) -> None:
    """The query of the hint of SLIDE: each window with the matches that lie in it."""
    found = cersql.sql(
        spark,
        """
        SELECT w, count(*) AS n FROM (
          SELECT *, window(match_start, '4 seconds', '2 seconds') AS w
          FROM (FROM (SELECT type, timestamp_seconds(ts) AS at FROM spellings) AS e TYPE type
                PATTERN A ; B ORDER BY at WITHIN 4 SECONDS RETURN *)
        ) WHERE match_end < w.end GROUP BY w""",
    )
    expected = {}
    for start in range(-4, 14, 2):
        inside = [row for row in rows if start <= row["ts"] < start + 4]
        pairs = [1 for a in inside for b in inside if (a["type"], b["type"]) == ("A", "B") and a["ts"] < b["ts"]]
        if pairs:
            expected[start] = len(pairs)
    seconds = found.selectExpr("unix_seconds(w.start) AS s", "n").collect()
    assert {row.s: row.n for row in seconds} == expected


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "pattern",
    ["A{1,2} a ; B b WHERE NOT [key]", "A a ; B b WHERE [key] OR [v]", "A a ; B b WHERE NOT [key]", "A+ a[key] ; B b",
     "(A a ; B b) PART BY (key)"],
)  # fmt: skip
def test_on_a_stream(spark: Any, rows: list[Event], pattern: str) -> None:
    timed = spark.table("spellings").selectExpr("type", "timestamp_seconds(1700000000 + ts) AS at", "v", "key")
    text = f"PATTERN {pattern} WITHIN 5 SECONDS ORDER BY at RETURN a.v AS a, b.v AS b, match_start, match_end"
    replayed = cersql.replay(spark, timed, text, disorder=3.0, batches=2)
    assert replayed.same, str(replayed)
    assert replayed.matches > 0
