"""The WITH of a statement, as a query of ours inside it sees it.

    WITH c AS (SELECT …), d AS (FROM c PATTERN …) SELECT * FROM d JOIN (FROM c PATTERN …)

A query is planned by itself, so the definitions that it can see are put before what it reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from cersql.language.lexer import OPENING, Token, strip_quotes
from cersql.language.source import SourceText
from runtime.errors import Span


class Definition(NamedTuple):
    """`name AS (query)`; `recursive`: of a WITH RECURSIVE."""

    name: str
    span: Span
    recursive: bool


def visible(sql: str, query: Span) -> list[Definition]:
    """What the query at a place of a statement can name: of the WITHs around it and of its own, the innermost of each
    name. Nothing where it names none but its own."""
    text = SourceText.of(sql)
    toks, levels = text.tokens, text.depths
    found: dict[str, Definition] = {}
    for i, token in enumerate(toks):
        if token.upper != "WITH" or token.start > query.start:
            continue
        for definition in _definitions(toks, levels, i):
            if token.start == query.start or _reaches(toks, levels, levels[i], definition.span.end, query.start):
                name = strip_quotes(definition.name).casefold()
                found.pop(name, None)
                found[name] = definition
    inside = {strip_quotes(t.text).casefold() for t in toks if t.is_name and query.start <= t.start < query.end}
    outside = any(name in inside for name, definition in found.items() if definition.span.start < query.start)
    return list(found.values()) if outside else []


def _definitions(toks: Sequence[Token], levels: Sequence[int], at: int) -> Iterator[Definition]:
    """Those of the WITH at `at`; none where it is another WITH, such as WITH TIMEOUTS."""

    def word(i: int) -> str:
        return toks[i].upper if i < len(toks) else ""

    def behind(i: int) -> int:
        """The index behind the parenthesis that opens at `i`."""
        end = next((j for j in range(i + 1, len(toks)) if levels[j] == levels[i] and toks[j].text == OPENING["("]), i)
        return end + 1

    recursive = word(at + 1) == "RECURSIVE"
    at += 1 + recursive
    while at < len(toks) and toks[at].is_name:
        name, at = toks[at], at + 1
        if word(at) == "(":
            at = behind(at)
        if word(at) == "MAX":  # RECURSION LEVEL n
            at += 4
        if word(at) != "AS" or word(at + 1) != "(":
            return
        at = behind(at + 1)
        yield Definition(name.text, Span(name.start, toks[at - 1].end), recursive)
        if word(at) != ",":
            return
        at += 1


def _reaches(toks: Sequence[Token], levels: Sequence[int], level: int, end: int, start: int) -> bool:
    """A definition reaches `start` if the parenthesis around its WITH, which is at `level`, stays open until there."""
    between = [own for token, own in zip(toks, levels, strict=True) if end <= token.start < start]
    return end <= start and all(own >= level for own in between)
