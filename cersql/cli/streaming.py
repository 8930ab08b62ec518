"""The streams of a command: sources at which rows arrive, and the pattern streams that its statements start.

cersql run s.sql --stream live=arriving        each new file of the folder is data that arrives
cersql run s.sql --stream live='in/*.csv' --schema 'live=ts TIMESTAMP, v INT'    none needs to be there yet
cersql run s.sql --stream ticks=rate:10        Spark's own, of ten rows a second: timestamp and value
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cersql.cli import tables
from cersql.cli.errors import CommandError
from cersql.cli.reports import problem_of
from cersql.statements.find import find
from cersql.statements.kinds import StartStream
from planner.sql import quote
from runtime.errors import CersqlError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from cersql.cli.texts import Statement


class Source(NamedTuple):
    """A stream by name: the files of a folder, those alone that end as `ending` says, or so many rows a second."""

    name: str
    path: Path
    ending: str | None = None
    rate: int | None = None


def stream_argument(written: str) -> Source:
    """`name=folder`, `name=folder/*.csv`, `name=rate` or `name=rate:10`, checked before Spark is started."""
    name, _, source = written.partition("=")
    if not name or not source:
        raise argparse.ArgumentTypeError(f"{written!r} is not NAME=FOLDER, nor NAME=rate")
    kind, _, rows = source.partition(":")
    if kind == "rate" and (rows.isdecimal() or source == "rate"):
        return Source(name.strip("`"), Path(), rate=int(rows or 1))
    path, ending = Path(source), None
    if path.name.startswith("*."):
        path, ending = path.parent, path.name[1:]
        if ending not in tables.FORMATS:
            raise argparse.ArgumentTypeError(f"{source} is none of {', '.join(f'*{end}' for end in tables.FORMATS)}")
    if not path.is_dir():
        raise argparse.ArgumentTypeError(f"{path} is no folder: a stream is what arrives in one, or rate")
    return Source(name.strip("`"), path, ending)


def load(spark: SparkSession, sources: Iterable[Source], schemas: Sequence[tuple[str, str]]) -> None:
    """Make each source a temporary view over a stream. Raises CommandError, which names it."""
    declared = {name.casefold(): ddl for name, ddl in schemas}
    for source in sources:
        try:
            frame = _rate(spark, source) if source.rate else _files(spark, source, declared.get(source.name.casefold()))
        except CommandError:
            raise
        except Exception as error:
            raise CommandError(f"the stream {source.name}: {problem_of(error).message}") from None
        frame.createOrReplaceTempView(quote(source.name))


def _rate(spark: SparkSession, source: Source) -> DataFrame:
    return spark.readStream.format("rate").option("rowsPerSecond", source.rate).load()


def _files(spark: SparkSession, source: Source, ddl: str | None) -> DataFrame:
    """A stream has the columns of the files that are there, or those of --schema where there is none yet."""
    found = tables.files_in(source.path, source.ending)
    if not found and (ddl is None or source.ending is None):
        raise CommandError(
            f"the stream {source.name}: {source.path} holds no files yet. Say which ones will come, and their columns: "
            f"--stream {source.name}='{source.path}/*.csv' --schema {source.name}='ts TIMESTAMP, …'"
        )
    schema = tables.schema_of(spark, tables.TableFile(source.name, source.path), ddl) if found else str(ddl)
    name = tables.FORMATS[source.ending] if source.ending else tables.format_of(source.path)
    reader = spark.readStream.format(name).options(**tables.options_of(source.path, name)).schema(schema)
    if ddl is not None and name != "parquet":
        reader = reader.option("mode", "FAILFAST")
    if source.ending is not None:
        reader = reader.option("pathGlobFilter", f"*{source.ending}")
    return reader.load(str(source.path.resolve()))


# ---------------------------------------------------------------- what statements start


class Started(NamedTuple):
    """A pattern stream that a statement has started; `ends`: by itself, once it has read what is there."""

    statement: Statement
    name: str
    ends: bool


def started_by(statement: Statement) -> Started | None:
    from spark_ext.streams import AVAILABLE_NOW

    try:
        found = find(statement.text)
    except CersqlError:
        return None
    if not isinstance(found, StartStream):
        return None
    return Started(statement, found.name, found.trigger == AVAILABLE_NOW)


def wait(spark: SparkSession, started: Sequence[Started]) -> tuple[Started, Exception] | None:
    """Wait until all have ended, or one has failed; gives that one, and its error."""
    from spark_ext import streams

    failed = streams.wait(spark, [stream.name for stream in started])
    if failed is None:
        return None
    name, error = failed
    return next(stream for stream in started if stream.name == name), error
