"""Equal matches: one of them is left, where hidden marks tell apart what is the same for the user.

What is computed of the matches of a part (planner.acel.Round) is computed of what is listed, and what is listed has
marks of ours. `PROJECT(y : AGG(y : s = SUM(a.v) ; A+ a))` lists a match for every choice of As; those with equal start,
end and sum are one. For that comparison a created event counts as its time and its attribute values.

Matches that end at one event come one after the other, so that is how long they are remembered; or, where they become
known late, as long as those of their key come.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from runtime.selection.select import Match

CREATED = "__cersql_created"
"""A column of matches: for each variable of AGG the array of its events, structs that begin with their places."""


class Distinct:
    """Which matches are the first of those that are equal. `visible`: the variables that tell them apart."""

    def __init__(self, visible: frozenset[str], labels: tuple[frozenset[str], ...], ends_late: bool) -> None:
        self._visible, self._ends_late = [label & visible for label in labels], ends_late
        self._at: tuple[int, int] | None = None
        self._seen: set[Hashable] = set()

    def is_new(self, key: int, match: Match, created: dict[str, Any] | None) -> bool:
        """Is it the first such? `created`: by variable, of each event its place among those of the match, and more."""
        at = key, -1 if self._ends_late else match.end
        if self._at != at:
            self._at = at
            self._seen.clear()
        held = tuple((p, own) for p, i in zip(match.positions, match.labels, strict=True) if (own := self._visible[i]))
        made = tuple((name, _at_places(match, events)) for name, events in (created or {}).items())
        identity = match.begin, match.end, held, made
        if identity in self._seen:
            return False
        self._seen.add(identity)
        return True


def _at_places(match: Match, events: list[dict[str, Any]]) -> tuple[Hashable, ...]:
    """Created events as (position, values), in an order that is always the same."""
    found = []
    for event in events:
        place, *values = event.values()
        found.append((match.positions[place], plain(values)))
    return tuple(sorted(found, key=repr))


def plain(value: Any) -> Hashable:
    """A value that is equal to another where GROUP BY says so: NaN is NaN, -0.0 is 0.0."""
    if isinstance(value, float):
        return "NaN" if value != value else value + 0.0
    if isinstance(value, dict):
        return tuple((name, plain(part)) for name, part in value.items())
    if isinstance(value, list | tuple):
        return tuple(map(plain, value))
    return value
