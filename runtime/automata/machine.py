"""A machine is the automaton of one operator. Its states are made one by one, where the data leads.

A *value* is a state of the automaton that [CEL] Theorem 6.2 or 7.2 builds for the operator: a nested tuple over the
states of its parts. `step` gives the moves of a value on one symbol, each (mask, next value or None, accept). Mask 0
skips the event; BEGIN in a mask says that the match begins here; `accept` says that a complex event ends here. Moves
are nondeterministic; runtime.automata.determinize_composed makes them deterministic with respect to the masks.
For `(A ; B) UNLESS C`, a pair: a state of A ; B, and what is watched of C, nothing before the match begins:

    (0, None)      on an A   skip → (0, None); mark a → (1, {watch})
    (1, {watch})   on a B    skip → (1, {watch}); mark b, accept
    (1, {watch})   on a C    no move: the run is over

Windows inside a pattern need to know when a part began: a value then holds a *clock* (Clock), which is the event of
that beginning. Which windows have closed since then is part of the symbol (`closed`), so that a step reads no time. Of
two values that differ in such a clock only, the later one can do all that the earlier one can, and more, so that
`undominated` drops the earlier. Sets inside values (of vetoes, of rivals) are frozensets, and opaque to that rule,
since for a veto it is reversed.

The products and subset constructions of the theorems live here. They are built lazily, since each of them is
exponential in the pattern at worst, and data reaches few of their states.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

from runtime.nodes import Node
from runtime.program import ALWAYS, WORD_BITS

Value = Any  # nested tuples of hashable things
REPORT = -1  # the mask of a move that takes no event: the run's match, ended earlier, has become known


class Clock(NamedTuple):
    """A clock: the event at which a part began. Clocks of a state are numbered by age, 0 the oldest."""

    number: int


NOW = Clock(1 << 62)  # the clock that is set by the event being read


DECIDED = -1  # the number of a sighting about which nothing is left to compare


class Sighting(NamedTuple):
    """A sighting may prevent a match, and does so unless one of `unless` prevents it in turn.

    It is a match of the negated part of this number, with what was bound in it. Or (DECIDED) it is a match in a choice,
    a rival of another one. It prevents if what is bound fulfils the comparisons with that negated part, which its
    Across says (runtime.automata.deciding).
    """

    number: int
    bound: tuple[tuple[int, frozenset[Any]], ...] = ()  # the events that can be chosen, by the number of the choice
    unless: frozenset[Any] = frozenset()  # of Sightings


NONE_SEEN: frozenset[Sighting] = frozenset()


class Move(NamedTuple):
    """What a value does on one symbol. `seen`: what may prevent the run's match; whoever compares decides."""

    mask: int
    next: Value | None
    accept: bool
    seen: frozenset[Sighting] = NONE_SEEN


@dataclass(frozen=True)
class Symbol:
    """An event: which guards it satisfies, and for each clock of the state which windows have closed."""

    words: tuple[int, ...]
    closed_of: tuple[int, ...] = ()
    values: tuple[int | None, ...] = ()  # of the terms that are compared, as codes in their order; None for NULL

    def holds(self, guard: int) -> bool:
        return guard == ALWAYS or bool(self.words[guard // WORD_BITS] >> (guard % WORD_BITS) & 1)

    def value(self, term: int) -> int | None:
        return self.values[term]

    def closed(self, clock: Clock, window: int) -> bool:
        return clock is not NOW and bool(self.closed_of[clock.number] >> window & 1)


class Machine:
    """Any operator's automaton: `class StartMachine(Machine, of=nodes.Start)` runs that node, and is made of it and
    of what makes the machines of its parts. `timed`: its values may hold clocks."""

    by_node: ClassVar[dict[type[Node], Callable[[Any, Maker], Machine]]] = {}
    may_be_empty = False
    timed = True

    def __init_subclass__(cls, of: type[Node] | None = None) -> None:
        if of is not None:
            Machine.by_node[of] = cls

    def initial(self) -> list[Value]:
        raise NotImplementedError

    def step(self, value: Value, symbol: Symbol) -> list[Move]:
        raise NotImplementedError

    def forget(self, value: Value) -> Value:
        """The value of a run that has not begun, once all partial matches are dropped (CONSUME BY)."""
        return value

    def at_end(self, value: Value) -> frozenset[Sighting] | None:
        """What a match of this value has seen that is known when the stream ends; None if there is no such match."""
        return None

    def begin(self, value: Value) -> Clock | None:
        """The clock of a run's first event, where every start has a run of its own."""
        return None


Maker = Callable[[Node], Machine]  # makes the machine of a part: runtime.automata.machines.machine_of
MOST_STEPS = 1_000_000  # for one event in one state: seconds, where most take some ten
MOST_EVENT_STEPS = 16 * MOST_STEPS  # in all states together: a minute


class OutOfSteps(Exception):
    """The steps that were allowed are made."""


class Steps:
    """This counts the steps that machines may still make, each with its moves, and raises OutOfSteps.

    Nested strategies take as many, for a single event, as there are ways to choose.
    """

    def __init__(self, most: int = MOST_STEPS) -> None:
        self.most = self.left = most

    def begin(self) -> None:
        """All may be made again."""
        self.left = self.most

    def spend(self, n: int) -> None:
        self.left -= n
        if self.left < 0:
            raise OutOfSteps

    def counting(self, step: Callable[[Value, Symbol], list[Move]]) -> Callable[[Value, Symbol], list[Move]]:
        """The step of a machine, counted."""
        return partial(self._counted, step)

    def _counted(self, step: Callable[[Value, Symbol], list[Move]], value: Value, symbol: Symbol) -> list[Move]:
        moves = step(value, symbol)
        self.left -= 1 + len(moves)
        if self.left < 0:
            raise OutOfSteps
        return moves
