"""Files that are written whole or, if that fails, not at all."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path


def check_place(path: Path) -> None:
    """Raises OSError where a file cannot be written, before its text is made."""
    folder = path.absolute().parent
    if path.is_dir():
        number = errno.EISDIR
    elif not folder.is_dir():
        number = errno.ENOENT
    elif not os.access(folder, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
        number = errno.EACCES
    else:
        return
    raise OSError(number, os.strerror(number), str(path))


def write_whole(path: Path, text: str) -> None:
    """Write a text file: all of it or, if that fails, nothing, so that what was there before stays."""
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", dir=path.parent, prefix=f".{path.name}-", delete=False
    ) as file:
        beside = Path(file.name)
        try:
            file.write(text)
            file.close()
            beside.chmod(path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask())
            beside.replace(path)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise


def _umask() -> int:
    mask = os.umask(0o022)  # the only way to read it
    os.umask(mask)
    return mask
