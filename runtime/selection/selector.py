"""Selectors: what stands between the roots that a stepper leaves and the matches that are given.

Most queries want all matches (Selector itself), or of those of one end the greatest by NXT or LAST (Picking). The
others choose among matches of several ends: skipping.py, late.py, taking.py; and timeouts.py watches starts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from runtime import capacities
from runtime.arrays import AnyArray, IntArray
from runtime.compact_set import picking
from runtime.compact_set.matches import Matches
from runtime.compact_set.store import Store
from runtime.compact_set.trends import Trends
from runtime.program import Program, Strategy
from runtime.selection.select import Match
from runtime.steppers.stepper import Feed, Stepper


class Selector:
    """Gives all matches as they come."""

    by_key = False
    """Must the engine stop where a key ends?"""

    lists_to_count = False
    """Must matches be listed, to know how many are chosen?"""

    looks_below = False
    """Does it look at what is below a root, but to list it?"""

    def __init__(self, program: Program, store: Store, stepper: Stepper) -> None:
        self.program, self.store, self.stepper = program, store, stepper

    def rows(self, feed: Feed) -> IntArray:
        """What nodes shall remember of the events of a feed, which are about to be read."""
        return feed.rows

    def take(self) -> Iterator[Matches]:
        """Deal with the roots that are there; yield the matches that this makes known."""
        return self.given()

    def count(self) -> int:
        """As `take`, but only how many they are."""
        return sum(matches.n for matches in self.take()) if self.lists_to_count else self.counted()

    def given(self) -> Iterator[Matches]:
        """The matches of the roots, at each end as many as the program gives."""
        most = self.program.most_at_end
        return self.store.listed() if most is None else self.store.first_listed(most)

    def counted(self) -> int:
        """As `given`, but only how many they are."""
        bounded = self.program.most_at_end is not None
        return sum(matches.n for matches in self.given()) if bounded else self.store.counted()

    def sum_up(self, trends: Trends) -> None:
        """As `take`, but only sum up what is there."""
        trends.take()

    def fed(self) -> Iterator[Matches]:
        """A feed, or the part of one key in it, has been read."""
        return iter(())

    def ended(self, key: int) -> Iterator[Matches]:
        """The stream of a key has ended, and all its roots have been taken; nothing of it is asked for any more."""
        return iter(())

    def least_row(self) -> int:
        """No later match mentions a row below this. Compacts the arena; O(nodes)."""
        return self.store.compact()

    def listed(self) -> Iterator[Match]:
        """All matches of the roots, one by one, by what nodes remember."""
        names = self.program.labels
        for part in self.store.listed():
            for k in range(part.n):
                own = slice(int(part.offsets[k]), int(part.offsets[k + 1]))
                labels = tuple(part.labels[own].tolist())
                yield Match(tuple(part.positions[own].tolist()), labels, tuple(names[i] for i in labels))

    # ------------------------------------------------------------ a holder of nodes

    def prune(self, now: Any) -> None:
        """See Holder.prune: what is held is not asked whether it has left the window."""

    def held(self) -> AnyArray:
        """See Holder.held."""
        return np.zeros(0, np.int32)

    def renumber(self, forward: AnyArray) -> None:
        """See Holder.renumber."""


class Picking(Selector):
    """Of the matches that end at one event those that are greatest by NXT or LAST, found without listing others."""

    looks_below = True

    def __init__(self, program: Program, store: Store, stepper: Stepper) -> None:
        super().__init__(program, store, stepper)
        self._winners = Winners(program.pick, store)

    def take(self) -> Iterator[Matches]:
        """See Selector.take."""
        size = self.store.nodes
        self._winners.pick()
        yield from self.given()
        self._winners.drop_copies(size)

    def count(self) -> int:
        """See Selector.count."""
        size = self.store.nodes
        self._winners.pick()
        n = self.counted()
        self._winners.drop_copies(size)
        return n

    def sum_up(self, trends: Trends) -> None:
        """See Selector.sum_up."""
        size = self.store.nodes
        self._winners.pick()
        with trends.passing(size):
            trends.take()
        self._winners.drop_copies(size)


class Winners:
    """Leaves the roots that win by a strategy, NXT or LAST, among those of one event that follow each other."""

    _picks: picking.Picks | None = None

    def __init__(self, by: Strategy, store: Store) -> None:
        self._by, self._store = by, store

    def pick(self) -> None:
        """Leave these roots; what they are stands behind the nodes of the arena, which may have grown."""
        store, by = self._store, picking.RULES[self._by]
        n, begin, kept, result = store.n_roots, 0, 0, picking.NEEDS_NODES if self._picks is None else -1
        while result != picking.PICKED:
            if result == picking.NEEDS_NODES and self._picks is not None:
                store.grow()
            if self._picks is None or len(self._picks.best) < len(store.arena.row):
                stack = capacities.PICK_STACK if self._picks is None else len(self._picks.stack)
                copies = None if self._picks is None else self._picks.original
                self._picks = picking.new_picks(len(store.arena.row), stack)
                if copies is not None:
                    self._picks.original[: len(copies)] = copies
            if result == picking.NEEDS_STACK:
                self._picks = self._picks._replace(stack=np.zeros(2 * len(self._picks.stack), np.int32))
            result, begin, kept = picking.pick_kernel(store.space, self._picks, begin, n, kept, by)
        store.n_roots = kept

    def drop_copies(self, size: int) -> None:
        """Drop the nodes of what was picked, which nothing else knows: those beyond so many."""
        assert self._picks is not None
        used = self._store.nodes
        self._picks.original[size:used] = np.arange(size, used)
        self._store.arena.size[0] = size
