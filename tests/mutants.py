"""Do the tests see it if one comparison, one + or one - of a kernel or of the planner is another? (`make mutants`)

    python tests/mutants.py [--seed 1] [--number 20] [--only runtime/steppers/cea.py:120]

Each mutant is a copy of the tree with one change, chosen at random by the seed. The tests that need no JVM run on it,
the quick ones that reach most kernels first, without the compiler and with arrays that begin with room for a few; the
first that fails, or takes five times as long as it should, has killed it. Who survives is listed with its line: a test
is missing, or the change changes nothing, and tests/README.md says why.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
FILES = (
    "runtime/steppers/*.py",
    "runtime/compact_set/*.py",
    "planner/*.py",
    "planner/automata/*.py",
    "planner/rewrite/*.py",
)
COPIED = ("cersql", "planner", "runtime", "spark_ext", "tests", "docs", "pyproject.toml", "README.md", "CHANGELOG.md")
OTHERS: dict[type[ast.cmpop] | type[ast.operator], type[ast.cmpop] | type[ast.operator]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Add: ast.Sub, ast.Sub: ast.Add,
}  # fmt: skip
PYTEST = ("-P", "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-W", "ignore::RuntimeWarning")
QUICK = "not jvm and not exhaustive and not slow"
STEPS: tuple[tuple[dict[str, str], tuple[str, ...]], ...] = (
    ({"CERSQL_QUICK": "1"}, ("-W", "ignore", "tests/families.py")),
    ({}, ("-W", "ignore", "tests/families.py")),
    ({"CERSQL_SMALL": "1"}, (
        *PYTEST, "-m", QUICK, "tests/runtime/test_happened.py", "tests/runtime/test_pcea.py", "tests/test_skipping.py",
        "tests/test_next_match.py", "tests/test_choices.py",
    )),
    ({}, (*PYTEST, "-m", QUICK, "tests/test_corpus.py", "tests/planner")),
)  # fmt: skip
OF_THE_PLANNER = (0, 3, 1, 2)  # the order of the steps for its files; else as they stand


class Site(NamedTuple):
    """The n-th operator of a file."""

    path: Path
    number: int
    line: int


class Mutant(NamedTuple):
    """A site, what stood there, and what stands there now."""

    site: Site
    before: str
    after: str
    text: str


def operators(tree: ast.Module) -> Iterator[tuple[ast.AST, ast.AST, str, int]]:
    """(node, what holds its operator, the name of that field, the index in it or -1), inside functions."""
    for function in tree.body:
        for node in ast.walk(function) if isinstance(function, ast.FunctionDef | ast.ClassDef) else ():
            if isinstance(node, ast.Compare):
                yield from ((node, node, "ops", k) for k, op in enumerate(node.ops) if type(op) in OTHERS)
            elif isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in OTHERS:
                yield node, node, "op", -1


def sites() -> list[Site]:
    """All operators that can be changed."""
    found = []
    for pattern in FILES:
        for path in sorted(ROOT.glob(pattern)):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            own = path.relative_to(ROOT)
            found += [Site(own, n, node.lineno) for n, (node, *_) in enumerate(operators(tree))]  # type: ignore[attr-defined]
    return found


def mutant(site: Site) -> Mutant:
    """The file with this operator changed."""
    tree = ast.parse((ROOT / site.path).read_text(encoding="utf-8"))
    node, holder, field, at = list(operators(tree))[site.number]
    before = ast.unparse(node)
    if at < 0:
        setattr(holder, field, OTHERS[type(getattr(holder, field))]())
    else:
        getattr(holder, field)[at] = OTHERS[type(getattr(holder, field)[at])]()
    return Mutant(site, before, ast.unparse(node), ast.unparse(tree))


def copied(folder: Path) -> None:
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif source.exists():
            shutil.copy(source, folder / name)


def run(folder: Path, step: int, seconds: float | None) -> bool:
    """Do the tests of a step pass, and in time?"""
    own, arguments = STEPS[step]
    environment = {
        **os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONDONTWRITEBYTECODE": "1", "CI": "1",
        "PYTHONPATH": f"{folder}{os.pathsep}{folder / 'tests'}", **own,
    }  # fmt: skip
    try:
        done = subprocess.run(
            [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def killed_by(made: Mutant, limits: list[float]) -> int | None:
    """The step that fails, or None."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copied(folder)
        (folder / made.site.path).write_text(made.text, encoding="utf-8")
        order = OF_THE_PLANNER if made.site.path.parts[0] == "planner" else range(len(STEPS))
        return next((k for k in order if not run(folder, k, limits[k])), None)


def times() -> list[float]:
    """How long each step takes where nothing is changed."""
    found = []
    with tempfile.TemporaryDirectory() as name:
        copied(Path(name))
        for k in range(len(STEPS)):
            begun = time.monotonic()
            assert run(Path(name), k, None), f"the tests of step {k} fail where nothing is changed"
            found.append(time.monotonic() - begun)
            print(f"step {k}: {found[-1]:.0f} s", flush=True)
    return found


def chosen(seed: int, number: int, only: str) -> list[Site]:
    every = sites()
    if only:
        path, _, line = only.partition(":")
        return [site for site in every if str(site.path) == path and line in ("", str(site.line))]
    return random.Random(seed).sample(every, number)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--number", type=int, default=20)
    parser.add_argument("--only", default="", help="a file, or a file:line, of which all operators are changed in turn")
    given = parser.parse_args()
    limits = [5 * taken + 30 for taken in times()]
    lived = 0
    picked = chosen(given.seed, given.number, given.only)
    for site in picked:
        made = mutant(site)
        step = killed_by(made, limits)
        lived += step is None
        verdict = "SURVIVED" if step is None else f"killed by {step}"
        print(f"{verdict:12} {site.path}:{site.line}: {made.before}  ->  {made.after}", flush=True)
    print(f"{len(picked) - lived} of {len(picked)} killed")


if __name__ == "__main__":
    main()
