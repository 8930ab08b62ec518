"""RETURN … GROUP BY as a DataFrame: tasks sum up what they find, Spark adds up what tasks say of one group.

    rows → mapInArrow(engine): a row for each group that a task has met → groupBy → HAVING → RETURN

Or, where an aggregate has no such form (planner.groups), matches are listed, and Spark groups them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - pyspark's custom
from pyspark.sql.types import ByteType, DataType, DecimalType, DoubleType, LongType, StructField, StructType

from planner.groups import Aggregated, Groups, by_column, sum_column
from planner.physical import PhysicalPlan
from planner.sql import literal, quote
from runtime.compact_set.semirings import STEP
from runtime.marks import FIRST_EVENT, LAST_EVENT
from runtime.partition.grouping import FOUND, OVERFLOW_HINT
from runtime.task import GroupedBy, Summed, Task, Trend
from runtime.warm import compile_sums
from spark_ext.batch import Batch, found
from spark_ext.errors import SparkError
from spark_ext.folding import folded
from spark_ext.forms import hashed_alike
from spark_ext.mapping import mapped
from spark_ext.objections import analyzed
from spark_ext.returned import Choose, chosen, rows_of
from spark_ext.schema import SparkCatalog
from spark_ext.sizes import is_local
from spark_ext.worker import gathered_groups, means

OVER = "__cersql_over"  # a column that groups have, too
_COLLATED = re.compile(r"\bcollate (?!utf8_binary\b)", re.IGNORECASE)


class Summing(Batch):
    """Builds the DataFrame of a plan whose tasks sum up matches."""

    def __init__(self, plan: PhysicalPlan, catalog: SparkCatalog, lasting: bool = False) -> None:
        super().__init__(plan, catalog, lasting=lasting)
        assert self.query.groups is not None
        if is_local(self.spark):
            compile_sums()
        self.groups: Groups = self.query.groups
        self._extra: dict[str, str] = {}  # columns that are computed for this, by their SQL
        self.trend = Trend(
            tuple(self._grouped_by(i) for i in range(len(self.groups.by))),
            tuple(self._summed(i) for i in range(len(self.groups.sums))),
            uncut=self.groups.bounds,
        )

    def _grouped_by(self, i: int) -> GroupedBy:
        grouped = self.groups.by[i]
        assert grouped.row is not None
        mark = grouped.mark or LAST_EVENT
        column = self._computed(grouped.row, None if mark in (FIRST_EVENT, LAST_EVENT) else mark)
        return GroupedBy(column, mark, by_column(i), grouped.shown)

    def _summed(self, i: int) -> Summed:
        own = self.groups.sums[i]
        assert own.function is not None
        column = None if own.value is None else self._computed(own.value, own.mark)
        return Summed(own.function, own.mark, column, tuple(_names(i, own)), own.shown)

    def _computed(self, sql: str, mark: str | None) -> str:
        """The column of an expression over a row, NULL in rows that are no event of the variable, if it could fail."""
        conditions: Sequence[str] = self.plan.guards[: self.plan.n_event_guards]
        if mark is not None:
            types = dict(self.query.types)
            kinds = {kind for variable, kind in self.query.formula.bindings() if variable == mark}
            conditions = ["TRUE"] if None in kinds else [types[kind] for kind in sorted(filter(None, kinds))]
        made = self._where(sql, sql, conditions)
        for name in self._needed():
            if made == quote(name):
                return name
        # By what it is of: a stream may go on with other aggregates over rows that hold it.
        return self._extra.setdefault(made, f"__cersql_value_{hashlib.sha256(made.encode()).hexdigest()[:16]}")

    def _rows(self, *more: str) -> DataFrame:
        return super()._rows(*(f"{sql} AS {name}" for sql, name in self._extra.items()), *more)

    def _made_for_tasks(self) -> dict[str, str]:
        return {name: sql for sql, name in self._extra.items()}

    @cached_property
    def _row_types(self) -> dict[str, DataType]:
        made = analyzed(self.source.selectExpr(*(f"{sql} AS {name}" for sql, name in self._extra.items())))
        return {**self.types, **{field.name: field.dataType for field in made.schema.fields}}

    def _carried(self) -> list[str]:
        return [*self._used(), *self._extra.values()]

    def _holds_all(self) -> bool:
        return True

    def _task(self, presorted: bool) -> Task:
        return replace(super()._task(presorted), trend=self.trend, variables=(), key_outputs=())

    def _schema(self, task: Task) -> StructType:
        """The columns of runtime.partition.grouping."""
        fields = [StructField(FOUND, ByteType())]
        fields += [StructField(by.name, self._row_types[by.column]) for by in self.trend.groups]
        for summed in self.trend.sums:
            kinds = self._kinds(summed)
            fields += [StructField(name, kind) for name, kind in zip(summed.names, kinds, strict=True)]
        return StructType(fields)

    def _kinds(self, summed: Summed) -> list[DataType]:
        value = None if summed.column is None else self._row_types[summed.column]
        scale = value.scale if isinstance(value, DecimalType) else 0
        match summed.function:
            case "MIN" | "MAX":
                assert value is not None
                return [value]
            case "SUM OF DOUBLE":
                return [DoubleType()]
            case "AVG OF DOUBLE":
                return [DoubleType(), DoubleType(), LongType()]
            case "AVG":
                return [DecimalType(38, scale), DecimalType(38, 0)]
            case "SUM":
                return [DecimalType(38, scale)]
        return [DecimalType(38, 0)]


def _names(i: int, own: Aggregated) -> list[str]:
    """The columns that tasks give for an aggregate."""
    parts = {"AVG": 2, "AVG OF DOUBLE": 3}.get(own.function or "", 1)
    return [f"{sum_column(i)}_{k}" for k in range(parts)]


def result(plan: PhysicalPlan, catalog: SparkCatalog, lasting: bool = False) -> DataFrame:
    """A row for each group."""
    groups = plan.query.groups
    kind = Batch if groups is not None and groups.listed else Summing
    return result_of(plan, catalog, lambda: kind(plan, catalog, lasting=lasting).frame(), whole=False)


def result_of(
    plan: PhysicalPlan,
    catalog: SparkCatalog,
    frame: Callable[[], DataFrame],
    whole: bool,
    choose: Choose = lambda matches: matches,
) -> DataFrame:
    """A row for each group, of what tasks find: matches, if they are listed, or what they have summed up. `whole`: all
    there is of a group comes from one task, in one micro-batch of a stream. `choose`: as of returned.chosen."""
    groups = plan.query.groups
    assert groups is not None
    rows = found(plan, catalog, frame)
    if groups.listed:
        rows = _values_of(groups, chosen(plan, catalog, rows, choose))
    if whole:
        rows = _told_apart(groups, rows)
    return rows_of(plan, catalog, (_of_listed if groups.listed else _added_up)(groups, rows, whole))


def _told_apart(groups: Groups, rows: DataFrame) -> DataFrame:
    """The rows of tasks, which tell groups apart by themselves: with one zero and one NaN, as GROUP BY gives them.
    SparkError STREAM_KEY for values of which Spark sees more as equal than tasks do."""
    keys = {by_column(i): own for i, own in enumerate(groups.by)}
    columns = []
    for field in rows.schema.fields:
        type, own = field.dataType.simpleString(), keys.get(field.name)
        if own is not None and _COLLATED.search(type):
            hint = "Group by the value without it: CAST(… AS STRING COLLATE UTF8_BINARY), or lower(…) of that."
            raise SparkError("STREAM_KEY", by=own.shown, problem="which has a collation", hint=hint)
        if own is not None and "map<" in type:
            raise SparkError("STREAM_KEY", by=own.shown, problem="a MAP", hint="Group by a value in it.")
        columns.append(f"{hashed_alike(rows.sparkSession, field.name, type)} AS {field.name}" if own else field.name)
    return rows.selectExpr(*columns)


# ---------------------------------------------------------------- over matches that are listed


def _values_of(groups: Groups, matches: DataFrame) -> DataFrame:
    """Of each match what tells its group, and the values that aggregates are of, as arrays."""
    items = [f"{grouped.on_match} AS {by_column(i)}" for i, grouped in enumerate(groups.by)]
    items += [f"{own.on_match} AS {sum_column(i)}" for i, own in enumerate(groups.sums)]
    return analyzed(matches.selectExpr(*(items or ["1 AS one"])))


def _of_listed(groups: Groups, rows: DataFrame, whole: bool) -> DataFrame:
    """Groups of matches, by Spark: what it computes is an array of the values of all matches of a group."""
    names = [sum_column(i) for i in range(len(groups.sums))]
    if whole:
        grouped = mapped(rows, partial(gathered_groups, len(groups.by)), rows.schema)
    else:
        values = [F.expr(f"flatten(collect_list({name}))").alias(name) for name in names]
        grouped = _grouped(groups, rows, values)
    keys = [by_column(i) for i in range(len(groups.by))]
    made = [
        F.expr(sum.of_values) if sum.own is None else folded(sum.own, sum.of_values, grouped) for sum in groups.sums
    ]
    return grouped.select(
        *keys, *(sql.alias(name) for sql, name in zip(made, names, strict=True)), F.expr(f"1 AS {FOUND}")
    )


def _grouped(groups: Groups, rows: DataFrame, values: Sequence[Column]) -> DataFrame:
    """GROUP BY, which gives one row without any keys."""
    keys = [by_column(i) for i in range(len(groups.by))]
    return rows.groupBy(*keys).agg(F.expr(f"count(1) AS {OVER}"), *values)


# ---------------------------------------------------------------- over what tasks have summed up


def _added_up(groups: Groups, rows: DataFrame, whole: bool) -> DataFrame:
    """What several tasks say of one group, added up."""
    keys = [by_column(i) for i in range(len(groups.by))]
    values = [sql for i, own in enumerate(groups.sums) for sql in _sums(i, own, _ALONE if whole else _TOGETHER)]
    grouped = rows.selectExpr(*keys, *values) if whole else _grouped(groups, rows, [F.expr(sql) for sql in values])
    exact = [i for i, own in enumerate(groups.sums) if own.function == "AVG"]
    shown = [
        f"concat({literal(own.shown + ' = ')}, coalesce(CAST({by_column(i)} AS STRING), 'NULL'))"
        for i, own in enumerate(groups.by)
    ]
    group = f"concat_ws(', ', {', '.join(shown)})" if shown else "'of all matches'"
    lowered = [f"{_lowered(i, own, group)} AS {sum_column(i)}" for i, own in enumerate(groups.sums) if i not in exact]
    types = dict(grouped.dtypes)
    parts = [
        f"{_checked(name, groups.sums[i].shown, types[name], group)} AS {name}"
        for i in exact
        for name in _names(i, groups.sums[i])
    ]
    found = grouped.selectExpr(*keys, *lowered, *parts, f"1Y AS {FOUND}")
    return _with_means(groups, found, exact) if exact else found


class _Adding(NamedTuple):
    """How SQL adds up columns of the rows of a group; `best`: by the name of the function, MIN or MAX."""

    sum: str
    try_sum: str
    number: str
    list: str
    best: str


_TOGETHER = _Adding("sum({})", "try_sum({})", "count({})", "collect_list({})", "{function}({})")
_ALONE = _Adding("{}", "{}", "IF({} IS NULL, 0L, 1L)", "array({})", "{}")  # where a group has one row


def _sums(i: int, own: Aggregated, adding: _Adding) -> list[str]:
    """What Spark computes of the rows of tasks."""
    first, *others = _names(i, own)
    match own.function:
        case "MIN" | "MAX":
            return [f"{adding.best.format(first, function=own.function)} AS {first}"]
        case "SUM OF DOUBLE":
            return [f"{adding.sum.format(first)} AS {first}"]
        case "AVG OF DOUBLE":
            parts = f"struct({first} AS s, {others[0]} AS n, {others[1]} AS p)"
            return [f"{adding.list.format(parts)} AS {first}"]
    return [
        f"{sql.format(name)} AS {name}{more}"
        for name in (first, *others)
        for sql, more in ((adding.try_sum, ""), (adding.number, "_n"))
    ]


def _lowered(i: int, own: Aggregated, group: str) -> str:
    """The aggregate of a group."""
    (first, *_) = _names(i, own)
    match own.function:
        case "MIN" | "MAX" | "SUM OF DOUBLE":
            return first
        case "AVG OF DOUBLE":
            most = f"array_max(transform({first}, __v -> __v.p))"
            total, number = (
                f"aggregate({first}, 0.0D, (__s, __v) -> __s + __v.{part} * pow(2.0D, {STEP}.0D * (__v.p - {most})))"
                for part in "sn"
            )
            return f"{total} / nullif({number}, 0.0D)"
    checked = _checked(first, own.shown, own.type, group)
    if own.function == "COUNT":  # of no match at all, where nothing is grouped
        return f"coalesce({checked}, CAST(0 AS {own.type}))"
    return checked


def _checked(name: str, shown: str, type: str, group: str) -> str:
    """A sum that is NULL although it is one of something has overflowed."""
    message = f"concat('[TREND_OVERFLOW] ', {literal(shown)}, ' does not fit DECIMAL(38) in the group ', {group}, "
    error = f"CAST(raise_error({message}'. ', {literal(OVERFLOW_HINT)})) AS {type})"
    return f"IF({name} IS NULL AND {name}_n > 0, {error}, {name})"


def _with_means(groups: Groups, rows: DataFrame, exact: Sequence[int]) -> DataFrame:
    """Means of decimals, with every digit: Spark's division of wide ones loses some."""
    names = {sum_column(i): tuple(_names(i, groups.sums[i])) for i in exact}
    parts = {part for own in names.values() for part in own}
    fields = [field for field in rows.schema.fields if field.name not in parts]
    kinds = {sum_column(i): _decimal(groups.sums[i].type) for i in exact}
    schema = StructType([*fields, *(StructField(name, kind) for name, kind in kinds.items())])
    return mapped(
        rows, partial(means, names, {name: (kind.precision, kind.scale) for name, kind in kinds.items()}), schema
    )


def _decimal(type: str) -> DecimalType:
    precision, scale = type.removeprefix("decimal(").rstrip(")").split(",")
    return DecimalType(int(precision), int(scale))
