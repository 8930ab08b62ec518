"""`cersql check`: every statement of a file parsed and bound, and none of them run.

With Spark, over the tables of the command: Spark's analyzer sees each statement as it would before running it.
Statements that only give something a name are carried out, for those after them. With --schema alone, without Spark:
then only queries of ours are checked, as far as cersql.compile can.
"""

from __future__ import annotations

import contextlib
import logging
import re
from argparse import Namespace
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from cersql import api
from cersql.cli import tables
from cersql.cli.errors import UsageError
from cersql.cli.progress import Progress
from cersql.cli.reports import (
    StatementError,
    problem_of,
    put,
    script_report,
    statement_report,
    table_hint,
    warning_report,
)  # fmt: skip
from cersql.cli.running import ScriptError, collected_warnings, execute, holds_pattern, placed, session, statements_of
from cersql.cli.texts import Script, Statement, read
from cersql.language.parse import parse
from cersql.statements.find import find, first_query, is_ours
from cersql.statements.kinds import CreateFunction, CreateView
from runtime.errors import CersqlError, Span

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Check = Callable[[Statement], "str | None"]
"""Raises StatementError; returns what is to be said of a statement that it could not check."""


def check(arguments: Namespace) -> int:
    """Prints what is wrong in each file, or that it is ok. Returns the exit code."""
    tables.check_arguments(arguments.table, arguments.schema)
    if not arguments.query and arguments.execute is None:
        raise UsageError("give files of statements (- is the standard input) or -e TEXT")
    console, worst = Console(), 0
    scripts = [] if arguments.execute is None else [Script("<text>", arguments.execute)]
    for name in arguments.query:
        try:
            scripts.append(read(name, or_text=True))
        except UsageError as error:
            put(console, Text(str(error), style="bold red"))
            worst = 2
    if not scripts:
        return worst
    with _checks(arguments) as (new_check, progress):
        for script in scripts:
            progress.step(f"checking {script.name}")
            reports, errors = check_script(script, new_check())
            progress.hide()
            for text in reports:
                put(console, text)
            worst = max(worst, 1 if errors else 0)
    return worst


@contextlib.contextmanager
def _checks(arguments: Namespace) -> Iterator[tuple[Callable[[], Check], Progress]]:
    """Makes what checks one file: names that one file gives are not known in the next."""
    if arguments.schema and not arguments.table:
        yield lambda: WithoutSpark(dict(arguments.schema)), Progress(shown=False)
        return
    with session("cersql check", arguments) as opened:
        spark = opened.spark

        def fresh() -> Check:
            own = spark.newSession()
            opened.loaded.into(own)
            return WithSpark(own)

        yield fresh, opened.progress


def check_script(script: Script, check_one: Check) -> tuple[list[Text], int]:
    """What is to be said of a file, and how many errors that are, at most one for each statement."""
    try:
        statements = statements_of(script)
    except ScriptError as error:
        return [script_report(script, problem_of(error.cause))], 1
    reports: list[Text] = []
    errors, unchecked = 0, defaultdict[str, list[int]](list)
    for statement in statements:
        with collected_warnings() as warnings:
            try:
                reason = check_one(statement)
                if reason is not None:
                    unchecked[reason].append(statement.line)
            except StatementError as error:
                errors += 1
                hint = table_hint(error.cause)
                reports += [statement_report(statement, error.cause, hint=hint), Text()]
        reports += [warning_report(statement, warning) for warning in dict.fromkeys(warnings)]
    for reason, lines in unchecked.items():
        where = ", ".join(map(str, dict.fromkeys(lines)))
        reports.append(Text(f"{script.name}: not checked: line{'s' if len(lines) > 1 else ''} {where}: {reason}"))
    if not errors:
        ending = "" if statements else ", and no statement in it"
        reports.append(Text.assemble(f"{script.name}: ", ("ok", "bold green"), ending))
    return reports, errors


# ---------------------------------------------------------------- with Spark


class WithSpark:
    """Checks the statements of one file in a session of their own."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark

    def __call__(self, statement: Statement) -> str | None:
        with placed(statement):
            if statement.defines:
                execute(self.spark, statement)
            else:
                self._analyze(statement)
        return None

    def _analyze(self, statement: Statement) -> None:
        from pyspark.errors import ParseException

        state = self.spark._jsparkSession.sessionState()
        try:
            plan = state.sqlParser().parsePlan(statement.text)
        except ParseException:
            if holds_pattern(statement):
                execute(self.spark, statement)  # fails again, and says it as we do
            raise
        if statement.words[0] == "BEGIN":
            return  # a script of Spark's is analyzed while it runs
        # EXPLAIN does the same: a command that is analyzed and skipped.
        jvm: Any = self.spark._jvm
        modes = getattr(jvm, "org.apache.spark.sql.execution.CommandExecutionMode")
        state.executePlan(plan, modes.SKIP()).assertAnalyzed()


# ---------------------------------------------------------------- without


class WithoutSpark:
    """Checks the queries of one file against plain schemas."""

    def __init__(self, schemas: Mapping[str, str]) -> None:
        self.schemas = schemas
        self.made: set[str] = set()  # names that the file itself gives to views, whose columns only Spark knows

    def __call__(self, statement: Statement) -> str | None:
        known, self.made = self.made, self.made | _created(statement)
        text = statement.text
        try:
            _check_form(text)
        except CersqlError as error:
            raise StatementError(statement, error) from None
        if not holds_pattern(statement) or "FUNCTION" in statement.words[:5]:
            return "what is not a pattern query takes Spark: give the tables with --table"
        try:
            for query in queries(text, first_query):
                compiled = api.compile(_alone(text, query), self.schemas)
                for warning in compiled.query.warnings:
                    logging.getLogger("cersql").warning("%s", warning)
        except CersqlError as error:
            name = error.parameters.get("name", "").strip("`").casefold()
            if error.condition == "UNKNOWN_SOURCE" and name in known:
                return f"the columns of the view {name} take Spark: give the tables with --table"
            error.text = text  # what was compiled is the query alone, at the same place
            raise StatementError(statement, error) from None
        return None


def _check_form(text: str) -> None:
    """Raises ParseError for a mistake in a statement of ours that needs no schema."""

    found = find(text) if is_ours(text) else None
    if isinstance(found, CreateFunction) and not found.parameters:
        parse(text, start=found.query.start, end=found.query.end)


def queries(text: str, first_query: Callable[[str], Span]) -> Iterator[Span]:
    """The places of the pattern queries in a statement: each that is found is made a query of Spark's, and the
    next is sought."""

    while is_ours(text):
        query = first_query(text)
        yield query
        if isinstance(find(text), CreateView | CreateFunction):
            return
        rest = text[: query.start] + "SELECT 1".ljust(query.end - query.start) + text[query.end :]
        if rest == text or not text[: query.start].strip():
            return
        text = rest


def _alone(text: str, query: Span) -> str:
    return re.sub(r"[^\n]", " ", text[: query.start]) + text[query.start : query.end]


def _created(statement: Statement) -> set[str]:
    """The name after VIEW in CREATE … VIEW name."""
    words = statement.words
    if words[0] != "CREATE" or "VIEW" not in words[:6]:
        return set()
    at = words.index("VIEW") + 1
    while words[at : at + 1] in (("IF",), ("NOT",), ("EXISTS",)):
        at += 1
    return {word.strip("`").casefold() for word in words[at : at + 1]}
