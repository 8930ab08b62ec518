"""cersql: complex event recognition for Spark, in SQL.

    import cersql
    spark = cersql.session("app")
    spark.sql("FROM readings PATTERN … WHERE … WITHIN … RETURN *")

This list is the whole public API.
"""

from __future__ import annotations

from pathlib import Path

import planner
import runtime

for _package in (planner, runtime):
    # These are common names: make sure that the neighbours were found, not something that shadows them.
    if Path(_package.__file__ or "").resolve().parent.parent != Path(__file__).resolve().parent.parent:
        raise ImportError(
            f"cersql needs its own package {_package.__name__!r}, but {_package.__file__} shadows it; "
            "rename that file or folder, or change sys.path"
        )

from cersql.api import (  # noqa: E402
    compile,
    enable,
    explain,
    late,
    match,
    metrics,
    patterns,
    register_aggregate,
    serve,
    session,
    ship,
    sql,
)
from cersql.errors import BindError, ParseError  # noqa: E402
from cersql.statements.matches import Matches  # noqa: E402
from cersql.statements.planned import Compiled  # noqa: E402
from cersql.statements.replay import Replay, replay  # noqa: E402
from cersql.statements.verify import Verified, verify  # noqa: E402
from planner.errors import PlanError  # noqa: E402
from runtime.errors import CersqlError, ExecutionError, InternalError  # noqa: E402
from runtime.program import package_version as _package_version  # noqa: E402

__version__ = _package_version()


def load_ipython_extension(shell: object) -> None:
    """`%load_ext cersql`: the cell magic %%pattern."""
    from cersql.cli import notebook

    notebook.load(shell)


__all__ = [
    "BindError",
    "CersqlError",
    "Compiled",
    "ExecutionError",
    "InternalError",
    "Matches",
    "ParseError",
    "PlanError",
    "Replay",
    "Verified",
    "compile",
    "enable",
    "explain",
    "late",
    "match",
    "metrics",
    "patterns",
    "register_aggregate",
    "replay",
    "serve",
    "session",
    "ship",
    "sql",
    "verify",
]
