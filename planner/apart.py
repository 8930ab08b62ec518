"""Which types no row is of at once: those that ask for different values of one column, or for different sources.

`(BUY y OR SELL y) ; HALT h WHERE y.price < h.low`: a row is a BUY or a SELL, so each match is found on one way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product
from types import MappingProxyType
from typing import NamedTuple

from planner.terms import Predicate


class Demand(NamedTuple):
    """One way to be of a type: to come from this source, with this value in its TYPE column. None: with any."""

    source: int | None = None
    value: str | None = None

    def excludes(self, other: Demand) -> bool:
        """Does no row fulfil both?"""
        return any(a is not None and b is not None and a != b for a, b in zip(self, other, strict=True))


Demands = Mapping[str, tuple[Demand, ...]]
"""Of each type all ways to be of it. A type that is missing here can be any row's."""

NOTHING_KNOWN: Demands = MappingProxyType({})


def types_exclude(demands: Demands, a: str, b: str) -> bool:
    """Is no row of both types?"""
    if a not in demands or b not in demands:
        return False
    return all(one.excludes(other) for one, other in product(demands[a], demands[b]))


def guards_exclude(demands: Demands, a: Iterable[str | Predicate], b: Iterable[str | Predicate]) -> bool:
    """Do the types alone say that no row satisfies both guards?"""
    return any(
        types_exclude(demands, one, other)
        for one, other in product(a, b)
        if isinstance(one, str) and isinstance(other, str)
    )
