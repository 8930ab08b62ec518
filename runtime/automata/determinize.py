"""Lazy I/O-determinization ([CEL] Proposition 5.5): the subsets that the data really reaches, no others.

One next state per subset, symbol and label: a match then has one run, and is listed once. A subset is a set of states
that can still go on; whether a match ends with an event is a property of the move (`accept`), so final states without
a way out never become states of their own. Eager determinization is exponential in the pattern (A+ ; B+ ; C+ … has
2ⁿ subsets, few of them ever reached), which is why rows of the table are made when the kernel first asks for them.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any, Protocol

from runtime.automata.machine import Steps
from runtime.errors import ExecutionError
from runtime.program import ALWAYS, SKIP, WORD_BITS, Program

DEAD = -1  # the next state of a move after which a run cannot go on


@dataclass(frozen=True)
class Row:
    """What subset q does on one symbol: skip (next state or DEAD) and the marking moves (label, next, accept)."""

    skip: int
    moves: tuple[tuple[int, int, bool], ...]


class SubsetTable(Protocol):
    """The deterministic states met so far; 0 is the beginning. `intern` finds the state of some members again."""

    members: list[Any]

    def intern(self, members: Any, /) -> int: ...

    def row(self, state: int, symbol: tuple[int, ...], /) -> Row: ...


class Subsets:
    """The subsets met so far, numbered in the order of their discovery; 0 is the set of initial states."""

    def __init__(self, program: Program, steps: Steps | None = None) -> None:
        self._steps = steps
        self._limit = program.max_subsets
        self._final = frozenset(program.final)
        self._by_source: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
        for source, guard, label, target in program.transitions.tolist():
            self._by_source[source].append((guard, label, target))
        self.members: list[Any] = []  # tuples of states
        self._number: dict[tuple[int, ...], int] = {}
        self.intern(program.initial)

    def intern(self, states: tuple[int, ...] | set[int], /) -> int:
        """The number of the subset of those states that can go on; DEAD if there is none."""
        alive = tuple(sorted(state for state in states if state in self._by_source))
        if not alive:
            return DEAD
        if alive not in self._number:
            if len(self.members) >= self._limit:
                raise ExecutionError(
                    "STATE_LIMIT",
                    found=len(self.members) + 1,
                    limit=self._limit,
                    hint="Shorten repetitions, or split alternatives that overlap into several queries.",
                )
            self._number[alive] = len(self.members)
            self.members.append(alive)
        return self._number[alive]

    def row(self, state: int, symbol: tuple[int, ...], /) -> Row:
        """The moves of a subset (by its number) on a symbol (one int per word), in the order of their labels."""
        targets: dict[int, set[int]] = defaultdict(set)
        if self._steps is not None:
            self._steps.spend(sum(len(self._by_source[source]) for source in self.members[state]))
        for source in self.members[state]:
            for guard, label, target in self._by_source[source]:
                if guard == ALWAYS or symbol[guard // WORD_BITS] >> (guard % WORD_BITS) & 1:
                    targets[label].add(target)
        skip = self.intern(targets.pop(SKIP, set()))
        moves = tuple(
            (label, self.intern(reached), not self._final.isdisjoint(reached))
            for label, reached in sorted(targets.items())
        )
        return Row(skip, moves)
