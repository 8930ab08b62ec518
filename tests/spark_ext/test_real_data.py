"""The counts that are known of real data. Data that is not in the repository is looked for beside it, else skipped."""

from __future__ import annotations

from pathlib import Path

import pytest
import sparks
from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
BESIDE = ROOT.parent / "shared" / "data"


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    return sparks.taught(spark)


def table(session: SparkSession, name: str, path: Path) -> None:
    """A CSV file as a view."""
    if not path.exists():
        pytest.skip(f"{path.name} is not there")
    session.read.csv(str(path), header=True, inferSchema=True).createOrReplaceTempView(name)


def test_flights_that_hand_their_delay_on(session: SparkSession) -> None:
    table(session, "flights", ROOT / "examples" / "flights" / "flights.csv")
    df = session.sql("""
        FROM flights
        PATTERN a : b
        DEFINE a AS arr_delay_min > 60, b AS dep_delay_min > 60
        PARTITION BY tailnum
        ORDER BY sched_dep_utc, row_id
        WITHIN 12 HOURS
        RETURN a.row_id AS first, b.row_id AS second
    """)
    assert df.count() == 231
    assert df.distinct().count() == 231


def test_permits_that_are_checked_twice(session: SparkSession) -> None:
    table(session, "permits", BESIDE / "permits-2011" / "events.csv")
    df = session.sql("""
        FROM permits TYPE activity
        PATTERN `T02 Check confirmation of receipt` AS a
              : `T03 Adjust confirmation of receipt` AS b
              : `T02 Check confirmation of receipt` AS c
        PARTITION BY case_id
        ORDER BY ts_utc
        RETURN *
    """)
    assert df.count() == 41


def test_permits_that_are_not_confirmed_in_a_week(session: SparkSession) -> None:
    table(session, "permits", BESIDE / "permits-2011" / "events.csv")
    df = session.sql("""
        FROM permits TYPE activity
        PATTERN `Confirmation of receipt` AS received ; !`T05 Print and send confirmation of receipt`
        PARTITION BY case_id
        ORDER BY ts_utc
        WITHIN 7 DAYS
        RETURN case_id
    """)
    assert df.count() == 293
    assert df.distinct().count() == 293


def test_permits_that_one_pair_of_eyes_has_seen(session: SparkSession) -> None:
    table(session, "permits", BESIDE / "permits-2011" / "events.csv")
    df = session.sql("""
        FROM permits
        DEFINE Check AS activity LIKE 'T02 Check %', Determine AS activity LIKE 'T04 Determine %'
        PATTERN Check c ; Determine d
        PARTITION BY case_id, resource
        ORDER BY ts_utc
        RETURN c.row_id AS checked, d.row_id AS determined
    """)
    assert df.count() == 1064


def test_runs_of_cancelled_flights(session: SparkSession) -> None:
    table(session, "flights", ROOT / "examples" / "flights" / "flights.csv")
    rows = session.sql("""
        FROM flights
        DEFINE c AS dep_utc IS NULL
        PATTERN c:{3,} AS run
        PARTITION BY origin
        ORDER BY sched_dep_utc, row_id
        AFTER MATCH SKIP PAST LAST ROW
        RETURN origin, run.row_id AS cancelled
    """).collect()
    assert len(rows) == 32
    cancelled = [row for run in rows for row in run.cancelled]
    assert len(cancelled) == len(set(cancelled))
    assert min(len(run.cancelled) for run in rows) >= 3


def test_rain_before_humid_air(session: SparkSession) -> None:
    table(session, "readings", BESIDE / "hydrology-2019-09" / "readings.csv")
    pattern = "PATTERN Rainfall r ; RelativeAirHumidity h WHERE r.value > 0 AND h.value > 95"
    by_key = session.sql(
        f"FROM readings {pattern} PARTITION BY site ORDER BY ts, id WITHIN 30 MINUTES RETURN r.id AS r, h.id AS h"
    )
    assert by_key.count() == 8
    agreeing = session.sql(
        f"FROM readings {pattern} ORDER BY ts, id WITHIN 30 MINUTES "
        "RETURN r.site AS rs, h.site AS hs, r.id AS r, h.id AS h"
    )
    assert sorted(map(tuple, agreeing.where("rs = hs").select("r", "h").collect())) == sorted(
        map(tuple, by_key.collect())
    )
    where = "WHERE r.value > 0 AND h.value > 95 PARTITION BY site ORDER BY ts, id WITHIN 30 MINUTES"
    first = session.sql(
        f"FROM readings PATTERN Rainfall r ; RelativeAirHumidity h {where} SEMANTICS SKIP TILL NEXT MATCH RETURN r.id"
    )
    none = session.sql(f"FROM readings PATTERN Rainfall r ; !RelativeAirHumidity h {where} RETURN r.id")
    assert (first.count(), none.count()) == (4, 13)
    assert first.intersect(none).count() == 0


def test_five_failed_passwords_in_a_minute(session: SparkSession) -> None:
    table(session, "logins", BESIDE / "ssh-logins" / "events.csv")
    df = session.sql("""
        FROM (SELECT * FROM logins WHERE type = 'failed_password') AS failed
        PATTERN failed_password a : failed_password b : failed_password c : failed_password d : failed_password e
        PARTITION BY source
        ORDER BY ts, row_id
        WITHIN 60 SECONDS
        RETURN source, a.row_id AS first, e.row_id AS last, match_start, match_end
    """)
    assert df.count() == 439
    assert df.where("unix_timestamp(match_end) - unix_timestamp(match_start) > 60").count() == 0


def test_attempts_that_share_no_failed_password(session: SparkSession) -> None:
    table(session, "logins", BESIDE / "ssh-logins" / "events.csv")
    text = """
        FROM (SELECT * FROM logins WHERE type = 'failed_password') AS failed
        PATTERN failed_password:{{5}} AS attempt
        PARTITION BY source
        ORDER BY ts, row_id
        WITHIN 60 SECONDS
        {}
        RETURN source, attempt.row_id AS failures
    """
    skipping = session.sql(text.format("AFTER MATCH SKIP PAST LAST ROW")).collect()
    assert len(skipping) == 95
    assert len({row for attempt in skipping for row in attempt.failures}) == 5 * 95
    assert len({attempt.source for attempt in skipping}) == 9
    assert sorted(session.sql(text.format("CONSUME BY PARTITION")).collect()) == sorted(skipping)


def test_invalid_users_whose_password_fails_soon(session: SparkSession) -> None:
    table(session, "logins", BESIDE / "ssh-logins" / "events.csv")
    clauses = "PARTITION BY pid ORDER BY ts, row_id WITHIN 10 SECONDS"
    failing = session.sql(
        f"FROM logins PATTERN invalid_user i ; failed_password f {clauses} "
        "SEMANTICS SKIP TILL NEXT MATCH RETURN i.row_id AS invalid, f.row_id AS failed"
    )
    assert failing.count() == 110
    assert failing.select("invalid").distinct().count() == 110
    others = session.sql(f"FROM logins PATTERN invalid_user i ; !failed_password {clauses} RETURN i.row_id")
    assert others.count() == 3


def test_no_failure_comes_before_the_login(session: SparkSession) -> None:
    table(session, "logins", BESIDE / "ssh-logins" / "events.csv")
    rows = session.sql("""
        FROM logins
        PATTERN !failed_password ; accepted_password a
        PARTITION BY source
        ORDER BY ts, row_id
        WITHIN 1 DAY
        RETURN a.row_id AS row
    """).collect()
    assert [row.row for row in rows] == [956]


def test_delays_that_grow_from_leg_to_leg(session: SparkSession) -> None:
    table(session, "flights", ROOT / "examples" / "flights" / "flights.csv")
    df = session.sql("""
        FROM flights
        PATTERN a : b : c
        DEFINE a AS dep_delay_min > 0
        WHERE a.dep_delay_min < b.dep_delay_min AND b.dep_delay_min < c.dep_delay_min
        PARTITION BY tailnum
        ORDER BY sched_dep_utc, row_id
        WITHIN 24 HOURS
        RETURN a.row_id AS a, b.row_id AS b, c.row_id AS c
    """)
    assert df.count() == 112
    assert df.distinct().count() == 112


def test_permits_that_one_resource_has_seen(session: SparkSession) -> None:
    table(session, "permits", BESIDE / "permits-2011" / "events.csv")
    df = session.sql("""
        FROM permits
        DEFINE Check AS activity LIKE 'T02 Check %', Determine AS activity LIKE 'T04 Determine %'
        PATTERN Check c ; Determine d
        WHERE c.resource = d.resource
        PARTITION BY case_id
        ORDER BY ts_utc
        RETURN c.row_id AS checked, d.row_id AS determined
    """)
    assert df.count() == 1064


def test_air_that_grows_warmer(session: SparkSession) -> None:
    table(session, "readings", BESIDE / "hydrology-2019-09" / "readings.csv")
    rows = session.sql("""
        FROM (SELECT * FROM readings WHERE type = 'AirTemperature') AS t
        PATTERN t:{6,} AS run
        WHERE INCREASING(run.value)
        PARTITION BY site
        ORDER BY ts, id
        AFTER MATCH SKIP PAST LAST ROW
        RETURN site, run.value AS values
    """).collect()
    assert len(rows) == 117
    assert all(len(row["values"]) >= 6 and row["values"] == sorted(set(row["values"])) for row in rows)
