"""Which matches of a program are listed, where not all are: those with so many events, that pass its sieve."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from runtime import capacities
from runtime.arrays import grown
from runtime.compact_set import bounded
from runtime.compact_set.tecs import OVERFLOW, Space
from runtime.compact_set.weights import Weights, limits_of, of_events
from runtime.deferred import Deferred
from runtime.program import Program
from runtime.ranged import Ranged
from runtime.sieve import Bounded, Weight


class Within:
    """The bounds of a program (Program.counted, Program.sieve), and the `weights` of the rows that have been read.

    `A ; B{2,500} ; C WHERE SUM(b.x) > 7` has two: 2 to 500 events of b, and their x come to more than 7.
    """

    def __init__(self, program: Program) -> None:
        self._counted, self._labels = program.counted, labels_of(program)
        self._conditions = (*numbers_of(program.counted), *program.sieve)
        self.weights = Weights(self._conditions, self._labels)
        self._clear()

    def _clear(self) -> None:
        self._limits = limits_of(self._conditions)
        self._bound = bounded.new_bound(of_events(self._conditions, self._labels), self._limits, self.weights)
        self._found: bounded.Polynomials | None = None
        self._todo = np.zeros(capacities.WALK, np.int32)

    def __getstate__(self) -> dict[str, Any]:
        """Without what is made again."""
        names = ("_counted", "_labels", "_conditions", "weights")
        return {name: self.__dict__[name] for name in names}

    def __setstate__(self, known: dict[str, Any]) -> None:
        self.__dict__.update(known)
        self._clear()

    def begin(self) -> None:
        """Nodes and rows may be others from now on."""
        self._bound.serial[0] += 1
        self._bound = bounded.for_rows(self._bound, self.weights, self._limits)

    def bound(self, nodes: int, path: int) -> bounded.Bound:
        """What a walk asks, with room for so many nodes and events."""
        self._bound = bounded.for_path(bounded.for_nodes(self._bound, nodes), path)
        return self._bound

    def count(self, space: Space, n_roots: int) -> int:
        """The number of matches with so many events, or OVERFLOW. No sieve is asked: Spark counts what it leaves."""
        assert self._counted is not None
        variable, low, high = self._counted
        numbers = bounded.new_numbers(np.array([variable in label for label in self._labels], np.int64), low, high)
        total, at, degree = np.zeros(1, np.int64), 0, low if high is None else high
        if self._found is None or len(self._found.place) < len(space.arena.row):
            rows = capacities.WALK if self._found is None else len(self._found.number)
            self._found = bounded.new_polynomials(rows, degree, len(space.arena.row))
        while at != n_roots:
            at = bounded.count_bounded(space, at, n_roots, self._found, self._todo, numbers, total)
            if at == OVERFLOW:
                return at
            if at != n_roots:
                more = 2 * len(self._found.number)
                self._todo = grown(self._todo, max(more, 2 * len(self._todo)))
                self._found = self._found._replace(number=np.zeros((more, degree + 1), np.int64))
        return int(total[0])


def labels_of(program: Program) -> tuple[frozenset[str], ...]:
    """What each label of a node binds."""
    machine = program.machine
    if isinstance(machine, Deferred | Ranged):
        return tuple(program.labels[number] for number in machine.label_of)
    return program.labels


def numbers_of(counted: tuple[str, int, int | None] | None) -> tuple[Bounded, ...]:
    """A number of events as a bound on what each of them weighs, 1."""
    if counted is None:
        return ()
    variable, low, high = counted
    weight = Weight(variable, shift=1.0, whole=True)
    return (Bounded((weight,), float(low), math.inf if high is None else float(high)),)


def within_of(program: Program) -> Within | None:
    """The bounds of a program, if it has any."""
    return None if program.counted is None and not program.sieve else Within(program)
