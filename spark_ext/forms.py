"""Values in the form in which they are compared: keys that hash alike, terms, the clock of windows."""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql.types import ArrayType, DataType, MapType, StructType, VariantType

from planner.sql import is_collated, quote
from spark_ext import collations

_WIDER = {"tinyint": ("smallint", "int", "bigint", "double"), "smallint": ("int", "bigint", "double"),
          "int": ("bigint", "double"), "float": ("double",)}  # fmt: skip


def hashed_alike(spark: SparkSession, sql: str, type: str) -> str:
    """A key such that equal values, as GROUP BY sees them, hash alike."""
    if type == "double":
        return f"{sql} + 0.0D"
    if type == "float":
        return f"{sql} + CAST(0 AS FLOAT)"
    return collations.key(spark, sql) if is_collated(type) else sql


def safe_casts(name: str, type: DataType) -> list[str]:
    """Casts of a column that no value makes fail, in upper case: to the type that it has, and to wider numbers."""
    own = type.simpleString()
    return [f"CAST({quote(name)} AS {wider})".upper() for wider in (own, *_WIDER.get(own, ()))]


def term_sql(spark: SparkSession, sql: str, type: str) -> str:
    """An attribute that is compared, in the type in which it is; equal under a collation is equal as a key."""
    cast = f"CAST({sql} AS {type})" if type else f"({sql})"
    return collations.key(spark, cast) if is_collated(type) else cast


def clock_sql(column: str, types: dict[str, DataType]) -> str:
    """The ORDER BY column as the whole number that windows are measured in."""
    name, kind = quote(column), types[column].simpleString()
    if kind == "timestamp":
        return f"unix_micros({name})"
    if kind == "timestamp_ntz":
        # Its wall clock read as UTC: a cast would go through the session's zone, which has gaps.
        parts = ", ".join(
            f"extract({part} FROM {name})" for part in ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")
        )
        return f"unix_micros(make_timestamp_ltz({parts}, 'UTC'))"
    if kind == "date":
        return f"CAST(unix_date({name}) AS BIGINT)"
    if kind.startswith("decimal"):
        scale = int(kind.split(",")[1].rstrip(")"))
        return f"CAST({name} * {10**scale}BD AS BIGINT)"
    return f"CAST({name} AS BIGINT)"


def comparable(type: DataType) -> bool:
    """Can its values be put in order?"""
    if isinstance(type, MapType | VariantType):
        return False
    if isinstance(type, ArrayType):
        return comparable(type.elementType)
    if isinstance(type, StructType):
        return all(comparable(field.dataType) for field in type.fields)
    return True
