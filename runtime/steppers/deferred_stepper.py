"""Runs that catch up: the stepper of deferred.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from runtime import capacities
from runtime.arrays import AnyArray, IntArray
from runtime.compact_set.store import Store
from runtime.deferred import Deferred
from runtime.program import Program
from runtime.steppers import blocks, catching_up, deferred
from runtime.steppers.by_values import GENERATION, N_FILLED
from runtime.steppers.stepper import Feed
from runtime.steppers.value_stepper import ValueStepper


class DeferredStepper(ValueStepper):
    """Runs Deferred."""

    def __init__(self, program: Program, store: Store) -> None:
        super().__init__(store)
        machine = program.machine
        assert isinstance(machine, Deferred)
        self._depth, self._n_held, self._n_edges = machine.depth, len(machine.component), len(machine.pair)
        arrays = {name: getattr(machine, name) for name in deferred.Automaton._fields if name not in ("words", "inner")}
        n_pairs = max(1, len(machine.pair_from))
        self._automaton = deferred.Automaton(**arrays, words=program.words, inner=len(program.labels))
        self._leading = deferred.Leading(
            at=np.zeros(self._n_edges, np.int64),
            edge=np.zeros(self._n_edges, np.int64),
            child=np.zeros(self._n_edges, np.int32),
            to=np.zeros((2, self._n_held), np.int32),
            frag=np.zeros((2, n_pairs), np.int32),
            hit=np.zeros(len(machine.veto_guard), np.int64),
        )
        entries = catching_up.new_entries(capacities.VALUES, self._depth, self._n_held)
        kept = blocks.new_blocks(capacities.BLOCKS, self._n_held, n_pairs)
        self._waiting = catching_up.new_waiting(entries, kept, len(machine.held))

    def _step(self, at: int, feed: Feed) -> tuple[int, int]:
        """See ValueStepper."""
        return deferred.step_kernel(
            self.store.space, self._automaton, self._waiting, self._leading, self._counts, at, feed
        )

    # ------------------------------------------------------------ its nodes: those of entries, and of fragments

    def prune(self, now: Any) -> None:
        """Without the entries whose runs have all left the window, and without the blocks that no other has to catch up
        with; with more room, if more than a quarter is left of those, or more than half of these."""
        size, store, waiting = len(self._waiting.entries.place), self.store, self._waiting
        while True:
            to = catching_up.new_entries(size, self._depth, self._n_held)
            first = catching_up.moved(store.arena, waiting.entries, to, now, store.bounds)
            if 4 * (to.counts[N_FILLED] + self._n_edges) <= size:
                break
            size *= 2
        catching_up.drop_old(store.arena, waiting.alone, now, store.bounds)
        kept, n = waiting.blocks, int(waiting.blocks.counts[blocks.N_FREE])
        blocks.forget_before(kept, min(int(first), n))
        to_come = (n ^ (n + 1)).bit_length()  # blocks that end with the next free event
        while 2 * (int(blocks.n_rows(kept)) + to_come) > len(kept.to):
            kept = blocks.grown_blocks(kept)
        self._waiting = waiting._replace(entries=to, blocks=kept)

    def _filled(self) -> IntArray:
        """The slots that are filled."""
        entries = self._waiting.entries
        return np.flatnonzero(entries.generation == entries.counts[GENERATION])

    def _fragments(self) -> AnyArray:
        """int32[blocks, pairs]: those of the blocks that are kept."""
        kept = self._waiting.blocks
        return kept.frag[: int(blocks.n_rows(kept))]

    def held(self) -> AnyArray:
        """See Holder.held."""
        waiting = self._waiting
        nodes = waiting.entries.node[self._filled()].ravel()
        found: AnyArray = np.concatenate([nodes, waiting.alone, self._fragments().ravel()])
        return found

    def renumber(self, forward: AnyArray) -> None:
        """See Holder.renumber."""
        waiting, filled = self._waiting, self._filled()
        waiting.entries.node[filled] = forward[waiting.entries.node[filled]]
        waiting.alone[:] = forward[waiting.alone]
        self._fragments()[:] = forward[self._fragments()]
