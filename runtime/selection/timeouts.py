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
NXT-best for each start and state (nodes.First), and the kernel logs each of their moves. A run that First gives up is
logged once more, and nothing is lost after that: the run that beats it has the same state, so that it can take all that
the other could, and be greater. The log is compressed to one node for each start whenever the kernel stops. Where
events are compared, runtime.selection.bound_timeouts watches in its place.
"""

from __future__ import annotations

import pickle
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np

from runtime.arrays import AnyArray, IntArray
from runtime.compact_set.matches import Matches
from runtime.compact_set.tecs import BOTTOM, UNION, inside
from runtime.jit import kernel
from runtime.program import Program
from runtime.selection.bound_timeouts import BoundWatch
from runtime.selection.key_events import Dropped, KeyEvents
from runtime.selection.select import Match, last_dropped
from runtime.steppers import timed
from runtime.steppers.timed_engine import TimedEngine

CHUNK_STARTS = 1 << 14


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


class WatchEngine(TimedEngine):
    """Runs Program.timeouts; what it yields at the end of a key are the starts that timed out.

    `dropped` says which starts of a key were dropped. Of the inherited state, `_best` has for each start the rank and
    node of its furthest run so far, or nothing once a match begins there.
    """

    def __init__(self, program: Program, dropped: Dropped) -> None:
        assert program.timeouts is not None
        super().__init__(program.timeouts)
        self._logs = self._holds = self._borders = True
        self._dropped, self._all_starts = dropped, program.all_starts
        self._ranks = program.timeouts.ranks()
        self._label_of = np.array([program.labels.index(label) for label in program.timeouts.labels], np.int32)
        self._batch_times: AnyArray = np.zeros(0, np.int64)
        self._key_times: list[AnyArray] = []

    def _run(
        self,
        symbols: AnyArray,
        times: AnyArray,
        positions: IntArray | None,
        keys: IntArray | None,
        rows: IntArray | None,
        mute: AnyArray | None,
    ) -> Iterator[bool]:
        self._batch_times = self._as_clock(times)
        yield from super()._run(symbols, times, positions, keys, rows, mute)

    def _note(self, begin: int, positions: IntArray, rows: IntArray, keys: IntArray) -> None:
        super()._note(begin, positions, rows, keys)
        self._key_times.append(self._batch_times[begin : begin + len(self._numbers[-1][0])])

    def _forget_key(self) -> None:
        super()._forget_key()
        self._key_times = []

    def _output(self, ended: bool) -> Iterator[Matches]:
        self._compress()
        if ended and self._best:
            yield from self._timeouts()

    def _compress(self) -> None:
        """Keep the furthest of the runs that were logged for each start."""
        assert self._entries is not None
        n = int(self._entries.counts[timed.N_ROOTS])
        if n == 0:
            return
        arena, roots, best = self._arena, self._timed_roots, self._best
        assert arena is not None
        ranks = self._ranks[arena.label[roots.node[:n]]]
        logged = zip(
            roots.begin[:n].tolist(), roots.end[:n].tolist(), roots.node[:n].tolist(), ranks.tolist(), strict=True
        )
        for start, end, node, rank in logged:
            if end >= 0 and not self._all_starts:
                best[start] = []
                continue
            held = best.get(start)
            if held is None:
                best[start] = [(rank, node)]
            elif held and rank >= held[0][0] and rank >= 0:
                old = held[0][1]
                if rank > held[0][0] or arena.child[node] == old or is_greater(arena, self._ranks, node, old):
                    best[start] = [(rank, node)]

    def _timeouts(self) -> Iterator[Matches]:
        assert self._entries is not None
        key = int(self._entries.counts[timed.KEY])
        events = KeyEvents(self._numbers, self._key_times)
        open_ = sorted((start, group[0][1]) for start, group in self._best.items() if group)
        starts = np.array([start for start, _ in open_], np.int64)
        nodes = np.array([node for _, node in open_], np.int32)
        nodes = nodes[~self._dropped(key, starts, events)]
        for begin in range(0, len(nodes), CHUNK_STARTS):
            yield self._spelled(nodes[begin : begin + CHUNK_STARTS], key, events)

    def _spelled(self, nodes: AnyArray, key: int, events: KeyEvents) -> Matches:
        offsets = np.zeros(len(nodes) + 1, np.int64)
        sizes(self._arena, nodes, offsets[1:])
        np.cumsum(offsets, out=offsets)
        positions, labels = np.zeros(offsets[-1], np.int64), np.zeros(offsets[-1], np.int32)
        spell(self._arena, nodes, offsets[1:], positions, labels)
        keys = np.full(len(nodes), key, np.int64)
        return Matches(len(nodes), offsets, events.rows_at(positions), self._label_of[labels], keys, timeout=True)

    def snapshot(self) -> bytes:
        return pickle.dumps((super().snapshot(), self._key_times))

    def restore(self, data: bytes) -> None:
        state, self._key_times = pickle.loads(data)
        super().restore(state)


class Engine(Protocol):
    """What is used of runtime.engine.Engine, which cannot be imported here."""

    def feed(self, *given: Any) -> Iterator[Matches]: ...

    def count(self, *given: Any) -> int: ...

    def flush(self) -> Iterator[Matches]: ...

    def least_row(self) -> int: ...

    def snapshot(self) -> bytes: ...

    def restore(self, data: bytes) -> None: ...


class TimeoutsEngine:
    """The matches of a query's own engine, and at the end of each key the starts that timed out (see Engine)."""

    def __init__(self, program: Program, engine: Engine) -> None:
        self._program, self._engine = program, engine
        assert program.timeouts is not None
        watch = BoundWatch if program.timeouts.rule == "bound" else WatchEngine
        self._watch: WatchEngine | BoundWatch = watch(program, self._dropped)
        self._needs_matches = program.consume or program.skip is not None
        # By key, as rows: where matches ended (CONSUME BY), or the matches themselves (AFTER MATCH SKIP).
        self._ends: dict[int, set[int]] = defaultdict(set)
        self._chosen: dict[int, list[tuple[IntArray, AnyArray]]] = defaultdict(list)

    def feed(
        self,
        symbols: AnyArray,
        times: AnyArray,
        positions: IntArray | None = None,
        keys: IntArray | None = None,
        rows: IntArray | None = None,
        mute: AnyArray | None = None,
    ) -> Iterator[Matches]:
        """See Engine.feed; nothing is mute."""
        for matches in self._engine.feed(symbols, times, positions, keys, rows, mute):
            self._remember(matches)
            yield matches
        yield from self._watch.feed(symbols, times, positions, keys, rows)

    def count(
        self,
        symbols: AnyArray,
        times: AnyArray,
        positions: IntArray | None = None,
        keys: IntArray | None = None,
        mute: AnyArray | None = None,
    ) -> int:
        """Matches and timeouts. See Engine.count."""
        if self._needs_matches:
            return sum(matches.n for matches in self.feed(symbols, times, positions, keys, None, mute))
        own = self._engine.count(symbols, times, positions, keys, mute)
        return own + self._watch.count(symbols, times, positions, keys)

    def flush(self) -> Iterator[Matches]:
        """See Engine.flush."""
        for matches in self._engine.flush():
            self._remember(matches)
            yield matches
        yield from self._watch.flush()

    def least_row(self) -> int:
        """See Engine.least_row."""
        return min(self._engine.least_row(), self._watch.least_row())

    def snapshot(self) -> bytes:
        own = self._engine.snapshot(), self._watch.snapshot()
        return pickle.dumps((*own, dict(self._ends), dict(self._chosen)))

    def restore(self, data: bytes) -> None:
        own, watch, ends, chosen = pickle.loads(data)
        self._engine.restore(own)
        self._watch.restore(watch)
        self._ends, self._chosen = defaultdict(set, ends), defaultdict(list, chosen)

    # ------------------------------------------------------------ what CONSUME BY and AFTER MATCH SKIP drop

    def _remember(self, matches: Matches) -> None:
        if not self._needs_matches:
            return
        keys = matches.key.tolist()
        if self._program.skip is None:
            for key, end in zip(keys, matches.positions[matches.offsets[1:] - 1].tolist(), strict=True):
                self._ends[key].add(end)
            return
        for k, key in enumerate(keys):
            own = slice(int(matches.offsets[k]), int(matches.offsets[k + 1]))
            self._chosen[key].append((matches.positions[own], matches.labels[own]))

    def _dropped(self, key: int, starts: IntArray, events: KeyEvents) -> AnyArray:
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
        fits = [bool(inside(a, b, window.size, window.strict)) for a, b in zip(since, until, strict=True)]
        return lost & np.array(fits, np.bool_)
