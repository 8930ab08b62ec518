"""The command line: `cersql demo`, `cersql run`, `cersql explain`.

Errors about a query, of ours or of Spark's, are printed with their place and without a traceback, exit code 1; a
command that is called wrongly exits with 2. What the JVM writes to stderr goes to a file that is shown if Spark does
not start, or to the screen with --verbose.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import json
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from runtime.errors import CersqlError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

READERS = {".csv": "csv", ".parquet": "parquet", ".json": "json", ".jsonl": "json", ".ndjson": "json"}
CONFIG = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": str(os.cpu_count() or 2),
}


class CommandError(Exception):
    """A command cannot be carried out, for a reason that is none of the query's."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    arguments = _parser().parse_args(argv)
    from spark_ext.errors import SPARK_EXCEPTIONS
    from spark_ext.quiet import mute_captures

    mute_captures()
    try:
        arguments.command(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of our output has seen enough (`| head`); keep Python from complaining about it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (CersqlError, CommandError, *SPARK_EXCEPTIONS) as error:
        print(f"cersql: {_shown(error)}", file=sys.stderr)
        return 1
    return 0


def _shown(error: Exception) -> str:
    text = str(error).strip()
    if "JAVA_GATEWAY_EXITED" in text:
        return f"{text}\nSpark did not start. It needs Java 17 or newer, on PATH or in JAVA_HOME."
    return text.split(";\n'", 1)[0]  # what follows in an AnalysisException is the unresolved plan


# ---------------------------------------------------------------- arguments


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="cersql", description="Complex event recognition on Apache Spark.")
    commands = parser.add_subparsers(required=True, metavar="command")

    demo = commands.add_parser("demo", help="find delayed flights that delayed the next one, in the example's data")
    demo.set_defaults(command=_demo)

    run = commands.add_parser("run", help="run a statement and print its result")
    run.add_argument("--format", choices=("table", "csv", "json"), default="table", help="of the output")
    run.add_argument("--rows", type=_positive, default=100, help="of a table at most (default: %(default)s)")
    run.set_defaults(command=_run)

    explain = commands.add_parser("explain", help="print what is planned for a query")
    explain.add_argument("--stage", help="one stage only, for example automaton")
    explain.set_defaults(command=_explain)

    for command in (run, explain):
        command.add_argument("query", type=_text, help="a file with one statement; - is the standard input")
        command.add_argument(
            "--table",
            type=_table,
            action="append",
            default=[],
            metavar="NAME=FILE",
            help="a table of the statement: a .csv (with a header), .parquet or .json file; may be given again",
        )
    for command in (demo, run, explain):
        command.add_argument("--verbose", action="store_true", help="show what Spark logs")
    return parser


def _positive(written: str) -> int:
    value = int(written)
    if value <= 0:
        raise ValueError
    return value


def _text(name: str) -> str:
    try:
        return sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise argparse.ArgumentTypeError(f"{name} cannot be read: {reason}") from None


def _table(written: str) -> tuple[str, Path]:
    name, _, file = written.partition("=")
    path = Path(file)
    if not name or not file:
        raise argparse.ArgumentTypeError(f"{written!r} is not NAME=FILE")
    if path.suffix.lower() not in READERS:
        raise argparse.ArgumentTypeError(f"{file} is none of {', '.join(READERS)}")
    if not path.exists():
        raise argparse.ArgumentTypeError(f"{file} does not exist")
    return name, path


# ---------------------------------------------------------------- commands


def _demo(arguments: argparse.Namespace) -> None:
    from cersql.demo import demo

    with started("cersql demo", verbose=arguments.verbose) as spark:
        demo(spark, Console())


def _run(arguments: argparse.Namespace) -> None:
    import cersql

    with started("cersql run", verbose=arguments.verbose) as spark:
        load(spark, arguments.table)
        df = cersql.sql(spark, arguments.query)
        if arguments.format == "table":
            _print_table(df, arguments.rows)
        elif arguments.format == "csv":
            _write_csv(df, sys.stdout)
        else:
            for row in df.toLocalIterator():
                print(json.dumps(row.asDict(recursive=True), default=str, ensure_ascii=False))


def _explain(arguments: argparse.Namespace) -> None:
    import cersql

    with started("cersql explain", verbose=arguments.verbose) as spark:
        load(spark, arguments.table)
        print(cersql.explain(spark, arguments.query, stage=arguments.stage))


def load(spark: SparkSession, tables: Iterable[tuple[str, Path]]) -> None:
    """Make each file a temporary view."""
    for name, path in tables:
        reader = spark.read.format(READERS[path.suffix.lower()])
        if path.suffix.lower() == ".csv":
            reader = reader.options(header=True, inferSchema=True)
        reader.load(str(path.resolve())).createOrReplaceTempView(name)


@contextlib.contextmanager
def started(name: str, *, verbose: bool) -> Iterator[SparkSession]:
    """A local session, quiet unless `verbose`, that is stopped at the end."""
    import cersql

    with tempfile.TemporaryDirectory(prefix="cersql-") as warehouse:
        config = {"spark.master": "local[*]", **CONFIG, "spark.sql.warehouse.dir": warehouse}
        with contextlib.nullcontext() if verbose else _stderr_in_a_file():
            spark = cersql.session(name, config)
            if not verbose:
                spark.sparkContext.setLogLevel("ERROR")
        try:
            yield spark
        finally:
            spark.stop()


@contextlib.contextmanager
def _stderr_in_a_file() -> Iterator[None]:
    """The JVM that is started meanwhile writes its stderr to a file: shown if that fails, else forgotten."""
    sys.stderr.flush()
    screen = os.dup(2)
    with tempfile.TemporaryFile("w+") as log:
        os.dup2(log.fileno(), 2)
        try:
            yield
        except BaseException:
            log.seek(0)
            os.write(screen, log.read().encode())
            raise
        finally:
            os.dup2(screen, 2)
            os.close(screen)


# ---------------------------------------------------------------- output


def table_of(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Table:
    """A rich table; numbers stand right."""
    table = Table(box=SIMPLE_HEAD)
    found = [tuple(row) for row in rows]
    for index, column in enumerate(columns):
        number = any(isinstance(row[index], int | float) for row in found)
        table.add_column(column, justify="right" if number else "left", overflow="fold")
    for row in found:
        table.add_row(*(_cell(value) for value in row))
    return table


def _print_table(df: DataFrame, limit: int) -> None:
    rows = list(islice(df.limit(limit + 1).toLocalIterator(), limit + 1))
    console = Console()
    console.print(table_of(df.columns, rows[:limit]))
    more = f"the first {limit} rows; --rows or --format csv for more" if len(rows) > limit else f"{len(rows)} rows"
    console.print(f"({more})")


def _write_csv(df: DataFrame, out: IO[str]) -> None:
    writer = csv.writer(out)
    writer.writerow(df.columns)
    for row in df.toLocalIterator():
        writer.writerow("" if value is None else _cell(value) for value in row)


def _cell(value: Any) -> str:
    if value is None:
        return "NULL"
    plain = _plain(value)
    return json.dumps(plain, default=str, ensure_ascii=False) if isinstance(plain, dict | list) else str(value)


def _plain(value: Any) -> Any:
    """Rows as dicts, inside arrays and maps too."""
    if hasattr(value, "asDict"):
        return {key: _plain(inner) for key, inner in value.asDict().items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    if isinstance(value, dict):
        return {str(_plain(key)): _plain(inner) for key, inner in value.items()}
    return value


if __name__ == "__main__":
    sys.exit(main())
