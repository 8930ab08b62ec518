"""Every aggregate function of Spark's over the events of a match is what Spark's own makes of the same rows."""

from __future__ import annotations

import math
from typing import Any

import pytest
import sparks
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr, product
from sparks import settings

import cersql
from cersql.binding.aggregates import REFUSED, TABLE
from runtime.errors import CersqlError

# Values of the events that are aggregated, by group: several, one, none, only NULL, equal ones, odd ones.
ROWS = """
SELECT g, row_number() OVER (ORDER BY g, n) AS ts, kind, n, CAST(v AS INT) AS i, CAST(v AS BIGINT) AS l, CAST(v AS TINYINT) AS t,
  x AS d, CAST(x AS FLOAT) AS f, CAST(v AS DECIMAL(10,2)) / 7 AS m, CAST(v AS DECIMAL(38,18)) / 7 AS w,
  CAST(v AS STRING) AS s, v > 3 AS b, timestamp_seconds(v * 1000) AS at, date_add(DATE'2024-01-01', CAST(v AS INT)) AS day,
  make_dt_interval(0, 0, CAST(v AS INT), x) AS span, array(CAST(v AS INT), n) AS list, CAST(s AS BINARY) AS bin,
  IF(v IS NULL, NULL, array(CAST(v AS FLOAT), CAST(n AS FLOAT))) AS vec, s AS word
FROM VALUES
  ('several', 0, 'A', NULL, NULL, NULL), ('several', 1, 'B', 5, 2.5D, 'x'), ('several', 2, 'B', NULL, 1D, NULL), ('several', 3, 'B', 3, NULL, 'y'),
  ('several', 4, 'B', 5, 0.1D, 'x'), ('several', 5, 'B', -2, -7.25D, 'Z'), ('several', 6, 'B', 8, 3D, ''), ('several', 7, 'B', 3, 4D, 'y'), ('several', 8, 'B', 5, 9D, 'a'),
  ('one', 0, 'A', 1, 1D, 'a'), ('one', 1, 'B', 7, 0.3D, 'q'),
  ('none', 0, 'A', 1, 1D, 'a'),
  ('null', 0, 'A', 1, 1D, 'a'), ('null', 1, 'B', NULL, NULL, NULL), ('null', 2, 'B', NULL, NULL, NULL),
  ('equal', 0, 'A', 1, 1D, 'a'), ('equal', 1, 'B', 4, 0.1D, 'k'), ('equal', 2, 'B', 4, 0.1D, 'k'), ('equal', 3, 'B', 4, 0.1D, 'k'),
  ('pair', 0, 'A', 1, 1D, 'a'), ('pair', 1, 'B', 1, 1D, 'b'), ('pair', 2, 'B', 2, 4D, 'a')
  AS e(g, n, kind, v, x, s)
"""  # noqa: E501

NUMBERS = ("i", "d", "f", "m", "w")
OF_NUMBERS = (
    "SUM", "AVG", "MEAN", "TRY_SUM", "TRY_AVG", "STDDEV", "STD", "STDDEV_POP", "STDDEV_SAMP", "VARIANCE", "VAR_POP",
    "VAR_SAMP", "SKEWNESS", "KURTOSIS", "MEDIAN", "COUNT", "MIN", "MAX", "COLLECT_LIST", "COLLECT_SET",
)  # fmt: skip
OF_ANY = (
    "COUNT", "MIN", "MAX", "FIRST_VALUE", "LAST_VALUE", "ANY_VALUE", "FIRST", "LAST", "ARRAY_AGG", "COLLECT_SET",
    "APPROX_COUNT_DISTINCT",
)  # fmt: skip
OF_TWO = (
    "CORR", "COVAR_POP", "COVAR_SAMP", "REGR_COUNT", "REGR_AVGX", "REGR_AVGY", "REGR_SXX", "REGR_SXY", "REGR_SYY",
    "REGR_R2", "REGR_SLOPE", "REGR_INTERCEPT",
)  # fmt: skip
CALLS = [
    *(f"{function}(x.{column})" for column in NUMBERS for function in OF_NUMBERS),
    *(f"{function}(x.{column})" for column in ("s", "b", "at", "day", "list", "bin") for function in OF_ANY),
    *(f"{function}(x.{pair})" for pair in ("i, x.d", "d, x.i", "m, x.i", "f, x.l") for function in OF_TWO),
    *(f"{function}(x.{c})" for function in ("SUM", "AVG", "MAX", "TRY_SUM", "VAR_POP") for c in ("t", "l")),
    *(f"{function}(x.b)" for function in ("BOOL_AND", "EVERY", "BOOL_OR", "SOME", "ANY", "COUNT_IF")),
    *(f"{function}(x.{c})" for function in ("BIT_AND", "BIT_OR", "BIT_XOR") for c in ("t", "i", "l")),
    *(f"{function}(DISTINCT x.{c})" for function in ("COUNT", "SUM", "AVG", "MAX", "LISTAGG", "STDDEV", "COLLECT_LIST")
      for c in ("i", "d") if (function, c) != ("LISTAGG", "d")),
    *(f"{function}(x.{c}) IGNORE NULLS" for function in ("FIRST", "LAST", "FIRST_VALUE", "ANY_VALUE") for c in "is"),
    *(f"{function}(x.i IGNORE NULLS)" for function in ("FIRST", "LAST", "ANY_VALUE")),
    *(f"{function}(x.i, {flag})" for function in ("FIRST", "LAST", "ANY_VALUE") for flag in ("TRUE", "FALSE")),
    *(f"{function}(x.{pair})" for function in ("MAX_BY", "MIN_BY")
      for pair in ("i, x.d", "word, x.n", "s, x.at", "i, x.i")),
    "MAX_BY(x.n, x.d, 3)", "MIN_BY(x.n, x.d, 2)", "MAX_BY(struct(x.i, x.s), x.d)",
    "COUNT(x.i, x.d)", "COUNT(DISTINCT x.i, x.s)", "COUNT(DISTINCT x.d)", "COUNT(ALL x.i)",
    "MODE(x.i)", "MODE(x.word, TRUE)", "MODE() WITHIN GROUP (ORDER BY x.i)", "MODE() WITHIN GROUP (ORDER BY x.i DESC)",
    *(f"{call.replace('$', c)}" for c in ("i", "d", "m", "span") for call in (
        "PERCENTILE(x.$, 0.25)", "PERCENTILE(x.$, array(0, 0.3, 1))",
        "PERCENTILE_CONT(0.4) WITHIN GROUP (ORDER BY x.$)", "PERCENTILE_CONT(0.4) WITHIN GROUP (ORDER BY x.$ DESC)",
        "PERCENTILE_DISC(0.4) WITHIN GROUP (ORDER BY x.$)", "PERCENTILE_DISC(0.4) WITHIN GROUP (ORDER BY x.$ DESC)",
        "PERCENTILE_DISC(0) WITHIN GROUP (ORDER BY x.$)",
        "APPROX_PERCENTILE(x.$, 0.5)", "PERCENTILE_APPROX(x.$, array(0.1, 0.5, 0.9), 1000)", "MEDIAN(x.$)",
    )),
    "PERCENTILE(x.i, 0.5, x.n)", "PERCENTILE(x.i, 0.3, 2)",
    *(f"CAST({call} AS STRING)" for call in (  # pyspark reads no such interval
        "PERCENTILE(make_ym_interval(0, x.i), 0.5)", "MEDIAN(make_ym_interval(0, x.i))",
        "SUM(make_ym_interval(0, x.i))", "AVG(make_ym_interval(0, x.i))",
    )),
    "SUM(x.span)", "AVG(x.span)", "TRY_SUM(x.span)", "TRY_AVG(x.span)",
    "APPROX_PERCENTILE(x.at, 0.5)", "APPROX_PERCENTILE(x.day, 0.5)",
    "LISTAGG(x.word)", "STRING_AGG(x.word, ', ')", "LISTAGG(x.word, NULL)", "LISTAGG(x.i, '-')",
    "LISTAGG(x.word, ',') WITHIN GROUP (ORDER BY x.word)",
    "LISTAGG(DISTINCT x.word, ',') WITHIN GROUP (ORDER BY x.word DESC)",
    "LISTAGG(x.word, ',') WITHIN GROUP (ORDER BY x.d DESC NULLS FIRST, x.n)", "LISTAGG(x.bin)", "LISTAGG(x.bin, X'2C')",
    "LISTAGG(x.word, ',') WITHIN GROUP (ORDER BY x.i, x.n DESC)",
    "COLLECT_UNION(x.list)", "VECTOR_SUM(x.vec)", "VECTOR_AVG(x.vec)", "APPROX_TOP_K(x.i)",
    "SUM(x.i * 2 + x.n)", "SUM(CASE WHEN x.b THEN x.i END)", "AVG(abs(x.d))", "SUM(x.s)", "AVG(x.s)",
    "MAX(struct(x.d, x.n))",
    "SUM(x.i) FILTER (WHERE x.d > 0)", "COUNT(*) FILTER (WHERE x.i > 3)", "AVG(10 / x.i) FILTER (WHERE x.i <> 0)",
    "MAX_BY(x.i, x.d) FILTER (WHERE x.n <> 8)",
    "LISTAGG(x.word, ',') WITHIN GROUP (ORDER BY x.n DESC) FILTER (WHERE x.i > 3)",
    "COUNT(DISTINCT x.i) FILTER (WHERE x.d IS NOT NULL)", "FIRST(x.i) FILTER (WHERE x.i > 5)",
]  # fmt: skip


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    found = sparks.taught(spark)
    found.sql(ROWS).createOrReplaceTempView("made")
    # As rows in the plan: what is divided by 7 is divided once.
    sparks.view(found, "ev", [tuple(row) for row in found.table("made").collect()], found.table("made").schema)
    return found


PATTERN = "FROM ev TYPE kind PATTERN A a ; B* x PARTITION BY g ORDER BY ts AFTER MATCH SKIP PAST LAST ROW RETURN g, "


# Code for so many aggregates of a few rows takes longer than they do.
WITHOUT_CODE = {"spark__sql__codegen__wholeStage": "false", "spark__sql__codegen__factoryMode": "NO_CODEGEN"}


def plain(value: Any) -> Any:
    """For comparisons: numbers nearly, sets as sets."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else float(f"{value:.9g}") + 0.0
    if isinstance(value, list):
        return [plain(item) for item in value]
    return tuple(map(plain, value)) if isinstance(value, tuple) else value


def of(call: str, value: Any) -> Any:
    unordered = call.startswith(("COLLECT_SET", "COLLECT_UNION", "APPROX_TOP_K(x.i)")) or "(DISTINCT" in call
    value = plain(value)
    if call.startswith(("LISTAGG", "STRING_AGG")) and "ORDER BY" not in call and value is not None:
        return sorted(value)  # without ORDER BY Spark's order is no promise
    if call.startswith("VECTOR"):
        return value and [round(x, 4) for x in value]
    return sorted(value, key=repr) if unordered and isinstance(value, list) else value


def ours(session: SparkSession, calls: list[str]) -> tuple[list[Any], dict[str, Any]]:
    df = session.sql(PATTERN + ", ".join(f"{call} AS c{k}" for k, call in enumerate(calls)))
    return [field.dataType.simpleString() for field in df.schema.fields[1:]], {row.g: row for row in df.collect()}


def theirs(session: SparkSession, calls: list[str]) -> tuple[list[Any], dict[str, Any]]:
    """Spark's own aggregates over the rows of each group in order, also over none.

    Each DISTINCT for itself: beside one Spark stumbles over LISTAGG with an order.
    """
    alone = [call for call in calls if "DISTINCT" in call]
    together = [[call for call in calls if call not in alone], *([call] for call in alone)]
    types: dict[str, Any] = {}
    rows: dict[str, dict[str, Any]] = {}
    for some in filter(None, together):
        df = of_groups(session, some)
        types |= zip(some, (field.dataType.simpleString() for field in df.schema.fields[1:]), strict=True)
        for row in df.collect():
            rows.setdefault(row.g, {}).update(zip(some, row[1:], strict=True))
    return [types[call] for call in calls], {g: (g, *(row[call] for call in calls)) for g, row in rows.items()}


def of_groups(session: SparkSession, calls: list[str]) -> DataFrame:
    """A row for each group that has rows, which stay in their order in the one partition, and for `none`."""
    rows = session.table("ev").where("kind = 'B'").coalesce(1).sortWithinPartitions("ts").alias("x")
    named = [f"{c} AS c{k}" for k, c in enumerate(calls)]
    return rows.groupBy("g").agg(*map(expr, named)).unionAll(rows.where("FALSE").selectExpr("'none' AS g", *named))


@pytest.mark.parametrize(
    ("ansi", "step"),
    [
        pytest.param("true", 4, id="some"),
        pytest.param("true", 1, id="ansi", marks=pytest.mark.exhaustive),
        pytest.param("false", 1, id="not ansi", marks=pytest.mark.exhaustive),
    ],
)
def test_each_is_what_spark_makes_of_the_same_rows(session: SparkSession, ansi: str, step: int) -> None:
    with settings(session, spark__sql__ansi__enabled=ansi, **WITHOUT_CODE):
        wrong, asked = [], CALLS[::step]
        for begin in range(0, len(asked), 45):
            calls = asked[begin : begin + 45]
            (types, found), (their_types, expected) = ours(session, calls), theirs(session, calls)
            assert found.keys() == expected.keys()
            wrong += [(c, t, e) for c, t, e in zip(calls, types, their_types, strict=True) if t != e]
            wrong += [
                (call, group, found[group][k], expected[group][k])
                for group in found
                for k, call in enumerate(calls, 1)
                if of(call, found[group][k]) != of(call, expected[group][k])
            ]
        assert not wrong, "\n".join(map(str, wrong))


def test_none_of_them_is_forgotten(session: SparkSession) -> None:
    """By Spark's own list of its functions."""
    catalog = session._jsparkSession.sessionState().catalog()  # type: ignore[attr-defined]
    jvm: Any = session._jvm
    identifier = getattr(jvm, "org.apache.spark.sql.catalyst.FunctionIdentifier")
    classes = getattr(jvm, "java.lang.Class").forName
    aggregate = classes("org.apache.spark.sql.catalyst.expressions.aggregate.AggregateFunction")
    known = set()
    for row in session.sql("SHOW SYSTEM FUNCTIONS").collect():
        if not row[0].isidentifier():
            continue
        info = catalog.lookupFunctionInfo(identifier(row[0]))
        of_windows = info.getGroup() == "window_funcs"
        if info.getGroup() == "agg_funcs" or (
            not of_windows and info.getClassName() and aggregate.isAssignableFrom(classes(info.getClassName()))
        ):
            known.add(row[0].upper())
    assert {"SUM", "SCHEMA_OF_VARIANT_AGG", "VECTOR_AVG"} <= known
    assert known | {"RANGE", "PRODUCT"} == TABLE.keys() | REFUSED.keys()
    assert not TABLE.keys() & REFUSED.keys()
    tried = " ".join(CALLS)
    assert [name for name in TABLE if f"{name}(" not in tried and name not in ("RANGE", "PRODUCT")] == []


def test_a_product_is_pysparks(session: SparkSession) -> None:
    """functions.product, which Spark's SQL has no name for."""
    names = ("i", "l", "d", "f", "m", "t")
    found = session.sql(PATTERN + ", ".join(f"PRODUCT(x.{name}) AS {name}" for name in names)).collect()
    rows = session.table("ev").where("kind = 'B'")
    expected = rows.groupBy("g").agg(*(product(name).alias(name) for name in names)).collect()
    want = {row.g: tuple(map(plain, row[1:])) for row in expected} | {"none": (None,) * len(names)}
    assert {row.g: tuple(map(plain, row[1:])) for row in found} == want


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("SUM(x.n * y.n)", [18]), ("COUNT(DISTINCT x.n + y.n)", [4]), ("MAX_BY(x.n, y.n)", [2]),
        ("REGR_COUNT(x.n, y.n)", [4]), ("SUM(x.n + y.n) FILTER (WHERE x.n < y.n)", [14]), ("RANGE(x.n - y.n)", [3]),
        ("MEDIAN(x.n * y.n) + COUNT(y)", [6.0]), ("COUNT(x.n, y.n)", [4]),
        ("LISTAGG(x.n * 10 + y.n, ',') WITHIN GROUP (ORDER BY y.n, x.n DESC)", ["22,12,24,14"]),
    ],
)  # fmt: skip
def test_over_several_variables_every_combination_counts(session: SparkSession, call: str, expected: list[Any]) -> None:
    sparks.view(session, "two", [("A", 1), ("A", 2), ("B", 2), ("B", 4)], "type STRING, n INT")
    text = "FROM (SELECT *, row_number() OVER (ORDER BY type, n) AS ts FROM two) AS t PATTERN A+ x ; B+ y ORDER BY ts "
    rows = session.sql(text + f"AFTER MATCH SKIP PAST LAST ROW RETURN {call} AS found").collect()
    assert [plain(row.found) for row in rows] == expected


WIDE = "FROM wide PATTERN wide+ b ORDER BY ts AFTER MATCH SKIP PAST LAST ROW RETURN "


@pytest.mark.breadth(3)
@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize(
    ("value", "calls"),
    [
        ("9223372036854775807L", ("SUM(b.v)", "TRY_SUM(b.v)", "AVG(b.v)", "TRY_AVG(b.v)")),
        ("-9223372036854775807L", ("SUM(b.v)", "TRY_SUM(b.v)")),
        ("CAST('" + "9" * 38 + "' AS DECIMAL(38,0))", ("SUM(b.v)", "TRY_SUM(b.v)", "TRY_AVG(b.v)")),
        ("-12345678901234567890.123456789012345678BD", ("SUM(b.v)", "TRY_SUM(b.v)", "COUNT(b.v)")),
        ("-0.000000000000000001BD", ("CAST(SUM(CAST(b.v AS DECIMAL(38,18))) AS STRING)", "AVG(b.v)")),
        ("CAST('9" + "9" * 19 + ".5' AS DECIMAL(38,18))", ("SUM(b.v)", "TRY_SUM(b.v)")),
        ("'NaN'::DOUBLE", ("SUM(b.v)", "MAX(b.v)", "MODE(b.v)", "COUNT(DISTINCT b.v)", "STDDEV(b.v)")),
        ("-0.0D", ("SUM(b.v)", "MAX(b.v)", "COUNT(DISTINCT b.v)", "MEDIAN(b.v)")),
    ],
)  # fmt: skip
def test_overflow_is_sparks(session: SparkSession, value: str, calls: tuple[str, ...], ansi: str) -> None:
    with settings(session, spark__sql__ansi__enabled=ansi):
        session.sql(f"SELECT id AS ts, {value} AS v FROM range(3)").createOrReplaceTempView("wide")
        for call in calls:
            found = [outcome(session, WIDE + call), outcome(session, f"SELECT {call} FROM wide AS b")]
            assert found[0] == found[1], call


def test_percentiles_of_a_time(session: SparkSession) -> None:
    with settings(session, spark__sql__timeType__enabled="true"):
        session.sql("SELECT id AS ts, CAST(id * 7 AS INT) AS v FROM range(4)").createOrReplaceTempView("wide")
        for call in (
            "MEDIAN($)",
            "PERCENTILE_DISC(0.3) WITHIN GROUP (ORDER BY $)",
            "APPROX_PERCENTILE($, 0.5)",
            "MAX($)",
        ):
            shown = f"CAST({call.replace('$', 'make_time(b.v, 5, 1.5)')} AS STRING)"
            found = [outcome(session, WIDE + shown), outcome(session, f"SELECT {shown} FROM wide AS b")]
            assert found[0] == found[1], call


def outcome(session: SparkSession, text: str) -> Any:
    """The only value of a query, or the SQLSTATE of its error: which of its two conditions for an overflow Spark gives
    depends on how many rows follow."""
    try:
        (row,) = session.sql(text).collect()
    except PySparkException as error:
        return error.getSqlState()
    return str(plain(row[0]))


def test_what_is_none_of_a_match(session: SparkSession) -> None:
    for name in REFUSED:
        with pytest.raises(CersqlError) as raised:
            cersql.sql(session, PATTERN + f"{name}(x.i)")
        assert raised.value.condition == "NOT_OF_A_MATCH"
        assert raised.value.hint
