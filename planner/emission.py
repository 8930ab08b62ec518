"""When a stream gives a match: as its last event arrives, or when the watermark has passed what could undo it.

    A ; B WITHIN 1 HOUR            a match stays one, whatever comes: on arrival
    A : B, SEQ(A, !C, B), NXT      an event that comes late can lie between: on the watermark

A formula is *monotone* where an event more takes no match away: all operators are but those that see gaps, count rows,
ask what did not happen, or choose. Of a monotone one an event that comes late brings the matches that contain it, and
no others, so that each match is known once its last event is there. ([CEL] Section 4: the semantics of all operators
but the strategies looks at the events of the match alone.)
"""

from __future__ import annotations

from planner.errors import PlanError
from planner.query import Query

LATE = "an event that comes late can be"


def on_arrival(query: Query, chooses: bool) -> bool:
    """Are matches given as they arrive? PlanError EMIT_ON_ARRIVAL if the query asks for that and it cannot be.
    `chooses`: a second pass chooses among the matches."""
    why = why_not(query, chooses)
    if query.emit == "arrival" and why is not None:
        hint = "Leave EMIT ON out, or write EMIT ON WATERMARK: a match is given when it is final."
        raise PlanError("EMIT_ON_ARRIVAL", why=why, hint=hint)
    return query.emit != "watermark" and why is None


def why_not(query: Query, chooses: bool) -> str | None:
    """What can undo a match of the query; None: nothing."""
    chosen = _chosen(query)
    if chosen is not None or chooses:
        return f"{LATE} in a match that {chosen or 'the query'} chooses in its place"
    for part in query.formula.walk():
        if part.undone_by is not None:
            return f"{LATE} {part.undone_by}"
    if query.formula.sees_gaps() or (query.window is not None and query.window.kind == "events"):
        return f"{LATE} one too many in a window of events, or between two that must follow each other"
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
