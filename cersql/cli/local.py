"""The Spark of the command line: a local session that keeps quiet, and its end."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from cersql import api
from cersql.cli.errors import CommandError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONFIG = {
    "spark.master": "local[*]",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.executor.heartbeatInterval": "2s",  # so often tasks say how many matches they have listed
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": str(os.cpu_count() or 2),
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",  # what everyone else reads; Spark's own is its past
}


@contextlib.contextmanager
def started(name: str, *, verbose: bool, config: Mapping[str, str] | None = None) -> Iterator[SparkSession]:
    """A local session, quiet unless `verbose`, that is stopped at the end."""

    _check_java()
    with tempfile.TemporaryDirectory(prefix="cersql-", ignore_cleanup_errors=True) as warehouse:
        settings = {**CONFIG, "spark.sql.warehouse.dir": warehouse, **(config or {})}
        with contextlib.nullcontext() if verbose else _stderr_in_a_file():
            spark = api.session(name, settings)
            if not verbose:
                spark.sparkContext.setLogLevel("OFF")
        if not verbose:
            _quiet_py4j()
        try:
            yield spark
        finally:
            with contextlib.suppress(Exception):  # the JVM may be gone already
                spark.stop()


def _quiet_py4j() -> None:
    """Py4J logs what it raises, with a traceback: Ctrl-C, which comes while it waits for the JVM, and a JVM that is
    gone, of which it tells the root logger. It does so even after Spark has ended, where an object of the JVM is
    collected then; so this lasts as long as the process, which is the command line's."""
    logging.getLogger("py4j").setLevel(logging.CRITICAL + 1)
    logging.getLogger().addFilter(_is_not_py4js)


def _is_not_py4js(record: logging.LogRecord) -> bool:
    return Path(record.pathname).parent.name != "py4j"


def _check_java() -> None:
    """Raises CommandError where there is none: what Spark's launcher says of that does not help."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=os.path.join(home, "bin") if home else None)
    if java is None:
        where = f"in JAVA_HOME, which is {home}" if home else "on PATH, and JAVA_HOME is not set"
        raise CommandError(f"Spark needs Java 17 or newer, and there is none {where}.")


@contextlib.contextmanager
def _stderr_in_a_file() -> Iterator[None]:
    """The JVM that is started meanwhile writes its stderr to a file: shown if that fails, else forgotten."""

    sys.stderr.flush()
    screen = os.dup(2)
    with tempfile.TemporaryFile("w+") as log:
        os.dup2(log.fileno(), 2)
        try:
            yield
        except Exception:
            log.seek(0)
            os.write(screen, log.read().encode())
            raise
        finally:
            os.dup2(screen, 2)
            os.close(screen)
