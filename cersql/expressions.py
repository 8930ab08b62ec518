"""Scalar expressions of the user: found references, boolean structure, and text put together again.

The user's words stay byte for byte what they were; only references to variables are replaced. So every Spark function,
literal and cast means what Spark says it means, and an objection of Spark's can be shown at its place (`Sql.locate`).
sqlglot's parser is not used for that, since it renames functions and rewrites syntax on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from cersql.errors import ParseError
from cersql.lexer import CLOSING, OPENING, Token, strip_quotes, tokens
from cersql.syntax import Text
from planner.sql import Sql
from runtime.errors import Span

AGGREGATES = frozenset({
    "COUNT", "SUM", "AVG", "MEAN", "MIN", "MAX", "RANGE", "COLLECT_LIST", "STDDEV", "STDDEV_POP", "STDDEV_SAMP", "STD",
    "VARIANCE", "VAR_POP", "VAR_SAMP",
})  # fmt: skip
PICKS = frozenset({"FIRST", "LAST"})
NEIGHBOURS = frozenset({"PREV", "NEXT", "INCREASING", "DECREASING"})
SPECIAL = AGGREGATES | PICKS | NEIGHBOURS

# Words that are never a reference when they stand alone; `x.end` and `x[1]` are one all the same.
KEYWORDS = frozenset(
    "AND OR NOT IN IS NULL TRUE FALSE LIKE ILIKE RLIKE REGEXP BETWEEN CASE WHEN THEN ELSE END CAST TRY_CAST AS INTERVAL "
    "DISTINCT FROM ESCAPE DIV DATE TIMESTAMP TIMESTAMP_NTZ TIMESTAMP_LTZ EXISTS ANY ALL SOME COLLATE AT TIME ZONE OVER "
    "YEAR YEARS MONTH MONTHS WEEK WEEKS DAY DAYS HOUR HOURS MINUTE MINUTES SECOND SECONDS MILLISECOND MILLISECONDS "
    "MICROSECOND MICROSECONDS TO INT INTEGER BIGINT SMALLINT TINYINT LONG SHORT BYTE DOUBLE FLOAT REAL DECIMAL DEC NUMERIC "
    "STRING VARCHAR CHAR BOOLEAN BINARY ARRAY MAP STRUCT".split()
)


@dataclass(frozen=True)
class Ref:
    """A reference to events of a variable.

    `index` is None (`x`, `x[]`, `x[i]`: all of them), an int (`x[2]`, from 1), or 'previous' / 'next' (`x[i-1]`,
    `x[i+1]`). `column` is the first name after it, None for the whole event, '*' for all columns. `condition` holds the
    text of `x[cond]`.
    """

    variable: str
    index: int | str | None
    column: str | None
    span: Span
    column_span: Span | None = None
    condition: Text | None = None


@dataclass(frozen=True)
class Bare:
    """A name that is no variable: a column, a function without parentheses, or a mistake. `names` are its dotted parts."""

    names: tuple[str, ...]
    span: Span
    first: Span


@dataclass(frozen=True)
class Call:
    """One of SPECIAL around references; `distinct` as in COUNT(DISTINCT x.a); `column` as in FIRST(x).a."""

    function: str
    arguments: tuple[Node, ...]
    inner: Span
    distinct: bool
    column: str | None
    span: Span
    column_span: Span | None = None


@dataclass(frozen=True)
class Word:
    """Any other token."""

    token: Token

    @property
    def span(self) -> Span:
        return self.token.span

    @property
    def upper(self) -> str:
        return self.token.upper


Node = Ref | Bare | Call | Word


@dataclass(frozen=True)
class Bool:
    """The boolean structure: kind 'and', 'or', 'not' (with parts) or 'atom'; `nodes` are all it is made of."""

    kind: str
    parts: tuple[Bool, ...]
    nodes: tuple[Node, ...]

    @property
    def span(self) -> Span:
        return self.nodes[0].span | self.nodes[-1].span


def read(text: str, span: Span, variable: Callable[[str], str | None]) -> tuple[Node, ...]:
    """The nodes of an expression. `variable` gives a variable's own spelling for a name, or None."""
    toks = tokens(text, span.start, span.end)
    shadowed = {strip_quotes(t.text) for t, after in zip(toks, toks[1:], strict=False) if after.text == "->"}
    return tuple(_Reader(text, toks, lambda name: None if name in shadowed else variable(name)).nodes())


class _Reader:
    def __init__(self, text: str, toks: Sequence[Token], variable: Callable[[str], str | None]) -> None:
        self.text, self.toks, self.variable, self.at = text, toks, variable, 0

    def nodes(self) -> Iterator[Node]:
        while self.at < len(self.toks):
            yield self.node()

    def peek(self, ahead: int = 0) -> str:
        at = self.at + ahead
        return self.toks[at].upper if at < len(self.toks) else ""

    def node(self) -> Node:
        token = self.toks[self.at]
        after_dot = self.at > 0 and self.toks[self.at - 1].text == "."
        if token.is_name and not after_dot:
            if self.peek(1) == "(":
                return self.call(token) if token.upper in SPECIAL else self.word()
            known = self.variable(strip_quotes(token.text))
            alone = self.peek(1) not in (".", "[")
            if token.upper in KEYWORDS and alone:
                return self.word()
            if known is not None:
                return self.reference(known)
            if not alone or token.kind == "quoted" or token.kind == "word":
                return self.bare()
        return self.word()

    def word(self) -> Word:
        self.at += 1
        return Word(self.toks[self.at - 1])

    def closing(self, at: int) -> int:
        """The index of the token that closes the bracket at index `at`."""
        depth = 0
        for k in range(at, len(self.toks)):
            if self.toks[k].kind != "op":
                continue
            depth += (self.toks[k].text in OPENING) - (self.toks[k].text in CLOSING)
            if depth == 0:
                return k
        raise ParseError("UNCLOSED", span=self.toks[at].span, mark=self.toks[at].text)

    def call(self, token: Token) -> Node:
        start, end = self.at + 1, self.closing(self.at + 1)
        inner = self.toks[start + 1 : end]
        distinct = bool(inner) and inner[0].upper == "DISTINCT"
        arguments = tuple(_Reader(self.text, inner[1:] if distinct else inner, self.variable).nodes())
        star = token.upper == "COUNT" and [t.text for t in inner] == ["*"]
        if not star and not any(isinstance(node, Ref | Call) for node in arguments):
            return self.word()
        self.at = end + 1
        column, column_span = self.column()
        last = self.toks[self.at - 1]
        return Call(
            token.upper, arguments, Span(self.toks[start].end, self.toks[end].start), distinct, column,
            Span(token.start, last.end), column_span,
        )  # fmt: skip

    def column(self) -> tuple[str | None, Span | None]:
        """`.name` or `.*` here, if it stands here."""
        if self.peek() != "." or self.at + 1 >= len(self.toks):
            return None, None
        name = self.toks[self.at + 1]
        if not name.is_name and name.text != "*":
            return None, None
        self.at += 2
        return strip_quotes(name.text), name.span

    def bare(self) -> Bare:
        first = self.toks[self.at]
        names = [strip_quotes(first.text)]
        self.at += 1
        while self.peek() == "." and self.at + 1 < len(self.toks) and self.toks[self.at + 1].is_name:
            names.append(strip_quotes(self.toks[self.at + 1].text))
            self.at += 2
        return Bare(tuple(names), Span(first.start, self.toks[self.at - 1].end), first.span)

    def reference(self, variable: str) -> Node:
        first = self.toks[self.at]
        self.at += 1
        index: int | str | None = None
        if self.peek() == "[":
            end = self.closing(self.at)
            inside = self.toks[self.at + 1 : end]
            followed = end + 1 < len(self.toks) and self.toks[end + 1].text == "."
            self.at = end + 1
            if not followed and inside and not _is_index(inside):
                span = Span(inside[0].start, inside[-1].end)
                condition = Text(self.text[span.start : span.end], span)
                return Ref(variable, None, None, Span(first.start, self.toks[end].end), None, condition)
            index = _index(inside, Span(self.toks[end - len(inside) - 1].start, self.toks[end].end))
        column, column_span = self.column()
        return Ref(variable, index, column, Span(first.start, self.toks[self.at - 1].end), column_span)


def _is_index(inside: Sequence[Token]) -> bool:
    return "".join(t.text for t in inside).lower() in ("i", "i-1", "i+1") or (
        len(inside) == 1 and inside[0].kind == "number"
    )


def _index(inside: Sequence[Token], span: Span) -> int | str | None:
    written = "".join(t.text for t in inside).lower()
    if written in ("", "i"):
        return None
    if written in ("i-1", "i+1"):
        return "previous" if written == "i-1" else "next"
    if written.isdigit() and int(written) > 0:
        return int(written)
    raise ParseError(
        "BAD_INDEX",
        span=span,
        index=f"[{written}]",
        hint="Write [] or [i] for every event, [i-1] for the one before, or a number from 1; FIRST and LAST pick an end.",
    )


# ---------------------------------------------------------------- boolean structure


def structure(nodes: tuple[Node, ...]) -> Bool:
    """The AND / OR / NOT tree of a condition."""
    for word in ("OR", "AND"):
        parts = _split(nodes, word)
        if len(parts) > 1:
            return Bool(word.lower(), tuple(structure(part) for part in parts), nodes)
    if isinstance(nodes[0], Word) and nodes[0].upper == "NOT" and len(nodes) > 1:
        return Bool("not", (structure(nodes[1:]),), nodes)
    if _enclosed(nodes):
        inner = structure(nodes[1:-1])
        return Bool(inner.kind, inner.parts, nodes) if inner.kind != "atom" else Bool("atom", (), nodes)
    return Bool("atom", (), nodes)


def _split(nodes: tuple[Node, ...], operator: str) -> list[tuple[Node, ...]]:
    """The stretches between the operator at depth 0, outside CASE … END and BETWEEN … AND; empty ones are dropped."""
    parts: list[list[Node]] = [[]]
    depth, between = 0, 0
    for node in nodes:
        upper = node.upper if isinstance(node, Word) else ""
        depth += (upper in OPENING or upper == "CASE") - (upper in CLOSING or (upper == "END" and depth > 0))
        if depth == 0 and upper == "BETWEEN":
            between += 1
        elif depth == 0 and upper == "AND" and between:
            between -= 1
        elif depth == 0 and upper == operator:
            parts.append([])
            continue
        parts[-1].append(node)
    return [tuple(part) for part in parts if part]


def _enclosed(nodes: tuple[Node, ...]) -> bool:
    """Is the whole one pair of parentheses?"""
    if len(nodes) < 3 or not isinstance(nodes[0], Word) or nodes[0].upper != "(":
        return False
    depth = 0
    for k, node in enumerate(nodes):
        upper = node.upper if isinstance(node, Word) else ""
        depth += (upper in OPENING) - (upper in CLOSING)
        if depth == 0:
            return k == len(nodes) - 1
    return False


def walk(nodes: Sequence[Node]) -> Iterator[Node]:
    """All nodes, those inside calls too."""
    for node in nodes:
        yield node
        if isinstance(node, Call):
            yield from walk(node.arguments)


def rendered(text: str, nodes: Sequence[Node], replace: Callable[[Node], Sql | str | None], span: Span | None = None) -> Sql:
    """The user's text over the nodes (or `span`), with every node that `replace` answers for replaced."""
    if not nodes:
        return Sql(())
    at = span.start if span else nodes[0].span.start
    end = span.end if span else nodes[-1].span.end
    pieces: list[tuple[str, int, bool]] = []
    for node in nodes:
        new = replace(node)
        if new is None:
            continue
        if node.span.start > at:
            pieces.append((text[at : node.span.start], at, True))
        pieces += new.pieces if isinstance(new, Sql) else ((new, node.span.start, False),)
        at = node.span.end
    if at < end:
        pieces.append((text[at:end], at, True))
    return Sql(tuple(pieces))
