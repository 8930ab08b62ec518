"""The columns of a match, as SQL over the events of a join: those that the engine gives back for the same query.

A variable of one event is a struct of that event's columns, one of many an array of structs in the order of the stream:
where it is known which of its events comes first it is written down in that order, else sorted by place, each place
once (two parts of ALL can share an event).

Behind these, where something is chosen among matches or one can come twice: what tells them apart, their keys, places
of first and last event, the places of all events and of each variable's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - pyspark's custom
from pyspark.sql.types import DataType, StructType

from planner.relational.branch import Branch
from planner.relational.planning import RelationalPlan
from planner.relational.sql import AT, column, place, places
from planner.sql import literal, quote
from runtime.partition.rows import EMPTY
from runtime.task import OutputVariable, Task, Walked

GROUP, START, END, SUP, EVENTS = (f"__cersql_m_{name}" for name in ("group", "start", "end", "sup", "events"))
_AT_FIELD, _VALUE_FIELD = "at", "value"
_BY_PLACE = "(l, r) -> CASE WHEN l.at < r.at THEN -1 WHEN l.at > r.at THEN 1 ELSE 0 END"


class MatchColumns:
    """The columns of the matches of a plan. `groups`: columns of rows on which all events of a match agree."""

    def __init__(self, task: Task, schema: StructType, made: RelationalPlan, groups: Sequence[str]) -> None:
        self._task, self._made, self._groups = task, made, groups
        self._types: dict[str, DataType] = {field.name: field.dataType for field in schema.fields}
        self._visible = frozenset(made.query.marks)
        self._marks = sorted(made.query.marks)
        self._chooses = made.strategy != "ALL" or made.one_of_start
        self.keys = [f"{GROUP}{i}" for i in range(len(groups))]
        self.events = [f"{EVENTS}{i}" for i in range(len(self._marks))]
        self.identity = [*self.keys, START, END, *self.events]
        self.hidden = [*self.identity, SUP] if self._chooses else self.identity if made.distinct else []

    def of_nothing(self) -> list[str]:
        """The hidden columns where there is no branch, and no match."""
        lists = {SUP, *self.events}
        return [f"CAST(NULL AS {'ARRAY<BIGINT>' if name in lists else 'BIGINT'}) AS {name}" for name in self.hidden]

    def of(self, branch: Branch) -> list[Column]:
        """All columns, of a branch's matches."""
        task, found = self._task, []
        for source, name in task.key_outputs:
            found.append(F.expr(self._of_first(branch, source)).alias(name))
        time = task_time(self._made)
        if task.start is not None:
            found.append(F.expr(self._of_first(branch, time)).alias(task.start))
        if task.end is not None:
            found.append(F.expr(self._of_last(branch, time)).alias(task.end))
        if task.size is not None:
            found.append(F.expr(self._size(branch)).alias(task.size))
        found += [self._variable(branch, variable) for variable in task.variables]
        found += [self._walked(branch, own).alias(own.name) for own in task.walked]
        if not found:
            found.append(F.expr("0Y").alias(EMPTY))
        return [*found, *self._hidden(branch)]

    def _hidden(self, branch: Branch) -> list[Column]:
        first = branch.first[0]
        made = {name: column(first, group) for name, group in zip(self.keys, self._groups, strict=True)}
        made |= {START: place(branch.start), END: place(branch.end), SUP: places(branch.bound())}
        made |= {f"{EVENTS}{i}": places(branch.bound(mark)) for i, mark in enumerate(self._marks)}
        return [F.expr(made[name]).alias(name) for name in self.hidden]

    # ------------------------------------------------------------ first and last

    def _of_first(self, branch: Branch, name: str) -> str:
        return _of_end("least", branch.first, name)

    def _of_last(self, branch: Branch, name: str) -> str:
        return _of_end("greatest", branch.last, name)

    def _size(self, branch: Branch) -> str:
        """INT: the events that some variable holds."""
        held = tuple(slot.number for slot in branch.slots if slot.marks & self._visible)
        return str(len(held)) if branch.in_order(held) is not None else f"size({places(held)})"

    # ------------------------------------------------------------ variables

    def _variable(self, branch: Branch, variable: OutputVariable) -> Column:
        events, type = branch.bound(variable.mark), self._types[variable.name]
        names = list(variable.names or variable.fields)
        if not events:
            nothing = F.lit(None) if variable.single else F.expr("array()")
            return nothing.cast(type).alias(variable.name)

        def struct(slot: int) -> str:
            pairs = (f"{literal(n)}, {column(slot, quote(f))}" for n, f in zip(names, variable.fields, strict=True))
            return f"named_struct({', '.join(pairs) or f'{literal(EMPTY)}, 1Y'})"

        array = _in_order(branch, events, struct)
        made = (
            struct(events[0]) if variable.single and len(events) == 1 else f"{array}[0]" if variable.single else array
        )
        return F.expr(made).alias(variable.name)

    # ------------------------------------------------------------ aggregates over the events of a match

    def _walked(self, branch: Branch, own: Walked) -> Column:
        """COUNT, SUM, AVG, MIN or MAX as runtime.partition.walking computes it."""
        events, type = branch.bound(own.mark), self._types[own.name]
        if own.field is None:
            made = str(len(events)) if branch.in_order(events) is not None else f"size({places(events)})"
            return F.expr(made).cast(type)
        field = quote(own.field)
        values = _in_order(branch, events, lambda slot: column(slot, field)) if events else None
        if values is None:
            return F.lit(0 if own.function == "COUNT" else None).cast(type)
        known = f"filter({values}, x -> x IS NOT NULL)"
        kind = type.simpleString()
        match own.function:
            case "COUNT":
                return F.expr(f"size({known})").cast(type)
            case "MIN" | "MAX":
                return F.expr(f"array_{own.function.lower()}({known})").cast(type)
        total = f"aggregate({known}, CAST(0 AS {kind}), (sum, x) -> CAST(sum + CAST(x AS {kind}) AS {kind}))"
        if own.function == "AVG":
            total = f"{total} / size({known})"
        return F.expr(f"IF(size({known}) = 0, NULL, {total})").cast(type)


def task_time(made: RelationalPlan) -> str:
    """The first column of ORDER BY."""
    return made.query.order_by[0].column


def _of_end(least: str, slots: Sequence[int], name: str) -> str:
    """A column of the first, or last, of some events."""
    if len(slots) == 1:
        return column(slots[0], quote(name))
    return f"{least}({', '.join(_placed(slot, column(slot, quote(name))) for slot in slots)}).{_VALUE_FIELD}"


def _placed(slot: int, value: str) -> str:
    """A struct of an event's place and a value."""
    return f"struct({column(slot, AT)} AS {_AT_FIELD}, {value} AS {_VALUE_FIELD})"


def _in_order(branch: Branch, slots: Sequence[int], value: Callable[[int], str]) -> str:
    """An array with what `value` says of each event, in the order of the stream, each event once."""
    ordered = branch.in_order(tuple(slots))
    if ordered is not None:
        return f"array({', '.join(map(value, ordered))})"
    items = ", ".join(_placed(slot, value(slot)) for slot in slots)
    in_order = f"array_sort(array({items}), {_BY_PLACE})"
    once = f"filter({in_order}, (x, i) -> i = 0 OR x.{_AT_FIELD} <> ({in_order})[i - 1].{_AT_FIELD})"
    return f"transform({once}, x -> x.{_VALUE_FIELD})"
