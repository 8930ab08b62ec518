"""Sessions of Spark Connect: no JVM to hook into, so a statement is read on the client's side, before the server's.

The server keeps no parser of ours and no table functions, so `enable` wraps the `sql` of the one session object, and
pattern functions live here, by session. Everything else (matching included) is ordinary DataFrame work on the server,
whose Python workers need cersql.
"""

from __future__ import annotations

import functools
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from spark_ext.errors import SparkError
from spark_ext.quiet import quiet_captures

KEPT_SESSIONS = 256

Sql = Callable[[SparkSession, str, Any], DataFrame]
"""(session, text, args) -> what the statement gives; raises CersqlError and Spark's own errors."""

_lock = threading.Lock()
_functions: OrderedDict[str, dict[str, Any]] = OrderedDict()
_cores: OrderedDict[str, int] = OrderedDict()
_origins: OrderedDict[str, str] = OrderedDict()


def is_connect(spark: object) -> bool:
    return not hasattr(spark, "_jsparkSession") and hasattr(spark, "session_id")


def enable(spark: Any, sql: Sql) -> bool:
    """Let `spark.sql` of this object, and of the sessions that it makes, go through `sql`. False: it did already."""
    if hasattr(spark.sql, "cersql_plain"):
        return False
    spark.sql = _wrapped(spark, sql)
    for name in ("newSession", "cloneSession"):
        if hasattr(spark, name):
            setattr(spark, name, _making(spark, name, sql))
    return True


def _wrapped(spark: Any, sql: Sql) -> Callable[..., DataFrame]:
    plain = spark.sql

    @functools.wraps(plain)
    def taught(sqlQuery: str, args: Any = None, **kwargs: Any) -> DataFrame:  # noqa: N803 - pyspark's name
        return sql(spark, _formatted(spark, sqlQuery, kwargs) if kwargs else sqlQuery, args)

    taught.cersql_plain = plain  # type: ignore[attr-defined]
    return taught


def _formatted(spark: Any, text: str, values: dict[str, Any]) -> str:
    """The text with `{names}` filled in, as pyspark does it; its DataFrames are views from now on."""
    from pyspark.sql.connect.sql_formatter import SQLStringFormatter

    formatter = SQLStringFormatter(spark)
    filled = formatter.format(text, **values)
    for df, name in formatter._temp_views:
        df.createOrReplaceTempView(name)
    return filled


def _making(spark: Any, name: str, sql: Sql) -> Callable[..., Any]:
    make = getattr(spark, name)

    @functools.wraps(make)
    def made(*args: Any, **kwargs: Any) -> Any:
        new = make(*args, **kwargs)
        enable(new, sql)
        if name == "cloneSession":  # with its temporary views, and so with ours
            functions(new).update(functions(spark))
            with _lock:
                _origins[new.session_id] = spark.session_id
                while len(_origins) > KEPT_SESSIONS:
                    _origins.popitem(last=False)
        return new

    return made


def origin(spark: Any) -> str | None:
    """The id of the session that this one is a clone of, if it is one of Connect's that we saw being cloned."""
    return _origins.get(spark.session_id) if is_connect(spark) else None


def plain_sql(spark: SparkSession) -> Callable[..., DataFrame]:
    """The session's own `sql`, without ours."""
    return getattr(spark.sql, "cersql_plain", spark.sql)


# ---------------------------------------------------------------- pattern functions


def functions(spark: Any) -> dict[str, Any]:
    """The implementations of a session's pattern functions, by name in lower case."""
    with _lock:
        found = _functions.setdefault(spark.session_id, {})
        _functions.move_to_end(spark.session_id)
        while len(_functions) > KEPT_SESSIONS:
            _functions.popitem(last=False)
        return found


# ---------------------------------------------------------------- what the server has


def parallelism(spark: Any) -> int:
    """The server's default parallelism. Raises SparkError if its Python workers cannot match patterns.

    Asked once for each session, by one job.
    """
    session = spark.session_id
    with _lock:
        if session in _cores:
            return _cores[session]
    ids = spark.range(1 << 12).selectExpr("spark_partition_id() AS n").groupBy().max("n").toDF("n")
    try:
        with quiet_captures():
            rows = ids.coalesce(1).mapInArrow(_probe, "n INT").collect()
    except PySparkException as error:
        missing = re.findall(r"No module named '([\w.]+)'", str(error))
        if not missing:
            raise
        raise SparkError("CONNECT_WORKERS", module=missing[-1], hint=_INSTALL) from None
    found = int(rows[0][0]) + 1
    with _lock:
        _cores[session] = found
        while len(_cores) > KEPT_SESSIONS:
            _cores.popitem(last=False)
    return found


def _probe(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Pickled by reference: a worker that can run it has this package, and imports what matching needs."""
    import runtime.partition.partition  # noqa: F401 - numba and all

    yield from batches


_INSTALL = (
    "Install cersql for the Python that the server runs workers with (its environment variable PYSPARK_PYTHON, "
    "or 'python3'); if cersql alone is missing there, cersql.ship(spark) sends it."
)
_SIZES = {"B": 0, "KiB": 10, "MiB": 20, "GiB": 30, "TiB": 40, "PiB": 50, "EiB": 60}


def estimated_bytes(df: Any) -> int:
    """Catalyst's estimate of a DataFrame's size, from the text of its plan; 0 where that does not say."""
    try:
        text = df._explain_string(mode="cost")
    except PySparkException:
        return 0
    found = re.search(r"Optimized Logical Plan ==.*?sizeInBytes=([\d.]+)(?:E\+?(\d+))? (\w+)", text, re.DOTALL)
    if found is None or found[3] not in _SIZES:
        return 0
    return int(min(float(found[1]) * 10 ** int(found[2] or 0) * 2 ** _SIZES[found[3]], 1 << 62))
