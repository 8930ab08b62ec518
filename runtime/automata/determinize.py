"""Lazy I/O-determinization ([CEL] Proposition 5.5): the subsets that the data really reaches, no others.

One next state per subset, symbol and label: a match then has one run, and is listed once. A subset is a set of states
that can still go on; whether a match ends with an event is a property of the move (`accept`), so final states without
a way out never become states of their own. Eager determinization is exponential in the pattern (A+ ; B+ ; C+ … has
2ⁿ subsets, few of them ever reached), which is why rows of the table are made when the kernel first asks for them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from runtime.automata.machine import Steps
from runtime.errors import ExecutionError
from runtime.program import ALWAYS, SKIP, WORD_BITS, Program

DEAD = -1  # the next state of a move after which a run cannot go on


@dataclass(frozen=True)
class Target:
    """The next state (or DEAD) and, where states have clocks, where its clocks come from."""

    state: int
    sources: tuple[int, ...] = ()

    def is_same(self, state: int) -> bool:
        """Is it that state, its clocks as they were?"""
        return self.state == state and self.sources == tuple(range(len(self.sources)))


@dataclass(frozen=True)
class Row:
    """What a state does on one symbol: skip, the marking moves (label, target, accept), and does a match that ended
    earlier become known?"""

    skip: Target
    moves: tuple[tuple[int, Target, bool], ...]
    report: bool = False


class StateTable(Protocol):
    """The deterministic states met so far; 0 is the beginning."""

    members: list[Any]

    def row(self, state: int, symbol: tuple[int, ...], /) -> Row: ...


class Numbers:
    """Numbers for deterministic states, in the order of their discovery."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._number: dict[Any, int] = {}
        self.members: list[Any] = []

    def of(self, state: Any) -> int:
        """The number of a state, a new one if it was not met before. ExecutionError STATE_LIMIT."""
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


class Subsets:
    """The subsets met so far, numbered in the order of their discovery; 0 is the set of initial states."""

    def __init__(self, program: Program, steps: Steps | None = None) -> None:
        self._steps = steps
        self._final = frozenset(program.final)
        self._by_source: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
        for source, guard, label, target in program.transitions.tolist():
            self._by_source[source].append((guard, label, target))
        self._numbers = Numbers(program.max_subsets)
        self.members = self._numbers.members  # tuples of states
        self._target(program.initial)

    def _target(self, states: Iterable[int]) -> Target:
        """The subset of those states that can go on; DEAD if there is none."""
        alive = tuple(sorted(state for state in states if state in self._by_source))
        return Target(self._numbers.of(alive) if alive else DEAD)

    def row(self, state: int, symbol: tuple[int, ...], /) -> Row:
        """The moves of a subset (by its number) on a symbol (one int per word), in the order of their labels."""
        targets: dict[int, set[int]] = defaultdict(set)
        if self._steps is not None:
            self._steps.spend(sum(len(self._by_source[source]) for source in self.members[state]))
        for source in self.members[state]:
            for guard, label, target in self._by_source[source]:
                if guard == ALWAYS or symbol[guard // WORD_BITS] >> (guard % WORD_BITS) & 1:
                    targets[label].add(target)
        skip = self._target(targets.pop(SKIP, set()))
        moves = tuple(
            (label, self._target(reached), not self._final.isdisjoint(reached))
            for label, reached in sorted(targets.items())
        )
        return Row(skip, moves)
