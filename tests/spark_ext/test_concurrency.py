"""Many threads and many sessions: each sees its own views and functions, and never half of one."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from sparks import taught, view

import cersql
from spark_ext import patterns

EVENTS = [(i, "AB"[i % 2], i // 6, i) for i in range(12)]
SCHEMA = "id INT, type STRING, k INT, ts INT"
QUERY = "FROM ev PATTERN A a : B b PARTITION BY k ORDER BY ts RETURN k, {n} AS n{n}, a.id AS x"
FUNCTION = (
    "CREATE OR REPLACE PATTERN FUNCTION {name} AS PATTERN A a : B b PARTITION BY k ORDER BY ts RETURN {n} AS n{n}"
)


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    found = taught(spark)
    view(found, "ev", EVENTS, SCHEMA)
    yield found  # noqa: PT022


def in_threads(*works: Callable[[], None]) -> None:
    """All at once; the first failure is raised here."""
    failures: list[BaseException] = []
    begin = threading.Barrier(len(works))

    def run(work: Callable[[], None]) -> None:
        begin.wait(60)
        try:
            work()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
        assert not thread.is_alive()
    if failures:
        raise failures[0]


def columns_agree(columns: list[str]) -> bool:
    return columns in (["k", "n1", "x"], ["k", "n2", "x"])


@pytest.mark.exhaustive
def test_the_same_view_and_function_from_many_threads(session: SparkSession) -> None:
    session.sql(f"CREATE PATTERN VIEW v AS {QUERY.format(n=1)}")
    session.sql(FUNCTION.format(name="f", n=1))

    def replacing(n: int) -> Callable[[], None]:
        def work() -> None:
            for _ in range(4):
                session.sql(f"CREATE OR REPLACE PATTERN VIEW v AS {QUERY.format(n=n)}")
                session.sql(FUNCTION.format(name="f", n=n))

        return work

    def reading() -> None:
        for _ in range(6):
            assert columns_agree(session.sql("SELECT * FROM v WHERE k = 1").columns)
            assert session.sql("SELECT * FROM f(TABLE(ev))").columns in (["n1"], ["n2"])
            assert {row.name for row in session.sql("SHOW PATTERNS").collect()} <= {"v", "f"}

    in_threads(replacing(1), replacing(2), reading, reading)
    (found,) = [row.definition for row in session.sql("SHOW PATTERNS LIKE 'v'").collect()]
    n = 1 if "n1" in found else 2  # the definition is that of the view
    assert session.table("v").columns == ["k", f"n{n}", "x"]
    assert session.sql("SELECT * FROM v WHERE k = 1").count() == 3


def test_views_and_functions_of_each_thread(session: SparkSession) -> None:
    def work(n: int) -> Callable[[], None]:
        def run() -> None:
            for _ in range(2):
                session.sql(f"CREATE PATTERN VIEW v{n} AS {QUERY.format(n=n)}")
                session.sql(FUNCTION.format(name=f"f{n}", n=n))
                rows = session.sql(f"SELECT * FROM v{n} WHERE k = 0 AND x > 0").collect()
                assert sorted((row[f"n{n}"], row.x) for row in rows) == [(n, 2), (n, 4)]
                assert session.sql(f"SELECT * FROM f{n}(TABLE(ev))").columns == [f"n{n}"]
                assert "before the pattern" in session.sql(f"EXPLAIN SELECT * FROM v{n} WHERE k = 0").collect()[0].plan
                session.sql(f"DROP PATTERN VIEW v{n}")
                session.sql(f"DROP PATTERN FUNCTION f{n}")

        return run

    in_threads(*(work(n) for n in range(4)))
    assert session.sql("SHOW PATTERNS").collect() == []


def test_one_of_many_drops_and_creates(session: SparkSession) -> None:
    session.sql(f"CREATE PATTERN VIEW v AS {QUERY.format(n=1)}")
    taken: list[str] = []

    def dropping() -> None:
        session.sql("DROP PATTERN VIEW IF EXISTS v")

    def creating() -> None:
        try:
            session.sql(f"CREATE PATTERN VIEW w AS {QUERY.format(n=1)}")
        except AnalysisException as error:
            taken.append(str(error.getCondition()))

    in_threads(dropping, dropping, dropping, creating, creating, creating)
    assert taken == ["TEMP_TABLE_OR_VIEW_ALREADY_EXISTS"] * 2
    assert list(cersql.patterns(session)) == ["w"]


def test_two_sessions_with_the_same_names(session: SparkSession) -> None:
    other = session.newSession()
    view(other, "ev", EVENTS[:6], SCHEMA)
    for spark, n in ((session, 1), (other, 2)):
        spark.sql(f"CREATE PATTERN VIEW v AS {QUERY.format(n=n)}")
        spark.sql(FUNCTION.format(name="f", n=n))

    def reading(spark: SparkSession, n: int, count: int) -> Callable[[], None]:
        def work() -> None:
            for _ in range(2):
                rows = spark.sql("SELECT * FROM v WHERE k >= 0").collect()
                assert [row[f"n{n}"] for row in rows] == [n] * count
                assert [tuple(row) for row in spark.sql("SELECT * FROM f(TABLE(ev))").collect()] == [(n,)] * count
                assert list(cersql.patterns(spark)) == ["v", "f"]

        return work

    in_threads(reading(session, 1, 6), reading(other, 2, 3))
    other.sql("DROP PATTERN VIEW v")
    assert list(cersql.patterns(session)) == ["v", "f"]
    assert list(cersql.patterns(other)) == ["f"]


def test_a_cloned_session_goes_on_with_what_there_was(session: SparkSession) -> None:
    session.sql(f"CREATE PATTERN VIEW v AS {QUERY.format(n=1)}")
    session.sql(f"CREATE PATTERN VIEW old AS {QUERY.format(n=1)}")
    session.sql(FUNCTION.format(name="f", n=1))
    clone = SparkSession(session.sparkContext, session._jsparkSession.cloneSession())
    clone.sql("SELECT 1")  # it copies the state of the other with its first use
    session.sql(f"CREATE OR REPLACE PATTERN VIEW old AS {QUERY.format(n=2)}")
    session.sql(f"CREATE PATTERN VIEW later AS {QUERY.format(n=2)}")
    assert list(cersql.patterns(clone)) == ["v", "old", "f"]
    assert clone.table("old").columns == ["k", "n1", "x"]
    assert clone.sql("SELECT * FROM f(TABLE(ev))").count() == 6
    assert "before the pattern: k = 1" in clone.sql("EXPLAIN SELECT * FROM v WHERE k = 1").collect()[0].plan
    assert sorted(row.x for row in clone.sql("SELECT * FROM v WHERE k = 1").collect()) == [6, 8, 10]
    # each goes its own way from there
    clone.sql("DROP PATTERN VIEW v")
    clone.sql(FUNCTION.format(name="f", n=2))
    assert list(cersql.patterns(session)) == ["v", "f", "old", "later"]
    assert session.sql("SELECT * FROM f(TABLE(ev))").columns == ["n1"]
    assert clone.sql("SELECT * FROM f(TABLE(ev))").columns == ["n2"]
    assert session.sql("SELECT * FROM v WHERE k = 1").count() == 3


def test_sessions_long_unused_are_forgotten_and_global_views_are_not(
    session: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.sql(f"CREATE OR REPLACE GLOBAL TEMPORARY PATTERN VIEW gv AS {QUERY.format(n=1)}")
    session.sql(f"CREATE PATTERN VIEW v AS {QUERY.format(n=1)}")
    monkeypatch.setattr(patterns, "KEPT_SESSIONS", 2)
    for _ in range(3):
        newer = session.newSession()
        view(newer, "ev", EVENTS, SCHEMA)
        newer.sql(f"CREATE PATTERN VIEW w AS {QUERY.format(n=1)}")
    assert list(cersql.patterns(newer)) == ["w", "gv"]
    assert session.table("v").count() == 6  # an ordinary temporary view by now
    session.sql("DROP PATTERN VIEW global_temp.gv")


RESTART = """
import cersql
config = {"spark.master": "local[1]", "spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "1"}
for n in (1, 2):
    spark = cersql.session("restart", config)
    print(len(cersql.patterns(spark)))
    spark.sql("SELECT id, 'A' AS type FROM range(3)").createOrReplaceTempView("ev")
    spark.sql("CREATE PATTERN VIEW v AS FROM ev PATTERN A a PARTITION BY type ORDER BY id RETURN type AS k, a.id AS x")
    spark.sql("CREATE GLOBAL TEMPORARY PATTERN VIEW gv AS FROM ev PATTERN A a ORDER BY id RETURN a.id AS x")
    spark.sql("CREATE PATTERN FUNCTION f AS PATTERN A a ORDER BY id RETURN a.id AS x")
    rows = spark.sql("SELECT (SELECT count(*) FROM v WHERE k = 'A'), (SELECT count(*) FROM f(TABLE(ev)))").collect()
    print(*rows[0], *cersql.patterns(spark), sep=",")
    spark.stop()
"""


@pytest.mark.exhaustive
@pytest.mark.jvm
@pytest.mark.slow
def test_after_stop_and_restart_nothing_is_left_and_everything_works(monkeypatch: pytest.MonkeyPatch) -> None:
    """In workers that run this Python without being told to."""
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    done = subprocess.run([sys.executable, "-c", RESTART], capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout.split() == ["0", "3,3,v,f,gv"] * 2, done.stderr[-3000:]


def test_a_thread_that_never_saw_spark(session: SparkSession) -> None:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(session.sql(QUERY.format(n=1)).count()))
    thread.start()
    thread.join(120)
    assert found == [6]
