"""What has not happened after the matches of each start: the stepper of late_stacks.py."""

from __future__ import annotations

import numpy as np

from runtime import capacities
from runtime.compact_set.store import Store
from runtime.program import Program
from runtime.steppers import late_stacks, two_stacks
from runtime.steppers.by_values import DONE, N_ROOTS
from runtime.steppers.late_stacks import N_BEGINS
from runtime.steppers.stacks_stepper import StacksStepper
from runtime.steppers.stepper import Feed
from runtime.steppers.two_stacks import HEAD, N_FRONT
from runtime.two_stacks import TwoStacks


class LateStacksStepper(StacksStepper):
    """Runs TwoStacks in which matches wait for their windows to close. It leaves a root for each start, whose matches
    are not summed up: of products, sums by the first event would have to know which part holds it."""

    sums_up = False

    def __init__(self, program: Program, store: Store) -> None:
        super().__init__(program, store)
        store.whole = True
        machine = program.machine
        assert isinstance(machine, TwoStacks)
        n, positions, room = machine.n_places, len(machine.guard), capacities.WINDOW_EVENTS
        n_steps = n + 2 * len(machine.source)
        self._work = late_stacks.Work(
            queue=late_stacks.Queue(
                front_clock=np.zeros(room, np.int64),
                front_node=np.zeros((room, n), np.int32),
                clock=np.zeros(room, np.int64),
                event=np.zeros((room, positions), np.int32),
                stay=np.zeros((room, n), np.int32),
                reports=np.zeros(room, np.bool_),
                counts=np.zeros(5, np.int64),
            ),
            matrices=late_stacks.Matrices(node=np.zeros((3, n, n), np.int32), stays=np.zeros((3, n), np.int64)),
            steps=two_stacks.Steps(
                begin=np.zeros(n_steps, np.int64), end=np.zeros(n_steps, np.int64), node=np.zeros(n_steps, np.int32)
            ),
            latest=np.zeros(1, np.int64),
            late=machine.late,
            begins=np.array(
                [bool((machine.source[slice(*machine.edge_of[q : q + 2])] == 0).any()) for q in range(positions)],
                np.bool_,
            ),
        )
        late_stacks.forget(self._work)

    def _step(self, at: int, feed: Feed) -> tuple[int, int]:
        """See ValueStepper."""
        self._fit_clocks(feed.clocks.dtype)
        if self._work.latest.dtype != feed.clocks.dtype:
            self._work = self._work._replace(latest=self._work.latest.astype(feed.clocks.dtype))
        return late_stacks.step_kernel(self.store.space, self._automaton, self._work, self._counts, at, feed)

    def end_key(self) -> None:
        """See Stepper.end_key. The arena grows: to compact it would renumber the roots."""
        store, queue = self.store, self._work.queue.counts
        if self._work.latest.dtype != store.clock:
            return  # nothing has been read
        store.more_roots(int(queue[N_FRONT] - queue[HEAD] + queue[N_BEGINS]))
        while late_stacks.end_kernel(store.space, self._automaton, self._work, self._counts) != DONE:
            store.grow()
        store.n_roots, self._counts[N_ROOTS] = int(self._counts[N_ROOTS]), 0
