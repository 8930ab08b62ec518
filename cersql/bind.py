"""Syntax tree + catalog → bound query: every name resolved, every clause checked, the pattern a CEL formula."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from cersql import sources as src
from cersql import syntax
from cersql.conditions import Conditions
from cersql.durations import MICROSECONDS, microseconds
from cersql.errors import BindError
from cersql.returns import Returns
from cersql.scope import Catalog, PatternNames, Scope, children, collect, display, find_column, unknown_column
from cersql.sources import Sources, Types
from cersql.to_cel import MANY, Translator, occurrences
from planner import cel
from planner.query import Column, Order, Query, Variable, Window
from runtime.errors import CersqlError, Span

TIME_TYPES = ("timestamp", "timestamp_ntz", "date")
WHOLE_TYPES = ("tinyint", "smallint", "int", "bigint")
FLOAT_TYPES = ("float", "double")
ANY_MATCH = {"ALL", "SKIP TILL ANY MATCH", "SKIP_TILL_ANY_MATCH", "SKIP TILL ANY", "ANY"}


def bind(
    query: syntax.Query,
    catalog: Catalog,
    given: Sequence[Column] | None = None,
    order_by: str | None = None,
) -> Query:
    """The bound query. `given`: the columns of a DataFrame that serves as the source; `order_by`: what to order by if
    the text does not say. Raises BindError with its place in the text."""
    try:
        return _Binder(query, catalog, given, order_by).bind()
    except CersqlError as error:
        raise error.at(query.text) from None


class _Binder:
    def __init__(
        self, query: syntax.Query, catalog: Catalog, given: Sequence[Column] | None, order_by: str | None
    ) -> None:
        self.query, self.catalog, self.default_order = query, catalog, order_by
        _refuse_clauses(query)
        self.names: PatternNames = collect(query.pattern, catalog.case_sensitive)
        self.sources: Sources = src.resolve(query, self.names, catalog, given)
        self.scope = Scope(self.names, catalog.case_sensitive)
        self.partition_by = tuple(self._column(parts, "PARTITION BY") for parts in query.partition_by)
        self.conditions = Conditions(
            query.text, self.scope, self.sources.columns, self._columns_of, self.partition_by
        )
        self.types = Types(query, self.sources, catalog, self.conditions)

    def bind(self) -> Query:
        query, text = self.query, self.query.text
        translator = Translator(self.scope, self.conditions)
        types = self._types()
        formula = translator.pattern(query.pattern, whole=True)
        for condition in query.where:
            formula = translator.filtered(formula, condition, whole=True)
        self._bind_unused_definitions()
        order = self._order()
        window = self._window(order[0])
        counts = occurrences(formula)
        variables = tuple(self._variable(mark, counts[mark]) for mark in self._marks(formula))
        returns = Returns(self.conditions, variables, self.partition_by, self.catalog.type_of)
        outputs = tuple(returns.outputs(query.returns))
        having = [returns.condition(nodes) for nodes in translator.on_match]
        if query.having is not None:
            having.append(returns.having(query.having))
        self.conditions.reads.update(self.partition_by)
        kept = [v for v in variables if not v.mark.startswith("@") or v.mark in returns.used]
        return Query(
            text=text,
            formula=formula,
            sources=self.sources.items,
            columns=self.sources.columns,
            types=types,
            variables=variables,
            used=tuple(self._in_order(returns.used.get(v.mark, ())) for v in variables),
            partition_by=self.partition_by,
            order_by=order,
            reads=self._in_order(self.conditions.reads),
            outputs=outputs,
            window=window,
            having=tuple(having),
            limit=query.limit,
            uses_size=returns.uses_size,
            marks=tuple(v.mark for v in kept),
            origins=tuple({**translator.origins, **self.types.origins_of_sql}.items()),
            warnings=tuple(self.types.warnings),
        )

    # ------------------------------------------------------------ types and variables

    def _types(self) -> tuple[tuple[str, str], ...]:
        found: dict[str, str] = {}
        for atom in self.names.atoms:
            if atom.type is not None and atom.type not in found:
                found[atom.type] = self.types.sql(atom.type, atom.span)
        return tuple(found.items())

    def _bind_unused_definitions(self) -> None:
        """A mistake in a DEFINE that the pattern does not use is a mistake all the same."""
        for definition in self.query.definitions:
            if self.scope.type_named(definition.name.value) is None:
                reads = set(self.conditions.reads)
                self.types.sql(definition.name.value, definition.name.span)
                self.conditions.reads = reads

    def _marks(self, formula: cel.Formula) -> list[str]:
        """The variables, in the order of RETURN *; hidden ones last."""
        bound = cel.variables(formula)
        return [v for v in self.names.order if v in bound] + sorted(v for v in bound if v.startswith("@"))

    def _variable(self, mark: str, count: int) -> Variable:
        return Variable(display(mark), mark, count < MANY, self._columns_of(mark))

    def _columns_of(self, mark: str) -> tuple[str, ...]:
        """The columns of the sources that a variable can be bound to."""
        bound: set[int] = set()
        for part_type in self._types_of(mark):
            bound.update(self.types.origins(part_type))
        names = {c.name.casefold() for i in bound for c in self.sources.items[i].columns}
        return tuple(c.name for c in self.sources.columns if c.name.casefold() in names)

    def _types_of(self, mark: str) -> list[str | None]:
        """The types whose events a variable can hold."""
        if mark.startswith("@"):
            return [mark[1:]]
        found: list[str | None] = []

        def visit(part: syntax.Pattern, inside: bool) -> None:
            inside = inside or (
                isinstance(part, syntax.Alias) and self.scope.aliases.get(part.name.value) == mark
            )
            if isinstance(part, syntax.TypeRef):
                name = part.name.value if part.name else None
                if inside or (name or "ANY") == mark:
                    found.append(name)
            for child in children(part):
                visit(child, inside)

        visit(self.query.pattern, False)
        return found

    def _in_order(self, names: Sequence[str] | set[str]) -> tuple[str, ...]:
        return tuple(c.name for c in self.sources.columns if c.name in names)

    # ------------------------------------------------------------ clauses

    def _column(self, parts: tuple[syntax.Name, ...], clause: str) -> str:
        name = parts[-1]
        owner_known = len(parts) == 1 or self.sources.of_alias(parts[0].value, self.catalog.case_sensitive) is not None
        if len(parts) > 2 or not owner_known:
            raise BindError(
                "NOT_SUPPORTED_YET", span=parts[0].span | name.span, construct=f"A field of a struct in {clause}",
                hint="Give it a name in a subquery: FROM (SELECT *, a.b AS b FROM t).",
            )  # fmt: skip
        column = find_column(name.value, self.sources.columns, self.catalog.case_sensitive)
        if column is None:
            raise unknown_column(name.value, name.span, "the sources", (c.name for c in self.sources.columns))
        return column.name

    def _order(self) -> tuple[Order, ...]:
        items = self.query.order_by
        if items:
            orders = tuple(self._order_item(item, first=k == 0) for k, item in enumerate(items))
        elif self.default_order:
            orders = tuple(Order(self._default_order_column(name)) for name in self.default_order.split(","))
        else:
            end = Span(len(self.query.text.rstrip()), len(self.query.text.rstrip()))
            raise BindError(
                "ORDER_MISSING", span=self.query.clause("PATTERN") or end,
                hint="Rows have no order of their own: write ORDER BY with the column that holds the time, "
                "or set the configuration cersql.orderBy.",
            )  # fmt: skip
        for order in orders:
            column = next(c for c in self.sources.columns if c.name == order.column)
            if not _orderable(column.type):
                raise BindError("NOT_ORDERABLE", span=self._order_span(order), name=column.name, type=column.type)
        return orders

    def _order_span(self, order: Order) -> Span | None:
        for item in self.query.order_by:
            if item.column[-1].value.casefold() == order.column.casefold():
                return item.span
        return self.query.clause("PATTERN")

    def _default_order_column(self, name: str) -> str:
        column = find_column(name.strip().strip("`"), self.sources.columns, self.catalog.case_sensitive)
        if column is None:
            at = self.query.clause("PATTERN") or self.query.pattern.span
            raise unknown_column(name.strip(), at, "the sources", (c.name for c in self.sources.columns))
        return column.name

    def _order_item(self, item: syntax.OrderItem, first: bool) -> Order:
        if item.descending:
            raise BindError(
                "DESCENDING", span=item.span,
                hint="Patterns read forward in time. To order the result, put the query in parentheses: "
                "SELECT * FROM (PATTERN …) ORDER BY … DESC.",
            )  # fmt: skip
        return Order(self._column(item.column, "ORDER BY"), nulls_last=item.nulls == "LAST" and not first)

    def _window(self, order: Order) -> Window | None:
        window = self.query.within
        if window is None:
            return None
        type = next(c.type for c in self.sources.columns if c.name == order.column)
        if window.unit == "EVENTS":
            size = Fraction(window.amount.value)
            if size <= 0 or size.denominator != 1:
                raise self._bad_window(window, "a number of events is a whole number greater than zero", "WITHIN 100 EVENTS")
            if window.strict:
                raise self._bad_window(window, "`<` goes with a duration or a number", f"WITHIN {size} EVENTS")
            return Window("events", int(size))
        size = microseconds(window.amount) if window.unit == "INTERVAL" else Fraction(window.amount.value)
        if window.unit == "INTERVAL" and type not in TIME_TYPES:
            raise self._bad_window(
                window, f"ORDER BY {order.column} is {type}, which has no minutes", "WITHIN 500, in that column's own unit"
            )
        if window.unit is None and type in TIME_TYPES:
            raise self._bad_window(
                window, f"ORDER BY {order.column} is {type}, which needs a duration", f"WITHIN {window.amount.value} SECONDS"
            )
        if size <= 0:
            raise self._bad_window(window, "a window is greater than zero", "WITHIN 10 MINUTES")
        return self._clock_window(window, type, size)

    def _clock_window(self, window: syntax.Window, type: str, size: Fraction) -> Window:
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
            raise self._bad_window(window, f"differences of {type} are not defined", "an ORDER BY column of time or numbers")
        whole = math.ceil(size) - 1 if window.strict else math.floor(size)
        return Window("time", min(whole, 2**63 - 1))

    def _bad_window(self, window: syntax.Window, problem: str, hint: str) -> BindError:
        return BindError(
            "WINDOW_UNIT", span=window.amount.span, found=window.amount.value, problem=problem, hint=f"Write {hint}."
        )


def _orderable(type: str) -> bool:
    return "map<" not in type and not type.startswith(("variant", "interval year"))


def _refuse_clauses(query: syntax.Query) -> None:
    """Clauses whose meaning is not built yet: an error each, never silence."""
    strategy = query.semantics
    if strategy is not None and " ".join(strategy.value.upper().split()) not in ANY_MATCH:
        raise BindError("NOT_SUPPORTED_YET", span=strategy.span, construct=f"SEMANTICS {strategy.value}")
    if query.consume is not None and query.consume.value.strip().upper() != "NONE":
        raise BindError("NOT_SUPPORTED_YET", span=query.consume.span, construct=f"CONSUME BY {query.consume.value}")
    refused = [
        (query.skip and query.skip.span, "AFTER MATCH SKIP"),
        (query.group_by and query.group_by.span, "GROUP BY over matches"),
        (query.with_timeouts, "WITH TIMEOUTS"),
        (query.watermark and query.watermark.span, "WATERMARK"),
    ]
    for span, construct in refused:
        if span is not None:
            raise BindError("NOT_SUPPORTED_YET", span=span, construct=construct)
