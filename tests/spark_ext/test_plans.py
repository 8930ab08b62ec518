"""cersql.plan chooses between the automaton and the relational plan; cersql.verify compares the two."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import sparks
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import cersql
import spark_ext.joining
import spark_ext.relational
from cersql.errors import CersqlError
from cersql.statements import verify
from planner.relational import cost
from spark_ext import costing

SCHEMA = "ts timestamp, type string, k string, v double, n bigint, tags map<string,int>, id int"
NAN, T0 = float("nan"), datetime(2026, 3, 29)
ROWS = [
    (T0.replace(second=second), type, k, v, n, {"t": i}, i)
    for i, (second, type, k, v, n) in enumerate(
        [
            (0, "A", "x", 1.0, 5), (1, "B", "x", -0.0, None), (1, "A", None, NAN, 7), (2, "B", None, NAN, 1),
            (2, "B", "x", 0.0, 2**62), (3, "C", "x", None, 2**62 - 1), (3, "C", None, 3.0, 3), (4, "B", "x", 9.5, 1),
            (9, "A", "x", 2.0, 4), (9, "B", "x", 2.0, 4), (9, "B", "x", 2.0, 4),
        ]
    )
]  # fmt: skip
HEAD = "FROM events PATTERN"


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    own = sparks.taught(spark)
    own.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    own.conf.set("spark.sql.shuffle.partitions", "2")
    sparks.view(own, "events", ROWS, SCHEMA)
    return own


def plain(df: DataFrame) -> list[str]:
    return sorted(map(repr, df.collect()))


QUERIES = [
    "A a ; B b PARTITION BY k ORDER BY ts, id RETURN k, a.v, b.v, b.n, match_start, match_end",
    "A a ; B b PARTITION BY v ORDER BY ts, id RETURN v, a.id, b.id",
    "A a ; B{1,3} b ORDER BY ts, id WITHIN 5 SECONDS RETURN a.id, COUNT(b), MIN(b.n), MAX(b.v), AVG(b.v), "
    "COUNT(b.n), b.id, FIRST(b).v, LAST(b.v)",
    "A a ; B{1,2} b ORDER BY ts, id WITHIN 1 SECOND RETURN SUM(b.n), SUM(b.v), COUNT(*)",
    "(A a OR C c) ; B b ORDER BY ts, id RETURN a.id, c.id, b.id, a.id IS NULL",
    "A a ALL (B b ; C c) ORDER BY ts, id WITHIN 3 SECONDS RETURN a.id, b.id, c.id, match_start, match_end",
    "(A x ALL ANY x) AS w ORDER BY ts, id WITHIN 1 SECOND RETURN x.id, COUNT(w), COUNT(*)",
    "A a ; B b WHERE b.v - a.v >= 0.5 OR b.n > a.n ORDER BY ts, id RETURN a.id, b.id",
    "A a ; B b WHERE levenshtein(a.k, b.k) < 2 AND b.ts - a.ts <= INTERVAL 5 SECONDS ORDER BY ts, id "
    "RETURN a.id, b.id",
    "A a ; B b WHERE COUNT(*) = 2 AND SUM(b.n) > 1 ORDER BY ts, id SEMANTICS LAST RETURN a.id, b.id",
    "A a ; B b ORDER BY ts, id WITHIN 5 SECONDS SEMANTICS MAX RETURN a.id, b.id HAVING b.id > 4",
    "A a ; B b ; !C WHERE a.k = b.k ORDER BY ts, id WITHIN 2 SECONDS RETURN a.id, b.id",
    "!C ; A a ; B b ORDER BY ts, id WITHIN 6 SECONDS RETURN a.id, b.id",
    "A a ; B{1,2} b PARTITION BY k ORDER BY ts, id RETURN a.id, COUNT(*), SUM(b.n) GROUP BY a.id "
    "HAVING COUNT(*) > 1",
    "A a ; B b PARTITION BY k ORDER BY ts, id AFTER MATCH SKIP TO NEXT ROW RETURN a.id, b.id",
    "A a ; B b ORDER BY ts, id WITHIN 3 EVENTS RETURN a.id, b.id",
    "A a ; B? x ; (C c OR B y) PARTITION BY k ORDER BY ts, id SEMANTICS SKIP TILL NEXT MATCH "
    "RETURN a.id, x.id, c.id, y.id",
    "A a : B b ORDER BY ts, v RETURN a.id, b.id, b.v",
    "A a ; B b WHERE a.v = b.v ORDER BY ts, id RETURN a.v, b.v",
    "PROJECT(b : A ; B b) ORDER BY ts, id WITHIN 5 SECONDS RETURN b.id, match_start",
]  # fmt: skip


def test_both_plans_give_the_same_rows(session: SparkSession) -> None:
    """Names, types and values: NULLs, NaN, -0.0, sums that are just not too large."""
    frames = {}
    for way in ("automaton", "relational"):
        with sparks.settings(session, cersql__plan=way):
            frames[way] = [session.sql(f"{HEAD} {query}") for query in QUERIES]
    assert not any("MapInArrow" in plan_of(df) for df in frames["relational"])
    found = sparks.together([*frames["automaton"], *frames["relational"]])
    for i, query in enumerate(QUERIES):
        one, other = frames["automaton"][i], frames["relational"][i]
        assert one.dtypes == other.dtypes, query
        have, want = (sorted(map(repr, rows)) for rows in (found[len(QUERIES) + i], found[i]))
        assert have == want, query
        assert want, f"{query} has a row"


@pytest.mark.parametrize("clause", ["SEMANTICS NXT", "SEMANTICS MAX", "AFTER MATCH SKIP TO NEXT ROW", ""])
def test_a_pattern_that_can_never_match(session: SparkSession, clause: str) -> None:
    """It has no branch: the two parts bind other variables."""
    found = cersql.verify(session, f"{HEAD} (B AS x) AND (A AS y) ORDER BY ts, id {clause} RETURN x.id, y.id")
    assert (found.rows, found.same) == (0, True)


def test_places_in_ranges(session: SparkSession) -> None:
    """Without a key rows are numbered in parallel where there are many; the rows are the same."""
    queries = ("A a : B b ORDER BY ts, id RETURN a.id, b.id", "A a ; B b ORDER BY ts, id RETURN a.id, b.id",
               "A a ; B b ORDER BY ts, id WITHIN 3 EVENTS RETURN a.id, b.id")  # fmt: skip
    with sparks.settings(session, cersql__plan="relational"):
        few = [session.sql(f"{HEAD} {query}") for query in queries]
        with sparks.patched(spark_ext.joining, "MANY_ROWS_BYTES", 1):
            many = [session.sql(f"{HEAD} {query}") for query in queries]
    assert ["approx_percentile" in plan_of(df) for df in many] == [True, False, True]
    found = [sorted(map(repr, rows)) for rows in sparks.together([*few, *many])]
    assert found[:3] == found[3:]


def plan_of(df: DataFrame) -> str:
    return str(df._jdf.queryExecution().optimizedPlan().toString())


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("A a ; B+ b ORDER BY ts, id RETURN a.id", "a loop without an end is no finite algebra"),
        ("A a ; B b ORDER BY ts, id CONSUME BY PARTITION RETURN a.id", "CONSUME BY PARTITION"),
        ("A a ; B b ORDER BY ts, id AFTER MATCH SKIP PAST LAST ROW RETURN a.id", "AFTER MATCH SKIP PAST LAST ROW"),
        ("A a ; B b ORDER BY ts, id WITHIN 5 SECONDS RETURN a.id WITH TIMEOUTS", "WITH TIMEOUTS"),
        ("AGG(y : m = MAX(b.v) ; B{2} b) ORDER BY ts, id RETURN y.m", "AGG"),
        ("A a ; !C ; B b ORDER BY ts SEMANTICS SKIP TILL NEXT MATCH RETURN a.id", "which events a run can take"),
        ("A a ; B b ORDER BY ts RETURN a.tags", "tags is map<string,int>"),
        ("A a ; B b WHERE rand() < a.v ORDER BY ts RETURN a.id", "another value the next time"),
        ("A{1,40} a ORDER BY ts RETURN a.id", "a join of more than 12 events"),
        ("(A OR B){1,6} ORDER BY ts RETURN *", "126 ways to match"),
    ],
)
def test_what_has_no_relational_plan(session: SparkSession, query: str, why: str) -> None:
    with sparks.settings(session, cersql__plan="relational"):
        with pytest.raises(PySparkException) as raised:
            session.sql(f"{HEAD} {query}")
        assert "[PLAN_REFUSED]" in str(raised.value)
        assert why in str(raised.value)
        assert "SET cersql.plan = auto" in str(raised.value)
    if "rand()" not in query and "map" not in why:
        assert why in cersql.explain(session, f"{HEAD} {query}", "relational")


def explained(session: SparkSession, query: str) -> list[str]:
    lines = cersql.explain(session, f"{HEAD} {query}").splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("plan: "))
    return lines[at:]


SLOW = "(A a ; B b) UNLESS ((C c ; B d) FILTER c.v < d.v) PARTITION BY k ORDER BY ts, id WITHIN 5 SECONDS RETURN a.id"


def test_explain_says_which_plan_and_why(session: SparkSession) -> None:
    fast = "A a ; B b ORDER BY ts RETURN a.id"
    assert (
        explained(session, fast)[0] == "plan: automaton, since the flat table reads each row once, a join several times"
    )
    with sparks.settings(session, cersql__plan="relational"):
        assert explained(session, fast) == ["plan: relational, since cersql.plan = relational"]
    with sparks.settings(session, cersql__plan="automaton"):
        assert explained(session, fast)[0] == "plan: automaton, since cersql.plan = automaton"
    assert explained(session, SLOW)[0] == "plan: automaton, since the source is small, and a join has several stages"


def test_auto_takes_joins_where_the_general_engine_would_run(session: SparkSession) -> None:
    with (
        sparks.patched(cost, "STAGE", 0.0),  # of a few rows joins cost less then
        sparks.patched(cost, "STEP", 1.0),
        sparks.patched(costing, "FEW_ROWS", 0),
    ):
        assert "the first rows of the source do not say" in explained(session, SLOW)[0]  # no row is looked at
        with sparks.settings(session, cersql__peekRows=100):
            why = explained(session, SLOW)[0]
            found = session.sql(f"{HEAD} {SLOW}")
            far = SLOW.replace("PARTITION BY k", "").replace("WITHIN 5 SECONDS", "")
            assert "without a key or a window" in explained(session, far)[0]
            many = SLOW.replace("(A a ; B b)", "(A a ; B{1,4} b)")
            assert "in 4 ways" in explained(session, many)[0]
            refused = SLOW.replace("(A a ; B b)", "(A a ; B+ b)")
            assert "a loop without an end" in explained(session, refused)[1]
            with sparks.patched(cost, "PAIR", 1e9):
                assert explained(session, SLOW)[0].startswith("plan: automaton, since by the first 11 rows")
    assert why.startswith("plan: relational, since by the first 11 rows the general engine takes")
    assert "MapInArrow" not in plan_of(found)
    with sparks.settings(session, cersql__plan="automaton"):
        wanted = plain(session.sql(f"{HEAD} {SLOW}"))
    assert plain(found) == wanted


def test_rows_of_parquet_files_are_counted_by_their_footers(session: SparkSession, tmp_path: Path) -> None:
    """Of other sources the size says how many there can be."""
    session.range(3000).selectExpr(
        "timestamp_seconds(id DIV 4) AS ts", "element_at(array('A', 'B', 'C', 'B'), int(id % 4) + 1) AS type",
        "string(id % 10) AS k", "double(id) AS v", "id AS n", "int(id) AS id",
    ).repartition(3).write.parquet(str(tmp_path / "many"))  # fmt: skip
    session.read.parquet(str(tmp_path / "many")).createOrReplaceTempView("many")
    with sparks.settings(session, cersql__peekRows=1000):
        told = cersql.explain(session, f"FROM many PATTERN {SLOW}")
        assert "since by the first 1,000 rows the general engine takes" in told
        kept = cersql.explain(session, f"FROM (SELECT * FROM many WHERE id % 2 = 0) AS m PATTERN {SLOW}")
        assert "since by the first" in kept, "few files: a filter is no obstacle"


def test_first_rows_of_several_sources_lie_in_one_stretch_of_time() -> None:
    """Else a source with few rows an hour would seem as frequent as one with many."""
    often, seldom = [("x", t) for t in range(5)], [("y", t) for t in (1, 3, 90)]
    assert costing.together([often, seldom]) == [("x", 0), ("x", 1), ("y", 1), ("x", 2), ("x", 3), ("y", 3), ("x", 4)]
    assert costing.together([often, []]) == often
    assert costing.together([[("x", 3), ("x", 1)], seldom]) == [("x", 3), ("x", 1), *seldom], "they are in no order"


def test_the_setting_is_checked(session: SparkSession) -> None:
    with sparks.settings(session, cersql__plan="fastest"), pytest.raises(PySparkException, match="SETTING"):
        session.sql(f"{HEAD} A ORDER BY ts RETURN *")


def test_a_null_time_is_an_error_here_too(session: SparkSession) -> None:
    sparks.view(session, "holes", [(None, "B", 1), (T0, "A", 2)], "ts timestamp, type string, id int")
    with sparks.settings(session, cersql__plan="relational"), pytest.raises(PySparkException, match="NULL_TIME"):
        session.sql("FROM holes PATTERN A a ORDER BY ts RETURN a.id").collect()


def test_limit_counts_and_views(session: SparkSession) -> None:
    text = f"{HEAD} A a ; B b PARTITION BY k ORDER BY ts, id RETURN k, a.id AS a, b.id AS b"
    with sparks.settings(session, cersql__plan="relational"):
        assert len(session.sql(f"{text} LIMIT 2").collect()) == 2
        number = session.sql(text).count()
        assert session.sql(f"SELECT count(*) FROM ({text})").first()[0] == number  # type: ignore[index]
        session.sql(f"CREATE OR REPLACE PATTERN VIEW joined AS {text}")
        counts = "SELECT k, count(*) FROM joined GROUP BY k"
        found = sorted(session.sql(counts).collect(), key=repr)
        assert "MapInArrow" not in plan_of(session.sql(counts))
    assert found == sorted(session.sql(f"SELECT k, count(*) FROM ({text}) GROUP BY k").collect(), key=repr)


def test_a_task_lists_no_more_matches_than_it_may(session: SparkSession) -> None:
    """As tests/spark_ext/test_limits_spark.py has it of the automaton."""
    text = f"{HEAD} ANY a ; ANY b ORDER BY ts, id RETURN a.id AS x, b.id AS y"  # 55 matches, in one task
    with sparks.settings(session, cersql__plan="relational", cersql__maxMatches=54):
        with pytest.raises(PySparkException) as raised:
            session.sql(text).collect()
        assert "[MATCH_LIMIT] A task has listed 55 matches, the limit is 54." in str(raised.value)
        assert "SET cersql.maxMatches allows more" in str(raised.value)
        assert session.sql(f"SELECT count(*) FROM ({text})").collect() == [(55,)]
        assert len(session.sql(f"{text} LIMIT 20").collect()) == 20
        assert len(session.sql(f"{text} SEMANTICS NXT").collect()) == 10  # of each end one
        grouped = f"{HEAD} ANY a ; ANY b ORDER BY ts, id RETURN a.type AS t, COUNT(*) AS n GROUP BY a.type"
        assert sum(row.n for row in session.sql(grouped).collect()) == 55  # none is listed
        listed = grouped.replace("COUNT(*)", "COLLECT_LIST(b.id)")
        with pytest.raises(PySparkException, match="MATCH_LIMIT"):
            session.sql(listed).collect()
    with sparks.settings(session, cersql__plan="relational", cersql__maxMatches=55):
        assert len(session.sql(text).collect()) == 55
    wrong = sparks.settings(session, cersql__plan="relational", cersql__maxMatches="many")
    with wrong, pytest.raises(PySparkException, match="a whole number"):
        session.sql(text)


def test_rows_of_a_relational_view_can_be_joined_again(session: SparkSession) -> None:
    """The numbers by which places and matches are counted do not make it a source with other rows each time."""
    inner = "FROM events PATTERN A a ; B b ORDER BY ts, id RETURN match_end AS ts, b.type AS type, b.id AS id"
    outer = "FROM found PATTERN B x ; B y WHERE levenshtein(x.type, y.type) < x.id ORDER BY ts, id RETURN x.id, y.id"
    found = {}
    for way in ("automaton", "relational"):
        with sparks.settings(session, cersql__plan=way):
            session.sql(f"CREATE OR REPLACE TEMPORARY PATTERN VIEW found AS {inner}")
            found[way] = plain(session.sql(outer))
    assert found["relational"] == found["automaton"] != []
    with sparks.settings(session, cersql__plan="relational"):
        session.sql("CREATE OR REPLACE TEMPORARY VIEW found AS SELECT * FROM events WHERE rand() < 2")
        with pytest.raises(PySparkException, match="gives other values each time"):
            session.sql("FROM found PATTERN A a ; B b ORDER BY ts, id RETURN a.id")


def test_a_source_of_which_a_limit_takes_some_rows_is_read_once(session: SparkSession) -> None:
    some = session.sql("SELECT * FROM events LIMIT 7")
    some.createOrReplaceTempView("some")
    text = "FROM some PATTERN A a ; B b ORDER BY ts, id RETURN a.id, b.id"
    with sparks.settings(session, cersql__plan="relational"):
        with pytest.raises(PySparkException, match="a LIMIT of the source may take other rows each time"):
            session.sql(text)
        some.cache()
        try:
            assert cersql.verify(session, text).same
        finally:
            some.unpersist()


# ---------------------------------------------------------------- cersql.verify


def test_verify(session: SparkSession) -> None:
    found = cersql.verify(
        session, f"{HEAD} A a ; B b ORDER BY ts, id WITHIN 5 SECONDS RETURN a.v, b.v, b.ts, match_end LIMIT 1"
    )
    assert found.same
    assert str(found) == f"{found.rows} rows: both plans give the same"
    assert found.rows > 5
    with pytest.raises(CersqlError, match="PLAN_REFUSED"):
        cersql.verify(session, f"{HEAD} A+ ORDER BY ts RETURN *")


def test_verify_says_what_differs(session: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    own = spark_ext.relational.result

    def wrong(joins: Any, most: int | None) -> DataFrame:
        made = own(joins, most)
        return made.where("a <> 0").unionAll(made.limit(0).sparkSession.sql("SELECT 7 AS a, 8 AS b"))

    monkeypatch.setattr(spark_ext.relational, "result", wrong)
    found = cersql.verify(session, f"{HEAD} A a ; B b ORDER BY ts, id WITHIN 2 SECONDS RETURN a.id AS a, b.id AS b")
    assert not found.same
    assert (found.n_missing, found.n_extra) == (3, 1)
    assert found.missing == ['{"a":0,"b":1}', '{"a":0,"b":3}', '{"a":0,"b":4}']
    assert str(found).splitlines()[1:] == [*(f"  missing: {row}" for row in found.missing), '  too many: {"a":7,"b":8}']


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("RETURN a.id, rand() AS chance", "rand("),
        ("RETURN uuid()", "uuid("),
        ("RETURN a.id AS x, rand() AS chance HAVING chance > 0.5", "rand("),
    ],
)
def test_rows_that_are_others_each_time_cannot_be_compared(session: SparkSession, query: str, shown: str) -> None:
    text = f"{HEAD} A a ; B b ORDER BY ts, id {query}"
    with pytest.raises(CersqlError, match="UNSTEADY_RESULT") as raised:
        cersql.verify(session, text)
    assert raised.value.parameters["shown"].startswith(shown)
    now = text[: text.index(" RETURN")] + " RETURN a.id, current_timestamp()"
    assert cersql.verify(session, now).same, "one time for all of a query"


def test_verify_of_an_aggregate_of_the_users_own(session: SparkSession) -> None:
    cersql.register_aggregate("SUMMED", lambda v: v, lambda a, b: a + b, lambda s: s, 0.0, "DOUBLE")
    text = f"{HEAD} A a ; B{{1,2}} b ORDER BY ts, id WITHIN 2 SECONDS RETURN a.id, SUMMED(b.v) AS s"
    assert cersql.verify(session, text).same


def test_streams_have_an_automaton_only(session: SparkSession) -> None:
    session.readStream.format("rate").load().createOrReplaceTempView("ticks")
    text = "FROM ticks DEFINE A AS value > 1 PATTERN A a ORDER BY timestamp WATERMARK 1 SECOND RETURN a.value"
    with pytest.raises(CersqlError, match="a stream, which has an automaton only"):
        cersql.verify(session, text)
    assert verify.SHOWN > 0
    line = "plan: automaton, since its source is a stream, which has an automaton only"
    assert line not in cersql.explain(session, text)
    with sparks.settings(session, cersql__plan="relational"):
        assert session.sql(text).isStreaming
        assert line in cersql.explain(session, text).splitlines()
