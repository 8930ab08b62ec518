"""Conditions on aggregates that runs can answer themselves, with registers (runtime.automata.measuring).

    COUNT(b) >= 3 OR SUM(b.v) > 2 * …     the first side is one, the second is not
    MAX(a.v) <= MIN(b.v)                  two registers of the same values

A side compares COUNT, SUM, MIN, MAX or AVG of one column of one variable (or COUNT(x), COUNT(*)) with a number, or with
another such aggregate. Values are whole numbers, decimals of up to 18 digits, floating numbers, and for MIN and MAX of
two sides also dates and times. All else is Spark's, on matches that are listed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from math import prod

from cersql.binding.booleans import MAX_CLAUSES, Bool, OrOf, conjunctive
from cersql.binding.comparisons import NOT, unwrapped
from cersql.binding.conditions import Conditions
from cersql.binding.expressions import Call, Node, Ref, Word, walk
from planner import cel
from planner.acel import Aggregate
from planner.formula import Formula
from planner.terms import Measure, Register

_WHOLE = frozenset({"tinyint", "smallint", "int", "bigint"})
_FLOATING = frozenset({"float", "double"})
_TIMES = frozenset({"date", "timestamp", "timestamp_ntz"})
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_NUMBER = re.compile(r"\d{1,18}(?:\.\d{1,9})?")
_OPS = {"=": "=", "==": "=", "<>": "<>", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_FLIPPED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_FUNCTIONS = frozenset({"COUNT", "SUM", "MIN", "MAX", "AVG", "MEAN"})


Clauses = tuple[tuple[Measure, ...], ...]  # an AND of ORs


def measures(clause: OrOf, conditions: Conditions) -> Clauses | None:
    """An OR, whose sides may have AND and OR in them, as an AND of ORs; None where some side is Spark's."""
    sides = [conjunctive(part, lambda _: False, positive) for part, positive in clause]
    if prod(map(len, sides)) > MAX_CLAUSES:
        return None
    found = []
    for choice in product(*sides):
        own = [_measure(part, positive, conditions) for ors in choice for part, positive in ors]
        if any(side is None for side in own):
            return None
        found.append(tuple(side for side in own if side is not None))
    return tuple(found)


def numbers_of_events(clause: OrOf, conditions: Conditions, formula: Formula) -> Clauses | None:
    """The same of a condition on the match that only counts events; created ones are not seen by runs."""
    named = {node.function for part, _ in clause for node in walk(part.nodes) if isinstance(node, Call)}
    if named != {"COUNT"} or formula.contains((Aggregate,)):
        return None
    found = measures(clause, conditions)
    registers = [side.left for sides in found or () for side in sides]
    return found if all(one.sql is None for one in registers) else None


def held_by_runs(clause: OrOf, conditions: Conditions, formula: Formula) -> Clauses | None:
    """The same of any condition on the match that runs can answer."""
    if formula.contains((Aggregate, cel.NotBefore, cel.NotAfter)):
        return None
    return measures(clause, conditions)


def _measure(part: Bool, positive: bool, conditions: Conditions) -> Measure | None:
    nodes = unwrapped(part.nodes)
    at = [k for k, node in enumerate(nodes) if isinstance(node, Word) and node.upper in _OPS]
    if part.parts or len(at) != 1:
        return None
    op = _OPS[nodes[at[0]].upper]  # type: ignore[union-attr]
    op = op if positive else NOT[op]
    left, right = (_operand(side, conditions) for side in (nodes[: at[0]], nodes[at[0] + 1 :]))
    if isinstance(left, Fraction) and isinstance(right, Register):
        left, op, right = right, _FLIPPED[op], left
    if not isinstance(left, Register) or right is None:
        return None
    if isinstance(right, Register):
        return Measure(left, op, right) if _unit(left) == _unit(right) else None
    number = _in_unit(left, right)
    return None if number is None else Measure(left, op, number)


def _operand(nodes: Sequence[Node], conditions: Conditions) -> Register | Fraction | None:
    nodes = unwrapped(tuple(nodes))
    words = [node.token.text for node in nodes if isinstance(node, Word)]
    if nodes and len(words) == len(nodes):
        negative, digits = words[0] == "-", "".join(words[words[0] == "-" :])
        return Fraction(digits) * (-1 if negative else 1) if _NUMBER.fullmatch(digits) else None
    if len(nodes) != 1 or not isinstance(nodes[0], Call):
        return None
    call = nodes[0]
    if call.function not in _FUNCTIONS or call.distinct or call.order or call.where or call.column is not None:
        return None
    function = "AVG" if call.function == "MEAN" else call.function
    (argument, *others) = call.arguments or (None,)
    if others:
        return None
    if isinstance(argument, Word) and argument.token.text == "*":
        return Register("COUNT", None) if function == "COUNT" else None
    if not isinstance(argument, Ref) or argument.index is not None or argument.condition is not None:
        return None
    if argument.variable in conditions.created or argument.column == "*":
        return None
    if argument.column is None:
        return Register("COUNT", argument.variable) if function == "COUNT" else None
    type = conditions.row_column(argument.variable, *conditions.named_column(argument)).type
    if not _takes(function, type):
        return None
    return Register(function, argument.variable, conditions.row_sql([argument]).text, type)


def _takes(function: str, type: str) -> bool:
    decimal = _DECIMAL.fullmatch(type)
    if function == "COUNT" or type in _WHOLE | _FLOATING:
        return type in _WHOLE | _FLOATING | _TIMES
    return (function in ("MIN", "MAX", "SUM") and decimal is not None and int(decimal[1]) <= 18) or (
        function in ("MIN", "MAX") and type in _TIMES
    )


def _unit(register: Register) -> str:
    """What its value is in: two that are alike can be compared."""
    if register.function == "COUNT":
        return "whole"
    if register.function == "AVG" or register.type in _FLOATING:
        return "floating"
    return "whole" if register.type in _WHOLE else register.type


def _in_unit(register: Register, number: Fraction) -> int | float | Fraction | None:
    """A number as the register has it: of DECIMAL(10,2) 1.5 is 150."""
    unit = _unit(register)
    if unit == "floating":
        return float(number)
    decimal = _DECIMAL.fullmatch(unit)
    if decimal is None and unit != "whole":
        return None
    return number * 10 ** int(decimal[2]) if decimal is not None else number
