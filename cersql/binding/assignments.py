"""AGG(y : b = SUM(x.a), c = MAX(z.d) ; p): the variable, and the attributes of the events that it holds."""

from __future__ import annotations

from dataclasses import dataclass

from cersql.errors import ParseError
from cersql.language.lexer import Token, shown, split, strip_quotes
from cersql.language.source import SourceText
from cersql.language.syntax import Name, Text
from runtime.errors import Span

_HINT = "Write AGG(y : n = COUNT(x), s = SUM(x.a) ; pattern)."


@dataclass(frozen=True)
class Assignment:
    """`b = SUM(x.a)`."""

    name: Name
    value: Text


def created_variable(written: Text) -> Name:
    """The variable of an AGG. Raises ParseError."""
    return _read(written)[0]


def assignments(written: Text) -> tuple[Assignment, ...]:
    """The attributes of an AGG, by their names. Raises ParseError."""
    found = []
    for part in _read(written)[1]:
        if not part or not part[0].is_name:
            raise _expected(part[0] if part else None, "a name for the attribute", written)
        if len(part) < 2 or part[1].text != "=":
            raise _expected(part[1] if len(part) > 1 else None, "'='", written)
        if len(part) < 3:
            raise _expected(None, "an aggregate", written)
        span = part[2].span | part[-1].span
        start = written.span.start
        value = Text(written.value[span.start - start : span.end - start], span)
        found.append(Assignment(_name(part[0]), value))
    return tuple(found)


def _read(written: Text) -> tuple[Name, list[list[Token]]]:
    """The variable, and the tokens of each attribute, at their places in the whole text."""
    start = written.span.start
    toks = [Token(t.kind, t.text, t.start + start, t.end + start) for t in SourceText(written.value).tokens]
    if not toks or not toks[0].is_name:
        raise _expected(toks[0] if toks else None, "a variable", written)
    if len(toks) < 2 or toks[1].text != ":":
        raise _expected(toks[1] if len(toks) > 1 else None, "':'", written)
    return _name(toks[0]), split(toks[2:])


def _name(token: Token) -> Name:
    return Name(strip_quotes(token.text), token.span, token.kind == "quoted")


def _expected(token: Token | None, expected: str, written: Text) -> ParseError:
    span = token.span if token else Span(written.span.end, written.span.end)
    return ParseError("UNEXPECTED_TOKEN", span=span, found=shown(token, "';'"), expected=expected, hint=_HINT)
