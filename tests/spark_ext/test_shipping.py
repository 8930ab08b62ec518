"""cersql on a cluster whose workers have everything but cersql: it says so, and can be sent there.

One process that runs this file as a script, with cersql in a wheel that was never installed: `spark-submit --py-files`
leaves it so.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path
from typing import Any

import pytest

from spark_ext.shipping import for_worker
from spark_ext.worker import match_partition

ROOT = Path(__file__).resolve().parents[2]
LIBRARIES = sysconfig.get_paths()["purelib"]
# Without `site`, so that cersql is not found in a checkout that is installed there. The workers run it uncompiled.
WORKER = f"""#!/bin/sh
PYTHONPATH={LIBRARIES} NUMBA_DISABLE_JIT=1 exec {sys.executable} -S "$@"
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check", "wheel", str(ROOT)]
    subprocess.run([*command, "--no-deps", "--no-build-isolation", "-w", str(folder)], check=True, timeout=120)
    (made,) = folder.glob("*.whl")
    return made


def outside(wheel: Path, folder: Path, script: str, **environment: str) -> str:
    """What a Python prints that finds cersql in the wheel alone."""
    path = f"{wheel}:{LIBRARIES}"
    done = subprocess.run(
        [sys.executable, "-S", "-W", "ignore", "-c", script],
        cwd=folder, env={**os.environ, "PYTHONPATH": path, **environment}, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def test_the_wheel_has_all_that_is_needed(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    packages = ("cersql", "planner", "runtime", "spark_ext")
    assert {f"{package}/py.typed" for package in packages} | {"cersql/language/grammar.lark"} <= names
    assert {name.split("/")[0] for name in names if ".dist-info" not in name} == set(packages)


def test_kernels_of_an_archive_are_kept(wheel: Path, tmp_path: Path) -> None:
    """In a folder that is named by the content: another copy of the same wheel finds them."""
    script = """if True:
        import numpy as np, runtime
        from runtime.compact_set.tecs import Bounds, inside
        assert inside(np.int64(1), np.int64(5), Bounds(np.int64(4), False))
        print(runtime.__path__[0], sum(inside._cache_hits.values()) if hasattr(inside, '_cache_hits') else 0)"""
    environment = {"TMPDIR": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1", "NUMBA_CACHE_DIR": ""}
    first = outside(wheel, tmp_path, script, **environment).split()
    assert Path(first[0]).is_relative_to(tmp_path)
    (kept,) = Path(first[0]).rglob("*inside*.nbi")
    other = tmp_path / "other" / wheel.name
    other.parent.mkdir()
    other.write_bytes(wheel.read_bytes())
    before = kept.stat().st_mtime_ns
    assert outside(other, tmp_path, script, **environment).split()[0] == first[0]
    assert kept.stat().st_mtime_ns == before


def test_a_worker_without_something_that_cersql_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sending cersql would not help there."""
    monkeypatch.setenv("SPARK_HIDE_TRACEBACK", "")  # set by what is tried, and put back
    work = for_worker(match_partition, None)
    monkeypatch.delitem(sys.modules, "spark_ext.worker")
    monkeypatch.setitem(sys.modules, "numpy", None)
    with pytest.raises(ImportError) as caught:
        work([])
    assert "Install numpy there, which cersql needs." in str(caught.value)
    assert "ship" not in str(caught.value)


@pytest.mark.jvm
@pytest.mark.slow
def test_workers_without_cersql(wheel: Path, tmp_path: Path) -> None:
    worker = tmp_path / "python"
    worker.write_text(WORKER)
    worker.chmod(0o755)
    told = {"PYSPARK_PYTHON": str(worker), "SPARK_SCALA_VERSION": "2.13", "SPARK_LOCAL_IP": "127.0.0.1"}
    script = (
        f"import sys; sys.path.append({str(Path(__file__).parent)!r}); import test_shipping; test_shipping.script()"
    )
    assert outside(wheel, tmp_path, script, **told).split() == ["refused", "works"]


def script() -> None:
    from pyspark.sql import SparkSession

    import cersql
    from cersql.statements import front

    builder: Any = SparkSession.builder
    spark = (
        builder.master("local-cluster[1,1,1024]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.task.maxFailures", "1")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    front.enable(spark)  # without what `cersql.enable` does beside: it would send cersql
    spark.sql("SELECT id AS ts, IF(id % 2 = 0, 'A', 'B') AS type FROM range(6)").createOrReplaceTempView("ev")
    query = "FROM ev PATTERN A a : B b ORDER BY ts RETURN a.ts AS a, b.ts AS b"
    with pytest.raises(Exception) as caught:
        spark.sql(query).collect()
    assert "WORKER_WITHOUT_CERSQL" in str(caught.value), caught.value
    assert "cersql.ship(spark)" in str(caught.value)
    print("refused", flush=True)
    assert cersql.enable(spark) is spark
    assert sorted(map(tuple, spark.sql(query).collect())) == [(0, 1), (2, 3), (4, 5)]
    print("works", flush=True)
    spark.stop()
