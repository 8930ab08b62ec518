"""A query that tasks read from files by themselves, on a cluster of which an executor is killed meanwhile.

This file is also run as a script: a cluster needs a process, and a JVM, of its own.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

N_ROWS, GROUP_ROWS = 600_000, 20_000
PATTERN = "FROM ev PATTERN A a ; B b ; C c ORDER BY ts WITHIN 20 MILLISECONDS RETURN a.id AS x, c.id AS y"
QUERY = f"SELECT count(*), sum(x), sum(y) FROM ({PATTERN})"


@pytest.mark.jvm
@pytest.mark.exhaustive
def test_an_executor_is_killed(tmp_path: Path) -> None:
    ids = np.arange(N_ROWS)
    kinds = np.random.default_rng(1).choice(list("ABCD"), N_ROWS)
    events = {"id": ids, "ts": pa.array(ids * 1_000, pa.timestamp("us", tz="UTC")), "type": kinds}
    pq.write_table(pa.table(events), tmp_path / "events.parquet", row_group_size=GROUP_ROWS)
    told = {"SPARK_SCALA_VERSION": "2.13", "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", __file__, str(tmp_path / "events.parquet")],
        cwd=tmp_path, env={**os.environ, **told}, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.splitlines()[-1] == "killed, the same rows"


def script(path: str) -> None:
    from pyspark.sql import SparkSession

    import cersql

    builder: Any = SparkSession.builder
    spark = (
        builder.master("local-cluster[2,1,1024]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.files.maxPartitionBytes", "500k")
        .getOrCreate()
    )
    cersql.enable(spark)
    spark.sparkContext.setLogLevel("OFF")
    spark.read.parquet(path).createOrReplaceTempView("ev")
    told = spark.sql(f"EXPLAIN {PATTERN}").collect()[0][0]
    assert "scan: parquet, 30 row groups" in told, told
    expected = spark.sql(QUERY).collect()
    found: list[Any] = []
    query = threading.Thread(target=lambda: found.append(spark.sql(QUERY).collect()))
    query.start()
    while not _under_way(spark.sparkContext.statusTracker()):
        assert query.is_alive(), "the query was over before an executor could be killed"
    os.kill(_executors()[0], signal.SIGKILL)
    query.join()
    assert found == [expected]
    print("killed, the same rows")
    spark.stop()


def _under_way(tracker: Any) -> bool:
    """Are some of the many tasks of a stage done, and others not?"""
    stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    return any(stage and stage.numTasks > 5 and stage.numCompletedTasks and stage.numActiveTasks for stage in stages)


def _executors() -> list[int]:
    """The JVMs that this process's JVM started, at whatever depth, and that are executors."""
    found, open_ = [], [os.getpid()]
    while open_:
        parent = open_.pop()
        for task in Path(f"/proc/{parent}/task").iterdir():
            children = [int(child) for child in (task / "children").read_text().split()]
            open_ += children
            found += [child for child in children if b"CoarseGrainedExecutorBackend" in _command(child)]
    return found


def _command(process: int) -> bytes:
    command = Path(f"/proc/{process}/cmdline").read_bytes()
    return command if command.split(b"\0")[0].endswith(b"java") else b""


if __name__ == "__main__":
    script(sys.argv[1])
