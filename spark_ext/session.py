"""The parser hook: a session that speaks PATTERN, in pure Python.

Spark lets a session's SQL parser be replaced (`SparkSessionExtensions.injectParser`), and Py4J lets a Python object
stand for the Java one. Ours gives each text to Spark's own parser first: what Spark accepts is Spark's, and costs one
round trip (0.3 ms). What Spark refuses goes to `rewrite`, a function given from above, which answers with

- a text that Spark parses instead,
- a DataFrame, whose plan is the result of parsing (so that a whole query needs no view to stand for it), or
- None: not ours, and Spark's own error is raised as if we were not here.

Roads not taken: a Java class in a jar must be on the classpath before the JVM starts, is tied to one version of
Spark's interface, and cannot call Python without the same proxies.
"""

from __future__ import annotations

import functools
import logging
import os
import re
import socket
import sys
from collections.abc import Callable, Mapping
from typing import Any

import pyspark
from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import ParseException
from pyspark.errors.exceptions.captured import CapturedException
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.utils import is_remote

from runtime.errors import CersqlError, InternalError
from spark_ext import NEEDED, fits
from spark_ext.arguments import Literals, of_context
from spark_ext.connect import plain_sql
from spark_ext.errors import SparkError, thrown_again, thrown_in_jvm
from spark_ext.names import remember
from spark_ext.quiet import mute_handled_exceptions, quiet_captures
from spark_ext.views import readable

logger = logging.getLogger(__name__)

Values = Callable[[], "Literals | None"]
Rewrite = Callable[[SparkSession, str, Values], "str | DataFrame | None"]
"""(the session that is parsing, the text that Spark refused, the values of its parameters) -> see above; raises
CersqlError. Parameters in order (`?`) are all filled in, in the text that is returned."""

Refine = Rewrite
"""The same for a text that Spark accepted, which is parsed as it is if the answer is None."""

PARSER_NAME = "cersql.PatternParser"

# Spark has no statement that begins with PATTERN, so its parser need not be asked; and DESCRIBE PATTERN v is also a
# column v of a table called pattern, so we are asked first.
BLANK = r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)"
_OURS_FIRST = re.compile(rf"{BLANK}*(?:PATTERN\b|DESC(?:RIBE)?{BLANK}+PATTERN{BLANK}+[\w`])", re.IGNORECASE | re.DOTALL)


# Over TCP, a small batch on its way to a worker waits 40 ms for what follows it (Nagle's algorithm).
_WORKERS = {"spark.python.unix.domain.socket.enabled": "true"} if hasattr(socket, "AF_UNIX") else {}


def session(
    name: str, config: Mapping[str, Any] | None, rewrite: Rewrite, refine: Refine | None = None
) -> SparkSession:
    """The active session, or a new one, with `config` set in it, that speaks PATTERN."""
    return enable(started(name, config), rewrite, refine)


def started(name: str, config: Mapping[str, Any] | None) -> SparkSession:
    """The active session or a new one, with `config` in it: of Connect where `spark.remote` or SPARK_REMOTE is set."""
    check_version()
    wanted = dict(config or {})
    begins = SparkContext._active_spark_context is None and not ("spark.remote" in wanted or is_remote())
    return SparkSession.builder.appName(name).config(map=(_WORKERS if begins else {}) | wanted).getOrCreate()


def enable(spark: SparkSession, rewrite: Rewrite, refine: Refine | None = None) -> SparkSession:
    """Teach a session, and those that `newSession()` makes of it from now on. Returns `spark`; twice is harmless.

    It is one with a JVM here; spark_ext/connect.py teaches the others.
    """
    check_version()
    jsession: Any = spark._jsparkSession
    state = jsession.sessionState()
    if state.sqlParser().toString() == PARSER_NAME:
        return spark
    _choose_python(spark)
    prepare(spark.sparkContext._gateway)
    jsession.extensions().injectParser(ParserBuilder(spark, rewrite, refine))
    _replace_parser(state, PatternParser(lambda: spark, state.sqlParser(), rewrite, refine))
    return spark


def try_sql(spark: SparkSession, text: str, args: Any = None) -> DataFrame | None:
    """`spark.sql(text, args)`, or None where the parser refuses the text. Works for a session of Spark Connect, too."""
    if _OURS_FIRST.match(text):
        return None
    try:
        with quiet_captures():
            return run_sql(spark, text, args)
    except ParseException:
        return None


def run_sql(spark: SparkSession, text: str, args: Any) -> DataFrame:
    """`spark.sql(text, args)`; no parameters at all are not the same to Spark as an empty list of them."""
    sql = plain_sql(spark)
    return sql(text, args=args) if args else sql(text)


def active() -> SparkSession | None:
    """The session that this process uses, of either kind."""
    found = SparkSession.getActiveSession()
    if found is None and "pyspark.sql.connect.session" in sys.modules:
        found = sys.modules["pyspark.sql.connect.session"].SparkSession.getActiveSession()
    return found


def check_version(found: str = pyspark.__version__) -> None:
    """The hook leans on what pyspark does inside: refuse versions that it was not tried on."""
    if not fits(found):
        raise SparkError("SPARK_VERSION", found=found, needed=NEEDED, hint=f"pip install 'pyspark{NEEDED}'")


def _choose_python(spark: SparkSession) -> None:
    """Workers on this machine run this Python, not the `python3` of the PATH, which need not have cersql in it."""
    context = spark.sparkContext
    chosen = "PYSPARK_PYTHON" in os.environ or context.pythonExec != "python3"
    if not chosen and (context.master or "").startswith("local"):
        context.pythonExec = sys.executable
        logger.info("PYSPARK_PYTHON is not set: workers run %s", sys.executable)


def prepare(gateway: Any) -> None:
    """Let the JVM call Python, and let exceptions of the JVM pass through Python unchanged."""
    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
    # Without this every exception that crosses a proxy arrives as a Py4JException that quotes a Python traceback.
    # `python_parameters` belongs to pinned-thread mode, the other name to the older mode.
    for parameters in ("python_parameters", "callback_server_parameters"):
        if parameters in vars(gateway):
            vars(gateway)[parameters].propagate_java_exceptions = True
    mute_handled_exceptions()
    remember(gateway)


def _replace_parser(state: Any, parser: PatternParser) -> None:
    """Put `parser` into a session state that is built already: `sqlParser` is a val there, hence the reflection."""
    for field in state.getClass().getDeclaredFields():
        if field.getName() == "sqlParser":
            field.setAccessible(True)
            field.set(state, parser)
            return
    raise SparkError("SPARK_INTERNALS", detail="its SessionState has no field sqlParser")


class PatternParser:
    """Spark's ParserInterface. `delegate` is the parser that was there before, Spark's own or another extension's."""

    def __init__(
        self, spark: Callable[[], SparkSession], delegate: Any, rewrite: Rewrite, refine: Refine | None
    ) -> None:
        self._spark = functools.cache(spark)
        self._delegate = delegate
        self._rewrite, self._refine = rewrite, refine

    def parsePlan(self, sql: str) -> Any:
        return self._plan(sql, self._delegate.parsePlan, None)

    def parsePlanWithParameters(self, sql: str, context: Any) -> Any:
        """What `spark.sql` and the Thrift server call."""
        return self._plan(sql, lambda text: self._delegate.parsePlanWithParameters(text, context), context)

    def __getattr__(self, name: str) -> Any:
        """Expressions, types, identifiers …: Spark's alone. By name, so that a new method needs nothing here."""
        if not (name.startswith("parse") or name == "splitStatements"):
            raise AttributeError(name)
        method = getattr(self._delegate, name)
        return lambda text, *others: self._as_thrown(readable(text), lambda text: method(text, *others))

    def _plan(self, sql: str, parse: Callable[[str], Any], context: Any) -> Any:
        refusal = None
        if not _OURS_FIRST.match(sql):
            try:
                accepted = self._as_thrown(sql, parse)
            except Py4JJavaError as error:
                if error.errmsg != ParseException.__name__:
                    raise
                refusal = error
            else:
                ours = None if self._refine is None else self._ask(self._refine, sql, context)
                return accepted if ours is None else self._as_plan(ours, parse)
        ours = self._ask(self._rewrite, sql, context)
        if ours is None and refusal is not None:
            raise refusal
        in_order = context is not None and context.getClass().getSimpleName() == "PositionalParameterContext"
        return self._as_plan(sql if ours is None else ours, self._delegate.parsePlan if in_order and ours else parse)

    def _as_plan(self, ours: str | DataFrame, parse: Callable[[str], Any]) -> Any:
        return ours._jdf.queryExecution().analyzed() if isinstance(ours, DataFrame) else self._as_thrown(ours, parse)

    def _ask(self, answer: Rewrite, sql: str, context: Any) -> str | DataFrame | None:
        """What `rewrite` or `refine` answers, with every error turned into one that Spark can throw."""
        try:
            values = functools.partial(of_context, context)
            return self._as_thrown(sql, lambda text: answer(self._spark(), text, values))
        except CersqlError as error:
            ours: CersqlError = error
        except Py4JJavaError:
            raise
        except Exception as error:
            logger.error("a bug in cersql", exc_info=True)
            ours = InternalError("INTERNAL", detail=f"{type(error).__name__}: {error}")
        raise thrown_in_jvm(self._spark()._jvm, ours, sql)

    def _as_thrown(self, sql: str, call: Callable[[str], Any]) -> Any:
        """`call(sql)`, whose Java exceptions, made Python's by pyspark on their way to us, are Java's again."""
        try:
            with quiet_captures():
                return call(sql)
        except CapturedException as error:
            raise thrown_again(self._spark()._jvm, error, sql) from None

    def toString(self) -> str:
        return PARSER_NAME

    def hashCode(self) -> int:
        return id(self) & 0x7FFFFFFF

    def equals(self, other: Any) -> bool:
        return other is self

    class Java:
        implements = ["org.apache.spark.sql.catalyst.parser.ParserInterface"]


class ParserBuilder:
    """(session, parser) => parser, which Spark calls when it builds the state of a new session."""

    def __init__(self, spark: SparkSession, rewrite: Rewrite, refine: Refine | None) -> None:
        self._context = spark.sparkContext
        self._rewrite, self._refine = rewrite, refine

    def apply(self, jsession: Any, delegate: Any) -> PatternParser:
        # `rewrite` must see the views and settings of the session that is parsing, so each gets its own wrapper;
        # on first use, since the session's state is only being built here.
        return PatternParser(lambda: SparkSession(self._context, jsession), delegate, self._rewrite, self._refine)

    def toString(self) -> str:
        return "cersql.ParserBuilder"

    def hashCode(self) -> int:
        return id(self) & 0x7FFFFFFF

    def equals(self, other: Any) -> bool:
        return other is self

    class Java:
        implements = ["scala.Function2"]
