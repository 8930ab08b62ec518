"""RETURN … GROUP BY: a row for each group of matches, with aggregates over all of them.

`SUM(b.x)` is summed up in the nodes of the compact set (runtime.compact_set.semirings), so that no match is listed,
where the aggregate has such a form and nothing chooses among matches that are listed anyway. The rest is computed by
Spark over matches that are listed; EXPLAIN says which, and why.
"""

from __future__ import annotations

from dataclasses import dataclass

from runtime.marks import FIRST_EVENT, LAST_EVENT
from runtime.own import Own
from runtime.pcea import Parallel
from runtime.program import Later, Program
from runtime.two_stacks import TwoStacks

MATCHES = "COUNT(*)"


WINDOW_COLUMN = "__cersql_window"  # where the window begins, of a row in one that slides


def by_column(i: int) -> str:
    """The column of the i-th expression of GROUP BY."""
    return f"__cersql_by{i}"


def sum_column(i: int) -> str:
    """The column of the i-th aggregate: of a match its values, an array; of a group the aggregate."""
    return f"__cersql_agg{i}"


@dataclass(frozen=True)
class Grouped:
    """An expression of GROUP BY. `mark`: of the event of which variable, None where all events of a match agree;
    `row`: as SQL on that event's row, None where it is none of one row. `on_match`: as SQL on a match."""

    shown: str
    mark: str | None
    row: str | None
    on_match: str


@dataclass(frozen=True)
class Aggregated:
    """An aggregate over all matches of a group. `function`: as in the table of semirings, None where it has no such
    form; then `reason` says so. `mark`: of which variable's events, None for the number of matches; `value`: of what,
    as SQL on a row, None where each event counts; `type`: of the result. `on_match`: the values of one match, an array;
    `of_values`: the aggregate, over an array of the column that is called like it, of all matches; `own`: the user's
    own function, of which `of_values` is the argument."""

    shown: str
    type: str
    on_match: str
    of_values: str
    function: str | None = None
    mark: str | None = None
    value: str | None = None
    reason: str = ""
    own: Own | None = None


@dataclass(frozen=True)
class Sliding:
    """Windows of `size` that begin at every multiple of `slide`, in units of the clock, the column `column` of rows, of
    a type. A row is in [begin, begin + size)."""

    size: int
    slide: int
    column: str
    type: str


@dataclass(frozen=True)
class Groups:
    """What GROUP BY and the aggregates of RETURN and HAVING say. `listed`: why matches are listed, empty if they are
    not. `sliding`: the windows in which the pattern runs, each by itself; `bounds`: they are what bounds matches."""

    by: tuple[Grouped, ...]
    sums: tuple[Aggregated, ...]
    listed: str = ""
    sliding: Sliding | None = None
    bounds: bool = False

    @property
    def on_match(self) -> tuple[str, ...]:
        """All that is computed of each match, where they are listed."""
        if not self.listed:
            return ()
        return (*(grouped.on_match for grouped in self.by), *(aggregated.on_match for aggregated in self.sums))


def why_listed(groups: Groups, program: Program, asks: bool, later: Later | None) -> str:
    """Why the matches of a program are listed to be grouped; empty if they are not. `asks`: WHERE asks about matches as
    a whole."""
    if asks or later is not None:
        return "WHERE asks about matches as a whole"
    if program.skip is not None:
        return "AFTER MATCH SKIP takes one match at a time"
    if program.choose != "ALL":
        return f"{program.choose} chooses among matches that are known late"
    for grouped in groups.by:
        if grouped.row is None:
            return f"{grouped.shown} reads more than one event of a match"
        if grouped.mark == LAST_EVENT and program.ends_late:
            return "the end of a match is not its last event, when it is known"
    for aggregated in groups.sums:
        if aggregated.function is None:
            return aggregated.reason
    if isinstance(program.machine, TwoStacks):
        return "one match of each end is chosen"
    if isinstance(program.machine, Parallel):
        return _of_several_atoms(groups, program, program.machine)
    return ""


def _of_several_atoms(groups: Groups, program: Program, machine: Parallel) -> str:
    """Of runs side by side two can take one event, which is one event of a variable that both of them bind."""
    if any(grouped.mark == FIRST_EVENT for grouped in groups.by):
        return "several parts of ALL can begin"
    labels = [program.labels[int(machine.label_of[1 << atom])] for atom in range(len(machine.guard))]
    marks = {*(grouped.mark for grouped in groups.by), *(aggregated.mark for aggregated in groups.sums)}
    if any(sum(mark in label for label in labels) > 1 for mark in marks):
        return "one event can be several parts of ALL"
    return ""
