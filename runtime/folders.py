"""Folders for what outlives a process: compiled kernels, and this package where it came in an archive.

Both are code that is run, so no other user may be able to write there.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import logging
import os
import shutil
import stat
import tempfile
import zipfile
import zipimport
from pathlib import Path

logger = logging.getLogger(__name__)


@functools.cache
def own_folder() -> str | None:
    """A folder among the temporary ones that this user alone can write; None where there can be none."""
    try:
        folder = os.path.join(tempfile.gettempdir(), f"cersql-kernels-{user()}")
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder, 0o700)
        found = os.lstat(folder)
        mine = user() in (str(found.st_uid), "") and not stat.S_IMODE(found.st_mode) & 0o022
        if stat.S_ISDIR(found.st_mode) and mine:
            return folder
    except OSError:
        pass
    logger.info("no folder can hold compiled kernels: each process compiles its own; set NUMBA_CACHE_DIR to one")
    return None


def user() -> str:
    """The user's number; nothing where the system has none."""
    return str(os.getuid()) if hasattr(os, "getuid") else ""


def unpacked(package: str, loader: object) -> str | None:
    """The folder of `package` on disk, if `loader` reads it from an archive; None if it lies on disk, or cannot.

    Numba keeps compiled code beside a source file, and a module of an archive has none: each worker of a cluster to
    which a wheel was sent would compile for itself, 15 s and more. The copy is named by the content of the archive, so
    the next application, which gets the archive under another path, finds what this one compiled.
    """
    if not isinstance(loader, zipimport.zipimporter):
        return None
    folder = own_folder()
    if folder is None:
        return None
    try:
        content = hashlib.sha256(Path(loader.archive).read_bytes()).hexdigest()[:16]
        made = Path(folder, f"{package}-{content}")
        if not made.is_dir():
            _unpack(Path(loader.archive), package, made)
        return str(made / package)
    except OSError as error:
        logger.info("%s stays in its archive (%s): each process compiles its own kernels", package, error)
        return None


def _unpack(archive: Path, package: str, made: Path) -> None:
    """All or nothing: another process may do the same at the same time."""

    begun = Path(tempfile.mkdtemp(dir=made.parent))
    try:
        with zipfile.ZipFile(archive) as zipped:
            zipped.extractall(begun, [name for name in zipped.namelist() if name.startswith(f"{package}/")])
        with contextlib.suppress(OSError):  # the other one was first
            begun.rename(made)
    finally:
        shutil.rmtree(begun, ignore_errors=True)
