"""Errors and warnings as the command line prints them: what, where in the user's file, the line and a caret.

Spark's errors are brought into the form of ours. What it adds for its own developers (stack traces, plans, SQLSTATEs,
the whole text once more) is left out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from rich.console import Console
from rich.text import Text

from cersql.cli.texts import Script, Statement
from cersql.statements.find import first_query
from runtime.errors import CersqlError, line_and_column, pointer, shortened


class StatementError(Exception):
    """An error of ours or of Spark's in a statement of a file."""

    def __init__(self, statement: Statement, cause: Exception) -> None:
        super().__init__(str(cause))
        self.statement, self.cause = statement, cause


@dataclass(frozen=True)
class Problem:
    """`offset` is a place in `source`, the text that it is about; None where it is not known."""

    message: str
    hint: str | None = None
    source: str | None = None
    offset: int | None = None


# ---------------------------------------------------------------- finding out what is wrong


def problem_of(error: Exception, text: str | None = None) -> Problem:
    """What an error says; `text` is the statement that caused it."""
    if isinstance(error, CersqlError):
        offset = error.span.start if error.span is not None and error.text is not None else None
        said_by_spark = _SQLSTATE.sub("", error.message)
        hint = None if error.hint is None else shortened(error.hint)
        return Problem(f"[{error.condition}] {said_by_spark}", hint, error.text, offset)
    message = said(error)
    return Problem(_brief(message), None, text, None if text is None else _place(error, message, text))


def said(error: Exception) -> str:
    """The message alone. A Py4JJavaError's text is a stack trace of the JVM, and the reason is in its first cause."""
    thrown: Any = getattr(error, "java_exception", None)
    if thrown is None:
        return str(error).strip()
    try:
        while thrown.getCause() is not None:
            thrown = thrown.getCause()
        return str(thrown.getMessage() or thrown.toString()).strip()
    except Exception:  # the JVM has gone
        return "The connection to Spark is lost."


# What Spark's messages hold beside the message, each up to the end.
_TAILS = re.compile(
    r"\n*== SQL\b.*|\n*== DataFrame ==.*|;\n'.*|\n*JVM stacktrace:.*|\n+Driver stacktrace:.*|\n\s*at [\w.$/]+\(.*"
    r"|\n+Traceback \(most recent call last\):(?=\n).*|\s*=== Streaming Query ===.*",
    re.DOTALL,
)
_PLACE = re.compile(r";? ?\(?line (\d+),? pos (\d+)\)?")
_SQLSTATE = re.compile(r" *SQLSTATE: \w{5}")
_JOB = re.compile(r"Job aborted due to stage failure:.*?: (?:[\w.$]+(?:Exception|Error): )?(?=\[)", re.DOTALL)
_CARRIED = re.compile(r"\[[A-Z_]+(?:\.[A-Z_]+)?\] \[(?=[A-Z_]+\])")  # the class of Spark's that carries ours
_OURS = re.compile(r"^.*\b(?:ExecutionError|InternalError|CersqlError): (?=\[)", re.DOTALL)
_ADVICE_FOR_ALL = re.compile(
    r"\s*(?:Verify the spelling and correctness|Search path:|If you did not qualify|To tolerate the error).*", re.DOTALL
)


def _brief(message: str) -> str:
    message = _OURS.sub("", _JOB.sub("", message))
    traceback = re.search(r"Traceback \(most recent call last\):.*\n(\w[^\n]*)\s*$", _without(_JVM, message), re.DOTALL)
    message = _TAILS.sub("", message)
    if traceback:
        message = f"{message.strip()} {traceback.group(1)}"
    message = _CARRIED.sub("[", _SQLSTATE.sub("", _PLACE.sub("", message)))
    message = re.sub(r"`?__cersql_\w+\u2028?`?\.", "", message)
    return _ADVICE_FOR_ALL.sub("", message).strip()


_JVM = re.compile(r"\n\s*at [\w.$/]+\(.*|\n*JVM stacktrace:.*", re.DOTALL)


def _without(part: re.Pattern[str], message: str) -> str:
    return part.sub("", message)


def _place(error: Any, message: str, text: str) -> int | None:
    """The offset in `text` that Spark names: in characters, or as a line and a column."""
    try:
        for context in error.getQueryContext() or []:
            if context.contextType().name == "SQL" and not context.objectType():
                return _where(context.fragment(), context.startIndex(), text)
    except Exception:  # not every error of Spark's has contexts, or ones that can be asked
        pass
    found = _PLACE.search(message)
    if found is None:
        return None
    read = _read_text(message) or text
    lines = read.split("\n")
    line, column = int(found.group(1)), int(found.group(2))
    if line > len(lines):
        return None
    offset = sum(len(before) + 1 for before in lines[: line - 1]) + min(column, len(lines[line - 1]))
    return offset if read == text else _led_back(offset, read, text)


def _where(fragment: str, offset: int, text: str) -> int | None:
    """Spark may have read another text, in which a query of ours was replaced: then the fragment is sought."""
    # Spark cuts fragments wrongly after characters that Java counts twice; offsets count them as we do.
    if text.startswith(fragment, offset) or any(letter > "\uffff" for letter in text):
        return offset
    words = re.finditer(rf"(?<!\w){re.escape(fragment)}(?!\w)", text)
    places = [found.start() for found in words] or [found.start() for found in re.finditer(re.escape(fragment), text)]
    if not places:
        return _alike(fragment, text)
    query = first_query(text)
    likely = offset if offset < query.start else offset + (query.end - query.start) - len(_REPLACED)
    return min(places, key=lambda place: abs(place - likely))


def _alike(fragment: str, text: str) -> int | None:
    """Where the text has what Spark read in another form; None unless it is one place.

    For "`val` > `__cersql_var1`.`name`" that is the place of `a.val > b[i].name`.
    """
    read = re.sub(r"\s+AS `[^`]*`$", "", fragment)
    cast = re.fullmatch(r"CAST\((.*) AS \w+(?:\([\d, ]*\))?\)", read, re.DOTALL)
    tokens = re.findall(r"(?:`__cersql_\w+\u2028?`\.)?`(?:[^`]|``)+`|\s+|\w+|.", cast[1] if cast else read, re.DOTALL)
    written = (
        r"(?:\w+(?:\[[^\]]*\])?\.)?`?" + re.escape(token.split("`.`")[-1].strip("`")) + r"\b`?"
        if token.startswith("`")
        else r"\s*"
        if token.isspace()
        else re.escape(token)
        for token in tokens
    )
    found = [*re.finditer(rf"(?<![\w.`]){''.join(written)}(?!\w)", text)]
    return found[0].start() if len(found) == 1 else None


_REPLACED = "SELECT * FROM `__cersql_1\u2028`"  # more digits move it by a few characters


def _read_text(message: str) -> str | None:
    """The text that a ParseException quotes, if that has a query of ours replaced."""
    _, _, quoted = message.partition("\n== SQL ==\n")
    if "__cersql_" not in quoted:
        return None
    return "\n".join(line for line in quoted.split("\n") if not re.fullmatch(r"-*\^+", line))


def _led_back(offset: int, read: str, text: str) -> int | None:
    """The same place in the user's text, which is the same up to the first query of ours and after the last one."""
    if offset <= first_query(text).start:
        return offset
    read = read.rstrip()
    at = offset - len(read) + len(text.rstrip())
    return at if text[at : at + 1] == read[offset : offset + 1] else None


def table_hint(error: Exception) -> str | None:
    """For a table that is not there, how a command is given one."""
    condition = error.condition if isinstance(error, CersqlError) else getattr(error, "getCondition", lambda: None)()
    missing = ("UNKNOWN_SOURCE", "NO_SOURCE", "TABLE_OR_VIEW_NOT_FOUND")
    return "A file becomes a table with --table NAME=FILE." if condition in missing else None


# ---------------------------------------------------------------- printing it


def problem_in(statement: Statement, error: Exception) -> Problem:
    """What an error in a statement says, and where in the file."""
    problem = problem_of(error, statement.text)
    return replace(problem, source=statement.script.text) if problem.source == statement.text else problem


def statement_report(statement: Statement, error: Exception, *, hint: str | None = None) -> Text:
    """`query.sql:3:7: [UNKNOWN_COLUMN] …`, the hint, the line of the file, a caret."""
    return script_report(statement.script, problem_in(statement, error), statement.line, hint=hint)


def script_report(script: Script, problem: Problem, line: int = 1, *, hint: str | None = None) -> Text:
    """`line`: where it is if the problem does not know, or is in another text: that of a pattern function or a view."""
    where = f"{line}"
    if problem.source == script.text and problem.offset is not None:
        where = "{}:{}".format(*line_and_column(script.text, problem.offset))
    return report(problem, f"{script.name}:{where}: ", hint=hint)


def report(problem: Problem, where: str = "", *, hint: str | None = None) -> Text:
    """The problem in colours, for those who can see them."""
    text = Text()
    text.append(where, style="bold")
    text.append(problem.message, style="bold red")
    for line in filter(None, (problem.hint, hint)):
        text.append(f"\n{line}")
    if problem.source is not None and problem.offset is not None:
        line, caret = pointer(problem.source, problem.offset).split("\n")
        text.append(f"\n\n  {line}\n  ")
        text.append(caret, style="bold red")
    return text


def warning_report(statement: Statement, warning: str) -> Text:
    return Text.assemble((f"{statement.script.name}:{statement.line}: ", "bold"), ("warning: ", "bold yellow"), warning)


def put(console: Console, text: Text | str) -> None:
    """Print as it is: no markup, no colours by guess, and no line broken, which would move carets."""
    console.print(text, soft_wrap=True, markup=False, highlight=False)
