"""A user's text, which is read once.

    text = SourceText("SELECT * FROM (PATTERN A RETURN *)")
    text.tokens                     SELECT  *  FROM  (  PATTERN  A  RETURN  *  )
    text.depths                     0       0  0     0  1        1  1       1  0
    text.closings                   {3: 8}, by the indexes of the tokens
    text.within(Span(15, 33))       PATTERN  A  RETURN  *

Statements, clauses, patterns and conditions are places in one text, so all who look into one ask it for the tokens of
their place. A SourceText is the text itself, a `str`: it is sliced, shown and compared as one, and stands in the syntax
tree as its `text`. It remembers its tokens; what is cut out of it or made of it is another text, a plain `str`.

(It is not called Source: that is an entry of FROM. A cache by text, beside the lexer, would keep texts alive that
nobody holds any more, and would hash a long statement for every condition in it.)
"""

from __future__ import annotations

from bisect import bisect_left
from functools import cached_property

from cersql.errors import ParseError
from cersql.language.lexer import OPENING, Token, depths, tokens
from runtime.errors import Span


class SourceText(str):
    """A text that remembers its tokens. What needs them raises ParseError UNCLOSED where they cannot be told."""

    @classmethod
    def of(cls, text: str) -> SourceText:
        """The text itself if it is one already."""
        return text if isinstance(text, cls) else cls(text)

    @cached_property
    def tokens(self) -> tuple[Token, ...]:
        """All of them, comments and blanks left out."""
        return tuple(tokens(self))

    @property
    def is_unclosed(self) -> bool:
        """Whether a string, a quoted name or a comment in it goes on beyond its end."""
        try:
            _ = self.tokens
        except ParseError:
            return True
        return False

    @cached_property
    def depths(self) -> tuple[int, ...]:
        """For each token how many brackets are open around it."""
        return tuple(depths(self.tokens))

    @cached_property
    def closings(self) -> dict[int, int]:
        """For the index of each opening bracket that of the one that closes it, if one does."""
        found: dict[int, int] = {}
        opened: list[int] = []
        for i, token in enumerate(self.tokens):
            if token.kind == "op" and token.text in OPENING:
                opened.append(i)
            elif token.kind == "op" and opened and token.text == OPENING[self.tokens[opened[-1]].text]:
                found[opened.pop()] = i
        return found

    @property
    def statement(self) -> list[Token]:
        """The tokens without the semicolons at their end."""
        count = len(self.tokens)
        while count and self.tokens[count - 1].text == ";":
            count -= 1
        return list(self.tokens[:count])

    def within(self, span: Span) -> list[Token]:
        """The tokens of a place that begins and ends between tokens."""
        first, last = (bisect_left(self.tokens, at, key=lambda token: token.start) for at in (span.start, span.end))
        return list(self.tokens[first:last])
