"""Conditions on two events that workers cannot compute, from the text: Spark tabulates them, and they may stand
wherever a comparison may. What is expected is worked out by loops over the rows."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import combinations, cycle, pairwise
from typing import Any

import pytest
from pyspark.sql import SparkSession
from sparks import local, taught, together, view

import cersql
from runtime.errors import CersqlError
from spark_ext.errors import SparkError

Row = tuple[int, str, str | None, str | None, int, datetime]
START = datetime(2025, 1, 1, tzinfo=UTC)
WORDS = ["cat", "cut", None, "cart", "dog", "dig", "cat", "do", "cot", "", "dogs", "cat"]
ROWS: list[Row] = [
    (n, "AB"[n % 3 == 2 or n % 4 == 3], "xyx"[n % 3] if n % 5 else None, word, n % 4, START + timedelta(minutes=n))
    for n, word in enumerate(WORDS)
]
SCHEMA = "id INT, type STRING, k STRING, s STRING, v INT, ts TIMESTAMP"
END = "ORDER BY ts"
A, B = ([row for row in ROWS if row[1] == type] for type in "AB")


@functools.cache
def distance(a: str | None, b: str | None) -> int | None:
    """Levenshtein's."""
    if a is None or b is None:
        return None
    if not a or not b:
        return len(a) + len(b)
    changed = distance(a[:-1], b[:-1]), distance(a[:-1], b), distance(a, b[:-1])
    assert None not in changed
    return min(changed[0] + (a[-1] != b[-1]), changed[1] + 1, changed[2] + 1)  # type: ignore[operator]


def near(a: Row, b: Row, most: int = 1) -> bool:
    found = distance(a[3], b[3])
    return found is not None and found <= most


def pairs(test: Callable[[Row, Row], bool] = near) -> list[tuple[int, int]]:
    return [(a[0], b[0]) for a, b in combinations(ROWS, 2) if (a[1], b[1]) == ("A", "B") and test(a, b)]


@pytest.fixture(scope="module", autouse=True)
def rows(spark: SparkSession) -> None:
    view(spark, "words", ROWS, SCHEMA)
    spark.udf.register("py_near", lambda a, b: a[0] == b[0], "boolean")
    spark.sql("CREATE OR REPLACE TEMPORARY FUNCTION sql_near(a STRING, b STRING) RETURN levenshtein(a, b) <= 1")


@pytest.fixture
def ask(spark: SparkSession) -> Callable[[Sequence[str]], list[list[tuple[Any, ...]]]]:
    """The rows of many queries, in one job."""

    def run(texts: Sequence[str]) -> list[list[tuple[Any, ...]]]:
        frames = together([cersql.sql(spark, text) for text in texts])
        return [
            sorted(tuple(tuple(v) if isinstance(v, list) else v for v in row.values()) for row in f) for f in frames
        ]

    return run


Ask = Callable[[Sequence[str]], list[list[tuple[Any, ...]]]]
RETURNS = "RETURN a.id AS a, b.id AS b"
NEAR = "levenshtein(a.s, b.s) <= 1"
GREEDY = f"{END} SEMANTICS SKIP TILL NEXT MATCH"


def first_of_each(found: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The first end of each start: A ; B under skip till next match."""
    return sorted({a: (a, b) for a, b in sorted(found, reverse=True)}.values())


@pytest.mark.exhaustive
def test_skip_till_next_match(ask: Ask) -> None:
    """A run passes over a B that its A is not near; in what a function of Spark's says, of Python's and of SQL's."""
    starts = pairs(lambda a, b: bool(a[3] and b[3]) and a[3][0] == b[3][0])  # type: ignore[index]
    known = "FROM (SELECT * FROM words WHERE s <> '') AS w PATTERN A a ; B b"  # a UDF sees no NULLs but the source's
    found = ask([
        f"FROM words PATTERN A a ; B b WHERE {NEAR} {GREEDY} {RETURNS}",
        f"FROM words PATTERN A a ; B b WHERE sql_near(b.s, a.s) {GREEDY} {RETURNS}",
        f"{known} WHERE py_near(a.s, b.s) {GREEDY} {RETURNS}",
        f"{known} WHERE py_near(a.s, b.s) {GREEDY} WITHIN 4 MINUTES {RETURNS}",
        f"FROM words PATTERN A a ; B b WHERE NOT (levenshtein(a.s, b.s) <= 1) {GREEDY} {RETURNS}",
        f"FROM words PATTERN A a ; B b WHERE coalesce(levenshtein(a.s, b.s), 0) <= 1 {GREEDY} {RETURNS}",
        f"FROM words PATTERN A a ; B b WHERE levenshtein(a.s, b.s) <= 1 OR b.v > 2 {GREEDY} {RETURNS}",
        f"FROM words PATTERN A a ; B b WHERE levenshtein(a.s, b.s) BETWEEN 1 AND 2 {GREEDY} {RETURNS}",
        f"FROM words PATTERN A a ; B b WHERE levenshtein(a.s, b.s) NOT IN (1, length(a.s)) {GREEDY} {RETURNS}",
        f"FROM words PATTERN A a ; B b WHERE a.s RLIKE concat('^', left(b.s, 1)) AND a.v < b.v {GREEDY} {RETURNS}",
    ])  # fmt: skip
    assert found == list(map(first_of_each, [
        pairs(),
        pairs(),
        starts,
        [(a, b) for a, b in starts if b - a <= 4],
        pairs(lambda a, b: distance(a[3], b[3]) is not None and not near(a, b)),
        pairs(lambda a, b: distance(a[3], b[3]) is None or near(a, b)),
        pairs(lambda a, b: near(a, b) or b[4] > 2),
        pairs(lambda a, b: distance(a[3], b[3]) in (1, 2)),
        pairs(lambda a, b: distance(a[3], b[3]) not in (None, 1, len(a[3] or ""))),
        pairs(lambda a, b: None not in (a[3], b[3]) and a[3].startswith(b[3][:1]) and a[4] < b[4]),  # type: ignore[union-attr, index]
    ]))  # fmt: skip
    assert all(found)


@pytest.mark.exhaustive
def test_neighbours_in_a_loop(ask: Ask) -> None:
    def chains(test: Callable[[Row, Row], bool], within: int = 99) -> list[tuple[tuple[int, ...]]]:
        return sorted(
            (tuple(row[0] for row in chosen),)
            for n in (2, 3)
            for chosen in combinations(A, n)
            if all(test(a, b) for a, b in pairwise(chosen)) and chosen[-1][0] - chosen[0][0] <= within
        )

    def in_order(a: Row, b: Row) -> bool:
        return None not in (a[3], b[3]) and 2 * len(a[3]) - 2 * len(b[3]) > 1  # type: ignore[arg-type]

    text = f"FROM words PATTERN A{{{{2,3}}}} x WHERE {{}} {END} {{}} RETURN x.id AS ids"
    found = ask([
        text.format("levenshtein(x[i-1].s, x[i].s) <= 1", ""),
        text.format("levenshtein(PREV(x.s), x.s) <= 1", "WITHIN 6 MINUTES"),
        text.format("length(concat(x[i].s, x[i].s, x[i+1].s)) > 3 * length(x[i+1].s) + 1", ""),
        text.format("levenshtein(x[i-1].s, x[i+1].s) <= 1", "").replace("{2,3}", "{3}"),
        f"FROM words PATTERN ANY{{2}} x WHERE array_size(array_compact(array(x[i].s, x[i-1].s))) < 2 {END} RETURN x.id",
    ])  # fmt: skip
    assert found == [
        chains(near),
        chains(near, 6),
        chains(in_order),
        [((a[0], m[0], b[0]),) for a, m, b in combinations(A, 3) if near(a, b)],
        [((a[0], b[0]),) for a, b in combinations(ROWS, 2) if None in (a[3], b[3])],
    ]
    assert all(found)


@pytest.mark.exhaustive
def test_in_a_filter_and_of_what_must_not_happen(ask: Ask) -> None:
    between = [(a, b, [x for x in B if a[0] < x[0] < b[0]]) for a in A for b in B if a[0] < b[0]]
    found = ask([
        f"FROM words PATTERN ((A a ; B b) FILTER {NEAR}) ; ANY c {END} RETURN a.id AS a, b.id AS b, c.id AS c",
        f"FROM words PATTERN SEQ(A a, !B x, B b) WHERE levenshtein(x.s, a.s) <= 1 {END} {RETURNS}",
        f"FROM words PATTERN SEQ(A a, !(A x ; B y), B b) WHERE levenshtein(x.s, y.s) <= 1 {END} {RETURNS}",
        f"FROM words PATTERN SEQ(A a, !B x) WHERE levenshtein(x.s, a.s) <= 1 {END} WITHIN 4 MINUTES RETURN a.id AS a",
    ])  # fmt: skip
    assert found == [
        sorted((a, b, c[0]) for a, b in pairs() for c in ROWS if c[0] > b),
        sorted((a[0], b[0]) for a, b, inside in between if not any(near(a, x) for x in inside)),
        sorted((a[0], b[0]) for a, b, _ in between if not any(a[0] < x < y < b[0] for x, y in pairs())),
        [(a[0],) for a in A if not any(near(a, x) for x in B if 0 < x[0] - a[0] <= 4)],
    ]
    assert all(found)


@pytest.mark.exhaustive
def test_keys(ask: Ask) -> None:
    """Only rows of one key meet; NULL is a key of PARTITION BY, and equal to nothing."""
    same = pairs(lambda a, b: a[2] == b[2] and near(a, b, 2))
    found = ask([
        f"FROM words PATTERN A a ; B b WHERE levenshtein(a.s, b.s) <= 2 PARTITION BY k {GREEDY} {RETURNS}",
        f"FROM words PATTERN A a ; B b WHERE levenshtein(a.s, b.s) <= 2 AND a.k = b.k {GREEDY} {RETURNS}",
        f"FROM words PATTERN ((A a ; B b) FILTER length(concat(a.s, b.s, k)) > 5) AS m PARTITION BY k {END} {RETURNS}",
        f"FROM words PATTERN A a ; B b WHERE levenshtein(a.s, b.s) <= 2 PARTITION BY k {GREEDY} CONSUME BY ANY "
        f"{RETURNS}",
    ])  # fmt: skip
    names = {row[0]: row for row in ROWS}
    assert found[0] == first_of_each(same)
    assert found[1] == first_of_each([(a, b) for a, b in same if names[a][2] is not None])
    assert found[2] == pairs(lambda a, b: a[2] == b[2] and None not in (a[2], a[3], b[3]) and len(a[3] + b[3]) > 4)  # type: ignore[operator]
    consumed, expected = -1, list[tuple[int, int]]()
    for end in (row[0] for row in B):
        live = [(a, b) for a, b in first_of_each(same) if b == end and a > consumed]
        expected, consumed = expected + live, end if live else consumed
    assert found[3] == sorted(expected)
    assert all(found)


@pytest.mark.exhaustive
def test_positions_timeouts_and_skipping(ask: Ask) -> None:
    found = ask([
        f"FROM words PATTERN ((ANY a : ANY b) FILTER {NEAR}) AS m {END} {RETURNS}",
        f"FROM words PATTERN ((A a ; B b) FILTER {NEAR}) AS m {END} WITHIN 4 EVENTS {RETURNS}",
        f"FROM words PATTERN ((A a ; B b) FILTER {NEAR}) AS m {END} WITHIN 3 MINUTES "
        "RETURN a.id AS a, match_status, match_reached WITH TIMEOUTS",
        f"FROM words PATTERN ((A a ; B b) FILTER {NEAR}) AS m {END} AFTER MATCH SKIP TO NEXT ROW {RETURNS}",
        f"FROM words PATTERN ((A a ; B b) FILTER {NEAR}) AS m {END} SEMANTICS MAX {RETURNS}",
    ])  # fmt: skip
    near_ones = [(a, b) for a, b in pairs() if b - a <= 3]
    ended = {a for a, _ in near_ones}
    assert found[0] == [(a[0], b[0]) for a, b in pairwise(ROWS) if near(a, b)]
    assert found[1] == near_ones
    assert found[2] == sorted(
        [(a, "match", "b") for a, _ in near_ones] + [(a[0], "timeout", "a") for a in A if a[0] not in ended]
    )
    assert found[3] == sorted({a: (a, b) for a, b in sorted(pairs())}.values())
    assert found[4] == sorted(pairs())
    assert all(found)


def test_values_of_many_types(ask: Ask, spark: SparkSession) -> None:
    """What tells events apart is all that the condition reads of them: NULLs in arrays, fractions of a second, maps."""
    values = [
        (1, "A", [1, None], {"x": 1}, START, -0.5, bytearray(b"a")),
        (2, "A", [1], {"x": 2}, START + timedelta(microseconds=1), float("nan"), bytearray(b"b")),
        (3, "B", [1], {"x": 1}, START, 1.5, bytearray(b"a")),
        (4, "B", [None, 1], None, START + timedelta(microseconds=1), float("inf"), None),
        (5, "A", None, {}, None, None, None),
        (6, "B", [2, 3], {"y": 1}, START, 0.0, bytearray(b"c")),
    ]
    schema = "id INT, type STRING, tags ARRAY<INT>, m MAP<STRING, INT>, at TIMESTAMP, d DOUBLE, raw BINARY"
    view(spark, "typed", values, schema)
    conditions = [
        "arrays_overlap(a.tags, b.tags)", "size(a.tags) > size(b.tags) - 1", "a.tags = array_sort(b.tags)",
        "map_contains_key(a.m, map_keys(b.m)[0])", "date_format(a.at, 'SSSSSS') = date_format(b.at, 'SSSSSS')",
        "exp(a.d - b.d) < 1", "hypot(a.d, b.d) > 1", "concat(a.raw, b.raw) > b.raw",
        "greatest(a.tags, b.tags) = a.tags",
        "a.m.x + coalesce(b.m.x, 0) > 1", "struct(a.tags, b.at) < struct(b.tags, a.at)",
    ]  # fmt: skip
    joined = """SELECT a.id AS a, b.id AS b FROM typed a JOIN typed b
                ON a.type = 'A' AND b.type = 'B' AND a.id < b.id WHERE {}"""
    expected = together([spark.sql(joined.format(condition)) for condition in conditions])
    texts = [
        f"FROM typed PATTERN ((A a ; B b) FILTER {condition}) AS m ORDER BY id {RETURNS}" for condition in conditions
    ]
    for condition, own, found in zip(conditions, expected, ask(texts), strict=True):
        assert found == sorted(tuple(row.values()) for row in own), condition


@pytest.mark.exhaustive
def test_as_on_listed_matches(ask: Ask, spark: SparkSession) -> None:
    """What runs look up is what Spark computes on matches, where WHERE asks it: of random rows, some alike."""
    chance = random.Random(5)
    many = [
        (
            n,
            chance.choice("AB"),
            chance.choice(["x", "y", None]),
            "".join(chance.choices("ab", k=chance.randrange(4))) or None,
        )
        for n in range(60)
    ]
    view(spark, "random_words", [(*row, START + timedelta(seconds=row[0] // 2)) for row in many],
         "id INT, type STRING, k STRING, s STRING, ts TIMESTAMP")  # fmt: skip
    texts = []
    conditions = cycle([NEAR, "a.s LIKE concat(b.s, '%') OR coalesce(b.s, a.s) IS NULL"])
    for pattern, end in (
        ("A a ; B+ b", "PARTITION BY k ORDER BY ts, id WITHIN 4 SECONDS"),
        ("ALL(A a, B b)", "ORDER BY ts, id WITHIN 2 SECONDS"),
        ("ALL(A a, B b)", "ORDER BY ts, id WITHIN 2 SECONDS SEMANTICS LAST"),
        ("(A a ; B b)+", "ORDER BY ts, id WITHIN < 2 SECONDS"),
    ):
        condition = next(conditions)
        texts += [f"FROM random_words PATTERN {pattern} WHERE {condition} {end} {RETURNS}",
                  f"FROM random_words PATTERN (({pattern}) FILTER {condition}) AS m {end} {RETURNS}"]  # fmt: skip
    found = ask(texts)
    assert found[::2] == found[1::2]
    assert all(found)


def test_several_sources_ties_and_duplicates(ask: Ask, spark: SparkSession) -> None:
    """Sources that call their columns alike in two types; rows that tie in time, twice the same."""
    view(spark, "orders", [(1, "cat", 1), (1, "cat", 1), (2, "dog", 2)], "t INT, s STRING, n INT")
    view(spark, "bills", [(1, 31, 1), (3, 3, 7), (3, 3, 8), (4, 12, 9)], "t INT, s INT, n INT")
    found = ask([
        "FROM orders, bills PATTERN ((orders a ; bills b) FILTER length(a.s) = length(repeat('x', b.s))) AS m "
        "ORDER BY t RETURN a.n AS a, b.n AS b",
        "FROM bills PATTERN ((bills a ; bills b) FILTER bit_count(a.s + b.s) > 2) AS m ORDER BY t, n "
        "RETURN a.n AS a, b.n AS b",
        "FROM orders PATTERN ANY{2} x WHERE soundex(x[i-1].s) = soundex(x[i].s) ORDER BY t RETURN x.n AS n",
    ])  # fmt: skip
    assert found == [[(1, 7), (1, 7), (1, 8), (1, 8), (2, 7), (2, 8)], [(1, 9), (7, 9), (8, 9)], [((1, 1),)]]


def test_no_rows_and_a_data_frame(spark: SparkSession) -> None:
    text = f"PATTERN A a ; B b WHERE levenshtein(a.s, b.s) <= 1 {GREEDY} WITHIN 5 MINUTES {RETURNS}"
    frame = local(spark, ROWS, SCHEMA)
    found = sorted(map(tuple, cersql.match(frame, text).collect()))
    assert found == first_of_each([(a, b) for a, b in pairs() if b - a <= 5])
    assert cersql.match(frame.where("id < 0"), text).collect() == []
    assert sorted(map(tuple, cersql.match(frame.repartition(5), text).collect())) == found


def test_the_whole_way_from_spark_sql(spark: SparkSession) -> None:
    session = taught(spark)
    view(session, "words", ROWS, SCHEMA)
    text = f"""SELECT count(*) FROM (FROM words PATTERN P a ; Q b DEFINE P AS type = 'A', Q AS type = 'B'
               WHERE levenshtein(a.s, b.s) <= 1 {GREEDY} RETURN *)"""
    assert session.sql(text).collect()[0][0] == len(first_of_each(pairs()))


def test_what_spark_objects_to_is_said_first(spark: SparkSession) -> None:
    text = f"FROM words PATTERN ((A a ; B b) FILTER levenshtein(a.s) <= b.v) AS m {END} RETURN *"
    with pytest.raises(CersqlError) as raised:
        cersql.sql(spark, text)
    assert raised.value.condition == "INVALID_EXPRESSION"
    assert raised.value.column == text.index("levenshtein") + 1


@pytest.mark.parametrize("condition", [
    "levenshtein(a.s, b.s) > rand()", "levenshtein(a.s, b.s) > (SELECT max(v) FROM words)",
    "levenshtein(a.s, concat(b.s, c.s)) > 2",
])  # fmt: skip
def test_what_cannot_be_tabulated(spark: SparkSession, condition: str) -> None:
    for pattern, clause in (
        (f"((A a ; B b ; ANY c) FILTER {condition}) AS m", ""),
        (f"A a ; B b ; ANY c WHERE {condition}", GREEDY),
    ):
        with pytest.raises(CersqlError) as raised:
            cersql.sql(spark, f"FROM words PATTERN {pattern} {clause or END} RETURN *")
        assert raised.value.condition == "NOT_SUPPORTED_YET"
        assert "speaks of two events" in str(raised.value)


def test_a_source_that_gives_other_values_each_time(spark: SparkSession) -> None:
    frame = local(spark, ROWS, SCHEMA).selectExpr("*", "rand() AS r")
    text = f"PATTERN ((A a ; B b) FILTER pow(a.r, b.r) > 0.5) AS m {END} {RETURNS}"
    with pytest.raises(SparkError) as raised:
        cersql.match(frame, text)
    assert raised.value.condition == "UNSTEADY_SOURCE"
    held = frame.cache()
    try:
        cersql.match(held, text).collect()
    finally:
        held.unpersist()


def test_explain_says_what_it_costs(spark: SparkSession) -> None:
    text = f"FROM words PATTERN A a ; B b WHERE {NEAR} {{}} {GREEDY} {{}} RETURN *"
    whole = cersql.explain(spark, text.format("", ""))
    assert f"Spark tabulates {NEAR} over all pairs of rows, since there is no key and no window of time" in whole
    assert f"events are compared by {NEAR} in the general engine" in whole
    near_ones = cersql.explain(spark, text.format("PARTITION BY k", "WITHIN 5 MINUTES"))
    assert "the pairs of rows of one key within the window, before runs look it up: a cost by the pairs" in near_ones
