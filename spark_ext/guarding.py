"""What stands around all that a worker of Spark's does for us: its limits, whether Spark still listens, and what is
kept loaded for the next task."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from types import FrameType
from typing import TypeVar

from runtime.errors import CersqlError
from runtime.limits import watched
from runtime.task import Limits

T = TypeVar("T")

FEW = 10_000  # objects that Python's collector looks at in some two milliseconds


def settled(made: Iterator[T]) -> Iterator[T]:
    """The items of an iterator; what is loaded at its end stays so."""
    try:
        yield from made
    finally:
        settle()


def settle() -> None:
    """Spare the collector of garbage what this process has loaded.

    PySpark's worker collects garbage after each task, which looks at every object there is. Numba and compiled kernels
    are half a million of them: 0.07 s a task, in which the worker takes no other. Frozen objects are not looked at;
    they are freed as always when nothing refers to them, and only a circle among them would stay.
    """
    if len(gc.get_objects()) > FEW:  # those that are frozen are none of these
        gc.collect()
        gc.freeze()


def guarded(limits: Limits, made: Iterator[T]) -> Iterator[T]:
    """The items of an iterator, under the limits; an error of ours reaches the user without this process's traceback,
    and the process ends when Spark has closed the connection to it."""
    try:
        yield from watched(limits, made, _connection())
    except CersqlError:
        os.environ["SPARK_HIDE_TRACEBACK"] = "1"  # pyspark reads it while it reports, and then ends this process
        raise


def _connection() -> int | None:
    """The file descriptor of the connection to Spark: what pyspark's worker writes to, further up in this thread."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name == "main" and "outfile" in frame.f_locals:
            file = frame.f_locals["outfile"]
            try:
                return int(file.fileno())
            except (AttributeError, OSError, ValueError):
                return None
        frame = frame.f_back
    return None
