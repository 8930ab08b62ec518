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


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """1-based line and column of a character offset."""
    before = text[: max(0, min(offset, len(text)))]
    return before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1


def pointer(text: str, offset: int) -> str:
    """The line of `text` that holds `offset`, and a caret under that character."""
    line, column = line_and_column(text, offset)
    shown = text.split("\n")[line - 1].rstrip("\r")
    # Tabs are kept in the margin, so that the caret lands under its character.
    margin = "".join("\t" if c == "\t" else " " for c in shown[: column - 1]).ljust(column - 1)
    return f"{shown}\n{margin}^"


class CersqlError(Exception):
    """Base of all errors of cersql.

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
        self.text = text
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
        """This error with the text it is about, and its place if it had none yet. Returns itself."""
        self.text = self.text if self.text is not None else text
        self.span = self.span or span
        return self

    @property
    def message(self) -> str:
        """What was found, without place, caret and hint."""
        return self.conditions[self.condition].message.format(**self.parameters)

    def __str__(self) -> str:
        where = f" (line {self.line}, column {self.column})" if self.line is not None else ""
        lines = [f"[{self.condition}] {self.message}{where}"]
        if self.hint:
            lines.append(self.hint)
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
            "To read one event in one state of the automaton takes {found} steps, the limit is {limit}.",
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
        "LEAST_BIGINT": Condition(
            "22003",
            "A condition on several events computes with a BIGINT, and cannot do so with {value}, its least value.",
        ),
        "MEMORY_LIMIT": Condition(
            "53200", "A worker holds {found} of memory, the limit is {limit}, for the query {query}."
        ),
        "OUT_OF_MEMORY": Condition("53200", "A worker that holds {found} gets no more memory, for the query {query}."),
        "MATCH_LIMIT": Condition("54000", "A task has listed {found} matches, the limit is {limit}."),
        "COUNT_OVERFLOW": Condition("22003", "There are more matches than a BIGINT can count."),
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
        "SNAPSHOT_VERSION": Condition("55000", "A snapshot of format {found} cannot be restored by format {expected}."),
    }


class InternalError(CersqlError):
    """A mistake of ours."""

    conditions = {"INTERNAL": Condition("XX000", "This is a bug in cersql: {detail}.")}
