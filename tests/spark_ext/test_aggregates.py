"""Every aggregate function of Spark's over the events of a match is what Spark's own makes of the same rows."""

from __future__ import annotations

import math
from functools import reduce
from typing import Any

import pytest
import sparks
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from queries import check_place
from sparks import settings

import cersql
from cersql.aggregates import REFUSED, TABLE
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

NUMBERS = ("t", "i", "l", "d", "f", "m", "w")
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
    *(f"{function}(x.b)" for function in ("BOOL_AND", "EVERY", "BOOL_OR", "SOME", "ANY", "COUNT_IF")),
    *(f"{function}(x.{c})" for function in ("BIT_AND", "BIT_OR", "BIT_XOR") for c in ("t", "i", "l")),
    *(f"{function}(DISTINCT x.{c})" for function in ("COUNT", "SUM", "AVG", "MAX", "LISTAGG", "STDDEV", "COLLECT_LIST")
      for c in ("i", "d") if (function, c) != ("LISTAGG", "d")),
    *(f"{function}(x.{c}) IGNORE NULLS" for function in ("FIRST", "LAST", "FIRST_VALUE", "ANY_VALUE") for c in "is"),
    *(f"{function}(x.i IGNORE NULLS)" for function in ("FIRST", "LAST_VALUE", "ANY_VALUE")),
    *(f"{function}(x.i, {flag})" for function in ("FIRST", "LAST", "ANY_VALUE") for flag in ("TRUE", "FALSE")),
    *(f"{function}(x.{pair})" for function in ("MAX_BY", "MIN_BY") for pair in ("i, x.d", "word, x.n", "s, x.at", "i, x.i")),
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
    "PERCENTILE(make_ym_interval(0, x.i), 0.5)", "MEDIAN(make_ym_interval(0, x.i))", "SUM(x.span)", "AVG(x.span)",
    "APPROX_PERCENTILE(x.at, 0.5)", "APPROX_PERCENTILE(x.day, 0.5)", "SUM(make_ym_interval(0, x.i))",
    "AVG(make_ym_interval(0, x.i))", "TRY_SUM(x.span)", "TRY_AVG(x.span)",
    "LISTAGG(x.word)", "STRING_AGG(x.word, ', ')", "LISTAGG(x.word, NULL)", "LISTAGG(x.i, '-')",
    "LISTAGG(x.word, ',') WITHIN GROUP (ORDER BY x.word)", "LISTAGG(DISTINCT x.word, ',') WITHIN GROUP (ORDER BY x.word DESC)",
    "LISTAGG(x.word, ',') WITHIN GROUP (ORDER BY x.d DESC NULLS FIRST, x.n)", "LISTAGG(x.bin)", "LISTAGG(x.bin, X'2C')",
    "LISTAGG(x.word, ',') WITHIN GROUP (ORDER BY x.i, x.n DESC)",
    "COLLECT_UNION(x.list)", "VECTOR_SUM(x.vec)", "VECTOR_AVG(x.vec)", "APPROX_TOP_K(x.i)", "APPROX_TOP_K(x.i, 1)",
    "SUM(x.i * 2 + x.n)", "SUM(CASE WHEN x.b THEN x.i END)", "AVG(abs(x.d))", "SUM(x.s)", "AVG(x.s)", "MAX(struct(x.d, x.n))",
    "SUM(x.i) FILTER (WHERE x.d > 0)", "COUNT(*) FILTER (WHERE x.i > 3)", "AVG(10 / x.i) FILTER (WHERE x.i <> 0)",
    "MAX_BY(x.i, x.d) FILTER (WHERE x.n <> 8)", "LISTAGG(x.word, ',') WITHIN GROUP (ORDER BY x.n DESC) FILTER (WHERE x.i > 3)",
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
    return sorted(value, key=repr) if unordered and isinstance(value, list) else value


def ours(session: SparkSession, calls: list[str]) -> tuple[list[Any], dict[str, Any]]:
    df = session.sql(PATTERN + ", ".join(f"{call} AS c{k}" for k, call in enumerate(calls)))
    return [field.dataType for field in df.schema.fields[1:]], {row.g: row for row in df.collect()}


def theirs(session: SparkSession, calls: list[str]) -> tuple[list[Any], dict[str, Any]]:
    """Spark's own aggregates over the rows of each group in order, also over none."""
    frames = []
    for group in sorted(row.g for row in session.sql("SELECT DISTINCT g FROM ev").collect()):
        rows = session.table("ev").where(f"g = '{group}' AND kind = 'B'").coalesce(1).sortWithinPartitions("ts")
        frames.append(rows.alias("x").selectExpr(f"'{group}' AS g", *(f"{c} AS c{k}" for k, c in enumerate(calls))))
    df = reduce(DataFrame.unionAll, frames)
    return [field.dataType for field in df.schema.fields[1:]], {row.g: row for row in df.collect()}


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_each_is_what_spark_makes_of_the_same_rows(session: SparkSession, ansi: str) -> None:
    with settings(session, spark__sql__ansi__enabled=ansi, **WITHOUT_CODE):
        wrong = []
        for begin in range(0, len(CALLS), 45):
            calls = CALLS[begin : begin + 45]
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
