"""The conditions of CEQL, between the brackets of `x[…]`, in Spark's words.

    price IN RANGE (1, n + 2)        price BETWEEN 1 AND n + 2
    id IN {1, 2}, id NOT IN {..9}    id IN (1, 2), id > 9
    name LIKE 'GO|NO'                name RLIKE 'GO|NO'          a regular expression, found anywhere in the name
    name LIKE <<GO.*>>               name RLIKE '\\\\A(?:GO.*)\\\\z'     CORE's older spelling: of the whole name
    name = 'it''s', name = 'a\\b'     'it\\'s', 'a\\\\b'                  in CEQL a backslash is a character
    volume / 2 > 10                  whole numbers are divided without remainder: cersql/language/ceql_division.py

All else is the same in both, and stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from cersql.errors import ParseError
from cersql.language.ceql_division import Product, all_whole, product_at, refused, when_whole
from cersql.language.lexer import Token, closing, shown
from cersql.language.translated import Piece, kept, said
from planner.sql import literal
from runtime.errors import Span

_RANGE = re.compile(r"\s*(\d*\.?\d+(?:[eE]-?\d+)?)?\s*\.\.\s*(\d*\.?\d+(?:[eE]-?\d+)?)?\s*")
_EQUALS = {"=": "RLIKE", "==": "RLIKE", "!=": "NOT RLIKE", "<>": "NOT RLIKE"}


def in_spark(text: str, toks: Sequence[Token]) -> list[Piece]:
    """The condition that these tokens of `text` are. Raises ParseError."""
    return list(_Condition(text, toks).pieces())


class _Condition:
    """`whole`: the tokens of the condition that these are a part of, if they are. `drops`: whether `/` drops the
    remainder, where that is decided."""

    def __init__(
        self, text: str, toks: Sequence[Token], whole: Sequence[Token] | None = None, drops: bool | None = None
    ) -> None:
        self.text, self.toks, self.at = text, toks, 0
        self.whole = toks if whole is None else whole
        self.drops = drops

    def upper(self, ahead: int = 0) -> str:
        at = self.at + ahead
        return self.toks[at].upper if 0 <= at < len(self.toks) else ""

    def pieces(self) -> Iterator[Piece]:
        before: Token | None = None
        while self.at < len(self.toks):
            token = self.toks[self.at]
            if before is not None and before.end < token.start:
                yield said(" ", token)
            yield from self._next(token)
            before = self.toks[self.at - 1]

    def _next(self, token: Token) -> Iterator[Piece]:
        word = token.upper
        negated = word == "NOT" and self.upper(1) == "IN"
        opening = self.upper(2 if negated else 1)
        if word == "IN" or negated:
            if opening == "{":
                yield from self._values(token, negated)
                return
            if opening == "RANGE" and not negated:
                yield from self._range(token)
                return
        if word == "LIKE":
            yield said("RLIKE ", token)
            self.at += 1
            yield self._regexp(token)
        elif word in _EQUALS and self._opens_regexp(1):
            yield said(f"{_EQUALS[word]} ", token)
            self.at += 1
            yield self._regexp(token)
        elif token.kind == "string":
            yield self._string()
        else:
            product = product_at(self.toks, self.at)
            if product is not None and product.divides:
                yield from self._divided(product)
            else:
                if word == "/" and when_whole(self.whole, token) is not None:
                    raise refused(token)
                yield from self._as_it_is(token)

    def _as_it_is(self, token: Token) -> Iterator[Piece]:
        self.at += 1
        yield kept(token)

    # ------------------------------------------------------------ strings

    def _raw_string(self) -> tuple[str, Span]:
        """The characters of the string here, in which `''` is a quote and a backslash itself."""
        first = last = self.toks[self.at]
        parts = [first.text[1:-1]]
        self.at += 1
        while self.at < len(self.toks) and self.toks[self.at].kind == "string" and self.toks[self.at].start == last.end:
            last = self.toks[self.at]
            parts.append(last.text[1:-1])
            self.at += 1
        return "'".join(parts), first.span | last.span

    def _string(self) -> Piece:
        token = self.toks[self.at]
        if token.text[0] != "'":  # CEQL has none of these: as Spark reads it
            self.at += 1
            return kept(token)
        raw, span = self._raw_string()
        written = self.text[span.start : span.end]
        return (written, span.start, True) if written == literal(raw) else said(literal(raw), span)

    def _opens_regexp(self, ahead: int) -> bool:
        return self.upper(ahead) == "<" and self.upper(ahead + 1) == "<"

    def _regexp(self, operator: Token) -> Piece:
        """The regular expression here: `'GO.*'`, found anywhere in the value, or `<<GO.*>>`, which is all of it."""
        token = self.toks[self.at] if self.at < len(self.toks) else None
        if token is not None and token.kind == "string" and token.text[0] == "'":
            raw, span = self._raw_string()
            return said(literal(raw), span)
        if self._opens_regexp(0) and token is not None:
            raw, span = self._between_angles(token)
            return said(literal(f"\\A(?:{raw})\\z"), span)
        hint = "For example: name LIKE 'GO.*'. In CEQL it is a regular expression, found anywhere in the value."
        raise _unexpected(token, "a regular expression in quotes", operator.end, hint)

    def _between_angles(self, opening: Token) -> tuple[str, Span]:
        for k in range(self.at + 2, len(self.toks) - 1):
            one, other = self.toks[k : k + 2]
            if one.text == other.text == ">" and one.end == other.start:
                raw = self.text[self.toks[self.at + 1].end : one.start]
                self.at = k + 2
                return raw, Span(opening.start, other.end)
        raise ParseError("UNCLOSED", span=opening.span, mark="<<")

    # ------------------------------------------------------------ numbers

    def _values(self, token: Token, negated: bool) -> Iterator[Piece]:
        """`IN {1, 2}`, `NOT IN {3..9}`, `IN {..3}`."""
        place = self.at + (2 if negated else 1)
        end = closing(self.toks, place)
        assert end is not None  # the brackets of the text are balanced
        opening, close, inside = self.toks[place], self.toks[end], self.toks[place + 1 : end]
        written = self.text[opening.end : close.start]
        bounds = _RANGE.fullmatch(written)
        if bounds is not None and (bounds[1] or bounds[2]):
            self.at = end + 1
            yield said(_within_bounds(bounds[1], bounds[2], negated), token)
            return
        if not inside:
            raise _unexpected(close, "values in braces", close.start, "For example: id IN {1, 2} or id IN {3..9}.")
        yield said("NOT IN (" if negated else "IN (", token)
        yield from self._part(inside)
        self.at = end + 1
        yield said(")", close)

    def _range(self, token: Token) -> Iterator[Piece]:
        """`IN RANGE (low, high)`."""
        place = self.at + 2
        opening = self.toks[place] if place < len(self.toks) else None
        end = closing(self.toks, place) if opening is not None and opening.upper == "(" else None
        if end is None:
            raise _unexpected(opening, "'(' after RANGE", self.toks[-1].end, _EXAMPLE)
        commas = [k for k in range(place + 1, end) if self.toks[k].upper == "," and _level(self.toks, place, k) == 1]
        if len(commas) != 1 or commas[0] in (place + 1, end - 1):
            wrong = self.toks[commas[1]] if len(commas) > 1 else self.toks[end]
            raise _unexpected(wrong, "two bounds", wrong.start, _EXAMPLE)
        yield said("BETWEEN ", token)
        low, high = self.toks[place + 1 : commas[0]], self.toks[commas[0] + 1 : end]
        yield from self._part(low)
        yield said(" AND ", self.toks[commas[0]])
        yield from self._part(high)
        self.at = end + 1

    def _divided(self, product: Product) -> list[Piece]:
        """`a * b / c`, without remainder where its comparison is of whole numbers."""
        self.at = product.factors[-1][1]
        if self.drops is not None:
            return self._product(product, self.drops)
        division = product.division
        whole = when_whole(self.whole, division)
        with_remainder = self._product(product, False)
        if whole is None:
            return with_remainder
        without = self._product(product, True)
        if not whole:
            return [said("(", division), *without, said(")", division)]
        asked = all_whole(whole, division)
        comma = said(", ", division)
        return [said("if(", division), *asked, comma, *without, comma, *with_remainder, said(")", division)]

    def _product(self, product: Product, drops: bool) -> list[Piece]:
        """Its factors, of whole numbers if `drops`, and its operators."""
        found: list[Piece] = []
        for k, (start, end) in enumerate(product.factors):
            if k:
                operator = product.operators[k - 1]
                word = "div" if drops and operator.text == "/" else operator.text
                found.append(said(f" {word} ", operator))
            factor = self.toks[start:end]
            if not drops or factor[0].kind == "number":
                found += self._part(factor, drops)
                continue
            inside = factor[1:-1] if factor[0].text == "(" else factor
            found += [said("CAST(", factor[0]), *self._part(inside, drops), said(" AS BIGINT)", factor[-1])]
        return found

    def _part(self, toks: Sequence[Token], drops: bool | None = None) -> list[Piece]:
        return list(_Condition(self.text, toks, self.whole, self.drops if drops is None else drops).pieces())


_EXAMPLE = "For example: price IN RANGE (10, 20)."


def _level(toks: Sequence[Token], opening: int, at: int) -> int:
    depth = 0
    for token in toks[opening:at]:
        depth += (token.text in "([{") - (token.text in ")]}") if token.kind == "op" else 0
    return depth


def _within_bounds(low: str | None, high: str | None, negated: bool) -> str:
    """What `IN {low..high}` says."""
    if low and high:
        return f"{'NOT ' if negated else ''}BETWEEN {low} AND {high}"
    if low:
        return f"{'<' if negated else '>='} {low}"
    return f"{'>' if negated else '<='} {high}"


def _unexpected(token: Token | None, expected: str, end: int, hint: str) -> ParseError:
    span = token.span if token else Span(end, end)
    return ParseError("UNEXPECTED_TOKEN", span=span, found=shown(token, "']'"), expected=expected, hint=hint)
