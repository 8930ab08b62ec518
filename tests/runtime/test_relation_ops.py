"""Relations in kernels give what runtime.relations gives: every op on numbers at the ends of its type, then at random.

That the latter is what Spark gives is held by tests/spark_ext/test_arithmetic_spark.py.
"""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest

from runtime import relations
from runtime.errors import ExecutionError
from runtime.jit import kernel
from runtime.program import NULL_CODE
from runtime.relations import COMPARES, DAY_US, FAILS, IS_NULL, WRAPS, Relation, computed
from runtime.steppers.relation_ops import NO_ERROR, Relations, flat, related

INF, NAN = math.inf, math.nan
FLOATS = (-INF, -1e300, -2.5, -1.0, -1e-300, -0.0, 0.0, 0.1, 1.0, 2.5, 3e38, 1e300, INF, NAN)
MODES = (WRAPS, FAILS, IS_NULL)
Code = tuple[tuple[int, int], ...]
Value = int | float | None


@kernel
def compiled(of: Any, number: int) -> bool:
    return related(of, number)  # type: ignore[no-any-return]


def whole_numbers(bits: int) -> tuple[int, ...]:
    """Those at the ends of a type, and around zero. The least of 64 bits is the code of NULL."""
    end = 1 << bits - 1
    return tuple(n for n in (-end, -end + 1, -7, -2, -1, 0, 1, 2, 5, 7, end - 2, end - 1) if n != NULL_CODE)


def code_of(value: Value) -> int:
    """As runtime.partition.terms sends it to the engine."""
    if value is None:
        return NULL_CODE
    if isinstance(value, int):
        return value
    (bits,) = struct.unpack("<q", struct.pack("<d", value))
    return int(bits ^ 0x7FFFFFFFFFFFFFFF) if bits < 0 else int(bits)


def loads(values: Iterable[Value]) -> Code:
    return tuple(
        (relations.LOAD_F if isinstance(value, float) else relations.LOAD, k) for k, value in enumerate(values)
    )


def outcome(relation: Relation, values: Sequence[Value]) -> bool | str:
    """What the reference says."""
    codes = [None if value is None else code_of(value) for value in values]
    try:
        return relations.holds(relation, codes)
    except ExecutionError as error:
        return error.condition


def in_kernel(of: Relations, number: int, values: Sequence[Value]) -> bool | str:
    of.error[0] = NO_ERROR
    of.values[: len(values)] = [code_of(value) for value in values]
    found = bool(compiled(of, number))
    assert of.error[0] in (NO_ERROR, number)
    return found if of.error[0] == NO_ERROR else "ARITHMETIC"


def comparisons(code: Code, values: Sequence[Value], floats: tuple[float, ...] = ()) -> Iterator[Relation]:
    """What the code gives = and <> what it should give; neither is TRUE of NULL."""
    try:
        made = computed(Relation(code, floats), [None if value is None else code_of(value) for value in values])
    except ExecutionError:
        made = 0
    for op in (COMPARES.index("="), COMPARES.index("<>")):
        if isinstance(made, float):
            with_it = (*code, (relations.FLOAT, len(floats)), (relations.COMPARE_F, op))
            yield Relation(with_it, (*floats, made))
        else:
            yield Relation((*code, (relations.INT, made or 0), (relations.COMPARE, op)), floats)


def check(asked: Iterable[tuple[Code, Sequence[Value]]]) -> None:
    """All in one bundle of arrays, as the relations of one program are."""
    found = [(relation, values) for code, values in asked for relation in comparisons(code, values)]
    assert found
    of = flat(tuple(relation for relation, _ in found))
    for number, (relation, values) in enumerate(found):
        with np.errstate(all="ignore"):
            assert in_kernel(of, number, values) == outcome(relation, values), (relation.code, values)


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize("op", ["ADD", "SUB", "MUL", "DIV", "MOD", "PMOD"])
def test_two_whole_numbers(op: str, bits: int) -> None:
    """The type of DIV is BIGINT, whatever it divides."""
    numbers, bits = (*whole_numbers(bits), None), 64 if op == "DIV" else bits
    check(
        ((*loads(pair), (getattr(relations, op), 4 * bits + mode)), pair)
        for pair in product(numbers, numbers)
        for mode in MODES
    )


@pytest.mark.parametrize("op", ["MUL", "DIV", "MOD", "PMOD", "SUB"])
def test_the_least_whole_number(op: str) -> None:
    """It comes from computing only: -(2^63 - 1) - 1."""
    least = (relations.LOAD, 0), (relations.INT, 1), (relations.SUB, 4 * 64 + WRAPS)
    for other, mode in product((-2, -1, 0, 1, 2), MODES):
        last = (getattr(relations, op), 4 * 64 + mode)
        check([((*least, (relations.INT, other), last), [1 - 2**63])])
        check([(((relations.INT, other), *least, last), [1 - 2**63])])


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize("op", ["NEG", "ABS"])
def test_one_whole_number(op: str, bits: int) -> None:
    ops = [(getattr(relations, op), 4 * bits + mode) for mode in MODES]
    check(((*loads([n]), last), [n]) for n in (*whole_numbers(bits), None) for last in ops)
    least = (relations.LOAD, 0), (relations.INT, 1), (relations.SUB, 4 * 64 + WRAPS)
    if bits == 64:
        check(((*least, last), [1 - 2**63]) for last in ops)


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("op", ["ADD_F", "SUB_F", "MUL_F", "DIV_F", "MOD_F"])
def test_two_floating_numbers(op: str, bits: int) -> None:
    numbers = FLOATS if bits == 64 else tuple(float(np.float32(n)) for n in FLOATS if not 1e39 < abs(n) < INF)
    for modes in ((FAILS,), (WRAPS, IS_NULL)):
        check(
            ((*loads(pair), (getattr(relations, op), 4 * bits + mode)), pair)
            for pair in product(numbers, numbers)
            for mode in modes
        )


def test_the_sum_in_a_pmod_wraps() -> None:
    """In the type, or in INT where that is smaller. Spark's answers."""
    for bits, left, right, made in (
        (8, -5, -128, -5), (16, -5, -32768, -5), (32, -5, -(2**31), 2**31 - 5), (64, -5, 1 - 2**63, 2**63 - 4),
        (32, 1 - 2**31, -(2**31), 1), (64, 2 - 2**63, 1 - 2**63, 3),
    ):  # fmt: skip
        code = (*loads((left, right)), (relations.PMOD, 4 * bits + FAILS))
        assert computed(Relation(code), (left, right)) == made
        check([(code, (left, right))])


def test_one_floating_number() -> None:
    with np.errstate(all="ignore"):
        check(((*loads([n]), (op, 0)), [n]) for n in FLOATS for op in (relations.NEG_F, relations.ABS_F))
        check(((*loads([n]), (op, 0)), [n]) for n in FLOATS for op in (relations.SQRT_F, relations.ROUND_F))
        check(
            ((*loads([n]), (relations.TO_F, 4 * bits)), [n])
            for n in (*whole_numbers(64), 2**24 + 1, 2**53 + 1, None)
            for bits in (32, 64)
        )
    check(((*loads([n]), (relations.QUOTIENT, by)), [n]) for n in (*whole_numbers(64), None) for by in (1, 3, DAY_US))


def test_the_least_and_the_greatest() -> None:
    for numbers, ops in (((-3, 0, 4, None), ("LEAST", "GREATEST")), ((-2.5, 0.0, 1.0, NAN), ("LEAST_F", "GREATEST_F"))):
        for n, op in product((1, 2, 3), ops):
            check(((*loads(own), (getattr(relations, op), n)), own) for own in product(numbers, repeat=n))
    # Beside what lies below on the stack.
    below = ((relations.INT, 5), (relations.LOAD, 0), (relations.LOAD, 1), (relations.LEAST, 2), (relations.SUB, 256))
    check((below, own) for own in product((-3, 4, None), repeat=2))


def test_months() -> None:
    """Of all ends of months around leap years, at times of day before and after."""
    day = [0, 30, 31, 58, 59, 60, 89, 364, 365, 366, 789, 790, 11_015, 11_016, 11_017, 11_382, -1, -25_509, -719_469]
    times = [d * DAY_US + of_day for d in day for of_day in (0, DAY_US - 1)]
    check(((*loads(pair), (relations.MONTHS, 0)), pair) for pair in product(times, times))


def test_comparing() -> None:
    for numbers, op in (((-1, 0, 1, None), relations.COMPARE), ((-1.0, -0.0, 0.0, INF, NAN), relations.COMPARE_F)):
        found = [
            (Relation((*loads(pair), (op, k))), pair)
            for pair in product(numbers, numbers)
            for k in range(len(COMPARES))
        ]
        of = flat(tuple(relation for relation, _ in found))
        for number, (relation, pair) in enumerate(found):
            assert in_kernel(of, number, pair) == outcome(relation, pair), (relation.code, pair)
    nulls = ((relations.LOAD, 0), (relations.LOAD_F, 1))
    of = flat(tuple(Relation((*nulls, (relations.COMPARE_F, k))) for k in range(len(COMPARES))))
    for number, op in enumerate(COMPARES):
        assert in_kernel(of, number, (None, 1.0)) == (op == "IS DISTINCT FROM")
        assert in_kernel(of, number, (None, None)) == (op == "<=>")


def drawn(chance: random.Random, depth: int, values: list[Value], floating: bool) -> Code:
    """A program that leaves one number; what it reads is added to the values."""
    if depth == 0 or chance.random() < 0.15:
        if not floating and chance.random() < 0.3:
            return ((relations.INT, chance.randint(-3, 3)),)
        value: Value = chance.choice(FLOATS if floating else whole_numbers(32))
        values.append(None if not floating and chance.random() < 0.1 else value)
        return ((relations.LOAD_F if floating else relations.LOAD, len(values) - 1),)
    one = drawn(chance, depth - 1, values, floating)
    mode = chance.choice(MODES)
    if floating and chance.random() < 0.2:
        return (*drawn(chance, depth - 1, values, False), (relations.TO_F, 4 * 64))
    if chance.random() < 0.2:
        return (*one, (relations.NEG_F, 0) if floating else (relations.NEG, 4 * 64 + mode))
    other = drawn(chance, depth - 1, values, floating)
    if chance.random() < 0.2:
        return (*one, *other, (relations.LEAST_F if floating else relations.GREATEST, 2))
    op = chance.randint(relations.ADD_F, relations.MOD_F) if floating else chance.randint(relations.ADD, relations.PMOD)
    return (*one, *other, (op, 4 * 64 + mode))


@pytest.mark.parametrize("floating", [False, True])
def test_at_random(floating: bool) -> None:
    chance, asked = random.Random(floating), []
    for _ in range(300):
        values: list[Value] = []
        asked.append((drawn(chance, 4, values, floating), values))
    with np.errstate(all="ignore"):
        check(asked)
