"""`cersql --version`: what a report of a mistake needs to say."""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from runtime.program import package_version

PACKAGES = ("pyspark", "pyarrow", "numpy", "numba", "pandas", "sqlglot", "lark")


class Version(argparse.Action):
    """Prints the versions and ends; the first line is `cersql 0.1.0`, for scripts."""

    def __init__(self, option_strings: Sequence[str], dest: str, **others: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, help="print versions, as a report of a mistake needs them")

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        print("\n".join(lines()))
        parser.exit()


def lines() -> list[str]:
    return [
        f"cersql {package_version()}",
        f"Python {platform.python_version()}, {platform.platform()}",
        _java(),
        ", ".join(f"{name} {_version(name)}" for name in PACKAGES),
    ]


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "missing"


def _java() -> str:
    """What Spark will be started with: `java -version` speaks on stderr."""
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else "java"
    try:
        told = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return f"Java: {java} does not run"
    first = (told.stderr or told.stdout).strip().splitlines()[:1]
    return f"Java: {first[0] if first else f'{java} says nothing'}"
