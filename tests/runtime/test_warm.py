"""Compiled kernels are kept: several processes may compile at once, and later ones do not compile at all."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from runtime import compiling

SCRIPT = """
import numpy as np
from runtime.compact_set import tecs as ecs
ecs.slide_kernel(ecs.new_arena(16, np.dtype(np.int64)), np.zeros(16, np.int32))
stats = ecs.slide_kernel.stats
print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
"""


def start(cache: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "NUMBA_DISABLE_JIT": "0"}
    return subprocess.Popen([sys.executable, "-c", SCRIPT], env=environment, stdout=subprocess.PIPE, text=True)


@pytest.mark.slow
def test_compiling_at_once_and_never_again(tmp_path: Path) -> None:
    both = [start(tmp_path), start(tmp_path)]
    printed = [process.communicate()[0].split() for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert all(sum(map(int, numbers)) == 1 for numbers in printed)  # compiled, or found what the other compiled
    later = start(tmp_path)
    assert later.communicate()[0].split() == ["1", "0"]


def test_who_shows_progress_can_ask_whether_it_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not compiling.is_long()
    with compiling.noted():
        assert not compiling.is_long()  # it may be loading what was compiled before
        monkeypatch.setattr(compiling, "LONG", -1.0)
        assert compiling.is_long()
    assert not compiling.is_long()
