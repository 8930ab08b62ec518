"""Where compiled kernels are kept: a read-only installation, without a home that can be written, works."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from runtime import jit

RUNTIME = Path(jit.__file__).parent
SCRIPT = """
import numpy as np
import runtime.steppers.table, runtime.selection.timeouts, runtime.compact_set.picking
from runtime.compact_set.tecs import Bounds, inside
from runtime.folders import own_folder

assert runtime.__file__.startswith({installed!r})
assert inside(np.int64(1), np.int64(5), Bounds(np.int64(4), False))
assert not inside(np.int64(1), np.int64(5), Bounds(np.int64(4), True))
print(own_folder())
"""


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A copy of the runtime beside which nothing can be kept, also by root: its __pycache__ is a file."""
    folder = tmp_path / "installed"
    shutil.copytree(RUNTIME, folder / "runtime", ignore=shutil.ignore_patterns("__pycache__"))
    for package in [folder / "runtime", *(folder / "runtime").glob("*/")]:
        (package / "__pycache__").write_text("")
    return folder


def run(installed: Path, temporary: Path) -> str:
    """What the script prints: where kernels are kept."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA", "XDG", "PYTHON"))}
    environment |= {"HOME": "/dev/null", "TMPDIR": str(temporary), "PYTHONDONTWRITEBYTECODE": "1"}
    script = SCRIPT.format(installed=str(installed))
    made = subprocess.run(
        [sys.executable, "-c", script], cwd=installed, env=environment, capture_output=True, text=True, timeout=300
    )
    assert made.returncode == 0, made.stderr
    return made.stdout.strip()


def test_without_any_folder_kernels_lie_among_temporary_files_that_only_the_user_writes(
    installed: Path, tmp_path: Path
) -> None:
    (tmp_path / "tmp").mkdir()
    kept = Path(run(installed, tmp_path / "tmp"))
    assert kept.parent == tmp_path / "tmp"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o700
    assert list(kept.rglob("*inside*.nbc"))
    assert run(installed, tmp_path / "tmp") == str(kept)  # and are found there


@pytest.mark.parametrize("what", ["open to all", "a link", "a file"])
def test_a_folder_that_others_could_have_filled_is_not_read(installed: Path, tmp_path: Path, what: str) -> None:
    temporary, elsewhere = tmp_path / "tmp", tmp_path / "elsewhere"
    temporary.mkdir()
    elsewhere.mkdir(0o700)
    folder = temporary / f"cersql-kernels-{os.getuid()}"
    match what:
        case "open to all":
            folder.mkdir()
            folder.chmod(0o777)
        case "a link":
            folder.symlink_to(elsewhere)
        case "a file":
            folder.write_text("")
    assert run(installed, temporary) == "None"
    assert not list(elsewhere.iterdir())


def test_what_numba_is_told_stays_as_it_was() -> None:
    """The folder is only ours: other code of the process keeps its own where it did."""
    from numba import config

    before = config.CACHE_DIR
    assert jit.kernel(lambda: 1)() == 1
    assert before == config.CACHE_DIR


def test_what_another_release_has_kept_is_compiled_anew(tmp_path: Path) -> None:
    """Its index names a class of a module that is gone."""
    (tmp_path / "gone.py").write_text("from typing import NamedTuple\n\nclass Bundle(NamedTuple):\n    x: int\n")
    (tmp_path / "kernels.py").write_text(
        "from runtime.jit import kernel\n\n@kernel\ndef twice(of):\n    return 2 * of[0]\n"
    )
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{RUNTIME.parent}"}
    environment.pop("NUMBA_CACHE_DIR", None)

    def ran(script: str) -> str:
        command = [sys.executable, "-c", f"from kernels import twice; {script}"]
        made = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100)
        assert made.returncode == 0, made.stderr
        return made.stdout.strip()

    assert ran("from gone import Bundle; print(twice(Bundle(3)))") == "6"
    (tmp_path / "gone.py").unlink()
    assert ran("print(twice((3,)))") == "6"
    assert ran("print(twice((4,)), sum(twice.stats.cache_hits.values()))") == "8 1"  # and kept again


def test_kernels_are_compiled_anew_when_what_they_inline_has_changed(tmp_path: Path) -> None:
    """A constant of another file is part of the compiled code, and numba looks at the kernel's own file alone."""
    shutil.copytree(RUNTIME, tmp_path / "runtime", ignore=shutil.ignore_patterns("__pycache__"))
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    environment.pop("NUMBA_CACHE_DIR", None)

    def hits() -> str:
        script = (
            "import numpy as np; from runtime.compact_set.tecs import Bounds, inside; "
            "inside(np.int64(1), np.int64(5), Bounds(np.int64(4), False)); print(sum(inside.stats.cache_hits.values()))"
        )
        command = [sys.executable, "-P", "-c", script]
        made = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=100)
        assert made.returncode == 0, made.stderr
        return made.stdout.strip()

    assert [hits(), hits()] == ["0", "1"]
    with (tmp_path / "runtime" / "marks.py").open("a") as file:
        file.write("CHANGED = 1\n")
    assert [hits(), hits()] == ["0", "1"]


def test_all_kernels_lie_where_their_sources_are_looked_at() -> None:
    found = {
        file.relative_to(RUNTIME).parts[0]
        for file in RUNTIME.rglob("*.py")
        if any(line.startswith(("@kernel", "@inlined", "@called")) for line in file.read_text().splitlines())
    }
    assert found == set(jit._WITH_KERNELS)
