"""A table of deterministic states, filled where the data leads: the stepper around the kernel of cea.py.

The kernel stops when something is missing and says what; the loop here brings it and lets it go on at the same event.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from runtime import capacities
from runtime.arrays import AnyArray, grown
from runtime.automata.determinize import SubsetTable
from runtime.automata.determinize_composed import subsets_of
from runtime.automata.symbols import Classes
from runtime.compact_set.store import Store
from runtime.program import Program
from runtime.steppers import cea
from runtime.steppers.stepper import Feed, Stepper


class TableBuilder:
    """The rows of the determinized automaton that the data asked for, as arrays that grow."""

    def __init__(self, subsets: SubsetTable) -> None:
        self._subsets = subsets
        self.n_rows = 0
        self.n_edges = 0
        rows, edges = capacities.ROWS, capacities.EDGES
        self.table = cea.Table(
            row_of=np.full((capacities.STATES, capacities.CLASSES), -1, np.int32),
            first=np.zeros(rows, np.int32),
            last=np.zeros(rows, np.int32),
            skip=np.zeros(rows, np.int32),
            quiet=np.zeros(rows, np.bool_),
            label=np.zeros(edges, np.int32),
            target=np.zeros(edges, np.int32),
            accept=np.zeros(edges, np.bool_),
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


class TableStepper(Stepper):
    """Runs a plain CEA, or a composed one without windows inside."""

    def __init__(self, program: Program, store: Store) -> None:
        super().__init__(store)
        self._subsets: SubsetTable = subsets_of(program)
        self._classes = Classes(len(program.guards), program.words)
        self._builder = TableBuilder(self._subsets)
        self._live = cea.new_live(capacities.LIVE_STATES)

    def read(self, feed: Feed) -> Iterator[None]:
        """See Stepper.read."""
        store, at = self.store, 0
        feed = feed.without_times(self._classes.of(feed.symbols))
        while True:
            self._builder.fit(len(self._classes.symbols))
            self._fit_live()
            result, at = cea.step_kernel(store.space, self._builder.table, self._live, at, feed)
            if result == cea.NEEDS_ROW:
                self._add_row()
                continue
            store.n_roots = int(self._live.counts[cea.N_ROOTS])
            yield
            store.n_roots = self._live.counts[cea.N_ROOTS] = 0
            if result == cea.DONE:
                return
            if result == cea.NEEDS_NODES:
                store.make_room(feed.clocks[at], at)
            store.listed_before(at, result == cea.NEEDS_ROOTS)

    def begin_key(self, key: int) -> None:
        """See Stepper.begin_key."""
        counts = self._live.counts
        counts[cea.N_LIVE] = counts[cea.START_STATE] = 0
        counts[cea.KEY], counts[cea.LAST_POSITION] = key, -1

    def _add_row(self) -> None:
        counts = self._live.counts
        state, klass = int(counts[cea.WANTED_STATE]), int(counts[cea.WANTED_CLASS])
        self._builder.add(state, klass, self._classes.symbols[klass])

    def _fit_live(self) -> None:
        n_states = len(self._subsets.members)
        if n_states > self._live.state.shape[1]:
            self._live = cea.grown_live(self._live, 2 * n_states)

    # ------------------------------------------------------------ its nodes: those in union lists

    def prune(self, now: Any) -> None:
        """Drop what has left the window, and states whose whole list has."""
        live, counts, store = self._live, self._live.counts, self.store
        side, kept = counts[cea.SIDE], 0
        for k in range(counts[cea.N_LIVE]):
            if cea.prune(store.arena, live, side, k, now, store.bounds) == 0:
                continue
            for column in (live.state, live.length, live.nodes):
                column[side, kept] = column[side, k]
            kept += 1
        counts[cea.N_LIVE] = kept

    def held(self) -> AnyArray:
        """See Holder.held."""
        live, side, n = self._live, self._live.counts[cea.SIDE], int(self._live.counts[cea.N_LIVE])
        return live.nodes[side, :n][filled(live.length[side, :n])]

    def renumber(self, forward: AnyArray) -> None:
        """See Holder.renumber."""
        live, side, n = self._live, self._live.counts[cea.SIDE], int(self._live.counts[cea.N_LIVE])
        used = filled(live.length[side, :n])
        live.nodes[side, :n][used] = forward[live.nodes[side, :n][used]]


def filled(lengths: AnyArray) -> AnyArray:
    """bool[n, LIST_LENGTH]: the entries of lists that are used."""
    used: AnyArray = np.arange(cea.LIST_LENGTH) < lengths[:, None]
    return used
