"""Parses one query, from its text to the syntax tree.

The clauses are cut apart by hand (cersql/language/clauses.py); the pattern is parsed by lark with grammar.lark. Every
error is a ParseError with a place; lark's own never leave this module, which is the only one that knows lark.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Any

import lark
from lark.lexer import Lexer

from cersql.errors import ParseError
from cersql.language import ceql, clause_bodies, esper, syntax
from cersql.language.ceql_query import translated
from cersql.language.clause_bodies import READERS, Body
from cersql.language.clause_table import CLAUSES
from cersql.language.clauses import (
    Layout,
    Section,
    lay_out,
    letters_apart,
    misspelt,
    misspelt_as,
    misspelt_near,
    nearest_key,
)
from cersql.language.foreign import check_first_word, check_for_pattern, check_foreign_query, juxtaposition
from cersql.language.lexer import CLOSING, OPENING, Token, check_brackets, closing, shown
from cersql.language.operators import EASILY_MISSPELT, INFIX
from cersql.language.pattern_tokens import OPERAND, PatternLexer, Terminal
from cersql.language.pattern_tree import Build, Part
from cersql.language.source import SourceText
from runtime.errors import Span


def parse(text: str, *, start: int = 0, end: int | None = None) -> syntax.Query:
    """Parses the query `text[start:end]`; all spans are offsets into the whole `text`. Raises ParseError."""
    source = SourceText.of(text)
    toks = source.within(Span(start, len(source) if end is None else end))
    try:
        return _query(source, toks, start)
    except ParseError as error:
        error.at(source)
        raise


def _query(text: SourceText, toks: list[Token], start: int) -> syntax.Query:
    check_foreign_query(toks)
    _check_brackets(toks)
    foreign = esper.find(toks, start)
    if foreign is None and ceql.is_query(toks, surely=False):
        return _of_ceql(text, toks, start)
    if foreign is None and all(token.upper != "PATTERN" for token in toks):
        check_for_pattern(toks)
    layout = foreign or lay_out(toks, start)
    ctes = _leading(text, layout)
    fields: dict[str, Any] = {}
    meaning = None
    for section in layout.sections:
        before_pattern = CLAUSES[section.kind].before_pattern
        if foreign is not None and section.kind == "PATTERN":
            meaning = esper.parse_pattern(text, Body(text, layout, section).tokens)
            fields["pattern"] = meaning.pattern
        elif before_pattern is not None and "PATTERN" in [
            s.kind for s in layout.sections[layout.sections.index(section) :]
        ]:
            fields[before_pattern] = Body(text, layout, section).raw()
        else:
            fields.update(_section(text, layout, section))
    _check_present(layout)
    keys = tuple((section.kind, section.key) for section in layout.sections)
    query = syntax.Query(text=text, ctes=ctes, clauses=keys, **fields)
    return query if meaning is None else esper.finished(query, meaning)


def _of_ceql(text: SourceText, toks: list[Token], start: int) -> syntax.Query:
    made, most_at_end = translated(text, toks, toks[-1].end if toks else start)
    try:
        return replace(_query(made, list(made.tokens), 0), ceql=True, most_at_end=most_at_end)
    except ParseError as error:
        error.at(made)
        raise


# What a misspelt clause word looks like to the clause before it.
_STRAY = ("UNEXPECTED_TOKEN", "FOREIGN_SYNTAX", "UNKNOWN_OPERATOR", "BAD_WINDOW", "BAD_NUMBER")


def _section(text: str, layout: Layout, section: Section) -> dict[str, Any]:
    """Reads one clause: the fields of Query that it fills."""
    body = Body(text, layout, section)
    try:
        return _fields(text, body)
    except ParseError as error:
        if error.condition in _STRAY and error.span is not None:
            raise misspelt_near(section.body, error.span.start) or error from None
        raise


def _fields(text: str, body: Body) -> dict[str, Any]:
    """Of LIMIT 10 that is {"limit": 10}."""
    clause = CLAUSES[body.kind]
    if clause.body == "pattern":
        return {"pattern": _parse_pattern(text, body)}
    value = READERS[clause.body](body)
    return dict(zip(clause.fills, value if len(clause.fills) > 1 else (value,), strict=True))


# ---------------------------------------------------------------- the query as a whole

_CUT_OFF = (
    "The text ends inside the pattern. beeline, spark-sql and some notebooks cut statements at every ';': "
    "there write '->' or SEQ(…)."
)


def _check_brackets(toks: Sequence[Token]) -> None:
    try:
        check_brackets(toks)
    except ParseError as error:
        words = [token.upper for token in toks]
        if error.condition == "UNCLOSED" and "PATTERN" in words and "RETURN" not in words:
            error.hint = _CUT_OFF
        raise


def _check_present(layout: Layout) -> None:
    """Raises where PATTERN or RETURN is missing: at the word that was meant for it, else at the end of the text."""
    kinds = [section.kind for section in layout.sections]
    every = [token for section in layout.sections for token in section.body]
    for key, example in (("PATTERN", "PATTERN SEQ(A a, B b)"), ("RETURN", "RETURN *")):
        if key in kinds:
            continue
        word = misspelt_as(key, every)
        if word is not None:
            raise misspelt(word, key)
        hint = f"For example: {example}."
        if key == "RETURN" and kinds[-1] == "PATTERN":
            hint = f"{hint} {_CUT_OFF}"
        raise ParseError("MISSING_CLAUSE", span=Span(layout.end, layout.end), clause=key, hint=hint)


def _leading(text: str, layout: Layout) -> syntax.Text | None:
    """What stands before the first clause: nothing, or WITH x AS (…)."""
    toks = layout.leading
    if not toks:
        if not layout.sections:
            raise ParseError("MISSING_CLAUSE", span=Span(layout.end, layout.end), clause="PATTERN", hint=_SHAPE)
        return None
    if toks[0].upper == "WITH":
        _check_ctes(layout)
        return clause_bodies.text_of(text, toks)
    check_first_word(toks)
    word = _misspelt_first(toks[0])
    raise word or _unexpected(toks[0], "a clause: PATTERN, FROM, RETURN, …", toks[0].start, _SHAPE)


_SHAPE = "A query reads: FROM t PATTERN SEQ(A a, B b) WHERE a.id = b.id ORDER BY ts RETURN a.id."


def _misspelt_first(token: Token) -> ParseError | None:
    """The error for the first word of a query, if it nearly is a clause."""
    key = nearest_key(token.text, within=2) if token.kind == "word" else None
    return misspelt(token, key) if key else None


def _check_ctes(layout: Layout) -> None:
    """Checks WITH [RECURSIVE] name [(columns)] AS (query), … for its shape only; Spark reads the queries."""
    toks = layout.leading
    at = 2 if len(toks) > 1 and toks[1].upper == "RECURSIVE" else 1
    after = layout.after_leading()

    def wrong(index: int, expected: str) -> ParseError:
        found = toks[index] if index < len(toks) else after
        return _unexpected(found, expected, layout.end, "Write: WITH x AS (SELECT …) FROM x PATTERN …")

    while True:
        if at >= len(toks) or not toks[at].is_name:
            raise wrong(at, "a name after WITH")
        at = _past_parentheses(toks, at + 1)
        if at >= len(toks) or toks[at].upper != "AS":
            raise wrong(at, "AS (query)")
        closed = _past_parentheses(toks, at + 1)
        if closed == at + 1:
            raise wrong(closed, "'(' and a query")
        at = closed
        if at == len(toks):
            return
        if toks[at].upper != ",":
            raise _misspelt_first(toks[at]) or wrong(at, "a comma or the first clause")
        at += 1


def _past_parentheses(toks: Sequence[Token], at: int) -> int:
    """The index behind the parentheses that open at `at`, or `at` if none do."""
    if at >= len(toks) or toks[at].upper != "(":
        return at
    end = closing(toks, at)
    return len(toks) if end is None else end + 1


def _unexpected(token: Token | None, expected: str, end: int, hint: str | None = None) -> ParseError:
    span = token.span if token else Span(end, end)
    return ParseError("UNEXPECTED_TOKEN", span=span, found=shown(token), expected=expected, hint=hint)


# ---------------------------------------------------------------- the pattern


def _parse_pattern(text: str, body: Body) -> syntax.Pattern:
    feed = PatternLexer(text, body.tokens, body.next, body.end)
    try:
        built = _parser().parse(feed)
    except lark.UnexpectedToken as error:
        raise _taught(body, error) from None
    assert isinstance(built, Part)
    return built.node


class _Feed(Lexer):
    """Hands our terminals to lark as they are."""

    def __init__(self, conf: object) -> None:
        pass

    def lex(self, data: PatternLexer) -> Iterator[lark.Token]:  # type: ignore[override]
        # One at a time: so the first wrong token is found first, be it wrong for the lexer or for the parser.
        for terminal in data.run():
            yield lark.Token(terminal.kind, terminal, terminal.span.start, end_pos=terminal.span.end)


@cache
def _parser() -> lark.Lark:
    grammar = files("cersql.language").joinpath("grammar.lark").read_text(encoding="utf-8")
    return lark.Lark(grammar, parser="lalr", lexer=_Feed, transformer=Build(), maybe_placeholders=True)


# What the parser would accept, in the user's words, in this order.
_WORDS = {
    "TYPE": OPERAND,
    "NAME": "a variable",
    "QUANT": "a quantifier",
    "_AS": "AS",
    "_THEN": f"an operator (; -> : {' '.join(INFIX)})",
    "_COMMA": "a comma",
    "COUNT": "a number of rounds",
    "RPAR": "')'",
    "LPAR": "'('",
    "$END": "the next clause",
}


def _misspelt_operator(body: Body, token: Token) -> ParseError | None:
    """Two names in a row, `A FLITER x`: an operator was meant by the second, or by the one before it."""
    index = body.tokens.index(token)
    for word in (body.tokens[index - 1], token):
        for operator in EASILY_MISSPELT:
            if word.kind == "word" and 0 < letters_apart(word.upper, operator, 2) <= 2:
                hint = f"Did you mean {operator}?"
                return ParseError("UNKNOWN_OPERATOR", span=word.span, name=word.text, hint=hint)
    return None


def _in_brackets(body: Body, offset: int) -> bool:
    """A place is in brackets if the innermost one that is open around it is a `[`."""
    opened: list[str] = []
    for token in body.tokens:
        if token.start >= offset:
            break
        if token.kind == "op" and token.text in OPENING:
            opened.append(token.text)
        elif token.kind == "op" and token.text in CLOSING:
            opened.pop()
    return opened[-1:] == ["["]


def _after_nothing(before: Sequence[Token], operand: bool) -> str | None:
    """What to say where an operand is missing behind the tokens `before`: `A ; RETURN`, `A -> -> B`."""
    if not operand or not before or before[-1].upper in OPENING:
        return None
    return f"Nothing follows {shown(before[-1])}."


def _taught(body: Body, error: lark.UnexpectedToken) -> ParseError:
    """Puts lark's error into words: what was found, what can stand there, and what was probably meant."""
    accepts = error.accepts or error.expected
    # Where an operand can stand, its words name the parenthesis already.
    listed = [words for kind, words in _WORDS.items() if kind in accepts and not (kind == "LPAR" and "TYPE" in accepts)]
    if error.token.type != "$END" and _in_brackets(body, error.token.value.span.start):
        listed = [words.replace("')'", "']'") for words in listed]
    expected = ", ".join(listed[:-1]) + " or " + listed[-1] if len(listed) > 1 else "".join(listed) or "something else"
    if error.token.type == "$END":
        return body.unexpected(None, expected, _after_nothing(body.tokens, "TYPE" in accepts))
    terminal: Terminal = error.token.value
    span = terminal.span
    first = next(token for token in body.tokens if token.start >= span.start)
    if "COUNT" in accepts:
        return body.unexpected(first, expected, "Write ITER(p, 2).")
    if terminal.kind in ("NAME", "TYPE"):
        return _misspelt_operator(body, first) or juxtaposition(body.tokens, body.tokens.index(first))
    hint = None
    if terminal.kind == "_COMMA":
        hint = "Only SEQ, ALL and ANY take a list: write SEQ(A, B), or A -> B."
    elif terminal.kind == "RPAR" and "TYPE" in accepts:
        previous = body.tokens[body.tokens.index(first) - 1]
        if previous.upper == "(":
            return ParseError("EMPTY_PATTERN", span=first.span, expected=OPERAND)
        hint = _after_nothing([previous], True)
    elif "TYPE" in accepts:
        hint = _after_nothing(body.tokens[: body.tokens.index(first)], True) or f"Nothing stands before {shown(first)}."
    elif terminal.kind == "LPAR":
        hint = "Parts one after the other: A -> (…), or SEQ(A, …)."
    return body.unexpected(first, expected, hint)
