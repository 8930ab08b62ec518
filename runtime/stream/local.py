"""Copies of a state's blobs in a folder of the host: what they hold can be had without asking Spark's state store.

A blob is read through a socket, from a store that unpacks it: some 10⁵ rows a second. A copy is mapped into memory, so
that of a million held rows only those pages are read that a micro-batch looks at. Any worker of the host finds it, by a
name that is never used twice, and that the state itself tells: a copy whose name the state does not tell is of another
version, and is never looked at. So nothing depends on a copy: where it is missing, or is not what was written
(`checksum`, a CRC-32), the state is read.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import time
import uuid
import zlib
from collections.abc import Collection
from pathlib import Path

import pyarrow as pa

OLD_SECONDS = 6 * 3600  # the copies of a state that nobody has used for so long are removed
_checked: set[tuple[str, int, int]] = set()  # copies whose checksum this process has seen to be right


class Local:
    """The copies of one state. `folder`: of the host, for all states; None: there are no copies."""

    def __init__(self, folder: str | None, identity: str) -> None:
        self._folder = None if folder is None else Path(folder, "cersql", identity)

    @property
    def used(self) -> bool:
        """Are copies kept?"""
        return self._folder is not None

    def get(self, name: str, checksum: int, private: bool = False) -> pa.Buffer | None:
        """A copy, mapped into memory; None where it is not there, or damaged. `private`: what is written there stays in
        this process, and copies only the pages that it is written to."""
        if self._folder is None:
            return None
        path, access = self._folder / name, mmap.ACCESS_COPY if private else mmap.ACCESS_READ
        try:
            with path.open("rb") as file:
                status = os.fstat(file.fileno())
                buffer = pa.py_buffer(mmap.mmap(file.fileno(), 0, access=access))
        except (OSError, ValueError):  # ValueError: it is empty
            return None
        known = (str(path), status.st_mtime_ns, status.st_size)
        if known not in _checked:
            if zlib.crc32(buffer) != checksum:
                return None
            if len(_checked) > 1 << 16:
                _checked.clear()
            _checked.add(known)
        return buffer

    def put(self, name: str, content: pa.Buffer | bytes) -> bool:
        """Keep a copy, in one step: nobody sees half of it. False where the disk does not take it."""
        if self._folder is None:
            return False
        made = self._folder / f"{name}.{uuid.uuid4().hex}"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            made.write_bytes(content)
            made.rename(self._folder / name)
        except OSError:
            with contextlib.suppress(OSError):
                made.unlink()
            return False
        return True

    def keep(self, names: Collection[str]) -> None:
        """Remove the copies that have other names, and the folders of states that are used no more."""
        if self._folder is None or not self._folder.is_dir():
            return
        wanted, now = set(names), time.time()
        with contextlib.suppress(OSError):
            os.utime(self._folder)
            for path in self._folder.iterdir():
                # One that is half written is another task's, for a while.
                if path.name not in wanted and ("." not in path.name or now - path.stat().st_mtime > OLD_SECONDS):
                    path.unlink()
            for other in self._folder.parent.iterdir():
                if now - other.stat().st_mtime > OLD_SECONDS:
                    _removed(other)


def _removed(folder: Path) -> None:
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()
