"""What is made of the progress that a stream tells."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

from pyspark.sql import Row

from spark_ext.stream_metrics import KEPT_BATCHES, Metrics


def progress(batch: int, told: dict[str, Any], **facts: Any) -> SimpleNamespace:
    facts = {
        "timestamp": "2024-01-01T00:00:00.000Z",
        "numInputRows": 0,
        "eventTime": {},
        "durationMs": {"addBatch": 7},
    } | facts
    state = [SimpleNamespace(memoryUsedBytes=n) for n in (10, 5)]
    return SimpleNamespace(batchId=batch, observedMetrics=told, stateOperators=state, **facts)


def own(buckets: dict[int, tuple[int, int, int]], *more: tuple[int, int, int, int], **counts: int) -> Row:
    told = [*((n, *sizes) for n, sizes in buckets.items()), *more]
    sizes = [Row(bucket=n, held=h, waiting=w, engines=s) for n, h, w, s in told]
    return Row(**({"matches": 0, "late": 0, "engine_ms": 0} | counts), buckets=sizes)


def test_a_bucket_that_is_not_touched_holds_what_it_held() -> None:
    metrics = Metrics()
    metrics.note(progress(0, {"cersql_a": own({0: (5, 1, 2), 1: (3, 0, 1)})}))
    metrics.note(progress(1, {"cersql_a": own({1: (0, 7, 0)}), "other": Row(buckets=3)}))
    metrics.note(progress(2, {}))
    sizes = [(b.held_rows, b.waiting_rows, b.engines) for b in metrics.batches]
    assert sizes == [(8, 1, 3), (5, 8, 2), (5, 8, 2)]
    assert metrics.total.held_rows == 5


def test_what_a_timer_changes_in_the_same_micro_batch_adds_up() -> None:
    metrics = Metrics()
    for batch in range(2):
        metrics.note(progress(batch, {"cersql_a": own({0: (5, 1, 2), 1: (3, 0, 1)}, (0, -5, 4, -2))}))
        total = metrics.total
        assert (total.held_rows, total.waiting_rows, total.engines) == (3, 5, 1)


def test_two_patterns_in_one_query_are_added_up() -> None:
    """One of which has a WHERE that is asked of whole matches; Connect gives dicts."""
    metrics = Metrics()
    bucket = {"bucket": 0, "held": 1, "waiting": 0, "engines": 1}
    told = {
        "cersql_a": own({0: (5, 0, 1)}, matches=2, late=1, engine_ms=30),
        "cersql_b": {"found": 9, "late": 0, "engine_ms": 12, "buckets": [bucket]},
        "cersql_given_b": {"matches": 4},
    }  # fmt: skip
    metrics.note(progress(0, told))
    (found,) = metrics.batches
    assert (found.matches, found.late, found.engine_seconds, found.held_rows, found.state_bytes) == (6, 1, 0.042, 6, 15)


def test_a_micro_batch_counts_once_and_the_newest_are_kept() -> None:
    metrics = Metrics(reads=2)
    for batch in range(KEPT_BATCHES + 2):
        for _ in range(2):  # by the listener, and when it is shown
            metrics.note(progress(batch, {"cersql_a": own({}, matches=3)}, numInputRows=4))
    assert (metrics.total.matches, metrics.total.events) == (3 * (KEPT_BATCHES + 2), 2 * (KEPT_BATCHES + 2))
    assert [metrics.batches[0].batch, len(metrics.batches)] == [2, KEPT_BATCHES]


def test_a_query_that_has_only_waited_has_had_no_micro_batch() -> None:
    metrics = Metrics()
    assert not metrics.note(progress(0, {}, durationMs={"triggerExecution": 3}))
    assert metrics.note(progress(0, {"cersql_a": own({0: (5, 0, 0)}, matches=3)}))
    assert (metrics.total.matches, metrics.total.held_rows, len(metrics.batches)) == (3, 5, 1)


def test_the_lag_is_that_behind_the_newest_event_of_all() -> None:
    metrics = Metrics()
    before = {"watermark": "1970-01-01T00:00:00.000Z"}
    metrics.note(progress(0, {}, eventTime=before | {"max": "2024-01-01T00:01:00.500Z"}))
    metrics.note(
        progress(1, {}, eventTime={"watermark": "2024-01-01T00:00:50.500Z", "max": "2024-01-01T00:00:55.000Z"})
    )
    metrics.note(progress(2, {}, eventTime={"watermark": "+10000-01-01T00:00:00.000Z"}))
    assert [b.lag_seconds for b in metrics.batches] == [None, 10.0, None]
    assert metrics.batches[1].watermark == datetime(2024, 1, 1, 0, 0, 50, 500000, UTC)
