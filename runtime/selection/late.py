"""What is chosen among all matches of a key once it has ended: a strategy or AFTER MATCH SKIP over a trailing absence.

Matches become known only after their last event there, so they are held back as matches (select.Held).
"""

from __future__ import annotations

from collections.abc import Iterator

from runtime.arrays import IntArray
from runtime.compact_set.matches import Matches
from runtime.compact_set.store import Store
from runtime.program import Program
from runtime.selection import select
from runtime.selection.key_events import KeyEvents
from runtime.selection.selector import Selector
from runtime.steppers.stepper import Feed, Stepper


class Late(Selector):
    """Holds the matches of a key that can still be chosen. Nodes remember positions."""

    by_key = lists_to_count = True

    def __init__(self, program: Program, store: Store, stepper: Stepper) -> None:
        super().__init__(program, store, stepper)
        self._events, self._held = KeyEvents(), select.Held(program)

    def rows(self, feed: Feed) -> IntArray:
        """See Selector.rows."""
        self._events.add(feed)
        return feed.positions

    def take(self) -> Iterator[Matches]:
        """See Selector.take."""
        for match in self.listed():
            self._held.add(match)
        return iter(())

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
