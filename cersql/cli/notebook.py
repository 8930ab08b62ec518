"""The magics `%%pattern` and `%pattern`, which `%load_ext cersql` brings. IPython is never imported: it calls us.

%%pattern late --limit 5
FROM flights … PATTERN … RETURN …

%pattern SHOW PATTERNS
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from cersql.api import sql
from cersql.cli.reports import Problem, problem_of
from cersql.cli.texts import Script, Statement
from cersql.statements.find import find, first_query
from cersql.statements.kinds import Whole
from cersql.statements.matches import SHOWN, Matches
from cersql.statements.parameters import check_no_markers
from cersql.statements.planned import Compiled, plan_query
from planner.sql import quote
from runtime.errors import CersqlError, pointer
from spark_ext.connect import is_connect
from spark_ext.errors import SPARK_EXCEPTIONS
from spark_ext.quiet import mute_handled_exceptions, quiet_captures
from spark_ext.session import active

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def load(shell: Any) -> None:
    """Register the magics in an IPython shell."""
    mute_handled_exceptions()

    def show(matches: Matches) -> None:
        data, metadata = shell.display_formatter.format(matches)
        shell.display_pub.publish(data, metadata)

    def pattern(line: str, cell: str | None = None) -> Matches | Compiled | None:
        # A line alone is a statement; above a cell, it holds the options.
        options, text = ("", line) if cell is None else (line, cell)
        try:
            with quiet_captures():  # pyspark would log, at length, what is shown below
                return run(shell.user_ns, options, text, show)
        except (_Shown, CersqlError) as error:
            raise _without_traceback(error, str(error)) from None
        except SPARK_EXCEPTIONS as error:
            raise _without_traceback(error, _text(problem_of(error, text))) from None

    pattern.__doc__ = _parser().format_help()
    pattern._ipython_magic_no_var_expand = True  # type: ignore[attr-defined]  # A{3} is ours, not a variable
    shell.register_magic_function(pattern, "line_cell", "pattern")


class _Shown(Exception):
    """A mistake in the line of the magic."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise _Shown(f"{message}\n{self.format_usage()}".rstrip())


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="%%pattern",
        add_help=False,
        description="Run the statements in the cell and show what they give: matches as a table and a timeline. The "
        "options are about the last one. On a line of its own, %pattern STATEMENT does the same without options.",
    )
    parser.add_argument("name", nargs="?", help="a variable for the matches; its .df is the DataFrame")
    parser.add_argument("--view", metavar="V", help="make the result a temporary view, too")
    parser.add_argument("--limit", metavar="N", type=int, default=SHOWN, help="so many rows are shown (%(default)s)")
    parser.add_argument("--explain", action="store_true", help="show the automaton and the plan instead")
    return parser


def run(
    names: dict[str, Any], line: str, cell: str, show: Callable[[Matches], None] = lambda _: None
) -> Matches | Compiled | None:
    """What the magic does; `names` are the notebook's variables. Returns what the last statement gives, and hands that
    of the others to `show`."""
    try:
        options = _parser().parse_args(shlex.split(line))
    except ValueError as error:
        raise _Shown(str(error)) from None
    if options.name is not None and not options.name.isidentifier():
        raise _Shown(f"{options.name} cannot be the name of a variable")
    if options.limit < 1:
        raise _Shown("--limit takes a number from 1 on")
    spark = _session(names)
    try:
        statements = Script("<cell>", cell).statements()
    except CersqlError as error:
        raise error.at(cell) from None
    if not statements:
        raise _Shown("There is no statement here.")
    *others, last = statements
    for statement in others:
        if options.explain and not statement.defines:
            continue
        result = _result(spark, statement.text, options.limit)
        if statement.gives_rows:
            show(result)
    if options.explain:
        return plan_query(spark, last.text, first_query(last.text)).compiled
    matches = _result(spark, last.text, options.limit)
    if options.view is not None:
        _make_view(spark, options.view, last, matches)
    if options.name is not None:
        names[options.name] = matches
    return matches


def _result(spark: SparkSession, text: str, limit: int) -> Matches:
    """What a statement gives; its first rows are fetched, here where their errors can be shown as they should be."""

    found = find(text)
    if isinstance(found, Whole) and not is_connect(spark):
        check_no_markers(text, [found.query])
        planned = plan_query(spark, text, found.query)
        matches = Matches(planned.frame(), limit=limit)
    else:
        matches = Matches(sql(spark, text), limit=limit)
    matches.fetch()
    return matches


def _make_view(spark: SparkSession, name: str, statement: Statement, matches: Matches) -> None:
    if isinstance(find(statement.text), Whole):
        sql(spark, f"CREATE OR REPLACE TEMPORARY PATTERN VIEW {quote(name)} AS {statement.text.strip()}")
    else:
        matches.df.createOrReplaceTempView(quote(name))


def _session(names: dict[str, Any]) -> SparkSession:
    """The notebook's `spark`, or the active session."""

    spark = names.get("spark")
    if not hasattr(spark, "sql"):
        spark = active()
    if spark is None:
        raise _Shown("There is no Spark session: spark = cersql.session('notebook')")
    return spark


def _text(problem: Problem) -> str:
    """An error of Spark's without its stack traces, and with a caret where its place is known."""
    lines = [problem.message, problem.hint or ""]
    if problem.source is not None and problem.offset is not None:
        lines += ["\n" + pointer(problem.source, problem.offset)]
    return "\n".join(line for line in lines if line)


def _without_traceback(error: Exception, text: str) -> Exception:
    """The error, which IPython shows as this text alone; the cell fails all the same."""
    error._render_traceback_ = text.splitlines  # type: ignore[attr-defined]
    return error
