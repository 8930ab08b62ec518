"""Conditions on rows, as a tree: what is asked of columns that lie in Arrow arrays.

    price > 80.5 AND type IN ('A', 'B')    And((Compare(">", Column("price"), Constant(80.5)), In(Column("type"), …)))

Only what means in numpy exactly what it means in Spark is here; the planner (planner.scan) refuses the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Operator = Literal["=", "<", "<=", ">", ">=", "<=>"]
Matcher = Literal["starts", "ends", "contains"]
Number = Literal["int64", "float32", "float64"]  # the numpy type of numbers: of all whole ones, FLOAT, DOUBLE


class Test:
    """A condition on a row."""


class Value:
    """What conditions compare: a column, a constant, or a number that is computed as Spark computes it."""


@dataclass(frozen=True)
class Column(Value):
    """`name`: of a field of a struct its path, `s.x`."""

    name: str


@dataclass(frozen=True)
class Constant(Value):
    """A bool, int (also days, microseconds, unscaled decimals), float or str; None: NULL."""

    value: bool | int | float | str | None


@dataclass(frozen=True)
class Widened(Value):
    """A number as a wider one: every INT as a BIGINT, a FLOAT as a DOUBLE (`to`: the name of a numpy type)."""

    inner: Value
    to: Literal["int64", "float64"]


@dataclass(frozen=True)
class Arithmetic(Value):
    """Two numbers of one type → another of this type, which it cannot leave: `x.whole % 10`, `x.price * 1.1`. The
    divisor of `/` and `%` is a constant that is not 0."""

    op: Literal["+", "-", "*", "/", "%"]
    left: Value
    right: Value
    type: Number


@dataclass(frozen=True)
class Absolute(Value):
    """A number without its sign."""

    inner: Value


@dataclass(frozen=True)
class Compare(Test):
    """Two values of one type."""

    op: Operator
    left: Value
    right: Value


@dataclass(frozen=True)
class Flag(Test):
    """A BOOLEAN column or constant as a condition."""

    value: Value


@dataclass(frozen=True)
class In(Test):
    """Is it one of several constants, none of which is NULL?"""

    value: Value
    among: tuple[Constant, ...]


@dataclass(frozen=True)
class Matches(Test):
    """Does a string start or end with a constant, or contain it?"""

    how: Matcher
    value: Value
    text: str


@dataclass(frozen=True)
class IsNull(Test):
    value: Value


@dataclass(frozen=True)
class Not(Test):
    inner: Test


@dataclass(frozen=True)
class And(Test):
    parts: tuple[Test, ...]


@dataclass(frozen=True)
class Or(Test):
    parts: tuple[Test, ...]


def columns_of(test: Test | Value) -> frozenset[str]:
    """The columns that a condition reads."""
    if isinstance(test, Column):
        return frozenset({test.name})
    parts: list[Any] = []
    for part in vars(test).values():
        parts += part if isinstance(part, tuple) else [part]
    return frozenset[str]().union(*(columns_of(part) for part in parts if isinstance(part, Test | Value)))
