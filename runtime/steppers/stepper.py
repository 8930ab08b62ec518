"""Steppers: what reads events and leaves roots, nodes of the compact set that stand for the matches ending there.

There are eight: a table of deterministic states (table.py), runs that hold values (register_stepper.py), those of them
that catch up (deferred_stepper.py), those in the order of a value (ranged_stepper.py), runs side by side
(pcea_stepper.py), the greatest match of each end (two_stacks_stepper.py), what has not happened after the matches of
each start (late_stacks_stepper.py), and any machine in Python (general.py). All write the same arena and the same
roots, so that listing, counting, choosing and room are the engine's business.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from runtime.arrays import AnyArray, IntArray
from runtime.compact_set.store import Store

NO_KEYS: IntArray = np.zeros(0, np.int64)
ALL_REPORT: AnyArray = np.zeros(0, np.bool_)


class Feed(NamedTuple):
    """Events in order, as runtime.engine.Engine.feed takes them, with nothing left out.

    `rows` are what nodes remember; `clocks` is what the window is measured in: `times` or `positions`; `keys` is empty
    where all have the key that is being read, `mute` where all matches are reported.
    """

    symbols: AnyArray
    times: AnyArray
    positions: IntArray
    rows: IntArray
    clocks: AnyArray
    keys: IntArray
    mute: AnyArray

    def part(self, begin: int, end: int) -> Feed:
        """Some of the events, which follow each other and have one key."""
        parts = Feed._make(column[begin:end] for column in self)
        return parts._replace(keys=NO_KEYS)

    def relevant(self) -> Feed:
        """Those of the events that satisfy some guard, where one word says so. Positions show the gaps."""
        held = np.flatnonzero(self.symbols[:, 0])
        if 2 * len(held) > len(self.symbols):
            return self
        return Feed._make(column[held] if len(column) else column for column in self)

    def without_times(self, symbols: AnyArray) -> Feed:
        """For a kernel that reads symbols in this form and asks for clocks alone: it is compiled for their type.
        `times` are then the clocks of runs that begin."""
        return self._replace(symbols=symbols, times=self.clocks)


class Stepper(ABC):
    """Reads events, and holds the runs that are under way: it is a Holder of the store's nodes."""

    by_key = False
    """Must the engine stop where a key ends?"""

    looks_below = False
    """Does it look at what is below the nodes that it holds?"""

    sums_up = True
    """Can the matches of its roots be summed up node by node?"""

    def __init__(self, store: Store) -> None:
        self.store = store

    @abstractmethod
    def read(self, feed: Feed) -> Iterator[None]:
        """Read all events; yields whenever there may be roots that must be dealt with before it goes on."""

    def next_positions(self, last_position: int, last_key: int, n: int, keys: IntArray) -> IntArray:
        """Consecutive positions for n events, going on behind the last one."""
        return next_positions(last_position, last_key, n, keys)

    def measured(self, feed: Feed) -> Feed:
        """The feed with the clocks by which it says what has left the window; those of the window, here."""
        return feed

    def end_key(self) -> None:  # noqa: B027
        """The stream of a key, or all of it, has ended: leave the roots of what waited for that; nothing does, here."""

    def begin_key(self, key: int) -> None:
        """Forget all runs; the events that follow have this key. The store holds no node of theirs any more."""
        raise NotImplementedError

    def drop_runs(self) -> None:
        """All runs are consumed."""
        raise NotImplementedError

    absorbs = False
    """Can runs of a start be left to those of an earlier one?"""

    def absorb(self, ends: Mapping[int, int]) -> None:
        """Drop the runs of starts that those of an earlier start make superfluous. `ends`: by start, the end of the
        longest match so far that may still be taken."""
        raise NotImplementedError

    def least_start(self) -> int:
        """The position at which the first of the runs began, where each start has runs of its own; or one before."""
        return -1

    # ------------------------------------------------------------ a holder of nodes

    @abstractmethod
    def prune(self, now: Any) -> None: ...

    @abstractmethod
    def held(self) -> AnyArray: ...

    @abstractmethod
    def renumber(self, forward: AnyArray) -> None: ...


def next_positions(last_position: int, last_key: int, n: int, keys: IntArray) -> IntArray:
    """Consecutive positions, going on where the last feed stopped, from 0 for each new key."""
    index = np.arange(n, dtype=np.int64)
    if not len(keys):
        return index + (last_position + 1)
    borders = np.flatnonzero(np.diff(keys)) + 1
    starts = np.zeros(n, np.int64)
    starts[borders] = borders
    positions = index - np.maximum.accumulate(starts)
    if keys[0] == last_key:
        end = borders[0] if len(borders) else n
        positions[:end] += last_position + 1
    return positions
