"""Conditions on aggregates inside a pattern: runs hold registers ([ACEL] Section 6, the construction of Theorem 12).

A move that marks an event with the variable of a register combines the event's value into it; a move that ends the
part asks the condition of the registers. In the paper these are the assignment σ and the predicate P of a transition.

    (A a ; B+ b) FILTER SUM(b.v) > 5      value (inner, (sum,))
    on a B with v = 4                     σ: sum ← sum + 4;  where the part ends: P: sum > 5

Runs that have come to the same states with the same registers are one, so an event costs by the number of different
registers, never by that of partial matches. COUNT, MIN and MAX beside a number hold few values (runtime.monoids), so
that states are few, and matches that fail are never listed; SUM and AVG hold all that occur.

A part that can do no better any more is dropped: of `COUNT(b) <= 3` every run that has taken four.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from runtime import nodes
from runtime.automata.machine import REPORT, Machine, Maker, Move, Sighting, Symbol, Value
from runtime.clauses import Measure, Register
from runtime.monoids import MONOIDS, OVERFLOW, Monoid, capped, order, value_of
from runtime.relations import arithmetic_error

_HOLDS = {"=": (0,), "<>": (-1, 1), "<": (-1,), "<=": (-1, 0), ">": (1,), ">=": (0, 1)}


class MeasuredMachine(Machine, of=nodes.Measured):
    """A value is (inner value, the registers)."""

    def __init__(self, node: nodes.Measured, make: Maker) -> None:
        self._inner, self._node = make(node.inner), node
        self._bounds = _bounds(node)
        self._monoids = tuple(map(_monoid, node.registers, self._bounds))
        own = zip(node.registers, self._bounds, strict=True)
        self._only_stands = [bound is not None and r.function in ("MIN", "MAX") for r, bound in own]
        self._identity = tuple(monoid.identity for monoid in self._monoids)

    def initial(self) -> list[Value]:
        return [(value, self._identity) for value in self._inner.initial()]

    def step(self, value: Value, symbol: Symbol) -> list[Move]:
        inner, held = value
        moves = []
        for move in self._inner.step(inner, symbol):
            after = held if move.mask == REPORT else self._taken(held, move.mask, symbol)
            if move.next is not None and not self._is_lost(after):
                moves.append(move._replace(next=(move.next, after), accept=False))
            if move.accept and self._holds(after):
                moves.append(move._replace(next=None))
        return moves

    def at_end(self, value: Value) -> frozenset[Sighting] | None:
        return self._inner.at_end(value[0]) if self._holds(value[1]) else None

    def _taken(self, held: tuple[Any, ...], mask: int, symbol: Symbol) -> tuple[Any, ...]:
        """The registers after an event with these marks."""
        if not any(mask & register.mask for register in self._node.registers):
            return held
        after = list(held)
        for k, (register, monoid) in enumerate(zip(self._node.registers, self._monoids, strict=True)):
            if not mask & register.mask:
                continue
            value = _value(register, symbol)
            if value is not None:
                after[k] = monoid.combine(held[k], monoid.lift(value))
        return tuple(after)

    def _holds(self, held: tuple[Any, ...]) -> bool:
        return any(self._stands(side, held) in _HOLDS[side.op] for side in self._node.sides)

    def _stands(self, side: Measure, held: tuple[Any, ...]) -> int | None:
        """How the left side stands to the right one; None where one is NULL."""
        left = self._lowered(side.left, held)
        if left is None:
            return None
        if self._only_stands[side.left]:
            return int(left)
        if side.other is None:
            return order(left, side.number)
        right = self._lowered(side.other, held)
        return None if right is None else order(*self._alike(side, left, right))

    def _alike(self, side: Measure, left: Any, right: Any) -> tuple[Any, Any]:
        """Two values as what they are compared as: floating beside floating ones, else of one scale."""
        assert side.other is not None
        scales = [self._node.registers[k].scale for k in (side.left, side.other)]
        values = [Fraction(v, 10**s) if s else v for v, s in zip((left, right), scales, strict=True)]
        if any(isinstance(value, float) for value in values):
            values = [float(value) for value in values]
        return values[0], values[1]

    def _lowered(self, k: int, held: tuple[Any, ...]) -> Any:
        value = self._aggregate(k, held)
        if value is OVERFLOW:
            raise arithmetic_error(self._node.shown)
        return value

    def _aggregate(self, k: int, held: tuple[Any, ...]) -> Any:
        return OVERFLOW if held[k] is OVERFLOW else self._monoids[k].lower(held[k])

    def _is_lost(self, held: tuple[Any, ...]) -> bool:
        """Can no event mend it any more?"""
        return all(self._is_lost_side(side, held) for side in self._node.sides)

    def _is_lost_side(self, side: Measure, held: tuple[Any, ...]) -> bool:
        """Of an aggregate that only grows: once it is above the number it will never be below."""
        way = self._monoids[side.left].grows
        if side.other is not None or way == 0 or self._aggregate(side.left, held) in (None, OVERFLOW):
            return False
        return way not in _HOLDS[side.op] and self._stands(side, held) == way


def _value(register: Register, symbol: Symbol) -> Any:
    """What an event gives to a register; None for nothing."""
    if register.term < 0:
        return 0
    code = symbol.value(register.term)
    value = None if code is None else value_of(code, register.floating)
    if register.key < 0:
        return value
    key = symbol.value(register.key)
    return None if key is None else (value, value_of(key, register.floating_key))


def _bounds(node: nodes.Measured) -> tuple[Any, ...]:
    """For each register the one number that it is compared with, if that is all."""
    found: list[set[Any]] = [set() for _ in node.registers]
    for side in node.sides:
        found[side.left].add(None if side.other is not None else side.number)
        if side.other is not None:
            found[side.other].add(None)
    return tuple(next(iter(numbers)) if len(numbers) == 1 else None for numbers in found)


def _monoid(register: Register, bound: Any) -> Monoid:
    if register.own is not None:
        return register.own.register
    return (capped(register.function, bound) if bound is not None else None) or MONOIDS[register.function]
