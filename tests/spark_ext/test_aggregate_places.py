"""Every aggregate function at every place, in a table and on a stream: what is refused, and nothing else is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sparks

import cersql
from cersql.binding import own_aggregates
from cersql.binding.aggregates import TABLE
from runtime.errors import CersqlError

COLUMNS = "ts TIMESTAMP, type STRING, k INT, v INT, x DOUBLE, m DECIMAL(10,2), s STRING, d DATE, ok BOOLEAN"
HELD = {  # by runs: a call, and what makes a condition of it
    "COUNT(b)": "> 1", "COUNT(*)": "> 1", "COUNT(b.s)": "> 1", "SUM(b.v)": "> 3", "SUM(b.m)": "> 3.5",
    "PRODUCT(b.x)": "> 3",
    "MIN(b.v)": "> 3", "MAX(b.x)": "> 3", "MAX(b.d)": "> DATE'2024-01-01'", "AVG(b.v)": "> 3", "AVG(b.m)": "> 3",
    "RANGE(b.v)": "> 3", "STDDEV(b.x)": "> 3", "STDDEV_POP(b.v)": "> 3", "VARIANCE(b.m)": "> 3", "VAR_POP(b.x)": "> 3",
    "BOOL_AND(b.ok)": "", "BOOL_OR(b.v > 1)": "", "COUNT_IF(b.ok)": "> 1", "BIT_AND(b.v)": "= 1", "BIT_OR(b.v)": "= 1",
    "BIT_XOR(b.v)": "= 1", "MIN_BY(b.v, b.x)": "> 3", "MAX_BY(b.v, b.d)": "> 3", "MEDIAN(b.x)": "> 1",
    "COUNT(DISTINCT b.v)": "> 1", "SUM(DISTINCT b.v)": "> 1", "AVG(DISTINCT b.x)": "> 1", "SUM(b.v * b.k)": "> 1",
    "SUM(b.v) FILTER (WHERE b.ok)": "> 1", "TOTAL(b.v)": "> 1",
}  # fmt: skip
LISTED = {
    "MIN(b.s)": "> 'a'", "SIZE(COLLECT_LIST(b.v))": "> 1", "SIZE(COLLECT_SET(b.s))": "> 1", "LISTAGG(b.s)": "> 'a'",
    "PERCENTILE(b.x, 0.3)": "> 1", "CORR(b.v, b.x)": "> 0", "SUM(a.v * b.v)": "> 1", "SUM(b.v) + COUNT(b)": "> 4",
    "COUNT(DISTINCT b.s)": "> 1", "TOTAL(b.m)": "> 1",
}  # fmt: skip
W = "WITHIN 1 HOUR"
EVERYWHERE = {
    "RETURN": f"A a ; B+ b {W} RETURN {{f}} AS f",
    "WHERE": f"A a ; B+ b WHERE {{c}} {W} RETURN *",
    "HAVING": f"A a ; B+ b {W} RETURN a.v AS av HAVING {{c}}",
    "AGG": f"AGG(y : n = {{f}} ; A a ; B+ b) {W} RETURN y.n AS n",
    "FILTER on AGG": f"(AGG(y : n = {{f}} ; A a ; B+ b) FILTER {{y}}) ; C {W} RETURN *",
    "FILTER inside": f"((A a ; B+ b) FILTER {{c}}) ; C {W} RETURN *",
    "under AND": f"(((A a ; B+ b) FILTER {{c}}) AND (A a ; B+ b)) ; C {W} RETURN *",
    "AGG under AND": f"(AGG(y : n = {{f}} ; A a ; B+ b) AND AGG(y : n = {{f}} ; A a ; B+ b)) ; C {W} RETURN *",
    "beside NXT": f"A a ; B+ b WHERE {{c}} {W} SEMANTICS NXT RETURN *",
    "beside SKIP TILL NEXT MATCH": f"A a ; B+ b WHERE {{c}} {W} SEMANTICS SKIP TILL NEXT MATCH RETURN *",
    "GROUP BY": f"A a ; B+ b {W} RETURN k, {{f}} AS f GROUP BY k, WINDOW 2 HOURS",
    "SLIDE": f"A a ; B+ b {W} SLIDE 30 MINUTES RETURN window.start, {{f}} AS f",
}
BY_RUNS = {
    "inside NXT": f"C c ; NXT((A a ; B+ b) FILTER {{c}}) {W} RETURN *",
    "AGG filtered inside NXT": f"C c ; NXT(AGG(y : n = {{f}} ; A a ; B+ b) FILTER {{y}}) {W} RETURN *",
    "inside !": f"X x ; !((A a ; B+ b) FILTER {{c}}) ; C {W} RETURN *",
    "AGG filtered inside !": f"X x ; !(AGG(y : n = {{f}} ; A a ; B+ b) FILTER {{y}}) ; C {W} RETURN *",
    "UNLESS": f"((X x ; C z) UNLESS ((A a ; B+ b) FILTER {{c}})) {W} RETURN *",
}
DROPPING = {
    "CONSUME BY": f"A a ; B+ b WHERE {{c}} {W} CONSUME BY PARTITION RETURN *",
    "AFTER MATCH SKIP": f"A a ; B+ b WHERE {{c}} {W} AFTER MATCH SKIP PAST LAST ROW RETURN *",
}


@pytest.fixture(scope="module")
def session(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    own = sparks.taught(spark)
    folder: Path = tmp_path_factory.mktemp("live")
    own.readStream.schema(COLUMNS).parquet(str(folder)).withWatermark("ts", "1 minute").createOrReplaceTempView("live")
    sparks.view(own, "rows", [], COLUMNS)
    cersql.register_aggregate("TOTAL", lambda x: x, lambda a, b: a + b, lambda a: a, 0, "BIGINT")
    yield own
    own_aggregates.remove("TOTAL")


def refused(session: Any, source: str, body: str, calls: dict[str, str]) -> set[str]:
    """The calls that cannot stand there, each with an error that says what else to write."""
    found = set()
    for call, rest in calls.items():
        text = body.format(f=call, c=f"{call} {rest}", y=f"y.n {rest}")
        told = explained(session, f"FROM {source} PATTERN {text} PARTITION BY k ORDER BY ts")
        if told is not None:
            found.add(told or call)
    return found


def explained(session: Any, text: str) -> str | None:
    """None, or why it is refused: '' where that is not supported, which a place and a hint stand beside."""
    try:
        told = cersql.explain(session, text, "physical")
    except CersqlError as error:
        return "" if error.condition == "NOT_SUPPORTED_YET" and error.hint and error.span else str(error)
    return "" if any(line.startswith("stream: refused") for line in told.splitlines()) else None


@pytest.mark.breadth(1)
@pytest.mark.parametrize("place", EVERYWHERE)
def test_where_each_may_stand(session: Any, place: str) -> None:
    for source in ("rows", "live"):
        assert refused(session, source, EVERYWHERE[place], HELD | LISTED) == set(), source


@pytest.mark.breadth(1)
@pytest.mark.parametrize("place", BY_RUNS)
def test_where_runs_hold_it(session: Any, place: str) -> None:
    for source in ("rows", "live"):
        assert refused(session, source, BY_RUNS[place], HELD | LISTED) == set(LISTED), source


@pytest.mark.breadth(1)
@pytest.mark.parametrize("place", DROPPING)
def test_where_matches_drop_what_has_begun(session: Any, place: str) -> None:
    assert refused(session, "rows", DROPPING[place], HELD | LISTED) == set()
    assert refused(session, "live", DROPPING[place], HELD | LISTED) == set(LISTED)


def test_every_monoid_of_the_table_is_among_them() -> None:
    tried = {call.partition("(")[0] for call in HELD}
    monoids = {known.monoid for name, known in TABLE.items() if name in tried}
    assert {known.monoid for known in TABLE.values() if known.monoid} <= monoids | {"COUNT DISTINCT"}
