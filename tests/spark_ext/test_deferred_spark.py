"""Equality of events that are not neighbours through Spark: rows, counts, LIMIT, groups, and a stream beside them."""

from __future__ import annotations

import random
from collections import Counter
from itertools import combinations

import pytest
import sparks
from pyspark.sql import SparkSession

import cersql

N = 90
SPAN = 25
CHANCE = random.Random(3)
ROWS = [(n, CHANCE.choice("ABC"), CHANCE.choice((1, 2, 3, 4, None)), CHANCE.randrange(2)) for n in range(N)]
PATTERN = "FROM {} PATTERN A a ; B b ; C c WHERE a.x = c.x PARTITION BY k ORDER BY ts WITHIN {} RETURN {}"


def wanted() -> list[tuple[int, int, int]]:
    """The matches, by three loops."""
    return [
        (a[0], b[0], c[0])
        for a, b, c in combinations(ROWS, 3)
        if (a[1], b[1], c[1]) == ("A", "B", "C") and a[2] == c[2] is not None
        and a[3] == b[3] == c[3] and c[0] - a[0] <= SPAN
    ]  # fmt: skip


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    own = sparks.taught(spark)
    sparks.view(own, "apart", ROWS, "ts BIGINT, type STRING, x INT, k INT")
    own.sql("SELECT timestamp_seconds(ts) AS ts, type, x, k FROM apart").createOrReplaceTempView("timed")
    return own


def test_rows_counts_and_groups(session: SparkSession) -> None:
    matches = wanted()
    assert len(matches) > 20
    text = PATTERN.format("apart", SPAN, "a.ts AS a, b.ts AS b, c.ts AS c")
    assert "run by: deferred runs" in cersql.explain(session, text, stage="physical")
    assert sorted(map(tuple, session.sql(text).collect())) == sorted(matches)
    assert session.sql(f"SELECT count(*) AS n FROM ({text})").first() == (len(matches),)
    assert session.sql(text + " LIMIT 5").count() == 5
    for by, column in (("a.x", None), ("match_start", 0), ("c.x", None)):
        grouped = PATTERN.format("apart", SPAN, f"{by} AS g, COUNT(*) AS n, SUM(b.ts) AS s GROUP BY {by}")
        found = {row[0]: (row[1], row[2]) for row in session.sql(grouped).collect()}
        key = [match[0] if column == 0 else ROWS[match[0]][2] for match in matches]
        sums = Counter[int | None]()
        for own, match in zip(key, matches, strict=True):
            sums[own] += match[1]
        assert found == {own: (n, sums[own]) for own, n in Counter(key).items()}


def test_on_a_stream(session: SparkSession) -> None:
    text = PATTERN.format("timed", f"{SPAN} SECONDS", "a.ts AS a, b.ts AS b, c.ts AS c")
    replayed = cersql.replay(session, "timed", text.removeprefix("FROM timed "), batches=3)
    assert replayed.same, str(replayed)
    assert replayed.matches == len(wanted())
