"""Aggregates as registers: a commutative monoid with a map before it and a function after ([ACEL] Section 4, Lemma 5).

    name   identity   lift(a)     combine      lower
    COUNT  0          1           +            itself
    SUM    None       a           +            itself
    MIN    None       a           least        itself
    MAX    None       a           greatest     itself
    AVG    None       (a, 1)      + of pairs   sum / count

NULL (None) is never lifted, as in SQL; the identity None lowers to NULL. A register holds a value per run, so what it
need not tell apart is made one: `capped` says how, where all that is asked of it is how it stands to one number.

    COUNT(b) >= 3     holds 0, 1, 2, 3 or 4, whatever b+ takes
    MAX(b.v) > 2.5    holds NULL, -1, 0 or 1

Whole numbers and decimals of up to 18 digits are exact, the latter as whole numbers whose scale the planner knows;
a sum that leaves 64 bits on the way is OVERFLOW, which is an error only if a match asks for it, as in Spark. Floating
numbers are added in the order of the stream, as Spark's own fold adds them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from runtime.relations import decoded

OVERFLOW = "overflow"
_LEAST, _GREATEST = -(1 << 63), (1 << 63) - 1
Number = int | float | Fraction


@dataclass(frozen=True)
class Monoid:
    """`lift` makes of a value what is combined, `lower` of a register what is asked; `identity`: over no value."""

    identity: Any
    lift: Callable[[Any], Any]
    combine: Callable[[Any, Any], Any]
    lower: Callable[[Any], Any] = lambda held: held


def _plus(a: Any, b: Any) -> Any:
    if a == OVERFLOW or b == OVERFLOW:
        return OVERFLOW
    total = a + b
    return OVERFLOW if isinstance(total, int) and not _LEAST <= total <= _GREATEST else total


def _not_null(combine: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda a, b: b if a is None else a if b is None else combine(a, b)


def _same(value: Any) -> Any:
    return value


MONOIDS: dict[str, Monoid] = {
    "COUNT": Monoid(0, lambda _: 1, lambda a, b: a + b),
    "SUM": Monoid(None, _same, _not_null(_plus)),
    "MIN": Monoid(None, _same, _not_null(lambda a, b: b if order(a, b) > 0 else a)),
    "MAX": Monoid(None, _same, _not_null(lambda a, b: b if order(a, b) < 0 else a)),
    "AVG": Monoid(
        None, lambda a: (a + 0.0, 1), _not_null(lambda a, b: (a[0] + b[0], a[1] + b[1])),
        lambda held: None if held is None else held[0] / held[1],
    ),
}  # fmt: skip


def order(a: Any, b: Any) -> int:
    """-1, 0 or 1, as Spark orders numbers: NaN is the greatest, and equal to itself."""
    a_nan, b_nan = a != a, b != b
    if a_nan or b_nan:
        return int(a_nan) - int(b_nan)
    return int(a > b) - int(a < b)


def value_of(code: int, floating: bool) -> Number:
    """A value by its code (runtime.partition.terms)."""
    return decoded(code) if floating else code


def capped(function: str, bound: Number) -> Monoid | None:
    """The monoid that only tells how its aggregate stands to a number; None if it takes more to know."""
    if function == "COUNT":
        most = max(0, int(bound // 1) + 1)
        return Monoid(0, lambda _: 1, lambda a, b: min(a + b, most))
    if function in ("MIN", "MAX"):
        own = MONOIDS[function]
        return Monoid(None, lambda value: order(value, bound), own.combine)
    return None
