"""Temporary views: the ones that users create, and the private ones that stand for a query inside other SQL.

`SELECT … FROM (PATTERN …)` is given to Spark as `SELECT … FROM (SELECT * FROM __cersql_7)`. A private view holds a plan
and no data, and Spark resolves it while `spark.sql` runs, so it is needed for a moment only; the newest few of each
session stay, for statements that run in other threads meanwhile. SHOW TABLES and SHOW VIEWS list these. Views of
statements that are read again later (CREATE VIEW keeps its text) stay as long as the session.
"""

from __future__ import annotations

import itertools
import threading
from collections import OrderedDict, deque
from typing import Any

from pyspark.sql import DataFrame, SparkSession

PREFIX = "__cersql_"
KEPT_VIEWS = 64
KEPT_SESSIONS = 256

_numbers = itertools.count(1)
_lock = threading.Lock()
_newest: OrderedDict[str, deque[str]] = OrderedDict()  # by session


def private_view(spark: SparkSession, df: DataFrame, *, lasting: bool) -> str:
    """Register `df` under a name of its own in `spark`, and drop the session's old ones. Returns the name."""
    name = f"{PREFIX}{next(_numbers)}"
    df.createOrReplaceTempView(name)
    if not lasting:
        for old in _replaced_by(_session_id(spark), name):
            _drop(spark, old)
    return name


def create_view(spark: SparkSession, df: DataFrame, name: str, *, replace: bool) -> DataFrame:
    """A user's temporary view. Returns what Spark's own CREATE VIEW does: no rows of no columns.

    A name that is taken, without `replace`, is Spark's error TEMP_TABLE_OR_VIEW_ALREADY_EXISTS.
    """
    quoted = "`" + name.replace("`", "``") + "`"
    if replace:
        df.createOrReplaceTempView(quoted)
    else:
        df.createTempView(quoted)
    return spark.range(0).select()


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


def _session_id(spark: SparkSession) -> str:
    jsession = _jsession(spark)
    return str(jsession.sessionUUID()) if jsession is not None else str(spark.session_id)  # type: ignore[attr-defined]


def _drop(spark: SparkSession, name: str) -> None:
    jsession = _jsession(spark)
    if jsession is None:
        spark.catalog.dropTempView(name)
    else:
        # Not spark.catalog.dropTempView: that also uncaches a DataFrame of the user's that has the same plan.
        jsession.sessionState().catalog().dropTempView(name)


def _jsession(spark: SparkSession) -> Any:
    """The JVM's session; None under Spark Connect."""
    return getattr(spark, "_jsparkSession", None)
