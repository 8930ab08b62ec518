"""What was created by CREATE PATTERN VIEW and CREATE PATTERN FUNCTION, for each session; global views for all.

Spark itself knows these as an ordinary temporary view and a table function, and its own statements can drop or replace
them behind our back. So each definition remembers which object of Spark's it stands for, and counts only as long as
that object is there.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession

from planner.sql import quote
from spark_ext import connect
from spark_ext.views import jsession_of, session_id, view_number

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


changing = threading.RLock()
"""Held while an object of Spark's and its definition change together: else, of two clients that replace a view at the
same time, one could leave its view and the other its definition."""

_Entries = dict[tuple[str, str], tuple[Definition, int]]

_lock = threading.Lock()
_by_session: OrderedDict[str, _Entries] = OrderedDict()
_owners: WeakKeyDictionary[SparkSession, tuple[str, str]] = WeakKeyDictionary()


def remember(spark: SparkSession, definition: Definition) -> None:
    """Add a definition whose view or function has just been created."""
    identity = _identity(spark, definition.kind, definition.name, definition.is_global)
    owner = _owners_of(spark)[definition.is_global]
    _adopt(spark)
    with _lock:
        entries = _by_session.setdefault(owner, {})
        key = definition.kind, definition.name.casefold()
        entries.pop(key, None)  # the order is that of creation, for those that are created again, too
        entries[key] = (definition, identity)
        _by_session.move_to_end(owner)


def retell(spark: SparkSession, text: str, told: str) -> None:
    """A definition of the statement `text` was really written as `told`, which ends as `text` does."""
    text, told = text.strip(), told.strip()
    with _lock:
        for entries in (_by_session.get(owner, {}) for owner in _owners_of(spark)):
            for key, (definition, identity) in entries.items():
                if text.startswith(definition.text):  # which has no `;` and no comment at the end
                    end = len(told) - (len(text) - len(definition.text))
                    entries[key] = (replace(definition, text=told[:end]), identity)


def definitions(spark: SparkSession) -> list[Definition]:
    """What can be used in this session, in the order of their creation; those that are gone are forgotten."""
    return _there(spark, lambda _: True)


def lookup(spark: SparkSession, name: str, kind: str | None = None, is_global: bool | None = None) -> Definition | None:
    """The definition of that name, a session's before a global one."""
    found = _there(
        spark,
        lambda d: d.name.casefold() == name.casefold() and kind in (None, d.kind) and is_global in (None, d.is_global),
    )
    return found[0] if found else None


def any_views(spark: SparkSession) -> list[str]:
    """The names of pattern views, in lower case, without asking Spark whether they are still there: cheap."""
    if not _by_session:
        return []
    _adopt(spark)
    with _lock:
        owners = [_by_session.get(owner, {}) for owner in _owners_of(spark)]
        return [name for owner in owners for kind, name in owner if kind == "VIEW"]


def _there(spark: SparkSession, wanted: Callable[[Definition], bool]) -> list[Definition]:
    """The definitions that are wanted and still there."""
    found = []
    _adopt(spark)
    for owner in _owners_of(spark):
        with _lock:
            entries = [item for item in _by_session.get(owner, {}).items() if wanted(item[1][0])]
        for key, (definition, identity) in entries:
            if _identity(spark, definition.kind, definition.name, definition.is_global) == identity:
                found.append(definition)
                continue
            with _lock:
                if _by_session.get(owner, {}).get(key) == (definition, identity):
                    del _by_session[owner][key]
    return found


def _adopt(spark: SparkSession) -> None:
    """At the first sight of a session: what it has of another's, since cloneSession copies views and functions."""
    owner = _owners_of(spark)[0]
    with _lock:
        if owner in _by_session:
            return
        origin = connect.origin(spark)
        sessions = list(_by_session.values()) if origin is None else [_by_session.get(origin, {})]
        others = [item for entries in sessions for item in entries.items() if not item[1][0].is_global]
    there = _names(spark) if others and origin is None else frozenset(name for (_, name), _ in others)
    found = {
        key: (definition, identity)
        for key, (definition, identity) in others
        if key[1] in there and _identity(spark, definition.kind, definition.name, is_global=False) == identity
    }
    with _lock:
        _by_session.setdefault(owner, found)
        for old in list(_by_session)[: max(0, len(_by_session) - KEPT_SESSIONS)]:
            if not old.startswith(GLOBAL):
                del _by_session[old]


def _names(spark: SparkSession) -> frozenset[str]:
    """The temporary views and table functions of a session, in lower case; none for Connect, see connect.origin."""
    jsession = jsession_of(spark)
    if jsession is None:
        return frozenset()
    state = jsession.sessionState()
    views = str(state.catalog().getTempViewNames().mkString("\n"))
    functions = str(state.tableFunctionRegistry().listFunction().mkString("\n"))
    return frozenset([*views.casefold().split("\n"), *re.split(r"[.\n]", functions.casefold())])


def _owners_of(spark: SparkSession) -> tuple[str, str]:
    """Whose definitions a session sees: its own, and the application's."""
    found = _owners.get(spark)
    if found is None:
        jsession = jsession_of(spark)
        application = "" if jsession is None else str(jsession.sparkContext().applicationId())
        found = _owners[spark] = (session_id(spark), f"{GLOBAL}{application}")
    return found


def _identity(spark: SparkSession, kind: str, name: str, is_global: bool) -> int:
    """A number for the object that Spark has under that name now; 0 if there is none."""
    jsession = jsession_of(spark)
    if jsession is None:
        if kind == "FUNCTION":
            return int(name.casefold() in connect.functions(spark))
        return view_number(spark, f"{'global_temp.' if is_global else ''}{quote(name)}")
    state = jsession.sessionState()
    if kind == "FUNCTION":
        found = state.tableFunctionRegistry().lookupFunctionBuilder(function_identifier(spark, name))
    elif is_global:
        found = state.catalog().getRawGlobalTempView(name)
    else:
        found = state.catalog().getRawTempView(name)
    if not found.isDefined():
        return 0
    return int(getattr(spark._jvm, "java.lang.System").identityHashCode(found.get()))


def function_identifier(spark: SparkSession, name: str) -> Any:
    """Where Spark keeps a temporary function."""
    jvm: Any = spark._jvm
    some = getattr(jvm, "scala.Option").apply
    return getattr(jvm, "org.apache.spark.sql.catalyst.FunctionIdentifier")(name, some("session"), some("system"))
