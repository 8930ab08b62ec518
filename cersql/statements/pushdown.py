"""Filters on the keys of a pattern view, found in the SQL around it, so that the pattern runs over those keys only.

    SELECT … FROM v WHERE site = 7 AND …          v was partitioned by site, and shows it

Catalyst cannot push a filter through a Python operator. But each key's matches are its own, so the rows of other keys
can be left out before the pattern as well. The statement keeps its WHERE; only the view's name is replaced, by that of
a private view over fewer rows.

A condition counts if it is a whole term of the AND at the top of the WHERE that belongs to the same SELECT, and says
nothing but columns of the key, literals, comparisons, IN, BETWEEN, LIKE, IS NULL, AND, OR and NOT. It must not be able
to fail, since it is asked of rows that are in no match: so no arithmetic, no escapes in patterns, and nothing that
would be read as a value of another type. Beside a join it must be false where the view has no row, so it is a
comparison there. A text in double quotes is a column in some sessions, and never counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from cersql.language.lexer import Token, depths, split, strip_quotes
from cersql.language.source import SourceText
from planner.sql import quote
from runtime.errors import Span

_END_OF_WHERE = frozenset(
    "GROUP HAVING ORDER LIMIT OFFSET UNION EXCEPT INTERSECT MINUS WINDOW CLUSTER DISTRIBUTE SORT QUALIFY |> ;".split()
)
_ALLOWED = frozenset("AND OR NOT IN BETWEEN LIKE ILIKE IS NULL TRUE FALSE".split())
_BEFORE_LITERAL = frozenset("DATE TIMESTAMP TIMESTAMP_NTZ TIMESTAMP_LTZ".split())
_OPERATORS = frozenset("WHERE AND OR NOT IN BETWEEN LIKE ILIKE RLIKE REGEXP IS DIV ON".split())
_BESIDE_JOINS = frozenset("OR NOT IS NULL TRUE FALSE".split())  # with these a condition can be true of a missing row
_ALLOWED_OPS = frozenset("= == < > <= >= <> != ( ) ,".split())
# Values of different families are not compared: reading one as the other can fail.
_FAMILIES = {
    **dict.fromkeys("tinyint smallint int bigint float double decimal".split(), "number"),
    **dict.fromkeys("string char varchar".split(), "text"),
    **dict.fromkeys("date timestamp timestamp_ntz timestamp_ltz".split(), "time"),
}
# What may stand between the view and the end of its FROM; after anything else (TABLESAMPLE, PIVOT, LATERAL VIEW) rows
# may be chosen before they are filtered.
_JOINS = frozenset("JOIN INNER LEFT RIGHT FULL CROSS ANTI SEMI NATURAL ,".split())
# And these, anywhere between the FROM and its WHERE, make it the WHERE of something else.
_BEFORE_WHERE = frozenset("SELECT INSERT MAP REDUCE LATERAL PIVOT UNPIVOT MATCH_RECOGNIZE".split())


@dataclass(frozen=True)
class Reading:
    """A place that reads a pattern view: `name` is the name's span and `view` its last part; `qualifier`: what its
    columns may be qualified with; `alone`: nothing else is read there; `terms`: the terms of its WHERE.

    `obstacle`: why no filter can be moved, whatever the terms are.
    """

    name: Span
    view: str
    is_global: bool
    qualifier: str
    aliased: bool
    alone: bool
    terms: tuple[tuple[Token, ...], ...]
    obstacle: str | None = None


def readings(sql: str, views: Iterable[str]) -> list[Reading]:
    """The places in a statement of Spark's that read one of the pattern views (names in lower case)."""
    text = SourceText.of(sql)
    toks, levels = text.tokens, text.depths
    wanted = frozenset(views) - _ctes(toks)
    found = []
    for i, token in enumerate(toks):
        if not token.is_name or not _is_relation(toks, levels, i):
            continue
        name, last = strip_quotes(token.text).casefold(), i
        is_global = name == "global_temp" and _text(toks, i + 1) == "." and i + 2 < len(toks)
        if is_global:
            last = i + 2
            name = strip_quotes(toks[last].text).casefold()
        if name in wanted and _text(toks, last + 1) not in (".", "("):
            found.append(_reading(toks, levels, i, last, is_global))
    return found


def reading_of(sql: str, query: Span) -> Reading | None:
    """The place that reads a parenthesised query of ours, as if it were a view; None where it is no relation."""
    text = SourceText.of(sql)
    toks, levels = text.tokens, text.depths
    first = max((i for i, token in enumerate(toks) if token.end <= query.start), default=-1)
    last = next((i for i, token in enumerate(toks) if token.start >= query.end), -1)
    if first < 1 or last < 0 or toks[first].text != "(" or toks[last].text != ")":
        return None
    if not _is_relation(toks, levels, first):
        return None
    return _reading(toks, levels, first, last, False)


def _ctes(toks: Sequence[Token]) -> set[str]:
    """The names that some WITH of the statement may define, in lower case: in doubt one too many."""
    found = set()
    for i, token in enumerate(toks[1:], 1):
        before, after = toks[i - 1].upper, _text(toks, i + 1)
        is_first = before in ("WITH", "RECURSIVE")
        is_next = before == "," and (after in ("(", "MAX") or (after == "AS" and _text(toks, i + 2) == "("))
        if token.is_name and (is_first or is_next):
            found.add(strip_quotes(token.text).casefold())
    return found


def _is_relation(toks: Sequence[Token], levels: Sequence[int], i: int) -> bool:
    """A relation stands at token `i` if FROM, JOIN or a comma of a FROM stands before it."""
    before = toks[i - 1].upper if i else ""
    if before == "FROM":
        return i == 1 or toks[i - 2].upper != "DISTINCT"  # x IS DISTINCT FROM y
    return before == "JOIN" or (before == "," and _in_from(toks, levels, i))


def _in_from(toks: Sequence[Token], levels: Sequence[int], i: int) -> bool:
    """The comma before token `i` separates relations if the last clause word at its level is FROM."""
    for j in range(i - 1, -1, -1):
        if levels[j] < levels[i]:
            return False
        if levels[j] == levels[i] and toks[j].upper in ("FROM", "SELECT", "WHERE", "BY", "HAVING", "ON"):
            return toks[j].upper == "FROM"
    return False


def _reading(toks: Sequence[Token], levels: Sequence[int], first: int, last: int, is_global: bool) -> Reading:
    view = strip_quotes(toks[last].text)
    at, qualifier, aliased = last + 1, view, False
    if _text(toks, at) == "AS":
        at += 1
    stop = (
        _END_OF_WHERE | _JOINS | {"WHERE", "ON", "USING", ")", "TABLESAMPLE", "PIVOT", "UNPIVOT", "LATERAL", "FOR", ""}
    )
    if at < len(toks) and toks[at].is_name and toks[at].upper not in stop:
        qualifier, aliased, at = strip_quotes(toks[at].text), True, at + 1
    obstacle = None
    after = _text(toks, at)
    if after not in _END_OF_WHERE | _JOINS | {"WHERE", "ON", "USING", ")", "", ";"}:
        obstacle = f"{after} stands between the view and the filter"
    elif _text(toks, first - 1) == "JOIN" and _text(toks, first - 2) in ("ANTI", "SEMI"):
        obstacle = f"a {_text(toks, first - 2)} JOIN shows no columns of the view"
    elif is_global and not aliased and _is_qualified(toks, view):
        obstacle = "a column is qualified by global_temp"
    end = at
    while end < len(toks) and levels[end] >= levels[first]:
        if levels[end] == levels[first]:
            if toks[end].upper == "WHERE" or _ends_where(toks, end):
                break
            if toks[end].upper in _BEFORE_WHERE and obstacle is None and toks[end - 1].text not in (".", "AS"):
                obstacle = f"{toks[end].upper} stands between the view and the filter"
        end += 1
    alone = end == at and toks[first - 1].upper == "FROM"
    terms: tuple[tuple[Token, ...], ...] = ()
    if end < len(toks) and toks[end].upper == "WHERE" and levels[end] == levels[first]:
        terms = _terms(toks, levels, end + 1, levels[first])
    name = toks[first].span | toks[last].span
    return Reading(name, view, is_global, qualifier, aliased, alone, terms, obstacle)


def _is_qualified(toks: Sequence[Token], view: str) -> bool:
    """Some column is written global_temp.view.column."""
    return any(
        strip_quotes(toks[i].text).casefold() == "global_temp"
        and toks[i + 1].text == toks[i + 3].text == "."
        and strip_quotes(toks[i + 2].text).casefold() == view.casefold()
        for i in range(len(toks) - 3)
    )


def _ends_where(toks: Sequence[Token], i: int) -> bool:
    """A WHERE ends before a word like ORDER at token `i`; where an operand is expected it is the name of a column."""
    if toks[i].upper not in _END_OF_WHERE:
        return False
    before = toks[i - 1]
    return before.text in (")", "]", "*") or (before.kind != "op" and before.upper not in _OPERATORS)


def _terms(toks: Sequence[Token], levels: Sequence[int], begin: int, level: int) -> tuple[tuple[Token, ...], ...]:
    """The terms of the AND that a WHERE is, if it is one; else the whole."""
    end = begin
    while end < len(toks) and levels[end] >= level and not (levels[end] == level and _ends_where(toks, end)):
        end += 1
    body = list(toks[begin:end])
    if any(token.upper in ("OR", "CASE") and levels[begin + k] == level for k, token in enumerate(body)):
        return (tuple(body),)
    parts: list[tuple[Token, ...]] = []
    for part in split(body, "AND"):
        if parts and _is_open_between(parts[-1]):
            parts[-1] = (*parts[-1], Token("word", "AND", part[0].start, part[0].start), *part) if part else parts[-1]
        else:
            parts.append(tuple(part))
    return tuple(part for part in parts if part)


def _is_open_between(part: Sequence[Token]) -> bool:
    words = [token.upper for token, level in zip(part, depths(part), strict=True) if level == 0]
    return "BETWEEN" in words and "AND" not in words


@dataclass(frozen=True)
class Key:
    """A column of a view that shows a key: the sources' column, and its type."""

    source: str
    type: str


def conditions(
    reading: Reading, sql: str, keys: Mapping[str, Key], values: Mapping[int, tuple[str, int]]
) -> list[tuple[str, str]]:
    """(as written, over the sources' columns) for each term that can act before the pattern.

    `keys`: by the view's column, in lower case; `values`: for the place of each parameter marker, its value as SQL and
    where the marker ends.
    """
    found = []
    for term in reading.terms if reading.obstacle is None else ():
        moved = _Term(reading, term, sql, keys, values).moved()
        if moved is not None:
            found.append((sql[term[0].start : term[-1].end], moved))
    return found


class _Term:
    """Translates one term, token by token; everything but the columns stays byte for byte."""

    def __init__(
        self, reading: Reading, term: Sequence[Token], sql: str, keys: Mapping[str, Key],
        values: Mapping[int, tuple[str, int]],
    ) -> None:  # fmt: skip
        self.reading, self.term, self.sql, self.keys, self.values = reading, term, sql, keys, values
        self.pieces: list[str] = []
        self.at = term[0].start
        self.families: set[str] = set()  # of the columns and literals
        self.has_column = False

    def moved(self) -> str | None:
        i = 0
        while i < len(self.term):
            taken = self._take(i)
            if taken == 0:
                return None
            i += taken
        if not self.has_column or len(self.families) > 1:
            return None
        return "".join([*self.pieces, self.sql[self.at : self.term[-1].end]])

    def _take(self, i: int) -> int:
        """How many tokens are dealt with from `i` on; 0: the term cannot move."""
        token, after = self.term[i], self.term[i + 1] if i + 1 < len(self.term) else None
        if token.start in self.values:
            value, end = self.values[token.start]
            toks: Sequence[Token] = SourceText(value).tokens
            while len(toks) > 2 and toks[0].text == "(" and toks[-1].text == ")":
                toks = toks[1:-1]
            if not self._literal(toks):
                return 0
            self._replace(Span(token.start, end), value)
            return sum(token.start <= other.start < end for other in self.term)
        if after is not None and after.kind == "string" and token.kind == "word" and token.upper not in _ALLOWED:
            return 2 if self._literal([token, after]) else 0
        if token.kind == "op" and token.text == "-":
            before = self.term[i - 1] if i else None
            begins = before is None or (before.kind == "op" and before.text != ")") or before.upper in _ALLOWED
            return 2 if begins and after is not None and after.kind == "number" and self._literal([after]) else 0
        if token.kind in ("number", "string"):
            return int(self._literal([token]))
        if token.kind == "op":
            return int(token.text in _ALLOWED_OPS)
        if token.upper in _ALLOWED and token.upper.casefold() not in self.keys:
            return int(self.reading.alone or token.upper not in _BESIDE_JOINS)
        return self._column(i)

    def _literal(self, toks: Sequence[Token]) -> bool:
        """Notes the family of a literal; False if it is none that can be compared without risk."""
        words = [token.upper for token in toks]
        if len(toks) == 2 and words[0] in _BEFORE_LITERAL and toks[1].kind == "string" and toks[1].text[0] != '"':
            self.families.add("time")
        elif words in (["NULL"], ["TRUE"], ["FALSE"]):
            return self.reading.alone
        elif toks[-1].kind == "number" and (len(toks) == 1 or words[:-1] == ["-"]):
            self.families.add("number")
        elif len(toks) == 1 and toks[0].kind == "string" and toks[0].text[0] != '"' and "\\" not in toks[0].text:
            self.families.add("text")
        else:
            return False
        return True

    def _column(self, i: int) -> int:
        first, count = self.term[i], 1
        if _text(self.term, i + 1) == "." and i + 2 < len(self.term):
            if strip_quotes(first.text).casefold() != self.reading.qualifier.casefold():
                return 0
            count = 3
        elif not self.reading.alone:
            return 0
        last = self.term[i + count - 1]
        key = self.keys.get(strip_quotes(last.text).casefold())
        if key is None or _text(self.term, i + count) in (".", "(", "["):
            return 0
        self.has_column = True
        self.families.add(_FAMILIES.get(key.type.partition("(")[0].partition(" ")[0], key.type))
        self._replace(first.span | last.span, quote(key.source))
        return count

    def _replace(self, span: Span, by: str) -> None:
        self.pieces += [self.sql[self.at : span.start], by]
        self.at = span.end


def _text(toks: Sequence[Token], i: int) -> str:
    return toks[i].upper if 0 <= i < len(toks) else ""
