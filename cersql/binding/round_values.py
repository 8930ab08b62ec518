"""Expressions on one round, a match of a part of the pattern: `SUM(a.v)` in AGG(y : s = SUM(a.v) ; A+ a).

They are lowered as those of RETURN are on a whole match, but on the fields of a struct: the sum is over __r.var0, the
array of the As of the round.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from cersql.binding.expressions import Bare, Call, Node
from cersql.binding.measures import Clauses
from cersql.binding.returns import Returns
from cersql.errors import BindError
from planner.formula import Formula
from planner.query import PLACE_FIELD, Folded, Variable, folded_column, rounds_column
from planner.sql import Sql, quote
from runtime.errors import Span
from runtime.marks import is_hidden
from runtime.own import Own

ROUND = "__r"  # a round, where something is computed of it
NTH = "__nth"  # its field with its number, from 0


@dataclass
class RoundValues(Returns):
    """Lowers expressions on one round: its variables are fields of a struct. `nodes_of`: for each variable of created
    events the aggregations inside the part that they come from."""

    nodes_of: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    number: int = 0
    folds: list[Folded] = field(default_factory=list)  # of users' own functions, for each round

    def _folded(self, own: Own, values: Sql) -> str:
        """Computed of all rounds at once, before what is computed of each."""
        column = folded_column(self.number, len(self.folds))
        every = values.wrapped(f"transform({quote(rounds_column(self.number))}, {ROUND} -> ", ")")
        self.folds.append(Folded(column, every, own, each=True))
        return f"get({quote(column)}, {ROUND}.{NTH})"

    def _column(self, variable: Variable) -> str:
        return f"{ROUND}.{super()._column(variable)}"

    def _is_listed(self, mark: str) -> bool:
        """The engine lists the events of a match, of which those of a round are a part."""
        return False

    def _bare(self, node: Bare) -> str | None:
        if self._is_of_match(node):
            raise BindError(
                "NOT_SUPPORTED_YET", span=node.span, construct="match_start or match_end of a part of the match",
                hint="FIRST(x.ts) and LAST(x.ts) are the times of the events of x there.",
            )  # fmt: skip
        return super()._bare(node)

    def _gather(
        self, variables: Sequence[Variable], value: Callable[[Mapping[str, str]], Sql],
        expressions: Sequence[Sequence[Node]],
    ) -> str:  # fmt: skip
        at = next((node for nodes in expressions for node in nodes), None)
        raise BindError(
            "NOT_SUPPORTED_YET", span=None if at is None else at.span,
            construct="A UDF or a subquery in AGG, or in a condition on a part as a whole,",
            hint="Compute it in the source, FROM (SELECT *, f(x) AS y FROM t) AS t, or in RETURN.",
        )  # fmt: skip

    def _of_no_variable(self, call: Call) -> str:
        found = super()._of_no_variable(call)
        if not self.uses_size:
            return found
        self.uses_size = False
        places, taken = [], set[int]()
        for variable in self.variables:
            own = self.nodes_of.get(variable.mark)
            if is_hidden(variable.mark) or (own is not None and taken >= set(own)):
                continue
            # An event of several variables is one; what one AGG creates is another than what another does there.
            taken |= set(own or ())
            kind = f"{own[0]}" if own else "0"
            places.append(f"transform({self._list(variable)}, __e -> struct({kind}, __e.{PLACE_FIELD}))")
        return f"CAST(size(array_distinct(concat({', '.join(places)}))) AS BIGINT)"


@dataclass
class RoundPlan:
    """One AGG, or one condition. `attributes`: (name, SQL on a round); `judge`: the condition."""

    number: int
    values: RoundValues
    reads: tuple[str, ...]  # variables of the stream that are read
    span: Span
    variable: str | None = None
    attributes: tuple[tuple[str, Sql], ...] = ()
    judge: Sql | None = None
    measures: Clauses | None = None  # the condition, if runs can answer it themselves
    parts: Mapping[int, Clauses] = field(default_factory=dict)  # or parts inside, of each event that they create
    inner: Formula | None = None
    written: tuple[tuple[str, tuple[Node, ...]], ...] = ()  # the attributes, as they are written
