"""A text of ours that was made of another one, which the user wrote; places in it are led back to that.

    written     SELECT * FROM S WHERE A ; B
    made        FROM S PATTERN A ; B RETURN *
    led_back    of the `B` at 19 the `B` at 27, of RETURN the SELECT that it is made of

So a language whose queries are ours in other words is read by translating it: all that follows, from the parser to
Spark, sees one language, and every error shows what the user wrote.
"""

from __future__ import annotations

from cersql.language.lexer import Token
from cersql.language.source import SourceText
from planner.sql import Sql
from runtime.errors import MadeText, Span


class Translated(SourceText, MadeText):
    """The made text; `sql` knows where in `written` each piece of it comes from."""

    sql: Sql
    written: SourceText

    @classmethod
    def made(cls, sql: Sql, written: SourceText) -> Translated:
        """The text of `sql`, which was made of `written`."""
        text = cls(sql.text)
        text.sql, text.written = sql, written
        return text

    def led_back(self, span: Span | None) -> tuple[str, Span | None]:
        """The text that the user wrote, and the place in it of a place in this one."""
        if span is None:
            return self.written, None
        start = self.sql.locate(span.start)
        last = self.sql.locate(span.end - 1) if span.end > span.start else start - 1
        return self.written, Span(start, max(start, last + 1))


Piece = tuple[str, int, bool]
"""A piece of a made text: its words, where they come from, and whether they stand there as they are."""


def said(words: str, at: Token | Span | int) -> Piece:
    """Words of ours for what begins at a place of the user's text."""
    return words, at if isinstance(at, int) else at.start, False


def kept(token: Token) -> Piece:
    """A token as it stands."""
    return token.text, token.start, True


def kept_all(toks: list[Token]) -> list[Piece]:
    """Tokens as they stand, with one space where there was some, or a comment, between them."""
    found: list[Piece] = []
    for k, token in enumerate(toks):
        if k and toks[k - 1].end < token.start:
            found.append(said(" ", token))
        found.append(kept(token))
    return found
