"""A pattern of CEQL in our words, piece by piece.

    A AS a; B FILTER a[x > 1] AND B[x < 2]     (A AS a ; B) FILTER a[x > 1] AND B[x < 2]
    NOT (A FILTER A[x > 1])                    PROJECT( : ANY UNLESS (A FILTER A[x > 1]))
    A+ FILTER A[x > 1] OR A[y > 1]             ((A+) FILTER A[x > 1]) OR ((A+) FILTER A[y > 1])
    S>A OR B, FROM S, T                        `S>A` OR B

NOT (A) is one event that is no A. It lies between the start and the end of the match and nowhere in it: no variable
holds it. Over one event, UNLESS asks just that.

OR between conditions is one between matches: either the first holds for all its events or the second does. With us it
is asked of each event. The two are the same where the sides speak of different variables, or of one event.

`S>A` is a type of its own where FROM names several streams. What speaks of A then speaks of all the `…>A` as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from cersql.errors import ParseError, nearest
from cersql.language.ceql_conditions import in_spark
from cersql.language.ceql_pattern import (
    AllOf,
    Asked,
    Condition,
    Event,
    Filtered,
    Joined,
    Loop,
    Marked,
    Not,
    OneOf,
    Part,
    Unless,
    asked,
    children,
)
from cersql.language.clause_table import ONE_WORD
from cersql.language.lexer import Token, strip_quotes
from cersql.language.operators import CALLS, RESERVED
from cersql.language.translated import Piece, kept, said
from planner.sql import quote

_TAKEN = RESERVED | ONE_WORD | CALLS.keys() | {"NOT", "ANY", "EVERY", "PART", "IN", "PATTERN"}
_MOST = 64  # copies of a pattern, one for each way in which its conditions can hold


class Words:
    """Says the parts of one pattern. `streams`: the names in FROM."""

    def __init__(
        self, text: str, pattern: Part, streams: Sequence[str], selected: Iterable[tuple[Token | None, Token]]
    ):
        self.text, self.pattern = text, pattern
        self.streams = {name.casefold(): name for name in streams}
        parts = list(_walk(pattern))
        self.events = [part for part in parts if isinstance(part, Event)]
        self.aliases = {_name(part.at) for part in parts if isinstance(part, Marked)}
        named = [(event.stream, event.at) for event in self.events]
        named += [(one.stream, one.name) for part in parts for one in _conditions(part)] + list(selected)
        for stream, _ in named:
            self._check_stream(stream)
        # Types of which some stream's own events are spoken of: such a type is one of each stream.
        self.apart = {_name(name) for stream, name in named if stream is not None} if len(streams) > 1 else set()
        self.copies = 1

    def _check_stream(self, stream: Token | None) -> None:
        if stream is not None and _name(stream) not in self.streams:
            known = ", ".join(self.streams.values())
            near = nearest(strip_quotes(stream.text), self.streams.values())
            hint = (
                f"Did you mean {near}? " if near else ""
            ) + "Of S>A, S is named in FROM, and A is a type of its events."
            found = f"the stream {stream.text}"
            expected = f"one of FROM: {known}" if known else "a stream of FROM, and there is none"
            raise ParseError("UNEXPECTED_TOKEN", span=stream.span, found=found, expected=expected, hint=hint)

    # ------------------------------------------------------------ names

    def names(self, stream: Token | None, name: Token) -> list[Piece]:
        """The variables or types that a name stands for."""
        if _name(name) in self.aliases and stream is None:
            return [written(name)]
        if _name(name) not in self.apart:
            return [written(name)]
        streams = [self.streams[_name(stream)]] if stream is not None else self._streams_of(name)
        return [_of_stream(one, name) for one in streams]

    def _streams_of(self, name: Token) -> list[str]:
        """The streams of which the pattern has the type; all of them where it has the type of any."""
        own = [event.stream for event in self.events if _name(event.at) == _name(name)]
        if None in own or not own:
            return list(self.streams.values())
        return list(dict.fromkeys(self.streams[_name(stream)] for stream in own if stream is not None))

    # ------------------------------------------------------------ parts

    def said(self) -> list[Piece]:
        """The whole pattern."""
        return list(self.part(self.pattern))

    def part(self, part: Part) -> Iterator[Piece]:
        match part:
            case Event():
                names = self.names(part.stream, part.at)
                yield from _between(names, " OR ") if len(names) == 1 else _parentheses(_between(names, " OR "), part)
            case Joined(items, ""):
                yield from self.part(items[0])
            case Joined(items, operator):
                for k, item in enumerate(items):
                    if k:
                        yield said(f" {operator} ", part.at)
                    yield from self.operand(item)
            case Marked(inner):
                yield from self.operand(inner)
                yield said(" AS ", part.at)
                yield written(part.at)
            case Loop(inner, contiguous):
                yield from self.operand(inner)
                yield said(":+" if contiguous else "+", part.at)
            case Not(event, conditions):
                yield said("PROJECT( : ANY UNLESS ", part.at)
                yield from self.vetoed(event, conditions)
                yield said(")", event.at)
            case Unless(inner, event, conditions):
                yield from self.operand(inner)
                yield said(" UNLESS ", part.at)
                yield from self.vetoed(event, conditions)
            case Filtered(inner, condition):
                yield from self.filtered([*self.part(inner)], condition, part.at)

    def operand(self, part: Part) -> Iterator[Piece]:
        """In parentheses, if it is not one word."""
        simple = isinstance(part, Event | Marked | Loop | Not) and not isinstance(
            getattr(part, "inner", None), Marked | Loop
        )
        if isinstance(part, Joined) and part.operator == "":
            yield from self.operand(part.items[0])
        elif simple:
            yield from self.part(part)
        else:
            yield from _parentheses(self.part(part), part)

    def vetoed(self, event: Event, conditions: Sequence[Condition]) -> Iterator[Piece]:
        """`R`, `(R FILTER R[x > 1])`."""
        own = {_name(event.at)}
        for one in (one for condition in conditions for one in asked(condition)):
            if _name(one.name) not in own:
                hint = f"In NOT and behind UNLESS only that event can be asked about: {event.at.text}[…]."
                found, expected = f"a condition on {one.name.text}", f"one on {event.at.text}"
                raise ParseError("UNEXPECTED_TOKEN", span=one.name.span, found=found, expected=expected, hint=hint)
        pieces = list(self.part(event))
        for condition in conditions:
            pieces = list(self.filtered(pieces, condition, event.at))
        yield from pieces if len(pieces) == 1 else _parentheses(pieces, event)

    # ------------------------------------------------------------ conditions

    def filtered(self, inner: list[Piece], condition: Condition, at: Token) -> Iterator[Piece]:
        """`(inner) FILTER condition`, behind which the pattern ends, or a parenthesis closes."""
        if not self._is_of_matches(condition):
            yield from inner if len(inner) == 1 else _parentheses(inner, at)
            yield said(" FILTER ", at)
            yield from self.condition(condition)
        elif isinstance(condition, AllOf):
            for item in condition.items:
                inner = list(self.filtered(inner, item, at))
            yield from inner
        else:
            assert isinstance(condition, OneOf)
            self.copies *= len(condition.items)
            if self.copies > _MOST:
                hint = (
                    "Conditions on one variable can be joined in its brackets: x[a > 1 OR b > 1] asks it of each event."
                )
                where = f"More than {_MOST} ways in which the conditions of a FILTER can hold"
                raise ParseError("NOT_SUPPORTED_YET", span=at.span, construct=where, hint=hint)
            ways = (_parentheses(self.filtered(inner, item, at), at) for item in condition.items)
            for k, way in enumerate(ways):
                if k:
                    yield said(" OR ", at)
                yield from way

    def condition(self, condition: Condition) -> Iterator[Piece]:
        match condition:
            case Asked(stream, name, inside):
                names = self.names(stream, name)
                for k, one in enumerate(names):
                    if k:
                        yield said(" AND ", name)
                    yield one
                    yield said("[", inside[0])
                    yield from in_spark(self.text, inside)
                    yield said("]", inside[-1].end)
            case AllOf(items):
                yield from self._several(items, " AND ")
            case OneOf(items):
                yield from self._several(items, " OR ")

    def _several(self, items: Sequence[Condition], word: str) -> Iterator[Piece]:
        for k, item in enumerate(items):
            at = asked(item)[0].name
            if k:
                yield said(word, at)
            many = not isinstance(item, Asked) or len(self.names(item.stream, item.name)) > 1
            yield from _parentheses(self.condition(item), at) if many else self.condition(item)

    def _is_of_matches(self, condition: Condition) -> bool:
        """Whether it has an OR whose sides speak of one variable that can hold several events."""
        if isinstance(condition, Asked):
            return False
        if any(map(self._is_of_matches, condition.items)):
            return True
        if isinstance(condition, AllOf):
            return False
        sides = [{_name(one.name) for one in asked(item)} for item in condition.items]
        twice = {name for k, side in enumerate(sides) for name in side if any(name in other for other in sides[:k])}
        return any(_most(self.pattern, name) > 1 for name in twice)


def _most(part: Part, name: str) -> int:
    """How many events a variable or type can hold at most, where 2 stands for any more than one."""
    match part:
        case Event():
            return int(_name(part.at) == name)
        case Not():
            return 0
        case Unless(inner):
            return _most(inner, name)
        case Marked(inner) if _name(part.at) == name:
            return min(2, _length(inner))
        case Loop(inner):
            return 2 * min(1, _most(inner, name))
        case Joined(items, "OR"):
            return max(_most(item, name) for item in items)
    return min(2, sum(_most(child, name) for child in children(part)))


def _length(part: Part) -> int:
    """How many events it has at most, where 2 stands for any more than one."""
    match part:
        case Event() | Not():
            return 1
        case Unless(inner):
            return _length(inner)
        case Loop():
            return 2
        case Joined(items, "OR"):
            return max(map(_length, items))
    return min(2, sum(map(_length, children(part))))


def _walk(part: Part) -> Iterator[Part]:
    yield part
    for child in children(part):
        yield from _walk(child)


def _conditions(part: Part) -> Iterator[Asked]:
    match part:
        case Filtered(condition=condition):
            yield from asked(condition)
        case Not(conditions=conditions) | Unless(conditions=conditions):
            for condition in conditions:
                yield from asked(condition)


def _name(token: Token) -> str:
    """The same for two names that Spark takes for one."""
    return strip_quotes(token.text).casefold()


def written(token: Token) -> Piece:
    """A name, in back-ticks where it would be an operator with us."""
    return said(quote(token.text), token) if token.upper in _TAKEN else kept(token)


def _of_stream(stream: str, name: Token) -> Piece:
    return said(quote(f"{stream}>{strip_quotes(name.text)}"), name)


def _between(pieces: Sequence[Piece], word: str) -> Iterator[Piece]:
    for k, piece in enumerate(pieces):
        if k:
            yield said(word, piece[1])
        yield piece


def _parentheses(pieces: Iterable[Piece], at: Part | Token) -> Iterator[Piece]:
    where = at.at if isinstance(at, Part) else at
    yield said("(", where)
    yield from pieces
    yield said(")", where)
