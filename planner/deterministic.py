"""The I/O-deterministic automaton as text, for people: what the worker builds lazily, for single guards at a time.

I/O-determinism gives a match one run, so that it is listed once. Engines build subsets where the data leads
(runtime.automata.determinize), because all of them can be exponentially many; here the same rule is followed for the
symbols that satisfy no guard or exactly one, and stops after `limit` states, or so many steps.
"""

from __future__ import annotations

from collections.abc import Iterator

from runtime.automata.determinize import DEAD, StateTable
from runtime.automata.determinize_composed import Composed, states_of
from runtime.automata.machine import OutOfSteps, Steps
from runtime.chain_cea import Registers
from runtime.deferred import Deferred
from runtime.errors import ExecutionError
from runtime.pcea import Parallel
from runtime.program import WORD_BITS, Program
from runtime.ranged import Ranged
from runtime.two_stacks import TwoStacks

MOST_STEPS = 50_000  # half a second, where most patterns take some hundred
MOST_LINES = 2_000
BEYOND = (OutOfSteps, ExecutionError)  # the latter: more states than a worker may make
NO_TABLE = "(states hold what is kept of events, such as compared values: there are as many as the data has)"


def determinize(program: Program, limit: int = 64) -> str:
    """One move a line, `{0,1} -[B / b]-> {1} accept`: what an event does that satisfies just this guard, or none.

    States of a composed program are numbered, s0 the beginning; windows inside it are taken to be open. Where events
    are compared, states hold values of theirs, and there is no table of them; nor is there one of registers.
    """
    if not has_table(program):
        return NO_TABLE
    steps, lines = Steps(MOST_STEPS), list[str]()
    try:
        subsets = states_of(program, steps)
        for state in _states(subsets, limit):
            for k, symbol in enumerate(_symbols(program)):
                lines += _moves(program, subsets, state, k, symbol)
                if len(lines) > MOST_LINES:
                    return "\n".join([*lines[:MOST_LINES], f"… more than {MOST_LINES} moves"])
    except BEYOND:
        return "\n".join([*lines, f"… and more, which takes more than {MOST_STEPS} steps to find"])
    if len(subsets.members) > limit:
        lines.append(f"… more than {limit} states")
    return "\n".join(lines)


def has_table(program: Program) -> bool:
    """Is there a deterministic automaton of it?"""
    return not program.terms and not isinstance(program.machine, Registers | Deferred | Ranged | TwoStacks | Parallel)


def _moves(program: Program, subsets: StateTable, state: int, k: int, symbol: tuple[int, ...]) -> Iterator[str]:
    """What a state does on the k-th of the symbols."""
    row, own = subsets.row(state, symbol), _name(subsets, state)
    read = "none" if k == 0 else " & ".join(sorted(program.guards[k - 1])) or "TRUE"
    for label, target, accept in row.moves:
        marked = ", ".join(sorted(program.labels[label])) or "-"
        yield f"{own} -[{read} / {marked}]-> {_name(subsets, target.state)}" + (" accept" if accept else "")
    if row.skip.state != state:
        yield f"{own} -[{read} / -]-> {_name(subsets, row.skip.state)}"


def n_deterministic(program: Program, limit: int = 1024) -> str:
    """How many states single guards reach; `more than n` where that is all that a bounded look can say."""
    steps, subsets = Steps(MOST_STEPS), None
    try:
        subsets = states_of(program, steps)
        for state in _states(subsets, limit):
            for symbol in _symbols(program):
                subsets.row(state, symbol)
            if len(subsets.members) > limit:
                break
    except BEYOND:
        found = 0 if subsets is None else len(subsets.members)
        return f"more than {min(found, limit)}"
    n = len(subsets.members)
    return str(n) if n <= limit else f"more than {limit}"


def _states(subsets: StateTable, limit: int) -> Iterator[int]:
    """The states in the order in which they are met, while others are met on the way."""
    state = 0
    while state < len(subsets.members) and state < limit:
        yield state
        state += 1


def _symbols(program: Program) -> list[tuple[int, ...]]:
    """The symbols that satisfy no guard, and each guard alone."""
    found = [(0,) * program.words]
    for bit in range(len(program.guards)):
        word, place = divmod(bit, WORD_BITS)
        found.append(tuple(1 << place if w == word else 0 for w in range(program.words)))
    return found


def _name(subsets: StateTable, state: int) -> str:
    if state == DEAD:
        return "dead"
    if isinstance(subsets, Composed):
        return f"s{state}"
    return "{" + ",".join(map(str, subsets.members[state])) + "}"
