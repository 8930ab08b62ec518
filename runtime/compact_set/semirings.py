"""Semirings over the compact set: an aggregate over all matches of a set, without listing any ([ACEL] Section 4).

A node of the compact set stands for many matches. What an aggregate needs of them is a few *values*, and each way to
make a node says what becomes of these:

    output (event, child)   every match of the child gets one event more: SUM' = SUM + v · matches, MIN' = min(MIN, v)
    union (left, right)     the matches of both: SUM + SUM, min(MIN, MIN)
    product (left, right)   each with each: SUM · matches + matches · SUM, min(MIN, MIN)

So `A+ a ; B b` over a thousand A has 2¹⁰⁰⁰ − 1 matches in some thousand nodes, and MAX(a.x) is read off after as many
steps. `TABLE` says which values each aggregate is made of; a new one is a line there.

Three kinds of values:
- *exact* numbers (how many matches, sums of whole numbers and of decimals) are kept as residues by five primes below
  2³¹, from which any number of less than 154 bits comes back; so there is no overflow on the way, and no 128-bit
  arithmetic. Beside them stands the sum of the absolute values as a *scaled* number: whatever that is below LIMIT came
  back right, and the rest is an error. Roads not taken: two limbs of 64 bits (four products and their carries for each
  event, and warnings wherever the kernels run without a compiler); one float, which is right to 53 bits only. Where no
  exact number is asked, as for AVG of a DOUBLE or MAX, there are no residues;
- *scaled* numbers, part · 2^(500 · power), for DOUBLEs: they overflow nowhere, so AVG over 2^100000 matches is right;
- the *row* that holds the least or the greatest value.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

import numpy as np

from runtime.arrays import AnyArray, IntArray
from runtime.jit import inlined

PRIMES = (2147483647, 2147483629, 2147483587, 2147483579, 2147483563)  # the greatest below 2³¹
N_PRIMES = len(PRIMES)
_MODULI = np.array(PRIMES, np.int64)
STEP = 500  # bits by which a scaled number is shifted at a time
LIMIT = 2.0**150  # less than half the product of the primes, by more than any rounding
DIGITS = 38  # of the widest DECIMAL

Kind = Literal["exact", "scaled", "least", "greatest"]


class Part(NamedTuple):
    """A value of an aggregate. `ones`: of each event that has a value 1 is added, in place of the value."""

    kind: Kind
    ones: bool = False


TABLE: Mapping[str, tuple[Part, ...]] = MappingProxyType({
    "COUNT": (Part("exact", ones=True),),
    "SUM": (Part("exact"), Part("scaled", ones=True)),  # the second: is there any value, or is it NULL?
    "SUM OF DOUBLE": (Part("scaled"), Part("scaled", ones=True)),
    "AVG": (Part("exact"), Part("exact", ones=True)),
    "AVG OF DOUBLE": (Part("scaled"), Part("scaled", ones=True)),
    "MIN": (Part("least"),),
    "MAX": (Part("greatest"),),
})  # fmt: skip


class Cells(NamedTuple):
    """Values, a row for each cell. The first exact number is that of matches, and the scaled numbers begin with the
    absolute values of the exact ones. `key`: what the matches of a cell agree on (runtime.compact_set.trends)."""

    key: IntArray  # int64[c]
    residue: AnyArray  # uint32[c, exact, N_PRIMES], or [c, exact, 0] where none is asked
    part: AnyArray  # float64[c, exact + scaled]
    power: AnyArray  # int32[c, exact + scaled]
    row: IntArray  # int64[c, rows]: -1 for none


class Shape(NamedTuple):
    """How many values of each kind a cell has; `primes`: N_PRIMES, or 0 where no exact number is asked."""

    exact: int
    primes: int
    scaled: int
    rows: int


def new_cells(capacity: int, shape: Shape) -> Cells:
    """Cells whose values are those of no match."""
    n_exact, n_primes, n_scaled, n_rows = shape
    return Cells(
        key=np.zeros(capacity, np.int64),
        residue=np.zeros((capacity, n_exact, n_primes), np.uint32),
        part=np.zeros((capacity, n_exact + n_scaled), np.float64),
        power=np.zeros((capacity, n_exact + n_scaled), np.int32),
        row=np.full((capacity, n_rows), -1, np.int64),
    )


def grown_cells(cells: Cells, capacity: int) -> Cells:
    """A copy with room for `capacity` cells."""
    n_exact, n_primes = cells.residue.shape[1:]
    more = new_cells(capacity, Shape(n_exact, n_primes, cells.part.shape[1] - n_exact, cells.row.shape[1]))
    for old, new in zip(cells, more, strict=True):
        new[: len(old)] = old
    return more


class Lift(NamedTuple):
    """What an event adds to a match, by its row and its label.

    `counts`: does a label bind the variable of a number, exact ones first (the first is that of matches: never);
    `picks`: of a least or greatest. `exact`: the values as residues; `size`: all numbers as they are, of exact ones the
    absolute value. `rank`: of a row, -1 where there is no value; for a greatest it is turned round, so that the least
    wins. `shift`: what an event adds to its match's key, by label whether (`shifts`), and at the first event `begins`:
    that below which nothing lies, if its label is one that `opens` a match.
    """

    counts: AnyArray  # bool[labels, exact + scaled]
    picks: AnyArray  # bool[labels, rows]
    shifts: AnyArray  # bool[labels, keys]
    exact: AnyArray  # uint32[rows, exact, N_PRIMES], or [rows, exact, 0]
    size: AnyArray  # float64[rows, exact + scaled]
    rank: IntArray  # int64[rows, rows]
    shift: IntArray  # int64[rows, keys]
    begins: IntArray  # int64[rows], or empty
    opens: AnyArray  # bool[labels]


# ---------------------------------------------------------------- scaled numbers


@inlined
def scaled(part, power):
    """The same number with a part of at most 2^STEP; infinities and NaN stay."""
    while abs(part) > 2.0**STEP and abs(part) <= 1.7976931348623157e308:
        part *= 2.0**-STEP
        power += 1
    return part, power


@inlined
def scaled_sum(part, power, other, at):
    """The sum of two scaled numbers."""
    if part == 0.0:
        return other, at
    if other == 0.0:
        return part, power
    if power < at:
        part, power, other, at = other, at, part, power
    if power == at:
        part += other
    elif power == at + 1:
        part += other * 2.0**-STEP
    elif not abs(other) <= 1.7976931348623157e308:
        part += other
    return scaled(part, power)


@inlined
def scaled_product(part, power, other, at):
    """The product of two scaled numbers, the second a number of matches."""
    if part == 0.0:
        return 0.0, np.int64(0)
    return scaled(part * other, power + at)


# ---------------------------------------------------------------- cells


@inlined
def n_residues(cells):
    """How many numbers are kept as residues: all exact ones, or none."""
    return cells.residue.shape[1] if cells.residue.shape[2] > 0 else 0


@inlined
def copy_cell(source, a, target, to):
    """Write a cell over another."""
    target.key[to] = source.key[a]
    for k in range(n_residues(source)):
        for p in range(N_PRIMES):
            target.residue[to, k, p] = source.residue[a, k, p]
    for k in range(source.part.shape[1]):
        target.part[to, k] = source.part[a, k]
        target.power[to, k] = source.power[a, k]
    for k in range(source.row.shape[1]):
        target.row[to, k] = source.row[a, k]


@inlined
def pick(lift, k, a, b):
    """Of two rows (-1: none) that whose value is the least; of equal ones the first of the two."""
    if a < 0:
        return b
    if b < 0 or lift.rank[a, k] <= lift.rank[b, k]:
        return a
    return b


@inlined
def add_cell(lift, source, a, target, to):
    """The matches of a cell join those of another."""
    for k in range(n_residues(source)):
        for p in range(N_PRIMES):
            total = np.int64(target.residue[to, k, p]) + np.int64(source.residue[a, k, p])
            target.residue[to, k, p] = total - PRIMES[p] if total >= PRIMES[p] else total
    for k in range(source.part.shape[1]):
        part, power = scaled_sum(
            target.part[to, k], np.int64(target.power[to, k]), source.part[a, k], np.int64(source.power[a, k])
        )
        target.part[to, k], target.power[to, k] = part, power
    for k in range(source.row.shape[1]):
        target.row[to, k] = pick(lift, k, target.row[to, k], source.row[a, k])


@inlined
def extend_cell(lift, cells, to, row, label):
    """Every match of a cell gets an event."""
    n_exact = n_residues(cells)
    for k in range(cells.part.shape[1]):
        size = lift.size[row, k]
        if not lift.counts[label, k] or size == 0.0:
            continue
        if k < n_exact:
            for p in range(N_PRIMES):
                added = np.int64(cells.residue[to, 0, p])
                if size != 1.0 or lift.exact[row, k, p] != 1:
                    added = added * np.int64(lift.exact[row, k, p]) % PRIMES[p]
                total = np.int64(cells.residue[to, k, p]) + added
                cells.residue[to, k, p] = total - PRIMES[p] if total >= PRIMES[p] else total
        part, power = scaled(size, np.int64(0))
        part, power = scaled_product(part, power, cells.part[to, 0], np.int64(cells.power[to, 0]))
        part, power = scaled_sum(cells.part[to, k], np.int64(cells.power[to, k]), part, power)
        cells.part[to, k], cells.power[to, k] = part, power
    for k in range(cells.row.shape[1]):
        if lift.picks[label, k] and lift.rank[row, k] >= 0:
            cells.row[to, k] = pick(lift, k, cells.row[to, k], row)


@inlined
def multiply_cells(lift, cells, a, b, to):
    """Each match of one cell with each of another."""
    cells.key[to] = cells.key[a] + cells.key[b]
    n_exact = n_residues(cells)
    for k in range(cells.part.shape[1]):
        if k < n_exact:
            for p in range(N_PRIMES):
                m, n = np.int64(cells.residue[a, 0, p]), np.int64(cells.residue[b, 0, p])
                made = m * n % PRIMES[p]
                if k > 0:
                    made = np.int64(cells.residue[a, k, p]) * n % PRIMES[p]
                    made = (made + np.int64(cells.residue[b, k, p]) * m % PRIMES[p]) % PRIMES[p]
                cells.residue[to, k, p] = made
        m, at = cells.part[a, 0], np.int64(cells.power[a, 0])
        n, by = cells.part[b, 0], np.int64(cells.power[b, 0])
        part, power = scaled_product(cells.part[a, k], np.int64(cells.power[a, k]), n, by)
        if k > 0:
            other, of = scaled_product(cells.part[b, k], np.int64(cells.power[b, k]), m, at)
            part, power = scaled_sum(part, power, other, of)
        cells.part[to, k], cells.power[to, k] = part, power
    for k in range(cells.row.shape[1]):
        cells.row[to, k] = pick(lift, k, cells.row[a, k], cells.row[b, k])


# ---------------------------------------------------------------- numbers in and out


def residues_of(numbers: IntArray) -> AnyArray:
    """uint32[n, N_PRIMES] of int64 numbers."""
    return np.mod(numbers[:, None], _MODULI[None, :]).astype(np.uint32)


def residues_of_wide(low: AnyArray, high: IntArray) -> AnyArray:
    """The same of numbers of 128 bits, as a decimal holds them: uint64 and int64."""
    found = np.zeros((len(low), N_PRIMES), np.int64)
    for p, prime in enumerate(PRIMES):
        word = pow(2, 64, prime)
        found[:, p] = (np.mod(high, prime) * word % prime + (low % np.uint64(prime)).astype(np.int64)) % prime
    return found.astype(np.uint32)


def numbers_of(cells: Cells, k: int) -> tuple[AnyArray, IntArray, AnyArray]:
    """The exact numbers k of all cells: uint64 and int64, as a decimal holds them, and bool[n], which do not fit 38
    digits."""
    residue, part = cells.residue[:, k].astype(np.int64), cells.part[:, k]
    fits = (cells.power[:, k] == 0) & (part < LIMIT)
    first, second = PRIMES[:2]
    # Two primes are enough below 2⁶⁰, and arrays do it.
    small = residue[:, 0] + first * (np.mod(residue[:, 1] - residue[:, 0], second) * pow(first, -1, second) % second)
    small = np.where(small > first * second // 2, small - first * second, small)
    low, high = small.view(np.uint64).copy(), np.where(small < 0, -1, 0)
    for i in np.flatnonzero(fits & (part >= 2.0**60)).tolist():
        number = _combined(residue[i].tolist())
        if abs(number) >= 10**DIGITS:
            fits[i] = False
            continue
        low[i], high[i] = number & (2**64 - 1), number >> 64
    return low, high, ~fits


_PRODUCT = 1
for _prime in PRIMES:
    _PRODUCT *= _prime


def _combined(residues: list[int]) -> int:
    """The number of least absolute value that has these residues (the Chinese remainder theorem)."""
    total = 0
    for residue, prime in zip(residues, PRIMES, strict=True):
        others = _PRODUCT // prime
        total += residue * others * pow(others, -1, prime)
    total %= _PRODUCT
    return total - _PRODUCT if total > _PRODUCT // 2 else total


def doubles_of(cells: Cells, k: int) -> AnyArray:
    """The scaled numbers k of all cells as float64, infinite where they are too large for it."""
    with np.errstate(over="ignore"):
        found: AnyArray = np.ldexp(cells.part[:, k], STEP * cells.power[:, k])
    return found
