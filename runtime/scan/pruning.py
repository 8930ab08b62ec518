"""Row groups in which a condition cannot be TRUE, by the least and the greatest value of a column.

    price > 80.5, and the greatest price is 79.9    not here
    type IN ('A', 'B'), and all types are 'C'       not here

What is not known may hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from runtime.scan.conditions import (
    And,
    Column,
    Compare,
    Constant,
    Flag,
    In,
    IsNull,
    Not,
    Operator,
    Or,
    Test,
    Value,
    Widened,
)


class Bounds(NamedTuple):
    """Of the values of a column that are not NULL, nor NaN: they lie between these two, as Constants have them."""

    least: Any
    greatest: Any
    has_null: bool
    may_be_nan: bool


def may_hold(test: Test, known: Mapping[str, Bounds]) -> bool:
    """Can a condition be TRUE for some row?"""
    match test:
        case And(parts):
            return all(may_hold(part, known) for part in parts)
        case Or(parts):
            return any(may_hold(part, known) for part in parts)
        case Compare(op, value, Constant(constant)):
            return _may_compare(op, _bounds(value, known), constant)
        case In(value, among):
            own = _bounds(value, known)
            return any(_may_compare("=", own, constant.value) for constant in among)
        case Flag(Constant(constant)):
            return bool(constant)
        case IsNull(value):
            own = _bounds(value, known)
            return own is None or own.has_null
        case Not(Compare("=", value, Constant(constant))):
            own = _bounds(value, known)
            return own is None or own.may_be_nan or not own.least == own.greatest == constant
    return True


def _bounds(value: Value, known: Mapping[str, Bounds]) -> Bounds | None:
    while isinstance(value, Widened):
        value = value.inner
    return known.get(value.name) if isinstance(value, Column) else None


def _may_compare(op: Operator, own: Bounds | None, constant: Any) -> bool:
    if own is None:
        return True
    if constant is None:
        return op == "<=>" and own.has_null
    if constant != constant:  # NaN equals itself, and is greater than all others
        return own.may_be_nan or op in ("<", "<=")
    match op:
        case "<":
            return bool(own.least < constant)
        case "<=":
            return bool(own.least <= constant)
        case ">":
            return own.may_be_nan or bool(own.greatest > constant)
        case ">=":
            return own.may_be_nan or bool(own.greatest >= constant)
    return bool(own.least <= constant <= own.greatest)
