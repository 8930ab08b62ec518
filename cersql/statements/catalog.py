"""A file of definitions that is run wherever they are needed, as `--init` and `cersql.patterns(spark).load` run it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

_run: list[object] = []  # those under way, in any thread: a parser of Spark's asks in another one


@contextmanager
def catalog() -> Iterator[None]:
    """While the statements of such a file are carried out."""
    mark = object()
    _run.append(mark)
    try:
        yield
    finally:
        _run.remove(mark)


def in_catalog() -> bool:
    """Is the statement one of such a file? Then nobody needs to be told to put it there."""
    return bool(_run)
