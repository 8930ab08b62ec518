"""Write the classes that Spark loads into an archive of the JVM's, once: python tests/jvm_archive.py FILE.

A JVM that maps it starts in less than half of the time, and every first query in it is faster. tests/conftest.py names
the file to all JVMs of the tests where there is one. A JVM to which it does not fit, after an update, ignores it.
"""

from __future__ import annotations

import os
import sys
import tempfile

from conftest import JVM_OPTIONS
from pyspark.sql import SparkSession


def run(spark: SparkSession) -> None:
    """A little of what most tests do."""
    columns = "id", "substr('AB', CAST(1 + id % 2 AS INT), 1) AS type"
    spark.range(20).selectExpr(*columns).createOrReplaceTempView("rows")
    pairs = "FROM rows PATTERN A a ; B b ORDER BY id WITHIN 3 RETURN a.id AS a, b.id AS b"
    spark.sql(f"SELECT a, count(*) FROM ({pairs}) GROUP BY a").collect()


def main(archive: str) -> None:
    os.environ["SPARK_SUBMIT_OPTS"] = f"{JVM_OPTIONS} -XX:ArchiveClassesAtExit={archive}"
    with tempfile.TemporaryDirectory() as folder:
        builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
        builder = builder.config("spark.sql.shuffle.partitions", "1").config("spark.log.level", "OFF")
        spark = builder.config("spark.sql.warehouse.dir", folder).getOrCreate()
        import cersql

        run(cersql.enable(spark))
        process = spark.sparkContext._gateway.proc  # type: ignore[union-attr]
        spark.stop()
        process.stdin.close()
        process.wait()


if __name__ == "__main__":
    main(sys.argv[1])
