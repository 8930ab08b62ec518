"""Sources whose columns have one name and different types; expressions as keys; rows that WHERE leaves out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import sparks
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import cersql
from spark_ext import arrivals
from spark_ext.errors import ExpressionError, SparkError

BIG = 9007199254740993  # no DOUBLE


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    own = sparks.taught(spark)
    orders = [
        (1, BIG, 7, ["x"], {"id": 1}, "Ann"),
        (2, BIG - 1, 8, ["y"], {"id": 2}, "bob"),
        (5, 5, 1, [], None, "ann"),
    ]
    sparks.view(
        own, "orders", orders, "ts int, id bigint, code int, tags array<string>, who struct<id:int>, name string"
    )
    paid = [(3, float(BIG - 1), "abc", 1, "ANN"), (4, 5.0, "8", 2, "Bob"), (6, None, None, None, None)]
    sparks.view(own, "paid", paid, "TS int, id double, code string, tags int, name string")
    return own


def rows(session: SparkSession, text: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in session.sql(text).collect()), key=repr)


F = "FROM orders AS O, paid AS P PATTERN "


def test_equal_is_what_spark_says(session: SparkSession) -> None:
    """Of every pair of types, beside a join; and values come out as they are."""
    got = rows(session, F + "O a ; P b WHERE a.id = b.id ORDER BY ts RETURN a.id, b.id, a.ts, b.TS")
    joined = "SELECT o.id, p.id, o.ts, p.ts FROM orders o JOIN paid p ON o.id = p.id AND o.ts < p.ts"
    assert got == rows(session, joined)
    assert {row[0] for row in got} == {BIG, BIG - 1}
    got = rows(session, F + "O a ; P b WHERE a.code = try_cast(b.code AS INT) ORDER BY ts RETURN a.code, b.code")
    assert got == [(8, "8")]
    got = rows(session, F + "(O a ; P b) PART BY (a.id, b.id) ORDER BY ts RETURN a.ts, b.ts")
    assert got == [(1, 3), (2, 3)]


def test_nothing_is_cast_that_need_not_be(session: SparkSession) -> None:
    assert rows(session, f"{F}O a ; P b WHERE a.id = {BIG} ORDER BY ts RETURN a.id, b.ts") == [
        (BIG, 3), (BIG, 4), (BIG, 6),
    ]  # fmt: skip
    assert rows(session, F + "O a ; P b WHERE b.code = 'abc' ORDER BY ts RETURN a.code, b.code, b.tags, a.tags") == [
        (7, "abc", 1, ["x"]), (8, "abc", 1, ["y"]),
    ]  # fmt: skip
    whole = session.sql(F + "O a ; P b WHERE a.who.id = 2 AND b.tags = 1 ORDER BY ts RETURN *")
    assert whole.schema["a"].dataType == session.table("orders").schema
    assert whole.schema["b"].dataType == session.table("paid").schema
    (row,) = whole.collect()
    assert row.a == session.table("orders").where("ts = 2").first()
    assert row.b == session.table("paid").where("ts = 3").first()


def test_loops_aggregates_and_absence(session: SparkSession) -> None:
    text = (
        F + "O+ a ; P b WHERE a[i-1].id > a[i].id AND b.code = 'abc' ORDER BY ts RETURN a.id, MAX(a.id), SUM(b.id), b.*"
    )
    (got,) = [row for row in session.sql(text).collect() if len(row[0]) == 2]
    assert tuple(got)[:3] == ([BIG, BIG - 1], BIG, float(BIG - 1))
    assert session.sql(text).schema[1].dataType.simpleString() == "bigint"
    got = rows(
        session, F + "O a ; !P b ; O c WHERE b.code = 'abc' AND b.id < a.id ORDER BY ts WITHIN 9 RETURN a.ts, c.ts"
    )
    assert got == [(1, 2), (1, 5), (2, 5)]  # as DOUBLE no id is less
    got = rows(
        session, F + "O a ; !P b ; O c WHERE b.code = 'abc' AND b.id = a.id ORDER BY ts WITHIN 9 RETURN a.ts, c.ts"
    )
    assert got == [(1, 2)]


def test_unions_type_for_rows_of_both(session: SparkSession) -> None:
    df = session.sql(F + "(O OR P) AS x WHERE x.id > 5 ORDER BY ts RETURN x.id, x.name, x.ts")
    assert df.schema[0].dataType.simpleString() == "double"
    assert sorted(map(tuple, df.collect())) == sorted(
        (float(id), name, ts) for ts, id, name in [(1, BIG, "Ann"), (2, BIG - 1, "bob"), (3, BIG - 1, "ANN")]
    )
    union = session.sql("SELECT id FROM orders UNION ALL SELECT id FROM paid").schema[0].dataType
    assert df.schema[0].dataType == union


def test_definitions_have_the_types_of_their_source(session: SparkSession) -> None:
    text = f"{F}O a ; Odd b DEFINE O AS id = {BIG}, Odd AS P.code = 'abc' ORDER BY ts RETURN a.id, b.ts"
    assert rows(session, text) == [(BIG, 3)]
    # of orders nothing is known by the name of a column of theirs
    assert rows(session, F + "A x DEFINE A AS O.name IS NOT NULL ORDER BY ts RETURN x.ts") == [(1,), (2,), (5,)]


def test_names_that_are_odd(session: SparkSession) -> None:
    session.sql("SELECT 1 AS `a.b`, 2 AS ts, 'x' AS `select`, 'o' AS `O.select`").createOrReplaceTempView("`odd``1`")
    session.sql("SELECT 1.5D AS `a.b`, 3 AS ts, 7 AS `select`").createOrReplaceTempView("`odd 2`")
    text = (
        "FROM `odd``1` AS O, `odd 2` AS `P P` PATTERN O a ; `P P` b "
        "WHERE a.`a.b` < b.`a.b` AND a.`select` = 'x' AND b.`select` = 7 ORDER BY ts RETURN a, b.*"
    )
    (row,) = session.sql(text).collect()
    assert row.a.asDict() == {"a.b": 1, "ts": 2, "select": "x", "O.select": "o"}
    assert tuple(row)[1:] == (1.5, 3, 7)


def test_nothing_matches_in_empty_sources(session: SparkSession) -> None:
    session.table("orders").where("FALSE").createOrReplaceTempView("no_orders")
    for text in ("FROM no_orders AS O, paid AS P", "FROM paid AS P, no_orders AS O"):
        for rest in ("O a ; P b WHERE a.id = b.id", "O a ; P b WHERE a.code = 1 AND b.code = 'abc'"):
            assert rows(session, f"{text} PATTERN {rest} ORDER BY ts RETURN a.id, b.id") == []


def test_a_null_time_is_shown_with_its_source(session: SparkSession) -> None:
    session.sql("SELECT CAST(NULL AS INT) AS ts, 'k' AS id").createOrReplaceTempView("late")
    with pytest.raises(PySparkException) as caught:
        session.sql("FROM orders AS O, late AS L PATTERN O a ; L b ORDER BY ts RETURN a.id, b.id").collect()
    said = str(caught.value)
    assert "[NULL_TIME] The ORDER BY column ts is NULL in the row of L, ts = NULL, L.id = k" in said
    assert "__cersql" not in said


# ---------------------------------------------------------------- expressions over one row


def test_expressions_as_keys(session: SparkSession) -> None:
    got = rows(session, F + "O a ; P b PARTITION BY lower(name) AS who ORDER BY ts RETURN who, a.ts, b.ts")
    assert got == [("ann", 1, 3), ("bob", 2, 4)]
    assert got == rows(session, F + "O a ; P b PARTITION BY lower(name) ORDER BY ts RETURN lower( Name ), a.ts, b.ts")
    assert [row[1:] for row in got] == rows(session, F + "O a ; P b WHERE [lower(name)] ORDER BY ts RETURN a.ts, b.ts")
    got = rows(session, F + "O a ; P b PARTITION BY CAST(id AS DOUBLE) ORDER BY ts RETURN a.ts, b.ts")
    assert got == [(1, 3), (2, 3)]  # as DOUBLE they are one


def test_what_return_calls_them(session: SparkSession) -> None:
    text = (
        "FROM orders DEFINE A AS TRUE PATTERN A a PARTITION BY who.id, upper(name), ts % 2 AS odd ORDER BY ts RETURN *"
    )
    df = session.sql(text)
    assert df.columns == ["id", "upper(name)", "odd", "match_start", "match_end", "a"]
    assert sorted(tuple(row)[:4] for row in df.where("id IS NOT NULL").collect()) == [
        (1, "ANN", 1, 1),
        (2, "BOB", 0, 2),
    ]
    df = session.sql(text.replace("*", "who.id, upper(name), odd + 1, match_start"))
    assert df.columns == ["id", "upper(name)", "odd + 1", "match_start"]
    assert (None, "ANN", 2, 5) in {tuple(row) for row in df.collect()}


def test_expressions_in_order_by(session: SparkSession) -> None:
    """The first is the clock: match_start is its value."""
    text = "FROM orders DEFINE A AS TRUE PATTERN A a : A b WHERE b.ts > 0 ORDER BY {} RETURN a.ts, b.ts, match_start"
    text = text.replace("A a : A b", "A x : A y").replace("b.ts > 0", "y.ts > 0").replace("a.ts, b.ts", "x.ts, y.ts")
    assert rows(session, text.format("-ts")) == [(2, 1, -2), (5, 2, -5)]
    assert rows(session, text.format("ts DIV 10, lower(name), ts")) == [(1, 5, 0), (5, 2, 0)]
    assert rows(session, text.format("timestamp_seconds(ts) WITHIN 1 SECOND").replace("match_start", "1")) == [
        (1, 2, 1)
    ]


@pytest.mark.parametrize(
    ("clause", "condition", "fragment"),
    [
        ("PARTITION BY ‸max_by(ts, id)", "ROW_EXPRESSION", "MAX_BY"),
        ("PARTITION BY ‸explode(tags)", "INVALID_EXPRESSION", "it makes many rows of one"),
        ("PARTITION BY k, date(‸tags)".replace("k, ", ""), "INVALID_EXPRESSION", "cannot cast"),
        ("PARTITION BY ‸nosuch(ts)", "INVALID_EXPRESSION", "nosuch"),
        ("PARTITION BY ‸who.nope", "INVALID_EXPRESSION", "nope"),
        ("PARTITION BY ‸map(1, ts)", "NOT_ORDERABLE", "map<int,int>"),
        ("WHERE [lower(‸tags)]", "INVALID_EXPRESSION", "tags"),
    ],
)
def test_what_spark_objects_to(session: SparkSession, clause: str, condition: str, fragment: str) -> None:
    marked = f"FROM orders DEFINE A AS TRUE PATTERN A a {clause} ORDER BY ts RETURN a.ts"
    text, place = marked.replace("‸", ""), marked.index("‸")
    with pytest.raises(cersql.CersqlError) as caught:
        cersql.sql(session, text)
    assert (caught.value.condition, caught.value.line) == (condition, 1)
    assert fragment in str(caught.value)
    assert abs((caught.value.column or 0) - 1 - place) <= len("lower(")


def test_a_function_that_is_not_deterministic(session: SparkSession) -> None:
    from pyspark.sql.functions import udf

    session.udf.register("dice", udf(lambda: 4, "int").asNondeterministic())
    with pytest.raises(cersql.CersqlError) as caught:
        cersql.sql(session, "FROM orders DEFINE A AS TRUE PATTERN A a PARTITION BY dice() + ts ORDER BY ts RETURN a.ts")
    assert caught.value.condition == "UNSTEADY_KEY"


def test_no_common_type_of_an_expression(session: SparkSession) -> None:
    for clause, condition in (
        ("tags", "NO_COMMON_TYPE"),
        ("coalesce(tags)", "NO_COMMON_TYPE"),
        ("abs(id)", "KEY_TYPES"),
    ):
        with pytest.raises(cersql.CersqlError) as caught:
            cersql.sql(session, f"{F}O a ; P b PARTITION BY {clause} ORDER BY ts RETURN a.ts")
        assert caught.value.condition == condition


def test_filters_on_such_keys_act_before_the_pattern(session: SparkSession) -> None:
    session.sql(
        f"CREATE OR REPLACE TEMPORARY PATTERN VIEW by_name AS {F}O a ; P b PARTITION BY lower(name) AS who ORDER BY ts "
        "RETURN who, a.ts AS a, b.ts AS b"
    )
    assert rows(session, "SELECT * FROM by_name WHERE who = 'bob'") == [("bob", 2, 4)]
    assert "before the pattern: who = 'bob'" in str(
        session.sql("EXPLAIN SELECT * FROM by_name WHERE who = 'bob'").collect()
    )


# ---------------------------------------------------------------- WHERE before PATTERN


def test_rows_are_left_out_before_the_pattern(session: SparkSession) -> None:
    """As by a subquery: so what was between two events can be gone."""
    text = "FROM orders {} DEFINE A AS TRUE PATTERN A x : A y ORDER BY ts RETURN x.ts, y.ts"
    assert rows(session, text.format("")) == [(1, 2), (2, 5)]
    assert rows(session, text.format("WHERE lower(orders.name) = 'ann'")) == [(1, 5)]
    nested = text.replace("FROM orders {}", "FROM (SELECT * FROM orders WHERE name LIKE 'a%') AS o")
    assert rows(session, text.format("WHERE name LIKE 'a%'")) == rows(session, nested) == []
    assert rows(session, text.format("WHERE id IN (SELECT id FROM paid)")) == [(1, 2), (2, 5)]
    both = F.replace("PATTERN", "WHERE O.code > 1 AND P.id IS NOT NULL PATTERN")
    assert rows(session, both + "O a : P b WHERE a.ts < b.ts ORDER BY ts RETURN a.ts, b.ts") == [(2, 3)]
    with pytest.raises(ExpressionError) as caught:
        cersql.sql(session, text.format("WHERE ts > 1 AND code"))
    assert (caught.value.condition, caught.value.column) == ("INVALID_EXPRESSION", 19)
    shown = cersql.explain(session, text.format("WHERE ts > 1"), "cel")
    assert "source orders: SELECT * FROM `orders`, WHERE `ts` > 1" in shown
    assert "order of effect: where, of rows, pattern, return" in shown


def test_a_null_time_can_be_left_out(session: SparkSession) -> None:
    session.sql("SELECT * FROM VALUES (NULL, 1), (2, 2) AS v(ts, id)").createOrReplaceTempView("some_late")
    text = "FROM some_late {} DEFINE A AS TRUE PATTERN A a ORDER BY ts RETURN a.id"
    assert rows(session, text.format("WHERE ts IS NOT NULL")) == [(2,)]
    with pytest.raises(PySparkException, match="NULL_TIME"):
        session.sql(text.format("WHERE ts IS NULL")).collect()


# ---------------------------------------------------------------- streams


@pytest.fixture(scope="module")
def events(session: SparkSession) -> str:
    session.sql(
        "SELECT timestamp_seconds(1600000000 + id * 7) AS ts, id, element_at(array('A', 'B'), CAST(id % 2 AS INT) + 1) "
        "AS type, element_at(array('x', 'X', 'y'), CAST(pmod(hash(id), 3) AS INT) + 1) AS name, "
        "named_struct('id', id % 5) AS who, pmod(hash(id), 4) > 0 AS ok FROM range(60)"
    ).createOrReplaceTempView("events")
    return "events"


@pytest.mark.breadth(1)
@pytest.mark.parametrize(
    "query",
    [
        pytest.param("PATTERN A a ; B b PARTITION BY date_trunc('minute', ts) AS m, lower(name) "
                     "ORDER BY ts, upper(name) WITHIN 1 MINUTE RETURN *", marks=pytest.mark.exhaustive),
        "WHERE ok PATTERN A a : B b WHERE [who.id % 1] ORDER BY ts WITHIN 10 MINUTES RETURN a.id AS a, b.id AS b",
        pytest.param("WHERE ok AND name <> 'y' PATTERN A a ; !B PARTITION BY who.id ORDER BY ts WITHIN 1 MINUTE "
                     "WATERMARK 1 MINUTE RETURN who.id, a.id AS a", marks=pytest.mark.exhaustive),
    ],
)  # fmt: skip
def test_a_replay_is_the_batch(session: SparkSession, events: str, query: str) -> None:
    found = cersql.replay(session, events, query, batches=2)
    assert found.same, found
    assert found.matches > 5


def test_a_stream_is_in_the_order_of_its_watermark(session: SparkSession, events: str) -> None:
    with pytest.raises(SparkError) as caught:
        cersql.replay(session, events, "PATTERN A a ; B b ORDER BY date_trunc('minute', ts) WITHIN 1 MINUTE RETURN *")
    assert caught.value.condition == "STREAM_ORDER"
    assert "no column of the source" in str(caught.value)


@pytest.mark.exhaustive
def test_two_streams_of_different_types(session: SparkSession, events: str, tmp_path: Path) -> None:
    tables = {
        "A": "SELECT ts AS TS, id, name, ok FROM events WHERE type = 'A'",
        "B": "SELECT ts, CAST(id AS DOUBLE) AS id, array(name) AS name FROM events WHERE type = 'B'",
    }
    for name, text in tables.items():
        df = session.sql(text)
        arrivals.write(df, df.columns[0], tmp_path / name, 1, arrivals.Disorder(5.0, 1), ended=True)
        live = arrivals.read(session, df.schema, tmp_path / name)
        live.createOrReplaceTempView(f"live_{name}")
        df.createOrReplaceTempView(f"table_{name}")
    text = (
        "FROM {0}_A AS A, {0}_B AS B WHERE A.ok AND B.id <> 9 PATTERN A a : B b WHERE a.id < b.id ORDER BY ts "
        "WITHIN 2 MINUTES {1} RETURN a.id AS a, b.id AS b, a.name AS c, b.name AS d, a.TS AS e"
    )
    running = (
        cersql.sql(session, text.format("live", "WATERMARK 10 SECONDS"))
        .writeStream.format("memory").queryName("two_types").outputMode("append")
        .option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
    )  # fmt: skip
    try:
        running.awaitTermination()
        got = session.table("two_types").collect()
    finally:
        running.stop()
    want = cersql.sql(session, text.format("table", "")).collect()
    assert len(want) > 5
    assert sorted(map(repr, got)) == sorted(map(repr, want))
