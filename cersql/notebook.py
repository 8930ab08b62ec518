"""The cell magic `%%pattern`, which `%load_ext cersql` brings. IPython itself is never imported: it calls us.

%%pattern late --limit 5
FROM flights … PATTERN … RETURN …
"""

from __future__ import annotations

import argparse
import shlex
from typing import TYPE_CHECKING, Any, NoReturn

from cersql.matches import SHOWN, Matches
from cersql.parameters import check_no_markers
from cersql.planned import Compiled, plan_query
from cersql.reports import Problem, problem_of
from cersql.statements import Whole, find, first_query
from planner.sql import quote
from runtime.errors import CersqlError, pointer
from spark_ext.connect import is_connect
from spark_ext.errors import SPARK_EXCEPTIONS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def load(shell: Any) -> None:
    """Register the magic in an IPython shell."""

    def pattern(line: str, cell: str) -> Matches | Compiled | None:
        try:
            return run(shell.user_ns, line, cell)
        except (_Shown, CersqlError) as error:
            raise _without_traceback(error, str(error)) from None
        except SPARK_EXCEPTIONS as error:
            raise _without_traceback(error, _text(problem_of(error, cell))) from None

    pattern.__doc__ = _parser().format_help()
    shell.register_magic_function(pattern, "cell", "pattern")


class _Shown(Exception):
    """A mistake in the line of the magic."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise _Shown(f"{message}\n{self.format_usage()}".rstrip())


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="%%pattern",
        add_help=False,
        description="Run the query in the cell and show its matches as a table and a timeline.",
    )
    parser.add_argument("name", nargs="?", help="a variable for the matches; its .df is the DataFrame")
    parser.add_argument("--view", metavar="V", help="make the query a temporary pattern view, too")
    parser.add_argument("--limit", metavar="N", type=int, default=SHOWN, help="so many rows are shown (%(default)s)")
    parser.add_argument("--explain", action="store_true", help="show the automaton and the plan, and run nothing")
    return parser


def run(names: dict[str, Any], line: str, cell: str) -> Matches | Compiled | None:
    """What the magic does; `names` are the notebook's variables."""
    from cersql.api import sql

    try:
        options = _parser().parse_args(shlex.split(line))
    except ValueError as error:
        raise _Shown(str(error)) from None
    if options.name is not None and not options.name.isidentifier():
        raise _Shown(f"{options.name} cannot be the name of a variable")
    if options.limit < 1:
        raise _Shown("--limit takes a number from 1 on")
    spark = _session(names)
    if options.explain:
        return plan_query(spark, cell, first_query(cell)).compiled
    found = find(cell, every=False)
    compiled = None
    if isinstance(found, Whole) and not is_connect(spark):
        check_no_markers(cell, [found.query])
        planned = plan_query(spark, cell, found.query)
        df, compiled = planned.frame(), planned.compiled
    else:
        df = sql(spark, cell)
    matches = Matches(df, compiled, limit=options.limit)
    matches.fetch()  # here, where its errors can be shown as they should be
    if options.view is not None:
        if isinstance(found, Whole):
            sql(spark, f"CREATE OR REPLACE TEMPORARY PATTERN VIEW {quote(options.view)} AS {cell}")
        else:
            df.createOrReplaceTempView(quote(options.view))
    if options.name is not None:
        names[options.name] = matches
    return matches


def _session(names: dict[str, Any]) -> SparkSession:
    """The notebook's `spark`, or the active session."""
    from spark_ext.session import active

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
