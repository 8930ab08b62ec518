"""Comparisons of events through spark.sql, beside self-joins in plain SQL and beside the oracle."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
import sparks
from pyspark.sql import SparkSession

import cersql
import planner.physical
from planner.rewrite.keys import Keyed

OPERATORS = ("=", "<>", "<", "<=", ">", ">=", "<=>", "IS DISTINCT FROM")
DAY = datetime(2024, 3, 1)
TYPES: dict[str, tuple[Any, ...]] = {
    "boolean": (True, False, None),
    "tinyint": (-128, 127, 0, None),
    "bigint": (-(2**63), -(2**63) + 1, 2**63 - 1, 0, None),
    "double": (0.0, -0.0, math.nan, math.inf, -math.inf, 1.5, None),
    "float": (0.0, -0.0, math.nan, -1.5, None),
    "decimal(10,2)": (Decimal("1.50"), Decimal("-1.50"), Decimal("0.00"), None),
    "decimal(38,18)": (Decimal("1.5"), Decimal("-99999999999999999999.5"), None),
    "string": ("", "a", "A", "é", "b ", None),
    "string collate UTF8_LCASE": ("a", "A", "b", "B ", None),
    "string collate de_CI_AI": ("a", "Ä", "b", "ö", "Z", None),
    "binary": (b"", b"\x00", b"\xff", None),
    "date": (date(2024, 3, 1), date(1969, 12, 31), None),
    "timestamp": (DAY, DAY + timedelta(microseconds=1), None),
    "timestamp_ntz": (DAY, DAY - timedelta(days=30000), None),
    "interval day to second": (timedelta(days=1), timedelta(hours=23), timedelta(0), None),
    "array<int>": ([1, 2], [1], [], [None], None),
    "struct<f:int,g:string>": ((1, "a"), (1, None), (0, "b"), None),
}
MIXED = [
    ("int", (1, 2, None), "double", (1.0, 1.5, math.nan, None)),
    ("int", (1, 2, None), "decimal(10,2)", (Decimal("1.00"), Decimal("1.01"), None)),
    ("decimal(10,2)", (Decimal("1.50"), None), "decimal(20,6)", (Decimal("1.5"), Decimal("1.500001"), None)),
    ("bigint", (2**53 + 1, 2**53, None), "double", (float(2**53), None)),
    ("bigint", (2**53 + 1, 1), "string", (str(2**53 + 1), "1", None)),
    ("date", (date(2024, 3, 1), None), "timestamp", (DAY, DAY + timedelta(hours=1), None)),
    ("timestamp", (DAY, None), "string", ("2024-03-01", "2024-03-01 00:00:01", None)),
    ("float", (0.1, None), "double", (0.1, 0.25, None)),
]


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    return sparks.taught(spark)


def compare_all(session: SparkSession, conditions: Sequence[str]) -> None:
    """What the queries find is what a join finds that tries each condition on all pairs; all in one job."""
    ours = [f"FROM events PATTERN A a ; B b WHERE {c} ORDER BY ts RETURN a.ts AS x, b.ts AS y" for c in conditions]
    tried = ", ".join(f"({c}) AS c{n}" for n, c in enumerate(conditions))
    join = (
        f"SELECT a.ts AS x, b.ts AS y, {tried} FROM events a JOIN events b ON a.ts < b.ts "
        "WHERE a.type = 'A' AND b.type = 'B'"
    )
    *rows, pairs = sparks.together([session.sql(text) for text in (*ours, join)], at_once=len(conditions) + 1)
    for n, (condition, own) in enumerate(zip(conditions, rows, strict=True)):
        have = Counter((row["x"], row["y"]) for row in own)
        want = Counter((row["x"], row["y"]) for row in pairs if row[f"c{n}"])
        assert have == want, condition


def around(operators: Sequence[str]) -> list[str]:
    return [condition for op in operators for condition in (f"a.x {op} b.y", f"NOT (a.x {op} b.y)")]


ALIKE = ("tinyint", "smallint", "float", "decimal(38,18)")  # compared as others are


def _marks(kind: str) -> list[pytest.MarkDecorator]:
    return [pytest.mark.exhaustive] if kind in ALIKE else []


@pytest.mark.breadth(4)
@pytest.mark.parametrize("kind", [pytest.param(kind, marks=_marks(kind)) for kind in TYPES])
def test_values_compare_as_in_a_join(session: SparkSession, kind: str) -> None:
    rows = [(n, name, value, value) for n, (name, value) in enumerate(
        [(name, value) for name in "AB" for value in TYPES[kind]]
    )]  # fmt: skip
    sparks.view(session, "events", rows, f"ts bigint, type string, x {kind}, y {kind}")
    numbers = kind in ("double", "bigint")
    compare_all(session, around(OPERATORS) if numbers else ("a.x = b.y", "NOT (a.x < b.y)", "a.x <=> b.y"))


@pytest.mark.breadth(3)
@pytest.mark.parametrize("case", MIXED, ids=lambda case: f"{case[0]} and {case[2]}")
def test_types_are_cast_as_in_a_join(session: SparkSession, case: tuple[str, Any, str, Any]) -> None:
    left, xs, right, ys = case
    rows = [(n, "A", x, None) for n, x in enumerate(xs)] + [(10 + n, "B", None, y) for n, y in enumerate(ys)]
    sparks.view(session, "events", rows, f"ts bigint, type string, x {left}, y {right}")
    compare_all(session, ("NOT (a.x = b.y)", "a.x < b.y", "a.x >= b.y"))


@pytest.mark.exhaustive
def test_sums_that_are_moved_mean_the_same(session: SparkSession) -> None:
    small = (-(2**31), 2**31 - 1, 0, None)
    rows = [(n, name, k, Decimal(k or 0) / 4, date(2024, 2, 28), DAY + timedelta(minutes=7 * n))
            for n, (name, k) in enumerate((name, k) for name in "AB" for k in small if k is not None)]  # fmt: skip
    sparks.view(session, "events", rows, "ts bigint, type string, k int, d decimal(12,2), day date, at timestamp")
    conditions = (
        "CAST(b.k AS BIGINT) - CAST(a.k AS BIGINT) > 5", "b.d - a.d > 1.25", "a.d + 1 < b.d",
        "b.at - a.at <= INTERVAL 21 MINUTES", "INTERVAL '15' MINUTE > b.at - a.at", "b.day - a.day = INTERVAL 0 DAYS",
        "a.k IN (b.k, 0)", "a.k NOT BETWEEN b.k AND 9", "a.d + b.d > 1", "concat(a.type, b.type) = 'AB'",
        "(a.k < b.k) IS TRUE", "b.at BETWEEN a.at AND a.at + INTERVAL 14 MINUTES",
    )  # fmt: skip
    compare_all(session, conditions)
    # what would overflow in Spark's own types has an answer
    wide = session.sql("FROM events PATTERN A a ; B b WHERE b.k - a.k > 5 ORDER BY ts RETURN a.k AS x, b.k AS y")
    assert set(map(tuple, wide.collect())) == {(-(2**31), 2**31 - 1), (-(2**31), 0), (0, 2**31 - 1)}


def test_a_cast_is_asked_only_of_what_the_variable_can_be(session: SparkSession) -> None:
    rows = [(1, "A", 5, None), (2, "C", None, "no number"), (3, "B", None, "5"), (4, "B", None, "6")]
    sparks.view(session, "events", rows, "ts bigint, type string, k int, s string")
    df = session.sql("FROM events PATTERN A a ; C c ; B b WHERE a.k = b.s AND c.k <=> a.s ORDER BY ts RETURN b.ts")
    assert [row.ts for row in df.collect()] == [3]


# ---------------------------------------------------------------- keys


KEYED = (
    "A a ; B b WHERE [k]", "A a ; B+ b WHERE a.k = b.k", "SEQ(A a, !C c, B b) WHERE [k]",
    "SEQ(A a, !C c, B b) WHERE a.k = c.k AND a.k = b.k", "A+ a ; B b WHERE [k] AND a.v < b.v WITHIN 6",
    "A a ; B? b ; C c WHERE a.k = b.k AND a.k = c.k", "(A a OR B b) ; C c WHERE a.k = c.k AND b.k = c.k",
    "(A a ; B b) PART BY (a.k, b.k)", "SEQ(!C c, A a, B b) WHERE [k] WITHIN 5", "A a ; B b ; !C c WHERE [k] WITHIN 5",
    "A a ; B b WHERE [k] SEMANTICS SKIP TILL NEXT MATCH", "A+ a ; B b WHERE [k] SEMANTICS NXT",
)  # fmt: skip
UNKEYED = (
    "A a ; B? b WHERE a.k = b.k", "SEQ(A a, !C c, B b) WHERE a.k = c.k", "A a : B b WHERE [k]",
    "SEQ(A a, !C c, B b) WHERE a.k = c.k AND c.k = b.k",
)  # fmt: skip


def test_strings_with_a_collation_are_keys(session: SparkSession) -> None:
    rows = [(n, "AB"[n % 2], value, 0) for n, value in enumerate(("x", "X", "É", "é", "y", "x", "X", "É"))]
    sparks.view(session, "events", rows, "ts bigint, type string, k string collate UNICODE_CI, v int")
    join = (
        "SELECT a.ts AS x, b.ts AS y FROM events a JOIN events b ON a.k = b.k AND a.ts < b.ts "
        "WHERE a.type = 'A' AND b.type = 'B'"
    )
    query = "FROM events PATTERN A a ; B b {} ORDER BY ts RETURN a.ts AS x, b.ts AS y"
    keys = ("PARTITION BY k", "WHERE [k]", "WHERE a.k = b.k", "WHERE (a.k = b.k OR a.v < b.v)")
    texts = [join, *(query.format(key) for key in keys)]
    want, *found = sparks.together([session.sql(text) for text in texts])
    assert sorted((row["x"], row["y"]) for row in want) == [(0, 1), (0, 5), (2, 3), (2, 7)]
    for key, rows_of in zip(keys, found, strict=True):
        assert sorted(map(repr, rows_of)) == sorted(map(repr, want)), key


@pytest.mark.parametrize("turn", [0, pytest.param(1, marks=pytest.mark.exhaustive)])
def test_keys_are_only_a_way_to_run_it(session: SparkSession, monkeypatch: pytest.MonkeyPatch, turn: int) -> None:
    """Every other pattern at a time; tests/test_comparisons.py runs such without Spark."""
    patterns = (*KEYED, *UNKEYED)[turn::2]
    chance = random.Random(3)
    rows = [(n, chance.choice("AABBC"), chance.choice((None, 1, 2)), chance.randrange(4)) for n in range(28)]
    sparks.view(
        session, "events", [(*row, n) for n, row in enumerate(rows)], "ts bigint, type string, k int, v int, id int"
    )
    texts = [f"FROM events PATTERN {pattern} ORDER BY ts RETURN *" for pattern in patterns]
    for text, pattern in zip(texts, patterns, strict=True):
        shown = cersql.explain(session, text, "physical")
        assert ("a key as PARTITION BY has them" in shown) == (pattern in KEYED), shown
    texts = [text for n, text in enumerate(texts) if n % 3]
    ours = sparks.together([session.sql(text) for text in texts])
    monkeypatch.setattr(planner.physical, "keyed", lambda query, obstacle: Keyed(query))
    general = sparks.together([session.sql(text) for text in texts])
    for text, own, rows_of in zip(texts, ours, general, strict=True):
        have, want = (Counter(map(sparks.bound, found)) for found in (own, rows_of))
        assert have == want, text
    assert sum(map(bool, ours)) >= len(texts) - 1


LINKED = (
    "A a ; B b WHERE a.k = b.v",
    "A a ; B b ; C c WHERE a.k = b.v AND b.v = c.k",
    "A a ; B+ b ; C c WHERE a.v = b.k AND b.k = c.v AND a.k <> c.k WITHIN 9",
    "A a ; B? b ; C c WHERE a.k = c.v AND a.k = b.v",
    "(A a ; B b) PART BY (a.k, b.v)",
    "Low a ; High b WHERE a.k = b.v",  # one row may be both
    "Low a ; High b ; Low c WHERE a.k = b.v AND b.v = c.k",
    "A a ; D b WHERE a.k = b.x",  # INT and DOUBLE
    "SEQ(A a, !B b, C c) WHERE a.k = c.v AND a.k = b.v",
    "SEQ(A a, !B b) WHERE a.k = b.v WITHIN 5",
    "SEQ(A a, !B b) WHERE a.k = b.k WITHIN 5",  # an A without k stays
    "A a UNLESS (Low b ; High c) WHERE b.k = a.v AND c.v = a.v WITHIN 5",
    "ALL(A a, B b, C c) WHERE a.k = b.v AND a.k = c.k WITHIN 6",
)  # fmt: skip


@pytest.mark.parametrize("turn", [0, pytest.param(1, marks=pytest.mark.exhaustive)])
def test_rows_are_copied_for_keys_by_different_attributes(
    session: SparkSession, monkeypatch: pytest.MonkeyPatch, turn: int
) -> None:
    chance = random.Random(5)
    numbers = (None, 0.0, -0.0, 1.0, 2.0, float("nan"))
    rows = [
        (n // 2, chance.choice("AABBCD"), chance.choice((None, 0, 1, 2)), chance.choice((None, 0, 1, 2)),
         chance.choice(numbers), n)
        for n in range(44)
    ]  # fmt: skip
    sparks.view(session, "events", rows, "ts bigint, type string, k int, v int, x double, id int")
    define = "DEFINE Low AS k < 2 OR k IS NULL, High AS v > 0 OR v IS NULL"
    texts = [
        f"FROM events {define} PATTERN {part} ORDER BY ts, id {within} RETURN *"
        for part, within in ((p.partition(" WITHIN")[0], "".join(p.partition(" WITHIN")[1:])) for p in LINKED)
    ]
    for text in texts:
        assert "rows are copied for each of theirs" in cersql.explain(session, text, "physical"), text
    texts = texts[turn::2]  # all are planned, every other is run
    ours = sparks.together([session.sql(text) for text in texts])
    monkeypatch.setattr(planner.physical, "keyed", lambda query, obstacle: Keyed(query))
    others = sparks.together([session.sql(text) for text in texts])
    for text, have, want in zip(texts, ours, others, strict=True):
        assert Counter(map(sparks.bound, have)) == Counter(map(sparks.bound, want)), text
        assert have, text
    monkeypatch.undo()
    # What the general engine cannot do, an absence before the match, keys can.
    before = "SELECT a.id FROM events PATTERN SEQ(!B b, A a) WHERE a.v = b.k ORDER BY ts, id WITHIN 5 RETURN a.id AS id"
    plain = """SELECT id FROM events a WHERE type = 'A' AND NOT EXISTS (SELECT * FROM events b WHERE b.type = 'B'
               AND b.k = a.v AND b.id < a.id AND a.ts - b.ts <= 5)"""
    found = {row.id for row in session.sql(before.removeprefix("SELECT a.id ")).collect()}
    assert found == {row.id for row in session.sql(plain).collect()} != set()


def test_sources_views_and_agreed_columns(session: SparkSession) -> None:
    sparks.view(session, "orders", [(1, "o1", 10), (2, "o2", 5), (3, None, 1)], "ts bigint, id string, price int")
    sparks.view(session, "payments", [(4, "o2", 5), (5, "o1", 9), (6, None, 1)], "ts bigint, id string, paid int")
    text = (
        "FROM orders AS o, payments AS p PATTERN o ; p WHERE [id] AND p.paid < o.price ORDER BY ts RETURN id, o.price"
    )
    assert session.sql(text).collect() == [("o1", 10)]
    late = session.sql("""
        FROM orders, payments PATTERN orders o ; !payments p WHERE o.id = p.id ORDER BY ts WITHIN 2 RETURN o.ts AS ts
    """)
    assert sorted(row.ts for row in late.collect()) == [1, 3]
    session.sql(f"CREATE OR REPLACE TEMPORARY PATTERN VIEW short_paid AS {text}")
    assert session.sql("SELECT count(*) FROM short_paid WHERE id = 'o1'").collect() == [(1,)]


def test_all_that_agree_have_one_type(session: SparkSession) -> None:
    """That of the third attribute is wider than that of the first two."""
    rows = [(1, "A", 2, None), (2, "B", 2, None), (3, "C", None, 2.5), (4, "C", None, 2.0)]
    sparks.view(session, "widths", rows, "ts int, type string, i int, d double")
    text = "FROM widths PATTERN (A a ; B b ; C c) PART BY (a.i, b.i, c.d) ORDER BY ts RETURN c.ts AS ts"
    assert session.sql(text).collect() == [(4,)]


# ---------------------------------------------------------------- the papers' queries


@pytest.fixture
def ordered(session: SparkSession) -> Any:
    with sparks.settings(session, cersql__orderBy="ts"):
        yield session


def test_sase(ordered: SparkSession) -> None:
    schema = "ts bigint, job_id int, period double"
    sparks.view(ordered, "JobStart", [(1, 1, 0.0), (2, 2, 0.0)], schema)
    sparks.view(ordered, "Mapper", [(3, 1, 10.0), (4, 2, 20.0), (5, 1, 30.0)], schema)
    sparks.view(ordered, "JobEnd", [(6, 1, 0.0), (7, 2, 0.0)], schema)
    df = ordered.sql("""
        PATTERN SEQ(JobStart a, Mapper+ b[], JobEnd c)
        WHERE a.job_id = b[i].job_id AND a.job_id = c.job_id
        RETURN AVG(b[].period), MAX(b[].period)
    """)
    assert sorted(map(tuple, df.collect())) == [(10.0, 10.0), (20.0, 20.0), (20.0, 30.0), (30.0, 30.0)]


def test_hamlet(ordered: SparkSession) -> None:
    schema = "ts bigint, driver int, rider int, district string, duration int"
    sparks.view(ordered, "Request", [(1, 1, 1, "r", 0)], schema)
    sparks.view(ordered, "Travel", [(2, 1, 1, "x", 5), (3, 1, 2, "y", 7), (4, 1, 1, "z", 6)], schema)
    sparks.view(ordered, "Cancel", [(5, 1, 1, "c", 0), (6, 1, None, "c", 0)], schema)
    df = ordered.sql("""
        RETURN T.district, COUNT(*), SUM(T.duration)
        PATTERN SEQ(Request R, Travel T+, Cancel C)
        WHERE [driver, rider]
    """)
    assert sorted(map(tuple, df.collect())) == [(["x"], 3, 5), (["x", "z"], 4, 11), (["z"], 3, 6)]


def test_cogra(ordered: SparkSession) -> None:
    rates = [(1, 60, "passive"), (1, 62, "passive"), (2, 50, "passive"), (2, 55, "passive"), (2, 54, "passive"),
             (1, 70, "active")]  # fmt: skip
    sparks.view(
        ordered, "Measurement", [(n, *row) for n, row in enumerate(rates)],
        "ts bigint, patient int, rate int, activity string",
    )  # fmt: skip
    text = """
        RETURN patient, MIN(M.rate), MAX(M.rate)
        PATTERN Measurement M+
        SEMANTICS contiguous
        WHERE [patient] AND M.rate < NEXT(M).rate AND M.activity = {}
    """
    df = ordered.sql(text.format("'passive'"))
    assert sorted(map(tuple, df.collect())) == [
        (1, 60, 60), (1, 60, 62), (1, 62, 62), (2, 50, 50), (2, 50, 55), (2, 54, 54), (2, 55, 55),
    ]  # fmt: skip
    with pytest.raises(Exception, match="'passive'"):
        ordered.sql(text.format("passive"))


def test_esper(ordered: SparkSession) -> None:
    schema = "ts bigint, custId int, name string, price int"
    sparks.view(ordered, "ServiceOrder", [(1, 1, "n", 60), (2, 2, "n", 60)], schema)
    orders = [(3, 2, "n", 30), (4, 1, "m", 90), (5, 1, "n", 50), (6, 2, "n", 99)]
    sparks.view(ordered, "ProductOrder", orders, schema)
    df = ordered.sql("""
        SELECT a.custId, sum(a.price + b.price)
        FROM PATTERN [every a=ServiceOrder -> b=ProductOrder(custId = a.custId)]
        WHERE a.name in (b.name) HAVING sum(a.price + b.price) > 100
    """)
    assert [tuple(row) for row in df.collect()] == [(1, 110)]


@pytest.mark.breadth(3)
@pytest.mark.parametrize(
    ("type", "spark_sorts"),
    [
        ("int", True),
        ("bigint", True),
        ("double", True),
        ("date", True),
        ("decimal(10,2)", True),
        ("timestamp", True),
        ("string", False),
    ],
)
def test_where_spark_may_sort(session: SparkSession, type: str, spark_sorts: bool) -> None:
    """Codes of strings are ranks among the rows of a task, which must hold them all; others mean the same anywhere."""
    made = (
        "date_add(DATE '2024-01-01', CAST(pmod(id * 7, 11) AS INT))"
        if type == "date"
        else f"CAST(pmod(id * 7, 11) AS {type})"
    )
    rows = f"(SELECT id, id % 3 AS k, IF(id % 2 = 0, 'A', 'B') AS type, {made} AS v FROM range(0, 200, 1, 4)) AS t"
    found = {}
    for sort in ("worker", "spark"):
        for condition in ("a.v < b.v", "a.v <> b.v"):
            pattern = f"PATTERN A a ; B b WHERE {condition} PARTITION BY k ORDER BY id WITHIN 20"
            with sparks.settings(session, cersql__sort=sort):
                df = session.sql(f"FROM {rows} {pattern} RETURN a.id, b.id")
                plan = df._jdf.queryExecution().sparkPlan().toString()  # type: ignore[operator]
                found.setdefault(condition, []).append(sorted(map(tuple, df.collect())))
            assert ("Sort [" in plan) == (spark_sorts and sort == "spark"), plan
    for condition, (by_worker, by_spark) in found.items():
        assert by_worker == by_spark, condition
        assert len(by_worker) > 10


def test_the_least_values_where_spark_sorts(session: SparkSession) -> None:
    """A BIGINT's least values have no codes of their own; the error says what to write."""
    rows = "(SELECT id, IF(id = 2, 'B', 'A') AS type, id - 9223372036854775807L - 1 AS v FROM range(3)) AS t"
    text = f"FROM {rows} PATTERN A a ; B b WHERE a.v < b.v ORDER BY id RETURN a.id"
    with sparks.settings(session, cersql__sort="worker"):
        assert sorted(row.id for row in session.sql(text).collect()) == [0, 1]
    with sparks.settings(session, cersql__sort="spark"), pytest.raises(Exception, match="LEAST_BIGINT") as raised:
        session.sql(text).collect()
    assert "DECIMAL(20, 0)" in str(raised.value)
