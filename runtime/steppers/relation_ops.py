"""Relations (runtime.relations) in kernels: the same stack machine over flat arrays.

Whole numbers are on one stack, floating ones on another, at the same heights; a third says what is NULL. An arithmetic
error cannot be raised in a kernel: it is noted, and the engine raises it when the kernel returns.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from runtime.arrays import AnyArray
from runtime.jit import inlined
from runtime.program import NULL_CODE
from runtime.relations import (
    ABS,
    ABS_F,
    ADD,
    ADD_F,
    COMPARE,
    DAY_US,
    DIV,
    DIV_F,
    FAILS,
    FLOAT,
    GREATEST,
    GREATEST_F,
    INT,
    INT_BITS,
    LEAST,
    LEAST_F,
    LOAD_F,
    MONTHS,
    MUL,
    MUL_F,
    NEG,
    NEG_F,
    PMOD,
    QUOTIENT,
    ROUND_F,
    SQRT_F,
    SUB,
    SUB_F,
    TO_F,
    WRAPS,
    Relation,
)

NO_ERROR = -1
MOST = np.int64(0x7FFFFFFFFFFFFFFF)


class Relations(NamedTuple):
    """All relations of a program. Number r is code[code_of[r]] … code[code_of[r + 1]], rows of (op, argument).

    `ints`, `floats`, `null`: the stacks. `values`: the operands' codes. `error[0]`: the relation that failed.
    """

    code_of: AnyArray
    n_operands: AnyArray
    code: AnyArray
    constants: AnyArray
    ints: AnyArray
    floats: AnyArray
    null: AnyArray
    values: AnyArray
    bits: AnyArray
    as_float: AnyArray
    error: AnyArray


def flat(relations: tuple[Relation, ...]) -> Relations:
    """The arrays of relations that are `in_kernels`."""
    code, constants, ends = [(0, 0)], [0.0], [1]
    for relation in relations:
        first = len(constants)
        constants += relation.floats
        code += [(op, first + a if op == FLOAT else a) for op, a in relation.code]
        ends.append(len(code))
    depth = max((relation.depth for relation in relations), default=1)
    operands = [relation.n_operands for relation in relations]
    bits = np.zeros(1, np.int64)
    return Relations(
        code_of=np.array(ends, np.int64),
        n_operands=np.array(operands, np.int64),
        code=np.array(code, np.int64),
        constants=np.array(constants, np.float64),
        ints=np.zeros(depth, np.int64),
        floats=np.zeros(depth, np.float64),
        null=np.zeros(depth, np.bool_),
        values=np.zeros(max(operands, default=1), np.int64),
        bits=bits,
        as_float=bits.view(np.float64),
        error=np.full(1, NO_ERROR, np.int64),
    )


@inlined
def in_type(value, bits):
    """A whole number as one of so many bits, as Java's casts make it."""
    shift = 64 - bits
    return (value << shift) >> shift


@inlined
def wrapped(op, a, b):
    """A sum, difference or product of int64, which may wrap. The compiler takes it that signed numbers never do, and
    would leave out what looks for it: so of unsigned ones."""
    x, y = np.uint64(a), np.uint64(b)
    return np.int64(x + y if op == ADD else x - y if op == SUB else x * y)


@inlined
def overflows(op, a, b, made):
    """Has a sum, difference or product of int64 wrapped?"""
    if op == ADD:
        return ((a ^ made) & (b ^ made)) < 0
    if op == SUB:
        return ((a ^ b) & (a ^ made)) < 0
    if a == 0 or b == 0:
        return False
    if (a == -1 and b == NULL_CODE) or (b == -1 and a == NULL_CODE):
        return True
    return quotient(made, b) != a


@inlined
def quotient(a, b):
    """A whole quotient, towards zero; of the least number by -1, itself."""
    if b == -1:
        return wrapped(SUB, np.int64(0), a)
    found = a // b
    if found < 0 and a % b != 0:
        found += 1
    return found


@inlined
def rest_of(a, b):
    return np.int64(0) if b == -1 else a - quotient(a, b) * b


@inlined
def civil(days):
    """32 · months + day of the month, of a day since 1970-01-01 (runtime.relations.civil_month)."""
    shifted = days + 719468
    era = shifted // 146097
    of_era = shifted - era * 146097
    year = (of_era - of_era // 1460 + of_era // 36524 - of_era // 146096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    month = (5 * of_year + 2) // 153
    day = of_year - (153 * month + 2) // 5 + 1
    return ((year + era * 400) * 12 + month + 2) * 32 + day


@inlined
def months(start, end):
    first, last = start // DAY_US, end // DAY_US
    if last > first and end - last * DAY_US < start - first * DAY_US:
        last -= 1
    elif last < first and end - last * DAY_US > start - first * DAY_US:
        last += 1
    return quotient(civil(last) - civil(first), np.int64(32))


@inlined
def order_of(op, below, equal):
    """Whether a comparison by its place in COMPARES holds, given the order of its sides."""
    if op == 0 or op == 6:
        return equal
    if op == 1 or op == 7:
        return not equal
    if op == 2:
        return below
    if op == 3:
        return below or equal
    if op == 4:
        return not below and not equal
    return not below


@inlined
def less(a, b):
    """a < b in Spark's order, in which NaN is the greatest."""
    return a < b or (a == a and b != b)


@inlined
def alike(a, b):
    return a == b or (a != a and b != b)


@inlined
def whole(r, op, argument, at):
    """An op of two whole numbers at `at` and above; leaves the result at `at`."""
    bits, mode = argument // 4, argument % 4
    a, b = r.ints[at], r.ints[at + 1]
    failed, made = False, np.int64(0)
    if op <= MUL:
        made = wrapped(op, a, b)
        failed = overflows(op, a, b, made) or in_type(made, bits) != made
    elif b == 0:
        r.null[at] = True
        return mode != FAILS
    elif op == DIV:
        made = quotient(a, b)
        failed = a == NULL_CODE and b == -1
    else:
        made = rest_of(a, b)
        if op == PMOD and made < 0:
            made = rest_of(in_type(wrapped(ADD, made, b), max(bits, INT_BITS)), b)
    r.ints[at] = in_type(made, bits)
    if failed and mode != WRAPS:
        r.null[at] = True
        return mode != FAILS
    return True


@inlined
def floating(r, op, argument, at):
    """The same of floating numbers."""
    a, b = r.floats[at], r.floats[at + 1]
    if op >= DIV_F and b == 0.0:
        r.null[at] = True
        return argument % 4 != FAILS
    if op == ADD_F:
        made = a + b
    elif op == SUB_F:
        made = a - b
    elif op == MUL_F:
        made = a * b
    elif op == DIV_F:
        made = a / b
    else:
        made = np.fmod(a, b)
    r.floats[at] = made if argument // 4 == 64 else np.float64(np.float32(made))
    return True


@inlined
def single(r, op, argument, at):
    """An op of one number."""
    value = r.ints[at]
    if op <= ABS:
        if op == NEG or value < 0:
            bits = argument // 4
            r.ints[at] = in_type(wrapped(SUB, np.int64(0), value), bits)
            if r.ints[at] == value and value != 0 and argument % 4 != WRAPS:
                r.null[at] = True
                return argument % 4 != FAILS
    elif op == NEG_F:
        r.floats[at] = -r.floats[at]
    elif op == ABS_F:
        r.floats[at] = abs(r.floats[at])
    elif op == SQRT_F:
        r.floats[at] = np.sqrt(r.floats[at]) if r.floats[at] >= 0.0 else np.nan
    elif op == TO_F:
        r.floats[at] = np.float64(value) if argument // 4 == 64 else np.float64(np.float32(value))
    elif op == ROUND_F:
        r.floats[at] = np.float64(np.float32(r.floats[at]))
    else:
        r.ints[at] = quotient(value, argument)
    return True


@inlined
def comes_before(r, op, k, best):
    """Is number k better than the best so far?"""
    if op == LEAST:
        return r.ints[k] < r.ints[best]
    if op == GREATEST:
        return r.ints[k] > r.ints[best]
    if op == LEAST_F:
        return less(r.floats[k], r.floats[best])
    return less(r.floats[best], r.floats[k])


@inlined
def folded(r, op, n, at):
    """The least or greatest of the n numbers from `at` on; NULLs are skipped."""
    best = -1
    for k in range(at, at + n):
        if r.null[k]:
            continue
        if best < 0 or comes_before(r, op, k, best):
            best = k
    r.null[at] = best < 0
    if best >= 0:
        r.ints[at], r.floats[at] = r.ints[best], r.floats[best]


@inlined
def load(r, at, code, is_float):
    r.null[at] = code == NULL_CODE
    r.ints[at] = code
    if is_float:
        r.bits[0] = code ^ MOST if code < 0 else code
        r.floats[at] = r.as_float[0]


@inlined
def compare(r, op, argument, at):
    """Leaves 1 or 0, or NULL."""
    nulls = r.null[at] or r.null[at + 1]
    if nulls and argument < 6:
        r.null[at] = True
        return
    if nulls:
        equal, below = r.null[at] and r.null[at + 1], False
    elif op == COMPARE:
        below, equal = r.ints[at] < r.ints[at + 1], r.ints[at] == r.ints[at + 1]
    else:
        below, equal = less(r.floats[at], r.floats[at + 1]), alike(r.floats[at], r.floats[at + 1])
    r.null[at] = False
    r.ints[at] = 1 if order_of(argument, below, equal) else 0


@inlined
def related(r, number):
    """Is relation `number` TRUE of r.values? What fails is noted in r.error, and is not TRUE."""
    top = -1  # the last value on the stacks
    for c in range(r.code_of[number], r.code_of[number + 1]):
        op, argument = r.code[c, 0], r.code[c, 1]
        fine = True
        if op <= FLOAT:
            top += 1
            if op == INT:
                r.ints[top], r.null[top] = argument, False
            elif op == FLOAT:
                r.floats[top], r.null[top] = r.constants[argument], False
            else:
                load(r, top, r.values[argument], op == LOAD_F)
        elif LEAST <= op <= GREATEST_F:
            top -= argument - 1
            folded(r, op, argument, top)
        elif op <= QUOTIENT:
            if not r.null[top]:
                fine = single(r, op, argument, top)
        else:
            top -= 1
            if op >= COMPARE:
                compare(r, op, argument, top)
            elif r.null[top] or r.null[top + 1]:
                r.null[top] = True
            elif op == MONTHS:
                r.ints[top] = months(r.ints[top], r.ints[top + 1])
            elif op <= PMOD:
                fine = whole(r, op, argument, top)
            else:
                fine = floating(r, op, argument, top)
        if not fine:
            r.error[0] = number
            return False
    return not r.null[0] and r.ints[0] != 0
