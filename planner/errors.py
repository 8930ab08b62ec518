"""Errors of the planner: the query is understood, and cannot be planned."""

from __future__ import annotations

from runtime.errors import CersqlError, Condition


class PlanError(CersqlError):
    """A limit is broken, or a combination has no plan."""

    conditions = {
        "AUTOMATON_LIMIT": Condition("54000", "The pattern needs {found} states, the limit is {limit}."),
        "TOO_COMPLEX": Condition("54001", "The pattern and its conditions nest too deep to be planned."),
        "LABEL_LIMIT": Condition(
            "54000", "One event can be several parts of ALL in {found} ways, the limit is {limit}."
        ),
        "NESTING_LIMIT": Condition("54000", "Strategies are nested {found} deep, the limit is {limit}."),
        "TRANSITION_LIMIT": Condition("54000", "The pattern needs {found} transitions, the limit is {limit}."),
        "EMIT_ON_ARRIVAL": Condition("0A000", "A match of this query cannot be given as it arrives: {why}."),
        "STREAM_UNBOUNDED": Condition("0A000", "On a stream this would have to keep rows for ever: {what}."),
        "TIMEOUTS": Condition("0A000", "WITH TIMEOUTS beside {found} is not supported."),
    }


def too_complex() -> PlanError:
    """What becomes of a RecursionError: hundreds of comparisons, or of loops inside loops."""
    hint = "Compare fewer events in one pattern, or put conditions on one event into DEFINE."
    return PlanError("TOO_COMPLEX", hint=hint)
