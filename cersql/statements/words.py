"""The words of one statement, by their numbers: what all who look for our statements ask of them."""

from __future__ import annotations

from cersql.errors import ParseError
from cersql.language.clause_bodies import name_of
from cersql.language.lexer import Token, shown
from cersql.language.source import SourceText
from cersql.language.syntax import Name
from runtime.errors import Span

GLOBAL_SCHEMA = "global_temp"


class Words:
    """The tokens of one statement; `lo` and `hi` are their indexes, `hi` after the last. `upper(i)` is '' beyond them.

    Of `EXPLAIN (PATTERN A)`: `upper(0)` is EXPLAIN, `unwrapped(1, 5)` is (2, 4), and `span(2, 4)` the query's place.
    """

    def __init__(self, text: SourceText) -> None:
        self.toks, self.depth, self.close = text.statement, text.depths, text.closings

    def level(self, lo: int, hi: int) -> list[int]:
        """The tokens outside all parentheses that open after `lo`."""
        return [i for i in range(lo, hi) if self.depth[i] == self.depth[lo]] if lo < len(self.toks) else []

    def unwrapped(self, lo: int, hi: int) -> tuple[int, int]:
        """Without parentheses around the whole."""
        while lo < hi and self.upper(lo) == "(" and self.close.get(lo) == hi - 1:
            lo, hi = lo + 1, hi - 1
        return lo, hi

    def upper(self, i: int) -> str:
        """Of `SELECT a`: `upper(1)` is A, and `upper(2)` is ''."""
        return self.toks[i].upper if 0 <= i < len(self.toks) else ""

    def span(self, lo: int, hi: int) -> Span:
        """The place in the text."""
        return Span(self.toks[lo].start, self.toks[hi - 1].end)

    def expected(self, at: int, what: str) -> ParseError:
        """The error for another word, or none, where `what` should stand."""
        token = self.toks[at] if at < len(self.toks) else None
        span = token.span if token else Span(self.toks[-1].end, self.toks[-1].end)
        return ParseError("UNEXPECTED_TOKEN", found=shown(token), expected=what, span=span)

    def name(self, at: int, what: str) -> Name:
        """The name at `at`. Raises ParseError if none stands there."""
        if at >= len(self.toks) or not self.toks[at].is_name:
            raise self.expected(at, what)
        return name_of(self.toks[at])

    def qualified_name(self, at: int, what: str) -> tuple[Name, bool | None, int]:
        """`name` or `global_temp.name`: the name, whether it must be a global one, and the index behind it."""
        name = self.name(at, what)
        if self.upper(at + 1) != ".":
            return name, None, at + 1
        if name.value.casefold() != GLOBAL_SCHEMA:
            raise self.expected(at + 1, f"no '.': only {GLOBAL_SCHEMA} can stand before the name")
        return self.name(at + 2, what), True, at + 3

    def check_end(self, at: int) -> None:
        """Raises ParseError if there is a word at `at`."""
        if at < len(self.toks):
            raise self.expected(at, "the end of the statement")


def not_yet(construct: str, at: Token, hint: str | None = None) -> ParseError:
    return ParseError("NOT_SUPPORTED_YET", construct=construct, span=at.span, hint=hint)
