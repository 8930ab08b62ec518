"""First capacities of 2 to 8 for every array that grows: all that can be full is full in every test.

CERSQL_SMALL=1 does so for a whole run of pytest (conftest.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from runtime import capacities

SMALL = {
    "NODES": 2, "FEW_NODES": 2, "ROOTS": 2, "WALK": 2, "PICK_STACK": 2, "CHUNK_MATCHES": 2, "CHUNK_EVENTS": 3,
    "STATES": 2, "CLASSES": 2, "ROWS": 2, "EDGES": 2, "CODES": 2, "LIVE_ENTRIES": 2, "RECORDS": 2,
    "PIECE": 3, "FEW_RUNS": 2, "ENTRIES": 2, "FEW_ENTRIES": 4, "PENDING": 2, "ORDERED": 2, "HAPPENED": 2, "STARTS": 2,
    "PLACES": 2, "VALUES": 2, "BLOCKS": 2, "KEYS": 2,
    "SLOTS": 2, "FEW_CLOCKS": 2, "EVENTS_OF_A_ROOT": 1, "MANY_MOVES": 2, "WINDOW_EVENTS": 2, "SPARE_NODES": 2,
    "KNOWN_ROWS": 2, "HELD_STARTS": 2, "MANY_ROOTS": 1, "FEW_RIVALS": 2, "HELD_MATCHES": 2, "FEW_ROWS": 2,
    "CHUNK_STARTS": 2,
    "FED_ROWS": 3, "WEIGHTS": 2,
    "CELLS": 2, "GROUPS": 2, "CHAINS": 2, "GROUP": 2, "MOST_FOR_GROUPS": 4,
}  # fmt: skip


def names() -> set[str]:
    """All capacities."""
    return {name for name in vars(capacities) if name.isupper()}


def shrink() -> None:
    """Set all of them, for good."""
    assert names() == set(SMALL)
    for name, capacity in SMALL.items():
        setattr(capacities, name, capacity)


@contextmanager
def shrunk() -> Iterator[None]:
    """Set all of them, for a while."""
    before = {name: getattr(capacities, name) for name in names()}
    shrink()
    try:
        yield
    finally:
        for name, capacity in before.items():
            setattr(capacities, name, capacity)
