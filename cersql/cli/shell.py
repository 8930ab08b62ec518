"""`cersql shell`: a prompt, with history and completion, over one Spark session."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from argparse import Namespace
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from pygments.lexers.sql import SqlLexer
from rich.console import Console
from rich.text import Text

from cersql.cli import output
from cersql.cli.completion import completions, is_complete
from cersql.cli.progress import Progress
from cersql.cli.reports import StatementError, problem_in, problem_of, put, report
from cersql.cli.running import ScriptError, collected_warnings, execute, placed, session, statements_of
from cersql.cli.texts import Script, Statement, read
from planner.sql import quote

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HELP = """\
Statements end with a ';' at the end of a line, or with an empty line. In a pattern ';' is an operator: a line that ends
in it goes on until there is a RETURN.

  FROM t PATTERN A a ; B b ORDER BY ts RETURN *;   a pattern query
  SHOW TABLES;  DESCRIBE t;                        what there is (files: --table NAME=FILE)
  EXPLAIN query;                                   what becomes of a query

  Tab completes words, tables and columns; Up and Ctrl-R search what was typed before.
  Ctrl-C abandons the text, or the query that runs. Ctrl-D, quit; or exit; leave.
"""


def run(arguments: Namespace) -> None:
    init = read(arguments.init) if arguments.init is not None else None
    interactive = sys.stdin.isatty()
    given = None if interactive else read("-")
    with session("cersql shell", arguments) as (spark, progress, _):
        progress.hide()
        shell = Shell(spark, progress, rows=arguments.rows, times=interactive and not arguments.quiet)
        for script in (init, given):
            if script is not None:
                shell.run(script)
        if interactive:
            loop(shell, prompt(Words(spark)))


def loop(shell: Shell, prompt: PromptSession[str]) -> None:
    """Ask and answer until someone leaves."""
    put(shell.console, "cersql shell; help; says how, quit; leaves")
    while True:
        try:
            text = prompt.prompt()
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
        command = text.strip().rstrip(";").strip().lower()
        if command in ("quit", "exit", "\\q"):
            return
        if command in ("help", "\\?"):
            put(shell.console, HELP)
        else:
            shell.answer(text)


class Shell:
    """Runs texts in a session and prints what comes of them."""

    def __init__(self, spark: SparkSession, progress: Progress, *, rows: int, times: bool) -> None:
        self.spark, self.progress = spark, progress
        self.rows, self.times = rows, times
        self.console = Console()

    def answer(self, text: str) -> None:
        """Like `run`, but errors are printed, and Ctrl-C only ends the query."""
        script = Script("", text)
        try:
            self.run(script)
        except KeyboardInterrupt:
            self.progress.hide()
            self._cancel()
            put(self.console, Text("cancelled", style="bold yellow"))
        except StatementError as error:
            self.progress.hide()
            put(self.console, report(problem_in(error.statement, error.cause)))
        except ScriptError as error:
            put(self.console, report(problem_of(error.cause)))
        except Exception as error:
            self.progress.hide()
            put(self.console, report(problem_of(error)))

    def run(self, script: Script) -> None:
        for statement in statements_of(script):
            with placed(statement):
                self._run(statement)

    def _run(self, statement: Statement) -> None:
        began = time.monotonic()
        self.progress.step("running")
        with collected_warnings() as warnings:
            result = execute(self.spark, statement)
        rows = output.first_rows(result, self.rows + 1) if result.columns else None
        self.progress.hide()
        for warning in dict.fromkeys(warnings):
            put(self.console, Text.assemble(("warning: ", "bold yellow"), warning))
        seconds = time.monotonic() - began if self.times else None
        if rows is not None:
            output.print_rows(result.columns, rows, output.numbers(result), self.rows, self.console, seconds)
        elif self.times:
            put(self.console, f"(done, {seconds:.1f} s)")

    def _cancel(self) -> None:
        with contextlib.suppress(Exception, KeyboardInterrupt):
            self.spark.sparkContext.cancelAllJobs()


# ---------------------------------------------------------------- the prompt


def prompt(words: Words, **options: Any) -> PromptSession[str]:
    """`options` go to prompt_toolkit: where keys come from and pictures go to."""
    keys = KeyBindings()

    @keys.add("enter")
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if is_complete(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    return PromptSession(
        "cersql> ",
        prompt_continuation="   ...> ",
        multiline=True,
        key_bindings=keys,
        completer=words,
        complete_while_typing=False,
        lexer=PygmentsLexer(SqlLexer),
        history=history(),
        **options,
    )


class Words(Completer):
    """Completes with what the session has; asked anew at each Tab, since statements change it."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        for word, length in completions(document.text_before_cursor, document.text_after_cursor, self):
            yield Completion(word, start_position=-length)

    def tables(self) -> list[str]:
        with contextlib.suppress(Exception):  # a Tab is no place for errors
            return [t.name for t in self.spark.catalog.listTables()]
        return []

    def columns(self, table: str) -> list[str]:
        with contextlib.suppress(Exception):
            return self.spark.table(quote(table)).columns
        return []


class _QuietFile(FileHistory):
    """History that nobody misses if the disk is full or the file is not ours."""

    def load_history_strings(self) -> Iterator[str]:
        with contextlib.suppress(OSError):
            yield from super().load_history_strings()

    def store_string(self, string: str) -> None:
        with contextlib.suppress(OSError):
            super().store_string(string)


def history() -> History:
    """In the user's state folder; for this session only where that cannot be written."""
    home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    path = Path(home) / "cersql" / "history"
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.touch(mode=0o600)
    except OSError:
        return InMemoryHistory()
    return _QuietFile(str(path))
