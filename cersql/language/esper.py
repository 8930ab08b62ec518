"""Esper's queries, SELECT … FROM PATTERN [ … ], as queries of ours.

    every a=A -> b=B            each A, with the first B after it      SEMANTICS SKIP TILL NEXT MATCH
    every (a=A -> b=B)          after a match it begins anew           SEMANTICS NXT CONSUME BY PARTITION
    every a=A -> every b=B      each A with each B after it            SEMANTICS ALL
    a=A -> b=B                  the first match, and no other          SEMANTICS NXT CONSUME BY PARTITION LIMIT 1
    p and q, p or q             p ALL q, p OR q
    a=A -> (b=B and not c=C)    SEQ(A a, !C c, B b)
    b=B(price > 1)              a filter whose bare columns are b's
    … where timer:within(d)     WITHIN d

Why NXT with CONSUME BY PARTITION: a pattern that begins anew after its match has one run at a time, which takes the
first event that fits. It completes where some match first completes; of the matches that end there it is the
NXT-greatest; and what began at or before that place begins no match. AFTER MATCH SKIP PAST LAST ROW would take the
match with the greatest end. Without `every`, LIMIT 1 gives one match: the first one, where one task does the matching.

A window lies between the first and the last event. Esper's timer starts when its part begins to wait; so where a
pattern begins anew, an A that comes while another waits can be in a match here that Esper, still waiting, does not see.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cersql.errors import ParseError
from cersql.language import syntax
from cersql.language.clause_bodies import name_of, text_of
from cersql.language.clauses import Layout, Section, lay_out
from cersql.language.lexer import MAX_DEPTH, Token, depths, shown, split
from cersql.language.windows import ABBREVIATIONS, UNITS
from runtime.errors import Span

_SHAPE = "For example: SELECT a.x FROM PATTERN [every a=A -> b=B(price > 10)]."
_WORDS = frozenset(["EVERY", "AND", "OR", "NOT", "WHERE"])


@dataclass(frozen=True)
class Every(syntax.Pattern):
    """`every p`."""

    inner: syntax.Pattern


@dataclass(frozen=True)
class Both(syntax.Pattern):
    """`p and q`; `not p` stands only here."""

    items: tuple[syntax.Pattern, ...]


@dataclass(frozen=True)
class Meaning:
    """The pattern as ours, which of its matches are meant, and why: the place that says so."""

    pattern: syntax.Pattern
    strategy: str
    anew: bool
    once: bool
    within: syntax.Window | None
    place: Span


# ---------------------------------------------------------------- the query around it


def find(toks: Sequence[Token], start: int) -> Layout | None:
    """The clauses of a text that has Esper's form: SELECT's items as RETURN, the pattern without its brackets."""
    levels = depths(toks)
    top = [i for i, level in enumerate(levels) if level == 0]
    at = next((i for i in top if [token.upper for token in toks[i : i + 3]] == ["FROM", "PATTERN", "["]), None)
    if at is None:
        return None
    select = next((i for i in top if i < at and toks[i].upper == "SELECT"), None)
    if select is None:
        hint = f"Esper's patterns stand in SELECT … FROM PATTERN […]. {_SHAPE}"
        raise ParseError("UNEXPECTED_TOKEN", span=toks[at + 2].span, found="'['", expected="a pattern", hint=hint)
    close = next(i for i in top if i > at + 2 and toks[i].upper == "]")
    rest = lay_out(list(toks[close + 1 :]), toks[close].end)
    if rest.leading:
        raise _unexpected(rest.leading[0], "a clause: WHERE, HAVING, ORDER BY, …")
    sections = [
        Section("RETURN", toks[select].span, list(toks[select + 1 : at])),
        Section("PATTERN", toks[at + 1].span, list(toks[at + 3 : close])),
    ]
    for section in rest.sections:
        if section.kind in ("RETURN", "PATTERN", "FROM"):
            raise ParseError(
                "DUPLICATE_CLAUSE", span=section.key, clause=section.kind, hint="SELECT … FROM PATTERN […] says it."
            )
    return Layout(list(toks[:select]), [*sections, *rest.sections], max(rest.end, toks[close].end))


def finished(query: syntax.Query, meaning: Meaning) -> syntax.Query:
    """The query with what the place of `every` says of its matches. Raises ParseError where the text says it, too."""
    said = {
        "SEMANTICS": meaning.strategy, "AFTER MATCH": meaning.strategy, "WITHIN": meaning.within,
        "CONSUME BY": "PARTITION" if meaning.anew else None,
    }  # fmt: skip
    for kind, value in said.items():
        key = query.clause(kind)
        if value is not None and key is not None:
            hint = "Where 'every' and 'timer:within' stand says which matches are meant."
            raise ParseError("DUPLICATE_CLAUSE", span=key, clause=kind, hint=hint)
    return replace(
        query,
        semantics=syntax.Text(meaning.strategy, meaning.place),
        consume=syntax.Text("PARTITION", meaning.place) if meaning.anew else query.consume,
        within=meaning.within or query.within,
        limit=min(1, query.limit or 1) if meaning.once and query.limit != 0 else query.limit,
    )


def _unexpected(token: Token | None, expected: str, end: int = 0, hint: str = _SHAPE) -> ParseError:
    span = token.span if token else Span(end, end)
    return ParseError("UNEXPECTED_TOKEN", span=span, found=shown(token, "']'"), expected=expected, hint=hint)


# ---------------------------------------------------------------- the pattern's text


def parse_pattern(text: str, toks: Sequence[Token]) -> Meaning:
    """What stands between the brackets. Raises ParseError."""
    reader = _Reader(text, toks)
    part = reader.chain()
    if reader.token is not None:
        raise _unexpected(reader.token, "'->', AND, OR or ']'")
    return _meaning(part)


class _Reader:
    """Loosest first: ->, or, and, every and not, where timer:within."""

    def __init__(self, text: str, toks: Sequence[Token]) -> None:
        self.text, self.toks, self.at, self.depth = text, toks, 0, 0

    @property
    def token(self) -> Token | None:
        return self.toks[self.at] if self.at < len(self.toks) else None

    def word(self, ahead: int = 0) -> str:
        return self.toks[self.at + ahead].upper if self.at + ahead < len(self.toks) else ""

    def expect(self, *words: str) -> None:
        for word in words:
            if self.word() != word:
                raise _unexpected(self.token, f"'{word.lower()}'", self.toks[-1].end)
            self.at += 1

    def chain(self) -> syntax.Pattern:
        items = [self.either()]
        while self.word() == "->":
            self.at += 1
            items.append(self.either())
        return items[0] if len(items) == 1 else syntax.Chain(tuple(items), contiguous=False, span=_over(items))

    def either(self) -> syntax.Pattern:
        items = [self.both()]
        while self.word() == "OR":
            self.at += 1
            items.append(self.both())
        return items[0] if len(items) == 1 else syntax.Combination("OR", tuple(items), span=_over(items))

    def both(self) -> syntax.Pattern:
        items = [self.prefixed()]
        while self.word() == "AND":
            self.at += 1
            items.append(self.prefixed())
        return items[0] if len(items) == 1 else Both(tuple(items), span=_over(items))

    def prefixed(self) -> syntax.Pattern:
        mark = self.token
        if mark is None or mark.upper not in ("EVERY", "NOT"):
            return self.guarded()
        self.at += 1
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise ParseError("TOO_DEEP", span=mark.span, limit=MAX_DEPTH)
        inner = self.prefixed()
        self.depth -= 1
        return (Every if mark.upper == "EVERY" else syntax.Negation)(inner, span=mark.span | inner.span)

    def guarded(self) -> syntax.Pattern:
        part = self.atom()
        while self.word() == "WHERE":
            self.at += 1
            self.expect("TIMER", ":", "WITHIN")
            window = self.duration()
            part = syntax.Windowed(part, window, span=part.span | window.span)
        return part

    def atom(self) -> syntax.Pattern:
        token = self.token
        if token is not None and token.upper == "(":
            self.at += 1
            part = self.chain()
            self.expect(")")
            return part
        if token is None or not token.is_name or token.upper in _WORDS:
            raise _unexpected(token, "an event: a=Type or (", self.toks[-1].end if self.toks else 0)
        if token.upper == "TIMER" and self.word(1) == ":":
            hint = "What does not happen in time is written SEQ(A, !B) with WITHIN."
            raise ParseError("NOT_SUPPORTED_YET", span=token.span, construct="A timer as an event", hint=hint)
        return self.event(token)

    def event(self, first: Token) -> syntax.Pattern:
        """`[tag=]Type[(condition, …)]`."""
        alias, type = None, first
        if self.word(1) == "=":
            alias, self.at = first, self.at + 2
            type = self.toks[self.at] if self.token is not None else first
            if self.token is None or not type.is_name:
                raise _unexpected(self.token, "an event type", self.toks[-1].end)
        part: syntax.Pattern = syntax.TypeRef(name_of(type), span=type.span)
        if alias is not None:
            part = syntax.Alias(part, name_of(alias), span=alias.span | type.span)
        self.at += 1
        if self.word() != "(":
            return part
        conditions, close = self.parentheses()
        for condition in split(conditions) if conditions else []:
            if not condition:
                raise _unexpected(close, "a condition")
            written = text_of(self.text, condition)
            part = syntax.FilterPart(part, written, own_columns=True, span=first.span | close.span)
        return part

    def parentheses(self) -> tuple[list[Token], Token]:
        """What is in the parentheses here, and the closing one."""
        start, depth = self.at, 0
        while True:
            depth += {"(": 1, ")": -1}.get(self.word(), 0)
            self.at += 1
            if depth == 0:
                return list(self.toks[start + 1 : self.at - 1]), self.toks[self.at - 1]

    def duration(self) -> syntax.Window:
        """`(10 sec)`, `(1 minute 30 seconds)`; a plain number is seconds."""
        if self.word() != "(":
            raise _unexpected(self.token, "'(' and a duration", self.toks[-1].end)
        inside, close = self.parentheses()
        parts: list[str] = []
        for k in range(0, len(inside), 2):
            if inside[k].kind != "number":
                raise _unexpected(inside[k], "a number", hint="For example: timer:within(10 sec).")
            unit = inside[k + 1].upper if k + 1 < len(inside) else "SECONDS"
            unit = ABBREVIATIONS.get(unit, _UNITS.get(unit, unit))
            if unit not in UNITS:
                raise _unexpected(inside[k + 1], "a unit: sec, min, hours, days or msec")
            parts.append(f"{inside[k].text} {unit}")
        if not parts:
            raise _unexpected(close, "a duration", hint="For example: timer:within(10 sec).")
        span = inside[0].span | inside[-1].span
        return syntax.Window(syntax.Text("INTERVAL " + " ".join(parts), span), "INTERVAL", False, span)


_UNITS = {"MSEC": "MILLISECONDS", "USEC": "MICROSECONDS"}


def _over(parts: Sequence[syntax.Pattern]) -> Span:
    return parts[0].span | parts[-1].span


# ---------------------------------------------------------------- what it means


def _meaning(part: syntax.Pattern) -> Meaning:
    """Which matches are meant, by the places of `every`."""
    if isinstance(part, Every):
        inner, window = _window(part.inner)
        single = _single(inner)
        return Meaning(_ours(inner), "ALL" if single else "NXT", not single, False, window, part.span)
    inner, window = _window(part)
    items = inner.items if isinstance(inner, syntax.Chain) else ()
    starts = [item for item in items if isinstance(item, Every)]
    if starts and isinstance(inner, syntax.Chain):
        if window is not None and isinstance(part, syntax.Windowed):
            raise _not_yet(part, "'timer:within' around 'every', which ends the whole pattern,")
        for item in starts:
            if not _single(item.inner):
                raise _not_yet(item, "'every' around a part of several events, before '->',")
        every = len(starts) == len(items)
        if not every and (len(starts) > 1 or starts[0] is not items[0]):
            raise _not_yet(starts[-1] if starts[0] is items[0] else starts[0], "'every' after '->'")
        bare = tuple(item.inner if isinstance(item, Every) else item for item in items)
        both = next((item for item in bare if isinstance(item, Both) and len(_happening(item)) > 1), None)
        if both is not None:
            raise _not_yet(both, "'and' after 'every a=A ->'")
        pattern = _ours(replace(inner, items=bare))
        return Meaning(pattern, "ALL" if every else "SKIP TILL NEXT MATCH", False, False, window, starts[0].span)
    return Meaning(_ours(inner), "NXT", True, True, window, inner.span)


def _window(part: syntax.Pattern) -> tuple[syntax.Pattern, syntax.Window | None]:
    """The pattern without the guard that is a window of the whole: around it, or on the second of two events."""
    if isinstance(part, syntax.Windowed):
        return part.inner, part.window
    if isinstance(part, syntax.Chain) and len(part.items) == 2:
        first, last = part.items
        single = _single(first.inner) if isinstance(first, Every) else _single(first)
        if single and isinstance(last, syntax.Windowed):
            return replace(part, items=(first, last.inner)), last.window
    return part, None


def _single(part: syntax.Pattern) -> bool:
    """One event: `a=A(…)`, or one of several such."""
    if isinstance(part, syntax.Combination):
        return all(map(_single, part.items))
    return isinstance(part, syntax.TypeRef | syntax.Alias | syntax.FilterPart)


def _happening(part: Both) -> list[syntax.Pattern]:
    return [item for item in part.items if not isinstance(item, syntax.Negation)]


def _ours(part: syntax.Pattern) -> syntax.Pattern:
    """The pattern in our operators."""
    match part:
        case syntax.Chain(items):
            found: list[syntax.Pattern] = []
            for k, item in enumerate(items):
                found += _and_not(item) if isinstance(item, Both) and k > 0 else [_ours(item)]
            return replace(part, items=tuple(found))
        case syntax.Combination("OR"):
            return syntax.changed(part, _ours)
        case Both(items):
            if len(_happening(part)) < len(items):
                raise _not_yet(part, "'and not' that is not after '->'", "Write: a=A -> (b=B and not c=C).")
            return syntax.Combination("ALL", tuple(map(_ours, items)), span=part.span)
        case syntax.Negation():
            raise _not_yet(part, "'not' without an 'and'", "Write: a=A -> (b=B and not c=C).")
        case syntax.Windowed(inner):
            if _single(inner):
                raise _not_yet(part, "'timer:within' on one event of several", "Put it around the whole pattern.")
            return syntax.changed(part, _ours)
        case Every():
            raise _not_yet(part, "'every' inside the pattern")
    return part


def _and_not(part: Both) -> list[syntax.Pattern]:
    """`b=B and not c=C` after `->`: no C before that B."""
    happening = _happening(part)
    if len(happening) == len(part.items):
        return [_ours(part)]
    if len(happening) != 1 or not _single(happening[0]):
        raise _not_yet(part, "'and not' beside other than one event", "Write: a=A -> (b=B and not c=C).")
    vetoes = [replace(item, inner=_ours(item.inner)) for item in part.items if isinstance(item, syntax.Negation)]
    return [*vetoes, happening[0]]


def _not_yet(part: syntax.Pattern, construct: str, hint: str = _SHAPE) -> ParseError:
    return ParseError("NOT_SUPPORTED_YET", span=part.span, construct=construct, hint=hint)
