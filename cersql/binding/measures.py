"""Conditions on aggregates that runs can answer themselves, with registers (runtime.automata.measuring).

    COUNT(b) >= 3 OR SUM(b.v) > 2 * …     the first side is one, the second is not
    MAX(a.v) <= MIN(b.v), SUM(b.v) > a.v  two registers; a.v is one, too, where a is one event
    BOOL_AND(b.ok), NOT BOOL_OR(b.v > 1)  such an aggregate is a side by itself

A side compares an aggregate that is a monoid (the table of cersql.binding.aggregates says which are) with a number, a
constant, a column of a variable that is one event, or another such aggregate. It ranges over any expression over one
row, of the events of one variable, also with DISTINCT and FILTER (WHERE …). Values are whole numbers, decimals of up to
18 digits, floating numbers, and for MIN and MAX beside no number also dates and times. All else is Spark's, on matches
that are listed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from math import prod

from cersql.binding.aggregates import Aggregate
from cersql.binding.booleans import MAX_CLAUSES, Bool, OrOf, conjunctive
from cersql.binding.comparisons import NOT, unwrapped
from cersql.binding.conditions import Conditions
from cersql.binding.expressions import Bare, Call, Node, Ref, Together, Word, separated, walk
from cersql.binding.formulas import occurrences
from cersql.binding.own_aggregates import aggregate_named
from cersql.language.lexer import CLOSING, OPENING
from planner import cel
from planner.acel import Aggregate as Aggregation
from planner.formula import Formula
from planner.terms import Measure, Register
from runtime.errors import CersqlError
from runtime.monoids import DISTINCT, MONOIDS, Gives, Monoid
from runtime.own import Own

_WHOLE = frozenset({"tinyint", "smallint", "int", "bigint"})
_FLOATING = frozenset({"float", "double"})
_TIMES = frozenset({"date", "timestamp", "timestamp_ntz"})
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_NUMBER = re.compile(r"\d{1,18}(?:\.\d{1,9})?")
_OPS = {"=": "=", "==": "=", "<>": "<>", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_FLIPPED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_EXACT_DIGITS = 18  # of decimals, that have codes

Clauses = tuple[tuple[Measure, ...], ...]  # an AND of ORs


def measures(clause: OrOf, conditions: Conditions, formula: Formula) -> Clauses | None:
    """An OR, whose sides may have AND and OR in them, as an AND of ORs; None where some side is Spark's. `formula`: of
    whose matches it is asked."""
    sides = [conjunctive(part, lambda _: False, positive) for part, positive in clause]
    if prod(map(len, sides)) > MAX_CLAUSES:
        return None
    reader = _Reader(conditions, _of_one_event(formula))
    found = []
    for choice in product(*sides):
        own = [reader.measure(part, positive) for ors in choice for part, positive in ors]
        if any(side is None for side in own):
            return None
        found.append(tuple(side for side in own if side is not None))
    return tuple(found)


def _of_one_event(formula: Formula) -> frozenset[str]:
    """The variables that every match binds to one event."""
    counts, present = occurrences(formula), formula.always_binds()
    return frozenset(mark for mark, n in counts.items() if n == 1 and mark in present)


def of_aggregates(clause: OrOf, conditions: Conditions, formula: Formula) -> Clauses | None:
    """The same of a condition on the match whose sides are single comparisons, or only count events. What is wrong with
    one is said where it is lowered."""
    if _functions(clause) != {"COUNT"} and any(part.parts for part, _ in clause):
        return None
    try:
        return measures(clause, conditions, formula)
    except CersqlError:
        return None


def _functions(clause: OrOf) -> set[str]:
    return {node.function for part, _ in clause for node in walk(part.nodes) if isinstance(node, Call)}


def numbers_of_events(clause: OrOf, found: Clauses | None, formula: Formula) -> Clauses | None:
    """What was found of a condition that only counts events; created ones are not seen by runs."""
    if _functions(clause) != {"COUNT"} or formula.contains((Aggregation,)):
        return None
    registers = [side.left for sides in found or () for side in sides]
    return found if all(one.sql is None for one in registers) else None


def held_by_runs(clause: OrOf, conditions: Conditions, formula: Formula) -> Clauses | None:
    """The same of any condition on the match that runs can answer."""
    if formula.contains((Aggregation, cel.NotBefore, cel.NotAfter)):
        return None
    return measures(clause, conditions, formula)


@dataclass(frozen=True)
class _Value:
    """What is aggregated: an expression over a row of one variable, or of no row in particular (variable None)."""

    variable: str | None
    sql: str
    type: str


@dataclass(frozen=True)
class _Reader:
    """Reads the sides of one condition; `single`: the variables that are one event."""

    conditions: Conditions
    single: frozenset[str]

    def measure(self, part: Bool, positive: bool) -> Measure | None:
        nodes = unwrapped(part.nodes)
        if part.parts:
            return None
        at = _places(nodes)
        if not at:
            return self._truth(nodes, positive)
        if len(at) != 1:
            return None
        op = _OPS[nodes[at[0]].upper]  # type: ignore[union-attr]
        return self._compared(nodes[: at[0]], op if positive else NOT[op], nodes[at[0] + 1 :])

    def _truth(self, nodes: Sequence[Node], positive: bool) -> Measure | None:
        """An aggregate that is TRUE or FALSE by itself."""
        (only, *others) = nodes
        register = self._aggregate(only) if isinstance(only, Call) and not others else None
        if register is None or not register.truth:
            return None
        return Measure(register, "=" if positive else "<>", 1)

    def _compared(self, left: Sequence[Node], op: str, right: Sequence[Node]) -> Measure | None:
        register = self._register(left)
        if register is None:
            left, op, right = right, _FLIPPED[op], left
            register = self._register(left)
        if register is None or register.truth:
            return None
        other = self._number(right)
        if other is not None:
            number = _in_unit(register, other)
            return None if number is None else Measure(register, op, number)
        beside = self._register(right) or self._constant(right, register)
        alike = beside is not None and not beside.truth and _alike(register, beside)
        return Measure(register, op, beside) if alike and beside is not None else None

    def _number(self, nodes: Sequence[Node]) -> Fraction | None:
        nodes = unwrapped(nodes)
        words = [node.token.text for node in nodes if isinstance(node, Word)]
        if not nodes or len(words) != len(nodes):
            return None
        negative, digits = words[0] == "-", "".join(words[words[0] == "-" :])
        return Fraction(digits) * (-1 if negative else 1) if _NUMBER.fullmatch(digits) else None

    def _register(self, nodes: Sequence[Node]) -> Register | None:
        """An aggregate, or an expression over an event of which there is one: its greatest value is its only one."""
        nodes = unwrapped(nodes)
        if len(nodes) == 1 and isinstance(nodes[0], Call):
            return self._aggregate(nodes[0])
        value = self._value(nodes)
        if value is None or value.variable not in self.single:
            return None
        return _of_values("MAX", value)

    def _constant(self, nodes: Sequence[Node], beside: Register) -> Register | None:
        """What is the same for every row, where the aggregate beside it is of some events: else that is NULL."""
        value = self._value(nodes)
        if value is None or value.variable is not None or beside.variable is None or beside.function == "COUNT":
            return None
        register = _of_values("MAX", _Value(beside.variable, value.sql, value.type))
        return None if register is None else replace(register, constant=True)

    def _aggregate(self, call: Call) -> Register | None:
        known = aggregate_named(call.function)
        if (
            known is None
            or (known.monoid is None and known.own is None)
            or call.order
            or call.ignore_nulls
            or call.column is not None
        ):
            return None
        if known.monoid == "COUNT" and not known.of_true and not call.distinct and not call.where:
            register = self._events(call)
            if register is not None:
                return register
        where = self._value(call.where) if call.where else None
        one = known.monoid == "COUNT" and where is not None and self._counts_events(call, where)
        values = [_Value(where.variable, "1", "int")] if one and where is not None else self._values(call)
        if len(values) != known.values and not (known.values is None and len(values) == 1):
            return None
        first, *keys = values
        if first is None or None in keys or (call.where and where is None):
            return None
        marks = {v.variable for v in (*values, where) if v is not None and v.variable is not None}
        if first.variable is None or len(marks) != 1:
            return None
        return _register_of(known, call.distinct, first, keys[0] if keys else None, where)

    def _values(self, call: Call) -> list[_Value | None]:
        return [self._value(nodes) for nodes in separated(call.arguments)]

    def _counts_events(self, call: Call, where: _Value) -> bool:
        """COUNT(*) or COUNT(b) FILTER (WHERE …) of the same b."""
        (argument, *others) = call.arguments or (None,)
        if others or call.distinct:
            return False
        if isinstance(argument, Word):
            return argument.token.text == "*"
        return isinstance(argument, Ref) and argument.variable == where.variable and argument.column is None

    def _events(self, call: Call) -> Register | None:
        """COUNT(x), COUNT(*)."""
        (argument, *others) = call.arguments or (None,)
        if others:
            return None
        if isinstance(argument, Word) and argument.token.text == "*":
            return Register("COUNT", None)
        if not isinstance(argument, Ref) or argument.index is not None or argument.condition is not None:
            return None
        if argument.variable in self.conditions.created or argument.column is not None:
            return None
        return Register("COUNT", argument.variable)

    def _value(self, nodes: Sequence[Node]) -> _Value | None:
        """An expression over one row."""
        conditions, variables = self.conditions, set[str]()
        for node in nodes:
            if isinstance(node, Call | Together) or (isinstance(node, Word) and node.token.upper == "SELECT"):
                return None
            if isinstance(node, Ref):
                if node.index is not None or node.condition is not None or node.column in (None, "*"):
                    return None
                if node.variable in conditions.created:
                    return None
                variables.add(node.variable)
        if len(variables) > 1 or not nodes or conditions.types is None:
            return None
        variable = next(iter(variables), None)
        only = nodes[0] if len(nodes) == 1 else None
        sql = conditions.row_sql(nodes).text
        if isinstance(only, Ref):
            type = conditions.row_column(only.variable, *conditions.named_column(only)).type
        elif isinstance(only, Bare) and variable is None:
            return None
        else:
            computed = conditions.types.computed(conditions.text, conditions.row_sql(nodes), conditions.columns)
            if not computed.steady:
                return None
            type = computed.column.type or conditions.types.type_of(sql, conditions.columns)
        return _Value(variable, sql, type)


def _register_of(
    known: Aggregate, distinct: bool, value: _Value, key: _Value | None, where: _Value | None
) -> Register | None:
    """A register of the values that it takes, as runs can hold them."""
    sql = value.sql
    if known.of_true:
        sql = f"CASE WHEN {sql} THEN 1 END"
    if where is not None:
        sql = f"CASE WHEN {where.sql} THEN {sql} END"
        if key is not None:
            key = _Value(key.variable, f"CASE WHEN {where.sql} THEN {key.sql} END", key.type)
    if known.own is not None:
        return None if distinct else _of_own(known.own, _Value(value.variable, sql, value.type))
    assert known.monoid is not None
    name = known.monoid
    if distinct and not name.endswith(DISTINCT) and name not in ("MIN", "MAX"):
        name += DISTINCT
    if name == "COUNT" and (sql is not value.sql or not _has_codes(value.type)):  # it takes all there is, but for NULL
        return Register(name, value.variable, f"CASE WHEN ({sql}) IS NOT NULL THEN 1 END", "int")
    return _of_values(name, _Value(value.variable, sql, value.type), key)


def _of_values(name: str, value: _Value, key: _Value | None = None) -> Register | None:
    """FUNCTION(x.sql), where values of this type have codes that mean what they are."""
    base = name.removesuffix(DISTINCT)
    type, sql, scale = value.type, value.sql, _scale(value.type)
    if type == "boolean" and name in ("MIN", "MAX"):
        return Register(name, value.variable, f"CAST({sql} AS INT)", "int", truth=True)
    if name not in MONOIDS or not _has_codes(type):
        return None
    monoid = MONOIDS[name]
    if type in _TIMES and base not in ("MIN", "MAX", "COUNT"):
        return None
    if scale is not None and base in ("SUM", "AVG"):
        name, monoid = name.replace(base, f"{base} OF DECIMAL"), MONOIDS[f"{base} OF DECIMAL"]
    if monoid.exact and type in _FLOATING:
        return None
    if monoid.as_floating and type not in _FLOATING:
        type, sql = "double", f"CAST({sql} AS DOUBLE)"
    if monoid.keyed and (key is None or not _has_codes(key.type)):
        return None
    digits = {Gives.VALUE: scale or 0, Gives.FINER: (scale or 0) + 4}.get(monoid.gives, 0)
    return Register(
        name, value.variable, sql, type, None if key is None else key.sql, "" if key is None else key.type, digits
    )


def _of_own(own: Own, value: _Value) -> Register | None:
    """A user's own function: of whole and floating numbers, which are what they are in a listed match, too."""
    if own.arguments > 1 or value.type not in _WHOLE | _FLOATING or own.type not in _WHOLE | _FLOATING | {"boolean"}:
        return None
    return Register(own.name, value.variable, value.sql, value.type, own=own, truth=own.type == "boolean")


def _monoid(register: Register) -> Monoid:
    return MONOIDS[register.function] if register.own is None else register.own.register


def _has_codes(type: str) -> bool:
    return type in _WHOLE | _FLOATING | _TIMES or _scale(type) is not None


def _scale(type: str) -> int | None:
    """Of a decimal that has a code, its digits after the point."""
    found = _DECIMAL.fullmatch(type)
    return int(found[2]) if found is not None and int(found[1]) <= _EXACT_DIGITS else None


def _kind(register: Register) -> str:
    """What it gives: a number, or a point in time of one type."""
    gives = _monoid(register).gives
    return register.type if register.type in _TIMES and gives is Gives.VALUE else "number"


def _alike(left: Register, right: Register) -> bool:
    return _kind(left) == _kind(right)


def _in_unit(register: Register, number: Fraction) -> int | float | Fraction | None:
    """A number as the register has it: of DECIMAL(10,2) 1.5 is 150."""
    if _kind(register) != "number":
        return None
    gives = _monoid(register).gives
    if gives is Gives.FLOATING or (gives is Gives.VALUE and register.type in _FLOATING):
        return float(number)
    return number * 10**register.scale


def _places(nodes: Sequence[Node]) -> list[int]:
    """Where comparisons stand, outside all parentheses."""
    found, depth = [], 0
    for k, node in enumerate(nodes):
        word = node.upper if isinstance(node, Word) else ""
        depth += (word in OPENING) - (word in CLOSING)
        if depth == 0 and word in _OPS:
            found.append(k)
    return found
