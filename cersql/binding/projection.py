"""PROJECT(x, y(a, b) : p): which variables stay, and which columns of their events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cersql.errors import ParseError
from cersql.language.lexer import Token, shown, split, strip_quotes
from cersql.language.source import SourceText
from cersql.language.syntax import Text
from planner import cel
from planner.acel import Aggregate
from planner.formula import Formula
from runtime.errors import Span

Limits = dict[str, frozenset[str] | None]
"""For each variable the columns that its events keep; None: all."""


@dataclass(frozen=True)
class Target:
    """A variable that stays; `columns` None: with all its columns."""

    name: str
    span: Span
    columns: tuple[tuple[str, Span], ...] | None


def targets(text: SourceText, written: Text) -> Sequence[Target]:
    """The targets of a PROJECT, by their names. Raises ParseError."""
    found, after = [], written.span.end
    if written.span.start == written.span.end:  # PROJECT( : p): of the match its start and end remain
        return ()
    for part in split(text.within(written.span)):
        if not part or not part[0].is_name:
            raise _expected(part[0] if part else None, "a variable", after)
        columns = _columns(part[1:], part[-1].end) if len(part) > 1 else None
        found.append(Target(strip_quotes(part[0].text), part[0].span, columns))
    return found


def _columns(part: list[Token], end: int) -> tuple[tuple[str, Span], ...]:
    """`(a, b)`."""
    if part[0].text != "(" or part[-1].text != ")":
        wrong = part[0] if part[0].text != "(" else part[-1]
        raise _expected(wrong, "a comma, or columns in parentheses", end)
    found = []
    for column in split(part[1:-1]):
        if len(column) != 1 or not column[0].is_name:
            wrong = column[0] if column and not column[0].is_name else column[1] if len(column) > 1 else part[-1]
            raise _expected(wrong, "a column", end)
        found.append((strip_quotes(column[0].text), column[0].span))
    return tuple(found)


def _expected(token: Token | None, expected: str, end: int) -> ParseError:
    span = token.span if token else Span(end, end)
    hint = "Write PROJECT(x, y(a, b) : pattern)."
    return ParseError("UNEXPECTED_TOKEN", span=span, found=shown(token, "':'"), expected=expected, hint=hint)


def limits(formula: Formula, narrowed: Mapping[int, Limits]) -> Limits:
    """Which columns the variables of a formula have; `narrowed`: what each PROJECT (by identity) cut some down to."""
    match formula:
        case cel.Event(_, marks):
            return dict.fromkeys(marks)
        case cel.As(inner, variable):
            found = limits(inner, narrowed)
            every: Limits = {}
            for columns in found.values():
                _merge(every, {variable: columns})
            return {**found, **every}
        case Aggregate(inner):
            return {**dict.fromkeys(formula.marks), **limits(inner, narrowed)}
        case cel.Project(inner, keep):
            found = {mark: columns for mark, columns in limits(inner, narrowed).items() if mark in keep}
            for mark, columns in narrowed.get(id(formula), {}).items():
                before = found[mark]
                found[mark] = columns if before is None or columns is None else columns & before
            return found
    merged: Limits = {}
    for part in formula.positive():
        _merge(merged, limits(part, narrowed))
    return merged


def _merge(into: Limits, more: Limits) -> None:
    """Events of either: all columns that some of them have."""
    for mark, columns in more.items():
        before = into.get(mark, frozenset())
        into[mark] = None if before is None or columns is None else before | columns
