"""Query → relational plan: the second plan, which Catalyst runs alone, or the reason why there is none.

The plan is a union of branches (planner.relational.branch); WITHIN, STRICT and SKIP TILL NEXT MATCH are part of them.
What chooses among whole matches comes after: the strategies of the clause among those of one end, AFTER MATCH SKIP TO
NEXT ROW among those of one start, by windows over ends and starts.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.formula import Formula
from planner.query import Query
from planner.reasons import sees_other_keys
from planner.refusal import Refusal
from planner.relational.branch import Branch
from planner.relational.branches import Relating, most_events, within
from planner.relational.conditions import Unrelated
from planner.relational.next_match import next_matches
from planner.rewrite.keys import keyed
from planner.second_pass import COMPETING
from planner.terms import Window


@dataclass(frozen=True)
class RelationalPlan:
    """A plan. `query`: without the comparisons that became keys. `branches`: of its matches, before any is chosen.

    `distinct`: one match can be a row of several branches, or in several ways of one. `strategy`: what chooses among
    the matches of one end (ALL: nothing); `one_of_start`: of each start the match with the greatest end, the
    NXT-greatest of these, is taken.
    """

    query: Query
    branches: tuple[Branch, ...]
    distinct: bool
    strategy: str = "ALL"
    one_of_start: bool = False


def relational(query: Query) -> RelationalPlan | Refusal:
    """The relational plan of a bound query."""
    why = _not_here(query)
    if why is not None:
        return Refusal(why)
    query = keyed(query, sees_other_keys(query)).query
    try:
        branches = branches_of(query.formula, query.window, query.strategy)
    except Unrelated as found:
        return Refusal(str(found))
    return RelationalPlan(
        query,
        branches,
        is_ambiguous(branches, frozenset(query.marks)),
        query.strategy if query.strategy in COMPETING else "ALL",
        query.skip is not None,
    )


def branches_of(formula: Formula, window: Window | None = None, strategy: str = "ALL") -> tuple[Branch, ...]:
    """The branches of a formula inside the window, by a strategy that matches satisfy by themselves. Raises
    Unrelated."""
    made = Relating(most_events(window)).of(formula)
    found = [branch for branch in made if branch.slots]  # no event is no match
    if strategy == "NEXT_MATCH":
        found = next_matches(formula, found)
    elif strategy == "STRICT":
        found = [branch.gapless() for branch in found]
    return tuple(found if window is None else within(found, window))


def is_ambiguous(branches: tuple[Branch, ...], visible: frozenset[str]) -> bool:
    """Could one match be listed twice? Not where each branch has its own sequence of sets of variables: then a match's
    events, in their order, say which event of which branch each is."""
    seen = set()
    for branch in branches:
        ordered = branch.in_order(branch.events)
        if ordered is None:
            return True
        marks = {slot.number: slot.marks & visible for slot in branch.slots}
        shown = tuple(marks[slot] for slot in ordered)
        if not all(shown) or shown in seen:
            return True
        seen.add(shown)
    return False


def _not_here(query: Query) -> str | None:
    """What in the query, beside its formula, is no finite algebra, or not built here."""
    if query.consume != "NONE":
        return (
            f"CONSUME BY {query.consume}: what one match consumes decides which others there are, one after the other"
        )
    if query.timeouts:
        return "WITH TIMEOUTS tells of runs that did not end, and there are no runs"
    if query.skip is not None and (query.skip.to != "TO NEXT ROW" or query.strategy not in ("ALL", "STRICT")):
        return f"AFTER MATCH SKIP {query.skip.to} takes one match after the other: each decides which others there are"
    if query.created is not None:
        return "AGG, and conditions on a part as a whole, are computed of the rounds of a part, one by one"
    if query.most_at_end is not None:
        return "some of the matches that end together, and no others, are asked for"
    return None
