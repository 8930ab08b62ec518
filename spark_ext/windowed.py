"""Groups of matches on a stream: a group has a window that slides, and its row comes when the window has closed.

source with watermark → the windows of each row → columns, symbol and bucket → mapInArrow(pack)
→ transformWithState(bucket: rows wait for their window, then the batch's task) → mapInArrow(unpack) → HAVING → RETURN

Rows go to a bucket by their window and by the keys that GROUP BY names, not by those that it does not: a bucket knows
all there is of a group when the window closes, in one micro-batch, so that nothing is added up afterwards
(runtime.stream.windows). The price is that windows without a key in GROUP BY are read by one task each.

    WITHIN 10 MINUTES SLIDE 5 MINUTES PARTITION BY k RETURN k, COUNT(*) GROUP BY k      by window and k
    WITHIN 10 MINUTES SLIDE 5 MINUTES PARTITION BY k RETURN COUNT(*)                    by window
"""

from __future__ import annotations

from functools import cached_property

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from planner.groups import WINDOW_COLUMN, Groups, Sliding
from planner.physical import PhysicalPlan
from planner.query import Window, key_column
from planner.sql import quote
from planner.streaming import Holding
from runtime.program import Later
from runtime.stream.windows import WindowTask
from spark_ext.grouping import Summing, result_of
from spark_ext.meeting import UNTIL_COLUMN
from spark_ext.schema import SparkCatalog
from spark_ext.streaming import CALL, Streaming


class Windowed(Streaming):
    """Builds the streaming DataFrame of the matches in windows, all those of one when it has closed."""

    @property
    def groups_by(self) -> Groups:
        """What GROUP BY says."""
        assert self.query.groups is not None
        return self.query.groups

    @property
    def sliding(self) -> Sliding:
        """The windows."""
        assert self.groups_by.sliding is not None
        return self.groups_by.sliding

    @cached_property
    def holding(self) -> Holding:
        """See Streaming.holding: what can meet lies in one window."""
        return Holding(Window("time", self.sliding.size, strict=True), late=True, whole=False, windows=1)

    def _check_groups(self) -> None:
        """They have windows."""

    def _check_later(self, later: Later | None) -> None:
        """All matches that can compete are there when their window has closed."""

    def _slabs(self) -> int:
        return 1

    def _slab_sql(self) -> str:
        return f"pmod(hash({', '.join(self._hashed())}), {self.buckets})"

    def _hashed(self) -> list[str]:
        """The window, and the keys by which groups are told apart, as SQL."""
        of_match = {grouped.on_match for grouped in self.groups_by.by}
        of_row = {grouped.row for grouped in self.groups_by.by if grouped.mark is None}
        known = [quote(key_column(i)) in of_match for i in range(len(self.query.partition_by))]
        known += [key.sql in of_row for key in self.query.keys]
        return [sql for sql, is_known in zip(self.key_sql.values(), known, strict=True) if is_known]

    def _told(self) -> tuple[object, ...]:
        return (*super()._told(), "windows", self.sliding, tuple(self._hashed()))

    def stream_task(self, rows: StructType) -> WindowTask:
        """See Streaming.stream_task."""
        return WindowTask(
            task=self._task(presorted=False),
            window=self.keys[self.query.partition_by.index(WINDOW_COLUMN)],
            size=self.sliding.size,
            slide=self.sliding.slide,
            until=UNTIL_COLUMN if self.plan.tabulated else None,
            slot_us=self._slot_us,
            **self._stated(rows),
        )

    def told(self) -> list[str]:
        """See Streaming.told."""
        by = " and ".join(["windows", *self._named()])
        return [
            f"stream: {by} are hashed to {self._shown_buckets.rstrip(',')}",
            f"  rows wait in each of their windows, of {self.sliding.size} microseconds every {self.sliding.slide}",
            "  a group's row is given out when the watermark has passed the end of its window",
            *self._told_of_pairs(),
            *self._told_of_limit(),
        ]

    def _named(self) -> list[str]:
        """What else than windows buckets are chosen by, as it is written."""
        hashed = set(self._hashed())
        written = [*self.query.partition_by, *(key.sql for key in self.query.keys)]
        return [
            name
            for name, sql in zip(written, self.key_sql.values(), strict=True)
            if sql in hashed and name != WINDOW_COLUMN
        ]


class SummingWindows(Summing, Windowed):
    """The same for plans whose tasks sum up matches: the rows of groups."""

    def _sees_zone(self) -> bool:
        """Also what is computed of rows before they wait: by a function, or of a time."""
        times = [
            quote(name) for name, type in self.types.items() if type.simpleString().startswith(("timestamp", "date"))
        ]
        read = [*(grouped.row for grouped in self.groups.by), *(own.value for own in self.groups.sums)]
        computed = [sql for sql in read if sql is not None and sql not in times]
        return super()._sees_zone() or any(CALL.search(sql) or any(time in sql for time in times) for sql in computed)


def kind_of(plan: PhysicalPlan) -> type[Streaming]:
    """What builds the stream of a plan, if matches are listed."""
    groups = plan.query.groups
    return Streaming if groups is None or groups.sliding is None else Windowed  # the former refuses groups


def result(plan: PhysicalPlan, catalog: SparkCatalog) -> DataFrame:
    """A row for each group, when its window has closed."""
    groups, kind = plan.query.groups, kind_of(plan)
    if kind is Windowed and groups is not None and not groups.listed:
        kind = SummingWindows
    return result_of(plan, catalog, lambda: kind(plan, catalog).frame(), whole=True)
