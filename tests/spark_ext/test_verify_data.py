"""Both plans on real data: the automaton is held to joins on tens of thousands of rows, where no oracle gets.

Data that is not in the repository is looked for beside it, else skipped; the benchmark's stream is made.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import sparks
from pyspark.sql import SparkSession

import cersql

ROOT = Path(__file__).parents[2]
BESIDE = ROOT.parent / "shared" / "data"
TABLES = {
    "flights": ROOT / "examples" / "flights" / "flights.csv",
    "permits": BESIDE / "permits-2011" / "events.csv",
    "logins": BESIDE / "ssh-logins" / "events.csv",
    "readings": BESIDE / "hydrology-2019-09" / "readings.csv",
}
LATE = "DEFINE Late AS dep_delay_min > 60, Very AS arr_delay_min > 120, Good AS arr_delay_min < 0"
BY_PLANE = "PARTITION BY tailnum ORDER BY sched_dep_utc, row_id WITHIN 12 HOURS"
FLIGHTS = [
    f"FROM flights {LATE} PATTERN Late a : Late b {BY_PLANE} RETURN a.row_id, b.row_id, match_start, match_end",
    f"FROM flights {LATE} PATTERN Late a ; !Good ; Very b {BY_PLANE} RETURN a.row_id, b.row_id",
    f"FROM flights {LATE} PATTERN Late a ; Late{{1,2}} b ; Very c WHERE a.dep_delay_min < c.dep_delay_min {BY_PLANE} "
    "RETURN a.row_id, b.row_id, c.row_id, SUM(b.dep_delay_min)",
    f"FROM flights {LATE} PATTERN Very a ; Late b ; !Good {BY_PLANE} SEMANTICS LAST RETURN a.row_id, b.row_id",
    f"FROM flights {LATE} PATTERN (Very a ALL Late b) UNLESS Good WHERE a.origin <> b.origin {BY_PLANE} "
    "RETURN a.origin, COUNT(*), MAX(b.dep_delay_min) GROUP BY a.origin",
    f"FROM flights {LATE} PATTERN Late a ; Very b WHERE a.origin = b.origin ORDER BY sched_dep_utc, row_id "
    "WITHIN 20 MINUTES RETURN a.row_id, b.row_id",
]  # fmt: skip
CHECKS = "DEFINE Check AS activity LIKE 'T02 %', Adjust AS activity LIKE 'T03 %', Stop AS activity LIKE 'T10 %'"
PERMITS = [
    f"FROM permits {CHECKS} PATTERN Check a : Adjust b : Check c PARTITION BY case_id ORDER BY ts_utc, row_id "
    "RETURN a.row_id",
    f"FROM permits {CHECKS} PATTERN Check a ; Stop b WHERE a.resource <> b.resource PARTITION BY case_id "
    "ORDER BY ts_utc, row_id RETURN a.row_id, b.row_id",
    f"FROM permits {CHECKS} PATTERN Check c ; !Stop PARTITION BY case_id ORDER BY ts_utc, row_id WITHIN 7 DAYS "
    "RETURN c.row_id",
]
LOGINS = [
    "FROM logins PATTERN failed_password{3} f WHERE [source] ORDER BY ts, row_id WITHIN 20 SECONDS RETURN f.row_id",
    "FROM logins PATTERN invalid_user u ; !disconnect ; failed_password f PARTITION BY pid ORDER BY ts, row_id "
    "WITHIN 1 MINUTE RETURN u.row_id, f.row_id",
]
READINGS = [
    "FROM readings PATTERN AirTemperature a ; AirTemperature b WHERE b.value > a.value + 1 PARTITION BY site "
    "ORDER BY ts, id WITHIN 30 MINUTES SEMANTICS NXT RETURN a.id, b.id",
    "FROM readings PATTERN WindSpeed a ; !AirTemperature ; WindSpeed b PARTITION BY site ORDER BY ts, id WITHIN 1 HOUR "
    "RETURN a.id, b.id",
]
EVENTS = [
    "FROM events PATTERN A a ; B b WHERE a.price > 95 AND b.price > a.price PARTITION BY key ORDER BY ts "
    "WITHIN 1 MINUTE RETURN a.id, b.id",
    "FROM events PATTERN A a ; !C c ; B b WHERE a.price > 99 AND c.volume = a.volume PARTITION BY key ORDER BY ts "
    "WITHIN 10 MINUTES RETURN a.id, b.id",
    "FROM events PATTERN A a ; B b ; C c WHERE a.price > 80 AND b.price > 80 AND c.price > 80 ORDER BY ts "
    "WITHIN 100 MILLISECONDS RETURN a.id, b.id, c.id",
]


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    return sparks.taught(spark)


def verified(session: SparkSession, query: str) -> None:
    found = cersql.verify(session, query)
    assert found.same, f"{query}\n{found}"
    assert found.rows, query


def of(name: str, queries: list[str], usual: int) -> list[object]:
    return [
        pytest.param(name, query, id=f"{name} {i}", marks=[pytest.mark.exhaustive] if i >= usual else [])
        for i, query in enumerate(queries)
    ]


@pytest.mark.parametrize(
    ("name", "query"),
    [*of("flights", FLIGHTS, 2), *of("permits", PERMITS, 1), *of("logins", LOGINS, 1), *of("readings", READINGS, 0)],
)
def test_a_table(session: SparkSession, name: str, query: str) -> None:
    if not TABLES[name].exists():
        pytest.skip(f"the table {name} is not there")
    session.read.csv(str(TABLES[name]), header=True, inferSchema=True).createOrReplaceTempView(name)
    verified(session, query)


@pytest.mark.exhaustive
@pytest.mark.parametrize("query", EVENTS)
def test_the_stream_of_the_benchmark(session: SparkSession, query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A million rows."""
    monkeypatch.syspath_prepend(ROOT / "tests" / "bench")
    from workload import stream

    assert "workload" in sys.modules
    session.read.parquet(str(stream(ROOT / ".bench", 1))).createOrReplaceTempView("events")
    verified(session, query)
