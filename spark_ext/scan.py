"""Whether a query can read its Parquet files by itself, and how: no row goes through the JVM, nothing is shuffled.

Catalyst says what the source is: its optimized plan of the columns and conditions that the engine needs is a projection
of a Parquet relation, perhaps through a filter, or the query is refused and reads through Spark. What conditions mean
is read from that plan (planner.scan). Footers say which row groups hold which times; stretches of time that follow each
other become tasks, which read the row groups that touch them and, before them, what a match can reach back to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import StructType, _parse_datatype_json_string

from planner.layout import can_be_sliced
from planner.physical import PhysicalPlan
from planner.refusal import Refusal
from planner.sql import quote
from runtime.arrays import IntArray
from runtime.program import WORD_BITS
from runtime.scan.conditions import And, Test, columns_of
from runtime.scan.pruning import Bounds, may_hold
from runtime.scan.reading import constant
from runtime.scan.task import File, Scan, Source, Stretch
from runtime.scan.truth import Rows
from runtime.task import Task
from spark_ext.errors import SparkError
from spark_ext.parquet import (
    Groups,
    Refused,
    Relation,
    all_of,
    check_source,
    groups_of,
    instants_of,
    joined,
    relation_of,
)
from spark_ext.shipping import for_worker
from spark_ext.worker import scanned

SETTING = "cersql.scan"  # auto, parquet or spark
MOST_READ = 1.5  # so often the rows are read at the most, for stretches overlap where files do
MOST_HELD = 1 << 30  # bytes of a stretch, by the footers
_UTC = ("UTC", "Z", "Etc/UTC", "+00:00")
_ZEROS = ("0.0D", "CAST('0.0' AS FLOAT)", "CAST(0.0 AS FLOAT)")
_WIDER = {"byte": ("short", "integer", "long", "double"), "short": ("integer", "long", "double"),
          "integer": ("long", "double"), "float": ("double",)}  # fmt: skip
_CLOCKS = ("timestamp", "timestamp_ntz", "date", "tinyint", "smallint", "int", "bigint")


@dataclass(frozen=True)
class Wanted:
    """What a query reads of its source: columns (name: SQL), conditions (SQL), and where tasks may be cut.

    `reach`: how far before a stretch a match that ends in it can begin, in the unit of the clock (`rows`: in rows);
    None: nothing may be cut.
    """

    source: DataFrame
    columns: Mapping[str, str]
    guards: Sequence[str]
    time: str
    reach: int | None
    rows: int | None


def setting(spark: SparkSession) -> str:
    written = str(spark.conf.get(SETTING, None) or "auto").lower()
    if written not in ("auto", "parquet", "spark"):
        raise SparkError("SETTING", name=SETTING, value=written, expected="auto, parquet or spark")
    return written


def shown(found: Scan | Refusal) -> str:
    """A line of EXPLAIN."""
    if isinstance(found, Refusal):
        return f"scan: spark, since {found}"
    n, groups = len(found.stretches), {group for stretch in found.stretches for group in stretch.groups}
    return f"scan: parquet, {len(groups)} row groups of {len(found.files)} files in {n} tasks, in place of the shuffle"


def reach_of(plan: PhysicalPlan) -> tuple[int | None, int | None] | None:
    """How far a match reaches back: (time, rows); (None, None): one task must read all; None: not by stretches."""
    query, window = plan.query, plan.query.window
    sliced = plan.later is None and can_be_sliced(query)
    if plan.layout == "slices" or (plan.layout == "keys" and sliced):
        if window is None or window.kind != "time" or not isinstance(window.size, int) or window.size >= 1 << 61:
            return None
        return int(window.size), None
    if plan.layout == "ranges" and plan.span is not None:
        return None, plan.span - 1
    return None if plan.layout == "keys" else (None, None)


def scan_of(plan: PhysicalPlan, wanted: Wanted, task: Task, n: int) -> Scan | Refusal:
    """The scan of a query in at most about n tasks, or why its rows come through Spark."""
    try:
        return _Planner(plan, wanted, task, n).scan()
    except Refused as refused:
        return Refusal(str(refused))
    except Py4JError:
        return Refusal("Spark does not show how it plans its source")


def frame(scan: Scan, spark: SparkSession, schema: StructType) -> DataFrame:
    """The matches (or counts) of a scan."""
    n = len(scan.stretches)
    return spark.range(0, n, 1, max(1, n)).mapInArrow(for_worker(scanned, scan), schema)


def _with_rows(relation: Relation, filter_: Test | None) -> Iterator[File]:
    """The files of which the partition columns do not say that no row passes the filter."""
    parts = () if filter_ is None else filter_.parts if isinstance(filter_, And) else (filter_,)
    own = [part for part in parts if columns_of(part) <= relation.partitions]
    for file in relation.files:
        row = Rows({name: constant(value, kind, 1) for name, value, kind in file.constants}, 1)
        if all(row.truth(part).true[0] for part in own):
            yield file


class _Column(NamedTuple):
    """A column of the task: of a column of the files, or a constant `value`. `kind`: as Spark sends it."""

    name: str
    of: str | None
    value: Any
    kind: pa.DataType

    @property
    def place(self) -> str:
        """Its name in the files, or among their constants."""
        return f"__cersql_constant {self.name}" if self.of is None else self.of


class _Part(NamedTuple):
    """What is known of one source."""

    source: Source
    files: tuple[File, ...]
    folders: tuple[tuple[str, str], ...]
    groups: Groups


def _read_through(items: list[Any], below: list[Any], n_columns: int) -> list[Any]:
    """The items of a projection over another one. Conditions may read what is a column below, too."""
    made = {int(item.exprId().id()): item for item in below}

    def of(item: Any) -> Any:
        while item.nodeName() == "Alias":
            item = item.child()
        return made.get(int(item.exprId().id()), item) if item.nodeName() == "AttributeReference" else item

    for item in items[n_columns:]:
        for read in all_of(item.references().toSeq()):
            if made[int(read.exprId().id())].nodeName() != "AttributeReference":
                raise Refused(f"a condition reads what is computed: {item.sql()[:80]}")
    return [*(of(item) for item in items[:n_columns]), *items[n_columns:]]


def _value(literal: Any, name: str) -> bool | int | float | str | None:
    """What stands in all rows, where Arrow can make it of a plain value."""
    value, type = literal.value(), str(literal.dataType().typeName())
    if value is None:
        return None
    if type not in ("boolean", "integer", "long", "double", "string"):
        raise Refused(f"{name} is a {type} of the query")
    return str(value.toString()) if type == "string" else value


class _Planner:
    def __init__(self, plan: PhysicalPlan, wanted: Wanted, task: Task, n: int) -> None:
        self._plan, self._wanted, self._task, self._n = plan, wanted, task, n
        self._spark = wanted.source.sparkSession
        self._zone = str(self._spark.conf.get("spark.sql.session.timeZone"))

    def scan(self) -> Scan:
        plan, wanted = self._plan, self._wanted
        check_source(wanted.source)
        if len(plan.guards) > WORD_BITS:
            raise Refused(f"more than {WORD_BITS} conditions")
        if plan.tabulated or plan.query.links:
            raise Refused("Spark joins rows for it")
        parts = [self._part(node, number) for number, node in enumerate(self._optimized())]
        if len({tuple((name, kind) for name, _, kind in part.source.columns) for part in parts}) > 1:
            raise Refused("a column has several types")
        if wanted.rows is not None and any(part.source.filter is not None for part in parts):
            # How many rows a group has is not known before it is read.
            self._wanted = replace(wanted, reach=None, rows=None)
        files = tuple(file for part in parts for file in part.files)
        before = [sum(len(part.files) for part in parts[:k]) for k in range(len(parts))]
        return Scan(
            task=replace(self._task, slices=None, position=None, symbol_bits=None, presorted=False),
            sources=tuple(part.source for part in parts),
            files=files,
            folders=tuple(dict.fromkeys(folder for part in parts for folder in part.folders)),
            stretches=tuple(self._stretches(joined(before, [part.groups for part in parts]))),
            n_events=plan.n_event_guards,
            drops=plan.drops,
        )

    def _optimized(self) -> list[Any]:
        """What Catalyst makes of each source: a projection of all that is read of it."""
        wanted = self._wanted
        columns = [f"{sql} AS {quote(name)}" for name, sql in wanted.columns.items()]
        asked = [f"({sql}) AS __cersql_guard{i}" for i, sql in enumerate(wanted.guards)]
        node = wanted.source.selectExpr(*columns, *asked)._jdf.queryExecution().optimizedPlan()
        return all_of(node.children()) if node.nodeName() == "Union" else [node]

    def _part(self, node: Any, number: int) -> _Part:
        """One source: the projection with its filter, the relation below it, and its row groups that can matter."""
        plain, filter_ = node.nodeName() != "Project", None
        items = all_of(node.output() if plain else node.projectList())
        node = node if plain else node.child()
        while node.nodeName() == "Project":  # it makes once what the one above reads more often
            items, node = _read_through(items, all_of(node.projectList()), len(self._wanted.columns)), node.child()
        if node.nodeName() == "Filter":
            filter_, node = node.condition(), node.children().apply(0)
        relation, names = relation_of(node, self._spark), list(self._wanted.columns)
        read = [self._column(item, name, relation) for name, item in zip(names, items, strict=False)]
        types = {name: kind.simpleString() for name, kind in relation.types.items()}
        guards = tuple(self._condition(item, types) for item in items[len(names) :])
        own = None if filter_ is None else self._condition(filter_, types)
        time = next(column.of for column in read if column.name == self._wanted.time)
        if time is None or types[time] not in _CLOCKS or time in relation.partitions:
            raise Refused(f"the time {time} is of the type {types.get(time or '')}")
        asked = [test for test in (*guards, own) if test is not None]
        used = {column.of for column in read if column.of is not None}.union(*map(columns_of, asked))
        arrow = {name: to_arrow_type(relation.types[name], timezone="UTC") for name in used}
        constants = tuple((column.place, column.value, column.kind) for column in read if column.of is None)
        files = tuple(_with_rows(relation, own))
        groups = groups_of(replace(relation, files=files), time, arrow, self._spark)
        columns = tuple((column.name, column.place, column.kind) for column in read)
        plain = {name for name in used - relation.partitions if "." not in name}
        strings = tuple(sorted(name for name in plain if pa.types.is_string(arrow[name])))
        return _Part(
            Source(columns, time, own, guards, strings),
            tuple(replace(file, constants=file.constants + constants, source=number) for file in files),
            relation.folders,
            groups.of(lambda known: self._matters(known, guards, own)),
        )

    def _column(self, item: Any, name: str, relation: Relation) -> _Column:
        """What an item is: a column of the files, perhaps as a wider number, or the same for all rows."""
        while item.nodeName() == "Alias":
            item = item.child()
        kind = to_arrow_type(_parse_datatype_json_string(str(item.dataType().json())), timezone="UTC")
        if item.nodeName() == "Literal":
            return _Column(name, None, _value(item, name), kind)
        if name in self._task.keys and item.nodeName() == "Add" and str(item.right().sql()) in _ZEROS:
            item = item.left()  # -0.0 and NaN are compared as Spark compares them, anyway
        wide = item.nodeName() == "Cast"
        if wide and str(item.dataType().typeName()) in _WIDER.get(str(item.child().dataType().typeName()), ()):
            item = item.child()
        if item.nodeName() != "AttributeReference" or (wide and name == self._wanted.time):
            what = "what is compared" if name.startswith("__cersql") else name
            raise Refused(f"{what} is computed: {item.sql()[:80]}")
        if str(item.name()) not in relation.types:
            raise Refused(f"{item.name()} is no column of the files")
        return _Column(name, str(item.name()), None, kind)

    def _condition(self, item: Any, types: Mapping[str, str]) -> Test:
        while item.nodeName() == "Alias":
            item = item.child()
        from planner.scan import condition  # sqlglot: a tenth of a second, which other queries need not wait for

        sql, references = str(item.sql()), {str(a.name()) for a in all_of(item.references().toSeq())}
        # A name of a table before a column looks like a struct before its field; these are the columns.
        types = {name: type for name, type in types.items() if references & {name, name.split(".")[0]}}
        instants = None if self._zone in _UTC or "TIMESTAMP '" not in sql else list(instants_of(item))
        made = condition(sql, types, instants)
        if isinstance(made, Refusal):
            raise Refused(made.reason)
        if references != {name if name in references else name.split(".")[0] for name in columns_of(made)}:
            raise Refused(f"a condition reads parts of {', '.join(sorted(references))}")
        return made

    def _matters(self, known: Mapping[str, Bounds], guards: Sequence[Test], own: Test | None) -> bool:
        """Can a row group have rows that are looked at, by what its columns lie between?"""
        if own is not None and not may_hold(own, known):
            return False
        return not self._plan.drops or any(may_hold(guard, known) for guard in guards[: self._plan.n_event_guards])

    # ------------------------------------------------------------ stretches

    def _stretches(self, groups: Groups) -> Iterator[Stretch]:
        """The tasks. Raises where the files are in no order of time, so that each task would read most of them."""
        if not len(groups.file):
            return
        wanted = self._wanted
        one = wanted.reach is None and wanted.rows is None
        n_bytes = int(groups.n_bytes.sum())
        least = 1 if one else max(self._n, -(-n_bytes // MOST_HELD))
        for n in _halving(least if one else max(least, -(-n_bytes // self._most_bytes()))):
            made = list(_cut(groups, n, wanted.reach, wanted.rows))
            read = sum(int(groups.n_rows[chosen].sum()) for chosen, _, _, _ in made)
            if read <= MOST_READ * int(groups.n_rows.sum()):
                break
        if 2 * len(made) < min(least, len(groups.file)) and not one:
            raise Refused("the files are not in the order of time")
        if max(int(groups.n_bytes[chosen].sum()) for chosen, _, _, _ in made) > MOST_HELD:
            raise Refused("a task would read too much at once")
        for chosen, reads_from, begin, end in made:
            pairs = zip(groups.file[chosen].tolist(), groups.group[chosen].tolist(), strict=True)
            yield Stretch(tuple(pairs), tuple(groups.first[chosen].tolist()), begin, end, reads_from)

    def _most_bytes(self) -> int:
        """What Spark gives one of its own tasks to read at the most."""
        session: Any = self._spark
        return max(1, int(session._jsparkSession.sessionState().conf().filesMaxPartitionBytes()))


def _halving(n: int) -> Iterator[int]:
    while n > 1:
        yield n
        n //= 2
    yield 1


def _cut(
    groups: Groups, n: int, reach: int | None, rows: int | None
) -> Iterator[tuple[IntArray, int | None, int | None, int | None]]:
    """About n stretches: (row groups, read from, begin, end)."""
    by_first = np.argsort(groups.first, kind="stable")
    before = np.cumsum(groups.n_rows[by_first]) - groups.n_rows[by_first]
    total = int(groups.n_rows.sum())
    starts = np.searchsorted(before, np.arange(1, n) * total / n)
    bounds = np.unique(groups.first[by_first][starts[starts < len(before)]])
    bounds = bounds[bounds > groups.first.min()]
    edges: list[int | None] = [None, *bounds.tolist(), None]
    for begin, end in pairwise(edges):
        reads_from = begin
        if begin is not None and reach is not None:
            reads_from = begin - reach
        elif begin is not None and rows:
            reads_from = _rows_before(groups, begin, rows)
        chosen = np.ones(len(groups.file), np.bool_)
        if reads_from is not None:
            chosen &= groups.last >= reads_from
        if end is not None:
            chosen &= groups.first < end
        yield by_first[chosen[by_first]], reads_from, begin, end


def _rows_before(groups: Groups, begin: int, rows: int) -> int | None:
    """A time such that so many rows, or all, lie between it and `begin`."""
    whole = np.flatnonzero(groups.last < begin)
    latest = whole[np.argsort(groups.first[whole], kind="stable")[::-1]]
    enough = np.searchsorted(np.cumsum(groups.n_rows[latest]), rows)
    return int(groups.first[latest[: enough + 1]].min()) if enough < len(latest) else None
