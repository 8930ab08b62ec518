"""Events that AGG creates, and conditions on parts as a whole: computed by Catalyst of the matches that are listed.

matches → the rounds of a part, what they create, what is asked of them (planner.query.Created) → the columns of
variables that hold created events → (what tells equal matches apart)

Columns that only these steps read stay behind.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from planner.physical import PhysicalPlan
from planner.query import SIZE_COLUMN, Created, Folded, Query, variable_column
from planner.sql import quote
from runtime.marks import is_round
from runtime.selection import rivals
from runtime.selection.distinct import CREATED
from spark_ext.folding import with_folded
from spark_ext.objections import analyzed, explained


def lists_more(query: Query) -> bool:
    """Does the engine list matches that are none, or equal ones?"""
    return query.created is not None and (query.created.judges or query.created.identity is not None)


def counted(query: Query) -> tuple[str, ...] | None:
    """The variables whose events are those of a match, where there are others; what AGG creates is counted apart."""
    if query.created is None:
        return None
    created = {variable.mark for variable in query.variables if variable.created}
    return tuple(mark for mark in query.marks if mark not in created and not is_round(mark))


def with_created(plan: PhysicalPlan, created: Created, matches: DataFrame) -> DataFrame:
    """The matches that fulfil what is asked of parts of them, with the columns of created events."""
    query, columns = plan.query, [column.name for column in plan.query.columns]
    ours = {variable_column(i) for i, variable in enumerate(query.variables) if is_round(variable.mark)}
    kept = [name for name in matches.columns if name not in ours]
    for step in created.steps:
        if isinstance(step, Folded):
            with explained(query.text, matches, [step.sql], columns=columns):
                matches = with_folded(matches, step)
            continue
        with explained(query.text, matches, [step.sql], condition=step.column is None, columns=columns):
            if step.column is None:
                asked = step.sql.text
                if plan.later is not None and plan.later.timeouts:  # a start that may time out is no match
                    asked = f"IF({rivals.KIND} = {rivals.TIMEOUT}, TRUE, {asked})"
                matches = analyzed(matches.where(asked))
            else:
                matches = analyzed(matches.selectExpr("*", f"{step.sql.text} AS {quote(step.column)}"))
    shown = [
        f"CAST({SIZE_COLUMN} + {created.size} AS INT) AS {SIZE_COLUMN}" if name == SIZE_COLUMN else quote(name)
        for name in kept
    ]
    wanted = query.on_matches
    shown += [
        f"{sql.text} AS {quote(name)}" for name, sql in created.variables if any(quote(name) in t for t in wanted)
    ]
    if created.identity is not None:
        shown.append(f"{created.identity} AS {CREATED}")
    return analyzed(matches.selectExpr(*shown))
