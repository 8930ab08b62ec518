"""The pattern of CEQL: what stands behind its WHERE.

    SELL AS a; S>BUY; SELL AS c FILTER a[price > 1] AND c[price < 2]

Tightest first: AS, `+` and `:+`, then `;`, `:`, OR, ALL, UNLESS, and last FILTER, which holds for all that is before
it. (With us FILTER is the tightest.) `cersql/language/ceql_words.py` says it in our words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from cersql.errors import ParseError
from cersql.language.lexer import MAX_DEPTH, Token, closing, shown
from runtime.errors import Span

# ---------------------------------------------------------------- what is asked of events


@dataclass(frozen=True)
class Asked:
    """`x[price > 1]`, `S>SELL[price > 1]`."""

    stream: Token | None
    name: Token
    inside: list[Token]


@dataclass(frozen=True)
class AllOf:
    items: tuple[Condition, ...]


@dataclass(frozen=True)
class OneOf:
    items: tuple[Condition, ...]


Condition = Asked | AllOf | OneOf


def asked(condition: Condition) -> list[Asked]:
    """All that it asks, one by one."""
    if isinstance(condition, Asked):
        return [condition]
    return [one for item in condition.items for one in asked(item)]


# ---------------------------------------------------------------- what happens


@dataclass(frozen=True)
class Part:
    """A part of a pattern; `at` is the token that makes it what it is."""

    at: Token = field(kw_only=True)


@dataclass(frozen=True)
class Event(Part):
    """`SELL`, `S>SELL`: the token is the type."""

    stream: Token | None


@dataclass(frozen=True)
class Marked(Part):
    """`p AS x`: the token is x."""

    inner: Part


@dataclass(frozen=True)
class Loop(Part):
    """`p+`, `p:+`."""

    inner: Part
    contiguous: bool


@dataclass(frozen=True)
class Joined(Part):
    """Parts with one operator between them: `;`, `:`, OR, ALL."""

    items: tuple[Part, ...]
    operator: str


@dataclass(frozen=True)
class Not(Part):
    """`NOT (R)`, `NOT (R FILTER R[…])`: one event that is no such R."""

    event: Event
    conditions: tuple[Condition, ...]


@dataclass(frozen=True)
class Unless(Part):
    """`p UNLESS R`, `p UNLESS R[…]`."""

    inner: Part
    event: Event
    conditions: tuple[Condition, ...]


@dataclass(frozen=True)
class Filtered(Part):
    """`p FILTER condition`."""

    inner: Part
    condition: Condition


def children(part: Part) -> tuple[Part, ...]:
    """The direct parts."""
    match part:
        case Joined(items):
            return items
        case Marked(inner) | Loop(inner) | Filtered(inner):
            return (inner,)
        case Unless(inner, event):
            return (inner, event)
        case Not(event):
            return (event,)
    return ()


def parse(toks: Sequence[Token], end: int) -> Part:
    """The pattern that these tokens are; `end` is where they end. Raises ParseError."""
    reader = _Reader(toks, end)
    part = reader.part(_FILTER)
    if reader.token is not None:
        hint = _OURS if reader.upper() in OURS_ALONE or reader.upper() == "(" else SHAPE
        raise reader.unexpected("an operator (; : + :+ OR AS FILTER) or the next clause", hint)
    return part


# How tightly each operator binds.
_FILTER, _UNLESS, _ALL, _OR, _COLON, _SEMICOLON, _POSTFIX = range(7)
_BINARY = {"ALL": _ALL, "OR": _OR, ":": _COLON, ";": _SEMICOLON}
BETWEEN = frozenset(("AS", "OR", "ALL", "UNLESS"))
"""Words that stand behind an operand, and have another one behind them."""
ASKING = frozenset(("FILTER", "UNLESS"))
"""Words behind which an event is named and asked about: x[…]."""
_WORDS = BETWEEN | ASKING | {"AND", "NOT"}
OURS_ALONE = frozenset(("->", "*", "?", "{", "}", ","))
"""Marks of our patterns that CEQL has none of."""
_OURS = "Our other operators stand in queries of ours: FROM S PATTERN SEQ(A a, B{2,3} b) WHERE a.x > 1 RETURN *."
_COMMAS = "Write A; B: B after A. In any order they are a query of ours: FROM S PATTERN ALL(A a, B b) … RETURN *."
_COMPARES = frozenset(("=", "==", "<>", "!=", "<", "<=", ">", ">="))
_OPERAND = "an event type, NOT (…) or '('"
SHAPE = "For example: SELECT * FROM S WHERE (A AS a; B) FILTER a[price > 10] WITHIN 100 EVENTS."


class _Reader:
    def __init__(self, toks: Sequence[Token], end: int) -> None:
        self.toks, self.end, self.at = toks, end, 0

    @property
    def token(self) -> Token | None:
        return self.toks[self.at] if self.at < len(self.toks) else None

    def upper(self, ahead: int = 0) -> str:
        return self.toks[self.at + ahead].upper if self.at + ahead < len(self.toks) else ""

    def unexpected(self, expected: str, hint: str = SHAPE) -> ParseError:
        token = self.token
        span = token.span if token else Span(self.end, self.end)
        return ParseError(
            "UNEXPECTED_TOKEN", span=span, found=shown(token, "the end of the pattern"), expected=expected, hint=hint
        )

    def take(self, mark: str, expected: str, hint: str = SHAPE) -> Token:
        token = self.token
        if token is None or token.upper != mark:
            raise self.unexpected(expected, hint)
        self.at += 1
        return token

    def name(self, expected: str, hint: str = SHAPE) -> Token:
        token = self.token
        if token is None or not token.is_name or token.upper in _WORDS:
            raise self.unexpected(expected, hint)
        self.at += 1
        return token

    # ------------------------------------------------------------ parts

    def part(self, least: int) -> Part:
        """A part whose operators bind at least so tightly."""
        left, behind = self.operand(), 0
        while self.token is not None:
            new = self.behind(left, least)
            if new is None:
                break
            left, behind = new, behind + (not isinstance(new, Joined))
            if behind > MAX_DEPTH:
                raise ParseError("TOO_DEEP", span=left.at.span, limit=MAX_DEPTH)
        return left

    def behind(self, left: Part, least: int) -> Part | None:
        """What the operator here makes of the part before it; None if it is none, or binds less."""
        mark = self.toks[self.at]
        word = mark.upper
        if word == "AS":
            self.at += 1
            return Marked(left, at=self.name("a variable after AS"))
        if word == "+" or self.is_loop():
            self.at += 1 if word == "+" else 2
            return Loop(left, word != "+", at=mark)
        if word in _BINARY and _BINARY[word] >= least:
            self.at += 1
            return _joined(left, self.part(_BINARY[word] + 1), word, mark)
        if word == "UNLESS" and least <= _UNLESS:
            self.at += 1
            return self.unless(left, mark)
        if word == "FILTER" and least <= _FILTER:
            self.at += 1
            return Filtered(left, self.condition(), at=mark)
        return None

    def is_loop(self) -> bool:
        """`:+` is one mark."""
        return self.upper() == ":" and self.upper(1) == "+" and self.toks[self.at].end == self.toks[self.at + 1].start

    def operand(self) -> Part:
        token = self.token
        if token is not None and token.upper == "(":
            self.at += 1
            inner = self.part(_FILTER)
            commas = _COMMAS if self.upper() == "," else SHAPE
            self.take(")", "')' or an operator", commas)
            return Joined((inner,), "", at=token)  # in parentheses
        if token is not None and token.upper in ("NOT", "!"):
            return self.no_event(token)
        return self.event()

    def event(self) -> Event:
        first = self.name(_OPERAND)
        if self.upper() != ">":
            return Event(None, at=first)
        self.at += 1
        return Event(first, at=self.name(f"an event type of {first.text}"))

    def no_event(self, mark: Token) -> Part:
        self.at += 1
        hint = "NOT (R) is one event that is no R; it takes one type, and conditions on it: NOT (R FILTER R[x > 1])."
        self.take("(", "'(' after NOT", hint)
        event, conditions = self.event_in_parentheses(hint)
        return Not(event, conditions, at=mark)

    def event_in_parentheses(self, hint: str) -> tuple[Event, tuple[Condition, ...]]:
        event = self.event()
        conditions: list[Condition] = []
        while self.upper() == "FILTER":
            self.at += 1
            conditions.append(self.condition())
        self.take(")", "FILTER or ')'", hint)
        return event, tuple(conditions)

    def unless(self, left: Part, mark: Token) -> Part:
        """`UNLESS R`, `UNLESS R[…]`."""
        event = self.event()
        if self.upper() != "[":
            return Unless(left, event, (), at=mark)
        return Unless(left, event, (Asked(event.stream, event.at, self.brackets()),), at=mark)

    # ------------------------------------------------------------ conditions

    def condition(self) -> Condition:
        return self.several("OR", lambda: self.several("AND", self.one_condition, AllOf), OneOf)

    def several(self, word: str, one: Callable[[], Condition], made: type[AllOf] | type[OneOf]) -> Condition:
        items = [one()]
        while self.upper() == word and self.asks_next():
            self.at += 1
            items.append(one())
        return items[0] if len(items) == 1 else made(tuple(items))

    def asks_next(self) -> bool:
        """Behind AND or OR stands a condition, `x[…]`, and not a part of the pattern."""
        at = self.at + 1
        while at < len(self.toks) and self.toks[at].upper == "(":
            at += 1
        words = [token.upper for token in self.toks[at : at + 4]]
        return self.upper() == "AND" or words[1:2] == ["["] or (words[1:2] == [">"] and words[3:4] == ["["])

    def one_condition(self) -> Condition:
        if self.upper() == "(":
            self.at += 1
            inner = self.condition()
            self.take(")", "AND, OR or ')'")
            return inner
        hint = "What is asked of an event stands in brackets behind its name: a[price > 10]."
        if self.upper() == "NOT":
            hint = "NOT stands in the brackets, where it asks each event: a[NOT price > 10]."
        first = self.name("a condition, name[…]", hint)
        stream, name = None, first
        if self.upper() == ">":
            self.at += 1
            stream, name = first, self.name(f"an event type of {first.text}", hint)
        if self.upper() != "[":
            raise self.unexpected("'['", hint)
        found = Asked(stream, name, self.brackets())
        if self.upper() in _COMPARES:
            hint = (
                "A comparison of two events is no CEQL. With us: FROM S PATTERN … WHERE a.x = b.x RETURN *, beside the "
                "conditions a[x > 1]."
            )
            raise self.unexpected("AND, OR or the end of the conditions", hint)
        return found

    def brackets(self) -> list[Token]:
        opening = self.at
        end = closing(self.toks, opening)
        assert end is not None  # the brackets of the text are balanced
        inside = list(self.toks[opening + 1 : end])
        self.at = end + 1
        if not inside:
            self.at = end
            raise self.unexpected("a condition", "For example: a[price > 10].")
        return inside


def _joined(left: Part, right: Part, operator: str, mark: Token) -> Joined:
    """`A ; B ; C` is one."""
    before = left.items if isinstance(left, Joined) and left.operator == operator else (left,)
    return Joined((*before, right), operator, at=mark)
