"""cersql.patterns(spark): the definitions of a session, as a thing to look at, to save and to load."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from cersql.language.lexer import strip_quotes
from cersql.language.scripts import split
from cersql.language.source import SourceText
from cersql.statements.catalog import catalog
from cersql.statements.files import write_whole
from runtime.errors import CersqlError, Span

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_ext.patterns import Definition

_HEADER = "-- Pattern views and functions of cersql; cersql.patterns(spark).load(file) creates them again.\n"


class Patterns:
    """The pattern views and functions that can be used in a session, in the order of their creation."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def __iter__(self) -> Iterator[str]:
        """Their names."""
        return (definition.name for definition in self._definitions())

    def __len__(self) -> int:
        return len(self._definitions())

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and any(d.name.casefold() == name.casefold() for d in self._definitions())

    def __getitem__(self, name: str) -> str:
        """The CREATE statement of one. Raises KeyError."""
        for definition in self._definitions():
            if definition.name.casefold() == name.casefold():
                return definition.text
        raise KeyError(name)

    def __repr__(self) -> str:
        kinds = (f"{definition.name} ({definition.kind.lower()})" for definition in self._definitions())
        return f"<Patterns: {', '.join(kinds) or 'none'}>"

    def text(self) -> str:
        """Statements that create all of them again, in an order in which each finds those that it was made of."""
        return "\n".join([_HEADER, *(f"{_replacing(d.text)};\n" for d in _in_order(self._definitions()))])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write `text()` to a file: all of it or, if that fails, nothing."""
        write_whole(Path(path), self.text())

    def load(self, path: str | os.PathLike[str]) -> list[str]:
        """Run the statements of a file, one after the other; returns the names of what it defines.

        Views are bound to the tables that the session has now. Raises CersqlError or Spark's error at the first
        statement that fails; those before it have been carried out.
        """
        from cersql.statements.front import sql

        text = Path(path).read_text(encoding="utf-8")
        before = {definition.text for definition in self._definitions()}
        for statement in split(text):
            try:
                with catalog():
                    sql(self._spark, text[statement.start : statement.end])
            except CersqlError as error:
                raise _moved(error, text, statement) from None
        return [definition.name for definition in self._definitions() if definition.text not in before]

    def _definitions(self) -> list[Definition]:
        from spark_ext.patterns import definitions

        return definitions(self._spark)


def _in_order(definitions: list[Definition]) -> list[Definition]:
    """In the order of creation, but each after those that it names: one that was replaced was created after them."""
    names = {d.name.casefold() for d in definitions}
    left = [(d, names & _names_in(d.text)) for d in definitions]
    found: list[Definition] = []
    while left:
        open_ = [d.name.casefold() for d, _ in left]
        free = (i for i, (d, used) in enumerate(left) if not (used - {d.name.casefold()}).intersection(open_))
        found.append(left.pop(next(free, 0))[0])
    return found


def _names_in(text: str) -> set[str]:
    return {strip_quotes(token.text).casefold() for token in SourceText(text).tokens if token.is_name}


def _replacing(statement: str) -> str:
    """CREATE as CREATE OR REPLACE, so that loading twice does no harm."""
    toks = SourceText(statement).tokens
    if toks[1].upper == "OR":
        return statement
    return f"{statement[: toks[0].end]} OR REPLACE{statement[toks[0].end :]}"


def _moved(error: CersqlError, text: str, statement: Span) -> CersqlError:
    """The error of one statement, at its place in the whole text."""
    if error.span is not None and error.text == text[statement.start : statement.end]:
        error.span = Span(error.span.start + statement.start, error.span.end + statement.start)
        error.text = text
    return error
