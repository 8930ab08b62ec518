"""Conditions that compute with several events, from the text: everywhere that a comparison may stand, in batch and on
a stream. What is expected is worked out by a loop over the rows, or by plain Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import combinations, pairwise

import pytest
from pyspark.sql import SparkSession
from sparks import settings, view

import cersql
from runtime.errors import CersqlError

Row = tuple[int, str, datetime, float | None]
START = datetime(2025, 3, 30, 0, 50, tzinfo=UTC)
VALUES = [1.0, 2.5, None, 2.4999999999999996, 0.1, 0.30000000000000004, 0.2, 4.0, 3.0, float("nan"), 2.0, 1.5]
ROWS: list[Row] = [(n, "AB"[n % 3 == 2], START + timedelta(minutes=n), v) for n, v in enumerate(VALUES)]
PAIRS = [(a, b) for a, b in combinations(ROWS, 2) if a[1] == "A" and b[1] == "B"]
END = "ORDER BY ts, id"


def above(a: float | None, b: float | None, least: float) -> bool:
    """b - a >= least as Spark has it: no NULL is, and NaN is the greatest number."""
    if a is None or b is None:
        return False
    return not b - a < least


@pytest.fixture(scope="module", autouse=True)
def rows(spark: SparkSession) -> None:
    view(spark, "measured", ROWS, "id INT, type STRING, ts TIMESTAMP, v DOUBLE")


@pytest.fixture
def found(spark: SparkSession) -> Callable[[str], list[tuple[int, ...]]]:
    def run(text: str) -> list[tuple[int, ...]]:
        return sorted(tuple(row) for row in cersql.sql(spark, text).collect())

    return run


Run = Callable[[str], list[tuple[int, ...]]]


def test_in_where_and_in_a_filter_inside(found: Run) -> None:
    expected = sorted((a[0], b[0]) for a, b in PAIRS if above(a[3], b[3], 0.5))
    assert expected
    returns = f"{END} RETURN a.id AS a, b.id AS b"
    assert found(f"FROM measured PATTERN A a ; B b WHERE b.v - a.v >= 0.5 {returns}") == expected
    assert found(f"FROM measured PATTERN (A a ; B b) FILTER b.v - a.v >= 0.5 {returns}") == expected
    assert found(f"FROM measured PATTERN A a ; B b WHERE NOT (b.v - a.v < 0.5) {returns}") == expected


def test_of_neighbours_in_a_loop(found: Run) -> None:
    known = [row for row in ROWS if row[1] == "A"]
    expected = sorted(
        tuple(row[0] for row in chosen)
        for n in (2, 3)
        for chosen in combinations(known, n)
        if all(above(a[3], b[3], 0.7) for a, b in pairwise(chosen))
    )
    assert len(expected) > 5
    text = f"FROM measured PATTERN A{{2,3}} s WHERE s[i].v - s[i-1].v >= 0.7 {END} RETURN s[1].id, s[2].id, s[3].id"
    assert [tuple(n for n in row if n is not None) for row in found_with_nulls(found, text)] == expected
    previous = text.replace("s[i-1].v", "PREV(s.v)").replace("s[i].v", "s.v")
    assert found_with_nulls(found, previous) == found_with_nulls(found, text)


def found_with_nulls(found: Run, text: str) -> list[tuple[int, ...]]:
    inner = text.replace("RETURN s[1].id, s[2].id, s[3].id", "RETURN s.id AS ids")
    return sorted(tuple(row[0]) for row in found(inner))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("clause", "keep"),
    [
        ("AFTER MATCH SKIP PAST LAST ROW", "past last row"),
        ("SEMANTICS NXT", "first start of each end"),
        ("CONSUME BY PARTITION", "first end that matches"),
        ("SEMANTICS SKIP TILL NEXT MATCH", "first end of each start"),
    ],
)
def test_beside_what_chooses(found: Run, clause: str, keep: str) -> None:
    matches = [(a[0], b[0]) for a, b in PAIRS if above(a[3], b[3], 0.5)]
    text = f"FROM measured PATTERN A a ; B b WHERE b.v - a.v >= 0.5 {END} {clause} RETURN a.id AS a, b.id AS b"
    assert found(text) == sorted(chosen(matches, keep))


def chosen(matches: list[tuple[int, int]], keep: str) -> Iterator[tuple[int, int]]:
    """Of pairs, as semantics says; an end that is no B of a match lets a run of skip till next match wait."""
    if keep == "first start of each end":
        yield from ((min(a for a, b in matches if b == end), end) for end in {b for _, b in matches})
    elif keep == "first end of each start":
        yield from ((start, min(b for a, b in matches if a == start)) for start in {a for a, _ in matches})
    elif keep == "first end that matches":
        consumed = -1
        for end in sorted({b for _, b in matches}):
            live = [(a, b) for a, b in matches if b == end and a > consumed]
            yield from live
            consumed = end if live else consumed
    else:
        least = -1
        while left := [(a, b) for a, b in matches if a >= least]:
            start = min(a for a, _ in left)
            end = max(b for a, b in left if a == start)
            yield start, end
            least = end + 1


def test_of_what_must_not_happen(found: Run) -> None:
    """No B in between that lies 0.5 or more above the A."""
    expected = sorted(
        (a[0], b[0])
        for a, b in PAIRS
        if not any(x[1] == "B" and a[0] < x[0] < b[0] and above(a[3], x[3], 0.5) for x in ROWS)
    )
    text = f"FROM measured PATTERN SEQ(A a, !B x, B b) WHERE x.v - a.v >= 0.5 {END} RETURN a.id AS a, b.id AS b"
    assert found(text) == expected
    assert len(expected) < len(PAIRS)


def test_with_timeouts(found: Run) -> None:
    """A start whose window closes without a match: the condition decides what is one."""
    text = f"""FROM measured PATTERN A a ; B b WHERE b.v - a.v >= 0.5 {END} WITHIN 3 MINUTES
               RETURN a.id AS a WITH TIMEOUTS"""
    inside = [(a[0], b[0]) for a, b in PAIRS if b[0] - a[0] <= 3 and above(a[3], b[3], 0.5)]
    silent = {row[0] for row in ROWS if row[1] == "A"} - {a for a, _ in inside}
    rows = found(text.replace("RETURN a.id AS a WITH", "RETURN a.id AS a, match_status WITH"))
    assert sorted(row[0] for row in rows if row[1] == "timeout") == sorted(silent)  # type: ignore[comparison-overlap]
    assert sorted(row[0] for row in rows if row[1] == "match") == sorted(a for a, _ in inside)  # type: ignore[comparison-overlap]


def test_three_events_and_other_functions(found: Run, spark: SparkSession) -> None:
    joined = """SELECT a.id, b.id FROM measured a JOIN measured b ON a.type = 'A' AND b.type = 'B' AND a.id < b.id
                WHERE {}"""
    for condition in (
        "b.v / a.v > 1.05", "abs(b.v - a.v) <= 0.5", "least(a.v, b.v) > 0.2", "try_divide(b.v, a.v - 1) > 1",
        "b.v * 2 - a.v > greatest(a.v, 1.5D)", "timestampdiff(MINUTE, a.ts, b.ts) < 5", "datediff(b.ts, a.ts) = 0",
        "abs(b.ts - a.ts) < INTERVAL 4 MINUTES", "b.v - a.v BETWEEN 0.5 AND 2", "b.v - a.v > 0.5 OR a.v = 0.1",
        "b.id % 4 + a.id DIV 2 = 3", "sqrt(power(b.v - a.v, 2) + power(b.id - a.id, 2)) < 4",
    ):  # fmt: skip
        expected = sorted(tuple(row) for row in spark.sql(joined.format(condition)).collect())
        assert found(f"FROM measured PATTERN A a ; B b WHERE {condition} {END} RETURN a.id AS a, b.id AS b") == expected
    three = f"FROM measured PATTERN A a : ANY m : ANY b WHERE a.id + m.id > b.id + 4 {END} RETURN a.id"
    assert found(three) == [(row[0],) for row in ROWS[:-2] if row[1] == "A" and row[0] + row[0] + 1 > row[0] + 6]


@pytest.mark.exhaustive
def test_a_stream_has_the_rows_of_the_batch(spark: SparkSession) -> None:
    view(spark, "measured_utc", [(n, t, ts, v) for n, t, ts, v in ROWS], "id INT, type STRING, ts TIMESTAMP, v DOUBLE")
    text = """PATTERN SEQ(A a, !B x, ANY y) WHERE y.v - a.v >= 0.5 AND abs(x.v - a.v) > 1 ORDER BY ts WITHIN 6 MINUTES
              RETURN a.id AS a, y.id AS y"""
    replayed = cersql.replay(spark, "measured_utc", text, batches=2)
    assert replayed.matches
    assert replayed.same, str(replayed)


def test_a_difference_of_timestamps_is_that_of_clocks(spark: SparkSession, found: Run) -> None:
    """On the night of summer time in London clocks go from 00:59 to 02:00; WITHIN measures what has elapsed."""
    with settings(spark, spark__sql__session__timeZone="Europe/London"):
        expected = sorted(
            tuple(row)
            for row in spark.sql(
                "SELECT a.id, b.id FROM measured a JOIN measured b ON b.id = a.id + 1 "
                "WHERE b.ts - a.ts <= INTERVAL 5 MINUTES"
            ).collect()
        )
        assert len(expected) == len(ROWS) - 2  # all neighbours but those around the hour
        returns = f"{END} RETURN a.id AS a, b.id AS b"
        for condition in ("b.ts - a.ts <= INTERVAL 5 MINUTES", "abs(b.ts - a.ts) <= INTERVAL 5 MINUTES"):
            assert found(f"FROM measured PATTERN ANY a : ANY b WHERE {condition} {returns}") == expected
            assert found(f"FROM measured PATTERN (ANY a : ANY b) FILTER {condition} {returns}") == expected
            assert found(f"FROM measured PATTERN ANY a : ANY b {returns} HAVING {condition}") == expected
        assert len(found(f"FROM measured PATTERN ANY a : ANY b WITHIN 5 MINUTES {returns}")) == len(ROWS) - 1
        loop = f"FROM measured PATTERN ANY{{2}} w WHERE w[i].ts - w[i-1].ts > INTERVAL 58 MINUTES {END} RETURN w.id"
        hours = [a[0] for a, b in pairwise(ROWS) if a[2].hour == 0 and b[2].hour == 1]
        assert {ids[0] for (ids,) in found(loop)} >= set(hours)  # type: ignore[index, misc]


def test_what_spark_objects_to_is_said_first(spark: SparkSession) -> None:
    text = f"FROM measured PATTERN A a ; B b WHERE date(b.ts) - date(a.ts) <= 30 {END} RETURN *"
    with pytest.raises(CersqlError) as raised:
        cersql.sql(spark, text)
    assert raised.value.condition == "INVALID_EXPRESSION"
    assert "INTERVAL DAY" in str(raised.value)
    assert raised.value.column == text.index("date(b.ts)") + 1


def test_overflow_and_division_by_zero(spark: SparkSession) -> None:
    """As Spark's own: an error in ANSI mode that names the condition, else NULL."""
    text = f"FROM measured PATTERN A a ; B b WHERE a.v / (b.id - b.id * a.id / a.id) > 1 {END} RETURN a.id"
    with settings(spark, spark__sql__ansi__enabled="false"):
        assert cersql.sql(spark, text).collect() == []
    with pytest.raises(Exception, match=r"\[ARITHMETIC\] An overflow, or a division by zero, in a.v / ") as raised:
        cersql.sql(spark, text).collect()
    assert "try_divide" in str(raised.value)
    for conditions in ("b.v <> a.v AND 1 / (b.v - a.v) > 0", "1 / (b.v - a.v) > 0 AND b.v <> a.v"):
        equal = "(SELECT id, 'A' AS type, CAST(id AS DOUBLE) AS v FROM range(3) UNION ALL SELECT 3, 'B', 2.0D) AS t"
        guarded = f"FROM {equal} PATTERN A a ; B b WHERE {conditions} ORDER BY id RETURN a.id"
        assert sorted(row.id for row in cersql.sql(spark, guarded).collect()) == [0, 1]
    least = "FROM VALUES (1, -9223372036854775808L), (2, 5L) AS t(id, l) PATTERN ANY a ; ANY b"
    with pytest.raises(Exception, match="LEAST_BIGINT"):
        cersql.sql(spark, f"FROM (SELECT * {least.split(' PATTERN')[0]}) AS t PATTERN ANY a ; ANY b "
                          "WHERE abs(a.l - b.l) > 1 ORDER BY id RETURN *").collect()  # fmt: skip
