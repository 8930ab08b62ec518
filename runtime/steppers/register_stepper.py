"""Runs that hold values: the stepper of registers.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from runtime import capacities
from runtime.arrays import AnyArray
from runtime.chain_cea import LATE, NOBODY, ONLY_NEAR, Registers
from runtime.compact_set.store import Store
from runtime.program import Program
from runtime.relations import arithmetic_error
from runtime.steppers import happened, leading, ordered, registers, relation_ops, run_table
from runtime.steppers.latest_start import LatestStart
from runtime.steppers.meanwhile import MEASURE, Meanwhile
from runtime.steppers.pending import (
    DONE,
    NEEDS_ENTRIES,
    NEEDS_HAPPENED,
    NEEDS_NODES,
    NEEDS_ORDERED,
    NEEDS_PENDING,
    NEEDS_RECORDS,
    NEEDS_ROOTS,
)
from runtime.steppers.register_runs import BOTH_STAY, NEXT_BEST, TOGETHER, Automaton, Options, Runs, new_pending
from runtime.steppers.stepper import Feed, Stepper
from runtime.steppers.window_begins import WindowBegins

NEVER = int(np.iinfo(np.int64).max)  # after all positions


class RegisterStepper(Stepper):
    """Runs Registers. `logs`: every move is a root, so that runs can be watched."""

    def __init__(self, program: Program, store: Store, logs: bool = False) -> None:
        super().__init__(store)
        machine = program.machine
        assert isinstance(machine, Registers)
        self._program, self._n_registers = program, machine.n_registers
        own = [name for name in Automaton._fields if name not in ("relations", "words")]
        arrays = {name: getattr(machine, name) for name in own}
        self._relations = machine.relations
        self._automaton = Automaton(**arrays, relations=relation_ops.flat(machine.relations), words=program.words)
        self._index_of = machine.index_of
        self._late = bool(machine.special[LATE] != NOBODY)
        self._apart = BOTH_STAY if self._late else TOGETHER
        if machine.apart:
            self._apart = NEXT_BEST
        self._options = Options(machine.greedy, program.consume, self._apart, logs)
        self.looks_below = self._apart != TOGETHER
        store.whole = bool(self._apart)  # a run is inside the window as a whole or not at all
        latest = tuple(LatestStart((flat,), program.words) for flat in machine.inside)
        self._begins = WindowBegins(program.inner_windows, latest) if machine.places else None
        self._meanwhile = None
        if machine.meanwhile:
            self._meanwhile = Meanwhile(machine.meanwhile, program.window, program.words)
            store.measure(MEASURE)
        self._make(np.dtype(np.int64), 0)

    def _make(self, clock: np.dtype, key: int) -> None:
        """The tables, whose clocks have this type."""
        skip = self._program.skip
        skips = skip is not None and skip.waits and skip.to == "PAST LAST ROW"
        records = leading.new_leading(capacities.STARTS if skips else 0, clock)
        self._entries = run_table.new_entries(capacities.ENTRIES, self._n_registers, self._index_of, clock, records)
        self._entries.counts[run_table.KEY] = key
        n = 1 + int(self._automaton.ordered_of.max())
        pairs = bool((self._automaton.sorted_by[:, 1] != NOBODY).any())
        self._ordered = ordered.new_ordered(n, capacities.ORDERED, clock, pairs)
        kinds, checks = len(self._automaton.early.guard), len(self._automaton.early.kind)
        self._happened = happened.new_happened(kinds, checks, capacities.HAPPENED, clock)
        self._pending = new_pending(capacities.PENDING, self._n_registers, clock)

    # ------------------------------------------------------------ reading

    def measured(self, feed: Feed) -> Feed:
        """See Stepper.measured."""
        return feed if self._meanwhile is None else feed._replace(clocks=self._meanwhile.clocks(feed))

    def read(self, feed: Feed) -> Iterator[None]:
        """See Stepper.read. ExecutionError ARITHMETIC where Spark would fail."""
        store, at = self.store, 0
        if feed.symbols.ndim == 1:
            feed = feed._replace(symbols=feed.symbols[:, None])
        symbols = feed.symbols
        if self._begins is not None:
            feed = feed.relevant() if self._automaton.words == 1 else feed
            symbols = self._begins.added(feed)
        feed = feed.without_times(np.ascontiguousarray(symbols))
        if self._meanwhile is not None:
            feed = feed._replace(times=feed.positions)
        if feed.clocks.dtype != self._entries.start.dtype:
            self._make(feed.clocks.dtype, int(self._entries.counts[run_table.KEY]))
        while True:
            entries = self._entries
            runs = Runs(entries, self._ordered, self._happened, self._pending)
            result, at = registers.step_kernel(store.space, self._automaton, runs, at, feed, self._options)
            failed = int(self._automaton.relations.error[0])
            if failed != relation_ops.NO_ERROR:
                raise arithmetic_error(self._relations[failed].shown)
            if at:
                store.now = feed.clocks[at - 1]
            store.n_roots = int(entries.counts[run_table.N_ROOTS])
            yield
            store.n_roots = entries.counts[run_table.N_ROOTS] = 0
            if result == DONE:
                return
            self._bring(result, feed.clocks[at], at)
            store.listed_before(at, result == NEEDS_ROOTS)

    def _bring(self, result: int, now: Any, at: int) -> None:
        """What the kernel lacks before event `at`, whose clock is `now`."""
        if result == NEEDS_NODES:
            self.store.make_room(now, at)
            self._room_for_groups()
        elif result == NEEDS_ENTRIES:
            self._more_entries(now)
        elif result == NEEDS_ORDERED:
            self._more_ordered(now)
        elif result == NEEDS_HAPPENED:
            self._happened = happened.with_room(self._automaton.early, self._happened, capacities.HAPPENED)
        elif result == NEEDS_RECORDS:
            self._entries = self._entries._replace(leading=leading.roomier(self._entries.leading))
        elif result == NEEDS_PENDING:
            room = 2 * len(self._pending.at)
            self._pending = new_pending(room, self._n_registers, self._entries.start.dtype)

    def _room_for_groups(self) -> None:
        """Groups are made anew when the arena is compacted, so it is to have room for four times as many nodes as they
        are: else that would be most of the work."""
        levels = self._ordered.groups.value.shape[1]
        wanted = min(4 * levels * int(ordered.held(self._ordered)), capacities.MOST_FOR_GROUPS)
        while len(self.store.arena.row) < wanted:
            self.store.grow()

    def _more_entries(self, now: Any) -> None:
        """Without those that have left the window; with more room, if these are few or more than half have not."""
        entries = self._entries
        self._sweep(now)
        run_table.rebuild(entries)
        most = max(capacities.FEW_ENTRIES, 2 * entries.counts[run_table.N_USED])
        if len(entries.node) < most or self._wanting == entries.counts[run_table.SERIAL]:
            entries = run_table.grown_entries(entries)
        self._wanting = entries.counts[run_table.SERIAL] + 1  # the next look at this very event
        self._entries = entries

    _wanting = _ordering = -1

    def _sweep(self, now: Any) -> None:
        """Drop entries that have left the window; what waited for that is let out, as roots."""
        entries, store = self._entries, self.store
        if self._late:
            store.more_roots(store.n_roots + int(entries.counts[run_table.N_USED]))
        run_table.sweep(store.space, self._automaton, entries, now)

    def _more_ordered(self, now: Any) -> None:
        """Without what has left the window; with more room, if half of it has not, or this event has more for it."""
        store, sorted_, serial = self.store, self._ordered, self._entries.counts[run_table.SERIAL]
        ordered.sweep_ordered(store.arena, sorted_, now, store.bounds)
        if 2 * sorted_.ends[:, ordered.END].max() > sorted_.value.shape[1] or self._ordering == serial:
            self._ordered = ordered.grown_ordered(sorted_)
        self._ordering = serial + 1  # the next look at this very event

    # ------------------------------------------------------------ keys and starts

    def end_key(self) -> None:
        """See Stepper.end_key."""
        if self._late:
            store, counts = self.store, self._entries.counts
            store.more_roots(2 * int(counts[run_table.N_USED]))
            run_table.end_key(self._automaton, self._entries, store.roots)
            store.n_roots = int(counts[run_table.N_ROOTS])
            counts[run_table.N_ROOTS] = 0

    def begin_key(self, key: int) -> None:
        """See Stepper.begin_key."""
        if self._begins is not None:
            self._begins.begin_key(key)
        if self._meanwhile is not None:
            self._meanwhile.begin_key(key)
        run_table.forget_all(self._entries)
        leading.forget_leading(self._entries.leading)
        self._entries.counts[run_table.KEY], self._entries.counts[run_table.LAST_POSITION] = key, -1

    def least_start(self) -> int:
        """See Stepper.least_start."""
        entries = self._entries
        self._sweep(self.store.clock.type(self.store.now))
        alive = entries.at >= 0
        near = self._automaton.near[np.maximum(entries.at, 0)] == ONLY_NEAR
        # The kernel may have stopped before what it calls the last position.
        alive &= ~near | (entries.last >= entries.counts[run_table.LAST_POSITION] - 1)
        return int(entries.registers[alive, -1].min(initial=NEVER))

    # ------------------------------------------------------------ its nodes: those of entries, and of ordered runs

    def prune(self, now: Any) -> None:
        """See Holder.prune."""
        ordered.sweep_ordered(self.store.arena, self._ordered, now, self.store.bounds)

    def _items(self) -> list[tuple[int, slice]]:
        """Where the nodes of the ordered runs stand."""
        return [(x, slice(0, int(end))) for x, end in enumerate(self._ordered.ends[:, ordered.END])]

    def held(self) -> AnyArray:
        """See Holder.held."""
        found: AnyArray = np.concatenate(
            [self._entries.node[self._entries.at >= 0], *(self._ordered.node[item] for item in self._items())]
        )
        return found

    def renumber(self, forward: AnyArray) -> None:
        """See Holder.renumber."""
        entries = self._entries
        used = entries.at >= 0
        entries.node[used] = forward[entries.node[used]]
        for item in self._items():
            self._ordered.node[item] = forward[self._ordered.node[item]]
