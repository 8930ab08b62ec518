"""Determinizes a composed program where the data leads: what determinize.py does for plain automata.

A state is a set of values and, for each of their clocks, which windows have closed (a set of bits). Clocks are
numbered by age. A move says from where the clocks of its target come: an old number, or FRESH for the event read.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from runtime.automata.determinize import DEAD, Numbers, Row, StateTable, Subsets, Target
from runtime.automata.machine import NOW, REPORT, Clock, OutOfSteps, Steps, Symbol, Value
from runtime.automata.machines import machine_of, too_many_steps
from runtime.automata.values import clocks_of, renamed, undominated
from runtime.program import Program

FRESH = -1  # the source of a clock that is set by the event being read


@dataclass(frozen=True)
class State:
    values: frozenset[Value]
    closed: tuple[int, ...]


NOWHERE = Target(DEAD)


class Composed:
    """The states met so far; 0 is the beginning."""

    def __init__(self, program: Program, steps: Steps | None = None) -> None:
        assert program.machine is not None
        self._all_steps = steps  # of all rows, if it is given; otherwise those of each are counted
        self._steps = Steps() if steps is None else steps
        self._machine = machine_of(program.machine, self._steps)
        self._keep = program.keep
        self._label = {mask: i for i, mask in enumerate(program.masks)}
        self._numbers = Numbers(program.max_subsets)
        self.members = self._numbers.members  # States
        self._target(self._machine.initial(), ())

    def _target(self, values: Iterable[Value], closed: tuple[int, ...]) -> Target:
        """The state of these values, their clocks numbered anew."""
        kept = undominated(values)
        if not kept:
            return NOWHERE
        used = sorted(clocks_of(kept))
        names = {clock: Clock(i) for i, clock in enumerate(used)}
        if any(clock != name for clock, name in names.items()):
            kept = renamed(kept, names)
        sources = tuple(FRESH if clock == NOW else clock.number for clock in used)
        return Target(self._numbers.of(State(kept, tuple(0 if s == FRESH else closed[s] for s in sources))), sources)

    def expired(self, state: int, closed: tuple[int, ...]) -> int:
        """The same values, now that these windows have closed."""
        return self._numbers.of(State(self.members[state].values, closed))

    def forgotten(self, state: int) -> Target:
        """The beginning without its memory of partial matches (CONSUME BY)."""
        values = [self._machine.forget(value) for value in self.members[state].values]
        return self._target(values, self.members[state].closed)

    def at_end(self, state: int) -> bool:
        """Do runs in this state have a match that the end of the stream makes known?"""
        return any(self._machine.at_end(value) is not None for value in self.members[state].values)

    def begin(self, state: int) -> int:
        """The number of the clock of a run's first event, or -1."""
        found = [self._machine.begin(value) for value in self.members[state].values]
        return max((clock.number for clock in found if clock is not None), default=-1)

    def row(self, state: int, symbol: tuple[int, ...], /) -> Row:
        """The moves of a state on a symbol (one int per word), in the order of their labels."""
        if self._all_steps is not None:
            return self._row(state, symbol)
        self._steps.begin()
        try:
            return self._row(state, symbol)
        except OutOfSteps:
            raise too_many_steps(self._steps) from None

    def _row(self, state: int, symbol: tuple[int, ...]) -> Row:
        held = self.members[state]
        event = Symbol(symbol, held.closed)
        reached: dict[int, tuple[set[Value], bool]] = {}
        report = False
        for value in held.values:
            for mask, target, accept, _ in self._machine.step(value, event):
                if mask == REPORT:
                    report = True
                    continue
                values, accepts = reached.get(mask & self._keep, (set(), False))
                if target is not None:
                    values.add(target)
                reached[mask & self._keep] = (values, accepts or accept)
        skipped, ends_unmarked = reached.pop(0, (set(), False))
        skip = self._target(skipped, held.closed)
        moves = [
            (self._label[mask], self._target(values, held.closed), accept)
            for mask, (values, accept) in sorted(reached.items())
        ]
        if ends_unmarked:  # the match's last event bears no variable; it is listed all the same, for its end
            moves.append((self._label[0], NOWHERE, True))
        return Row(skip, tuple(moves), report)


def states_of(program: Program, steps: Steps | None = None) -> StateTable:
    """The deterministic states of a program. `steps`: how many may be made for all of them."""
    return Subsets(program, steps) if program.machine is None else Composed(program, steps)
