"""What the rows weigh that an engine has read, for the conditions of a sieve (runtime.sieve).

Sums of whole numbers are exact as DOUBLE, so `> 5` is `>= 6` there. Others are rounded, by Spark and by us, one after
the other in some order: a bound is wider by SLACK of the sizes of what is summed up.
"""

from __future__ import annotations

import math
import operator
from typing import NamedTuple

import numpy as np

from runtime import capacities
from runtime.arrays import AnyArray, IntArray, grown
from runtime.program import NULL_CODE
from runtime.sieve import Bounded, Weight

MOST_EXACT = 2.0**49  # below it sums of whole numbers are exact as DOUBLE, and quotients of two of them are told apart
MOST_SIZE = 1e290  # what is larger could become infinite in a sum
OPS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq}
SLACK = 1e-9  # how far rounding takes a sum of some million numbers, as a part of their sizes


class Limits(NamedTuple):
    """Of each condition the least and the greatest sum: row 0 where sums may be rounded, row 1 where they are exact."""

    low: AnyArray  # float64[2, conditions]
    high: AnyArray  # float64[2, conditions]


def limits_of(conditions: tuple[Bounded, ...]) -> Limits:
    """Those of conditions, `> 5` as `>= 6` where sums are exact."""
    low, high = (np.array([[getattr(one, name) for one in conditions]] * 2, np.float64) for name in ("low", "high"))
    for k, one in enumerate(conditions):
        if math.isfinite(one.low):
            low[1, k] = math.floor(one.low) + 1 if one.strict else math.ceil(one.low)
        if math.isfinite(one.high):
            high[1, k] = math.ceil(one.high) - 1 if one.strict else math.floor(one.high)
    return Limits(low, high)


def of_events(conditions: tuple[Bounded, ...], labels: tuple[frozenset[str], ...]) -> AnyArray:
    """float64[conditions, labels]: what each event with a label weighs, whatever its values."""
    found = [
        [sum(own.shift for own in one.weights if own.column < 0 and _is_of(own, label)) for label in labels]
        for one in conditions
    ]
    return np.array(found, np.float64).reshape(len(conditions), len(labels))


class Weights:
    """The weights of rows by their values; a row has its number. `term`: of which condition each weight is; `of_label`:
    which events have it; `exact`: has a condition whole numbers alone, so far; `known`: has it numbers alone?"""

    def __init__(self, conditions: tuple[Bounded, ...], labels: tuple[frozenset[str], ...]) -> None:
        self._terms = [(k, own) for k, one in enumerate(conditions) for own in one.weights if own.column >= 0]
        self.term = np.array([k for k, _ in self._terms], np.int64)
        self.of_label = np.array(
            [[_is_of(own, label) for label in labels] for _, own in self._terms], np.bool_
        ).reshape(len(self._terms), len(labels))  # fmt: skip
        self.exact, self.known = np.ones(len(conditions), np.bool_), np.ones(len(conditions), np.bool_)
        self._row, self._value, self._n = np.zeros(0, np.int64), np.zeros((0, len(self._terms))), 0
        self._many = capacities.WEIGHTS

    @property
    def row(self) -> IntArray:
        """int64[n], ascending: the numbers of rows."""
        return self._row[: self._n]

    @property
    def value(self) -> AnyArray:
        """float64[n, terms]: what they weigh."""
        return self._value[: self._n]

    def put(self, rows: IntArray, codes: AnyArray) -> None:
        """Remember more rows, none of them for the second time. O(rows) where their numbers come in order."""
        own = np.zeros((len(rows), len(self._terms)))
        for t, (k, weight) in enumerate(self._terms):
            own[:, t] = self._weights(k, weight, np.ascontiguousarray(codes[:, weight.column]))
        if not _ascend(rows):
            order = np.argsort(rows)
            rows, own = rows[order], own[order]
        n, before = self._n + len(rows), self._n
        if n > len(self._row):
            self._row, self._value = grown(self._row, 2 * n), grown(self._value, 2 * n)
        self._row[before:n], self._value[before:n], self._n = rows, own, n
        if before and not _ascend(self._row[before - 1 : n]):
            order = np.argsort(self.row)
            self._row, self._value = self._row[order], self._value[order]

    def _weights(self, k: int, weight: Weight, codes: IntArray) -> AnyArray:
        """Those of one term. Infinity, what is no number, and what is too large end the condition's bounds."""
        values = np.full(len(codes), weight.shift)
        if weight.factor:  # else what it is does not matter
            values += codes.view(np.float64) * weight.factor
        if weight.op:
            values = np.rint(values) if weight.whole else values
            values = OPS[weight.op](np.where(np.isnan(values), np.inf, values), weight.number).astype(np.float64)
        found = np.where(codes == NULL_CODE, 0.0, values)
        if not bool((np.abs(found) < MOST_SIZE).all()):
            self.known[k] = False
            return np.zeros(len(found))
        whole = np.rint(found)
        if weight.whole:
            return whole
        self.exact[k] &= bool((found == whole).all())
        return found

    @property
    def are_many(self) -> bool:
        """Have they doubled since some were forgotten?"""
        return self._n > self._many

    def forget(self, least: int) -> None:
        """Let go of the rows with lower numbers, which no match mentions any more."""
        at = int(np.searchsorted(self.row, least))
        self._row, self._value, self._n = self.row[at:].copy(), self.value[at:].copy(), self._n - at
        self._many = max(capacities.WEIGHTS, 2 * self._n)


def _ascend(rows: IntArray) -> bool:
    return bool((rows[1:] >= rows[:-1]).all())


def _is_of(weight: Weight, label: frozenset[str]) -> bool:
    return weight.variable is None or weight.variable in label
