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
from runtime.compact_set import tecs as ecs
from runtime.steppers import cea

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
    """The names that are called, with the module's where it is written."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.func.id
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
        ):
            yield f"{node.func.value.id}.{node.func.attr}"


def _imported(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """(name, name with its module's) of what `from … import` brings."""
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from ((name.name, f"{node.module.rpartition('.')[2]}.{name.name}") for name in node.names)


def _decorated(tree: ast.Module, by: str) -> list[ast.FunctionDef]:
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    return [node for node in functions if by in map(ast.unparse, node.decorator_list)]


def test_python_calls_nothing_that_has_no_entry() -> None:
    """A call from Python of what is `inlined` would crash the process."""
    files = [*(TESTS.parent / "runtime").rglob("*.py"), *TESTS.rglob("*.py")]
    trees = {file: ast.parse(file.read_text()) for file in files}
    inlined = {
        f"{file.stem}.{node.name}"
        for file, tree in trees.items()
        for how in ("inlined", "called")
        for node in _decorated(tree, how)
    }
    assert {"cea.add_node", "register_ops.apply"} <= inlined
    wrong = []
    for file, tree in trees.items():
        own = {node.name for how in ("inlined", "called") for node in _decorated(tree, how)}
        own |= {name for name, whole in _imported(tree) if whole in inlined}
        compiled = [node for how in ("inlined", "called", "kernel") for node in _decorated(tree, how)]
        calls = (name for node in tree.body if node not in compiled for name in _called(node))
        wrong += [(file.name, name) for name in calls if name in own | inlined]
    assert not wrong
