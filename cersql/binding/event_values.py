"""What a match has, as Spark SQL over its row: variables, their events, and the columns of the match itself.

    a.x          the struct of the variable `a`, and in it the column x
    b[2].x       the second event of the array `b`
    match_end    a column of its own

What is read of which variable is remembered, so that nothing else is brought from the source.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from cersql.binding.conditions import Conditions
from cersql.binding.expressions import Bare, Ref
from cersql.binding.scope import ExpressionTypes, Names
from cersql.errors import BindError
from cersql.language.source import SourceText
from planner.query import (
    END_COLUMN,
    REACHED_COLUMN,
    START_COLUMN,
    STATUS_COLUMN,
    Variable,
    key_column,
    variable_column,
)
from planner.sql import quote
from runtime.errors import Span

BOUNDS = {"match_start": START_COLUMN, "match_end": END_COLUMN}
TIMEOUTS = {"match_status": STATUS_COLUMN, "match_reached": REACHED_COLUMN}


@dataclass
class EventValues:
    """The variables of the matches of one query; remembers which columns of which variable are read."""

    conditions: Conditions
    variables: tuple[Variable, ...]
    partition_by: tuple[str, ...]
    types: ExpressionTypes
    timeouts: bool = False
    agreed: tuple[str, ...] = ()  # columns on which all events of a match agree
    present: frozenset[str] = frozenset()  # the variables of which every match has an event
    used: dict[str, set[str]] = field(default_factory=dict)
    uses_size: bool = False

    @property
    def text(self) -> SourceText:
        return self.conditions.text

    @property
    def of_match(self) -> dict[str, str]:
        """The columns that every match has, whatever its variables."""
        return {**BOUNDS, **TIMEOUTS} if self.timeouts else BOUNDS

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
