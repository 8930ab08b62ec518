"""Temporary views: the ones that users create, and the private ones that stand for a query inside other SQL.

`SELECT … FROM (PATTERN …)` is given to Spark as `SELECT … FROM (SELECT * FROM `__cersql_7`)`. A private view holds a
plan and no data, and Spark resolves it while `spark.sql` runs, so it is needed for a moment only; the newest few of
each session stay, for statements that run in other threads meanwhile. Views of statements that are read again later
(CREATE VIEW keeps its text) stay as long as the session. Nothing lists them: SHOW TABLES, SHOW VIEWS, the catalog's
listTables and JDBC's getTables give the views whose names match a pattern, `.*` for all, and in Java a dot matches no
end of a line. So a private view's name ends with one.
"""

from __future__ import annotations

import itertools
import re
import threading
import uuid
from collections import OrderedDict, deque
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from planner.sql import quote
from spark_ext.quiet import quiet_captures

PREFIX = "__cersql_"
_UNLISTED = "\u2028"  # an end of a line that no terminal breaks a line at
_MARK = f"{PREFIX}view_"
_PROCESS = uuid.uuid4().hex[:8]  # numbers are a process's own, and others may use the same session
# Right below the view that was asked for: a view of the user's may read one of ours.
_MARKED_VIEW = re.compile(rf"\A(?:(?!View \().)*View \([^\n]*\n\W*SubqueryAlias {_MARK}(\d+)_(\w+)", re.DOTALL)
KEPT_VIEWS = 64
KEPT_SESSIONS = 256

_numbers = itertools.count(1)
_lock = threading.Lock()
_newest: OrderedDict[str, deque[str]] = OrderedDict()  # by session


def private_view(spark: SparkSession, df: DataFrame, *, lasting: bool) -> str:
    """Register `df` under a name of its own in `spark`, and drop the session's old ones. Returns the name, quoted."""
    name = f"{PREFIX}{next(_numbers)}{_UNLISTED}"
    _of(spark, df).createOrReplaceTempView(quote(name))
    # A DataFrame of Spark Connect is a text that the server reads again with each use, and names the view each time.
    if not lasting and jsession_of(spark) is not None:
        for old in _replaced_by(session_id(spark), name):
            _drop(spark, old)
    return quote(name)


def readable(name: str) -> str:
    """The name of a private view as a parser reads it; any other text as it is.

    The Thrift server parses the bare names of a session's views when a connection ends, and a parser takes the end of
    a line for a blank."""
    return quote(name) if name.startswith(PREFIX) and name.endswith(_UNLISTED) else name


def _of(spark: SparkSession, df: DataFrame) -> DataFrame:
    """The same in this session: a view goes where its DataFrame is from, as a global view's may be from another."""
    jsession = jsession_of(spark)
    if jsession is None or df.sparkSession is spark:
        return df
    jvm: Any = spark._jvm
    plan = df._jdf.queryExecution().analyzed()
    return DataFrame(getattr(jvm, "org.apache.spark.sql.classic.Dataset").ofRows(jsession, plan), spark)


def reaches(spark: SparkSession, owner: SparkSession) -> bool:
    """Whether what was planned in `owner` can be read in `spark`. A plan of Connect's is a text, which names views of
    its own session."""
    return jsession_of(spark) is not None or session_id(spark) == session_id(owner)


_SETTINGS_OF_CONDITIONS = tuple(
    f"spark.sql.{name}"
    for name in (
        "session.timeZone", "ansi.enabled", "ansi.doubleQuotedIdentifiers", "parser.escapedStringLiterals",
        "caseSensitive",
    )
)  # fmt: skip


def reads_alike(spark: SparkSession, owner: SparkSession) -> bool:
    """Whether a condition says the same in both sessions: `TIMESTAMP '…'` depends on the time zone."""
    if session_id(spark) == session_id(owner):
        return True
    return all(spark.conf.get(name) == owner.conf.get(name) for name in _SETTINGS_OF_CONDITIONS)


def create_view(df: DataFrame, name: str, *, replace: bool, is_global: bool = False) -> None:
    """A user's temporary view, of the session or of the application (`global_temp.name`).

    A name that is taken, without `replace`, is Spark's error TEMP_TABLE_OR_VIEW_ALREADY_EXISTS.
    """
    quoted = quote(name)
    if jsession_of(df.sparkSession) is None:
        df = df.alias(f"{_MARK}{next(_numbers)}_{_PROCESS}")  # what view_number finds again
    if is_global:
        (df.createOrReplaceGlobalTempView if replace else df.createGlobalTempView)(quoted)
    else:
        (df.createOrReplaceTempView if replace else df.createTempView)(quoted)


def view_number(spark: SparkSession, name: str) -> int:
    """Under Connect, which shows no objects: the number of the view of ours that has this (quoted) name; else 0."""
    try:
        with quiet_captures():
            table: Any = spark.table(name)
            plan = str(table._explain_string(extended=True))
    except PySparkException:
        return 0
    found = _MARKED_VIEW.search(plan)
    return int(found[1]) if found is not None and found[2] == _PROCESS else 0


def drop_view(spark: SparkSession, name: str, *, is_global: bool) -> None:
    """Drop a user's temporary view that is there."""
    where = "global_temp." if is_global else ""
    spark.sql(f"DROP VIEW {where}{quote(name)}")


def nothing(spark: SparkSession) -> DataFrame:
    """What statements without a result give: no rows of no columns."""
    return spark.range(0).select()


def user(spark: SparkSession) -> str:
    """Whose session it is."""
    found = spark.sql("SELECT current_user()").first()
    return str(found[0]) if found is not None else ""


def table(spark: SparkSession, columns: Sequence[str], rows: Sequence[Sequence[str | None]]) -> DataFrame:
    """A DataFrame of texts that lies in the plan itself: reading it takes no job."""
    arrays = [pa.array([row[i] for row in rows], pa.string()) for i in range(len(columns))]
    schema = StructType([StructField(name, StringType()) for name in columns])
    return spark.createDataFrame(pa.Table.from_arrays(arrays, names=list(columns)), schema=schema)


def _replaced_by(session: str, name: str) -> list[str]:
    with _lock:
        names = _newest.setdefault(session, deque())
        _newest.move_to_end(session)
        names.append(name)
        old = [names.popleft() for _ in range(len(names) - KEPT_VIEWS)]
        # A session that is long unused, or stopped, takes its last views with it.
        while len(_newest) > KEPT_SESSIONS:
            _newest.popitem(last=False)
    return old


def session_id(spark: SparkSession) -> str:
    jsession = jsession_of(spark)
    return str(jsession.sessionUUID()) if jsession is not None else str(spark.session_id)  # type: ignore[attr-defined]


def _drop(spark: SparkSession, name: str) -> None:
    # Not spark.catalog.dropTempView: that also uncaches a DataFrame of the user's that has the same plan.
    jsession_of(spark).sessionState().catalog().dropTempView(name)


def jsession_of(spark: SparkSession) -> Any:
    """The JVM's session; None under Spark Connect."""
    return getattr(spark, "_jsparkSession", None)
