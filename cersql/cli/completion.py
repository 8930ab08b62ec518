"""What the shell knows about a text while it is typed: whether it is finished, and how a word can go on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from cersql.errors import ParseError
from cersql.language import scripts
from cersql.language.clause_table import CLAUSES
from cersql.language.clauses import key_at, misspelt_as
from cersql.language.lexer import Token, depths, strip_quotes
from cersql.language.operators import OPERATORS
from cersql.language.source import SourceText
from planner.sql import quote

COMMANDS = ("exit", "help", "quit")
MORE = (
    "SKIP TILL ANY MATCH", "SKIP TILL NEXT MATCH", "STRICT CONTIGUITY", "SKIP PAST LAST ROW", "SKIP TO NEXT ROW",
    "WITH TIMEOUTS", "EMIT ON ARRIVAL", "EMIT ON WATERMARK", "EVENTS", "SECONDS", "MINUTES", "HOURS", "DAYS",
    "COUNT", "SUM", "AVG", "MIN", "FIRST", "match_start", "match_end",
)  # fmt: skip
STATEMENTS = (
    "SELECT", "CREATE OR REPLACE TEMPORARY PATTERN VIEW", "CREATE OR REPLACE TEMPORARY VIEW", "DROP VIEW",
    "CREATE OR REPLACE PATTERN FUNCTION", "DROP PATTERN VIEW", "DROP PATTERN FUNCTION", "SHOW PATTERNS",
    "DESCRIBE PATTERN",
    "SHOW TABLES", "SHOW COLUMNS IN", "DESCRIBE", "EXPLAIN", "SET", "JOIN", "ON", "LEFT JOIN", "DISTINCT", "DESC",
    "BETWEEN", "IN", "LIKE", "IS NULL", "IS NOT NULL", "CASE WHEN",
)  # fmt: skip
_OFFERED = (operator.word for operator in OPERATORS if operator.offered)
KEYWORDS = tuple(dict.fromkeys((*CLAUSES, *_OFFERED, "TYPE", *MORE, *STATEMENTS)))

_BEFORE_TABLE = ("FROM", "JOIN", "TABLE", "DESCRIBE", "DESC", "INTO", "IN")
_PLAIN = re.compile(r"[^\W\d]\w*")


class Catalog(Protocol):
    """What a session has."""

    def tables(self) -> Sequence[str]: ...

    def columns(self, table: str) -> Sequence[str]: ...


# ---------------------------------------------------------------- finished?


def is_complete(text: str) -> bool:
    """Whether Enter runs the text: it is one of COMMANDS, its last line is empty, or a `;` ends its last statement.

    `;` is also an operator: what has a pattern is a statement once it has a RETURN.
    """
    if not text.strip() or text.strip().lower() in COMMANDS or not text.rsplit("\n", 1)[-1].strip():
        return True
    source = SourceText(text)
    try:
        if not source.tokens or source.tokens[-1].upper != ";":
            return False
        last = scripts.split(source)[-1:]
    except ParseError:
        return False  # a string, a name or a comment goes on in the next line
    if not last:
        return True
    statement = source.within(last[0])
    if statement[-1].upper == ";":  # inside BEGIN … END
        return False
    return not _is_open(statement) and not _lacks_return(statement)


def _is_open(toks: Sequence[Token]) -> bool:
    last = toks[-1]
    return depths(toks)[-1] > 0 or (last.upper in ("(", "[", "{"))


def _lacks_return(toks: Sequence[Token]) -> bool:
    if toks[0].upper in ("SHOW", "DROP", "DESCRIBE", "DESC"):
        return False
    levels = depths(toks)
    keys = [(key[0], i) for i in range(len(toks)) if levels[i] == 0 and (key := key_at(toks, i)) is not None]
    patterns = [i for key, i in keys if key == "PATTERN" and _text(toks, i + 1) not in ("VIEW", "FUNCTION")]
    if not patterns or any(key == "RETURN" for key, _ in keys):
        return False
    esper = (_text(toks, patterns[0] - 1), _text(toks, patterns[0] + 1)) == ("FROM", "[")  # SELECT … FROM PATTERN […]
    return not esper and misspelt_as("RETURN", list(toks)) is None


def _text(toks: Sequence[Token], i: int) -> str:
    return toks[i].upper if 0 <= i < len(toks) else ""


# ---------------------------------------------------------------- words


def completions(before: str, after: str, catalog: Catalog) -> Iterator[tuple[str, int]]:
    """(word, how many characters before the cursor it replaces), the likeliest first."""
    typed = re.search(r"[\w.`]*$", before)
    word = typed.group() if typed else ""
    owner, dot, start = word.rpartition(".")
    if not _is_in_code(before[: len(before) - len(word)]):
        return
    quoted = start.startswith("`")
    start = start.strip("`")
    length = len(start) + quoted
    if dot and owner:
        yield from _matching(_columns(before + after, catalog), start, length)
        return
    last = re.search(r"(\w+)\s+$", before[: len(before) - len(word)])
    tables = list(_matching(catalog.tables(), start, length))
    yield from tables
    if last and last.group(1).upper() in _BEFORE_TABLE and tables:
        return
    if start or quoted:
        yield from _matching(_columns(before + after, catalog), start, length)
    if start and not quoted:
        for keyword in KEYWORDS:
            if keyword.upper().startswith(start.upper()):
                yield keyword.lower() if start.islower() else keyword, length


def _matching(names: Iterable[str], start: str, length: int) -> Iterator[tuple[str, int]]:
    for name in dict.fromkeys(names):
        if name.casefold().startswith(start.casefold()):
            yield name if _PLAIN.fullmatch(name) else quote(name), length


def _columns(text: str, catalog: Catalog) -> Iterator[str]:
    """Of all tables that the text names; of all there are, if it names none."""
    named = {strip_quotes(found).casefold() for found in re.findall(r"`(?:[^`]|``)+`|\w+", text)}
    tables = catalog.tables()
    for table in [t for t in tables if t.casefold() in named] or tables:
        yield from catalog.columns(table)


def _is_in_code(text: str) -> bool:
    """Not inside a string or a comment."""
    return not SourceText(text).is_unclosed and "--" not in text.rsplit("\n", 1)[-1]
