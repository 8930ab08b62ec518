"""The command line: arguments, dispatch, exit codes.

    0    it went well
    1    an error in a statement, in the data or of Spark; `check` found mistakes
    2    the command was called wrongly
    130  Ctrl-C

Errors are printed with their place in the user's file and never with a traceback; `--verbose` shows that, too. What the
JVM writes to stderr goes to a file that is shown if Spark does not start.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.text import Text

from cersql.cli import checking, completion_scripts, output, running, serving, shell
from cersql.cli.arguments import Commands, add_common, add_query, positive
from cersql.cli.demo import check_data, demo
from cersql.cli.errors import CommandError
from cersql.cli.local import started
from cersql.cli.parser import Parser
from cersql.cli.reports import (
    StatementError,
    problem_of,
    put,
    report,
    script_report,
    statement_report,
    table_hint,
)  # fmt: skip
from cersql.cli.tables import load
from cersql.cli.versions import Version
from cersql.show.explain import DRAWINGS, STAGES
from runtime import compiling
from runtime.errors import CersqlError

__all__ = ["CommandError", "load", "main", "started"]  # for the commands that have files of their own


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    arguments = None
    # Of LLVM's levels the lowest that optimizes: kernels are compiled in three fifths of the time, and are as fast.
    os.environ.setdefault("NUMBA_OPT", "1")
    try:
        arguments = _parser().parsed(argv)
        from spark_ext.quiet import mute_captures

        mute_captures()
        code = arguments.command(arguments) or 0
        sys.stdout.flush()
        return int(code)
    except BrokenPipeError:
        _forget_stdout()  # the reader of our output has seen enough (`| head`)
        return 0
    except KeyboardInterrupt:
        print("cersql: interrupted", file=sys.stderr)
        return 130
    except Exception as error:
        if arguments is not None and getattr(arguments, "verbose", False):
            traceback.print_exc()
        put(Console(stderr=True), _report(error))
        if isinstance(error, OSError):
            _forget_stdout()
        return error.exit_code if isinstance(error, CommandError) else 1


def _report(error: Exception) -> Text:
    if isinstance(error, ImportError):  # a library that is not there, or a pyspark that does not fit
        return Text(f"cersql: {error}")
    from spark_ext.errors import SPARK_EXCEPTIONS

    match error:
        case StatementError(statement=statement, cause=cause):
            return statement_report(statement, cause, hint=table_hint(cause))
        case running.ScriptError(script=script, cause=cause):
            return script_report(script, problem_of(cause))
        case CommandError():
            return Text(f"cersql: {error}")
        case OSError():
            name = f"{error.filename}: " if error.filename else ""
            return Text(f"cersql: {name}{error.strerror or error}")
        case CersqlError():
            return report(problem_of(error), "cersql: ")
    problem = problem_of(error)
    if isinstance(error, SPARK_EXCEPTIONS):
        hint = "It needs Java 17 or newer, on PATH or in JAVA_HOME."
        started = "JAVA_GATEWAY_EXITED" not in problem.message
        return report(problem, "cersql: ", hint=None if started else f"Spark did not start. {hint}")
    return Text(f"cersql: this is a bug: {type(error).__name__}: {error} (--verbose shows where)")


def _forget_stdout() -> None:
    """Keep Python from complaining at exit that it cannot write what is left."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


# ---------------------------------------------------------------- arguments


def _parser() -> Parser:
    parser = Parser(prog="cersql", description="Complex event recognition on Apache Spark.")
    parser.add_argument("--version", action=Version)
    commands = parser.add_subparsers(required=True, metavar="command")
    # A command with a file of its own brings its arguments itself: `other.register(commands)`.
    for register in (_demo, _run, _explain, _check, _shell, serving.register, _warm):
        register(commands)
    completion_scripts.register(commands, parser)
    return parser


def _demo(commands: Commands) -> None:
    command = commands.add_parser("demo", help="find delayed flights that delayed the next one, in the example's data")
    command.add_argument("--verbose", action="store_true", help="show what Spark logs")
    command.set_defaults(command=_run_demo)


def _run_demo(arguments: argparse.Namespace) -> None:
    check_data()
    with started("cersql demo", verbose=arguments.verbose) as spark:
        demo(spark, Console())


def _warm(commands: Commands) -> None:
    command = commands.add_parser(
        "warm",
        help="compile the engine's kernels, so that no query has to wait for them",
        description="Compile the engine's kernels, once for an installation: numba keeps them beside the package, or "
        "in the user's cache folder. Without it the first query that needs some compiles them.",
    )
    command.set_defaults(command=_run_warm)


def _run_warm(arguments: argparse.Namespace) -> None:
    from runtime.warm import FAMILIES, compile_beginnings, compile_kernels, compile_sums

    console = Console()
    steps: list[tuple[str, Callable[[], None]]] = [
        (what, partial(compile_kernels, family)) for family, what in FAMILIES.items()
    ]
    steps += [("GROUP BY", compile_sums), ("aggregates over loops", compile_beginnings)]
    for what, compiles in steps:
        begin = time.monotonic()
        with compiling.told(compiling.nobody):
            compiles()
        put(console, Text(f"{what}: {time.monotonic() - begin:.1f} s"))


def _run(commands: Commands) -> None:
    command = commands.add_parser(
        "run",
        help="run the statements of a file and print their results",
        description="Run the statements of a file, in order. Views that one makes are there for the next.",
        epilog="csv, json (one object a line) and parquet take a single result: of several statements all but one make "
        "views. Example: cersql run late.sql --table flights=flights.csv --output late.parquet",
    )
    add_query(command)
    command.add_argument(
        "--format", choices=output.FORMATS, help="of the result (default: by the end of --output's name, else table)"
    )
    command.add_argument(
        "--output",
        "-o",
        type=Path,
        metavar="FILE",
        help="write the result to this file instead; it is replaced once the result is whole",
    )
    command.add_argument(
        "--html",
        type=Path,
        metavar="FILE",
        help="write a page of what was found instead: matches on timelines, how far starts came, automata",
    )
    command.add_argument(
        "--rows",
        type=positive,
        default=100,
        help="of a table, or of a result in --html, at most (default: %(default)s)",
    )
    add_common(command)
    command.set_defaults(command=running.run)


def _explain(commands: Commands) -> None:
    command = commands.add_parser(
        "explain",
        help="print what is planned for a query",
        description="Print what becomes of the pattern queries in a file. None is run.",
    )
    add_query(command)
    stages = ", ".join(STAGES + DRAWINGS)
    command.add_argument("--stage", choices=STAGES + DRAWINGS, metavar="STAGE", help=f"print this alone: {stages}")
    add_common(command)
    command.set_defaults(command=running.explain)


def _check(commands: Commands) -> None:
    command = commands.add_parser(
        "check",
        help="say what is wrong in files of statements, and run none of them",
        description="Parse and bind every statement, with its tables, and print all errors and warnings. Nothing is "
        "run, but for statements that only define a name. The exit code is 1 if there is an error.",
        epilog="With --schema alone neither data nor Spark are needed, and only pattern queries are checked.",
    )
    command.add_argument("query", nargs="*", metavar="FILE", help="files of statements; - is the standard input")
    command.add_argument("--execute", "-e", metavar="TEXT", help="check this text instead")
    add_common(command)
    command.set_defaults(command=checking.check)


def _shell(commands: Commands) -> None:
    command = commands.add_parser(
        "shell",
        help="a prompt for statements",
        description="A prompt for statements, with history and completion. Reads the standard input if that is no "
        "terminal.",
    )
    command.add_argument("--init", metavar="FILE", help="run the statements of this file first")
    command.add_argument("--rows", type=positive, default=100, help="of a result at most (default: %(default)s)")
    add_common(command)
    command.set_defaults(command=shell.run)


if __name__ == "__main__":
    sys.exit(main())
