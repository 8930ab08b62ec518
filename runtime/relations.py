"""Arithmetic over the numbers of several events: `b.v - a.v >= 1` of doubles, `b.p / a.p > 1.05`.

A relation is a little program over the values of its operands, a stack machine. It computes as Spark does: with its
types, rounding, NULLs and overflow. `b.v - a.v >= 1` is LOAD_F 0, LOAD_F 1, SUB_F, FLOAT 0, COMPARE_F '>=', and 1.0
stands in `floats`. What speaks of one event alone is an operand: Catalyst has computed it, and it comes as a code
(runtime.partition.terms). Times and intervals are microseconds, dates days, decimals whole numbers whose scale the ops
know.

`holds` computes one in Python, for the general engine; runtime.steppers.relation_ops does in kernels, for all but
decimals.

What cannot be computed here is looked up: `levenshtein(a.s, b.s) < 3` is LOAD 0, LOAD 1, MEMBER 0, where table 0 holds
the pairs of codes of which Spark has found it TRUE (runtime.partition.tables puts it into the relation).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from runtime.errors import ExecutionError, InternalError

# Kinds of ops, with what their argument is. Operands and constants:
LOAD, LOAD_F, INT, FLOAT = range(4)  # an operand's number; of one that is floating; the number; its index in `floats`
# Of one number. TO_F: from a whole one; ROUND_F: to 32 bits; QUOTIENT: a whole one divided by the argument
NEG, ABS, NEG_F, ABS_F, SQRT_F, TO_F, ROUND_F, QUOTIENT = range(4, 12)
# Of two, whole or floating. Here, and of NEG, ABS and TO_F, the argument is 4 · bits + mode. MONTHS: of local times
ADD, SUB, MUL, DIV, MOD, PMOD, ADD_F, SUB_F, MUL_F, DIV_F, MOD_F, MONTHS = range(12, 24)
# The least or greatest of so many, without NULLs:
LEAST, GREATEST, LEAST_F, GREATEST_F = range(24, 28)
COMPARE, COMPARE_F = 28, 29  # the argument is the place of the operator in COMPARES
# Of decimals; the argument is the place of what they need in `scales`. Their kernels are not written:
DECIMAL = 30
ADD_D, SUB_D, MUL_D, DIV_D, CAST_D, TO_F_D, NEG_D, ABS_D = range(DECIMAL, DECIMAL + 8)
MEMBER = DECIMAL + 8  # are the two in the table of this number? Only the general engine knows it

WRAPS, FAILS, IS_NULL = range(3)  # modes: what an overflow or a division by zero gives
COMPARES = ("=", "<>", "<", "<=", ">", ">=", "<=>", "IS DISTINCT FROM")
UNARY = frozenset((NEG, ABS, NEG_F, ABS_F, SQRT_F, TO_F, ROUND_F, QUOTIENT, CAST_D, TO_F_D, NEG_D, ABS_D))
FOLDS = frozenset((LEAST, GREATEST, LEAST_F, GREATEST_F))
DAY_US = 86_400_000_000
INT_BITS = 32  # in fewer Java does not compute

Number = int | float | None
Pairs = frozenset[tuple[int | None, int | None]]


@dataclass(frozen=True)
class Relation:
    """`code`: (op, argument) …; the last leaves whether it holds. `shown`: as the user wrote it.

    `pairs`: the table of a MEMBER, once the rows are there.
    """

    code: tuple[tuple[int, int], ...]
    floats: tuple[float, ...] = ()
    scales: tuple[tuple[int, ...], ...] = ()
    shown: str = ""
    pairs: Pairs | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return self.shown

    @property
    def in_kernels(self) -> bool:
        """Can runtime.steppers.relation_ops compute it?"""
        return all(op < DECIMAL for op, _ in self.code)

    @property
    def table(self) -> int | None:
        """The number of the table that it looks something up in."""
        return next((argument for op, argument in self.code if op == MEMBER), None)

    @property
    def n_operands(self) -> int:
        return max((argument + 1 for op, argument in self.code if op in (LOAD, LOAD_F)), default=0)

    @property
    def depth(self) -> int:
        """The most values on the stack."""
        most = size = 0
        for op, argument in self.code:
            size += _pushes(op, argument)
            most = max(most, size)
        return most


def _pushes(op: int, argument: int) -> int:
    """How much longer the stack is after an op."""
    if op <= FLOAT:
        return 1
    if op in FOLDS:
        return 1 - argument
    return 0 if op in UNARY else -1


def arithmetic_error(relation: str) -> ExecutionError:
    """What a kernel or `holds` has found: an overflow, or a division by zero, where Spark is to fail (ANSI)."""
    return ExecutionError(
        "ARITHMETIC", expression=relation,
        hint="As in Spark's ANSI mode: cast to a larger type, or use try_divide, try_subtract, nullif(…, 0).",
    )  # fmt: skip


def decoded(code: int) -> float:
    """The floating number of a code (runtime.partition.order.float_codes)."""
    bits = code ^ 0x7FFFFFFFFFFFFFFF if code < 0 else code
    return float(np.int64(bits).view(np.float64))


def holds(relation: Relation, values: Sequence[int | None]) -> bool:
    """Is it TRUE of operands with these codes (None: NULL)? ExecutionError ARITHMETIC where Spark would fail."""
    made = computed(relation, values)
    return made is not None and made != 0


def computed(relation: Relation, values: Sequence[int | None]) -> Number:
    """What its code leaves: 1 or 0 or NULL where that ends with a comparison."""
    stack: list[Number] = []
    for op, argument in relation.code:
        if op == LOAD:
            stack.append(values[argument])
        elif op == LOAD_F:
            code = values[argument]
            stack.append(None if code is None else decoded(code))
        elif op == INT:
            stack.append(argument)
        elif op == FLOAT:
            stack.append(relation.floats[argument])
        elif op in FOLDS:
            known = [value for value in stack[-argument:] if value is not None]
            del stack[-argument:]
            best: Callable[..., Any] = min if op in (LEAST, LEAST_F) else max
            stack.append(best(known, key=_in_order) if known else None)
        elif op in UNARY:
            value = stack.pop()
            stack.append(None if value is None else _unary(relation, op, argument, value))
        else:
            right, left = stack.pop(), stack.pop()
            if op == MEMBER:
                stack.append(_is_member(relation, left, right))
            elif op in (COMPARE, COMPARE_F):
                stack.append(compared(COMPARES[argument], left, right))
            elif left is None or right is None:
                stack.append(None)
            else:
                stack.append(_binary(relation, op, argument, left, right))
    return stack[0]


def _in_order(value: float) -> tuple[bool, float]:
    """Spark's order: NaN is the greatest, and equals itself."""
    return (True, 0.0) if value != value else (False, value)


def compared(op: str, left: Number, right: Number) -> int | None:
    """1 for TRUE, 0 for FALSE, None for NULL."""
    if op in ("<=>", "IS DISTINCT FROM"):
        equal = left is right if left is None or right is None else _in_order(left) == _in_order(right)
        return int(equal == (op == "<=>"))
    if left is None or right is None:
        return None
    a, b = _in_order(left), _in_order(right)
    return int({"=": a == b, "<>": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[op])


def _is_member(relation: Relation, left: Any, right: Any) -> int:
    if relation.pairs is None:
        raise InternalError("INTERNAL", detail=f"nobody has tabulated {relation}")
    return int((left, right) in relation.pairs)


def _missing(relation: Relation, mode: int) -> int | None:
    """A NULL in place of what cannot be computed, where that is not an error."""
    if mode == FAILS:
        raise arithmetic_error(relation.shown)
    return None


def _fitting(relation: Relation, value: int, argument: int) -> int | None:
    """A whole number in its type."""
    bits, mode = divmod(argument, 4)
    if -(1 << bits - 1) <= value < 1 << bits - 1:
        return value
    if mode == WRAPS:
        return _wrapped(value, bits)
    return _missing(relation, mode)


def _wrapped(value: int, bits: int) -> int:
    """A whole number as one of so many bits, as Java's casts make it."""
    return (value + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


def _rounded(value: float, argument: int) -> float:
    if argument // 4 == 64:
        return value
    with np.errstate(over="ignore"):
        return float(np.float32(value))


def _unary(relation: Relation, op: int, argument: int, value: Any) -> Number:
    if op == NEG:
        return _fitting(relation, -value, argument)
    if op == ABS:
        return _fitting(relation, abs(value), argument)
    if op == NEG_F:
        return -float(value)
    if op == ABS_F:
        return abs(float(value))
    if op == SQRT_F:
        return math.sqrt(value) if value >= 0 else math.nan
    if op == TO_F:
        return float(value) if argument // 4 == 64 else float(np.int64(value).astype(np.float32))
    if op == ROUND_F:
        return _rounded(value, 4 * 32)
    if op == QUOTIENT:
        return _quotient(value, argument)
    scales = relation.scales[argument] if op in (CAST_D, TO_F_D) else ()
    if op == CAST_D:
        scale, precision, to, mode = scales
        return _decimal(relation, value, scale, precision, to, mode)
    if op == TO_F_D:
        return float(value / 10 ** scales[0])
    return -value if op == NEG_D else abs(value)


def _quotient(left: int, right: int) -> int:
    """A whole quotient, towards zero."""
    return left // right if (left < 0) == (right < 0) else -(-left // right)


def _binary(relation: Relation, op: int, argument: int, left: Any, right: Any) -> Number:
    mode = argument % 4
    if op == MONTHS:
        return months_between(left, right)
    if op in (ADD, SUB, MUL):
        exact = left + right if op == ADD else left - right if op == SUB else left * right
        return _fitting(relation, exact, argument)
    if op in (DIV, MOD, PMOD):
        if right == 0:
            return _missing(relation, mode)
        quotient = _quotient(left, right)
        if op == DIV:
            return _fitting(relation, quotient, argument)
        rest = left - quotient * right
        if op == MOD or rest >= 0:
            return rest
        return _signed_rest(_wrapped(rest + right, max(argument // 4, INT_BITS)), right)
    if op in (ADD_F, SUB_F, MUL_F):
        with np.errstate(all="ignore"):
            a, b = np.float64(left), np.float64(right)
            return _rounded(float(a + b if op == ADD_F else a - b if op == SUB_F else a * b), argument)
    if op in (DIV_F, MOD_F):
        if right == 0:
            return _missing(relation, mode)
        with np.errstate(all="ignore"):
            made = np.float64(left) / np.float64(right) if op == DIV_F else np.fmod(np.float64(left), np.float64(right))
            return _rounded(float(made), argument)
    return _decimals(relation, op, relation.scales[argument], left, right)


def _signed_rest(left: int, right: int) -> int:
    return left - _quotient(left, right) * right


# ---------------------------------------------------------------- decimals


def _half_up(numerator: int, denominator: int) -> int:
    """A quotient, rounded to the nearest, halves away from zero."""
    sign = -1 if (numerator < 0) != (denominator < 0) else 1
    numerator, denominator = abs(numerator), abs(denominator)
    return sign * ((2 * numerator + denominator) // (2 * denominator))


def _rescaled(value: int, scale: int, to: int) -> int:
    return value * 10 ** (to - scale) if to >= scale else _half_up(value, 10 ** (scale - to))


def _decimal(relation: Relation, value: int, scale: int, precision: int, to: int, mode: int) -> int | None:
    """A number of this scale as DECIMAL(precision, to)."""
    made = _rescaled(value, scale, to)
    return made if abs(made) < 10**precision else _missing(relation, FAILS if mode == FAILS else IS_NULL)


def _decimals(relation: Relation, op: int, scales: tuple[int, ...], left: int, right: int) -> int | None:
    """`scales`: those of the two, precision and scale of the result, and the mode."""
    a, b, precision, to, mode = scales
    if op in (ADD_D, SUB_D):
        common = max(a, b)
        left, right = _rescaled(left, a, common), _rescaled(right, b, common)
        return _decimal(relation, left + right if op == ADD_D else left - right, common, precision, to, mode)
    if op == MUL_D:
        value, scale = left * right, a + b
        extra = len(str(abs(value))) - 38  # Java's BigDecimal keeps 38 digits here
        if extra > 0:
            value, scale = _half_up(value, 10**extra), scale - extra
        return _decimal(relation, value, scale, precision, to, mode)
    if right == 0:
        return _missing(relation, FAILS if mode == FAILS else IS_NULL)
    # Spark divides to 39 places, then rounds to those of the type.
    return _decimal(relation, _half_up(left * 10 ** (39 + b - a), right), 39, precision, to, mode)


# ---------------------------------------------------------------- the calendar


def civil_month(days: int) -> tuple[int, int]:
    """(months since year 0, day of the month) of a day since 1970-01-01, in the proleptic Gregorian calendar."""
    shifted = days + 719_468
    era = shifted // 146_097
    of_era = shifted - era * 146_097
    year = (of_era - of_era // 1_460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    month = (5 * of_year + 2) // 153  # 0 is March
    day = of_year - (153 * month + 2) // 5 + 1
    return (year + era * 400) * 12 + month + 2, day


def months_between(start: int, end: int) -> int:
    """Whole months from one local time to another, in microseconds, as Java's ChronoUnit.MONTHS counts them."""
    first, last = start // DAY_US, end // DAY_US
    if last > first and end - last * DAY_US < start - first * DAY_US:
        last -= 1
    elif last < first and end - last * DAY_US > start - first * DAY_US:
        last += 1
    (month, day), (other, other_day) = civil_month(first), civil_month(last)
    return _quotient((other * 32 + other_day) - (month * 32 + day), 32)
