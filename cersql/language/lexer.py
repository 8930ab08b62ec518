"""Splits SQL text into tokens with exact character offsets.

Spark's lexical rules, as far as they matter to us: strings with escapes, raw strings, back-ticked identifiers, `--` and
nested `/* */` comments. Whoever needs to look into the user's text (clauses, patterns, conditions) works on
these tokens, so that a keyword inside a string or comment is never mistaken for one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cersql.errors import ParseError
from runtime.errors import Span


@dataclass(frozen=True, slots=True)
class Token:
    """One token: `kind` is 'word', 'quoted', 'number', 'string' or 'op'; `text` is as written."""

    kind: str
    text: str
    start: int
    end: int

    @property
    def upper(self) -> str:
        """A word in upper case, an operator as it is, and '' for all else: safe to compare with keywords."""
        return self.text.upper() if self.kind in ("word", "op") else ""

    @property
    def span(self) -> Span:
        return Span(self.start, self.end)

    @property
    def is_name(self) -> bool:
        """Whether it can be an identifier, by its looks."""
        return self.kind in ("word", "quoted")


_TOKEN = re.compile(
    r"""
      (?P<skip>    \s+ | --[^\r\n]* )
    | (?P<comment> /\* )
    | (?P<string>  [rR](?:'[^']*'|"[^"]*") | '(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*" )
    | (?P<quoted>  `(?:[^`]|``)*` )
    | (?P<open>    [rR]?['"] | ` )
    | (?P<number>  (?:[0-9]+(?:\.(?!\.)[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?:[bB][dD]|[lLsSyYdDfF])?(?!\w) )
    | (?P<word>    \w+ )
    | (?P<op>      <=> | -> | :: | <= | >= | <> | != | == | \|\| | \|> | => | . )
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT_MARK = re.compile(r"/\*|\*/")

OPENING = {"(": ")", "[": "]", "{": "}"}
CLOSING = {close: open_ for open_, close in OPENING.items()}


def tokens(text: str, start: int = 0, end: int | None = None) -> list[Token]:
    """The tokens of `text[start:end]`; offsets count from the start of `text`. Raises ParseError UNCLOSED."""
    stop = len(text) if end is None else end
    found: list[Token] = []
    at = start
    while at < stop:
        match = _TOKEN.match(text, at, stop)
        assert match is not None  # the last alternative takes any character
        kind = match.lastgroup or "op"
        if kind == "comment":
            at = _comment_end(text, at, stop)
            continue
        if kind == "open":
            raise _unclosed(text, match.end() - 1, match.group()[-1])
        after = match.end()
        if kind == "number" and match.group()[0] == "." and found and _ends_operand(found[-1]) and found[-1].end == at:
            kind, after = "op", at + 1  # `t.1` is a part of a name, not the number .1
        if kind != "skip":
            found.append(Token(kind, text[at:after], at, after))
        at = after
    return found


def _ends_operand(token: Token) -> bool:
    return token.is_name or token.text in (")", "]")


def _comment_end(text: str, at: int, stop: int) -> int:
    """The offset after a bracketed comment; these nest, as in Spark."""
    depth = 0
    for mark in _COMMENT_MARK.finditer(text, at, stop):
        depth += 1 if mark.group() == "/*" else -1
        if depth == 0:
            return mark.end()
    raise _unclosed(text, at, "/*")


def _unclosed(text: str, at: int, mark: str) -> ParseError:
    return ParseError("UNCLOSED", span=Span(at, at + len(mark)), text=text, mark=mark)


def check_brackets(toks: Iterable[Token]) -> None:
    """Raises ParseError at an opening mark that is never closed, or at a closing one that closes nothing."""
    stack: list[Token] = []
    for token in toks:
        if token.kind != "op":
            continue
        if token.text in OPENING:
            stack.append(token)
            if len(stack) > MAX_DEPTH:
                raise ParseError("TOO_DEEP", span=token.span, limit=MAX_DEPTH)
        elif token.text in CLOSING:
            if not any(opened.text == CLOSING[token.text] for opened in stack):
                raise ParseError("UNOPENED", span=token.span, mark=token.text)
            if stack[-1].text != CLOSING[token.text]:
                break  # what was opened last is never closed
            stack.pop()
    if stack:
        raise ParseError("UNCLOSED", span=stack[-1].span, mark=stack[-1].text)


MAX_DEPTH = 100


def depths(toks: Iterable[Token]) -> list[int]:
    """Counts for each token the brackets around it: of `f ( a )` 0 0 1 0, since none is inside itself."""
    depth, found = 0, []
    for token in toks:
        if token.kind == "op" and token.text in CLOSING:
            depth -= 1
        found.append(depth)
        if token.kind == "op" and token.text in OPENING:
            depth += 1
    return found


def closing(toks: Sequence[Token], at: int) -> int | None:
    """The index of the token that closes the bracket at index `at`: of `f ( a [ 1 ] )` with 1 it is 6."""
    depth = 0
    for k in range(at, len(toks)):
        if toks[k].kind == "op":
            depth += (toks[k].text in OPENING) - (toks[k].text in CLOSING)
        if depth == 0:
            return k
    return None


def split(toks: list[Token], separator: str = ",") -> list[list[Token]]:
    """Cuts at the separators outside all parentheses: `a, f(b, c)` in two. At least one part, perhaps empty."""
    parts: list[list[Token]] = [[]]
    for token, depth in zip(toks, depths(toks), strict=True):
        if depth == 0 and token.upper == separator:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def strip_quotes(written: str) -> str:
    """An identifier without its back-ticks, a string literal without its quotes and simple escapes."""
    if written[:1] == "`":
        return written[1:-1].replace("``", "`")
    if written[:1] in ("r", "R") and written[1:2] in ("'", '"'):
        return written[2:-1]
    if written[:1] in ("'", '"'):
        return re.sub(r"\\(.)", lambda m: _ESCAPES.get(m.group(1), m.group(1)), written[1:-1], flags=re.DOTALL)
    return written


_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "b": "\b", "Z": "\x1a", "%": "\\%", "_": "\\_"}


def shown(token: Token | None, otherwise: str = "the end of the text") -> str:
    """A token as an error message names it."""
    if token is None:
        return otherwise
    return f"'{token.text}'" if token.kind == "op" else token.text
