"""The arguments that several commands take."""

from __future__ import annotations

import argparse

from cersql.cli.streaming import stream_argument
from cersql.cli.tables import schema_argument, table_argument

Commands = argparse._SubParsersAction  # what `add_subparsers` gives: its add_parser makes a command


def add_query(command: argparse.ArgumentParser) -> None:
    command.add_argument("query", nargs="?", metavar="FILE", help="a file of statements; - is the standard input")
    command.add_argument("--execute", "-e", metavar="TEXT", help="take the statements from here instead")


def add_common(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--table",
        type=table_argument,
        action="append",
        default=[],
        metavar="NAME=FILE",
        help="a table of the statements: a .csv (with a header), .tsv, .parquet or .json file, or a folder of "
        "such files; may be given again",
    )
    command.add_argument(
        "--schema",
        type=schema_argument,
        action="append",
        default=[],
        metavar="NAME=COLUMNS",
        help="the types of columns of a --table, as of a .csv without rows, or a table without data: "
        "trades='ts TIMESTAMP, price DOUBLE'; may be given again",
    )
    command.add_argument(
        "--stream",
        type=stream_argument,
        action="append",
        default=[],
        metavar="NAME=FOLDER",
        help="a stream of the statements: the files that arrive in a folder (FOLDER, or 'FOLDER/*.csv' where none is "
        "there yet), or rate:N, Spark's own of N rows a second; may be given again",
    )
    command.add_argument(
        "--conf",
        type=_setting,
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a setting of Spark or of cersql, for example spark.driver.memory=4g; may be given again",
    )
    command.add_argument("--quiet", "-q", action="store_true", help="no progress, no times")
    command.add_argument("--verbose", action="store_true", help="show what Spark logs, and where errors are from")


def positive(written: str) -> int:
    if not written.isdecimal() or int(written) == 0:
        raise argparse.ArgumentTypeError(f"{written!r} is no whole number above 0")
    return int(written)


def _setting(written: str) -> tuple[str, str]:
    key, equals, value = written.partition("=")
    if not key or not equals:
        raise argparse.ArgumentTypeError(f"{written!r} is not KEY=VALUE")
    return key, value
