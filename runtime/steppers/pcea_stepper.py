"""Runs side by side that join: the stepper of pcea.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from runtime import capacities
from runtime.arrays import AnyArray, IntArray
from runtime.compact_set import products
from runtime.compact_set.store import Store
from runtime.pcea import Parallel
from runtime.program import Program
from runtime.steppers import pcea
from runtime.steppers.by_values import GENERATION, N_FILLED
from runtime.steppers.stepper import Feed
from runtime.steppers.value_stepper import ValueStepper


class PceaStepper(ValueStepper):
    """Runs Parallel."""

    def __init__(self, program: Program, store: Store) -> None:
        super().__init__(store)
        machine = program.machine
        assert isinstance(machine, Parallel)
        self._depth = machine.depth
        n_steps, n_parts = len(machine.place), len(machine.part)
        # An output for each step, a product for each part, and where a run waits a path of its heap.
        need = n_steps * (2 * products.MOST_RANKS + 4) + n_parts
        arrays = {name: getattr(machine, name) for name in pcea.Automaton._fields if name not in ("words", "need")}
        self._automaton = pcea.Automaton(**arrays, words=program.words, need=need)
        self._waiting = pcea.Waiting(
            node=np.zeros(n_steps, np.int32),
            step=np.zeros(n_steps, np.int64),
            path=np.zeros(products.MOST_RANKS, np.int32),
        )
        self._places = pcea.new_places(capacities.PLACES, self._depth)

    def _step(self, at: int, feed: Feed) -> tuple[int, int]:
        """See ValueStepper."""
        return pcea.step_kernel(self.store.space, self._automaton, self._places, self._waiting, self._counts, at, feed)

    # ------------------------------------------------------------ its nodes: those of places

    def prune(self, now: Any) -> None:
        """Without the places whose runs have all left the window; with more room, if more than a quarter is left."""
        size, store = len(self._places.place), self.store
        while True:
            to = pcea.new_places(size, self._depth)
            pcea.moved(store.arena, self._places, to, now, store.bounds)
            self._places = to
            if 4 * (to.counts[N_FILLED] + len(self._automaton.place)) <= size:
                return
            size *= 2

    def _filled(self) -> IntArray:
        """The slots that are filled."""
        return np.flatnonzero(self._places.generation == self._places.counts[GENERATION])

    def held(self) -> AnyArray:
        """See Holder.held."""
        found: AnyArray = self._places.node[self._filled()]
        return found

    def renumber(self, forward: AnyArray) -> None:
        """See Holder.renumber."""
        filled = self._filled()
        self._places.node[filled] = forward[self._places.node[filled]]
