"""Where a condition is TRUE, with Spark's meaning: three-valued logic, NaN, -0.0 and all.

A string column that comes as a dictionary is asked once for each value of the dictionary, and then looked up.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from runtime.arrays import AnyArray
from runtime.partition.order import as_clock, combined
from runtime.scan.conditions import (
    Absolute,
    And,
    Arithmetic,
    Column,
    Compare,
    Constant,
    Flag,
    In,
    IsNull,
    Matcher,
    Matches,
    Not,
    Operator,
    Or,
    Test,
    Value,
    Widened,
)

FEW_VALUES = 4  # of a dictionary


class Truth(NamedTuple):
    """bool[n] each: where a condition is TRUE, and where it is FALSE; neither where it is NULL."""

    true: AnyArray
    false: AnyArray


class Numbers(NamedTuple):
    """Values of one numpy type, and bool[n] where they are NULL (None: nowhere)."""

    values: AnyArray
    null: AnyArray | None


class Rows:
    """Some rows, by their columns; what was asked of them is asked once."""

    def __init__(self, columns: Mapping[str, pa.Array | pa.ChunkedArray], n: int) -> None:
        self._columns, self._n = columns, n
        self._known: dict[Test, Truth] = {}
        self._numbers: dict[Value, Numbers] = {}

    def true(self, test: Test) -> AnyArray:
        """bool[n]: where a condition is TRUE. Where it is FALSE is only asked below a NOT."""
        match test:
            case And(parts):
                return _all([self.true(part) for part in parts])
            case Or(parts):
                return _any([self.true(part) for part in parts])
            case Not(inner):
                return self.truth(inner).false
        return self.truth(test).true

    def truth(self, test: Test) -> Truth:
        """O(rows) for each part of a condition that is new."""
        if test not in self._known:
            self._known[test] = self._asked(test)
        return self._known[test]

    def _asked(self, test: Test) -> Truth:
        match test:
            case And(parts):
                asked = [self.truth(part) for part in parts]
                return Truth(_all([t.true for t in asked]), _any([t.false for t in asked]))
            case Or(parts):
                asked = [self.truth(part) for part in parts]
                return Truth(_any([t.true for t in asked]), _all([t.false for t in asked]))
            case Not(inner):
                true, false = self.truth(inner)
                return Truth(false, true)
            case IsNull(value):
                null = self._is_null(value)
                return Truth(null, ~null)
            case Flag(value):
                held = self._as_numbers(value)
                return _known(np.broadcast_to(held.values.astype(np.bool_), self._n), held.null)
            case Compare("<=>", left, right):
                equal, both = self.truth(Compare("=", left, right)).true, self._is_null(left) & self._is_null(right)
                return Truth(equal | both, ~(equal | both))
            case Compare(op, left, right):
                return self._compared(op, left, right)
            case In(value, among):
                return self._among(value, among)
            case Matches(how, value, text):
                return self._of_strings(value, lambda array: _matcher(how)(array, text))
        raise AssertionError(f"no condition: {test!r}")

    def _compared(self, op: Operator, left: Value, right: Value) -> Truth:
        if isinstance(right, Constant) and isinstance(right.value, str):
            text = right.value
            return self._of_strings(left, lambda array: _STRINGS[op](array, text))
        if self._is_string(left):
            true = _STRINGS[op](self._strings(left), self._strings(right))
            return _known(np.asarray(pc.fill_null(true, False)), np.asarray(combined(true).is_null()))
        one, other = self._as_numbers(left), self._as_numbers(right)
        null = _either(one.null, other.null)
        return _known(_compared(op, one.values, other.values), null)

    def _among(self, value: Value, among: tuple[Constant, ...]) -> Truth:
        if isinstance(among[0].value, str):
            values = pa.array([constant.value for constant in among], pa.string())
            return self._of_strings(value, lambda array: _is_in(array, values))
        held = self._as_numbers(value)
        found = [_compared("=", held.values, np.asarray(constant.value)) for constant in among]
        return _known(_any(found), held.null)

    # ------------------------------------------------------------ values

    def _column(self, value: Value) -> pa.Array:
        assert isinstance(value, Column)
        return combined(self._columns[value.name])

    def _is_null(self, value: Value) -> AnyArray:
        if isinstance(value, Constant):
            return np.full(self._n, value.value is None)
        if not isinstance(value, Column):
            null = self._as_numbers(value).null
            return np.zeros(self._n, np.bool_) if null is None else null
        return np.asarray(self._column(value).is_null())

    def _is_string(self, value: Value) -> bool:
        if not isinstance(value, Column):
            return isinstance(value, Constant) and isinstance(value.value, str)
        kind = self._column(value).type
        return bool(pa.types.is_string(kind) or pa.types.is_dictionary(kind))

    def _strings(self, value: Value) -> pa.Array | str:
        if isinstance(value, Constant):
            assert isinstance(value.value, str)
            return value.value
        array = self._column(value)
        return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array

    def _of_strings(self, value: Value, asked: Callable[[pa.Array], pa.Array]) -> Truth:
        """What is asked of one string column; of a dictionary's values, then looked up."""
        array = self._column(value)
        if not pa.types.is_dictionary(array.type):
            return _known(np.asarray(pc.fill_null(asked(array), False)), _null_of(array))
        null = _null_of(array)
        if not len(array.dictionary):
            return Truth(np.zeros(self._n, np.bool_), np.zeros(self._n, np.bool_))
        by_value = np.asarray(pc.fill_null(asked(array.dictionary), False))
        index = np.asarray(pc.fill_null(array.indices, 0) if array.indices.null_count else array.indices)
        (wanted,) = np.nonzero(by_value)
        if 1 <= len(wanted) <= FEW_VALUES:  # to compare numbers is much faster than to look them up
            return _known(_any([index == number for number in wanted.astype(index.dtype)]), null)
        return _known(by_value[index], null)

    def _as_numbers(self, value: Value) -> Numbers:
        if value not in self._numbers:
            self._numbers[value] = self._made_numbers(value)
        return self._numbers[value]

    def _made_numbers(self, value: Value) -> Numbers:
        match value:
            case Constant(None):
                return Numbers(np.zeros(1, np.int64), np.ones(self._n, np.bool_))
            case Constant(known):
                return Numbers(np.asarray([known]), None)
            case Widened(inner, to):
                held = self._as_numbers(inner)
                return Numbers(held.values.astype(to), held.null)
            case Absolute(inner):
                held = self._as_numbers(inner)
                return Numbers(np.abs(held.values), held.null)
            case Arithmetic(op, left, right, to):
                one, other = self._as_numbers(left), self._as_numbers(right)
                with np.errstate(all="ignore"):  # what is infinite or no number stays so, as with Spark
                    made = _ARITHMETIC[op](one.values.astype(to), other.values.astype(to))
                return Numbers(made, _either(one.null, other.null))
        array = self._column(value)
        null = _null_of(array)
        if pa.types.is_boolean(array.type):
            return Numbers(np.asarray(pc.fill_null(array, False)), null)
        if pa.types.is_floating(array.type):
            return Numbers(np.asarray(pc.fill_null(array, 0.0) if null is not None else array), null)
        return Numbers(as_clock(array), null)


def _null_of(array: pa.Array) -> AnyArray | None:
    return np.asarray(array.is_null()) if array.null_count else None


def _known(true: AnyArray, null: AnyArray | None) -> Truth:
    """TRUE or FALSE where nothing is NULL."""
    if null is None:
        return Truth(true, ~true)
    return Truth(true & ~null, ~true & ~null)


def _either(one: AnyArray | None, other: AnyArray | None) -> AnyArray | None:
    if one is None or other is None:
        return other if one is None else one
    return one | other


def _all(parts: list[AnyArray]) -> AnyArray:
    return reduce(operator.and_, parts)


def _any(parts: list[AnyArray]) -> AnyArray:
    return reduce(operator.or_, parts)


_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "%": np.fmod,  # with the sign of what is divided
}  # fmt: skip
_NUMBERS: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_STRINGS: dict[str, Callable[[Any, Any], Any]] = {
    "=": pc.equal, "<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal,
}  # fmt: skip
_MIRRORED: dict[str, Operator] = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}

_OPPOSITE: dict[str, Operator] = {">": "<=", ">=": "<"}


def _compared(op: Operator, left: AnyArray, right: AnyArray) -> AnyArray:
    """Spark's order of numbers: NaN equals itself, and is greater than all others."""
    if not (_is_float(left) or _is_float(right)):
        return np.asarray(_NUMBERS[op](left, right))
    if right.size == 1 and not np.isnan(right).any():  # a constant, which NaN is greater than
        return (
            ~np.asarray(_NUMBERS[_OPPOSITE[op]](left, right))
            if op in _OPPOSITE
            else np.asarray(_NUMBERS[op](left, right))
        )
    found: AnyArray = np.asarray(_NUMBERS[op](left, right))
    nan_left, nan_right = np.isnan(left), np.isnan(right)
    if not nan_left.any() and not nan_right.any():
        return found
    if op == "=":
        return found | (nan_left & nan_right)
    if op in ("<", "<="):
        return found | (nan_right & (~nan_left | (op == "<=")))
    return _compared(_MIRRORED[op], right, left)


def _is_float(values: AnyArray) -> bool:
    return bool(np.issubdtype(values.dtype, np.floating))


def _is_in(array: pa.Array, values: pa.Array) -> pa.Array:
    return pc.is_in(array, value_set=values)


def _matcher(how: Matcher) -> Callable[[pa.Array, str], pa.Array]:
    return {"starts": pc.starts_with, "ends": pc.ends_with, "contains": pc.match_substring}[how]
