"""A new high, a change, a cooldown, chains of equalities and self-joins through spark.sql: as plain Spark has them."""

from __future__ import annotations

import random

import pytest
import sparks
from pyspark.sql import SparkSession

import cersql

ROWS = 240


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    """A session with `highs`: ties in time, NULLs, and few values, so that all of them repeat."""
    taught = sparks.taught(spark)
    chance, now, rows = random.Random(4), 0, []
    for id in range(ROWS):
        now += chance.choice((0, 1, 1, 5))
        v = chance.choice((1, 2, 3, 4, 5, 6, None))
        rows.append((id, chance.choice("AAB"), chance.randrange(2), v, chance.randrange(4), now))
    columns = "id INT, type STRING, k INT, v INT, u INT, t INT"
    frame = taught.createDataFrame(rows, columns).selectExpr("*", "timestamp_seconds(t) AS ts")
    frame.createOrReplaceTempView("highs")
    return taught


def ids(session: SparkSession, text: str) -> list[tuple[int, ...]]:
    return sorted(tuple(row) for row in session.sql(text).collect())


BEFORE = "struct(x.ts, x.id) < struct(g.ts, g.id) AND x.ts >= g.ts - INTERVAL 20 SECONDS"
ALONE = {
    "x.v >= g.v": "x.v >= g.v",
    "x.v > g.v": "x.v > g.v",
    "x.v < g.v": "x.v < g.v",
    "x.v = g.v": "x.v = g.v",
    "x.v <> g.v": "x.v <> g.v",
    "x.v >= g.v AND x.u < g.u": "x.v >= g.v AND x.u < g.u",
    "x.k = g.k AND x.v >= g.v": "x.k = g.k AND x.v >= g.v",
    "x.v >= g.u": "x.v >= g.u",
}


@pytest.mark.breadth(2)
@pytest.mark.parametrize("condition", ALONE)
def test_nothing_such_before(session: SparkSession, condition: str) -> None:
    found = ids(
        session, f"FROM highs PATTERN !ANY x ; ANY g WHERE {condition} ORDER BY ts, id WITHIN 20 SECONDS RETURN g.id"
    )
    sql = f"SELECT g.id FROM highs g WHERE NOT EXISTS (SELECT 1 FROM highs x WHERE {BEFORE} AND {ALONE[condition]})"
    assert found == ids(session, sql)
    assert 0 < len(found) < ROWS


@pytest.mark.parametrize("condition", ["x.v >= g.v", "x.v >= b.v", "x.v >= g.v AND x.u <= b.u"])
def test_nothing_such_before_a_longer_match(session: SparkSession, condition: str) -> None:
    text = f"""FROM highs PATTERN !ANY x ; A g ; B b WHERE {condition} PARTITION BY k ORDER BY ts, id
               WITHIN 20 SECONDS RETURN g.id AS g, b.id AS b"""
    window = "INTERVAL 20 SECONDS"
    sql = f"""SELECT g.id AS g, b.id AS b FROM highs g JOIN highs b ON g.type = 'A' AND b.type = 'B' AND g.k = b.k
              AND struct(g.ts, g.id) < struct(b.ts, b.id) AND b.ts <= g.ts + {window} WHERE NOT EXISTS (SELECT 1
              FROM highs x WHERE x.k = g.k AND struct(x.ts, x.id) < struct(g.ts, g.id) AND x.ts >= b.ts - {window}
              AND {condition})"""
    found = ids(session, text)
    assert found == ids(session, sql)
    assert found


def test_a_cooldown(session: SparkSession) -> None:
    text = """FROM highs PATTERN ANY a : ANY:* rest ORDER BY ts, id WITHIN < 20 SECONDS AFTER MATCH SKIP PAST LAST ROW
              RETURN a.id AS a, COUNT(rest) AS n"""
    rows = [tuple(row) for row in session.sql("SELECT id, t FROM highs ORDER BY t, id").collect()]
    expected: list[list[int]] = []
    for id, t in rows:
        if expected and t - expected[-1][1] < 20:
            expected[-1][2] += 1
        else:
            expected.append([id, t, 0])
    assert ids(session, text) == sorted((id, n) for id, _, n in expected)


@pytest.mark.exhaustive
def test_equalities_of_neighbours_and_of_one_type(session: SparkSession) -> None:
    order = "struct(a.ts, a.id) < struct(b.ts, b.id) AND struct(b.ts, b.id) < struct(c.ts, c.id)"
    text = """FROM highs PATTERN A AS a1 ; B AS b1 ; A AS a2 WHERE b1.v = a2.v AND a1.u = b1.u ORDER BY ts, id
              WITHIN 10 SECONDS RETURN a1.id AS a, b1.id AS b, a2.id AS c"""
    sql = f"""SELECT a.id AS a, b.id AS b, c.id AS c FROM highs a, highs b, highs c WHERE a.type = 'A' AND
              b.type = 'B' AND c.type = 'A' AND {order} AND c.ts <= a.ts + INTERVAL 10 SECONDS AND a.u = b.u
              AND b.v = c.v"""
    assert ids(session, text) == ids(session, sql)
    both = """FROM highs PATTERN ALL(A AS r1, A AS r2, B) WHERE r1.v = r2.v AND r2.v = B.v AND r1.u = B.u
              ORDER BY ts, id WITHIN 10 SECONDS RETURN r1.id AS a, r2.id AS b, B.id AS c"""
    joined = """SELECT a.id AS a, b.id AS b, c.id AS c FROM highs a, highs b, highs c WHERE a.type = 'A' AND
                b.type = 'A' AND c.type = 'B' AND a.v = b.v AND b.v = c.v AND a.u = c.u
                AND greatest(a.ts, b.ts, c.ts) <= least(a.ts, b.ts, c.ts) + INTERVAL 10 SECONDS"""
    assert ids(session, both) == ids(session, joined)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "pattern",
    [
        "!ANY x ; ANY g WHERE x.v >= g.v PARTITION BY k",
        "!ANY x ; A g ; B b WHERE x.v >= b.v",
        "ANY a : ANY:* rest AFTER MATCH SKIP PAST LAST ROW",
    ],
)
def test_a_stream_has_the_rows_of_the_batch(session: SparkSession, pattern: str) -> None:
    replayed = cersql.replay(
        session, "highs", f"PATTERN {pattern} ORDER BY ts, id WITHIN 20 SECONDS RETURN *", disorder=5.0, batches=2
    )
    assert replayed.same, str(replayed)
    assert replayed.matches > 0
