"""By which numbers buckets are called: each of Spark's tasks gets equally many."""

from __future__ import annotations

import numpy as np
import pytest

from runtime.stream.spread import called, spark_hash


@pytest.mark.parametrize("n", [1, 2, 3, 4, 8, 12, 100])
def test_each_task_gets_equally_many(n: int) -> None:
    numbers = called(n)
    assert len(set(numbers.tolist())) == n
    for tasks in (tasks for tasks in range(1, n + 1) if n % tasks == 0):
        assert (np.bincount(spark_hash(numbers) % tasks, minlength=tasks) == n // tasks).all()


def test_the_numbers_are_those_of_checkpoints() -> None:
    """They are keys of states that lie in checkpoints: another choice would not find them."""
    assert called(1).tolist() == [0]
    assert called(2).tolist() == [2, 0]
    assert called(8).tolist() == [12, 6, 5, 1, 25, 15, 2, 0]
