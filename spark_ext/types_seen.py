"""Types that no row has: `SELL` where the data say `sell` matches nothing, and nothing is no error.

Before a query runs, the first rows of its sources are looked at, where that costs next to nothing; after one that found
nothing, whoever shows its result can ask for all rows.
"""

from __future__ import annotations

import difflib
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from threading import Lock
from typing import Any, NamedTuple

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from planner.query import SOURCE_COLUMN, Query
from planner.sql import literal, quote
from spark_ext.errors import SparkError
from spark_ext.peeking import first_values
from spark_ext.quiet import quiet_captures
from spark_ext.schema import SparkCatalog
from spark_ext.sizes import estimate

PEEK_SETTING = "cersql.peekRows"
PEEK_ROWS = 1000
MOST_VALUES = 1000  # of a TYPE column that are compared with a name
MOST_SHOWN = 8
SMALL_BYTES = 64 << 20

# Plans of which the first rows come at once: no joins, aggregates, sorts, caches or filters that few rows pass.
_CHEAP = frozenset(
    "LocalRelation LogicalRelation LogicalRDD DataSourceV2ScanRelation RelationV2 Range OneRowRelation Project "
    "GlobalLimit LocalLimit SubqueryAlias View Union".split()
)


def unlike(query: Query, catalog: SparkCatalog) -> Iterator[str]:
    """A warning for each type that the first rows of its source do not have, where these are all rows, or have
    another that is written nearly so: `fial` beside `fail`, `SELL` beside `sell`."""
    rows = peek_rows(catalog) if hasattr(catalog.spark, "_jsparkSession") else 0  # Connect cannot show its plans
    for i, source in enumerate(query.sources) if rows else ():
        named = _named(query, i)
        if source.type_column is None or not named:
            continue
        frame = catalog.frame(source.relation)
        seen = _SEEN.of(frame, source.type_column)
        if seen.issuperset(named):
            continue
        first = _first_rows(frame, source.type_column, rows)
        seen.update(name for name in named if name in first.values)
        for name in named if first.values else ():
            if name not in first.values:
                yield from _not_there(name, first, source.type_column, source.alias)


def _not_there(name: str, first: First, column: str, alias: str) -> Iterator[str]:
    same = sorted(value for value in first.values if value.casefold() == name.casefold())
    if same:
        yield (
            f"No {column} in the first rows of {alias} is {literal(name)}, and there is {literal(same[0])}: "
            "types are compared exactly, case included."
        )
    elif first.are_all:
        yield f"No row of {alias} has the {column} {literal(name)}. {_nearest(name, first.values)}"
    else:
        meant = _meant(name, first.values)
        if meant is not None:
            seen = f"the first {first.rows:,} rows of {alias}"
            yield f"No {column} in {seen} is {literal(name)}, and there is {literal(meant)}."


def _meant(name: str, values: Iterable[str]) -> str | None:
    """The value that differs from a name as by a slip of the fingers; `sensor1` and `sensor2` are two names."""
    digits = [c for c in name if c.isdigit()]
    alike = {value.casefold(): value for value in values if [c for c in value if c.isdigit()] == digits}
    near = difflib.get_close_matches(name.casefold(), alike, n=1, cutoff=0.75) if len(name) > 3 else ()
    return alike[near[0]] if near else None


def unseen(query: Query, catalog: SparkCatalog) -> list[str]:
    """What is to be said of types that no row has, with the nearest value that there is. Reads all rows once or
    twice."""
    names = [name for name, _ in query.types]
    union = catalog.union_frame(query)
    counts = [f"count_if({sql}) AS c{k}" for k, (_, sql) in enumerate(query.types)]
    found = union.selectExpr("count(*) AS n", *counts).first()
    if found is None or not found["n"]:
        return ["There are no rows to match."]
    told = []
    for k, name in enumerate(names):
        if found[f"c{k}"]:
            continue
        columns = [i for i in range(len(query.sources)) if name in _named(query, i)]
        if columns:
            told += [_no_such_value(query, catalog, i, name) for i in columns]
        else:
            told.append(f"No row is of the type {name}: what says which rows are is never true.")
    return told


def is_small(query: Query, catalog: SparkCatalog) -> bool:
    """Are the sources so small that nobody notices if they are read once more, by Spark's estimate?"""
    frame = catalog.union_frame(query)
    if not hasattr(frame, "_jdf"):
        return False
    try:
        return estimate(frame._jdf.queryExecution().optimizedPlan()) <= SMALL_BYTES
    except Py4JError:  # of a CTE, which is defined around the call, nothing is known here
        return False


def _named(query: Query, source: int) -> list[str]:
    """The types that are values of the TYPE column of a source."""
    column = query.sources[source].type_column
    if column is None:
        return []
    tests = [f"{quote(column)} = ", f"CAST({quote(column)} AS STRING) = ", f"{quote(column)} COLLATE UTF8_BINARY = "]
    ends = {test.casefold() for test in tests}

    def is_value(name: str, sql: str) -> bool:
        wanted = literal(name)
        return any(f"{test}{wanted}".casefold() in sql.casefold() for test in ends) and wanted in sql

    several = len(query.sources) > 1
    mark = f"{SOURCE_COLUMN} = {source} AND"
    return [name for name, sql in query.types if is_value(name, sql) and (not several or mark in sql)]


def _no_such_value(query: Query, catalog: SparkCatalog, i: int, name: str) -> str:
    source = query.sources[i]
    column = source.type_column
    assert column is not None
    values = catalog.frame(source.relation).selectExpr(f"CAST({quote(column)} AS STRING) AS v").where("v IS NOT NULL")
    counted = values.groupBy("v").count().orderBy("count", ascending=False).limit(MOST_VALUES).collect()
    there = {row["v"]: row["count"] for row in counted}
    return f"No row of {source.alias} has the {column} {literal(name)}. {_nearest(name, there)}"


def _nearest(name: str, there: Mapping[str, int]) -> str:
    """The value that was meant, perhaps, and how many rows have it; else those that there are, by their numbers."""
    same = [value for value in there if value.casefold() == name.casefold()]
    folded = {value.casefold(): value for value in reversed([*there])}
    near = same or [folded[v] for v in difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.6)]
    if near:
        return f"The nearest value is {literal(near[0])}, in {there[near[0]]:,} of them."
    shown = ", ".join(literal(value) for value in list(there)[:MOST_SHOWN])
    return f"There are {shown or 'none but NULL'}{' …' if len(there) > MOST_SHOWN else ''}."


def peek_rows(catalog: SparkCatalog) -> int:
    written = catalog.spark.conf.get(PEEK_SETTING, None) or str(PEEK_ROWS)
    if not written.isdecimal():
        raise SparkError("SETTING", name=PEEK_SETTING, value=written, expected="a whole number from 0")
    return int(written)


class _Seen:
    """Types that some row of a source had when its first rows were read: it is not read again for them, a job of a
    tenth of a second. Sources are told apart by a hash of their plans; of two that share it, or one that has other rows
    by now, at worst a warning is not given."""

    def __init__(self, most: int) -> None:
        self._most, self._types, self._lock = most, OrderedDict[tuple[str, int, str], set[str]](), Lock()

    def of(self, frame: DataFrame, column: str) -> set[str]:
        """The types that are known of a source, to which others can be added."""
        try:
            plan = frame._jdf.queryExecution().analyzed().semanticHash()
        except (PySparkException, Py4JError):
            return set()
        key = (frame.sparkSession.sparkContext.applicationId or "", int(plan), column)
        with self._lock:
            found = self._types.setdefault(key, set())
            self._types.move_to_end(key)
            while len(self._types) > self._most:
                self._types.popitem(last=False)
        return found


_SEEN = _Seen(256)


class First(NamedTuple):
    """The values of a TYPE column in the first rows of a source, each with its number, the most frequent first; how
    many rows these are, and are they all?"""

    values: Mapping[str, int]
    rows: int
    are_all: bool


def _first_rows(frame: DataFrame, column: str, rows: int) -> First:
    """No rows where to read them could cost more than a moment."""
    nothing = First({}, 0, False)
    if not hasattr(frame, "_jdf") or frame.isStreaming:
        return nothing
    try:
        with quiet_captures():
            known = first_values(frame, column, rows)
            if known is not None:
                return _counted(known, rows)
            first = frame.selectExpr(f"CAST({quote(column)} AS STRING) AS v").limit(rows)
            if not is_cheap(first._jdf.queryExecution().optimizedPlan()):
                return nothing
            found = [row["v"] for row in first.collect()]
    except (PySparkException, Py4JError):  # the query will say so itself; of a CTE nothing can be read from here
        return nothing
    return _counted(found, rows)


def _counted(found: list[str | None], rows: int) -> First:
    counted = Counter(value for value in found if value is not None)
    return First(dict(counted.most_common()), len(found), len(found) < rows)


def has_all_rows(plan: Any) -> bool:
    """Does a plan read all rows of its leaves, and give them as they are there?"""
    return _nodes(plan) <= _CHEAP


def is_cheap(plan: Any) -> bool:
    """Do the first rows come at once? Behind a filter they do where there are few rows at all, by Spark's estimate."""
    nodes = _nodes(plan)
    return nodes <= _CHEAP or (nodes <= _CHEAP | {"Filter"} and estimate(plan) <= SMALL_BYTES)


def takes_some(plan: Any) -> bool:
    """Does a plan take some rows, and no others, by LIMIT or OFFSET?"""
    return any(name.endswith(("Limit", "Offset", "Tail")) for name in _nodes(plan))


def _nodes(plan: Any) -> set[str]:
    children = plan.children()
    below = (_nodes(children.apply(i)) for i in range(children.length()))
    return {str(plan.nodeName()).split()[0]}.union(*below)
