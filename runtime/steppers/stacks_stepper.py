"""Steppers that keep the events of a window in two stacks: the queue of both, and its nodes."""

from __future__ import annotations

from typing import Any

import numpy as np

from runtime.arrays import AnyArray, grown
from runtime.compact_set.store import Store
from runtime.program import Program
from runtime.steppers import two_stacks
from runtime.steppers.two_stacks import HEAD, N_BACK, N_FRONT
from runtime.steppers.value_stepper import ValueStepper
from runtime.two_stacks import TwoStacks


class StacksStepper(ValueStepper):
    """It keeps `_work`, which is Work of two_stacks or of late_stacks."""

    _work: Any
    _counts: AnyArray

    def __init__(self, program: Program, store: Store) -> None:
        super().__init__(store)
        machine = program.machine
        assert isinstance(machine, TwoStacks)
        arrays = {name: getattr(machine, name) for name in two_stacks.Automaton._fields if name != "words"}
        self._automaton = two_stacks.Automaton(**arrays, words=program.words)

    def _fit_clocks(self, clock: np.dtype[Any]) -> None:
        """The queue has clocks of this type, which the first feed shows."""
        queue = self._work.queue
        if queue.clock.dtype != clock:
            clocks = {name: getattr(queue, name).astype(clock) for name in ("front_clock", "clock")}
            self._work = self._work._replace(queue=queue._replace(**clocks))

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
