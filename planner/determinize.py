"""The I/O-deterministic automaton as text, for people: what the worker builds lazily, for single guards at a time.

I/O-determinism gives a match one run, so that it is listed once. Engines build subsets where the data leads
(runtime.subsets), because all of them can be exponentially many; here the same rule is followed for the symbols that
satisfy no guard or exactly one, and stops after `limit` states.
"""

from __future__ import annotations

from runtime.composed import Untimed, subsets_of
from runtime.program import WORD_BITS, Program
from runtime.subsets import DEAD, SubsetTable


def determinize(program: Program, limit: int = 64) -> str:
    """One move a line, `{0,1} -[B / b]-> {1} accept`: what an event does that satisfies just this guard, or none.

    States of a composed program are numbered, s0 the beginning; windows inside it are taken to be open. Where events
    are compared, states hold values of theirs, and there is no table of them.
    """
    if program.terms:
        return "(states hold what is compared of the events: there are as many as the data has values)"
    subsets = subsets_of(program)
    symbols, lines, state = _symbols(program), list[str](), 0
    while state < len(subsets.members) and state < limit:
        for k, symbol in enumerate(symbols):
            row = subsets.row(state, symbol)
            read = "none" if k == 0 else " & ".join(sorted(program.guards[k - 1])) or "TRUE"
            for label, target, accept in row.moves:
                marked = ", ".join(sorted(program.labels[label])) or "-"
                move = f"{_name(subsets, state)} -[{read} / {marked}]-> {_name(subsets, target)}"
                lines.append(move + (" accept" if accept else ""))
            if row.skip != state:
                lines.append(f"{_name(subsets, state)} -[{read} / -]-> {_name(subsets, row.skip)}")
        state += 1
    if state < len(subsets.members):
        lines.append(f"… more than {limit} states")
    return "\n".join(lines)


def n_deterministic(program: Program, limit: int = 1024) -> int:
    """How many states single guards reach, or `limit` if more."""
    subsets, symbols, state = subsets_of(program), _symbols(program), 0
    while state < len(subsets.members) < limit:
        for symbol in symbols:
            subsets.row(state, symbol)
        state += 1
    return min(len(subsets.members), limit)


def _symbols(program: Program) -> list[tuple[int, ...]]:
    """The symbols that satisfy no guard, and each guard alone."""
    found = [(0,) * program.words]
    for bit in range(len(program.guards)):
        word, place = divmod(bit, WORD_BITS)
        found.append(tuple(1 << place if w == word else 0 for w in range(program.words)))
    return found


def _name(subsets: SubsetTable, state: int) -> str:
    if state == DEAD:
        return "dead"
    if isinstance(subsets, Untimed):
        return f"s{state}"
    return "{" + ",".join(map(str, subsets.members[state])) + "}"
