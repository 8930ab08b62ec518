"""The rows of a deterministic automaton that the data asked for, as arrays that grow."""

from __future__ import annotations

import numpy as np

from runtime import capacities
from runtime.arrays import AnyArray, grown
from runtime.automata.determinize import StateTable, Target
from runtime.steppers.cea import Table

OF_ROWS = ("first", "last", "quiet", "report")
OF_EDGES = ("label", "target", "accept", "sources")


class TableBuilder:
    """Rows are added when a kernel first asks for them: `table` is what kernels read."""

    def __init__(self, states: StateTable) -> None:
        self._states = states
        self._n_rows = self._n_edges = 0
        rows, edges = capacities.ROWS, capacities.EDGES
        self.table = Table(
            row_of=np.full((capacities.STATES, capacities.CLASSES), -1, np.int32),
            first=np.zeros(rows, np.int32),
            last=np.zeros(rows, np.int32),
            quiet=np.zeros(rows, np.bool_),
            report=np.zeros(rows, np.bool_),
            label=np.zeros(edges, np.int32),
            target=np.zeros(edges, np.int32),
            accept=np.zeros(edges, np.bool_),
            sources=np.zeros((edges, 1), np.int32),
        )

    @property
    def n_clocks(self) -> int:
        """How many clocks a state of those met so far has at the most, or more."""
        return self.table.sources.shape[1]

    def fit(self, n_classes: int) -> None:
        """Room in row_of for all states and classes met so far."""
        states, classes = self.table.row_of.shape
        n_states = len(self._states.members)
        if n_states <= states and n_classes <= classes:
            return
        wider = np.full((max(states, 2 * n_states), max(classes, 2 * n_classes)), -1, np.int32)
        wider[:states, :classes] = self.table.row_of
        self.table = self.table._replace(row_of=wider)

    def add(self, state: int, klass: int, symbol: tuple[int, ...]) -> None:
        """Make the row of a state and class."""
        row = self._states.row(state, symbol)
        if self._n_rows == len(self.table.first):
            self._grow(OF_ROWS, 2 * self._n_rows)
        number = self._n_rows
        self.table.first[number] = self._n_edges
        for label, target, accept in row.moves:
            self._add_edge(label, target, accept)
        self.table.last[number] = self._n_edges
        self._add_edge(0, row.skip, False)
        self.table.quiet[number] = not row.moves and not row.report and row.skip.is_same(state)
        self.table.report[number] = row.report
        self.table.row_of[state, klass] = number
        self._n_rows += 1

    def _add_edge(self, label: int, target: Target, accept: bool) -> None:
        n, sources = self._n_edges, target.sources
        if n == len(self.table.label):
            self._grow(OF_EDGES, 2 * n)
        if len(sources) > self.n_clocks:
            self.table = self.table._replace(sources=wider(self.table.sources, 2 * len(sources)))
        table = self.table
        table.label[n], table.target[n], table.accept[n] = label, target.state, accept
        table.sources[n, : len(sources)] = sources
        self._n_edges += 1

    def _grow(self, names: tuple[str, ...], capacity: int) -> None:
        self.table = self.table._replace(**{name: grown(getattr(self.table, name), capacity) for name in names})


def wider(array: AnyArray, width: int) -> AnyArray:
    """A copy with room for `width` elements along the last axis; the new ones are zero."""
    made = np.zeros((*array.shape[:-1], width), array.dtype)
    made[..., : array.shape[-1]] = array
    return made
