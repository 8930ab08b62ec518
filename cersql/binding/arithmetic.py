"""Arithmetic over several events as a relation (runtime.relations): `b.temp - a.temp >= 1`, `b.p / a.p > 1.05`,
`abs(x[i].v - x[i-1].v) > 2 * x[i-1].w`, `timestampdiff(MINUTE, a.ts, b.ts) < 5`.

What speaks of one event alone is an operand: it stays Spark's text, and Catalyst computes it. Operands are numbers,
dates, times and intervals, and what joins them is + - * / % DIV, abs, least, greatest, sqrt, power(x, 2), datediff,
timestampdiff or a cast between numbers. Types are those that Spark's analyzer gives. All else is no relation: None.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from cersql.binding.comparisons import Event, cut, events_of, plain_text, unwrapped, with_depth
from cersql.binding.expressions import Bare, Call, Node, Word
from planner.sql import Sql
from planner.terms import Spelled, Tabulated
from runtime import relations as ops
from runtime.relations import Relation

BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
FLOATS = {"float": 32, "double": 64}
INTERVAL = "interval"  # of days to seconds, whatever its fields: microseconds
_OF_DAYS = re.compile(r"interval (day|hour|minute|second)( to (day|hour|minute|second))?")
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_LOCAL = "CAST(CAST({} AS TIMESTAMP) AS TIMESTAMP_NTZ)"
UNITS_US = {
    "MICROSECOND": 1, "MILLISECOND": 1_000, "SECOND": 1_000_000, "MINUTE": 60_000_000, "HOUR": 3_600_000_000,
    "DAY": ops.DAY_US, "WEEK": 7 * ops.DAY_US,
}  # fmt: skip
UNIT_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
_TRIES = {"TRY_ADD": "+", "TRY_SUBTRACT": "-", "TRY_MULTIPLY": "*", "TRY_DIVIDE": "/", "MOD": "%"}
_WHOLE = {"+": ops.ADD, "-": ops.SUB, "*": ops.MUL, "%": ops.MOD, "DIV": ops.DIV, "PMOD": ops.PMOD}
_FLOATING = {"+": ops.ADD_F, "-": ops.SUB_F, "*": ops.MUL_F, "/": ops.DIV_F, "%": ops.MOD_F}
_OF_DECIMALS = {"+": ops.ADD_D, "-": ops.SUB_D, "*": ops.MUL_D, "/": ops.DIV_D}


@dataclass(frozen=True)
class Related:
    """`operands`: (event, SQL on it, the Spark type it is sent in), in the order of the relation.

    `tabulated`: how Spark decides it, where workers cannot compute it (cersql.tabulated). `spelled`: as Spark computes
    it, of rows that are joined.
    """

    operands: tuple[tuple[Event, Sql, str], ...]
    relation: Relation
    whole: Sql
    tabulated: Tabulated | None = None
    spelled: Spelled | None = None


class _NoRelation(Exception):
    """The expression computes in a way that workers do not know."""


@dataclass
class Arithmetic:
    """Makes relations. `sql` renders nodes over the bare columns of a row; `type_of` and `common` are Spark's types of
    expressions, and in which two are compared; `ansi`: does Spark fail where a number does not fit?"""

    sql: Callable[[Sequence[Node]], Sql]
    type_of: Callable[[str], str]
    common: Callable[[str, str], str]
    ansi: bool = True

    def related(
        self, nodes: Sequence[Node], op: Callable[[str], str], modes: Mapping[str, str], shown: str
    ) -> Related | None:
        """A comparison as a relation, `shown` in messages; `op` gives the operator that is to hold for the written."""
        found = cut(unwrapped(nodes))
        if found is None:
            return None
        left, written, right = found
        made = _Relating(self, modes, events_of(nodes, modes)[-1])
        try:
            made.compare(left, op(written), right)
        except _NoRelation:
            return None
        relation = Relation(tuple(made.code), tuple(made.floats), tuple(made.scales), " ".join(shown.split()))
        return Related(tuple(made.operands), relation, self.sql(nodes))


@dataclass
class _Relating:
    """One relation in the making. Each method leaves one more value on the stack, and gives its type."""

    of: Arithmetic
    modes: Mapping[str, str]
    default: Event  # on which what speaks of no event is computed
    operands: list[tuple[Event, Sql, str]] = field(default_factory=list)
    code: list[tuple[int, int]] = field(default_factory=list)
    floats: list[float] = field(default_factory=list)
    scales: list[tuple[int, ...]] = field(default_factory=list)

    # ------------------------------------------------------------ types

    def type(self, nodes: Sequence[Node]) -> str:
        return self.of.type_of(self.of.sql(nodes).text).lower()

    @property
    def mode(self) -> int:
        return ops.FAILS if self.of.ansi else ops.WRAPS

    def _whole(self, bits: int, mode: int | None = None) -> int:
        return 4 * bits + (self.mode if mode is None else mode)

    def emit(self, op: int, argument: int = 0) -> None:
        self.code.append((op, argument))

    def scaled(self, op: int, *scales: int) -> None:
        self.emit(op, len(self.scales))
        self.scales.append(scales)

    def cast(self, type: str, to: str) -> str:
        """What is on the stack, in another type of numbers, as Spark's own casts make it."""
        if type == to or (type in BITS and to in BITS and BITS[type] <= BITS[to]):
            return to
        if to in FLOATS and type in BITS:
            self.emit(ops.TO_F, self._whole(FLOATS[to]))
        elif to in FLOATS and type in FLOATS:
            if to == "float":
                self.emit(ops.ROUND_F)
        elif to == "double" and (decimal := _decimal(type)):
            self.scaled(ops.TO_F_D, decimal[1])
        elif (wanted := _decimal(to)) and (type in BITS or _decimal(type)):
            self.scaled(ops.CAST_D, (_decimal(type) or (0, 0))[1], *wanted, self.mode)
        else:
            raise _NoRelation
        return to

    # ------------------------------------------------------------ the root

    def compare(self, left: Sequence[Node], op: str, right: Sequence[Node]) -> None:
        first = self.value(left)
        between = len(self.code)
        second = self.value(right)
        own = first
        if first != second or not (first in _TIMES or first in (INTERVAL, "date")):
            first = self.of.common(self.of.sql(left).text, self.of.sql(right).text).lower() or _wider(first, second)
            self.cast(second, first)
            end = len(self.code)
            self.cast(own, first)
            self.code[between:] = [*self.code[end:], *self.code[between:end]]
        self.emit(ops.COMPARE_F if first in FLOATS else ops.COMPARE, ops.COMPARES.index(op))

    def kind(self, nodes: Sequence[Node]) -> str:
        """The type of an expression; one word for all intervals."""
        type = self.type(nodes)
        return INTERVAL if _OF_DAYS.fullmatch(type) else type

    # ------------------------------------------------------------ expressions

    def value(self, nodes: Sequence[Node]) -> str:
        nodes = unwrapped(nodes)
        if not nodes:
            raise _NoRelation
        if len(events_of(nodes, self.modes)) < 2 and not any(isinstance(node, Call) for node in nodes):
            return self.leaf(nodes)
        depths = list(with_depth(nodes))
        if any(depth == 0 and plain_text(node) in _NO_OPERATORS for depth, node in depths):
            raise _NoRelation
        for operators in (("+", "-"), ("*", "/", "%", "DIV")):
            places = [k for k, (depth, node) in enumerate(depths) if depth == 0 and k and plain_text(node) in operators
                      and not _is_operator(nodes[k - 1])]  # fmt: skip
            if places:
                k = places[-1]
                return self.binary(nodes, nodes[:k], plain_text(nodes[k]), nodes[k + 1 :])
        if plain_text(nodes[0]) in ("-", "+"):
            type = self.value(nodes[1:])
            return self.negated(type) if plain_text(nodes[0]) == "-" else type
        return self.function(nodes)

    def leaf(self, nodes: Sequence[Node], local: bool = False) -> str:
        """An operand, or a constant. `local`: a time as that of the session's zone, as subtractions read it."""
        type, events = self.kind(nodes), events_of(nodes, self.modes)
        if not events and self.constant(nodes, type):
            return type
        sql, sent = self.of.sql(nodes), type
        decimal = _decimal(type)
        if local and type in _TIMES:
            sql, sent = _formatted(_LOCAL, sql), "timestamp_ntz"
        elif type in BITS:
            sent = "bigint"
        elif type == "date":
            sql, sent = _formatted("unix_date({})", sql), "bigint"
        elif type == INTERVAL:  # Arrow has no order for these; a time has
            sql, sent = _formatted("TIMESTAMP_NTZ '1970-01-01 00:00:00' + ({})", sql), "timestamp_ntz"
        elif type not in FLOATS and type not in _TIMES and (decimal is None or decimal[0] > 18):
            raise _NoRelation
        operand = events[0] if events else self.default, sql, sent
        known = [(event, own.text, as_type) for event, own, as_type in self.operands]
        if (operand[0], sql.text, sent) not in known:
            self.operands.append(operand)
            known.append((operand[0], sql.text, sent))
        self.emit(ops.LOAD_F if type in FLOATS else ops.LOAD, known.index((operand[0], sql.text, sent)))
        return type

    def constant(self, nodes: Sequence[Node], type: str) -> bool:
        """A number as it is written."""
        signs = [plain_text(node) for node in nodes[:-1]]
        last = nodes[-1]
        if not isinstance(last, Word) or last.token.kind != "number" or any(sign not in ("-", "+") for sign in signs):
            return False
        written = last.token.text.upper()
        sign = -1 if signs.count("-") % 2 else 1
        try:
            if type in BITS:
                self.emit(ops.INT, sign * int(written.rstrip("LSY")))
            elif type in FLOATS:
                self.emit(ops.FLOAT, len(self.floats))
                self.floats.append(sign * float(written.rstrip("DF")))
            else:
                return self._exact(sign, written.removesuffix("BD"), type)
        except ValueError:
            return False
        return True

    def _exact(self, sign: int, written: str, type: str) -> bool:
        decimal, (whole, _, part) = _decimal(type), written.partition(".")
        if decimal is None or len(part) > decimal[1] or not (whole + part).isdigit():
            return False
        self.emit(ops.INT, sign * int(whole + part) * 10 ** (decimal[1] - len(part)))
        return True

    def negated(self, type: str) -> str:
        if type in FLOATS:
            self.emit(ops.NEG_F)
        elif _decimal(type):
            self.emit(ops.NEG_D)
        else:
            self.emit(ops.NEG, self._whole(BITS.get(type, 64)))
        return type

    def binary(
        self, nodes: Sequence[Node], left: Sequence[Node], op: str, right: Sequence[Node], mode: int | None = None
    ) -> str:
        result, kinds = self.kind(nodes), (self.kind(left), self.kind(right))
        if any(kind in _TIMES or kind == "date" for kind in kinds):
            return self.difference(left, op, right, kinds)
        if INTERVAL in kinds:
            if kinds != (INTERVAL, INTERVAL) or op not in "+-":
                raise _NoRelation
            self.value(left)
            self.value(right)
            self.emit(_WHOLE[op], self._whole(64))
            return INTERVAL
        mode = self.mode if mode is None else mode
        if result in FLOATS and op in _FLOATING:
            for side in (left, right):
                self.cast(self.value(side), result)
            self.emit(_FLOATING[op], self._whole(FLOATS[result], mode))
        elif result in BITS and op in _WHOLE:
            self.value(left)
            self.value(right)
            self.emit(_WHOLE[op], self._whole(BITS[result], mode))
        elif (decimal := _decimal(result)) and op in _OF_DECIMALS:
            scales = [(_decimal(self.value(side)) or (0, 0))[1] for side in (left, right)]
            self.scaled(_OF_DECIMALS[op], *scales, *decimal, mode)
        else:
            raise _NoRelation
        return result

    def difference(self, left: Sequence[Node], op: str, right: Sequence[Node], kinds: tuple[str, str]) -> str:
        """Of two dates or two times; of times, of what clocks on the wall show."""
        if op != "-" or not all(kind in _TIMES or kind == "date" for kind in kinds):
            raise _NoRelation
        if len(set(kinds)) > 1 and "timestamp_ntz" in kinds:
            raise _NoRelation
        days = kinds == ("date", "date")
        for side in (left, right):
            if len(events_of(side, self.modes)) > 1:
                raise _NoRelation
            self.leaf(side) if days else self.local(side)
        self.emit(ops.SUB, self._whole(64))
        if days:
            self.emit(ops.INT, ops.DAY_US)
            self.emit(ops.MUL, self._whole(64))
        return INTERVAL

    def local(self, nodes: Sequence[Node]) -> None:
        """A time, or a date as the time at which it begins, as that of the session's zone."""
        if len(events_of(nodes, self.modes)) > 1:
            raise _NoRelation
        if self.kind(nodes) in _TIMES:
            self.leaf(nodes, local=True)
            return
        sql = _formatted(_LOCAL, self.of.sql(nodes))
        event = (events_of(nodes, self.modes) or [self.default])[0]
        self.operands.append((event, sql, "timestamp_ntz"))
        self.emit(ops.LOAD, len(self.operands) - 1)

    # ------------------------------------------------------------ functions

    def function(self, nodes: Sequence[Node]) -> str:
        """A call that is the whole expression."""
        name = nodes[0].token.upper if isinstance(nodes[0], Word) else ""
        if len(nodes) < 4 or plain_text(nodes[1]) != "(" or unwrapped(nodes[1:]) == nodes[1:]:
            raise _NoRelation
        arguments = list(_arguments(nodes[2:-1]))
        if not all(arguments):
            raise _NoRelation
        if name in ("CAST", "TRY_CAST") and len(arguments) == 1:
            return self.conversion(nodes, arguments[0], name)
        if name in ("LEAST", "GREATEST") and len(arguments) > 1:
            return self.extreme(nodes, arguments, name)
        if name in ("DATEDIFF", "DATE_DIFF") and len(arguments) == 2:
            return self.days_between(arguments)
        if name in ("TIMESTAMPDIFF", "DATEDIFF", "DATE_DIFF") and len(arguments) == 3:
            return self.units_between(arguments)
        if name in (*_TRIES, "PMOD") and len(arguments) == 2:
            mode = None if name in ("MOD", "PMOD") else ops.IS_NULL
            return self.binary(nodes, arguments[0], _TRIES.get(name, name), arguments[1], mode)
        if name in ("POWER", "POW") and len(arguments) == 2 and _text_of(arguments[1]) == "2":
            for _ in range(2):
                self.cast(self.value(arguments[0]), "double")
            self.emit(ops.MUL_F, self._whole(64))
            return "double"
        if len(arguments) == 1 and name in ("ABS", "SQRT", "NEGATIVE", "POSITIVE"):
            return self.single(name, arguments[0])
        raise _NoRelation

    def single(self, name: str, argument: Sequence[Node]) -> str:
        type = self.value(argument)
        if name == "SQRT":
            self.cast(type, "double")
            self.emit(ops.SQRT_F, self._whole(64))
            return "double"
        if name == "NEGATIVE":
            return self.negated(type)
        if name == "ABS":
            if type in FLOATS:
                self.emit(ops.ABS_F)
            elif _decimal(type):
                self.emit(ops.ABS_D)
            else:
                self.emit(ops.ABS, self._whole(BITS.get(type, 64)))
        return type

    def extreme(self, nodes: Sequence[Node], arguments: Sequence[Sequence[Node]], name: str) -> str:
        result = self.kind(nodes)
        for argument in arguments:
            type = self.value(argument)
            if type != result:
                self.cast(type, result)
        op = ops.LEAST if name == "LEAST" else ops.GREATEST
        self.emit(op + (ops.LEAST_F - ops.LEAST) * (result in FLOATS), len(arguments))
        return result

    def conversion(self, nodes: Sequence[Node], argument: Sequence[Node], name: str) -> str:
        """CAST between types of numbers in which every number fits."""
        as_ = next(
            (k for k, (depth, node) in enumerate(with_depth(argument)) if depth == 0 and plain_text(node) == "AS"), 0
        )
        if not as_:
            raise _NoRelation
        return self.cast(self.value(argument[:as_]), self.kind(nodes))

    def days_between(self, arguments: Sequence[Sequence[Node]]) -> str:
        """datediff(end, start): days, a whole number."""
        for side in arguments:
            events = events_of(side, self.modes)
            if len(events) > 1:
                raise _NoRelation
            sql = _formatted("datediff({}, DATE '1970-01-01')", self.of.sql(side))
            self.operands.append(((events or [self.default])[0], sql, "bigint"))
            self.emit(ops.LOAD, len(self.operands) - 1)
        self.emit(ops.SUB, self._whole(32))
        return "int"

    def units_between(self, arguments: Sequence[Sequence[Node]]) -> str:
        """timestampdiff(UNIT, start, end): whole units from one local time to another."""
        unit = _text_of(arguments[0]).upper()
        if unit not in UNITS_US and unit not in UNIT_MONTHS:
            raise _NoRelation
        start, end = arguments[1:]
        if unit in UNIT_MONTHS:
            self.local(start)
            self.local(end)
            self.emit(ops.MONTHS)
            self.emit(ops.QUOTIENT, UNIT_MONTHS[unit])
        else:
            self.local(end)
            self.local(start)
            self.emit(ops.SUB, self._whole(64))
            self.emit(ops.QUOTIENT, UNITS_US[unit])
        return "bigint"


_TIMES = ("timestamp", "timestamp_ntz")
_NO_OPERATORS = frozenset((
    "||", "&", "|", "^", "<<", ">>", ">>>", "~", "::", "AND", "OR", "NOT", "CASE", "=", "<", ">", "<=", ">=", "<>",
    "IS", "IN", "LIKE", "BETWEEN", "COLLATE", "AT", "?", ":",
))  # fmt: skip


def _is_operator(node: Node) -> bool:
    return isinstance(node, Word) and node.upper in ("*", "/", "%", "DIV", "+", "-", "INTERVAL")


def _decimal(type: str) -> tuple[int, int] | None:
    found = _DECIMAL.fullmatch(type)
    return (int(found[1]), int(found[2])) if found else None


def _wider(first: str, second: str) -> str:
    """In which type two numbers are compared, where Spark cannot be asked."""
    whole = first in BITS and second in BITS
    return "bigint" if whole else first if first == second else "double"


def _formatted(form: str, sql: Sql) -> Sql:
    before, after = form.split("{}")
    return sql.wrapped(before + "(", ")" + after)


def _text_of(nodes: Sequence[Node]) -> str:
    """A word or number that stands alone."""
    if len(nodes) != 1:
        return ""
    (node,) = nodes
    return node.token.text if isinstance(node, Word) else node.names[0] if isinstance(node, Bare) else ""


def _arguments(nodes: Sequence[Node]) -> Iterator[Sequence[Node]]:
    """The arguments of a call."""
    begin = 0
    for k, (depth, node) in enumerate(with_depth(nodes)):
        if depth == 0 and plain_text(node) == ",":
            yield nodes[begin:k]
            begin = k + 1
    yield nodes[begin:]
