"""What runs decide, and what is chosen in a second pass, among matches that are listed.

`WHERE SUM(b.x) > 10` is asked of whole matches: these are listed, all of them, and CONSUME BY, AFTER MATCH SKIP and
the strategies act on those that it leaves (runtime.selection.rivals). Counts runs can hold themselves.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from planner import cel
from planner.acel import Measured
from planner.choice import compares, skip_by
from planner.formula import Formula
from planner.lower import lower_window, rt_skip
from planner.query import Query
from runtime.program import Consume, Later, Program, Strategy

COMPETING = ("NXT", "LAST", "MAX")  # strategies that compare matches with each other


def consumption(query: Query) -> str:
    """CONSUME BY ANY is CONSUME BY PARTITION where there is one partition."""
    return query.consume if query.partition_by or query.consume == "NONE" else "PARTITION"


def counting(query: Query) -> Query:
    """The query whose runs count events, where WHERE asks for numbers of them.

    `A+ a ; B b WHERE COUNT(a) >= 3` has 2ⁿ matches, and what fails is not listed; and beside CONSUME BY and AFTER MATCH
    SKIP no second pass has to choose among what is. Runs that compare events have kernels, and runs of SKIP TILL NEXT
    MATCH must take what they can: there Spark counts.
    """
    if not any(query.counts) or query.timeouts or compares(query.formula):
        return query
    if query.strategy == "NEXT_MATCH" or query.consume == "ANY":
        return query
    if query.formula.contains((cel.NotBefore, cel.NotAfter)):  # which stand around all else
        return query
    drops = query.consume != "NONE" or query.skip is not None
    if not drops and not _has_gaps(query.formula):
        return query
    formula, left = query.formula, []
    for sql, clauses, asks in zip(query.on_match, query.counts, query.asks, strict=True):
        if clauses is None:
            left.append((sql, clauses, asks))
            continue
        for sides in clauses:
            formula = Measured(formula, sides, " OR ".join(map(str, sides)))
    return replace(
        query,
        formula=formula,
        on_match=tuple(sql for sql, _, _ in left),
        counts=tuple(clauses for _, clauses, _ in left),
        asks=tuple(asks for _, _, asks in left),
    )


def _has_gaps(formula: Formula) -> bool:
    """Is there a loop that may skip events?"""
    return any(
        isinstance(part, cel.Iteration) or (isinstance(part, cel.Repeat) and not part.contiguous and part.high != 1)
        for part in formula.walk(only_positive=True)
    )


def listing(query: Query) -> Query:
    """The query whose matches are listed, where a second pass chooses among those that WHERE leaves; else itself."""
    competes = query.strategy in COMPETING or query.consume != "NONE" or query.skip is not None or query.timeouts
    judged = query.created is not None and query.created.judges
    if not (query.on_match or judged) or not competes:
        return query
    strict = query.strategy == "STRICT" and query.timeouts  # a match with gaps is one where timeouts are asked
    strategy = "ALL" if query.strategy in COMPETING or strict else query.strategy
    return replace(query, strategy=strategy, consume="NONE", skip=None)


def later_of(query: Query, program: Program) -> Later:
    """What the second pass does."""
    skip = None
    if query.skip is not None:
        skip = rt_skip(query.skip, skip_by(query.strategy))
    competes = query.strategy in COMPETING and skip is None
    return Later(
        strategy=cast(Strategy, query.strategy) if competes else "ALL",
        consume=cast(Consume, consumption(query)),
        skip=skip,
        timeouts=query.timeouts,
        ends_late=program.ends_late,
        window=lower_window(query.window),
        strict=query.strategy == "STRICT" and query.timeouts,
    )
