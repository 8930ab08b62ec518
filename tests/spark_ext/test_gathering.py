"""UDFs and subqueries about the events of a match, and what is refused since it would not be one row a match."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
import sparks
from pyspark.sql import SparkSession
from pyspark.sql.functions import pandas_udf
from queries import check_place

import cersql
from runtime.errors import CersqlError, InternalError
from spark_ext.errors import ExpressionError
from spark_ext.worker import PLACE_COLUMN, gathered_rows

ROWS = [(1, "A", 1), (2, "B", 2), (3, "B", 5), (4, "B", None), (5, "A", 3), (6, "C", 4)]


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    found = sparks.taught(spark)
    sparks.view(found, "t", ROWS, "ts INT, type STRING, v INT")
    found.udf.register("far", lambda x, y: None if x is None or y is None else abs(x - y) > 2, "boolean")
    found.udf.register("plus", lambda x: None if x is None else x + 1, "int")

    @pandas_udf("int")  # type: ignore[call-overload,misc,untyped-decorator]
    def double(values: pd.Series) -> pd.Series:
        return values * 2

    found.udf.register("double_of", double)

    @pandas_udf("double")  # type: ignore[call-overload,misc,untyped-decorator]
    def total(values: pd.Series) -> float:
        return float(values.sum())

    found.udf.register("total_of", total)
    found.sql("CREATE TEMPORARY FUNCTION shifted(x INT, y INT) RETURNS INT RETURN x * 2 + y")
    return found


SINGLE, LOOP, NUMBERS = (
    "FROM t PATTERN A a ; B b ",
    "FROM t PATTERN A a ; B+ b ",
    "ORDER BY ts RETURN a.ts AS a, b.ts AS b",
)


@pytest.mark.breadth(2)
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (SINGLE + "WHERE far(a.v, b.v) " + NUMBERS, [(1, 3)]),
        (SINGLE + "WHERE NOT far(a.v, b.v) " + NUMBERS, [(1, 2)]),
        (SINGLE + "WHERE shifted(a.v, b.v) > 5 " + NUMBERS, [(1, 3)]),
        (SINGLE + "WHERE shifted(a.v, b.v) > (SELECT max(v) FROM t) " + NUMBERS, [(1, 3)]),
        # in a loop each event is asked; where it is not TRUE (NULL, too) the match is none
        (LOOP + "WHERE far(a.v, b.v) " + NUMBERS, [(1, [3])]),
        (LOOP + "WHERE NOT far(a.v, b.v) " + NUMBERS, [(1, [2])]),
        (LOOP + "WHERE far(a.v, b.v) OR COUNT(b) = 3 " + NUMBERS, [(1, [2, 3, 4]), (1, [3])]),
        (LOOP + "WHERE far(a.v, b.v) AND shifted(a.v, b.v) = 7 " + NUMBERS, [(1, [3])]),
        (LOOP + "WHERE shifted(a.v, b.v) BETWEEN 5 AND 9 " + NUMBERS, [(1, [3])]),
        (LOOP + "WHERE b.v > (SELECT min(v) + 1 FROM t) OR COUNT(b) = 3 " + NUMBERS, [(1, [2, 3, 4]), (1, [3])]),
        (LOOP + "WHERE MAX(plus(b.v)) > AVG(b.v) + 2 " + NUMBERS, [(1, [2, 3]), (1, [2, 3, 4])]),
        (LOOP + "WHERE far(a.v, b.v) ORDER BY ts SEMANTICS NXT RETURN a.ts, b.ts", [(1, [3])]),
        # a variable without an event holds
        ("FROM t PATTERN (A a OR C c) WHERE far(a.v, c.v) ORDER BY ts RETURN a.ts, c.ts",
         [(1, None), (5, None), (None, 6)]),
        ("FROM t PATTERN A a ; C? c ; B{2} b WHERE far(c.v, b.v) ORDER BY ts RETURN a.ts, b.ts",
         [(1, [2, 3]), (1, [2, 4]), (1, [3, 4])]),
        (LOOP + "ORDER BY ts RETURN MAX(plus(b.v)), SUM(double_of(b.v)), SUM(shifted(a.v, b.v)), FIRST(plus(b.v)), "
         "COUNT(b) HAVING SUM(double_of(b.v)) > 10", [(6, 14, 11, 3, 2), (6, 14, 11, 3, 3)]),
        (LOOP + "ORDER BY ts RETURN SUM(IF(b.v > (SELECT min(v) + 1 FROM t), b.v, 0)) AS s, b.ts HAVING COUNT(b) = 3",
         [(5, [2, 3, 4])]),
        (LOOP + "ORDER BY ts RETURN MAX_BY(b.ts, plus(b.v)), SUM(b.v) FILTER (WHERE far(a.v, b.v)), plus(a.v) "
         "HAVING COUNT(b) = 3", [(3, 5, 2)]),
        ("FROM t PATTERN A a ; C c ; B* b ORDER BY ts RETURN a.ts, b.ts, MAX(plus(b.v)), COUNT(plus(b.v))",
         [(1, [], None, 0), (5, [], None, 0)]),
        ("FROM t PATTERN C c ; A a ; B+ b ORDER BY ts RETURN MAX(plus(b.v))", []),
    ],
)  # fmt: skip
def test_rows(session: SparkSession, text: str, expected: list[Any]) -> None:
    assert sorted(map(tuple, session.sql(text).collect()), key=repr) == sorted(expected, key=repr)


def test_of_many_matches(session: SparkSession) -> None:
    """As explode and groupBy make it, over batches that cut matches in two."""
    session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "7")
    try:
        text = (
            "FROM (SELECT id AS ts, CAST(id AS INT) AS v FROM range(9)) AS t PATTERN t+ b ORDER BY ts RETURN b.v AS v"
        )
        found = session.sql(text + ", SUM(plus(b.v)) AS s")
        wrong = found.where("s <> aggregate(v, 0L, (s, x) -> s + x + 1)").count()
        assert (found.count(), wrong) == (511, 0)
    finally:
        session.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")


@pytest.mark.exhaustive
def test_on_a_stream(session: SparkSession) -> None:
    timed = session.sql("SELECT timestamp_seconds(ts) AS ts, type, v FROM t")
    text = """PATTERN A a ; B+ b WHERE far(a.v, b.v) OR COUNT(b) > 1 ORDER BY ts WITHIN 10 SECONDS
    RETURN a.v, b.v, MAX(plus(b.v)) AS m, MAX_BY(b.v, b.ts) AS x, LISTAGG(b.v, ',') AS l, COUNT(b) AS n HAVING n < 3"""
    replayed = cersql.replay(session, timed, text, batches=2)
    assert replayed.same, str(replayed)
    assert replayed.matches > 0


@pytest.mark.parametrize(
    ("marked", "condition", "fragments"),
    [
        (LOOP + "ORDER BY ts RETURN a.v, ‸total_of(a.v)", "ONE_ROW", ("aggregate of your own", "Put a SELECT around")),
        (LOOP + "ORDER BY ts RETURN ‸1 + total_of(a.v)", "ONE_ROW", ("Put a SELECT around",)),
        (LOOP + "ORDER BY ts RETURN ‸window(timestamp_seconds(a.ts), '1 hour')", "ONE_ROW", ()),
        (LOOP + "ORDER BY ts RETURN a.v, ‸system.builtin.explode(b.v)", "ONE_ROW", ()),
        (LOOP + "ORDER BY ts RETURN total_of(a.v) AS s, a.v HAVING a.v > 1", "ONE_ROW", ()),
        (LOOP + "ORDER BY ts RETURN ‸total_of(a.v) AS s HAVING s > 1", "ONE_ROW", ()),
        (LOOP + "ORDER BY ts RETURN a.v HAVING ‸total_of(a.v) > 1", "ONE_ROW", ()),
        (LOOP + "ORDER BY ts RETURN MAX(IF(b.v ‸IN (SELECT v FROM t), b.v, 0))", "NOT_SUPPORTED_YET", ("IN (SELECT",)),
        # Spark's own objections, at their places
        (LOOP + "ORDER BY ts RETURN 1 + ‸SUM(b.type = 'x')", "INVALID_EXPRESSION", ("BOOLEAN",)),
        (LOOP + "ORDER BY ts RETURN ‸PERCENTILE(b.v, 2)", "INVALID_EXPRESSION", ()),
        (LOOP + "ORDER BY ts RETURN ‸PERCENTILE(b.v, a.v)", "INVALID_EXPRESSION", ()),
        (LOOP + "ORDER BY ts RETURN MAX(plus(b.v) + ‸nosuch(b.v))", "INVALID_EXPRESSION", ("nosuch",)),
        (LOOP + "ORDER BY ts RETURN SUM(b.v) FILTER (WHERE b.v > ‸zzz)", "UNRESOLVED_NAME", ("zzz",)),
        (
            LOOP + "ORDER BY ts RETURN LISTAGG(b.v) WITHIN GROUP (ORDER BY ‸nosuch(b.v))",
            "INVALID_EXPRESSION",
            ("nosuch",),
        ),
        (LOOP + "ORDER BY ts RETURN ‸MIN_BY(b.v)", "INVALID_EXPRESSION", ()),
    ],
)
def test_errors(session: SparkSession, marked: str, condition: str, fragments: tuple[str, ...]) -> None:
    text = marked.replace("‸", "")
    with pytest.raises(CersqlError) as raised:
        cersql.sql(session, text)
    if "‸" in marked:
        check_place(raised.value, text, marked.index("‸"), condition, *fragments)
    assert raised.value.condition == condition
    assert isinstance(raised.value, ExpressionError) or condition == "NOT_SUPPORTED_YET"
    assert "lambda" not in str(raised.value).lower()


def test_names_that_return_gives(session: SparkSession) -> None:
    def rows(text: str) -> list[Any]:
        return sorted(map(tuple, session.sql(text).collect()), key=repr)

    assert rows(LOOP + "ORDER BY ts RETURN COUNT(b) AS n HAVING n > 1") == [(2,), (2,), (2,), (3,)]
    assert rows(LOOP + "ORDER BY ts RETURN COUNT(b) AS N, a.v HAVING `n` = 3 AND v = 1") == [(3, 1)]
    assert rows(LOOP + "ORDER BY ts RETURN struct(COUNT(b) AS n, a.v) AS s HAVING s.n = 3") == [((3, 1),)]
    assert rows(LOOP + "ORDER BY ts RETURN COUNT(b) AS n, n + 1 AS more HAVING n > 2") == [(3, 4)]
    # what is random is the same in both
    assert all(row[0] < 0.5 for row in rows(LOOP + "ORDER BY ts RETURN rand() AS r HAVING r < 0.5"))
    # the partition column comes first, a column that may differ between events does not
    assert rows(
        "FROM t PATTERN B+ b PARTITION BY type ORDER BY ts RETURN COUNT(b) AS type HAVING type = 'B' AND COUNT(b) = 3"
    ) == [(3,)]
    assert rows(LOOP + "ORDER BY ts RETURN SUM(b.v) AS v, COUNT(b) AS n HAVING v = 7 AND n = 2") == [(7, 2)]
    assert rows("FROM t PATTERN B b ORDER BY ts RETURN b HAVING b IS NOT NULL AND b.v = 5") == [((3, "B", 5),)]
    assert rows("FROM t PATTERN A a ; B b ORDER BY ts WITHIN 1 RETURN a.ts AS x, b.ts AS y WITH TIMEOUTS "
                "HAVING x > 1 OR match_status = 'match'") == [
        (1, 2, "match", "b"), (5, None, "timeout", "a")]  # fmt: skip


def test_rows_of_a_match_stay_together() -> None:
    def batch(places: list[int | None], names: list[str | None]) -> pa.RecordBatch:
        values = pa.array(range(len(places)), pa.int64())
        columns = {PLACE_COLUMN: pa.array(places, pa.int32()), "name": pa.array(names, pa.string()), "v": values}
        return pa.RecordBatch.from_pydict(columns)

    cut = [batch([0, 1], ["x", None]), batch([2, None, 0], [None, "y", "z"]), batch([], []), batch([1], [None])]
    found = pa.Table.from_batches(gathered_rows(1, cut)).to_pydict()
    assert found == {"name": ["x", "y", "z"], "v": [[0, 1, 0], [], [2, 0]]}
    assert list(gathered_rows(1, [])) == []
    with pytest.raises(InternalError):
        list(gathered_rows(1, [batch([0, 2, 1], ["x", None, None])]))
