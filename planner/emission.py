"""When a stream gives a match: as its last event arrives, or when the watermark has passed what could undo it.

    A ; B WITHIN 1 HOUR            a match stays one, whatever comes: on arrival
    A : B, SEQ(A, !C, B), NXT      an event that comes late can lie between: on the watermark

A formula is *monotone* where an event more takes no match away: all operators are but those that see gaps, count rows,
ask what did not happen, or choose. Of a monotone one an event that comes late brings the matches that contain it, and
no others, so that each match is known once its last event is there. ([CEL] Section 4: the semantics of all operators
but the strategies looks at the events of the match alone.)
"""

from __future__ import annotations

from planner import cel
from planner.errors import PlanError
from planner.physical import PhysicalPlan
from planner.query import Query

LATE = "an event that comes late"
_OPERATORS: tuple[tuple[type, str], ...] = (
    (cel.Unless, f"{LATE} can be what UNLESS excludes"),
    (cel.Absent, f"{LATE} can be one that must not lie between"),
    (cel.NotBefore, f"{LATE} can be one that must not come before"),
    (cel.NotAfter, f"{LATE} can be one that must not come after"),
    (cel.Start, f"{LATE} can be one that begins the stream"),
    (cel.Strategy, f"{LATE} can bring a match that a strategy inside the pattern chooses in its place"),
)


def on_arrival(plan: PhysicalPlan) -> bool:
    """Are matches given as they arrive? PlanError EMIT_ON_ARRIVAL if the query asks for that and it cannot be."""
    why = why_not(plan)
    if plan.query.emit == "arrival" and why is not None:
        hint = "Leave EMIT ON out, or write EMIT ON WATERMARK: a match is given when it is final."
        raise PlanError("EMIT_ON_ARRIVAL", why=why, hint=hint)
    return plan.query.emit != "watermark" and why is None


def why_not(plan: PhysicalPlan) -> str | None:
    """What can undo a match of the query; None: nothing."""
    query = plan.query
    chosen = _chosen(query)
    if chosen is not None or plan.later is not None:
        return f"{LATE} can bring a match that {chosen or 'the query'} chooses in its place"
    for kind, why in _OPERATORS:
        if query.formula.contains((kind,)):
            return why
    if query.formula.sees_gaps() or (query.window is not None and query.window.kind == "events"):
        return f"{LATE} can lie between two that must follow each other, or be one too many"
    return None


def _chosen(query: Query) -> str | None:
    """What chooses among matches, or drops some for others."""
    if query.strategy != "ALL":
        return query.strategy
    if query.consume != "NONE":
        return f"CONSUME BY {query.consume}"
    if query.skip is not None:
        return "AFTER MATCH SKIP"
    if query.timeouts:
        return "WITH TIMEOUTS"
    return "LIMIT at each end" if query.most_at_end is not None else None
