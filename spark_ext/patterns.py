"""What was created by CREATE PATTERN VIEW and CREATE PATTERN FUNCTION, for each session; global views for all.

Spark itself knows these as an ordinary temporary view and a table function, and its own statements can drop or replace
them behind our back. So each definition remembers which object of Spark's it stands for, and counts only as long as
that object is there.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from planner.sql import quote
from spark_ext import connect
from spark_ext.views import jsession_of, session_id

KEPT_SESSIONS = 1024
GLOBAL = "(global)"


@dataclass(frozen=True)
class Definition:
    """`kind` is VIEW or FUNCTION; `text` the CREATE statement; `facts` what DESCRIBE tells: (section, name, value).
    `planned`: the query behind a view, for whoever made the definition.
    """

    name: str
    kind: str
    is_global: bool
    text: str
    facts: tuple[tuple[str, str, str], ...]
    planned: object = None


_lock = threading.Lock()
_by_session: OrderedDict[str, dict[tuple[str, str], tuple[Definition, int]]] = OrderedDict()


def remember(spark: SparkSession, definition: Definition) -> None:
    """Add a definition whose view or function has just been created."""
    identity = _identity(spark, definition.kind, definition.name, definition.is_global)
    with _lock:
        session = _by_session.setdefault(_owner(spark, definition.is_global), {})
        session[definition.kind, definition.name.casefold()] = (definition, identity)
        _by_session.move_to_end(_owner(spark, definition.is_global))
        while len(_by_session) > KEPT_SESSIONS:
            _by_session.popitem(last=False)


def definitions(spark: SparkSession) -> list[Definition]:
    """What can be used in this session, in the order of their creation; those that are gone are forgotten."""
    found = []
    for owner in (_owner(spark, False), _owner(spark, True)):
        with _lock:
            entries = list(_by_session.get(owner, {}).items())
        for key, (definition, identity) in entries:
            if _identity(spark, definition.kind, definition.name, definition.is_global) == identity:
                found.append(definition)
                continue
            with _lock:
                if _by_session.get(owner, {}).get(key) == (definition, identity):
                    del _by_session[owner][key]
    return found


def any_views(spark: SparkSession) -> list[str]:
    """The names of pattern views, in lower case, without asking Spark whether they are still there: cheap."""
    if not _by_session:
        return []
    with _lock:
        owners = [_by_session.get(_owner(spark, is_global), {}) for is_global in (False, True)]
        return [name for owner in owners for kind, name in owner if kind == "VIEW"]


def lookup(spark: SparkSession, name: str, kind: str | None = None, is_global: bool | None = None) -> Definition | None:
    """The definition of that name, a session's before a global one."""
    for definition in definitions(spark):
        if (
            definition.name.casefold() == name.casefold()
            and kind in (None, definition.kind)
            and is_global in (None, definition.is_global)
        ):
            return definition
    return None


def _owner(spark: SparkSession, is_global: bool) -> str:
    """Whose definitions: the session's, or the application's."""
    if not is_global:
        return session_id(spark)
    jsession = jsession_of(spark)
    return f"{GLOBAL}{jsession.sparkContext().applicationId()}" if jsession is not None else GLOBAL


def _identity(spark: SparkSession, kind: str, name: str, is_global: bool) -> int:
    """A number for the object that Spark has under that name now; 0 if there is none."""
    jsession = jsession_of(spark)
    if jsession is None:  # Connect shows no objects: being there has to do
        if kind == "FUNCTION":
            return int(name.casefold() in connect.functions(spark))
        return int(bool(spark.catalog.tableExists(f"{'global_temp.' if is_global else ''}{quote(name)}")))
    state = jsession.sessionState()
    if kind == "FUNCTION":
        found = state.tableFunctionRegistry().lookupFunctionBuilder(function_identifier(spark, name))
    elif is_global:
        found = state.catalog().getRawGlobalTempView(name)
    else:
        found = state.catalog().getRawTempView(name)
    if not found.isDefined():
        return 0
    return int(spark._jvm.java.lang.System.identityHashCode(found.get()))  # type: ignore[union-attr]


def function_identifier(spark: SparkSession, name: str) -> Any:
    """Where Spark keeps a temporary function."""
    jvm: Any = spark._jvm
    some = jvm.scala.Option.apply
    return jvm.org.apache.spark.sql.catalyst.FunctionIdentifier(name, some("session"), some("system"))
