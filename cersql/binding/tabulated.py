"""Any other condition on two events, `levenshtein(a.s, b.s) < 3`, a UDF of a.x and b.x: Spark decides it pair by pair.

Of each event it reads some columns. Their values, as JSON, are the event's code: `{"left0":"cat"}`. Different values
have different codes, and events with equal values are one to the workers. Spark evaluates the condition on the pairs of
rows that can meet, and sends the pairs of codes for which it is TRUE (spark_ext.tabulating); a worker looks them up
(runtime.partition.tables). So the whole condition is asked, with its NOT, and nothing of it is taken apart.

Road not taken: codes that are numbers of rows. They would be shorter, but equal events would be different ones to the
runs that hold them, and a source that is read twice would have to number its rows alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from cersql.binding.arithmetic import Related
from cersql.binding.comparisons import Event, events_of, which
from cersql.binding.expressions import Node, Ref, Word, rendered
from planner.sql import Sql
from planner.terms import Spelled, Tabulated, Term, left_column, right_column, spelled_column
from runtime import relations as ops
from runtime.relations import Relation

_PLACES = {"first": 0, "earlier": 0, "middle": 1, "later": 2, "last": 2}
_OPTIONS = (
    "map('ignoreNullFields', 'false', 'timestampFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSSXXXXX', "
    "'timestampNTZFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSS')"
)


@dataclass
class Tabulating:
    """Makes relations of conditions on two events, and numbers them. `row` renders a reference, or the name of a
    column that the whole match shares, as SQL on a row; `whole` does so with a condition; `steady`: has an expression
    the same value each time?"""

    text: str
    row: Callable[[Node], Sql | str | None]
    whole: Callable[[Sequence[Node]], Sql]
    steady: Callable[[Sql], bool]
    numbers: dict[tuple[tuple[Event, Event], Tabulated], int] = field(default_factory=dict)

    def related(self, nodes: Sequence[Node], positive: bool, modes: Mapping[str, str]) -> Related | None:
        """The condition (or its NOT) as a relation; None if it speaks of more than two events, or is no condition that
        Spark can evaluate on two rows."""
        events = events_of(nodes, modes)
        whole = self.whole(nodes)
        if len(events) != 2 or _has_query(nodes) or not self.steady(whole):
            return None
        left, right = sorted(events, key=lambda event: _PLACES.get(event[1], 0))
        pair = _Pair(self, modes, left)
        condition = rendered(self.text, nodes, pair.column)
        shown = rendered(self.text, nodes, lambda _: None)
        if not positive:
            condition, shown = condition.wrapped("NOT (", ")"), shown.wrapped("NOT (", ")")
        made = Tabulated(tuple(pair.left), tuple(pair.right), condition.text)
        number = self.numbers.setdefault(((left, right), made), len(self.numbers))
        operands = (
            (left, _code(whole, made.left, "left"), "string"),
            (right, _code(whole, made.right, "right"), "string"),
        )
        code = ((ops.LOAD, 0), (ops.LOAD, 1), (ops.MEMBER, number))
        return Related(operands, Relation(code, shown=" ".join(shown.text.split())), whole, made)

    def spelled(self, nodes: Sequence[Node], positive: bool, modes: Mapping[str, str]) -> Spelled:
        """The condition (or its NOT) over the rows of its events. What the match shares is the last one's."""
        found: dict[Term, int] = {}
        shared = events_of(nodes, modes)[-1]

        def column(node: Node) -> str | None:
            sql = self.row(node)
            if sql is None:
                return None
            variable, of = (node.variable, which(node, modes)) if isinstance(node, Ref) else shared
            term = Term(variable, sql if isinstance(sql, str) else sql.text, of)
            return spelled_column(found.setdefault(term, len(found)))

        condition = rendered(self.text, nodes, column)
        return Spelled(tuple(found), condition.text if positive else f"NOT ({condition.text})")


@dataclass
class _Pair:
    """What a condition reads of the two events."""

    of: Tabulating
    modes: Mapping[str, str]
    first: Event
    left: list[str] = field(default_factory=list)
    right: list[str] = field(default_factory=list)

    def column(self, node: Node) -> str | None:
        """The column of the pair that stands for a reference; what the match shares is the right event's."""
        sql = self.of.row(node)
        if sql is None:
            return None
        text = sql if isinstance(sql, str) else sql.text
        is_left = isinstance(node, Ref) and (node.variable, which(node, self.modes)) == self.first
        own, name = (self.left, left_column) if is_left else (self.right, right_column)
        if text not in own:
            own.append(text)
        return name(own.index(text))


def _code(whole: Sql, columns: Sequence[str], side: str) -> Sql:
    """What tells the values of these columns apart. The name of the side is in it, so that the two have terms of their
    own."""
    struct = ", ".join(f"{sql} AS {side}{i}" for i, sql in enumerate(columns))
    return Sql(((f"to_json(struct({struct}), {_OPTIONS})", whole.pieces[0][1], False),))


def _has_query(nodes: Sequence[Node]) -> bool:
    return any(isinstance(node, Word) and node.token.upper == "SELECT" for node in nodes)
