"""Results as tables for people, and as csv, json and parquet for programs.

Spark turns every value into text, so that times are in the session's zone and nested values are JSON. A file is
written beside its place and renamed when it is whole.
"""

from __future__ import annotations

import contextlib
import csv
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cersql.cli.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FORMATS = ("table", "csv", "json", "parquet")
NARROWEST = 12  # characters that a column of a table should have before its rows are shown one value a line
_NESTED = ("struct", "array", "map", "variant")
_NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")


# ---------------------------------------------------------------- for people


def table_of(columns: Sequence[str], rows: Iterable[Sequence[Any]], right: Iterable[int] = ()) -> Table:
    """A rich table; the columns whose indexes are in `right` stand right."""
    table = Table(box=SIMPLE_HEAD)
    right = set(right)
    for index, column in enumerate(columns):
        table.add_column(Text(column), justify="right" if index in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(_cell, row))
    return table


def first_rows(df: DataFrame, count: int) -> list[Sequence[str | None]]:
    return list(islice(_texts(df.limit(count)), count))


def numbers(df: DataFrame) -> list[int]:
    """The indexes of the columns of numbers."""
    return [i for i, field in enumerate(df.schema.fields) if field.dataType.simpleString().split("(")[0] in _NUMBERS]


def print_rows(
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    right: Iterable[int],
    limit: int,
    console: Console,
    seconds: float | None = None,
) -> None:
    """At most `limit` of the rows; more only say that there are more. A text of many lines alone, as EXPLAIN's, is
    printed as it is."""
    if not console.is_terminal:
        console.width = 100_000  # a file has room; nothing in it should be broken into lines
    if len(columns) == len(rows) == 1 and "\n" in str(rows[0][0]):
        console.print(Text(str(rows[0][0])), soft_wrap=True)
        return
    narrow = len(columns) * NARROWEST > console.width and _width(columns, rows[:limit]) > console.width
    console.print((records_of if narrow else table_of)(columns, rows[:limit], right), crop=False)
    count = f"{len(rows)} row{'' if len(rows) == 1 else 's'}"
    if len(rows) > limit:
        count = f"the first {limit} rows; --rows or --format csv for more"
    console.print(f"({count}{'' if seconds is None else f', {seconds:.1f} s'})", highlight=False, markup=False)


def records_of(columns: Sequence[str], rows: Iterable[Sequence[Any]], right: Iterable[int] = ()) -> Table:
    """Each row with a line for each of its values, where they have no room beside each other."""
    table = Table(box=SIMPLE_HEAD, show_header=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for row in rows:
        for column, value in zip(columns, row, strict=True):
            table.add_row(Text(column), _cell(value))
        table.add_section()
    return table


def _width(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> int:
    """Of a table in which nothing is folded."""
    return sum(2 + max(cell_len(str(cell)) for cell in column) for column in zip(columns, *rows, strict=True))


def _cell(value: Any) -> Text:
    return Text("NULL", style="dim") if value is None else Text(str(value))


def _texts(df: DataFrame) -> Iterator[Sequence[str | None]]:
    """The rows, all values as text. Columns are named by number meanwhile: their own names may be no unique ones."""
    fields = df.schema.fields
    numbered = df.toDF(*(f"c{i}" for i in range(len(fields))))
    return numbered.selectExpr(
        *(_text(f"c{i}", f.dataType.simpleString()) for i, f in enumerate(fields))
    ).toLocalIterator(prefetchPartitions=True)


def _text(column: str, type: str) -> str:
    if type.startswith(_NESTED):
        return f"to_json({column}, map('ignoreNullFields', 'false')) AS {column}"
    return f"hex({column}) AS {column}" if type == "binary" else f"CAST({column} AS STRING) AS {column}"


# ---------------------------------------------------------------- for programs


def write_csv(df: DataFrame, out: IO[str], ready: Callable[[], None] = lambda: None) -> int:
    """With a header; NULL is an empty field. `ready` is called before the first line, when the first row is there.
    Returns the number of rows."""
    number = 0
    writer = csv.writer(out, lineterminator="\n")
    for number, row in enumerate(_begun(_texts(df), ready)):
        if number == 0:
            writer.writerow(df.columns)
        if row is not None:
            writer.writerow("" if value is None else value for value in row)
    return number


def write_json(df: DataFrame, out: IO[str], ready: Callable[[], None] = lambda: None) -> int:
    """One object a line, with every column in it. Returns the number of rows."""
    number = 0
    objects = df.selectExpr("to_json(struct(*), map('ignoreNullFields', 'false'))")
    for number, row in enumerate(_begun(objects.toLocalIterator(prefetchPartitions=True), ready)):  # noqa: B007
        if row is not None:
            out.write(f"{row[0]}\n")
    return number


def _begun(rows: Iterator[Sequence[str | None]], ready: Callable[[], None]) -> Iterator[Sequence[str | None] | None]:
    """None, then the rows; nothing before the first row is there, since a query that fails should print nothing."""
    first = list(islice(rows, 1))
    ready()
    yield None
    yield from first
    yield from rows


def write_parquet(df: DataFrame, path: Path) -> int:
    """One file. Spark writes one per task, in parallel; they are put together in order. Returns the number of rows."""
    import pyarrow.parquet as pq

    with tempfile.TemporaryDirectory(prefix=f".{path.name}-", dir=path.parent) as folder:
        df.write.mode("overwrite").parquet(folder)
        parts = sorted(Path(folder).glob("part-*"))
        count = sum(pq.read_metadata(part).num_rows for part in parts)
        if len(parts) == 1:
            shutil.move(parts[0], path)
            return count
        with contextlib.ExitStack() as stack:
            files = [stack.enter_context(pq.ParquetFile(part)) for part in parts]
            writer = stack.enter_context(pq.ParquetWriter(path, files[0].schema_arrow, compression="snappy"))
            for file in files:
                for group in range(file.num_row_groups):
                    writer.write_table(file.read_row_group(group))
    return count


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A path to write to instead, which becomes `path` at the end; after an error there is what there was before."""
    if path.exists() and not path.is_file():  # a pipe, /dev/stdout
        yield path
        return
    beside = path.with_name(f".{path.name}.{os.getpid()}.unfinished")
    try:
        yield beside
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def check_path(path: Path, inputs: Iterable[Path], option: str = "--output") -> None:
    """Raises UsageError where a result cannot be written, before it is computed."""
    if path.is_dir():
        raise UsageError(f"{option} {path} is a folder")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"{option} {path}: there is no folder {path.parent}")
    if not os.access(path.absolute().parent, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
        raise UsageError(f"{option} {path} cannot be written: Permission denied")
    for other in inputs:
        if path.exists() and path.samefile(other):
            raise UsageError(f"{option} {path} would replace {other}, which is read")
