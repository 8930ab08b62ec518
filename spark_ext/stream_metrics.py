"""What the micro-batches of a stream with patterns tell of themselves, in the progress of whatever query reads them.

    query.lastProgress.observedMetrics → {"cersql_1f…_9c": {"matches": 3, "late": 0, "held": 1200, "waiting": 90, …}}

`matches`: rows that the pattern gives (with GROUP BY: groups). `late`: rows that came too late. In the buckets of keys
that the micro-batch touched, `held`: rows that later matches may need, `waiting`: rows that wait for the watermark,
`engines`: those that are kept, of keys with many rows. `engine_ms`: time of all tasks in the engine, without what
Spark's state and its transport take. `buckets`: the sizes of each that was touched; another one holds what it held.

Spark's operator counts what the engine finds. Where WHERE or HAVING is asked of whole matches after it, that is called
`found`, and the rows that are left are counted above it: so `matches` stands once in the metrics of a pattern, in a
record of its own there (`cersql_given_…`).
"""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - pyspark's custom

from planner.query import Query
from spark_ext.created import lists_more
from spark_ext.stream_worker import BUCKET, ENGINE_US, N_LATE, N_MATCHES, SIZES

METRICS_NAME = "cersql_"  # how the names of our records begin
SIZE_NAMES = ("held", "waiting", "engines")  # of SIZES
KEPT_BATCHES = 500  # of a stream
_RUN = "addBatch"  # what of a micro-batch takes time only where there is one


# ---------------------------------------------------------------- told


def asked_after(query: Query) -> bool:
    """Is anything asked of the matches after the engine has found them, so that there are fewer, or groups?"""
    fewer = query.on_match or query.having or query.limit is not None
    return bool(fewer or query.groups is not None or lists_more(query))


def observed(given: DataFrame, key: str, asked: bool) -> DataFrame:
    """What the operator gives, counted on its way. `key`: names what the state is of; `asked`: see asked_after."""
    counts = {"found" if asked else "matches": N_MATCHES, "late": N_LATE, **dict(zip(SIZE_NAMES, SIZES, strict=True))}
    sums = [F.expr(f"coalesce(sum({name}), 0L)").alias(shown) for shown, name in counts.items()]
    engine = F.expr(f"coalesce(sum({ENGINE_US}), 0L) DIV 1000L").alias("engine_ms")
    sizes = ", ".join(f"{name} AS {shown}" for shown, name in zip(SIZE_NAMES, SIZES, strict=True))
    of_each = F.expr(f"collect_list(IF({BUCKET} IS NULL, NULL, struct({BUCKET} AS bucket, {sizes}))) AS buckets")
    # Two patterns in one query need two names.
    return given.observe(f"{METRICS_NAME}{key}_{uuid.uuid4().hex[:8]}", *sums, engine, of_each)


def counted(query: Query, rows: DataFrame) -> DataFrame:
    """The rows of a query, counted where they are others than the operator's."""
    if not asked_after(query):
        return rows
    return rows.observe(f"{METRICS_NAME}given_{uuid.uuid4().hex[:8]}", F.expr("count(1) AS matches"))


# ---------------------------------------------------------------- heard


class Measured(NamedTuple):
    """A micro-batch, or (without `batch` and `at`) the totals of many. Sizes and the watermark are those at its end."""

    batch: int | None = None
    at: datetime | None = None
    events: int = 0
    matches: int = 0
    late: int = 0
    held_rows: int = 0
    waiting_rows: int = 0
    engines: int = 0
    state_bytes: int = 0
    watermark: datetime | None = None
    lag_seconds: float | None = None
    """How far the watermark is behind the newest event."""
    engine_seconds: float = 0.0
    batch_seconds: float = 0.0


_TYPES = {
    "batch": pa.int64(), "at": pa.timestamp("us", "UTC"), "watermark": pa.timestamp("us", "UTC"),
    "lag_seconds": pa.float64(), "engine_seconds": pa.float64(), "batch_seconds": pa.float64(),
}  # fmt: skip


class Metrics:
    """What the progress of one query has told: each micro-batch once, of which the newest are kept, and the totals."""

    def __init__(self, reads: int = 1) -> None:
        """`reads`: how often each row is read, and counted by Spark."""
        self._reads = reads
        self._sizes: dict[tuple[str, int], tuple[int, ...]] = {}
        self._newest: datetime | None = None
        self._last = -1
        self.batches: deque[Measured] = deque(maxlen=KEPT_BATCHES)
        self.total = Measured()

    def note(self, progress: Any) -> bool:
        """Take what a query tells after a micro-batch; False where it is known already, or was none: a query that has
        waited for a while tells so under the number of the micro-batch that is to come."""
        if progress.batchId <= self._last or _RUN not in (progress.durationMs or {}):
            return False
        self._last = progress.batchId
        told = {name: _named(own) for name, own in (progress.observedMetrics or {}).items()
                if name.startswith(METRICS_NAME)}  # fmt: skip
        sizes: dict[tuple[str, int], tuple[int, ...]] = {}
        for name, own in told.items():
            for bucket in map(_named, own.get("buckets") or ()):  # two for one say what adds up
                at, new = (name, bucket["bucket"]), (bucket[size] for size in SIZE_NAMES)
                sizes[at] = tuple(map(sum, zip(sizes.get(at, (0, 0, 0)), new, strict=True)))
        self._sizes |= sizes
        found = self._measured(progress, list(told.values()))
        self.batches.append(found)
        adding = ("events", "matches", "late", "engine_seconds", "batch_seconds")
        sums = {name: getattr(self.total, name) + getattr(found, name) for name in adding}
        self.total = found._replace(batch=None, at=None, **sums)
        return True

    def _measured(self, progress: Any, told: Sequence[dict[str, Any]]) -> Measured:
        def of(name: str) -> int:
            return sum(own.get(name) or 0 for own in told)

        times = progress.eventTime or {}
        watermark, newest = _time(times.get("watermark")), _time(times.get("max"))
        self._newest = max(filter(None, (self._newest, newest)), default=None)
        lag = (
            (self._newest - watermark).total_seconds() if self._newest and watermark and watermark.year > 1970 else None
        )
        held, waiting, engines = (sum(sizes[i] for sizes in self._sizes.values()) for i in range(len(SIZE_NAMES)))
        return Measured(
            progress.batchId, _time(progress.timestamp), progress.numInputRows // self._reads, of("matches"),
            of("late"), held, waiting, engines, sum(state.memoryUsedBytes for state in progress.stateOperators),
            watermark, lag, of("engine_ms") / 1000, (progress.durationMs or {}).get("triggerExecution", 0) / 1000,
        )  # fmt: skip


def _named(row: Any) -> dict[str, Any]:
    """A Row, or what Connect gives in its place."""
    return row if isinstance(row, dict) else row.asDict()


def _time(written: str | None) -> datetime | None:
    """None also for a time beyond what there is here."""
    try:
        return datetime.fromisoformat(written) if written else None
    except ValueError:
        return None


def table(spark: SparkSession, of: Iterable[tuple[str, Metrics]]) -> DataFrame:
    """A row for each micro-batch of some streams, by their names."""
    rows = list(_rows(of))
    columns = {"name": pa.array([name for name, _ in rows], pa.string())}
    for i, field in enumerate(Measured._fields):
        columns[field] = pa.array([own[i] for _, own in rows], _TYPES.get(field, pa.int64()))
    return spark.createDataFrame(pa.table(columns))


def _rows(of: Iterable[tuple[str, Metrics]]) -> Iterator[tuple[str, Measured]]:
    for name, metrics in of:
        for own in metrics.batches:
            yield name, own
