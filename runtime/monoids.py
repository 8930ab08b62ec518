"""Aggregates as registers: a commutative monoid with a map before it and a function after ([ACEL] Section 4, Lemma 5).

    name         identity   lift(a)     combine             lower
    COUNT        0          1           +                   itself
    SUM          None       a           +                   itself
    MIN, MAX     None       a           least, greatest     itself
    AVG          None       (a, 1)      + of pairs          sum / count
    RANGE        None       (a, a)      least, greatest     greatest - least
    VAR_POP, …   None       (1, a, 0)   moments together    m2 / n, …
    MAX_BY       None       (a, key)    of the greater key  a
    MEDIAN       ()         (a,)        both, in order      the one in the middle
    … DISTINCT   ()         (a,)        each once           the aggregate, over these

`MONOIDS` has them all; cersql.binding.aggregates says which function of SQL's is which of them. NULL (None) is never
lifted, as in SQL; the identity None lowers to NULL. A register holds a value per run, so what it need not tell apart is
made one: `capped` says how, where all that is asked of it is how it stands to one number.

    COUNT(b) >= 3     holds 0, 1, 2, 3 or 4, whatever b+ takes
    MAX(b.v) > 2.5    holds NULL, -1, 0 or 1

Whole numbers and decimals of up to 18 digits are exact, the latter as whole numbers whose scale the planner knows; what
leaves 64 bits on the way is OVERFLOW, which is an error only if a match asks for it, as in Spark. Floating numbers are
combined in the order of the stream, by the steps of Spark's own folds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from functools import reduce
from typing import Any

from runtime.relations import decoded


class Lost(Enum):
    """What a register holds that has left 64 bits."""

    OVERFLOW = 1


OVERFLOW = Lost.OVERFLOW
_LEAST, _GREATEST = -(1 << 63), (1 << 63) - 1
_NAN = math.nan  # the one in registers, which equals itself in tuples
Number = int | float | Fraction


class Gives(Enum):
    """What comes out of an aggregate: a whole number, a floating one, what its values are, or these with four more
    digits after the point (AVG of decimals)."""

    WHOLE = 1
    FLOATING = 2
    VALUE = 3
    FINER = 4


@dataclass(frozen=True)
class Monoid:
    """`lift` makes of a value what is combined, `lower` of a register what is asked; `identity`: over no value.

    `grows`: the way in which more values can still move it (1: up, -1: down, 0: both). `gives`: see there.
    `as_floating`: values are taken as DOUBLE. `exact`: floating ones are not taken. `keyed`: a value is a pair of the
    value and its key.
    """

    identity: Any
    lift: Callable[[Any], Any]
    combine: Callable[[Any, Any], Any]
    lower: Callable[[Any], Any] = lambda held: held
    grows: int = 0
    gives: Gives = Gives.VALUE
    as_floating: bool = False
    exact: bool = False
    keyed: bool = False

    def of(self, values: Iterable[Any]) -> Any:
        """The aggregate of a bag of values, of which none is NULL."""
        return self.lower(reduce(self.combine, map(self.lift, values), self.identity))


def _fitting(total: Any) -> Any:
    return OVERFLOW if isinstance(total, int) and not _LEAST <= total <= _GREATEST else total


def _plus(a: Any, b: Any) -> Any:
    return OVERFLOW if a is OVERFLOW or b is OVERFLOW else _fitting(a + b)


def _not_null(combine: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda a, b: b if a is None else a if b is None else combine(a, b)


def _where_known(lower: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda held: None if held is None else lower(held)


def _same(value: Any) -> Any:
    return value


def _least(a: Any, b: Any) -> Any:
    return b if order(a, b) > 0 else a


def _greatest(a: Any, b: Any) -> Any:
    return b if order(a, b) < 0 else a


def _moments(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
    """(n, mean, sum of squares of what lies off it) of two bags; of one more value as Spark updates them."""
    n, delta = a[0] + b[0], b[1] - a[1]
    if b[0] == 1.0:
        return n, a[1] + delta / n, a[2] + delta * (delta - delta / n)
    return n, a[1] + delta / n * b[0], a[2] + b[2] + delta * delta * a[0] * b[0] / n


def _of_moments(lower: Callable[[float, float], float | None]) -> Monoid:
    combine, lowered = _not_null(_moments), _where_known(lambda held: lower(held[0], held[2]))
    return Monoid(None, lambda a: (1.0, a, 0.0), combine, lowered, gives=Gives.FLOATING, as_floating=True)


def _by(better: int) -> Monoid:
    """MAX_BY, MIN_BY: of equal keys the later value, as in Spark."""
    combine = _not_null(lambda a, b: a if order(a[1], b[1]) * better > 0 else b)
    return Monoid(None, _same, combine, _where_known(lambda held: held[0]), keyed=True)


def _bits(combine: Callable[[int, int], int]) -> Monoid:
    return Monoid(None, _same, _not_null(combine), exact=True)


def _middle(held: tuple[Any, ...]) -> float | None:
    if not held:
        return None
    at = (len(held) - 1) * 0.5
    lower, upper = held[math.floor(at)], held[math.ceil(at)]
    return lower if lower == upper else (math.ceil(at) - at) * lower + (at - math.floor(at)) * upper


def _merged(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(sorted((*a, *b), key=lambda value: (value != value, value)))


def _each_once(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
    return (*a, *(value for value in b if value not in a))


def _distinct(monoid: Monoid) -> Monoid:
    """The same over each value once. These are held in the order in which they came, since floating sums tell."""
    return replace(
        monoid, identity=(), lift=lambda a: (a if a == a else _NAN,), combine=_each_once, lower=monoid.of, grows=0
    )


_AVG = Monoid(
    None, lambda a: (a + 0.0, 1), _not_null(lambda a, b: (a[0] + b[0], a[1] + b[1])),
    _where_known(lambda held: held[0] / held[1]), gives=Gives.FLOATING, as_floating=True,
)  # fmt: skip
_SUM = Monoid(None, _same, _not_null(_plus))
_LONG_SUM = Monoid(None, _same, _not_null(lambda a, b: a + b))
_LONG_AVG = Monoid(
    None, lambda a: (a, 1), _AVG.combine, _where_known(lambda held: _rounded(held[0] * 10_000, held[1])),
    gives=Gives.FINER, exact=True,
)  # fmt: skip

MONOIDS: dict[str, Monoid] = {
    "COUNT": Monoid(0, lambda _: 1, lambda a, b: a + b, grows=1, gives=Gives.WHOLE),
    "SUM": _SUM,
    "SUM OF DECIMAL": _LONG_SUM,
    "PRODUCT": Monoid(
        None, lambda a: 1.0 * a, _not_null(lambda a, b: a * b), gives=Gives.FLOATING, as_floating=True
    ),
    "MIN": Monoid(None, _same, _not_null(_least), grows=-1),
    "MAX": Monoid(None, _same, _not_null(_greatest), grows=1),
    "AVG": _AVG,
    "AVG OF DECIMAL": _LONG_AVG,
    "RANGE": Monoid(
        None, lambda a: (a, a), _not_null(lambda a, b: (_least(a[0], b[0]), _greatest(a[1], b[1]))),
        _where_known(lambda held: _fitting(held[1] - held[0])), grows=1,
    ),
    "VAR_POP": _of_moments(lambda n, m2: m2 / n),
    "VAR_SAMP": _of_moments(lambda n, m2: None if n < 2 else m2 / (n - 1.0)),
    "STDDEV_POP": _of_moments(lambda n, m2: math.sqrt(m2 / n)),
    "STDDEV_SAMP": _of_moments(lambda n, m2: None if n < 2 else math.sqrt(m2 / (n - 1.0))),
    "MEDIAN": Monoid((), lambda a: (a,), _merged, _middle, gives=Gives.FLOATING, as_floating=True),
    "MIN_BY": _by(-1),
    "MAX_BY": _by(1),
    "BIT_AND": _bits(lambda a, b: a & b),
    "BIT_OR": _bits(lambda a, b: a | b),
    "BIT_XOR": _bits(lambda a, b: a ^ b),
}  # fmt: skip
DISTINCT = " DISTINCT"
MONOIDS |= {name + DISTINCT: _distinct(monoid) for name, monoid in MONOIDS.items() if not monoid.keyed}
MONOIDS["COUNT" + DISTINCT] = replace(MONOIDS["COUNT" + DISTINCT], lower=len, grows=1)


def _rounded(a: int, b: int) -> int:
    """a / b as a whole number; of two that are as near the one further from zero."""
    whole, rest = divmod(abs(a), b)
    whole += 2 * rest >= b
    return whole if a >= 0 else -whole


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
    most = max(0, math.floor(bound) + 1) if math.isfinite(bound) else 0
    if function == "COUNT" and math.isfinite(bound):
        return replace(MONOIDS[function], combine=lambda a, b: min(a + b, most))
    if function == "COUNT" + DISTINCT and math.isfinite(bound):
        own = MONOIDS[function]
        return replace(own, combine=lambda a, b: own.combine(a, b)[:most])
    if function in ("MIN", "MAX"):
        return replace(MONOIDS[function], lift=lambda value: order(value, bound))
    return None
