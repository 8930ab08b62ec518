"""TABLE arguments of pattern functions, `f(TABLE(t) ORDER BY ts)`, put as Spark's grammar takes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cersql.errors import ParseError
from cersql.language.lexer import Token
from cersql.language.source import SourceText
from runtime.errors import Span


def single_partitions(sql: str) -> list[tuple[Span, str]]:
    """What to put where in a text that Spark refused, so that it takes `f(TABLE(t) ORDER BY ts)`.

    Spark's grammar has no ORDER BY behind a TABLE argument without PARTITION BY or WITH SINGLE PARTITION, and wants
    parentheses around several columns.
    """
    upper = sql.upper()
    if "TABLE" not in upper or ("ORDER" not in upper and "PARTITION" not in upper):
        return []
    text = SourceText.of(sql)
    try:
        toks, closings = text.tokens, text.closings
    except ParseError:
        return []
    found: list[tuple[Span, str]] = []
    for i, token in enumerate(toks[1:], 1):
        if token.upper == "TABLE" and toks[i - 1].text in ("(", ",", "=>"):
            found += _table_clauses(toks, closings, _after_table(toks, closings, i + 1))
    return found


def _table_clauses(toks: Sequence[Token], closings: dict[int, int], at: int) -> Iterator[tuple[Span, str]]:
    """What PARTITION BY and ORDER BY at `at` lack."""
    words = [token.upper for token in toks] + ["", ""]
    alone = True
    while at < len(toks) and words[at + 1] == "BY" and words[at] in ("PARTITION", "DISTRIBUTE", "ORDER", "SORT"):
        if words[at] in ("ORDER", "SORT") and alone:
            yield Span(toks[at].start, toks[at].start), "WITH SINGLE PARTITION "
        alone, at = False, at + 2
        if at in closings:
            at = closings[at] + 1
            continue
        begin, at = at, _after_columns(toks, at)
        if (at > begin and words[at] == ",") or any(word == "," for word in words[begin:at]):
            yield Span(toks[begin].start, toks[begin].start), "("
            yield Span(toks[at - 1].end, toks[at - 1].end), ")"


def _after_columns(toks: Sequence[Token], at: int) -> int:
    """The index behind `a, t.b ASC NULLS LAST` at `at`; behind a comma, `5` and `x => 5` are arguments of the call."""
    begin = at
    while True:
        end = at
        while end < len(toks) and toks[end].is_name:
            end += 1
            if end < len(toks) and toks[end].text == ".":
                end += 1
                continue
            while end < len(toks) and toks[end].upper in ("ASC", "DESC", "NULLS", "FIRST", "LAST"):
                end += 1
            break
        after = toks[end].text if end < len(toks) else ""
        if end == at or after in ("=>", "(") or toks[at].upper in ("TRUE", "FALSE", "NULL"):
            return at - 1 if at > begin else at
        if after != ",":
            return end
        at = end + 1


def _after_table(toks: Sequence[Token], closings: dict[int, int], at: int) -> int:
    """The index behind `(query)`, `(t)` or `db.t` at `at`."""
    if at in closings:
        return closings[at] + 1
    while at + 1 < len(toks) and toks[at + 1].text == ".":
        at += 2
    return at + 1
