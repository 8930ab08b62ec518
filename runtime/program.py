"""Program: what the planner makes and an engine runs; flat arrays, picklable, the only thing a worker is sent.

It carries the labelled automaton before determinization; its subsets are built where they are met
(runtime.automata.determinize).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Literal

import numpy as np

from runtime.arrays import IntArray
from runtime.errors import ExecutionError
from runtime.marks import is_hidden
from runtime.nodes import Node
from runtime.sieve import Bounded

FORMAT = 15  # of Program; raised whenever an older worker could not read it
SKIP = -1  # the label of a transition that marks nothing
ALWAYS = -1  # the guard of a transition that every event satisfies

NULL_CODE = -(1 << 63)  # the code of a NULL among those of terms
Family = Literal[
    "plain", "composed", "timed", "registers", "deferred", "ranged", "skipping", "two stacks", "bound", "pcea", "any"
]
Strategy = Literal["ALL", "NXT", "LAST", "MAX"]
Consume = Literal["NONE", "PARTITION", "ANY"]
SkipTo = Literal["PAST LAST ROW", "TO NEXT ROW", "TO FIRST", "TO LAST"]
WindowKind = Literal["time", "events"]
ReachKind = Literal["time", "events", "runs", "none"]  # of runtime.stream.task.Reach

PICKING: tuple[Strategy, ...] = ("NXT", "LAST")  # strategies of Program.pick
MOST_MATCHES = 100_000_000  # that a task may list, where nothing else is set
WORD_BITS = 62  # guards per symbol word: a non-negative int64, with a bit to spare


@functools.cache
def package_version() -> str:
    try:
        return version("cersql")
    except PackageNotFoundError:  # run from a checkout that was never installed
        return "0+unknown"


@dataclass(frozen=True)
class Window:
    """A bound on a match: end − start ≤ size (`strict`: <) in the unit of the clock.

    kind 'time': the clock is the first ORDER BY column, int64 (timestamps in microseconds, dates in days) or float64.
    kind 'events': the clock is the position; size is already n − 1.
    """

    kind: WindowKind
    size: int | float
    strict: bool = False


@dataclass(frozen=True)
class Skip:
    """AFTER MATCH SKIP: `to` is 'PAST LAST ROW', 'TO NEXT ROW', 'TO FIRST' or 'TO LAST', the latter of `variable`.

    `by`: ALL, and the match with the least start is taken first, the greatest end of it; or NXT or LAST, and matches
    are taken as they complete, of those of one end the greatest by that (runtime.selection.taking).
    """

    to: SkipTo
    variable: str | None = None
    by: Strategy = "ALL"

    @property
    def waits(self) -> bool:
        """Is a match known only when no run of its start lives any more?"""
        return self.by == "ALL"


@dataclass(frozen=True)
class Later:
    """What a second pass does with the matches that WHERE leaves (runtime.selection.rivals), instead of the engine.

    `strategy`: ALL, NXT, LAST or MAX; `consume`: NONE, PARTITION or ANY; `timeouts`: the starts that timed out are
    chosen from, too; `ends_late`: as in Program; `window`: when a start is closed. `strict`: only matches without gaps
    compete, though any match says that its start has one. `distinct`: of matches that are equal in these variables, and
    in what was created (runtime.selection.distinct), one is left; None: there are no such.
    """

    strategy: Strategy = "ALL"
    consume: Consume = "NONE"
    skip: Skip | None = None
    timeouts: bool = False
    ends_late: bool = False
    window: Window | None = None
    strict: bool = False
    distinct: tuple[str, ...] | None = None

    @property
    def drops(self) -> bool:
        """Can a match end what began at other events?"""
        return self.consume != "NONE" or self.skip is not None

    @property
    def looks_at_windows(self) -> bool:
        """Does it ask up to where a start is open?"""
        return self.drops and (self.timeouts or (self.skip is not None and self.skip.waits))


@dataclass(frozen=True, eq=False)
class Program:
    """A labelled automaton over symbols.

    transitions: int64[n, 4] of (source, guard, label, target); guard is a bit of the symbol or ALWAYS, label an index
    into `labels` or SKIP. `initial`, `final`: states. `guards[i]` names what bit i stands for (for people and tests;
    engines never look). Events whose symbol is 0 satisfy no guard.

    `family` says what runs it. 'plain': the automaton is flat, as above. 'composed' and 'timed' (with clocks,
    consumption, or a choice between starts): it is `machine`, whose moves bear masks; masks[i] is the mask of label i,
    `keep` the bits of a mask that tell matches apart, and only the first `n_event_guards` guards can make an event part
    of a match or of a veto. `choose`: the strategy that is left to the end of the partition, ALL for none; `pick`: that
    by which the matches of one end are chosen from as they come (NXT or LAST, of family 'registers'). 'skipping': as
    'registers', with `skip`. 'bound': as these, with comparisons of events; behind the words of a symbol come the codes
    of `terms`, NULL_CODE for NULL, whose order is that of the values where they are compared (the names are for people
    and tests). The terms `numbers` are computed with: their codes are their values. `tables`: of each condition that
    Spark tabulates (runtime.partition.tables) its number, and the terms of the left and of the right event. `timeouts`:
    the program that watches, over the same symbols, how far each start comes (runtime.selection.timeouts); all its
    labels are among `labels`. `all_starts`: it tells of every start, whether a match begins there or not.
    `max_subsets`: the states that a worker may make; `max_matches`: the matches that a task may list, or hold to choose
    from; `most_at_end`: of the matches of each end any so many are given, None for all. `counted`: the
    matches are those with so many events of a variable, from the one number to the other (None: any so many more).
    `sieve`: matches whose weights are not within these bounds may be left out; behind the codes of terms come the
    values of `n_weights` columns that it reads, as the bits of a DOUBLE, NULL_CODE for NULL.
    """

    n_states: int
    transitions: IntArray
    initial: tuple[int, ...]
    final: tuple[int, ...]
    guards: tuple[frozenset[str], ...]
    labels: tuple[frozenset[str], ...]
    variables: tuple[str, ...]
    window: Window | None = None
    family: Family = "plain"
    machine: Node | None = None
    masks: tuple[int, ...] = ()
    keep: int = -1
    inner_windows: tuple[Window, ...] = ()
    terms: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()
    tables: tuple[tuple[int, int, int], ...] = ()
    n_event_guards: int | None = None
    consume: bool = False
    skip: Skip | None = None
    choose: Strategy = "ALL"
    pick: Strategy = "ALL"
    ends_late: bool = False
    timeouts: Program | None = None
    all_starts: bool = False
    max_subsets: int = 65_536
    max_matches: int = MOST_MATCHES
    most_at_end: int | None = None
    counted: tuple[str, int, int | None] | None = None
    sieve: tuple[Bounded, ...] = ()
    n_weights: int = 0
    format: int = FORMAT
    package: str = field(default_factory=package_version)

    @property
    def words(self) -> int:
        """int64 words per symbol."""
        return max(1, -(-len(self.guards) // WORD_BITS))

    def label_matrix(self) -> np.ndarray:
        """bool[n_labels, n_variables]: does this label bind this variable?"""
        return np.array(
            [[variable in label for variable in self.variables] for label in self.labels], dtype=bool
        ).reshape(len(self.labels), len(self.variables))

    def ranks(self) -> IntArray:
        """int64[n_labels]: the least index of a variable that the user can see in each label; -1 where it has none."""
        shown = [(i, variable) for i, variable in enumerate(self.variables) if not is_hidden(variable)]
        return np.array([min((i for i, v in shown if v in label), default=-1) for label in self.labels], np.int64)


def check_version(program: Program) -> None:
    """Refuse a program of another format: ExecutionError PROGRAM_VERSION names both, with their releases.

    Releases of one format run each other's programs, so executors can be upgraded one after the other.
    """
    if program.format != FORMAT:
        raise ExecutionError(
            "PROGRAM_VERSION",
            worker=f"{package_version()} (format {FORMAT})",
            program=f"{program.package} (format {program.format})",
            hint="Install the same cersql on the executors as on the driver.",
        )


def symbol_words(n_guards: int) -> list[range]:
    """Which guards each word of the symbol holds."""
    return [range(i, min(i + WORD_BITS, n_guards)) for i in range(0, max(1, n_guards), WORD_BITS)]
