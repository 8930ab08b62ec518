"""RETURN … GROUP BY: what tells groups of matches apart, and aggregates over all matches of a group.

    RETURN a.k, COUNT(*) AS n, SUM(b.x) … GROUP BY a.k HAVING n > 5

An item is any expression over what GROUP BY names and aggregates: both become columns of a group's row, and what the
user wrote is put on top of these. COUNT(*) is the number of matches there; COUNT(b), SUM(b.x), … range over the events
b of all matches. Numbers grow fast (63 events can have 2⁶³ matches), so COUNT, and SUM of whole numbers and of
decimals, are DECIMAL(38).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from cersql.binding.aggregates import Aggregate, Parts, decimal
from cersql.binding.expressions import PICKS, Bare, Call, Node, Ref, Together, Word, rendered, walk
from cersql.binding.own_aggregates import aggregate_named
from cersql.binding.returns import Returns
from cersql.binding.scope import Names
from cersql.binding.sliding import is_window
from cersql.errors import BindError
from cersql.language import syntax
from cersql.language.lexer import Token, split
from cersql.language.syntax import ReturnItem, Text
from planner.groups import WINDOW_COLUMN, Aggregated, Grouped, Groups, Sliding, by_column, sum_column
from planner.query import Output, key_column
from planner.sql import Sql, quote
from runtime.errors import Span
from runtime.marks import FIRST_EVENT, LAST_EVENT

_WHOLE = ("tinyint", "smallint", "int", "bigint")
_TOTAL = "decimal(38,0)"
_BOUNDS = {"match_start": FIRST_EVENT, "match_end": LAST_EVENT}
_SHADOW = re.compile(r"__e\d+")  # what events are called in lambdas
WINDOW = "WINDOW"
_POINTS = {
    "timestamp": "timestamp_micros({})",
    "timestamp_ntz": "timestampadd(MICROSECOND, {}, TIMESTAMP_NTZ'1970-01-01 00:00:00')",
    "date": "date_from_unix_date(CAST({} AS INT))",
}  # of a clock the value that it stands for
_NO_ORDER = "Matches of a group have no order among each other: write MIN, MAX, MIN_BY or MAX_BY."


@dataclass(frozen=True)
class Key:
    """An expression of GROUP BY, as it is written."""

    nodes: tuple[Node, ...]
    words: tuple[str, ...]


@dataclass
class GroupedReturns(Returns):
    """Lowers the clauses of a query with GROUP BY; what WHERE says is of single matches all the same."""

    query: syntax.Query | None = None
    sliding: Sliding | None = None
    time: str = ""  # the first column of ORDER BY
    keys: list[Key] = field(default_factory=list)
    by: list[Grouped] = field(default_factory=list)
    sums: list[Aggregated] = field(default_factory=list)
    of_groups: bool = False
    semiring: Aggregated | None = None  # what is known of the aggregate that is being lowered

    @property
    def groups(self) -> Groups:
        """See Returns.groups."""
        assert self.query is not None
        bounds = self.query.within is not None and self.query.within.slide is not None
        return Groups(tuple(self.by), tuple(self.sums), sliding=self.sliding, bounds=bounds)

    def outputs(self, items: Sequence[ReturnItem]) -> list[Output]:
        """See Returns.outputs."""
        for item in items:
            if item.star:
                hint = "Name the columns: what GROUP BY names, and aggregates."
                raise BindError("NOT_GROUPED", span=item.expression.span, name="*", hint=hint)
        if self.sliding is not None:
            self.keys.append(Key((), (WINDOW,)))
            column = quote(key_column(self.partition_by.index(WINDOW_COLUMN)))
            self.by.append(Grouped(WINDOW, None, quote(WINDOW_COLUMN), column))
        for nodes, span in self._written(items):
            if self._words(nodes) not in [key.words for key in self.keys]:
                self.keys.append(Key(nodes, self._words(nodes)))
                self.by.append(self._grouped(nodes, span))
        self.of_groups = True
        return super().outputs(items)

    def lower(self, nodes: Sequence[Node], span: Span | None) -> Sql:
        """See MatchValues.lower."""
        return super().lower(self._with_keys(nodes) if self.of_groups else nodes, span)

    def having(self, condition: Text) -> Sql:
        """See Returns.having: it knows what GROUP BY names, and the names that RETURN gives."""
        nodes = self._with_keys(self._nodes(condition))

        def element(node: Node) -> str | None:
            if isinstance(node, Bare) and self._number_of(node) is None:
                return self._named(node) or self._replace(node)
            return self._replace(node)

        return rendered(self.text, nodes, element, condition.span)

    def _means_of_match(self, node: Bare) -> bool:
        return False

    # ------------------------------------------------------------ GROUP BY

    def _written(self, items: Sequence[ReturnItem]) -> Iterator[tuple[tuple[Node, ...], Span]]:
        """The expressions of GROUP BY; ALL stands for the items of RETURN without aggregates."""
        assert self.query is not None
        group_by = self.query.group_by
        if group_by is None:
            return
        toks = self.text.within(group_by.span)
        words = [token.upper for token in toks]
        if words == ["ALL"]:
            for item in items:
                nodes = self._nodes(item.expression)
                alone = len(nodes) == 1 and isinstance(nodes[0], Bare) and self._is_window(nodes[0])
                if not alone and not any(isinstance(node, Call) for node in walk(nodes)):
                    yield nodes, item.expression.span
            return
        if words == ["(", ")"]:
            return
        for part in split(toks):
            if not part:
                raise BindError("EMPTY_CONDITION", span=group_by.span)
            if not is_window(self.query, part[0].span | part[-1].span):
                yield self._item(part, items)

    def _item(self, part: Sequence[Token], items: Sequence[ReturnItem]) -> tuple[tuple[Node, ...], Span]:
        """An expression, the name that an item of RETURN has, or its number."""
        span = part[0].span | part[-1].span
        if len(part) == 1 and part[0].text.isdigit():
            number = int(part[0].text)
            if not 1 <= number <= len(items):
                problem = f"is no item of RETURN, which has {len(items)}"
                raise BindError("GROUP_KEY", span=span, found=part[0].text, problem=problem)
            return self._nodes(items[number - 1].expression), items[number - 1].expression.span
        nodes = self._nodes(Text(self.text[span.start : span.end], span))
        only = nodes[0] if len(nodes) == 1 else None
        if isinstance(only, Bare) and len(only.names) == 1 and self._constant(only) is None:
            fold = self.conditions.scope.fold
            for item in items:
                if item.alias is not None and fold(item.alias.value) == fold(only.names[0]):
                    return self._nodes(item.expression), item.expression.span
        return nodes, span

    def _grouped(self, nodes: Sequence[Node], span: Span) -> Grouped:
        shown = " ".join(self.text[span.start : span.end].split())
        marks: dict[str, None] = {}
        is_row = True
        for node, after in zip(nodes, [*nodes[1:], None], strict=True):
            self._check_key(node, after, shown)
            if isinstance(node, Ref):
                is_row = is_row and self._of_event(node, shown)
                if not self._agrees(node):
                    marks.setdefault(node.variable)
            elif isinstance(node, Bare) and self._is_of_match(node):
                marks.setdefault(_BOUNDS[self._bound_name(node)])
        row = self._on_row(nodes).text if is_row and len(marks) <= 1 else None
        return Grouped(shown, next(iter(marks), None), row, self.lower(self._of_match(nodes), span).text)

    def _check_key(self, node: Node, after: Node | None, shown: str) -> None:
        if isinstance(node, Call | Together):
            hint = "Group the matches by it in a query around this one: SELECT … FROM (PATTERN …) GROUP BY …."
            raise BindError("GROUP_KEY", span=node.span, found=shown, problem="is no expression over events", hint=hint)
        called = isinstance(after, Word) and after.token.text == "("
        if isinstance(node, Word) and node.upper in ("WINDOW", "SESSION_WINDOW") and called:
            hint = "Write GROUP BY WINDOW 10 MINUTES SLIDE 30 SECONDS, or date_trunc('MINUTE', match_end)."
            raise BindError("GROUP_KEY", span=node.span, found=shown, problem="can be several windows", hint=hint)

    def _of_event(self, ref: Ref, shown: str) -> bool:
        """Does it speak of one event, whose row is known when it happens? `b[1].x` is of one that is known later."""
        variable = self._variable(ref)
        if ref.column in (None, "*"):
            raise BindError("EVENT_NOT_VALUE", span=ref.span, name=ref.written, hint=f"Name a column: {ref.written}.x.")
        if isinstance(ref.index, int):
            return False
        if not variable.single and not self._agrees(ref):
            hint = f"Where all events agree on it, write [{ref.column}] in WHERE, and GROUP BY {ref.column}; "
            hint += f"else name one of them: {variable.name}[1].{ref.column}."
            problem = f"has one in each event of {variable.name}"
            raise BindError("GROUP_KEY", span=ref.span, found=shown, problem=problem, hint=hint)
        return True

    def _agrees(self, ref: Ref) -> bool:
        """Do all events of a match agree on it?"""
        return ref.column is not None and ref.index is None and ref.column in (*self.agreed, *self.partition_by)

    def _of_match(self, nodes: Sequence[Node]) -> list[Node]:
        """What all events agree on is read off a match, whichever of its events is named."""
        return [
            Bare((node.column or "",), node.span, node.span) if isinstance(node, Ref) and self._agrees(node) else node
            for node in nodes
        ]

    def _bound_name(self, node: Bare) -> str:
        return Names(self.of_match, self.conditions.scope.case_sensitive).get(node.names[0]) or ""

    def _on_row(self, nodes: Sequence[Node]) -> Sql:
        column, _ = self._columns_read(nodes)

        def element(node: Node) -> str | None:
            if isinstance(node, Bare) and self._is_of_match(node):
                return quote(self.time)
            return column(node)

        return rendered(self.text, nodes, element)

    # ------------------------------------------------------------ what GROUP BY names, in other clauses

    def _words(self, nodes: Sequence[Node]) -> tuple[str, ...]:
        """By what two expressions are the same."""
        fold = self.conditions.scope.fold
        found = []
        for node in nodes:
            if isinstance(node, Ref):
                found.append(f"{node.variable}[{node.index or ''}].{fold(node.column or '')}")
            elif isinstance(node, Bare):
                found.append(".".join(map(fold, node.names)))
            else:
                is_text = isinstance(node, Word) and node.token.kind == "string"
                written = self.text[node.span.start : node.span.end]
                found.append(written if is_text else written.upper())
        return tuple(found)

    def _with_keys(self, nodes: Sequence[Node]) -> list[Node]:
        """The nodes, with those that GROUP BY names replaced by the columns of groups; longer ones first."""
        found, words = list(nodes), [self._words([node])[0] for node in nodes]
        for i, key in sorted(enumerate(self.keys), key=lambda each: -len(each[1].words)):
            n, at = len(key.words), 0
            while at + n <= len(found):
                if tuple(words[at : at + n]) == key.words and _stands_alone(found, at, n):
                    span = found[at].span | found[at + n - 1].span
                    found[at : at + n], words[at : at + n] = [Bare((by_column(i),), span, span)], [by_column(i)]
                at += 1
        return found

    def _number_of(self, node: Bare) -> int | None:
        names = [by_column(i) for i in range(len(self.keys))]
        return names.index(node.names[0]) if node.names[0] in names else None

    def _replace(self, node: Node) -> str | None:
        if not self.of_groups:
            return super()._replace(node)
        if isinstance(node, Bare) and self._is_window(node):
            return ".".join([self._window(), *map(quote, node.names[1:])])
        if isinstance(node, Bare):
            number = self._number_of(node)
            if number is not None:
                return ".".join(map(quote, (by_column(number), *node.names[1:])))
            if super()._bare(node) is None:
                return None
        if isinstance(node, Call):
            return self._of_group(node)
        if isinstance(node, Ref | Bare | Together):
            name = self.text[node.span.start : node.span.end]
            hint = f"Write GROUP BY {name}, or an aggregate of it: MIN({name}), COUNT({name})."
            raise BindError("NOT_GROUPED", span=node.span, name=name, hint=hint)
        return None

    def _is_window(self, node: Bare) -> bool:
        """Is it the window of the group? A column of the name comes first where it has one value."""
        return self.sliding is not None and node.names[0].upper() == WINDOW

    def _window(self) -> str:
        """The window of a group, as Spark's window() gives it: a struct of its start and its end."""
        assert self.sliding is not None
        begin = by_column(0)
        start, end = (_POINTS.get(self.sliding.type, "CAST({} AS " + (self.sliding.type or "BIGINT") + ")").format(at)
                      for at in (begin, f"{begin} + {self.sliding.size}"))  # fmt: skip
        return f"named_struct('start', {start}, 'end', {end})"

    # ------------------------------------------------------------ aggregates

    def _of_group(self, call: Call) -> str:
        """The column of an aggregate over all matches of a group."""
        known = aggregate_named(call.function)
        if call.function in PICKS or known is None:
            hint = _NO_ORDER if call.function in PICKS else "Compute it of each match, in a query around this one."
            raise BindError("NOT_OF_GROUPS", span=call.span, function=call.function, hint=hint)
        shown = " ".join(self.text[call.span.start : call.span.end].split())
        refs = [node for node in call.nodes if isinstance(node, Ref)]
        if not refs:
            uses_size = self.uses_size
            self._of_no_variable(call)  # which refuses all but COUNT(*)
            self.uses_size = uses_size
            one, number = "array(1)", f"CAST(size({sum_column(len(self.sums))}) AS {_TOTAL})"
            return self._column_of(Aggregated(shown, _TOTAL, one, number, "COUNT"))
        self.semiring = self._semiring(call, refs, shown)
        return self._aggregate(call, known)

    def _column_of(self, aggregated: Aggregated) -> str:
        """The same aggregate is computed once."""
        made = _alike(aggregated, len(self.sums))
        for i, other in enumerate(self.sums):
            if _alike(other, i) == made:
                return quote(sum_column(i))
        self.sums.append(aggregated)
        return quote(sum_column(len(self.sums) - 1))

    def _built(self, call: Call, aggregate: Aggregate, parts: Parts) -> str:
        """See MatchValues._built."""
        if not self.of_groups:
            return super()._built(call, aggregate, parts)
        assert self.semiring is not None
        if aggregate.own is not None:
            values = replace(parts, rows=quote(sum_column(len(self.sums)))).known
            reason = f"{self.semiring.shown} is computed by Python"
            made = replace(self.semiring, type=parts.result, on_match=parts.rows, of_values=values, reason=reason)
            return self._column_of(replace(made, function=None, own=aggregate.own))
        function, value = self.semiring.function, parts.types[0] if parts.types else ""
        is_exact = value in _WHOLE or decimal(value)[0]
        if call.function == "COUNT":
            parts = replace(parts, result=_TOTAL)
        elif function == "SUM" and is_exact:
            parts = replace(parts, result=f"decimal(38,{decimal(value)[2]})")
        elif function in ("SUM", "AVG") and (decimal(value)[0] or parts.result == "double"):
            function += "" if decimal(value)[0] else " OF DOUBLE"
        elif function in ("SUM", "AVG"):
            function = None
        of_values = aggregate.build(replace(parts, rows=quote(sum_column(len(self.sums)))))
        if call.function == "COUNT":
            of_values = f"CAST({of_values} AS {_TOTAL})"
        reason = self.semiring.reason or f"{self.semiring.shown} is of {value.upper()}"
        return self._column_of(
            replace(
                self.semiring, type=parts.result, on_match=parts.rows, of_values=of_values, function=function,
                reason="" if function else reason,
            )
        )  # fmt: skip

    def _semiring(self, call: Call, refs: Sequence[Ref], shown: str) -> Aggregated:
        """What an aggregate over events of one variable is summed up of, or why it is not."""
        found = Aggregated(shown, "", "", "", reason=f"{shown} is no sum over events")
        known = aggregate_named(call.function)
        function = None if known is None else known.trend
        if function is None or call.order or call.where or call.ignore_nulls or call.distinct:
            return found
        marks = {ref.variable for ref in refs}
        if len(marks) > 1 or any(ref.index is not None or ref.condition is not None for ref in refs):
            return replace(found, reason=f"{shown} is of several variables, or of one event among many")
        (mark,) = marks
        only = call.arguments[0]
        if function == "COUNT" and len(call.arguments) == 1 and isinstance(only, Ref) and only.column is None:
            return replace(found, function=function, mark=mark)
        if any(isinstance(node, Word) and node.token.text == "," for node in call.arguments) and function == "COUNT":
            return found
        return replace(found, function=function, mark=mark, value=self._on_row(call.arguments).text)


def _alike(aggregated: Aggregated, number: int) -> tuple[str, ...]:
    """By what two aggregates are the same."""
    column = sum_column(number)
    texts = (aggregated.on_match, aggregated.of_values, "" if aggregated.own is None else aggregated.own.name)
    return tuple(_SHADOW.sub("__e", text).replace(column, "") for text in texts)


def _stands_alone(nodes: Sequence[Node], at: int, n: int) -> bool:
    """Are n nodes an operand by themselves, whatever stands around them?"""
    if n == 1:
        return True
    first, last = nodes[at], nodes[at + n - 1]
    if isinstance(first, Word) and first.token.is_name and _is(nodes[at + 1], "(") and _is(last, ")"):
        return sum(_is(node, "(") for node in nodes[at : at + n]) >= 1
    before = at == 0 or _is(nodes[at - 1], "(") or _is(nodes[at - 1], ",")
    after = at + n == len(nodes) or _is(nodes[at + n], ")") or _is(nodes[at + n], ",")
    return before and after


def _is(node: Node, mark: str) -> bool:
    return isinstance(node, Word) and node.token.text == mark
