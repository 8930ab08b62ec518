"""WITHIN: durations and numbers in the unit of the clock."""

from __future__ import annotations

from fractions import Fraction

import pytest
from queries import bound, check_error

from cersql.errors import BindError
from cersql.language.durations import microseconds
from cersql.language.syntax import Text
from planner.query import Window
from runtime.errors import Span

SECOND = 1_000_000


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("INTERVAL 10 MINUTES", 600), ("INTERVAL '10' MINUTE", 600), ("interval 1 hour 30 minutes", 5400),
        ("INTERVAL '1 02:03' DAY TO MINUTE", 93780), ("INTERVAL '1:30' HOUR TO MINUTE", 5400),
        ("INTERVAL '02:03.5' MINUTE TO SECOND", "123.5"), ("INTERVAL '10 minutes'", 600), ("INTERVAL 1 WEEK", 604800),
        ("INTERVAL '1 day 2 hours'", 93600), ("INTERVAL 1.5 SECONDS", "1.5"), ("INTERVAL '.5' SECOND", "0.5"),
        ("INTERVAL 100 MILLISECONDS", "0.1"), ("INTERVAL 7 MICROSECONDS", "0.000007"), ("INTERVAL -'10' MINUTE", -600),
        ("INTERVAL - 10 MINUTES", -600), ("INTERVAL '-1 00' DAY TO HOUR", -86400), ("INTERVAL + 1 SECOND", 1),
    ],
)  # fmt: skip
def test_microseconds(written: str, seconds: int | str) -> None:
    assert microseconds(Text(written, Span(0, len(written)))) == Fraction(seconds) * SECOND


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ("INTERVAL 1 MONTH", "has no fixed length"), ("INTERVAL '1-2' YEAR TO MONTH", "has no fixed length"),
        ("INTERVAL 2 YEARS", "has no fixed length"), ("INTERVAL '1 month 1 day'", "has no fixed length"),
        ("INTERVAL 1 NANOSECOND", "no interval"), ("INTERVAL '1:2:3:4' DAY TO SECOND", "no interval"),
        ("INTERVAL '1' HOUR TO DAY", "no interval"), ("INTERVAL 'x' DAY", "no interval"), ("INTERVAL", "no interval"),
    ],
)  # fmt: skip
def test_no_fixed_length(written: str, problem: str) -> None:
    with pytest.raises(BindError) as raised:
        microseconds(Text(written, Span(0, len(written))))
    assert raised.value.condition == "WINDOW_UNIT"
    assert problem in raised.value.message


def window(order: str, within: str) -> Window | None:
    return bound(f"FROM ticks PATTERN ticks a ORDER BY {order} WITHIN {within} RETURN *").window


@pytest.mark.parametrize(
    ("order", "within", "size", "strict"),
    [
        ("at", "10 MINUTES", 600 * SECOND, False),
        ("at", "< 10 MINUTES", 600 * SECOND - 1, False),
        ("at", "0.0000015 SECONDS", 1, False),
        ("at", "< 0.0000015 SECONDS", 1, False),
        ("day", "2 DAYS", 2, False),
        ("day", "< 2 DAYS", 1, False),
        ("day", "36 HOURS", 1, False),
        ("day", "< 36 HOURS", 1, False),
        ("day", "1 HOUR", 0, False),
        ("n", "500", 500, False),
        ("n", "< 500", 499, False),
        ("n", "1.5", 1, False),
        ("n", "1e3", 1000, False),
        ("n", "1e30", 2**63 - 1, False),
        ("x", "1.5", 1.5, False),
        ("x", "< 1.5", 1.5, True),
        ("d", "1.5", 150, False),
        ("d", "< 1.005", 100, False),
    ],
)
def test_clock(order: str, within: str, size: float, strict: bool) -> None:
    assert window(order, within) == Window("time", size, strict)


def test_events() -> None:
    assert window("s", "100 EVENTS") == Window("events", 100)
    assert window("n", "99999999999999999999 EVENTS") == Window("events", 2**63 - 1)
    assert str(Window("events", 3)) == "3 EVENTS"
    assert str(Window("time", 3, strict=True)) == "< 3"


@pytest.mark.parametrize(
    ("order", "within", "fragment"),
    [
        ("n", "‸10 MINUTES", "ORDER BY n is bigint, which has no minutes"),
        ("d", "‸10 MINUTES", "WITHIN 500, in that column's own unit"),
        ("at", "‸500", "Write WITHIN 500 SECONDS"),
        ("day", "< ‸3", "ORDER BY day is date, which needs a duration"),
        ("s", "‸10 MINUTES", "ORDER BY s is string, not a time"),
        ("s", "‸5", "differences mean nothing"),
        ("n", "‸0", "greater than zero. Write WITHIN 500, in that column's own unit."),
        ("d", "‸0 MINUTES", "Write WITHIN 500"),
        ("at", "‸0 MINUTES", "greater than zero. Write WITHIN 10 MINUTES."),
        ("at", "‸INTERVAL -10 MINUTES", "greater than zero"),
        ("at", "‸1 MONTH", "30 DAYS"),
        ("n", "‸0 EVENTS", "a whole number greater than zero"),
        ("n", "< ‸5 EVENTS", "Write WITHIN 5 EVENTS"),
        ("n", "‸1e999999999", "exponent of at most 30"),
    ],
)
def test_errors(order: str, within: str, fragment: str) -> None:
    check_error(f"FROM ticks PATTERN ticks a ORDER BY {order} WITHIN {within} RETURN *", "WINDOW_UNIT", fragment)


def test_wide_decimals() -> None:
    marked = "FROM ticks PATTERN ticks a ORDER BY wide WITHIN ‸5 RETURN *"
    check_error(marked, "NOT_SUPPORTED_YET", "WITHIN over decimal(30,2)", "18 digits")
