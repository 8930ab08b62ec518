"""`cersql run` and `cersql explain`: the statements of a file, one after the other."""

from __future__ import annotations

import contextlib
import logging
import sys
import time
from argparse import Namespace
from collections.abc import Iterator, Sequence, Set
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

from rich.console import Console
from rich.text import Text

from cersql import api
from cersql.cli import output, streaming, tables
from cersql.cli.errors import CommandError, UsageError
from cersql.cli.local import started
from cersql.cli.pages import Page
from cersql.cli.progress import Progress
from cersql.cli.reports import StatementError, put, warning_report
from cersql.cli.texts import Script, Statement, read
from cersql.errors import ParseError
from cersql.language.parse import parse
from cersql.statements.find import find, is_ours
from cersql.statements.kinds import queries_of
from cersql.statements.planned import Planned, collected
from runtime.errors import CersqlError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from cersql.statements.kinds import Statement as Found


class ScriptError(Exception):
    """A file cannot be cut into statements."""

    def __init__(self, script: Script, cause: CersqlError) -> None:
        super().__init__(str(cause))
        self.script, self.cause = script, cause


def run(arguments: Namespace) -> None:
    script, statements = _given(arguments)
    format, path = _format(arguments), arguments.html or arguments.output
    if format not in ("table", "html"):
        _check_one_result(script, statements, format)
    if path is not None:
        option = "--html" if arguments.html else "--output"
        output.check_path(path, [*(table.path for table in arguments.table), *_files(arguments)], option)
    _check_syntax(statements[0])
    with session("cersql run", arguments) as (spark, progress, _), _target(path, format) as target:
        planned: list[Planned] = []  # and not yet looked at for types that no row has
        told: set[str] = set()
        page = Page(script.name, arguments.rows)
        going_on: list[streaming.Started] = []
        for number, statement in enumerate(statements, 1):
            step = f"statement {number} of {len(statements)}" if len(statements) > 1 else "running"
            progress.step(step)
            with placed(statement):
                began = time.monotonic()
                with collected_warnings() as warnings, collected() as found:
                    result = execute(spark, statement)
                planned += found
                for warning in dict.fromkeys(warnings):
                    put(progress.console, warning_report(statement, warning))
                told.update(warnings)
                stream = streaming.started_by(statement)
                if stream is not None and stream.ends:
                    _wait(spark, [stream], f"stream {stream.name}", progress)  # what follows reads its table
                elif stream is not None:
                    going_on.append(stream)
                if format == "html":
                    count = page.add(statement, result, found)
                if not result.columns or not statement.gives_rows:
                    continue
                if isinstance(target, Path):
                    count = output.write_parquet(result, target)
                elif format == "table":
                    count = _put_table(result, arguments, target, progress, began)
                elif format != "html":
                    # What is written to a terminal stands where the line of progress is.
                    ready = progress.hide if target.isatty() else lambda: None
                    count = (output.write_csv if format == "csv" else output.write_json)(result, target, ready)
                _tell_unseen(planned, count, told, statement, progress)
                planned = []
        if going_on:
            names = ", ".join(stream.name for stream in going_on)
            _wait(spark, going_on, f"running {names} until Ctrl-C", progress)
        if format == "html" and not isinstance(target, Path):
            page.write(spark, target)


def _wait(spark: SparkSession, started: Sequence[streaming.Started], step: str, progress: Progress) -> None:
    """Until the streams have ended. The error of one that fails is one of the statement that started it."""
    progress.step(step)
    failed = streaming.wait(spark, started)
    if failed is not None:
        stream, error = failed
        raise StatementError(stream.statement, error) from error


def _tell_unseen(
    planned: Sequence[Planned], count: int, told: Set[str], statement: Statement, progress: Progress
) -> None:
    """Say which types of the patterns no row has: a typo, another case. Asked if there are no matches, or few rows;
    not what is told already."""
    found: list[str] = []
    for query in planned:
        progress.step("looking at the types of the rows")
        with contextlib.suppress(Exception):  # the query itself went well
            found += query.unseen(if_small=count > 0)
    progress.hide()
    for warning in dict.fromkeys(found):
        if warning in told:
            continue
        put(progress.console, warning_report(statement, warning))


@contextlib.contextmanager
def _target(path: Path | None, format: str) -> Iterator[IO[str] | Path]:
    """Where the result goes: stdout, a file that is opened, or for parquet a path."""
    if path is None:
        yield sys.stdout
        return
    with output.replacing(path) as beside:
        if format == "parquet":
            yield beside
            return
        with beside.open("w", encoding="utf-8", newline="") as file:
            yield file


def _put_table(result: DataFrame, arguments: Namespace, out: IO[str], progress: Progress, began: float) -> int:
    rows = output.first_rows(result, arguments.rows + 1)
    seconds = None if arguments.quiet else time.monotonic() - began
    progress.hide()
    output.print_rows(result.columns, rows, output.numbers(result), arguments.rows, Console(file=out), seconds)
    return len(rows)


def explain(arguments: Namespace) -> None:
    script, statements = _given(arguments)
    asked = [statement for statement in statements if holds_pattern(statement)]
    if not asked:
        raise CommandError(
            f"{script.name} has no PATTERN to explain. For a query of Spark's run EXPLAIN and the query."
        )
    with session("cersql explain", arguments) as (spark, progress, _):
        for statement in statements:
            progress.step("planning")
            with placed(statement):
                if statement in asked:
                    text = api.explain(spark, statement.text, stage=arguments.stage)
                    progress.hide()
                    if len(asked) > 1:
                        print_line(f"-- {script.name}:{statement.line}")
                    print_line(text)
                if statement.defines:
                    with collected_warnings():  # they stand in what is explained
                        execute(spark, statement)


def print_line(text: str) -> None:
    sys.stdout.write(f"{text}\n")


# ---------------------------------------------------------------- what both need


class Opened(NamedTuple):
    spark: SparkSession
    progress: Progress
    loaded: tables.Loaded


@contextlib.contextmanager
def session(name: str, arguments: Namespace) -> Iterator[Opened]:
    """Spark, with the tables of the command, and the line that says what it does."""
    schemas, sources = getattr(arguments, "schema", ()), getattr(arguments, "stream", ())
    tables.check_arguments([*arguments.table, *sources], schemas)
    with Progress(shown=not (arguments.quiet or arguments.verbose)) as progress:
        progress.step("starting Spark")
        with started(name, verbose=arguments.verbose, config=dict(arguments.conf)) as spark:
            progress.watch(spark)
            if arguments.table:
                progress.step("reading " + ", ".join(table.name for table in arguments.table))
            arriving = {source.name.casefold() for source in sources}
            loaded = tables.load(spark, arguments.table, [one for one in schemas if one[0].casefold() not in arriving])
            streaming.load(spark, sources, schemas)
            for note in loaded.notes:
                put(progress.console, Text(f"cersql: {note}"))
            yield Opened(spark, progress, loaded)


def execute(spark: SparkSession, statement: Statement) -> DataFrame:
    """The result of a statement. A mistake in ours is told by us, one in Spark's by Spark."""

    return api.sql(spark, statement.text) if is_ours(statement.text) else spark.sql(statement.text)


def holds_pattern(statement: Statement) -> bool:
    """Whether there is a query of ours in it, or what is meant as one."""

    return statement.words[0] not in ("SHOW", "DROP", "DESC", "DESCRIBE") and is_ours(statement.text)


def _check_syntax(statement: Statement) -> None:
    """Raises StatementError for a mistake in a query that can be seen without Spark, which takes seconds to start.

    What Spark might accept is left to it: a query has a RETURN and a PATTERN. Of the statements after the first the
    mistakes are told after the results of those before them.
    """

    try:
        for query in queries_of(_found(statement)):
            words = {token.upper for token in statement.text.within(query)}
            if {"PATTERN", "RETURN"} <= words:
                parse(statement.text, start=query.start, end=query.end)
    except CersqlError as error:
        raise StatementError(statement, error) from None


def _found(statement: Statement) -> Found | None:
    """What of ours the statement is; None too where to say what it is takes Spark."""

    try:
        return find(statement.text)
    except ParseError:
        return None


@contextlib.contextmanager
def placed(statement: Statement) -> Iterator[None]:
    """Errors of ours and of Spark's are errors of this statement."""
    from spark_ext.errors import SPARK_EXCEPTIONS

    try:
        yield
    except (CersqlError, *SPARK_EXCEPTIONS) as error:
        raise StatementError(statement, error) from error


@contextlib.contextmanager
def collected_warnings() -> Iterator[list[str]]:
    """What cersql warns of meanwhile, instead of the log."""
    found: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: found.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("cersql")
    logger.addHandler(handler)
    try:
        yield found
    finally:
        logger.removeHandler(handler)


def statements_of(script: Script) -> list[Statement]:
    try:
        return script.statements()
    except CersqlError as error:
        raise ScriptError(script, error) from None


# ---------------------------------------------------------------- arguments


def script_of(query: str | None, text: str | None) -> Script:
    if (query is None) == (text is None):
        raise UsageError("give either a file of statements (- is the standard input) or -e TEXT")
    return Script("<text>", text) if text is not None else read(str(query), or_text=True)


def _given(arguments: Namespace) -> tuple[Script, list[Statement]]:
    script = script_of(arguments.query, arguments.execute)
    statements = statements_of(script)
    if not statements:
        raise CommandError(f"{script.name} holds no statement")
    return script, statements


def _files(arguments: Namespace) -> list[Path]:
    return [Path(arguments.query)] if arguments.query not in (None, "-") else []


def _format(arguments: Namespace) -> str:
    """As asked for, else by the end of --output's name, else a table; with --html a page."""
    path = arguments.output
    if arguments.html is not None:
        if path is not None or arguments.format is not None:
            raise UsageError("--html writes a page in place of what --format and --output write: leave these out")
        return "html"
    if arguments.format is not None:
        if arguments.format == "parquet" and path is None:
            raise UsageError("--format parquet needs --output FILE")
        return arguments.format
    if path is None:
        return "table"
    suffix = {".txt": "table", ".jsonl": "json", ".ndjson": "json"}.get(path.suffix.lower(), path.suffix.lower()[1:])
    if suffix not in output.FORMATS:
        raise UsageError(f"--output {path}: say --format {', '.join(output.FORMATS)}")
    return suffix


def _check_one_result(script: Script, statements: Sequence[Statement], format: str) -> None:
    """Raises CommandError before anything runs: two results make no csv, and choosing one would lose the other."""
    results = [statement for statement in statements if statement.gives_rows]
    if len(results) > 1:
        lines = " and ".join(str(statement.line) for statement in results[:2])
        raise CommandError(
            f"{script.name} has {len(results)} statements that give rows (lines {lines}{' …' if results[2:] else ''}), "
            f"and --format {format} writes one. Make the others views, or leave --format out."
        )
    if not results:
        raise CommandError(f"{script.name} has no statement that gives rows, and --format {format} writes one's.")
