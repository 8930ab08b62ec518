"""What the tasks of a plan are told, and the columns of the matches that they give back."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NumericType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)  # fmt: skip

from planner.query import (
    END_COLUMN,
    PLACE_FIELD,
    REACHED_COLUMN,
    SIZE_COLUMN,
    START_COLUMN,
    STATUS_COLUMN,
    OfEvents,
    key_column,
    variable_column,
)  # fmt: skip
from planner.sql import quote
from runtime.marks import is_round
from runtime.partition.partition import COUNT_COLUMN
from runtime.partition.rows import EMPTY
from runtime.selection import rivals
from runtime.task import OutputVariable, Slices, Task, Walked
from runtime.warm import compile_beginnings
from spark_ext.created import counted, lists_more
from spark_ext.limits import limits_of
from spark_ext.numbering import POSITION_COLUMN
from spark_ext.sizes import is_local
from spark_ext.source_rows import SourceRows
from spark_ext.tabulating import PAIR_COLUMN

SLICE_COLUMN = "__cersql_slice"


class TaskMaker(SourceRows):
    """Describes the tasks of one plan to the workers."""

    def _task(self, presorted: bool) -> Task:
        query, plan = self.query, self.plan
        slices = None if plan.slice_size is None else Slices(SLICE_COLUMN, plan.slice_size)
        variables = [
            OutputVariable(
                variable_column(i),
                variable.mark,
                variable.single,
                held,
                used,
                PLACE_FIELD if is_round(variable.mark) else None,
            )
            for i, (variable, held, used) in enumerate(zip(query.variables, query.held, query.used, strict=True))
            if self._wants(quote(variable_column(i))) and not variable.created
        ]
        walked = tuple(self._walked(own) for own in query.of_events if self._wants(own.column))
        keys = [(name, key_column(i)) for i, name in enumerate(query.partition_by) if self._wants(key_column(i))]
        return Task(
            program=plan.program,
            limits=limits_of(self.spark, query),
            symbols=tuple(name for name, _ in self.symbols),
            terms=tuple(name for name, _ in self.terms),
            weights=tuple(name for name, _ in self.weights),
            symbol_bits=self.symbol_bits,
            order=self._order(),
            keys=tuple(self.keys),
            ties=self._ties(),
            variables=tuple(variables),
            key_outputs=tuple(keys),
            start=START_COLUMN if self._wants(START_COLUMN) else None,
            end=END_COLUMN if self._wants(END_COLUMN) else None,
            size=SIZE_COLUMN if self._wants(SIZE_COLUMN) else None,
            limit=None if query.having or query.on_match or query.groups or lists_more(query) else query.limit,
            presorted=presorted,
            count_only=self.count_only,
            slices=slices,
            position=POSITION_COLUMN if plan.layout == "ranges" else None,
            interleaved=self._interleaved,
            status=STATUS_COLUMN if self._wants(STATUS_COLUMN) else None,
            reached=REACHED_COLUMN if self._wants(REACHED_COLUMN) else None,
            names=tuple({v.mark: v.name for v in query.variables}[mark] for mark in plan.program.variables),
            later=plan.later,
            pairs=PAIR_COLUMN if plan.tabulated else None,
            counted=counted(query),
            walked=walked,
            chains=self._shares_beginnings(variables, walked),
        )

    def _shares_beginnings(self, variables: Sequence[OutputVariable], walked: Sequence[Walked]) -> bool:
        """Is there a loop, of which no array is asked for? What is least is found among numbers alone."""
        loops = any(not variable.single for variable in self.query.variables) and not self.count_only
        listed = any(not variable.single or variable.place is not None for variable in variables)
        texts = any(
            own.function in ("MIN", "MAX") and own.field is not None and not _is_number(self.types[own.field])
            for own in walked
        )
        shared = loops and not (texts or listed) and self.plan.later is None
        if shared and is_local(self.spark):
            compile_beginnings()
        return shared

    def _schema(self, task: Task) -> StructType:
        return StructType([StructField(COUNT_COLUMN, LongType())]) if self.count_only else self._match_schema(task)

    def match_schema(self) -> StructType:
        """The columns of the matches that the engine gives."""
        return self._schema(self._task(presorted=False))

    def _match_schema(self, task: Task) -> StructType:
        """The columns of a match, in the order of runtime.partition.rows.RowBuilder."""
        time = self.types[self.query.order_by[0].column]
        fields = [StructField(name, self.types[source]) for source, name in task.key_outputs]
        fields += [StructField(name, time) for name in (task.start, task.end) if name is not None]
        if task.size is not None:
            fields.append(StructField(task.size, IntegerType()))
        fields += [StructField(name, StringType()) for name in (task.status, task.reached) if name is not None]
        if task.later is not None:
            kinds = (LongType(), ByteType(), LongType(), ArrayType(LongType()), ArrayType(IntegerType()))
            fields += [StructField(name, kind) for name, kind in zip(rivals.COLUMNS, kinds, strict=True)]
        for variable in task.variables:
            inner = [
                StructField(name, self.types[field])
                for field, name in zip(variable.fields, variable.names, strict=True)
            ]
            if variable.place is not None:
                inner.append(StructField(variable.place, IntegerType()))
            struct = StructType(inner or [StructField(EMPTY, ByteType())])
            fields.append(StructField(variable.name, struct if variable.single else ArrayType(struct)))
        fields += [StructField(own.name, self._type_of_walked(own)) for own in task.walked]
        return StructType(fields or [StructField(EMPTY, ByteType())])

    def _walked(self, own: OfEvents) -> Walked:
        """An aggregate over the events of a match, by the stream's columns."""
        query, held = self.query, own.field
        if own.field is not None:
            i = next(i for i, variable in enumerate(query.variables) if variable.mark == own.mark)
            held = query.held[i][query.used[i].index(own.field)]
        return Walked(own.column, own.function, own.mark, held)

    def _type_of_walked(self, own: Walked) -> DataType:
        if own.field is None or own.function == "COUNT":
            return LongType()
        value = self.types[own.field]
        if own.function in ("MIN", "MAX"):
            return value
        if own.function == "AVG" or isinstance(value, FloatType | DoubleType):
            return DoubleType()
        if isinstance(value, LongType):
            return DecimalType(38, 0)  # cast to BIGINT where it is read
        return DecimalType(value.precision + 10, value.scale) if isinstance(value, DecimalType) else LongType()

    @property
    def _interleaved(self) -> bool:
        return self.plan.program.family == "any"


def _is_number(type: DataType) -> bool:
    """Does one number of 64 bits say where a value stands among all of its type?"""
    if isinstance(type, DecimalType):
        return type.precision <= 18
    return isinstance(type, NumericType | BooleanType | DateType | TimestampType | TimestampNTZType)
