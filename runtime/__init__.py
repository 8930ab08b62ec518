"""The engines, and all that a worker of Spark's imports. Where this package came in an archive, it runs from a copy."""

from __future__ import annotations

from runtime.folders import unpacked as _unpacked

_copy = _unpacked(__name__, __spec__.loader)
if _copy is not None:
    __path__ = [_copy]
