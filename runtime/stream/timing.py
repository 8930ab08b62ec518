"""How long a micro-batch is in the engine, without the time in which it waits for Spark."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")


class Stopwatch:
    """Adds up the time in which the items of `running` are made, but for what is `paused` meanwhile.

        found = watch.running(bucket.run(watch.waiting(rows_of_spark), watermark))

    The time for which whoever reads `found` keeps an item does not count.
    """

    def __init__(self, clock: Callable[[], int] = time.perf_counter_ns) -> None:
        self._clock = clock
        self._ns = 0
        self._runs = False

    @property
    def us(self) -> int:
        """Microseconds so far."""
        return self._ns // 1000

    def running(self, items: Iterable[T]) -> Iterator[T]:
        """The items; the time in which each is made counts."""
        made, end = iter(items), object()
        while True:
            began, self._runs = self._clock(), True
            try:
                item = next(made, end)
            finally:
                self._ns += self._clock() - began
                self._runs = False
            if item is end:
                return
            yield item  # type: ignore[misc]

    def waiting(self, items: Iterable[T]) -> Iterator[T]:
        """The items, asked for while it runs; the time in which each is made does not count."""
        made, end = iter(items), object()
        while True:
            with self.paused():
                item = next(made, end)
            if item is end:
                return
            yield item  # type: ignore[misc]

    @contextmanager
    def paused(self) -> Iterator[None]:
        """What is done meanwhile does not count. While it does not run, nothing does."""
        began, runs = self._clock(), self._runs
        try:
            yield
        finally:
            if runs:
                self._ns -= self._clock() - began
