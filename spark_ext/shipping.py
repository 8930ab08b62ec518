"""Our packages on their way to the workers: as a zip that Spark sends, and an error where a worker has none.

A worker imports `runtime` and `spark_ext`. They are there where cersql is installed beside pyspark on each machine of
a cluster; elsewhere `ship` sends them (700 KB, as `addPyFile` does). The packages that they need, numpy, numba, pyarrow
and pandas, the Python there has to bring along.

What we give to Spark is pickled by reference, so a worker without cersql would end in a traceback of the unpickler.
`for_worker` puts a small function around it, which is pickled by value, needs nothing, and says what is wrong.
"""

from __future__ import annotations

import os
import tempfile
import zipfile
import zipimport
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import SparkSession

import runtime
from runtime.program import package_version

PACKAGES = ("cersql", "planner", "runtime", "spark_ext")

Batches = Iterable[pa.RecordBatch]


def ship(spark: SparkSession) -> SparkSession:
    """Send our packages to the workers of this application, or of this session of Connect. Twice is harmless."""
    name = f"cersql-{package_version()}.zip"
    if hasattr(spark, "_jsparkSession"):
        context = spark.sparkContext
        archive = os.path.join(
            str(context._temp_dir), name
        )  # of the application: Spark serves it to whoever comes late
        if not os.path.exists(archive):
            _write(archive)
            context.addPyFile(archive)
    elif not getattr(spark, "_cersql_shipped", False):
        with tempfile.TemporaryDirectory(prefix="cersql-ship-") as folder:
            archive = os.path.join(folder, name)
            _write(archive)
            spark.addArtifacts(archive, pyfile=True)
        spark._cersql_shipped = True  # type: ignore[attr-defined]
    return spark


def comes_in_an_archive() -> bool:
    """Was cersql imported from a wheel or zip, as `spark-submit --py-files` leaves it? Then no worker has it: Spark
    puts a `.whl` into the driver's path, and into no other."""
    return isinstance(runtime.__loader__, zipimport.zipimporter)


def _write(archive: str) -> None:
    """The same bytes for the same sources, so that workers find what they compiled for an earlier application."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as zipped:
        for name, content in sorted(_sources().items()):
            zipped.writestr(zipfile.ZipInfo(name), content)
        told = f"Metadata-Version: 2.1\nName: cersql\nVersion: {package_version()}\n"
        zipped.writestr(zipfile.ZipInfo(f"cersql-{package_version()}.dist-info/METADATA"), told)


def _sources() -> dict[str, bytes]:
    """name in the archive → content"""
    home = Path(runtime.__file__ or "").parents[1]
    if isinstance(runtime.__loader__, zipimport.zipimporter):
        with zipfile.ZipFile(runtime.__loader__.archive) as zipped:
            return {n: zipped.read(n) for n in zipped.namelist() if n.startswith(tuple(f"{p}/" for p in PACKAGES))}
    files = (file for package in PACKAGES for file in (home / package).rglob("*") if "__pycache__" not in file.parts)
    return {file.relative_to(home).as_posix(): file.read_bytes() for file in files if file.is_file()}


def for_worker(
    function: Callable[..., Iterator[pa.RecordBatch]], *given: Any
) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    """`function(*given, batches)` for a worker; where cersql cannot be imported there, an error that says so.

    The nested function is pickled by value, with what it closes over, so it must read nothing of this module.
    """
    packed = cloudpickle.dumps((function, given))  # type: ignore[no-untyped-call]
    version, ours = package_version(), PACKAGES

    def on_a_worker(batches: Batches) -> Iterator[pa.RecordBatch]:
        import os
        import pickle
        import sys

        try:
            work, values = pickle.loads(packed)
        except (ImportError, AttributeError) as error:
            os.environ["SPARK_HIDE_TRACEBACK"] = "1"  # pyspark reads it while it reports
            missing = (getattr(error, "name", None) if isinstance(error, ImportError) else None) or "runtime"
            way, shadow = f"Install {missing} there, which cersql needs.", ""
            if missing.partition(".")[0] in ours:
                way = "Install cersql there, or call cersql.ship(spark) before the query."
                found = sys.modules.get("runtime")
                shadow = f" (there is another package `runtime`, {found.__file__})" if found is not None else ""
            raise ImportError(
                f"[WORKER_WITHOUT_CERSQL] A worker of Spark's could not import cersql {version}: {error}{shadow}. Its "
                f"Python is {sys.executable}. {way} SQLSTATE: 55000"
            ) from None
        from spark_ext.guarding import settled

        return settled(work(*values, batches))

    named: Any = function
    on_a_worker.__name__ = getattr(named, "__name__", None) or named.func.__name__  # what Spark's plans show
    return on_a_worker
