"""Values for the parameters of a text: the markers `:name` and `?` of `spark.sql(text, args)`, and the declared ones of
a pattern function.

They are filled in as text, before anything is parsed, so that a parameter can stand wherever a literal can: in a
condition, in WITHIN, LIMIT or `{n}`. The places of errors are led back to the text as it was written.

`:` and `?` are operators of patterns as well. They are markers only where no pattern can have the operator: where an
operand is expected in a condition (which a FILTER begins, inside a pattern), a clause or the `{}` of a quantifier.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

from cersql.errors import BindError, suggestion
from cersql.language import ceql
from cersql.language.clause_table import CLAUSES
from cersql.language.clauses import key_at
from cersql.language.lexer import Token, depths, strip_quotes
from cersql.language.operators import ENDS_FILTER
from cersql.language.source import SourceText
from planner.sql import Sql
from runtime.errors import CersqlError, Span

Arguments = Mapping[str, str] | Sequence[str]
"""SQL literals, by name or in the order of the `?`."""
Values = Callable[[], Arguments | None]
"""The arguments of a statement, for when they are needed: asking the JVM for them takes a while."""

# After these operators no operand can stand; `:` itself is the operator of the path into a VARIANT.
_NO_OPERAND_AFTER = frozenset(") ] } . :: : ;".split())
# Words that an operand follows, in a condition. Others of SQL's (TIME, ANY, ORDER) are names of types and columns.
_OPERAND_AFTER = frozenset(
    "AND OR NOT LIKE ILIKE RLIKE REGEXP IN BETWEEN WHEN THEN ELSE CASE IS DIV ESCAPE DISTINCT FROM INTERVAL ZONE BY AS "
    "SELECT FILTER".split()
).union(clause.key for clause in CLAUSES.values() if clause.begins_with_operand)
_ENDS_FILTER = ENDS_FILTER | {";", "->", ",", "WITHIN"}
_LITERAL_CLAUSES = frozenset(clause.key for clause in CLAUSES.values() if clause.is_literal)
_WITHOUT_VALUES = frozenset(clause.key for clause in CLAUSES.values() if clause.takes_no_values)


@dataclass(frozen=True)
class Filled:
    """A text with its parameters replaced, which knows where each piece was."""

    written: str
    sql: Sql

    @cached_property
    def text(self) -> SourceText:
        """The text as filled; the written one itself where that is the same, since it may have been read."""
        text = self.sql.text
        return SourceText.of(self.written if text == self.written else text)

    def original(self, error: CersqlError) -> CersqlError:
        """The error, if it is about the filled text, about the text as it was written. Returns it."""
        if error.text == self.text and error.span is not None:
            start = self.sql.locate(error.span.start) if error.span.start < len(self.text) else len(self.written)
            last = self.sql.locate(error.span.end - 1) if error.span.end > error.span.start else start - 1
            error.span = Span(start, max(start, last + 1))
        if error.text == self.text:
            error.text = self.written
        return error


def fill(text: str, values: Iterable[tuple[Span, str]]) -> Filled:
    """`text` with each of the spans (in order, apart from each other) replaced."""
    pieces: list[tuple[str, int, bool]] = []
    at = 0
    for span, value in values:
        pieces += [(text[at : span.start], at, True), (value, span.start, False)]
        at = span.end
    pieces.append((text[at:], at, True))
    return Filled(text, Sql(tuple(piece for piece in pieces if piece[0])))


# ---------------------------------------------------------------- markers of spark.sql


def fill_markers(text: str, queries: Sequence[Span], arguments: Arguments) -> Filled:
    """The text of a statement with the markers inside its `queries` replaced; with `?` those around them as well, since
    they are counted. Raises BindError for a marker without a value, or a value too many."""
    named = isinstance(arguments, Mapping)
    places: list[tuple[Span, str]] = []
    for marker in _markers(SourceText.of(text), queries):
        inside = _is_inside(marker, queries)
        if isinstance(arguments, Mapping):
            if inside and marker.text != "?":
                places.append((marker.span, _named(marker, arguments)))
        elif marker.text == "?":
            places.append((marker.span, _next(marker, len(places), arguments)))
    if not named and len(places) < len(arguments):
        raise BindError("ARGUMENT_COUNT", found=len(arguments), expected=len(places)).at(text)
    return fill(text, places)


@contextmanager
def with_values(text: SourceText, queries: Sequence[Span], arguments: Arguments | None) -> Iterator[SourceText]:
    """The text with the markers in its queries replaced. What goes wrong meanwhile is led back to it as it was written.

    Raises BindError as `fill_markers` and, where there are no values, `check_no_markers` do.
    """
    if not arguments:
        check_no_markers(text, queries)
        yield text
        return
    filled = fill_markers(text, queries, arguments)
    try:
        yield filled.text
    except CersqlError as error:
        raise filled.original(error.at(filled.text)) from None


def marker_values(text: str, queries: Sequence[Span], arguments: Arguments | None) -> dict[int, tuple[str, int]]:
    """Finds the values of the markers around the queries: `k = :p` gives {4: ("7", 6)}, the place, value and end."""
    if not arguments:
        return {}
    markers = [marker for marker in _markers(SourceText.of(text), queries) if not _is_inside(marker, queries)]
    if isinstance(arguments, Mapping):
        values = [(marker, arguments.get(marker.text[1:])) for marker in markers]
    else:
        values = list(zip((marker for marker in markers if marker.text == "?"), arguments, strict=False))
    return {marker.start: (_operand(value), marker.end) for marker, value in values if value is not None}


def check_no_markers(text: str, queries: Sequence[Span]) -> None:
    """Raises BindError at a marker inside one of the queries: no values were given."""
    for marker in _markers(SourceText.of(text), queries):
        if _is_inside(marker, queries):
            raise _unbound(marker, ()).at(text)


def _is_inside(token: Token, queries: Sequence[Span]) -> bool:
    return any(query.start <= token.start < query.end for query in queries)


def _markers(text: SourceText, queries: Sequence[Span]) -> Iterator[Token]:
    """The markers as single tokens: `:name` or `?`. Around the queries, in Spark's SQL, every `?` is one."""
    toks, levels = text.tokens, text.depths
    clauses, braces = _clauses(toks, levels), _braces(toks)
    ceql_patterns = [place for query in queries if (place := _ceql_pattern(text.within(query))) is not None]
    filter_level: int | None = None
    for i, token in enumerate(toks):
        in_pattern = clauses[i] == "PATTERN" and _is_inside(token, queries)
        in_pattern = in_pattern or _is_inside(token, ceql_patterns)
        if not in_pattern:
            filter_level = None
        elif token.upper == "FILTER":
            filter_level = levels[i]
        elif filter_level is not None and (
            levels[i] < filter_level or (levels[i] == filter_level and token.upper in _ENDS_FILTER)
        ):
            filter_level = None
        if token.text not in (":", "?") or token.kind != "op":
            continue
        if in_pattern and filter_level is None:
            expected = i > 0 and braces[i] and toks[i - 1].text in ("{", ",")
        else:
            expected = _expects_operand(toks, i)
        if token.text == "?" and (expected or not _is_inside(token, queries)):
            yield token
        elif token.text == ":" and expected and _is_name_of_marker(toks, i + 1):
            yield Token("word", f":{toks[i + 1].text}", token.start, toks[i + 1].end)


def _ceql_pattern(toks: Sequence[Token]) -> Span | None:
    """The place of the pattern in a query that is CEQL."""
    return ceql.place_of_pattern(toks) if ceql.is_query(toks, surely=True) else None


def _expects_operand(toks: Sequence[Token], i: int) -> bool:
    """In a condition, by the token before."""
    if i == 0:
        return False
    before = toks[i - 1]
    if before.kind == "op":
        return before.text not in _NO_OPERAND_AFTER
    return before.upper in _OPERAND_AFTER and not (i > 1 and toks[i - 2].text == ".")


def _is_name_of_marker(toks: Sequence[Token], i: int) -> bool:
    return 0 < i < len(toks) and toks[i].kind == "word" and toks[i].start == toks[i - 1].end


def _clauses(toks: Sequence[Token], levels: Sequence[int]) -> list[str]:
    """Says for each token in which clause of the innermost query it is; in SQL of Spark's, its clauses."""
    found = []
    stack: list[tuple[int, str]] = []
    for i, level in enumerate(levels):
        while stack and level < stack[-1][0]:
            stack.pop()
        key = key_at(toks, i)
        if key is not None and not (i and toks[i - 1].text == ":" and _is_name_of_marker(toks, i)):
            if stack and stack[-1][0] == level:
                stack.pop()
            stack.append((level, key[0]))
        found.append(stack[-1][1] if stack else "")
    return found


def _braces(toks: Sequence[Token]) -> list[bool]:
    """Says of each token whether it stands in a {…}."""
    depth, found = 0, []
    for token in toks:
        depth += {"{": 1, "}": -1}.get(token.text, 0)
        found.append(depth > 0)
    return found


def _named(marker: Token, arguments: Mapping[str, str]) -> str:
    name = marker.text[1:]
    if name not in arguments:
        raise _unbound(marker, arguments)
    return _operand(arguments[name])


def _next(marker: Token, index: int, arguments: Sequence[str]) -> str:
    if index >= len(arguments):
        raise _unbound(marker, ())
    return _operand(arguments[index])


def _unbound(marker: Token, known: Collection[str]) -> BindError:
    name = marker.text[1:]
    hint = "Give its value: spark.sql(text, args=[…])."
    if name:
        hint = (
            suggestion(name, known, "args has") if known else f"Give its value: spark.sql(text, args={{'{name}': …}})."
        )
    return BindError("UNBOUND_PARAMETER", span=marker.span, name=marker.text, hint=hint)


def _operand(value: str) -> str:
    """A value that can stand behind a minus without making it a comment."""
    return f"({value})" if value.startswith("-") else value


# ---------------------------------------------------------------- declared parameters


def uses(text: str, query: Span, name: str, owner: str) -> list[tuple[Span, bool]]:
    """Where the query names a declared parameter, by itself or as `owner.name`; True: where only a literal can stand.

    Columns after a dot, aliases after AS, functions, and the clauses that list columns or have words of their own are
    left alone. A pattern cannot name it otherwise, since no type or variable may be called like a parameter.
    """
    toks = SourceText.of(text).within(query)
    clauses, braces = _clauses(toks, depths(toks)), _braces(toks)
    found: list[tuple[Span, bool]] = []
    for i, token in enumerate(toks):
        if not _is(token, name) or clauses[i] in _WITHOUT_VALUES:
            continue
        before, after = _text(toks, i - 1), _text(toks, i + 1)
        start = token.start
        if before == "." and i > 1 and _is(toks[i - 2], owner) and _text(toks, i - 3) != ".":
            start = toks[i - 2].start
        elif before == "." or before.upper() in ("AS", "FROM", "JOIN"):
            continue
        if after not in (".", "("):
            found.append((Span(start, token.end), braces[i] or clauses[i] in _LITERAL_CLAUSES))
    return found


def _is(token: Token, name: str) -> bool:
    return token.is_name and strip_quotes(token.text).casefold() == name.casefold()


def _text(toks: Sequence[Token], i: int) -> str:
    return toks[i].text if 0 <= i < len(toks) else ""
