"""Keeps exceptions that are handled out of the logs.

Each statement that Spark's parser refuses and we accept passes an exception through Py4J and pyspark, and both log
what they see. Only records about such exceptions are dropped; what reaches the user is logged as always.
"""

from __future__ import annotations

import functools
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError
from pyspark.logger import PySparkLogger

_CAPTURE_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_thread = threading.local()


@contextmanager
def quiet_captures() -> Iterator[None]:
    """In this thread, pyspark does not log the exceptions that it captures from the JVM: who called us gets them, as
    they are or as ours. (It logs all that have a place in a text or program, with a traceback and the JVM's stack.)"""
    _filter_captures()
    depth = getattr(_thread, "depth", 0)
    _thread.depth = depth + 1
    try:
        yield
    finally:
        _thread.depth = depth


def mute_handled_exceptions() -> None:
    """Install the filters; again is harmless."""
    # Py4J logs each exception that leaves a proxy, with its traceback. Ours leave it as Java exceptions.
    for name in ("py4j.clientserver", "py4j.java_gateway"):
        logging.getLogger(name).addFilter(_is_no_java_exception)
    _filter_captures()


@functools.cache
def _filter_captures() -> None:
    for name in _CAPTURE_LOGGERS:  # by pyspark's own getter: these are not plain loggers
        PySparkLogger.getLogger(name).addFilter(_is_not_ours)


def mute_captures() -> None:
    """pyspark logs no captured exception at all: for programs that show each error themselves."""
    for name in _CAPTURE_LOGGERS:
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL + 1)


def _is_no_java_exception(record: logging.LogRecord) -> bool:
    return not (record.exc_info and isinstance(record.exc_info[1], Py4JJavaError))


def _is_not_ours(record: logging.LogRecord) -> bool:
    return getattr(_thread, "depth", 0) == 0
