"""Runs end whose starts AFTER MATCH SKIP PAST LAST ROW is sure to skip: the entries of a table of states, and roots.

Live say with which position their runs began; runtime.steppers.leading says which of them are sure to be skipped.
"""

from __future__ import annotations

import numpy as np

from runtime.jit import inlined
from runtime.steppers.clocks import begin_of, copy_clocks
from runtime.steppers.leading import DROPPED, begins, covered, is_kept, matched, settle_before
from runtime.steppers.live import N_LIVE, N_ROOTS, SIDE, START
from runtime.steppers.union_lists import copy_list


@inlined
def least_begin(live, clocks):
    """The least position with which a live run began."""
    least = np.int64(np.iinfo(np.int64).max)
    for k in range(START + 1, live.counts[N_LIVE]):
        least = min(least, begin_of(live, clocks, live.counts[SIDE], k))
    return least


@inlined
def drop_runs(live, clocks, least, last):
    """Drop the entries that began up to `last`, but not those of `least`."""
    side, kept = live.counts[SIDE], START + 1
    for k in range(START + 1, live.counts[N_LIVE]):
        begin = begin_of(live, clocks, side, k)
        if begin <= last and begin != least:
            continue
        if kept < k:
            live.state[side, kept] = live.state[side, k]
            copy_list(live, side, kept, side, k)
            copy_clocks(clocks, side, kept, k)
        kept += 1
    live.counts[N_LIVE] = kept


@inlined
def drop_skipped(live, clocks, leading, roots, n_roots, position, now):
    """Drop the runs, and of the roots from number n_roots on those, whose starts are sure to be skipped. O(entries)."""
    counts = live.counts
    begins(leading, position, now)
    for n in range(n_roots, counts[N_ROOTS]):
        matched(leading, roots.begin[n], roots.end[n])
    while True:
        least = least_begin(live, clocks)
        settle_before(leading, least)
        if counts[N_LIVE] == START + 1 or least > leading.counts[DROPPED]:
            break
        drop_runs(live, clocks, np.int64(-1), leading.counts[DROPPED])
    last, kept = covered(leading, least), n_roots
    if last > least:
        drop_runs(live, clocks, least, last)
    for n in range(n_roots, counts[N_ROOTS]):
        begin = roots.begin[n]
        if is_kept(leading, begin, least, last):
            roots.node[kept], roots.clock[kept], roots.key[kept] = roots.node[n], roots.clock[n], roots.key[n]
            roots.begin[kept], roots.end[kept] = begin, roots.end[n]
            kept += 1
    counts[N_ROOTS] = kept
