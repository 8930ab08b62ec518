"""AGG and conditions on whole parts, from texts to rows: at random, held to the oracle; the paper's queries."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import aggregating
import oracle
import pytest
import sparks

import cersql
from planner.acel import Measured
from planner.query import Query
from planner.second_pass import counting
from runtime.errors import CersqlError

ROUNDS = int(os.environ.get("CERSQL_DIFFERENTIAL", "2"))
QUERIES = 12  # a round is one Spark job


def held_to_the_oracle(
    spark: Any, chance: random.Random, draw: Callable[[random.Random], tuple[str, list[str]]],
    wanted: Callable[[Query], bool],
) -> None:  # fmt: skip
    session = sparks.taught(spark)
    rows = aggregating.draw_rows(chance, 9)
    sparks.view(session, "events", [tuple(row.values()) for row in rows], aggregating.SCHEMA)
    trials: list[tuple[str, Query, Counter[Any]]] = []
    while len(trials) < QUERIES:
        text, asked = draw(chance)
        try:
            query = aggregating.bound(text)
            want = aggregating.expected(query, asked, rows)
        except (CersqlError, oracle.TooLarge):
            continue
        if wanted(query) and (want or chance.random() < 0.2):
            trials.append((text, query, want))
    frames = [cersql.sql(session, text) for text, _, _ in trials]
    for (text, query, want), found in zip(trials, sparks.together(frames), strict=True):
        have = Counter(aggregating.shown(query, row, rows) for row in found)
        difference = f"missing {list((want - have).items())[:3]}\nmore {list((have - want).items())[:3]}"
        assert have == want, f"{text}\n{difference}\n" + "\n".join(map(str, rows))


@pytest.mark.exhaustive
@pytest.mark.breadth(1)
@pytest.mark.parametrize("seed", range(ROUNDS))
def test_random_patterns(spark: Any, seed: int) -> None:
    held_to_the_oracle(spark, random.Random(f"created {seed}"), aggregating.draw_text, aggregating.tells_something)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(-(-ROUNDS // 2)))
def test_random_counts(spark: Any, seed: int) -> None:
    def counts(query: Query) -> bool:
        return counting(query).formula.contains((Measured,))

    held_to_the_oracle(spark, random.Random(f"counts {seed}"), aggregating.draw_count, counts)


def test_numbers_of_events_need_no_listing(spark: Any) -> None:
    """Of 300 As there are 2^300 - 1 matches, of which WHERE leaves few."""
    session = sparks.taught(spark)
    session.range(300).selectExpr("id AS ts", "'A' AS type").createOrReplaceTempView("many")
    for condition, n in (("COUNT(a) <= 2", 300 + 300 * 299 // 2), ("COUNT(*) > 298", 300 + 1), ("COUNT(a) = 300", 1)):
        text = f"SELECT count(*) AS n FROM (FROM many PATTERN A+ a WHERE {condition} ORDER BY ts RETURN a.ts AS ts)"
        assert [row.n for row in session.sql(text).collect()] == [n]


@pytest.mark.breadth(8)
@pytest.mark.parametrize("around", ["NXT({}) ; C c", "LAST({}) ; C c", "B x ; !({}) ; C c", "(B x ; C c) UNLESS ({})"])
@pytest.mark.parametrize(
    ("condition", "same"),
    [("y.s > 2", "SUM(a.v) > 2"), ("y[s > 4 OR n = 3]", "(SUM(a.v) > 4 OR COUNT(a) = 3)"),
     ("y.m >= y.n", "MAX(a.v) >= COUNT(a)"), ("NOT y.n < 2", "NOT COUNT(a) < 2")],
)  # fmt: skip
def test_attributes_where_nothing_is_listed(spark: Any, around: str, condition: str, same: str) -> None:
    """A condition on each created event is one on the part that creates it."""
    own = sparks.taught(spark)
    events = "A2 B0 A1 A3 B1 A0 C0 B2 A2 A1 C1"
    sparks.view(own, "made", [(i, e[0], int(e[1])) for i, e in enumerate(events.split())], "ts INT, type STRING, v INT")
    made = f"(AGG(y : s = SUM(a.v), n = COUNT(a), m = MAX(a.v) ; A+ a))+ FILTER {condition}"
    found = [
        set(map(str, cersql.sql(own, f"FROM made PATTERN {around.format(part)} ORDER BY ts WITHIN 6 RETURN "
                                        "match_start AS s, match_end AS e, c.ts AS c").collect()))
        for part in (made, f"((A+ a) FILTER {same})+")
    ]  # fmt: skip
    assert found[0] == found[1]
    assert found[0]


@pytest.mark.exhaustive
def test_both_sides_of_and_create_the_same(spark: Any) -> None:
    """Figure 1: φ AND ψ has the C that are in both, so that C(y) is the same, too, and holds each event once."""
    own = sparks.taught(spark)
    sparks.view(own, "both", [(1, "A", 2), (2, "A", 0), (3, "B", 5)], "ts INT, type STRING, v INT")

    def found(pattern: str) -> list[Any]:
        rows = cersql.sql(own, f"FROM both PATTERN {pattern} ORDER BY ts RETURN a.ts AS a, y, COUNT(*) AS n").collect()
        times = [row.a if isinstance(row.a, list) else [row.a] for row in rows]
        return sorted(((tuple(ts), tuple(row.y), row.n) for ts, row in zip(times, rows, strict=True)), key=str)

    many, least = "SIZE(COLLECT_LIST(a.v)) > 1", "AGG(y : s = MIN(a.v) ; A+ a ; B b)"
    every = found(least)
    assert every == [((1, 2), (3, 0), 4), ((1,), (3, 2), 3), ((2,), (3, 0), 3)]
    assert found(f"{least} AND {least}") == every
    assert found(f"{least} AND AGG(y : s = MAX(a.v) ; A+ a ; B b)") == every[1:]
    assert found(f"{least} AND AGG(y : s = SUM(a.v) - 2 ; A+ a ; B b)") == [((1, 2), (3, 0), 4)]
    assert found(f"{least} AND AGG(y : s = MIN(a.v) ; A a ; B b)") == every[1:]
    assert found(f"AGG(y : s = MIN(a.v) ; (A+ a ; B b) AND ((A+ a ; B b) FILTER {many}))") == every[:1]
    assert cersql.sql(own, f"FROM both PATTERN {least} AND (A+ a ; B b) ORDER BY ts RETURN *").count() == 0


# ---------------------------------------------------------------- [ACEL]

STOCKS = [
    (0, "SELL", "MSFT", 101), (1, "SELL", "MSFT", 102), (2, "SELL", "INTL", 80), (3, "BUY", "INTL", 80),
    (4, "SELL", "AMZN", 1900), (5, "SELL", "INTL", 81), (6, "BUY", "AMZN", 1920), (7, "BUY", "MSFT", 101),
    (8, "BUY", "INTL", 79), (9, "SELL", "INTL", 80),
]  # fmt: skip


@pytest.fixture(scope="module")
def session(spark: Any) -> Any:
    own = sparks.taught(spark)
    sparks.view(own, "stocks", STOCKS, "ts BIGINT, type STRING, name STRING, price BIGINT")
    return own


def rows(session: Any, text: str) -> list[Any]:
    return sorted(cersql.sql(session, text).collect(), key=str)


def test_example_6(session: Any) -> None:
    """The maximum of Intel's prices, with INTL as the stream of Example 1 spells it."""
    text = """
        FROM stocks PATTERN AGG(M : MAX = MAX(intel.price) ;
            (SELL AS msft ; (SELL AS intel)+ ; SELL AS amzn)
            FILTER msft[name = 'MSFT'] AND msft[price > 100] AND intel[name = 'INTL'] AND amzn[name = 'AMZN']
                AND amzn[price < 2000])
        ORDER BY ts RETURN msft.ts AS first, M"""
    assert [(row.first, tuple(row.M)) for row in rows(session, text)] == [(0, (4, 80)), (1, (4, 80))]


def test_example_7(session: Any) -> None:
    """The length of a trend, with bounds that the stream of Example 1 reaches, as a variable Q: M would be m here."""
    text = """
        FROM stocks PATTERN (AGG(Q : QNT = COUNT(m.price) ;
            ((BUY OR SELL) AS l : (BUY OR SELL):+ AS m : (BUY OR SELL) AS h)
            FILTER l[price < 1000] AND m[price >= 50] AND m[price <= 2000] AND h[price > 1000])) FILTER Q[QNT > {}]
        ORDER BY ts RETURN Q.QNT AS n, Q.ts AS ts"""
    assert [(row.n, row.ts) for row in rows(session, text.format(4))] == [(5, 6)]
    assert [(row.n, row.ts) for row in rows(session, text.format(3))] == [(4, 6), (5, 6)]
    assert rows(session, text.format(5)) == []


def test_phi_2_counts_equal_sums_of_different_matches(session: Any) -> None:
    """Section 5: of B A[3] A[5] B A[2] A[4] A[2] the inner sums are 8 and 8, and the outer one is 16."""
    values = [("B", 0), ("A", 3), ("A", 5), ("B", 0), ("A", 2), ("A", 4), ("A", 2)]
    sparks.view(session, "s2", [(i, *v) for i, v in enumerate(values, 1)], "ts BIGINT, type STRING, value BIGINT")
    text = """
        FROM s2 PATTERN AGG(Y : b = SUM(X.a) ; (AGG(X : a = SUM(A.value) ; B : A:+)):+)
        ORDER BY ts RETURN X, Y.b AS b, match_start"""
    found = [([tuple(x) for x in row.X], row.b) for row in rows(session, text) if row.match_start == 1]
    assert ([(3, 8), (7, 8)], 16) in found
    assert len(found) == 5  # ends at 2, 3, 5, 6 and 7


def test_equality_by_aggregation_and_filter(session: Any) -> None:
    """Section 5, "Expressive power": events of two types correlated by sums."""
    text = """
        FROM stocks PATTERN PROJECT(X, Y : (AGG(Z : b1 = SUM(X.price), b2 = SUM(Y.price) ; SELL AS X ; BUY AS Y))
            FILTER Z[b1 = b2]) ORDER BY ts RETURN X.ts AS x, Y.ts AS y"""
    assert [(row.x, row.y) for row in rows(session, text)] == [(0, 7), (2, 3)]


def test_appendix_13(session: Any) -> None:
    """Esper's totals: pairs of orders of one name and customer, the sum over all of them above 100."""
    orders = [(0, "ServiceOrder", "x", 1, 60), (1, "ProductOrder", "x", 1, 30), (2, "ServiceOrder", "x", 2, 99),
              (3, "ServiceOrder", "x", 1, 10), (4, "ProductOrder", "x", 1, 20)]  # fmt: skip
    sparks.view(session, "orders", orders, "ts BIGINT, type STRING, name STRING, custId INT, price INT")
    text = """
        FROM orders PATTERN (AGG(Y : e = SUM(X.price) ; ((ServiceOrder AS a ; ProductOrder AS b)+ AS X)
            FILTER X[name] AND X[custId])) FILTER Y[e > 100] ORDER BY ts RETURN Y.e AS e, X.ts AS ts"""
    assert [(row.e, row.ts) for row in rows(session, text)] == [(120, [0, 1, 3, 4])]


def test_appendix_14(session: Any) -> None:
    """HAMLET's q3."""
    trip = [(0, "Request", 1, 7, None), (1, "Travel", 1, 7, 5), (2, "Travel", 1, 8, 9), (3, "Travel", 1, 7, 6),
            (4, "Cancel", 1, 7, None)]  # fmt: skip
    sparks.view(session, "trips", trip, "ts BIGINT, type STRING, driver INT, rider INT, duration INT")
    text = """
        FROM trips PATTERN AGG(Y : e = SUM(T.duration), f = COUNT(C.driver) ;
            ((Request R ; Travel+ T ; Cancel C) AS X)+) WHERE X[driver] AND X[rider]
        ORDER BY ts RETURN Y.e AS e, Y.f AS f"""
    assert sorted((row.e, row.f) for row in rows(session, text)) == [(5, 1), (6, 1), (11, 1)]


def test_appendix_15(session: Any) -> None:
    """COGRA's q1."""
    rates = [(0, 1, 60, "passive"), (1, 1, 62, "passive"), (2, 1, 61, "passive"), (3, 1, 70, "active")]
    sparks.view(session, "hearts", [(ts, "Measurement", *r) for ts, *r in rates],
                "ts BIGINT, type STRING, patient INT, rate INT, activity STRING")  # fmt: skip
    text = """
        FROM hearts PATTERN AGG(Y : e = MIN(M.rate), f = MAX(M.rate) ; ((Measurement AS M) ⊕
            FILTER M[patient] AND M[increasing(rate)] AND M.activity = 'passive'))
        ORDER BY ts RETURN Y.e AS e, Y.f AS f"""
    assert [(row.e, row.f) for row in rows(session, text)] == [(60, 60), (60, 62), (61, 61), (62, 62)]
