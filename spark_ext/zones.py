"""Times of a result as the session's time zone shows them; collect gives those of this process's zone."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from typing import Any
from zoneinfo import ZoneInfo

from pyspark.sql import Row
from pyspark.sql.types import ArrayType, DataType, MapType, StructType, TimestampType

_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?(?::?(\d{2}))?")


def zone_of(name: str) -> datetime.tzinfo | None:
    """A zone by Spark's name of it, `Europe/Berlin`, `+02:00`, `GMT+2`, `Z`; None if it is not known here."""
    offset = _OFFSET.fullmatch(name)
    if offset is not None:
        hours, minutes, seconds = (int(part or 0) for part in offset.groups()[1:])
        sign = -1 if offset[1] == "-" else 1
        return datetime.timezone(sign * datetime.timedelta(hours=hours, minutes=minutes, seconds=seconds))
    try:
        return ZoneInfo("UTC" if name == "Z" else name)
    except (OSError, ValueError):  # ZoneInfoNotFoundError is a KeyError
        return None
    except KeyError:
        return None


def in_zone(rows: Sequence[Sequence[Any]], schema: StructType, zone: datetime.tzinfo) -> list[list[Any]]:
    """The rows, in which each TIMESTAMP, those in structs, arrays and maps too, is a time of the zone."""
    types = [field.dataType for field in schema.fields]
    return [[_in_zone(value, type, zone) for value, type in zip(row, types, strict=True)] for row in rows]


def _in_zone(value: Any, type: DataType, zone: datetime.tzinfo) -> Any:
    if value is None or not _has_times(type):
        return value
    match type:
        case TimestampType():
            return value.astimezone(zone)
        case ArrayType():
            return [_in_zone(inner, type.elementType, zone) for inner in value]
        case MapType():
            return {_in_zone(k, type.keyType, zone): _in_zone(v, type.valueType, zone) for k, v in value.items()}
        case StructType():
            return Row(*type.names)(*in_zone([value], type, zone)[0])
    return value


def _has_times(type: DataType) -> bool:
    match type:
        case ArrayType():
            return _has_times(type.elementType)
        case MapType():
            return _has_times(type.keyType) or _has_times(type.valueType)
        case StructType():
            return any(_has_times(field.dataType) for field in type.fields)
    return isinstance(type, TimestampType)
