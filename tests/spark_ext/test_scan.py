"""Parquet files that tasks read by themselves: the same rows as through Spark, or a reason why not."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from scanned import N, table
from sparks import taught

from runtime.scan import footers
from spark_ext.peeking import first_values

pytestmark = pytest.mark.jvm


@pytest.fixture(scope="module")
def session(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    folder = tmp_path_factory.mktemp("scan")
    pq.write_table(table(1), folder / "one.parquet", row_group_size=37)
    (folder / "many").mkdir()
    whole = table(2)
    for k in range(5):
        part = whole.slice(k * 80, 80)
        pq.write_table(part, folder / "many" / f"{4 - k}.parquet", row_group_size=30, use_dictionary=k % 2 == 0)
    for day in ("2024-03-01", "2024-03-02", "__HIVE_DEFAULT_PARTITION__"):
        for n in (1, 20):
            part = folder / "parts" / f"d={day}" / f"k={n}" / f"s=a{n}"
            part.mkdir(parents=True)
            pq.write_table(table(n, n=60).drop_columns(["k"]), part / "x.parquet")
    pq.write_table(table(3, sort=False), folder / "unordered.parquet", row_group_size=20)
    pq.write_table(table(4).slice(0, 0), folder / "empty.parquet")
    names = {"ts": "ts", "id": "id", "text": "name", "whole": "number", "single": "share"}
    other = table(5).select(list(names)).rename_columns(list(names.values()))
    pq.write_table(other.set_column(1, "id", other["id"].cast(pa.int32())), folder / "other.parquet", row_group_size=50)
    own = taught(spark)
    own.conf.set("spark.default.parallelism", "3")
    for path in sorted(folder.iterdir()):
        own.read.parquet(str(path)).createOrReplaceTempView(path.stem)
    yield own
    own.conf.unset("cersql.scan")


def rows(session: SparkSession, text: str, way: str) -> list[tuple[Any, ...]]:
    session.conf.set("cersql.scan", way)
    try:
        return sorted((tuple(row) for row in session.sql(text).collect()), key=repr)
    finally:
        session.conf.set("cersql.scan", "auto")


def same(session: SparkSession, text: str) -> list[tuple[Any, ...]]:
    """The rows, which both ways give."""
    found = rows(session, text, "parquet")
    assert repr(found) == repr(rows(session, text, "spark"))
    return found


CONDITIONS = [
    "x.boolean", "NOT x.boolean", "x.boolean IS NULL", "x.boolean = FALSE OR x.byte > 0",
    *(f"x.{name} {op} 3" for name in ("byte", "short", "whole", "long") for op in ("=", "<>", "<", ">=", "<=>")),
    "x.whole BETWEEN -1 AND 3", "x.whole NOT BETWEEN 0 AND 3", "x.whole IN (0, 3)", "x.whole NOT IN (0, 3)",
    "x.whole < x.long", "x.byte = x.short", "x.whole = -2147483648", "x.long > 9007199254740992",
    *(f"x.{name} {op} 1.5" for name in ("single", "double") for op in ("=", "<>", "<", ">", "<=", ">=")),
    "x.double = 0", "x.double = DOUBLE('NaN')", "x.double > 80", "x.single = x.double", "x.single < x.double",
    "x.double <=> x.single", "x.double >= x.whole", "x.whole > 0.5", "NOT (x.double < 1.5 AND x.whole > 0)",
    *(f"x.text {op} 'a'" for op in ("=", "<>", "<", "<=", ">", ">=", "<=>")), "x.text IN ('a', 'ä', '')",
    "x.text LIKE 'a%'", "x.text LIKE '%b'", "x.text LIKE '%a%'", "x.text LIKE 'ab'", "x.text NOT LIKE 'a%'",
    "x.text = x.type", "x.text < x.type", "x.text IS NOT NULL", "x.text > '💧'", "x.text <=> NULL",
    "x.day = DATE'2024-02-29'", "x.day < DATE'2000-01-01'", "x.price = 1.5", "x.price < 0", "x.price > 1.50",
    "x.price IN (0, 99.99)", "x.at > TIMESTAMP'2024-03-01 00:00:00'", "x.at = TIMESTAMP'2024-03-01 00:00:00.000001'",
    "x.wall < TIMESTAMP_NTZ'2024-03-01 00:00:00'", "x.ts >= TIMESTAMP'2024-03-01 00:03:00'", "x.at = x.ts",
    "x.double * 1.1 > 3", "x.double / 2 <= x.double", "x.single + x.single > 1", "x.double - x.whole < 0.5",
    "x.short + 1 > 3", "x.short * 9 = 27", "x.whole % 3 = 1", "x.long % -3 = -2", "abs(x.double) > 1",
    "abs(x.double - x.single) < 2", "x.whole % 2 + 1 IN (1, 2)", "(x.double * 2) IS NULL", "x.whole / 4 >= 0.75",
    "(x.byte > 0 OR x.text = 'a') AND NOT (x.double > 1 OR x.boolean)", "x.k = 2 AND x.k IN (1, 2)",
]  # fmt: skip
LEFT_TO_SPARK = [
    "x.price + 1 > 3", "upper(x.text) = 'A'", "x.text LIKE 'a_'", "x.text LIKE 'a%b'", "round(x.double) > 1",
    "x.text RLIKE 'a+'", "hour(x.at) = 0", "coalesce(x.byte, 0) = 0", "x.text COLLATE UTF8_LCASE = 'A'",
]  # fmt: skip


@pytest.mark.breadth(1)
@pytest.mark.parametrize("begin", range(0, len(CONDITIONS), 12))
def test_conditions_mean_what_spark_means(session: SparkSession, begin: int) -> None:
    """Many at a time: each is a type of its own."""
    asked = CONDITIONS[begin : begin + 12]
    found = [same(session, f"FROM one PATTERN ANY x WHERE {sql} ORDER BY ts RETURN x.id") for sql in asked[:2]]
    types = ", ".join(f"T{i} AS {sql.replace('x.', '')}" for i, sql in enumerate(asked))
    either = " OR ".join(f"T{i} t{i}" for i in range(len(asked)))
    items = ", ".join(f"t{i}.id AS i{i}" for i in range(len(asked)))
    found.append(same(session, f"FROM one DEFINE {types} PATTERN {either} ORDER BY ts RETURN {items}"))
    assert any(found)


@pytest.mark.parametrize(
    "sql", [*LEFT_TO_SPARK[:2], *(pytest.param(sql, marks=pytest.mark.exhaustive) for sql in LEFT_TO_SPARK[2:])]
)
def test_what_is_left_to_spark(session: SparkSession, sql: str) -> None:
    text = f"FROM one PATTERN ANY x WHERE {sql} ORDER BY ts RETURN x.id"
    with pytest.raises(PySparkException, match="SCAN_REFUSED"):
        rows(session, text, "parquet")
    assert rows(session, text, "auto") == rows(session, text, "spark")


QUERIES = [
    "PATTERN A a ; B b ; C c WITHIN 20 SECONDS ORDER BY ts RETURN a.id AS i, b.id AS j, c.id AS k",
    "PATTERN A a ; B b WHERE a.whole > 0 AND b.double > 1 WITHIN 50 SECONDS ORDER BY ts RETURN *",
    "PATTERN A+ a ; B b WITHIN 8 SECONDS ORDER BY ts RETURN a, b.text, COUNT(a) AS n, match_start, match_end",
    "PATTERN A a ; B b WHERE b.long > a.long WITHIN 20 SECONDS ORDER BY ts RETURN a.id AS i, b.id AS j",
    "PATTERN A a ; B b WHERE b.text > a.text WITHIN 20 SECONDS ORDER BY ts RETURN a.id AS i, b.id AS j",
    "PATTERN A a ; B b WHERE [k] WITHIN 50 SECONDS ORDER BY ts RETURN a.id AS i, b.id AS j",
    "PATTERN A a ; B b PARTITION BY k WITHIN 60 SECONDS ORDER BY ts RETURN k, a.id AS i, b.id AS j",
    "PATTERN A a ; B b PARTITION BY text, day WITHIN 300 SECONDS ORDER BY ts, id RETURN text, a.id AS i, b.id AS j",
    "PATTERN A a : B b : C c ORDER BY ts, id RETURN a.id AS i, c.id AS k",
    "PATTERN A a : ANY b ORDER BY ts RETURN a.id AS i, b.id AS k",
    "PATTERN A a ; B b WITHIN 5 EVENTS ORDER BY ts, id RETURN a.id AS i, b.id AS k",
    "PATTERN A a ; B b ; C c SEMANTICS NXT WITHIN 30 SECONDS ORDER BY ts RETURN a.id AS i, b.id AS j, c.id AS k",
    "PATTERN SEQ(A a, !D d, B b) WITHIN 20 SECONDS ORDER BY ts RETURN a.id AS i, b.id AS j",
    "PATTERN A a ; B b WITHIN 20 SECONDS ORDER BY ts AFTER MATCH SKIP PAST LAST ROW RETURN a.id AS i, b.id AS j",
    "PATTERN A a ; B b WITHIN 20 SECONDS ORDER BY ts RETURN a.id AS i WITH TIMEOUTS",
    "PATTERN A a ; B b WITHIN 20 SECONDS CONSUME BY ANY PARTITION BY k ORDER BY ts RETURN k, a.id AS i, b.id AS j",
    "PATTERN D a ; C b ORDER BY ts RETURN a.id AS i, b.id AS j",
    "WHERE whole > 0 PATTERN A a : B b ORDER BY ts, id RETURN a.id AS i, b.id AS k",
    "DEFINE Hot AS double > 1, Cold AS double < 1 PATTERN Hot h ; Cold c WITHIN 3 SECONDS ORDER BY ts "
    "RETURN h.id AS i, c.id AS j",
]  # fmt: skip


@pytest.mark.breadth(5)
@pytest.mark.parametrize("source", ["many", pytest.param("one", marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("query", QUERIES)
def test_rows(session: SparkSession, source: str, query: str) -> None:
    found = same(session, f"FROM {source} {query}")
    counted = rows(session, f"SELECT count(*) FROM (FROM {source} {query})", "parquet")
    assert counted == [(len(found),)]


def test_aggregates_of_matches_that_begin_alike(session: SparkSession) -> None:
    """Of columns that are read when matches are there: their types are those of Spark."""
    sums = "SUM(b.whole), SUM(b.price), SUM(b.double), AVG(b.long), AVG(b.single)"
    pattern = "PATTERN A a ; B+ b ; C c WITHIN 9 SECONDS ORDER BY ts"
    assert same(session, f"FROM one {pattern} RETURN a.id, COUNT(*), COUNT(b.text), {sums}, MIN(b.day), MAX(b.at)")


SEVERAL = [
    "FROM one, many PATTERN one a ; many b WHERE a.whole > 0 AND b.double > 1 WITHIN 9 SECONDS ORDER BY ts "
    "RETURN *, a.id AS i, b.id AS j",
    "FROM one, many, other PATTERN other a ; many b WHERE a.number <= b.whole WITHIN 60 SECONDS ORDER BY ts "
    "RETURN a.id AS i, b.id AS j",
    "FROM one, other PATTERN one a : other b ORDER BY ts RETURN a.id AS i, b.id AS j, a, b",
    "FROM one, other PATTERN ANY x : ANY y ORDER BY ts RETURN x, y.number",
    "FROM other, one PATTERN one a ; other b WHERE a.long < b.number WITHIN 9 SECONDS ORDER BY ts RETURN *",
    "FROM other, one PATTERN one a ; other b PARTITION BY id WITHIN 90 SECONDS ORDER BY ts RETURN id, a, b.name",
    "FROM one TYPE type, other TYPE name PATTERN A a ; b b WITHIN 9 SECONDS ORDER BY ts RETURN *",
    "FROM (SELECT * FROM one WHERE whole > 0) AS p, parts PATTERN p a ; parts b WHERE b.s = 'a1' WITHIN 9 SECONDS "
    "ORDER BY ts RETURN a.id AS i, b.id AS j, b.d AS d",
    "FROM (SELECT ts, id, 'A' AS type FROM one UNION ALL SELECT ts, whole, text FROM many) AS u "
    "PATTERN A a ; b b WITHIN 2 SECONDS ORDER BY ts RETURN a.id AS i, b.id AS j, b.type AS t",
]  # fmt: skip


@pytest.mark.breadth(1)
@pytest.mark.parametrize("query", SEVERAL)
def test_several_sources(session: SparkSession, query: str) -> None:
    """Each with columns of its own, constants, and narrower numbers, merged by time in the task."""
    found = same(session, query)
    assert found
    assert rows(session, f"SELECT count(*) FROM ({query})", "parquet") == [(len(found),)]


def explained(session: SparkSession, text: str) -> str:
    (row,) = session.sql(f"EXPLAIN {text}").collect()
    return next(line for line in str(row[0]).splitlines() if line.startswith("scan: "))


PLAIN = "PATTERN A a ; B b WITHIN 20 SECONDS ORDER BY ts RETURN a.id AS i, b.id AS j"
SOURCES = [
    ("many", "scan: parquet"),
    ("(SELECT type, ts, n AS id FROM (SELECT *, CAST(whole AS BIGINT) AS n FROM many)) AS m", "scan: parquet"),
    ("(SELECT type, ts, id * 2 AS id FROM many) AS m", "id is computed"),
    ("(SELECT type, ts, id FROM many) AS m", "scan: parquet"),
    ("(SELECT type, ts, id FROM many WHERE whole > 0 AND text <> 'b') AS m", "scan: parquet"),
    ("(SELECT upper(type) AS type, ts, id FROM many) AS m", "scan: spark, since"),
    ("(SELECT text AS type, ts, long AS id FROM many WHERE text IN ('A')) AS m TYPE type", "scan: parquet"),
    ("(SELECT type, ts + INTERVAL 1 SECOND AS ts, id FROM many) AS m", "ts is computed"),
    ("(SELECT * FROM many UNION ALL SELECT * FROM one) AS m", "scan: parquet"),
    ("(SELECT * FROM many UNION ALL SELECT * FROM one ORDER BY id LIMIT 9) AS m", "scan: spark, since"),
    ("(SELECT type, ts, id FROM many UNION SELECT type, ts, id FROM one) AS m", "scan: spark, since"),
    ("(SELECT * FROM many LIMIT 50) AS m", "scan: spark, since"),
    ("(SELECT * FROM many ORDER BY id) AS m", "scan: spark"),
    ("(SELECT * FROM parts WHERE k = 1 AND s <> 'a20' AND d = DATE'2024-03-01') AS m", "of 1 files"),
    ("(SELECT * FROM parts WHERE (d IS NULL OR k = 1) AND whole > 0) AS m", "of 4 files"),
    ("parts", "of 6 files"),
    ("(SELECT * FROM VALUES (1, 'A', timestamp_seconds(1)) AS t(id, type, ts)) AS m", "but LocalRelation"),
    ("unordered", "scan: parquet"),  # as one task
    ("empty", "scan: parquet"),
]  # fmt: skip


@pytest.mark.breadth(5)
@pytest.mark.parametrize(("source", "told"), SOURCES)
def test_sources(session: SparkSession, source: str, told: str) -> None:
    text = f"FROM {source} {PLAIN}"
    assert told in explained(session, text)
    assert rows(session, text, "auto") == rows(session, text, "spark")


AROUND = [
    "1500-02-28 12:00:00", "1582-10-04 00:00:00", "1582-10-15 00:00:00", "1883-11-18 12:00:00",
    "1969-12-31 23:59:59.999999", "1970-01-01 00:00:00", "2024-03-31 00:59:59", "2024-03-31 01:00:00",
    "2024-10-27 00:30:00", "2024-10-27 01:30:00", "2024-10-27 01:30:00.5", "2261-01-01 00:00:00",
    "2300-01-01 00:00:00.000001", "9999-12-31 23:00:00",
]  # fmt: skip


def around(types: int = 2) -> pa.Table:
    """Instants at which clocks are changed, calendars differ, and what counts them in nanoseconds is full."""
    times = [datetime.fromisoformat(text).replace(tzinfo=UTC) for text in AROUND]
    return pa.table(
        {
            "id": pa.array(range(len(times)), pa.int64()),
            "type": ["AB"[k % types] for k in range(len(times))],
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
        }
    )


@pytest.mark.breadth(1)
@pytest.mark.parametrize("int96", [False, True])
@pytest.mark.parametrize("zone", ["Europe/London", "UTC", pytest.param("Asia/Kolkata", marks=pytest.mark.exhaustive)])
def test_zones_and_int96(session: SparkSession, tmp_path: Path, zone: str, int96: bool) -> None:
    """Of literals by the session's clock, of which one hour comes twice; in files by Spark and by Arrow."""
    session.conf.set("spark.sql.session.timeZone", zone)
    try:
        pq.write_table(around(), tmp_path / "a.parquet", row_group_size=4, use_deprecated_int96_timestamps=int96)
        path = tmp_path / "by_spark"
        kind = "INT96" if int96 else "TIMESTAMP_MICROS"
        session.conf.set("spark.sql.parquet.outputTimestampType", kind)
        session.read.parquet(str(tmp_path / "a.parquet")).coalesce(1).write.parquet(str(path))
        session.read.parquet(str(tmp_path / "a.parquet")).createOrReplaceTempView("by_arrow")
        session.read.parquet(str(path)).createOrReplaceTempView("by_spark")
        for source in ("by_arrow", "by_spark"):
            asked = []
            for text in [*AROUND, "2024-10-27 02:30:00", "2024-03-31 02:30:00"]:
                asked.append(f"ts <= TIMESTAMP'{text}'")
                asked.append(f"ts = TIMESTAMP'{text}'")
            types = ", ".join(f"T{i} AS {sql}" for i, sql in enumerate(asked))
            either = " OR ".join(f"T{i} t{i}" for i in range(len(asked)))
            items = ", ".join(f"t{i}.id AS i{i}, t{i}.ts AS t{i}" for i in range(len(asked)))
            same(session, f"FROM {source} DEFINE {types} PATTERN {either} ORDER BY ts RETURN {items}")
            twice = "timestamp_micros(1729989000000000), timestamp_micros(1729992600000000)"
            found = same(session, f"FROM {source} PATTERN ANY x WHERE x.ts IN ({twice}) ORDER BY ts RETURN x.id")
            assert found == [(8,), (9,)]
            for query in ("PATTERN A a ; B b WITHIN 1 HOURS", "PATTERN A a : B b"):
                assert same(session, f"FROM {source} {query} ORDER BY ts RETURN *, a.id AS i, b.id AS j")
    finally:
        session.conf.set("spark.sql.session.timeZone", "UTC")
        session.conf.unset("spark.sql.parquet.outputTimestampType")


@pytest.mark.exhaustive
def test_files_of_the_old_calendar(session: SparkSession, tmp_path: Path) -> None:
    """Spark's releases before 3.1 wrote INT96 in it, unless a file says otherwise."""
    for version, told in (("2.4.8", "has dates of the old calendar"), ("3.5.1", "scan: parquet")):
        dated = around().replace_schema_metadata({"org.apache.spark.version": version})
        pq.write_table(dated, tmp_path / f"{version}.parquet")
        session.read.parquet(str(tmp_path / f"{version}.parquet")).createOrReplaceTempView("dated")
        text = "FROM dated PATTERN A a : B b ORDER BY ts RETURN a.id"
        assert told in explained(session, text)
        assert rows(session, text, "auto") == rows(session, text, "spark")
    session.conf.set("spark.sql.parquet.int96RebaseModeInRead", "LEGACY")
    assert "int96RebaseModeInRead is set" in explained(session, text)
    session.conf.unset("spark.sql.parquet.int96RebaseModeInRead")


@pytest.mark.parametrize("key", ["double", "single"])
def test_keys_that_are_floats(session: SparkSession, key: str) -> None:
    """NaN is a key, and -0.0 is that of 0.0."""
    within = "WITHIN 60 SECONDS ORDER BY ts RETURN"
    found = same(session, f"FROM many PATTERN A a ; B b PARTITION BY {key} {within} {key}, a.id AS i, b.id AS j")
    assert {repr(row[0]) for row in found} >= {"nan", "0.0", "-0.0", "None"}
    assert same(session, f"FROM many PATTERN A a ; B b WHERE a.{key} = b.{key} {within} a.id AS i, b.id AS j")
    assert same(session, f"FROM many PATTERN A a ; B b WHERE [{key}] {within} a.id AS i, b.id AS j")


def test_the_first_types_are_read_here(session: SparkSession) -> None:
    """Without a job, and only what is a column of the files."""
    for name in ("one", "many", "empty"):
        frame = session.table(name)
        asked = [row[0] for row in frame.select("type").collect()]
        assert sorted(first_values(frame, "type", 1000) or [], key=repr) == sorted(asked, key=repr)
        assert len(first_values(frame, "type", 33) or []) == min(33, len(asked))
    assert first_values(session.sql("SELECT text AS type FROM one"), "type", 9) == first_values(
        session.table("one"), "text", 9
    )
    others = ["SELECT upper(type) AS type FROM one", "SELECT s AS type FROM parts", "SELECT long AS type FROM one",
              "SELECT type FROM one WHERE id > 3", "SELECT 'A' AS type FROM range(3)"]  # fmt: skip
    assert [first_values(session.sql(text), "type", 9) for text in others] == [None] * len(others)
    session.conf.set("cersql.scan", "spark")
    assert first_values(session.table("one"), "type", 9) is None
    session.conf.set("cersql.scan", "auto")


def test_paths_with_odd_letters(session: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "a folder, 100% ä"
    folder.mkdir()
    for k, name in enumerate(("b c", "d%20e", "f#?,; g", "{x}")):
        pq.write_table(table(8).slice(k * 100, 100), folder / f"{name}.parquet")
    session.read.parquet(str(folder)).createOrReplaceTempView("odd")
    assert same(session, f"FROM odd {PLAIN}")


def test_a_file_that_changes_after_planning(session: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(table(5), path)
    frame = session.read.parquet(str(path))
    frame.createOrReplaceTempView("changing")
    matches = session.sql(f"FROM changing {PLAIN}")
    assert matches.count()
    pq.write_table(table(6, n=50), path)
    with pytest.raises(PySparkException, match=r"\[SCAN_FILE\].*a.parquet cannot be read: it has changed"):
        matches.collect()
    os.unlink(path)
    with pytest.raises(PySparkException, match=r"(?s)\[SCAN_FILE\].*SET cersql.scan = spark"):
        matches.collect()


def test_a_broken_row_group(session: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "b.parquet"
    pq.write_table(table(5), path, row_group_size=100)
    data = bytearray(path.read_bytes())
    data[4:2000] = bytes(1996)
    path.write_bytes(bytes(data))
    session.read.schema(session.table("one").schema).parquet(str(path)).createOrReplaceTempView("broken")
    with pytest.raises(PySparkException, match=r"\[SCAN_FILE\].*b.parquet cannot be read"):
        session.sql(f"FROM broken {PLAIN}").collect()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda t: t.set_column(2, "ts", t["ts"].cast(pa.timestamp("ms", "UTC"))), "scan: parquet"),
        (lambda t: t.set_column(2, "ts", pc.if_else(pc.equal(t["id"], 3), None, t["ts"])), "ts is NULL somewhere"),
        (lambda t: t.set_column(1, "type", t["type"].cast(pa.large_string())), "type is large_string"),
        (lambda t: t.drop_columns(["type"]), "type is not there"),
        (lambda t: t.set_column(0, "id", t["id"].cast(pa.int32())), "id is int32"),
    ],
)  # fmt: skip
def test_files_that_are_otherwise(session: SparkSession, tmp_path: Path, change: Any, told: str) -> None:
    pq.write_table(change(table(7)), tmp_path / "c.parquet")
    schema = session.table("one").schema
    session.read.schema(schema).parquet(str(tmp_path)).createOrReplaceTempView("otherwise")
    assert told in explained(session, f"FROM otherwise {PLAIN}")


@pytest.mark.exhaustive
def test_what_is_nested(session: SparkSession, tmp_path: Path) -> None:
    """Fields of structs in conditions; arrays, maps and structs in RETURN, whether they may have NULLs or not."""
    session.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")  # INT96 is not converted there
    session.sql("""
        SELECT type, ts, id,
               IF(id % 5 = 0, NULL, named_struct('x', whole, 'in', named_struct('y', text, 'at', at))) AS s,
               array(1, 2) AS numbers, map('a', double) AS named, array(named_struct('q', 1)) AS more, whole AS y
        FROM one""").repartition(1).sortWithinPartitions("ts").write.parquet(str(tmp_path / "n"))
    session.conf.unset("spark.sql.parquet.outputTimestampType")
    session.read.parquet(str(tmp_path / "n")).createOrReplaceTempView("nested")
    within = "WITHIN 30 SECONDS ORDER BY ts, id RETURN"
    where = ["a.s.x > 0", "a.s.in.y IN ('a', 'ab')", "a.s.x IS NULL", "a.s.in.at = TIMESTAMP'2024-03-01 00:00:00'"]
    assert same(session, f"FROM nested PATTERN A a ; B b WHERE a.s.x > 0 AND b.s.in.y <> 'b' {within} a.*, b.s")
    for condition in where[2:]:
        assert same(session, f"FROM nested PATTERN A a ; B b WHERE {condition} {within} a.id")
    types = ", ".join(f"T{k} AS {sql.replace('a.s', 's')}" for k, sql in enumerate(where[:3]))
    either = " OR ".join(f"T{k} t{k}" for k in range(3))
    text = (
        f"FROM nested DEFINE {types} PATTERN {either} ORDER BY ts, id RETURN t0.id AS i, t1.s AS s, t2.numbers, t2.more"
    )
    assert same(session, text)
    refused = f"FROM nested PATTERN A a ; B b WHERE a.numbers[0] = 1 {within} a.id"
    assert "is left to Spark" in explained(session, refused)


def test_partition_columns(session: SparkSession) -> None:
    query = "PATTERN A a ; B b PARTITION BY k WITHIN 9 SECONDS ORDER BY ts, d, id RETURN k, a.d AS d, a.s AS s, b.*"
    assert same(session, f"FROM parts {query}")
    assert same(
        session, "FROM parts PATTERN A a ; B b WHERE a.k = 1 AND b.s = 'a20' WITHIN 9 SECONDS ORDER BY ts RETURN *"
    )


def test_row_groups_that_cannot_matter(session: SparkSession, tmp_path: Path) -> None:
    """By statistics: three of the four are left, of which one has what a match needs."""
    start = datetime(2024, 3, 1, tzinfo=UTC)
    times = pa.array([start + timedelta(seconds=s) for s in range(40)], pa.timestamp("us", "UTC"))
    types = ["C"] * 10 + ["A", "B"] * 10 + ["B"] * 10
    columns = {"ts": times, "type": types, "v": pa.array(range(40), pa.int32())}
    pq.write_table(pa.table(columns), tmp_path / "x.parquet", row_group_size=10)
    session.read.parquet(str(tmp_path)).createOrReplaceTempView("pruned")
    for clauses, groups in (("", 3), ("WHERE b.v < 15", 2), ("WHERE a.v > 19 AND b.v > 25", 2), ("WHERE a.v > 99", 3)):
        text = f"FROM pruned PATTERN A a ; B b {clauses} WITHIN 5 SECONDS ORDER BY ts RETURN a.v AS i, b.v AS j"
        assert f"scan: parquet, {groups} row groups" in explained(session, text)
        assert bool(same(session, text)) == ("99" not in clauses)
    text = "FROM pruned WHERE v % 2 = 0 OR v > 35 PATTERN B x : B y ORDER BY ts RETURN x.v AS i, y.v AS j"
    assert rows(session, text, "auto") == rows(session, text, "spark")
    text = "FROM pruned WHERE v < 12 OR v > 32 PATTERN B x : B y ORDER BY ts RETURN x.v AS i, y.v AS j"
    assert same(session, text)[0] == (11, 33)


def test_least_and_greatest_that_are_nan() -> None:
    """Old writers counted NaN; then nothing is known of the others."""
    nan = SimpleNamespace(has_min_max=True, has_null_count=True, null_count=0, min=float("nan"), max=float("nan"))
    assert footers._bounds(nan, pa.float64()) is None
    known = SimpleNamespace(has_min_max=True, has_null_count=True, null_count=0, min=-1.0, max=2.0)
    assert footers._bounds(known, pa.float64()) == (-1.0, 2.0, False, True)


def test_settings(session: SparkSession) -> None:
    assert rows(session, f"FROM many {PLAIN}", "auto")
    session.conf.set("spark.sql.files.ignoreCorruptFiles", "true")
    assert "ignoreCorruptFiles is set" in explained(session, f"FROM many {PLAIN}")
    session.conf.unset("spark.sql.files.ignoreCorruptFiles")
    session.conf.set("cersql.scan", "spark")
    assert explained(session, f"FROM many {PLAIN}") == "scan: spark, since cersql.scan = spark"
    with pytest.raises(PySparkException, match=r"\[SETTING\].*auto, parquet or spark"):
        rows(session, f"FROM many {PLAIN}", "arrow")
    keyed = "PATTERN A a ; B b PARTITION BY k ORDER BY ts RETURN a.id AS i"
    assert "the rows of a key must meet" in explained(session, f"FROM many {keyed}")


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(20))
def test_stretches_cut_nothing(session: SparkSession, tmp_path: Path, seed: int) -> None:
    """Files in any order, with any row groups, in any number of tasks."""
    random = np.random.default_rng(seed)
    whole = table(seed + 100)
    cuts = np.sort(random.integers(0, N, 3)).tolist()
    late = random.random() < 0.5
    for k, (begin, end) in enumerate(zip([0, *cuts], [*cuts, N], strict=True)):
        part = whole.slice(begin, max(0, end - begin))
        if late and len(part) > 10:
            part = part.take(pa.array(np.argsort(np.arange(len(part)) + random.integers(0, 9, len(part)))))
        pq.write_table(part, tmp_path / f"{k}.parquet", row_group_size=int(random.integers(5, 90)))
    session.read.parquet(str(tmp_path)).createOrReplaceTempView("cut")
    for query in QUERIES[:13]:
        same(session, f"FROM cut {query}")


def test_files_that_come_later(session: SparkSession, tmp_path: Path) -> None:
    """A view shows them; a result that was planned before them says so."""
    columns = "type STRING, ts TIMESTAMP, id BIGINT"
    session.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")  # else INT96
    session.sql(f"CREATE TABLE growing ({columns}) USING parquet LOCATION '{tmp_path / 'growing'}'")
    try:
        session.sql("INSERT INTO growing SELECT type, ts, id FROM many")
        session.sql(f"CREATE TEMPORARY PATTERN VIEW growing_matches AS FROM growing {PLAIN}")
        assert explained(session, f"FROM growing {PLAIN}").startswith("scan: parquet")
        before = session.table("growing_matches").count()
        planned = session.sql(f"FROM growing {PLAIN}")
        assert len(planned.collect()) == before > 0
        session.sql("INSERT INTO growing SELECT type, ts + INTERVAL 1 DAY, id FROM many")
        assert session.table("growing_matches").count() == 2 * before
        assert len(session.sql(f"FROM growing {PLAIN}").collect()) == 2 * before
        with pytest.raises(PySparkException, match=r"(?s)\[SCAN_FILE\].*files have come or gone in it since"):
            planned.limit(10).collect()
    finally:
        session.sql("DROP TABLE growing")
        session.conf.unset("spark.sql.parquet.outputTimestampType")
