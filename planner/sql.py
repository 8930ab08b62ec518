"""Text for Spark that remembers where in the user's text it comes from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sql:
    """Text for Spark, in pieces: (text, offset in the user's text, verbatim); a verbatim piece maps 1:1."""

    pieces: tuple[tuple[str, int, bool], ...]

    @property
    def text(self) -> str:
        return "".join(text for text, _, _ in self.pieces)

    def locate(self, offset: int) -> int:
        """The user's offset for an offset of `text`."""
        at = 0
        for text, origin, verbatim in self.pieces:
            if offset < at + len(text):
                return origin + (offset - at if verbatim else 0)
            at += len(text)
        return self._end

    @property
    def _end(self) -> int:
        text, origin, verbatim = self.pieces[-1] if self.pieces else ("", 0, True)
        return origin + (len(text) if verbatim else 0)

    def wrapped(self, before: str, after: str) -> Sql:
        """Put text of ours around it."""
        first = self.pieces[0][1] if self.pieces else 0
        return Sql(((before, first, False), *self.pieces, (after, self._end, False)))


def quote(name: str) -> str:
    """An identifier in back-ticks."""
    return "`" + name.replace("`", "``") + "`"


def literal(value: str) -> str:
    """A string literal of Spark SQL."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def is_collated(type: str) -> bool:
    """Is it a string type, as Spark writes it, whose values are not compared byte by byte?"""
    words = type.lower().split()
    return words[:2] == ["string", "collate"] and words[2:] != ["utf8_binary"]
