"""The schemas that cersql.compile takes: for each table its columns and their Spark types, or the same as DDL."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping

from planner.query import Column

Schema = Mapping[str, str] | str
FORM = "{'trades': {'ts': 'timestamp', 'price': 'double'}} or {'trades': 'ts TIMESTAMP, price DOUBLE'}"

# Other names of types, by those that Spark shows.
_NAMES = {
    "byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint", "real": "float", "dec": "decimal",
    "numeric": "decimal", "timestamp_ltz": "timestamp",
}  # fmt: skip
_KNOWN = frozenset(
    "boolean tinyint smallint int bigint float double decimal string char varchar binary date timestamp timestamp_ntz "
    "time interval void null array map struct variant geometry geography".split()
)
_COLUMN = re.compile(r"\s*(?:`((?:[^`]|``)+)`|([^\W\d]\w*))(?:\s*:\s*|\s+)(\S.*)", re.DOTALL)
_AFTER_TYPE = re.compile(r"""\s+(?:NOT\s+NULL|COMMENT\s+(?:'[^']*'|"[^"]*"))""", re.IGNORECASE)


def check(schemas: object) -> None:
    """Raises TypeError for what is no mapping of tables."""
    if not isinstance(schemas, Mapping):
        raise TypeError(f"schemas is a {type(schemas).__name__}, expected {FORM}")
    for table, schema in schemas.items():
        if not isinstance(schema, str | Mapping):
            raise TypeError(f"the schema of {table} is a {type(schema).__name__}, expected {FORM}")
        columns_of(table, schema)


def columns_of(table: str, schema: Schema) -> tuple[Column, ...]:
    """The columns of a table. Raises TypeError, for DDL ValueError."""
    pairs = _ddl(table, schema) if isinstance(schema, str) else schema.items()
    columns = []
    for name, type_ in pairs:
        if not isinstance(name, str) or not isinstance(type_, str):
            raise TypeError(f"a column of {table} is {name!r}: {type_!r}, expected {FORM}")
        columns.append(Column(name, _type(type_)))
    return tuple(columns)


def _type(written: str) -> str:
    """A type as Spark shows it, as far as names go."""
    text = re.sub(r"\s*([<>:,()])\s*", r"\1", " ".join(written.lower().split()))
    name, opening, arguments = text.partition("(")
    name = _NAMES.get(name, name)
    first = re.match(r"\w*", name)
    if first is None or first[0] not in _KNOWN:
        near = difflib.get_close_matches(name, _KNOWN | _NAMES.keys(), 1)
        raise ValueError(f"{written!r} is no type of Spark's{f'; did you mean {near[0]}?' if near else ''}")
    return "decimal(10,0)" if text in ("decimal", "dec", "numeric") else f"{name}{opening}{arguments}"


def _ddl(table: str, text: str) -> Iterator[tuple[str, str]]:
    for part in _items(_AFTER_TYPE.sub("", text)):
        found = _COLUMN.fullmatch(part)
        if found is None:
            raise ValueError(f"{part.strip()!r} in the schema of {table} is no column with a type, expected {FORM}")
        quoted, plain, type_ = found.groups()
        yield plain or quoted.replace("``", "`"), type_.strip()


def _items(text: str) -> Iterator[str]:
    """The text between the commas outside of brackets and back-ticks."""
    depth, quoted, start = 0, False, 0
    for at, letter in enumerate(text):
        quoted ^= letter == "`"
        if quoted:
            continue
        depth += (letter in "<(") - (letter in ">)")
        if letter == "," and depth == 0:
            yield text[start:at]
            start = at + 1
    yield text[start:]
