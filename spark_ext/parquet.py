"""What Catalyst and footers say of Parquet files: the files of a relation, and what lies in their row groups."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import unquote, urlparse

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import DataType, StructField, StructType

from planner.refusal import Refusal
from runtime.arrays import IntArray
from runtime.partition.order import as_clock, combined
from runtime.scan.parts import in_unit
from runtime.scan.pruning import Bounds
from runtime.scan.reading import digest, open_parquet
from runtime.scan.task import File

# What Hadoop writes of a file, whose path it writes as it is.
_LISTED = re.compile(r"\{path=(.*?); isDirectory=false; length=(\d+);.*?; modification_time=(\d+);", re.DOTALL)
_PLAINLY = ("spark.sql.files.ignoreMissingFiles", "spark.sql.files.ignoreCorruptFiles",
            "spark.sql.parquet.int96TimestampConversion")  # fmt: skip
_CALENDAR_SINCE = b"3.1.0"  # the release of Spark since which dates and times are of one calendar, whatever the format
_LEGACY = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")


class Refused(Exception):
    """With the reason, as EXPLAIN says it."""


@dataclass(frozen=True)
class Relation:
    """A Parquet relation: its files, the folders that hold these alone (with a digest), what it calls its columns, and
    their types."""

    files: tuple[File, ...]
    folders: tuple[tuple[str, str], ...]
    types: Mapping[str, DataType]
    partitions: frozenset[str]


@dataclass(frozen=True)
class Groups:
    """The row groups of some files: int64 arrays of equal length. Times are in the unit of the clock."""

    file: IntArray
    group: IntArray
    n_rows: IntArray
    first: IntArray
    last: IntArray
    n_bytes: IntArray
    bounds: tuple[Mapping[str, Bounds], ...]

    @staticmethod
    def made(rows: Sequence[tuple[int, ...]], bounds: Sequence[Mapping[str, Bounds]]) -> Groups:
        """From a tuple for each, in the order of the fields."""
        file, group, n_rows, first, last, n_bytes = np.array(rows, np.int64).reshape(len(rows), 6).T
        return Groups(file, group, n_rows, first, last, n_bytes, tuple(bounds))

    def rows(self) -> list[tuple[int, ...]]:
        """What `made` takes."""
        arrays = (self.file, self.group, self.n_rows, self.first, self.last, self.n_bytes)
        return list(zip(*(array.tolist() for array in arrays), strict=True))

    def of(self, kept: Callable[[Mapping[str, Bounds]], bool]) -> Groups:
        """Those whose columns lie between such values."""
        chosen, rows = [k for k, known in enumerate(self.bounds) if kept(known)], self.rows()
        return Groups.made([rows[k] for k in chosen], [self.bounds[k] for k in chosen])


def joined(firsts: Sequence[int], parts: Sequence[Groups]) -> Groups:
    """The row groups of several relations. `firsts`: the number of the first file of each."""
    rows = [(file + first, *row) for first, groups in zip(firsts, parts, strict=True) for file, *row in groups.rows()]
    return Groups.made(rows, [known for groups in parts for known in groups.bounds])


# ---------------------------------------------------------------- what Catalyst says


def check_source(source: DataFrame) -> None:
    """Raises Refused where the leaves of the source show that it is no Parquet relation. That spares other sources the
    time in which Catalyst plans what a scan would ask."""
    leaves = source._jdf.queryExecution().optimizedPlan().collectLeaves()
    kinds = sorted({str(leaves.apply(i).nodeName()) for i in range(leaves.length())})
    if not all(kind.startswith("LogicalRelation") for kind in kinds):
        raise Refused(f"its source is no plain Parquet relation, but {', '.join(kinds)}")


def relation_of(node: Any, spark: SparkSession) -> Relation:
    """The relation that a node of Catalyst's plan is. Raises Refused if it is none, or read in a way of its own."""
    if not str(node.nodeName()).startswith("LogicalRelation"):
        raise Refused(f"its source is no plain Parquet relation, but {node.nodeName()}")
    try:
        relation = node.relation()
        is_parquet = str(relation.fileFormat().getClass().getSimpleName()) == "ParquetFileFormat"
    except Py4JError:
        is_parquet = False
    if not is_parquet:
        raise Refused("its source is no Parquet relation")
    if not str(spark.sparkContext.master).startswith("local"):
        raise Refused("workers on other machines may not have the files")
    options = {key.lower() for key in _keys(relation.options())}
    if options - {"path", "serialization.format", "mergeschema"}:
        raise Refused(f"its source has the options {', '.join(sorted(options))}")
    for setting in ("spark.sql.parquet.datetimeRebaseModeInRead", "spark.sql.parquet.int96RebaseModeInRead"):
        if str(spark.conf.get(setting)).upper() != "CORRECTED":
            raise Refused(f"{setting} is set")
    for setting in _PLAINLY:
        if str(spark.conf.get(setting)).lower() == "true":
            raise Refused(f"{setting} is set")
    schema = StructType.fromJson(json.loads(str(node.schema().json())))
    partitions = StructType.fromJson(json.loads(str(relation.partitionSchema().json()))).fields
    files = tuple(_files(relation, partitions, spark))
    roots = {unquote(urlparse(str(root.toUri().toString())).path) for root in all_of(relation.location().rootPaths())}
    names = [file.path for file in files]
    within = {root: [name for name in names if name.startswith(f"{root}/")] for root in roots - set(names)}
    folders = tuple((root, digest(found)) for root, found in sorted(within.items()))
    return Relation(files, folders, {f.name: f.dataType for f in schema.fields}, frozenset(f.name for f in partitions))


def _files(relation: Any, partitions: Sequence[StructField], spark: SparkSession) -> Iterator[File]:
    jvm: Any = spark._jvm
    nothing = getattr(getattr(jvm, "scala.collection.immutable.Nil$"), "MODULE$")
    for folder in all_of(relation.location().listFiles(nothing, nothing)):
        constants = tuple(_constant(folder.values(), i, field) for i, field in enumerate(partitions))
        files = folder.files()
        found = _LISTED.findall(str(files.toString()))  # to ask each file takes four trips to the JVM, each time
        if len(found) != files.length():
            raise Refused("Spark lists its files in another way")
        for path, size, modified in found:
            scheme, _, rest = path.partition(":")
            if scheme != "file":
                raise Refused(f"its files are reached by {scheme}:")
            yield File(rest, int(size), int(modified), constants)


def _constant(values: Any, i: int, field: StructField) -> tuple[str, Any, pa.DataType]:
    """The value of a partition column."""
    kind, type = to_arrow_type(field.dataType, timezone="UTC"), field.dataType.simpleString()
    if values.isNullAt(i):
        return field.name, None, kind
    if type == "string":
        return field.name, str(values.getUTF8String(i).toString()), kind
    if type == "bigint":
        return field.name, int(values.getLong(i)), kind
    if type in ("int", "date"):
        return field.name, int(values.getInt(i)), kind
    raise Refused(f"the partition column {field.name} is of the type {type}")


def _keys(options: Any) -> list[str]:
    return [str(key) for key in all_of(options.keys().toSeq())]


def all_of(items: Any) -> list[Any]:
    return [items.apply(i) for i in range(items.length())]


def instants_of(expression: Any) -> Iterator[int]:
    """The TIMESTAMP literals of an expression of Catalyst's, from left to right, in microseconds."""
    if expression.nodeName() == "Literal" and str(expression.dataType().typeName()) == "timestamp":
        value = expression.value()
        if value is not None:
            yield int(value)
    for child in all_of(expression.children()):
        yield from instants_of(child)


# ---------------------------------------------------------------- footers


def groups_of(relation: Relation, time: str, kinds: Mapping[str, pa.DataType]) -> Groups:
    """The row groups that have rows, with their times."""
    wanted = tuple(sorted((name, kind) for name, kind in kinds.items() if name not in relation.partitions))
    with ThreadPoolExecutor(8) as pool:
        read = list(pool.map(lambda file: _footer(file, time, wanted), relation.files))
    rows: list[tuple[int, ...]] = []
    bounds: list[Mapping[str, Bounds]] = []
    for number, found in enumerate(read):
        if isinstance(found, Refusal):
            raise Refused(found.reason)
        rows += [(number, *group) for group, _ in found]
        bounds += [known for _, known in found]
    return Groups.made(rows, bounds)


Footer = tuple[tuple[tuple[int, ...], Mapping[str, Bounds]], ...]
"""(row group, rows, first time, last time, bytes) of each row group that has rows, and what its columns lie between."""


@lru_cache(maxsize=4096)
def _footer(file: File, time: str, wanted: tuple[tuple[str, pa.DataType], ...]) -> Footer | Refusal:
    """What the footer says, or why the file is refused."""
    name_of = os.path.basename(file.path)
    try:
        with open_parquet(file.path) as opened:
            return _told(opened, name_of, time, wanted)
    except Refused as refused:
        return Refusal(str(refused))
    except (OSError, pa.ArrowException):
        return Refusal(f"the footer of {name_of} cannot be read")


def _told(opened: pq.ParquetFile, name_of: str, time: str, wanted: tuple[tuple[str, pa.DataType], ...]) -> Footer:
    metadata, schema = opened.metadata, opened.schema_arrow
    places = {metadata.schema.column(k).path: k for k in range(metadata.num_columns)}
    int96 = {name for name, k in places.items() if metadata.schema.column(k).physical_type == "INT96"}
    _check_calendar(metadata.metadata or {}, name_of)
    for name, kind in wanted:
        at = schema.get_all_field_indices(name)
        if len(at) != 1 or not _fits(schema.field(at[0]).type, kind, name in int96):
            raise Refused(f"{name} is {schema.field(at[0]).type if at else 'not there'} in {name_of}")
    found = []
    for k in range(metadata.num_row_groups):
        group = metadata.row_group(k)
        columns = {name: group.column(places[name]) for name, _ in wanted if name in places}  # others are nested
        if not group.num_rows:
            continue
        bounds = {name: made for name, column in columns.items()
                  if (made := _bounds(column.statistics, schema.field(name).type)) is not None}  # fmt: skip
        if time not in bounds or not columns[time].statistics.has_null_count:
            bounds[time] = _looked_at(opened, k, time)
        if bounds[time].has_null:
            raise Refused(f"{time} is NULL somewhere")
        size = sum(column.total_uncompressed_size for column in columns.values())
        found.append(((k, group.num_rows, bounds[time].least, bounds[time].greatest, size), bounds))
    return tuple(found)


def _check_calendar(told: Mapping[bytes, bytes], name_of: str) -> None:
    """As Spark decides it, by what its releases have written."""
    old = told.get(b"org.apache.spark.version", _CALENDAR_SINCE) < _CALENDAR_SINCE
    if old or any(key in told for key in _LEGACY):
        raise Refused(f"{name_of} has dates of the old calendar")


def _looked_at(opened: pq.ParquetFile, group: int, time: str) -> Bounds:
    """The times of a row group of which the footer does not tell them, as of INT96, which Spark writes unless told
    otherwise. Some ten nanoseconds a row; who asks remembers the answer."""
    column = combined(opened.read_row_group(group, columns=[time], use_threads=False).column(0))
    if column.null_count:
        return Bounds(0, 0, True, False)
    clock = as_clock(in_unit(column))
    return Bounds(int(clock.min()), int(clock.max()), False, False)


def _bounds(known: Any, kind: pa.DataType) -> Bounds | None:
    """A column's statistics in the form of constants: whole numbers, microseconds, days, floats, strings."""
    if known is None or not known.has_min_max:
        return None
    has_null = not known.has_null_count or known.null_count > 0
    if pa.types.is_integer(kind) or pa.types.is_date32(kind) or pa.types.is_timestamp(kind):
        unit = 1000 if pa.types.is_timestamp(kind) and kind.unit == "ms" else 1
        return Bounds(int(known.min_raw) * unit, int(known.max_raw) * unit, has_null, False)
    if pa.types.is_floating(kind):
        if known.min != known.min or known.max != known.max:  # old writers took NaN for the least and the greatest
            return None
        return Bounds(float(known.min), float(known.max), has_null, True)
    if pa.types.is_string(kind) and isinstance(known.min, str):
        return Bounds(known.min, known.max, has_null, False)
    return None


def _fits(there: pa.DataType, kind: pa.DataType, is_int96: bool) -> bool:
    """Does Arrow read it as the values that Spark reads?"""
    if is_int96:
        return bool(pa.types.is_timestamp(kind) and kind.tz is not None)
    if pa.types.is_timestamp(there) and pa.types.is_timestamp(kind):
        return there.unit in ("us", "ms") and (there.tz is None) == (kind.tz is None)
    return bool(there.equals(kind))
