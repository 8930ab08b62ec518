"""A value that is kept and compared by order, through Spark: rows, counts, LIMIT, groups, and a stream beside them."""

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
CHANCE = random.Random(4)
ROWS = [(n, CHANCE.choice("ABC"), CHANCE.choice((1, 2, 3, 4, None)), CHANCE.randrange(2)) for n in range(N)]
SEQUENCE = "A a ; B b ; C c WHERE b.x > a.x AND c.x >= a.x"
PATTERN = "FROM {} PATTERN " + SEQUENCE + " PARTITION BY k ORDER BY ts WITHIN {} RETURN {}"
LOOP = "A a ; B+ b ; C c WHERE b[i].x > a.x"


def wanted() -> list[tuple[int, int, int]]:
    """The matches, by three loops."""
    return [
        (a[0], b[0], c[0])
        for a, b, c in combinations(ROWS, 3)
        if (a[1], b[1], c[1]) == ("A", "B", "C") and None not in (a[2], b[2], c[2]) and b[2] > a[2] <= c[2]
        and a[3] == b[3] == c[3] and c[0] - a[0] <= SPAN
    ]  # fmt: skip


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    own = sparks.taught(spark)
    sparks.view(own, "in_order", ROWS, "ts BIGINT, type STRING, x INT, k INT")
    own.sql("SELECT timestamp_seconds(ts) AS ts, type, x, k FROM in_order").createOrReplaceTempView("timed")
    return own


def test_rows_counts_and_groups(session: SparkSession) -> None:
    matches = wanted()
    assert len(matches) > 20
    text = PATTERN.format("in_order", SPAN, "a.ts AS a, b.ts AS b, c.ts AS c")
    assert "run by: runs in order" in cersql.explain(session, text, stage="physical")
    assert sorted(map(tuple, session.sql(text).collect())) == sorted(matches)
    assert session.sql(f"SELECT count(*) AS n FROM ({text})").first() == (len(matches),)
    assert session.sql(text + " LIMIT 5").count() == 5
    for by, column in (("a.x", 0), ("match_start", None), ("c.x", 2)):
        grouped = PATTERN.format("in_order", SPAN, f"{by} AS g, COUNT(*) AS n, SUM(b.ts) AS s GROUP BY {by}")
        found = {row[0]: (row[1], row[2]) for row in session.sql(grouped).collect()}
        key = [match[0] if column is None else ROWS[match[column]][2] for match in matches]
        sums = Counter[int | None]()
        for own, match in zip(key, matches, strict=True):
            sums[own] += match[1]
        assert found == {own: (n, sums[own]) for own, n in Counter(key).items()}


def test_on_a_stream(session: SparkSession) -> None:
    text = PATTERN.format("timed", f"{SPAN} SECONDS", "a.ts AS a, b.ts AS b, c.ts AS c")
    replayed = cersql.replay(session, "timed", text.removeprefix("FROM timed "), batches=3)
    assert replayed.same, str(replayed)
    assert replayed.matches == len(wanted())


def test_groups_of_loops_are_summed_up_as_they_are_listed(session: SparkSession) -> None:
    """Runs that take events of one stretch, of the next, or of both are one node, which sums know as well."""
    loop = PATTERN.replace(SEQUENCE, LOOP).format("in_order", 30, "{}")
    listed = session.sql(loop.format("a.x AS g, SUM(b.ts) AS s, COUNT(b) AS n, MAX(b.ts) AS m")).collect()
    assert len(listed) > 100
    found = {row[0]: tuple(row[1:]) for row in session.sql(
        loop.format("a.x AS g, COUNT(*) AS n, SUM(b.ts) AS s, COUNT(b) AS all, MAX(b.ts) AS m GROUP BY a.x")
    ).collect()}  # fmt: skip
    of_group: dict[int, list[tuple[int, ...]]] = {}
    for group, *numbers in listed:
        of_group.setdefault(group, []).append(tuple(numbers))
    assert found == {
        group: (len(own), sum(s for s, _, _ in own), sum(n for _, n, _ in own), max(m for _, _, m in own))
        for group, own in of_group.items()
    }
