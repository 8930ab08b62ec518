"""Is this process compiling kernels, and who is told?

The first query on a machine is silent for 20 to 60 seconds. A script hears of it as of matplotlib's font cache: one
line, once it takes longer than to load what was compiled before, as a WARNING of the logger `cersql`. Python shows that
on stderr without any set-up, and who sets logging up finds it there and can turn it off. INFO would reach nobody, a
Python warning becomes an error under `-W error`, and progress on stderr is not a library's to draw. What has a line of
its own, as the command line, takes the telling over (`told`).

This module imports no compiler.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

LONG = 2.0  # seconds; kernels that were compiled before are loaded sooner
SILENCE = 5.0  # seconds until someone is told
COMPILES = "compiling the engine's kernels, once on this machine: up to a minute; `cersql warm` does it beforehand"

logger = logging.getLogger("cersql")
_since: float | None = None
_tell: Callable[[str], object] = logger.warning


@contextmanager
def noted() -> Iterator[None]:
    """Around what compiles."""
    global _since
    _since = time.monotonic()
    timer = threading.Timer(SILENCE, lambda: _tell(COMPILES))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        _since = None


@contextmanager
def told(by: Callable[[str], object]) -> Iterator[None]:
    """Meanwhile `by` says it, in place of the log."""
    global _tell
    before, _tell = _tell, by
    try:
        yield
    finally:
        _tell = before


def nobody(line: str) -> None:
    """For who says it in another way."""


def is_long() -> bool:
    """Has it been at it for longer than to load them?"""
    begun = _since
    return begun is not None and time.monotonic() - begun > LONG
