"""Rows for Parquet files that are read by Spark, and by the tasks themselves."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

N = 400


def table(seed: int, n: int = N, sort: bool = True) -> pa.Table:
    """Rows of every type that conditions know, with NULLs, NaN, -0.0, ties in time, and strings of many bytes."""
    random = np.random.default_rng(seed)
    start = datetime(2024, 3, 1, tzinfo=UTC)
    seconds = random.integers(0, n, n)
    times = [start + timedelta(seconds=int(s)) for s in (np.sort(seconds) if sort else seconds)]

    def some(values: list[Any]) -> list[Any]:
        picked = random.integers(-1, len(values), n)
        return [None if i < 0 else values[i] for i in picked]

    floats = [0.0, -0.0, 1.5, -2.25, 80.5, float("nan"), float("inf"), float("-inf")]
    return pa.table(
        {
            "id": pa.array(range(n), pa.int64()),
            "type": pa.array(some(["A", "B", "C", "D"]), pa.string()),
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
            "k": pa.array(some([1, 2, 3]), pa.int32()),
            "boolean": pa.array(some([True, False]), pa.bool_()),
            "byte": pa.array(some([-128, 0, 3, 127]), pa.int8()),
            "short": pa.array(some([-1, 0, 3, 999]), pa.int16()),
            "whole": pa.array(some([-(2**31), -1, 0, 3, 2**31 - 1]), pa.int32()),
            "long": pa.array(some([-(2**63), 0, 3, 2**53 + 1, 2**63 - 1]), pa.int64()),
            "single": pa.array(some(floats), pa.float32()),
            "double": pa.array(some(floats), pa.float64()),
            "text": pa.array(some(["", "a", "ab", "b", "ä", "💧", "A"]), pa.string()),
            "day": pa.array(some([date(1969, 12, 31), date(2024, 2, 29)]), pa.date32()),
            "price": pa.array(some(list(map(Decimal, ("-1.50", "0.00", "1.50", "99.99")))), pa.decimal128(9, 2)),
            "at": pa.array(some([start, start + timedelta(microseconds=1)]), pa.timestamp("us", "UTC")),
            "wall": pa.array(some([datetime(2024, 3, 1), datetime(1969, 12, 31, 23)]), pa.timestamp("us")),
        }
    )  # fmt: skip
