"""The engine around the kernels of cea.py: owns allocation and growth, fills the table, lists matches, snapshots.

The kernels stop when something is missing and say what; the loop here brings it and lets them go on at the same event.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np

from runtime.arrays import AnyArray, IntArray, grown
from runtime.automata.determinize import SubsetTable
from runtime.automata.determinize_composed import subsets_of
from runtime.automata.symbols import Classes
from runtime.compact_set import tecs as ecs
from runtime.compact_set.matches import Matches
from runtime.errors import ExecutionError
from runtime.program import FORMAT, Program
from runtime.steppers import cea

FIRST_NODES = 1 << 16
FIRST_ROOTS = 1 << 15
CHUNK_MATCHES = 1 << 14
CHUNK_EVENTS = 1 << 17
NO_KEYS: IntArray = np.zeros(0, np.int64)
ALL_REPORT: AnyArray = np.zeros(0, np.bool_)


class TableBuilder:
    """The rows of the determinized automaton that the data asked for, as arrays that grow."""

    def __init__(self, subsets: SubsetTable) -> None:
        self._subsets = subsets
        self.n_rows = 0
        self.n_edges = 0
        self.table = cea.Table(
            row_of=np.full((8, 8), -1, np.int32),
            first=np.zeros(16, np.int32),
            last=np.zeros(16, np.int32),
            skip=np.zeros(16, np.int32),
            quiet=np.zeros(16, np.bool_),
            label=np.zeros(16, np.int32),
            target=np.zeros(16, np.int32),
            accept=np.zeros(16, np.bool_),
        )

    def fit(self, n_classes: int) -> None:
        """Room in row_of for all states and classes met so far."""
        states, classes = self.table.row_of.shape
        n_states = len(self._subsets.members)
        if n_states <= states and n_classes <= classes:
            return
        wider = np.full((max(states, 2 * n_states), max(classes, 2 * n_classes)), -1, np.int32)
        wider[:states, :classes] = self.table.row_of
        self.table = self.table._replace(row_of=wider)

    def add(self, state: int, klass: int, symbol: tuple[int, ...]) -> None:
        """Make the row of a state and class."""
        row = self._subsets.row(state, symbol)
        table = self.table
        if self.n_rows == len(table.first):
            for name in ("first", "last", "skip", "quiet"):
                table = table._replace(**{name: grown(getattr(table, name), 2 * self.n_rows)})
        while self.n_edges + len(row.moves) > len(table.label):
            for name in ("label", "target", "accept"):
                table = table._replace(**{name: grown(getattr(table, name), 2 * len(getattr(table, name)))})
        table.first[self.n_rows] = self.n_edges
        for label, target, accept in row.moves:
            table.label[self.n_edges], table.target[self.n_edges] = label, target
            table.accept[self.n_edges] = accept
            self.n_edges += 1
        table.last[self.n_rows] = self.n_edges
        table.skip[self.n_rows] = row.skip
        table.quiet[self.n_rows] = not row.moves and row.skip == state
        table.row_of[state, klass] = self.n_rows
        self.n_rows += 1
        self.table = table


class CeaEngine:
    """Runs a plain CEA (see runtime.engine.Engine for the contract)."""

    def __init__(self, program: Program) -> None:
        self._program = program
        window = program.window
        self._by_position = window is None or window.kind == "events"
        self._subsets: SubsetTable = self._states_of(program)
        self._classes = Classes(len(program.guards), program.words)
        self._builder = TableBuilder(self._subsets)
        self._live = cea.new_live(8)
        self._walk = ecs.new_walk(256)
        self._counts = ecs.new_counts(1)
        self._arena: ecs.Arena | None = None  # its dtype is the first batch's
        self._clock = np.dtype(np.int64)
        self._strict = bool(window and window.strict)
        self._width: Any = np.int64(2**63 - 1) if window is None else np.int64(window.size)
        self._roots: ecs.Roots = self._new_roots(FIRST_ROOTS)

    def _states_of(self, program: Program) -> SubsetTable:
        return subsets_of(program)

    # ------------------------------------------------------------ the contract

    def feed(
        self,
        symbols: AnyArray,
        times: AnyArray,
        positions: IntArray | None = None,
        keys: IntArray | None = None,
        rows: IntArray | None = None,
        mute: AnyArray | None = None,
    ) -> Iterator[Matches]:
        """See Engine.feed."""
        for _ in self._steps(symbols, times, positions, keys, rows, mute):
            yield from self._enumerate()

    def count(
        self,
        symbols: AnyArray,
        times: AnyArray,
        positions: IntArray | None = None,
        keys: IntArray | None = None,
        mute: AnyArray | None = None,
    ) -> int:
        """See Engine.count."""
        return sum(self._count_roots() for _ in self._steps(symbols, times, positions, keys, None, mute))

    def flush(self) -> Iterator[Matches]:
        """Nothing waits for the end of the stream in a plain CEA."""
        return iter(())

    def least_row(self) -> int:
        """See Engine.least_row. Compacts the arena. O(nodes)."""
        counts = self._live.counts
        if self._arena is None or counts[cea.N_LIVE] == 0:
            return int(np.iinfo(np.int64).max)
        return self._compact(self._last_clock)

    @property
    def nodes(self) -> int:
        """Nodes in the arena, for statistics."""
        return 0 if self._arena is None else int(self._arena.size[0])

    # ------------------------------------------------------------ reading

    def _steps(
        self,
        symbols: AnyArray,
        times: AnyArray,
        positions: IntArray | None,
        keys: IntArray | None,
        rows: IntArray | None,
        mute: AnyArray | None,
    ) -> Iterator[None]:
        """Run the kernel; yields whenever there may be roots to list before it can go on."""
        n = len(symbols)
        if n == 0:
            return
        if positions is None:
            positions = next_positions(self._live.counts, n, keys)
        clocks = positions if self._by_position else self._as_clock(times)
        rows = positions if rows is None else rows
        keys = NO_KEYS if keys is None else keys
        mute = ALL_REPORT if mute is None else mute
        classes = self._classes.of(symbols)
        arena = self._ready(clocks)
        at, self._crowded = 0, -1
        while True:
            self._builder.fit(len(self._classes.symbols))
            self._fit_live()
            result, at = cea.step_kernel(
                arena, self._builder.table, self._live, self._roots, at,
                classes, positions, rows, clocks, keys, mute, self._width, self._strict,
            )  # fmt: skip
            if result == cea.NEEDS_ROW:
                self._add_row()
                continue
            yield
            self._live.counts[cea.N_ROOTS] = 0
            if result == cea.DONE:
                self._last_clock = clocks[-1]
                return
            if result == cea.NEEDS_NODES:
                arena = self._make_room(clocks[at], at)
            elif result == cea.NEEDS_ROOTS and at == self._stuck:
                self._roots = self._new_roots(2 * len(self._roots.node))
            self._stuck = at if result == cea.NEEDS_ROOTS else -1

    _stuck = -1  # the event before which there was no room for roots …
    _crowded = -1  # … and for nodes
    _last_clock: Any = 0

    def _as_clock(self, times: AnyArray) -> AnyArray:
        dtype = np.float64 if np.issubdtype(times.dtype, np.floating) else np.int64
        return np.ascontiguousarray(times, dtype)

    def _ready(self, clocks: AnyArray) -> ecs.Arena:
        """The arena, made when the first batch shows the clock's type."""
        if self._arena is None:
            self._clock = clocks.dtype
            if self._clock == np.float64:
                assert self._program.window is not None
                self._width = np.float64(self._program.window.size)
                self._roots = self._new_roots(FIRST_ROOTS)
            self._arena = ecs.new_arena(FIRST_NODES, self._clock)
        return self._arena

    def _new_roots(self, capacity: int) -> ecs.Roots:
        return ecs.Roots(np.zeros(capacity, np.int32), np.zeros(capacity, self._clock), np.zeros(capacity, np.int64))

    def _add_row(self) -> None:
        counts = self._live.counts
        state, klass = int(counts[cea.WANTED_STATE]), int(counts[cea.WANTED_CLASS])
        self._builder.add(state, klass, self._classes.symbols[klass])

    def _fit_live(self) -> None:
        n_states = len(self._subsets.members)
        if n_states > self._live.state.shape[1]:
            self._live = cea.grown_live(self._live, 2 * n_states)

    # ------------------------------------------------------------ the arena

    def _live_lists(self) -> tuple[AnyArray, list[tuple[int, int]]]:
        """All nodes in union lists, and the (slot, length) of each list."""
        counts, live = self._live.counts, self._live
        side = counts[cea.SIDE]
        slots = [(k, int(live.length[side, k])) for k in range(counts[cea.N_LIVE])]
        nodes = [live.nodes[side, k, :length] for k, length in slots]
        return (np.concatenate(nodes) if nodes else np.zeros(0, np.int32)), slots

    def _compact(self, now: Any) -> int:
        """Drop every node that no live state reaches inside the window. Returns the least row still mentioned."""
        assert self._arena is not None
        live, side = self._live, self._live.counts[cea.SIDE]
        for k in range(live.counts[cea.N_LIVE]):
            cea.prune(self._arena, live, side, k, now, self._width, self._strict)
        self._drop_empty()
        roots, slots = self._live_lists()
        forward = np.zeros(int(self._arena.size[0]), np.int32)
        ecs.mark_kernel(self._arena, roots, len(roots), now, self._width, self._strict, forward)
        least = ecs.slide_kernel(self._arena, now, self._width, self._strict, forward)
        for k, length in slots:
            live.nodes[side, k, :length] = forward[live.nodes[side, k, :length]]
        return int(least)

    def _drop_empty(self) -> None:
        """Take states whose whole list has left the window out of the live ones."""
        live, counts = self._live, self._live.counts
        side, kept = counts[cea.SIDE], 0
        for k in range(counts[cea.N_LIVE]):
            if live.length[side, k] == 0:
                continue
            live.state[side, kept] = live.state[side, k]
            live.length[side, kept] = live.length[side, k]
            live.nodes[side, kept] = live.nodes[side, k]
            kept += 1
        counts[cea.N_LIVE] = kept

    def _make_room(self, now: Any, at: int) -> ecs.Arena:
        """Compact before event `at`, and double the arena if more than half of it is alive (so that compacting is
        amortized O(1)), or if what compacting left was not enough for this one event of many live states."""
        assert self._arena is not None
        self._compact(now)
        if at == self._crowded or 2 * self._arena.size[0] > len(self._arena.row) - 4096:
            self._arena = ecs.grown_arena(self._arena, 2 * len(self._arena.row))
        self._crowded = at
        return self._arena

    # ------------------------------------------------------------ output

    def _enumerate(self) -> Iterator[Matches]:
        """The matches of all roots, in chunks that stay small whatever there is to list."""
        n_roots = int(self._live.counts[cea.N_ROOTS])
        if n_roots == 0:
            return
        assert self._arena is not None
        self._walk.top[0] = 0
        events, root, result = CHUNK_EVENTS, 0, ecs.LISTING_FULL
        while result != ecs.FINISHED:
            listing = new_listing(events, root)
            while True:
                result = ecs.enumerate_kernel(
                    self._arena, self._walk, self._roots, n_roots, self._width, self._strict, listing
                )
                if result != ecs.WALK_FULL:
                    break
                self._walk = ecs.grown_walk(self._walk)
            n, root = int(listing.state[0]), int(listing.state[1])
            if n == 0 and result == ecs.LISTING_FULL:
                events *= 2  # a single match is longer than the chunk
                continue
            if n:
                end = int(listing.offsets[n])
                yield Matches(n, listing.offsets[: n + 1], listing.row[:end], listing.label[:end], listing.key[:n])

    def _count_roots(self) -> int:
        n_roots = int(self._live.counts[cea.N_ROOTS])
        if n_roots == 0:
            return 0
        assert self._arena is not None
        total, at = np.zeros(1, np.int64), 0
        if len(self._counts.number) < len(self._arena.row):
            self._counts = ecs.new_counts(len(self._arena.row))
        while at != n_roots:
            at = self._count_part(at, n_roots, total)
            if at == ecs.OVERFLOW:
                raise ExecutionError(
                    "COUNT_OVERFLOW", hint="Bound the pattern with WITHIN, or its loops by conditions."
                )
            if at != n_roots:
                self._walk = ecs.grown_walk(self._walk)
        return int(total[0])

    def _count_part(self, begin: int, n_roots: int, total: IntArray) -> int:
        """Add the matches of roots to total[0]; the root where the walk's stack was too short, n_roots, or OVERFLOW."""
        stack = self._walk.stack_node
        at: int = ecs.count_kernel(
            self._arena, self._roots, begin, n_roots, self._width, self._strict, stack, self._counts, total
        )
        return at

    # ------------------------------------------------------------ snapshots

    def snapshot(self) -> bytes:
        """The state, compacted: live lists by the subsets they belong to, and the nodes they reach."""
        counts = self._live.counts
        if self._arena is not None:
            self._compact(self._last_clock)
        nodes, slots = self._live_lists()
        size = self.nodes
        states = self._live.state[counts[cea.SIDE], : counts[cea.N_LIVE]].tolist()
        return pickle.dumps(
            {
                "format": FORMAT,
                "states": [self._subsets.members[state] for state in states],
                "lists": nodes,
                "lengths": [length for _, length in slots],
                "arena": None if self._arena is None else [column[:size].copy() for column in self._arena[:-1]],
                "position": int(counts[cea.LAST_POSITION]),
                "key": int(counts[cea.KEY]),
                "start": self._started(),
                "clock": self._last_clock,
            }
        )

    def _started(self) -> Any:
        """The members of the state of the run that has not begun, or None if it is dead."""
        state = int(self._live.counts[cea.START_STATE])
        return None if state < 0 else self._subsets.members[state]

    def restore(self, data: bytes) -> None:
        """Go on where `snapshot` was taken. ExecutionError SNAPSHOT_VERSION for another format."""
        state = pickle.loads(data)
        if state["format"] != FORMAT:
            raise ExecutionError("SNAPSHOT_VERSION", found=state["format"], expected=FORMAT)
        self._live = cea.new_live(8)
        self._last_clock = state["clock"]
        numbers = [self._subsets.intern(members) for members in state["states"]]
        self._fit_live()
        counts, side = self._live.counts, 0
        at = 0
        for k, (number, length) in enumerate(zip(numbers, state["lengths"], strict=True)):
            self._live.state[side, k] = number
            self._live.length[side, k] = length
            self._live.nodes[side, k, :length] = state["lists"][at : at + length]
            at += length
        counts[cea.N_LIVE] = len(numbers)
        counts[cea.LAST_POSITION], counts[cea.KEY] = state["position"], state["key"]
        counts[cea.START_STATE] = -1 if state["start"] is None else self._subsets.intern(state["start"])
        self._fit_live()
        self._arena = None
        if state["arena"] is not None:
            self._restore_arena(state["arena"])

    def _restore_arena(self, columns: list[AnyArray]) -> None:
        """The arena of a snapshot, with room for as many nodes again."""
        arena = self._ready(columns[-1])
        capacity = max(FIRST_NODES, 2 * len(columns[0]))
        self._arena = ecs.Arena._make([*(grown(column, capacity) for column in columns), arena.size])
        self._arena.size[0] = len(columns[0])


def next_positions(counts: AnyArray, n: int, keys: IntArray | None) -> IntArray:
    """Consecutive positions, going on where the last feed stopped (`counts`), from 0 for each new key."""
    index = np.arange(n, dtype=np.int64)
    if keys is None:
        return index + (counts[cea.LAST_POSITION] + 1)
    borders = np.flatnonzero(np.diff(keys)) + 1
    starts = np.zeros(n, np.int64)
    starts[borders] = borders
    positions = index - np.maximum.accumulate(starts)
    if keys[0] == counts[cea.KEY]:
        end = borders[0] if len(borders) else n
        positions[:end] += counts[cea.LAST_POSITION] + 1
    return positions


def new_listing(events: int, root: int) -> ecs.Listing:
    """Room for a chunk of matches with so many events in all, from that root on."""
    return ecs.Listing(
        offsets=np.zeros(CHUNK_MATCHES + 1, np.int64),
        row=np.empty(events, np.int64),
        label=np.empty(events, np.int32),
        key=np.empty(CHUNK_MATCHES, np.int64),
        state=np.array([0, root], np.int64),
    )
