"""A physical plan as a DataFrame: everything around the engine is Catalyst's.

sources → (drop) → columns and symbol → shuffle → mapInArrow(engine) → WHERE on whole matches (→ mapInArrow(strategy))
→ HAVING → RETURN → LIMIT

Before the shuffle rows may be joined by others, of pairs that fulfil a condition on two events (spark_ext.tabulating).
What follows the engine is in spark_ext.returned.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import (
    ArrayType,
    ByteType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)  # fmt: skip

from planner.physical import PhysicalPlan
from planner.query import (
    END_COLUMN,
    PLACE_FIELD,
    REACHED_COLUMN,
    SIZE_COLUMN,
    SOURCE_COLUMN,
    START_COLUMN,
    STATUS_COLUMN,
    Key,
    Link,
    OfEvents,
    key_column,
    variable_column,
)  # fmt: skip
from planner.reasons import in_window
from planner.refusal import Refusal
from planner.sql import is_collated, literal, quote
from planner.symbols import drop_sql, packed_symbol_sql, symbol_sql, type_rank_sql
from planner.tabulated import Asked
from runtime.marks import is_round
from runtime.partition.partition import COUNT_COLUMN
from runtime.partition.rows import EMPTY
from runtime.partition.terms import has_own_codes
from runtime.program import symbol_words
from runtime.scan.task import Scan
from runtime.selection import rivals
from runtime.task import OrderColumn, OutputVariable, Slices, Task, Walked
from runtime.warm import compile_kernels
from spark_ext import collations, connect, scan
from spark_ext.created import counted, lists_more
from spark_ext.errors import SparkError
from spark_ext.forms import clock_sql, comparable, hashed_alike, safe_casts, term_sql
from spark_ext.limits import limits_of, most_matches
from spark_ext.mapping import mapped
from spark_ext.numbering import MANY_ROWS_BYTES, POSITION_COLUMN, can_be_cut, with_positions
from spark_ext.objections import analyzed, explained
from spark_ext.returned import returned
from spark_ext.schema import SparkCatalog
from spark_ext.tabulating import PAIR_COLUMN, Meeting, Side, pair_rows, with_pairs
from spark_ext.worker import match_partition

SLICE_COLUMN = "__cersql_slice"
TYPE_COLUMN = "__cersql_type"
PARTITION_BYTES = 128 << 20  # what a task should read, by Catalyst's estimate
UNKNOWN_BYTES = 1 << 60  # the estimate of what Spark knows nothing about, such as rows that came from Python
LEAVES_TIMES = 4  # so often what it reads a source is taken to be at the most
WORKER_BYTES = 1 << 30  # an estimate of a partition above which Spark sorts, since Spark can spill
SORT_SETTING = "cersql.sort"  # auto, worker or spark


class Batch:
    """Builds the DataFrame of one plan."""

    def __init__(
        self, plan: PhysicalPlan, catalog: SparkCatalog, count_only: bool = False, lasting: bool = False
    ) -> None:
        self.query, self.catalog, self.count_only, self.lasting = plan.query, catalog, count_only, lasting
        self.source = catalog.union_frame(self.query)
        self.spark = self.source.sparkSession
        self.plan = replace(plan, program=replace(plan.program, max_matches=most_matches(self.spark)))
        if is_local(self.spark):
            # The workers, on this same machine, would all do it at once.
            compile_kernels(plan.program.family)
        self.types: dict[str, DataType] = {f.name: f.dataType for f in self.source.schema.fields}
        self.symbols = symbol_sql(plan.guards)
        packed = packed_symbol_sql(plan)
        self.symbol_bits = None if packed is None else len(plan.guards)
        if packed is not None:
            self.symbols = [(self.symbols[0][0], packed)]
        self.terms = [(f"__cersql_term{i}", self._term(sql, type)) for i, (sql, type) in enumerate(plan.terms)]
        keys = [self._normalised(name) for name in self.query.partition_by]
        keys += [self._equal(key) for key in self.query.keys]
        self.key_sql = {f"__cersql_group{i}": sql for i, sql in enumerate(keys)}
        # ORDER BY columns that are sorted by the keys of their collation, which are sent along.
        self.sorts = {order.column: f"__cersql_order{i}" for i, order in enumerate(self.query.order_by)
                      if is_collated(self.types[order.column].simpleString())}  # fmt: skip
        self.keys = list(self.key_sql)

    # ------------------------------------------------------------ before the engine

    def frame(self) -> DataFrame:
        """The matches, as the engine gives them (or the counts of the tasks)."""
        made = self.scan()
        if isinstance(made, Scan):
            return scan.frame(made, self.spark, self._schema(made.task))
        n = self._partitions()
        match self.plan.layout:
            case "keys":
                rows = self._shuffled(self._with_pairs(self._rows(), self.keys), n, *self.keys)
            case "slices":
                assert self.query.window is not None
                clock = clock_sql(self.query.order_by[0].column, self.types)
                slices = self._slices(clock, int(self.query.window.size))
                rows = self._with_pairs(self._rows(slices), (SLICE_COLUMN,), slices)
                rows = self._shuffled(rows, n, SLICE_COLUMN)
            case "ranges":
                rows, n = self._numbered(self._rows(), n)
            case _:
                n, rows = 1, self._with_pairs(self._rows(), self.keys).repartition(1)
        # What is interleaved is numbered by key here, and so must be held as a whole.
        # So must be rows whose terms have ranks for codes, which mean something among the rows at hand only, and those
        # of which a second pass asks how far a start reaches.
        later = self.plan.later
        looks = later is not None and (later.looks_at_windows or later.strict or later.consume == "ANY")
        whole = self._holds_all() or self._interleaved or self._ranks_terms(rows) or looks
        presorted = self._spark_sorts(n) and not whole
        return self._matched(self._sorted(rows) if presorted else rows, presorted)

    def scan(self) -> Scan | Refusal:
        """How the query reads its Parquet files by itself, or why it does not. Raises SparkError where it must."""
        way = scan.setting(self.spark)
        found = Refusal(f"{scan.SETTING} = spark") if way == "spark" else self._scan()
        if way == "parquet" and isinstance(found, Refusal):
            hint = f"SET {scan.SETTING} = auto reads through Spark what cannot be read otherwise."
            raise SparkError("SCAN_REFUSED", reason=found.reason, hint=hint)
        return found

    def _scan(self) -> Scan | Refusal:
        if self.lasting:
            return Refusal("a view is planned once, and files may come later")
        if not hasattr(self.source, "_jdf"):
            return Refusal("Spark Connect does not show its plans")
        reach = scan.reach_of(self.plan)
        if reach is None:
            return Refusal("the rows of a key must meet, however far apart they are")
        task, type = self._task(presorted=False), self.plan.type_column
        if type is not None and not self.plan.type_in_symbol:  # the type itself stands where its rank would
            ranks = (TYPE_COLUMN, self.symbols[0][0])
            ties = (replace(tie, name=type) if tie.name in ranks else tie for tie in task.ties)
            task = replace(task, ties=tuple(ties))
        names = [column.name for column in (*task.order, *task.ties)]
        names += [field for variable in task.variables for field in variable.fields]
        names += [own.field for own in task.walked if own.field is not None]
        names += [source for source, _ in task.key_outputs] + self._carried()
        columns = {name: quote(name) for name in names if name in self.types}
        columns |= {**self.key_sql, **dict(self.terms), **self._made_for_tasks()}
        columns |= {name: collations.key(self.spark, quote(column)) for column, name in self.sorts.items()}
        own = scan.Wanted(self._with_keys(), columns, self.plan.guards, task.order[0].name, *reach)
        return scan.scan_of(self.plan, own, task, self._partitions())

    def _shuffled(self, rows: DataFrame, n: int, *names: str) -> DataFrame:
        """In n tasks; in as many as adaptive execution finds enough, where the size was not known."""
        columns = [rows[name] for name in names]
        return rows.repartition(*columns) if self._bytes >= UNKNOWN_BYTES else rows.repartition(n, *columns)

    def _ranks_terms(self, rows: DataFrame) -> bool:
        """Is something compared whose codes are ranks, such as strings?"""
        types = {field.name: field.dataType for field in rows.schema.fields}
        return not all(has_own_codes(to_arrow_type(types[name], timezone="UTC")) for name, _ in self.terms)

    @property
    def _interleaved(self) -> bool:
        return self.plan.program.family == "any"

    def _rows(self, *more: str) -> DataFrame:
        """The rows that can matter, with the columns that the engine, the order and RETURN need, and `more`."""
        source, dropped = self._kept()
        columns = [self._payload(name) for name in self._needed()]
        columns += [f"{sql} AS {key}" for key, sql in self.key_sql.items()]
        columns += [f"{collations.key(self.spark, quote(column))} AS {name}" for column, name in self.sorts.items()]
        columns += [f"{sql} AS {name}" for name, sql in (*self.symbols, *self.terms)]
        if any(tie.name == TYPE_COLUMN for tie in self._ties()):
            columns.append(f"CAST({type_rank_sql(self.plan)} AS INT) AS {TYPE_COLUMN}")
        rows = source.selectExpr(*columns, *more)
        return rows if dropped else rows.where(self._relevant())

    def _kept(self) -> tuple[DataFrame, bool]:
        """The source with keys, without the rows that cannot matter, and whether these are dropped so; not where a
        condition could be another the next time it is asked."""
        source, filter_ = self._with_keys(), drop_sql(self.plan)
        if filter_ is None:
            return source, True
        return (source.where(filter_), True) if self._deterministic else (source, False)

    def _with_pairs(self, rows: DataFrame, groups: Sequence[str], *more: str) -> DataFrame:
        """The rows, with the pairs of which Spark finds a condition TRUE; `groups`: the columns in which rows that meet
        agree, `more`: SQL of those that are no keys."""
        if not self.plan.tabulated:
            return rows
        self._check_steady()
        own = [f"{self.key_sql[name]} AS {name}" for name in groups if name in self.key_sql]
        source, _ = self._kept()
        time, window = self.query.order_by[0].column, self.query.window
        meeting = Meeting(groups, quote(time), None)
        if window is not None and in_window(self.query):
            meeting = Meeting(groups, clock_sql(time, self.types), int(window.size))

        def of(condition: str, columns: Sequence[str]) -> DataFrame:
            return source.where(f"({condition}) AND {quote(time)} IS NOT NULL").selectExpr(*own, *more, *columns)

        pairs = []
        for asked in self.plan.tabulated:
            sides, terms = self._sides(asked)
            with self._objecting():
                pairs.append(analyzed(pair_rows(of, asked, sides, terms, meeting)))
        return with_pairs(rows, pairs)

    def _sides(self, asked: Asked) -> tuple[tuple[Side, Side], tuple[str, str]]:
        """The two events of a condition, and the columns of the terms that are their codes."""
        related, made = asked.related, asked.related.tabulated
        assert made is not None
        left, right = (
            Side(self._can_be(term.variable), sql, term.sql)
            for term, sql in zip(related.terms, (made.left, made.right), strict=True)
        )
        places = [
            self.plan.terms.index((term.sql, type)) for term, type in zip(related.terms, related.types, strict=True)
        ]
        return (left, right), (self.terms[places[0]][0], self.terms[places[1]][0])

    def _objecting(self) -> AbstractContextManager[None]:
        """Around what is asked of pairs: an objection of Spark's gets its place in the query."""
        return explained(self.query.text, self.source, [sql for _, sql in self.query.origins], condition=True)

    def _can_be(self, variable: str) -> str:
        """Which rows can be events of a variable; any, where that could be others the next time."""
        if not self._deterministic:
            return "TRUE"
        types = dict(self.query.types)
        kinds = {kind for own, kind in self.query.formula.bindings() if own == variable}
        tests = ["TRUE" if kind is None else types[kind] for kind in sorted(kinds, key=str)]
        return "TRUE" if "TRUE" in tests else " OR ".join(f"({test})" for test in tests) or "FALSE"

    def _check_steady(self) -> None:
        """Pairs are made in a look of their own at the source, which must find the same rows."""
        if hasattr(self.source, "_jdf") and not self._is_steady():  # Connect cannot say
            hint = "Cache it, or write it to a table, before matching."
            raise SparkError("UNSTEADY_SOURCE", shown=self.plan.tabulated[0].related, hint=hint)

    def _is_steady(self) -> bool:
        """Is the source the same each time it is read, with what is cached by now?"""
        return bool(self.source.selectExpr("*")._jdf.queryExecution().withCachedData().deterministic())

    def _with_keys(self) -> DataFrame:
        """The source without rows that have NULL for a key of the planner's; a NULL time is still found."""
        source = self.source
        for link in self.query.links:
            source = source.selectExpr("*", f"explode({self._copies(link)}) AS {quote(link.column)}")
        columns = {quote(link.column) for link in self.query.links}
        keys = [key for key in self.query.keys if key.sql not in columns]
        if not keys:
            return source
        known = " AND ".join(f"({self._equal(key)}) IS NOT NULL" for key in keys)
        return source.where(f"({known}) OR {quote(self.query.order_by[0].column)} IS NULL")

    def _copies(self, link: Link) -> str:
        """The values that a row has as an event, as an array; it is copied for each of them."""
        types, type, values = dict(self.query.types), link.type.lower(), []
        for sql, kinds in link.by:
            tests = ["TRUE" if kind is None else types[kind] for kind in kinds]
            value = f"CAST({sql} AS {link.type})" if type else sql
            if not is_collated(type):  # what the conditions ask of the copies is asked under the collation
                value = hashed_alike(self.spark, value, type)
            values.append(f"IF({' OR '.join(f'({test})' for test in tests)}, array({value}), array())")
        all_, some = (values[:1], values[1:]) if link.null else ([], values)
        known = [f"filter(concat({', '.join(some)}), __cersql_v -> __cersql_v IS NOT NULL)"] if some else []
        return f"array_distinct(concat({', '.join([*all_, *known])}))"

    def _relevant(self) -> str:
        """Does a row satisfy any condition, by its symbol?"""
        masks = []
        for (name, _), word in zip(self.symbols, symbol_words(len(self.plan.guards)), strict=True):
            bits = len(range(word.start, min(word.stop, self.plan.n_event_guards)))
            masks.append(f"({name} & {(1 << bits) - 1}L) <> 0")
        return " OR ".join(masks)

    def _needed(self) -> list[str]:
        """Columns of the sources that cross over, in schema order."""
        query = self.query
        wanted = {order.column for order in query.order_by} | set(self._tie_columns())
        if not self.count_only:
            wanted.update(query.partition_by if self._wants_keys() else ())
        return [name for name in self.types if name in wanted]

    def _used(self) -> list[str]:
        """What RETURN reads, in schema order."""
        if self.count_only:
            return []
        held = {name for names in self.query.held for name in names}
        return [name for name in self.types if name in held]

    def _carried(self) -> list[str]:
        """What is taken over from rows."""
        return self._used()

    def _made_for_tasks(self) -> dict[str, str]:
        """Other columns that are computed of rows, as SQL."""
        return {}

    def _tie_columns(self) -> list[str]:
        """What decides between rows that agree on ORDER BY: the source, what the pattern reads, what RETURN reads."""
        query = self.query
        pattern = [name for name in query.reads if name not in (*query.partition_by, self.plan.type_column)]
        source = [SOURCE_COLUMN] if SOURCE_COLUMN in self.types else []
        return list(dict.fromkeys([*source, *pattern, *self._used()]))

    def _payload(self, name: str) -> str:
        """A column as it is; the time is looked at for NULL, wherever it is used."""
        if name != self.query.order_by[0].column:
            return quote(name)
        shown = [n for n in self._needed() if not isinstance(self.types[n], StructType | ArrayType | MapType)]
        values = ", ".join(self._shown(n) for n in shown if n != SOURCE_COLUMN)
        if SOURCE_COLUMN in shown:
            aliases = ", ".join(literal(f"of {source.alias}") for source in self.query.sources)
            values = f"element_at(array({aliases}), {SOURCE_COLUMN} + 1), {values}"
        message = literal(f"[NULL_TIME] The ORDER BY column {name} is NULL in the row ")
        time, rest = quote(name), literal(f". {self._without_null_times(name)}")
        return (
            f"IF({time} IS NULL, raise_error(concat({message}, concat_ws(', ', {values}), {rest})), {time}) AS {time}"
        )

    def _without_null_times(self, name: str) -> str:
        """What to write; a stream goes on with it from the same checkpoint."""
        (first, *others), shown = self.query.sources, name if name.isidentifier() else quote(name)
        if first.relation is None:
            return f"To leave such rows out, match over df.where({shown + ' IS NOT NULL'!r})."
        plain = re.fullmatch(r"SELECT \* FROM (`[\w`.]+`)", first.relation)
        table = "…" if others or plain is None else plain[1].replace("`", "")
        alias = "…" if others else first.alias
        return f"To leave such rows out, write FROM (SELECT * FROM {table} WHERE {shown} IS NOT NULL) AS {alias}."

    def _shown(self, name: str) -> str:
        """A column of a row as people read it; NULL in rows of sources that have no such column."""
        value = f"concat({literal(name + ' = ')}, coalesce(CAST({quote(name)} AS STRING), 'NULL'))"
        made = next((made for made in self.query.made if made.name == name), None)
        having = [str(i) for i, sql in enumerate(made.by) if sql is not None] if made is not None else []
        if made is None or len(having) == len(made.by):
            return value
        return f"IF({SOURCE_COLUMN} IN ({', '.join(having)}), {value}, NULL)"

    def _term(self, sql: str, type: str) -> str:
        """What is compared, as NULL in rows that can be no event of its variables, where it could raise an error."""
        formula, types = self.query.formula, dict(self.query.types)
        users = {variable for variable, own, as_type in formula.compared() if (own, as_type) == (sql, type)}
        kinds = {kind for variable, kind in formula.bindings() if variable in users}
        tests = [types[kind] for kind in sorted(kind for kind in kinds if kind is not None)]
        return self._where(term_sql(self.spark, sql, type), sql, tests if None not in kinds else ["TRUE"])

    def _where(self, made: str, sql: str, conditions: Sequence[str]) -> str:
        """An expression where one of the conditions holds, else NULL; a column as it is cannot raise an error."""
        alone = made.removesuffix(" + 0.0D").removesuffix(" + CAST(0 AS FLOAT)")
        bare = any(sql == quote(name) and alone.upper() in (sql.upper(), f"({sql.upper()})", *safe_casts(name, type))
                   for name, type in self.types.items())  # fmt: skip
        if bare or not conditions or "TRUE" in conditions:
            return made
        return f"IF({' OR '.join(f'({condition})' for condition in conditions)}, {made}, NULL)"

    def _normalised(self, name: str) -> str:
        """A PARTITION BY column."""
        return hashed_alike(self.spark, quote(name), self.types[name].simpleString())

    def _equal(self, key: Key) -> str:
        """A key of the planner's."""
        for link in self.query.links:
            if key.sql == quote(link.column):
                return collations.key(self.spark, key.sql) if is_collated(link.type) else key.sql
        type = key.type.lower()
        made = hashed_alike(self.spark, f"CAST({key.sql} AS {key.type})" if type else key.sql, type)
        return self._where(made, key.sql, self.plan.guards[: self.plan.n_event_guards])

    def _slices(self, clock: str, reach: int) -> str:
        """Each row to the slice that owns it, and to the next if a match that ends there can reach back to it."""
        size = self.plan.slice_size
        own = f"({clock} DIV {size}L - IF({clock} % {size}L < 0L, 1L, 0L))"  # DIV alone rounds towards zero
        both = f"IF(pmod({clock}, {size}L) >= {size}L - {reach}L, array({own}, {own} + 1L), array({own}))"
        return f"explode({both}) AS {SLICE_COLUMN}"

    def _numbered(self, rows: DataFrame, n: int) -> tuple[DataFrame, int]:
        """The rows that can matter, with their positions, in slices of positions if a match's span is bounded."""
        cut = can_be_cut(self.types[self.query.order_by[0].column]) and self._bytes >= MANY_ROWS_BYTES
        order = (*self._order(), *self._ties())
        numbered = with_positions(rows, self.source, order, self._relevant(), n if cut else 1)
        kept = {self.query.order_by[0].column, *self._carried(), POSITION_COLUMN}
        kept.update(name for name, _ in (*self.symbols, *self.terms))
        columns = [quote(name) for name in numbered.columns if name in kept]
        if self.plan.span is None:
            return self._with_pairs(numbered.select(*columns), ()).repartition(1), 1
        sliced = numbered.selectExpr(*columns, self._slices(POSITION_COLUMN, self.plan.span - 1))
        return sliced.repartition(n, sliced[SLICE_COLUMN]), n

    # ------------------------------------------------------------ the engine

    def _holds_all(self) -> bool:
        """Are the rows of a task held as a whole, whatever is done with them?"""
        return False

    def _matched(self, rows: DataFrame, presorted: bool) -> DataFrame:
        task = self._task(presorted)
        return mapped(rows, partial(match_partition, task), self._schema(task))

    def match_schema(self) -> StructType:
        """The columns of the matches that the engine gives."""
        return self._schema(self._task(presorted=False))

    def _schema(self, task: Task) -> StructType:
        return StructType([StructField(COUNT_COLUMN, LongType())]) if self.count_only else self._match_schema(task)

    def _order(self) -> tuple[OrderColumn, ...]:
        return tuple(OrderColumn(self.sorts.get(o.column, o.column), o.nulls_last) for o in self.query.order_by)

    def _ties(self) -> tuple[OrderColumn, ...]:
        """What breaks ties, with a small number in place of the TYPE column where that is enough."""
        ordered = {order.column for order in self.query.order_by} - self.sorts.keys()
        names = [name for name in self._tie_columns() if name not in ordered and comparable(self.types[name])]
        type = self.plan.type_column
        if type is not None and type not in ordered:
            before = [name for name in names if name in self._before(type)]
            ranked = self.plan.type_in_symbol or self.symbol_bits is not None
            instead = self.symbols[0][0] if ranked else TYPE_COLUMN
            names = [*before, instead, *(name for name in names if name not in before)]
        return tuple(OrderColumn(name) for name in names)

    def _before(self, type: str) -> list[str]:
        """The columns that the pattern reads which come before the TYPE column in the schema."""
        reads = list(self.query.reads)
        return reads[: reads.index(type)] if type in reads else reads

    def _wants(self, column: str) -> bool:
        """Does anything after the engine mention this column of a match?"""
        return not self.count_only and any(column in text for text in self.query.on_matches)

    def _wants_keys(self) -> bool:
        return any(self._wants(key_column(i)) for i in range(len(self.query.partition_by)))

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
        keys = [(name, key_column(i)) for i, name in enumerate(query.partition_by) if self._wants(key_column(i))]
        return Task(
            program=plan.program,
            limits=limits_of(self.spark, query),
            symbols=tuple(name for name, _ in self.symbols),
            terms=tuple(name for name, _ in self.terms),
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
            walked=tuple(self._walked(own) for own in query.of_events if self._wants(own.column)),
        )

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

    # ------------------------------------------------------------ sizes

    def _sorted(self, rows: DataFrame) -> DataFrame:
        """By what belongs together, then in the order of the stream."""
        names = self.keys if SLICE_COLUMN not in rows.columns else [SLICE_COLUMN]
        if POSITION_COLUMN in rows.columns:
            return rows.sortWithinPartitions(*names, POSITION_COLUMN)
        columns = [rows[quote(name)].asc() for name in names]
        for column in (*self._order(), *self._ties()):
            by = rows[quote(column.name)]
            columns.append(by.asc_nulls_last() if column.nulls_last else by.asc_nulls_first())
        return rows.sortWithinPartitions(*columns)

    @functools.cached_property
    def _bytes(self) -> int:
        """Catalyst's estimate of the sources' size; 0 where it cannot be asked. Filters count for nothing in it."""
        if not hasattr(self.source, "_jdf"):
            return connect.estimated_bytes(self.source)
        execution = self.source._jdf.queryExecution()
        if "CTERelationRef" in execution.analyzed().toString():
            # A pattern function over a CTE, which is defined around the call: no optimizer can look into it from here.
            return 0
        return estimate(execution.optimizedPlan())

    def _partitions(self) -> int:
        """How many tasks: by the estimated size, between the cores and spark.sql.shuffle.partitions."""
        most, cores = int(self.spark.conf.get("spark.sql.shuffle.partitions") or 200), parallelism(self.spark)
        wanted = 4 * cores if self._bytes >= UNKNOWN_BYTES else max(cores, -(-self._bytes // PARTITION_BYTES))
        return max(1, min(wanted, most))

    def _spark_sorts(self, n: int) -> bool:
        setting = self.spark.conf.get(SORT_SETTING, "auto")
        if setting in ("worker", "spark"):
            return setting == "spark"
        return self._bytes // n > WORKER_BYTES

    @functools.cached_property
    def _deterministic(self) -> bool:
        """Would two evaluations of the conditions on one row agree? What calls no function surely does."""
        calls = any(re.search(r"[\w`]\s*\(", sql) for sql, _ in self.query.origins)
        if not calls or not hasattr(self.source, "_jdf"):  # Connect cannot say; rand() is not worth losing the drop
            return True
        frame = self._with_keys().selectExpr(*(sql for _, sql in self.symbols))
        expressions = frame._jdf.queryExecution().analyzed().expressions()
        return all(expressions.apply(i).deterministic() for i in range(expressions.length()))


def estimate(plan: Any) -> int:
    """Catalyst's estimate in bytes; it multiplies the sides of a join, which are believed to fit each other."""
    size = int(plan.stats().sizeInBytes())
    if size > PARTITION_BYTES:
        leaves = plan.collectLeaves()
        size = min(size, LEAVES_TIMES * sum(int(leaves.apply(i).stats().sizeInBytes()) for i in range(leaves.size())))
    return size


def is_local(spark: object) -> bool:
    session = getattr(spark, "_jsparkSession", None)
    return session is not None and str(session.sparkContext().master()).startswith("local")


def parallelism(spark: object) -> int:
    context = getattr(spark, "_jsparkSession", None)
    return int(context.sparkContext().defaultParallelism()) if context is not None else connect.parallelism(spark)


def result(plan: PhysicalPlan, catalog: SparkCatalog, kind: type[Batch] = Batch, lasting: bool = False) -> DataFrame:
    """The rows of a query: HAVING, RETURN and LIMIT on top of the matches that `kind` finds. `lasting`: it is to give
    the rows of a later time, too."""
    return returned(plan, catalog, found(plan, catalog, lambda: kind(plan, catalog, lasting=lasting).frame()))


def found(plan: PhysicalPlan, catalog: SparkCatalog, frame: Callable[[], DataFrame]) -> DataFrame:
    """What tasks find; an objection of Spark's to what is computed of rows gets its place in the query."""
    query = plan.query
    source, columns = catalog.union_frame(query), [column.name for column in query.columns]
    with explained(query.text, source, [sql for _, sql in query.origins], condition=True, columns=columns):
        return frame()


def count(plan: PhysicalPlan, catalog: SparkCatalog) -> DataFrame | None:
    """The number of matches, one BIGINT, without making a row of any; None if a condition or LIMIT needs them."""
    query = plan.query
    if query.having or query.on_match or query.limit is not None or query.groups or lists_more(query):
        return None
    source, columns = catalog.union_frame(query), [column.name for column in query.columns]
    with explained(query.text, source, [sql for _, sql in query.origins], condition=True, columns=columns):
        counts = Batch(plan, catalog, count_only=True).frame()
    # A mistake in RETURN is a mistake, although nothing of it is computed.
    returned(plan, catalog, catalog.without_rows(Batch(plan, catalog).match_schema()))
    return counts.selectExpr(f"coalesce(sum({COUNT_COLUMN}), 0L)")


def told(plan: PhysicalPlan, catalog: SparkCatalog) -> list[str]:
    """What EXPLAIN says of how the source is read."""
    try:
        made = Batch(plan, catalog).scan()
    except PySparkException:  # the query will say so itself, at its place
        return []
    return [scan.shown(made)]
