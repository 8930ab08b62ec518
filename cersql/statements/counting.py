"""Counts of matches by their columns, in the SQL around a query, so that no match need be listed.

    SELECT k, count(*) AS n FROM (PATTERN … RETURN a.k AS k, b.ts) AS m WHERE k > 0 GROUP BY k HAVING n > 5

Such a statement asks of the matches for nothing but the column k, and how many there are of each of its values. So the
query may give a row for each value with that number, RETURN a.k AS k, COUNT(*) AS n GROUP BY a.k, and the statement
adds up the numbers where it counted rows. The rest of it stays as it is.

A statement counts if it is one SELECT from one query of ours (or one pattern view), whose words are columns of the
query, names that it gives itself, literals, comparisons, AND, OR, NOT, IN, BETWEEN, LIKE, IS NULL, arithmetic,
count(*), GROUP BY, HAVING, ORDER BY and LIMIT. Anything else is read as it is written.

The price is a step of Spark's that adds up groups: with fewer matches than events 1.0 to 1.7 times the time of listing
them. How many there are is not known before, and 2ⁿ could not be listed at all (tests/bench/aggregates.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cersql.language import syntax
from cersql.language.lexer import Token, strip_quotes
from cersql.language.source import SourceText
from planner.sql import quote
from runtime.errors import Span

COUNT_NAME = "__cersql_count"  # of the column that says how many matches a row stands for
_WORDS = frozenset(
    "SELECT FROM AS WHERE GROUP BY ALL HAVING ORDER ASC DESC NULLS FIRST LAST LIMIT AND OR NOT IN BETWEEN LIKE IS NULL "
    "TRUE FALSE".split()
)
_EXPLAIN = ("EXPLAIN", "FORMATTED", "EXTENDED", "CODEGEN", "COST")
_OPS = frozenset("( ) , . = == <> != < > <= >= + - * / % ;".split())
_OPERANDS = ("number", "string", "quoted")


@dataclass(frozen=True)
class Counts:
    """`columns`: those of the query that a statement reads, as the query calls them; `places`: what stands in the
    statement in place of each count(*)."""

    columns: tuple[str, ...]
    places: tuple[tuple[Span, str], ...]


def counts_of(sql: str, source: Span, qualifier: str | None, outputs: Sequence[str]) -> Counts | None:
    """What a statement counts of the matches of a query, if that is all it asks for. `source`: the place of the query
    in its parentheses, or of the view's name; `qualifier`: what its columns may be qualified with; `outputs`: their
    names. Names are compared without regard to case."""
    text = SourceText.of(sql)
    toks = [token for token in text.statement if not source.start <= token.start < source.end]
    while toks and toks[0].upper in _EXPLAIN:
        toks.pop(0)
    if [token.upper for token in toks].count("SELECT") != 1 or toks[0].upper != "SELECT":
        return None
    return _Statement(toks, qualifier, outputs).counts()


def grouped_text(tree: syntax.Query, query: Span, outputs: Sequence[str | None], columns: Sequence[str]) -> str | None:
    """The text of a query with `columns` of its `outputs` and the number of matches in RETURN, grouped by these; None
    where its rows are not its matches, or such a column is computed by calls, which need not give the same twice.
    `query`: its place in its text."""
    at, items = tree.clause("RETURN"), tree.returns
    clauses = (tree.group_by, tree.having, tree.limit, tree.with_timeouts, tree.most_at_end)
    if at is None or tree.ceql or any(clause is not None for clause in clauses) or len(items) != len(outputs):
        return None
    if tree.within is not None and tree.within.slide is not None:
        return None
    by = [items[outputs.index(column)].expression for column in columns]
    if any(item.star for item in items) or any("(" in expression.value for expression in by):
        return None
    named = [f"{expression.value} AS {quote(name)}" for expression, name in zip(by, columns, strict=True)]
    grouped = ", ".join(expression.value for expression in by) or "()"
    made = f"RETURN {', '.join([*named, f'COUNT(*) AS {quote(COUNT_NAME)}'])} GROUP BY {grouped}"
    last = items[-1].alias or items[-1].expression
    return tree.text[query.start : at.start] + made + tree.text[last.span.end : query.end]


class _Statement:
    def __init__(self, toks: list[Token], qualifier: str | None, outputs: Sequence[str]) -> None:
        self._toks, self._qualifier = toks, (qualifier or "").casefold()
        self._outputs = {name.casefold(): name for name in outputs}
        self._from = next((i for i, token in enumerate(toks) if token.upper == "FROM"), len(toks))
        self._are_ambiguous = len(self._outputs) < len(outputs)

    def counts(self) -> Counts | None:
        """See `counts_of`."""
        counted = [i for i in range(len(self._toks)) if self._is_count(i)]
        inside = {i + k for i in counted for k in (0, 2)}  # the word, and the star
        given = dict(self._given(counted))
        clash = any(name in self._outputs for name in given.values())
        if not counted or clash or any(name.upper() in _WORDS for name in self._outputs) or self._are_ambiguous:
            return None
        if any(i < self._from and not (self._is_item(i) or self._is_named(i, given)) for i in counted):
            return None  # its name would say what stands in place of the count
        columns: dict[str, None] = {}
        for i, token in enumerate(self._toks):
            if i in inside or i in given or self._is_type(i):
                continue
            if token.is_name and token.upper not in _WORDS:
                name = strip_quotes(token.text).casefold()
                if self._is_qualifier(i) or (name in given.values() and self._text(i - 1) != "."):
                    continue
                if name not in self._outputs:
                    return None
                columns.setdefault(self._outputs[name])
            elif token.kind == "op" and (token.text not in _OPS or (token.text == "*" and not self._is_times(i))):
                return None
        if not columns and any(token.upper == "GROUP" for token in self._toks):
            return None  # without matches there is no group, and the query would have a row for all of them
        return Counts(tuple(columns), tuple(self._replaced(i) for i in counted))

    def _text(self, i: int) -> str:
        return self._toks[i].upper if 0 <= i < len(self._toks) else ""

    def _is_count(self, i: int) -> bool:
        toks = self._toks[i : i + 4]
        words = [token.text.upper() for token in toks]
        return words in (["COUNT", "(", "*", ")"], ["COUNT", "(", "1", ")"]) and toks[0].kind == "word"

    def _given(self, counted: Sequence[int]) -> Iterator[tuple[int, str]]:
        """(place, name) of each name that the statement gives itself, of columns and of the query."""
        ends = {i + 4 for i in counted}
        after_query = self._from + 1
        while self._text(after_query) in ("(", ")"):
            after_query += 1
        for i, token in enumerate(self._toks):
            if not token.is_name or token.upper in _WORDS:
                continue
            after_count = i in ends and self._text(i + 1) in (",", "FROM")
            if i == after_query or self._text(i - 1) == "AS" or after_count:
                yield i, strip_quotes(token.text).casefold()

    def _is_qualifier(self, i: int) -> bool:
        name = strip_quotes(self._toks[i].text).casefold()
        return self._text(i + 1) == "." and name == self._qualifier and self._text(i - 1) != "."

    def _is_type(self, i: int) -> bool:
        """DATE '2026-01-01'"""
        return self._text(i) in ("DATE", "TIMESTAMP") and [t.kind for t in self._toks[i + 1 : i + 2]] == ["string"]

    def _is_times(self, i: int) -> bool:
        """An operand stands before the `*`: it is no `SELECT *`."""
        before = self._toks[i - 1]
        return before.kind in _OPERANDS or before.text == ")" or (before.is_name and before.upper not in _WORDS)

    def _is_item(self, i: int) -> bool:
        """The count is an item of SELECT, without a name."""
        return i < self._from and self._text(i - 1) in ("SELECT", ",") and self._text(i + 4) in ("FROM", ",")

    def _is_named(self, i: int, given: Mapping[int, str]) -> bool:
        """The item that the count is part of ends with a name."""
        depth = 0
        for k in range(i, self._from + 1):
            depth += (self._text(k) == "(") - (self._text(k) == ")")
            if depth == 0 and self._text(k) in (",", "FROM"):
                return k - 1 in given
        return False

    def _replaced(self, i: int) -> tuple[Span, str]:
        """The sum in place of a count, under the name that Spark gives the count where it has no other."""
        total = f"coalesce(CAST(sum({quote(COUNT_NAME)}) AS BIGINT), 0L)"  # the sum of no rows is NULL
        name = f" AS {quote('count(1)')}" if self._is_item(i) else ""
        return self._toks[i].span | self._toks[i + 3].span, total + name
