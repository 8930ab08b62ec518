"""Which of two plans is taken where the general engine would run a query: what the first rows show of the rest.

Nothing is read but these rows, `cersql.peekRows` of them, where they come at once, and footers of Parquet files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from operator import itemgetter
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from planner.physical import guard_sql
from planner.query import SOURCE_COLUMN
from planner.relational.conditions import Guard
from planner.relational.cost import First, Rows, of_engine, of_joins, seen
from planner.relational.sql import slots_in
from runtime.scan.task import File
from spark_ext.joining import BUCKET_WINDOWS, Joining
from spark_ext.parquet import Refused, on_this_machine, relation_of
from spark_ext.types_seen import has_all_rows, is_cheap, peek_rows

FEW_BRANCHES, FEW_EVENTS = 2, 4  # that a plan has which auto takes
FEW_ROWS = 2000  # no engine takes long for them
FOOTERS = 8  # that are read
PACKED = 10  # so many times smaller than its values a source may be, where its rows cannot be counted


def compared_costs(joins: Joining) -> tuple[bool, str]:
    """Do joins cost more than the general engine, or may they? With the reason."""
    why = _structure(joins)
    if why is not None:
        return True, why
    if not hasattr(joins.source, "_jdf"):
        return True, "Spark Connect does not show how many rows there are"
    rows = _rows(joins)
    if rows.most < FEW_ROWS:
        return True, "the source is small, and a join has several stages"
    first = _first(joins)
    if first is None:
        return True, "the first rows of the source do not say what joins would cost"
    least, most = seen(first, rows, joins.query.window, BUCKET_WINDOWS + 1, joins.window is not None)
    made = joins.made
    engine, other = of_engine(made.branches, made.strategy, least), of_joins(made.branches, made.strategy, most)
    told = f"by the first {first.n:,} rows the general engine takes {engine:,.1f} seconds of a processor"
    return engine <= other, f"{told}, and joins take up to {other:,.1f}"


def _structure(joins: Joining) -> str | None:
    """What alone says that joins may cost too much."""
    branches = joins.made.branches
    events = max((len(branch.slots) for branch in branches), default=0)
    if len(branches) > FEW_BRANCHES or events > FEW_EVENTS:
        return f"a match has up to {events} events, in {len(branches)} ways, each a join of its own"
    return None if joins.groups else "without a key or a window every row would meet every other"


def _first(joins: Joining) -> First | None:
    """The first rows of the source, of each where there are several; None where they take long to find, or there are
    none."""
    n = peek_rows(joins.catalog)
    if not n:
        return None
    guards: list[Guard] = list(dict.fromkeys(slot.guard for slot in slots_in(joins.made.branches)))
    tests = [f"coalesce({guard_sql(guard, joins.query)}, FALSE) AS g{i}" for i, guard in enumerate(guards)]
    key = f"xxhash64({', '.join(joins.key_sql.values())})" if joins.keys else "0L"
    window = joins.query.window
    timed = window is not None and window.kind == "time"
    columns = [*tests, f"{key} AS k", f"{joins.clock() if timed else '0L'} AS t"]
    sources = len(joins.query.sources)
    found = []
    try:
        for source in range(sources):
            frame = joins.first_rows(n, f"{SOURCE_COLUMN} = {source}" if sources > 1 else "TRUE")
            if not is_cheap(frame._jdf.queryExecution().optimizedPlan()):
                return None
            found.append(frame.selectExpr(*columns).where("t IS NOT NULL").collect())
    except PySparkException:  # the query will say so itself, at its place
        return None
    rows = together([[tuple(row) for row in rows] for rows in found])
    if not rows:
        return None
    shares = {guard: sum(row[i] for row in rows) / len(rows) for i, guard in enumerate(guards)}
    some = sum(any(row[: len(guards)]) for row in rows) / len(rows)
    return First(shares, some, [row[-2] for row in rows], [row[-1] for row in rows])


def together(sources: Sequence[list[tuple[Any, ...]]]) -> list[tuple[Any, ...]]:
    """The rows of several sources as they lie in the stream, as far as all of them are known; their time is the last
    column. Rows of a source that are not in order stay so."""
    rows = [row for own in sources for row in own]
    if len(sources) == 1 or any(a[-1] > b[-1] for own in sources for a, b in pairwise(own)):
        return rows
    known = min((own[-1][-1] for own in sources if own), default=0)
    return sorted((row for row in rows if row[-1] <= known), key=itemgetter(-1))


def _rows(joins: Joining) -> Rows:
    """How many rows the source has: as footers say, or as many as its size allows. What conditions on a source leave is
    not known."""
    counted = _counted(joins)
    if counted is None:
        width = sum(8 if field.dataType.typeName() != "string" else 20 for field in joins.source.schema.fields)
        least = joins.size / max(1, width)
        counted = Rows(least, least * PACKED)
    whole = has_all_rows(joins.source._jdf.queryExecution().optimizedPlan())
    return counted if whole else replace(counted, least=0.0)


def _counted(joins: Joining) -> Rows | None:
    """By the footers of some of its files; None where it is not read from Parquet files that can be opened here."""
    source = joins.source
    if not on_this_machine(source.sparkSession):
        return None
    leaves = source._jdf.queryExecution().optimizedPlan().collectLeaves()
    files: list[File] = []
    most = 0
    try:
        for i in range(leaves.length()):
            own = relation_of(leaves.apply(i), source.sparkSession).files
            files += own
            most = max(most, len(own))  # sources are looked at one by one
        some = files[:: max(1, len(files) // FOOTERS)]
        rows = sum(pq.read_metadata(file.path).num_rows for file in some)
    except (Refused, Py4JError, OSError, pa.ArrowException):
        return None
    size = sum(file.size for file in some)
    n = rows * sum(file.size for file in files) / size if size else 0.0
    return Rows(n, n, most)
