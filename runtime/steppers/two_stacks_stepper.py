"""The greatest match of each end in a window: the stepper of two_stacks.py."""

from __future__ import annotations

import numpy as np

from runtime import capacities
from runtime.compact_set.store import Store
from runtime.program import Program
from runtime.steppers import two_stacks
from runtime.steppers.stacks_stepper import StacksStepper
from runtime.steppers.stepper import Feed
from runtime.two_stacks import TwoStacks


class TwoStacksStepper(StacksStepper):
    """Runs TwoStacks. It leaves one match of each end, which says nothing of the nodes that others share: the first
    event of a node need not be that of a match."""

    sums_up = False

    def __init__(self, program: Program, store: Store) -> None:
        super().__init__(program, store)
        machine = program.machine
        assert isinstance(machine, TwoStacks)
        n, positions, room = machine.n_places, len(machine.guard), capacities.WINDOW_EVENTS
        n_steps = n + len(machine.source)
        self._work = two_stacks.Work(
            queue=two_stacks.Queue(
                front_clock=np.zeros(room, np.int64),
                front_node=np.zeros((room, n), np.int32),
                front_rank=np.zeros((room, n), np.int32),
                clock=np.zeros(room, np.int64),
                event=np.zeros((room, positions), np.int32),
                stay=np.zeros((room, n), np.int32),
                counts=np.zeros(3, np.int64),
            ),
            matrices=two_stacks.Matrices(
                node=np.zeros((3, n, n), np.int32),
                rank=np.zeros((3, n, n), np.int32),
                key=np.zeros((n, n), np.int64),
                dense=np.zeros(2 * (n * n + 1), np.int32),
            ),
            steps=two_stacks.Steps(
                begin=np.zeros(n_steps, np.int64), end=np.zeros(n_steps, np.int64), node=np.zeros(n_steps, np.int32)
            ),
        )
        two_stacks.forget(self._work)

    def _step(self, at: int, feed: Feed) -> tuple[int, int]:
        """See ValueStepper."""
        self._fit_clocks(feed.clocks.dtype)
        return two_stacks.step_kernel(self.store.space, self._automaton, self._work, self._counts, at, feed)
