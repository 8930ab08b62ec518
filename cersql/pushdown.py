"""Filters on the keys of a pattern view, found in the SQL around it, so that the pattern runs over those keys only.

    SELECT … FROM v WHERE site = 7 AND …          v was partitioned by site, and shows it

Catalyst cannot push a filter through a Python operator. But each key's matches are its own, so the rows of other keys
can be left out before the pattern as well. The statement keeps its WHERE; only the view's name is replaced, by that of
a private view over fewer rows.

A condition counts if it is a whole term of the AND at the top of the WHERE that belongs to the same SELECT, and says
nothing but columns of the key, literals, comparisons, IN, BETWEEN, LIKE, IS NULL, AND, OR and NOT. It must not be able
to fail, since it is asked of rows that are in no match: so no arithmetic, and no text that is read as a number. Beside
a join it must be false where the view has no row, so it is a comparison there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from cersql.lexer import Token, depths, split, strip_quotes, tokens
from planner.sql import quote
from runtime.errors import Span

_END_OF_WHERE = frozenset(
    "GROUP HAVING ORDER LIMIT OFFSET UNION EXCEPT INTERSECT MINUS WINDOW CLUSTER DISTRIBUTE SORT QUALIFY |> ;".split()
)
_ALLOWED = frozenset(
    "AND OR NOT IN BETWEEN LIKE ILIKE RLIKE IS NULL TRUE FALSE DATE TIMESTAMP TIMESTAMP_NTZ TIMESTAMP_LTZ".split()
)
_BESIDE_JOINS = frozenset("OR NOT IS NULL TRUE FALSE".split())  # with these a condition can be true of a missing row
_ALLOWED_OPS = frozenset("= == < > <= >= <> != ( ) , -".split())
_NUMERIC = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")
# What may stand between the view and the end of its FROM; after anything else (TABLESAMPLE, PIVOT, LATERAL VIEW) rows
# may be chosen before they are filtered.
_JOINS = frozenset("JOIN INNER LEFT RIGHT FULL CROSS ANTI SEMI NATURAL ,".split())


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
    toks = tokens(sql)
    wanted, levels = frozenset(views), depths(toks)
    own = {toks[i].text.casefold() for i in range(len(toks) - 2) if _is_cte(toks, i)}
    found = []
    for i, token in enumerate(toks):
        if not token.is_name or i == 0:
            continue
        before, name, last = toks[i - 1].upper, strip_quotes(token.text).casefold(), i
        is_global = name == "global_temp" and _text(toks, i + 1) == "." and i + 2 < len(toks)
        if is_global:
            last = i + 2
            name = strip_quotes(toks[last].text).casefold()
        if (
            before not in ("FROM", "JOIN", ",")
            or name not in wanted
            or name in own
            or _text(toks, last + 1) in (".", "(")
        ):
            continue
        if before == "," and not _in_from(toks, levels, i):
            continue
        found.append(_reading(toks, levels, i, last, is_global))
    return found


def reading_of(sql: str, query: Span) -> Reading | None:
    """The place that reads a parenthesised query of ours, as if it were a view; None where it is no relation."""
    toks = tokens(sql)
    levels = depths(toks)
    first = max((i for i, token in enumerate(toks) if token.end <= query.start), default=-1)
    last = next((i for i, token in enumerate(toks) if token.start >= query.end), -1)
    if first < 1 or last < 0 or toks[first].text != "(" or toks[last].text != ")":
        return None
    before = toks[first - 1].upper
    if before not in ("FROM", "JOIN", ",") or (before == "," and not _in_from(toks, levels, first)):
        return None
    return _reading(toks, levels, first, last, False)


def _is_cte(toks: Sequence[Token], i: int) -> bool:
    return toks[i].is_name and toks[i + 1].upper == "AS" and toks[i + 2].text == "("


def _in_from(toks: Sequence[Token], levels: Sequence[int], i: int) -> bool:
    """Whether the comma before token `i` separates relations: the last clause word at its level is FROM."""
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
    end = at
    while end < len(toks) and levels[end] >= levels[first]:
        if levels[end] == levels[first] and toks[end].upper in _END_OF_WHERE | {"WHERE"}:
            break
        end += 1
    alone = end == at and toks[first - 1].upper == "FROM"
    terms: tuple[tuple[Token, ...], ...] = ()
    if end < len(toks) and toks[end].upper == "WHERE" and levels[end] == levels[first]:
        terms = _terms(toks, levels, end + 1, levels[first])
    name = toks[first].span | toks[last].span
    return Reading(name, view, is_global, qualifier, aliased, alone, terms, obstacle)


def _terms(toks: Sequence[Token], levels: Sequence[int], begin: int, level: int) -> tuple[tuple[Token, ...], ...]:
    """The terms of the AND that a WHERE is, if it is one; else the whole."""
    end = begin
    while end < len(toks) and levels[end] >= level and not (levels[end] == level and toks[end].upper in _END_OF_WHERE):
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
    words = [token.upper for token in part]
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
        self.types: set[str] = set()
        self.has_number = False

    def moved(self) -> str | None:
        i = 0
        while i < len(self.term):
            taken = self._take(i)
            if taken == 0:
                return None
            i += taken
        if not self.types or (self.has_number and not all(type.startswith(_NUMERIC) for type in self.types)):
            return None
        return "".join([*self.pieces, self.sql[self.at : self.term[-1].end]])

    def _take(self, i: int) -> int:
        """How many tokens are dealt with from `i` on; 0: the term cannot move."""
        token = self.term[i]
        if token.start in self.values:
            value, end = self.values[token.start]
            self.has_number |= value[0] in "0123456789.(-"
            self._replace(Span(token.start, end), value)
            return sum(token.start <= other.start < end for other in self.term)
        if token.kind in ("number", "string"):
            self.has_number |= token.kind == "number"
            return 1
        if token.kind == "op":
            return int(token.text in _ALLOWED_OPS and not self._is_subtraction(i))
        if token.upper in _ALLOWED and token.upper.casefold() not in self.keys:
            return int(self.reading.alone or token.upper not in _BESIDE_JOINS)
        return self._column(i)

    def _is_subtraction(self, i: int) -> bool:
        before = self.term[i - 1] if i else None
        ends_operand = (
            before is not None and (before.kind != "op" or before.text == ")") and before.upper not in _ALLOWED
        )
        return self.term[i].text == "-" and ends_operand

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
        self.types.add(key.type)
        self._replace(first.span | last.span, quote(key.source))
        return count

    def _replace(self, span: Span, by: str) -> None:
        self.pieces += [self.sql[self.at : span.start], by]
        self.at = span.end


def _text(toks: Sequence[Token], i: int) -> str:
    return toks[i].upper if 0 <= i < len(toks) else ""
