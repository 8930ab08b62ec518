"""`cersql serve`: a Thrift server, until Ctrl-C or a signal ends it.

The exit code is 0 if Ctrl-C, SIGTERM or SIGHUP stopped it; 1 if it did not start, a statement of the --init file is
wrong or Spark ended. Before it is ready, Ctrl-C gives 130 as elsewhere, and the other two 143 and 129.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import signal
import sys
from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING

from cersql.cli import running
from cersql.cli.arguments import Commands, add_common
from cersql.cli.errors import CommandError, UsageError
from cersql.cli.reports import put, warning_report
from cersql.cli.texts import Statement
from cersql.statements.catalog import catalog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from cersql.cli.progress import Progress

LOOPBACK = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}


def register(commands: Commands) -> None:
    command = commands.add_parser(
        "serve",
        help="a Thrift server for beeline, JDBC, PyHive and BI tools",
        description="Run the statements of a file, then serve their views to clients, who may make more. All clients "
        "share one session. When it is ready, the server prints its JDBC address on stdout. Ctrl-C or SIGTERM stop it.",
        epilog="Settings of Hive's server are given as --conf hive.server2.KEY=VALUE; passwords, which everyone on the "
        "machine could read there, in hive-site.xml or spark-defaults.conf in the folder SPARK_CONF_DIR. "
        "Example: cersql serve --init patterns.sql --table trades=trades.parquet --port 10000",
    )
    command.add_argument("--init", metavar="FILE", help="run the statements of this file first")
    command.add_argument("--port", type=_port, default=10000, help="0 takes a free one (default: %(default)s)")
    command.add_argument("--host", default="127.0.0.1", help="the address to listen on (default: %(default)s)")
    add_common(command)
    command.set_defaults(command=serve)


def serve(arguments: argparse.Namespace) -> int:
    from spark_ext import thrift

    try:
        with _signals():
            try:
                _serve(arguments)
            finally:
                thrift.end_jvm()
    except _Stopped as stopped:
        return stopped.exit_code
    return 0


def _serve(arguments: argparse.Namespace) -> None:
    from spark_ext import thrift

    script = running.script_of(arguments.init, None) if arguments.init is not None else None
    statements = running.statements_of(script) if script is not None else []
    settings = {key: value for key, value in arguments.conf if not key.startswith(("spark.", "cersql."))}
    if wrong := thrift.ADDRESS & settings.keys():
        raise UsageError(f"--conf {min(wrong)}: give --host and --port instead")
    thrift.check_address(arguments.host, arguments.port)
    arguments.conf = [*_defaults(arguments), *((key, value) for key, value in arguments.conf if key not in settings)]
    with running.session("cersql serve", arguments) as (spark, progress, _):
        _prepare(spark, progress, statements)
        progress.step("starting the server")
        with thrift.serve(
            spark,
            host=arguments.host,
            port=arguments.port,
            settings=settings,
            warn=lambda text: put(progress.console, f"cersql: warning: {text}"),
        ) as server:
            progress.hide()
            progress.watch(None)
            # Spark has taken this signal, and it would cancel the statements before the connections are closed.
            signal.signal(signal.SIGINT, _stop)
            try:
                with contextlib.nullcontext() if arguments.verbose else _silence("cersql"):
                    running.print_line(f"listening on {server.url}")
                    sys.stdout.flush()
                    server.wait()
            except _Stopped:
                server.stop()
                return
            raise CommandError("Spark has ended, and the server with it (--verbose shows what Spark says)")


def _defaults(arguments: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """A Spark that runs here alone talks to nobody else."""
    if dict(arguments.conf).get("spark.master", "local").startswith("local"):
        yield from LOOPBACK.items()


def _prepare(spark: SparkSession, progress: Progress, statements: list[Statement]) -> None:
    for number, statement in enumerate(statements, 1):
        progress.step(f"statement {number} of {len(statements)}")
        with running.placed(statement), catalog(), running.collected_warnings() as warnings:
            running.execute(spark, statement)
        for warning in dict.fromkeys(warnings):
            put(progress.console, warning_report(statement, warning))


def _port(written: str) -> int:
    if not written.isdecimal() or int(written) > 65535:
        raise argparse.ArgumentTypeError(f"{written!r} is no port: 0 to 65535")
    return int(written)


# ---------------------------------------------------------------- the end


_ENDING = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


class _Stopped(BaseException):
    """A signal says that it is enough."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_code = 128 + number


def _stop(number: int, frame: FrameType | None) -> None:
    raise _Stopped(number)


@contextlib.contextmanager
def _signals() -> Iterator[None]:
    """Meanwhile signals that end a process end the server, cleanly. One that is ignored, as under nohup, stays so."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, *_ENDING)}
    for number in _ENDING:
        if before[number] is not signal.SIG_IGN:
            signal.signal(number, _stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _silence(name: str) -> Iterator[None]:
    """What clients did wrong or doubtfully, they are told; the console of the server need not know."""
    logger = logging.getLogger(name)
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(level)
