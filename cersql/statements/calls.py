"""Calls of pattern functions in a statement, for sessions whose server cannot be given a function (Spark Connect).

    SELECT * FROM fires(TABLE(sensors) PARTITION BY id ORDER BY ts, threshold => 40)

`replaced` finds them by tokens, plans each, and puts a private view where the call was. The arguments are constants,
and TABLE sees tables and views, not the WITH of its statement.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cersql.errors import ParseError
from cersql.language.lexer import Token, closing, split, strip_quotes
from cersql.language.source import SourceText
from cersql.statements.parameters import Filled, Values, fill, fill_markers
from runtime.errors import CersqlError, Span
from spark_ext import connect, views
from spark_ext.arguments import constant
from spark_ext.errors import SparkError
from spark_ext.functions import Call

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Run = Callable[["SparkSession", str], "DataFrame"]
"""(session, text of a query, which may have patterns in it) -> its rows."""


@dataclass(frozen=True)
class _Found:
    """A call: its function, its place, and the tokens of each argument."""

    name: Token
    span: Span
    arguments: list[list[Token]]


@dataclass(frozen=True)
class Replaced:
    """`filled` has a private view for each call; `told` has the calls, and values where `filled` has them."""

    filled: Filled
    told: str


def replaced(spark: SparkSession, text: str, values: Values, run: Run) -> Replaced | None:
    """The statement with a private view for each call; None if it has none. With values in order, all are filled in."""
    known = connect.functions(spark)
    lowered = text.casefold()
    if not any(name in lowered for name in known):
        return None
    calls = _calls(text, known)
    if not calls:
        return None
    arguments = values()
    if arguments:
        marked = fill_markers(text, [call.span for call in calls], arguments)
        if marked.text != text:
            try:
                inner = _with_views(spark, marked.text, _calls(marked.text, known), run)
            except CersqlError as error:
                raise marked.original(error.at(marked.text)) from None
            return Replaced(Filled(text, inner.sql), marked.text)
    return Replaced(_with_views(spark, text, calls, run), text)


def _with_views(spark: SparkSession, text: str, calls: list[_Found], run: Run) -> Filled:
    places = []
    for found in calls:
        name = strip_quotes(found.name.text)
        try:
            df = connect.functions(spark)[name.casefold()](_call(spark, text, found, run))
        except CersqlError as error:
            raise error.at(text, found.span) from None
        places.append((found.span, views.private_view(spark, df, lasting=False)))
    return fill(text, places)


def _calls(text: str, known: Mapping[str, object]) -> list[_Found]:
    """The calls, but for those inside another's TABLE argument."""
    try:
        toks = SourceText.of(text).tokens
    except ParseError:
        return []
    words = [token.upper for token in toks[:5]]
    if words[:1] == ["CREATE"] and "FUNCTION" in words:
        return []  # the name in front of the parameters is no call
    found, at = [], 0
    while at < len(toks) - 1:
        token, end = toks[at], None
        if token.is_name and toks[at + 1].text == "(" and strip_quotes(token.text).casefold() in known:
            end = closing(toks, at + 1)
        if end is None or toks[at - 1].text == ".":
            at += 1
            continue
        arguments = split(list(toks[at + 2 : end]))
        if any(_is_table(argument) for argument in arguments) or (at and toks[at - 1].upper in ("FROM", "JOIN")):
            found.append(_Found(token, Span(token.start, toks[end].end), [a for a in arguments if a]))
            at = end
        at += 1
    return found


def _is_table(argument: list[Token]) -> bool:
    argument = _unnamed(argument)[1]
    return len(argument) > 1 and argument[0].upper == "TABLE" and (argument[1].is_name or argument[1].text == "(")


def _unnamed(argument: list[Token]) -> tuple[str | None, list[Token]]:
    """`name => value` apart."""
    if len(argument) > 2 and argument[0].is_name and argument[1].text == "=>":
        return strip_quotes(argument[0].text), argument[2:]
    return None, argument


def _call(spark: SparkSession, text: str, found: _Found, run: Run) -> Call:
    name, table = strip_quotes(found.name.text), None
    positional: list[str] = []
    named: list[tuple[str, str]] = []
    for argument in found.arguments:
        key, value = _unnamed(argument)
        written = text[value[0].start : value[-1].end] if value else ""
        if _is_table(argument):
            if table is not None:
                raise _error(name, "its argument is one TABLE(…), and here are two", argument)
            table = value
            continue
        literal = constant(spark, written)
        if literal is None:
            raise _error(name, f"its argument {written} must be a constant: the pattern is planned with it", argument)
        if key is None:
            positional.append(literal)
        else:
            named.append((key, literal))
    if table is None:
        raise _error(name, "it needs a TABLE(…) argument", [found.name])
    end = 2
    if table[1].text == "(":
        end = (closing(table, 1) or len(table)) + 1
        inner = table[2 : end - 1]
    else:
        while end < len(table) and (table[end].text == "." or table[end - 1].text == "."):
            end += 1
        inner = table[1:end]
    if not inner:
        raise _error(name, "its TABLE argument is empty", table)
    query = text[inner[0].start : inner[-1].end]
    if all(token.is_name or token.text == "." for token in inner) and inner[0].upper != "SELECT":
        query = f"SELECT * FROM {query}"
    partition_by, order_by = _clauses(name, table[end:])
    return Call(run(spark, query), tuple(positional), tuple(named), partition_by, order_by)


def _clauses(name: str, toks: list[Token]) -> tuple[tuple[str, ...] | None, tuple[tuple[str, bool], ...] | None]:
    """PARTITION BY and ORDER BY behind a TABLE argument, or their synonyms."""
    partition_by: tuple[str, ...] | None = None
    order_by: tuple[tuple[str, bool], ...] | None = None
    at = 0
    while at < len(toks):
        words = tuple(token.upper for token in toks[at : at + 3])
        if words == ("WITH", "SINGLE", "PARTITION"):
            at += 3
            continue
        if words[1:2] != ("BY",) or words[0] not in ("PARTITION", "DISTRIBUTE", "ORDER", "SORT") or len(words) < 3:
            raise _error(name, f"there is no {toks[at].text} behind TABLE(…)", toks[at:])
        start = at + 2
        if toks[start].text == "(":
            end = (closing(toks, start) or len(toks)) + 1
            items = split(toks[start + 1 : end - 1])
        else:
            end = start
            while end < len(toks) and toks[end].upper not in ("WITH", "PARTITION", "DISTRIBUTE", "ORDER", "SORT"):
                end += 1
            items = [toks[start:end]]
        if words[0] in ("PARTITION", "DISTRIBUTE"):
            partition_by = tuple(_column(name, item, "PARTITION BY") for item in items)
        else:
            order_by = tuple(_ordered(name, item) for item in items)
        at = end
    return partition_by, order_by


def _ordered(name: str, item: list[Token]) -> tuple[str, bool]:
    """(column, nulls last)"""
    words = [token.upper for token in item]
    last = words[-2:] == ["NULLS", "LAST"]
    if words[-2:-1] == ["NULLS"]:
        item, words = item[:-2], words[:-2]
    if words[-1:] == ["DESC"]:
        raise _error(name, "its ORDER BY is the order in which events happened, which is ascending", item)
    return _column(name, item[:-1] if words[-1:] == ["ASC"] else item, "ORDER BY"), last


def _column(name: str, item: list[Token], clause: str) -> str:
    plain = item[2:] if len(item) == 3 and item[1].text == "." else item
    if len(plain) != 1 or not plain[0].is_name:
        written = " ".join(token.text for token in item)
        raise _error(name, f"{clause} takes columns, and {written} is none: compute it in TABLE(SELECT …)", item)
    return strip_quotes(plain[0].text)


def _error(name: str, problem: str, toks: list[Token]) -> SparkError:
    span = Span(toks[0].start, toks[-1].end) if toks else None
    return SparkError("FUNCTION_CALL", span=span, name=name, problem=problem)
