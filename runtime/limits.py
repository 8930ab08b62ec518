"""What a task may use: memory and matches; and what happens when nobody reads what it makes any more.

A timer looks on, since a task grows in many places (an arena, a table, a list of matches) and each of them would have
to ask. It interrupts Python between two steps: a kernel runs to its end first, and what that can use is bounded by the
arrays it was given. Looking costs some microseconds, a few times a second, and only while the task computes.

Spark cancels a task by closing the connection to its worker, which only notices that when it reads or writes. One that
computes, and finds nothing to write, would go on for ever. So the connection is looked at, too, and the process ends:
there is nobody left to tell.
"""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from runtime.errors import ExecutionError
from runtime.task import Limits

EVERY = 0.2  # seconds between two looks
HANGS_UP = getattr(select, "POLLRDHUP", 0) | select.POLLHUP | select.POLLERR
MEMORY_SETTING, MATCHES_SETTING = "cersql.memoryLimit", "cersql.maxMatches"
_CGROUP = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")

T = TypeVar("T")


def watched(limits: Limits, made: Iterator[T], connection: int | None = None) -> Iterator[T]:
    """The items of an iterator, each made under the eyes of the timer.

    ExecutionError MEMORY_LIMIT where the process holds more than it may, OUT_OF_MEMORY where it gets no more. Where
    `connection` (a file descriptor) is closed at the other end, the process ends.
    """
    most = half_of_machine() if limits.memory_bytes is None else limits.memory_bytes
    try:
        while True:
            with _looking(lambda: _look(most, limits, connection)):
                try:
                    item = next(made)
                except StopIteration:
                    return
            yield item
    except MemoryError:
        raise ExecutionError("OUT_OF_MEMORY", found=_shown(held_bytes()), query=limits.query, hint=WAYS_OUT) from None
    finally:
        close = getattr(made, "close", None)
        if close is not None:
            close()


WAYS_OUT = (
    "Bound the pattern by WITHIN, choose among its matches by a strategy, or drop what overlaps by CONSUME BY or "
    f"AFTER MATCH SKIP; or give the worker more: SET {MEMORY_SETTING} = 16g."
)


def _look(most: int, limits: Limits, connection: int | None) -> None:
    if connection is not None and is_closed(connection):
        os._exit(1)
    if most and held_bytes() > most:
        pa.default_memory_pool().release_unused()
        held = held_bytes()
        if held > most:
            raise ExecutionError(
                "MEMORY_LIMIT", found=_shown(held), limit=_shown(most), query=limits.query, hint=WAYS_OUT
            )


@contextmanager
def _looking(look: Any) -> Iterator[None]:
    """Look now and then, by a timer of this process; where that cannot be, now."""
    look()
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return
    before = signal.signal(signal.SIGALRM, lambda *_: look())
    signal.siginterrupt(signal.SIGALRM, False)  # what reads and writes meanwhile goes on
    timer = signal.setitimer(signal.ITIMER_REAL, EVERY, EVERY)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, *timer)
        signal.signal(signal.SIGALRM, before if before is not None else signal.SIG_DFL)


# ---------------------------------------------------------------- the machine


def is_closed(connection: int) -> bool:
    """Has the other end of a connection closed it?"""
    poll = select.poll()
    poll.register(connection, HANGS_UP)
    return any(event & HANGS_UP for _, event in poll.poll(0))


def held_bytes() -> int:
    """The memory that this process holds; 0 where the system does not say."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def half_of_machine() -> int:
    """Half of the memory of the machine or its container, in bytes; 0 where the system does not say."""
    known = []
    with suppress(ValueError, OSError):
        known.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for name in _CGROUP:
        try:
            written = Path(name).read_text().strip()
        except OSError:
            continue
        if written.isdigit():
            known.append(int(written))
    return min(known, default=0) // 2


def _shown(n_bytes: int) -> str:
    """`1.5 GB`, in Spark's units of 1024."""
    size, unit = float(n_bytes), 0
    while size >= 1024 and unit < 4:
        size, unit = size / 1024, unit + 1
    return f"{size:.1f} {('bytes', 'KB', 'MB', 'GB', 'TB')[unit]}" if unit else f"{n_bytes} bytes"


# ---------------------------------------------------------------- matches


class Listed:
    """How many matches a task has listed. ExecutionError MATCH_LIMIT once they are more than it may."""

    def __init__(self, limit: int) -> None:
        self._limit, self._n = limit, 0

    def add(self, n: int) -> None:
        self._n += n
        if self._n > self._limit:
            raise too_many(self._n, self._limit)


def too_many(found: int, limit: int) -> ExecutionError:
    """What is said where a task lists more matches than it may."""
    return ExecutionError(
        "MATCH_LIMIT", found=found, limit=limit,
        hint="Say which of them you want: by a strategy (SEMANTICS NXT, LAST or MAX, SKIP TILL NEXT MATCH), by "
        "CONSUME BY PARTITION, or by AFTER MATCH SKIP PAST LAST ROW. SELECT count(*) counts them without "
        f"listing any, LIMIT lists some, and SET {MATCHES_SETTING} allows more.",
    )  # fmt: skip
