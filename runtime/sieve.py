"""Bounds on sums over the events of a match, by which matches are left out where they are listed.

    SUM(b.x) > 1000      the x of each b, together more than 1000
    AVG(b.x) <= 2.5      2·x - 5 of each b, together at most 0
    MAX(b.x) < 7         1 for each b with x >= 7, together 0
    SUM(b.x) > a.y       the x of each b and -y of the a, together more than 0

All matches that hold pass, and some that do not: Spark decides of those (planner.sieve, runtime.compact_set.bounded).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

EACH_EVENT = -1


@dataclass(frozen=True)
class Weight:
    """What the events of a variable weigh (None: all events): `factor` times their value in a column, and `shift` more;
    nothing where that is NULL. `column`: the number of the column, or EACH_EVENT, and all weigh `shift`. `whole`: these
    are whole numbers, but for the rounding of a DOUBLE. `op`, `number`: 1 if that is so of what else would be the
    weight (NaN is the greatest, as in Spark), else 0."""

    variable: str | None
    column: int = EACH_EVENT
    factor: float = 1.0
    shift: float = 0.0
    whole: bool = False
    op: Literal["", "<", "<=", ">", ">=", "="] = ""
    number: float = 0.0


@dataclass(frozen=True)
class Bounded:
    """The weights of all events of a match come to `low` at the least and to `high` at the most (`strict`: to more and
    to less)."""

    weights: tuple[Weight, ...]
    low: float = -math.inf
    high: float = math.inf
    strict: bool = False
