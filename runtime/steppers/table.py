"""A table of deterministic states, filled where the data leads: the stepper around the kernel of cea.py.

The kernel stops when something is missing and says what; the loop here brings it and lets it go on at the same event.
Consumption and each start's own runs (for AFTER MATCH SKIP, and to watch how far starts come) are its business, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from runtime import capacities
from runtime.arrays import AnyArray, IntArray
from runtime.automata.determinize_composed import Composed, states_of
from runtime.automata.symbols import Classes
from runtime.compact_set.store import Store
from runtime.program import Program
from runtime.steppers import cea, leading
from runtime.steppers.absorbing import not_superfluous
from runtime.steppers.clock_table import ClockTable
from runtime.steppers.live import (
    FIRST,
    KEY,
    LAST_POSITION,
    N_LIVE,
    N_ROOTS,
    SIDE,
    START,
    WANTED,
    WANTED_STATE,
    begin_stream,
    grown_live,
    new_live,
)
from runtime.steppers.stepper import Feed, Stepper
from runtime.steppers.table_rows import TableBuilder
from runtime.steppers.union_lists import LIST_LENGTH, filled, merged_node, prune

NEVER = int(np.iinfo(np.int64).max)  # after all positions


class TableStepper(Stepper):
    """Runs a plain CEA, or a composed program. `logs`: every move is a root, so that runs can be watched."""

    def __init__(self, program: Program, store: Store, logs: bool = False) -> None:
        super().__init__(store)
        self._program = program
        self.by_key = program.ends_late
        self._states = states_of(program)
        self._classes = Classes(len(program.guards), program.words)
        self._rows = TableBuilder(self._states)
        self._live = new_live(capacities.LIVE_ENTRIES)
        self._clocks: ClockTable | None = None
        self._leading: leading.Leading | None = None
        self._options: cea.TableOptions | None = None
        if logs or program.family not in ("plain", "composed"):
            self._ask_for_clocks(logs)

    def _ask_for_clocks(self, logs: bool) -> None:
        program = self._program
        assert isinstance(self._states, Composed)
        self._clocks = ClockTable(self._states, program.inner_windows)
        # A match that becomes known late has another end than the event that made it known.
        past_last = program.skip is not None and program.skip.to == "PAST LAST ROW" and program.skip.waits
        skips = past_last and not program.ends_late
        self._options = cea.TableOptions(program.consume, logs, skips)
        self._leading = leading.new_leading(capacities.RECORDS if skips else 0, np.dtype(np.int64))
        self.absorbs = skips and not program.inner_windows and program.window is None

    def read(self, feed: Feed) -> Iterator[None]:
        """See Stepper.read."""
        classes = self._classes.of(feed.symbols)
        if self._clocks is None or self._leading is None:
            feed = feed.without_times(classes)
        else:
            feed = feed._replace(symbols=classes)
            self._clocks.begin(feed.times.dtype)
            if feed.times.dtype != self._leading.clock.dtype:
                self._leading = leading.new_leading(len(self._leading.start), feed.times.dtype)
        n = len(feed.times)
        piece = capacities.PIECE if self.absorbs else n
        for begin in range(0, n, piece):
            yield from self._read(feed if piece >= n else feed.part(begin, begin + piece))

    def _read(self, feed: Feed) -> Iterator[None]:
        store, at = self.store, 0
        while True:
            self._fit()
            clocks = None if self._clocks is None else self._clocks.clocks
            result, at = cea.step_kernel(
                store.space, self._rows.table, self._live, clocks, self._leading, at, feed, self._options
            )
            if self._brought(result):
                continue
            counts = self._live.counts
            store.n_roots = int(counts[N_ROOTS])
            yield
            store.n_roots = counts[N_ROOTS] = 0
            if result == cea.DONE:
                return
            if result == cea.NEEDS_NODES:
                store.make_room(feed.clocks[at], at)
            store.listed_before(at, result == cea.NEEDS_ROOTS)

    def _brought(self, result: int) -> bool:
        """Bring what the kernel stopped for; False, if its roots are to be dealt with before that."""
        counts = self._live.counts
        wanted = int(counts[WANTED])
        match result:
            case cea.NEEDS_ROW:
                self._rows.add(int(counts[WANTED_STATE]), wanted, self._classes.symbols[wanted])
            case cea.NEEDS_ENTRIES:
                self._live = grown_live(self._live, 2 * wanted)
            case cea.NEEDS_STATE:
                assert self._clocks is not None
                self._clocks.add_closed(int(counts[WANTED_STATE]), wanted)
            case cea.NEEDS_RECORDS:
                assert self._leading is not None
                self._leading = leading.roomier(self._leading)
            case cea.CONSUMED:
                self.drop_runs()
            case _:
                return False
        return True

    def _fit(self) -> None:
        """Room for all states, classes and clocks met so far."""
        self._rows.fit(len(self._classes.symbols))
        n_states, n_entries = len(self._states.members), self._live.state.shape[1]
        if self._clocks is not None:
            self._clocks.fit()
            self._clocks.fit_entries(n_entries, self._rows.n_clocks)
        elif n_states > n_entries:
            self._live = grown_live(self._live, 2 * n_states)

    def begin_key(self, key: int) -> None:
        """See Stepper.begin_key."""
        begin_stream(self._live, key)
        if self._leading is not None:
            leading.forget_leading(self._leading)

    def drop_runs(self) -> None:
        """See Stepper.drop_runs; the run that has not begun forgets what it has seen."""
        assert self._clocks is not None
        counts = self._live.counts
        counts[N_LIVE] = START + 1
        if counts[FIRST] == START:
            self._clocks.forget(self._live)

    # ------------------------------------------------------------ starts that have runs of their own

    def least_start(self) -> int:
        """See Stepper.least_start."""
        return int(self._begins().min(initial=NEVER))

    def _begins(self) -> IntArray:
        """For each entry but START the position at which it began, -1 where that is not known."""
        assert self._clocks is not None
        side, runs = self._runs()
        clock = self._clocks.clocks.of.begin[self._live.state[side, runs]]
        begins = self._clocks.clocks.position[side, np.arange(runs.start, runs.stop), np.maximum(clock, 0)]
        return np.where(clock < 0, -1, begins)

    def absorb(self, ends: Mapping[int, int]) -> None:
        """See Stepper.absorb, and runtime.steppers.absorbing."""
        side, runs = self._runs()
        if runs.stop - runs.start >= capacities.FEW_RUNS:
            self._keep(not_superfluous(self._begins(), self._live.state[side, runs], ends))

    # ------------------------------------------------------------ the end of a key

    def end_key(self) -> None:
        """Roots for what waits for the window to close: time has passed."""
        if not self._program.ends_late:
            return
        assert isinstance(self._states, Composed)
        live, store = self._live, self.store
        side, runs = self._runs()
        n = runs.stop - runs.start
        store.more_roots(n)
        while store.nodes + n * LIST_LENGTH > len(store.arena.row):
            store.grow()
        for k, begin in enumerate(self._begins().tolist(), start=runs.start):
            if self._states.at_end(int(live.state[side, k])):
                node = merged_node(store.arena, live, side, k)
                store.add_root(node, live.counts[KEY], begin, live.counts[LAST_POSITION])

    # ------------------------------------------------------------ its nodes: those in union lists

    def _runs(self) -> tuple[int, slice]:
        """The side where the entries are, and those that have begun."""
        counts = self._live.counts
        return int(counts[SIDE]), slice(START + 1, int(counts[N_LIVE]))

    def _keep(self, kept: AnyArray) -> None:
        """Drop the entries for which this is False."""
        side, runs = self._runs()
        places = runs.start + np.flatnonzero(kept)
        columns: list[AnyArray] = [self._live.state, self._live.length, self._live.nodes]
        if self._clocks is not None:
            columns += self._clocks.clocks.time, self._clocks.clocks.position
        for column in columns:
            column[side, runs.start : runs.start + len(places)] = column[side, places]
        self._live.counts[N_LIVE] = runs.start + len(places)

    def prune(self, now: Any) -> None:
        """See Holder.prune: also states whose whole list has left the window."""
        store, (side, runs) = self.store, self._runs()
        left = [prune(store.arena, self._live, side, k, now, store.bounds) for k in range(runs.start, runs.stop)]
        self._keep(np.array(left, np.int64) > 0)

    def held(self) -> AnyArray:
        """See Holder.held."""
        side, runs = self._runs()
        found: AnyArray = self._live.nodes[side, runs][filled(self._live.length[side, runs])]
        return found

    def renumber(self, forward: AnyArray) -> None:
        """See Holder.renumber."""
        side, runs = self._runs()
        nodes, used = self._live.nodes[side, runs], filled(self._live.length[side, runs])
        nodes[used] = forward[nodes[used]]
