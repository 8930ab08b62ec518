"""Notations of other pattern languages, and what to write instead."""

from __future__ import annotations

from collections.abc import Sequence

from cersql.errors import ParseError
from cersql.lexer import Token, shown

_INSTEAD = {
    "|": "Write A OR B.",
    "||": "Write A OR B.",
    "|>": "Write A OR B.",
    "&": "Write A ALL B (both, in any order), or A AND B (the same events).",
    "^": "Write START(p): it matches from the first row of the partition on.",
    "$": "There is no mark for the end of a partition; for its start there is START(p).",
    "{-": "Write every part; RETURN chooses what is shown, PROJECT(x : p) keeps some variables.",
    "-": "Write every part; RETURN chooses what is shown, PROJECT(x : p) keeps some variables.",
    "=>": "Write A -> B, or SEQ(A, B).",
    ">": "Write A -> B, or SEQ(A, B).",
    ".": "A type is one name: write FROM db.t AS T and use T, or put the type into back-ticks.",
    "::": "Write A : B, with one colon.",
    "PERMUTE": "Write ALL(A a, B b): the parts in any order.",
}


def foreign(token: Token, before: Token | None, after: Token | None) -> ParseError | None:
    """The error for a mark of another language, or None if we do not know it."""
    mark = token.upper
    if mark == "[":
        return _bracket(token, before, after)
    if mark in ("=", "=="):
        name = f"{after.text} {before.text}" if before and after and before.is_name and after.is_name else "Type x"
        return _error(token, token.text, f"Write the type, then the variable: {name}.")
    if mark == "{" and after is not None and after.text == "-":
        return _error(token, "{-", _INSTEAD["{-"])
    if mark in _INSTEAD:
        return _error(token, token.text, _INSTEAD[mark])
    return None


def _error(token: Token, found: str, hint: str) -> ParseError:
    return ParseError("FOREIGN_SYNTAX", span=token.span, found=f"'{found}'" if token.kind == "op" else found, hint=hint)


def _bracket(token: Token, before: Token | None, after: Token | None) -> ParseError | None:
    if before is None:
        hint = "Esper's patterns stand in SELECT … FROM PATTERN [every a=A -> b=B]; ours have no brackets."
        return _error(token, "[", hint)
    if before.is_name:
        hint = f"A condition on an event: {before.text} FILTER condition, or in WHERE: {before.text}[condition]."
        return _error(token, "[", hint)
    return None


def juxtaposition(token: Token) -> ParseError:
    """For a name where an operator is needed: `A B C`, `(A B)+ C`."""
    hint = "One immediately after the other is A : B : C, with anything between A -> B -> C or SEQ(A, B, C)."
    return ParseError(
        "FOREIGN_SYNTAX",
        span=token.span,
        found=f"{shown(token)} after a whole part",
        hint=f"{hint} (p) AS x names a part.",
    )


_RECOGNIZE = (
    "The same shape in cersql:\n"
    "  FROM ticks DEFINE B AS price < 10 PATTERN A : B:+ : C   -- for PATTERN (A B+ C)\n"
    "  PARTITION BY symbol ORDER BY ts AFTER MATCH SKIP PAST LAST ROW\n"
    "  RETURN A.ts AS begins, LAST(B.price) AS low             -- for MEASURES"
)


def check_foreign_query(toks: Sequence[Token]) -> None:
    """Raises for whole queries of other languages that are not read here: MATCH_RECOGNIZE."""
    for index, token in enumerate(toks):
        after = toks[index + 1].upper if index + 1 < len(toks) else ""
        before = toks[index - 1].upper if index else ""
        if token.upper == "MATCH_RECOGNIZE" and after == "(" and before != ".":
            raise ParseError("MATCH_RECOGNIZE_TEXT", span=token.span, hint=_RECOGNIZE)


def check_first_word(toks: Sequence[Token]) -> None:
    """Raises for a query that begins with SELECT, or has MEASURES."""
    if toks and toks[0].upper == "SELECT":
        hint = "Write RETURN, or put the pattern query into parentheses: SELECT … FROM (PATTERN … RETURN …) AS m."
        raise ParseError("UNKNOWN_CLAUSE", span=toks[0].span, clause="SELECT", hint=hint)
