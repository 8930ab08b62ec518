"""What is chosen among all matches of a key once it has ended: a strategy or AFTER MATCH SKIP over a trailing absence.

Matches become known only after their last event there, so they are held back as matches (select.Held). What becomes
known together, of one start, is first looked through in the compact set: of its matches that end at one event NXT and
LAST leave one (runtime.compact_set.picking), so that of the 2ⁿ matches of `SEQ(A, B+, !C)` n are held back.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from runtime.arrays import IntArray
from runtime.compact_set import tecs
from runtime.compact_set.matches import Matches
from runtime.compact_set.store import Store
from runtime.program import PICKING, Program
from runtime.selection import select
from runtime.selection.key_events import KeyEvents
from runtime.selection.selector import Selector, Winners
from runtime.steppers.stepper import Feed, Stepper


class Late(Selector):
    """Holds the matches of a key that can still be chosen. Nodes remember positions."""

    by_key = lists_to_count = True

    def __init__(self, program: Program, store: Store, stepper: Stepper) -> None:
        super().__init__(program, store, stepper)
        self._events, self._held = KeyEvents(), select.Held(program)
        walks = program.family not in ("pcea", "deferred", "ranged", "two stacks")  # there are no products in its sets
        self._winners = Winners(program.choose, store) if walks and program.choose in PICKING else None

    def rows(self, feed: Feed) -> IntArray:
        """See Selector.rows."""
        self._events.add(feed)
        return feed.positions

    def take(self) -> Iterator[Matches]:
        """See Selector.take."""
        if self._winners is not None and self.program.skip is None:
            self._hold_winners(self._winners)
        else:
            self._hold()
        return iter(())

    def _hold(self) -> None:
        """Hold back the matches of the roots."""
        for match in self.listed():
            self._held.add(match)

    def _hold_winners(self, winners: Winners) -> None:
        """Of each root, and each event at which its matches end, hold back those that win."""
        store = self.store
        roots = [tuple(column[k] for column in store.roots) for k in range(store.n_roots)]
        for root, now, key, begin, end in roots:
            outputs = self._outputs(int(root), now)
            store.n_roots = 0
            store.more_roots(len(outputs))
            for node in outputs:
                store.add_root(node, key, begin, end)
            store.roots.clock[: len(outputs)] = now
            size = store.nodes
            winners.pick()
            self._hold()
            winners.drop_copies(size)
        store.n_roots = 0

    def _outputs(self, root: int, now: Any) -> list[int]:
        """The outputs of a set inside the window, by their last event."""
        arena, found, todo, seen = self.store.arena, list[int](), [root], set[int]()
        while todo:
            node = todo.pop()
            if node in seen or node == tecs.BOTTOM or not tecs.inside(arena.start[node], now, self.store.bounds):
                continue
            seen.add(node)
            if arena.label[node] == tecs.UNION:
                todo += [int(arena.child[node]), int(arena.right[node])]
            else:
                found.append(node)
        return sorted(found, key=lambda node: int(arena.row[node]))

    def ended(self, key: int) -> Iterator[Matches]:
        """See Selector.ended."""
        chosen = self._held.chosen()
        if chosen:
            yield self._events.matches(chosen, key)
        self._events.clear()
        self._held = select.Held(self.program)

    def least_row(self) -> int:
        """See Selector.least_row."""
        first = self.store.compact()
        return self._events.least_row(min([first, *(match.begin for match in self._held.matches())]))
