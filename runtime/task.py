"""Task: how the rows of one Spark partition become the engine's input, and matches rows again."""

from __future__ import annotations

from dataclasses import dataclass

from runtime.program import Later, Program


@dataclass(frozen=True)
class OrderColumn:
    """A column to sort by, ascending."""

    name: str
    nulls_last: bool = False


@dataclass(frozen=True)
class OutputVariable:
    """A variable in the output: column `name`, a struct of `fields` (`single`) or an array of them.

    `mark` is its name in the program's labels. `names`: what the struct calls the fields, if not what the input does.
    `place`: a field more, INT, the number of the event among all events of its match.
    """

    name: str
    mark: str
    single: bool
    fields: tuple[str, ...]
    names: tuple[str, ...] = ()
    place: str | None = None


@dataclass(frozen=True)
class Walked:
    """An aggregate over the events of each match, in the output as the column `name`: COUNT, SUM, AVG, MIN or MAX
    (`function`) of a variable (`mark`), of the input's column `field`, None where each event counts."""

    name: str
    function: str
    mark: str
    field: str | None


@dataclass(frozen=True)
class Slices:
    """Overlapping ranges of the order: slice k owns clocks [k · size, (k + 1) · size), and also holds the rows before
    it that a match can reach back to. `column` says which slice a row was sent to; the clock is the time, or the
    position where there is one."""

    column: str
    size: int


@dataclass(frozen=True)
class Summed:
    """An aggregate over the events of a variable in all matches of a group: `function` is a name of the table in
    runtime.compact_set.semirings. `mark`: the variable, None for the number of matches; `column`: its values, None
    where each event counts. It gives the columns `names`; `shown`: as it is written, for errors."""

    function: str
    mark: str | None
    column: str | None
    names: tuple[str, ...]
    shown: str


@dataclass(frozen=True)
class GroupedBy:
    """What tells groups apart: a column of rows, of the event of a variable (`mark`), or of the match's first or last
    event (FIRST_EVENT, LAST_EVENT). It gives the column `name`."""

    column: str
    mark: str
    name: str
    shown: str


@dataclass(frozen=True)
class Trend:
    """Aggregates over all matches of each group, in place of matches: RETURN … GROUP BY. `uncut`: the windows that
    bound matches are keys, so that no match leaves its window."""

    groups: tuple[GroupedBy, ...]
    sums: tuple[Summed, ...]
    uncut: bool = False


@dataclass(frozen=True)
class Limits:
    """What a worker may use. `memory_bytes`: of its process; None: half of what its machine or container has; 0: no
    limit. `query`: its text, for the error."""

    memory_bytes: int | None = None
    query: str = ""


DEFAULT_LIMITS = Limits()


@dataclass(frozen=True)
class Task:
    """What a worker does with one partition. Columns are named as in the batches that Spark sends.

    `terms`: the columns of Program.terms, `weights`: those that its sieve reads. `ties`: columns that put rows in order
    that agree on all of `order`.
    `presorted`: Spark has sorted by key, order and ties, and the partition is read in a stream; otherwise it is sorted
    here. `count_only`: one row, the number of matches. `position`: a column that numbers the rows of the whole stream,
    so that gaps show what was dropped. `symbol_bits`: if not None, only so many low bits of the symbol column are the
    symbol; those above it break ties. `interleaved`: the rows of all keys are read in one order (CONSUME BY ANY).
    `status`, `reached`: the columns of WITH TIMEOUTS; `names`: for the latter, what the user calls each of
    Program.variables. `later`: with the columns by which matches are chosen in a second pass
    (runtime.selection.rivals). `pairs`: the column that says of which tabulated condition a row is a pair
    (runtime.partition.tables), NULL in rows of events. `counted`: the variables whose events `size` counts (None: all).
    `limits`: what the worker may use, beside Program.max_matches. `walked`: aggregates that are computed
    of each match. `trend`: a row for each group of matches, instead of matches. `chains`: no array of events is asked
    for, so that matches may share their beginnings (runtime.compact_set.chained).
    """

    program: Program
    symbols: tuple[str, ...]
    order: tuple[OrderColumn, ...]
    keys: tuple[str, ...]
    ties: tuple[OrderColumn, ...]
    variables: tuple[OutputVariable, ...]
    key_outputs: tuple[tuple[str, str], ...]
    start: str | None
    end: str | None
    size: str | None
    limit: int | None = None
    presorted: bool = False
    count_only: bool = False
    slices: Slices | None = None
    position: str | None = None
    symbol_bits: int | None = None
    interleaved: bool = False
    status: str | None = None
    reached: str | None = None
    names: tuple[str, ...] = ()
    terms: tuple[str, ...] = ()
    weights: tuple[str, ...] = ()
    later: Later | None = None
    pairs: str | None = None
    counted: tuple[str, ...] | None = None
    limits: Limits = DEFAULT_LIMITS
    trend: Trend | None = None
    walked: tuple[Walked, ...] = ()
    chains: bool = False
