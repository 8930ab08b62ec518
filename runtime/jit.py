"""How the large kernels are compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit

# Without numba's runtime there is no counting of references, which took up to nine tenths of the time of kernels that
# pass many arrays from helper to helper. Such a function cannot make an array; ours never do.
OPTIONS: dict[str, Any] = {"cache": True, "_nrt": False}


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """A compiled kernel: takes arrays, makes none."""
    compiled: Callable[..., Any] = njit(**OPTIONS)(function)
    return compiled
