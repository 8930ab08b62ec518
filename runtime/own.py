"""Aggregate functions of users' own: a commutative monoid in Python ([ACEL] Section 4), as workers get it.

    lift(value) → combine(held, held) → lower(held); over no value identity, and lower of that

Spark calls `folded` with all values of a match (or group) at once; runs of an automaton hold `register`.
"""

from __future__ import annotations

import math
import operator
import pickle
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal
from functools import lru_cache, reduce
from typing import Any

from runtime.errors import ExecutionError
from runtime.monoids import Gives, Monoid

WHOLE = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
FLOATING = ("float", "double")


@dataclass(frozen=True)
class Own:
    """`type`: of what comes out, as Spark writes it. `arguments`: of so many `lift` makes one value. `packed`: the
    functions lift, combine and lower, and the identity, pickled, so that what holds them compares and travels as
    data."""

    name: str
    type: str
    arguments: int
    packed: bytes = field(repr=False)

    @property
    def monoid(self) -> Monoid:
        return _unpacked(self.packed)

    def folded(self, values: Iterable[Any]) -> Any:
        """The aggregate of a bag: of values, or of rows of arguments."""
        monoid = self.monoid
        lifted = (monoid.lift(*each) if self.arguments > 1 else monoid.lift(each) for each in values)
        return self.fitting(monoid.lower(reduce(monoid.combine, lifted, monoid.identity)))

    def fitting(self, value: Any) -> Any:
        """What comes out as a value of its type; ExecutionError AGGREGATE_RESULT for one that is none."""
        if value is None:
            return None
        try:
            return _converted(value, self.type)
        except (TypeError, ValueError, ArithmeticError):
            raise ExecutionError(
                "AGGREGATE_RESULT", function=self.name, found=repr(value), type=self.type.upper(),
                hint=f"Let lower give a value of {self.type.upper()}, or None for NULL, or register another type.",
            ) from None  # fmt: skip

    @property
    def register(self) -> Monoid:
        """The same for runs, which tell what they hold apart by its hash."""
        monoid = self.monoid
        gives = Gives.FLOATING if self.type in FLOATING else Gives.WHOLE
        return Monoid(
            Held(monoid.identity), lambda a: Held(monoid.lift(a)),
            lambda a, b: Held(monoid.combine(a.value, b.value)), lambda held: self.fitting(monoid.lower(held.value)),
            gives=gives,
        )  # fmt: skip


class Held:
    """What a register holds of a user's own function, of any class: compared by its bytes where it has no hash."""

    __slots__ = ("_key", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        try:
            hash(value)
            self._key = value
        except TypeError:
            self._key = pickle.dumps(value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Held) and bool(self._key == other._key)

    def __hash__(self) -> int:
        return hash(self._key)

    def __reduce__(self) -> tuple[Callable[..., Held], tuple[Any, ...]]:
        return Held, (self.value,)


@lru_cache(maxsize=64)
def _unpacked(packed: bytes) -> Monoid:
    lift, combine, lower, identity = pickle.loads(packed)
    return Monoid(identity, lift, combine, lower)


def _converted(value: Any, type: str) -> Any:
    """A number of another kind as one of this type; other types are Spark's to convert, and to refuse."""
    base, _, rest = type.partition("(")
    if base in WHOLE:
        number = operator.index(value)
        if isinstance(value, bool) or not -(1 << WHOLE[base] - 1) <= number < 1 << WHOLE[base] - 1:
            raise ValueError
        return number
    if base in FLOATING:
        if isinstance(value, str | bytes | bool):
            raise TypeError
        return float(value)
    if base == "boolean":
        if not hasattr(value, "__bool__") or value not in (True, False):
            raise TypeError
        return bool(value)
    if base == "decimal":
        return _as_decimal(value, *(int(part) for part in rest.rstrip(")").split(",")))
    if base == "string" and not isinstance(value, str):
        raise TypeError
    return value


def _as_decimal(value: Any, precision: int, scale: int) -> Decimal:
    if isinstance(value, str | bytes | bool):
        raise TypeError
    number = value if isinstance(value, Decimal) else Decimal(repr(value) if isinstance(value, float) else int(value))
    if not math.isfinite(number):
        raise ValueError
    made = number.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP)
    if len(made.as_tuple().digits) > precision:
        raise ValueError
    return made
