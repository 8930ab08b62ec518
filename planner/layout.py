"""How rows are partitioned, which of them are dropped before, and what a match can span.

Four ways to partition the stream:
- *keys*: PARTITION BY; each key's rows meet in one task;
- *slices*: no key, a window of time: ranges of the clock that overlap by the window. A match lies in the slice of its
  last event and the overlap before it (Theorem 0.1 of the inter-window paper), and that slice reports it;
- *ranges*: positions matter (`:`, a window of events) and there is neither: the rows are numbered first, those without
  a guard then dropped, and slices of positions overlap by what a match can span;
- *single*: none of these; one task, after the drop.
"""

from __future__ import annotations

from planner import cel
from planner.automata.automaton import Automaton, Guard, show_guard
from planner.groups import WINDOW_COLUMN
from planner.query import Query

# A slice is this many windows long, so that one row in so many is sent twice.
SLICE_WINDOWS = 64


LEAST_SLICE = 1 << 16  # positions in a slice at the least


MAX_SPAN = 100_000  # positions; a match that can span more is not worth cutting the order for


def layout_of(query: Query, sees_positions: bool, span: int | None) -> tuple[str, int | None, str]:
    window = query.window
    if query.consume == "ANY" and query.partition_by:
        return "single", None, "CONSUME BY ANY: what one key consumes is lost to all, so one task reads all in order"
    if query.keys and not query.partition_by:
        return "keys", None, "each key's rows meet in one task"
    if query.partition_by:
        names = [name for name in query.partition_by if name != WINDOW_COLUMN]
        by = " and ".join([*([f"PARTITION BY {', '.join(names)}"] if names else []), *_why_windows(query)])
        return "keys", None, f"{by}: each key's rows meet in one task"
    if window is not None and window.kind == "time" and isinstance(window.size, int) and can_be_sliced(query):
        size = max(1, SLICE_WINDOWS * window.size)
        if size < 1 << 62:
            return "slices", size, f"no PARTITION BY, a window of time: slices of {SLICE_WINDOWS} windows, in parallel"
    if sees_positions:
        if span is not None:
            size = max(SLICE_WINDOWS * span, LEAST_SLICE)
            return (
                "ranges",
                size,
                f"positions matter, and a match spans at most {span}: numbered, then cut, in parallel",
            )
        return "ranges", None, "positions matter, over an unbounded span: numbered in parallel, matched in one task"
    if window is not None and window.kind == "time" and isinstance(window.size, int):
        return "single", None, "no PARTITION BY, and matches depend on more than their own window: matched in one task"
    return "single", None, "no PARTITION BY and no window of whole time units: matched in one task"


def _why_windows(query: Query) -> tuple[str, ...]:
    sliding = None if query.groups is None else query.groups.sliding
    return () if sliding is None else (f"a row for each window of {sliding.size} every {sliding.slide}",)


def dropping(
    guards: tuple[Guard, ...], conditions: tuple[str, ...], sees_positions: bool, layout: str
) -> tuple[bool, str]:
    if "TRUE" in conditions:
        return False, "every row can be part of a match, so none is dropped"
    if not sees_positions:
        shown = " or ".join(show_guard(guard) for guard in guards[:3]) + (" or …" if len(guards) > 3 else "")
        return True, f"rows that satisfy none of the {len(guards)} conditions ({shown}) never leave Spark"
    if layout == "ranges":
        return (
            False,
            "rows are numbered before those that satisfy no condition are dropped, since their positions matter",
        )
    return False, "rows that satisfy no condition are kept, since the pattern sees what lies between its events"


def observes_positions(automaton: Automaton, query: Query) -> bool:
    """Can the pattern tell whether rows without a guard lie between its events?

    It can if some state that a match can be in does not wait (`:`), or if the window counts events.
    """
    if query.window is not None and query.window.kind == "events":
        return True
    waits = {t.source for t in automaton.transitions if not t.label and t.source == t.target}
    goes_on = {t.source for t in automaton.transitions}
    return bool(goes_on - waits)


def sees_gaps(query: Query) -> bool:
    """As observes_positions, for a formula whose automaton is composed: does anything in it count or touch rows?"""
    return (
        (query.window is not None and query.window.kind == "events")
        or query.strategy == "STRICT"
        or query.formula.sees_gaps()
    )


def can_be_sliced(query: Query) -> bool:
    """Is a match decided by the rows of its window before its end alone?

    Not where the stream's beginning counts (START), where matches compete or are consumed, or where one becomes known
    only later.
    """
    if query.consume != "NONE" or query.skip is not None or query.strategy not in ("ALL", "STRICT", "NEXT_MATCH"):
        return False
    return not query.timeouts and not query.formula.contains((cel.Start, cel.Strategy, cel.NotAfter))


def position_span(automaton: Automaton, query: Query) -> int | None:
    """The most positions that a match can cover, or None if that is unbounded, or too many to cut the order by.

    A window of n events bounds it by n; a pattern without any skipping after its first event by its longest path.
    """
    by_window = int(query.window.size) if query.window is not None and query.window.kind == "events" else None
    if not can_be_sliced(query):
        return None
    by_path = longest_path(automaton) if query.formula.is_flat() else None
    known = [n for n in (by_window, by_path) if n is not None]
    return min(known) if known and min(known) <= MAX_SPAN else None


def longest_path(automaton: Automaton) -> int | None:
    """Events on the longest path from an initial to a final state, waiting before the first not counted."""
    after: dict[int, list[int]] = {}
    started = {t.target for t in automaton.transitions if t.label}
    for t in automaton.transitions:
        if not t.label and t.source in started:
            return None
        if t.label:
            after.setdefault(t.source, []).append(t.target)
    depth: dict[int, int] = {}
    open_: set[int] = set()

    def longest(state: int) -> int | None:
        if state in open_:
            return None
        if state not in depth:
            open_.add(state)
            best = 0
            for target in after.get(state, ()):
                below = longest(target)
                if below is None:
                    return None
                best = max(best, below + 1)
            open_.discard(state)
            depth[state] = best
        return depth[state]

    lengths = [longest(state) for state in automaton.initial]
    return None if None in lengths else max((n for n in lengths if n is not None), default=0)
