"""Conditions on aggregates of a match as bounds on sums, by which matches are left out where they are listed.

    SUM(b.x) > 1000       weights b: x,           more than 1000
    AVG(b.x) <= 2.5       weights b: 2·x - 5,     at most 0
    MAX(b.x) < 7          weights b: x >= 7,      0 of them
    MIN(b.x) < 7          weights b: x < 7,       1 of them and more
    SUM(b.x) > a.y        weights b: x, a: -y,    more than 0
    COUNT(b) >= 3         weights b: 1,           3 and more

A match that is left out fails; what is listed Spark still decides, with NULLs and rounding of its own. So a condition
that has no such form (an OR, STDDEV, SUM times SUM) has none, and bounds may be wider than what it says. There is none
either where matches are chosen by what is listed, nor where runs go side by side.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal, cast

from planner import cel
from planner.acel import Aggregate, Judged
from planner.formula import Formula
from planner.query import Query
from planner.terms import Measure, Register
from runtime.pcea import Parallel
from runtime.program import Later, Program
from runtime.sieve import Bounded, Weight

Op = Literal["<", "<=", ">", ">=", "="]
FLIPPED: dict[Op, Op] = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
MOST_NUMBER = 1 << 49  # of values: up to here each whole number is a DOUBLE, with room for factors
ROUNDED = 1e-4  # the average of decimals is rounded to four digits more than they have
MOST_PARTS = 1_000  # into which the number beside an average is cut
FLOATING = ("float", "double")
WHOLE = ("tinyint", "smallint", "int", "bigint")
OTHERS = ("boolean", "date", "timestamp", "timestamp_ntz")
WORDS = re.compile(r"`[^`]*`|\w+(?:\.\d+)?|\S")
TOTAL = {
    *"()+-*=<>!", "CASE", "WHEN", "THEN", "ELSE", "END", "CAST", "AS", "DOUBLE", "AND", "OR", "NOT", "IS",
    "NULL", "TRUE", "FALSE",
}  # fmt: skip
LITERAL = re.compile(r"(DATE|TIMESTAMP|TIMESTAMP_NTZ) *'[^']*'", re.IGNORECASE)
REPEATED = (cel.Or, cel.And, cel.Iteration, cel.ContiguousIteration, cel.Repeat)  # what has parts several times, or not
ALL = ""  # the events of all variables


@dataclass(frozen=True)
class Sieve:
    """The bounds, and what is read of each row for them: (variable, SQL). `is_sharp`: all that is asked is one bound on
    one side, so that what is listed holds, but for rounding and NULLs."""

    conditions: tuple[Bounded, ...] = ()
    columns: tuple[tuple[str, str], ...] = ()
    is_sharp: bool = False


NO_SIEVE = Sieve()


def sieve(asked: Query, query: Query, program: Program, later: Later | None) -> Sieve:
    """Of `query`, whose matches the program lists. WHERE is asked before matches compete, HAVING of those that are
    left: there `asked` chooses none."""
    if not _lists_alone(program):
        return NO_SIEVE
    having = () if later is not None or query.groups is not None or query is not asked else query.having_asks
    of_rounds = [clauses for number, clauses in query.round_asks if _is_whole(query.formula, number, clauses)]
    builder = _Builder(query, program)
    for clauses in (*query.asks, *having, *of_rounds):
        for sides in clauses or ():
            if len(sides) == 1:
                builder.add(sides[0])
    n_asked = len(query.on_match) + len(query.having) + sum(isinstance(part, Judged) for part in query.formula.walk())
    return Sieve(tuple(builder.conditions), tuple(builder.columns), n_asked == builder.n_one_sided == 1)


def _is_whole(formula: Formula, number: int, clauses: tuple[tuple[Measure, ...], ...]) -> bool:
    """Is a part in every match, once, and with it all events of the variables that it is asked about?"""
    part = _once(formula, number)
    if part is None:
        return False
    registers = [one for sides in clauses for side in sides for one in (side.left, side.right)]
    marks = {one.variable for one in registers if isinstance(one, Register)}
    inside, outside = ([variable for variable, _ in own.bindings()] for own in (part, formula))
    return all(mark is not None and inside.count(mark) == outside.count(mark) for mark in marks)


def _once(formula: Formula, number: int) -> Formula | None:
    """The part of this number, if it is in every match, once."""
    if isinstance(formula, Aggregate | Judged) and formula.number == number:
        return formula
    if isinstance(formula, REPEATED):
        return None
    return next((found for inner in formula.positive() if (found := _once(inner, number)) is not None), None)


def _lists_alone(program: Program) -> bool:
    """Do matches depend on no other that is listed, and can walks weigh their events?"""
    chooses = program.choose != "ALL" or program.pick != "ALL" or program.skip is not None or program.consume
    return not (
        chooses
        or program.timeouts is not None
        or program.most_at_end is not None
        or isinstance(program.machine, Parallel)  # of which one event can be several
    )


class _NoBound(Exception):
    """It is no bound on a sum."""


class _Builder:
    def __init__(self, query: Query, program: Program) -> None:
        self._columns = query.columns
        self._single = {variable.mark for variable in query.variables if variable.single}
        self._known = set(program.variables)
        if query.created is None and all(label.intersection(query.marks) for label in program.labels):
            self._known.add(ALL)
        self.columns: list[tuple[str, str]] = []
        self.conditions: list[Bounded] = []
        self.n_one_sided = 0

    def add(self, side: Measure) -> None:
        """Add what it says, if that is a bound."""
        n = len(self.columns)
        try:
            found = self._bounds(side)
        except _NoBound:
            del self.columns[n:]
            return
        self.n_one_sided += len(found) == 1 and not (math.isfinite(found[0].low) and math.isfinite(found[0].high))
        self.conditions += found
        if side.left.function != "COUNT" and all(map(_holds_of_none, found)):
            self.conditions.append(_some(_known(found[0].weights[0])))

    def _bounds(self, side: Measure) -> list[Bounded]:
        left, right = side.left, side.right
        if left.truth:
            return [self._truth(left, side.op)]
        if side.op not in FLIPPED and side.op != "=":
            raise _NoBound
        op = cast(Op, side.op)
        if _aggregates(left, ("MIN", "MAX")) and not self._is_value(left, right):
            return self._extreme(left, op, right)
        if isinstance(right, Register):
            digits = max(_digits(left), _digits(right))
            return [_between(op, (self._sum(left, digits), _negated(self._sum(right, digits))), 0.0)]
        if _aggregates(left, ("AVG", "AVG OF DECIMAL")):
            return self._average(left, op, right)
        return [_between(op, (self._sum(left, _digits(left)),), float(right))]

    def _is_value(self, left: Register, right: Register | int | float | Fraction) -> bool:
        """Is it MAX of one event, which is its value, beside something that is a sum?"""
        return isinstance(right, Register) and not right.constant and left.variable in self._single

    def _column(self, register: Register, beside: str = "") -> int:
        """The number of the column with the register's values; `beside`: with 1 where they are so, NULL elsewhere."""
        variable, made = register.variable, register.sql
        if variable is None or variable not in self._known or register.own is not None:
            raise _NoBound
        # Of a truth value 1 or 0 is made, which cannot fail; of a DOUBLE a whole number can.
        asked = made.removeprefix("CAST(").removesuffix(" AS INT)") if made is not None and register.truth else made
        if made is None or asked is None or not self._is_total(asked):
            raise _NoBound
        if beside:
            made = f"CASE WHEN ({made}) {beside} THEN 1 END"
        if (variable, made) not in self.columns:
            self.columns.append((variable, made))
        return self.columns.index((variable, made))

    def _is_total(self, sql: str) -> bool:
        """Can it be computed of any row? Bounds must raise no error, where no match may ask for what they read."""
        columns = {column.name: column.type for column in self._columns}
        types, words = set(), WORDS.findall(sql)
        for word in words:
            name = word.strip("`")
            if name in columns and word.upper() not in TOTAL:
                types.add(columns[name])
            elif word.upper() not in TOTAL and not word[0].isdigit():
                return False
        kinds = FLOATING if {"+", "-", "*"}.intersection(words) else (*FLOATING, *WHOLE, *OTHERS)
        return all(type in kinds or (type.startswith("decimal") and kinds is not FLOATING) for type in types)

    def _value(self, register: Register, digits: int | None = None) -> Weight:
        """What is summed up, with so many digits after the point as a whole number: by itself those that it has."""
        whole = register.type not in FLOATING
        factor = 10.0 ** (_digits(register) if digits is None else digits)
        return Weight(register.variable, self._column(register), factor, whole=whole)

    def _sum(self, register: Register, digits: int) -> Weight:
        if register.constant or (register.variable or ALL) not in self._known:
            raise _NoBound
        if register.function == "COUNT":
            if register.sql is None:
                return Weight(register.variable, shift=10.0**digits, whole=True)
            return Weight(register.variable, self._column(register), 0.0, 10.0**digits, whole=True)
        of_one = _aggregates(register, ("MAX",)) and register.variable in self._single
        if not of_one and not _aggregates(register, ("SUM", "SUM OF DECIMAL")):
            raise _NoBound
        if register.type not in (*FLOATING, *WHOLE) and not _is_decimal(register):
            raise _NoBound
        return self._value(register, digits)

    def _average(self, register: Register, op: Op, number: int | float | Fraction) -> list[Bounded]:
        """Σ(x - n), of decimals by how Spark rounds the average to four digits more."""
        weight, of_decimals = self._value(register), _aggregates(register, ("AVG OF DECIMAL",))
        n = Fraction(number) / (10_000 if of_decimals else 1)
        if of_decimals:
            ops: tuple[Op, ...] = ("<=", ">=") if op == "=" else (op,)
            shifts = [float(-n) + (-ROUNDED if one[0] == "<" else ROUNDED) for one in ops]
            weights = [replace(weight, whole=False, shift=shift) for shift in shifts]
            return [replace(_between(one, (own,), 0.0), strict=False) for one, own in zip(ops, weights, strict=True)]
        if n.denominator > MOST_PARTS or abs(n.numerator) > MOST_NUMBER:
            return [_between(op, (replace(weight, whole=False, shift=float(-n)),), 0.0)]
        own = replace(weight, factor=weight.factor * n.denominator, shift=float(-n.numerator))
        return [_between(op, (own,), 0.0)]

    def _extreme(self, register: Register, op: Op, right: Register | int | float | Fraction) -> list[Bounded]:
        """No value, or at least one, on one side of a number."""
        if op == "=":
            outside: Op = "<" if register.function == "MIN" else ">"
            return [_none(self._test(register, outside, right)), _some(self._test(register, "=", right))]
        if (register.function == "MIN") == (op in ("<", "<=")):
            return [_some(self._test(register, op, right))]
        return [_none(self._test(register, FLIPPED[op], right))]

    def _test(self, register: Register, op: Op, right: Register | int | float | Fraction) -> Weight:
        """1 for each row whose value is so."""
        if isinstance(right, Register):
            if not right.constant or not LITERAL.fullmatch(right.sql or ""):
                raise _NoBound
            return Weight(register.variable, self._column(register, f"{op} {right.sql}"), whole=True)
        number = float(right)
        if abs(number) > MOST_NUMBER:
            raise _NoBound
        return replace(self._value(register), op=op, number=number)

    def _truth(self, register: Register, op: str) -> Bounded:
        """BOOL_AND and BOOL_OR, as MIN and MAX of 0 and 1, are 1 or not."""
        if op not in ("=", "<>") or register.function not in ("MIN", "MAX") or register.own is not None:
            raise _NoBound
        is_min = register.function == "MIN"
        weight = replace(self._value(register), op="<" if is_min else ">=", number=1.0)
        return _none(weight) if (op == "=") == is_min else _some(weight)


def _aggregates(register: Register, functions: tuple[str, ...]) -> bool:
    return register.function in functions and not register.truth and not register.constant


def _is_decimal(register: Register) -> bool:
    return register.type.startswith("decimal")


def _digits(register: Register) -> int:
    """After the point, of what it gives."""
    if register.function == "COUNT":
        return 0
    return int(register.type.rstrip(")").split(",")[1]) if _is_decimal(register) else 0


def _negated(weight: Weight) -> Weight:
    return replace(weight, factor=-weight.factor, shift=-weight.shift)


def _between(op: Op, weights: tuple[Weight, ...], number: float) -> Bounded:
    low = number if op in (">", ">=", "=") else -math.inf
    high = number if op in ("<", "<=", "=") else math.inf
    return Bounded(weights, low, high, strict=op in ("<", ">"))


def _holds_of_none(bound: Bounded) -> bool:
    """Does a sum of nothing pass, which Spark has as NULL?"""
    return bound.low < 0 < bound.high if bound.strict else bound.low <= 0 <= bound.high


def _known(weight: Weight) -> Weight:
    """1 for each value that is not NULL."""
    return Weight(weight.variable, weight.column, 0.0, 1.0, whole=True)


def _none(weight: Weight) -> Bounded:
    return Bounded((weight,), high=0.0)


def _some(weight: Weight) -> Bounded:
    return Bounded((weight,), low=1.0)
