"""RETURN and HAVING: values, types, NULLs and overflows are those of Spark's own expressions and aggregates."""

from __future__ import annotations

from typing import Any

import pytest
import sparks
from pyspark.errors import PySparkException, PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

NUMBERS = {
    "t": "CAST({v} AS TINYINT)",
    "i": "CAST({v} AS INT)",
    "l": "CAST({v} AS BIGINT)",
    "f": "CAST({v} / 3 AS FLOAT)",
    "d": "CAST({v} AS DOUBLE) / 7",
    "m": "CAST({v} AS DECIMAL(7,2))",
    "w": "CAST({v} AS DECIMAL(38,10))",
    "s": "CAST({v} AS STRING)",
}


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    """`numbers`: an A, then rows of B with a value of every type, some of them NULL and some equal."""
    session = sparks.taught(spark)
    columns = ", ".join(f"{sql.format(v='v')} AS {name}" for name, sql in NUMBERS.items())
    values = "(0, 'A', 1), (1, 'B', 5), (2, 'B', NULL), (3, 'B', -3), (4, 'B', 5), (5, 'C', NULL)"
    session.sql(f"SELECT id, type, id AS ts, {columns} FROM VALUES {values} AS e(id, type, v)").createOrReplaceTempView(
        "numbers"
    )
    return session


LONGEST = "FROM numbers PATTERN A a ; B+ b ; C c WHERE COUNT(b) = 4 ORDER BY ts"


def one(df: DataFrame) -> tuple[Any, ...]:
    (row,) = df.collect()
    return tuple(row)


@pytest.mark.breadth(1)
@pytest.mark.parametrize("pattern", ["all", pytest.param("some", marks=pytest.mark.exhaustive), "nulls"])
def test_aggregates_are_sparks(session: SparkSession, pattern: str) -> None:
    """By explode and groupBy of the same matches."""
    where = {"all": "", "some": "WHERE b.id <> 2", "nulls": "WHERE b.v2 IS NULL"}[pattern]
    source = "(SELECT *, i AS v2 FROM numbers) AS numbers"
    calls = [f"{function}(b.{{c}})" for function in ("COUNT", "SUM", "AVG", "MIN", "MAX")]
    calls += ["COUNT(DISTINCT b.{c})", "SUM(DISTINCT b.{c})", "MIN(DISTINCT b.{c})"]
    items = {f"{c}{k}": call.format(c=c) for c in NUMBERS for k, call in enumerate(calls)}
    arithmetic = {f"s{k}" for k, call in enumerate(calls) if "SUM" in call or "AVG" in call}
    for name in arithmetic | {"w2"}:  # no sums of strings; AVG of the wide decimal has a test of its own
        del items[name]
    text = f"FROM {source} PATTERN A a ; B+ b {where} ORDER BY ts RETURN "
    ours = session.sql(text + "b.id AS ids, " + ", ".join(f"{call} AS {name}" for name, call in items.items()))
    exploded = session.sql(text + "b.id AS ids, b").selectExpr("ids", "explode(b) AS b")
    theirs = exploded.groupBy("ids").agg(*(fn.expr(f"{call} AS {name}") for name, call in items.items()))
    assert [(f.name, f.dataType) for f in ours.schema] == [(f.name, f.dataType) for f in theirs.schema]
    close = [[round(x, 9) if isinstance(x, float) else x for x in row] for row in ours.orderBy("ids").collect()]
    expected = [[round(x, 9) if isinstance(x, float) else x for x in row] for row in theirs.orderBy("ids").collect()]
    assert close == expected
    assert len(close) == {"all": 15, "some": 7, "nulls": 1}[pattern]


def test_the_average_of_wide_decimals_has_all_its_digits(session: SparkSession) -> None:
    own = session.sql("FROM numbers PATTERN A a ; B+ b WHERE COUNT(b) = 4 ORDER BY ts RETURN AVG(b.w)")
    assert one(own) == one(session.sql("SELECT avg(w) FROM numbers WHERE type = 'B'"))


def test_aggregates_over_no_event(session: SparkSession) -> None:
    df = session.sql(
        "FROM numbers PATTERN A a OR C c ORDER BY ts "
        "RETURN COUNT(c), COUNT(c.i), SUM(c.i), AVG(c.d), MIN(c.s), MAX(c.m), COUNT(DISTINCT c.i), a, c.i, COUNT(*)"
    )
    assert sorted(df.collect(), key=lambda row: row[0])[0][:7] == (0, 0, None, None, None, None, 0)
    assert {(row[7] is None, row[8], row[9]) for row in df.collect()} == {(False, None, 1), (True, None, 1)}


def test_branches_not_taken(session: SparkSession) -> None:
    df = session.sql("FROM numbers PATTERN A a OR C+ c ORDER BY ts RETURN *")
    found = {(row.a and row.a.id, tuple(e.id for e in row.c)) for row in df.collect()}
    assert found == {(0, ()), (None, (5,))}


def test_picks(session: SparkSession) -> None:
    df = session.sql(
        f"{LONGEST} RETURN FIRST(b.id), LAST(b.id), FIRST(b).id, LAST(b).i, b[1].id, b[4].id, b[5].id, "
        "FIRST(a.id), a[1].id, a[2].id, FIRST(b.id * 10), LAST(b.i + b.id), b.id, b[].i, a.id, match_start, match_end"
    )
    assert one(df) == (1, 4, 1, 5, 1, 4, None, 0, 0, None, 10, 9, [1, 2, 3, 4], [5, None, -3, 5], 0, 0, 5)


def test_functions_around_and_between(session: SparkSession) -> None:
    df = session.sql(
        f"{LONGEST} RETURN round(AVG(b.i), 2) AS mean, concat(a.s, '-', CAST(SUM(b.l) AS STRING)) AS text, "
        "transform(b.i, x -> x + 1) AS plus, CASE WHEN COUNT(b) > 3 THEN 'many' ELSE 'few' END AS size, "
        "match_end - match_start AS took, array_size(b) AS n, struct(a.id, c.id) AS ends"
    )
    assert df.columns == ["mean", "text", "plus", "size", "took", "n", "ends"]
    assert one(df) == (2.33, "1-7", [6, None, -2, 6], "many", 5, 4, (0, 5))


def test_names_are_sparks(session: SparkSession) -> None:
    df = session.sql(f"{LONGEST} RETURN a.id, b, SUM(b.i), a.id + 1, upper(a.s), 1, match_start, a.i AS `x y`, c.*")
    own = session.table("numbers").columns
    assert df.columns == ["id", "b", "sum(i)", "(id + 1)", "upper(s)", "1", "match_start", "x y", *own]


def test_having(session: SparkSession) -> None:
    df = session.sql(
        "FROM numbers PATTERN A a ; B+ b ORDER BY ts RETURN SUM(b.i) AS s HAVING SUM(b.i) > 5 AND COUNT(b) < 4"
    )
    assert sorted(row.s for row in df.collect()) == [7, 10, 10]
    limited = session.sql(
        "FROM numbers PATTERN A a ; B+ b ORDER BY ts RETURN SUM(b.i) AS s HAVING SUM(b.i) > 5 LIMIT 2"
    )
    assert len(limited.collect()) == 2


@pytest.mark.exhaustive
def test_overflow_is_sparks(session: SparkSession) -> None:
    session.sql("SELECT id AS ts, 9223372036854775807L AS l FROM range(2)").createOrReplaceTempView("large")
    with pytest.raises(PySparkException) as caught:
        session.sql("FROM large PATTERN large+ AS b WHERE COUNT(b) = 2 ORDER BY ts RETURN SUM(b.l)").collect()
    assert "overflow" in str(caught.value).lower()
    wide = f"CAST('{'9' * 38}' AS DECIMAL(38,0))"
    session.sql(f"SELECT id AS ts, {wide} AS w FROM range(2)").createOrReplaceTempView("large")
    with pytest.raises(PySparkException) as theirs:
        session.sql("SELECT sum(w) FROM large").collect()
    with pytest.raises(PySparkException) as ours:
        session.sql("FROM large PATTERN large+ AS b WHERE COUNT(b) = 2 ORDER BY ts RETURN SUM(b.w)").collect()
    assert ours.value.getCondition() == theirs.value.getCondition()


def test_star_shows_keys_bounds_and_variables_in_order(session: SparkSession) -> None:
    df = session.sql("FROM numbers PATTERN B b ; C ; (A a OR B+ d) AS z PARTITION BY i, type ORDER BY ts RETURN *")
    assert df.columns == ["i", "type", "match_start", "match_end", "b", "C", "a", "d", "z"]
    assert [f.dataType.typeName() for f in df.schema[4:]] == ["struct", "struct", "struct", "array", "array"]


def test_an_error_of_a_worker_comes_without_its_traceback(session: SparkSession) -> None:
    session.range(70).createOrReplaceTempView("seventy")
    with pytest.raises(PythonException) as raised:
        session.sql("SELECT count(*) FROM (FROM seventy PATTERN x+ DEFINE x AS id >= 0 ORDER BY id RETURN *)").collect()
    assert "[COUNT_OVERFLOW] There are more matches than a BIGINT can count." in str(raised.value)
    assert "Traceback" not in str(raised.value)
    assert "store.py" not in str(raised.value)
