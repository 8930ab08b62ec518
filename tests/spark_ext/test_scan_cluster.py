"""Parquet files where the workers are processes of a cluster: they read footers and row groups, the driver neither."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from scanned import table

pytestmark = [pytest.mark.jvm, pytest.mark.exhaustive]

SCRIPT = """
import os, sys
import cersql
from spark_ext import parquet

spark = cersql.session(config={
    "spark.master": "local-cluster[2,1,1024]", "spark.executorEnv.PYTHONPATH": os.environ["PYTHONPATH"],
    "spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2",
})
assert not parquet.on_this_machine(spark)
spark.read.parquet(sys.argv[1]).createOrReplaceTempView("source")
where = "b.long > a.whole WITHIN 50 SECONDS"
text = f"FROM source PATTERN A a ; B b WHERE {where} ORDER BY ts RETURN *, a.id AS i, b.id AS j"
found = {}
for way in ("parquet", "spark"):
    spark.conf.set("cersql.scan", way)
    found[way] = sorted(map(repr, spark.sql(text).collect()))
assert found["parquet"] == found["spark"]
(row,) = spark.sql(f"EXPLAIN {text}").collect()
print(len(found["parquet"]), "rows")
with open(os.path.join(sys.argv[1], "broken.parquet"), "wb") as file:
    file.write(b"no footer")
spark.read.schema(spark.table("source").schema).parquet(sys.argv[1]).createOrReplaceTempView("source")
spark.conf.set("cersql.scan", "auto")
(row,) = spark.sql(f"EXPLAIN {text}").collect()
print(next(line for line in row[0].splitlines() if line.startswith("scan: ")))
"""


def test_a_cluster_of_one_machine(tmp_path: Path) -> None:
    files = tmp_path / "files"
    files.mkdir()
    for k in range(3):
        pq.write_table(table(2).slice(130 * k, 130), files / f"{k}.parquet", row_group_size=40)
    root = str(Path(__file__).parents[2])
    own = {"SPARK_WORKER_DIR": str(tmp_path / "work"), "PYTHONPATH": root, "PYSPARK_PYTHON": sys.executable}
    command = [sys.executable, "-P", "-c", SCRIPT, str(files)]
    ran = subprocess.run(command, env=os.environ | own, capture_output=True, text=True, timeout=600)
    assert ran.returncode == 0, ran.stderr[-3000:]
    rows, told = ran.stdout.splitlines()[-2:]
    assert int(rows.split()[0]) > 100
    assert told == "scan: spark, since the footer of broken.parquet cannot be read"
