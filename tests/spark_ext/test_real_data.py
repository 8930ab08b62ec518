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
