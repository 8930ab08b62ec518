"""Cuts a text of several statements at the semicolons that end one.

A semicolon is also an operator of patterns. Inside a PATTERN clause, and in the WHERE of CEQL, it ends the statement
only where no operand can follow: at the end of the text, and before the first words of another statement. Everywhere
else outside parentheses it ends the statement, but for those inside BEGIN … END, Spark's scripts, which are one
statement.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cersql.language import ceql
from cersql.language.clauses import key_at
from cersql.language.lexer import Token
from cersql.language.source import SourceText
from runtime.errors import Span

# What can follow the first word of a statement; None: anything, since the word cannot be an operand of a pattern.
_BEGINNINGS: dict[str, frozenset[str] | None] = {
    "SELECT": None, "FROM": None, "RETURN": None, "PATTERN": None, "VALUES": None,
    "WITH": None,
    "CREATE": frozenset("OR GLOBAL TEMPORARY TEMP PATTERN TABLE VIEW FUNCTION DATABASE SCHEMA".split()),
    "DROP": frozenset("PATTERN TABLE VIEW FUNCTION TEMPORARY TEMP DATABASE SCHEMA".split()),
    "INSERT": frozenset(("INTO", "OVERWRITE")),
    "EXPLAIN": frozenset("SELECT PATTERN FROM WITH FORMATTED EXTENDED CODEGEN COST".split()),
    "SHOW": frozenset("PATTERNS TABLES VIEWS COLUMNS FUNCTIONS DATABASES SCHEMAS CREATE".split()),
    "DESCRIBE": frozenset(("PATTERN", "TABLE", "EXTENDED", "FUNCTION")),
    "DESC": frozenset(("PATTERN", "TABLE", "EXTENDED", "FUNCTION")),
    "CACHE": frozenset(("TABLE", "LAZY")),
    "ALTER": frozenset(("TABLE", "VIEW")),
    "DECLARE": frozenset(("VARIABLE", "OR")),
    "BEGIN": frozenset(),
}  # fmt: skip
_COMPOUND = frozenset("BEGIN IF WHILE FOR LOOP REPEAT".split())  # each is closed by an END


def split(text: str) -> list[Span]:
    """The places of the statements in `text`, without the semicolons that end them. Raises ParseError UNCLOSED."""
    source = SourceText.of(text)
    toks, levels = source.tokens, source.depths
    found: list[Span] = []
    begin = 0
    for end in [*_ends(toks, levels), len(toks)]:
        if end > begin:
            found.append(Span(toks[begin].start, toks[end - 1].end))
        begin = end + 1
    return found


def _ends(toks: Sequence[Token], levels: Sequence[int]) -> Iterator[int]:
    """The indexes of the semicolons that end a statement."""
    in_pattern, compounds, first, begin = False, 0, True, 0
    for i, token in enumerate(toks):
        if levels[i] > 0:
            continue
        compounds += _opened(toks, i, first) if compounds or first else 0
        key = key_at(toks, i)
        if key is not None and compounds == 0:
            in_pattern = key[0] == "PATTERN" and not _is_statement_word(toks, i)
            in_pattern = in_pattern or (key[0] == "WHERE" and _is_ceql(toks, levels, begin))
        ends = token.upper == ";"
        if ends and compounds == 0 and (not in_pattern or _begins(toks, i + 1)):
            yield i
            in_pattern, begin = False, i + 1
        first = (ends and not in_pattern) or token.upper in ("THEN", "ELSE", "DO", "LOOP", "BEGIN", "REPEAT")


def _is_ceql(toks: Sequence[Token], levels: Sequence[int], begin: int) -> bool:
    """The statement that begins there is CEQL, if the semicolons in it are operators."""
    ends = (i for i in range(begin, len(toks)) if levels[i] == 0 and toks[i].upper == ";" and _begins(toks, i + 1))
    return toks[begin].upper in ("SELECT", "WITH", "EXPLAIN", "CREATE", "INSERT") and ceql.is_query(
        toks[_select(toks, levels, begin) : next(ends, len(toks))], surely=True
    )


def _select(toks: Sequence[Token], levels: Sequence[int], begin: int) -> int:
    """The first SELECT of a statement, outside parentheses: of CREATE PATTERN VIEW v AS SELECT …"""
    return next((i for i in range(begin, len(toks)) if levels[i] == 0 and toks[i].upper == "SELECT"), begin)


def _is_statement_word(toks: Sequence[Token], i: int) -> bool:
    """PATTERN as in CREATE PATTERN VIEW, DROP PATTERN VIEW, DESCRIBE PATTERN."""
    before, after = (toks[i - 1].upper if i else ""), (toks[i + 1].upper if i + 1 < len(toks) else "")
    return before in ("DESCRIBE", "DESC") or (
        after in ("VIEW", "FUNCTION") and before in ("CREATE", "REPLACE", "GLOBAL", "TEMPORARY", "TEMP", "DROP")
    )


def _begins(toks: Sequence[Token], i: int) -> bool:
    """A statement begins at token `i` by its first words, as CREATE VIEW; the end of the text counts as one."""
    if i >= len(toks) or toks[i].upper == ";":
        return True
    word = toks[i].upper
    if word not in _BEGINNINGS or toks[i].kind != "word":
        return False
    follow = _BEGINNINGS[word]
    return follow is None or (i + 1 < len(toks) and toks[i + 1].upper in follow)


def _opened(toks: Sequence[Token], i: int, first: bool) -> int:
    """Token `i` opens (1) or closes (-1) a BEGIN, IF, CASE … of a script of Spark's, or does neither (0)."""
    word = toks[i].upper
    if word == "CASE":
        return 1
    if word == "END":
        return -1
    if not first or word not in _COMPOUND or (i and toks[i - 1].upper == "END"):
        return 0
    after = toks[i + 1].upper if i + 1 < len(toks) else ""
    return 0 if word == "BEGIN" and after in ("TRANSACTION", ";", "") else 1
