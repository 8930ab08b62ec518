"""Durations and windows: what stands behind WITHIN and WATERMARK."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from cersql.errors import ParseError, nearest
from cersql.language.lexer import Token, shown
from cersql.language.syntax import Text, Window
from runtime.errors import Span

_SINGULAR = ["YEAR", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND", "NANOSECOND"]
UNITS = frozenset([*_SINGULAR, *(unit + "S" for unit in _SINGULAR)])
ABBREVIATIONS = {
    "MS": "MILLISECONDS",
    "S": "SECONDS",
    "SEC": "SECONDS",
    "SECS": "SECONDS",
    "M": "MINUTES",
    "MIN": "MINUTES",
    "MINS": "MINUTES",
    "H": "HOURS",
    "HR": "HOURS",
    "HRS": "HOURS",
    "D": "DAYS",
    "W": "WEEKS",
    "US": "MICROSECONDS",
    "ROW": "EVENTS",
    "ROWS": "EVENTS",
}
_PLAIN = re.compile(r"(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)
_WINDOW = "a duration like 10 MINUTES, a number or 100 EVENTS"
_SLIDE = "how far the window slides, a duration like 30 SECONDS or a number"
_DURATION = "a duration like 10 MINUTES"
_UNIT = "a unit: MILLISECONDS, SECONDS, MINUTES, HOURS or DAYS"


class _Reader:
    """Reads the body of one clause; `ended` is what follows it, for errors at its end."""

    def __init__(self, text: str, body: Sequence[Token], clause: str, ended: Token | None, end: int) -> None:
        self.text, self.body, self.clause, self.ended, self.end = text, body, clause, ended, end
        self.at = 0

    @property
    def token(self) -> Token | None:
        return self.body[self.at] if self.at < len(self.body) else None

    @property
    def word(self) -> str:
        return self.token.upper if self.token else ""

    def wrong(self, expected: str, hint: str | None = None, token: Token | None = None) -> ParseError:
        found = token or self.token or self.ended
        span = found.span if found else Span(self.end, self.end)
        return ParseError("BAD_WINDOW", span=span, found=shown(found), clause=self.clause, expected=expected, hint=hint)

    def since(self, start: int) -> Span:
        return Span(self.body[start].start, self.body[self.at - 1].end)

    def written(self, start: int, prefix: str = "") -> Text:
        span = self.since(start)
        return Text(prefix + self.text[span.start : span.end], span)


def parse_window(text: str, body: Sequence[Token], ended: Token | None, end: int, hint: str | None = None) -> Window:
    """`[<] amount [unit] [SLIDE amount [unit]]`, the body of WITHIN (not empty). `hint`: for what follows it all the
    same."""
    reader = _Reader(text, body, "WITHIN", ended, end)
    strict = reader.word == "<"
    if strict:
        reader.at += 1
    elif reader.word == "<=":
        raise reader.wrong(
            _WINDOW, "WITHIN 10 MINUTES includes the tenth minute already; WITHIN < 10 MINUTES does not."
        )
    amount, unit = _amount(reader)
    window = Window(amount, unit, strict, reader.since(0))
    if reader.word == "SLIDE":
        start = reader.at
        reader.at += 1
        by, by_unit = _amount(reader, _SLIDE)
        window = replace(window, slide=Window(by, by_unit, False, reader.since(start)), span=reader.since(0))
    if reader.token is not None:
        raise reader.wrong("nothing more after it", _column(reader) or _timeouts(reader) or hint)
    return window


def parse_duration(text: str, body: Sequence[Token], clause: str, ended: Token | None, end: int) -> Text:
    """A duration as a Spark interval literal: the body of WATERMARK (not empty)."""
    reader = _Reader(text, body, clause, ended, end)
    first = reader.token
    amount, unit = _amount(reader, _DURATION)
    if unit != "INTERVAL":
        raise reader.wrong(_DURATION, f"For example: {clause} 10 MINUTES.", first)
    if reader.token is not None:
        raise reader.wrong("nothing more after it")
    return amount


def _turned(reader: _Reader) -> str | None:
    """`WITHIN MINUTES 10`: what to write."""
    after = reader.body[reader.at + 1 : reader.at + 2]
    turned = reader.word in UNITS | {"EVENT", "EVENTS"} and after and after[0].kind == "number"
    return f"The number comes first: {after[0].text} {reader.word}." if turned else None


def _amount(reader: _Reader, expected: str = _WINDOW) -> tuple[Text, str | None]:
    if reader.word == "INTERVAL":
        return _interval(reader), "INTERVAL"
    token = reader.token
    if token is not None and token.kind == "string":
        raise reader.wrong(expected, _unquoted(token))
    if token is None or token.kind != "number":
        hint = "It must be greater than zero." if reader.word == "-" else _run_together(token) or _turned(reader)
        raise reader.wrong(expected, hint)
    _check_number(reader, token)
    reader.at += 1
    unit = reader.word
    if unit in ("EVENT", "EVENTS"):
        if not token.text.isdigit():
            raise reader.wrong("a whole number of events", token=token)
        reader.at += 1
        return Text(token.text, token.span), "EVENTS"
    if unit in UNITS:
        start = reader.at - 1
        _units(reader)
        return reader.written(start, "INTERVAL "), "INTERVAL"
    if reader.token is not None and reader.word not in ("[", "SLIDE"):
        raise _bad_unit(reader, token)
    return Text(token.text, token.span), None


def _run_together(token: Token | None) -> str | None:
    """What to write for `10m` and `5min`."""
    found = re.fullmatch(r"(\d+)([A-Za-z]+)", token.text if token is not None else "")
    unit = ABBREVIATIONS.get(found[2].upper()) or nearest(found[2].upper(), [*UNITS, "EVENTS"]) if found else None
    return f"Did you mean {found[1]} {unit}?" if found and unit else None


def _unquoted(token: Token) -> str:
    """What to write for `'10 minutes'`."""
    inside = token.text[1:-1].strip()
    if re.fullmatch(r"(\d+ +[A-Za-z]+ *)+", inside):
        return f"Write it without quotes: {inside}."
    return f"Write INTERVAL before a duration in quotes, and what it counts behind it: INTERVAL {token.text} MINUTE."


def _column(reader: _Reader) -> str | None:
    """What to write for CORE's `WITHIN 10 [t]`."""
    if reader.word != "[":
        return None
    inside = reader.body[reader.at + 1 : -1]
    column = reader.text[inside[0].start : inside[-1].end] if inside else "ts"
    return f"The column that holds the time stands in ORDER BY: write ORDER BY {column} WITHIN …"


def _check_number(reader: _Reader, token: Token) -> None:
    if not _PLAIN.fullmatch(token.text):
        digits = token.text.rstrip("bdlsyfBDLSYF")
        unit = ABBREVIATIONS.get(token.text[len(digits) :].upper())
        raise reader.wrong("a plain number", f"Write {digits} {unit or 'MINUTES'}.", token)


def _bad_unit(reader: _Reader, number: Token) -> ParseError:
    close = ABBREVIATIONS.get(reader.word) or nearest(reader.word, [*UNITS, "EVENTS"])
    hint = f"Did you mean {number.text} {close.upper()}?" if close else _timeouts(reader)
    return reader.wrong(_UNIT + ", or EVENTS", hint)


def _timeouts(reader: _Reader) -> str | None:
    following = reader.body[reader.at + 1 : reader.at + 2]
    asked = reader.word == "WITH" and bool(following) and following[0].upper == "TIMEOUTS"
    return "WITH TIMEOUTS stands after the last item of RETURN: RETURN a.x, c.x WITH TIMEOUTS." if asked else None


def _units(reader: _Reader) -> None:
    """Reads unit [number unit …] behind the first number."""
    while True:
        if reader.word not in UNITS:
            previous = reader.body[reader.at - 1]
            raise _bad_unit(reader, previous) if reader.token else reader.wrong(_UNIT)
        reader.at += 1
        token = reader.token
        if token is None or token.kind != "number":
            return
        _check_number(reader, token)
        reader.at += 1


def _interval(reader: _Reader) -> Text:
    """Reads INTERVAL 10 MINUTES, INTERVAL '10' MINUTE, INTERVAL '1 02' DAY TO HOUR, INTERVAL '10 minutes'."""
    start = reader.at
    reader.at += 1
    if reader.word in ("-", "+"):
        reader.at += 1
    token = reader.token
    if token is None or token.kind not in ("string", "number"):
        raise reader.wrong("a number or a quoted duration after INTERVAL", "For example: INTERVAL '10' MINUTES.")
    reader.at += 1
    if token.kind == "number":
        _check_number(reader, token)
        _units(reader)
        return reader.written(start)
    if reader.word in UNITS:
        reader.at += 1
        if reader.word == "TO":
            reader.at += 1
            if reader.word not in UNITS:
                raise reader.wrong(_UNIT)
            reader.at += 1
    elif token.text[1:-1].strip().lstrip("+-").replace(".", "").isdigit():
        raise reader.wrong(_UNIT, f"For example: INTERVAL {token.text} MINUTES.")
    return reader.written(start)
