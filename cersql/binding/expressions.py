"""Scalar expressions of the user: the references in them found, and their text put together again.

The user's words stay byte for byte what they were; only references to variables are replaced. So every Spark function,
literal and cast means what Spark says it means, and an objection of Spark's can be shown at its place (`Sql.locate`).
sqlglot's parser is not used for that, since it renames functions and rewrites syntax on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from cersql.binding.aggregates import REFUSED, TABLE
from cersql.binding.own_aggregates import is_own
from cersql.errors import ParseError
from cersql.language.foreign_expressions import check_mark
from cersql.language.lexer import CLOSING, OPENING, Token, closing, shown, split, strip_quotes
from cersql.language.source import SourceText
from cersql.language.syntax import Text
from cersql.language.windows import UNITS
from planner.sql import Sql
from runtime.errors import Span

AGGREGATES = TABLE.keys() | REFUSED.keys()
PICKS = frozenset({"FIRST", "LAST"})
NEIGHBOURS = frozenset({"PREV", "NEXT", "INCREASING", "DECREASING"})
SPECIAL = AGGREGATES | PICKS | NEIGHBOURS

# Words that are never a reference when they stand alone; `not.x` and `in[1]` are one all the same.
KEYWORDS = frozenset(
    "AND OR NOT IN IS NULL TRUE FALSE LIKE ILIKE RLIKE REGEXP BETWEEN CASE WHEN THEN ELSE CAST TRY_CAST AS INTERVAL "
    "DISTINCT FROM ESCAPE DIV EXISTS COLLATE OVER".split()
)
# Words that take a unit as their first argument: timestampadd(MINUTE, 5, a.ts).
UNIT_FIRST = frozenset("TIMESTAMPADD TIMESTAMPDIFF DATEADD DATEDIFF DATE_ADD DATE_DIFF".split())
# Functions that Spark takes without parentheses.
NILADIC = frozenset(
    "CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP CURRENT_USER CURRENT_CATALOG CURRENT_DATABASE CURRENT_SCHEMA "
    "CURRENT_TIMEZONE LOCALTIMESTAMP SESSION_USER USER".split()
)
_QUERY = frozenset("SELECT WITH VALUES FROM TABLE".split())


@dataclass(frozen=True)
class Ref:
    """A reference to events of a variable.

    `index` is None (`x`, `x[]`, `x[i]`: all of them), an int (`x[2]`, from 1), or 'previous' / 'next' (`x[i-1]`,
    `x[i+1]`). `column` is the first name after it, None for the whole event, '*' for all columns. `condition` holds the
    text of `x[cond]`. `written` is the variable's name as it stands there.
    """

    variable: str
    index: int | str | None
    column: str | None
    span: Span
    column_span: Span | None = None
    condition: Text | None = None
    written: str = ""


@dataclass(frozen=True)
class Bare:
    """A name that is no variable: a column, a function without parentheses, or a mistake. `names`: its dotted parts."""

    names: tuple[str, ...]
    span: Span
    first: Span


@dataclass(frozen=True)
class SortKey:
    """A key of WITHIN GROUP (ORDER BY …); `last`: NULLs come last."""

    nodes: tuple[Node, ...]
    descending: bool
    last: bool


@dataclass(frozen=True)
class Call:
    """One of SPECIAL; `distinct` as in COUNT(DISTINCT x.a); `column` as in FIRST(x).a. `order`, `where` and
    `ignore_nulls`: WITHIN GROUP (ORDER BY …), FILTER (WHERE …) and IGNORE NULLS after it."""

    function: str
    arguments: tuple[Node, ...]
    distinct: bool
    column: str | None
    span: Span
    column_span: Span | None = None
    order: tuple[SortKey, ...] = ()
    where: tuple[Node, ...] = ()
    ignore_nulls: bool = False

    @property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes inside it, in the order in which they are written."""
        return (*self.arguments, *(node for key in self.order for node in key.nodes), *self.where)


@dataclass(frozen=True)
class Word:
    """Any other token. `inert`: it is a name, or of another language (a type, a subquery), never a keyword."""

    token: Token
    inert: bool = False

    @property
    def span(self) -> Span:
        return self.token.span

    @property
    def upper(self) -> str:
        return "" if self.inert else self.token.upper


@dataclass(frozen=True)
class Made(Word):
    """A comparison that the text says in another way: `a.x IN (b.x)` as a.x = b.x. What it joins need not be
    neighbours in the text."""


@dataclass(frozen=True)
class Said(Word):
    """A token that a paper writes otherwise: `∧` for AND, `[` around a condition for `(`. `token` is what SQL says."""


@dataclass(frozen=True)
class Together:
    """What is said of all events of the match, or of one variable (`of`), together.

    `kind` is AGREE for `[a, b]` and `x[a]`, of which `items` are the nodes between the commas; INCREASING or DECREASING
    for `x[increasing(a)]`, of which the one item is the call INCREASING(x.a).
    """

    kind: str
    items: tuple[tuple[Node, ...], ...]
    of: Ref | None
    span: Span


Node = Ref | Bare | Call | Word | Together

SIGNS = {"∧": "AND", "∨": "OR", "¬": "NOT", "≤": "<=", "≥": ">=", "≠": "<>"}
"""The papers' signs in conditions, and what SQL says."""


def read(
    text: str, span: Span, variable: Callable[[str], str | None], fold: Callable[[str], str] = str.lower
) -> tuple[Node, ...]:
    """The nodes of an expression. `variable` gives a variable's own spelling for a name, or None; `fold` makes names
    that Spark takes for the same equal."""
    toks = SourceText.of(text).within(span)
    return tuple(_Reader(text, toks, variable, _Others(toks, fold)).nodes())


class _Others:
    """The names in an expression that are not ours: parameters of lambdas, types in casts, subqueries."""

    def __init__(self, toks: Sequence[Token], fold: Callable[[str], str]) -> None:
        self.toks, self.fold = toks, fold
        self.parameters: dict[int, set[str]] = {}
        self.inert: set[int] = set()
        for k, token in enumerate(toks):
            if token.text == "->" and token.kind == "op":
                self._lambda(k)
            elif token.text == "(" and token.kind == "op":
                self._parentheses(k)
            elif token.text == "::" and token.kind == "op":
                self._type(k + 1)

    def __contains__(self, token: Token) -> bool:
        if token.start in self.inert:
            return True
        return self.fold(strip_quotes(token.text)) in self.parameters.get(token.start, ())

    def _lambda(self, arrow: int) -> None:
        """`x -> body`, `(x, y) -> body`: the parameters hide variables of their names, there and in the body."""
        first = arrow - 1
        if first >= 0 and self.toks[first].text == ")":
            while first > 0 and self.toks[first].text != "(":
                first -= 1
        names = {self.fold(strip_quotes(t.text)) for t in self.toks[max(0, first) : arrow] if t.is_name}
        depth, end = 0, arrow + 1
        while end < len(self.toks):
            op = self.toks[end].text if self.toks[end].kind == "op" else ""
            depth += (op in OPENING) - (op in CLOSING)
            if depth < 0 or (depth == 0 and op == ","):
                break
            end += 1
        for token in self.toks[max(0, first) : end]:
            self.parameters.setdefault(token.start, set()).update(names)

    def _parentheses(self, k: int) -> None:
        end = _closed(self.toks, k)
        before = self.toks[k - 1].upper if k else ""
        first, second = (self.toks[j] if j < end else None for j in (k + 1, k + 2))
        if first is not None and first.upper in _QUERY and (second is None or second.text not in (".", "[")):
            self.inert.update(token.start for token in self.toks[k + 1 : end])
        elif before in ("CAST", "TRY_CAST"):
            as_ = [j for j in range(k + 1, end) if self.toks[j].upper == "AS"]
            if as_:
                self.inert.update(token.start for token in self.toks[as_[-1] + 1 : end])

    def _type(self, k: int) -> None:
        """The type after `::`, with what stands in its angle brackets."""
        if k >= len(self.toks):
            return
        self.inert.add(self.toks[k].start)
        nested = self.toks[k].upper in ("ARRAY", "MAP", "STRUCT")
        if not nested or k + 1 >= len(self.toks) or self.toks[k + 1].text != "<":
            return
        depth = 0
        for token in self.toks[k + 1 :]:
            self.inert.add(token.start)
            depth += (token.text == "<") - (token.text == ">")
            if depth == 0:
                return


def _closed(toks: Sequence[Token], at: int) -> int:
    """The index of the token that closes the bracket at index `at`. Raises ParseError if none does."""
    end = closing(toks, at)
    if end is None:
        raise ParseError("UNCLOSED", span=toks[at].span, mark=toks[at].text)
    return end


class _Reader:
    def __init__(
        self, text: str, toks: Sequence[Token], variable: Callable[[str], str | None], others: _Others
    ) -> None:
        self.text, self.toks, self.variable, self.others = text, toks, variable, others
        self.at = 0
        self.cases = 0  # CASE … END that are open

    def nodes(self) -> Iterator[Node]:
        while self.at < len(self.toks):
            yield self.node()

    def token(self, ahead: int) -> Token | None:
        at = self.at + ahead
        return self.toks[at] if 0 <= at < len(self.toks) else None

    def peek(self, ahead: int = 0) -> str:
        token = self.token(ahead)
        return token.upper if token else ""

    def node(self) -> Node:
        token = self.toks[self.at]
        if not token.is_name:
            return self.word()
        if self.peek(-1) == "." or token in self.others:
            return self.word(inert=True)
        if self.peek(1) == "(":
            return self.call(token) if self.is_special(token) else self.word()
        if self.is_keyword(token):
            self.cases += (token.upper == "CASE") - (token.upper == "END")
            return self.word()
        if self.is_function():
            return self.word(inert=True)
        known = self.variable(strip_quotes(token.text))
        return self.bare() if known is None else self.reference(known)

    def is_special(self, token: Token) -> bool:
        """Is it a call of ours? `LIKE ANY ('a%', 'b%')` is none."""
        return (token.upper in SPECIAL or is_own(token.upper)) and self.peek(-1) not in ("LIKE", "ILIKE")

    def is_function(self) -> bool:
        """`catalog.schema.f(`: no column is followed by a parenthesis."""
        ahead = 1
        while self.peek(ahead) == "." and (name := self.token(ahead + 1)) is not None and name.is_name:
            ahead += 2
        return ahead > 1 and self.peek(ahead) == "("

    def is_keyword(self, token: Token) -> bool:
        """Does SQL, not the user, give the word its meaning here? Most words have one beside certain others only."""
        word, before, after = token.upper, self.peek(-1), self.peek(1)
        if token.kind != "word" or after == ".":
            return False
        if after == "[":
            return word in ("AND", "OR", "NOT")  # before an agreement, [k]
        beside = {self.token(-1), self.token(1)} - {None}
        return (
            word in KEYWORDS
            or (word == "END" and self.cases > 0)
            or any(t is not None and t.kind == "string" for t in beside)  # DATE '2024-01-01', '5' DAYS
            or (self.at > 0 and self.toks[self.at - 1].kind == "number")  # 5 DAYS
            or (word, after) in (("AT", "TIME"), ("ORDER", "BY"), ("PARTITION", "BY"))
            or (before, word) in (("AT", "TIME"), ("TIME", "ZONE"), ("ORDER", "BY"), ("PARTITION", "BY"))
            or before in ("AS", "COLLATE", ":")
            or after in ("FROM", "=>")
            or (word == "TO" and before in UNITS)
            or (word in UNITS and before == "TO")
            or (word in UNITS and before == "(" and self.peek(-2) in UNIT_FIRST and after == ",")
        )

    def word(self, inert: bool = False) -> Word:
        token = self.toks[self.at]
        sign = SIGNS.get(token.text) if token.kind == "op" else None
        if sign is not None:
            self.at += 1
            return Said(Token("word" if sign.isalpha() else "op", sign, token.start, token.end))
        if token not in self.others:  # of a type, x::ARRAY<INT> = y
            check_mark(self.toks, self.at)
        if not inert and token.upper == "IN":
            _check_in(self.text, self.toks, self.at)
        self.at += 1
        return Word(token, inert)

    def call(self, token: Token) -> Node:
        inner = self.inside(1)
        quantified = len(inner) > 1 and inner[0].upper in ("DISTINCT", "ALL") and inner[1].text not in (".", "[", ",")
        distinct = quantified and inner[0].upper == "DISTINCT"
        inner, ignored = _without_nulls(inner[1:] if quantified else inner)
        arguments = self.inner_nodes(inner)
        order: tuple[SortKey, ...] = ()
        where: tuple[Node, ...] = ()
        if (self.peek(), self.peek(1), self.peek(2)) == ("WITHIN", "GROUP", "("):
            order = tuple(self.sort_key(key) for key in split(self.inside(2)[2:]) if key)
        if (self.peek(), self.peek(1), self.peek(2)) == ("FILTER", "(", "WHERE"):
            where = self.inner_nodes(self.inside(1)[1:])
        if self.peek() in ("IGNORE", "RESPECT") and self.peek(1) == "NULLS":
            ignored = self.peek() == "IGNORE"
            self.at += 2
        column, column_span = self.column()
        span = Span(token.start, self.toks[self.at - 1].end)
        return Call(token.upper, arguments, distinct, column, span, column_span, order, where, ignored)

    def inside(self, ahead: int) -> list[Token]:
        """What stands in the parentheses that open so far ahead; reads on behind them."""
        start = self.at + ahead
        end = _closed(self.toks, start)
        self.at = end + 1
        return list(self.toks[start + 1 : end])

    def inner_nodes(self, toks: Sequence[Token]) -> tuple[Node, ...]:
        return tuple(_Reader(self.text, toks, self.variable, self.others).nodes())

    def sort_key(self, toks: Sequence[Token]) -> SortKey:
        words = [token.upper for token in toks]
        last: bool | None = None
        if words[-2:-1] == ["NULLS"] and words[-1] in ("FIRST", "LAST"):
            last = words[-1] == "LAST"
            toks, words = toks[:-2], words[:-2]
        descending = words[-1:] == ["DESC"]
        nodes = self.inner_nodes(toks[:-1] if words[-1:] in (["DESC"], ["ASC"]) else toks)
        return SortKey(nodes, descending, descending if last is None else last)

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
        written = strip_quotes(first.text)
        self.at += 1
        index: int | str | None = None
        if self.peek() == "[":
            end = _closed(self.toks, self.at)
            inside = self.toks[self.at + 1 : end]
            followed = end + 1 < len(self.toks) and self.toks[end + 1].text == "."
            self.at = end + 1
            if not followed and inside and not _is_index(inside):
                span = Span(inside[0].start, inside[-1].end)
                condition = Text(self.text[span.start : span.end], span)
                return Ref(variable, None, None, Span(first.start, self.toks[end].end), None, condition, written)
            index = _index(inside, Span(self.toks[end - len(inside) - 1].start, self.toks[end].end))
        column, column_span = self.column()
        span = Span(first.start, self.toks[self.at - 1].end)
        return Ref(variable, index, column, span, column_span, None, written)


def _without_nulls(toks: list[Token]) -> tuple[list[Token], bool]:
    """The tokens without IGNORE NULLS or RESPECT NULLS at their end, and whether it is the first."""
    words = [token.upper for token in toks[-2:]]
    if len(toks) > 2 and words[-1] == "NULLS" and words[0] in ("IGNORE", "RESPECT"):
        return toks[:-2], words[0] == "IGNORE"
    return toks, False


_INDICES: Mapping[str, str | None] = {"": None, "i": None, "i-1": "previous", "i+1": "next"}


def _written(inside: Sequence[Token]) -> str:
    return "".join(t.text for t in inside).lower()


def _is_index(inside: Sequence[Token]) -> bool:
    return _written(inside) in _INDICES or (len(inside) == 1 and inside[0].kind == "number")


def _index(inside: Sequence[Token], span: Span) -> int | str | None:
    written = _written(inside)
    if written in _INDICES:
        return _INDICES[written]
    if written.isdecimal() and int(written) > 0:
        return int(written)
    raise ParseError(
        "BAD_INDEX", span=span, index=f"[{written}]",
        hint="Write [] or [i] for every event, [i-1] for the one before, a number from 1, or use FIRST and LAST.",
    )  # fmt: skip


def _check_in(text: str, toks: Sequence[Token], at: int) -> None:
    """Raises for CORE's `x IN {1, 2}` and `x IN RANGE (1, 2)`; `at` is the place of IN."""
    opening = toks[at + 1] if at + 1 < len(toks) else None
    bracket = toks[at + 2] if at + 2 < len(toks) else None
    ranged = opening is not None and opening.upper == "RANGE" and bracket is not None and bracket.upper == "("
    if opening is None or (opening.text != "{" and not ranged):
        return
    start = at + 2 if ranged else at + 1
    end = _closed(toks, start)
    inside = toks[start + 1 : end]
    written = text[inside[0].start : inside[-1].end] if inside else "…"
    commas = [k for k, token in enumerate(inside) if token.text == ","]
    hint = f"Write IN ({written})."
    if ranged and len(commas) == 1 and 0 < commas[0] < len(inside) - 1:
        low, high = text[inside[0].start : inside[commas[0]].start], text[inside[commas[0]].end : inside[-1].end]
        hint = f"Write BETWEEN {low.strip()} AND {high.strip()}."
    elif ".." in "".join(token.text for token in inside):
        hint = "Of a range write BETWEEN 1 AND 5, <= 5 or >= 1."
    raise ParseError(
        "UNEXPECTED_TOKEN",
        span=opening.span,
        found=shown(opening),
        expected="values in parentheses after IN",
        hint=hint,
    )


def walk(nodes: Sequence[Node]) -> Iterator[Node]:
    """All nodes, those inside calls too, and the variable of which something is said together."""
    for node in nodes:
        yield node
        if isinstance(node, Call):
            yield from walk(node.nodes)
        elif isinstance(node, Together) and node.of is not None:
            yield node.of


def separated(nodes: Sequence[Node]) -> list[tuple[Node, ...]]:
    """The arguments of a call: what stands between the commas outside all parentheses."""
    parts: list[list[Node]] = [[]]
    depth = 0
    for node in nodes:
        upper = node.upper if isinstance(node, Word) else ""
        depth += (upper in OPENING) - (upper in CLOSING)
        if depth == 0 and upper == ",":
            parts.append([])
        else:
            parts[-1].append(node)
    return [tuple(part) for part in parts] if nodes else []


def _padded(text: str, said: Said) -> str:
    """What SQL says, apart from what stands beside it."""
    before, after = text[max(0, said.span.start - 1) : said.span.start], text[said.span.end : said.span.end + 1]
    return f"{'' if before.isspace() else ' '}{said.token.text}{'' if after.isspace() else ' '}"


def rendered(
    text: str, nodes: Sequence[Node], replace: Callable[[Node], Sql | str | None], span: Span | None = None
) -> Sql:
    """The user's text over the nodes (or `span`), with every node that `replace` answers for replaced."""
    if not nodes:
        return Sql(())
    for k, node in enumerate(nodes):
        if isinstance(node, Made):
            left, right = (rendered(text, side, replace).wrapped("(", ")") for side in (nodes[:k], nodes[k + 1 :]))
            return Sql((*left.pieces, (f" {node.upper} ", node.span.start, False), *right.pieces))
    at = span.start if span else nodes[0].span.start
    end = span.end if span else nodes[-1].span.end
    pieces: list[tuple[str, int, bool]] = []
    for node in nodes:
        new = _padded(text, node) if isinstance(node, Said) else replace(node)
        if new is None:
            continue
        if node.span.start > at:
            pieces.append((text[at : node.span.start], at, True))
        pieces += new.pieces if isinstance(new, Sql) else ((new, node.span.start, False),)
        at = node.span.end
    if at < end:
        pieces.append((text[at:end], at, True))
    return Sql(tuple(pieces))
