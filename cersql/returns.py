"""RETURN, HAVING and conditions on the whole match, as Spark SQL over the columns of a match.

A match comes out of the engine as one row: the partition columns, its start and end, its size, and for each variable a
struct (if it can hold one event only) or an array of structs. What the user wrote is put on top of that, so every
function, type and overflow is Spark's own. Aggregates over a variable become array expressions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from cersql.booleans import OrOf
from cersql.conditions import Conditions, any_of, free_variables
from cersql.errors import BindError
from cersql.expressions import AGGREGATES, PICKS, Bare, Call, Node, Ref, Together, Word, read, rendered, walk
from cersql.lexer import CLOSING, OPENING
from cersql.scope import Names, display, unknown_variable
from cersql.syntax import ReturnItem, Text
from planner.query import (
    END_COLUMN,
    REACHED_COLUMN,
    SIZE_COLUMN,
    START_COLUMN,
    STATUS_COLUMN,
    Column,
    Output,
    Variable,
    key_column,
    variable_column,
)
from planner.sql import Sql, quote
from runtime.errors import Span

BOUNDS = {"match_start": START_COLUMN, "match_end": END_COLUMN}
TIMEOUTS = {"match_status": STATUS_COLUMN, "match_reached": REACHED_COLUMN}
UNSUPPORTED = AGGREGATES - {"COUNT", "SUM", "AVG", "MEAN", "MIN", "MAX", "RANGE", "COLLECT_LIST"}


@dataclass
class Returns:
    """Lowers the expressions on matches of one query; remembers which columns of which variable they read."""

    conditions: Conditions
    variables: tuple[Variable, ...]
    partition_by: tuple[str, ...]
    type_of: Callable[[str, Sequence[Column]], str]
    timeouts: bool = False
    agreed: tuple[str, ...] = ()  # columns on which all events of a match agree
    present: frozenset[str] = frozenset()  # the variables of which every match has an event
    used: dict[str, set[str]] = field(default_factory=dict)
    uses_size: bool = False
    shadows: int = 0

    @property
    def text(self) -> str:
        return self.conditions.text

    @property
    def of_match(self) -> dict[str, str]:
        """The columns that every match has, whatever its variables."""
        return {**BOUNDS, **TIMEOUTS} if self.timeouts else BOUNDS

    # ------------------------------------------------------------ items

    def outputs(self, items: Sequence[ReturnItem]) -> Iterator[Output]:
        """The columns of the result."""
        for item in items:
            if item.star:
                yield from self._star(item.expression.span)
                continue
            nodes = self._nodes(item.expression)
            only = nodes[0] if len(nodes) == 1 else None
            if isinstance(only, Ref | Call) and only.column == "*":
                if item.alias is not None:
                    raise BindError(
                        "NOT_SUPPORTED_YET", span=item.alias.span, construct="A name for several columns",
                        hint="Name the columns one by one, or leave out AS.",
                    )  # fmt: skip
                yield from self._columns(only)
                continue
            name = item.alias.value if item.alias else self._simple_name(only)
            yield Output(self.lower(nodes, item.expression.span), name, self._for_naming(nodes, item.expression.span))

    def condition(self, clause: OrOf) -> Sql:
        """An OR on the whole match: for every choice of one event for each variable outside the aggregates."""
        bound: dict[str, str] = {}
        for mark in dict.fromkeys(mark for part, _ in clause for mark in free_variables(part.nodes)):
            self.shadows += 1
            bound[mark] = f"__e{self.shadows}"

        def replace(node: Node) -> str | None:
            if not isinstance(node, Ref) or isinstance(node.index, int):
                return self._replace(node)
            if node.condition is not None:
                raise BindError("NOT_SUPPORTED_YET", span=node.span, construct="x[condition] beside an aggregate")
            column, span = self.conditions.named_column(node)
            return f"{bound[node.variable]}.{self._field(self._variable(node), column, span)}"

        sides = [rendered(self.text, part.nodes, replace) for part, _ in clause]
        holds = any_of([
            sql if positive else sql.wrapped("NOT (", ")") for sql, (_, positive) in zip(sides, clause, strict=True)
        ])  # fmt: skip
        if not bound:
            return holds
        holds = holds.wrapped("coalesce(", ", FALSE)")
        for variable in self.variables:
            if variable.mark in bound:
                holds = holds.wrapped(f"forall({self._list(variable)}, {bound[variable.mark]} -> ", ")")
        return holds

    def having(self, condition: Text) -> Sql:
        return self.lower(self.conditions.gathered(self._nodes(condition)), condition.span)

    def _nodes(self, text: Text) -> tuple[Node, ...]:
        scope = self.conditions.scope
        nodes = read(self.text, text.span, scope.variable, scope.fold)
        if not nodes:
            raise BindError("EMPTY_CONDITION", span=text.span)
        marks = [variable.mark for variable in self.variables]
        for node in walk(nodes):
            if isinstance(node, Ref):
                self.conditions.check_ref(node, marks)
        for before, node in pairwise(nodes):
            if isinstance(before, Call) and isinstance(node, Word) and node.token.upper in ("OVER", "FILTER"):
                raise BindError(
                    "NOT_SUPPORTED_YET", span=node.span, construct=f"{node.token.upper} after {before.function}(…)"
                )
        return nodes

    def _star(self, span: Span) -> Iterator[Output]:
        """RETURN *: partition columns, match_start, match_end, then a column per variable in order of appearance."""
        taken: dict[str, tuple[str, str]] = {}
        fold = self.conditions.scope.fold
        shown = [v for v in self.variables if not v.mark.startswith("@")]
        kinds = [(name, "the partition column") for name in self.partition_by]
        kinds += [(name, "the column of every match") for name in self.of_match]
        kinds += [(variable.name, "the variable") for variable in shown]
        for name, kind in kinds:
            if fold(name) in taken:
                other, other_kind = taken[fold(name)]
                raise BindError(
                    "COLUMN_CLASH", span=span, name=name, kind=kind, other=other, other_kind=other_kind,
                    hint=f"Name what you want instead of *, for example {name} AS {name}_1, or rename the variable.",
                )  # fmt: skip
            taken[fold(name)] = name, kind
        at = span.start
        for i, name in enumerate(self.partition_by):
            yield Output(Sql(((key_column(i), at, False),)), name, name)
        for name, column in self.of_match.items():
            yield Output(Sql(((column, at, False),)), name, name)
        for variable in shown:
            yield Output(Sql(((self._whole(variable), at, False),)), variable.name, variable.name)

    def _columns(self, node: Ref | Call) -> Iterator[Output]:
        """`a.*`, `b[1].*`, `FIRST(b).*`."""
        ref = node if isinstance(node, Ref) else next((n for n in node.arguments if isinstance(n, Ref)), None)
        if ref is None:
            raise self._no_variable(node)
        for column in self._variable(ref).columns:
            one = replace(node, column=column, column_span=node.span)
            sql = Sql(((self._replace(one) or "", node.span.start, False),))
            yield Output(sql, column, column)

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

    def _simple_name(self, node: Node | None) -> str | None:
        """The name of an item that is only a reference; None leaves it to Spark."""
        if isinstance(node, Ref) and node.condition is None:
            return node.column or display(node.variable)
        if isinstance(node, Bare):
            return node.names[-1]
        return None

    def _for_naming(self, nodes: Sequence[Node], span: Span) -> str:
        """The item as Spark could read it over relations called like the variables, to ask Spark for its name."""

        def plain(node: Node) -> str | None:
            if isinstance(node, Ref):
                name = quote(display(node.variable))
                return name if node.column is None else f"{name}.{quote(node.column)}"
            if isinstance(node, Call) and node.arguments:
                inner = rendered(self.text, node.arguments, plain, None).text
                picked = f".{quote(node.column)}" if node.column else ""
                return f"{node.function}({'DISTINCT ' if node.distinct else ''}{inner}{picked})"
            return None

        return rendered(self.text, nodes, plain, span).text

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
            construct = f"{self.text[node.span.start : node.span.end]} in an expression on the match"
            raise BindError("NOT_SUPPORTED_YET", span=node.span, construct=construct, hint="It can stand in WHERE.")
        if node.of is not None:
            variables = [v for v in self.variables if v.mark == node.of.variable]
        else:  # a type's events are those of its aliases, unless a PROJECT kept the type alone
            dropped = self.conditions.dropped
            variables = [v for v in self.variables if not v.mark.startswith("@") or dropped]
        held = []
        for column in self.conditions.agreed_columns(node):
            lists = []
            for variable in variables:
                self._use(variable, column)
                lists.append(f"transform({self._list(variable)}, __e -> __e.{quote(column)})")
            values = lists[0] if len(lists) == 1 else f"concat({', '.join(lists)})"
            held.append(
                f"get(transform(array({values}), __g -> CASE WHEN array_min(__g) < array_max(__g) THEN FALSE "
                "WHEN exists(__g, __n -> __n IS NULL) THEN NULL ELSE TRUE END), 0)"
            )
        return f"({' AND '.join(held)})"

    def _variable(self, ref: Ref) -> Variable:
        for variable in self.variables:
            if variable.mark == ref.variable:
                return variable
        raise AssertionError(f"{ref.variable} was checked")

    def _column(self, variable: Variable) -> str:
        return quote(variable_column(self.variables.index(variable)))

    def _use(self, variable: Variable, column: str) -> None:
        self.used.setdefault(variable.mark, set()).add(column)

    def _field(self, variable: Variable, name: str, span: Span) -> str:
        column = self.conditions.column(variable.mark, name, span)
        self._use(variable, column)
        return quote(column)

    def _whole(self, variable: Variable) -> str:
        """The variable's column with all its columns."""
        for column in variable.columns:
            self._use(variable, column)
        return self._column(variable)

    def _reference(self, ref: Ref) -> str:
        variable = self._variable(ref)
        if ref.condition is not None:
            hint = f"A column is written {ref.written}.x; a condition on events stands in WHERE, or FILTER."
            raise BindError("NOT_SUPPORTED_YET", span=ref.span, construct="x[condition] in RETURN", hint=hint)
        if ref.column == "*":
            hint = "It is an item of its own."
            raise BindError("EVENT_NOT_VALUE", span=ref.span, name=f"{variable.name}.*", hint=hint)
        event = self._whole(variable) if ref.column is None else self._column(variable)
        self._mark_used(variable)
        if isinstance(ref.index, int):
            event = f"get({self._list(variable)}, {ref.index - 1})"
        if ref.column is None:
            return event
        return f"{event}.{self._field(variable, ref.column, ref.column_span or ref.span)}"

    def _mark_used(self, variable: Variable) -> None:
        self.used.setdefault(variable.mark, set())

    def _list(self, variable: Variable) -> str:
        """The variable as an array of structs, empty where it is bound to nothing."""
        self._mark_used(variable)
        column = self._column(variable)
        return f"filter(array({column}), __e -> __e IS NOT NULL)" if variable.single else column

    def _bare(self, node: Bare) -> str | None:
        case_sensitive = self.conditions.scope.case_sensitive
        bound = Names(self.of_match, case_sensitive).get(node.names[0])
        if len(node.names) == 1 and bound is not None:
            return quote(self.of_match[bound])
        column = self.conditions.constant_column(node)
        if column is None:
            if len(node.names) == 1 and node.names[0] in Names(TIMEOUTS, case_sensitive):
                hint = "Write RETURN … WITH TIMEOUTS to see also what was begun and not finished."
                raise BindError("NO_TIMEOUTS", span=node.span, name=node.names[0], hint=hint)
            return None
        if column not in self.partition_by:
            key = self._agreed(column)
        else:
            key = quote(key_column(self.partition_by.index(column)))
        return ".".join([key, *(quote(part) for part in node.names[1:])])

    def _agreed(self, column: str) -> str:
        """A column on which the match agrees: of an event that is always there, or of the first that is."""
        owners = [v for v in self.variables if v.mark in self.present][:1] or list(self.variables)
        values = []
        for variable in owners:
            self._use(variable, column)
            event = self._column(variable) if variable.single else f"get({self._column(variable)}, 0)"
            values.append(f"{event}.{quote(column)}")
        return values[0] if len(values) == 1 else f"coalesce({', '.join(values)})"

    # ------------------------------------------------------------ calls

    def _call(self, call: Call) -> str:
        if call.function in PICKS:
            return self._pick(call)
        if call.function in UNSUPPORTED or call.function not in AGGREGATES:
            construct = f"{call.function} over the events of a match"
            raise BindError("NOT_SUPPORTED_YET", span=call.span, construct=construct)
        if call.column is not None:
            inner = rendered(self.text, call.arguments, lambda node: None).text
            raise BindError(
                "EVENT_NOT_VALUE", span=call.span, name=f"{call.function}({inner})",
                hint=f"Write {call.function}({inner}.{call.column}).",
            )  # fmt: skip
        if any(isinstance(node, Word) and node.upper == "," for node in _outermost(call.arguments)):
            raise BindError("NOT_SUPPORTED_YET", span=call.span, construct=f"{call.function} of several arguments")
        if not any(isinstance(node, Ref) for node in call.arguments):
            return self._of_no_variable(call)
        if call.function == "COUNT" and len(call.arguments) == 1 and _is_event(call.arguments[0]) and not call.distinct:
            ref = call.arguments[0]
            assert isinstance(ref, Ref)
            return f"CAST(size({self._list(self._variable(ref))}) AS BIGINT)"
        return self._aggregate(call)

    def _of_no_variable(self, call: Call) -> str:
        """COUNT(*) and COUNT(1) are the number of events of the match."""
        words = [node.token for node in call.arguments if isinstance(node, Word)]
        constant = len(call.arguments) == len(words) == 1 and (words[0].text == "*" or words[0].kind == "number")
        if call.function == "COUNT" and constant and not call.distinct:
            self.uses_size = True
            return f"CAST({quote(SIZE_COLUMN)} AS BIGINT)"
        raise self._no_variable(call)

    def _pick(self, call: Call) -> str:
        """FIRST(x.a), FIRST(x).a, FIRST(x), and any expression of one variable's columns in place of x.a."""
        refs = [node for node in call.arguments if isinstance(node, Ref)]
        if not refs:
            raise self._no_variable(call)
        variable = self._single_variable(call, refs)
        at = "0" if call.function == "FIRST" else f"size({self._list(variable)}) - 1"
        event = f"get({self._list(variable)}, {at})"
        if len(call.arguments) == 1 and _is_event(call.arguments[0]):
            if call.column is None:
                self._whole(variable)
                return event
            return f"{event}.{self._field(variable, call.column, call.column_span or call.span)}"
        values = self._values(call.arguments, [variable])
        at = "0" if call.function == "FIRST" else f"size({values}) - 1"
        return f"get({values}, {at})"

    def _single_variable(self, call: Call, refs: Sequence[Ref]) -> Variable:
        variables = list(dict.fromkeys(self._variable(ref) for ref in refs))
        if len(variables) != 1:
            raise BindError(
                "NOT_SUPPORTED_YET", span=call.span, construct=f"{call.function} over several variables",
                hint="Name one variable inside it.",
            )  # fmt: skip
        return variables[0]

    def _values(self, arguments: Sequence[Node], variables: Sequence[Variable]) -> str:
        """An array of the argument's values: one for every combination of one event of each variable."""
        names = {}
        for variable in variables:
            self.shadows += 1
            names[variable.mark] = f"__e{self.shadows}"

        def element(node: Node) -> str | None:
            if isinstance(node, Call):
                raise _inside_another(node)
            if not isinstance(node, Ref):
                return self._bare(node) if isinstance(node, Bare) else None
            if node.index is not None:
                shown = self.text[node.span.start : node.span.end]
                construct = f"{shown}, one event, inside an aggregate"
                raise BindError("NOT_SUPPORTED_YET", span=node.span, construct=construct)
            column, span = self.conditions.named_column(node)
            return f"{names[node.variable]}.{self._field(self._variable(node), column, span)}"

        value = rendered(self.text, arguments, element).text
        for depth, variable in enumerate(reversed(variables)):
            value = f"transform({self._list(variable)}, {names[variable.mark]} -> {value})"
            if depth:
                value = f"flatten({value})"
        return value

    def _aggregate(self, call: Call) -> str:
        refs = [node for node in call.arguments if isinstance(node, Ref)]
        variables = list(dict.fromkeys(self._variable(ref) for ref in refs))
        values = f"filter({self._values(call.arguments, variables)}, __v -> __v IS NOT NULL)"
        if call.distinct:
            values = f"array_distinct({values})"
        match call.function:
            case "COUNT":
                return f"CAST(size({values}) AS BIGINT)"
            case "MIN" | "MAX":
                return f"array_{call.function.lower()}({values})"
            case "RANGE":
                return f"(array_max({values}) - array_min({values}))"
            case "COLLECT_LIST":
                return values
        return fold(call.function, values, self._element_type(call.arguments))

    def _element_type(self, arguments: Sequence[Node]) -> str:
        """Spark's type of an aggregate's argument."""
        used: dict[str, Column] = {}

        def column(node: Node) -> str | None:
            if isinstance(node, Ref):
                name: str | None = self.conditions.column(node.variable, *self.conditions.named_column(node))
            else:
                name = self.conditions.constant_column(node) if isinstance(node, Bare) else None
            if name is None:
                return None
            used[name] = next(c for c in self.conditions.columns if c.name == name)
            return quote(name)

        return self.type_of(rendered(self.text, arguments, column).text, tuple(used.values()))


def _outermost(nodes: Sequence[Node]) -> Iterator[Node]:
    """The nodes outside all parentheses."""
    depth = 0
    for node in nodes:
        upper = node.upper if isinstance(node, Word) else ""
        depth -= upper in CLOSING
        if depth == 0:
            yield node
        depth += upper in OPENING


def _is_event(node: Node) -> bool:
    return isinstance(node, Ref) and node.column is None and node.index is None and node.condition is None


def fold(function: str, values: str, type: str) -> str:
    """SUM or AVG of an array without NULLs, with the result type and overflow of Spark's aggregate; NULL if empty.

    Spark: SUM of whole numbers is BIGINT, of DECIMAL(p, s) DECIMAL(p + 10, s), else DOUBLE; AVG of DECIMAL(p, s) is
    DECIMAL(p + 4, s + 4), of intervals an interval, else DOUBLE.
    """
    base, _, arguments = type.partition("(")
    if base == "decimal":
        precision, scale = (int(part) for part in arguments.rstrip(")").split(","))
        total = f"DECIMAL({min(38, precision + 10)},{scale})"
        mean = f"DECIMAL({min(38, precision + 4)},{min(38, scale + 4)})"
    elif base.startswith("interval"):
        total = mean = type
    else:
        total = "BIGINT" if function == "SUM" and base in ("tinyint", "smallint", "int", "bigint") else "DOUBLE"
        mean = "DOUBLE"
    sum_ = (
        f"aggregate(slice({values}, 2, greatest(size({values}) - 1, 0)), CAST(get({values}, 0) AS {total}), "
        f"(__s, __v) -> CAST(__s + __v AS {total}))"
    )
    if function == "SUM":
        return sum_
    size = f"nullif(size({values}), 0)"
    if base == "decimal":
        return _decimal_mean(sum_, size, total, mean)
    return f"CAST({sum_} / {size} AS {mean})"


def _decimal_mean(total: str, size: str, total_type: str, mean_type: str) -> str:
    """total / size with every digit of the mean's type.

    Spark's division keeps the whole digits that its operands' types allow, if need be at the cost of the others. Where
    that would cost digits of the mean, the whole quotient is taken first; what remains is smaller than the number of
    events, and its division loses nothing.
    """
    digits, places = _decimal(total_type)
    precision, scale = _decimal(mean_type)
    if min(38 - (digits - places), places + 21) > scale:
        return f"CAST({total} / CAST({size} AS DECIMAL(20,0)) AS {mean_type})"
    whole = f"CAST(floor(__m.t / __m.n) AS DECIMAL({precision - 2},{scale}))"
    rest = f"CAST(__m.t - floor(__m.t / __m.n) * __m.n AS DECIMAL({min(38, places + 10)},{places}))"
    small = f"CAST({rest} / __m.n AS DECIMAL({min(38, scale + 2)},{scale}))"
    # Both are long expressions: named, they are computed once.
    both = f"named_struct('t', {total}, 'n', CAST({size} AS DECIMAL(10,0)))"
    return f"get(transform(array({both}), __m -> CAST({whole} + {small} AS {mean_type})), 0)"


def _decimal(type: str) -> tuple[int, int]:
    """Precision and scale of DECIMAL(p,s)."""
    precision, scale = type[len("DECIMAL(") : -1].split(",")
    return int(precision), int(scale)


def _inside_another(call: Call) -> BindError:
    return BindError("NOT_SUPPORTED_YET", span=call.span, construct="An aggregate inside another")
