"""A physical plan as a DataFrame: everything around the engine is Catalyst's.

sources → (drop) → columns and symbol → shuffle → mapInArrow(engine) → WHERE on whole matches (→ mapInArrow(strategy))
→ HAVING → RETURN → LIMIT

What is computed of rows is in spark_ext.source_rows, what tasks are told in spark_ext.tasks. Before the shuffle rows
may be joined by others, of pairs that fulfil a condition on two events (spark_ext.pairing). What follows the engine is
in spark_ext.returned.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_type

from planner.physical import PhysicalPlan
from planner.refusal import Refusal
from planner.sql import quote
from runtime.partition.partition import COUNT_COLUMN
from runtime.partition.terms import has_own_codes
from runtime.scan.task import Scan
from spark_ext import collations, connect, scan
from spark_ext.created import lists_more
from spark_ext.errors import SparkError
from spark_ext.forms import clock_sql
from spark_ext.mapping import mapped
from spark_ext.numbering import MANY_ROWS_BYTES, POSITION_COLUMN, can_be_cut, with_positions
from spark_ext.objections import explained
from spark_ext.pairing import Pairing
from spark_ext.returned import returned
from spark_ext.schema import SparkCatalog
from spark_ext.sizes import PARTITION_BYTES, UNKNOWN_BYTES, estimate, parallelism
from spark_ext.source_rows import TYPE_COLUMN
from spark_ext.tasks import SLICE_COLUMN, TaskMaker
from spark_ext.worker import match_partition

WORKER_BYTES = 1 << 30  # an estimate of a partition above which Spark sorts, since Spark can spill
SORT_SETTING = "cersql.sort"  # auto, worker or spark


class Batch(TaskMaker, Pairing):
    """Builds the DataFrame of one plan."""

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
        columns |= {**self.key_sql, **dict(self.terms), **dict(self.weights), **self._made_for_tasks()}
        columns |= {name: collations.key(self.spark, quote(column)) for column, name in self.sorts.items()}
        own = scan.Wanted(self._with_keys(), columns, self.plan.guards, task.order[0].name, *reach)
        return scan.scan_of(self.plan, own, task, self._partitions())

    def _ranks_terms(self, rows: DataFrame) -> bool:
        """Is something compared whose codes are ranks, such as strings?"""
        types = {field.name: field.dataType for field in rows.schema.fields}
        return not all(has_own_codes(to_arrow_type(types[name], timezone="UTC")) for name, _ in self.terms)

    # ------------------------------------------------------------ how rows meet

    def _shuffled(self, rows: DataFrame, n: int, *names: str) -> DataFrame:
        """In n tasks; in as many as adaptive execution finds enough, where the size was not known."""
        columns = [rows[name] for name in names]
        return rows.repartition(*columns) if self._bytes >= UNKNOWN_BYTES else rows.repartition(n, *columns)

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
        kept.update(name for name, _ in (*self.symbols, *self.terms, *self.weights))
        columns = [quote(name) for name in numbered.columns if name in kept]
        if self.plan.span is None:
            return self._with_pairs(numbered.select(*columns), ()).repartition(1), 1
        sliced = numbered.selectExpr(*columns, self._slices(POSITION_COLUMN, self.plan.span - 1))
        return sliced.repartition(n, sliced[SLICE_COLUMN]), n

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

    # ------------------------------------------------------------ the engine

    def _holds_all(self) -> bool:
        """Are the rows of a task held as a whole, whatever is done with them?"""
        return False

    def _matched(self, rows: DataFrame, presorted: bool) -> DataFrame:
        task = self._task(presorted)
        return mapped(rows, partial(match_partition, task), self._schema(task))

    # ------------------------------------------------------------ sizes

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
