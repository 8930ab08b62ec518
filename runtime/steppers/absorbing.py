"""AFTER MATCH SKIP PAST LAST ROW without a window: runs of starts that those of an earlier start make superfluous.

From a state on, the runs of two starts i and k, i before k, have matches with the same ends. Let no match that ended
from i on, but before k, begin before i. If matches are still to come, then i is chosen with the last of them, which
skips k; or i was skipped by a match that begins before it, and that ends after k as well. So of `A+ ; B` over n times A
there is one run, where each start had one, of up to n events.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping

from runtime.arrays import AnyArray, IntArray


def not_superfluous(starts: IntArray, states: IntArray, ends: Mapping[int, int]) -> AnyArray:
    """bool[n]: which runs are not. `starts`: where they began, -1 where that is not known; `ends`: by start, the end of
    the longest match so far that may still be taken. O(n log n)."""
    kept = starts < 0
    own = sorted(ends.items())
    own_starts, own_ends = [start for start, _ in own], [end for _, end in own]
    first_of: dict[int, tuple[int, list[int]]] = {}  # by state: its least start, and the ends of those before that
    for k in starts.argsort(kind="stable").tolist():
        if kept[k]:
            continue
        state, start = int(states[k]), int(starts[k])
        first = first_of.get(state)
        if first is None or bisect_left(first[1], first[0]) < bisect_left(first[1], start):
            first_of[state] = start, sorted(own_ends[: bisect_left(own_starts, start)])
            kept[k] = True
    return kept
