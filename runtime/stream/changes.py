"""What a stream cannot go on from: the state of another query, rows of other columns, a damaged state; as errors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa

from runtime.errors import CersqlError, ExecutionError


def stream_changed(old: str, new: str) -> ExecutionError:
    """The checkpoint is of another query; both as people wrote them."""
    return ExecutionError(
        "STREAM_CHANGED", old=old, new=new,
        hint="Start it with a new checkpoint. RETURN, HAVING and the names of variables may change; where only "
        "numbers differ, SET cersql.stream.buckets and cersql.stream.slabs to what they were (and cersql.stream.spread "
        "= false for a checkpoint from before there was this setting).",
    )  # fmt: skip


def stream_zone(old: str, new: str) -> ExecutionError:
    """The same query, whose conditions would now mean other times of day."""
    hint = f"SET spark.sql.session.timeZone = {old}, and start it again; or start it with a new checkpoint."
    return ExecutionError("STREAM_ZONE", old=old or "none", new=new or "none", hint=hint)


def other_columns(old: Sequence[tuple[str, str]], new: Sequence[tuple[str, str]]) -> ExecutionError:
    """Columns of our own are shown only where nothing else differs."""
    hint = "Start it with a new checkpoint, or bring the columns back into their old types in a subquery."
    shown = [[column for column in columns if not column[0].startswith("__cersql")] for columns in (old, new)]
    if shown[0] == shown[1]:
        shown = [list(old), list(new)]
    texts = [", ".join(f"{name} {type}".rstrip() for name, type in columns) for columns in shown]
    return ExecutionError("STREAM_COLUMNS", old=texts[0] or "none", new=texts[1] or "none", hint=hint)


@contextmanager
def readable() -> Iterator[None]:
    """What cannot be read of a state is damaged: an error that says so, not the reader's own."""
    try:
        yield
    except CersqlError:
        raise
    except Exception as error:
        hint = "Restore the checkpoint from a copy, or start with a new one, and with the rows from the beginning."
        raise ExecutionError("STREAM_DAMAGED", reason=f"{type(error).__name__}: {error}", hint=hint) from error


def typed(schema: pa.Schema) -> list[tuple[str, str]]:
    return [(field.name, sql_type(field.type)) for field in schema]


_SQL_TYPES = {
    "bool": "BOOLEAN", "int8": "TINYINT", "int16": "SMALLINT", "int32": "INT", "int64": "BIGINT", "float": "FLOAT",
    "double": "DOUBLE", "string": "STRING", "large_string": "STRING", "binary": "BINARY", "large_binary": "BINARY",
    "date32[day]": "DATE", "null": "VOID",
}  # fmt: skip


def sql_type(type: pa.DataType) -> str:
    """A type of Arrow's as Spark calls it: int64 is BIGINT."""
    if pa.types.is_timestamp(type):
        return "TIMESTAMP_NTZ" if type.tz is None else "TIMESTAMP"
    if pa.types.is_decimal(type):
        return f"DECIMAL({type.precision},{type.scale})"
    if pa.types.is_list(type) or pa.types.is_large_list(type):
        return f"ARRAY<{sql_type(type.value_type)}>"
    if pa.types.is_map(type):
        return f"MAP<{sql_type(type.key_type)},{sql_type(type.item_type)}>"
    if pa.types.is_struct(type):
        fields = (type.field(i) for i in range(type.num_fields))
        return f"STRUCT<{','.join(f'{field.name}:{sql_type(field.type)}' for field in fields)}>"
    return _SQL_TYPES.get(str(type), str(type).upper())
