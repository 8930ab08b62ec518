"""What stands around all that a worker of Spark's does for us: its limits, and whether Spark still listens."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from types import FrameType
from typing import TypeVar

from runtime.errors import CersqlError
from runtime.limits import watched
from runtime.task import Limits

T = TypeVar("T")


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
