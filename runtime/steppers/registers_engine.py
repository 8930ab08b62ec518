"""The engine around runtime.steppers.registers: owns allocation and growth, lists matches, snapshots."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np

from runtime import nodes
from runtime.arrays import AnyArray, IntArray
from runtime.automata.determinize import NoSubsets, SubsetTable
from runtime.compact_set import picking
from runtime.compact_set import tecs as ecs
from runtime.compact_set.matches import Matches
from runtime.errors import ExecutionError
from runtime.program import FORMAT, Program
from runtime.relations import arithmetic_error
from runtime.steppers import cea, happened, leading, ordered, registers, relation_ops, run_table
from runtime.steppers.cea_engine import ALL_REPORT, NO_KEYS, CeaEngine, next_positions

FIRST_ENTRIES = 1 << 8
FEW_ENTRIES = 1 << 10  # up to here a table that is full grows: to look for what has left the window so often costs more


class RegistersEngine(CeaEngine):
    """Runs nodes.Registers (see runtime.engine.Engine for the contract)."""

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        machine = program.machine
        assert isinstance(machine, nodes.Registers)
        self._n_registers = machine.n_registers
        arrays = {name: getattr(machine, name) for name in registers.Automaton._fields if name != "relations"}
        self._relations = machine.relations
        self._automaton = registers.Automaton(**arrays, relations=relation_ops.flat(machine.relations))
        self._index_of, self._greedy = machine.index_of, machine.greedy
        self._late = bool(machine.special[nodes.LATE] != nodes.NOBODY)
        self._apart = registers.BOTH_STAY if self._late else registers.TOGETHER
        if machine.apart:
            self._apart = registers.NEXT_BEST
        self._entries: run_table.Entries | None = None
        self._ordered: ordered.Ordered | None = None
        self._early, self._happened = machine.early, happened.new_happened(0, 0, 1, np.dtype(np.int64))
        self._pending: registers.Pending | None = None

    def _states_of(self, program: Program) -> SubsetTable:
        return NoSubsets()

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
        symbols = np.ascontiguousarray(symbols if symbols.ndim == 2 else symbols[:, None])
        arena, at, words = self._ready(clocks), 0, self._program.words
        self._crowded = -1
        while True:
            entries, sorted_, pending = self._room(clocks.dtype)
            result, at = registers.step_kernel(
                arena, self._automaton, self._early, entries, sorted_, self._happened, pending, self._roots, at,
                symbols, words, positions, rows, clocks, keys, mute, self._width, self._strict,
                self._greedy, self._program.consume, self._apart,
            )  # fmt: skip
            failed = int(self._automaton.relations.error[0])
            if failed != relation_ops.NO_ERROR:
                raise arithmetic_error(self._relations[failed].shown)
            self._live.counts[cea.N_ROOTS] = entries.counts[run_table.N_ROOTS]
            self._live.counts[cea.LAST_POSITION] = entries.counts[run_table.LAST_POSITION]
            self._live.counts[cea.KEY] = entries.counts[run_table.KEY]
            if at:
                self._last_clock = clocks[at - 1]
            size = int(arena.size[0])
            if self._program.pick != "ALL":
                arena = self._arena = self._picked(arena)
            yield
            self._drop_copies(size)
            self._live.counts[cea.N_ROOTS] = entries.counts[run_table.N_ROOTS] = 0
            if result == registers.DONE:
                return
            if result == registers.NEEDS_NODES:
                arena = self._make_room(clocks[at], at)
            elif result == registers.NEEDS_ENTRIES:
                self._entries = self._more_entries(entries, clocks[at])
            elif result == registers.NEEDS_ORDERED:
                self._ordered = self._more_ordered(sorted_, clocks[at])
            elif result == registers.NEEDS_HAPPENED:
                self._happened = happened.with_room(self._early, self._happened, FIRST_ENTRIES)
            elif result == registers.NEEDS_RECORDS:
                self._entries = entries._replace(leading=leading.roomier(entries.leading))
            elif result == registers.NEEDS_PENDING:
                self._pending = registers.new_pending(2 * len(pending.at), self._n_registers, clocks.dtype)
            elif at == self._stuck:
                self._roots = self._new_roots(2 * len(self._roots.node))
            self._stuck = at if result == registers.NEEDS_ROOTS else -1

    def _picked(self, arena: ecs.Arena) -> ecs.Arena:
        """Only the roots that win; the arena, larger perhaps, with what these are behind its nodes."""
        counts, rule = self._live.counts, picking.RULES[self._program.pick]
        n, begin, kept, result = int(counts[cea.N_ROOTS]), 0, 0, picking.NEEDS_NODES if self._picks is None else -1
        while result != picking.PICKED:
            if result == picking.NEEDS_NODES and self._picks is not None:
                arena = ecs.grown_arena(arena, 2 * len(arena.row))
            if self._picks is None or len(self._picks.best) < len(arena.row):
                stack = 1 << 12 if self._picks is None else len(self._picks.stack)
                copies = None if self._picks is None else self._picks.original
                self._picks = picking.new_picks(len(arena.row), stack)
                if copies is not None:
                    self._picks.original[: len(copies)] = copies
            if result == picking.NEEDS_STACK:
                self._picks = self._picks._replace(stack=np.zeros(2 * len(self._picks.stack), np.int32))
            result, begin, kept = picking.pick_kernel(
                arena, self._picks, self._roots, begin, n, kept, self._width, self._strict, rule
            )
        counts[cea.N_ROOTS] = kept
        return arena

    def _drop_copies(self, size: int) -> None:
        """The nodes of what was picked, which nothing else knows."""
        if self._picks is not None and self._arena is not None:
            used = int(self._arena.size[0])
            self._picks.original[size:used] = np.arange(size, used)
            self._arena.size[0] = size

    _picks: picking.Picks | None = None

    def _more_entries(self, entries: run_table.Entries, now: Any) -> run_table.Entries:
        """Without those that have left the window; with more room, if these are few or more than half have not."""
        self._have_roots_for(entries)
        run_table.sweep(self._automaton, entries, self._roots, now, self._width, self._strict)
        run_table.rebuild(entries)
        most = max(FEW_ENTRIES, 2 * entries.counts[run_table.N_USED])
        if len(entries.node) < most or self._wanting == entries.counts[run_table.SERIAL]:
            entries = run_table.grown_entries(entries)
        self._wanting = entries.counts[run_table.SERIAL] + 1  # the next look at this very event
        return entries

    _wanting = -1

    def _have_roots_for(self, entries: run_table.Entries) -> None:
        """Room for all that waits; none are to be listed now."""
        if self._late and len(self._roots.node) < entries.counts[run_table.N_USED]:
            self._roots = self._new_roots(2 * int(entries.counts[run_table.N_USED]))

    def flush(self) -> Iterator[Matches]:
        """See Engine.flush."""
        if self._late and self._entries is not None:
            self._have_roots_for(self._entries)
            run_table.end_key(self._automaton, self._entries, self._roots)
            self._live.counts[cea.N_ROOTS] = self._entries.counts[run_table.N_ROOTS]
            yield from self._enumerate()
            self._live.counts[cea.N_ROOTS] = self._entries.counts[run_table.N_ROOTS] = 0

    def _more_ordered(self, sorted_: ordered.Ordered, now: Any) -> ordered.Ordered:
        """Without what has left the window; with more room, if more than half of it has not."""
        ordered.sweep_ordered(self._arena, sorted_, now, self._width, self._strict)
        if 2 * (sorted_.ends[:, ordered.END].max() + FIRST_ENTRIES) > sorted_.value.shape[1]:
            return ordered.grown_ordered(sorted_)
        return sorted_

    def _room(self, clock: np.dtype) -> tuple[run_table.Entries, ordered.Ordered, registers.Pending]:
        if self._entries is None:
            skips = self._program.skip is not None and self._program.skip.to == "PAST LAST ROW"
            records = leading.new_leading(FIRST_ENTRIES if skips else 0, clock)
            self._entries = run_table.new_entries(FIRST_ENTRIES, self._n_registers, self._index_of, clock, records)
            self._entries.counts[run_table.KEY] = self._live.counts[cea.KEY]
        if self._ordered is None:
            n = 1 + int(self._automaton.ordered_of.max())
            self._ordered = ordered.new_ordered(n, 4 * FIRST_ENTRIES, clock)
            kinds, checks = len(self._early.guard), len(self._early.kind)
            self._happened = happened.new_happened(kinds, checks, FIRST_ENTRIES, clock)
        if self._pending is None:
            self._pending = registers.new_pending(FIRST_ENTRIES, self._n_registers, clock)
        return self._entries, self._ordered, self._pending

    def least_row(self) -> int:
        """See Engine.least_row. Compacts the arena. O(nodes)."""
        if self._arena is None or self._entries is None or self._ordered is None:
            return int(np.iinfo(np.int64).max)
        if self._entries.counts[run_table.N_USED] == 0 and not self._ordered.ends[:, ordered.N_BLOCKS].any():
            return int(np.iinfo(np.int64).max)
        return self._compact(self._last_clock)

    def _compact(self, now: Any) -> int:
        """Drop every node that no run reaches inside the window. Returns the least row still mentioned."""
        assert self._arena is not None
        assert self._entries is not None
        assert self._ordered is not None
        ordered.sweep_ordered(self._arena, self._ordered, now, self._width, self._strict)
        held = np.flatnonzero(self._entries.at >= 0)
        items = [(x, slice(0, int(end))) for x, end in enumerate(self._ordered.ends[:, ordered.END])]
        nodes_held = [self._entries.node[held], *(self._ordered.node[item] for item in items), self._kept_nodes()]
        roots = np.concatenate(nodes_held)
        forward = np.zeros(int(self._arena.size[0]), np.int32)
        # Apart, a run is inside the window as a whole or not at all; and what is kept is not asked.
        width = self._ever if self._apart else self._width
        ecs.mark_kernel(self._arena, roots, len(roots), now, width, self._strict, forward)
        least = ecs.slide_kernel(self._arena, now, self._width, self._strict, forward)
        self._entries.node[held] = forward[self._entries.node[held]]
        for item in items:
            self._ordered.node[item] = forward[self._ordered.node[item]]
        self._renumber(forward)
        return int(least)

    def _kept_nodes(self) -> AnyArray:
        """What else must stay in the arena …"""
        return np.zeros(0, np.int32)

    def _renumber(self, forward: AnyArray) -> None:
        """… and its new numbers."""

    @property
    def _ever(self) -> Any:
        """The width of a window that nothing leaves."""
        return np.float64(np.inf) if self._clock == np.float64 else np.int64(np.iinfo(np.int64).max)

    # ------------------------------------------------------------ snapshots

    def snapshot(self) -> bytes:
        """The state, compacted. Codes of terms must mean the same to whoever restores it."""
        entries = self._entries
        if entries is None or self._arena is None or self._ordered is None:
            return pickle.dumps({"format": FORMAT, "entries": None})
        self._compact(self._last_clock)
        held = np.flatnonzero(entries.at >= 0)
        columns = {name: getattr(entries, name)[held] for name in ("registers", "node", "start", "last", "at")}
        return pickle.dumps(
            {
                "format": FORMAT,
                "entries": columns,
                "ordered": self._ordered_columns(),
                "arena": [column[: self.nodes].copy() for column in self._arena[:-1]],
                "position": int(entries.counts[run_table.LAST_POSITION]),
                "key": int(entries.counts[run_table.KEY]),
                "clock": self._last_clock,
                "happened": self._happened,
                "leading": entries.leading,
            }
        )

    def _ordered_columns(self) -> dict[str, AnyArray]:
        assert self._ordered is not None
        n = int(self._ordered.ends[:, ordered.END].max(initial=0))
        items = {name: getattr(self._ordered, name)[:, :n].copy() for name in ("value", "node")}
        return items | {name: getattr(self._ordered, name).copy() for name in ("begin", "latest", "ends")}

    def restore(self, data: bytes) -> None:
        """Go on where `snapshot` was taken. ExecutionError SNAPSHOT_VERSION for another format."""
        state = pickle.loads(data)
        if state["format"] != FORMAT:
            raise ExecutionError("SNAPSHOT_VERSION", found=state["format"], expected=FORMAT)
        self._entries = self._arena = self._ordered = None
        if state["entries"] is None:
            return
        columns = state["arena"]
        self._restore_arena(columns)
        entries, sorted_, _ = self._room(columns[-1].dtype)
        while sorted_.value.shape[1] < state["ordered"]["value"].shape[1]:
            sorted_ = ordered.grown_ordered(sorted_)
        self._ordered = sorted_
        for name, column in state["ordered"].items():
            getattr(sorted_, name)[:, : column.shape[1]] = column
        n = len(state["entries"]["node"])
        while len(entries.node) < n + 1:
            entries = run_table.grown_entries(entries)
        self._entries = entries = entries._replace(leading=state["leading"])
        for name, column in state["entries"].items():
            getattr(entries, name)[:n] = column
        for e in np.argsort(state["entries"]["last"], kind="stable"):  # the latest first in its list
            first = entries.head[entries.at[e]]
            entries.next[e], entries.previous[e] = first, nodes.NOBODY
            if first != nodes.NOBODY:
                entries.previous[first] = e
            entries.head[entries.at[e]] = e
        entries.next[n : len(entries.next) - 1] = np.arange(n + 1, len(entries.next))
        entries.next[-1] = nodes.NOBODY
        entries.counts[run_table.FREE], entries.counts[run_table.N_USED] = n, n
        run_table.rebuild(entries)
        counts = entries.counts
        counts[run_table.LAST_POSITION] = self._live.counts[cea.LAST_POSITION] = state["position"]
        counts[run_table.KEY] = self._live.counts[cea.KEY] = state["key"]
        self._happened = state["happened"]
        self._last_clock = state["clock"]
