"""Runs in the order of a value: the stepper of ranged.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from runtime import capacities
from runtime.arrays import AnyArray, IntArray
from runtime.compact_set.products import MOST_RANKS
from runtime.compact_set.store import Store
from runtime.program import Program
from runtime.ranged import Ranged
from runtime.steppers import catching_up, ranged, ranged_tree
from runtime.steppers.ranged_tree import DEEP, FIRST, LEFT, N_USED, STALE, TAGGED, Tree
from runtime.steppers.stepper import Feed
from runtime.steppers.value_stepper import ValueStepper


class RangedStepper(ValueStepper):
    """Runs Ranged."""

    def __init__(self, program: Program, store: Store) -> None:
        super().__init__(store)
        machine = program.machine
        assert isinstance(machine, Ranged)
        arrays = {name: getattr(machine, name) for name in ranged.Automaton._fields if name not in ("words", "inner")}
        self._automaton = ranged.Automaton(**arrays, words=program.words, inner=len(program.labels))
        self._n_edges, n_held = len(machine.pair), len(machine.takes_null)
        self._event = ranged.new_event(self._n_edges, len(machine.check_kind))
        self._first = 1 + len(self._event.act)
        self._waiting = ranged.Waiting(
            entries=self._new_tree(capacities.KEYS),
            alone=np.zeros(len(machine.held), np.int32),
            next=np.zeros(n_held, np.int32),
            path=np.zeros(2 * MOST_RANKS, np.int32),
        )

    def _new_tree(self, capacity: int) -> Tree:
        machine = self._automaton
        return ranged_tree.new_tree(capacity, self._first, len(machine.takes_null), max(1, len(machine.pair_from)))

    def _step(self, at: int, feed: Feed) -> tuple[int, int]:
        """See ValueStepper."""
        return ranged.step_kernel(self.store.space, self._automaton, self._waiting, self._event, self._counts, at, feed)

    def _widen(self, now: Any) -> None:
        """A tree without the keys whose runs are gone, and with room for as many again."""
        tree, order = self._waiting.entries, self._order()
        n = int(ranged_tree.leaves_left(self.store.space, self._automaton, tree, order, now))
        to = self._new_tree(max(capacities.KEYS, 4 * (n + self._n_edges)))
        ranged_tree.build(to, tree, order, n)
        self._waiting = self._waiting._replace(entries=to)

    def _order(self) -> AnyArray:
        return np.zeros(int(self._waiting.entries.counts[N_USED]) + 2, np.int32)

    # ------------------------------------------------------------ its nodes: those of the tree, and of its tags

    def prune(self, now: Any) -> None:
        """See Holder.prune."""
        store, waiting = self.store, self._waiting
        ranged_tree.forget_old(store.space, self._automaton, waiting.entries, self._order(), now)
        catching_up.drop_old(store.arena, waiting.alone, now, store.bounds)

    def _parts(self) -> list[tuple[AnyArray, IntArray]]:
        """(The nodes in rows of the tree, which of these rows are used)."""
        tree = self._waiting.entries
        used = slice(int(tree.counts[FIRST]), int(tree.counts[N_USED]))
        columns = (
            (tree.node, (tree.meta[used, LEFT] == 0) | (tree.meta[used, DEEP] == 0)),
            (tree.below, tree.meta[used, STALE] == 0),
            (tree.frag, tree.meta[used, TAGGED] != 0),
        )
        return [(column, used.start + np.flatnonzero(rows)) for column, rows in columns]

    def held(self) -> AnyArray:
        """See Holder.held."""
        parts = [column[rows].ravel() for column, rows in self._parts()]
        found: AnyArray = np.concatenate([self._waiting.alone, *parts])
        return found

    def renumber(self, forward: AnyArray) -> None:
        """See Holder.renumber."""
        for column, rows in self._parts():
            column[rows] = forward[column[rows]]
        self._waiting.alone[:] = forward[self._waiting.alone]
