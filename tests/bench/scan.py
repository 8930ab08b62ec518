"""Queries over Parquet files, counted: read by the tasks, through Spark, by hand in DuckDB, and Spark's own count(*).

    python tests/bench/scan.py [--rows 1000000] [--files 1] [--shuffled] [--columns 0] [--repeat 3] [--only Q1,Q3]

The ways take turns in one run, on two threads each; medians in seconds, after as many turns that warm up (Spark's JVM
compiles for some five queries). DuckDB's joins are by buckets of time, found by hand: what an expert writes. The last
column is Spark's `count(*)` with the query's predicates on single events.
"""

from __future__ import annotations

import argparse
import logging
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from run import median

import cersql

GROUP_ROWS = 500_000
PRICE = "{0}.price > 80"


class Query(NamedTuple):
    """A pattern with its clauses; DuckDB's text; the predicate of plain Spark."""

    pattern: str
    duckdb: str
    plain: str


def joined(types: str, within_us: int, more: str = "TRUE", equal: str = "") -> str:
    """One row for each choice of rows of these types, one after the other, within a window; by buckets of time."""
    first, *others = types.lower()
    joins = []
    for before, name in zip(types.lower(), others, strict=False):
        joins.append(
            f"JOIN (SELECT *, unnest([bucket, bucket - 1]) AS at FROM r WHERE type = '{name.upper()}') {name} "
            f"ON {name}.at = {first}.bucket{equal.format(first, name)} AND {name}.us > {before}.us "
            f"AND {name}.us <= {first}.us + {within_us}"
        )
    rows = f"SELECT *, us // {within_us} AS bucket FROM (SELECT *, epoch_us(ts) AS us FROM source WHERE {{where}})"
    where = f"{first}.type = '{types[0]}' AND {more}"
    return f"WITH r AS ({rows}) SELECT count(*) FROM r {first} {' '.join(joins)} WHERE {where}"


def dear(types: str) -> str:
    return " AND ".join(PRICE.format(name) for name in types.lower())


def choices(joins: str) -> str:
    """Of joins of A, B and C: of each A and C, how many choices of one B and more are between them."""
    counted = joins.replace("SELECT count(*) FROM r a", "SELECT count(*) AS n FROM r a") + " GROUP BY a.us, c.us"
    return f"SELECT sum(pow(2, n) - 1)::BIGINT FROM ({counted})"


RELEVANT = "price > 80 AND type IN ('A', 'B', 'C')"
QUERIES = {
    "Q1 A ; B ; C < 100 ms": Query(
        f"PATTERN A a ; B b ; C c WHERE {dear('ABC')} WITHIN INTERVAL '0.1' SECOND",
        joined("ABC", 100_000).format(where="price > 80"), RELEVANT,
    ),
    "Q2 by key, < 10 s": Query(
        f"PATTERN A a ; B b ; C c WHERE {dear('ABC')} PARTITION BY k WITHIN 10 SECONDS",
        joined("ABC", 10_000_000, equal=" AND {0}.k = {1}.k").format(where="price > 80"), RELEVANT,
    ),
    "Q3 A ; B+ ; C < 100 ms": Query(
        f"PATTERN A a ; B+ b ; C c WHERE {dear('ABC')} WITHIN INTERVAL '0.1' SECOND",
        choices(joined("ABC", 100_000)).format(where="price > 80"), RELEVANT,
    ),
    "Q4 A : B : C": Query(
        "PATTERN A a : B b : C c",
        "SELECT count(*) FROM (SELECT type, lead(type) OVER w AS b, lead(type, 2) OVER w AS c FROM source "
        "WINDOW w AS (ORDER BY ts)) WHERE type = 'A' AND b = 'B' AND c = 'C'", "TRUE",
    ),
    "Q5 A ; B ; C < 1 s": Query(
        f"PATTERN A a ; B b ; C c WHERE {dear('ABC')} WITHIN 1 SECOND",
        joined("ABC", 1_000_000).format(where="price > 80"), RELEVANT,
    ),
    "Q6 A ; B, dearer": Query(
        "PATTERN A a ; B b WHERE a.price > 80 AND b.price > 80 AND b.price > a.price WITHIN INTERVAL '0.1' SECOND",
        joined("AB", 100_000, "b.price > a.price").format(where="price > 80"), RELEVANT,
    ),
}  # fmt: skip


def write(folder: Path, rows: int, files: int, shuffled: bool, columns: int) -> None:
    """One event a millisecond, five types alike, a thousand keys."""
    random = np.random.default_rng(1)
    own = rows // files
    for file in range(files):
        ids = np.arange(file * own, (file + 1) * own)
        if shuffled:
            random.shuffle(ids)
        table = pa.table(
            {
                "type": pa.array(np.array(list("ABCDE"))[random.integers(0, 5, own)]),
                "ts": pa.array(ids * 1000, pa.timestamp("us", "UTC")),
                "price": random.uniform(0, 100, own),
                "k": random.integers(0, 1000, own),
                **{f"c{i}": random.integers(0, 100, own) for i in range(columns)},
            }
        )
        pq.write_table(table, folder / f"{file:04}.parquet", row_group_size=GROUP_ROWS)


def in_turns(ways: Sequence[Callable[[], Any]], repeat: int) -> tuple[list[float], list[Any]]:
    """Medians of the seconds that each takes once warm, and what each gives."""
    taken: list[list[float]] = [[] for _ in ways]
    found: list[Any] = []
    for turn in range(2 * repeat):
        found = []
        for seconds, way in zip(taken, ways, strict=True):
            begin = time.perf_counter()
            found.append(way())
            if turn >= repeat:
                seconds.append(time.perf_counter() - begin)
    return [median(seconds) for seconds in taken], found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--files", type=int, default=1)
    parser.add_argument("--columns", type=int, default=0)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--shuffled", action="store_true")
    parser.add_argument("--only", default="", help="their first words, with commas")
    given = parser.parse_args()
    logging.disable(logging.WARNING)
    with tempfile.TemporaryDirectory() as path:
        write(Path(path), given.rows, given.files, given.shuffled, given.columns)
        spark = cersql.session(config={"spark.master": "local[2]"})
        spark.sparkContext.setLogLevel("ERROR")
        spark.read.parquet(path).createOrReplaceTempView("source")
        print(f"{given.rows:,} rows, {given.files} files, {'shuffled' if given.shuffled else 'in order'}")
        print(f"{'':24}{'parquet':>9}{'spark':>9}{'duckdb':>9}{'count(*)':>9}   matches")
        for name, query in QUERIES.items():
            if given.only and name.split()[0] not in given.only.split(","):
                continue
            print(line(spark, path, name, query, given.repeat), flush=True)
        spark.stop()


def line(spark: Any, path: str, name: str, query: Query, repeat: int) -> str:
    text = f"SELECT count(*) FROM (FROM source {query.pattern} ORDER BY ts RETURN a.ts)"

    def ours(way: str) -> Any:
        spark.conf.set("cersql.scan", way)
        return spark.sql(text).collect()[0][0]

    connection = duckdb.connect()
    connection.execute(f"SET threads = 2; CREATE VIEW source AS FROM read_parquet('{path}/*.parquet')")

    def by_hand() -> Any:
        return connection.execute(query.duckdb).fetchall()[0][0]

    def plain() -> Any:
        return spark.sql(f"SELECT count(*) FROM source WHERE {query.plain}").collect()

    taken, (parquet, through_spark, joins, _) = in_turns(
        (lambda: ours("auto"), lambda: ours("spark"), by_hand, plain), repeat
    )
    assert parquet == through_spark == joins, f"{name}: {parquet}, {through_spark}, {joins}"
    return f"{name:24}{''.join(f'{seconds:9.2f}' for seconds in taken)}   {parquet:,}"


if __name__ == "__main__":
    main()
