"""How the kernels are compiled, and what they call.

Without numba's runtime there is no counting of references, which took up to nine tenths of the time of kernels that
pass many arrays from function to function. Such a function cannot make an array; ours never do.

Calls are inlined by LLVM: a call would hand over every array of its tuples, and numba's own inlining types the text of
a function again wherever it is called, which took most of the time to compile.

A kernel is compiled, and cached, for the types that it is called with. So None in place of a bundle of arrays is a
choice at compile time: under `if bundle is not None` numba cuts out what asks for it before types are looked at.
"""

from __future__ import annotations

import functools
import hashlib
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba

from runtime.folders import own_folder

_config: Any = numba.config
_compile: Any = numba.njit  # its type hints leave these options out
_OPTIONS: dict[str, Any] = {"_nrt": False, "forceinline": True}
_WITH_KERNELS = ("compact_set", "selection", "steppers")  # constants also stand in the files beside these folders

logger = logging.getLogger(__name__)


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """A compiled function that Python may call, too: takes arrays, makes none."""
    return _cached(function, **_OPTIONS)


def _cached(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """A compiled function that is kept beside the sources or in the user's cache folder; where neither can be written,
    as in a container, in a folder of the user's among the temporary ones; or else compiled anew in each process."""
    try:
        return _forgiving(_compile(**options, cache=True)(function))
    except RuntimeError:  # numba: "no locator available"
        pass
    folder = own_folder()
    if folder is not None:
        before = _config.CACHE_DIR
        _config.CACHE_DIR = folder  # which numba looks at here, and keeps for this function
        try:
            return _forgiving(_compile(**options, cache=True)(function))
        except RuntimeError:
            pass
        finally:
            _config.CACHE_DIR = before
    return _compile(**options)(function)


def _forgiving(compiled: Any) -> Callable[..., Any]:
    """The same, which compiles anew where the index of what is kept cannot be read, or is of other sources. Numba
    reads an index before it looks whether that is of this source; one of another release can name modules that are
    gone."""
    cache = getattr(compiled, "_cache", None)  # with NUMBA_DISABLE_JIT it is the function itself
    if cache is None:
        return compiled
    file = cache._cache_file
    file._source_stamp = (file._source_stamp, _digest())
    read = file._load_index

    def load() -> Any:
        try:
            return read()
        except Exception:  # whatever unpickling can raise
            logger.info("what was compiled before is not readable, and is compiled anew")
            return {}

    file._load_index = load
    made: Callable[..., Any] = compiled
    return made


@functools.cache
def _digest() -> str:
    """Of all sources that end up in kernels. Numba looks at the file of a kernel alone, and keeps what was compiled
    when what it inlines, or a constant of another file, has changed since: an upgrade would go on with the old."""
    home = Path(__file__).parent
    files = sorted(file for folder in (".", *_WITH_KERNELS) for file in (home / folder).glob("*.py"))
    found = hashlib.sha256()
    for file in files:
        found.update(file.read_bytes())
    return found.hexdigest()


def called(function: Callable[..., Any]) -> Callable[..., Any]:
    """What kernels call and is too long to stand in each of them: everything in it would be compiled as often."""
    options = {"_nrt": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    compiled: Callable[..., Any] = _compile(**options)(function)
    return compiled


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """What only kernels call: without an entry from Python (which would crash) or code of its own in the cache, since
    either takes time to make."""
    compiled: Callable[..., Any] = _compile(**_OPTIONS, no_cpython_wrapper=True, no_cfunc_wrapper=True)(function)
    return compiled
