"""AFTER MATCH SKIP: of the matches with the least start the longest is taken, and drops starts up to a point.

Each start has runs of its own, so that a root's matches have one beginning. Of each start the matches with the latest
end are held, as nodes. A start is settled once it, and all before it, have no run any more: its NXT-greatest match is
taken, and what it skips is dropped (runtime.selection.select).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from runtime.arrays import AnyArray, IntArray
from runtime.compact_set import tecs
from runtime.compact_set.matches import Matches
from runtime.compact_set.store import Store
from runtime.program import Program
from runtime.selection import select
from runtime.selection.key_events import KeyEvents
from runtime.selection.selector import Selector
from runtime.steppers.stepper import Feed, Stepper

MOST_HELD = 1 << 12  # starts with a match; more are looked through
FEW_STARTS, MANY_STARTS = 16, 4096  # whose matches are listed at a time, where later ones may be dropped
NEVER = int(np.iinfo(np.int64).max)  # after all positions


class Skipping(Selector):
    """Holds for each start the latest end of a match, and the nodes that end there. Nodes remember positions."""

    by_key = lists_to_count = True

    def __init__(self, program: Program, store: Store, stepper: Stepper) -> None:
        assert program.skip is not None
        super().__init__(program, store, stepper)
        self._skip = program.skip
        self._events = KeyEvents()
        self._begin_key()

    def _begin_key(self) -> None:
        self._best: dict[int, tuple[int, list[int]]] = {}
        self._dropped = -1  # the last position at which no match may begin any more
        self._key = 0
        self._events.clear()

    def rows(self, feed: Feed) -> IntArray:
        """See Selector.rows."""
        self._events.add(feed)
        return feed.positions

    def take(self) -> Iterator[Matches]:
        """See Selector.take."""
        self._hold()
        if self.stepper.absorbs:  # what was dropped is as if a match before all others had ended there
            self.stepper.absorb({-1: self._dropped} | {start: end for start, (end, _) in self._best.items()})
        if len(self._best) >= MOST_HELD:
            yield from self._settled(self.stepper.least_start())

    def fed(self) -> Iterator[Matches]:
        """See Selector.fed."""
        least = self.stepper.least_start()
        yield from self._settled(least)
        self._events.drop_before(min([least, *self._best]))

    def ended(self, key: int) -> Iterator[Matches]:
        """See Selector.ended."""
        self._key = key
        yield from self._settled(NEVER)
        self._begin_key()

    def least_row(self) -> int:
        """See Selector.least_row."""
        self.store.compact()
        return self._events.least_row(min([self.stepper.least_start(), *self._best]))

    # ------------------------------------------------------------ choosing

    def _hold(self) -> None:
        """Of each start that matches now, these matches instead of earlier ones."""
        n, roots = self.store.n_roots, self.store.roots
        if n == 0:
            return
        self._key = int(roots.key[n - 1])
        begin, end, node = roots.begin[:n], roots.end[:n], roots.node[:n]
        order = np.lexsort((end, begin))
        last = np.flatnonzero(np.diff(begin[order], append=-1) != 0)  # of each start, its latest end
        kept = order[end[order] == np.repeat(end[order][last], np.diff(last, prepend=-1))]
        fresh: dict[int, tuple[int, list[int]]] = {}
        for start, until, own in zip(begin[kept].tolist(), end[kept].tolist(), node[kept].tolist(), strict=True):
            fresh.setdefault(start, (until, []))[1].append(own)
        for start, (until, nodes) in fresh.items():
            if start <= self._dropped:
                continue
            held = self._best.get(start)
            if held is None or until > held[0]:
                self._best[start] = until, nodes
            elif until == held[0]:
                held[1].extend(nodes)

    def _settled(self, least: int) -> Iterator[Matches]:
        """The matches of starts before `least`, which nothing can change any more."""
        starts = sorted(start for start in self._best if start < least)
        # Matches are listed some starts at a time, since most starts may be dropped by those before them.
        some, chosen = FEW_STARTS, list[select.Match]()
        at = 0
        while at < len(starts):
            part = [start for start in starts[at : at + some] if start > self._dropped]
            found = select.skipped(self._spelled(part), self._skip, self.program.variables, self._dropped)
            if found:
                self._dropped = select.last_dropped(found[-1], self._skip)
            chosen += found
            at += some
            some = min(2 * some, MANY_STARTS) if len(found) * 2 > some else FEW_STARTS
        for start in starts:
            del self._best[start]
        if chosen:
            yield self._events.matches(chosen, self._key)

    def _spelled(self, starts: list[int]) -> list[select.Match]:
        """The longest matches of these starts."""
        nodes = [node for start in starts for node in self._best[start][1]]
        store = self.store
        mine = tecs.new_roots(len(nodes), store.clock)
        mine.node[:] = nodes
        mine.clock[:] = store.arena.start[mine.node]  # inside any window of itself
        with store.instead(mine):
            return list(self.listed())

    # ------------------------------------------------------------ a holder of nodes

    def held(self) -> AnyArray:
        """See Holder.held."""
        return np.array([node for _, nodes in self._best.values() for node in nodes], np.int32)

    def renumber(self, forward: AnyArray) -> None:
        """See Holder.renumber."""
        self._best = {start: (end, forward[nodes].tolist()) for start, (end, nodes) in self._best.items()}
