"""What tests on Spark share: a session that speaks PATTERN, local tables, many queries in one job, matches as sets."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

import cersql

Bound = frozenset[tuple[str, tuple[int, ...]]]  # (variable, ids of its events, ascending), without empty ones


def taught(spark: SparkSession) -> SparkSession:
    """A session of the same Spark that speaks PATTERN and shares neither views, settings nor extensions with it."""
    jsession = getattr(spark._jvm, "org.apache.spark.sql.classic.SparkSession").builder().create()  # type: ignore[union-attr]
    own = cersql.enable(SparkSession(spark.sparkContext, jsession))
    own.conf.set("cersql.peekRows", "0")  # a look at the first rows makes each query longer
    return own


@contextmanager
def settings(spark: SparkSession, **values: object) -> Iterator[None]:
    """Settings for a while; `__` stands for a dot."""
    names = {name.replace("__", "."): str(value) for name, value in values.items()}
    before = {name: spark.conf.get(name, None) for name in names}
    for name, value in names.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            if old is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, old)


def local(spark: SparkSession, rows: Sequence[Sequence[Any]], schema: str | StructType) -> DataFrame:
    """A small DataFrame that lies in the plan itself, so that no job is needed to read it."""
    struct = StructType.fromDDL(schema) if isinstance(schema, str) else schema
    arrow = to_arrow_schema(struct, timezone="UTC")
    columns = [pa.array([row[i] for row in rows], field.type) for i, field in enumerate(arrow)]
    return spark.createDataFrame(pa.Table.from_arrays(columns, schema=arrow), schema=struct)


def view(spark: SparkSession, name: str, rows: Sequence[Sequence[Any]], schema: str | StructType) -> DataFrame:
    """The same as a temporary view."""
    df = local(spark, rows, schema)
    df.createOrReplaceTempView(f"`{name}`")
    return df


def bound(row: Mapping[str, Any], id: str = "id", without: Iterable[str] = ()) -> Bound:
    """The match in a row of RETURN *: the ids of each variable's events; other columns are left out."""
    found = []
    for name, value in row.items():
        if name in without or value is None:
            continue
        events = value if isinstance(value, list) else [value]
        if events and hasattr(events[0], "__getitem__") and not isinstance(events[0], str):
            found.append((name, tuple(sorted(event[id] for event in events))))
    return frozenset(found)


def matches(df: DataFrame, id: str = "id") -> list[Bound]:
    """The matches in the rows of a RETURN *, in some fixed order, so that lists compare like bags."""
    return sorted((bound(row.asDict(), id) for row in df.collect()), key=sorted)


def together(frames: Sequence[DataFrame], at_once: int = 12) -> list[list[dict[str, Any]]]:
    """The rows of many DataFrames as JSON objects, read in few jobs."""
    found: list[list[dict[str, Any]]] = [[] for _ in frames]
    everything = fn.to_json(fn.struct("*"), {"ignoreNullFields": "false"})
    tagged = [df.select(fn.lit(n).alias("n"), everything.alias("row")) for n, df in enumerate(frames)]
    for begin in range(0, len(tagged), at_once):
        for n, row in reduce(DataFrame.unionAll, tagged[begin : begin + at_once]).collect():
            found[n].append(json.loads(row))
    return found


@contextmanager
def patched(owner: Any, name: str, value: Callable[..., Any] | object) -> Iterator[None]:
    """owner.name = value for a while (where a fixture of pytest lives too long)."""
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)
