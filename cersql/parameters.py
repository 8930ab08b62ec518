"""Values for the parameters of a text: the markers `:name` and `?` of `spark.sql(text, args)`, and the declared ones of
a pattern function.

They are filled in as text, before anything is parsed, so that a parameter can stand wherever a literal can: in a
condition, in WITHIN, LIMIT or `{n}`. The places of errors are led back to the text as it was written.

`:` and `?` are operators of patterns as well. They are markers only where an operand is expected and no pattern can
have the operator: after a comparison or a keyword of a condition, after `(` or `{`, at the start of a clause.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from cersql.clauses import EXPRESSION_WORDS, KEYS, key_at
from cersql.errors import BindError, suggestion
from cersql.lexer import Token, depths, strip_quotes, tokens
from planner.sql import Sql
from runtime.errors import CersqlError, Span

Arguments = Mapping[str, str] | Sequence[str]
"""SQL literals, by name or in the order of the `?`."""
Values = Callable[[], Arguments | None]
"""The arguments of a statement, for when they are needed: asking the JVM for them takes a while."""

_OPERATORS = frozenset("= == <=> < > <= >= <> != / % || ( { , =>".split())
_ALSO_QUANTIFIERS = frozenset("+ * -".split())  # operators too, where a pattern has quantifiers


@dataclass(frozen=True)
class Filled:
    """A text with its parameters replaced, which knows where each piece was."""

    written: str
    sql: Sql

    @property
    def text(self) -> str:
        return self.sql.text

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
    toks = tokens(text)
    places: list[tuple[Span, str]] = []
    for marker in _markers(toks):
        inside = any(query.start <= marker.start < query.end for query in queries)
        if isinstance(arguments, Mapping):
            if inside and marker.text != "?":
                places.append((marker.span, _named(marker, arguments)))
        elif marker.text == "?":
            places.append((marker.span, _next(marker, len(places), arguments)))
    if not named and len(places) < len(arguments):
        raise BindError("ARGUMENT_COUNT", found=len(arguments), expected=len(places)).at(text)
    return fill(text, places)


def marker_values(text: str, arguments: Arguments | None) -> dict[int, tuple[str, int]]:
    """For the place of each marker that has a value, the value and where the marker ends."""
    if not arguments:
        return {}
    found: dict[int, tuple[str, int]] = {}
    for n, marker in enumerate(m for m in _markers(tokens(text)) if isinstance(arguments, Mapping) or m.text == "?"):
        if isinstance(arguments, Mapping):
            value = arguments.get(marker.text[1:])
        else:
            value = arguments[n] if n < len(arguments) else None
        if value is not None:
            found[marker.start] = (_operand(value), marker.end)
    return found


def check_no_markers(text: str, queries: Sequence[Span]) -> None:
    """Raises BindError at a marker inside one of the queries: no values were given."""
    for marker in _markers(tokens(text)):
        if any(query.start <= marker.start < query.end for query in queries):
            raise _unbound(marker, ()).at(text)


def _markers(toks: Sequence[Token]) -> Iterator[Token]:
    """The markers as single tokens: `:name` or `?`."""
    clause = ""
    levels = depths(toks)
    base = 0
    for i, token in enumerate(toks):
        key = key_at(toks, i)
        if key is not None:
            # Outside a query of ours the keys are those of SQL, and do no harm.
            clause, base = key[0], levels[i]
        elif levels[i] < base:
            clause = ""
        if token.text not in (":", "?") or not _expects_operand(toks, i, clause):
            continue
        if token.text == "?":
            yield token
        elif i + 1 < len(toks) and toks[i + 1].kind == "word" and toks[i + 1].start == token.end:
            yield Token("word", f":{toks[i + 1].text}", token.start, toks[i + 1].end)


def _expects_operand(toks: Sequence[Token], i: int, clause: str) -> bool:
    if i == 0:
        return False
    before = toks[i - 1]
    if before.kind == "op":
        if before.text in _ALSO_QUANTIFIERS:
            return clause != "PATTERN" or (i > 1 and toks[i - 2].end < before.start)
        return before.text in _OPERATORS
    after_name = before.kind != "word" or (i > 1 and toks[i - 2].text == ".")
    if after_name or before.upper in ("NULL", "TRUE", "FALSE", "END"):
        return False
    return before.upper in EXPRESSION_WORDS or before.upper in KEYS or before.upper in ("SELECT", "BY", "RLIKE")


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

    Columns after a dot, aliases after AS, functions, and the clauses that list columns are left alone. A pattern cannot
    name it otherwise, since no type or variable may be called like a parameter.
    """
    toks = tokens(text, query.start, query.end)
    found: list[tuple[Span, bool]] = []
    clause, braces = "", 0
    levels = depths(toks)
    for i, token in enumerate(toks):
        key = key_at(toks, i) if levels[i] == 0 else None
        clause = key[0] if key is not None else clause
        braces += {"{": 1, "}": -1}.get(token.text, 0)
        if not _is(token, name) or clause in ("PARTITION BY", "ORDER BY"):
            continue
        before, after = _text(toks, i - 1), _text(toks, i + 1)
        start = token.start
        if before == "." and i > 1 and _is(toks[i - 2], owner) and _text(toks, i - 3) != ".":
            start = toks[i - 2].start
        elif before == "." or before.upper() == "AS":
            continue
        if after not in (".", "("):
            found.append((Span(start, token.end), braces > 0 or clause in ("WITHIN", "LIMIT")))
    return found


def _is(token: Token, name: str) -> bool:
    return token.is_name and strip_quotes(token.text).casefold() == name.casefold()


def _text(toks: Sequence[Token], i: int) -> str:
    return toks[i].text if 0 <= i < len(toks) else ""
