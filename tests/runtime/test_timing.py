"""The time of the engine, by a clock that the test moves."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from runtime.stream.timing import Stopwatch


def test_only_what_is_made_while_it_runs_counts() -> None:
    now = [0]

    def passing(us: int) -> None:
        now[0] += 1000 * us

    watch = Stopwatch(lambda: now[0])

    def of_spark() -> Iterator[str]:
        for item in "ab":
            passing(100)
            yield item

    def engine(items: Iterator[str]) -> Iterator[str]:
        for item in items:
            passing(7)
            with watch.paused():
                passing(50)
            yield item.upper()
        passing(1)

    with watch.paused():  # what is read before it runs
        passing(500)
    found = []
    for item in watch.running(engine(watch.waiting(of_spark()))):
        with watch.paused():  # whoever reads it
            passing(1000)
        found.append(item)
    assert found == ["A", "B"]
    assert watch.us == 7 + 7 + 1


def test_an_error_passes() -> None:
    def failing() -> Iterator[int]:
        yield 1
        raise KeyError("x")

    made = Stopwatch().running(failing())
    assert next(made) == 1
    with pytest.raises(KeyError):
        next(made)
