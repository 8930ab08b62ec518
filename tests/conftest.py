"""Options, profiles and fixtures that all tests share."""

from __future__ import annotations

import fcntl
import gc
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import small
from hypothesis import HealthCheck, settings

from runtime import compiling

compiling.SILENCE = 3600.0  # the first test that needs kernels compiles them, whatever it reads of the log
GOLDEN = Path(__file__).parent / "golden"

_quiet = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
settings.register_profile("dev", deadline=None, max_examples=100, suppress_health_check=_quiet)
settings.register_profile("ci", parent=settings.get_profile("dev"), derandomize=True, print_blob=True)
settings.register_profile("thorough", parent=settings.get_profile("dev"))
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "dev"))

# Kernels are compiled in three fifths of the time; LLVM's other passes make them no faster (cersql/cli/main.py).
os.environ.setdefault("NUMBA_OPT", "1")

if os.environ.get("CERSQL_SMALL"):
    small.shrink()

# What a micro-batch writes goes to the disk at once, some ten files of a few bytes: half a second, of which the tests
# need nothing. A file system in memory has it for nothing.
MEMORY = Path("/dev/shm")  # of Linux
if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > 8 << 30:
    os.environ.setdefault("TMPDIR", str(MEMORY))
    os.environ.setdefault("SPARK_LOCAL_DIRS", str(MEMORY))
    tempfile.tempdir = None  # read it anew

# For every JVM that a test starts, in whatever process: most of its code runs once. What is compiled of it in ten
# minutes does not fit into the 48 MB that such a JVM has by itself, and would be thrown away and compiled again.
# A young generation of 384 MB is emptied a quarter as often as the one that a JVM takes by itself, a twentieth of all.
# Hadoop forks `readlink` some fifty times a micro-batch where checkpoints are written in its newer way.
CHECKPOINTS = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
JVM_OPTIONS = " ".join((
    "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=400m -XX:+UseSerialGC -Xmn384m",
    f"-Djava.io.tmpdir={tempfile.gettempdir()}",
    f"-Dspark.sql.streaming.checkpointFileManagerClass={CHECKPOINTS}",
))  # fmt: skip
ARCHIVE = Path(__file__).parents[1] / ".venv" / "spark.jsa"  # of classes, ready to be mapped; see jvm_archive.py
MAPPED = f" -XX:SharedArchiveFile={ARCHIVE} -Xlog:disable" if ARCHIVE.exists() else ""  # else a JVM prints a misfit
os.environ.setdefault("SPARK_SUBMIT_OPTS", JVM_OPTIONS + MAPPED)

# The files that take longest, longest first: what is left for the end is short, and all workers end at one time. Before
# them a few that compare no events: where kernels are compiled first, those that do are there when they are needed.
LONGEST = """
test_thrift test_connect test_pattern_streams test_scan test_windowed test_second_pass test_pages test_report
test_shipping test_bucket test_notebook test_commands test_streaming test_tabulated test_types test_comparisons_spark
test_tabulated_streams test_groups test_laws test_exhaustive test_layout test_layouts test_choices test_timeouts
test_examples test_several_sources test_kernels_python test_sliding test_aggregates test_real_data test_comparisons
test_registers test_deferred test_ranged test_objections test_functions test_limits_spark test_gathering test_refining
test_returns test_registers_spark test_order test_created test_picking test_new_high_spark test_pcea
test_arithmetic_queries test_cli test_trends test_next_match test_spellings_spark test_corpus_spark test_concurrency
test_ceql_spark test_ceql
""".split()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--bless", action="store_true", help="rewrite the files under tests/golden instead of comparing")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what needs Spark; long files first; leave the long tests out unless the -m expression names them."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.jvm)
    leave_breadth(items)
    rank = {name: n for n, name in enumerate(LONGEST)}
    items.sort(key=lambda item: rank.get(item.path.stem, len(rank)))
    if "exhaustive" in (config.getoption("markexpr") or ""):
        return
    long = [item for item in items if item.get_closest_marker("exhaustive")]
    if long:
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if item not in long]


def pytest_collection_finish() -> None:
    """All that is imported, and every test, stays: half a million objects that Python's collector need not look at."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


def leave_breadth(items: list[pytest.Item]) -> None:
    """Of the cases of a test that is marked breadth(n), n that lie apart stay; the others are exhaustive."""
    cases: dict[tuple[Path, str], list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("breadth"):
            cases.setdefault((item.path, item.name.partition("[")[0]), []).append(item)
    for found in cases.values():
        mark = found[0].get_closest_marker("breadth")
        assert mark is not None
        others = [item for item in found if not item.get_closest_marker("exhaustive")]
        kept = {k * len(others) // mark.args[0] for k in range(mark.args[0])}
        for k, item in enumerate(others):
            if k not in kept:
                item.add_marker(pytest.mark.exhaustive)


@pytest.fixture(scope="session", autouse=True)
def kernels(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Where workers begin without compiled kernels, each compiles some of them first."""
    worker = getattr(request.config, "workerinput", None)
    if worker is None or worker["workercount"] < 2:
        return
    from runtime.warm import compile_kernels

    folder = tmp_path_factory.getbasetemp().parent  # all workers have this one
    for family in ("registers", "timed", "plain"):
        with (folder / f"kernels-{family}.lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue  # another worker compiles it; to wait for it would take as long as to compile what is needed
            compile_kernels(family)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str, str], None]:
    """`golden(stage, name, text)`: the text is that of tests/golden/<stage>/<name>.txt, or becomes it under --bless."""
    bless = request.config.getoption("--bless")

    def compare(stage: str, name: str, text: str) -> None:
        path = GOLDEN / stage / f"{name}.txt"
        text = text.rstrip("\n") + "\n"
        if bless:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            return
        if not path.exists():
            pytest.fail(
                f"{path.relative_to(GOLDEN.parent)} does not exist; review this and run pytest --bless:\n{text}"
            )
        assert text == path.read_text(encoding="utf-8"), "the print changed; if it should, run pytest --bless"

    return compare


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One small local SparkSession for the whole run: two tasks for a job, one after the other in one Python worker.

    A second worker would import and load all that the first has loaded, and the cores are busy with other tests.
    """
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[1]")
        .appName("cersql-tests")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.default.parallelism", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.python.unix.domain.socket.enabled", "true")  # as cersql.session
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
