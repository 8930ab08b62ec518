"""AFTER MATCH SKIP: of the matches with the least start the longest is taken, and drops starts up to a point.

Each start has runs of its own, so that a root's matches have one beginning. Of each start the matches with the latest
end are held, as nodes. A start is settled once it, and all before it, have no run any more: its NXT-greatest match is
taken, and what it skips is dropped (runtime.selection.select).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from runtime import capacities
from runtime.arrays import AnyArray, IntArray
from runtime.compact_set.matches import Matches
from runtime.compact_set.store import Store
from runtime.compact_set.tecs import BOTTOM, UNION
from runtime.program import Program
from runtime.selection import select
from runtime.selection.key_events import KeyEvents
from runtime.selection.selector import Selector
from runtime.steppers.stepper import Feed, Stepper

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
        if len(self._best) >= capacities.HELD_STARTS:
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
        if n > capacities.MANY_ROOTS:
            latest = _latest(begin, end)
            begin, end, node = begin[latest], end[latest], node[latest]
        for start, until, own in zip(begin.tolist(), end.tolist(), node.tolist(), strict=True):
            if start <= self._dropped:
                continue
            held = self._best.get(start)
            if held is None or until > held[0]:
                self._best[start] = until, [own]
            elif until == held[0]:
                held[1].append(own)

    def _settled(self, least: int) -> Iterator[Matches]:
        """The matches of starts before `least`, which nothing can change any more."""
        chosen = []
        for start in sorted(start for start in self._best if start < least):
            _, nodes = self._best.pop(start)
            if start <= self._dropped:
                continue
            matches = list(self._spelled(nodes))
            if len(matches) > 1:
                matches = select.skipped(matches, self._skip, self.program.variables)
            self._dropped = select.last_dropped(matches[0], self._skip)
            chosen.append(matches[0])
        if chosen:
            yield self._events.matches(chosen, self._key)

    def _spelled(self, nodes: list[int]) -> Iterator[select.Match]:
        """The matches of nodes of one start: one, but where events can be marked in several ways. In Python, since most
        are short, and of most starts none are asked for."""
        arena, labels = self.store.arena, self.program.labels
        todo: list[tuple[int, Any]] = [(node, None) for node in nodes]
        while todo:
            node, tail = todo.pop()
            if node == BOTTOM:
                events = []
                while tail is not None:
                    event, tail = tail
                    events.append(event)
                places, marks = zip(*events, strict=True)
                yield select.Match(places, marks, tuple(labels[mark] for mark in marks))
            elif arena.label[node] == UNION:
                todo += [(int(arena.child[node]), tail), (int(arena.right[node]), tail)]
            else:
                event = int(arena.row[node]), int(arena.label[node])
                todo.append((int(arena.child[node]), (event, tail)))

    # ------------------------------------------------------------ a holder of nodes

    def held(self) -> AnyArray:
        """See Holder.held."""
        return np.array([node for _, nodes in self._best.values() for node in nodes], np.int32)

    def renumber(self, forward: AnyArray) -> None:
        """See Holder.renumber."""
        self._best = {start: (end, forward[nodes].tolist()) for start, (end, nodes) in self._best.items()}


def _latest(begin: AnyArray, end: AnyArray) -> AnyArray:
    """int64[m]: the roots of each start that have its latest end. For 3, 3, 5 with the ends 7, 8, 8: the last two."""
    order = np.lexsort((end, begin))
    last = np.flatnonzero(np.diff(begin[order], append=-1) != 0)  # of each start, its latest end
    found: AnyArray = order[end[order] == np.repeat(end[order][last], np.diff(last, prepend=-1))]
    return found
