"""What footers of Parquet files say: which row groups there are, and what their columns lie between; or why a file is
read through Spark."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from runtime.partition.order import as_clock, combined
from runtime.scan.parts import in_unit
from runtime.scan.pruning import Bounds
from runtime.scan.reading import open_parquet
from runtime.scan.task import File

_CALENDAR_SINCE = b"3.1.0"  # the release of Spark since which dates and times are of one calendar, whatever the format
_LEGACY = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")

Wanted = tuple[tuple[str, pa.DataType], ...]
"""The columns that are read, with the Arrow types in which Spark sends them."""

Footer = tuple[tuple[tuple[int, ...], Mapping[str, Bounds]], ...]
"""(row group, rows, first time, last time, bytes) of each row group that has rows, and what its columns lie between."""


class _Unfit(Exception):
    """Why a file is not read here."""


def footer_of(file: File, time: str, wanted: Wanted) -> Footer | str:
    """What the footer says, or why the file is refused."""
    name_of = os.path.basename(file.path)
    try:
        with open_parquet(file.path) as opened:
            return _told(opened, name_of, time, wanted)
    except _Unfit as unfit:
        return str(unfit)
    except (OSError, pa.ArrowException):
        return f"the footer of {name_of} cannot be read"


def _told(opened: pq.ParquetFile, name_of: str, time: str, wanted: Wanted) -> Footer:
    metadata, schema = opened.metadata, opened.schema_arrow
    places = {metadata.schema.column(k).path: k for k in range(metadata.num_columns)}
    int96 = {name for name, k in places.items() if metadata.schema.column(k).physical_type == "INT96"}
    _check_calendar(metadata.metadata or {}, name_of)
    kinds = {name: _type_of(schema, name) for name, _ in wanted}
    for name, kind in wanted:
        there = kinds[name]
        if there is None or not _fits(there, kind, name in int96):
            raise _Unfit(f"{name} is {there or 'not there'} in {name_of}")
    found = []
    for k in range(metadata.num_row_groups):
        group = metadata.row_group(k)
        columns = {name: group.column(places[name]) for name, _ in wanted if name in places}  # others are nested
        if not group.num_rows:
            continue
        bounds = {name: made for name, column in columns.items()
                  if (made := _bounds(column.statistics, kinds[name])) is not None}  # fmt: skip
        if time not in bounds or not columns[time].statistics.has_null_count:
            bounds[time] = _looked_at(opened, k, time)
        if bounds[time].has_null:
            raise _Unfit(f"{time} is NULL somewhere")
        size = sum(column.total_uncompressed_size for column in columns.values())
        found.append(((k, group.num_rows, bounds[time].least, bounds[time].greatest, size), bounds))
    return tuple(found)


def _type_of(schema: pa.Schema, name: str) -> pa.DataType | None:
    """Of a column, or of a field of a struct by its path; None where there is none, or several."""
    if len(schema.get_all_field_indices(name)) == 1:
        return schema.field(name).type
    first, *path = name.split(".")
    type = schema.field(first).type if path and len(schema.get_all_field_indices(first)) == 1 else None
    for field in path:
        if type is None or not pa.types.is_struct(type) or len(type.get_all_field_indices(field)) != 1:
            return None
        type = type.field(field).type
    return type


def _check_calendar(told: Mapping[bytes, bytes], name_of: str) -> None:
    """As Spark decides it, by what its releases have written."""
    old = told.get(b"org.apache.spark.version", _CALENDAR_SINCE) < _CALENDAR_SINCE
    if old or any(key in told for key in _LEGACY):
        raise _Unfit(f"{name_of} has dates of the old calendar")


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
    if pa.types.is_struct(there) and pa.types.is_struct(kind):
        mine, its = list(there), list(kind)
        return [f.name for f in mine] == [f.name for f in its] and all(map(_alike, mine, its))
    if pa.types.is_list(there) and pa.types.is_list(kind):
        return _alike(there.value_field, kind.value_field)
    if pa.types.is_map(there) and pa.types.is_map(kind):
        return _alike(there.key_field, kind.key_field) and _alike(there.item_field, kind.item_field)
    return bool(there.equals(kind))


def _alike(there: pa.Field, kind: pa.Field) -> bool:
    """What is nested is the same, but that it may be known not to be NULL; times are not converted there."""
    plain = not pa.types.is_timestamp(there.type) or there.type.equals(kind.type)
    return plain and _fits(there.type, kind.type, is_int96=False)
