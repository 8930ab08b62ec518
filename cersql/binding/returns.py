"""RETURN, HAVING and conditions on the whole match: which columns the result has, and which matches stay."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from cersql.binding.about import free_variables
from cersql.binding.booleans import Bool, OrOf, structure
from cersql.binding.clause import any_of
from cersql.binding.comparisons import unwrapped
from cersql.binding.event_values import TIMEOUTS
from cersql.binding.expressions import Bare, Call, Node, Ref, Word, read, rendered, walk
from cersql.binding.match_values import MatchValues
from cersql.binding.own_aggregates import is_own
from cersql.binding.scope import Names, display
from cersql.binding.together import TRENDS
from cersql.errors import BindError
from cersql.language.syntax import ReturnItem, Text
from planner.groups import Groups
from planner.query import (
    Output,
    Variable,
    key_column,
    output_column,
)
from planner.sql import Sql, quote
from runtime.errors import Span
from runtime.marks import is_hidden

# Functions that make several rows of one; a window function is known by its OVER.
GENERATORS = frozenset("EXPLODE EXPLODE_OUTER POSEXPLODE POSEXPLODE_OUTER INLINE INLINE_OUTER STACK JSON_TUPLE".split())


@dataclass
class Returns(MatchValues):
    """Lowers the clauses of one query that speak of matches; remembers the names that RETURN gives."""

    named: dict[str, list[int]] = field(default_factory=dict)  # folded names that RETURN gives: the outputs
    result: list[Output] = field(default_factory=list)
    wanted: set[int] = field(default_factory=set)  # the outputs that HAVING reads
    asked: list[OrOf] = field(default_factory=list)  # what HAVING asks of a match

    @property
    def groups(self) -> Groups | None:
        """What GROUP BY says, and the aggregates over groups."""
        return None

    def outputs(self, items: Sequence[ReturnItem]) -> list[Output]:
        """The columns of the result. WITH TIMEOUTS they always say how each row ended."""
        found = list(self._items(items))
        fold = self.conditions.scope.fold
        if self.timeouts and not any(item.star for item in items):
            told = " ".join(output.sql.text for output in found)
            for name, column in TIMEOUTS.items():
                if column not in told and not any(output.name and fold(output.name) == name for output in found):
                    at = items[-1].expression.span.end
                    found.append(Output(Sql(((quote(column), at, False),)), name, name))
        for i, output in enumerate(found):
            if output.name is not None:
                self.named.setdefault(fold(output.name), []).append(i)
        self.result = found
        return found

    def _items(self, items: Sequence[ReturnItem]) -> Iterator[Output]:
        for item in items:
            if item.star:
                yield from self._star(item.expression.span)
                continue
            nodes = self._nodes(item.expression)
            _refuse_several_rows(nodes)
            only = nodes[0] if len(nodes) == 1 else None
            if isinstance(only, Ref | Call) and only.column == "*":
                if item.alias is not None:
                    raise BindError(
                        "NOT_SUPPORTED_YET", span=item.alias.span, construct="A name for several columns",
                        hint="Name the columns one by one, or leave out AS.",
                    )  # fmt: skip
                yield from self._columns(only)
                continue
            name = item.alias.value if item.alias else self._simple_name(only) or self._name_of_own(nodes, item)
            yield Output(self.lower(nodes, item.expression.span), name, self._for_naming(nodes, item.expression.span))

    def condition(self, clause: OrOf) -> Sql:
        """An OR on the whole match: for every choice of one event for each variable outside the aggregates.

        A variable that can hold one event only is read as it is, and the OR holds where it holds none.
        """
        free = dict.fromkeys(mark for part, _ in clause for mark in free_variables(part.nodes))
        variables = [variable for variable in self.variables if variable.mark in free]
        expressions = [part.nodes for part, _ in clause]

        def text(name: Callable[[Variable], str]) -> Sql:
            def element(node: Node) -> str | None:
                if not isinstance(node, Ref) or isinstance(node.index, int):
                    return self._replace(node)
                if node.condition is not None:
                    raise BindError("NOT_SUPPORTED_YET", span=node.span, construct="x[condition] beside an aggregate")
                column, span = self.conditions.named_column(node)
                variable = self._variable(node)
                return f"{name(variable)}.{self._field(variable, column, span)}"

            holds = any_of([self._side(part, positive, element) for part, positive in clause])
            return holds.wrapped("coalesce(", ", FALSE)") if variables else holds

        many = [variable for variable in variables if not variable.single]
        if not many:
            holds = text(self._column)
        elif self._in_lambda(expressions):
            names = self._shadows(many)
            holds = text(lambda v: names.get(v.mark) or self._column(v))
            for variable in many:
                holds = holds.wrapped(f"forall({self._list(variable)}, {names[variable.mark]} -> ", ")")
        else:
            array = self._gather(many, lambda names: text(lambda v: names.get(v.mark) or self._column(v)), expressions)
            holds = Sql(((f"forall({array}, __v -> __v)", clause[0][0].span.start, False),))
        for variable in variables:
            if variable.single and variable.mark not in self.present:
                holds = holds.wrapped(f"({self._column(variable)} IS NULL OR ", ")")
        return holds

    def _side(self, part: Bool, positive: bool, element: Callable[[Node], str | None]) -> Sql:
        """A side of an OR, or its NOT; NOT INCREASING(x.a) says that of every two neighbours."""
        (first, *others) = unwrapped(part.nodes)
        if not positive and isinstance(first, Call) and first.function in TRENDS and not others:
            return Sql(((self._trend(first, positive), first.span.start, False),))
        sql = rendered(self.text, part.nodes, element)
        return sql if positive else sql.wrapped("NOT (", ")")

    def having(self, condition: Text) -> Sql:
        """A condition on a match. It knows the names that RETURN gives, too, where they mean nothing else."""
        nodes = self.conditions.gathered(self._nodes(condition))
        _refuse_several_rows(nodes)
        self.asked = [((part, True),) for part in structure(nodes).conjuncts()]

        def replace(node: Node) -> str | None:
            if isinstance(node, Bare):
                return self._named(node) or self._bare(node)
            if isinstance(node, Ref) and node.column is None and node.index is None and node.condition is None:
                self._refuse_two_meanings(node)
            return self._replace(node)

        return rendered(self.text, nodes, replace, condition.span)

    def _named(self, node: Bare) -> str | None:
        """A column of RETURN, if the name means nothing else for the whole match."""
        found = self.named.get(self.conditions.scope.fold(node.names[0]), [])
        if not found or self._means_of_match(node):
            return None
        if len(found) > 1:
            raise BindError(
                "AMBIGUOUS_NAME", span=node.first, name=node.names[0], one="one column of RETURN", other="another",
                hint="Give one of them another name with AS.",
            )  # fmt: skip
        self.wanted.add(found[0])
        return ".".join([quote(output_column(found[0])), *(quote(part) for part in node.names[1:])])

    def _means_of_match(self, node: Bare) -> bool:
        scope = self.conditions.scope
        own = [*self.of_match, *self.partition_by, *self.agreed]
        return node.names[0] in Names(own, scope.case_sensitive)

    def _refuse_two_meanings(self, ref: Ref) -> None:
        """`COUNT(b) AS b … HAVING b > 1`: the events of b, or the number of them?"""
        variable = self._variable(ref)
        for i in self.named.get(self.conditions.scope.fold(ref.written), []):
            if self.result[i].sql.text != self._column(variable):
                raise BindError(
                    "AMBIGUOUS_NAME", span=ref.span, name=ref.written, one=f"the events of {variable.name}",
                    other="a column of RETURN", hint="Give the column another name with AS.",
                )  # fmt: skip

    def _nodes(self, text: Text) -> tuple[Node, ...]:
        scope = self.conditions.scope
        nodes = read(self.text, text.span, scope.variable, scope.fold)
        nodes = self.conditions.keys.recognized(nodes, self.conditions.partition_by)
        if not nodes:
            raise BindError("EMPTY_CONDITION", span=text.span)
        marks = [variable.mark for variable in self.variables]
        for node in walk(nodes):
            if isinstance(node, Ref):
                self.conditions.check_ref(node, marks)
        return nodes

    def _star(self, span: Span) -> Iterator[Output]:
        """RETURN *: partition columns, match_start, match_end, then a column per variable in order of appearance."""
        taken: dict[str, tuple[str, str]] = {}
        fold = self.conditions.scope.fold
        shown = [v for v in self.variables if not is_hidden(v.mark)]
        kinds = [(key.shown, "the partition column") for key in self.conditions.partition_by]
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
        for i, key in enumerate(self.conditions.partition_by):
            yield Output(Sql(((key_column(i), at, False),)), key.shown, key.shown)
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

    def _simple_name(self, node: Node | None) -> str | None:
        """The name of an item that is only a reference; None leaves it to Spark."""
        if isinstance(node, Ref) and node.condition is None:
            return node.column or display(node.variable)
        if isinstance(node, Bare):
            shown = {key.name: key.shown for key in self.conditions.partition_by if key.words}
            return shown.get(node.names[-1], node.names[-1])
        return None

    def _name_of_own(self, nodes: Sequence[Node], item: ReturnItem) -> str | None:
        """Where Spark does not know a function of the user's own, an item is called as it is written."""
        if any(isinstance(node, Call) and is_own(node.function) for node in walk(nodes)):
            return " ".join(item.expression.value.split())
        return None

    def _for_naming(self, nodes: Sequence[Node], span: Span) -> str:
        """The item as Spark could read it over relations called like the variables, to ask Spark for its name."""

        def plain(node: Node) -> str | None:
            if isinstance(node, Ref):
                name = quote(display(node.variable))
                return name if node.column is None else f"{name}.{quote(node.column)}"
            if isinstance(node, Call) and (node.order or node.where or node.ignore_nulls):
                return rendered(self.text, node.nodes, plain, node.span).text
            if isinstance(node, Call) and node.arguments:
                inner = rendered(self.text, node.arguments, plain, None).text
                picked = f".{quote(node.column)}" if node.column else ""
                return f"{node.function}({'DISTINCT ' if node.distinct else ''}{inner}{picked})"
            return None

        return rendered(self.text, nodes, plain, span).text


def _refuse_several_rows(nodes: Sequence[Node]) -> None:
    """A match is one row: what makes several rows of one, or looks at several, stands in a query around it."""
    found = list(walk(nodes))
    for node, after in pairwise([*found, None]):
        if not isinstance(node, Word):
            continue
        if node.upper == "OVER":
            raise several_rows(node.span, "A window function (OVER)")
        if node.upper in GENERATORS and isinstance(after, Word) and after.token.text == "(":
            raise several_rows(node.span, f"{node.upper}, which makes several rows of one,")


def several_rows(span: Span, construct: str) -> BindError:
    hint = "Put a SELECT around it, which reads the matches: SELECT … FROM (PATTERN … RETURN …) AS m."
    return BindError("ONE_ROW", span=span, construct=construct, hint=hint)
