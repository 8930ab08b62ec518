"""Determinizes a composed program where the data leads: what determinize.py does for plain automata.

A state is a set of values and, for each of their registers, which windows have closed (a set of bits). Registers are
numbered by age. A move says from where the registers of its target come: an old number, or FRESH for the event read.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from runtime.automata.determinize import DEAD, Row, Subsets, SubsetTable
from runtime.automata.machine import NOW, REPORT, OutOfSteps, Reg, Steps, Symbol, Value
from runtime.automata.machines import machine_of, too_many_steps
from runtime.automata.values import registers, renamed, undominated
from runtime.errors import ExecutionError
from runtime.program import Program

FRESH = -1
Sources = tuple[int, ...]


@dataclass(frozen=True)
class State:
    values: frozenset[Value]
    closed: tuple[int, ...]


@dataclass(frozen=True)
class Target:
    """The next state (or DEAD) and where its registers come from."""

    state: int
    sources: Sources


@dataclass(frozen=True)
class ComposedRow:
    """What a state does on a symbol: skip, the moves (label, target, accept), and whether a match becomes known."""

    skip: Target
    moves: tuple[tuple[int, Target, bool], ...]
    report: bool


NOWHERE = Target(DEAD, ())


class Composed:
    """The states met so far; 0 is the beginning."""

    def __init__(self, program: Program, steps: Steps | None = None) -> None:
        assert program.machine is not None
        self._limit = program.max_subsets
        self._all_steps = steps  # of all rows, if it is given; otherwise those of each are counted
        self._steps = Steps() if steps is None else steps
        self._machine = machine_of(program.machine, self._steps)
        self._keep = program.keep
        self._label = {mask: i for i, mask in enumerate(program.masks)}
        self.members: list[Any] = []  # States
        self._number: dict[State, int] = {}
        self._target(self._machine.initial(), ())

    def intern(self, state: State, /) -> int:
        if state not in self._number:
            if len(self.members) >= self._limit:
                raise ExecutionError(
                    "STATE_LIMIT",
                    found=len(self.members) + 1,
                    limit=self._limit,
                    hint="Shorten repetitions, or split alternatives that overlap into several queries.",
                )
            self._number[state] = len(self.members)
            self.members.append(state)
        return self._number[state]

    def _target(self, values: Iterable[Value], closed: tuple[int, ...]) -> Target:
        """The state of these values, their registers numbered anew."""
        kept = undominated(values)
        if not kept:
            return NOWHERE
        used = sorted(registers(kept))
        names = {register: Reg(i) for i, register in enumerate(used)}
        if any(register != name for register, name in names.items()):
            kept = renamed(kept, names)
        sources = tuple(FRESH if register == NOW else register.number for register in used)
        return Target(self.intern(State(kept, tuple(0 if s == FRESH else closed[s] for s in sources))), sources)

    def expired(self, state: int, closed: tuple[int, ...]) -> int:
        """The same values, now that these windows have closed."""
        return self.intern(State(self.members[state].values, closed))

    def forgotten(self, state: int) -> Target:
        """The beginning without its memory of partial matches (CONSUME BY)."""
        values = [self._machine.forget(value) for value in self.members[state].values]
        return self._target(values, self.members[state].closed)

    def at_end(self, state: int) -> bool:
        """Do runs in this state have a match that the end of the stream makes known?"""
        return any(self._machine.at_end(value) is not None for value in self.members[state].values)

    def begin(self, state: int) -> int:
        """The number of the register of a run's first event, or -1."""
        found = [self._machine.begin(value) for value in self.members[state].values]
        return max((register.number for register in found if register is not None), default=-1)

    def row(self, state: int, symbol: tuple[int, ...]) -> ComposedRow:
        """The moves of a state on a symbol (one int per word), in the order of their labels."""
        if self._all_steps is not None:
            return self._row(state, symbol)
        self._steps.begin()
        try:
            return self._row(state, symbol)
        except OutOfSteps:
            raise too_many_steps(self._steps) from None

    def _row(self, state: int, symbol: tuple[int, ...]) -> ComposedRow:
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
        return ComposedRow(skip, tuple(moves), report)


class Untimed:
    """Composed states without registers, as runtime.steppers.cea runs them."""

    def __init__(self, program: Program, steps: Steps | None = None) -> None:
        self._composed = Composed(program, steps)
        self.members = self._composed.members
        self.intern = self._composed.intern

    def row(self, state: int, symbol: tuple[int, ...], /) -> Row:
        row = self._composed.row(state, symbol)
        return Row(row.skip.state, tuple((label, target.state, accept) for label, target, accept in row.moves))


def subsets_of(program: Program, steps: Steps | None = None) -> SubsetTable:
    """The deterministic states of a program without registers. `steps`: how many may be made for all of them."""
    return Subsets(program, steps) if program.machine is None else Untimed(program, steps)
