"""Reads the bodies of the clauses other than PATTERN: lists of columns, sources, definitions and items.

Expressions in them stay raw text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise, zip_longest
from typing import Any

from cersql.errors import ParseError
from cersql.language.clause_table import CLAUSES, BodyKind
from cersql.language.clauses import EXPRESSION_WORDS, Layout, Section, check_misspelt
from cersql.language.foreign_expressions import check_condition
from cersql.language.lexer import Token, depths, shown, split, strip_quotes
from cersql.language.syntax import Computed, Definition, Name, OrderItem, ReturnItem, RowKey, Source, Text, Window
from cersql.language.windows import UNITS, parse_duration, parse_window
from runtime.errors import Span


def name_of(token: Token) -> Name:
    return Name(strip_quotes(token.text) if token.kind == "quoted" else token.text, token.span, token.kind == "quoted")


def text_of(text: str, toks: Sequence[Token]) -> Text:
    """The user's text from the first to the last of some tokens."""
    span = toks[0].span | toks[-1].span
    return Text(text[span.start : span.end], span)


class Body:
    """The body of one clause and what follows it, for errors at its end."""

    def __init__(self, text: str, layout: Layout, section: Section) -> None:
        self.text, self.kind, self.key, self.tokens = text, section.kind, section.key, section.body
        self.holds = CLAUSES[self.kind].holds
        self.next = layout.after(section)
        self.end = layout.end
        if not self.tokens:
            raise _empty(self)

    def unexpected(self, token: Token | None, expected: str, hint: str | None = None) -> ParseError:
        found = token or self.next
        span = found.span if found else Span(self.end, self.end)
        return ParseError("UNEXPECTED_TOKEN", span=span, found=shown(found), expected=expected, hint=hint)

    def items(self) -> list[tuple[list[Token], Token | None]]:
        """The comma-separated items, each with the token behind it. None of them is empty."""
        parts = split(self.tokens)
        found: list[tuple[list[Token], Token | None]] = []
        at = 0
        for part in parts:
            at += len(part)
            after = self.tokens[at] if at < len(self.tokens) else None
            if not part:
                raise self.unexpected(after, self.holds, "There is a comma too many." if found or after else None)
            found.append((part, after))
            at += 1
        return found

    def raw(self) -> Text:
        """The whole body as text."""
        check_misspelt(self.tokens)
        if CLAUSES[self.kind].is_condition:
            check_condition(self.tokens)
        return text_of(self.text, self.tokens)


def _empty(body: Body) -> ParseError:
    condition = "EMPTY_PATTERN" if body.kind == "PATTERN" else "EMPTY_CLAUSE"
    written = body.text[body.key.start : body.key.end]
    following = [written] if " " not in body.kind else []
    if body.next is not None and " " not in body.next.text:
        following.append(body.text[body.next.start : body.next.end])
    names = " or ".join(f"`{word}`" for word in following)
    hint = f"If a keyword is meant as a name here, it needs back-ticks: {names}." if names else None
    return ParseError(condition, span=body.key, clause=body.kind, expected=body.holds, hint=hint)


# ---------------------------------------------------------------- columns


def _column(body: Body, toks: list[Token], after: Token | None) -> tuple[tuple[Name, ...], int]:
    """Reads a name at the start of `toks`, and counts its tokens: `t.a` takes three."""
    names: list[Name] = []
    at = 0
    while True:
        token = toks[at] if at < len(toks) else None
        if token is None or not token.is_name:
            raise body.unexpected(
                token or after, "a column" if not names else "a name after the dot", _no_expression(body)
            )
        names.append(name_of(token))
        at += 1
        if at == len(toks) or toks[at].upper != ".":
            return tuple(names), at
        at += 1


def _no_expression(body: Body) -> str | None:
    if not CLAUSES[body.kind].lists_columns:
        return None
    return f"{body.kind} takes columns and expressions over one row, with commas between them."


def _comma_instead(body: Body, token: Token, items: str) -> ParseError | None:
    if token.upper not in ("AND", "OR", ";"):
        return None
    return ParseError(
        "COMMA_EXPECTED", span=token.span, found=shown(token), items=items, hint=f"Write: {body.kind} a, b."
    )


# Between two names of columns there is an operator, in an expression; AND and OR there were hardly meant as such.
_GOES_ON = frozenset("( [ + - * / % || & | ^ :: : = == <> != < <= > >= <=>".split())
_GOES_ON_WORDS = frozenset("BETWEEN COLLATE DIV ILIKE IN IS LIKE NOT REGEXP RLIKE AT".split())
_BEGINS = frozenset("( - + ~".split())
_BEGINS_WORDS = frozenset("CASE NOT DATE TIMESTAMP INTERVAL".split())
_AFTER_KEY = ("AS", "ASC", "DESC", "NULLS")


def _row_key(body: Body, part: list[Token], after: Token | None) -> tuple[RowKey, int]:
    """Reads a column or an expression at the start of `part`, and counts its tokens: four of `date(ts) AS day`."""
    levels = depths(part)
    close = levels.index(0, 1) if part[0].upper == "(" else 0
    if close > 1 and (close + 1 == len(part) or part[close + 1].upper in _AFTER_KEY):
        inside = part[1:close]
        comma = next(
            (token for token, level in zip(part, levels, strict=True) if level == 1 and token.upper == ","), None
        )
        if comma is not None:
            raise body.unexpected(comma, "')'", f"Write {body.kind} a, b without parentheses.")
        key, used = _row_key(body, inside, part[close])
        if used == len(inside):
            return key, close + 1
    if not _is_expression(part):
        names, used = _column(body, part, after)
        if used == len(part) or not (part[used].upper in _GOES_ON or part[used].upper in _GOES_ON_WORDS):
            return names, used
    ends = (i for i, token in enumerate(part) if i and levels[i] == 0 and token.upper in _AFTER_KEY)
    end = next((i for i in ends if part[i - 1].text != "."), len(part))
    check_misspelt(part[:end])
    return Computed(text_of(body.text, part[:end])), end


def _is_expression(part: list[Token]) -> bool:
    """An expression begins as no column does: `(a + b)`, `-a`, `DATE '2024-01-01'`, `5 * a`."""
    first, second = part[0], part[1] if len(part) > 1 else None
    if first.kind == "word" and first.upper in _BEGINS_WORDS:
        return second is not None and (second.is_name or second.kind in ("string", "number"))
    literal = first.kind in ("number", "string") and second is not None and second.upper in _GOES_ON
    return first.upper in _BEGINS or literal


def columns(body: Body) -> tuple[RowKey, ...]:
    """Reads PARTITION BY: `k, t.id, date(ts) AS day`."""
    found: list[RowKey] = []
    for part, after in body.items():
        _check_brackets(body, part)
        key, at = _row_key(body, part, after)
        if at < len(part) and part[at].upper == "AS":
            text = key.expression if isinstance(key, Computed) else text_of(body.text, part[:at])
            if at + 1 == len(part) or not part[at + 1].is_name:
                raise body.unexpected(part[at + 1] if at + 1 < len(part) else after, "a name after AS")
            key, at = Computed(text, name_of(part[at + 1])), at + 2
        if at < len(part):
            wrong = _comma_instead(body, part[at], "columns")
            raise wrong or body.unexpected(part[at], "a comma or the next clause", _no_expression(body))
        found.append(key)
    return tuple(found)


def _check_brackets(body: Body, part: list[Token]) -> None:
    """Raises for brackets around columns, CORE's PARTITION BY [a]."""
    if part[0].upper == "[":
        inside = part[1:-1] if part[-1].upper == "]" else part[1:]
        written = body.text[inside[0].start : inside[-1].end] if inside else "a, b"
        raise body.unexpected(part[0], "a column", f"Without brackets: {body.kind} {written}.")


def order_items(body: Body) -> tuple[OrderItem, ...]:
    """Reads ORDER BY: `ts, seq DESC NULLS LAST`. Whether DESC may stand is decided later."""
    found = []
    for part, after in body.items():
        _check_brackets(body, part)
        key, at = _row_key(body, part, after)
        descending, nulls = False, None
        if at < len(part) and part[at].upper in ("ASC", "DESC"):
            descending = part[at].upper == "DESC"
            at += 1
        if at < len(part) and part[at].upper == "NULLS":
            nulls = part[at + 1].upper if at + 1 < len(part) else ""
            if nulls not in ("FIRST", "LAST"):
                raise body.unexpected(part[at + 1] if at + 1 < len(part) else after, "FIRST or LAST after NULLS")
            at += 2
        if at < len(part):
            expected = "ASC, NULLS FIRST, NULLS LAST, a comma or the next clause"
            raise _comma_instead(body, part[at], "columns") or body.unexpected(part[at], expected, _no_expression(body))
        found.append(OrderItem(key, descending, nulls, part[0].span | part[-1].span))
    return tuple(found)


# ---------------------------------------------------------------- FROM, DEFINE


_QUERIES = ("TABLESAMPLE", "LATERAL", "PIVOT", "UNPIVOT", "UNION", "EXCEPT", "INTERSECT")
_JOINS = ("JOIN", "INNER", "LEFT", "RIGHT", "FULL", "OUTER", "CROSS", "SEMI", "ANTI", "NATURAL")


def sources(body: Body) -> tuple[Source, ...]:
    """Reads FROM: `trades AS t TYPE kind, (SELECT …) AS s, orders AS o JOIN parts USING (part)`."""
    levels = depths(body.tokens)
    for token, level in zip(body.tokens, levels, strict=True):
        if level == 0 and token.upper in _QUERIES:
            raise body.unexpected(token, "a comma or the next clause", _AS_QUERY)
    return tuple((_joined if _words(part, ("JOIN",)) else _source)(body, part, after) for part, after in body.items())


_AS_QUERY = "Put anything but tables, views and their joins into parentheses: FROM (SELECT … FROM …) AS s."


def _words(part: Sequence[Token], words: Sequence[str]) -> list[int]:
    """Where such a word stands outside all parentheses, and is no name after a dot."""
    levels = depths(list(part))
    return [
        i for i, token in enumerate(part)
        if levels[i] == 0 and token.kind == "word" and token.upper in words and not (i and part[i - 1].text == ".")
    ]  # fmt: skip


_HOW = "USING (column) or ON condition"


def _joined(body: Body, part: list[Token], after: Token | None) -> Source:
    """A join, `s JOIN t USING (k)`: short for `(SELECT * FROM s JOIN t USING (k)) AS s`."""
    first = _source(body, part[: _words(part, _JOINS)[0]], part[_words(part, _JOINS)[0]])
    if first.type_column is not None:
        hint = "TYPE and its column stand behind the whole join."
        raise body.unexpected(part[_words(part, _JOINS)[0]], "a comma or the next clause", hint)
    end, column = len(part), None
    if len(part) > 2 and part[-2].upper == "TYPE" and part[-1].is_name:
        end, column = end - 2, name_of(part[-1])
    joined = part[:end]
    for begin, stop in pairwise([*_words(joined, ("JOIN",)), end]):
        told = _words(joined[begin:stop], ("ON", "USING"))
        free = any(token.upper in ("CROSS", "NATURAL") for token in joined[max(0, begin - 3) : begin])
        if stop == begin + 1 or not (joined[begin + 1].is_name or joined[begin + 1].text == "("):
            raise body.unexpected(joined[begin + 1] if stop > begin + 1 else _at(part, stop, after), "a table to join")
        if not told and not free:
            raise body.unexpected(_at(part, stop, after), _HOW, _AS_JOIN)
    check_misspelt(joined)
    raw = text_of(body.text, joined)
    alias = first.alias or (first.table[-1] if first.table else None)
    tables = [first.table, *(_table(joined[begin + 1 :]) for begin in _words(joined, ("JOIN",)))]
    joins = tuple(table for table in tables if table is not None)
    return Source(None, Text(f"SELECT * FROM {raw.value}", raw.span), alias, column, raw.span, joins)


def _table(tokens: Sequence[Token]) -> tuple[Name, ...] | None:
    """The name that tokens begin with, `db.t`; None for a query."""
    parts = list[Name]()
    for token, dot in zip_longest(tokens[::2], tokens[1::2]):
        if not token.is_name:
            return None
        parts.append(name_of(token))
        if dot is None or dot.text != ".":
            return tuple(parts)
    return None


_AS_JOIN = "For example: FROM s JOIN t USING (k)."


def _at(part: Sequence[Token], index: int, after: Token | None) -> Token | None:
    return part[index] if index < len(part) else after


def _source(body: Body, part: list[Token], after: Token | None) -> Source:
    if not part:
        raise body.unexpected(after, body.holds)
    table: tuple[Name, ...] | None = None
    subquery: Text | None = None
    if part[0].upper == "(":
        at = next(i for i, level in enumerate(depths(part)) if i and level == 0) + 1
        if at == 2:
            raise body.unexpected(part[1], "a query in the parentheses")
        subquery = text_of(body.text, part[1 : at - 1])
    elif part[0].is_name:
        table, at = _column(body, part, after)
    else:
        raise body.unexpected(part[0], body.holds)
    alias, at = _alias(body, part, at, after)
    if subquery is not None and alias is None:
        raise body.unexpected(part[at] if at < len(part) else after, "an alias for the query", "Write: FROM (…) AS s.")
    column: Name | None = None
    if at < len(part) and part[at].upper == "TYPE":
        at += 1
        if at == len(part) or not part[at].is_name:
            hint = f"Write TYPE {part[at + 1].text}." if at + 1 < len(part) and part[at + 1].is_name else None
            expected = "the column that holds the event types"
            raise body.unexpected(part[at] if at < len(part) else after, expected, hint)
        column = name_of(part[at])
        at += 1
    if at < len(part):
        wrong = _comma_instead(body, part[at], "sources")
        raise wrong or body.unexpected(part[at], "a comma or the next clause", _source_hint(part, at))
    return Source(table, subquery, alias, column, part[0].span | part[-1].span)


def _alias(body: Body, part: list[Token], at: int, after: Token | None) -> tuple[Name | None, int]:
    """`[AS] alias`; TYPE before another name is no alias."""
    if at == len(part):
        return None, at
    if part[at].upper == "AS":
        at += 1
        if at == len(part) or not part[at].is_name:
            raise body.unexpected(part[at] if at < len(part) else after, "an alias after AS")
        return name_of(part[at]), at + 1
    is_type = part[at].upper == "TYPE" and at + 1 < len(part)
    if part[at].is_name and not is_type and part[at].upper not in ("AND", "OR"):
        return name_of(part[at]), at + 1
    return None, at


def _source_hint(part: list[Token], at: int) -> str | None:
    if part[at].upper == "." and part[at - 1].is_name:
        return "The column of TYPE is one name, without the table before it."
    return _AS_QUERY if part[at].upper in ("(", "ON", "FOR") else None


def definitions(body: Body) -> tuple[Definition, ...]:
    """Reads DEFINE: `A AS price > 10, B AS price < 5`."""
    return tuple(_definition(body, part, after) for part, after in body.items())


def _definition(body: Body, part: list[Token], after: Token | None) -> Definition:
    if not part[0].is_name:
        raise body.unexpected(part[0], "the name of an event type")
    if len(part) < 2 or part[1].upper != "AS":
        found = part[1] if len(part) > 1 else after
        raise body.unexpected(found, "AS and a condition", f"Write: {part[0].text} AS condition.")
    if len(part) == 2:
        raise body.unexpected(after, "a condition on the row")
    condition = part[2:]
    for i, (token, level) in enumerate(zip(condition, depths(condition), strict=True)):
        if level == 0 and token.upper == "AS" and i:
            raise _missing_comma(body, condition, i)
    check_misspelt(condition)
    return Definition(name_of(part[0]), text_of(body.text, condition))


def _missing_comma(body: Body, toks: list[Token], at: int) -> ParseError:
    """Of `A AS x > 1 AND B AS y` the second AS, at `at`, says that a comma was meant two tokens before it."""
    if at >= 2 and toks[at - 2].upper in ("AND", "OR", ";"):
        found = _comma_instead(body, toks[at - 2], "definitions")
        assert found is not None
        found.hint = f"Write: …, {toks[at - 1].text} AS …"
        return found
    return body.unexpected(toks[at], "a comma before the next definition", "Write: DEFINE A AS …, B AS …")


# ---------------------------------------------------------------- RETURN, LIMIT


ALL_ROWS = (
    "RETURN gives one row a match, with its events in arrays. A row for each event: "
    "SELECT inline(m) FROM (PATTERN (…) AS m … RETURN m)."
)


def returns(body: Body) -> tuple[tuple[ReturnItem, ...], Span | None]:
    """Reads RETURN, `a.x AS x, COUNT(b) WITH TIMEOUTS`: its items, and the place of WITH TIMEOUTS."""
    timeouts: Span | None = None
    toks = body.tokens
    if len(toks) >= 2 and toks[-2].upper == "WITH" and toks[-1].upper == "TIMEOUTS":
        timeouts = toks[-2].span | toks[-1].span
        body.next = body.next or toks[-2]
        body.tokens = toks[:-2]
        if not body.tokens:
            raise body.unexpected(toks[-2], body.holds)
    if body.tokens[0].upper == "DISTINCT":
        hint = "Put the query in parentheses: SELECT DISTINCT * FROM (PATTERN … RETURN …)."
        raise body.unexpected(body.tokens[0], body.holds, hint)
    if [token.upper for token in body.tokens[:4]] == ["ALL", "ROWS", "PER", "MATCH"]:
        span = body.tokens[0].span | body.tokens[3].span
        raise ParseError("UNKNOWN_CLAUSE", span=span, clause="ALL ROWS PER MATCH", hint=ALL_ROWS)
    return tuple(_return_item(body, part, after) for part, after in body.items()), timeouts


def _return_item(body: Body, part: list[Token], after: Token | None) -> ReturnItem:
    check_misspelt(part)
    if part[0].upper == "*":
        if len(part) > 1:
            hint = "WITH TIMEOUTS stands after the last item." if part[1].upper == "WITH" else None
            raise body.unexpected(part[1], "a comma or the next clause after *", hint)
        return ReturnItem(text_of(body.text, part), None, star=True)
    levels = depths(part)
    for i, token in enumerate(part):
        if levels[i] == 0 and token.upper == "WITH":
            raise body.unexpected(token, "a comma or the next clause", "WITH TIMEOUTS stands after the last item.")
        if levels[i] == 0 and token.upper == "AS" and not (i and part[i - 1].upper == "."):
            if i == 0:
                raise body.unexpected(token, "an expression before AS")
            _check_one(body, part[:i])
            return ReturnItem(text_of(body.text, part[:i]), _return_alias(body, part, i + 1, after))
    if _has_bare_alias(part):
        _check_one(body, part[:-1])
        return ReturnItem(text_of(body.text, part[:-1]), name_of(part[-1]))
    _check_one(body, part)
    return ReturnItem(text_of(body.text, part), None)


_BETWEEN_NAMES = EXPRESSION_WORDS | {"IGNORE", "RESPECT", "DATE", "TIMESTAMP", "COLLATE"}


def _check_one(body: Body, part: list[Token]) -> None:
    """Raises where a comma is missing, `a.x b.y`, or AS, `a.x alias total`: a name follows an operand."""
    levels = depths(part)
    if any(token.upper == "INTERVAL" for token in part):  # INTERVAL '1 02' DAY TO HOUR
        return
    for i in range(1, len(part)):
        before, token = part[i - 1], part[i]
        if levels[i] or not token.is_name or token.upper in _BETWEEN_NAMES or before.upper in _BETWEEN_NAMES:
            continue
        if before.upper in (")", "]") or before.is_name:
            raise body.unexpected(token, "a comma or the next clause", "Items stand between commas; a name follows AS.")


def _return_alias(body: Body, part: list[Token], at: int, after: Token | None) -> Name:
    token = part[at] if at < len(part) else None
    if token is None or not token.is_name:
        hint = (
            f"Names are written without quotes, or in back-ticks: `{token.text[1:-1]}`."
            if (token is not None and token.kind == "string")
            else None
        )
        raise body.unexpected(token or after, "a name after AS", hint)
    if at + 1 < len(part):
        raise body.unexpected(part[at + 1], "a comma or the next clause")
    return name_of(token)


def _has_bare_alias(part: list[Token]) -> bool:
    """An item has a bare alias if a name that is no keyword follows an operand: `a.x + 1 total`."""
    if len(part) < 2 or not part[-1].is_name or part[-1].upper in EXPRESSION_WORDS:
        return False
    before = part[-2]
    if before.kind == "op":
        return before.text in (")", "]")
    if before.upper in EXPRESSION_WORDS - {"END", "NULL", "TRUE", "FALSE"} and not (
        len(part) > 2 and part[-3].upper == "."
    ):
        return False
    return not _ends_interval(part)


def _ends_interval(part: list[Token]) -> bool:
    """`INTERVAL 1 HOUR 30 MINUTES` ends in a unit, which is no alias."""
    if part[-1].upper not in UNITS:
        return False
    at = len(part) - 2
    while at >= 0 and (part[at].kind in ("number", "string") or part[at].upper in UNITS | {"TO", "-", "+"}):
        at -= 1
    return at >= 0 and part[at].upper == "INTERVAL"


MOST_ROWS = (1 << 31) - 1  # of Spark's LIMIT


def limit(body: Body) -> int:
    """Reads LIMIT: `10`."""
    token = body.tokens[0]
    if token.kind != "number" or not token.text.isdigit() or len(token.text) > 18:
        hint = "LIMIT 10 gives at most ten matches."
        if token.is_name:
            hint += f" If {body.kind} is meant as a name, it needs back-ticks."
        negative = token.upper == "-" and len(body.tokens) > 1
        found = f"-{body.tokens[1].text}" if negative else shown(token)
        raise ParseError("BAD_NUMBER", span=token.span, found=found, expected="a whole number", hint=hint)
    if len(body.tokens) > 1:
        raise body.unexpected(body.tokens[1], "the next clause or the end of the text")
    if int(token.text) > MOST_ROWS:
        hint = "Leave LIMIT out to have them all."
        raise ParseError("BAD_NUMBER", span=token.span, found=token.text, expected=f"at most {MOST_ROWS}", hint=hint)
    return int(token.text)


# ---------------------------------------------------------------- by the table


def _duration(body: Body) -> Text:
    return parse_duration(body.text, body.tokens, body.kind, body.next, body.end)


def _window(body: Body) -> Window:
    return parse_window(body.text, body.tokens, body.next, body.end)


READERS: Mapping[BodyKind, Callable[[Body], Any]] = {
    "sources": sources,
    "definitions": definitions,
    "conditions": lambda body: (body.raw(),),
    "condition": Body.raw,
    "duration": _duration,
    "window": _window,
    "words": Body.raw,
    "items": returns,
    "number": limit,
    "columns": columns,
    "order": order_items,
    "expressions": Body.raw,
}
"""What reads a body of each kind but the pattern's, which cersql/language/parse.py reads. Of a clause that fills two
fields it gives two values."""
