"""The kernels in every way in which they can be run: with the compiler, without it, with a look at where arrays end."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from families import FAMILIES, check

TESTS = Path(__file__).parents[1]


def families(*names: str, **environment: str) -> None:
    """Run tests/families.py in a process of its own: how kernels are compiled is settled where they are imported."""
    path = f"{TESTS}{os.pathsep}{TESTS.parent}"
    done = subprocess.run(
        [sys.executable, str(TESTS / "families.py"), *names],
        env={**os.environ, "PYTHONPATH": path, "PYTHONWARNINGS": "ignore:overflow:RuntimeWarning", **environment},
        cwd=TESTS.parent, capture_output=True, text=True, timeout=3000,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.breadth(3)
@pytest.mark.parametrize("family", FAMILIES)
def test_every_array_grows(family: str) -> None:
    """With the compiler, as they are run."""
    for text in FAMILIES[family]:
        assert check(family, text) > 0, text


@pytest.mark.slow
def test_kernels_as_plain_python() -> None:
    """What they do must not depend on compiling them; and Python says where an index is beyond an array."""
    families(NUMBA_DISABLE_JIT="1", CERSQL_QUICK="1")


@pytest.mark.exhaustive
@pytest.mark.parametrize("how", ["NUMBA_DISABLE_JIT", "NUMBA_BOUNDSCHECK"])
def test_kernels_look_at_nothing_beyond_their_arrays(how: str, tmp_path: Path) -> None:
    """What was compiled with these checks is kept apart."""
    families(**{how: "1", "NUMBA_CACHE_DIR": str(tmp_path)})


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
