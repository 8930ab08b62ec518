"""Cuts a query into its clauses, and finds out which word was meant where that fails.

A clause begins with its full key (cersql/language/clause_table.py) outside all parentheses. Only this module knows
where a key does not count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cersql.errors import ParseError
from cersql.language.clause_table import BY_FIRST_WORD, CLAUSES
from cersql.language.lexer import Token, depths, shown
from cersql.language.operators import ONLY_INFIX
from runtime.errors import Span

# Words that stand between operands in an expression: they are never a misspelt clause, nor an alias.
# fmt: off
EXPRESSION_WORDS = frozenset([
    "ALL", "AND", "ANY", "AS", "ASC", "AT", "BETWEEN", "BY", "CASE", "COLLATE", "DESC", "DISTINCT", "DIV", "ELSE",
    "END", "ESCAPE", "EXISTS", "FALSE", "FILTER", "FROM", "ILIKE", "IN", "INTERVAL", "IS", "LIKE", "NOT", "NULL",
    "NULLS", "OR", "OVER", "REGEXP", "RLIKE", "SOME", "THEN", "TIME", "TRUE", "UNKNOWN", "WHEN", "WITH", "WITHIN",
    "ZONE",
])
# fmt: on

# A key before one of these is a name (`limit.x`, `PATTERN Limit ; B`): no clause begins with them.
# fmt: off
_NEVER_FIRST = frozenset([
    ".", "=", "==", "<>", "!=", "<=", ">=", ">", "->", ":", "::", ",", "?", "/", "%", "|", "||", ";", "<=>",
])
# fmt: on


@dataclass(frozen=True)
class Section:
    """A clause of the text: its key's place and the tokens of its body."""

    kind: str
    key: Span
    body: list[Token]


@dataclass(frozen=True)
class Layout:
    """The sections in text order, what stands before the first, and where the query ends (without a final `;`)."""

    leading: list[Token]
    sections: list[Section]
    end: int

    def after(self, section: Section) -> Token | None:
        """The first token behind a section: the next key, or None at the end of the query."""
        index = self.sections.index(section) + 1
        if index == len(self.sections):
            return None
        return self._key(self.sections[index])

    def after_leading(self) -> Token | None:
        """The key of the first section."""
        return self._key(self.sections[0]) if self.sections else None

    def _key(self, section: Section) -> Token:
        return Token("word", section.kind, section.key.start, section.key.end)


def key_at(toks: Sequence[Token], index: int) -> tuple[str, int] | None:
    """Finds the clause whose key stands at `index`, and counts its tokens: of `GROUP BY a` ("GROUP BY", 2).

    The depth is the caller's business. The papers write GROUP-BY for GROUP BY.
    """
    word = toks[index].upper
    clause = BY_FIRST_WORD.get(word)
    if clause is None or toks[index].kind != "word":
        return None
    before = toks[index - 1].upper if index else ""
    after = toks[index + 1].upper if index + 1 < len(toks) else ""
    if before == "." or (word == "FROM" and before == "DISTINCT") or (word == "WITHIN" and after == "GROUP"):
        return None
    if word == "WATERMARK" and before == "ON" and index > 1 and toks[index - 2].upper == "EMIT":
        return None
    if clause.second is None:
        return clause.key, 1
    count = words_at(toks, index, word, clause.second)
    return (clause.key, count) if count else None


def words_at(toks: Sequence[Token], index: int, first: str, second: str) -> int:
    """Counts the tokens of `first second` (2) or `first-second` (3) at `index`; 0 if it does not stand there."""
    words = [token.upper for token in toks[index : index + 3]]
    if words[:2] == [first, second]:
        return 2
    together = words == [first, "-", second] and toks[index].end + len(second) + 1 == toks[index + 2].end
    return 3 if together else 0


def lay_out(toks: list[Token], start: int) -> Layout:
    """Cuts a query into its clauses: `FROM t PATTERN A` into FROM with `t` and PATTERN with `A`.

    Raises ParseError for a clause twice, a keyword used as a name, text after `;`.
    """
    while toks and toks[-1].upper == ";":
        toks = toks[:-1]
    end = toks[-1].end if toks else start
    sections: list[Section] = []
    leading: list[Token] = []
    body = leading
    levels = depths(toks)
    index = 0
    while index < len(toks):
        kind = sections[-1].kind if sections else ""
        key = key_at(toks, index) if levels[index] == 0 else None
        if key is None:
            if levels[index] == 0 and toks[index].upper == ";" and kind not in ("", "PATTERN"):
                raise _trailing(toks, index, kind, sections)
            body.append(toks[index])
            index += 1
            continue
        _check_key(toks, index, key, kind)
        span = toks[index].span | toks[index + key[1] - 1].span
        if any(section.kind == key[0] for section in sections) and not _may_repeat(key[0], sections):
            raise _duplicate(key[0], span)
        sections.append(Section(key[0], span, []))
        body = sections[-1].body
        index += key[1]
    return Layout(leading, sections, end)


def _may_repeat(kind: str, sections: Sequence[Section]) -> bool:
    """A WHERE before PATTERN is of the rows, so that the pattern may have one, too."""
    kinds = [section.kind for section in sections]
    twice = CLAUSES[kind].before_pattern is not None
    return twice and kinds.count(kind) == 1 and "PATTERN" in kinds[kinds.index(kind) :]


def _trailing(toks: Sequence[Token], index: int, clause: str, sections: Sequence[Section]) -> ParseError:
    """The error for a `;` at `index` with something behind it. Behind `FROM t PATERN A` it is a pattern's."""
    token = toks[index + 1]
    if all(section.kind != "PATTERN" for section in sections):
        word = misspelt_as("PATTERN", toks[:index])
        if word is not None:
            return misspelt(word, "PATTERN")
    key = key_at(toks, index + 1)
    hint = "Send one statement at a time; only a pattern may hold a ';' (there '->' and SEQ(…) say the same)."
    if (type := _type_called_as_clause(toks, sections)) is not None:
        hint = f"If {type} is the name of a type, put it in back-ticks: `{type}`."
    elif clause == "WITHIN":
        hint = "The window of a part of the pattern stands in parentheses: (A ; B WITHIN 10 MINUTES) ; C."
    elif key is not None and key[0] not in ("FROM", "PATTERN") and all(key[0] != section.kind for section in sections):
        hint = f"Leave the ';' out: {key[0]} belongs to the same query."
    elif clause == "WHERE" and key is None and all(section.kind != "RETURN" for section in sections):
        hint = "A condition inside the pattern is written FILTER: (A a FILTER a.x > 1) ; B. WHERE follows the pattern."
    return ParseError("TRAILING_TEXT", span=token.span, found=shown(token), hint=hint)


def _type_called_as_clause(toks: Sequence[Token], sections: Sequence[Section]) -> str | None:
    """`PATTERN limit l ; …`: the word behind PATTERN, if it begins a clause, so that the pattern is empty."""
    empty = (i for i, section in enumerate(sections[:-1]) if section.kind == "PATTERN" and not section.body)
    following = next((sections[i + 1].key for i in empty), None)
    return next((token.text for token in toks if following is not None and token.start == following.start), None)


def _duplicate(kind: str, span: Span) -> ParseError:
    hint = "Join the conditions with AND." if CLAUSES[kind].is_condition else f"Write one {kind} clause."
    return ParseError("DUPLICATE_CLAUSE", span=span, clause=kind, hint=hint)


def _check_key(toks: Sequence[Token], index: int, key: tuple[str, int], clause: str) -> None:
    """Raises RESERVED_NAME where a one-word key can only be meant as a name."""
    if key[1] > 1:
        return
    before = toks[index - 1].upper if index else ""
    after = toks[index + 1].upper if index + 1 < len(toks) else ""
    ends = index + 1 == len(toks) or key_at(toks, index + 1) is not None
    is_operand = before in ("PATTERN", ";", "->", ":") or key[0] not in ("WHERE", "HAVING", "RETURN")
    wrong_start = [("WITHIN", "<="), *(("PATTERN", mark) for mark in (";", "->", ":") if clause != "PATTERN")]
    is_name = (
        (after in _NEVER_FIRST and (key[0], after) not in wrong_start)
        or (before == "AS" and clause != "DEFINE")
        or (before == "," and ends)
        or (clause == "PATTERN" and is_operand and after in ONLY_INFIX | {"AS"})
    )
    if is_name:
        raise reserved(toks[index])


def reserved(token: Token, advice: str = "") -> ParseError:
    """The error for a keyword that was used as a name."""
    hint = f"As a name it needs back-ticks: `{token.text}`.{' ' if advice else ''}{advice}"
    return ParseError("RESERVED_NAME", span=token.span, name=token.text, hint=hint)


# ---------------------------------------------------------------- misspelt words


def nearest_key(word: str, within: int | None = None) -> str | None:
    """The clause that a misspelt word means: at most two letters away, one for keys of up to five letters.

    ORDER without its BY is misspelt too; whole keys never come here.
    """
    upper = word.upper()
    best: tuple[int, str] | None = None
    for first, clause in BY_FIRST_WORD.items():
        limit = within if within is not None else (2 if len(first) > 5 else 1)
        distance = letters_apart(upper, first, limit)
        least = 0 if clause.second else 1
        if least <= distance <= limit and (best is None or distance < best[0]):
            best = distance, clause.key
    return best[1] if best else None


def letters_apart(a: str, b: str, limit: int) -> int:
    """How many letters are missing, added, changed or swapped with a neighbour; all above `limit` is limit + 1."""
    if abs(len(a) - len(b)) > limit:
        return limit + 1
    before: list[int] = []
    last = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        row = [i]
        for j, y in enumerate(b, 1):
            row.append(min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (x != y)))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                row[j] = min(row[j], before[j - 2] + 1)
        before, last = last, row
    return min(last[-1], limit + 1)


# Clauses of other languages, and what stands for them here.
_OTHER_CLAUSES = {
    "SELECT": "Write RETURN.",
    "MEASURES": "Write RETURN.",
    "ONE": "ONE ROW PER MATCH is what RETURN gives anyway; leave it out.",
    "SUBSET": "Name a part of the pattern: (A OR B) AS x.",
    "OUTPUT": "Write RETURN.",
    "EMIT": "Write RETURN; or, for when a stream gives a match, EMIT ON ARRIVAL or EMIT ON WATERMARK.",
    "WINDOW": "Write WITHIN 10 MINUTES.",
    "DURING": "Write WITHIN 10 MINUTES.",
    "SKIP": "Write AFTER MATCH SKIP PAST LAST ROW, or SEMANTICS SKIP TILL NEXT MATCH.",
    "OFFSET": "Put the query in parentheses: SELECT * FROM (PATTERN … RETURN …) LIMIT 10 OFFSET 5.",
    "QUALIFY": "Put the query in parentheses: SELECT * FROM (PATTERN … RETURN …) QUALIFY ….",
    "ORDERED": "Write ORDER BY.",
    "SORT": "Write ORDER BY.",
    "GROUPED": "Write GROUP BY.",
    "KEYED": "Write PARTITION BY.",
    **{f"{clause.first}{clause.second}": f"Write {clause.key}." for clause in CLAUSES.values() if clause.second},
}


def meant(token: Token, key: str | None) -> ParseError | None:
    """The error for a word that nearly is the clause `key`, or is one of another language."""
    if token.upper in _OTHER_CLAUSES:
        return ParseError("UNKNOWN_CLAUSE", span=token.span, clause=token.text, hint=_OTHER_CLAUSES[token.upper])
    return misspelt(token, key) if key is not None else None


def misspelt(token: Token, key: str) -> ParseError:
    """The error for a clause word with letters wrong."""
    return ParseError("MISSPELT_CLAUSE", span=token.span, word=token.text, hint=f"Did you mean {key}?")


def check_misspelt(toks: Sequence[Token]) -> None:
    """Raises MISSPELT_CLAUSE where an expression is followed by a word that nearly is a clause's.

    Between two operands stands an operator, so a word there that is none cannot be part of the expression.
    """
    levels = depths(toks)
    for index in range(1, len(toks) - 1):
        token, before, after = toks[index], toks[index - 1], toks[index + 1]
        if levels[index] or token.kind != "word" or token.upper in EXPRESSION_WORDS:
            continue
        if not _ends_operand(toks, index - 1) or _is_operator(after):
            continue
        key = nearest_key(token.text)
        if key is not None and " " in key and after.upper != key.split()[1] and token.upper not in BY_FIRST_WORD:
            continue
        if before.upper in EXPRESSION_WORDS and not _after_dot(toks, index - 1):
            continue
        error = meant(token, key)
        if error is not None:
            raise error


def _ends_operand(toks: Sequence[Token], index: int) -> bool:
    token = toks[index]
    return token.kind != "op" or token.text in (")", "]") or (token.text == "*" and index == 0)


def _after_dot(toks: Sequence[Token], index: int) -> bool:
    return index > 0 and toks[index - 1].upper == "."


def _is_operator(token: Token) -> bool:
    return (token.kind == "op" and token.text not in ("(", "[", "*", "-", "+", "!", "¬", "<")) or (
        token.upper in EXPRESSION_WORDS
        and token.upper not in ("BY", "NOT", "CASE", "INTERVAL", "NULL", "TRUE", "FALSE", "ALL", "ANY")
    )


def misspelt_near(toks: Sequence[Token], offset: int) -> ParseError | None:
    """The misspelt clause word that explains an error at `offset`: that word itself or the one before it."""
    levels = depths(toks)
    upto = [i for i, token in enumerate(toks) if token.start <= offset and levels[i] == 0]
    for index in reversed(upto[-2:]):
        token = toks[index]
        if index == 0 or token.kind != "word" or token.upper in EXPRESSION_WORDS:
            continue
        error = meant(token, nearest_key(token.text))
        if error is not None and toks[index - 1].upper not in (".", "AS"):
            return error
    return None


def misspelt_as(key: str, toks: Sequence[Token]) -> Token | None:
    """The first word after some operand outside parentheses that nearly is the one-word clause `key`."""
    levels = depths(toks)
    for index in range(1, len(toks)):
        token, before = toks[index], toks[index - 1]
        if levels[index] or token.kind != "word" or token.upper in BY_FIRST_WORD or not _may_precede(before):
            continue
        if 0 < letters_apart(token.upper, key, 2) <= 2:
            return token
    return None


def _may_precede(token: Token) -> bool:
    """A clause can end with a name, a value, `)`, `]`, `*` or a quantifier."""
    return token.upper not in EXPRESSION_WORDS and (
        token.kind != "op" or token.text in (")", "]", "*", "+", "⊕", "?", "}")
    )
