"""The parser hook, with a `rewrite` that is no more than a stand-in."""

from __future__ import annotations

import logging
import re
import subprocess
import sys
import threading
from typing import Any

import pytest
from py4j.java_gateway import is_instance_of
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession

from cersql.errors import BindError, ParseError
from runtime.errors import Span
from spark_ext.errors import SparkError
from spark_ext.session import Values, _replace_parser, check_version, enable, session, try_sql
from spark_ext.views import private_view


def fake_rewrite(spark: SparkSession, sql: str, values: Values) -> str | DataFrame | None:
    """PATTERN n is the numbers below n; a subquery (PATTERN n x) likewise; some words are mistakes."""
    if "PATTERN" not in sql:
        return None
    given = values()
    if isinstance(given, list):  # a rewrite fills in those in order, around its parts as well
        sql = sql.replace("?", *given)
    if (at := sql.find("boom")) >= 0:
        raise BindError("UNKNOWN_VARIABLE", name="boom", span=Span(at, at + 4), text=sql, hint="It has: a, b.")
    if "later" in sql:
        raise ParseError("NOT_SUPPORTED_YET", construct="later")
    if "limit" in sql:
        raise ParseError("TOO_DEEP", limit=100, text=sql, span=Span(0, 7))
    if "bug" in sql:
        raise KeyError("a bug")
    if "nosuch" in sql:
        return spark.table("nosuch")
    if "bad" in sql:
        return "SELEC 1"
    if sql.startswith("PATTERN "):
        return spark.range(int(sql.split()[1]))
    start, end = sql.index("(PATTERN"), sql.index(")", sql.index("(PATTERN"))
    name = private_view(spark, spark.range(int(sql[start:end].split()[1])), lasting=False)
    return f"{sql[:start]}(SELECT * FROM {name}){sql[end + 1 :]}"


def fresh(spark: SparkSession) -> SparkSession:
    """A session of the same Spark that shares no extensions with `spark`."""
    jsession = getattr(spark._jvm, "org.apache.spark.sql.classic.SparkSession").builder().create()  # type: ignore[union-attr]
    return SparkSession(spark.sparkContext, jsession)


@pytest.fixture
def taught(spark: SparkSession) -> SparkSession:
    return enable(fresh(spark), fake_rewrite)


@pytest.fixture
def plain(spark: SparkSession) -> SparkSession:
    return fresh(spark)


def refused(spark: SparkSession, sql: str, **arguments: Any) -> AnalysisException:
    with pytest.raises(AnalysisException) as caught:
        spark.sql(sql, **arguments)
    return caught.value


# ---------------------------------------------------------------- what is ours


def test_a_whole_query(taught: SparkSession) -> None:
    df = taught.sql("PATTERN 3")
    assert [row.id for row in df.collect()] == [0, 1, 2]
    assert df.sparkSession is taught
    assert df.join(taught.sql("PATTERN 2"), "id").count() == 2
    assert "__cersql_" not in taught._jsparkSession.sessionState().catalog().getTempViewNames().mkString("|")


def test_a_subquery_with_parameters_of_the_statement_around_it(taught: SparkSession) -> None:
    sql = "SELECT id + :n AS y FROM (PATTERN 5 x) WHERE id > :n"
    assert [row.y for row in taught.sql(sql, args={"n": 2}).collect()] == [5, 6]
    assert taught.sql("SELECT id FROM (PATTERN 5 x) WHERE id = ?", args=[4]).count() == 1
    assert taught.sql("SELECT id FROM (PATTERN 5 x) WHERE id = {n}", n=4).count() == 1
    assert taught.sql("PATTERN 4", args={"n": 1}).count() == 4


def test_in_a_cte_and_under_explain(taught: SparkSession) -> None:
    assert taught.sql("WITH m AS (PATTERN 4 x) SELECT count(*) AS n FROM m").collect()[0].n == 4
    assert "Range (0, 3" in taught.sql("EXPLAIN SELECT * FROM (PATTERN 3 x)").collect()[0][0]


def test_the_result_outlives_its_private_view_and_stays_cached(taught: SparkSession) -> None:
    df = taught.sql("SELECT * FROM (PATTERN 7 x)").cache()
    assert df.count() == 7
    for _ in range(70):
        private_view(taught, taught.range(1), lasting=False)
    assert df.storageLevel.useMemory
    assert df.count() == 7
    names = taught._jsparkSession.sessionState().catalog().getTempViewNames().mkString("|")
    assert names.count("__cersql_") == 64


# ---------------------------------------------------------------- what is not


ORDINARY = [
    "SELECT 1 AS pattern",
    "SELECT pattern FROM VALUES ('PATTERN (A)') AS pattern(pattern)",
    "SHOW TABLES",
    "CREATE OR REPLACE TEMPORARY VIEW pattern AS SELECT 1 AS x",
    "FROM VALUES (1) AS t(x) SELECT x",
    "SET spark.sql.ansi.enabled",
]
MISTAKES = [
    "SELEC 1",
    "",
    "SELECT",
    "SELECT 'unclosed",
    "SELECT * FROM nosuch",
    "SELECT nosuch FROM VALUES (1) AS t(x)",
    "SELECT nosuch(1)",
    "SELECT cast(1 AS foo)",
    "SELECT 99999999999999999999L",
    "SELECT date'x'",
    "SET x y z",
    "SELECT 1 FROM t WHERE",
    "DROP VIEW nosuch",
    "SELECT 1 +",
    "WITH a AS (SELECT 1), a AS (SELECT 2) SELECT 1",
    "SELECT 1; SELECT 2",
]


@pytest.mark.parametrize("sql", ORDINARY)
def test_ordinary_sql_is_untouched(taught: SparkSession, plain: SparkSession, sql: str) -> None:
    assert taught.sql(sql).collect() == plain.sql(sql).collect()


@pytest.mark.parametrize("sql", MISTAKES)
def test_sparks_errors_are_the_same_with_and_without_us(taught: SparkSession, plain: SparkSession, sql: str) -> None:
    ours, theirs = refused(taught, sql), refused(plain, sql)
    assert type(ours) is type(theirs)
    assert re.sub(r"#\d+", "#", str(ours)) == re.sub(r"#\d+", "#", str(theirs))
    assert ours.getCondition() == theirs.getCondition()
    assert ours.getSqlState() == theirs.getSqlState()
    assert ours.getMessageParameters() == theirs.getMessageParameters()
    assert [c.fragment() for c in ours.getQueryContext()] == [c.fragment() for c in theirs.getQueryContext()]


def test_an_exception_that_no_parser_may_throw_keeps_its_message(taught: SparkSession, plain: SparkSession) -> None:
    ours = refused(taught, "SELECT :x", args={"y": 1})
    theirs = refused(plain, "SELECT :x", args={"y": 1})
    assert (ours.getCondition(), ours.getSqlState()) == (theirs.getCondition(), theirs.getSqlState())
    assert ours.getMessage() == theirs.getMessage()


def test_expressions_are_sparks(taught: SparkSession) -> None:
    assert taught.range(3).selectExpr("id + 1 AS pattern").filter("pattern > 1").count() == 2
    assert (
        taught.range(1).selectExpr("cast(id AS decimal(3, 1)) AS d").schema["d"].dataType.simpleString()
        == "decimal(3,1)"
    )
    with pytest.raises(ParseException, match="PARSE_SYNTAX_ERROR"):
        taught.range(3).selectExpr("id +")
    with pytest.raises(ParseException, match="UNSUPPORTED_DATATYPE"):
        taught.range(3).select(taught.range(1).id.cast("foo"))


# ---------------------------------------------------------------- our errors


def test_an_error_of_ours_is_a_parse_exception_with_caret_class_and_sqlstate(taught: SparkSession) -> None:
    error = refused(taught, "PATTERN SEQ(A a)\n  WHERE boom.x > 1")
    assert isinstance(error, ParseException)
    assert str(error).strip().splitlines() == [
        "[UNKNOWN_VARIABLE] There is no variable boom here. It has: a, b. SQLSTATE: 42703 (line 2, pos 8)",
        "",
        "== SQL ==",
        "PATTERN SEQ(A a)",
        "  WHERE boom.x > 1",
        "--------^^^",
    ]
    assert error.getSqlState() == "42703"
    parameters = error.getMessageParameters()
    assert parameters is not None
    assert (parameters["condition"], parameters["name"]) == ("UNKNOWN_VARIABLE", "boom")
    assert is_instance_of(
        taught.sparkContext._gateway, error._origin, "org.apache.spark.sql.catalyst.parser.ParseException"
    )


@pytest.mark.parametrize(
    ("sql", "condition", "sqlstate"),
    [
        ("PATTERN later", "NOT_SUPPORTED_YET", "0A000"),
        ("PATTERN bug", "INTERNAL", "XX000"),
        ("PATTERN limit", "TOO_DEEP", "54001"),
    ],
)
def test_errors_are_carried_by_spark_classes(taught: SparkSession, sql: str, condition: str, sqlstate: str) -> None:
    error = refused(taught, sql)
    assert isinstance(error, ParseException)
    assert f"[{condition}]" in str(error)
    assert error.getSqlState() == sqlstate
    assert error.getMessage()


def test_errors_of_spark_inside_rewrite_keep_their_class(taught: SparkSession) -> None:
    error = refused(taught, "PATTERN nosuch")
    assert error.getCondition() == "TABLE_OR_VIEW_NOT_FOUND"
    assert "`nosuch` cannot be found" in str(error)
    assert refused(taught, "PATTERN bad").getCondition() == "PARSE_SYNTAX_ERROR"


def test_nothing_is_logged_for_what_is_handled(taught: SparkSession, caplog: pytest.LogCaptureFixture) -> None:
    loggers = [logging.getLogger(name) for name in ("py4j.clientserver", "py4j.java_gateway")]
    with caplog.at_level(logging.WARNING):
        taught.sql("SELECT * FROM (PATTERN 3 x)")
        refused(taught, "PATTERN boom")
        refused(taught, "SELEC 1")
    assert all(logger.filters for logger in loggers)
    assert [record.name for record in caplog.records if record.name.startswith("py4j")] == []


# ---------------------------------------------------------------- sessions


def test_enable_twice_is_harmless(taught: SparkSession) -> None:
    def parser() -> int:
        jvm: Any = taught._jvm
        return getattr(jvm, "java.lang.System").identityHashCode(taught._jsparkSession.sessionState().sqlParser())

    before = parser()
    assert enable(taught, fake_rewrite) is taught
    assert parser() == before
    assert taught.sql("PATTERN 3").count() == 3


def test_new_sessions_have_it_with_views_of_their_own(taught: SparkSession) -> None:
    other = taught.newSession()
    taught.range(2).createOrReplaceTempView("nosuch")
    assert taught.sql("PATTERN nosuch").count() == 2
    assert refused(other, "PATTERN nosuch").getCondition() == "TABLE_OR_VIEW_NOT_FOUND"
    assert other.sql("SELECT * FROM (PATTERN 3 x)").count() == 3
    assert enable(other, fake_rewrite) is other
    assert other.newSession().sql("PATTERN 1").count() == 1


def test_the_active_session_is_taught_and_configured(taught: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    # The shared session must stay as it is for other tests, so the builder is given another to find.
    monkeypatch.setattr(SparkSession, "_instantiatedSession", taught)
    monkeypatch.setattr(SparkSession, "_activeSession", taught)
    found = session("tests", {"spark.sql.shuffle.partitions": "3"}, fake_rewrite)
    assert found is taught
    assert found.conf.get("spark.sql.shuffle.partitions") == "3"
    assert found.sql("PATTERN 3").count() == 3


def test_threads(taught: SparkSession) -> None:
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for i in range(5):
                n = number * 5 + i
                assert len(taught.sql(f"SELECT * FROM (PATTERN {n} x)").limit(1000).collect()) == n
                assert "UNKNOWN_VARIABLE" in str(refused(taught, "PATTERN boom"))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_try_sql(plain: SparkSession) -> None:
    df = try_sql(plain, "SELECT 1 AS x")
    assert df is not None
    assert df.collect()[0].x == 1
    assert try_sql(plain, "PATTERN 3") is None
    with pytest.raises(AnalysisException):
        try_sql(plain, "SELECT * FROM nosuch")


RESTART = """
from spark_ext.session import session
config = {"spark.master": "local[1]", "spark.ui.enabled": "false"}
for n in (3, 4):
    spark = session("restart", config, lambda spark, sql, values: spark.range(int(sql.split()[1])))
    print(spark.sql(f"PATTERN {n}").mapInArrow(lambda batches: batches, "id long").count())
    spark.stop()
"""


@pytest.mark.jvm
@pytest.mark.exhaustive  # test_concurrency.py restarts in the usual run
def test_a_new_session_after_stop_and_workers_that_run_this_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    done = subprocess.run([sys.executable, "-c", RESTART], capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout.split() == ["3", "4"], done.stderr


# ---------------------------------------------------------------- without a JVM


@pytest.mark.parametrize("found", ["3.5.1", "4.0.0", "4.2.9", "5.0.0", "x"])
def test_other_versions_of_pyspark_are_refused(found: str) -> None:
    with pytest.raises(SparkError) as caught:
        check_version(found)
    assert caught.value.condition == "SPARK_VERSION"
    assert found in str(caught.value)


@pytest.mark.parametrize("found", ["4.3.0", "4.3.0.dev1", "4.10.2"])
def test_versions_that_fit(found: str) -> None:
    check_version(found)


def test_a_session_of_another_shape_is_refused() -> None:
    class State:
        def getClass(self) -> Any:  # noqa: N802
            return self

        def getDeclaredFields(self) -> list[Any]:  # noqa: N802
            return []

    with pytest.raises(SparkError) as caught:
        _replace_parser(State(), None)  # type: ignore[arg-type]
    assert caught.value.condition == "SPARK_INTERNALS"
