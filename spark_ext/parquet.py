"""What Catalyst and footers say of Parquet files: the files of a relation, and what lies in their row groups."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlparse

import numpy as np
import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import DataType, StructField, StructType

from runtime.arrays import IntArray
from runtime.scan.footers import Footer, Wanted, footer_of
from runtime.scan.pruning import Bounds
from runtime.scan.reading import digest
from runtime.scan.task import File
from spark_ext.shipping import for_worker
from spark_ext.worker import footers

# What Hadoop writes of a file, whose path it writes as it is.
_LISTED = re.compile(r"\{path=(.*?); isDirectory=false; length=(\d+);.*?; modification_time=(\d+);", re.DOTALL)
_PLAINLY = ("spark.sql.files.ignoreMissingFiles", "spark.sql.files.ignoreCorruptFiles",
            "spark.sql.parquet.int96TimestampConversion")  # fmt: skip


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
    return Relation(files, folders, _types(schema), frozenset(f.name for f in partitions))


def _types(schema: StructType) -> Mapping[str, DataType]:
    """The types of columns by name, and of the fields of structs by path, unless a name has a dot."""
    types = {field.name: field.dataType for field in schema.fields}
    within = dict(_nested(schema, ""))
    return types | within if not any("." in name for name in types) else types


def _nested(struct: StructType, before: str) -> Iterator[tuple[str, DataType]]:
    for field in struct.fields:
        if "." not in field.name:
            yield before + field.name, field.dataType
            if isinstance(field.dataType, StructType):
                yield from _nested(field.dataType, f"{before}{field.name}.")


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

MOST_KNOWN = 4096  # footers that are remembered
_known: dict[tuple[File, str, Wanted], Footer | str] = {}


def groups_of(relation: Relation, time: str, kinds: Mapping[str, pa.DataType], spark: SparkSession) -> Groups:
    """The row groups that have rows, with their times."""
    wanted = tuple(sorted((name, kind) for name, kind in kinds.items() if name not in relation.partitions))
    keys = [(file, time, wanted) for file in relation.files]
    missing = [file for file, key in zip(relation.files, keys, strict=True) if key not in _known]
    for file, found in zip(missing, _footers(missing, time, wanted, spark), strict=True):
        _known[file, time, wanted] = found
    read = [_known[key] for key in keys]
    while len(_known) > MOST_KNOWN:
        del _known[next(iter(_known))]
    rows: list[tuple[int, ...]] = []
    bounds: list[Mapping[str, Bounds]] = []
    for number, found in enumerate(read):
        if isinstance(found, str):
            raise Refused(found)
        rows += [(number, *group) for group, _ in found]
        bounds += [known for _, known in found]
    return Groups.made(rows, bounds)


def on_this_machine(spark: SparkSession) -> bool:
    """Are the workers where the driver is, so that it can open what they can?"""
    return re.match(r"local(\[|$)", str(spark.sparkContext.master)) is not None


def _footers(files: Sequence[File], time: str, wanted: Wanted, spark: SparkSession) -> list[Footer | str]:
    """Read here where the workers are on this machine; else by a job: the files are where the workers are."""
    if not files:
        return []
    if on_this_machine(spark):
        with ThreadPoolExecutor(8) as pool:
            return list(pool.map(lambda file: footer_of(file, time, wanted), files))
    tasks = min(len(files), 4 * int(spark.sparkContext.defaultParallelism))
    numbers = spark.range(0, len(files), 1, tasks)
    rows = numbers.mapInArrow(for_worker(footers, files, time, wanted), "file bigint, footer binary").collect()
    return [pickle.loads(row["footer"]) for row in sorted(rows)]
