"""The kernels without numba: what they do must not depend on compiling them."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
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


def _called(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            yield node.func.id if isinstance(node.func, ast.Name) else f"{ast.unparse(node.func)}"


def test_python_calls_nothing_that_has_no_entry() -> None:
    """A call from Python of what is `inlined` would crash the process."""
    files = [*(TESTS.parent / "runtime").glob("*.py"), *TESTS.rglob("*.py")]
    functions = [(file, node) for file in files for node in ast.parse(file.read_text()).body]
    compiled = {node for _, node in functions if isinstance(node, ast.FunctionDef)
                and {ast.unparse(d) for d in node.decorator_list} & {"kernel", "inlined"}}  # fmt: skip
    inlined = {
        f"{file.stem}.{node.name}" for file, node in functions if isinstance(node, ast.FunctionDef)
        and "inlined" in map(ast.unparse, node.decorator_list)
    }  # fmt: skip
    assert {"cea.add_node", "registers.apply"} <= inlined
    wrong = []
    for file, node in functions:
        if node in compiled:
            continue
        imported = {
            f"{part.module.rpartition('.')[2]}.{name.name}": name.name
            for part in ast.walk(ast.parse(file.read_text())) if isinstance(part, ast.ImportFrom) and part.module
            for name in part.names
        }  # fmt: skip
        own = {name.partition(".")[2] for name in inlined if name in imported or name.startswith(f"{file.stem}.")}
        wrong += [(file.name, name) for name in _called(node) if name in inlined or name in own]
    assert not wrong
