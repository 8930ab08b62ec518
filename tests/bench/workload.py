"""The benchmark's stream: made once, from a fixed seed, into Parquet files that anyone can make again.

15 event types, 1000 keys, one event a millisecond; drawn in blocks of a million rows, so that a longer stream begins
like a shorter one.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

BLOCK = 1_000_000
TYPES = ["A", "B", "C", "D", *(f"N{i}" for i in range(11))]


def block(rng: np.random.Generator, first: int) -> pa.Table:
    """The next million events; ids count from `first`."""
    kind = rng.integers(0, 15, BLOCK)
    key = rng.integers(0, 1000, BLOCK)
    price = np.round(rng.uniform(0, 100, BLOCK), 4)
    volume = rng.integers(0, 1001, BLOCK)
    ids = np.arange(first, first + BLOCK)
    return pa.table(
        {
            "id": ids,
            "type": pa.DictionaryArray.from_arrays(pa.array(kind, pa.int8()), pa.array(TYPES)).cast(pa.string()),
            "key": pa.array(key, pa.int32()),
            "ts": pa.array(ids * 1000, pa.timestamp("us", tz="UTC")),
            "price": price,
            "volume": pa.array(volume, pa.int32()),
        }
    )


def stream(folder: Path, millions: int) -> Path:
    """The file of a stream, made if it is not there yet."""
    path = folder / f"stream-{millions}m.parquet"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        rng = np.random.default_rng(7)
        unfinished = path.with_suffix(".tmp")
        with pq.ParquetWriter(unfinished, block(np.random.default_rng(7), 0).schema) as writer:
            for i in range(millions):
                writer.write_table(block(rng, i * BLOCK))
        unfinished.rename(path)
    return path
