"""Pattern functions give the rows of the same query over the table, wherever Spark's SQL can call a function."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import SparkSession
from sparks import taught, together, view

import cersql

EVENTS = [(i, "ABC"[(i * 7) % 3], i % 2, "ns"[(i // 2) % 2], i // 2, float((i * 5) % 9)) for i in range(24)]
BODY = "PATTERN A a ; B b WHERE a.v > {t} PARTITION BY k ORDER BY ts, id WITHIN {w} RETURN a.id AS x, b.id AS y"
CREATE = "CREATE PATTERN FUNCTION fires(threshold DOUBLE DEFAULT 3, w INT DEFAULT 6) AS " + BODY.format(
    t="threshold", w="w"
)


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> Iterator[SparkSession]:
    found = taught(spark)
    view(found, "ev", EVENTS, "id INT, type STRING, k INT, name STRING, ts INT, v DOUBLE")
    view(found, "limits", [(2.0, "low"), (5.0, "high")], "t DOUBLE, name STRING")
    found.sql(CREATE)
    yield found
    found.sql("DROP PATTERN FUNCTION IF EXISTS fires")


def query(source: str = "ev", t: object = 3, w: object = 6) -> str:
    return f"FROM {source} {BODY.format(t=t, w=w)}"


def refused(spark: SparkSession, sql: str, **arguments: Any) -> str:
    with pytest.raises(AnalysisException) as caught:
        spark.sql(sql, **arguments)
    return str(caught.value).strip()


def test_the_rows_are_those_of_the_query(session: SparkSession) -> None:
    few = query("(SELECT * FROM ev WHERE id < 12) AS s")
    pairs: list[tuple[str, str]] = [
        ("SELECT * FROM fires(TABLE(ev))", query()),
        ("SELECT * FROM fires(TABLE(ev), 5)", query(t=5)),
        ("SELECT * FROM fires(TABLE(ev), 5, 2)", query(t=5, w=2)),
        ("SELECT * FROM fires(TABLE(ev), '5', 2.5)", query(t=5, w=2)),
        ("SELECT * FROM fires(TABLE(ev), CAST(NULL AS INT))", query(t="NULL")),
        ("SELECT * FROM FIRES(threshold => 1 + 4, TABLE(ev))", query(t=5)),
        ("SELECT * FROM fires(TABLE(ev), W => 2)", query(w=2)),
        ("SELECT * FROM fires(TABLE(ev), w => 1L + 1, threshold => 2S + 1)", query(w=2)),
        ("SELECT * FROM fires(TABLE(ev), threshold => NULL)", query(t="NULL")),
        ("SELECT * FROM fires(TABLE(ev), -1.5)", query(t=-1.5)),
        ("SELECT * FROM fires(TABLE(SELECT * FROM ev WHERE id < 12))", few),
        ("SELECT * FROM fires(TABLE(SELECT * FROM ev WHERE id < 12) PARTITION BY k ORDER BY (ts, id))", few),
        ("SELECT * FROM fires(TABLE(ev) PARTITION BY name)", query().replace("BY k", "BY name")),
        ("SELECT * FROM fires(TABLE(ev) PARTITION BY k, name)", query().replace("BY k", "BY k, name")),
        ("SELECT * FROM fires(TABLE(ev) ORDER BY id)", query().replace("BY ts, id", "BY id")),
        ("SELECT * FROM fires(TABLE(ev) ORDER BY ts, id)", query()),
        ("SELECT * FROM fires(TABLE(ev) ORDER BY ts ASC, ev.id, 5, w => 2)", query(t=5, w=2)),
        ("SELECT * FROM fires(TABLE(ev) PARTITION BY k ORDER BY ts, id, threshold => 5)", query(t=5)),
        ("SELECT * FROM fires(TABLE(ev) ORDER BY id NULLS LAST)", query().replace("BY ts, id", "BY id NULLS LAST")),
        ("WITH s AS (SELECT * FROM ev WHERE id < 12) SELECT * FROM fires(TABLE(s))", few),
        ("SELECT f.* FROM fires(TABLE(ev)) AS f UNION ALL SELECT * FROM fires(TABLE(ev), 5) ORDER BY x",
         f"SELECT * FROM ({query()}) UNION ALL SELECT * FROM ({query(t=5)})"),
        ("SELECT f.x, g.y FROM fires(TABLE(ev)) f JOIN fires(TABLE(ev), 5) g ON f.x = g.x",
         f"SELECT f.x, g.y FROM ({query()}) f JOIN ({query(t=5)}) g ON f.x = g.x"),
        ("SELECT l.name, f.x FROM limits l, LATERAL fires(TABLE(ev)) f WHERE f.x > l.t",
         f"SELECT l.name, f.x FROM limits l, ({query()}) f WHERE f.x > l.t"),
        ("SELECT l.name, f.x FROM limits l JOIN LATERAL (SELECT * FROM fires(TABLE(ev)) WHERE x > l.t) f",
         f"SELECT l.name, f.x FROM limits l, ({query()}) f WHERE f.x > l.t"),
        ("SELECT * FROM limits WHERE t IN (SELECT x FROM fires(TABLE(ev)))",
         f"SELECT * FROM limits WHERE t IN ({query().replace(', b.id AS y', '')})"),
        ("SELECT * FROM fires(TABLE(SELECT x AS id, IF(x % 2 = 0, 'A', 'B') AS type, 1 AS k, y AS ts, 9D AS v FROM fires(TABLE(ev))))",  # noqa: E501
         query(f"(SELECT x AS id, IF(x % 2 = 0, 'A', 'B') AS type, 1 AS k, y AS ts, 9D AS v FROM ({query()})) AS s")),
        ("/* (PATTERN) */ SELECT count(*) AS n FROM `fires`(TABLE(`ev`)) -- end\n;", f"SELECT count(*) AS n FROM ({query()})"),  # noqa: E501
    ]  # fmt: skip
    texts = list(dict.fromkeys(sql for pair in pairs for sql in pair))
    found = dict(zip(texts, together([session.sql(sql) for sql in texts], 18), strict=True))
    for sql, same in pairs:
        assert sorted(map(repr, found[sql])) == sorted(map(repr, found[same])), sql
    assert any(found[query()])


def test_values_of_spark_sql(session: SparkSession) -> None:
    expected = sorted(session.sql(query(t=5)).collect())
    assert sorted(session.sql("SELECT * FROM fires(TABLE(ev), :t)", args={"t": 5.0}).collect()) == expected
    assert sorted(session.sql("SELECT * FROM fires(TABLE(ev) ORDER BY ts, id, ?)", args=[5]).collect()) == expected
    sql = "SELECT f.* FROM fires(TABLE(ev), ?) f JOIN (PATTERN C c ; A? ; B b WHERE b.v > ? ORDER BY ts, id RETURN 1)"
    assert "[ARGUMENT_COUNT] args has 3 values, and the text has 2 parameters '?'." in refused(
        session, sql, args=[1, 2, 3]
    )


def test_in_views_tables_and_ctas(session: SparkSession) -> None:
    expected = sorted(session.sql(query()).collect())
    session.sql("CREATE OR REPLACE TEMPORARY VIEW fv AS SELECT * FROM fires(TABLE(ev) ORDER BY ts, id)")
    session.sql("CREATE TABLE ft USING parquet AS SELECT * FROM fires(TABLE(ev))")
    try:
        assert sorted(session.sql("SELECT * FROM fv").collect()) == expected
        session.sql("INSERT INTO ft SELECT * FROM fires(TABLE(ev))")
        assert sorted(session.table("ft").collect()) == sorted(expected * 2)
        session.sql(
            "CREATE PATTERN VIEW pv AS FROM (SELECT x, y, 'A' AS type FROM fires(TABLE(ev))) AS s PATTERN A a ORDER BY x, y RETURN a.x AS x, a.y AS y"  # noqa: E501
        )
        assert sorted(session.sql("SELECT * FROM pv").collect()) == expected
        # a view is bound to the function as it was: another of that name changes nothing, as for temporary views
        session.sql("DROP PATTERN VIEW pv")
    finally:
        session.sql("DROP TABLE ft")
        session.sql("DROP VIEW fv")


def test_types_of_parameters(session: SparkSession) -> None:
    session.sql(
        """CREATE OR REPLACE TEMPORARY PATTERN FUNCTION typed(
             t DECIMAL(10, 2), u STRING, d DATE, m MAP<STRING, INT> DEFAULT map(), n INT DEFAULT 3, i INT DEFAULT 1
           ) AS DEFINE A AS v > t, B AS name = u
           PATTERN (A a ; B{i} b WITHIN n) WHERE size(m) = 0 AND d = DATE '2024-01-01'
           ORDER BY ts, id RETURN a.id AS x, u AS u, typed.t AS t, d AS d LIMIT n"""
    )
    rows = session.sql("SELECT * FROM typed(TABLE(ev), 3, 'n', DATE '2024-01-01')").collect()
    assert len(rows) == 3
    assert {(row.u, str(row.t), str(row.d)) for row in rows} == {("n", "3.00", "2024-01-01")}
    assert (
        session.sql("SELECT * FROM typed(TABLE(ev), u => 'it''s', d => current_date(), t => 1, n => 2L)").collect()
        == []
    )
    session.sql("DROP PATTERN FUNCTION typed")


def test_constants_of_every_making(session: SparkSession) -> None:
    times = [(i, "AB"[i % 2], datetime.datetime(2024, 1, 1, 0, i, tzinfo=datetime.UTC)) for i in range(6)]
    view(session, "times", times, "id INT, type STRING, ts TIMESTAMP")
    session.sql(
        """CREATE OR REPLACE PATTERN FUNCTION made(
             w INTERVAL DAY TO SECOND DEFAULT INTERVAL '1' MINUTE, bits INT DEFAULT shiftright(8, 3),
             yes BOOLEAN DEFAULT 1 < 2, n ARRAY<INT> DEFAULT array(), m MAP<STRING, INT> DEFAULT map()
           ) AS PATTERN A x ; B y WHERE yes AND bits = 1 AND size(n) = 0 AND size(m) = 0
           ORDER BY ts WITHIN w RETURN x.id AS x, y.id AS y"""
    )
    session.sql("DECLARE OR REPLACE VARIABLE one INT DEFAULT 1")
    counts = {
        "": 3,
        ", INTERVAL '3' MINUTE": 5,
        ", INTERVAL '1' MINUTE + INTERVAL '2' MINUTE": 5,
        ", INTERVAL '1' MINUTE * 3": 5,
        ", bits => one": 3,
        ", bits => 5": 0,
        ", n => array(1)": 0,
    }
    frames = [session.sql(f"SELECT * FROM made(TABLE(times){more})") for more in counts]
    assert [len(rows) for rows in together(frames)] == list(counts.values())
    assert "must be a constant" in refused(session, "SELECT m.* FROM times, LATERAL made(TABLE(times), bits => id) m")
    session.sql("DROP PATTERN FUNCTION made")
    session.sql("DROP TEMPORARY VARIABLE one")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("fires(TABLE(ev), thresold => 1)",
         "[UNKNOWN_PARAMETER] The pattern function fires has no parameter thresold. It has: threshold, w. Did you mean threshold? "  # noqa: E501
         "SQLSTATE: 42703"),
        ("fires(TABLE(ev), 1, threshold => 2)",
         "[FUNCTION_ARGUMENTS] The call of the pattern function fires does not fit: threshold is given twice. "
         "Its parameters: threshold DOUBLE DEFAULT 3, w INT DEFAULT 6. SQLSTATE: 42605"),
        ("fires(TABLE(ev), 1, 2, 3)",
         "[FUNCTION_ARGUMENTS] The call of the pattern function fires does not fit: it has 3 values, and the function 2 parameters. "  # noqa: E501
         "Its parameters: threshold DOUBLE DEFAULT 3, w INT DEFAULT 6. SQLSTATE: 42605"),
        ("fires(TABLE(ev), 'x')",
         "[FUNCTION_ARGUMENTS] The call of the pattern function fires does not fit: threshold is DOUBLE, and 'x' is not. "  # noqa: E501
         "Its parameters: threshold DOUBLE DEFAULT 3, w INT DEFAULT 6. SQLSTATE: 42605"),
        ("fires(TABLE(ev) ORDER BY tss)",
         "[UNKNOWN_COLUMN] tss is not a column of the sources. ORDER BY needs a column; there are: id, type, k, name, ts, v. "  # noqa: E501
         "Did you mean ts? It stands in the call of fires. SQLSTATE: 42703"),
        ("fires(1)", "[FUNCTION_CALL] The call of the pattern function fires does not fit: it needs a TABLE(…) argument. SQLSTATE: 42605"),  # noqa: E501
        ("fires(TABLE(ev), TABLE(ev))",
         "[FUNCTION_CALL] The call of the pattern function fires does not fit: its argument is one TABLE(…), and here are two. "  # noqa: E501
         "SQLSTATE: 42605"),
        ("fires(TABLE(ev), rand())",
         "[FUNCTION_CALL] The call of the pattern function fires does not fit: its argument rand() must be a constant: "
         "the pattern is planned with it. SQLSTATE: 42605"),
        ("fires(TABLE(ev) ORDER BY ts DESC)",
         "[FUNCTION_CALL] The call of the pattern function fires does not fit: its ORDER BY is the order in which events happened, "  # noqa: E501
         "which is ascending. SQLSTATE: 42605"),
        ("fires(TABLE(ev) PARTITION BY k + 1)",
         "[FUNCTION_CALL] The call of the pattern function fires does not fit: PARTITION BY takes columns, and (k + 1) is none: "  # noqa: E501
         "compute it in TABLE(SELECT …). SQLSTATE: 42605"),
        ("fires(TABLE(SELECT id, type, ts, v FROM ev))",
         "[UNKNOWN_COLUMN] k is not a column of the sources. PARTITION BY needs a column; there are: id, type, ts, v. "
         "In the definition of fires, line 1, column 132: k. SQLSTATE: 42703"),
    ],
)  # fmt: skip
def test_errors_of_a_call(session: SparkSession, call: str, message: str) -> None:
    assert refused(session, f"SELECT * FROM {call}").split("; line")[0].split("\n")[0] == message


def test_errors_of_spark_in_a_call(session: SparkSession) -> None:
    assert "[TABLE_OR_VIEW_NOT_FOUND]" in refused(session, "SELECT * FROM fires(TABLE(nosuch))")
    assert "[UNRESOLVED_COLUMN" in refused(session, "SELECT * FROM fires(TABLE(ev), nosuch)")
    assert "[PARSE_SYNTAX_ERROR]" in refused(session, "SELECT * FROM fires(TABLE(ev) ORDER BY)")


@pytest.mark.parametrize(
    ("definition", "condition", "at"),
    [
        ("f(a INT) AS PATTERN A a WHERE a.v > 1 RETURN a.id", "PARAMETER_NAME", "a INT"),
        ("f(A INT) AS PATTERN A x WHERE x.v > 1 RETURN x.id", "PARAMETER_NAME", "A INT"),
        ("f(p NOSUCH) AS PATTERN A a WHERE a.v > p RETURN a.id", "PARAMETER_TYPE", "p NOSUCH"),
        ("f(p INT DEFAULT 'a') AS PATTERN A a WHERE a.v > p RETURN a.id", "PARAMETER_TYPE", "p INT"),
        ("f(p INT DEFAULT nosuch) AS PATTERN A a WHERE a.v > p RETURN a.id", "PARAMETER_TYPE", "p INT"),
        ("f(p INT) AS PATTERN A a WHERE a.p > 1 RETURN a.id AS p", "UNUSED_PARAMETER", "p INT"),
        ("f AS FROM ev PATTERN A a ORDER BY ts RETURN a.id", "FUNCTION_WITH_SOURCE", "FROM ev"),
        ("f(p INT) AS PATTERN A a ; ; B WHERE a.v > p RETURN a.id", "UNEXPECTED_TOKEN", "; B"),
        ("fires AS PATTERN A a RETURN a.id", "FUNCTION_EXISTS", None),
        ("Range AS PATTERN A a RETURN a.id", "FUNCTION_EXISTS", None),
    ],
)
def test_errors_of_a_definition(session: SparkSession, definition: str, condition: str, at: str | None) -> None:
    sql = f"CREATE PATTERN FUNCTION {definition}"
    with pytest.raises(cersql.CersqlError) as caught:
        cersql.sql(session, sql)
    assert caught.value.condition == condition
    if at is not None:
        assert caught.value.span is not None
        assert sql[caught.value.span.start :].startswith(at)
    with pytest.raises(ParseException, match=condition):
        session.sql(sql)


def test_errors_that_wait_for_the_table(session: SparkSession) -> None:
    session.sql("CREATE OR REPLACE PATTERN FUNCTION late AS PATTERN A a ; B b RETURN a.id")
    assert "[ORDER_MISSING]" in refused(session, "SELECT * FROM late(TABLE(ev))")
    assert "Write ORDER BY in the call, late(TABLE(t) ORDER BY ts), or in the definition." in refused(
        session, "SELECT * FROM late(TABLE(ev))"
    )
    session.sql("CREATE OR REPLACE PATTERN FUNCTION late AS PATTERN A a ; B b\nWHERE boom.x > 1 RETURN a.id")
    message = refused(session, "SELECT * FROM late(TABLE(ev) ORDER BY ts)")
    assert "In the definition of late, line 2, column 7: boom" in message
    session.sql("DROP PATTERN FUNCTION late")


def test_replaced_dropped_and_dropped_behind_our_back(session: SparkSession) -> None:
    session.sql("CREATE PATTERN FUNCTION g AS PATTERN A a ORDER BY id RETURN 1 AS n")
    assert session.sql("SELECT * FROM g(TABLE(ev))").columns == ["n"]
    session.sql("CREATE OR REPLACE PATTERN FUNCTION G AS PATTERN A a ORDER BY id RETURN 1 AS m")
    assert session.sql("SELECT * FROM g(TABLE(ev))").columns == ["m"]
    assert list(cersql.patterns(session)) == ["fires", "G"]
    session.sql("DROP TEMPORARY FUNCTION g")
    assert list(cersql.patterns(session)) == ["fires"]
    assert "[UNKNOWN_PATTERN] There is no pattern function g. There are: fires." in refused(
        session, "DROP PATTERN FUNCTION g"
    )
    session.sql("DROP PATTERN FUNCTION IF EXISTS g")
    assert "[UNRESOLVABLE_TABLE_VALUED_FUNCTION]" in refused(session, "SELECT * FROM g(TABLE(ev))")
    session.sql("CREATE PATTERN FUNCTION g AS PATTERN A a ORDER BY id RETURN 1 AS n")
    session.sql("DROP PATTERN FUNCTION g")
    assert "[UNRESOLVABLE_TABLE_VALUED_FUNCTION]" in refused(session, "SELECT * FROM g(TABLE(ev))")
    assert "fires" in [row.function for row in session.sql("SHOW USER FUNCTIONS").collect()]
    assert session.sql("DESCRIBE FUNCTION fires").collect()


def test_in_a_session_whose_parser_is_sparks(session: SparkSession, spark: SparkSession) -> None:
    classic: Any = spark._jvm.org.apache.spark.sql.classic  # type: ignore[union-attr]
    plain = SparkSession(spark.sparkContext, classic.SparkSession.builder().create())
    session.table("ev").createOrReplaceTempView("ev")
    view(plain, "ev", EVENTS, "id INT, type STRING, k INT, name STRING, ts INT, v DOUBLE")
    cersql.sql(plain, CREATE)
    assert "PatternParser" not in plain._jsparkSession.sessionState().sqlParser().toString()
    expected = sorted(session.sql(query(t=5)).collect())
    assert sorted(plain.sql("SELECT * FROM fires(TABLE(ev) PARTITION BY k ORDER BY (ts, id), 5)").collect()) == expected
    assert sorted(plain.sql("SELECT * FROM fires(TABLE(ev), threshold => :t)", args={"t": 5}).collect()) == expected
    with pytest.raises(ParseException):
        plain.sql("SELECT * FROM fires(TABLE(ev) ORDER BY ts, id)")
    found = cersql.sql(plain, "SELECT * FROM fires(TABLE(ev) ORDER BY ts, id, ?)", args=[5])
    assert sorted(found.collect()) == expected
