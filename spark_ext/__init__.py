"""Spark's side: sessions, the plans that a query becomes there, its workers and its streams.

All of it leans on what pyspark does inside. So a pyspark that does not fit is refused here, before an import of
something that it has not fails for a reason that nobody understands.
"""

from __future__ import annotations

import re

import pyspark

NEEDED = "~=4.3"


def fits(version: str) -> bool:
    """Whether cersql was tried on this version of pyspark."""
    numbers = re.match(r"(\d+)\.(\d+)", version)
    return numbers is not None and (4, 3) <= (int(numbers[1]), int(numbers[2])) < (5, 0)


if not fits(pyspark.__version__):
    raise ImportError(
        f"cersql needs pyspark {NEEDED}, and this is pyspark {pyspark.__version__}, of {pyspark.__file__}; "
        f"pip install 'pyspark{NEEDED}'"
    )
