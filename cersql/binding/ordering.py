"""PARTITION BY, ORDER BY and WITHIN: the columns that order the stream, and a window in the unit of its clock."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from cersql.binding.row_keys import Key, RowKeys
from cersql.errors import BindError
from cersql.language import syntax
from cersql.language.durations import MICROSECONDS, microseconds, number
from planner.query import Column, Order, Window
from planner.sql import is_collated
from runtime.errors import Span

TIME_TYPES = ("timestamp", "timestamp_ntz", "date")
WHOLE_TYPES = ("tinyint", "smallint", "int", "bigint")
FLOAT_TYPES = ("float", "double")
MAX_CLOCK = 2**63 - 1


@dataclass(frozen=True)
class Clauses:
    """Binds these clauses of one query."""

    query: syntax.Query
    keys: RowKeys

    def partition_by(self) -> tuple[Key, ...]:
        return tuple(self.keys.key(item, "PARTITION BY") for item in self.query.partition_by)

    def order(self, default: str | None) -> tuple[Order, ...]:
        """ORDER BY, else the default: column names with commas between them."""
        if self.query.order_by:
            return tuple(self._order_item(item, first=k == 0) for k, item in enumerate(self.query.order_by))
        end = Span(*[max(span.end for span in _spans(self.query))] * 2)
        if not default:
            raise BindError(
                "ORDER_MISSING", span=end,
                hint="Rows have no order of their own: write ORDER BY with the column that holds the time, "
                "or set the configuration cersql.orderBy.",
            )  # fmt: skip
        return tuple(
            Order(self.keys.named(name.strip().strip("`"), end, end, "ORDER BY (as configured)").name)
            for name in default.split(",")
        )

    def watermark(self) -> int | None:
        """WATERMARK in microseconds: how long a stream waits for events that come late."""
        written = self.query.watermark
        if written is None:
            return None
        size = microseconds(written)
        if size < 0:
            raise BindError(
                "WINDOW_UNIT", span=written.span, found=written.value, problem="a watermark lies behind, never ahead",
                hint="Write for example WATERMARK 10 MINUTES.",
            )  # fmt: skip
        return math.ceil(size)

    def window(self, window: syntax.Window, order: Order) -> Window:
        """WITHIN, measured by the first column of ORDER BY."""
        # Of an expression only Spark knows the type: without it, what is written may be right.
        type = self._type(order.column) or ("timestamp" if window.unit == "INTERVAL" else "double")
        if window.unit == "EVENTS":
            return self._events(window)
        size = microseconds(window.amount) if window.unit == "INTERVAL" else number(window.amount)
        plain = "WITHIN 500, in that column's own unit"
        is_number = type in (*WHOLE_TYPES, *FLOAT_TYPES) or type.startswith("decimal")
        if size <= 0:
            raise _bad(window, "a window is greater than zero", plain if is_number else "WITHIN 10 MINUTES")
        clock = f"ORDER BY {order.column} is {type}"
        if window.unit == "INTERVAL" and type not in TIME_TYPES:
            if is_number:
                raise _bad(window, f"{clock}, which has no {window.amount.value.split()[-1].lower()}", plain)
            raise _bad(window, f"{clock}, not a time", "ORDER BY with a column of time, or WITHIN 100 EVENTS")
        if window.unit is None and type in TIME_TYPES:
            raise _bad(window, f"{clock}, which needs a duration", f"WITHIN {window.amount.value} SECONDS")
        return _clock_window(window, type, size, clock)

    def _events(self, window: syntax.Window) -> Window:
        size = number(window.amount)
        if size <= 0 or size.denominator != 1:
            raise _bad(window, "a number of events is a whole number greater than zero", "WITHIN 100 EVENTS")
        if window.strict:
            raise _bad(window, "'<' goes with a duration or a number", f"WITHIN {size} EVENTS")
        return Window("events", min(int(size), MAX_CLOCK))

    # ------------------------------------------------------------ columns

    def _order_item(self, item: syntax.OrderItem, first: bool) -> Order:
        if item.descending:
            raise BindError(
                "DESCENDING", span=item.span,
                hint="Patterns read forward in time. To order the result, put the query in parentheses: "
                "SELECT * FROM (PATTERN …) ORDER BY … DESC.",
            )  # fmt: skip
        column = self.keys.key(item.column, "ORDER BY").column
        if first and is_collated(column.type):
            raise BindError(
                "NOT_SUPPORTED_YET", span=item.span, construct="A string with a collation as the first of ORDER BY",
                hint=f"Order by its bytes, {column.name} COLLATE UTF8_BINARY, or by a key of yours.",
            )  # fmt: skip
        return Order(column.name, nulls_last=item.nulls == "LAST" and not first)

    def _type(self, name: str) -> str:
        column: Column = next(c for c in self.keys.columns.every if c.name == name)
        return column.type


def _clock_window(window: syntax.Window, type: str, size: Fraction, clock: str) -> Window:
    """The window in units of the clock: microseconds, days, whole numbers, or floating point."""
    if type in FLOAT_TYPES:
        return Window("time", float(size), window.strict)
    if type == "date":
        size = size / MICROSECONDS["DAY"]
    elif type.startswith("decimal"):
        precision, scale = (int(part) for part in type[len("decimal(") : -1].split(","))
        if precision > 18:
            raise BindError(
                "NOT_SUPPORTED_YET", span=window.span, construct=f"WITHIN over {type}",
                hint="Order by a column with at most 18 digits.",
            )  # fmt: skip
        size = size * 10**scale
    elif type not in (*TIME_TYPES, *WHOLE_TYPES):
        raise _bad(window, f"{clock}, where differences mean nothing", "WITHIN 100 EVENTS")
    whole = math.ceil(size) - 1 if window.strict else math.floor(size)
    return Window("time", min(whole, MAX_CLOCK))


def _bad(window: syntax.Window, problem: str, instead: str) -> BindError:
    return BindError(
        "WINDOW_UNIT", span=window.amount.span, found=window.amount.value, problem=problem, hint=f"Write {instead}."
    )


def _spans(node: Any) -> Iterator[Span]:
    """The places of all that a query was made of."""
    if isinstance(node, Span):
        yield node
    elif isinstance(node, tuple):
        for item in node:
            yield from _spans(item)
    elif dataclasses.is_dataclass(node):
        for field in dataclasses.fields(node):
            yield from _spans(getattr(node, field.name))
