"""WITH TIMEOUTS: beside the matches, a row for each start whose window closed without one, with how far it came.

Definitions. A *start* is an event that some run of the pattern takes as its first. It times out if no match of the
pattern inside the window, before any strategy, begins there (under a trailing absence: none that survived), and its
window has closed; in batch the end of the partition closes every window. A start that CONSUME BY or AFTER MATCH SKIP
dropped gives no row. SKIP TILL NEXT MATCH says what a run is: there a start times out if none of its runs, which take
every event that they can, becomes a match.

Where a second pass decides which matches there are (Program.all_starts), there is a row for every start, and a match is
a run that came to its end.

The row shows the furthest run of the start inside the window: each event has a rank, the least index, in the pattern's
order of variables, of those that it marks; the rank of a run is that of its last event that bears a variable; the
furthest run has the greatest rank, and of those of equal rank the positions that are greatest under NXT. Only runs
that the automaton has count: those that can go on, and those that ended and were vetoed by an absence before or after
the whole.

The query's own program gives the matches. A second one, Program.timeouts, reads the same symbols: its runs are
NXT-best for each start and state (nodes.First; where they hold values, registers that are apart), and the kernel logs
each of their moves. A run that First gives up is
logged once more, and nothing is lost after that: the run that beats it has the same state, so that it can take all that
the other could, and be greater. The log is compressed to one node for each start whenever the stepper stops.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np

from runtime import capacities
from runtime.arrays import AnyArray, IntArray
from runtime.compact_set.matches import Matches
from runtime.compact_set.store import Store
from runtime.compact_set.tecs import BOTTOM, UNION, Bounds, inside
from runtime.jit import kernel
from runtime.program import Program
from runtime.selection.key_events import Dropped, KeyEvents
from runtime.selection.select import Match, last_dropped
from runtime.selection.selector import Selector
from runtime.steppers.stepper import Feed, Stepper


@kernel
def is_greater(arena: Any, ranks: Any, a: Any, b: Any) -> Any:
    """Is run `a` greater than run `b` under NXT: has it the least position in which they differ?

    Positions are met from the last to the first; events without a variable (rank -1) do not count. All runs of one
    union have the same positions. O(length of the runs after what they share).
    """
    mine = False
    while a != b:
        if a != BOTTOM and (arena.label[a] == UNION or ranks[arena.label[a]] < 0):
            a = arena.child[a]
        elif b != BOTTOM and (arena.label[b] == UNION or ranks[arena.label[b]] < 0):
            b = arena.child[b]
        elif arena.row[a] == arena.row[b]:
            a, b = arena.child[a], arena.child[b]
        elif arena.row[a] > arena.row[b]:  # ⊥ has the row -1
            mine = True
            a = arena.child[a]
        else:
            mine = False
            b = arena.child[b]
    return mine


@kernel
def sizes(arena: Any, nodes: Any, found: Any) -> None:
    """The number of events of each run."""
    for k in range(len(nodes)):
        node, n = nodes[k], 0
        while node != BOTTOM:
            if arena.label[node] != UNION:
                n += 1
            node = arena.child[node]
        found[k] = n


@kernel
def spell(arena: Any, nodes: Any, ends: Any, rows: Any, labels: Any) -> None:
    """Write the events of each run, in order, before its place in `ends`."""
    for k in range(len(nodes)):
        node, at = nodes[k], ends[k]
        while node != BOTTOM:
            if arena.label[node] != UNION:
                at -= 1
                rows[at] = arena.row[node]
                labels[at] = arena.label[node]
            node = arena.child[node]


class Watch(Selector):
    """Gives the starts of a key that timed out, once it has ended. `program` is the query's; its `timeouts` is the one
    that runs, by a stepper that logs every move. Nodes remember positions.

    `_best`: for each start the rank and node of its furthest run so far, or None once a match begins there.
    """

    by_key = lists_to_count = True

    def __init__(self, program: Program, store: Store, stepper: Stepper, dropped: Dropped) -> None:
        assert program.timeouts is not None
        super().__init__(program.timeouts, store, stepper)
        self._dropped, self._all_starts = dropped, program.all_starts
        self._ranks = program.timeouts.ranks()
        self._label_of = np.array([program.labels.index(label) for label in program.timeouts.labels], np.int32)
        self._best: dict[int, tuple[int, int] | None] = {}
        self._events = KeyEvents()

    def rows(self, feed: Feed) -> IntArray:
        """See Selector.rows."""
        self._events.add(feed)
        return feed.positions

    def take(self) -> Iterator[Matches]:
        """See Selector.take: keep the furthest of the runs that were logged for each start."""
        n, roots, arena, best = self.store.n_roots, self.store.roots, self.store.arena, self._best
        ranks = self._ranks[arena.label[roots.node[:n]]]
        logged = zip(
            roots.begin[:n].tolist(), roots.end[:n].tolist(), roots.node[:n].tolist(), ranks.tolist(), strict=True
        )
        for start, end, node, rank in logged:
            if end >= 0 and not self._all_starts:
                best[start] = None
                continue
            held = best.get(start, (-2, BOTTOM))
            if held is None:
                continue
            beats = rank > held[0] or (
                rank == held[0] >= 0 and (arena.child[node] == held[1] or is_greater(arena, self._ranks, node, held[1]))
            )
            if beats:
                best[start] = rank, node
        return iter(())

    def ended(self, key: int) -> Iterator[Matches]:
        """See Selector.ended."""
        open_ = sorted((start, best[1]) for start, best in self._best.items() if best is not None)
        if open_:
            starts = np.array([start for start, _ in open_], np.int64)
            nodes = np.array([node for _, node in open_], np.int32)
            nodes = nodes[~self._dropped(key, starts, self._events)]
            most = capacities.CHUNK_STARTS
            for begin in range(0, len(nodes), most):
                yield self._spelled(nodes[begin : begin + most], key)
        self._best = {}
        self._events.clear()

    def _spelled(self, nodes: AnyArray, key: int) -> Matches:
        offsets = np.zeros(len(nodes) + 1, np.int64)
        sizes(self.store.arena, nodes, offsets[1:])
        np.cumsum(offsets, out=offsets)
        positions, labels = np.zeros(offsets[-1], np.int64), np.zeros(offsets[-1], np.int32)
        spell(self.store.arena, nodes, offsets[1:], positions, labels)
        rows, keys = self._events.rows_at(positions), np.full(len(nodes), key, np.int64)
        return Matches(len(nodes), offsets, rows, self._label_of[labels], keys, timeout=True)

    def least_row(self) -> int:
        """See Selector.least_row: a start that was dropped is found by all events of its key."""
        return self._events.least_row(0)

    # ------------------------------------------------------------ a holder of nodes

    def held(self) -> AnyArray:
        """See Holder.held."""
        return np.array([best[1] for best in self._best.values() if best is not None], np.int32)

    def renumber(self, forward: AnyArray) -> None:
        """See Holder.renumber."""
        self._best = {s: best and (best[0], int(forward[best[1]])) for s, best in self._best.items()}


class Drops:
    """What the matches of a query have dropped: which starts are no timeouts. By key, as rows, it notes where matches
    ended (CONSUME BY), or the matches themselves (AFTER MATCH SKIP)."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self.needs_matches = program.consume or program.skip is not None
        self._ends: dict[int, set[int]] = defaultdict(set)
        self._chosen: dict[int, list[tuple[IntArray, AnyArray]]] = defaultdict(list)

    def note(self, matches: Matches) -> None:
        """Matches that were given."""
        if not self.needs_matches:
            return
        keys = matches.key.tolist()
        if self._program.skip is None:
            for key, end in zip(keys, matches.positions[matches.offsets[1:] - 1].tolist(), strict=True):
                self._ends[key].add(end)
            return
        for k, key in enumerate(keys):
            own = slice(int(matches.offsets[k]), int(matches.offsets[k + 1]))
            self._chosen[key].append((matches.positions[own], matches.labels[own]))

    def of_key(self, key: int, starts: IntArray, events: KeyEvents) -> AnyArray:
        """Which of the starts of a key that has ended were dropped."""
        ends, chosen = self._ends.pop(key, None), self._chosen.pop(key, None)
        lost = np.zeros(len(starts), np.bool_)
        if ends:
            lost |= self._consumed(starts, np.sort(events.positions_of(np.array(list(ends), np.int64))), events)
        for rows, labels in chosen or ():
            positions = tuple(events.positions_of(rows).tolist())
            match = Match(positions, tuple(labels.tolist()), tuple(self._program.labels[i] for i in labels))
            skip = self._program.skip
            assert skip is not None
            lost |= (starts > match.begin) & (starts <= last_dropped(match, skip))
            if not skip.waits:  # what began before it and was under way is dropped, too
                lost |= (starts < match.begin) & self._consumed(starts, np.array([match.end]), events)
        return lost

    def _consumed(self, starts: IntArray, ends: IntArray, events: KeyEvents) -> AnyArray:
        """Those that were under way when a match ended: the first end at or after them is inside their window."""
        assert self._program.timeouts is not None
        window = self._program.timeouts.window
        at = np.searchsorted(ends, starts)
        lost: AnyArray = at < len(ends)
        if window is None:
            return lost
        ends = ends[np.minimum(at, len(ends) - 1)]
        if window.kind == "events":
            return lost & (ends - starts <= window.size)
        since, until = events.times_at(starts).tolist(), events.times_at(ends).tolist()
        bounds = Bounds(window.size, window.strict)
        fits = [bool(inside(a, b, bounds)) for a, b in zip(since, until, strict=True)]
        return lost & np.array(fits, np.bool_)
