"""The root of every error that cersql raises, and the two kinds that an engine can raise.

    CersqlError
    ├── ParseError       cersql.errors    the text is not a query
    ├── BindError        cersql.errors    a name, source or type in it does not exist or does not fit
    ├── PlanError        planner.errors   the query is understood, and cannot be planned
    ├── ExecutionError   runtime.errors   the data or the machine, while a query runs
    └── InternalError    runtime.errors   our mistake; no input should cause one

Each class lists its *conditions*: a name that programs can test (`e.condition`), an SQLSTATE
and a message template with parameters (`e.parameters`). Where the error has a place in the
user's text, `e.span` holds it and the message ends with that line and a caret.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple


@dataclass(frozen=True)
class Span:
    """Characters [start, end) of the user's text."""

    start: int
    end: int

    def __or__(self, other: Span) -> Span:
        """The smallest span that holds both."""
        return Span(min(self.start, other.start), max(self.end, other.end))


class Condition(NamedTuple):
    sqlstate: str
    message: str


class MadeText(str):
    """A text that was made of another one: errors about it are shown in the one that the user wrote."""

    def led_back(self, span: Span | None) -> tuple[str, Span | None]:
        """The text that the user wrote, and the place in it of a place in this one."""
        raise NotImplementedError


def _led_back(text: str, span: Span | None) -> tuple[str, Span | None]:
    return text.led_back(span) if isinstance(text, MadeText) else (text, span)


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """1-based line and column of a character offset."""
    before = text[: max(0, min(offset, len(text)))]
    return before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1


MOST_QUOTED = 160  # characters of a line; of a longer one the part around the caret
MOST_NAMED = 1200  # characters of a parameter of an error


def excerpt(text: str, offset: int) -> tuple[str, int]:
    """The line of `text` that holds `offset`, and the 0-based column in it; of a long line a part, with … for the rest.

    A text of a program can be a line of a megabyte, which nobody wants in a log.
    """
    line, column = line_and_column(text, offset)
    shown, at = text.split("\n")[line - 1].rstrip("\r"), column - 1
    if len(shown) <= MOST_QUOTED:
        return shown, at
    first = max(0, min(at - MOST_QUOTED // 2, len(shown) - MOST_QUOTED))
    before, after = "…" * (first > 0), "…" * (first + MOST_QUOTED < len(shown))
    return f"{before}{shown[first : first + MOST_QUOTED]}{after}", at - first + len(before)


def short_lines(text: str, offset: int) -> tuple[str, int]:
    """The text with its long lines cut, that of `offset` around it, and the 0-based column of `offset` in its line."""
    quoted, column = excerpt(text, offset)
    own = line_and_column(text, offset)[0] - 1
    lines = [line if len(line) <= MOST_QUOTED else f"{line[:MOST_QUOTED]}…" for line in text.split("\n")]
    lines[own] = quoted
    return "\n".join(lines), column


def shortened(value: str) -> str:
    """What an error names; of something very long the beginning and the end."""
    if len(value) <= MOST_NAMED:
        return value
    return f"{value[: MOST_NAMED * 3 // 4]} … {value[-MOST_NAMED // 4 :]}"


def pointer(text: str, offset: int) -> str:
    """The line of `text` that holds `offset`, and a caret under that character."""
    shown, column = excerpt(text, offset)
    # Tabs are kept in the margin, so that the caret lands under its character.
    margin = "".join("\t" if c == "\t" else " " for c in shown[:column]).ljust(column)
    return f"{shown}\n{margin}^"


class CersqlError(Exception):
    """Base of all errors of cersql.

        try:
            cersql.sql(spark, "FROM trades PATTERN A a ; B b ORDER BY ts RETURN a.prise")
        except cersql.CersqlError as error:
            print(error.condition, error.line, error.column)  # UNKNOWN_COLUMN 1 52

    `condition` names one entry of the class's `conditions`; the keyword `parameters` fill its template. `hint` is
    the way out: the nearest right name, or what to write instead.
    """

    conditions: ClassVar[Mapping[str, Condition]] = {}

    def __init__(
        self,
        condition: str,
        *,
        span: Span | None = None,
        text: str | None = None,
        hint: str | None = None,
        **parameters: object,
    ) -> None:
        if condition not in self.conditions:
            raise ValueError(f"{type(self).__name__} has no condition {condition!r}")
        self.condition = condition
        self.parameters = {name: str(value) for name, value in parameters.items()}
        self.span = span
        self.text: str | None = None
        if text is not None:
            self.at(text)
        self.hint = hint
        super().__init__(condition)

    def __reduce__(self) -> tuple[object, ...]:
        # Exceptions cross process borders (Spark workers); keyword-only arguments need their own way to.
        state = (self.condition, self.span, self.text, self.hint, self.parameters)
        return _rebuild, (type(self), *state)

    @property
    def sqlstate(self) -> str:
        return self.conditions[self.condition].sqlstate

    @property
    def line(self) -> int | None:
        """1-based line in the user's text, or None where the error has no place."""
        return self._place()[0]

    @property
    def column(self) -> int | None:
        """1-based column in the user's text, or None where the error has no place."""
        return self._place()[1]

    def _place(self) -> tuple[int | None, int | None]:
        if self.span is None or self.text is None:
            return None, None
        return line_and_column(self.text, self.span.start)

    def at(self, text: str, span: Span | None = None) -> CersqlError:
        """This error with the text it is about, and its place if it had none yet. Returns itself.

        Of a text that was made of another one it is the place in that.
        """
        if self.text is None:
            self.text, self.span = _led_back(text, self.span or span)
        elif self.span is None:
            self.span = _led_back(text, span)[1]
        return self

    @property
    def message(self) -> str:
        """What was found, without place, caret and hint."""
        shown = {name: shortened(value) for name, value in self.parameters.items()}
        return self.conditions[self.condition].message.format(**shown)

    def __str__(self) -> str:
        where = f" (line {self.line}, column {self.column})" if self.line is not None else ""
        lines = [f"[{self.condition}] {self.message}{where}"]
        if self.hint:
            lines.append(shortened(self.hint))
        if self.span is not None and self.text is not None:
            lines += ["", pointer(self.text, self.span.start)]
        return "\n".join(lines)


def _rebuild(
    cls: type[CersqlError],
    condition: str,
    span: Span | None,
    text: str | None,
    hint: str | None,
    parameters: dict[str, str],
) -> CersqlError:
    return cls(condition, span=span, text=text, hint=hint, **parameters)


class ExecutionError(CersqlError):
    """The data or the machine stopped a query while it ran."""

    conditions = {
        "STATE_LIMIT": Condition(
            "54000",
            "The automaton's subsets grew to {found} states, the limit is {limit}.",
        ),
        "STEP_LIMIT": Condition(
            "54000",
            "To read one event in {states} of the automaton takes {found} steps, the limit is {limit}.",
        ),
        "REGISTER_LIMIT": Condition(
            "54000",
            "A state must remember {found} beginnings of windows inside the pattern, the limit is {limit}.",
        ),
        "SYMBOL_LIMIT": Condition(
            "54000",
            "The rows fall into {found} classes of satisfied conditions, the limit is {limit}.",
        ),
        "ARITHMETIC": Condition("22003", "An overflow, or a division by zero, in {expression}."),
        "AGGREGATE_RESULT": Condition("22000", "{function} gives {found}, which is no {type}."),
        "LEAST_BIGINT": Condition(
            "22003",
            "A condition on several events reads a BIGINT, and cannot do so with {value}, one of its least values.",
        ),
        "MEMORY_LIMIT": Condition(
            "53200", "A worker holds {found} of memory, the limit is {limit}, for the query {query}."
        ),
        "OUT_OF_MEMORY": Condition("53200", "A worker that holds {found} gets no more memory, for the query {query}."),
        "MATCH_LIMIT": Condition("54000", "A task has listed {found} matches, the limit is {limit}."),
        "COUNT_OVERFLOW": Condition("22003", "There are more matches than a BIGINT can count."),
        "TREND_OVERFLOW": Condition("22003", "{function} does not fit DECIMAL(38) in the group {group}."),
        "TREND_GROUPS": Condition("54000", "There may be more groups of matches than a BIGINT can number."),
        "SCAN_FILE": Condition("58030", "The Parquet file {path} cannot be read: {detail}."),
        "PROGRAM_VERSION": Condition(
            "55000",
            "This worker runs cersql {worker} and was sent a program of {program}.",
        ),
        "STREAM_CHANGED": Condition(
            "55000", "The checkpoint holds the state of another query: it was {old}, and now it is {new}."
        ),
        "STREAM_COLUMNS": Condition(
            "55000", "The checkpoint holds rows with the columns {old}, and now they have {new}."
        ),
        "STREAM_ZONE": Condition(
            "55000",
            "The checkpoint was begun in the time zone {old}, on which its conditions depend, and this is {new}.",
        ),
        "STREAM_ROWS": Condition("54000", "{key} holds {found} rows on the stream, and may hold {limit}."),
        "STREAM_DAMAGED": Condition("58030", "The state in the checkpoint is damaged: {reason}."),
        "STREAM_VERSION": Condition(
            "55000", "The checkpoint holds a state of format {found}, and this release reads format {expected}."
        ),
    }


class InternalError(CersqlError):
    """A mistake of ours."""

    conditions = {"INTERNAL": Condition("XX000", "This is a bug in cersql: {detail}.")}
