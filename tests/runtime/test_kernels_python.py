"""The kernels without numba: what they do must not depend on compiling them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]

SCRIPT = """
import random
import harness, oracle, strategies
from numba import config
from planner import cel
from runtime import cea, ecs

assert config.DISABLE_JIT
assert not hasattr(cea.step_kernel, "py_func") and not hasattr(ecs.enumerate_kernel, "py_func")

A, B, C = (cel.Event(type, frozenset({type.lower()})) for type in "ABC")
formulas = [
    cel.Sequence(A, cel.Sequence(cel.Iteration(B), C)),
    cel.Contiguous(A, cel.ContiguousIteration(cel.Or(B, C))),
    cel.As(cel.Iteration(cel.Or(cel.Sequence(A, B), C)), "x"),
    cel.Filter(cel.Sequence(A, B), "b", strategies.PREDICATES[0]),
]
windows = [None, oracle.Window("time", 4), oracle.Window("time", 4, True), oracle.Window("events", 5)]
chance = random.Random(1)
total = 0
for formula in formulas:
    for window in windows:
        rows = [strategies.Row(chance.choice(strategies.KINDS), chance.randint(0, 9), n // 2, n % 2) for n in range(11)]
        for keyed in (False, True):
            total += harness.check(formula, [row.event() for row in rows], window, keyed, seed=chance.randint(0, 99))
assert total > 100, total
"""


@pytest.mark.slow
def test_kernels_as_plain_python() -> None:
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": f"{TESTS}{os.pathsep}{TESTS.parent}"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, cwd=TESTS.parent, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]
