"""The texts of the command line: files of statements, each of which knows its place in the file."""

from __future__ import annotations

import functools
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from cersql.cli.errors import UsageError
from cersql.language import scripts
from cersql.language.source import SourceText
from runtime.errors import Span, line_and_column

# Statements that give no rows: their first words. A SET is one of these if it sets something.
_SILENT = frozenset(
    "ADD ALTER ANALYZE CACHE CLEAR COMMENT CREATE DECLARE DELETE DROP INSERT LOAD MERGE MSCK REFRESH REPAIR RESET "
    "START STOP TRUNCATE UNCACHE UPDATE USE".split()
)
# Those that only tell the session what a name means: `check` and `explain` carry them out, for what stands after them.
_DEFINING = frozenset("DECLARE DROP RESET USE".split())

MOST_NAMED = 80  # characters of what was given for the name of a file


@dataclass(frozen=True)
class Script:
    """A text of statements, and what to call it in messages."""

    name: str
    text: str

    def statements(self) -> list[Statement]:
        """Raises ParseError where a string or a comment is never closed."""
        return [Statement(self, span) for span in scripts.split(self.text)]


@dataclass(frozen=True)
class Statement:
    script: Script
    span: Span

    @functools.cached_property
    def text(self) -> SourceText:
        """The statement, after as many blanks and empty lines as there is text before it: whoever finds a mistake in
        it, we or Spark, names the place in the file."""
        before = self.script.text[: self.span.start]
        blanks = re.sub(r"[^\n]", " ", before)
        return SourceText(blanks + self.script.text[self.span.start : self.span.end])

    @property
    def line(self) -> int:
        return line_and_column(self.script.text, self.span.start)[0]

    @functools.cached_property
    def words(self) -> tuple[str, ...]:
        """In upper case, and what is none as ''."""
        return tuple(token.upper for token in self.text.tokens)

    @property
    def gives_rows(self) -> bool:
        """By its looks; so it is known before anything runs."""
        return self.words[0] not in _SILENT and not (self.words[0] == "SET" and "=" in self.words)

    @property
    def defines(self) -> bool:
        """Whether all it does is to tell the session what a name means, which reads and writes no data."""
        first = self.words[0]
        if first == "CREATE":
            return not {"TABLE", "DATABASE", "SCHEMA", "NAMESPACE"} & set(self.words[1:4])
        if first == "SET":
            return self.words[1:2] not in (("VAR",), ("VARIABLE",))
        return first in _DEFINING and self.words[1:2] != ("TABLE",)


def read(name: str, *, or_text: bool = False) -> Script:
    """The text of a file; `-` is the standard input. `or_text`: a text could have been given in its place, by -e.
    Raises UsageError."""
    shown = "<stdin>" if name == "-" else name
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        text = data.decode("utf-8-sig")  # editors on Windows put a mark before the text
    except UnicodeDecodeError as error:
        raise UsageError(f"{shown} cannot be read: it is not UTF-8 (byte {error.start + 1})") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        hint = ""
        if or_text and len(name.split()) > 1:
            hint = ". FILE is the name of a file of statements; put -e before a statement itself"
        one_line = " ".join(shown.split()) if hint else shown
        brief = one_line if len(one_line) <= MOST_NAMED else f"{one_line[:MOST_NAMED]} …"
        raise UsageError(f"{brief} cannot be read: {reason}{hint}") from None
    return Script(shown, text.replace("\r\n", "\n").replace("\r", "\n"))
