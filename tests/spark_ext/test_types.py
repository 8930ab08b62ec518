"""Every Spark type as payload, as key and in ORDER BY; windows over every clock; sources of all shapes."""

from __future__ import annotations

import pytest
import sparks
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

import cersql

# name → two expressions; a third row has NULL.
PAYLOADS: dict[str, tuple[str, str]] = {
    "small decimal": ("-1.25BD", "99.99BD"),
    "wide decimal": (f"CAST('{'9' * 38}' AS DECIMAL(38,0))", "CAST('-1' AS DECIMAL(38,0))"),
    "fine decimal": (f"CAST('0.{'1' * 38}' AS DECIMAL(38,38))", "CAST(0 AS DECIMAL(38,38))"),
    "timestamp": ("TIMESTAMP'0002-01-01 00:00:00Z'", "TIMESTAMP'9999-12-31 23:59:59.999999Z'"),
    "timestamp_ntz": ("TIMESTAMP_NTZ'1883-11-18 12:03:58'", "TIMESTAMP_NTZ'2021-03-14 02:30:00'"),
    "date": ("DATE'0002-01-01'", "DATE'9999-12-31'"),
    "binary": ("X''", "X'00FF80'"),
    "boolean": ("true", "false"),
    "tinyint": ("-128Y", "127Y"),
    "smallint": ("-32768S", "32767S"),
    "int": ("-2147483648", "2147483647"),
    "bigint": ("-9223372036854775808L", "9223372036854775807L"),
    "float": ("CAST('NaN' AS FLOAT)", "CAST('-Infinity' AS FLOAT)"),
    "double": ("CAST('NaN' AS DOUBLE)", "-0.0D"),
    "string": ("''", "'é\\U0001F600 \"x\" `'"),
    "struct": ("named_struct('a', 1, 'b.c', named_struct('d', array('x')))", "named_struct('a', 2, 'b.c', NULL)"),
    "array": ("array(1, 2)", "array()"),
    "array with null": ("array(1, NULL)", "array(3)"),
    "array of structs": ("array(named_struct('x', 1, 'y', 'a'))", "array(named_struct('x', 2, 'y', NULL))"),
    "map": ("map('a', 1)", "map()"),
    "map of arrays": ("map(1, array(map('x', 1.5D)))", "map(2, NULL)"),
    "day-time interval": ("INTERVAL '1 02:03:04.5' DAY TO SECOND", "INTERVAL '-1' DAY"),
    "null": ("NULL", "NULL"),
}
NO_KEYS = {"map", "map of arrays"}
ODD_NAMES = ["a b", "a.b", "a`b", "été", "SELECT", "Ünïcode column", "`", "1x", "a'b", 'a"b', "a\\b", "-- x"]


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    return sparks.taught(spark)


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


@pytest.fixture(scope="module")
def payload(session: SparkSession) -> DataFrame:
    """Three rows with a column of every type: two values and NULL. In memory, so that plans over it are short."""
    first, second = ([f"{pair[i]} AS {quoted(name)}" for name, pair in PAYLOADS.items()] for i in (0, 1))
    nulls = [f"NULL AS {quoted(name)}" for name in PAYLOADS]
    selects = [f"SELECT {n} AS id, {', '.join(items)}" for n, items in enumerate((first, second, nulls))]
    rows = session.sql(" UNION ALL ".join(selects)).localCheckpoint()
    rows.createTempView("payload")
    return rows


def same_rows(left: DataFrame, right: DataFrame) -> None:
    """Equal schemas (but for NULLability) and equal bags of rows; NaN equals NaN."""
    assert [(f.name, f.dataType.simpleString()) for f in left.schema] == [
        (f.name, f.dataType.simpleString()) for f in right.schema
    ]
    assert sorted(map(repr, left.collect())) == sorted(map(repr, right.collect()))


@pytest.mark.breadth(1)
@pytest.mark.parametrize("sort", ["worker", "spark"])
def test_every_type_passes_unchanged(session: SparkSession, payload: DataFrame, sort: str) -> None:
    text = "FROM payload PATTERN a : b+ DEFINE a AS id = 0, b AS id > 0 ORDER BY id RETURN *"
    with sparks.settings(session, cersql__sort=sort):
        df = session.sql(text)
    whole = df.where("size(b) = 2")
    same_rows(
        whole.selectExpr("a.*").unionAll(whole.selectExpr("explode(b) AS b").selectExpr("b.*")),
        payload.orderBy("id"),
    )
    assert [row.n for row in df.selectExpr("size(b) AS n").collect()].count(1) == 1


def test_single_events_and_attributes_of_every_type(session: SparkSession, payload: DataFrame) -> None:
    items = ", ".join(f"a.{quoted(name)}" for name in PAYLOADS)
    df = session.sql(f"FROM payload PATTERN a DEFINE a AS TRUE ORDER BY id WITHIN 5 RETURN a.id, {items}")
    same_rows(df, payload)


def test_every_type_as_a_key(session: SparkSession, payload: DataFrame) -> None:
    """Each value, NULL too, is one group of two events."""
    payload.unionAll(payload).withColumn("seq", fn.monotonically_increasing_id()).createOrReplaceTempView("twice")
    names = [name for name in PAYLOADS if name not in NO_KEYS]
    frames = [
        session.sql(
            f"FROM twice PATTERN a ; b PARTITION BY {quoted(name)} DEFINE a AS TRUE, b AS TRUE ORDER BY seq "
            f"RETURN {quoted(name)}, a.id AS a, b.id AS b"
        )
        for name in names
    ]
    for name, df, found in zip(names, frames, sparks.together(frames), strict=True):
        assert df.schema[0].dataType == payload.schema[name].dataType, name
        same = {row["a"] == row["b"] for row in found}
        assert len(found) == (15 if name == "null" else 3), name
        assert same == ({True, False} if name == "null" else {True}), name


@pytest.mark.parametrize("name", sorted(NO_KEYS))
def test_what_cannot_be_a_key_is_an_error(session: SparkSession, payload: DataFrame, name: str) -> None:
    for clause in (f"PARTITION BY {quoted(name)} ORDER BY id", f"ORDER BY {quoted(name)}"):
        with pytest.raises((AnalysisException, cersql.CersqlError)) as caught:
            session.sql(f"FROM payload PATTERN a DEFINE a AS TRUE {clause} RETURN *").collect()
        assert "Traceback" not in str(caught.value)


@pytest.mark.parametrize("turn", [0, pytest.param(1, marks=pytest.mark.exhaustive)])
def test_every_type_in_order_by(session: SparkSession, payload: DataFrame, turn: int) -> None:
    """The order in which events are bound is Spark's. Every other type, by turns."""
    frames = []
    names = [name for name in PAYLOADS if name not in NO_KEYS | {"null"}][turn::2]
    for name in names:
        source = f"(SELECT id, {quoted(name)} FROM payload WHERE {quoted(name)} IS NOT NULL) AS events"
        frames.append(
            session.sql(
                f"FROM {source} PATTERN a : b DEFINE a AS TRUE, b AS TRUE ORDER BY {quoted(name)} "
                "RETURN a.id AS a, b.id AS b"
            )
        )
    less = ", ".join(f"a.{quoted(name)} < b.{quoted(name)}" for name in names)
    (first_is_less,) = session.sql(f"SELECT {less} FROM payload a JOIN payload b ON a.id = 0 AND b.id = 1").collect()
    for name, found, less in zip(names, sparks.together(frames), first_is_less, strict=True):
        assert [(row["a"], row["b"]) for row in found] == [(0, 1) if less else (1, 0)], name


@pytest.mark.parametrize("turn", [0, pytest.param(1, marks=pytest.mark.exhaustive)])
def test_odd_names(session: SparkSession, turn: int) -> None:
    """Of columns, keys, sources and views, or of variables: by turns."""
    columns = ", ".join(f"id + {n} AS {quoted(name)}" for n, name in enumerate(ODD_NAMES))
    session.sql(f"SELECT id, {columns} FROM range(4)").createOrReplaceTempView("`odd ``names`")
    source, texts = quoted("odd `names"), []
    for n, name in enumerate(ODD_NAMES):
        q = quoted(name)
        texts.append(
            f"FROM {source} AS {q} PATTERN {q} AS v WHERE v.{q} >= 0 PARTITION BY {q} ORDER BY {q} RETURN *"
            if n % 2 == turn
            else f"FROM {source} AS e PATTERN e AS {q} WHERE {q}.id >= 2 ORDER BY {q} RETURN *, {q}.{q} AS again"
        )
    for n, found in enumerate(sparks.together([session.sql(text) for text in texts])):
        name = ODD_NAMES[n]
        if n % 2 == turn:
            assert sorted(row[name] for row in found) == [n, n + 1, n + 2, n + 3], name
        else:
            assert sorted(row["again"] for row in found) == [n + 2, n + 3], name
            assert {row[name]["id"] for row in found} == {2, 3}, name


def test_names_that_differ_in_case_only(session: SparkSession) -> None:
    with sparks.settings(session, spark__sql__caseSensitive="true"):
        session.sql("SELECT id AS x, id * 10 AS X, id AS ts FROM range(3)").createOrReplaceTempView("cased")
        df = session.sql(
            "FROM cased PATTERN A a ; B b DEFINE A AS x = 0, B AS X = 20 ORDER BY ts RETURN a.X AS p, b.x AS q"
        )
        assert [tuple(row) for row in df.collect()] == [(0, 2)]


# ---------------------------------------------------------------- clocks and windows

# ORDER BY type → (an expression for step n of the clock, the size of three steps in the text, a shorter one).
CLOCKS: dict[str, tuple[str, str, str]] = {
    "timestamp": ("TIMESTAMP'1969-12-31 23:59:50Z' + n * INTERVAL '5' SECOND", "15 SECONDS", "14999999 MICROSECONDS"),
    "timestamp_ntz": (
        "TIMESTAMP_NTZ'1969-12-31 23:59:50' + n * INTERVAL '5' SECOND",
        "15 SECONDS",
        "14999 MILLISECONDS",
    ),
    "date": ("date_add(DATE'1969-12-28', n)", "3 DAYS", "71 HOURS"),
    "int": ("n * 10 - 40", "30", "29"),
    "bigint": ("CAST(n * 10 - 40 AS BIGINT)", "30", "29"),
    "double": ("n * 0.5D - 2", "1.5", "1.4999"),
    "float": ("CAST(n * 0.5 - 2 AS FLOAT)", "1.5", "1.4999"),
    "decimal": ("CAST(n * 0.01 - 0.04 AS DECIMAL(10,2))", "0.03", "0.02"),
}


@pytest.mark.exhaustive
def test_windows_are_exact_on_every_clock(session: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """In turn inclusive, strict, a little shorter, and with a key: pairs at most 3, 2, 2 and 3 steps apart."""
    monkeypatch.setattr("planner.layout.SLICE_WINDOWS", 1)
    frames, expected = [], []
    numbers = "(SELECT CAST(id AS INT) AS n FROM range(9))"
    for clock, three, shorter in CLOCKS.values():
        session.sql(f"SELECT n, {clock} AS t, 1 AS k FROM {numbers}").createTempView("clock")
        windows = ("", three, 3), ("", f"< {three}", 2), ("", shorter, 2), ("PARTITION BY k", three, 3)
        key, window, steps = windows[len(frames) % len(windows)]
        pairs = "PATTERN a ; b DEFINE a AS TRUE, b AS TRUE RETURN a.n AS a, b.n AS b"
        frames.append(session.sql(f"FROM clock {pairs} {key} ORDER BY t WITHIN {window}"))
        expected.append({(a, b) for a in range(9) for b in range(9) if 0 < b - a <= steps})
        session.catalog.dropTempView("clock")
    for found, both in zip(sparks.together(frames), expected, strict=True):
        assert sorted((row["a"], row["b"]) for row in found) == sorted(both)


def test_a_change_of_the_clocks(session: SparkSession) -> None:
    """A window measures time that passes; wall clocks without a zone do not know of the change."""
    march, november = ("01:59:59", "02:00:00", "03:00:00"), ("01:30:00", "02:30:00")
    times = [f"2021-03-14 {time}" for time in march] + [f"2021-11-07 {time}" for time in november]
    values = ", ".join(f"({n}, '{time}')" for n, time in enumerate(times))
    kinds = "CAST(s AS TIMESTAMP_NTZ)", "CAST(s || 'Z' AS TIMESTAMP)", "CAST(s || ' America/New_York' AS TIMESTAMP)"
    pairs = "PATTERN a ; b DEFINE a AS TRUE, b AS TRUE ORDER BY t WITHIN 1 HOUR RETURN a.n AS a, b.n AS b"
    found = []
    for zone in ("UTC", "America/New_York"):
        with sparks.settings(session, spark__sql__session__timeZone=zone):
            for time in kinds:
                df = session.sql(f"FROM (SELECT n, {time} AS t FROM VALUES {values} AS v(n, s)) AS e {pairs}")
                found.append(sorted(tuple(row) for row in df.collect()))
    ntz, utc, york = found[:3]
    assert found[3:] == [ntz, utc, york]
    assert ntz == utc == [(0, 1), (1, 2), (3, 4)]
    assert york == [(0, 1), (0, 2), (1, 2)]  # 02:00 is 03:00 on that day; in November 01:30 is the earlier one


@pytest.mark.parametrize("where", ["", "WHERE a.x > 100"])
@pytest.mark.parametrize("clauses", ["PARTITION BY k ORDER BY `t s`", "ORDER BY `t s` WITHIN 5", "ORDER BY `t s`, x"])
def test_a_null_time_is_an_error_that_shows_the_row(session: SparkSession, where: str, clauses: str) -> None:
    session.sql("SELECT id AS x, id DIV 2 AS k, IF(id = 6, NULL, id) AS `t s` FROM range(8)").createOrReplaceTempView(
        "nulls"
    )
    with pytest.raises(PySparkException) as caught:
        session.sql(f"FROM nulls PATTERN a ; b+ DEFINE a AS x < 50, b AS x < 3 {where} {clauses} RETURN *").collect()
    message = str(caught.value)
    assert "[NULL_TIME] The ORDER BY column t s is NULL in the row" in message
    assert "x = 6" in message
    assert "Traceback" not in message


# ---------------------------------------------------------------- sources


@pytest.fixture
def orders(session: SparkSession) -> SparkSession:
    session.sql("SELECT 1 AS ts, 7 AS id, 1.5D AS price UNION ALL SELECT 4, 8, 2.0D").createOrReplaceTempView("orders")
    session.sql("SELECT 2L AS ts, 7L AS id, 'card' AS how UNION ALL SELECT 3L, 9L, 'cash'").createOrReplaceTempView(
        "payments"
    )
    return session


def test_several_sources(orders: SparkSession) -> None:
    """Times widen as in UNION; a variable has its source's columns, with their types."""
    df = orders.sql("FROM orders AS Placed, payments AS Paid PATTERN Placed p ; Paid+ q ORDER BY ts RETURN *")
    assert [f.dataType.simpleString() for f in df.schema] == [
        "bigint", "bigint", "struct<ts:int,id:int,price:double>", "array<struct<ts:bigint,id:bigint,how:string>>",
    ]  # fmt: skip
    found = [(row.p.id, [q.how for q in row.q]) for row in df.collect()]
    assert sorted(found) == [(7, ["card"]), (7, ["card", "cash"]), (7, ["cash"])]


def test_several_sources_agree_on_a_key(orders: SparkSession) -> None:
    df = orders.sql(
        "FROM orders, payments PATTERN orders o ; payments p PARTITION BY id ORDER BY ts RETURN id, o.price, p.how"
    )
    assert [tuple(row) for row in df.collect()] == [(7, 1.5, "card")]


def test_missing_columns_are_null(orders: SparkSession) -> None:
    df = orders.sql(
        "FROM orders AS o, payments AS p PATTERN ANY AS x DEFINE o AS price > 1.7 ORDER BY ts RETURN x.price, x.how"
    )
    assert sorted(map(str, (tuple(row) for row in df.collect()))) == [
        "(1.5, None)", "(2.0, None)", "(None, 'card')", "(None, 'cash')",
    ]  # fmt: skip


def test_ties_go_by_the_order_of_sources(session: SparkSession) -> None:
    for name in ("first", "second"):
        session.sql("SELECT 1 AS ts").createOrReplaceTempView(name)
    for sources, n in (("first, second", 1), ("second, first", 0)):
        for clause in ("", "WITHIN 5"):
            assert session.sql(f"FROM {sources} PATTERN first : second ORDER BY ts {clause} RETURN *").count() == n


def test_without_from_the_types_are_the_sources(orders: SparkSession) -> None:
    assert orders.sql("PATTERN orders o ; payments p ORDER BY ts RETURN *").count() == 2


def test_a_type_column_of_numbers(session: SparkSession) -> None:
    session.sql("SELECT id AS ts, CAST(id % 3 AS INT) AS kind FROM range(6)").createOrReplaceTempView("kinds")
    df = session.sql("FROM kinds TYPE kind PATTERN `1` AS a : `2` AS b ORDER BY ts RETURN a.ts AS a, b.ts AS b")
    assert sorted(tuple(row) for row in df.collect()) == [(1, 2), (4, 5)]


def test_subqueries_ctes_views_and_dataframes(session: SparkSession) -> None:
    """The same pattern, however it is reached."""
    session.sql("SELECT id AS ts, IF(id % 2 = 0, 'A', 'B') AS type FROM range(6)").createOrReplaceTempView("plain")
    query = "PATTERN A a : B b ORDER BY ts RETURN a.ts AS a, b.ts AS b"
    session.sql(f"CREATE OR REPLACE TEMPORARY PATTERN VIEW found AS FROM plain {query}")
    session.sql("CREATE OR REPLACE TEMP VIEW over AS SELECT a AS ts, 'A' AS type FROM found")
    pairs = [(0, 1), (2, 3), (4, 5)]
    frames = [
        session.sql(f"FROM (SELECT * FROM plain WHERE ts >= 0) AS e {query}"),
        session.sql(f"SELECT * FROM (FROM plain {query}) AS m"),
        session.sql(f"WITH e AS (SELECT * FROM plain) FROM e {query}"),
        session.sql(f"WITH m AS (FROM plain {query}) SELECT * FROM m"),
        session.sql("SELECT * FROM found"),
        session.sql("SELECT m.a, m.b FROM found AS m JOIN plain AS p ON p.ts = m.a"),
        cersql.match(session.table("plain"), query),
        cersql.sql(session, f"FROM plain {query}"),
    ]
    for found in sparks.together(frames):
        assert sorted((row["a"], row["b"]) for row in found) == pairs
    over = session.sql("FROM over PATTERN A x ; A y ORDER BY ts RETURN x.ts AS x, y.ts AS y")
    assert sorted(tuple(row) for row in over.collect()) == [(0, 2), (0, 4), (2, 4)]


def test_year_month_intervals(session: SparkSession) -> None:
    """PySpark has no way to send them to Python; what does not need them runs."""
    session.sql("SELECT id AS ts, INTERVAL '1' YEAR AS y FROM range(3)").createOrReplaceTempView("years")
    assert session.sql("FROM years PATTERN years AS a ORDER BY ts RETURN a.ts").count() == 3
    with pytest.raises(AnalysisException) as caught:
        session.sql("FROM years PATTERN years AS a ORDER BY ts RETURN *")
    assert "[NO_ARROW_TYPE] The column y is interval year" in str(caught.value)
