"""What a worker may use: matches, memory, and nothing any more once its query is cancelled."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import SparkSession

import cersql

LOOP = "PATTERN A+ a ; B b ORDER BY ts RETURN count(a) AS n"
GENERAL = "PATTERN ((A+ a ; B b) UNLESS C) WHERE a.v < b.v ORDER BY ts RETURN count(a) AS n"
SECONDS = 60


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    own = cersql.enable(spark)
    yield spark if own is None else own
    for name in ("cersql.maxMatches", "cersql.memoryLimit"):
        spark.conf.unset(name)


def loop_of(spark: SparkSession, n: int) -> None:
    """The view `t`: n times A, then one B."""
    spark.sql(
        f"SELECT timestamp_seconds(1700000000 + id) AS ts, IF(id < {n}, 'A', 'B') AS type, CAST(id AS INT) AS v "
        f"FROM range({n} + 1)"
    ).createOrReplaceTempView("t")


def error_of(run: Callable[[], Any]) -> str:
    with pytest.raises(PySparkException) as raised:
        run()
    return str(raised.value)


@pytest.mark.parametrize("text", [LOOP, pytest.param(GENERAL, marks=pytest.mark.exhaustive)])
def test_a_task_lists_no_more_matches_than_it_may(session: SparkSession, text: str) -> None:
    loop_of(session, 15)
    session.conf.set("cersql.maxMatches", "1000")
    message = error_of(session.sql(f"FROM t {text}").collect)
    assert "MATCH_LIMIT" in message
    assert "the limit is 1000." in message
    for way in (
        "SEMANTICS NXT",
        "SKIP TILL NEXT MATCH",
        "CONSUME BY",
        "AFTER MATCH SKIP",
        "count(*)",
        "LIMIT",
        "cersql.maxMatches",
    ):
        assert way in message, way
    assert "Traceback" not in message
    assert session.sql(f"SELECT count(*) FROM (FROM t {text})").collect()[0][0] == 2**15 - 1
    assert len(session.sql(f"FROM t {text} LIMIT 10").collect()) == 10
    session.conf.set("cersql.maxMatches", str(2**15 - 1))
    assert len(session.sql(f"FROM t {text}").collect()) == 2**15 - 1


@pytest.mark.breadth(2)
@pytest.mark.parametrize("text", [LOOP, GENERAL])
@pytest.mark.parametrize("n", [22, 400])
def test_some_of_many_matches_come_at_once(session: SparkSession, text: str, n: int) -> None:
    if text == GENERAL:  # whose states are the values that wait
        text = text.replace("a.v < b.v", "a.type < b.type")
    loop_of(session, n)
    assert len(session.sql(f"FROM t {text} LIMIT 10").collect()) == 10


@pytest.mark.parametrize(
    ("setting", "value", "told"),
    [
        ("cersql.maxMatches", "1000", "the limit is 1000."),
        pytest.param("cersql.memoryLimit", "10m", "the limit is 10.0 MB, for the query", marks=pytest.mark.exhaustive),
    ],
)
def test_a_stream_has_the_limits_too(session: SparkSession, setting: str, value: str, told: str) -> None:
    loop_of(session, 15)
    session.conf.set(setting, value)
    text = LOOP.replace("ORDER", "WITHIN 1 HOUR ORDER")
    with pytest.raises(StreamingQueryException) as raised:
        cersql.replay(session, "t", text)  # the stream comes before the batch
    assert told in str(raised.value)


def test_a_worker_holds_no_more_memory_than_it_may(session: SparkSession) -> None:
    loop_of(session, 15)
    session.conf.set("cersql.memoryLimit", "10m")
    message = error_of(session.sql(f"FROM t {LOOP}").collect)
    assert "MEMORY_LIMIT" in message
    assert "the limit is 10.0 MB, for the query" in message
    assert LOOP in message
    assert "cersql.memoryLimit" in message
    assert "Traceback" not in message
    for unlimited in ("0", "64g"):
        session.conf.set("cersql.memoryLimit", unlimited)
        assert len(session.sql(f"FROM t {LOOP}").collect()) == 2**15 - 1


@pytest.mark.exhaustive
def test_what_chooses_in_a_second_pass_has_the_limit_too(session: SparkSession) -> None:
    loop_of(session, 12)
    text = "FROM t PATTERN A+ a ; B b WHERE size(collect_list(a.v)) > 2 SEMANTICS MAX ORDER BY ts RETURN count(a) AS n"
    assert [tuple(row) for row in session.sql(text).collect()] == [(12,)]
    session.conf.set("cersql.maxMatches", "1000")
    assert "the limit is 1000." in error_of(session.sql(text).collect)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("cersql.maxMatches", "many", "a whole number"),
        ("cersql.maxMatches", "0", "at least 1"),
        ("cersql.memoryLimit", "lots", "8g"),
        ("cersql.memoryLimit", "-1", "8g"),
    ],
)
def test_a_setting_that_is_none(session: SparkSession, name: str, value: str, expected: str) -> None:
    loop_of(session, 3)
    session.conf.set(name, value)
    message = error_of(lambda: session.sql(f"FROM t {LOOP}").collect())
    assert "SETTING" in message
    assert name in message
    assert expected in message


# ---------------------------------------------------------------- a cancelled query


def test_the_worker_of_a_cancelled_query_ends(session: SparkSession) -> None:
    """It computes for minutes before it would write anything."""
    loop_of(session, 3000)
    query = session.sql(f"SELECT count(*) FROM (FROM t {GENERAL})")
    context, failed = session.sparkContext, threading.Event()
    before = {pid: ticks_of(pid) for pid in workers()}

    def run() -> None:
        context.setJobGroup("cancelled", "")
        try:
            query.collect()
        except Exception:
            failed.set()

    thread = threading.Thread(target=run)
    thread.start()
    busy = wait_for(lambda: [pid for pid in workers() if ticks_of(pid) > before.get(pid, 0) + 100])
    context.cancelJobGroup("cancelled")
    thread.join(SECONDS)
    assert failed.is_set()
    wait_for(lambda: not set(busy) & set(workers()))


def wait_for(found: Callable[[], Any]) -> Any:
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        made = found()
        if made:
            return made
        threading.Event().wait(0.05)
    pytest.fail("it did not happen")


def workers() -> list[int]:
    """The Python workers of this process's Spark: what a daemon has forked."""
    parents = {pid: parent_of(pid) for pid in map(int, filter(str.isdigit, os.listdir("/proc")))}
    daemons = {pid for pid in parents if b"pyspark.daemon" in command_of(pid) and os.getpid() in above(pid, parents)}
    return [pid for pid in daemons if parents[pid] in daemons]


def above(pid: int, parents: dict[int, int]) -> list[int]:
    found = []
    while pid in parents:
        pid = parents[pid]
        found.append(pid)
    return found


def command_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def stat_of(pid: int) -> list[str]:
    """What follows the command's name."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return []


def parent_of(pid: int) -> int:
    stat = stat_of(pid)
    return int(stat[1]) if stat and stat[0] != "Z" else 0


def ticks_of(pid: int) -> int:
    """The time that it has computed, in 1/100 s."""
    stat = stat_of(pid)
    return int(stat[11]) + int(stat[12]) if stat else 0
