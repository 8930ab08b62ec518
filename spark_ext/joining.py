"""A relational plan as a DataFrame of matches, in Catalyst alone: no row goes to Python.

    rows (once for each bucket of time) → places in the stream of a key → e0 ⋈ e1 ⋈ … ▷ what must not happen → ∪

The rows are those that the engine would get (spark_ext.source_rows), with their order and what breaks ties; the columns
of a match are those that it gives back (spark_ext.tasks), so that all that follows is the same.

*Buckets.* A match lies in the window before its last event (Theorem 0.1 of [INTER]), so rows meet whose times lie in
the same bucket: a stretch of BUCKET_WINDOWS windows, with what lies a window before it. That is an equality, by which
Spark spreads the join, and one more key. The bucket that owns its last event reports a match, so each comes once.

*Places.* `row_number` over the order of the stream, which is total over all columns that are read: so a plan that
numbers rows again for each event of a join gives equal rows equal places. Rows that cannot be put in such an order, or
are others each time, are refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property, reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - pyspark's custom

from planner import cel
from planner.formula import Formula
from planner.physical import PhysicalPlan, guard_sql
from planner.refusal import Refusal
from planner.relational.branch import Absence, Branch, Slot
from planner.relational.conditions import Condition
from planner.relational.planning import RelationalPlan
from planner.relational.sql import AT, CLOCK, Columns, column, event, value_column
from planner.sql import quote
from planner.terms import Window
from runtime.task import OrderColumn
from spark_ext.forms import clock_sql, comparable, term_sql
from spark_ext.listing import is_steady
from spark_ext.match_columns import MatchColumns
from spark_ext.numbering import MANY_ROWS_BYTES, POSITION_COLUMN, can_be_cut, with_positions
from spark_ext.schema import SparkCatalog
from spark_ext.sizes import PARTITION_BYTES, UNKNOWN_BYTES, estimate, parallelism
from spark_ext.tasks import TaskMaker
from spark_ext.types_seen import takes_some

BUCKET, SAME = "__cersql_bucket", "__cersql_same"
BUCKET_WINDOWS = 2  # a row meets those of so many windows and one; it is copied once for each so many


class Joining(TaskMaker):
    """Builds the DataFrame of one relational plan."""

    def __init__(self, plan: PhysicalPlan, made: RelationalPlan, catalog: SparkCatalog) -> None:
        super().__init__(plan, catalog)
        self.made, self.asked = made, Columns(made.branches)

    def _warm(self) -> None:
        """No kernel is run."""

    # ------------------------------------------------------------ what cannot be run

    @cached_property
    def refusal(self) -> Refusal | None:
        """Why the rows at hand cannot be joined with themselves."""
        for name in self._tie_columns():
            if not comparable(self.types[name]):
                return Refusal(f"{name} is {self.types[name].simpleString()}, and rows that tie cannot be put in order")
        if not self._deterministic:
            return Refusal("a condition can have another value the next time it is asked")
        if not hasattr(self.source, "_jdf"):
            return None
        # As pairing has it: of what is cached, the rows that are there.
        source = self.source.selectExpr("*")._jdf.queryExecution().withCachedData()
        if not is_steady(source):
            return Refusal("the source gives other values each time it is read: cache it, or write it to a table")
        if takes_some(source):
            return Refusal("a LIMIT of the source may take other rows each time: cache it, or write it to a table")
        return None

    # ------------------------------------------------------------ rows

    def first_rows(self, n: int, which: str) -> DataFrame:
        """So many rows of the source, of those that fulfil a condition, with their keys."""
        return self._with_keys().where(which).limit(n)

    @cached_property
    def window(self) -> Window | None:
        """The window by which rows are put into buckets, if a match is decided by the rows of the window before its
        end, and of the window after its start where what follows it must not happen."""
        window, formula = self.query.window, self.query.formula
        if window is None or not isinstance(window.size, int) or not 0 < window.size < 1 << 60:
            return None
        if self.made.one_of_start or looks_far(formula):
            return None
        if window.kind == "time" and self.types[self.query.order_by[0].column].simpleString() in ("float", "double"):
            return None
        return window

    @cached_property
    def groups(self) -> list[str]:
        """The columns on which all events of a match agree: keys, and the bucket."""
        return [*(f"{SAME}{i}" for i in range(len(self.keys))), *([BUCKET] if self.window is not None else [])]

    @cached_property
    def _own_rows(self) -> DataFrame:
        """The rows that can matter, with what conditions ask of them; those with a NULL time raise their error here."""
        query, more = self.query, []
        for name, guards in self.asked.words():
            bits = " + ".join(f"IF({guard_sql(guard, query)}, {1 << bit}L, 0L)" for bit, guard in guards)
            more.append(f"{bits} AS {name}")
        types = dict(query.types)
        for (sql, type), i in self.asked.values.items():
            kinds = self.asked.read_of[sql, type]
            tests = ["TRUE"] if None in kinds else [types[kind] for kind in sorted(filter(None, kinds))]
            more.append(f"{self._where(term_sql(self.spark, sql, type), sql, tests)} AS {value_column(i)}")
        clocked = self.asked.uses_clock or (self.window is not None and self.window.kind == "time")
        if clocked:
            more.append(f"{self.clock()} AS {CLOCK}")
        time = quote(query.order_by[0].column)
        rows = self._rows(*more).where(f"{time} IS NOT NULL")
        nullable = {field.name for field in rows.schema.fields if field.nullable}
        # NULL is a key like another: a struct with it equals itself.
        same = [f"struct({name})" if name in nullable else name for name in self.keys]
        return rows.selectExpr("*", *(f"{sql} AS {SAME}{i}" for i, sql in enumerate(same)))

    def clock(self) -> str:
        """What windows measure, as a number."""
        name = self.query.order_by[0].column
        if self.types[name].simpleString() in ("float", "double"):
            return f"CAST({quote(name)} AS DOUBLE)"
        return clock_sql(name, self.types)

    def _bucketed(self, rows: DataFrame, clock: str) -> DataFrame:
        """The rows once for each bucket in which they can be part of a match."""
        assert self.window is not None
        reach = self.window.size if self.window.kind == "time" else self.window.size - 1
        size = self._bucket_size
        after = reach if self.query.formula.contains((cel.NotAfter,)) else 0
        own = self._bucket(clock)
        first = f"IF(pmod({clock}, {size}L) < {after}L, 1L, 0L)"
        last = f"IF(pmod({clock}, {size}L) >= {size - reach}L, 1L, 0L)"
        return rows.selectExpr("*", f"explode(sequence({own} - {first}, {own} + {last})) AS {BUCKET}")

    @cached_property
    def _bucket_size(self) -> int:
        assert self.window is not None
        return max(1, BUCKET_WINDOWS * int(self.window.size))

    def _bucket(self, clock: str) -> str:
        """The bucket that a row is of by itself. It is no column: the last event alone would read it, and Spark shuffle
        its rows once more."""
        return f"({clock} - pmod({clock}, {self._bucket_size}L)) DIV {self._bucket_size}L"

    @cached_property
    def rows(self) -> DataFrame:
        """The rows with their places."""
        rows, window = self._own_rows, self.window
        if window is not None and window.kind == "time":
            return self._numbered(self._bucketed(rows, CLOCK), self.groups)
        groups = [name for name in self.groups if name != BUCKET]
        numbered = self._numbered(rows, groups)
        return numbered if window is None else self._bucketed(numbered, AT)

    def _numbered(self, rows: DataFrame, groups: Sequence[str]) -> DataFrame:
        """The rows with their places in the stream of their group; those that can be no event have had theirs."""
        order = (*self._order(), *self._ties())
        if groups:
            by = ", ".join(_ascending(item) for item in order)
            place = f"CAST(row_number() OVER (PARTITION BY {', '.join(groups)} ORDER BY {by}) AS BIGINT) AS {AT}"
            numbered = rows.selectExpr("*", place)
            return numbered if self.plan.drops else numbered.where(self._relevant())
        # What is cut is all of the source; where rows were dropped before, few are left.
        cut = not self.plan.drops and can_be_cut(self.types[self.query.order_by[0].column])
        n = parallelism(self.spark) if cut and self.size >= MANY_ROWS_BYTES else 1
        found = with_positions(rows, self.source, order, self._relevant(), n)
        return found.selectExpr("*", f"{POSITION_COLUMN} + 1L AS {AT}").drop(POSITION_COLUMN)

    @cached_property
    def size(self) -> int:
        """Catalyst's estimate of the source in bytes; 0 where it cannot be asked."""
        if not hasattr(self.source, "_jdf"):
            return 0
        size = estimate(self.source._jdf.queryExecution().optimizedPlan())
        return PARTITION_BYTES if size >= UNKNOWN_BYTES else size

    # ------------------------------------------------------------ joins

    @cached_property
    def columns(self) -> MatchColumns:
        task = self._task(presorted=False)
        return MatchColumns(task, self._match_schema(task), self.made, self.groups)

    def frame(self) -> DataFrame:
        """The matches, each once, before any are chosen."""
        columns = self.columns
        frames = [self._branch(branch, columns) for branch in self.made.branches]
        if not frames:
            return self.catalog.without_rows(self.match_schema()).selectExpr("*", *columns.of_nothing())
        found = reduce(DataFrame.unionAll, frames)
        return found.dropDuplicates(columns.identity) if self.made.distinct else found

    def _branch(self, branch: Branch, columns: MatchColumns) -> DataFrame:
        return self._found(branch, is_match=True).select(*columns.of(branch))

    def _found(self, branch: Branch, is_match: bool) -> DataFrame:
        """The rows of a branch; each event is joined as soon as what is asked of it can be. `is_match`: it is no part
        of what must not happen, and one bucket reports it."""
        first, *others = branch.slots
        known = frozenset((first.number,))
        joined = _filtered(self._event(first), self._ready(branch.conditions, known, known))
        for slot in others:
            known |= {slot.number}
            ready = self._ready(branch.conditions, known, frozenset((slot.number,)))
            on = [*self._same_groups(first.number, slot.number), *ready]
            joined = joined.join(self._event(slot), F.expr(_all(on)))
        if is_match and self.window is not None:
            clock = CLOCK if self.window.kind == "time" else AT
            last = [self._bucket(column(slot, clock)) for slot in branch.last]
            owner = f"greatest({', '.join(last)})" if len(last) > 1 else last[0]
            joined = joined.where(f"{owner} = {column(branch.last[0], BUCKET)}")
        for absence in branch.absences:
            joined = self._anti_joined(joined, first, absence)
        return joined

    def _anti_joined(self, joined: DataFrame, first: Slot, absence: Absence) -> DataFrame:
        """The rows for which what must not happen does not."""
        vetoes = self._found(absence.branch, is_match=False)
        on = [*self._same_groups(first.number, absence.branch.slots[0].number)]
        on += [f"({self.asked.sql(condition)})" for condition in absence.conditions]
        return joined.join(vetoes, F.expr(_all(on)), "left_anti")

    def _event(self, slot: Slot) -> DataFrame:
        """The rows that can be an event."""
        accepted = self.asked.accepted(slot)
        rows = self.rows if accepted is None else self.rows.where(accepted)
        return rows.alias(event(slot.number))

    def _ready(self, conditions: Sequence[Condition], known: frozenset[int], new: frozenset[int]) -> list[str]:
        """The conditions that can be asked now, and not before."""
        ready = (c for c in conditions if c.slots <= known and c.slots & new)
        return list(dict.fromkeys(f"({self.asked.sql(condition)})" for condition in ready))

    def _same_groups(self, left: int, right: int) -> Iterator[str]:
        for name in self.groups:
            yield f"{column(left, name)} = {column(right, name)}"


def looks_far(formula: Formula) -> bool:
    """Does something in it depend on more than the window of a match: where the stream, or a search, begins?"""
    choosing = (part for part in formula.walk() if isinstance(part, cel.Strategy) and part.name != "STRICT")
    return formula.contains((cel.Start,)) or next(choosing, None) is not None


def _ascending(item: OrderColumn) -> str:
    return f"{quote(item.name)} ASC NULLS {'LAST' if item.nulls_last else 'FIRST'}"


def _all(conditions: Sequence[str]) -> str:
    return " AND ".join(conditions) or "TRUE"


def _filtered(rows: DataFrame, conditions: Sequence[str]) -> DataFrame:
    return rows.where(_all(conditions)) if conditions else rows
