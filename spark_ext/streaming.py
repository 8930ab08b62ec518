"""A physical plan as a streaming DataFrame: the matches are appended as the watermark makes them known.

source with watermark → (drop) → columns, symbol and slab → mapInArrow(pack) → transformWithState(bucket)
→ mapInArrow(unpack) → HAVING → RETURN

Keys are hashed to slabs and slabs belong to buckets, which are the groups of the stateful operator: a group costs
milliseconds, a key must not. Rows travel to the operator in packs, one binary column of Arrow's own format with all
rows of a bucket, and the matches come back in the same way: what the operator's Pandas frames would do to types and
NULLs does not happen, and what they cost is paid per pack. The price is one more Python worker in the same stage.

Late rows are dropped by us, not by Spark, which sees no event time in a pack; the watermark itself is Spark's. Rows
that no part of the pattern wants are dropped above it (the condition names the time, or Catalyst would push it below),
so that they move it on.

Roads not taken: applyInPandasWithState has no timers beside the one timeout of a group; foreachBatch has no DataFrame
as its result.
"""

from __future__ import annotations

import dataclasses
import hashlib
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property, partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from planner.emission import why_not
from planner.physical import PhysicalPlan
from planner.query import Link, Query, Window
from planner.sql import quote
from planner.streaming import ALLOW_SETTING, MOST_SETTING, Holding, holding, meaning, program_of
from planner.tabulated import Tabulated
from runtime.errors import CersqlError
from runtime.program import Later
from runtime.stream.meeting import MeetingTask
from runtime.stream.task import HEAVY, Reach, StreamTask
from runtime.stream.windows import WindowTask
from spark_ext.batch import Batch
from spark_ext.checkpoints import Standing
from spark_ext.errors import SparkError
from spark_ext.limits import limits_of, shown_text
from spark_ext.listing import is_steady
from spark_ext.lookups import lookup_text
from spark_ext.mapping import mapped
from spark_ext.meeting import UNTIL_COLUMN, Packs, meeting_pairs, sent
from spark_ext.schema import SparkCatalog, filters_rows
from spark_ext.shipping import for_worker
from spark_ext.sizes import parallelism
from spark_ext.stream_metrics import METRICS_NAME, asked_after, observed
from spark_ext.stream_worker import BUCKET, GIVEN, MATCHES, PACKED, MatchBucket, pack, unpack
from spark_ext.tabulating import with_pairs

SLAB_COLUMN = "__cersql_slab"
COPIES_SETTING = "cersql.stream.copies"
BUCKETS_SETTING, SLABS_SETTING = "cersql.stream.buckets", "cersql.stream.slabs"
SPREAD_SETTING = "cersql.stream.spread"  # false: buckets are called as before there was this setting
ZONE_SETTING = "spark.sql.session.timeZone"
PARTITIONS_SETTING = "spark.sql.shuffle.partitions"
SLABS = 1 << 16  # in a bucket, so that new rows of a key meet few rows of others
MOST = {BUCKETS_SETTING: 1 << 20, SLABS_SETTING: 1 << 16, MOST_SETTING: 1 << 40}
STORE_SETTING = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
CHANGES_SETTING = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
CALL = re.compile(r"[\w`]\s*\(")  # of a function, in SQL
DELAY = "spark.watermarkDelayMs"  # what withWatermark writes into a column's metadata

logger = logging.getLogger("cersql")


def is_stream(query: Query, catalog: SparkCatalog) -> bool:
    return any(catalog.is_stream(source.relation) for source in query.sources)


class Streaming(Batch):
    """Builds the streaming DataFrame of one plan."""

    def __init__(
        self, plan: PhysicalPlan, catalog: SparkCatalog, count_only: bool = False, lasting: bool = False
    ) -> None:
        # Positions are numbered where the rows are, and there is one way to cut a stream: by key.
        layout = "keys" if plan.layout == "keys" else "single"
        super().__init__(dataclasses.replace(plan, layout=layout, slice_size=None), catalog, count_only, lasting)
        self._check(catalog)
        self._delay_us = self._watermarked(catalog)
        self.buckets = buckets(self.spark) if self.keys else 1
        spread = self.buckets > 1 and _flag(self.spark, SPREAD_SETTING, True)
        self._spread = self.buckets if spread else 0  # see spark_ext.stream_worker.pack
        self.slabs = self._slabs()

    @cached_property
    def holding(self) -> Holding:
        """How long rows are held."""
        allowed = _flag(self.spark, ALLOW_SETTING, False)
        return holding(self.plan, allowed or self._most_rows is not None)

    @property
    def _most_rows(self) -> int | None:
        """How many rows a key may hold."""
        return _number(self.spark, MOST_SETTING, 0) or None

    @property
    def _limit_of_rows(self) -> int | None:
        """The same where no window bounds them."""
        reach = self.holding.reach
        return self._most_rows if reach is None or reach.kind == "runs" else None

    def _slabs(self) -> int:
        return _number(self.spark, SLABS_SETTING, SLABS) if self.keys else 1

    def frame(self) -> DataFrame:
        """The matches, as the engine gives them."""
        choose_store(self.spark)
        self._warn_of_empty_tasks()
        rows = self._with_meetings(self._rows(f"{self._slab_sql()} AS {SLAB_COLUMN}"))
        task = self.stream_task(rows.schema)
        standing = Standing(task.meaning, task.described, task.zone)
        packed = mapped(rows, self._packs, PACKED)
        matched = packed.groupBy(BUCKET).transformWithStateInPandas(
            MatchBucket(task), ", ".join(f"{name} {type}" for name, type in GIVEN.items()), "Append", "EventTime"
        )
        matched = observed(matched, _known(standing), asked_after(self.query))
        return matched.select(MATCHES).mapInArrow(for_worker(unpack), self._schema(task.task))

    def stream_task(self, rows: StructType) -> StreamTask | WindowTask:
        """What the stateful operator does."""
        program = program_of(self.plan, self.holding)
        task = dataclasses.replace(self._task(presorted=False), program=program)
        return StreamTask(
            task=task,
            reach=_reach(self.holding),
            late=self.holding.late,
            by_end=self.holding.by_end,
            whole=self.holding.whole,
            spent=self.holding.spent,
            arrival=self.holding.arrival,
            windows=self.holding.windows,
            until=UNTIL_COLUMN if self.plan.tabulated else None,
            slot_us=self._slot_us,
            first=self.holding.first,
            most_rows=self._limit_of_rows,
            key_names=(*self.query.partition_by, *(key.sql.replace("`", "") for key in self.query.keys)),
            **self._stated(rows),
        )

    @property
    def _packs(self) -> Packs:
        """Rows into buckets."""
        return partial(pack, SLAB_COLUMN, self.slabs, self._spread)

    @property
    def _slot_us(self) -> int:
        return max(1_000, self._delay_us // 8)

    def _stated(self, rows: StructType) -> dict[str, Any]:
        """What the tasks of all stateful operators say of their state (runtime.stream.task.Stated)."""
        return {
            "slab": SLAB_COLUMN,
            "meaning": hashlib.sha256(repr(self._told()).encode()).hexdigest(),
            "described": self._described(),
            "zone": str(self.spark.conf.get(ZONE_SETTING)) if self._sees_zone() else "",
            "columns": tuple(field.name for field in rows.fields),
            "types": tuple(field.dataType.simpleString().upper() for field in rows.fields),
            "copies": _flag(self.spark, COPIES_SETTING, True),
        }

    # ------------------------------------------------------------ pairs of events

    def _with_meetings(self, rows: DataFrame) -> DataFrame:
        """The rows, with the pairs of which Spark finds a condition TRUE."""
        if not self.plan.tabulated:
            return rows
        self._check_steady()
        kind = self.types[self.query.order_by[0].column].simpleString()
        rows = rows.selectExpr("*", f"CAST(NULL AS {kind}) AS {UNTIL_COLUMN}")
        return with_pairs(rows, [self._met(asked) for asked in self.plan.tabulated])

    def _met(self, asked: Tabulated) -> DataFrame:
        """The pairs of one condition."""
        related, made = asked.related, asked.related.tabulated
        assert made is not None
        assert related.relation.table is not None
        sides, terms = self._sides(asked)
        told, time = sent(made, sides), self.query.order_by[0].column
        # It names the time, in a year that no row has: else Catalyst would ask it below the watermark.
        one_of_both = f"({sides[0].condition}) OR ({sides[1].condition}) OR year({quote(time)}) = 1000000"
        keys = [f"{sql} AS {name}" for name, sql in self.key_sql.items()]
        source, _ = self._kept()
        rows = source.where(one_of_both).where(f"{quote(time)} IS NOT NULL")
        rows = rows.selectExpr(f"{self._slab_sql()} AS {SLAB_COLUMN}", quote(time), *keys, *told.items)
        task = MeetingTask(
            time=time, until=UNTIL_COLUMN, keys=tuple(self.keys), left=told.left, right=told.right,
            ordered=asked.ordered, reach=_reach(self.holding), limits=limits_of(self.spark, self.query),
            **self._stated(rows.schema),
        )  # fmt: skip
        with self._objecting():
            return meeting_pairs(rows, task, self._packs, related.relation.table, made.sql, terms)

    def _is_steady(self) -> bool:
        """The source is read once, but what is computed of its rows is computed twice."""
        return is_steady(self.source.selectExpr("*")._jdf.queryExecution().analyzed())

    # ------------------------------------------------------------ what EXPLAIN says

    def told(self) -> list[str]:
        """Where the state lies, what is in it, and when a row comes."""
        held = self.holding
        match held.reach:
            case None:
                span = "for ever"
            case Window("time", size):
                span = f"for {size * held.windows} microseconds"
            case Window("events", size):
                span = f"until {size * held.windows} more of their key have come"
            case _:
                span = "while a run that they began lives"
        where = "one bucket, in one task, since there is neither PARTITION BY nor an equality of all events"
        if self.keys:
            where = f"keys are hashed to {self._shown_buckets} of {self.slabs} slabs"
        waits = "are read as they arrive" if held.arrival else "wait for the watermark"
        known = f"  given out when {self._known()}"
        held_for = f"  rows {waits}, then are held {span}"
        if held.first:
            held_for += ", and the first row of each key for ever, since START asks for it"
        if self._limit_of_rows is not None:
            held_for += f"; a key that holds more than {self._limit_of_rows} is an error"
        engines = f"  {self._told_of_engines()}"
        return [f"stream: {where}", held_for, engines, known, *self._told_of_pairs(), *self._told_of_limit()]

    def _told_of_engines(self) -> str:
        """What a micro-batch reads of the rows that are held."""
        rows = self._rows(f"{self._slab_sql()} AS {SLAB_COLUMN}").schema
        task = self.stream_task(rows)
        again = "a micro-batch reads the held rows of the keys that have new ones"
        if not isinstance(task, StreamTask) or not task.resumes:
            return f"{again}: an engine cannot go on from what it has read"
        if any(isinstance(rows[name].dataType, StringType) for name in task.task.terms):
            return f"{again}: codes of text mean something among the rows at hand only"
        return f"{again}; of a key with more than {HEAVY} it goes on from an engine that has read them"

    def _known(self) -> str:
        """When a match is known, and why not before."""
        held = self.holding
        if held.arrival:
            return "the last event of a match arrives: none that comes later can undo it"
        known = "the watermark has passed the last event of a match"
        if held.by_end:
            known = "the window of the last event of a match has passed, and with it those of all that it competes with"
        elif held.late:
            known = "the window of a match has passed"
        return f"{known}: {why_not(self.query, self.plan.later is not None) or 'EMIT ON WATERMARK asks for it'}"

    def _told_of_limit(self) -> list[str]:
        limit = self.query.limit
        if limit is None:
            return []
        return [
            f"  LIMIT: {limit} rows in all, counted in one more task; START PATTERN STREAM stops when they are given"
        ]

    def _told_of_pairs(self) -> list[str]:
        how = "meet in a stateful operator of their own, which reads and holds the rows once more"
        return [f"  pairs of {asked.related} {how}" for asked in self.plan.tabulated]

    # ------------------------------------------------------------ what a stream cannot do

    def _check(self, catalog: SparkCatalog) -> None:
        query = self.query
        streams = [source.alias for source in query.sources if catalog.is_stream(source.relation)]
        tables = [source.alias for source in query.sources if source.alias not in streams]
        if tables:
            hint = lookup_text(query, streams[0], tables[0])
            raise SparkError("STREAM_MIXED", streams=", ".join(streams), tables=", ".join(tables), hint=hint)
        column = query.order_by[0].column
        kind = self.types[column].simpleString()
        own = [{quote(c.name) for c in source.columns} for source in query.sources]
        by = next((made.by for made in query.made if made.name == column), ())
        if any(sql is not None and sql.text not in known for sql, known in zip(by, own, strict=False)):
            hint = "Order first by the column that has the watermark."
            raise SparkError("STREAM_ORDER", column=column, type="no column of the source", hint=hint)
        if kind not in ("timestamp", "timestamp_ntz"):
            hint = "Order by a TIMESTAMP column that has a watermark."
            raise SparkError("STREAM_ORDER", column=column, type=kind, hint=hint)
        self._check_groups()
        self._check_later(self.plan.later)

    def _check_groups(self) -> None:
        """Groups without a window take matches for ever (spark_ext.windowed has those with one)."""
        groups = self.query.groups
        if groups is not None:
            by = ", ".join(grouped.shown for grouped in groups.by) or "()"
            more = "" if not groups.by else f", {by}"
            hint = f"Write GROUP BY WINDOW 10 MINUTES{more}: a group's row comes when its window has closed."
            raise SparkError("STREAM_GROUPS", by=by, hint=hint)

    def _check_later(self, later: Later | None) -> None:
        """What a second pass cannot know in a micro-batch is what matches of earlier ones dropped."""
        if later is not None and later.drops:
            what = "AFTER MATCH SKIP" if later.skip is not None else f"CONSUME BY {later.consume}"
            hint = (
                "Run it over a table. A stream knows what a match drops before WHERE is asked of whole matches: beside "
                "it conditions on two events can stand, without WITH TIMEOUTS; aggregates, and those on more, cannot."
            )
            raise SparkError("STREAM_LATER", what=what, hint=hint)

    def _watermarked(self, catalog: SparkCatalog) -> int:
        """See that the source has a watermark, by itself or by WATERMARK; how far it lies behind, in microseconds."""
        column, own = self.query.order_by[0].column, self.query.watermark_us
        frames = [catalog.frame(source.relation) for source in self.query.sources]
        delays = [_field(frame, column, catalog.case_sensitive).metadata.get(DELAY) for frame in frames]
        known = [int(delay) for delay in delays if delay is not None]
        if own is not None:
            if known:
                hint = "Leave WATERMARK out, or withWatermark."
                raise SparkError("WATERMARK_TWICE", column=column, delay=known[0], hint=hint)
            if not filters_rows(self.query):
                self.source = self.source.withWatermark(column, f"{-(-own // 1000)} milliseconds")
            return own
        if len(known) < len(frames):
            hint = f"Write WATERMARK 10 MINUTES into the query, or call df.withWatermark({column!r}, '10 minutes')."
            raise SparkError("STREAM_WATERMARK", column=column, hint=hint)
        return max(known) * 1000

    def _copies(self, link: Link) -> str:
        """It names the time, as the drop does: Spark would leave out rows without copies below the watermark."""
        return f"IF({quote(self.query.order_by[0].column)} IS NULL, array(), {super()._copies(link)})"

    # ------------------------------------------------------------ buckets

    def _warn_of_empty_tasks(self) -> None:
        """Spark gives a stateful operator as many tasks as there are shuffle partitions, and each opens its state."""
        tasks = int(self.spark.conf.get(PARTITIONS_SETTING) or 200)
        if tasks > 2 * self.buckets:
            logger.warning(
                "%d of the %d tasks of each micro-batch will open a state store for nothing: "
                "SET %s = %d before the stream starts.",
                tasks - self.buckets, tasks, PARTITIONS_SETTING, self.buckets,
            )  # fmt: skip

    def _slab_sql(self) -> str:
        if not self.keys or self._interleaved:
            return "0"
        return f"pmod(hash({', '.join(self.key_sql.values())}), {self.buckets * self.slabs})"

    def _told(self) -> tuple[object, ...]:
        """All that the state depends on."""
        ties = tuple(tie.name for tie in self._ties() if tie.name.startswith("__cersql"))
        return (
            meaning(self.query, self.holding.arrival), self.symbols, [*self.terms, *self.weights], self.key_sql, ties,
            self.buckets, self.slabs, self.plan.guards, *(["spread"] if self._spread else []),
        )  # fmt: skip

    def _sees_zone(self) -> bool:
        """Can a condition mean something else in another time zone? One that reads a time, or calls a function, can."""
        read = [self.types[name].simpleString() for name in self.query.reads]
        calls = any(CALL.search(sql) for sql, _ in self.query.origins)
        return calls or any("timestamp" in type or "date" in type for type in read)

    @property
    def _shown_buckets(self) -> str:
        """As EXPLAIN and messages tell of them."""
        if self.buckets == 1:
            return "1 bucket"
        return f"{self.buckets} buckets{', spread over tasks by chance,' if not self._spread else ''}"

    def _described(self) -> str:
        """What the state is of, for people."""
        return f"{shown_text(self.query)} in {self._shown_buckets} of {self.slabs} slabs"


_standings: dict[str, Standing] = {}


def _known(standing: Standing) -> str:
    """A short name for it, by which `standings` finds it."""
    key = hashlib.sha256(repr(standing).encode()).hexdigest()[:16]
    _standings[key] = standing
    return key


def standings(df: DataFrame) -> list[Standing]:
    """What the patterns in a streaming DataFrame are, by the names of their metrics; those of views, too."""
    plan = df._jdf.queryExecution().analyzed().toString() if hasattr(df, "_jdf") else ""
    keys = re.findall(rf"\b{METRICS_NAME}([0-9a-f]{{16}})_", plan)
    return [_standings[key] for key in sorted(set(keys)) if key in _standings]


def told(plan: PhysicalPlan, catalog: SparkCatalog, kind: type[Streaming] = Streaming) -> list[str]:
    """What EXPLAIN says of a stream; where it cannot be one, why."""
    try:
        return kind(plan, catalog).told()
    except CersqlError as error:
        return [f"stream: refused, [{error.condition}] {error.message}"]


@contextmanager
def few_partitions(spark: SparkSession) -> Iterator[None]:
    """A query keeps the number of shuffle partitions that it starts with: no more than there are buckets."""
    before = spark.conf.get(PARTITIONS_SETTING) or "200"
    spark.conf.set(PARTITIONS_SETTING, str(min(int(before), buckets(spark))))
    try:
        yield
    finally:
        spark.conf.set(PARTITIONS_SETTING, before)


def buckets(spark: SparkSession) -> int:
    return _number(spark, BUCKETS_SETTING, parallelism(spark))


def _number(spark: SparkSession, setting: str, default: int) -> int:
    """A setting; the default where it is not set."""
    written = spark.conf.get(setting, "")
    if not written:
        return default
    if not written.isdigit() or not 1 <= int(written) <= MOST[setting]:
        raise SparkError("SETTING", name=setting, value=written, expected=f"a whole number from 1 to {MOST[setting]}")
    return int(written)


def _flag(spark: SparkSession, setting: str, default: bool) -> bool:
    """A setting that is true or false."""
    written = str(spark.conf.get(setting, "") or default).lower()
    if written not in ("true", "false"):
        raise SparkError("SETTING", name=setting, value=written, expected="true or false")
    return written == "true"


def _field(frame: DataFrame, name: str, case_sensitive: bool) -> StructField:
    """A column that the frame has, as it may spell it in its own way."""
    exact = [field for field in frame.schema.fields if field.name == name]
    return (exact or [f for f in frame.schema.fields if not case_sensitive and f.name.lower() == name.lower()])[0]


def _reach(held: Holding) -> Reach:
    window = held.reach
    if window is None:
        return Reach("none")
    # A window of n events spans n - 1 positions after its first.
    return Reach(window.kind, int(window.size) - (window.kind == "events"), window.strict)


def choose_store(spark: SparkSession) -> None:
    """Take RocksDB, the only store of transformWithState, and let it write what has changed, if nobody has said whether
    it shall; a query that runs already keeps what it began with. A checkpoint can be gone on from either way."""
    if spark.conf.get(STORE_SETTING, "") != ROCKSDB:
        logger.info("%s = %s, which patterns over streams need", STORE_SETTING, ROCKSDB)
        spark.conf.set(STORE_SETTING, ROCKSDB)
    if spark.conf.get(CHANGES_SETTING, None) is None:
        spark.conf.set(CHANGES_SETTING, "true")
