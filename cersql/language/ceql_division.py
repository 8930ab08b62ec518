"""Division in CEQL, which drops the remainder where all numbers of a comparison are whole.

    volume / 2 > 10          if(typeof(volume) IN ('tinyint', 'smallint', 'int', 'bigint'),
                                CAST(volume AS BIGINT) div 2, volume / 2) > 10
    price / 2.0 > n          the same in both: one number with a point makes all of a comparison such
    abs(n) / 2 > 1           an error: what a function gives may be whole or not

The text does not say of which type a column is, so that Spark is asked, which decides it once and not for each row.
The casts change no whole number; without them Spark would not take the text where the columns are of other types.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from cersql.errors import ParseError
from cersql.language.lexer import Token, closing, strip_quotes
from cersql.language.translated import Piece, kept, said

_WHOLE = "('tinyint', 'smallint', 'int', 'bigint')"
_OF_PRODUCTS = ("*", "/", "%")
_NO_VALUES = frozenset(("NOT", "IN", "RANGE"))
_MARKS = frozenset(("(", ")", ",", "+", "-", "*", "/", "%", "<", "<=", ">", ">=", "=", "==", "<>", "!="))


@dataclass(frozen=True)
class Product:
    """`a * (b + 1) / -c`: the places of its factors among the tokens, and the operators between them."""

    factors: tuple[tuple[int, int], ...]
    operators: tuple[Token, ...]

    @property
    def divides(self) -> bool:
        return any(operator.text == "/" for operator in self.operators)

    @property
    def division(self) -> Token:
        """The first `/`."""
        return next(operator for operator in self.operators if operator.text == "/")


def product_at(toks: Sequence[Token], at: int) -> Product | None:
    """The product that begins at `at`; None where no value begins there."""
    if at and (_ends_a_value(toks[at - 1]) or toks[at - 1].text in _OF_PRODUCTS):
        return None
    factors: list[tuple[int, int]] = []
    operators: list[Token] = []
    while True:
        end = _factor_end(toks, at)
        if end is None:
            return Product(tuple(factors), tuple(operators[:-1])) if factors else None
        factors.append((at, end))
        if end == len(toks) or toks[end].text not in _OF_PRODUCTS:
            return Product(tuple(factors), tuple(operators))
        operators.append(toks[end])
        at = end + 1


def _ends_a_value(token: Token) -> bool:
    if token.kind == "op":
        return token.text in (")", "]", "}")
    return token.upper not in _NO_VALUES | {"AND", "OR"}


def _factor_end(toks: Sequence[Token], at: int) -> int | None:
    while at < len(toks) and toks[at].text in ("+", "-"):
        at += 1
    if at == len(toks):
        return None
    if toks[at].text == "(":
        close = closing(toks, at)
        return None if close is None else close + 1
    call = at + 1 < len(toks) and toks[at].is_name and toks[at + 1].text == "("
    close = closing(toks, at + 1) if call and toks[at].upper not in _NO_VALUES else None
    if close is not None:
        return close + 1
    return at + 1 if toks[at].is_name or toks[at].kind == "number" else None


def when_whole(toks: Sequence[Token], division: Token) -> list[Token] | None:
    """The columns that must hold whole numbers if the comparison around a `/` is one of such; None if it is none.

    Raises ParseError where that cannot be said.
    """
    comparison = _comparison(toks, division)
    if any(token.kind == "number" and not token.text.isdigit() for token in comparison):
        return None
    names = [token for token in comparison if token.is_name and token.upper not in _NO_VALUES]
    calls = any(token in names and after.text == "(" for token, after in pairwise(comparison))
    others = any(t.text not in _MARKS for t in comparison if not t.is_name and t.kind != "number")
    if calls or others:
        raise refused(division)
    return list({strip_quotes(token.text): token for token in reversed(names)}.values())[::-1]


def all_whole(columns: Sequence[Token], division: Token) -> list[Piece]:
    """The condition that all these columns hold whole numbers."""
    found: list[Piece] = []
    for column in columns:
        asking = said(" AND typeof(" if found else "typeof(", division)
        found += [asking, kept(column), said(f") IN {_WHOLE}", division)]
    return found


def refused(division: Token) -> ParseError:
    """The error for a `/` of which it cannot be said whether its numbers are whole."""
    hint = (
        "With a number that has a point, x * 1.0 / y, it divides with remainder in both; `x div y` is Spark's "
        "division of whole numbers."
    )
    meaning = "between whole numbers it drops the remainder, which Spark's keeps"
    return ParseError("OTHER_MEANING", span=division.span, construct="'/'", meaning=meaning, hint=hint)


def _comparison(toks: Sequence[Token], division: Token) -> Sequence[Token]:
    """What stands between one AND or OR and the next."""
    first = last = toks.index(division)
    while first > 0 and toks[first - 1].upper not in ("AND", "OR"):
        first -= 1
    while last + 1 < len(toks) and toks[last + 1].upper not in ("AND", "OR"):
        last += 1
    return toks[first : last + 1]
