"""How the kernels are compiled, and what they call.

Without numba's runtime there is no counting of references, which took up to nine tenths of the time of kernels that
pass many arrays from function to function. Such a function cannot make an array; ours never do.

Calls are inlined by LLVM: a call would hand over every array of its tuples, and numba's own inlining types the text of
a function again wherever it is called, which took most of the time to compile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba

_compile: Any = numba.njit  # its type hints leave these options out
_OPTIONS: dict[str, Any] = {"_nrt": False, "forceinline": True}


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """A compiled function that Python may call, too: takes arrays, makes none."""
    compiled: Callable[..., Any] = _compile(**_OPTIONS, cache=True)(function)
    return compiled


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
