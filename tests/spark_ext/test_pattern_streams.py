"""START, STOP and SHOW PATTERN STREAMS; restarts, a kill -9 between any two steps, and changed queries."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import sparks
from pyspark.errors import ParseException, StreamingQueryException
from pyspark.sql import SparkSession

import cersql
from cersql.statements.find import find
from cersql.statements.kinds import DropStream, ShowMetrics, ShowStreams, StartStream, StopStream
from spark_ext import arrivals, streams

PATTERN = "PATTERN A a ; B b PARTITION BY k ORDER BY ts WITHIN 20 SECONDS"
ROOT = Path(__file__).parents[2]


def test_what_the_statements_say() -> None:
    rest = "INTO TABLE db.t CHECKPOINT '/c' TRIGGER EVERY '1 minute'"
    text = f"START PATTERN STREAM s AS FROM live {PATTERN} RETURN * {rest}"
    found = find(text)
    assert isinstance(found, StartStream)
    assert (found.name, found.table, found.checkpoint, found.trigger) == ("s", "db.t", "/c", "1 minute")
    assert text[found.query.start : found.query.end] == f"FROM live {PATTERN} RETURN *"
    assert found.late is None
    for more in ("WITH LATE ROWS INTO TABLE db.late", "WITH LATE ROWS INTO TABLE `db`.late TRIGGER AVAILABLE NOW"):
        found = find(f"START PATTERN STREAM s AS FROM live {PATTERN} RETURN * INTO TABLE t {more}")
        assert isinstance(found, StartStream)
        assert found.late is not None
        assert (found.table, found.late[0].replace("`", "")) == ("t", "db.late")
    assert isinstance(find("stop pattern stream s"), StopStream)
    assert isinstance(find("SHOW PATTERN STREAMS;"), ShowStreams)
    shows = [find(f"SHOW PATTERN STREAM METRICS{words}") for words in ("", " s")]
    assert [found.name for found in shows if isinstance(found, ShowMetrics)] == [None, "s"]
    drops = [find(f"DROP PATTERN STREAM {words}") for words in ("s", "IF EXISTS s")]
    assert [(found.name, found.if_exists) for found in drops if isinstance(found, DropStream)] == [
        ("s", False),
        ("s", True),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("START PATTERN STREAM AS FROM t PATTERN A RETURN * INTO TABLE x", "AS"),
        ("START PATTERN STREAM s AS FROM t PATTERN A RETURN *", "INTO TABLE"),
        ("START PATTERN STREAM s AS FROM t PATTERN A RETURN * INTO TABLE x TRIGGER SOON", "AVAILABLE NOW"),
        ("START PATTERN STREAM s AS FROM t PATTERN A RETURN * INTO TABLE x CHECKPOINT y", "a path in quotes"),
        ("START PATTERN STREAM s AS FROM t PATTERN A RETURN * INTO TABLE x WITH LATE INTO TABLE y", "WITH LATE ROWS"),
        ("START PATTERN STREAM s AS FROM t PATTERN A RETURN * INTO TABLE x WITH LATE ROWS INTO TABLE", "of the table"),
        ("START PATTERN STREAM s AS FROM t PATTERN A RETURN * WITH LATE ROWS INTO TABLE x", "INTO TABLE name"),
        ("STOP PATTERN STREAM s t", "the end of the statement"),
        ("SHOW PATTERN STREAM s", "METRICS"),
        ("SHOW PATTERN STREAM METRICS s t", "the end of the statement"),
        ("DROP PATTERN STREAM IF EXISTS s t", "the end of the statement"),
        ("DROP PATTERN TABLE s", "VIEW, FUNCTION or STREAM"),
    ],
)
def test_mistakes_are_placed(text: str, expected: str) -> None:
    with pytest.raises(cersql.ParseError) as caught:
        find(text)
    assert expected in str(caught.value)
    assert caught.value.line == 1


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    session = sparks.taught(spark)
    session.conf.set("cersql.stream.buckets", "2")
    session.conf.set("cersql.stream.slabs", "4")
    return session


def source(session: SparkSession, folder: Path, files: int = 1) -> None:
    df = session.range(300).selectExpr(
        "id", "timestamp_seconds(1000 + id DIV 2) AS ts", "id % 5 AS k",
        "substr('ABX', CAST(1 + id % 3 AS INT), 1) AS type",
    )  # fmt: skip
    arrivals.write(df, "ts", folder, files, arrivals.Disorder(5.0), ended=True)
    arrivals.read(session, df.schema, folder).withWatermark("ts", "5 seconds").createOrReplaceTempView("live")
    df.createOrReplaceTempView("events")


def ended(session: SparkSession, text: str, name: str) -> Any:
    """The row of SHOW PATTERN STREAMS of a stream that has been started and has come to its end."""
    session.sql(text)
    assert streams._streams[name].query.awaitTermination(120)
    row = shown(session)[name]
    session.sql(f"STOP PATTERN STREAM {name}")
    return row


def shown(session: SparkSession) -> dict[str, Any]:
    return {row.name: row for row in session.sql("SHOW PATTERN STREAMS").collect()}


def test_a_stream_by_sql_that_is_stopped_and_goes_on(session: SparkSession, tmp_path: Path) -> None:
    source(session, tmp_path / "rows")
    start = (
        f"START PATTERN STREAM pairs AS FROM live {PATTERN} RETURN k, a.id AS a, b.id AS b "
        f"INTO TABLE found_pairs CHECKPOINT '{tmp_path / 'c'}'"
    )
    session.sql(start)
    with pytest.raises(ParseException) as running:
        session.sql(start)
    assert "STREAM_EXISTS" in str(running.value)
    streams._streams["pairs"].query.processAllAvailable()
    row = shown(session)["pairs"]
    want = session.sql(f"FROM events {PATTERN} RETURN k, a.id AS a, b.id AS b").collect()
    assert (row.status, row.events, row.matches, row.late) == ("running", "301", str(len(want)), "0")
    assert int(row.state_rows) > 0
    batches = session.sql("SHOW PATTERN STREAM METRICS pairs").collect()
    assert [sum(getattr(b, name) for b in batches) for name in ("events", "matches", "late")] == [301, len(want), 0]
    assert row.held_rows == str(batches[-1].held_rows)
    assert max(b.held_rows for b in batches) > 0
    assert 0 <= sum(b.engine_seconds for b in batches) <= sum(b.batch_seconds for b in batches)
    assert [b.at for b in batches] == sorted(b.at for b in batches)
    query = streams._streams["pairs"].query
    assert cersql.metrics(session, query).collect() == cersql.metrics(session, "pairs").collect() == batches
    assert (row.why, row.ended) == (None, None)
    with pytest.raises(ParseException) as running:
        session.sql("DROP PATTERN STREAM pairs")
    assert "STREAM_RUNNING" in str(running.value)
    session.sql("STOP PATTERN STREAM pairs")
    row = shown(session)["pairs"]
    user = session.sql("SELECT current_user()").collect()[0][0]
    assert (row.status, row.why) == ("stopped", f"STOP PATTERN STREAM by {user}")
    assert (row.events, row.matches) == ("301", str(len(want)))
    assert row.started < row.ended
    # From the same checkpoint, with another RETURN and other names: nothing twice, nothing lost.
    changed = start.replace("A a ; B b", "A x ; B y").replace("a.id AS a, b.id AS b", "x.id AS a, y.id AS b")
    session.sql(f"{changed} TRIGGER AVAILABLE NOW")
    streams._streams["pairs"].query.awaitTermination()
    session.sql("STOP PATTERN STREAM pairs")  # there is nothing left to stop
    row = shown(session)["pairs"]
    assert (row.status, row.why) == ("finished", "TRIGGER AVAILABLE NOW: it has read all that was there")
    session.sql("DROP PATTERN STREAM pairs")
    assert "pairs" not in shown(session)
    session.sql("DROP PATTERN STREAM IF EXISTS pairs")
    got = session.table("found_pairs").collect()
    assert sorted(map(repr, got)) == sorted(map(repr, want))


def test_a_limit_ends_the_stream(session: SparkSession, tmp_path: Path) -> None:
    """By itself, when so many rows are given; begun again, it gives no more, and ends with the first that it would."""
    source(session, tmp_path / "rows", files=4)
    start = (
        f"START PATTERN STREAM few AS FROM live {PATTERN} RETURN k, a.id AS a, b.id AS b LIMIT 7 "
        f"INTO TABLE found_few CHECKPOINT '{tmp_path / 'c'}'"
    )
    every = {tuple(row) for row in session.sql(f"FROM events {PATTERN} RETURN k, a.id, b.id").collect()}
    for _ in range(2):
        row = ended(session, start, "few")
        assert (row.status, row.error) == ("finished", None)
        found = [tuple(row) for row in session.table("found_few").collect()]
        assert len(found) == len(set(found)) == 7
        assert set(found) < every
    for other, told in ((" LIMIT 7", "was begun with LIMIT"), ("TABLE found_few", "without WITH LATE ROWS")):
        text = start.replace(other, "" if "LIMIT" in other else f"{other} WITH LATE ROWS INTO TABLE late_few")
        with pytest.raises(ParseException) as caught:
            session.sql(text)
        assert "STREAM_BESIDE" in str(caught.value)
        assert told in str(caught.value)


@pytest.mark.parametrize(
    ("batches", "stops_at"),
    [
        ([(3, 3), (4, 4), (0, 0)], 1),  # so many are given
        ([(3, 3), (9, 4), (0, 0)], 1),  # more were there
        ([(0, 0), (2, 0)], 1),  # all had been given before it began
        ([(0, 0), (6, 6)], None),
    ],
)
def test_when_a_limit_is_reached(batches: list[tuple[int, int]], stops_at: int | None) -> None:
    stopped = threading.Event()
    stream = streams.Stream("s", "t", "c", SimpleNamespace(stop=stopped.set), None, limit=7)  # type: ignore[arg-type]
    for number, (asked, given) in enumerate(batches):
        metrics = {"cersqllimit_asked_1": {"n": asked}, "cersqllimit_given_1": {"n": given}}
        told = {"timestamp": None, "eventTime": {}, "durationMs": {"addBatch": 1}, "stateOperators": []}
        stream.note(SimpleNamespace(batchId=number, numInputRows=1, observedMetrics=metrics, **told))
        assert stream.full == (stops_at is not None and number >= stops_at)
    assert stopped.wait(60) if stops_at is not None else not stopped.is_set()


def test_functions_and_views_over_a_stream_are_streams(session: SparkSession, tmp_path: Path) -> None:
    source(session, tmp_path / "rows")
    pattern = "PATTERN A a ; B b WHERE a.id >= low WITHIN 20 SECONDS RETURN a.id AS a"
    session.sql(f"CREATE OR REPLACE PATTERN FUNCTION pairs_from(low INT DEFAULT 0) AS {pattern}")
    called = session.sql("SELECT * FROM pairs_from(TABLE(live) PARTITION BY k ORDER BY ts, low => 100)")
    session.sql(f"CREATE OR REPLACE TEMPORARY PATTERN VIEW live_pairs AS FROM live {PATTERN} RETURN k, a.id AS a")
    grouped = session.sql("SELECT k, count(*) AS n FROM live_pairs GROUP BY k")
    assert (called.isStreaming, called.columns) == (True, ["a"])
    assert (grouped.isStreaming, grouped.columns) == (True, ["k", "n"])


def test_what_cannot_start_or_stop(session: SparkSession) -> None:
    for statement in ("STOP PATTERN STREAM", "DROP PATTERN STREAM", "SHOW PATTERN STREAM METRICS"):
        with pytest.raises(ParseException) as caught:
            session.sql(f"{statement} nobody")
        assert "UNKNOWN_STREAM" in str(caught.value)
    session.range(3).selectExpr("id", "'A' AS type", "current_timestamp() AS ts").createOrReplaceTempView("plain")
    with pytest.raises(ParseException) as caught:
        session.sql("START PATTERN STREAM p AS FROM plain PATTERN A a ORDER BY ts RETURN a.id INTO TABLE nowhere")
    assert "NO_STREAM" in str(caught.value)


@pytest.mark.exhaustive
def test_another_pattern_over_an_old_checkpoint(session: SparkSession, tmp_path: Path) -> None:
    """The state of another query is refused, and the error names both."""
    source(session, tmp_path / "rows")

    def run(pattern: str, files: int) -> None:
        df = session.readStream.schema(session.table("events").schema).option("maxFilesPerTrigger", files)
        stream = df.parquet(str(tmp_path / "rows")).withWatermark("ts", "5 seconds")
        writer = cersql.match(stream, pattern).writeStream.format("noop")
        writer = writer.option("checkpointLocation", str(tmp_path / "c"))
        writer.trigger(availableNow=True).start().awaitTermination()

    run(f"{PATTERN} RETURN *", 9)
    more = session.table("events").limit(1).selectExpr("id", "TIMESTAMP '9999-12-31 01:00:00' AS ts", "k", "type")
    more.coalesce(1).write.mode("append").parquet(str(tmp_path / "rows"))
    with pytest.raises(StreamingQueryException) as caught:
        run(f"{PATTERN.replace('20', '30')} RETURN *", 9)
    assert "STREAM_CHANGED" in str(caught.value)
    assert "WITHIN 20 SECONDS" in str(caught.value)


def started(session: SparkSession, folder: Path, query: str, name: str = "checked") -> None:
    """A stream of all that there is, to its end."""
    session.sql(
        f"START PATTERN STREAM {name} AS {query} INTO TABLE {name}_rows "
        f"CHECKPOINT '{folder / 'c'}' TRIGGER AVAILABLE NOW"
    )
    try:
        streams._streams[name].query.awaitTermination()
    finally:
        session.sql(f"STOP PATTERN STREAM {name}")


def test_another_pattern_is_refused_at_the_start(session: SparkSession, tmp_path: Path) -> None:
    source(session, tmp_path / "rows")
    query = f"FROM live {PATTERN} RETURN k, a.id AS a"
    started(session, tmp_path, query, "first_one")
    changed = query.replace("20", "30")
    with pytest.raises(ParseException) as caught:
        started(session, tmp_path, changed, "first_one")
    assert "[STREAM_CHANGED]" in str(caught.value)
    assert "WITHIN 20 SECONDS" in str(caught.value)
    assert "WITHIN 30 SECONDS" in str(caught.value)
    # Of a view, and inside other SQL
    session.sql(f"CREATE OR REPLACE TEMPORARY PATTERN VIEW changed AS {changed}")
    for text in ("SELECT * FROM changed", f"SELECT k, a FROM ({changed}) AS m WHERE k > 1"):
        with pytest.raises(ParseException) as caught:
            started(session, tmp_path, text, "first_one")
        assert "[STREAM_CHANGED]" in str(caught.value)
    started(session, tmp_path, f"SELECT k, a FROM ({query}) AS m WHERE k > 1", "first_one")  # the same pattern


@pytest.mark.exhaustive
def test_a_zone_on_which_conditions_depend(session: SparkSession, tmp_path: Path) -> None:
    source(session, tmp_path / "rows")
    plain = f"FROM live {PATTERN} RETURN k, hour(a.ts) AS h"
    by_hour = plain.replace("PARTITION", "WHERE hour(a.ts) < 24 PARTITION")
    for query, name in ((plain, "plain_zone"), (by_hour, "hour_zone")):
        folder = tmp_path / name
        started(session, folder, query, name)
        with sparks.settings(session, spark__sql__session__timeZone="Asia/Tokyo"):
            if query == plain:
                started(session, folder, query, name)
                continue
            with pytest.raises(ParseException) as caught:
                started(session, folder, query, name)
        assert "[STREAM_ZONE]" in str(caught.value)
        assert "UTC" in str(caught.value)
        assert "Asia/Tokyo" in str(caught.value)


def test_a_checkpoint_that_cannot_be_gone_on_from(session: SparkSession, tmp_path: Path) -> None:
    """What can be wrong with one: test_checkpoints.py."""
    source(session, tmp_path / "rows")
    query = f"FROM live {PATTERN} RETURN k, a.id AS a"
    with sparks.settings(session, cersql__stream__spread="false"):
        started(session, tmp_path, query, "damaged")
    rows = session.table("damaged_rows").count()
    noted = json.loads((tmp_path / "c/cersql.json").read_text())
    assert noted["settings"].pop("cersql.stream.spread") == "false"
    (tmp_path / "c/cersql.json").write_text(json.dumps(noted))
    (tmp_path / "c/.cersql.json.crc").unlink(missing_ok=True)
    # In another cluster, which would take other buckets by itself, and by a release that calls them otherwise.
    with sparks.settings(session, cersql__stream__buckets=""):
        started(session, tmp_path, query, "damaged")
        assert session.conf.get("cersql.stream.buckets") == ""
    shutil.copytree(tmp_path / "c", tmp_path / "moved" / "c")
    for folder, name, wanted in ((tmp_path / "moved", "elsewhere", "TABLE"), (tmp_path / "new", "damaged", "BEHIND")):
        with pytest.raises(ParseException) as caught:
            started(session, folder, query, name)
        assert f"[CHECKPOINT_{wanted}]" in str(caught.value)
    newest = max((entry for entry in (tmp_path / "c/offsets").glob("[0-9]*")), key=lambda entry: int(entry.name))
    newest.write_text("v1\n{nonsense")
    (newest.parent / f".{newest.name}.crc").unlink(missing_ok=True)
    with pytest.raises(ParseException) as caught:
        started(session, tmp_path, query, "damaged")
    assert "[CHECKPOINT]" in str(caught.value)
    assert "is not what Spark wrote" in str(caught.value)
    assert str(tmp_path / "c") in str(caught.value)
    assert "jackson" not in str(caught.value).lower()
    assert session.table("damaged_rows").count() == rows


def test_an_error_of_ours_is_told_alone() -> None:
    raised = (
        "[STREAM_FAILED] Query [id = 1] terminated with exception: [PYTHON_EXCEPTION] An exception was thrown from the "
        "Python worker: runtime.errors.ExecutionError: [STREAM_DAMAGED] The state in the checkpoint is damaged: x.\n"
        "Restore it.\n SQLSTATE: 38000 SQLSTATE: XXKST\n=== Streaming Query ===\nIdentifier: x"
    )
    want = "[STREAM_DAMAGED] The state in the checkpoint is damaged: x.\nRestore it."
    assert streams._brief(raised) == want
    assert streams._brief("[X] other\n\nplan") == "[X] other"


ENDINGS = {
    "failed": (
        {"error": "[USER_RAISED_EXCEPTION] [NULL_TIME] A row has no time. SQLSTATE: P0001\n=== Streaming Query ===\nx"},
        ("failed", "NULL_TIME", "[NULL_TIME] A row has no time."),
    ),
    "failed, and stopped": (
        {"error": "Spark's own words\nand more", "stopped_by": "ann"},
        ("failed", "Spark's own words", "Spark's own words\nand more"),
    ),
    "stopped": ({"stopped_by": "ann", "trigger": "1 minute"}, ("stopped", "STOP PATTERN STREAM by ann", None)),
    "finished": (
        {"trigger": "available now"},
        ("finished", "TRIGGER AVAILABLE NOW: it has read all that was there", None),
    ),
    "limit": ({"limit": 3, "full": True}, ("finished", "LIMIT 3: so many rows have been given", None)),
    "otherwise": ({}, ("stopped", "its query was stopped by other means than STOP PATTERN STREAM", None)),
}


def over(name: str, context: Any, **facts: Any) -> streams.Stream:
    error = facts.pop("error", None)
    query = SimpleNamespace(isActive=False, recentProgress=(), exception=lambda: error)
    session = SimpleNamespace(sparkContext=SimpleNamespace(_jsc=context))
    return streams.Stream(name, "t", "/c", query, session, **facts)  # type: ignore[arg-type]


@pytest.mark.parametrize("case", ENDINGS)
def test_a_stream_says_why_it_has_ended(case: str) -> None:
    facts, want = ENDINGS[case]
    stream = over("s", object(), **facts)
    row = dict(zip(streams.COLUMNS, stream.row(), strict=True))
    assert (row["status"], row["why"], row["error"]) == want
    assert row["started"] is not None
    assert row["ended"] is not None
    assert row["started"] <= row["ended"]
    assert dict(zip(streams.COLUMNS, stream.row(), strict=True)) == row  # and it stays so


@pytest.fixture
def none_running(monkeypatch: pytest.MonkeyPatch) -> dict[str, streams.Stream]:
    found: dict[str, streams.Stream] = {}
    monkeypatch.setattr(streams, "_streams", found)
    return found


def test_of_many_that_have_ended_the_newest_are_kept(none_running: dict[str, streams.Stream]) -> None:
    for number in range(streams.KEPT + 3):
        stream = none_running[f"s{number}"] = over(f"s{number}", object())
        stream.ended = streams.Ended(f"{2000 + number}", "stopped", "by somebody")
    found = {row[0] for row in streams.rows()}
    assert found == {f"s{number}" for number in range(3, streams.KEPT + 3)}


def test_streams_of_a_spark_that_has_ended_are_forgotten(none_running: dict[str, streams.Stream]) -> None:
    none_running["of before"] = over("of before", None)
    none_running["of now"] = over("of now", object())
    assert [row[0] for row in streams.rows()] == ["of now"]


@pytest.mark.exhaustive
def test_after_a_null_time_a_stream_goes_on_without_it(session: SparkSession, tmp_path: Path) -> None:
    source(session, tmp_path / "rows")
    null = session.table("events").limit(1).selectExpr("id", "CAST(NULL AS TIMESTAMP) AS ts", "k", "type")
    null.coalesce(1).write.mode("append").parquet(str(tmp_path / "rows"))
    query = f"FROM live {PATTERN} RETURN k, a.id AS a, b.id AS b"
    with pytest.raises(StreamingQueryException) as caught:
        started(session, tmp_path, query, "with_null")
    assert "[NULL_TIME]" in str(caught.value)
    advice = "FROM (SELECT * FROM live WHERE ts IS NOT NULL) AS live"
    assert advice in str(caught.value)
    row = shown(session)["with_null"]
    assert (row.status, row.why) == ("failed", "NULL_TIME")
    assert advice in row.error
    started(session, tmp_path, query.replace("FROM live", advice), "with_null")
    got = session.table("with_null_rows").collect()
    want = session.sql(query.replace("FROM live", "FROM events")).collect()
    assert sorted(map(repr, got)) == sorted(map(repr, want))


KILLED = """
    import os, sys
    from pathlib import Path
    from pyspark.sql import SparkSession
    import cersql
    from spark_ext import arrivals

    folder, after = Path(sys.argv[1]), int(sys.argv[2])
    spark = (SparkSession.builder.master("local[1]").config("spark.sql.shuffle.partitions", "1")
             .config("spark.ui.enabled", "false").config("spark.sql.session.timeZone", "UTC")
             .config("spark.python.unix.domain.socket.enabled", "true")
             .config("cersql.stream.buckets", "2").getOrCreate())
    spark.sparkContext.setLogLevel("OFF")
    schema = spark.read.parquet(str(folder / "rows")).schema
    stream = arrivals.read(spark, schema, folder / "rows").withWatermark("ts", "5 seconds")
    df = cersql.match(stream, sys.argv[3])
    query = (df.writeStream.format("parquet").option("path", str(folder / "out"))
             .option("checkpointLocation", str(folder / "c")).trigger(availableNow=True).start())
    while query.isActive:
        query.awaitTermination(0.05)
        done = len(list((folder / "c" / "commits").glob("[0-9]*")))
        begun = len(list((folder / "c" / "offsets").glob("[0-9]*")))
        if after and done >= after and begun > done:
            print("in a batch", flush=True)
            sys.stdin.read()  # until the test kills us
    print("ended", flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "where",
    [
        pytest.param("", id="rows"),
        pytest.param("WHERE bit_count(a.id + b.id) > 3 CONSUME BY PARTITION", id="pairs", marks=pytest.mark.exhaustive),
    ],
)
def test_kill_minus_nine(session: SparkSession, tmp_path: Path, where: str) -> None:
    """Killed in the middle of a batch, and started again: nothing lost, nothing twice."""
    source(session, tmp_path / "rows", files=2)
    pattern = f"{PATTERN} {where} RETURN k, a.id AS a, b.id AS b"
    script = tmp_path / "run.py"
    script.write_text(textwrap.dedent(KILLED))
    for after, said in ((1, "in a batch"), (0, "ended")):
        process = subprocess.Popen(
            [sys.executable, str(script), str(tmp_path), str(after), pattern],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True,
            env={**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable},
        )  # fmt: skip
        assert process.stdout is not None
        assert process.stdin is not None
        line = next(iter(process.stdout), "")
        assert line.strip() == said
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
        process.stdin.close()
    got = session.read.parquet(str(tmp_path / "out")).collect()
    want = cersql.match(session.table("events"), pattern).collect()
    assert sorted(map(repr, got)) == sorted(map(repr, want))
