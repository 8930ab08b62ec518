"""Conditions on two events that Spark decides, as rows: the pairs of values that meet and of which one is TRUE.

    rows that can be the left event  ─┐
                                      join (key, slice, time) → condition → distinct codes → beside the rows of events
    rows that can be the right event ─┘

The join is one of equal keys and of equal stretches of time as long as the window, of which a right row looks into its
own and those beside it; so Spark spreads it over tasks as any other, also where there is no key. Then only the time
decides which pairs are looked at, and only those for which the condition is TRUE go on: a UDF is called with pairs of
events that meet, never with NULLs of ours.

Roads not taken: `collect_list` over a window of rows takes no second look at the source, but holds the window of each
row as one array, and lambdas take no UDFs; exploded, a UDF is also called for the rows that meet nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - pyspark's custom

from planner.tabulated import Tabulated
from planner.terms import left_column, right_column

PAIR_COLUMN = "__cersql_pair"  # in a row that is a pair: the number of its condition
_TIME, _STRETCH, _CODE, _GROUP = "time", "stretch", "code", "group"


class Side(NamedTuple):
    """The rows that can be one of the two events: which these are, and what is asked of them, as SQL on the row.

    `code`: the term that the worker compares.
    """

    condition: str
    columns: Sequence[str]
    code: str


class Meeting(NamedTuple):
    """Which rows can meet: those with equal `groups` (columns), and times (SQL) that are not farther apart than
    `within`, if that is not None; then times are of BIGINT."""

    groups: Sequence[str]
    time: str
    within: int | None


Rows = Callable[[str, Sequence[str]], DataFrame]
"""The rows of a condition, with the groups and more columns."""


def pair_rows(
    rows: Rows, asked: Tabulated, sides: tuple[Side, Side], terms: tuple[str, str], meeting: Meeting
) -> DataFrame:
    """One row for each pair of codes in a group of which the condition is TRUE: the groups, the codes in the columns
    `terms`, and the number of the condition."""
    related = asked.related
    made = related.tabulated
    assert made is not None
    left = _side(rows, sides[0], "left", [left_column(i) for i in range(len(made.left))], meeting, around=False)
    right = _side(rows, sides[1], "right", [right_column(i) for i in range(len(made.right))], meeting, around=True)
    pairs = left.join(right, F.expr(_meet(asked.ordered, meeting))).where(made.sql)
    groups = [f"{_of('left', _GROUP, i)} AS {name}" for i, name in enumerate(meeting.groups)]
    codes = [f"{_of(side, _CODE)} AS {term}" for side, term in zip(("left", "right"), terms, strict=True)]
    return pairs.selectExpr(*groups, *codes, f"{related.relation.table} AS {PAIR_COLUMN}").distinct()


def with_pairs(rows: DataFrame, pairs: Sequence[DataFrame]) -> DataFrame:
    """The rows of events, with rows that are pairs, whose other columns are NULL."""
    events = rows.selectExpr("*", f"CAST(NULL AS INT) AS {PAIR_COLUMN}")
    return reduce(lambda all_, more: all_.unionByName(more, allowMissingColumns=True), pairs, events)


def _of(side: str, what: str, i: int = 0) -> str:
    return f"__cersql_{side}_{what}{i}"


def _side(rows: Rows, side: Side, name: str, columns: Sequence[str], meeting: Meeting, around: bool) -> DataFrame:
    """The rows of one side, all columns under names of its own; `around`: once for each stretch of time that it looks
    into."""
    asked = [f"{sql} AS {column}" for sql, column in zip(side.columns, columns, strict=True)]
    asked += [f"{side.code} AS {_of(name, _CODE)}", f"{meeting.time} AS {_of(name, _TIME)}"]
    found = rows(side.condition, asked)
    found = found.withColumnsRenamed({group: _of(name, _GROUP, i) for i, group in enumerate(meeting.groups)})
    if meeting.within is None:
        return found
    time, size = _of(name, _TIME), max(1, meeting.within)
    own = f"({time} DIV {size}L - IF({time} % {size}L < 0L, 1L, 0L))"  # DIV alone rounds towards zero
    stretches = f"explode(array({own} - 1L, {own}, {own} + 1L))" if around else own
    return found.selectExpr("*", f"{stretches} AS {_of(name, _STRETCH)}")


def _meet(ordered: bool, meeting: Meeting) -> str:
    """When two rows meet; `ordered`: the left one is not after the right one. NULL is a key, too."""
    tests = [f"{_of('left', _GROUP, i)} <=> {_of('right', _GROUP, i)}" for i in range(len(meeting.groups))]
    left, right = _of("left", _TIME), _of("right", _TIME)
    if meeting.within is not None:
        tests.append(f"{_of('left', _STRETCH)} = {_of('right', _STRETCH)}")
        tests.append(f"abs({right} - {left}) <= {meeting.within}L")
    if ordered:
        tests.append(f"{left} <= {right}")
    return " AND ".join(tests) or "TRUE"
