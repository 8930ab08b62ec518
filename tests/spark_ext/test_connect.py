"""Spark Connect: one server, started by one process that runs this file as a script."""

from __future__ import annotations

import datetime
import logging
import os
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.jvm
@pytest.mark.slow
@pytest.mark.parametrize("what", ["first", pytest.param("all", marks=pytest.mark.exhaustive)])
def test_connect(what: str) -> None:
    pytest.importorskip("grpc")
    environment = {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(ROOT),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # starts in half the time
    }
    done = subprocess.run(
        [sys.executable, "-W", "ignore", __file__, what],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-6000:]
    assert done.stdout.split() == ["works"]


EVENTS = "VALUES (1, 'A', 1, 10.0D), (2, 'B', 1, 50.0D), (3, 'A', 2, 45.0D), (4, 'B', 2, 20.0D), (5, 'B', 1, 60.0D)"
QUERY = "FROM ev PATTERN A a ; B b PARTITION BY k ORDER BY ts RETURN k, a.ts AS x, b.ts AS y"
ALL = [(1, 1, 2), (1, 1, 5), (2, 3, 4)]


def rows(df: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in df.collect())


def refused(call: Any, condition: str) -> Any:
    from runtime.errors import CersqlError

    with pytest.raises(CersqlError) as caught:
        call()
    assert caught.value.condition == condition, caught.value
    return caught.value


def script() -> None:
    from pyspark.errors import AnalysisException, ParseException
    from pyspark.sql import SparkSession

    import cersql
    from cersql.cli import notebook

    builder: Any = SparkSession.builder
    spark = (
        builder.remote("local[2]")
        .config("spark.python.unix.domain.socket.enabled", "true")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    plain = spark.sql
    spark.sql(f"SELECT * FROM {EVENTS} AS v(ts, type, k, v)").createOrReplaceTempView("ev")

    not_taught(spark)
    heard: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: heard.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("cersql").addHandler(handler)
    assert spark.sql == plain
    assert cersql.session("connected") is spark  # the session that there is
    assert cersql.enable(spark) is spark
    assert len(heard) == 1
    assert "cersql.serve" in heard[0]

    # spark.sql, whole and inside other statements
    assert rows(spark.sql(QUERY)) == ALL
    assert rows(spark.sql(f"SELECT x + y FROM ({QUERY}) WHERE k = 1")) == [(3,), (6,)]
    assert rows(spark.sql(f"SELECT count(*) AS n FROM ({QUERY})")) == [(3,)]
    assert rows(spark.sql(f"WITH m AS ({QUERY}) SELECT m.x, n.x FROM m JOIN m n USING (y, k) WHERE k = 2")) == [(3, 3)]
    # … whose frames can be used long after, although the server reads them again each time
    kept = spark.sql(f"SELECT x FROM ({QUERY})")
    for _ in range(2):
        assert rows(kept) == [(1,), (1,), (3,)]
    assert "== automaton ==" in spark.sql(f"EXPLAIN {QUERY}").collect()[0][0]
    assert "MapInArrow" in spark.sql(f"EXPLAIN SELECT * FROM ({QUERY})").collect()[0][0]
    assert rows(spark.sql("SELECT {df}.x FROM {df} WHERE x = 3", df=spark.sql(QUERY))) == [(3,)]
    inside = "SELECT x FROM (FROM {df} PATTERN A a ORDER BY ts RETURN a.ts AS x) WHERE x > {n}"
    assert rows(spark.sql(inside, df=spark.table("ev"), n=1)) == [(3,)]
    assert rows(spark.sql("SELECT :a + 1", {"a": 1})) == [(2,)]

    # the second plan
    assert str(cersql.verify(spark, QUERY)) == "3 rows: both plans give the same"
    spark.conf.set("cersql.plan", "relational")
    assert rows(spark.sql(QUERY)) == ALL
    assert rows(spark.sql(f"SELECT count(*) FROM ({QUERY})")) == [(3,)]
    assert "MapInArrow" not in spark.sql(f"EXPLAIN SELECT * FROM ({QUERY})").collect()[0][0]
    refused(lambda: spark.sql(QUERY.replace("B b", "B+ b")), "PLAN_REFUSED")
    spark.conf.unset("cersql.plan")

    # values
    filtered = "FROM ev PATTERN A a ; B b WHERE a.v > :v PARTITION BY k ORDER BY ts WITHIN :w RETURN a.ts, b.ts"
    assert rows(spark.sql(filtered, args={"v": 5.0, "w": 1})) == [(1, 2), (3, 4)]
    assert rows(spark.sql(filtered.replace(":v", "?").replace(":w", "?"), args=[20, 9])) == [(3, 4)]
    assert refused(lambda: spark.sql(filtered), "UNBOUND_PARAMETER").span.start == filtered.index(":v")
    refused(lambda: cersql.sql(spark, filtered, {"v": datetime.timedelta(1), "w": 1}), "ARGUMENT_TYPE")
    collated = (
        "FROM (SELECT *, type COLLATE UNICODE_CI AS c FROM ev) e PATTERN A a ; B b PARTITION BY c ORDER BY ts RETURN *"
    )
    refused(lambda: spark.sql(collated), "COLLATION")

    # views
    spark.sql(f"CREATE TEMPORARY PATTERN VIEW pv AS {QUERY}")
    assert rows(spark.sql("SELECT x FROM pv WHERE k = 2")) == [(3,)]
    assert rows(spark.table("pv")) == ALL
    spark.sql(f"CREATE OR REPLACE PATTERN VIEW pv AS {QUERY} LIMIT 1")
    assert spark.table("pv").count() == 1
    spark.sql(f"CREATE GLOBAL TEMPORARY PATTERN VIEW gv AS {QUERY}")
    assert rows(spark.sql("SELECT name, kind, scope FROM (SELECT 1 AS name, 2 AS kind, 3 AS scope)")) == [(1, 2, 3)]
    assert [tuple(row)[:3] for row in spark.sql("SHOW PATTERNS").collect()] == [
        ("pv", "VIEW", "SESSION"),
        ("gv", "VIEW", "GLOBAL"),
    ]
    assert ("column", "x", "int") in rows(spark.sql("DESCRIBE PATTERN pv"))
    assert list(cersql.patterns(spark)) == ["pv", "gv"]
    spark.sql("DROP PATTERN VIEW pv")
    spark.sql("DROP PATTERN VIEW global_temp.gv")
    assert spark.sql("SHOW PATTERNS").collect() == []
    refused(lambda: spark.sql("DROP PATTERN VIEW pv"), "UNKNOWN_PATTERN")

    # an aggregate function of the user's own travels with the query
    cersql.register_aggregate("TOTAL", lambda v: v, lambda a, b: a + b, lambda s: s, 0.0, "DOUBLE")
    totals = "FROM ev PATTERN A a ; B+ b WHERE TOTAL(b.v) > 50 PARTITION BY k ORDER BY ts RETURN a.ts, TOTAL(b.v) AS t"
    assert rows(spark.sql(totals)) == [(1, 60.0), (1, 110.0)]
    in_nxt = "FROM ev PATTERN NXT((A a ; B+ b) FILTER TOTAL(b.v) > 50) PARTITION BY k ORDER BY ts RETURN b.ts AS b"
    assert rows(spark.sql(in_nxt)) == [([2, 5],)]

    functions(spark)
    if sys.argv[1] == "all":
        more_of_functions(spark)
        views_that_are_not_ours_any_more(spark)

    shown: Any = notebook.run({"spark": spark}, "m --view shown", QUERY)
    assert "<td" in shown._repr_html_()
    last: Any = notebook.run({"spark": spark}, "", "SELECT 1; SELECT x FROM shown")
    assert rows(last.df) == [(1,), (1,), (3,)]
    planned: Any = notebook.run({"spark": spark}, "--explain", QUERY)
    assert "<svg" in planned._repr_html_()
    assert rows(spark.table("shown")) == ALL

    # errors: ours with their places, and Spark's own
    error = refused(lambda: spark.sql("FROM ev PATTERN A a ; B b ORDER BY tz RETURN a.ts"), "UNKNOWN_COLUMN")
    assert str(error).endswith("^")
    refused(lambda: spark.sql("FROM ev PATTERN A a ; B b ORDER BY ts RETURN nothing(a.ts)"), "INVALID_EXPRESSION")
    refused(lambda: spark.sql("FROM ev PATTERN A a WHERE nothing(a.v) ORDER BY ts RETURN *"), "INVALID_EXPRESSION")
    refused(lambda: spark.sql("FROM ev PATTERN A a ORDER BY ts RETURN * HAVING nothing(1)"), "INVALID_EXPRESSION")
    for text, kind in (("SELEC 1", ParseException), ("SELECT zzz FROM ev", AnalysisException)):
        with pytest.raises(kind) as caught:
            spark.sql(text).collect()
        assert "PATTERN" not in str(caught.value)
    assert refused(lambda: cersql.serve(spark), "CONNECT").hint

    # other sessions
    other = spark.newSession()
    assert other.sql("SHOW PATTERNS").collect() == []
    other.sql(f"SELECT * FROM {EVENTS} AS v(ts, type, k, v)").createOrReplaceTempView("ev")
    assert rows(other.sql(QUERY)) == ALL
    if sys.argv[1] == "all":
        cloned(spark, other)
    without_cersql_in_the_workers(other)
    assert cersql.ship(cersql.ship(spark)) is spark  # twice is harmless
    assert rows(spark.sql(QUERY)) == ALL
    print("works")  # noqa: T201


def not_taught(spark: Any) -> None:
    import cersql

    assert rows(cersql.sql(spark, QUERY)) == ALL
    assert rows(cersql.sql(spark, QUERY.replace("ORDER BY ts", ""), order_by="ts")) == ALL
    assert rows(cersql.sql(spark, "SELECT 1")) == [(1,)]
    match = "PATTERN A a ; B b WHERE a.v > :v ORDER BY ts RETURN a.ts, b.ts"
    assert rows(cersql.match(spark.table("ev"), match, {"v": 20})) == [(3, 4), (3, 5)]
    assert rows(cersql.match(spark.table("ev"), "PATTERN A : B ORDER BY ts RETURN match_start")) == [(1,), (3,)]
    assert "layout" in cersql.explain(spark, QUERY, "physical")


def functions(spark: Any) -> None:
    body = "PATTERN A a ; B b WITHIN reach RETURN a.ts AS x, b.ts AS y"
    spark.sql(f"CREATE PATTERN FUNCTION near(reach INT DEFAULT 9) AS {body}")
    call = "near(TABLE(SELECT * FROM ev WHERE k = :k) ORDER BY ts, reach => 1 + 0)"
    assert rows(spark.sql(f"SELECT m.x FROM {call} AS m WHERE y < 9", {"k": 1})) == [(1,)]
    error = refused(lambda: spark.sql("SELECT * FROM near(TABLE(ev) ORDER BY ts, rech => 1)"), "UNKNOWN_PARAMETER")
    assert (error.line, error.column) == (1, 15)
    spark.sql("DROP PATTERN FUNCTION near")


def more_of_functions(spark: Any) -> None:
    import cersql

    spark.sql(
        "CREATE PATTERN FUNCTION above(least DOUBLE, reach INT DEFAULT 9) AS "
        "PATTERN A a ; B b WHERE b.v > least WITHIN reach RETURN a.ts AS x, b.ts AS y"
    )
    call = "above(TABLE(ev) PARTITION BY k ORDER BY ts, least => 40)"
    assert rows(spark.sql(f"SELECT * FROM {call}")) == [(1, 2), (1, 5)]
    assert rows(spark.sql(f"SELECT m.y FROM {call} AS m JOIN {call} n ON m.x = n.x AND m.y < n.y")) == [(2,)]
    assert rows(spark.sql("SELECT x, y FROM above(TABLE(ev) ORDER BY ts, 20 + 30, reach => 2)")) == [(3, 5)]
    assert rows(spark.sql("SELECT y FROM above(TABLE(SELECT * FROM ev WHERE k = 1) ORDER BY ts, -1)")) == [(2,), (5,)]
    by = "above(least => :v, TABLE(SELECT * FROM ev) PARTITION BY (k) ORDER BY (ts ASC NULLS LAST), reach => 1)"
    assert rows(spark.sql(f"SELECT y FROM {by} WHERE y > :w", {"v": 10, "w": 3})) == [(4,)]
    asked = "SELECT y FROM above(TABLE(ev) ORDER BY ts, ?) WHERE y > ?"
    assert rows(spark.sql(asked, [10, 4])) == [(5,), (5,)]
    several = "above(TABLE(ev) PARTITION BY k, type ORDER BY ts, v, least => 40)"
    assert rows(spark.sql(f"SELECT * FROM {several}")) == []
    several = "above(TABLE({df}) PARTITION BY k ORDER BY ts, v, {n})"
    assert rows(spark.sql(f"SELECT x, y FROM {several}", df=spark.table("ev"), n=40)) == [(1, 2), (1, 5)]
    assert rows(spark.sql(f"SELECT ts FROM ev WHERE ts IN (SELECT y FROM {call})")) == [(2,), (5,)]
    error = refused(lambda: spark.sql("SELECT * FROM above(TABLE(ev) ORDER BY ts, v, lest => 1)"), "UNKNOWN_PARAMETER")
    assert (error.line, error.column) == (1, 15)
    assert error.text == "SELECT * FROM above(TABLE(ev) ORDER BY ts, v, lest => 1)"
    # definitions made of calls are told as they were written, so that they can be made again
    over = f"FROM (SELECT *, 'A' AS type FROM {call}) AS s PATTERN A a ORDER BY x RETURN a.y"
    spark.sql(f"CREATE PATTERN VIEW over AS {over}; -- so far")
    assert cersql.patterns(spark)["over"] == f"CREATE PATTERN VIEW over AS {over}"
    asked = over.replace("=> 40", "=> :least")
    spark.sql(f"CREATE OR REPLACE PATTERN VIEW over AS {asked}", {"least": 55})
    assert "__cersql_" not in cersql.patterns(spark)["over"]
    assert ":least" not in cersql.patterns(spark)["over"]
    assert rows(spark.table("over")) == [(5,)]
    spark.sql("DROP PATTERN VIEW over")
    spark.sql(f"CREATE PATTERN VIEW late AS {QUERY}")
    assert "MapInArrow" in spark.sql(f"EXPLAIN SELECT * FROM {call}").collect()[0][0]
    nested = (
        "SELECT count(*) FROM above(TABLE(FROM ev PATTERN ANY e ORDER BY ts RETURN e.ts, e.type, e.v) ORDER BY ts, 0)"
    )
    assert rows(spark.sql(nested)) == [(5,)]
    assert [row.name for row in spark.sql("SHOW PATTERNS LIKE 'a*'").collect()] == ["above"]
    assert spark.sql("DESCRIBE PATTERN above").collect()

    error = refused(lambda: spark.sql("SELECT * FROM above(TABLE(ev) ORDER BY ts, least => k)"), "FUNCTION_CALL")
    assert "must be a constant" in str(error)
    assert (error.line, error.column) == (1, 44)
    refused(lambda: spark.sql("SELECT * FROM above(TABLE(ev) ORDER BY ts DESC, 1)"), "FUNCTION_CALL")
    refused(lambda: spark.sql("SELECT * FROM above(40)"), "FUNCTION_CALL")
    refused(lambda: spark.sql("SELECT * FROM above(TABLE(ev) ORDER BY ts, lest => 1)"), "UNKNOWN_PARAMETER")
    refused(lambda: spark.sql("SELECT * FROM above(TABLE(ev), 1)"), "ORDER_MISSING")
    body = "above() AS PATTERN A a ORDER BY ts RETURN a.ts"
    refused(lambda: spark.sql(f"CREATE PATTERN FUNCTION {body}"), "FUNCTION_EXISTS")
    refused(lambda: spark.sql(f"CREATE PATTERN FUNCTION {body.replace('()', '(x NOTYPE)')}"), "PARAMETER_TYPE")
    spark.sql(f"CREATE OR REPLACE PATTERN FUNCTION {body}")
    assert rows(spark.sql("SELECT * FROM above(TABLE ev)")) == [(1,), (3,)]
    spark.sql("DROP PATTERN FUNCTION above")
    spark.sql("DROP PATTERN VIEW late")
    refused(lambda: spark.sql("DROP PATTERN FUNCTION above"), "UNKNOWN_PATTERN")


def views_that_are_not_ours_any_more(spark: Any) -> None:
    """Spark's own API replaces a view: what its name meant must not be read under a filter."""
    import cersql

    create = f"CREATE OR REPLACE PATTERN VIEW moved AS {QUERY}"
    filtered = "SELECT x FROM moved WHERE k = 1"
    spark.sql(create)
    assert rows(spark.sql(filtered)) == [(1,), (1,)]
    assert "before the pattern: k = 1" in spark.sql(f"EXPLAIN {filtered}").collect()[0][0]
    spark.sql("SELECT 1 AS k, 77 AS x").createOrReplaceTempView("moved")
    assert rows(spark.sql(filtered)) == [(77,)]
    assert "moved" not in cersql.patterns(spark)
    spark.sql(create)
    spark.table("moved").where("x = 3").createOrReplaceTempView("moved")  # and has the one of ours inside
    assert rows(spark.sql(filtered)) == []
    spark.sql(create)
    assert "moved" in cersql.patterns(spark)
    spark.sql("DROP VIEW moved")
    assert "moved" not in cersql.patterns(spark)


def cloned(spark: Any, other: Any) -> None:
    """Global views are another session's, and what a clone has is its own."""
    import cersql

    spark.sql(f"CREATE GLOBAL PATTERN VIEW everywhere AS {QUERY}")
    assert rows(other.sql("SELECT x FROM global_temp.everywhere WHERE k = 1")) == [(1,), (1,)]
    assert list(cersql.patterns(other)) == ["everywhere"]
    spark.sql(f"CREATE PATTERN VIEW own AS {QUERY}")
    spark.sql("CREATE PATTERN FUNCTION pairs() AS PATTERN A a ; B b RETURN a.ts AS x, b.ts AS y")
    clone = spark.cloneSession()
    assert {"everywhere", "own", "pairs"} <= set(cersql.patterns(clone))
    assert rows(clone.sql("SELECT x FROM own WHERE k = 2")) == [(3,)]
    assert rows(clone.sql("SELECT y FROM pairs(TABLE(ev) ORDER BY ts) WHERE x = 3")) == [(4,), (5,)]
    clone.sql("DROP PATTERN FUNCTION pairs")
    clone.sql("DROP PATTERN VIEW own")
    assert rows(spark.sql("SELECT y FROM pairs(TABLE(ev) ORDER BY ts) WHERE x = 3")) == [(4,), (5,)]
    assert "own" in cersql.patterns(spark)
    spark.sql("DROP PATTERN VIEW global_temp.everywhere")


def without_cersql_in_the_workers(spark: Any) -> None:
    from pyspark.errors import PySparkException

    from spark_ext import connect

    def fails(batches: Any) -> Any:
        import cersql_is_not_here  # type: ignore[import-not-found]  # noqa: F401

        yield from batches

    connect._cores.clear()
    probe, connect._probe = connect._probe, fails
    try:
        error = refused(lambda: spark.sql(QUERY).collect(), "CONNECT_WORKERS")
        assert "PYSPARK_PYTHON" in str(error)
        assert not isinstance(error, PySparkException)
    finally:
        connect._probe = probe


if __name__ == "__main__":
    code = 1
    try:
        script()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)  # the client of a local server can wait for minutes at the end of a process
