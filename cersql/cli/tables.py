"""The tables of a command: files that become temporary views, and schemas that stand for tables without data."""

from __future__ import annotations

import argparse
import copy
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cersql.binding.schemas import columns_of
from cersql.cli.errors import CommandError, UsageError
from cersql.cli.reports import problem_of
from cersql.errors import suggestion
from planner.sql import quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORMATS = {
    ".csv": "csv", ".tsv": "csv", ".parquet": "parquet", ".json": "json", ".jsonl": "json", ".ndjson": "json",
}  # fmt: skip
_PACKED = (".gz", ".bz2", ".zst", ".snappy")
_GLOB = re.compile(r"([\\*?\[\]{}])")  # characters that Spark does not take for themselves in the name of a file


class TableFile(NamedTuple):
    """A table that is a file, or a folder of files of one format."""

    name: str
    path: Path


@dataclass
class Loaded:
    """The tables as one session sees them; a second session needs no second look into the files."""

    tables: tuple[TableFile, ...]
    schemas: dict[str, Any]
    empty: dict[str, str] = field(default_factory=dict)  # tables without data, and their columns
    declared: set[str] = field(default_factory=set)  # those whose columns have types by --schema
    notes: list[str] = field(default_factory=list)  # what is to be said of them

    def into(self, spark: SparkSession) -> None:
        for table in self.tables:
            frame = _frame(spark, table, self.schemas[table.name], strict=table.name in self.declared)
            frame.createOrReplaceTempView(quote(table.name))
        for name, ddl in self.empty.items():
            spark.createDataFrame([], ddl).createOrReplaceTempView(quote(name))


def load(spark: SparkSession, tables: Iterable[tuple[str, Path]], schemas: Iterable[tuple[str, str]] = ()) -> Loaded:
    """Make each file a temporary view, and of a schema without a file a table of no rows. Raises CommandError, which
    names the table."""
    declared = {name.casefold(): (name, ddl) for name, ddl in schemas}
    loaded = Loaded(tuple(TableFile(*table) for table in tables), {})
    for table in loaded.tables:
        _, ddl = declared.pop(table.name.casefold(), (None, None))
        try:
            frame = _frame(spark, table)
            if ddl is not None:
                loaded.declared.add(table.name)
                frame = _frame(spark, table, _typed(spark, table, frame, ddl), strict=True)
        except CommandError:
            raise
        except Exception as error:
            _check_found(table)
            raise CommandError(f"the table {table.name}: {problem_of(error).message}") from None
        if not frame.columns:
            _check_found(table)
        frame.createOrReplaceTempView(quote(table.name))
        loaded.schemas[table.name] = frame.schema
        if ddl is None and _has_header_alone(table, frame):
            loaded.notes.append(
                f"the table {table.name}: {table.path} has a header and no rows, so that all its columns are taken for "
                f"STRING; give their types by --schema {table.name}='{frame.columns[0]} TYPE, …'"
            )
    for name, ddl in declared.values():
        try:
            spark.createDataFrame([], ddl).createOrReplaceTempView(quote(name))
        except Exception as error:
            raise CommandError(f"the schema of {name}: {problem_of(error).message}") from None
        loaded.empty[name] = ddl
    return loaded


def schema_of(spark: SparkSession, table: TableFile, ddl: str | None) -> Any:
    """The columns of a file, or of the files of a folder, with the types of a --schema."""
    frame = _frame(spark, table)
    return frame.schema if ddl is None else _typed(spark, table, frame, ddl)


def _has_header_alone(table: TableFile, frame: DataFrame) -> bool:
    strings = all(field.dataType.simpleString() == "string" for field in frame.schema.fields)
    return strings and bool(frame.columns) and format_of(table.path) == "csv" and frame.isEmpty()


def _typed(spark: SparkSession, table: TableFile, frame: DataFrame, ddl: str) -> Any:
    """The schema of a file with the types of --schema; columns that this does not name keep theirs."""
    if format_of(table.path) == "parquet":
        raise CommandError(f"the schema of {table.name}: a .parquet file has types of its own")
    try:
        wanted = {field.name.casefold(): field for field in spark.createDataFrame([], ddl).schema.fields}
    except Exception as error:
        raise CommandError(f"the schema of {table.name}: {problem_of(error).message}") from None
    known = {name.casefold() for name in frame.columns}
    for name, new in wanted.items():
        if name not in known:
            hint = suggestion(new.name, frame.columns, "It has")
            raise CommandError(f"the schema of {table.name}: {table.path} has no column {new.name}. {hint}")
    schema = copy.deepcopy(frame.schema)
    for column in schema.fields:
        if column.name.casefold() in wanted:
            column.dataType = wanted[column.name.casefold()].dataType
    return schema


def _frame(spark: SparkSession, table: TableFile, schema: Any = None, *, strict: bool = False) -> DataFrame:
    """`strict`: a value that is none of its type is an error, not NULL: the types are somebody's word."""
    name = format_of(table.path)
    reader = spark.read.format(name).options(**options_of(table.path, name))
    if schema is not None:
        reader = reader.schema(schema)
    if strict:
        reader = reader.option("mode", "FAILFAST")
    return reader.load(_GLOB.sub(r"\\\1", str(table.path.resolve())))


def options_of(path: Path, name: str) -> dict[str, Any]:
    """How files of a format are read."""
    if name == "csv":
        separator = "\t" if _suffix(path) == ".tsv" else ","
        return {"header": True, "inferSchema": True, "sep": separator}
    if name == "json":
        # JSON has no times of its own; a text that is one is meant as one.
        return {"inferTimestamp": True, "multiLine": not _has_object_per_line(path)}
    return {}


def _has_object_per_line(path: Path) -> bool:
    """Not so: a file that is one array, or one object over several lines."""
    if _suffix(path) != ".json" or not path.is_file() or path.suffix.lower() in _PACKED:
        return True
    with path.open(encoding="utf-8", errors="replace") as lines:
        first = next((line for line in lines if line.strip()), "{}")
    try:
        return isinstance(json.loads(first), dict)
    except ValueError:
        return False


def _check_found(table: TableFile) -> None:
    """Raises CommandError with the reason why Spark found no rows and no columns."""
    files = list(_data_files(table.path)) if table.path.is_dir() else [table.path]
    if not files or all(file.stat().st_size == 0 for file in files):
        what = "it has no header" if format_of(table.path) == "csv" else "there is nothing in it"
        raise CommandError(f"the table {table.name}: {table.path} is empty, {what}")
    if table.path.name[0] in "._":
        raise CommandError(
            f"the table {table.name}: Spark reads no files whose names begin with '{table.path.name[0]}'"
        )


# ---------------------------------------------------------------- arguments


def table_argument(written: str) -> TableFile:
    """`name=file`, checked before Spark is started."""
    name, equals, file = written.partition("=")
    path = Path(file)
    if not name or not file:
        proposal = ""
        if not equals and Path(written).exists():
            proposal = f": write {re.sub(r'[^0-9A-Za-z_]', '_', Path(written).name.split('.')[0])}={written}"
        raise argparse.ArgumentTypeError(f"{written!r} is not NAME=FILE{proposal}")
    if not path.exists():
        raise argparse.ArgumentTypeError(f"{file} does not exist")
    try:
        format_of(path)
    except CommandError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return TableFile(name.strip("`"), path)


def schema_argument(written: str) -> tuple[str, str]:
    """`name=ts TIMESTAMP, price DOUBLE`."""

    name, _, ddl = written.partition("=")
    if not name or not ddl:
        raise argparse.ArgumentTypeError(
            f"{written!r} is not NAME=COLUMNS, for example trades='ts TIMESTAMP, v DOUBLE'"
        )
    try:
        columns_of(name, ddl)
    except (TypeError, ValueError) as error:
        raise argparse.ArgumentTypeError(str(error).split(", expected {")[0]) from None
    return name.strip("`"), ddl


def check_arguments(tables: Iterable[TableFile], schemas: Iterable[tuple[str, str]]) -> None:
    """Raises UsageError where two tables, or two schemas, have one name."""

    for names in ([table.name for table in tables], [name for name, _ in schemas]):
        seen: set[str] = set()
        for name in names:
            if name.casefold() in seen:
                raise UsageError(f"there are two tables called {name}")
            seen.add(name.casefold())


def format_of(path: Path) -> str:
    """By the end of the name; of a folder without one, by what is in it. Raises CommandError."""
    suffix = _suffix(path)
    if suffix in FORMATS:
        return FORMATS[suffix]
    if not path.is_dir():
        raise CommandError(f"{path} is none of {', '.join(FORMATS)}")
    found = {FORMATS[_suffix(file)] for file in _data_files(path)}
    if len(found) == 1:
        return found.pop()
    if found:
        raise CommandError(f"{path} holds files of several formats: {', '.join(sorted(found))}")
    raise CommandError(f"{path} holds no files of these: {', '.join(FORMATS)}")


def files_in(folder: Path, ending: str | None = None) -> list[Path]:
    """The files of a folder, or those that end so."""
    return [file for file in _data_files(folder) if ending is None or _suffix(file) == ending]


def _data_files(folder: Path) -> Iterator[Path]:
    """Those that Spark would read: none that are hidden, by it or by their folder."""
    for file in folder.rglob("*"):
        hidden = any(part[0] in "._" and "=" not in part for part in file.relative_to(folder).parts)
        if not hidden and file.is_file() and _suffix(file) in FORMATS:
            yield file


def _suffix(path: Path) -> str:
    return Path(path.stem).suffix.lower() if path.suffix.lower() in _PACKED else path.suffix.lower()
