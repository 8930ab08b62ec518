"""Expressions on a match as Spark SQL: its events, its columns, aggregates over the events of one match.

A match comes out of the engine as one row: the partition columns, its start and end, its size, and for each variable a
struct (if it can hold one event only) or an array of structs. What the user wrote is put on top of that, so every
function, type and overflow is Spark's own. Aggregates over a variable become array expressions
(cersql/binding/aggregates.py).

What Spark takes in no lambda (Python and SQL UDFs, subqueries) is computed on one row for each combination of events,
and gathered into an array again (`Gathered`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from cersql.binding.aggregates import REFUSED, Aggregate, Parts, decimal, let
from cersql.binding.event_values import EventValues
from cersql.binding.expressions import (
    NEIGHBOURS,
    PICKS,
    Bare,
    Call,
    Node,
    Ref,
    Together,
    Word,
    rendered,
    separated,
    walk,
)
from cersql.binding.own_aggregates import aggregate_named
from cersql.binding.scope import Names, unknown_variable
from cersql.binding.together import TRENDS
from cersql.errors import BindError
from planner.query import (
    ROW_COLUMN,
    SIZE_COLUMN,
    Column,
    Folded,
    Gathered,
    OfEvents,
    Variable,
    gathered_column,
    walked_column,
)
from planner.sql import Sql, quote
from runtime.errors import Span
from runtime.marks import is_hidden
from runtime.own import Own

_BEFORE_THEY_COMPETE = "It can stand in WHERE, which is asked before matches compete, are consumed or skipped."


@dataclass
class MatchValues(EventValues):
    """Lowers the expressions on matches of one query."""

    shadows: int = 0
    gathered: list[Gathered | Folded] = field(default_factory=list)  # in the order in which they are computed
    of_events: list[OfEvents] = field(default_factory=list)

    def _no_variable(self, call: Node) -> BindError:
        name = call.function if isinstance(call, Call) else "This"
        for node in walk([call]):
            if isinstance(node, Bare) and self.conditions.constant_column(node) is None:
                return unknown_variable(node.names[0], node.first, self.conditions.scope.known())
        nested = next((node for node in walk([call]) if isinstance(node, Call) and node is not call), None)
        if nested is not None:
            return _inside_another(nested)
        variable = next(iter(self.variables), None)
        column = f"{variable.name}.{next(iter(variable.columns), 'x')}" if variable is not None else "x.a"
        return BindError(
            "NOT_SUPPORTED_YET", span=call.span, construct=f"{name} of no variable",
            hint=f"Say of which events: {name}({column}), for example.",
        )  # fmt: skip

    # ------------------------------------------------------------ lowering

    def lower(self, nodes: Sequence[Node], span: Span | None) -> Sql:
        """Any expression over the match."""
        return rendered(self.text, nodes, self._replace, span)

    def _replace(self, node: Node) -> str | None:
        if isinstance(node, Ref):
            return self._reference(node)
        if isinstance(node, Call):
            return self._call(node)
        if isinstance(node, Bare):
            return self._bare(node)
        if isinstance(node, Together):
            return self._together(node)
        return None

    def _together(self, node: Together) -> str:
        """`[a, b]`, `x[a]` as a condition of Spark's: FALSE where two values differ, else NULL where one is NULL."""
        if node.kind != "AGREE":
            ((call,),) = node.items
            assert isinstance(call, Call)
            return self._trend(call)
        of_created = node.of is not None and node.of.variable in self.conditions.created
        if node.of is not None:
            variables = [v for v in self.variables if v.mark == node.of.variable]
        else:  # a type's events are those of its aliases, unless a PROJECT kept the type alone
            dropped = self.conditions.dropped
            variables = [v for v in self.variables if not v.created and (not is_hidden(v.mark) or dropped)]
        held = []
        for column in self._attributes(node) if of_created else self.conditions.agreed_columns(node):
            lists = []
            for variable in variables:
                own = self._field(variable, column, node.span)
                lists.append(f"transform({self._list(variable)}, __e -> __e.{own})")
            values = lists[0] if len(lists) == 1 else f"concat({', '.join(lists)})"
            held.append(
                f"get(transform(array({values}), __g -> CASE WHEN array_min(__g) < array_max(__g) THEN FALSE "
                "WHEN exists(__g, __n -> __n IS NULL) THEN NULL ELSE TRUE END), 0)"
            )
        return f"({' AND '.join(held)})"

    def _attributes(self, node: Together) -> list[str]:
        """The attributes of `y[a, b]`, of events that AGG creates."""
        assert node.of is not None
        found = []
        for item in node.items:
            only = item[0]
            if len(item) > 1 or not isinstance(only, Bare) or len(only.names) > 1:
                hint = "Give AGG an attribute of its value: AGG(y : a = … ; …)."
                construct = "An expression in [ ] of created events"
                raise BindError("NOT_SUPPORTED_YET", span=item[0].span, construct=construct, hint=hint)
            found.append(self.conditions.column(node.of.variable, only.names[0], only.span))
        return found

    def _trend(self, call: Call, positive: bool = True) -> str:
        """INCREASING(x.a), DECREASING(x.a): FALSE where it does not hold of two neighbours, else NULL where that is not
        known of two; TRUE of fewer than two events. `positive`: or else its NOT, of every two neighbours."""
        refs = [node for node in walk(call.arguments) if isinstance(node, Ref)]
        if len({ref.variable for ref in refs}) != 1 or any(ref.index is not None for ref in refs):
            construct = f"{call.function} of several variables, or of none, or of one event,"
            hint = f"Name one variable in it: {call.function}(x.a)."
            raise BindError("NOT_SUPPORTED_YET", span=call.span, construct=construct, hint=hint)
        variables = [self._variable(refs[0])]
        values = self._values(variables, [call.arguments], lambda element: self._rendered(call.arguments, element))
        op = ("<" if positive else ">=") if call.function == "INCREASING" else (">" if positive else "<=")
        n = "greatest(size(__g) - 1, 0)"
        pairs = f"zip_with(slice(__g, 1, {n}), slice(__g, 2, {n}), (__x, __y) -> __x {op} __y)"
        told = "CASE WHEN exists(__p, __t -> NOT __t) THEN FALSE WHEN exists(__p, __t -> __t IS NULL) THEN NULL "
        told += "ELSE TRUE END"
        return let(values, "__g", let(pairs, "__p", told))

    # ------------------------------------------------------------ calls

    def _call(self, call: Call) -> str:
        if call.function in TRENDS:
            return self._trend(call)
        if call.function in NEIGHBOURS:
            construct = f"{call.function} over the events of a match"
            raise BindError("NOT_SUPPORTED_YET", span=call.span, construct=construct, hint=_BEFORE_THEY_COMPETE)
        if call.function in REFUSED:
            raise BindError("NOT_OF_A_MATCH", span=call.span, function=call.function, hint=REFUSED[call.function])
        refs = [node for node in call.nodes if isinstance(node, Ref)]
        plain = (
            not (call.order or call.where or call.ignore_nulls or call.distinct) and len(separated(call.arguments)) == 1
        )
        if call.function in PICKS and len({ref.variable for ref in refs}) > 1:
            raise BindError(
                "NOT_SUPPORTED_YET", span=call.span, construct=f"{call.function} over several variables",
                hint="Name one variable inside it.",
            )  # fmt: skip
        if call.function in PICKS and plain:
            return self._pick(call)
        if call.column is not None:
            inner = rendered(self.text, call.arguments, lambda node: None).text
            raise BindError(
                "EVENT_NOT_VALUE", span=call.span, name=f"{call.function}({inner})",
                hint=f"Write {call.function}({inner}.{call.column}).",
            )  # fmt: skip
        if not refs:
            return self._of_no_variable(call)
        if call.function == "COUNT" and plain and _is_event(call.arguments[0]):
            ref = call.arguments[0]
            assert isinstance(ref, Ref)
            if not self._is_listed(ref.variable):
                return f"CAST(size({self._list(self._variable(ref))}) AS BIGINT)"
            self._mark_used(self._variable(ref))
            return self._walked(call, ref.variable, None)
        return self._aggregate(call, _known(call))

    def _of_no_variable(self, call: Call) -> str:
        """COUNT(*) and COUNT(1) are the number of events of the match."""
        words = [node.token for node in call.arguments if isinstance(node, Word)]
        constant = len(call.nodes) == len(words) == 1 and (words[0].text == "*" or words[0].kind == "number")
        if call.function == "COUNT" and constant and not call.distinct:
            self.uses_size = True
            return f"CAST({quote(SIZE_COLUMN)} AS BIGINT)"
        raise self._no_variable(call)

    def _pick(self, call: Call) -> str:
        """FIRST(x.a), FIRST(x).a, FIRST(x), and any expression of one variable's columns in place of x.a."""
        refs = [node for node in call.arguments if isinstance(node, Ref)]
        if not refs:
            raise self._no_variable(call)
        variable = self._variable(refs[0])
        at = "0" if call.function == "FIRST" else f"size({self._list(variable)}) - 1"
        event = f"get({self._list(variable)}, {at})"
        if len(call.arguments) == 1 and _is_event(call.arguments[0]):
            if call.column is None:
                self._whole(variable)
                return event
            return f"{event}.{self._field(variable, call.column, call.column_span or call.span)}"
        values = self._values([variable], [call.arguments], lambda element: self._rendered(call.arguments, element))
        at = "0" if call.function == "FIRST" else f"size({values}) - 1"
        return f"get({values}, {at})"

    def _aggregate(self, call: Call, aggregate: Aggregate) -> str:
        """An aggregate over every combination of one event of each variable in it."""
        values, options = _apart(call, aggregate)
        if aggregate.own is not None:
            _check_own(call, len(separated(call.arguments)), aggregate.own)
        result = self._checked_type(call)
        if len(values) < (aggregate.values or 1) or len(options) > aggregate.options or not all(values):
            raise BindError("AGGREGATE_ARGUMENTS", span=call.span, function=call.function)
        keys = () if _key_is_value(call, aggregate) else call.order
        events = call.function == "COUNT" and [_is_event(nodes[0]) or _is_star(nodes) for nodes in values] == [True]
        parts = Parts(
            call.function, "", ("int",) if events else tuple(self._type(nodes) for nodes in values), result,
            tuple(self._rendered(nodes, self._constant).text for nodes in options),
            tuple(key.descending for key in call.order), tuple(key.last for key in call.order),
            call.distinct, call.ignore_nulls,
        )  # fmt: skip

        def element(ref: Callable[[Node], str | None]) -> Sql:
            one = Sql((("1", call.span.start, False),))
            named = {f"v{k}": one if events else self._rendered(nodes, ref) for k, nodes in enumerate(values, 1)}
            named |= {f"k{k}": self._rendered(key.nodes, ref) for k, key in enumerate(keys, 1)}
            value = _struct(named) if parts.structs else named["v1"]
            if not call.where:
                return value
            test = self._rendered(call.where, ref)
            inner = value if parts.structs else _struct({"v": value})
            return Sql((*test.wrapped("IF(", ", ").pieces, *inner.wrapped("", ", NULL)").pieces))

        for node in call.nodes:
            if not (events and node in call.arguments):
                self._check_argument(node)
        variables = list(dict.fromkeys(self._variable(node) for node in call.nodes if isinstance(node, Ref)))
        read = [*([] if events else values), *(key.nodes for key in keys), call.where]
        rows = self._values(variables, read, element)
        if call.where:
            rows = f"filter({rows}, __f -> __f IS NOT NULL)"
            rows = rows if parts.structs else f"transform({rows}, __f -> __f.v)"
        return self._built(call, aggregate, replace(parts, rows=rows))

    def _built(self, call: Call, aggregate: Aggregate, parts: Parts) -> str:
        """The aggregate over the events of one match: computed where they are listed, or of an array of them."""
        if aggregate.own is not None:
            return self._folded(aggregate.own, Sql(((parts.known, call.span.start, False),)))
        only = call.arguments[0] if len(call.arguments) == 1 else None
        plain = not (call.order or call.where or call.ignore_nulls or call.distinct)
        if not isinstance(only, Ref) or only.column in (None, "*") or not self._is_listed(only.variable):
            return aggregate.build(parts)
        if plain and _is_walked(call.function, parts):
            name, span = self.conditions.named_column(only)
            field = self.conditions.column(only.variable, name, span)
            walked = self._walked(call, only.variable, field)
            is_wide = call.function == "SUM" and parts.types[0] == "bigint"
            return f"CAST({walked} AS BIGINT)" if is_wide else walked
        return aggregate.build(parts)

    def _folded(self, own: Own, values: Sql) -> str:
        """The column of a user's own function over an array of values."""
        for each in self.gathered:
            if isinstance(each, Folded) and each.own == own and _alike(each.sql.text) == _alike(values.text):
                return quote(each.column)
        column = gathered_column(len(self.gathered))
        self.gathered.append(Folded(column, values, own))
        return quote(column)

    def _is_listed(self, mark: str) -> bool:
        """Are the events of a variable those that the engine lists? Created ones are made of these afterwards."""
        return mark not in self.conditions.created

    def _walked(self, call: Call, mark: str, field: str | None) -> str:
        """The column of an aggregate that is computed where the events of a match are listed."""
        function = "AVG" if call.function == "MEAN" else call.function
        for own in self.of_events:
            if (own.function, own.mark, own.field) == (function, mark, field):
                return quote(own.column)
        column = walked_column(len(self.of_events))
        shown = " ".join(self.text[call.span.start : call.span.end].split())
        self.of_events.append(OfEvents(column, function, mark, field, shown))
        return quote(column)

    def _check_argument(self, node: Node) -> None:
        """What cannot stand inside an aggregate."""
        if isinstance(node, Call):
            raise _inside_another(node)
        if isinstance(node, Ref) and node.index is not None:
            shown = self.text[node.span.start : node.span.end]
            construct = f"{shown}, one event, inside an aggregate"
            hint = f"An aggregate is over all events of a variable; write {shown} by itself, outside of it."
            raise BindError("NOT_SUPPORTED_YET", span=node.span, construct=construct, hint=hint)
        if isinstance(node, Ref):
            self.conditions.named_column(node)

    def _rendered(self, nodes: Sequence[Node], replace: Callable[[Node], str | None]) -> Sql:
        return rendered(self.text, nodes, replace)

    def _constant(self, node: Node) -> str | None:
        return self._bare(node) if isinstance(node, Bare) else None

    # ------------------------------------------------------------ one value for every combination of events

    def _values(
        self, variables: Sequence[Variable], expressions: Sequence[Sequence[Node]],
        value: Callable[[Callable[[Node], str | None]], Sql],
    ) -> str:  # fmt: skip
        """An array of `value`s, one for every combination of one event of each variable. `value` is given what an
        event's columns are called, and `expressions` are what it is made of."""

        def element(names: Mapping[str, str]) -> Sql:
            def column(node: Node) -> str | None:
                self._check_argument(node)
                if not isinstance(node, Ref):
                    return self._bare(node) if isinstance(node, Bare) else None
                name, span = self.conditions.named_column(node)
                return f"{names[node.variable]}.{self._field(self._variable(node), name, span)}"

            return value(column)

        if not self._in_lambda(expressions):
            return self._gather(variables, element, expressions)
        names = self._shadows(variables)
        return self._combined(variables, names, element(names).text)

    def _shadows(self, variables: Sequence[Variable]) -> dict[str, str]:
        """A name for one event of each variable."""
        names = {}
        for variable in variables:
            self.shadows += 1
            names[variable.mark] = f"__e{self.shadows}"
        return names

    def _combined(self, variables: Sequence[Variable], names: Mapping[str, str], value: str) -> str:
        """An array of the values of an expression over events that are called like this."""
        for depth, variable in enumerate(reversed(variables)):
            value = f"transform({self._list(variable)}, {names[variable.mark]} -> {value})"
            if depth:
                value = f"flatten({value})"
        return value

    def _gather(
        self, variables: Sequence[Variable], value: Callable[[Mapping[str, str]], Sql],
        expressions: Sequence[Sequence[Node]],
    ) -> str:  # fmt: skip
        """The same array, as a column that is computed row by row before."""
        for nodes in expressions:
            for node in _subqueries(nodes):
                raise BindError(
                    "NOT_SUPPORTED_YET", span=node.span, construct="IN (SELECT …) about each event of a match",
                    hint="Compute it in the source: FROM (SELECT *, x IN (SELECT …) AS found FROM t) AS t.",
                )  # fmt: skip
        # The same names for the same variables: what is asked of the same combinations is computed together.
        names = {variable.mark: f"__g{self.variables.index(variable)}" for variable in variables}
        struct = ", ".join(f"'{name}', {name}" for name in names.values())
        sql = value({mark: f"{ROW_COLUMN}.{name}" for mark, name in names.items()})
        combinations = self._combined(variables, names, f"named_struct({struct})")
        column = gathered_column(len(self.gathered))
        self.gathered.append(Gathered(column, combinations, sql))
        return quote(column)

    # ------------------------------------------------------------ what Spark says

    def _columns_read(self, nodes: Iterable[Node], name: str = "") -> tuple[Callable[[Node], str | None], list[Column]]:
        """References as columns of one row (after `name`), and these columns."""
        used: dict[str, Column] = {}
        for node in nodes:
            read: Column | None = None
            if isinstance(node, Ref) and node.column not in (None, "*"):
                read = self._row_column(node)
            elif isinstance(node, Bare):
                read = self._constant_column(node)
            if read is not None:
                used[read.name] = read

        def column(node: Node) -> str | None:
            if isinstance(node, Ref) and node.column not in (None, "*"):
                return name + quote(self._row_column(node).name)
            if isinstance(node, Bare):
                constant = self._constant_column(node)
                if self._is_of_match(node):
                    return "NULL"
                return None if constant is None else name + ".".join(map(quote, (constant.name, *node.names[1:])))
            return "NULL" if isinstance(node, Call | Ref | Together) else None

        return column, list(used.values())

    def _row_column(self, ref: Ref) -> Column:
        return self.conditions.row_column(ref.variable, *self.conditions.named_column(ref))

    def _constant_column(self, node: Bare) -> Column | None:
        name = None if self._is_of_match(node) else self.conditions.constant_column(node)
        return None if name is None else self.conditions.constant_type(name)

    def _is_of_match(self, node: Bare) -> bool:
        return node.names[0] in Names(self.of_match, self.conditions.scope.case_sensitive)

    def _checked_type(self, call: Call) -> str:
        """Spark's type of the aggregate. Its objections to the call come at their places."""
        column, columns = self._columns_read(call.nodes)
        known = _known(call)
        if known.asked is not None:
            sql = known.as_asked(rendered(self.text, call.arguments, column))
        else:
            sql = rendered(self.text, call.nodes, column, call.span)
        return self.types.aggregate_type(self.text, sql, columns)

    def _type(self, nodes: Sequence[Node]) -> str:
        """Spark's type of an aggregate's argument."""
        column, columns = self._columns_read(nodes)
        return self.types.type_of(rendered(self.text, nodes, column).text, columns)

    def _in_lambda(self, expressions: Sequence[Sequence[Node]]) -> bool:
        """Does Spark compute these in a lambda? It does all that calls no function."""
        nodes = [node for expression in expressions for node in expression]
        if not any(isinstance(node, Word) and node.token.text == "(" for node in nodes):
            return True
        column, columns = self._columns_read(nodes, "__e.")
        return self.types.in_lambda([self._rendered(part, column).text for part in expressions if part], columns)


_SHADOW = re.compile(r"__[eg]\d+")  # what events are called in lambdas


def _alike(text: str) -> str:
    """The same for two expressions that are the same, whatever they call their events."""
    return _SHADOW.sub("__e", text)


def _known(call: Call) -> Aggregate:
    """What is known of the aggregate function that is called."""
    found = aggregate_named(call.function)
    assert found is not None, f"{call.function} is no aggregate"
    return found


def _check_own(call: Call, n: int, own: Own) -> None:
    """A user's own function takes what its lift takes, and nothing else."""
    if n != own.arguments:
        raise BindError(
            "AGGREGATE_ARGUMENTS", span=call.span, function=call.function,
            hint=f"Its lift takes {own.arguments}.",
        )  # fmt: skip
    if call.order or call.ignore_nulls:
        raise BindError(
            "NOT_SUPPORTED_YET", span=call.span, construct=f"An order, or IGNORE NULLS, in {call.function}",
            hint="A function of your own takes the values that are not NULL, as a bag; FILTER (WHERE …) and DISTINCT "
            "may stand beside it.",
        )  # fmt: skip


_NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double")
_COMPARED = (*_NUMBERS, "string", "boolean", "date", "timestamp", "timestamp_ntz")


def _is_walked(function: str, parts: Parts) -> bool:
    """Is an aggregate over a column of this type computed where the events of a match are listed? Its digits are the
    same there."""
    (value, *_) = parts.types
    is_decimal, precision, _ = decimal(value)
    match function:
        case "COUNT":
            return True
        case "SUM":
            return value in _NUMBERS or (is_decimal and precision <= 18)
        case "AVG" | "MEAN":
            return value in _NUMBERS
    return function in ("MIN", "MAX") and (value in _COMPARED or is_decimal)


def _key_is_value(call: Call, aggregate: Aggregate) -> bool:
    """Is it the key of WITHIN GROUP that is aggregated? PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY b.x)."""
    return aggregate.of_key or (call.function == "MODE" and bool(call.order))


def _apart(call: Call, aggregate: Aggregate) -> tuple[list[tuple[Node, ...]], list[tuple[Node, ...]]]:
    """The arguments that are read from events, and the constant ones."""
    arguments = separated(call.arguments)
    if _key_is_value(call, aggregate):
        return [key.nodes for key in call.order[:1]], arguments
    if call.function == "PERCENTILE" and len(arguments) == 3:  # of what, the percentage, how often
        return [arguments[0], arguments[2]], [arguments[1]]
    n = len(arguments) if aggregate.values is None else aggregate.values
    return arguments[:n], arguments[n:]


def _struct(fields: Mapping[str, Sql]) -> Sql:
    """named_struct(…) of SQL that keeps its places."""
    pieces: list[tuple[str, int, bool]] = []
    for k, (name, sql) in enumerate(fields.items()):
        pieces += sql.wrapped(f"{', ' if k else 'named_struct('}'{name}', ", "").pieces
    return Sql(tuple(pieces)).wrapped("", ")")


def _is_event(node: Node) -> bool:
    return isinstance(node, Ref) and node.column is None and node.index is None and node.condition is None


def _is_star(nodes: Sequence[Node]) -> bool:
    """The argument of COUNT(*)."""
    return len(nodes) == 1 and isinstance(nodes[0], Word) and nodes[0].token.text == "*"


def _subqueries(nodes: Sequence[Node]) -> Iterator[Word]:
    """Where IN (SELECT …) or EXISTS (SELECT …) begins: Spark makes a join of it, which may move rows about."""
    for k, node in enumerate(nodes[:-2]):
        if isinstance(node, Word) and node.upper in ("IN", "EXISTS"):
            after, first = nodes[k + 1 : k + 3]
            if isinstance(after, Word) and after.token.text == "(" and isinstance(first, Word) and first.inert:
                yield node


def _inside_another(call: Call) -> BindError:
    hint = (
        "Create events of the inner one and aggregate these: AGG(y : s = SUM(a.v) ; A+ a)+ and MAX(y.s), for example."
    )
    return BindError("NOT_SUPPORTED_YET", span=call.span, construct="An aggregate inside another", hint=hint)
