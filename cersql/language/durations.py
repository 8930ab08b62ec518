"""Spark interval literals as microseconds: the day-time ones, which have a fixed length."""

from __future__ import annotations

import re
from fractions import Fraction

from cersql.errors import BindError
from cersql.language.syntax import Text

MICROSECONDS = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
    "WEEK": 7 * 86_400_000_000,
}
MAX_EXPONENT = 30
_PART = re.compile(r"'?\s*([+-]?(?:\d+(?:\.\d*)?|\.\d+))\s*'?\s*([A-Za-z]+)")
_RANGE = re.compile(r"'([^']*)'\s*([A-Za-z]+)\s+TO\s+([A-Za-z]+)\s*$", re.IGNORECASE)
_QUOTED = re.compile(r"'([^']*[A-Za-z][^']*)'\s*$")
_FIELDS = ["DAY", "HOUR", "MINUTE", "SECOND"]


def microseconds(amount: Text) -> Fraction:
    """The length of `INTERVAL …`.

    BindError WINDOW_UNIT for MONTH and YEAR, whose length varies, and for what is no interval.
    """
    body = re.sub(r"^\s*INTERVAL\b", "", amount.value, flags=re.IGNORECASE).strip()
    signed = re.match(r"([+-])\s*(?=['\d.])", body)
    length = _length(amount, body[signed.end() :] if signed else body)
    return -length if signed and signed.group(1) == "-" else length


def number(amount: Text) -> Fraction:
    """The value of a plain number."""
    exponent = re.search(r"[eE]([+-]?\d+)$", amount.value)
    if exponent and abs(int(exponent.group(1))) > MAX_EXPONENT:
        raise BindError(
            "WINDOW_UNIT", span=amount.span, found=amount.value, problem="no clock counts that far",
            hint=f"Write a number with an exponent of at most {MAX_EXPONENT}.",
        )  # fmt: skip
    return Fraction(amount.value)


def _length(amount: Text, body: str) -> Fraction:
    """What stands behind INTERVAL and its sign."""
    ranged = _RANGE.match(body)
    if ranged:
        return _range(amount, *ranged.groups())
    quoted = _QUOTED.match(body)
    if quoted:
        body = re.sub(r"^\s*INTERVAL\b", "", quoted.group(1), flags=re.IGNORECASE)
    total, at = Fraction(0), 0
    for match in _PART.finditer(body):
        if body[at : match.start()].strip():
            break
        total += Fraction(match.group(1)) * _unit(amount, match.group(2))
        at = match.end()
    if at == 0 or body[at:].strip():
        raise _wrong(amount)
    return total


def _unit(amount: Text, word: str) -> int:
    name = word.upper().removesuffix("S")
    if name in ("MONTH", "YEAR"):
        raise BindError(
            "WINDOW_UNIT", span=amount.span, found=amount.value, problem="a MONTH or YEAR has no fixed length",
            hint="Write the days: WITHIN 30 DAYS.",
        )  # fmt: skip
    if name not in MICROSECONDS:
        raise _wrong(amount)
    return MICROSECONDS[name]


def _range(amount: Text, written: str, first: str, last: str) -> Fraction:
    """`'1 02:03' DAY TO MINUTE`."""
    begin, end = first.upper().removesuffix("S"), last.upper().removesuffix("S")
    _unit(amount, begin), _unit(amount, end)
    if begin not in _FIELDS or end not in _FIELDS:
        raise _wrong(amount)
    fields = _FIELDS[_FIELDS.index(begin) : _FIELDS.index(end) + 1]
    days, _, clock = written.strip().lstrip("+-").rpartition(" ")
    numbers = [*([days.strip()] if days else []), *clock.split(":")]
    if (
        bool(days) != (begin == "DAY" and end != "DAY")
        or len(numbers) != len(fields)
        or not all(re.fullmatch(r"\d+(\.\d+)?", n) for n in numbers)
    ):
        raise _wrong(amount)
    total = sum((Fraction(n) * MICROSECONDS[f] for n, f in zip(numbers, fields, strict=True)), Fraction(0))
    return -total if written.strip().startswith("-") else total


def _wrong(amount: Text) -> BindError:
    return BindError(
        "WINDOW_UNIT", span=amount.span, found=amount.value, problem="it is no interval of days to microseconds",
        hint="Write for example WITHIN 10 MINUTES or WITHIN INTERVAL '1 12' DAY TO HOUR.",
    )  # fmt: skip
