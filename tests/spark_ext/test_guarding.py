"""What a worker keeps loaded for the next task."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import SparkSession
from sparks import taught, view

from spark_ext.guarding import FEW, settle, settled

MUCH = 100_000  # objects; with numba, the runtime and its kernels there are three times as many


def test_pysparks_collector_need_not_look_at_what_a_query_loaded(spark: SparkSession) -> None:
    def objects(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """How many objects the collector of garbage looks at in this process, and what it leaves alone."""
        for _ in batches:
            yield pa.RecordBatch.from_pydict({"seen": [len(gc.get_objects())], "frozen": [gc.get_freeze_count()]})

    own = taught(spark)
    view(own, "t", [(1, "A"), (2, "B")], "ts BIGINT, type STRING")
    assert len(own.sql("FROM t PATTERN A a ; B b ORDER BY ts RETURN a.ts").collect()) == 1
    (row,) = own.range(0, 1, 1, 1).mapInArrow(objects, "seen BIGINT, frozen BIGINT").collect()  # in the same worker
    assert row.seen < MUCH < row.frozen


def test_what_is_settled_may_still_end() -> None:
    class Large:
        ended = 0

        def __del__(self) -> None:
            Large.ended += 1

    held = [Large()]
    held[0].others = [[] for _ in range(FEW + 1)]  # type: ignore[attr-defined]
    try:
        settle()
        assert gc.get_freeze_count() > FEW
        held.clear()
        assert Large.ended == 1
    finally:
        gc.unfreeze()


def test_items_pass_and_an_end_before_the_end_reaches_what_makes_them() -> None:
    ended = []

    def made() -> Iterator[int]:
        try:
            yield from (1, 2, 3)
        finally:
            ended.append(True)

    items = settled(made())
    assert next(items) == 1
    items.close()  # type: ignore[attr-defined]
    assert ended == [True]
