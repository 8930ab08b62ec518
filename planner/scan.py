"""Conditions as Catalyst writes them → conditions on Arrow columns, where these mean exactly the same.

    (price > 80.5D) AND (type = 'A')    Compare(">", price, 80.5) and Compare("=", type, "A")

What comes in is the SQL of a typed and optimized expression: every cast is written, every literal shows its type. So
nothing is inferred here, but how large a whole number can become. A construct that is not known, or whose meaning in
numpy could differ (arithmetic that may overflow, casts that round, collations, a zone's wall clock), is refused, with
the reason; then Spark evaluates it.
"""

from __future__ import annotations

import operator
import re
import struct
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Literal

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from planner.refusal import Refusal
from runtime.scan import conditions as to

WHOLE = ("tinyint", "smallint", "int", "bigint")
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
MOST_DIGITS = 18  # of a decimal that fits 64 bits
MOST_OFFSET = 26 * 3600 * 1_000_000  # microseconds between a zone's clock and UTC, with some to spare
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_OPERATORS: dict[type[exp.Expr], to.Operator] = {
    exp.EQ: "=", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=", exp.NullSafeEQ: "<=>",
}  # fmt: skip
_ARITHMETIC: dict[type[exp.Expr], Literal["+", "-", "*", "/", "%"]] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%",
}  # fmt: skip
_MIRRORED: dict[to.Operator, to.Operator] = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<=>": "<=>"}
_MATCHERS: dict[type[exp.Expr], to.Matcher] = {
    exp.StartsWith: "starts", exp.EndsWith: "ends", exp.Contains: "contains",
}  # fmt: skip
_LITERALS = {
    exp.DataType.Type.TINYINT: "tinyint", exp.DataType.Type.SMALLINT: "smallint", exp.DataType.Type.BIGINT: "bigint",
    exp.DataType.Type.INT: "int", exp.DataType.Type.FLOAT: "float", exp.DataType.Type.DOUBLE: "double",
    exp.DataType.Type.DATE: "date", exp.DataType.Type.TIMESTAMPTZ: "timestamp",
    exp.DataType.Type.TIMESTAMPNTZ: "timestamp_ntz", exp.DataType.Type.DECIMAL: "decimal",
}  # fmt: skip


class _Unknown(Exception):
    """What is refused, as the reason says it."""


def known_type(type: str) -> bool:
    """Can conditions read a column of this Spark type?"""
    decimal = _DECIMAL.fullmatch(type)
    plain = ("boolean", *WHOLE, "float", "double", "string", "date", "timestamp", "timestamp_ntz")
    return type in plain or (decimal is not None and int(decimal[1]) <= MOST_DIGITS)


def condition(sql: str, columns: Mapping[str, str], instants: Sequence[int] | None = None) -> to.Test | Refusal:
    """`columns`: the Spark types of the columns by name, of fields of structs by their path. A TIMESTAMP is written as
    a wall clock of the session's zone, which may show the same twice a year: `instants` has those of the text in their
    order, in microseconds; None: the zone is UTC."""
    try:
        tree = sqlglot.parse_one(sql, read="spark")
        reader = _Reader(columns, instants)
        test = reader.test(tree)
        if instants is not None and next(reader.instants, None) is not None:
            raise _Unknown("a TIMESTAMP that is not written")
        return test
    except _Unknown as refused:
        return Refusal(f"{refused} is left to Spark")
    except (SqlglotError, RecursionError):
        return Refusal(f"{' '.join(sql.split())[:80]} is left to Spark")


class _Reader:
    def __init__(self, columns: Mapping[str, str], instants: Sequence[int] | None) -> None:
        self._columns, self._is_utc = columns, instants is None
        self.instants = iter(instants or ())

    def test(self, node: exp.Expr) -> to.Test:
        node = node.unnest()
        match node:
            case exp.And() | exp.Or():
                joined = to.And if isinstance(node, exp.And) else to.Or
                sides = [self.test(node.this), self.test(node.expression)]
                return joined(tuple(part for side in sides for part in _parts(side, joined)))
            case exp.Not():
                return to.Not(self.test(node.this))
            case exp.NEQ():
                return to.Not(self._compared("=", node.this, node.expression))
            case exp.Is(this=value, expression=exp.Null()):
                return to.IsNull(self._typed(_normalised(value))[0])
            case exp.In() if node.expressions:
                return self._among(node)
            case exp.StartsWith() | exp.EndsWith() | exp.Contains():
                return self._matches(node)
            case exp.Boolean():
                return to.Flag(to.Constant(bool(node.this)))
            case exp.Null() | exp.Cast(this=exp.Null()):
                return to.Flag(to.Constant(None))
            case exp.Column() | exp.Dot():
                value, kind = self._typed(node)
                if kind == "boolean":
                    return to.Flag(value)
        op = _OPERATORS.get(type(node))
        if op is not None:
            return self._compared(op, node.this, node.expression)
        raise _Unknown(_shown(node))

    def _compared(self, op: to.Operator, left: exp.Expr, right: exp.Expr) -> to.Test:
        (one, type), (other, its) = self._typed(left), self._typed(right)
        if not _comparable(type, its) or not (to.columns_of(one) | to.columns_of(other)):
            raise _Unknown(f"a comparison of {type} and {its}")
        if isinstance(one, to.Constant):
            one, other, op = other, one, _MIRRORED[op]
        return to.Compare(op, one, other)

    def _among(self, node: exp.In) -> to.Test:
        value, type = self._typed(node.this)
        among = []
        for item in node.expressions:
            constant, its = self._typed(item)
            if not _comparable(type, its) or not isinstance(constant, to.Constant) or constant.value is None:
                raise _Unknown(_shown(node))
            among.append(constant)
        if not to.columns_of(value):
            raise _Unknown(_shown(node))
        return to.In(value, tuple(among))

    def _matches(self, node: exp.Expr) -> to.Test:
        (value, of), (text, its) = self._typed(node.this), self._typed(node.expression)
        if (of, its) != ("string", "string") or not isinstance(value, to.Column) or not isinstance(text, to.Constant):
            raise _Unknown(_shown(node))
        return to.Matches(_MATCHERS[type(node)], value, str(text.value))

    # ------------------------------------------------------------ values

    def _typed(self, node: exp.Expr) -> tuple[to.Value, str]:
        """A value and its Spark type."""
        node = node.unnest()
        match node:
            case exp.Column() | exp.Dot():
                return self._column(node)
            case exp.Boolean():
                return to.Constant(bool(node.this)), "boolean"
            case exp.Literal(is_string=True):
                if "\\" in node.this or not node.this.isprintable():
                    raise _Unknown("a string with escapes")
                return to.Constant(str(node.this)), "string"
            case exp.Literal() if node.this.isdecimal():
                return to.Constant(int(node.this)), "int"
            case exp.Neg():
                value, type = self._typed(node.this)
                if isinstance(value, to.Constant) and isinstance(value.value, int | float) and type != "boolean":
                    return to.Constant(-value.value), type
            case exp.Cast() if isinstance(node.this, exp.Literal):
                return self._literal(node)
            case exp.Cast():
                return self._widened(node)
            case exp.Add() | exp.Sub() | exp.Mul() | exp.Div() | exp.Mod():
                return self._computed(node)
            case exp.Abs():
                value, type = self._typed(node.this)
                if type in ("float", "double") or (type in WHOLE and self._fits(to.Absolute(value), type)):
                    return to.Absolute(value), type
        raise _Unknown(_shown(node))

    def _column(self, node: exp.Column | exp.Dot) -> tuple[to.Value, str]:
        """A column or a field of a struct, `s.x`, perhaps after its table's name, which looks alike."""
        parts = [part.name for part in node.parts]
        paths = [".".join(parts[k:]) for k in range(len(parts))]
        found = [path for path in paths if path in self._columns]
        type = self._columns[found[0]] if len(found) == 1 else None
        if type is None or not known_type(type):
            raise _Unknown(f"{_shown(node)}, of the type {type},")
        return to.Column(found[0]), type

    def _literal(self, node: exp.Cast) -> tuple[to.Value, str]:
        type, text = _LITERALS.get(node.to.this), str(node.this.this)
        if type in WHOLE and re.fullmatch(r"\d+", text):
            return to.Constant(int(text)), type
        if type in ("double", "float") and re.fullmatch(r"-?[\d.]+(E-?\d+)?|NaN|-?Infinity", text):
            value = float(text)  # Java writes as many digits as tell a number from its neighbours
            return to.Constant(_as_float(value) if type == "float" else value), type
        if type == "decimal":
            precision, scale = (int(part.name) for part in node.to.expressions)
            return _unscaled(text, precision, scale, node)
        if type == "date" and re.fullmatch(r"\d{4}-\d{2}-\d{2}", text):
            return to.Constant((date.fromisoformat(text) - _EPOCH.date()).days), type
        if type in ("timestamp", "timestamp_ntz"):
            return self._instant(text, type, node), type
        raise _Unknown(_shown(node))

    def _instant(self, text: str, type: str, node: exp.Expr) -> to.Value:
        found = re.fullmatch(r"(\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2})(?:\.(\d{1,6}))?", text)
        if found is None:
            raise _Unknown(_shown(node))
        at = datetime.fromisoformat(found[1]).replace(tzinfo=UTC) - _EPOCH
        shown = at // timedelta(microseconds=1) + int((found[2] or "").ljust(6, "0"))
        if type == "timestamp_ntz" or self._is_utc:
            return to.Constant(shown)
        meant = next(self.instants, None)
        if meant is None or abs(meant - shown) > MOST_OFFSET or (meant - shown) % 1_000_000:
            raise _Unknown(_shown(node))
        return to.Constant(meant)

    def _widened(self, node: exp.Cast) -> tuple[to.Value, str]:
        """A cast that loses nothing, or rounds as numpy does: to the nearest, of two the even one."""
        value, type = self._typed(node.this)
        wanted = _LITERALS.get(node.to.this)
        constant = isinstance(value, to.Constant)
        if not constant and type in WHOLE and wanted in WHOLE:
            if WHOLE.index(type) <= WHOLE.index(wanted):
                return to.Widened(value, "int64"), wanted
        elif not constant and type in (*WHOLE, "float", "double") and wanted == "double":
            return to.Widened(value, "float64"), wanted
        raise _Unknown(_shown(node))

    def _computed(self, node: exp.Expr) -> tuple[to.Value, str]:
        """Arithmetic of two numbers of one type that cannot leave it, nor fail: floating numbers become infinite, and
        whole ones are too small to overflow."""
        op = _ARITHMETIC[type(node)]
        (one, kind), (other, its) = self._typed(node.this), self._typed(node.expression)
        divisor = other.value if isinstance(other, to.Constant) else None
        if kind == its and not (op in "/%" and not divisor):
            if kind in ("float", "double") and op != "%":
                return to.Arithmetic(op, one, other, "float32" if kind == "float" else "float64"), kind
            made = to.Arithmetic(op, one, other, "int64")
            if kind in WHOLE and op != "/" and self._fits(made, kind):
                return made, kind
        raise _Unknown(_shown(node))

    def _fits(self, value: to.Value, type: str) -> bool:
        least, greatest = self._range(value)
        lower, upper = _bounds(type)
        return lower <= least and greatest <= upper

    def _range(self, value: to.Value) -> tuple[int, int]:
        """The least and the greatest whole number that a value can be."""
        match value:
            case to.Constant(int(number)):
                return number, number
            case to.Column(name):
                return _bounds(self._columns[name])
            case to.Widened(inner, _):
                return self._range(inner)
            case to.Absolute(inner):
                least, greatest = self._range(inner)
                return 0, max(abs(least), abs(greatest))
            case to.Arithmetic("%", _, to.Constant(int(divisor)), _):
                return 1 - abs(divisor), abs(divisor) - 1
            case to.Arithmetic(op, left, right, _):
                ends = [_WHOLE_ARITHMETIC[op](a, b) for a in self._range(left) for b in self._range(right)]
                return min(ends), max(ends)
        raise _Unknown(f"{value}")


def _bounds(type: str) -> tuple[int, int]:
    """Of a whole number's type."""
    half = 1 << (8 * (1 << WHOLE.index(type)) - 1)
    return -half, half - 1


_WHOLE_ARITHMETIC = {"+": operator.add, "-": operator.sub, "*": operator.mul}


def _normalised(node: exp.Expr) -> exp.Expr:
    """The x of `x + 0.0D`, a key in which -0.0 is 0.0; it is NULL where x is."""
    node = node.unnest()
    zero = node.expression if isinstance(node, exp.Add) else None
    while isinstance(zero, exp.Cast):
        zero = zero.this
    return node.this if isinstance(zero, exp.Literal) and re.fullmatch(r"0(\.0)?", str(zero.this)) else node


def _parts(test: to.Test, joined: type[to.And] | type[to.Or]) -> tuple[to.Test, ...]:
    """The conditions that AND (or OR) joins in it."""
    return test.parts if isinstance(test, to.And | to.Or) and type(test) is joined else (test,)


def _comparable(type: str, other: str) -> bool:
    """Of one type; decimals of one scale, since a literal has no more digits than it is written with."""
    one, two = _DECIMAL.fullmatch(type), _DECIMAL.fullmatch(other)
    return type == other or (one is not None and two is not None and one[2] == two[2])


def _as_float(value: float) -> float:
    """The nearest FLOAT."""
    return float(struct.unpack("f", struct.pack("f", value))[0])


def _unscaled(text: str, precision: int, scale: int, node: exp.Expr) -> tuple[to.Value, str]:
    made = Decimal(text).scaleb(scale)
    if precision > MOST_DIGITS or made != made.to_integral_value():
        raise _Unknown(_shown(node))
    return to.Constant(int(made)), f"decimal({precision},{scale})"


def _shown(node: exp.Expr) -> str:
    return node.sql(dialect="spark")[:80]
