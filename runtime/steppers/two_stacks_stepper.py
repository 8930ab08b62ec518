"""The greatest match of each end in a window: the stepper of two_stacks.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from runtime import capacities
from runtime.arrays import AnyArray, grown
from runtime.compact_set.store import Store
from runtime.program import Program
from runtime.steppers import two_stacks
from runtime.steppers.stepper import Feed
from runtime.steppers.two_stacks import HEAD, N_BACK, N_FRONT
from runtime.steppers.value_stepper import ValueStepper
from runtime.two_stacks import TwoStacks


class TwoStacksStepper(ValueStepper):
    """Runs TwoStacks. It leaves one match of each end, which says nothing of the nodes that others share: the first
    event of a node need not be that of a match."""

    sums_up = False

    def __init__(self, program: Program, store: Store) -> None:
        super().__init__(store)
        machine = program.machine
        assert isinstance(machine, TwoStacks)
        arrays = {name: getattr(machine, name) for name in two_stacks.Automaton._fields if name != "words"}
        self._automaton = two_stacks.Automaton(**arrays, words=program.words)
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
        queue = self._work.queue
        if queue.clock.dtype != feed.clocks.dtype:  # which the first feed shows
            clocks = {name: getattr(queue, name).astype(feed.clocks.dtype) for name in ("front_clock", "clock")}
            self._work = self._work._replace(queue=queue._replace(**clocks))
        return two_stacks.step_kernel(self.store.space, self._automaton, self._work, self._counts, at, feed)

    # ------------------------------------------------------------ its nodes: of both stacks, and of the back as a whole

    def prune(self, now: Any) -> None:
        """What has left the window goes as events come; here is more room, if the back is full."""
        queue = self._work.queue
        room = len(queue.clock)
        if queue.counts[N_BACK] == room:
            wider = {name: grown(getattr(queue, name), 2 * room) for name in queue._fields if name != "counts"}
            self._work = self._work._replace(queue=queue._replace(**wider))

    def _parts(self) -> tuple[AnyArray, ...]:
        """Views of all nodes that are held."""
        queue = self._work.queue
        front = queue.front_node[queue.counts[HEAD] : queue.counts[N_FRONT]]
        return front, queue.event[: queue.counts[N_BACK]], self._work.matrices.node[two_stacks.BACK]

    def held(self) -> AnyArray:
        """See Holder.held."""
        found: AnyArray = np.concatenate([part.ravel() for part in self._parts()])
        return found

    def renumber(self, forward: AnyArray) -> None:
        """See Holder.renumber."""
        for part in self._parts():
            part[:] = forward[part]
