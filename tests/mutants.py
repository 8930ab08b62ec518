"""Do the tests see it if one comparison, one + or one - of a kernel or of the planner is another? (`make mutants`)

    python tests/mutants.py [--seed 1] [--number 20] [--only runtime/steppers/cea.py:120]

Mutants live in one copy of the tree, one after the other. Each has one change, chosen at random by the seed. The tests
that need no JVM run on it, first those that are quick and reach most, in the end all. The first that fail have killed
it, or the first that take three times as long as they should. Who survives is listed with its line: a test is missing,
or the change changes nothing, and tests/README.md says why.

What is a kernel's runs without the compiler, with arrays that begin with room for a few; only the last step compiles
it. Where the planner is changed no kernel is, so that compiled ones are kept from mutant to mutant.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from functools import partial
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
OTHERS: dict[type[ast.cmpop] | type[ast.operator], type[ast.cmpop] | type[ast.operator]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Add: ast.Sub, ast.Sub: ast.Add,
}  # fmt: skip
MOST_BYTES = 8 << 30
QUICK = "not jvm and not exhaustive and not slow"
PYTEST = ("-P", "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-W", "ignore::RuntimeWarning", "-m", QUICK)


class How(Enum):
    """How kernels are run."""

    PYTHON = "without the compiler, with arrays that begin with room for a few"
    KEPT = "compiled, or as they were compiled for another mutant"
    ANEW = "compiled"


class Step(NamedTuple):
    """Tests of one process: what Python is given, where `beside` with the tests beside the source; `few` streams."""

    name: str
    how: How
    arguments: tuple[str, ...]
    beside: bool = False
    few: bool = False


FAMILIES = ("-W", "ignore", "tests/families.py")
FEW_STREAMS = Step("families, few streams", How.PYTHON, FAMILIES, few=True)
OF_KERNELS = (
    FEW_STREAMS,
    Step("families", How.PYTHON, FAMILIES),
    Step("the tests beside it", How.PYTHON, PYTEST, beside=True),
    Step("kernels", How.PYTHON, (
        *PYTEST, "tests/runtime/test_happened.py", "tests/runtime/test_pcea.py", "tests/test_deferred.py",
        "tests/test_ranged.py", "tests/test_skipping.py", "tests/test_next_match.py", "tests/test_choices.py",
    )),
    Step("all without a JVM", How.ANEW, PYTEST),
)  # fmt: skip
OF_THE_PLANNER = (
    FEW_STREAMS,
    Step("the planner", How.KEPT, (*PYTEST, "tests/planner", "tests/cersql/test_explain.py")),
    Step("the tests beside it", How.KEPT, PYTEST, beside=True),
    Step("all without a JVM", How.KEPT, PYTEST),
)


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
    """(node, what holds its operator, the name of that field, the index in it or -1), inside functions. Not those
    beside a capacity, which change when an array grows or a cache is emptied, and no answer."""
    for function in tree.body:
        for node in ast.walk(function) if isinstance(function, ast.FunctionDef | ast.ClassDef) else ():
            if "capacities." in ast.unparse(node) and isinstance(node, ast.Compare | ast.BinOp):
                continue
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
    """All that git knows. Files keep their times, by which the compiler knows what it has kept."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in filter(None, listed.stdout.split("\0")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name)


@contextmanager
def changed(file: Path, text: str) -> Iterator[None]:
    """The file has another text for a while; what the compiler kept of the one that it had is good again afterwards."""
    before, known = file.read_bytes(), file.stat()
    file.write_text(text, encoding="utf-8")
    try:
        yield
    finally:
        file.write_bytes(before)
        os.utime(file, ns=(known.st_atime_ns, known.st_mtime_ns))


class Tests:
    """Runs steps in a folder. How long a step takes where nothing is changed is found out when it is first needed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.seconds: dict[tuple[Step, tuple[str, ...]], float] = {}

    def arguments(self, step: Step, path: Path) -> tuple[str, ...]:
        """What Python is given; nothing where no tests are beside the source, which need no JVM."""
        if not step.beside:
            return step.arguments
        found = (test.relative_to(self.folder) for test in self.folder.glob(f"tests/**/test_{path.stem}.py"))
        tests = sorted(str(test) for test in found if "spark_ext" not in test.parts)
        return (*step.arguments, *tests) if tests else ()

    def run(self, step: Step, arguments: tuple[str, ...], seconds: int = resource.RLIM_INFINITY) -> str:
        """Empty if the tests pass; else what became of them."""
        with tempfile.TemporaryDirectory() as kept:
            hows = {
                How.PYTHON: {"NUMBA_DISABLE_JIT": "1", "CERSQL_SMALL": "1"},
                How.KEPT: {},
                How.ANEW: {"NUMBA_CACHE_DIR": kept},
            }
            environment = {
                **os.environ, "PYTHONDONTWRITEBYTECODE": "1", "CI": "1", **hows[step.how],
                **({"CERSQL_QUICK": "1"} if step.few else {}),
                "PYTHONPATH": f"{self.folder}{os.pathsep}{self.folder / 'tests'}",
            }  # fmt: skip
            done = subprocess.run(
                [sys.executable, *arguments], cwd=self.folder, env=environment, capture_output=True, check=False,
                preexec_fn=partial(_at_most, seconds),
            )  # fmt: skip
        if done.returncode == -signal.SIGXCPU:
            return f"not done after {seconds} s"
        return "" if done.returncode == 0 else _last_line(done.stdout + done.stderr)

    def limit(self, step: Step, arguments: tuple[str, ...]) -> int:
        """After so many seconds a mutant has made the tests endless."""
        if (step, arguments) not in self.seconds:
            begun = _used()
            failed = self.run(step, arguments)
            assert not failed, f"{step.name}: fails where nothing is changed: {failed}"
            self.seconds[step, arguments] = _used() - begun
        return int(3 * self.seconds[step, arguments] + 20)

    def killed_by(self, made: Mutant, most: int | None) -> str | None:
        """Which of the first `most` steps fails and how, or None. The file is as it was afterwards."""
        path = made.site.path
        for step in (OF_THE_PLANNER if path.parts[0] == "planner" else OF_KERNELS)[:most]:
            arguments = self.arguments(step, path)
            if not arguments:
                continue
            limit = self.limit(step, arguments)
            with changed(self.folder / path, made.text):
                failed = self.run(step, arguments, limit)
            if failed:
                return f"{step.name}: {failed}"
        return None


def _at_most(seconds: int) -> None:
    """Of the processor: how busy the machine is with other things does not count. Nor may a mutant take all memory."""
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))


def _used() -> float:
    """Seconds of the processor that all processes have taken which are done."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _last_line(output: bytes) -> str:
    """What failed, as pytest or Python says it."""
    lines = output.decode(errors="replace").splitlines()
    told = [line for line in lines if line.startswith("FAILED ") or re.match(r"\w*Error\b", line)]
    return (told or lines or [""])[-1][:100]


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
    parser.add_argument("--steps", type=int, help="only so many of the steps: quick, and more survive")
    given = parser.parse_args()
    picked = chosen(given.seed, given.number, given.only)
    mutants = [mutant(site) for site in picked]  # of the sources as they are now
    lived = 0
    with tempfile.TemporaryDirectory() as name:
        copied(Path(name))
        tests = Tests(Path(name))
        for made in mutants:
            begun = _used()
            killer = tests.killed_by(made, given.steps)
            lived += killer is None
            verdict = f"{'SURVIVED' if killer is None else 'killed':8} {_used() - begun:4.0f} s"
            print(f"{verdict}  {made.site.path}:{made.site.line}: {made.before}  ->  {made.after}", flush=True)
            if killer:
                print(f"                {killer}", flush=True)
    print(f"{len(picked) - lived} of {len(picked)} killed")


if __name__ == "__main__":
    main()
