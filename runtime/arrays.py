"""The few things that all flat arrays need."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

AnyArray: TypeAlias = NDArray[Any]
IntArray: TypeAlias = NDArray[np.int64]


def grown(column: AnyArray, capacity: int) -> AnyArray:
    """A copy with room for `capacity` elements along the first axis; the new ones are zero."""
    copy = np.zeros((capacity, *column.shape[1:]), column.dtype)
    copy[: len(column)] = column
    return copy
