"""Is this process compiling kernels? For who shows progress; it imports no compiler."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

LONG = 2.0  # seconds; kernels that were compiled before are loaded sooner
_since: float | None = None


@contextmanager
def noted() -> Iterator[None]:
    """Around what compiles."""
    global _since
    _since = time.monotonic()
    try:
        yield
    finally:
        _since = None


def is_long() -> bool:
    """Has it been at it for longer than to load them?"""
    begun = _since
    return begun is not None and time.monotonic() - begun > LONG
