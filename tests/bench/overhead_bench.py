"""What the parser hook costs an ordinary statement of Spark's: `spark.sql` with and without us, taken in turns."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession
from run import median, seconds

import cersql

CONFIG = {"spark.master": "local[2]", "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
WARM_UPS = 300  # the JVM compiles what runs often
STATEMENTS = {
    "SELECT 1": "SELECT 1",
    "a query": "SELECT k, count(*) AS n FROM numbers WHERE k > 5 GROUP BY k HAVING count(*) > 1 ORDER BY n DESC LIMIT 3",  # noqa: E501
    "a refused one": "SELECT k FROM numbers WHEREE k",
}
VIEWS = 10


def run_overhead(repeat: int) -> None:
    """Milliseconds a statement: the median of Spark alone, and of the difference of neighbours, for each session."""
    hooked = cersql.session("cersql-overhead", CONFIG)
    hooked.sparkContext.setLogLevel("ERROR")
    defined = hooked.newSession()
    classic: Any = hooked._jvm.org.apache.spark.sql.classic  # type: ignore[union-attr]
    plain = SparkSession(hooked.sparkContext, classic.SparkSession.builder().create())
    for spark in (plain, hooked, defined):
        spark.range(10).selectExpr("id AS k", "'A' AS type").createOrReplaceTempView("numbers")
    for n in range(VIEWS):
        view = (
            f"CREATE PATTERN VIEW v{n} AS FROM numbers PATTERN A a PARTITION BY type ORDER BY k RETURN type AS t, a.k"
        )
        defined.sql(view)
    print(f"\nthe parser hook, ms of `spark.sql` for each statement, median of {repeat} turns")
    print(f"{'statement':16} {'Spark':>8} {'hooked':>8} {f'{VIEWS} pattern views':>17}")
    for name, sql in STATEMENTS.items():
        turns = [
            [1000 * seconds(lambda: _run(spark, sql)) for spark in (plain, hooked, defined)]  # noqa: B023
            for _ in range(WARM_UPS + repeat)
        ]  # noqa: B023, RUF100
        turns = turns[WARM_UPS:]
        more = [median([turn[i] - turn[0] for turn in turns]) for i in (1, 2)]
        print(f"{name:16} {median([turn[0] for turn in turns]):8.2f} {more[0]:+8.2f} {more[1]:+17.2f}", flush=True)
    sql = "SELECT * FROM v1 WHERE t = 'A'"
    times = [
        (seconds(lambda: defined.sql(sql)), seconds(lambda: defined.table("v1").where("t = 'A'"))) for _ in range(50)
    ]
    ours, without = (1000 * median(list(column)) for column in zip(*times[10:], strict=True))
    print(
        f"a filter moved before the pattern: {ours:.1f} ms, the same by the DataFrame API, where it stays: {without:.1f} ms"  # noqa: E501
    )
    hooked.stop()


def _run(spark: Any, sql: str) -> None:
    try:
        spark.sql(sql)
    except Exception as error:
        if "PARSE_SYNTAX_ERROR" not in str(error):
            raise
