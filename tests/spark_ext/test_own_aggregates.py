"""Aggregate functions of users' own, wherever one may stand: what Python itself makes of the listed values."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import pytest
import sparks
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import cersql
from cersql.binding import own_aggregates
from runtime.errors import CersqlError

ROWS = [
    (1, 1, "A", 2, 1.0, "a"), (2, 1, "B", 3, 2.0, "b"), (3, 1, "B", None, 3.0, "c"), (4, 1, "B", 5, None, "b"),
    (5, 1, "C", 1, 1.0, "d"), (6, 2, "A", 1, 0.5, "e"), (7, 2, "B", 4, 0.5, "f"), (8, 2, "B", 4, 2.5, "g"),
    (9, 2, "C", 9, 1.0, "h"), (10, 1, "B", 7, 4.0, "b"), (11, 1, "C", 2, 2.0, "i"),
]  # fmt: skip
SCHEMA = "ts BIGINT, k INT, type STRING, v INT, x DOUBLE, s STRING"
NAMES = ("RMS", "MIXED", "SPREAD", "WMEAN", "LONGEST", "WRONG", "FAILING", "EVEN")


def rms(values: Sequence[Any]) -> float | None:
    known = [v for v in values if v is not None]
    return math.sqrt(sum(v * v for v in known) / len(known)) if known else None


@pytest.fixture(scope="module")
def session(spark: Any) -> Iterator[Any]:
    own = sparks.taught(spark)
    sparks.view(own, "ev", ROWS, SCHEMA)
    register = cersql.register_aggregate

    def pairs(a: Any, b: Any) -> tuple[Any, Any]:
        return a[0] + b[0], a[1] + b[1]

    register("RMS", lambda v: (v * v, 1), pairs, lambda s: math.sqrt(s[0] / s[1]) if s[1] else None, (0, 0), "DOUBLE")
    register("WMEAN", lambda v, w: (v * w, w), pairs, lambda s: s[0] / s[1] if s[1] else None, (0, 0), "double")
    register(
        "Spread", lambda v: [v, v], lambda a, b: [min(a[0], b[0]), max(a[1], b[1])] if a and b else a or b,
        lambda s: s[1] - s[0] if s else None, [], "int", samples=[3, 1, 4, 1, 5],
    )  # fmt: skip
    register("LONGEST", lambda s: (len(s), s), max, lambda s: s[1], (0, ""), "STRING")
    register("EVEN", lambda v: v % 2 == 0, lambda a, b: a and b, bool, True, "BOOLEAN")
    register("WRONG", lambda v: v, lambda a, b: a + b, lambda s: s + 0.5, 0, "INT")
    register("FAILING", lambda v: v, lambda a, b: a + b, lambda s: 1 // s if s != 0 else None, 0, "INT", samples=[1, 2])
    yield own
    for name in NAMES:
        own_aggregates.remove(name)


PATTERN = "FROM ev PATTERN A a ; B+ b ; C c PARTITION BY k ORDER BY ts WITHIN 6 "


def listed(session: Any) -> list[Any]:
    return list(session.sql(PATTERN + "RETURN a.ts AS a, b.ts AS b, c.ts AS c, b.v AS v, b.x AS x, b.s AS s").collect())


def keys(rows: Sequence[Any]) -> list[tuple[Any, ...]]:
    return sorted((row.a, tuple(row.b), row.c) for row in rows)


def test_what_is_returned(session: Any) -> None:
    rows = session.sql(
        PATTERN + "RETURN b.v AS v, b.x AS x, b.s AS s, RMS(b.v) AS r, RMS(b.x * 2) + 1 AS r2, SPREAD(b.v) AS d, "
        "LONGEST(b.s) AS l, WMEAN(b.v, b.x) AS w, EVEN(b.v) AS e, RMS(DISTINCT b.v) AS u, "
        "rms(b.v) FILTER (WHERE b.x > 2) AS f, SPREAD(a.v + b.v) AS p, AVG(b.v) + RMS(b.v) AS m"
    ).collect()
    assert len(rows) == len(listed(session)) == 10
    for row in rows:
        known = [v for v in row.v if v is not None]
        both = [(v, x) for v, x in zip(row.v, row.x, strict=True) if v is not None and x is not None]
        assert row.r == pytest.approx(rms(row.v))
        assert row.r2 == (None if rms(row.x) is None else pytest.approx(2 * rms(row.x) + 1))  # type: ignore[operator]
        assert row.d == row.p == (max(known) - min(known) if known else None)
        assert row.l == max((len(s), s) for s in row.s)[1]
        weight = sum(x for _, x in both)
        assert row.w == (pytest.approx(sum(v * x for v, x in both) / weight) if both else None)
        assert row.e == all(v % 2 == 0 for v in known)
        assert row.u == pytest.approx(rms(sorted(set(known))))
        assert row.f == pytest.approx(rms([v for v, x in zip(row.v, row.x, strict=True) if x is not None and x > 2]))
        assert row.m == (pytest.approx(sum(known) / len(known) + rms(known)) if known else None)  # type: ignore[operator]


def test_its_name_is_that_of_what_is_written(session: Any) -> None:
    assert session.sql(PATTERN + "RETURN RMS(b.v), a.v").columns == ["RMS(b.v)", "v"]
    assert dict(session.sql(PATTERN + "RETURN spread(b.v) AS d, LONGEST(b.s) AS l").dtypes) == {
        "d": "int",
        "l": "string",
    }


WHERE = [
    ("RMS(b.v) > 4", lambda row: (rms(row.v) or 0) > 4),
    ("SPREAD(b.v) <= 2 AND RMS(b.x) < 2.5", lambda row: spread(row.v, 9) <= 2 and (rms(row.x) or 9) < 2.5),
    ("RMS(b.v) > 4 OR LONGEST(b.s) = 'g'", lambda row: (rms(row.v) or 0) > 4 or max(row.s) == "g"),
    ("EVEN(b.v)", lambda row: all(v % 2 == 0 for v in row.v if v is not None)),
    ("b.x < RMS(b.v)", lambda row: rms(row.v) is not None and all(x is not None and x < rms(row.v) for x in row.x)),
]


def spread(values: Sequence[Any], none: int) -> int:
    known = [v for v in values if v is not None]
    return max(known) - min(known) if known else none


@pytest.mark.breadth(1)
@pytest.mark.parametrize(("condition", "holds"), WHERE)
def test_conditions(session: Any, condition: str, holds: Any) -> None:
    want = keys([row for row in listed(session) if holds(row)])
    assert 0 < len(want) < len(listed(session))
    returned = "RETURN a.ts AS a, b.ts AS b, c.ts AS c"
    texts = [PATTERN.replace("PARTITION", f"WHERE {condition} PARTITION") + returned]
    if not condition.startswith("b."):  # which HAVING reads as an array
        texts.append(f"{PATTERN} {returned} HAVING {condition}")
    texts.append(f"{PATTERN.replace('A a ; B+ b ; C c', f'(A a ; B+ b ; C c) FILTER {condition}')} {returned}")
    if "OR" not in condition and not condition.startswith("b."):
        part = f"((A a ; B+ b) FILTER {condition}) ; C c"
        texts.append(f"{PATTERN.replace('A a ; B+ b ; C c', part)} {returned}")
    for text in texts:
        assert keys(session.sql(text).collect()) == want, text


def test_events_that_agg_creates(session: Any) -> None:
    part = (
        "(AGG(y : r = RMS(b.v), d = SPREAD(b.v) + 1, n = COUNT(b), l = LONGEST(b.s) ; A a ; B+ b ; C c) FILTER y.d > 2)"
    )
    rows = session.sql(PATTERN.replace("A a ; B+ b ; C c", part) + "RETURN b.v AS v, b.s AS s, y").collect()
    assert len(rows) == sum(spread(row.v, 0) > 1 for row in listed(session)) > 0
    for row in rows:
        assert (row.y.r, row.y.d, row.y.n) == (pytest.approx(rms(row.v)), spread(row.v, 0) + 1, len(row.v))
        assert row.y.l == max((len(s), s) for s in row.s)[1]


def test_rounds_each_have_their_own(session: Any) -> None:
    text = """FROM ev PATTERN (AGG(y : d = SPREAD(b.v), r = RMS(y0.v) ; A y0 : B:+ b))+ ; C c ORDER BY ts
        RETURN y.d AS d, y.r AS r, RMS(y.d) AS all"""
    rows = session.sql(text).collect()
    assert {(tuple(row.d), tuple(row.r)) for row in rows} >= {((2, 0), (2.0, 1.0)), ((0,), (1.0,))}
    assert all(row["all"] == rms(row.d) for row in rows)


def test_groups(session: Any) -> None:
    text = "RETURN k, RMS(b.v) AS r, COUNT(*) AS n, SPREAD(b.v) AS d GROUP BY k HAVING SPREAD(b.v) < 2"
    found = {row.k: row for row in session.sql(PATTERN + text).collect()}
    own = [row for row in listed(session) if row.a == 6]
    assert set(found) == {2}
    assert (found[2].n, found[2].d) == (len(own), 0)
    assert found[2].r == pytest.approx(rms([v for row in own for v in row.v]))


RUNS = [
    "NXT((A a ; B+ b) FILTER RMS(b.v) > 4) ; C c",
    "LAST((A a ; B+ b) FILTER SPREAD(b.v) <= 2) ; C c",
    "A a ; !((B:{2} b) FILTER EVEN(b.v)) ; C c",
    "(A a ; C c) UNLESS ((B+ b) FILTER RMS(b.x) > 3.5)",
]


@pytest.mark.parametrize("pattern", RUNS)
def test_runs_hold_what_is_not_listed(session: Any, pattern: str) -> None:
    """As with the aggregates of SQL's that are the same."""
    same = {"SPREAD": "RANGE", "EVEN(b.v)": "BOOL_AND(coalesce(b.v % 2 = 0, TRUE))"}
    other = pattern.replace("RMS(b.v) > 4", "AVG(b.v * b.v) > 16").replace("RMS(b.x) > 3.5", "AVG(b.x * b.x) > 12.25")
    for own, sql in same.items():
        other = other.replace(own, sql)
    assert other != pattern
    found = [
        sorted(map(str, session.sql(f"FROM ev PATTERN {text} ORDER BY ts WITHIN 7 RETURN *").collect()))
        for text in (pattern, other)
    ]
    assert found[0] == found[1]
    assert found[0]


@pytest.mark.breadth(1)
@pytest.mark.parametrize(
    "clauses",
    ["WHERE RMS(b.v) > 4 RETURN b.ts AS b, LONGEST(b.s) AS l", "RETURN b.ts AS b, RMS(b.v) AS r HAVING SPREAD(b.v) < 3",
     "WHERE RMS(b.v) > 4 CONSUME BY PARTITION RETURN b.ts AS b"],
)  # fmt: skip
def test_on_a_stream(session: Any, clauses: str) -> None:
    timed = session.table("ev").selectExpr("timestamp_seconds(ts) AS ts", "k", "type", "v", "x", "s")
    where, rest = clauses.split("RETURN") if "WHERE" in clauses else ("", clauses.removeprefix("RETURN"))
    where, _, consume = where.partition("CONSUME")
    consume = f"CONSUME {consume}" if consume else ""
    text = f"PATTERN A a ; B+ b {where} PARTITION BY k ORDER BY ts WITHIN 6 SECONDS {consume} RETURN {rest}"
    replayed = cersql.replay(session, timed, text, disorder=2.0, batches=2)
    assert replayed.same, str(replayed)
    assert replayed.matches > 0


@pytest.mark.exhaustive
def test_on_a_stream_in_windows(session: Any) -> None:
    timed = session.table("ev").selectExpr("timestamp_seconds(ts) AS ts", "k", "type", "v", "x", "s")
    text = "PATTERN A a ; B+ b ORDER BY ts WITHIN 6 SECONDS SLIDE 3 SECONDS RETURN window.start AS w, RMS(b.v) AS r"
    replayed = cersql.replay(session, timed, text, disorder=2.0, batches=2)
    assert replayed.same, str(replayed)
    assert replayed.matches > 0


def test_by_the_other_ways_to_ask(session: Any) -> None:
    want = sorted(round(rms(row.v), 6) for row in listed(session) if rms(row.v) is not None)  # type: ignore[arg-type]
    query = PATTERN + "RETURN RMS(b.v) AS r"

    def found(df: Any) -> list[float]:
        return sorted(round(row.r, 6) for row in df.collect() if row.r is not None)

    assert found(cersql.sql(session, query)) == want
    assert found(session.sql(f"SELECT m.r FROM ({query}) AS m WHERE m.r IS NOT NULL")) == want
    session.sql(f"CREATE OR REPLACE TEMPORARY PATTERN VIEW rms_of AS {query}")
    assert found(session.table("rms_of")) == want
    assert found(cersql.match(session.table("ev"), query.removeprefix("FROM ev "))) == want
    session.sql(f"CREATE OR REPLACE PATTERN FUNCTION rms_in AS {query.removeprefix('FROM ev ')}")
    assert found(session.sql("SELECT r FROM rms_in(TABLE(ev))")) == want


@pytest.mark.parametrize(
    ("returned", "condition", "fragment"),
    [
        ("RMS(b.v, b.x)", "AGGREGATE_ARGUMENTS", "lift takes 1"),
        ("WMEAN(b.v)", "AGGREGATE_ARGUMENTS", "lift takes 2"),
        ("RMS(b.v) IGNORE NULLS", "NOT_SUPPORTED_YET", "as a bag"),
        ("RMS(SUM(b.v))", "NOT_SUPPORTED_YET", "inside another"),
        ("RMS(1)", "NOT_SUPPORTED_YET", "of no variable"),
        ("RMS(b)", "EVENT_NOT_VALUE", "stands for whole events"),
    ],
)
def test_mistakes(session: Any, returned: str, condition: str, fragment: str) -> None:
    with pytest.raises(CersqlError) as caught:
        cersql.sql(session, f"{PATTERN} RETURN {returned} AS r")
    assert caught.value.condition == condition
    assert fragment in str(caught.value)


def test_a_wrong_result_and_a_function_that_fails_are_errors(session: Any) -> None:
    with pytest.raises(PySparkException, match=r"AGGREGATE_RESULT.*WRONG gives .*, which is no INT"):
        session.sql(f"{PATTERN} RETURN WRONG(b.v) AS r").collect()
    with pytest.raises(PySparkException, match="TypeError"):
        session.sql(f"{PATTERN} RETURN FAILING(b.s) AS r").collect()


def test_a_name_of_a_function_that_the_session_has(session: Any) -> None:
    active = SparkSession.getActiveSession()
    assert active is not None
    active.udf.register("of_the_session", lambda x: x)
    with pytest.raises(CersqlError) as caught:
        cersql.register_aggregate("OF_THE_SESSION", lambda x: x, lambda a, b: a + b, lambda a: a, 0, "INT")
    assert caught.value.condition == "AGGREGATE_NAME"
    with pytest.raises(CersqlError) as caught:
        cersql.register_aggregate("ODD_TYPE", lambda x: x, lambda a, b: a + b, lambda a: a, 0, "INTEGERS")
    assert caught.value.condition == "AGGREGATE_TYPE"


def test_decimals_and_arrays(session: Any) -> None:
    try:
        cersql.register_aggregate(
            "MIXED", lambda v: {v: 1}, lambda a, b: {k: a.get(k, 0) + b.get(k, 0) for k in {*a, *b}}, sorted, {},
            "ARRAY<DECIMAL(12,2)>",
        )  # fmt: skip
        text = f"{PATTERN} RETURN MIXED(CAST(b.x AS DECIMAL(12,2))) AS m, b.x AS x"
        for row in session.sql(text).collect():
            assert row.m == sorted({Decimal(str(x)).quantize(Decimal("0.01")) for x in row.x if x is not None})
    finally:
        own_aggregates.remove("MIXED")
