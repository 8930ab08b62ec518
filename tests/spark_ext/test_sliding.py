"""WITHIN … SLIDE, and WINDOW in GROUP BY: each window is a stream of its own; the papers' queries."""

from __future__ import annotations

import datetime
import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import pytest
import sparks
from pyspark.sql import SparkSession

SIZE, SLIDE = 7, 3


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> Iterator[SparkSession]:
    found = sparks.taught(spark)
    chance = random.Random(5)
    rows, now = [], -12
    for i in range(26):
        now += chance.choice((0, 1, 1, 2))
        rows.append((i, now, chance.choice("uv"), chance.choice("AABBC"), chance.randint(0, 9)))
    sparks.view(found, "ev", rows, "id INT, ts INT, k STRING, type STRING, x INT")
    with sparks.settings(found, spark__sql__shuffle__partitions=2):
        yield found


def windows(begin: int, end: int, size: int = SIZE, slide: int = SLIDE) -> list[int]:
    """The windows that hold both times, by where they begin; all windows near are tried."""
    near = range((begin - size) // slide - 1, end // slide + 2)
    return [k * slide for k in near if k * slide <= begin and end < k * slide + size]


@pytest.mark.breadth(1)
@pytest.mark.parametrize(("size", "slide"), [(7, 3), (7, 7), (4, 9), (9, 1)])
def test_each_match_is_in_the_windows_that_hold_it(session, size, slide):
    pattern = "FROM ev PATTERN A a ; B+ b PARTITION BY k ORDER BY ts, id "
    matches = session.sql(pattern + "RETURN k, match_start AS s, match_end AS e, b.x AS xs, a.x AS ax").collect()
    wanted: dict[Any, list[Any]] = defaultdict(list)
    for row in matches:
        for begin in windows(row.s, row.e, size, slide):
            wanted[row.k, row.ax, begin].append(row.xs)
    expected = {key: (len(held), sum(map(sum, held)), max(map(max, held))) for key, held in wanted.items()}
    items = "RETURN k, a.x, window.start AS w, window.end - window.start AS size, "
    items += "COUNT(*) AS n, SUM(b.x) AS s, MAX(b.x) AS m "
    for clauses in (
        f"WITHIN {size} SLIDE {slide} {items} GROUP BY k, a.x",
        f"{items} GROUP BY k, a.x, WINDOW {size} SLIDE {slide}",
        f"{items} WITHIN 100 GROUP BY WINDOW {size} SLIDE {slide}, ALL".replace(", ALL", ", k, a.x"),
    ):
        found = session.sql(pattern + clauses).collect()
        assert {(row.k, row.x, row.w): (row.n, row.s, row.m) for row in found} == expected
        assert {row["size"] for row in found} == {size}
    assert expected


@pytest.mark.breadth(1)
@pytest.mark.parametrize(
    "clauses",
    ["SEMANTICS NXT", "SEMANTICS MAX", "AFTER MATCH SKIP PAST LAST ROW", "CONSUME BY PARTITION", "SEMANTICS STRICT",
     "SEMANTICS SKIP TILL NEXT MATCH"],
)  # fmt: skip
def test_windows_come_before_what_chooses(session, clauses):
    text = "PATTERN A a ; B+ b {} ORDER BY ts, id " + clauses + " RETURN {}"
    found = session.sql(f"FROM ev {text.format('WITHIN 7 SLIDE 3', 'window.start AS w, COUNT(*) AS n, SUM(b.x) AS s')}")
    wanted = {}
    for begin in range(-24, 30, 3):
        own = f"(SELECT * FROM ev WHERE ts >= {begin} AND ts < {begin + 7}) AS ev"
        held = session.sql(f"FROM {own} {text.format('', 'b.x AS xs')}").collect()
        if held:
            wanted[begin] = len(held), sum(sum(row.xs) for row in held)
    assert {row.w: (row.n, row.s) for row in found.collect()} == wanted


@pytest.mark.exhaustive
def test_an_absence_ends_with_the_window(session):
    text = "PATTERN SEQ(A a, B b, !C) {} PARTITION BY k ORDER BY ts, id RETURN {}"
    found = session.sql(f"FROM ev {text.format('WITHIN 7 SLIDE 3', 'window.start AS w, COUNT(*) AS n')}").collect()
    wanted = {}
    for begin in range(-24, 30, 3):
        own = f"(SELECT * FROM ev WHERE ts >= {begin} AND ts < {begin + 7}) AS ev"
        n = session.sql(f"FROM {own} {text.format('WITHIN 100', 'k')}").count()
        if n:
            wanted[begin] = n
    assert {row.w: row.n for row in found} == wanted


@pytest.mark.parametrize("type", ["TIMESTAMP", "TIMESTAMP_NTZ", "DATE", "BIGINT", "TINYINT"])
def test_clocks(session, type):
    """Windows begin where those of Spark's window() do, in any zone."""
    unit = {"DATE": "DAYS", "BIGINT": "", "TINYINT": ""}.get(type, "HOURS")
    base = {"DATE": "date_add(DATE'1969-12-28', ts)", "BIGINT": "CAST(ts AS BIGINT)", "TINYINT": "CAST(ts AS TINYINT)"}
    time = base.get(type, f"CAST(timestamp_ntz'2024-03-30 20:00:00' + make_dt_interval(0, ts) AS {type})")
    with sparks.settings(session, spark__sql__session__timeZone="Europe/Berlin"):
        session.sql(f"SELECT *, {time} AS at FROM ev").createOrReplaceTempView("clocked")
        found = session.sql(f"FROM clocked PATTERN B b ORDER BY at WITHIN 7 {unit} SLIDE 3 {unit} "
                            "RETURN window.start AS s, window.end AS e, COUNT(*) AS n")  # fmt: skip
        if unit == "HOURS":
            theirs = session.sql("SELECT w.start AS s, w.end AS e, count(*) AS n FROM (SELECT window(at, '7 hours', "
                                 "'3 hours') AS w FROM clocked WHERE type = 'B') GROUP BY w")  # fmt: skip
            assert found.dtypes[:2] == theirs.dtypes[:2]
            assert Counter(map(tuple, found.collect())) == Counter(map(tuple, theirs.collect()))
            return
        wanted: Counter[int] = Counter()
        for row in session.table("ev").where("type = 'B'").collect():
            wanted.update(windows(row.ts - 4, row.ts - 4) if type == "DATE" else windows(row.ts, row.ts))
        day = datetime.date(1970, 1, 1)
        got = {(row.s - day).days if type == "DATE" else row.s: int(row.n) for row in found.collect()}
        assert got == dict(wanted)


def test_a_null_time_is_found(session):
    session.sql("SELECT * FROM ev UNION ALL SELECT 99, NULL, 'u', 'A', 1").createOrReplaceTempView("holes")
    with pytest.raises(Exception, match="NULL_TIME"):
        session.sql("FROM holes PATTERN A a ORDER BY ts WITHIN 7 SLIDE 3 RETURN COUNT(*)").collect()


# ---------------------------------------------------------------- the papers' queries


def test_hamlet_q3(session):
    """[ACEL] Example 14, with the clauses that its authors leave out."""
    rows = [
        (0, "Request", "d1", "r1", None), (60, "Travel", "d1", "r1", 5), (120, "Travel", "d1", "r1", 7),
        (150, "Travel", "d2", "r1", 9), (180, "Cancel", "d1", "r1", None),
    ]  # fmt: skip
    sparks.view(session, "trips", rows, "s INT, type STRING, driver STRING, rider STRING, duration INT")
    session.sql("SELECT *, timestamp_seconds(s) AS ts FROM trips").createOrReplaceTempView("rides")
    text = (
        "RETURN COUNT(*), SUM(T.duration) FROM rides PATTERN SEQ(Request R, Travel T+, Cancel C) "
        "WHERE [driver, rider] GROUP-BY driver WITHIN 10 MINUTES SLIDE 5 MINUTES ORDER BY ts"
    )
    assert [tuple(row) for row in session.sql(text).collect()] == [(3, 24)] * 2  # from 23:55 and from 00:00
    plain = text.replace("GROUP-BY driver WITHIN 10 MINUTES SLIDE 5 MINUTES", "GROUP BY driver")
    assert [tuple(row) for row in session.sql(plain).collect()] == [(3, 24)]


def test_cogra_q1(session):
    """[ACEL] Example 15, with the window of 10 minutes that slides every 30 seconds, and 'passive' in quotes."""
    rates = [60, 61, 63, 62, 65]
    rows = [(30 * n, "Measurement", "p", "passive", rate) for n, rate in enumerate(rates)]
    sparks.view(session, "raw", rows, "s INT, type STRING, patient STRING, activity STRING, rate INT")
    session.sql("SELECT *, timestamp_seconds(s) AS ts FROM raw").createOrReplaceTempView("hearts")
    found = session.sql(
        "RETURN patient, window.start AS w, COUNT(*) AS n, MIN(M.rate), MAX(M.rate) FROM hearts PATTERN Measurement M+ "
        "SEMANTICS contiguous WHERE [patient] AND M.rate < NEXT(M).rate AND M.activity = 'passive' "
        "GROUP-BY patient WITHIN 10 minutes SLIDE 30 seconds ORDER BY ts"
    ).collect()
    runs = [(i, j) for i in range(5) for j in range(i, 5) if all(rates[k] < rates[k + 1] for k in range(i, j))]
    held: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for i, j in runs:
        for begin in windows(30 * i, 30 * j, 600, 30):
            held[begin].append((min(rates[i : j + 1]), max(rates[i : j + 1])))
    wanted = {begin: (len(own), min(a for a, _ in own), max(b for _, b in own)) for begin, own in held.items()}
    assert {int(row.w.timestamp()): tuple(row[2:]) for row in found} == wanted
