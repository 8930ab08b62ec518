"""Rows that come too late: exactly those that a pattern stream drops, in a table of their own; or any stream's."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import sparks
from pyspark.errors import ParseException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

import cersql
from runtime.stream.task import NEVER
from spark_ext import arrivals, streams
from spark_ext.errors import SparkError
from spark_ext.stream_worker import ROWS, LateBucket
from spark_ext.two_tables import TwoTables, together

PATTERN = "PATTERN A a ; B b PARTITION BY k ORDER BY ts WITHIN 20 SECONDS"
COLUMNS = ["id", "ts", "k", "type", "extra"]


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    session = sparks.taught(spark)
    session.conf.set("cersql.stream.buckets", "2")
    table = session.range(300).selectExpr(
        "id", "timestamp_seconds(1000 + id DIV 2) AS ts", "id % 5 AS k",
        "substr('ABX', CAST(1 + id % 3 AS INT), 1) AS type", "map('x', id) AS extra",
    )  # fmt: skip
    sparks.view(session, "events", [tuple(row) for row in table.collect()], table.schema)
    return session


def live(session: SparkSession, folder: Path, late: float = 0.0) -> DataFrame:
    """The events as a stream; some of them a minute late."""
    df = session.table("events")
    if late:
        arrivals.write(df, "ts", folder, 3, arrivals.Disorder(5.0, 0, late, 60.0), ended=True)
    return arrivals.read(session, df.schema, folder).withWatermark("ts", "5 seconds")


def test_late_rows_in_a_table_of_their_own(session: SparkSession, tmp_path: Path) -> None:
    """The matches are those of the rows that are not late; a second start finds nothing more to do."""
    live(session, tmp_path / "rows", late=0.1).createOrReplaceTempView("live")
    start = (
        f"START PATTERN STREAM parted AS FROM live {PATTERN} RETURN k, a.id AS a, b.id AS b INTO TABLE parted_found "
        f"CHECKPOINT '{tmp_path / 'c'}' WITH LATE ROWS INTO TABLE parted_late TRIGGER AVAILABLE NOW"
    )
    for late in (None, "0"):
        session.sql(start)
        assert streams._streams["parted"].query.awaitTermination(240)
        (row,) = [row for row in session.sql("SHOW PATTERN STREAMS").collect() if row.name == "parted"]
        session.sql("STOP PATTERN STREAM parted")
        table = session.table("parted_late")
        found = table.collect()
        assert (row.status, table.columns) == ("finished", COLUMNS)
        assert int(row.late) == (len(found) if late is None else 0)
        assert row.events == ("301" if late is None else "0")
        ids = [event.id for event in found]
        assert 0 < len(ids) == len(set(ids)) < 40
        assert {event.type for event in found} == {"A", "B"}, "no X is an event of the pattern"
        assert all(event.extra == {"x": event.id} for event in found)
        kept = session.table("events").where(~fn.col("id").isin(ids))
        want = cersql.match(kept, f"{PATTERN} RETURN k, a.id AS a, b.id AS b").collect()
        assert len(want) > 50
        assert sorted(map(tuple, session.table("parted_found").collect())) == sorted(map(tuple, want))
    anew = start.replace("parted_found", "parted_anew").replace(str(tmp_path / "c"), str(tmp_path / "anew"))
    with pytest.raises(ParseException, match=r"CHECKPOINT_BEHIND.*parted_late"):
        session.sql(anew)


def test_a_micro_batch_that_is_written_again_is_there_once(session: SparkSession) -> None:
    """As after a restart, be it that none, one or both tables had been written."""
    matches, late = session.range(3).selectExpr("id AS a", "'x' AS `odd name`"), session.range(5, 7).toDF("late_id")
    tables = TwoTables(session, "again_found", "again_late", "test")
    tables.make(matches, late)
    assert session.table("again_found").count() == session.table("again_late").count() == 0
    rows = together(matches, late)
    tables._append(matches, "again_found", 0)
    for _ in range(2):
        tables.write(rows, 0)
        assert sorted(row.a for row in session.table("again_found").collect()) == [0, 1, 2]
        assert sorted(row.late_id for row in session.table("again_late").collect()) == [5, 6]
    tables.write(rows.limit(0), 1)
    tables.write(rows, 2)
    assert (session.table("again_found").count(), session.table("again_late").count()) == (6, 4)


def test_a_pattern_stream_of_other_sql_has_no_late_rows(session: SparkSession, tmp_path: Path) -> None:
    live(session, tmp_path).createOrReplaceTempView("live_around")
    with pytest.raises(ParseException) as caught:
        session.sql(
            f"START PATTERN STREAM around AS SELECT k, a FROM (FROM live_around {PATTERN} RETURN k, a.id AS a) "
            f"INTO TABLE around WITH LATE ROWS INTO TABLE late_around"
        )
    assert "LATE_OF_WHAT" in str(caught.value)


QUERIES = {
    "windows": f"{PATTERN.replace('WITHIN 20', 'WITHIN 20 SECONDS SLIDE 10')} RETURN window, k, COUNT(*) GROUP BY k",
    "copies": "PATTERN A a ; B b WHERE a.id = b.k ORDER BY ts WITHIN 20 SECONDS RETURN a.id AS a",
    "expressions": "PATTERN A a ; B b PARTITION BY k % 2 AS odd ORDER BY ts WITHIN 20 SECONDS RETURN odd",
}


@pytest.mark.parametrize("name", QUERIES)
def test_late_rows_have_the_columns_of_their_source(session: SparkSession, tmp_path: Path, name: str) -> None:
    late = cersql.late(cersql.match(live(session, tmp_path), QUERIES[name]))
    assert (late.isStreaming, late.columns) == (True, COLUMNS)


def test_late_rows_of_several_streams(session: SparkSession, tmp_path: Path) -> None:
    for name in ("first", "second"):
        live(session, tmp_path / name).withColumn(name, fn.lit(1)).createOrReplaceTempView(name)
    text = "FROM first AS A, second AS B PATTERN A a ; B b ORDER BY ts WITHIN 20 SECONDS RETURN a.id AS a"
    late = cersql.late(cersql.sql(session, text))
    assert sorted(late.columns) == sorted([*COLUMNS, "first", "second"])


def test_what_has_no_late_rows(session: SparkSession, tmp_path: Path) -> None:
    plain = arrivals.read(session, session.table("events").schema, tmp_path)
    for df, problem in ((session.table("events"), "is no stream"), (plain, "has 0 columns with a watermark")):
        with pytest.raises(SparkError) as caught:
            cersql.late(df)
        assert (caught.value.condition, problem in str(caught.value)) == ("LATE_ROWS", True)
    table = cersql.match(session.table("events"), f"{PATTERN} RETURN a.id AS a")
    with pytest.raises(SparkError) as caught:
        cersql.late(table)
    assert caught.value.condition == "LATE_ROWS"


def at(second: int) -> datetime:
    return datetime(2024, 1, 1, 0, 0, second)


def test_the_operator_gives_what_is_at_or_before_the_watermark() -> None:
    times = pa.array([at(3), at(5), None, at(6)], pa.timestamp("us"))
    rows = pa.table({"slab": pa.array([0, 0, 0, 0], pa.int32()), "id": [1, 2, 3, 4], "ts": times})
    watermark = int(times.cast(pa.int64())[1].as_py())

    def late(watermark: int) -> list[Any]:
        frames = LateBucket("slab", "ts")._run(0, [rows], watermark)
        tables = [pa.ipc.open_stream(blob).read_all() for frame in frames for blob in frame[ROWS]]
        return [row for table in tables for row in table.to_pylist()]

    assert late(watermark) == [{"id": 1, "ts": at(3)}, {"id": 2, "ts": at(5)}]
    assert late(watermark - 1) == [{"id": 1, "ts": at(3)}]
    assert late(NEVER) == []


@pytest.mark.exhaustive
def test_late_rows_of_any_stream(session: SparkSession, tmp_path: Path) -> None:
    late = cersql.late(live(session, tmp_path / "rows", late=0.1))
    running = (
        late.writeStream.format("memory").queryName("any_late").option("checkpointLocation", str(tmp_path / "c"))
        .trigger(availableNow=True).start()
    )  # fmt: skip
    assert running.awaitTermination(240)
    found = session.table("any_late").collect()
    assert {row.type for row in found} == {"A", "B", "X"}
    assert 0 < len(found) < 60


def test_tables_that_cannot_take_the_rows(session: SparkSession, tmp_path: Path) -> None:
    """Each is told before anything begins."""
    live(session, tmp_path / "rows", late=0.1).createOrReplaceTempView("live")
    session.range(1).createOrReplaceTempView("a_view")
    session.sql("CREATE TABLE IF NOT EXISTS odd_columns (k STRING, a STRING) USING parquet")
    start = (
        f"START PATTERN STREAM wrong AS FROM live {PATTERN} RETURN k, a.id AS a INTO TABLE {{}} "
        f"CHECKPOINT '{tmp_path / 'c'}' WITH LATE ROWS INTO TABLE {{}} TRIGGER AVAILABLE NOW"
    )
    for matches, late, says in (
        ("same_table", "default.SAME_TABLE", "the matches go there"),
        ("some_table", "a_view", "it is a view"),
        ("a_view", "some_table", "it is a view"),
        ("odd_columns", "some_table", "it has the columns k STRING, a STRING, and the rows have k BIGINT, a BIGINT"),
    ):
        with pytest.raises(ParseException, match="STREAM_TABLE") as caught:
            session.sql(start.format(matches, late))
        assert says in str(caught.value)
    assert not [row for row in session.sql("SHOW PATTERN STREAMS").collect() if row.name == "wrong"]
    assert not session.catalog.tableExists("same_table")
